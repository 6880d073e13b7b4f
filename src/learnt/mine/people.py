"""Find the rules and corrections in what a person writes to an agent.

What a person says is kept in the person's words: the sentence that carries a rule, and beside it the sentences that
give its reason or its remedy. How firmly it is said decides who vouches for it (`flow/people`):

- `ASKED`: the person asks for it to be remembered ("remember", "from now on"), in so many words;
- `RULE`: it is said of all cases ("never", "always", "stop adding", "we don't … here", "it is forbidden");
- `SOFT`: it corrects a choice, states a preference, or forbids something with a reason that will hold again.

The rest of a prompt is about the present task: questions, complaints, what the product shall do ("the tooltip must
never cover the input"), and orders for this time. It states nothing. Nor does what is quoted: code, block quotes,
traces, text in quotation marks. What follows an introduction, or stands in a long text or one with headings, may have
been pasted: it is somebody's rule, but perhaps not this person's (`own` is False).

Only the words are looked at, in English, German, French and Spanish. Any text gives a result in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from learnt.debrief.own_words import own_words
from learnt.mine import people_words as words
from learnt.mine.pasted import MAX_PROMPT, announces_text, end_of_line, find_foreign, is_foreign_line, looks_pasted
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
from learnt.model import TITLE_LIMIT, Value
from learnt.text.clean import clean, fold
from learnt.text.sentences import ITEM, Sentence, read_sentences

_OUTER_BLOCKS = 2
_MAX_WORDS = 600
_MAX_BESIDE = 2
_MIN_WORDS = 3
_REPEATED_SIGN = re.compile(r"([?!])[?!]+")
_NAME = re.compile(r"[\w.-]*\w")
_MIN_NAME = 5
_COMMON = frozenset(
    "about after again always because before could doing every everything first going never other please really "
    "should since something still their there these thing things think those though using where which while would "
    "without einen einer immer keine nicht sonst diese dieses werden comme cette jamais toujours parce quand siempre "
    "nunca cuando porque desde".split()
)
_ANAPHOR = re.compile(
    r"(?:that|this|it|so|das|dies|es|ça|cela|eso|esto|lo)?(?: (?:for|please|bitte|für|pour|para)\b.*)?[.!]*$",
    re.IGNORECASE,
)
_PRONOUN_OBJECT = re.compile(r"\b(?:it|them|those|that|this|these)\b", re.IGNORECASE)
_PRONOUN_SUBJECT = re.compile(
    r"(?:it|they|that|this|these|those|he|she|die|das|sie|es|er|il|elles?|ils|ça|eso|esto)(?:['’]\w+)? (?:is|are|has|"
    r"have|must|should|may|can|goes?|belongs?|lives?|comes?|gets?|wird|werden|ist|sind|gehört|kommt|est|sont|va|doit|"
    r"es|son|están?|van?)\b|(?:it|that|they)['’](?:s|re)\b",
    re.IGNORECASE,
)
_REFERS = re.compile(r"(?:so|therefore|hence|deshalb|also|donc|así que|por eso)\b", re.IGNORECASE)
_AFTER_REQUEST = re.compile(  # `that`, `to`, or a colon, perhaps behind what it is about
    r"[ ,:–—-]*(?:(?:this|the following|folgendes|ceci|esto): |(?:on|in|for|about|with|at) [^:]{2,60}: |"
    r"(?:that|dass|que|qu['’]|to|de que)\b\s*)?",
    re.IGNORECASE,
)
_SPLIT = re.compile(
    r"[;–—]\s*|,? (?:and|but|und|aber|et|mais|y|pero) |, ", re.IGNORECASE
)  # behind a colon is what to write
_DONE = re.compile(r"(?:great|good|nice|thanks|(?:that|this|it) (?:works|looks)|works|looks|fine)\b", re.IGNORECASE)

# A heading above rules.
_HEAD = re.compile(
    r"\b(?:(?:ground |house |team |project |coding |our |some |few |the |following |my )+(?:rules|conventions|"
    r"guidelines|standards|principles|preferences)|(?:rules|conventions|guidelines|preferences) (?:for|in|of|here)|"
    r"do['’]?s and don['’]?ts|things to (?:remember|keep in mind|know)|(?:regeln|konventionen) (?:für|in)|"
    r"ein paar regeln|(?:règles|conventions) (?:pour|du|de)|quelques règles|(?:reglas|convenciones) (?:para|de)|"
    r"algunas reglas)\b",
    re.IGNORECASE,
)
_EVERYWHERE = words.any_of(
    r"(?:in|for|across|on) (?:all|every|each|any)(?: of)?(?: my| our| your)? (?:projects?|repos?|repositor(?:y|ies)|"
    r"codebases?)|not (?:just|only) (?:in )?(?:here|this (?:repo|project|one))|regardless of (?:the )?(?:repo|"
    r"project)|whatever the (?:repo|project)|wherever you work|no matter which (?:repo|project)",
    r"in all(?:en)? (?:meinen |unseren )?(?:projekten|repos|repositories)|in jedem (?:projekt|repo)|nicht nur (?:hier|"
    r"in diesem (?:projekt|repo))|projektübergreifend",
    r"dans tous (?:mes|nos|les) (?:projets|dépôts|repos)|pas (?:seulement|que) (?:ici|dans ce (?:projet|dépôt|repo))",
    r"en todos (?:mis|nuestros|los) (?:proyectos|repos|repositorios)|no sol[oó] (?:aquí|en este (?:proyecto|repo))",
)


# What may stand before a colon and the person's own rule.
_OWN_HEADS = (
    words.STANDING,
    words.ANNOUNCES_RULE,
    words.ANNOUNCES_MEMORY,
    words.ANNOUNCES,
    words.PLACE,
    words.CIRCUMSTANCE,
    words.UNIVERSAL,
    words.UNIVERSAL_ABROAD,
    _HEAD,
)


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


class _SpokenSentence(Value):
    """A sentence of a prompt, and what it says."""

    sentence: Sentence
    text: str
    """The sentence, or the part of it that states something for longer than this task."""
    masked: str
    """The same with code and quotations replaced by `x`."""
    force: str = ""
    own: bool = True
    is_pasted: bool = False

    @property
    def main(self) -> str:
        """The main clause, without what leads to it."""
        return find_main(self.masked)


def read_prompt(prompt: str) -> list[Utterance]:
    """Return what a prompt states for longer than its task, in the order of the prompt."""
    text = _REPEATED_SIGN.sub(r"\1", clean(prompt)[:MAX_PROMPT])
    if text.lstrip().startswith("/"):
        return []
    talks = _judge(_read_talks(text))
    outer = _list_outer_blocks(talks)
    utterances = [_state(talks, number) for number in range(len(talks)) if _counts(talks, number, outer)]
    return list({utterance.text.casefold(): utterance for utterance in utterances if utterance.text}.values())


def _read_talks(text: str) -> list[_SpokenSentence]:
    """Return the sentences of a text that are not quoted, each with the part that may state something."""
    own, talks, has_introduction = own_words(text), [], False
    foreign_from = 0 if looks_pasted(text) else find_foreign(text)
    for sentence in read_sentences(text):
        if not own[sentence.start : sentence.end].strip() and not sentence.text.startswith("`"):
            continue
        if is_foreign_line(sentence.text) or len(sentence.text) > words.MAX_SENTENCE:
            continue
        part = _cut_task(sentence.text)
        talk = _SpokenSentence(sentence=sentence, text=part, masked=mask(part))
        reports = words.REPORTED.match(strip_lead(talk.masked)) is not None
        is_introduced = _introduces_text(talk.masked)
        is_pasted = reports or sentence.start >= foreign_from
        has_introduction = has_introduction or is_introduced
        talks.append(talk.replace(own=not (is_pasted or has_introduction), is_pasted=is_pasted))
        if reports or announces_text(talk.masked):
            foreign_from = min(foreign_from, end_of_line(text, sentence.end))
    return talks


def _introduces_text(masked: str) -> bool:
    """Return whether the words before a colon introduce a text that may be somebody else's, not the person's own rule.

    Only those that announce a rule, a request, or where it holds do not: `From now on: …`, `In this repo: …`.
    """
    head, colon, _ = strip_lead(masked).partition(":")
    if not colon or masked[masked.index(":") + 1 :][:1] not in ("", " ", "\n"):
        return False
    if words.MEMORY.match(find_main(head)):
        return False
    return announces_text(head) or not any(pattern.search(head) for pattern in _OWN_HEADS)


def _cut_task(text: str) -> str:
    """Return a sentence without a first part that is only about the present task."""
    for match in _SPLIT.finditer(text):
        head, rest = text[: match.start()], text[match.end() :]
        if _is_task(strip_lead(head)) and _starts_rule(mask(rest)) and weigh(rest):
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


def _judge(talks: Sequence[_SpokenSentence]) -> list[_SpokenSentence]:
    """Return the sentences with their force; list items have that of the sentence that introduces them."""
    judged: list[_SpokenSentence] = []
    head = ""
    for number, talk in enumerate(talks):
        is_item = talk.sentence.kind == ITEM
        before = talks[number - 1].text if number else ""
        after = talks[number + 1].text if number + 1 < len(talks) else ""
        force = weigh(talk.text, before=before, after=after)
        if not force and words.WHY_DID_YOU.match(strip_lead(mask(before))) and is_order_or_custom(talk.main):
            force = SOFT  # what the agent should have done instead
        is_head = talk.text.rstrip().endswith(":") and number + 1 < len(talks)
        if is_head:
            head, force = _weigh_head(talk.masked), ""
        elif is_item and head and not words.ONE_OFF.search(talk.masked) and not talk.masked.endswith("?"):
            force = head
        head = head if is_item or is_head else ""
        judged.append(talk.replace(force=force))
    return _judge_by_next(judged)


def _judge_by_next(talks: list[_SpokenSentence]) -> list[_SpokenSentence]:
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


def _is_pointing_request(talk: _SpokenSentence) -> bool:
    """Return whether a sentence asks to remember or to keep to what was said before it."""
    if memory := words.MEMORY.match(talk.main):
        return bool(_ANAPHOR.fullmatch(talk.main[memory.end() :].strip(" ,:")))
    return bool(words.STANDING.search(talk.masked) and words.POINTS_BACK.search(talk.masked))


def _weigh_head(masked: str) -> str:
    main = find_main(masked)
    if words.MEMORY.match(main) or words.STANDING.search(masked):
        return ASKED
    return RULE if _HEAD.search(masked) else ""


def _counts(talks: Sequence[_SpokenSentence], number: int, outer: Sequence[int]) -> bool:
    """Return whether a sentence is kept. Of what may be pasted, only what is plainly a rule is."""
    talk = talks[number]
    if not talk.force or _is_remedy(talks, number):
        return False
    return not talk.is_pasted or (talk.force != SOFT and talk.sentence.block in outer)


def _list_outer_blocks(talks: Sequence[_SpokenSentence]) -> tuple[int, ...]:
    """Return the paragraphs at both ends of a prompt, where people add their own words to what they paste."""
    blocks = sorted({talk.sentence.block for talk in talks})
    return (*blocks[:_OUTER_BLOCKS], *blocks[-_OUTER_BLOCKS:])


def _is_remedy(talks: Sequence[_SpokenSentence], number: int) -> bool:
    """Return whether a sentence only gives the remedy or the reason of the rule before it."""
    if not number or not talks[number - 1].force or talks[number - 1].sentence.block != talks[number].sentence.block:
        return False
    before, talk = talks[number - 1], talks[number]
    if talk.force == SOFT and words.GOES_ON.match(strip_lead(talk.masked)):
        return True
    if talk.force == ASKED or SOFT not in (before.force, talk.force):
        return False
    return not list_names(before.text).isdisjoint(list_names(talk.text))


def list_names(text: str, *, least: int = _MIN_NAME) -> set[str]:
    """Return the words of a text by which two sentences can be known to be about the same thing."""
    names = {name.lower() for name in _NAME.findall(text) if len(name) >= least or not name.isalpha()}
    parts = {part for name in names if not name.isalpha() for part in re.findall(r"[^\W\d_]{3,}", name)}
    return {name.rstrip("s") for name in names | parts if name not in _COMMON}


def _state(talks: Sequence[_SpokenSentence], number: int) -> Utterance:
    """Return what a sentence says, with what stands beside it."""
    talk, after, before = talks[number], _list_beside(talks, number), _find_before(talks, number)
    is_rule = talk.force != ASKED and any(follower.force == RULE for follower in after)
    said = _join(before, talk.text, [follower.text for follower in after])
    text = _strip_request(talk.text)
    if before and (_PRONOUN_OBJECT.search(talk.main) or len(text.split()) < _MIN_WORDS):
        joined = fold(" ".join((*before, text)))
        text = joined if len(joined) <= TITLE_LIMIT else text
    return Utterance(
        text=capitalise(text),
        words=said,
        force=RULE if is_rule else talk.force,
        everywhere=bool(_EVERYWHERE.search(mask(said))),
        own=talk.own,
    )


def _join(before: Sequence[str], text: str, after: Sequence[str]) -> str:
    """Return a sentence with those before and behind it, as far as there is room for whole ones."""
    sentences = [text]
    for sentence in after:
        sentences += [sentence] if len(" ".join((*sentences, sentence))) <= _MAX_WORDS else []
    for sentence in reversed(before):
        sentences = [sentence, *sentences] if len(" ".join((sentence, *sentences))) <= _MAX_WORDS else sentences
    return fold(" ".join(sentences))


def _list_beside(talks: Sequence[_SpokenSentence], number: int) -> list[_SpokenSentence]:
    """Return the sentences behind a rule, in the same paragraph, that go on with it."""
    beside: list[_SpokenSentence] = []
    for at in range(number + 1, min(len(talks), number + 1 + _MAX_BESIDE)):
        talk = talks[at]
        if talk.sentence.block != talks[number].sentence.block or talk.masked.endswith("?"):
            break
        goes_on = words.GOES_ON.match(strip_lead(talk.masked)) and not words.ONE_OFF.search(talk.masked)
        belongs = _is_remedy(talks, at) if talk.force else goes_on
        if not (belongs or words.FRAGMENT.match(talk.masked)):
            break
        beside.append(talk)
    return beside


def _refers_by_pronoun(main: str) -> bool:
    """Return whether a clause names its subject, or its only object, by a pronoun: `never ever do that`."""
    return bool(_PRONOUN_SUBJECT.match(main)) or (bool(_PRONOUN_OBJECT.search(main)) and not list_names(main))


def _find_before(talks: Sequence[_SpokenSentence], number: int) -> list[str]:
    """Return the sentences before a rule to which it refers: the question that it answers, and the facts behind it."""
    before: list[str] = []
    names = list_names(talks[number].text)
    for talk in reversed(talks[max(0, number - _MAX_BESIDE) : number]):
        plain = strip_lead(talk.masked)
        if talk.force or talk.sentence.block != talks[number].sentence.block:
            break
        if words.WHY_DID_YOU.match(plain):
            return [talk.text, *before]
        refers = not before and (_REFERS.match(talks[number].masked) or _refers_by_pronoun(talks[number].main))
        if is_question(talk.masked) or _is_task(plain) or not (refers or names & list_names(talk.text)):
            break
        before.insert(0, talk.text)
        names |= list_names(talk.text)
    return before


def _strip_request(text: str) -> str:
    """Return a sentence without interjections and the request to remember it."""
    text = strip_lead(text).strip()
    if request := words.REQUEST.match(text):
        text = text[request.end() :].rstrip("? ")
    for pattern in (words.MEMORY, words.STANDING, words.MEMORY):
        if match := pattern.match(text):
            rest = _AFTER_REQUEST.sub("", text[match.end() :], count=1)
            text = strip_lead(rest) if len(rest.split()) >= _MIN_WORDS else text
    return text


def capitalise(text: str) -> str:
    """Return a text on one line that starts with a capital."""
    text = fold(text)
    return text[:1].upper() + text[1:]
