"""Find the lesson in a passage: the sentence that states it, and its neighbours that give the reason.

A passage is a paragraph or a list item of a text, under its heading or the line that introduces its list. Its best
sentence by `rating` becomes a lesson if it rates high enough. Sentences around it that explain it stay with it, so that
the lesson can be understood alone; reports of what was done do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from learnt.mine import sentence_model
from learnt.mine.rating import CODE, REPORT_LABEL, hide_code, names_something, rate
from learnt.mine.references import capitalise, stands_alone, starts_with_reference, strip_announcement
from learnt.model import TITLE_LIMIT, Value
from learnt.text.sentences import HEADING, ITEM, PARAGRAPH, find_sentences, is_whole, read_blocks, strip_markup

MIN_RATING = 3.5
_MIN_LENGTH, _MAX_LENGTH = 18, 600
_MAX_OBSERVATION = 500
_MAX_BEFORE, _MAX_BEHIND = 3, 2
_MIN_SUPPORT = 1.5
_FRAGMENT = -10.0
# What a sentence gains or loses by its place, and as a title.
_CLAUSE = 0.5
_POINTING = 1.0
_ORDER, _ALONE = 1.5, 1.5
_ANNOUNCED = 2.0
_EXPLAINED = 1.0
_SUPPORTED = 0.5
_SURE = 1.5
_UNLABELLED_ITEM = -3.0
_REPORT_SECTION = -6.0
_LESSON_SECTION = 2.0
_ABOUT_LESSONS = re.compile(
    r"\b(?:lessons?|learnings?|gotchas?|caveats?|pitfalls?|traps?|remember|takeaways?|good to know|worth (?:knowing|"
    r"noting)|"
    r"in mind|next time|future (?:changes|work)|(?:notes?|hints?|tips?) for|for (?:whoever|others|the next)|"
    r"conventions?|careful|à savoir|merken)\b",
    re.IGNORECASE,
)
_ABOUT_WORK = re.compile(
    r"\b(?:chang\w+|files?|tests?|added|removed|fixed|fix|done|open|plans?|steps?|contents?|results?|status|commits?|"
    r"summary|conflicts?|remarks?|implemented|verification|touched|did|todo|remaining|follow[- ]ups?|findings?|"
    r"in the branch|screenshots?|questions?|features?|options?|numbers|issues?|concerns?|suggestions?|recommend\w+|"
    r"how it works|flow|analysis|compar\w+|differences?|scenarios?|examples?|propos\w+|design|approach\w*|"
    r"architecture|problems?|bugs?|review|comments?|feedback|alternatives?|trade-?offs?|pros|cons|behaviou?r|"
    r"implementation|current|overview|geändert|modifi\w+|cambios)\b",
    re.IGNORECASE,
)
_EXPLAINS = re.compile(
    r"\b(?:causes?|reason|culprit|trap|catch|because|why|turn(?:s|ed) out|came from|wrong|fail(?:s|ed|ures?)?|"
    r"los[et] (?:a while|time)|took (?:me|two|a)|gotcha|reject(?:s|ed)|errors?|misled|surpris\w+|threw me|confus\w+|"
    r"crash\w*|die[sd]|broken?|missing|lost|hangs?|hung|stuck|time[sd]? ?out|blocked|drop(?:ped)?|empty|invisible|"
    r"silently|garbage|twice|flaky|leak\w*|corrupt\w*|forever|killed|"
    r"had no effect|(?:do|does|did) ?(?:not|n['’]t) (?:compile|build|work|run|start|load|match|exist)|deshalb|weil|"
    r"parce que|porque)\b",
    re.IGNORECASE,
)
# A line of code, of a log or of a traceback that nobody marked as one.
_LOOKS_LIKE_CODE = re.compile(
    r"→|Traceback \(|\bFile \"|\w(?:Error|Exception|Warning): \w|>>> |[{};] *$|\w\(\w+, \w+=|^\w+ = |[│┃┏━]|\b(?:try|"
    r"except|else): |\bimport \w+ *$"
)
_PROPOSALS = frozenset(("plan", "hypothesis", "about the work", "question", "guess", "example", "answer"))
_TALKS = re.compile(
    r"(?:here|let me|looking|i (?:see|understand|think|can|need|have a)|there (?:are|is)|based on|great|good|ok(?:ay)?|"
    r"the (?:\w+ )?(?:issue|problem|question|answer|root cause|key|main)\b|to answer|now i|that['’]s|this is|it['’]s|"
    r"so\b|"
    r"ah\b|hm+\b|actually|interesting)",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"\b(?:it|they|them)\b", re.IGNORECASE)
# Behind these a clause can stand alone.
_MAIN_CLAUSE = re.compile(r"; |: | [–—-] |,? because |, (?:since|as) ")
# Where a long sentence can be cut, and whether what follows can stand alone.
_CLAUSE_END = re.compile(
    r"(?P<strong>; |: | [–—-] |,? because |, since |, (?:so|and|but|therefore|thus) )|"
    r", (?:as|otherwise|else|or|which|while|where|whereas|even|not|unless|except|if|when|until|no|without)\b|"
    r" (?:so that|since|unless|even though|even if|whereas|until|as long as|weil|damit|parce que|porque)\b",
    re.IGNORECASE,
)

_SUBORDINATE = re.compile(
    r"(?:if|when|while|since|because|although|unless|as|wenn|falls|weil|si|quand|cuando|porque)\b", re.IGNORECASE
)


class Passage(Value):
    """The sentences of a paragraph or a list item, and the heading or line that introduces it."""

    sentences: tuple[str, ...]
    kind: str = PARAGRAPH
    label: str = ""
    intro: str = ""
    """The line with a colon that ends the text above it."""
    odds: tuple[float, ...] = ()
    """How likely each sentence is a lesson in the opinion of `sentence_model`, if it was asked."""


class Lesson(Value):
    """A statement that holds beyond the task in which it was made."""

    title: str
    """The statement, as short as it stays a whole sentence."""
    action: str
    """What to do, if the title does not say all of it."""
    observation: str
    """The sentences that state the lesson and its reason."""
    rating: float
    is_order: bool


class _Rated(Value):
    """A sentence, the statement in it, and its rating in its place."""

    sentence: str
    statement: str
    rating: float
    odds: float = 0.0
    is_report: bool
    is_order: bool
    stands_alone: bool

    @property
    def rank(self) -> float:
        """How well it would serve as the title of its passage."""
        return self.total + _ORDER * self.is_order + _ALONE * self.stands_alone

    @property
    def total(self) -> float:
        """Its rating by rules and by the model."""
        return self.rating + self.odds


def read_passages(text: str, own: str | None = None) -> Iterator[Passage]:
    """Yield the passages of a cleaned text; of `own`, the text with everything quoted blanked, only what is left."""
    heading = intro = ""
    for block in read_blocks(text):
        if block.kind == HEADING:
            heading, intro = strip_markup(block.text), ""
        elif block.kind in (PARAGRAPH, ITEM):
            found = []
            for start, end in find_sentences(block.text):
                place = slice(block.place_of(start), block.place_of(end - 1) + 1)
                if own is None or _is_own(text[place], own[place]):
                    found.append(_unwrap(strip_markup(block.text[start:end])))
            label = intro if block.kind == ITEM and intro else heading
            if any(found):
                yield Passage(sentences=tuple(filter(None, found)), kind=block.kind, label=label, intro=intro)
            if block.kind == PARAGRAPH:
                intro = found[-1] if found and found[-1].endswith(":") else ""


def add_odds(passages: Sequence[Passage], kind: str, *, before: str = "") -> Iterator[Passage]:
    """Yield the passages with the model's opinion of their sentences, which also depends on the sentences around them.

    `before` stands before the first one.
    """
    sentences = [before, *(sentence for passage in passages for sentence in passage.sentences), ""]
    odds = [
        max(
            sentence_model.rate(kind, text, before=previous, after=after)
            for text in {sentence, strip_announcement(sentence)[0]}
        )
        for previous, sentence, after in zip(sentences, sentences[1:], sentences[2:], strict=False)
    ]
    first = 0
    for passage in passages:
        last = first + len(passage.sentences)
        yield passage.replace(odds=tuple(odds[first:last]))
        first = last


def _unwrap(sentence: str) -> str:
    """Return a sentence without the brackets around all of it."""
    inner = sentence[1:].rstrip(".")[:-1] if sentence.startswith("(") and sentence.rstrip(".").endswith(")") else ""
    return sentence if not inner or "(" in inner or ")" in inner else inner


def _is_own(text: str, own: str) -> bool:
    """Return whether nothing but code in a sentence is quoted."""
    plain = re.sub(r"(?<!`)(`++)[^`]++\1(?!`)", " ", text)
    return bool(own.strip()) and plain.split() == own.split()


def announces_lessons(label: str) -> bool:
    """Return whether a heading or a line with a colon says that something worth knowing follows."""
    return _ABOUT_LESSONS.search(label) is not None


def is_discussion(passages: Sequence[Passage]) -> bool:
    """Return whether a text answers, explains, proposes or asks something, rather than reporting finished work."""
    if not passages:
        return False
    first, last = passages[0].sentences[0], passages[-1].sentences[-1]
    if "?" in last or rate(first).is_done:
        return "?" in last
    return _TALKS.match(first) is not None or bool(_PROPOSALS.intersection(rate(first).features))


def find_lesson(
    passage: Passage, *, least: float = MIN_RATING, by_rules: float = 0.0, may_lead: Callable[[str], bool] = bool
) -> Lesson | None:
    """Return the lesson that a passage states; None if it states none.

    A lesson is rated with at least `least`, and with `by_rules` without the model's opinion; a much higher rating by
    rules needs no model. `may_lead` says which statements can be the lesson; the others can only explain it.
    """
    rated = _rate_sentences(passage)
    found = [
        number
        for number, one in enumerate(rated)
        if one.rating >= by_rules and max(one.total, one.rating - _SURE) >= least and may_lead(one.statement)
    ]
    for number in sorted(found, key=lambda number: (-rated[number].rank, number)):
        lesson = _make_lesson(rated, number)
        if lesson is not None:
            return lesson
    return None


def _rate_sentences(passage: Passage) -> list[_Rated]:
    """Return the sentences of a passage with their ratings, in order."""
    section = _rate_section(passage)
    explains = [_EXPLAINS.search(hide_code(sentence)) is not None for sentence in passage.sentences]
    reasons = sum(explains) + (_EXPLAINS.search(passage.label) is not None)
    rated = [
        _rate_sentence(sentence, section + _EXPLAINED * (reasons > is_reason))
        for sentence, is_reason in zip(passage.sentences, explains, strict=True)
    ]
    facts = sum(map(_explains, rated))
    supported = [_add_support(one) if facts > _explains(one) else one for one in rated]
    if not passage.odds:
        return supported
    return [one.replace(odds=odds) for one, odds in zip(supported, passage.odds, strict=True)]


def _add_support(rated: _Rated) -> _Rated:
    """Return a rule rated higher, because a sentence beside it states a fact."""
    is_rule = rated.is_order and not rated.is_report
    return rated.replace(rating=rated.rating + _SUPPORTED) if is_rule else rated


def _rate_sentence(sentence: str, bonus: float) -> _Rated:
    """Return the rating of the best statement in a sentence: the whole sentence, or one of its main clauses."""
    whole, announced = strip_announcement(sentence)
    clauses = [] if REPORT_LABEL.match(whole) or _LOOKS_LIKE_CODE.search(whole) else _list_main_clauses(whole)
    statements = [whole, *(strip_announcement(clause)[0] for clause in clauses)]
    ratings = [
        (rate(statement).total - _CLAUSE * (number > 0) - _POINTING * (not stands_alone(statement)), -number)
        if can_state(statement)
        else (_FRAGMENT, -number)
        for number, statement in enumerate(statements)
    ]
    _, number = max(ratings)
    statement = statements[-number]
    rating = rate(statement)
    best = rating.total - _CLAUSE * (number < 0) if can_state(statement) else _FRAGMENT
    return _Rated(
        sentence=sentence,
        statement=statement,
        rating=best + bonus + _ANNOUNCED * announced + _EXPLAINED * _is_explained(whole, statement),
        is_report=rating.is_report or best == _FRAGMENT,
        is_order=rating.is_order,
        stands_alone=stands_alone(statement),
    )


def _is_explained(sentence: str, clause: str) -> bool:
    """Return whether the part of a sentence before one of its clauses speaks of trouble."""
    return clause != sentence and _EXPLAINS.search(hide_code(sentence[: -len(clause)])) is not None


def can_state(statement: str) -> bool:
    """Return whether a text is a whole sentence, neither too short nor too long to state a lesson."""
    has_length = _MIN_LENGTH <= len(statement) <= _MAX_LENGTH
    return has_length and is_whole(statement) and not _LOOKS_LIKE_CODE.search(statement)


def _rate_section(passage: Passage) -> float:
    """Return what the heading of a passage, or its being a list item, says about its sentences."""
    if announces_lessons(passage.label):
        return _LESSON_SECTION
    if passage.label and _ABOUT_WORK.search(passage.label):
        return _REPORT_SECTION
    return _UNLABELLED_ITEM if passage.kind == ITEM else 0.0


def _make_lesson(rated: Sequence[_Rated], number: int) -> Lesson | None:
    """Return the lesson in one of the sentences, with what explains it; None if it cannot be understood alone."""
    chosen = _add_neighbours(rated, number)
    if chosen is None:
        return _join_to_previous(rated, number)
    main = rated[number]
    others = [rated[other] for other in chosen if other != number and rated[other].rating >= 1]
    titles = (choose_clause(one.statement) for one in (main, *others))
    title = next(filter(stands_alone, titles), "")
    if not title:
        return _join_to_previous(rated, number)
    orders = sorted((one for one in (main, *others) if one.is_order), key=lambda one: -one.rating)
    action = next((one.statement for one in orders), main.statement)
    return Lesson(
        title=title,
        action=action if action != title else "",
        observation=" ".join(rated[other].sentence for other in chosen),
        rating=main.total,
        is_order=main.is_order,
    )


def _join_to_previous(rated: Sequence[_Rated], number: int) -> Lesson | None:
    """Return the lesson in a sentence that is about the one before it: that one is the title; None if it is none."""
    previous, main = rated[number - 1] if number else None, rated[number]
    title = choose_clause(previous.statement) if previous and can_state(previous.statement) else ""
    if previous is None or previous.is_report or not title or not stands_alone(title):
        return None
    observation = f"{previous.sentence} {main.sentence}"
    return Lesson(title=title, action=main.sentence, observation=observation, rating=main.total, is_order=main.is_order)


def _add_neighbours(rated: Sequence[_Rated], number: int) -> list[int] | None:
    """Return which sentences belong to a lesson: those that it needs, and those around it that explain it.

    None if a sentence that it needs is missing.
    """
    chosen = _add_needed(rated, [number])
    if chosen is None:
        return None
    near = range(max(0, number - _MAX_BEFORE), min(len(rated), number + _MAX_BEHIND + 1))
    for other in sorted(near, key=lambda other: (abs(other - number), other)):
        if other not in chosen and _belongs(rated, other, number):
            more = _add_needed(rated, [*chosen, other])
            if more is not None and sum(len(rated[one].sentence) for one in more) <= _MAX_OBSERVATION:
                chosen = more
    return chosen


def _add_needed(rated: Sequence[_Rated], chosen: Sequence[int]) -> list[int] | None:
    """Return the chosen sentences and those that they refer to, in order; None if one of these is missing."""
    needed = set(chosen)
    for number in chosen:
        first = number
        while _refers_back(rated[first]):
            if (
                first == 0
                or number - first == _MAX_BEFORE
                or (rated[number].stands_alone and rated[first - 1].is_report)
            ):
                break
            first -= 1
            needed.add(first)
        if _refers_back(rated[first]) and not rated[number].stands_alone:
            return None
    return sorted(needed)


def _refers_back(rated: _Rated) -> bool:
    return starts_with_reference(strip_announcement(rated.sentence)[0])


def _belongs(rated: Sequence[_Rated], other: int, main: int) -> bool:
    """Return whether a sentence explains a lesson, or tells how a fact was dealt with."""
    if other == main - 1 and not rated[other].is_report and rated[other].rating >= 0:
        return True
    if other == main + 1 and CODE in hide_code(rated[other].sentence):
        is_open = not rated[main].is_order or not names_something(rated[main].sentence)
        is_remedy = is_open and rate(rated[other].sentence).is_done
        return is_remedy or (not rated[other].is_report and (_refers_back(rated[other]) or _explains(rated[other])))
    return _explains(rated[other])


def _explains(rated: _Rated) -> bool:
    return not rated.is_report and rated.rating >= _MIN_SUPPORT


def choose_clause(statement: str) -> str:
    """Return a statement, or its best clause if it is too long for a title or cannot be understood alone."""
    alone = stands_alone(statement)
    bare = re.sub(r" \((?![^()]*\()[^()]*\)", "", statement)
    if alone and len(bare) <= TITLE_LIMIT + 1:  # a title has no full stop
        return statement if len(statement) <= TITLE_LIMIT + 1 else bare
    clauses = [clause for clause in _list_clauses(bare) if _MIN_LENGTH <= len(clause) <= TITLE_LIMIT]
    titles = [
        clause for clause in clauses if can_state(clause) and stands_alone(clause) and not _PRONOUN.search(clause)
    ]
    if rate(statement).is_order:
        titles = [title for title in titles if rate(title).is_order] or titles
    best = max(titles, key=lambda clause: (rate(clause).total, len(clause)), default="")
    return best if best and rate(best).is_rule else statement


def _list_main_clauses(text: str) -> list[str]:
    """Return the parts of a sentence that stand behind a colon, a semicolon, a dash or `because`."""
    if text.endswith(":"):
        return []
    masked = _mask(text)
    starts = [match.end() for match in _MAIN_CLAUSE.finditer(masked) if not _is_proposal(text[: match.start()])]
    ends = [*(match.start() for match in _MAIN_CLAUSE.finditer(masked)), len(text)]
    return [_trim(text[start:end]) for start in starts for end in ends[-1:] if end > start]


def _is_proposal(head: str) -> bool:
    return bool(_PROPOSALS.intersection(rate(head).features))


def _list_clauses(text: str) -> Iterator[str]:
    """Yield the parts of a sentence that might be sentences of their own."""
    cuts = [(cut.start(), cut.end(), bool(cut["strong"])) for cut in _CLAUSE_END.finditer(_mask(text))]
    # Behind “if …, but …” the condition goes on.
    starts = [0] if _SUBORDINATE.match(text) else [0, *(end for _, end, strong in cuts if strong)]
    ends = [*(start for start, _, _ in cuts), len(text)]
    yield from (_trim(text[start:end]) for start in starts for end in ends if end > start)


def list_beginnings(sentence: str) -> list[str]:
    """Return a sentence, and what is left of it without its last clauses; the longest first."""
    cuts = [cut.start() for cut in _CLAUSE_END.finditer(_mask(sentence))]
    return [sentence, *(beginning for cut in reversed(cuts) if is_whole(beginning := sentence[:cut]))]


def _mask(text: str) -> str:
    """Return a text whose code and remarks in brackets have no signs at which it could be cut."""
    return re.sub(r"`[^`]*`|\([^()]*\)", lambda part: "x" * len(part[0]), text)


def _trim(clause: str) -> str:
    return capitalise(clause.strip(" ,;:–—"))
