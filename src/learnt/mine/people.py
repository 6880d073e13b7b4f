"""Find rules, corrections and decisions in what a person writes to an agent.

    read_prompt    the rules and corrections in a prompt
    read_decision  the choice that a prompt makes among what the agent asked, with its reason

A statement is kept in the person's words: the sentence that carries it, and beside it the sentences that give its reason
or its remedy. How firmly it is said decides who vouches for it (`flow/people`):

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
from learnt.mine.people_rules import (
    ASKED,
    RULE,
    SOFT,
    TASK,
    find_main,
    is_order_or_custom,
    is_question,
    mask,
    strip_lead,
    weigh,
)
from learnt.model import Value
from learnt.text.clean import clean, fold
from learnt.text.sentences import HEADING, ITEM, TABLE, Sentence, read_blocks, read_sentences, split_sentences

_MAX_PROMPT = 20_000
_MAX_OWN_LENGTH, _MAX_OWN_LINES = 2_500, 40
_OUTER_BLOCKS = 2
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
    r"(?:that|this|it|so|das|dies|es|ça|cela|eso|esto|lo)?(?: (?:for|please|bitte|für|pour|para)\b.*)?[.!]*$",
    re.IGNORECASE,
)
_PRONOUN_OBJECT = re.compile(r"\b(?:it|them|those|that|this|these)\b", re.IGNORECASE)
_PRONOUN_SUBJECT = re.compile(
    r"(?:it|they|that|this|these|those|he|she|die|das|sie|es|er|il|elles?|ils|ça|eso|esto)(?:['’]\w+)? "
    r"(?:is|are|has|have|must|should|may|can|goes?|belongs?|lives?|comes?|gets?|wird|werden|ist|sind|gehört|kommt|est|sont|va|"
    r"doit|es|son|están?|van?)\b|(?:it|that|they)['’](?:s|re)\b",
    re.IGNORECASE,
)
_REFERS = re.compile(r"(?:so|therefore|hence|deshalb|also|donc|así que|por eso)\b", re.IGNORECASE)
_TO_DO = re.compile(r"(?:to|de|d['’]|zu) ?", re.IGNORECASE)
_GENERAL = re.compile(
    r"\b(?:before|after|when(?:ever)?|each|every|always|never|all|any|bevor|wenn|jede\w*|immer|nie|avant|chaque|toujours|quand|"
    r"antes|cada|siempre|cuando)\b|`x`|\bx\b",
    re.IGNORECASE,
)
_THAT = re.compile(r"(?:that|dass|que|qu['’])\s*|[:,–—-]+\s*", re.IGNORECASE)
_SPLIT = re.compile(r"[;–—]\s*|,? (?:and|but|und|aber|et|mais|y|pero) |[,:] ", re.IGNORECASE)
_DONE = re.compile(r"(?:great|good|nice|thanks|(?:that|this|it) (?:works|looks)|works|looks|fine)\b", re.IGNORECASE)


class Utterance(Value):
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
    answers: str = ""
    """The end of the agent's message before it, on one line."""
    typed: bool = False
    """Whether a person typed it in an interactive client."""
    at: int = 0
    """When it was said."""


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
        return find_main(self.masked)


def read_prompt(prompt: str) -> list[Utterance]:
    """Return what a prompt states for longer than its task, in the order of the prompt."""
    text = _REPEATED_SIGN.sub(r"\1", clean(prompt)[:_MAX_PROMPT])
    if text.lstrip().startswith("/"):
        return []
    talks = _judge(_read_talks(text))
    statements = [_state(talks, number) for number in range(len(talks)) if _counts(talks, number)]
    return list({statement.text.casefold(): statement for statement in statements if statement.text}.values())


def read_decision(question: str, answer: str) -> Utterance | None:
    """Return the choice that a person makes, with its reason, when the agent has asked; None if there is none."""
    asked = _find_question(question)
    text = clean(answer).strip()
    sentences = split_sentences(text) if len(text) <= _MAX_ANSWER and not text.startswith("/") else []
    if not asked or not sentences or sentences[0].endswith("?"):
        return None
    first = sentences[0]
    said = " ".join(sentences[:_MAX_BESIDE])
    if not (words.BECAUSE.search(mask(said)) or _gives_reason(sentences)) or not _chooses(first, question):
        return None
    choice = _name_option(first, question)
    return Utterance(text=_capitalise(choice), words=fold(said)[:_MAX_WORDS], force=SOFT, is_decision=True)


def chooses_instead(earlier: str, later: str) -> bool:
    """Return whether a later rule rejects what an earlier one says to use: `use pnpm`, then `we use bun, not pnpm`."""
    rejected = {name for match in words.REJECTED.finditer(later) for name in _list_names(match["what"], least=2)}
    chosen = {name for match in words.CHOSEN.finditer(earlier) for name in _list_names(match["what"], least=2)}
    return bool(rejected & chosen)


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
        talk = _Talk(sentence=sentence, text=part, masked=mask(part))
        talks.append(talk.replace(own=not may_be_pasted and sentence.start < foreign_from))
        if words.ABOUT_TEXT.search(talk.masked) or words.REPORTED.match(strip_lead(talk.masked)):
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


def _cut_task(text: str) -> str:
    """Return a sentence without a first part that is only about the present task."""
    for match in _SPLIT.finditer(text):
        head, rest = text[: match.start()], text[match.end() :]
        if _is_task(strip_lead(head)) and _starts_rule(mask(rest)) and weigh(mask(rest)):
            return rest
    return text


def _is_task(plain: str) -> bool:
    """Return whether a clause is an order for this task, or a word about it."""
    return bool(TASK.match(plain) or _DONE.match(plain))


def _starts_rule(masked: str) -> bool:
    """Return whether a clause begins with words that only rules begin with."""
    plain = strip_lead(masked)
    starts = (words.MEMORY, words.STANDING, words.STOP, words.UNIVERSAL, words.UNIVERSAL_ABROAD, words.DO_NOT)
    return any(pattern.match(plain) for pattern in starts)


def _judge(talks: Sequence[_Talk]) -> list[_Talk]:
    """Return the sentences with their force; list items have that of the sentence that introduces them."""
    judged: list[_Talk] = []
    head = ""
    for number, talk in enumerate(talks):
        is_item = talk.sentence.kind == ITEM
        before, after = _neighbour(talks, number, -1), _neighbour(talks, number, 1)
        force = weigh(talk.masked, before=before, after=after)
        is_head = talk.text.rstrip().endswith(":") and number + 1 < len(talks)
        if is_head:
            head, force = _weigh_head(talk.masked), ""
        elif is_item and head and not words.ONE_OFF.search(talk.masked) and not talk.masked.endswith("?"):
            force = head
        head = head if is_item or is_head else ""
        judged.append(talk.replace(force=force))
    return _judge_by_next(judged)


def _neighbour(talks: Sequence[_Talk], number: int, step: int) -> str:
    """Return the sentence before or behind another in the same paragraph; empty if there is none."""
    at = number + step
    if not 0 <= at < len(talks) or talks[at].sentence.block != talks[number].sentence.block:
        return ""
    return talks[at].masked


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
        elif words.FRAGMENT.match(talk.masked) and (before.force or is_order_or_custom(before.main)):
            talks[number - 1] = before.replace(force=before.force if before.force == ASKED else RULE)
            talks[number] = talk.replace(force="")
    return talks


def _is_pointing_request(talk: _Talk) -> bool:
    """Return whether a sentence asks to remember or to keep to what was said before it."""
    if memory := words.MEMORY.match(talk.main):
        return bool(_ANAPHOR.fullmatch(talk.main[memory.end() :].strip(" ,:")))
    return bool(words.STANDING.search(talk.masked) and words.POINTS_BACK.search(talk.masked))


def _weigh_head(masked: str) -> str:
    main = find_main(masked)
    if words.MEMORY.match(main) or words.STANDING.search(masked):
        return ASKED
    return RULE if words.HEAD.search(masked) else ""


def _counts(talks: Sequence[_Talk], number: int) -> bool:
    """Return whether a sentence becomes a statement. Of what may be pasted, only what is plainly a rule does."""
    talk = talks[number]
    if not talk.force or _is_remedy(talks, number):
        return False
    return talk.own or (talk.force != SOFT and talk.sentence.block in _list_outer_blocks(talks))


def _list_outer_blocks(talks: Sequence[_Talk]) -> tuple[int, ...]:
    """Return the paragraphs at both ends of a prompt, where people add their own words to what they paste."""
    blocks = sorted({talk.sentence.block for talk in talks})
    return (*blocks[:_OUTER_BLOCKS], *blocks[-_OUTER_BLOCKS:])


def _is_remedy(talks: Sequence[_Talk], number: int) -> bool:
    """Return whether a sentence only gives the remedy or the reason of the rule before it."""
    if not number or not talks[number - 1].force or talks[number - 1].sentence.block != talks[number].sentence.block:
        return False
    before, talk = talks[number - 1], talks[number]
    if talk.force == SOFT and words.GOES_ON.match(strip_lead(talk.masked)):
        return True
    return (
        SOFT in (before.force, talk.force)
        and talk.force != ASKED
        and bool(_list_names(before.text) & _list_names(talk.text))
    )


def _list_names(text: str, *, least: int = _MIN_NAME) -> set[str]:
    """Return the words of a text by which two sentences can be known to be about the same thing."""
    names = {name.lower() for name in _NAME.findall(text) if len(name) >= least or not name.isalpha()}
    parts = {part for name in names if not name.isalpha() for part in re.findall(r"[^\W\d_]{3,}", name)}
    return {name.rstrip("s") for name in names | parts if name not in _COMMON}


def _state(talks: Sequence[_Talk], number: int) -> Utterance:
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
    return Utterance(
        text=_capitalise(text),
        words=said[:_MAX_WORDS],
        force=talk.force if talk.force == ASKED else force,
        everywhere=bool(words.EVERYWHERE.search(mask(said))),
        own=talk.own,
    )


def _list_beside(talks: Sequence[_Talk], number: int) -> list[_Talk]:
    """Return the sentences behind a rule, in the same paragraph, that go on with it."""
    beside: list[_Talk] = []
    for at in range(number + 1, min(len(talks), number + 1 + _MAX_BESIDE)):
        talk = talks[at]
        if talk.sentence.block != talks[number].sentence.block or talk.masked.endswith("?"):
            break
        goes_on = (
            not talk.force and words.GOES_ON.match(strip_lead(talk.masked)) and not words.ONE_OFF.search(talk.masked)
        )
        if not (goes_on or words.FRAGMENT.match(talk.masked) or (talk.force and _is_remedy(talks, at))):
            break
        beside.append(talk)
    return beside


def _refers_by_pronoun(main: str) -> bool:
    """Return whether a clause names its subject, or its only object, by a pronoun: `never ever do that`."""
    return bool(_PRONOUN_SUBJECT.match(main)) or (bool(_PRONOUN_OBJECT.search(main)) and not _list_names(main))


def _find_before(talks: Sequence[_Talk], number: int) -> list[str]:
    """Return the sentences before a rule to which it refers: the question that it answers, and the facts behind it."""
    before: list[str] = []
    names = _list_names(talks[number].text)
    for talk in reversed(talks[max(0, number - _MAX_BESIDE) : number]):
        plain = strip_lead(talk.masked)
        if talk.force or talk.sentence.block != talks[number].sentence.block:
            break
        if words.WHY_DID_YOU.match(plain):
            return [talk.text, *before]
        refers = not before and (_REFERS.match(talks[number].masked) or _refers_by_pronoun(talks[number].main))
        if is_question(talk.masked) or _is_task(plain) or not (refers or names & _list_names(talk.text)):
            break
        before.insert(0, talk.text)
        names |= _list_names(talk.text)
    return before


def _strip_request(text: str) -> str:
    """Return a sentence without interjections and the request to remember it."""
    text = strip_lead(text).strip()
    if request := words.REQUEST.match(text):
        text = text[request.end() :].rstrip("? ")
    for pattern in (words.MEMORY, words.STANDING, words.MEMORY):
        match = pattern.match(text)
        if match:
            rest = text[match.end() :].lstrip(" ,:–—-")
            rest = re.sub(r"^(?:that|dass|que|qu['’])\s*", "", rest, flags=re.IGNORECASE)
            rest = rest[3:] if rest.lower().startswith("to ") else rest
            text = strip_lead(rest) if len(rest.split()) >= _MIN_WORDS else text
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
    if words.CHOICE.match(strip_lead(mask(first))) or words.CHOICE.match(first):
        return True
    offered = set(re.findall(r"[\w.-]{4,}", question.lower()))
    return bool(offered & set(re.findall(r"[\w.-]{4,}", first.lower())))


def _name_option(first: str, question: str) -> str:
    """Return an answer whose bare number of an option is replaced by what the agent called it."""
    match = words.OPTION.match(strip_lead(first))
    if not match:
        return strip_lead(first)
    offers = re.findall(r"(?m)^\s*(?:[-*] )?(?:\*\*)?(?:option )?\(?([A-Ea-e1-9])[.):]+\s*(.+)$", question)
    named = {name.lower(): text for name, text in offers}
    offer = named.get(match["name"].lower())
    if offer is None:
        return strip_lead(first)
    rest = strip_lead(first)[match.end() :]
    return fold(offer.replace("**", ""))[:_MAX_OPTION].rstrip(" .:") + rest
