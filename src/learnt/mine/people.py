"""Find rules, corrections and decisions in what a person writes to an agent.

    read_prompt    the rules and corrections in a prompt
    read_decision  the choice that a prompt makes among what the agent asked, with its reason

A statement is kept in the person's words: the sentence that carries it, and beside it the sentences that give its reason
or its remedy. How firmly it is said decides who vouches for it (`flow/statements`):

- `ASKED`: the person asks for it to be remembered ("remember", "from now on"), in so many words;
- `RULE`: it is said of all cases ("never", "always", "stop adding", "we don't … here", "it is forbidden");
- `SOFT`: it corrects a choice, states a preference, or forbids something with a reason that will hold again.

The rest of a prompt is about the present task: questions, complaints, what the product shall do ("the tooltip must never
cover the input"), and orders for this time. It states nothing. Nor does what is quoted: code, block quotes, traces, text
in quotation marks. What follows an introduction, or stands in a long text with headings, may have been pasted: it is
somebody's statement, but perhaps not this person's (`own` is False).

Only the words are looked at, in English, German, French and Spanish. Any text gives a result in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from learnt.debrief.own_words import own_words
from learnt.mine import people_words as words
from learnt.model import Value
from learnt.text.clean import clean, fold
from learnt.text.sentences import HEADING, ITEM, TABLE, Sentence, read_blocks, read_sentences, split_sentences
from learnt.text.verbs import is_base_form, is_past, is_present

ASKED, RULE, SOFT = "asked", "rule", "soft"
_MAX_PROMPT = 20_000
_MAX_OWN_LENGTH, _MAX_OWN_LINES = 2_500, 40
_MAX_WORDS = 600
_MAX_BESIDE = 2
_MAX_ANSWER = 800
_MAX_OPTION = 80
_MIN_WORDS = 3
_CODE = re.compile(r"`[^`\n]+`")
_REPEATED_SIGN = re.compile(r"([?!])[?!]+")
_NAME = re.compile(r"[\w.-]*\w")
_MIN_NAME = 5
_COMMON = frozenset(
    "about after again always because before could doing every everything first going never other please really should "
    "since something still their there these thing things think those though using where which while would without "
    "einen einer immer keine nicht sonst diese dieses werden comme cette jamais toujours parce quand siempre nunca cuando "
    "porque desde".split()
)
_QUOTED = re.compile(r"\"[^\"\n]{8,}\"|“[^”\n]{8,}”|„[^“”\n]{8,}[“”]|«[^»\n]{8,}»")
_ANAPHOR = re.compile(
    r"(?:that|this|it|so|das|dies|es|ça|cela|eso|esto|lo)?(?: (?:for|please|bitte|für|pour|para)\b.*)?[.!]*$", re.IGNORECASE
)
_PRONOUN_OBJECT = re.compile(r"\b(?:it|them|those|that|this|these)\b", re.IGNORECASE)
_REFERS = re.compile(r"(?:so|therefore|hence|deshalb|also|donc|así que|por eso)\b", re.IGNORECASE)
_TO_DO = re.compile(r"(?:to|de|d['’]|zu) ?", re.IGNORECASE)
_GENERAL = re.compile(
    r"\b(?:before|after|when(?:ever)?|each|every|always|never|all|any|bevor|wenn|jede\w*|immer|nie|avant|chaque|toujours|quand|"
    r"antes|cada|siempre|cuando)\b|`x`|\bx\b",
    re.IGNORECASE,
)
_THAT = re.compile(r"(?:that|dass|que|qu['’])\s*|[:,–—-]+\s*", re.IGNORECASE)
_SPLIT = re.compile(r"[;–—]\s*|,? (?:and|but|und|aber|et|mais|y|pero) |[,:] ", re.IGNORECASE)
_ONE_TASK = re.compile(
    r"(?:please |now |ok,? |can you |could you |then )*(?:fix|add|rename|move|make|remove|delete|change|update|write|create|"
    r"implement|refactor|revert|undo|redo|do|commit|push|merge|run|try|continue|go|let['’]s|looks|great|good|nice|thanks|"
    r"that (?:works|looks)|(?:this|it) (?:works|looks)|works|fine|"
    r"behebe|füge|mach|ändere|lösche|schreib|corrige|ajoute|supprime|change|arregla|añade|borra|cambia)\b",
    re.IGNORECASE,
)


class Statement(Value):
    """A rule, a correction or a decision, in a person's words."""

    text: str
    """The sentence that carries it, without the words that only lead to it."""
    words: str
    """The same as the person wrote it, with the sentences beside it that give its reason or its remedy."""
    force: str
    """How firmly it is said: `ASKED`, `RULE` or `SOFT`."""
    everywhere: bool = False
    """Whether it is said to hold in all projects."""
    own: bool = True
    """Whether the words are the person's own; False if they may have been pasted."""
    is_decision: bool = False
    """Whether it answers a question of the agent."""


class _Talk(Value):
    """A sentence of a prompt, and what it says."""

    sentence: Sentence
    text: str
    """The sentence, or the part of it that states something for longer than this task."""
    masked: str
    """The same with code and quotations replaced by `x`."""
    force: str = ""
    own: bool = True

    @property
    def main(self) -> str:
        """The main clause, without what leads to it."""
        return _find_main(self.masked)


def read_prompt(prompt: str) -> list[Statement]:
    """Return what a prompt states for longer than its task, in the order of the prompt."""
    text = _REPEATED_SIGN.sub(r"\1", clean(prompt)[:_MAX_PROMPT])
    if text.lstrip().startswith("/"):
        return []
    talks = _judge(_read_talks(text))
    statements = [_state(talks, number) for number, talk in enumerate(talks) if talk.force and not _is_remedy(talks, number)]
    return list({statement.text.casefold(): statement for statement in statements if statement.text}.values())


def read_decision(question: str, answer: str) -> Statement | None:
    """Return the choice that a person makes, with its reason, when the agent has asked; None if there is none."""
    asked = _find_question(question)
    text = clean(answer).strip()
    sentences = split_sentences(text) if len(text) <= _MAX_ANSWER and not text.startswith("/") else []
    if not asked or not sentences or sentences[0].endswith("?"):
        return None
    first = sentences[0]
    said = " ".join(sentences[:_MAX_BESIDE])
    if not (words.BECAUSE.search(_mask(said)) or _gives_reason(sentences)) or not _chooses(first, question):
        return None
    choice = _name_option(first, question)
    return Statement(text=_capitalise(choice), words=fold(said)[:_MAX_WORDS], force=SOFT, is_decision=True)


def _read_talks(text: str) -> list[_Talk]:
    """Return the sentences of a text that are not quoted, each with the part that may state something."""
    own, talks = own_words(text), []
    may_be_pasted = _looks_pasted(text)
    foreign_from = len(text)
    for sentence in read_sentences(text):
        if not own[sentence.start : sentence.end].strip() and not sentence.text.startswith("`"):
            continue
        if words.FOREIGN_LINE.match(sentence.text) or len(sentence.text) > words.MAX_SENTENCE:
            continue
        part = _cut_task(sentence.text)
        talk = _Talk(sentence=sentence, text=part, masked=_mask(part))
        talks.append(talk.replace(own=not may_be_pasted and sentence.start < foreign_from))
        if words.ABOUT_TEXT.search(talk.masked) or words.REPORTED.match(_strip_lead(talk.masked)):
            foreign_from = min(foreign_from, _end_of_block(text, sentence.end))
    return talks


def _looks_pasted(text: str) -> bool:
    """Return whether a prompt is so long, or so much a document, that a person has hardly typed all of it."""
    if len(text) > _MAX_OWN_LENGTH or text.count("\n") > _MAX_OWN_LINES:
        return True
    return any(block.kind in (HEADING, TABLE) for block in read_blocks(text))


def _end_of_block(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _mask(text: str) -> str:
    return _QUOTED.sub("x", _CODE.sub("x", text)).replace("’", "'")


def _cut_task(text: str) -> str:
    """Return a sentence without a first part that is only about the present task."""
    for match in _SPLIT.finditer(text):
        head, rest = text[: match.start()], text[match.end() :]
        if _ONE_TASK.match(_strip_lead(head)) and _starts_rule(_mask(rest)) and _weigh(_mask(rest)):
            return rest
    return text


def _starts_rule(masked: str) -> bool:
    """Return whether a clause begins with words that only rules begin with."""
    plain = _strip_lead(masked)
    starts = (words.MEMORY, words.STANDING, words.STOP, words.UNIVERSAL, words.UNIVERSAL_ABROAD, words.DO_NOT)
    return any(pattern.match(plain) for pattern in starts)


def _judge(talks: Sequence[_Talk]) -> list[_Talk]:
    """Return the sentences with their force; list items have that of the sentence that introduces them."""
    judged: list[_Talk] = []
    head = ""
    for talk in talks:
        is_item = talk.sentence.kind == ITEM
        force = _weigh(talk.masked)
        if talk.text.rstrip().endswith(":"):
            head, force = _weigh_head(talk.masked), ""
        elif is_item and head and not words.ONE_OFF.search(talk.masked) and not talk.masked.endswith("?"):
            force = head
        elif not force and judged and _answers_why(judged[-1].masked, talk.main):
            force = SOFT
        head = head if is_item or talk.text.rstrip().endswith(":") else ""
        judged.append(talk.replace(force=force))
    return _judge_by_next(judged)


def _answers_why(before: str, main: str) -> bool:
    """Return whether a clause says what to do instead of what the question before it complains about."""
    return bool(words.WHY_DID_YOU.match(_strip_lead(before)) and (words.WE_HAVE.match(main) or words.USE.match(main)))


def _judge_by_next(talks: list[_Talk]) -> list[_Talk]:
    """Let a sentence that only points back (`Remember that.`, `Always!`) count for the sentence before it."""
    for number in range(1, len(talks)):
        before, talk = talks[number - 1], talks[number]
        if before.sentence.block != talk.sentence.block:
            continue
        if _is_pointing_request(talk):
            target = next((at for at in range(number - 1, -1, -1) if talks[at].force), number - 1)
            if not talks[target].masked.endswith("?"):
                talks[target], talks[number] = talks[target].replace(force=ASKED), talk.replace(force="")
        elif words.FRAGMENT.match(talk.masked) and _is_order_or_custom(before.main):
            talks[number - 1] = before.replace(force=before.force if before.force == ASKED else RULE)
            talks[number] = talk.replace(force="")
    return talks


def _is_pointing_request(talk: _Talk) -> bool:
    """Return whether a sentence asks to remember or to keep to what was said before it."""
    if memory := words.MEMORY.match(talk.main):
        return bool(_ANAPHOR.fullmatch(talk.main[memory.end() :].strip(" ,:")))
    return bool(words.STANDING.search(talk.masked) and words.POINTS_BACK.search(talk.masked))


def _is_order_or_custom(main: str) -> bool:
    """Return whether a clause tells the agent to do something, or says what the team does."""
    first = main.split(" ", 1)[0].lower()
    return bool(words.USE.match(main) or words.DO_NOT.match(main) or words.WE.match(main)) or is_base_form(first)


def _weigh_head(masked: str) -> str:
    main = _find_main(masked)
    if words.MEMORY.match(main) or words.STANDING.search(masked):
        return ASKED
    return RULE if words.HEAD.search(masked) else ""


def _weigh(masked: str) -> str:
    """Return how firmly a sentence states a rule; empty if it states none."""
    if _is_question(masked):
        return ASKED if words.REQUEST.match(_strip_lead(masked)) and _is_asked(masked, _find_main(masked)) else ""
    main = _find_main(masked)
    if len(main.split()) < 2:
        return ""
    if _is_asked(masked, main):
        return ASKED
    if words.ONE_OFF.search(_find_core(masked)) or words.REPORTED.match(_strip_lead(masked)):
        return ""
    if _is_rule(masked, main):
        return RULE
    return SOFT if not words.ONE_OFF.search(masked) and _is_correction(masked, main) else ""


def _is_question(masked: str) -> bool:
    plain = masked.rstrip("\"')” ")
    return plain.endswith("?") or masked.startswith("¿") or bool(words.QUESTION.match(_strip_lead(masked)))


def _find_core(masked: str) -> str:
    """Return a sentence up to the reason behind its main clause."""
    main = _find_main(masked)
    reason = words.REASON.search(main)
    return masked[: len(masked) - len(main) + reason.start()] if reason else masked


def _is_asked(masked: str, main: str) -> bool:
    """Return whether a person asks for something to be remembered, or says that it holds from now on."""
    if memory := words.MEMORY.match(main):
        rest = main[memory.end() :].lstrip(" ,:")
        if _TO_DO.match(rest):
            return bool(_GENERAL.search(rest)) and not words.ONE_OFF.search(masked)
        return len(rest.split()) >= _MIN_WORDS
    standing = words.STANDING.search(masked)
    return bool(standing) and not words.PERHAPS.search(masked) and len(masked.split()) > _MIN_WORDS


def _is_rule(masked: str, main: str) -> bool:
    """Return whether a sentence is said of all cases, to the agent or of the project."""
    return (
        _is_order(main)
        or bool(words.STOP.match(main) or words.ARRETE.match(main))
        or _is_universal_abroad(main)
        or _is_team_rule(masked, main)
        or bool(words.YOU_MUST.match(main) or (words.I_WANT.match(main) and _has_universal(masked)))
        or bool(words.FORBIDDEN.search(masked) or words.NOBODY.match(main) or words.POLICY.search(masked))
        or _is_generic_rule(masked, main)
        or _is_custom_of_place(masked)
    )


def _is_order(main: str) -> bool:
    """Return whether a main clause is an order for all cases: `never edit …`, `don't ever …`, `no … in this repo`."""
    if match := re.match(r"(?:always|never)(?: ever)? (?P<verb>[\w']+)", main, re.IGNORECASE):
        return _may_be_order(match["verb"])
    if match := words.DO_NOT.match(main):
        return bool(words.NO_LONGER.search(main)) and (match["verb"] or "").lower() not in words.NO_PROHIBITION
    if re.match(r"under no circumstances|at no point", main, re.IGNORECASE):
        return True
    return bool(words.BAN.match(main) and words.PLACE.search(main))


def _may_be_order(verb: str) -> bool:
    verb = verb.lower()
    return verb not in words.NO_ORDER and (is_base_form(verb) or not (is_past(verb) or is_present(verb)))


def _is_universal_abroad(main: str) -> bool:
    """Return whether a clause in another language than English is an order or a custom, and not about the product."""
    if not words.UNIVERSAL_ABROAD.search(main):
        return False
    if words.IMPERSONAL.match(main):
        return True
    if words.THIRD_PERSON.match(main) or words.ELIDED_THIRD_PERSON.match(main):
        return bool(words.INFINITIVE_LAST.search(main)) and not words.GERMAN_MODAL.search(main)
    return True


def _has_universal(masked: str) -> bool:
    return bool(words.UNIVERSAL.search(masked) or words.UNIVERSAL_ABROAD.search(masked))


def _is_team_rule(masked: str, main: str) -> bool:
    """Return whether a clause says what the team always or never does, or does in this project."""
    if not words.WE.match(main):
        return False
    if match := words.WE_ALWAYS.match(main):
        return _may_be_order(match["verb"]) and not words.MISHAP.match(match["verb"])
    if words.WE_DO_NOT.match(main):
        return _denies(main) and bool(words.PLACE.search(masked))
    return bool(words.PLACE.search(masked)) and not words.WE_AGREED.match(main) and _is_custom(main)


def _denies(main: str) -> bool:
    """Return whether a clause says what the team does not do."""
    match = words.WE_DO_NOT.match(main)
    return bool(match) and (match["verb"] or "").lower() not in words.NO_RULE_VERBS  # type: ignore[index]


def _is_custom_of_place(masked: str) -> bool:
    """Return whether something is always or never so in this project: `prices always come in cents here`."""
    universal = words.UNIVERSAL.search(masked) or words.UNIVERSAL_ABROAD.search(masked)
    if not universal or not words.PLACE.search(masked):
        return False
    return not words.MISHAP.match(masked[universal.end() :].lstrip()) and not re.match(r"i\b", _strip_lead(masked), re.I)


def _is_custom(main: str) -> bool:
    """Return whether the predicate behind the subject is in the present: `we use`, not `we had`, `we are`, `we need`."""
    verb = main.split()[1].lower() if len(main.split()) > 1 else ""
    past = is_past(verb) and not is_base_form(verb)
    return not past and verb not in words.NO_RULE_VERBS and verb not in ("are", "were", "should", "could", "can", "will", "might")


def _is_generic_rule(masked: str, main: str) -> bool:
    """Return whether a clause demands something of all products of development: `all migrations must …`."""
    if words.GENERIC_ABROAD.match(main):
        return True
    if not words.GENERIC.match(main) or not words.DEMANDS.search(main):
        return bool(words.PASSIVE.match(main))
    return bool(words.STRONG_DEMAND.search(main) or words.PLACE.search(masked))


def _is_correction(masked: str, main: str) -> bool:
    """Return whether a sentence corrects a choice, states a preference, or forbids something for a lasting reason."""
    if _is_habit(masked, main) or words.YOU_KEEP.match(main) or words.NOT_HOW.search(masked) or words.I_PREFER.match(main) or words.WE_AGREED.match(main):
        return True
    if words.ITS_NAME.match(main):
        return bool(words.NAMED.search(masked))
    if match := words.USE.match(main):
        return _is_general_use(match["what"], masked, main)
    if words.WE.match(main):
        return (_denies(main) or bool(words.CONTRAST.search(main))) and _is_custom(main)
    if words.BAN.match(main) or words.GENERIC.match(main):
        return bool(words.DEMANDS.search(main) or words.BAN.match(main)) and bool(_GENERAL.search(masked) or REASON(main))
    match = words.DO_NOT.match(main)
    return bool(match) and (match["verb"] or "").lower() not in words.NO_PROHIBITION and _has_reason(main)  # type: ignore[index]


def _is_habit(masked: str, main: str) -> bool:
    """Return whether a sentence says what to do whenever something of a kind comes up."""
    plain = _strip_lead(masked)
    if not words.HABITUAL.match(plain) or words.NOT_HABITUAL.search(plain[:60]):
        return False
    rest = main if main != plain else plain[words.HABITUAL.match(plain).end() :]  # type: ignore[union-attr]
    return bool(words.USE.search(rest) or words.DO_NOT.match(main) or words.WE.match(main)) or _starts_with_verb(main)


def _starts_with_verb(main: str) -> bool:
    return is_base_form(main.split(" ", 1)[0].lower())


def REASON(main: str) -> bool:
    return bool(words.REASON.search(main))


def _has_reason(main: str) -> bool:
    return REASON(main) and not words.DEICTIC.search(main[: words.REASON.search(main).start()])  # type: ignore[union-attr]


def _is_general_use(what: str, masked: str, main: str) -> bool:
    """Return whether something is to be used instead of another, or here, and not only one thing of this task."""
    if what.lower().strip(",.") in words.ARTICLES or not (words.CONTRAST.search(main) or words.PLACE.search(main)):
        return False
    return True


def _is_remedy(talks: Sequence[_Talk], number: int) -> bool:
    """Return whether a sentence only gives the remedy or the reason of the rule before it."""
    if not number or not talks[number - 1].force or talks[number - 1].sentence.block != talks[number].sentence.block:
        return False
    before, talk = talks[number - 1], talks[number]
    if talk.force == SOFT and words.GOES_ON.match(_strip_lead(talk.masked)):
        return True
    return SOFT in (before.force, talk.force) and ASKED != talk.force and bool(_list_names(before.text) & _list_names(talk.text))


def _list_names(text: str) -> set[str]:
    """Return the words of a text by which two sentences can be known to be about the same thing."""
    names = {name.lower() for name in _NAME.findall(text) if len(name) >= _MIN_NAME or any(map(str.isdigit, name))}
    return {name.rstrip("s") for name in names if name not in _COMMON}


def _state(talks: Sequence[_Talk], number: int) -> Statement:
    """Return the statement of a sentence, with what stands beside it."""
    talk = talks[number]
    after = _list_beside(talks, number)
    force = RULE if any(follower.force == RULE for follower in after) else talk.force
    before = _find_before(talks, number)
    said = fold(" ".join((*before, talk.text, *(follower.text for follower in after))))
    text = _strip_request(talk.text)
    if before and (_PRONOUN_OBJECT.search(talk.main) or len(text.split()) < _MIN_WORDS):
        joined = fold(" ".join((*before, text)))
        text = joined if len(joined) <= 100 else text
    return Statement(
        text=_capitalise(text),
        words=said[:_MAX_WORDS],
        force=talk.force if talk.force == ASKED else force,
        everywhere=bool(words.EVERYWHERE.search(_mask(said))),
        own=talk.own,
    )


def _list_beside(talks: Sequence[_Talk], number: int) -> list[_Talk]:
    """Return the sentences behind a rule, in the same paragraph, that go on with it."""
    beside: list[_Talk] = []
    for at in range(number + 1, min(len(talks), number + 1 + _MAX_BESIDE)):
        talk = talks[at]
        if talk.sentence.block != talks[number].sentence.block or talk.masked.endswith("?"):
            break
        goes_on = not talk.force and words.GOES_ON.match(_strip_lead(talk.masked)) and not words.ONE_OFF.search(talk.masked)
        if not (goes_on or words.FRAGMENT.match(talk.masked) or (talk.force and _is_remedy(talks, at))):
            break
        beside.append(talk)
    return beside


def _find_before(talks: Sequence[_Talk], number: int) -> list[str]:
    """Return the sentences before a rule to which it refers: the question that it answers, and the facts behind it."""
    before: list[str] = []
    names = _list_names(talks[number].text)
    for talk in reversed(talks[max(0, number - _MAX_BESIDE) : number]):
        plain = _strip_lead(talk.masked)
        if talk.force or talk.sentence.block != talks[number].sentence.block:
            break
        if words.WHY_DID_YOU.match(plain):
            return [talk.text, *before]
        refers = _REFERS.match(talks[number].masked) and not before
        if _is_question(talk.masked) or _ONE_TASK.match(plain) or not (refers or names & _list_names(talk.text)):
            break
        before.insert(0, talk.text)
        names |= _list_names(talk.text)
    return before


def _find_main(masked: str) -> str:
    """Return the main clause of a sentence, without interjections and the clause before it."""
    main = _strip_lead(masked)
    if request := words.REQUEST.match(main):
        main = main[request.end() :]
    for opening in (words.PLACE, words.SIDE_CLAUSE):
        side = opening.match(main)
        if side and not words.WE.match(main):
            rest = _strip_lead(main[side.end() :].lstrip(" ,"))
            main = rest if len(rest.split()) > 1 else main
    return main


def _strip_lead(masked: str) -> str:
    lead = words.LEAD.match(masked)
    return masked[lead.end() :] if lead else masked


def _strip_request(text: str) -> str:
    """Return a sentence without interjections and the request to remember it."""
    text = _strip_lead(text).strip()
    for pattern in (words.MEMORY, words.STANDING, words.MEMORY):
        match = pattern.match(text)
        if match:
            rest = text[match.end() :].lstrip(" ,:–—-")
            rest = re.sub(r"^(?:that|dass|que|qu['’])\s*", "", rest, flags=re.IGNORECASE)
            rest = rest[3:] if rest.lower().startswith("to ") else rest
            text = _strip_lead(rest) if len(rest.split()) >= _MIN_WORDS else text
    return text


def _capitalise(text: str) -> str:
    text = fold(text)
    return text[:1].upper() + text[1:]


def _find_question(said: str) -> str:
    """Return the last question in the agent's last paragraphs; empty if it asked nothing."""
    sentences = [sentence.text for sentence in read_sentences(clean(said)[-4_000:])]
    return next((sentence for sentence in reversed(sentences[-8:]) if sentence.endswith("?")), "")


def _gives_reason(sentences: Sequence[str]) -> bool:
    rest = sentences[1:2]
    return bool(rest) and bool(re.match(r"(?:we|it|they|the|our|wir|on|nous|es|tenemos)\b", rest[0], re.IGNORECASE))


def _chooses(first: str, question: str) -> bool:
    """Return whether an answer takes up the agent's question: it chooses, or names what was offered."""
    if words.CHOICE.match(_strip_lead(_mask(first))) or words.CHOICE.match(first):
        return True
    offered = set(re.findall(r"[\w.-]{4,}", question.lower()))
    return bool(offered & set(re.findall(r"[\w.-]{4,}", first.lower())))


def _name_option(first: str, question: str) -> str:
    """Return an answer whose bare number of an option is replaced by what the agent called it."""
    match = words.OPTION.match(_strip_lead(first))
    if not match:
        return _strip_lead(first)
    offers = re.findall(r"(?m)^\s*(?:[-*] )?(?:\*\*)?(?:option )?\(?([A-Ea-e1-9])[.):]+\s*(.+)$", question)
    named = {name.lower(): text for name, text in offers}
    offer = named.get(match["name"].lower())
    if offer is None:
        return _strip_lead(first)
    rest = _strip_lead(first)[match.end() :]
    return fold(offer.replace("**", ""))[:_MAX_OPTION].rstrip(" .:") + rest
