"""Judge how two learnings overlap: by their words first, and where these do not decide, by likeness in meaning.

`weigh.compare` proves a verdict by words. What it leaves open is estimated here, and never acted upon without a person:

    supersedes   the newer one has the same subject and tells of a change (`weigh.compare`)
    contradicts  it denies what the older one says in similar words
    repeats      every word of the one has a counterpart in the other, and both are alike as a whole; or the
                 fuller one says most of what the shorter one says, and both are about the same

A specific (a number, a name, code) has no counterpart but itself. Words that exclude each other, such as two colours,
keep two learnings apart, however alike they are.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from itertools import product
from typing import Protocol

from learnt.model import PARAGRAPHS, Learning
from learnt.text.meaning import embed, likeness, rarity
from learnt.text.opposites import exclude_each_other
from learnt.text.statements import Statement
from learnt.text.words import words
from learnt.weigh.compare import (
    CONTRADICTS,
    REPEATS,
    SUPERSEDES,
    UNRELATED,
    UNSURE,
    Meaning,
    Subject,
    Verdict,
    compare_meanings,
    read,
    replaces,
)

# Of the sum of likeness and counterparts that a repetition needs, the newer one's counterparts count more: what the
# older one says in addition does no harm.
_MIN_ALIKE = 0.975
_NEWER_WEIGHT = 0.3
_OLDER_WEIGHT = 0.1
_MIN_DENIED = 1.0
_MIN_CONTAINED = 0.55
_MIN_SAME_TOPIC = 0.65
_JOINING = re.compile(r"(?i) (?:and|or) |,")
_MAX_WORDS = 150
"""A text with more words contains the words of almost any title."""


class Likeness(Protocol):
    """A way to compare what two texts mean."""

    def __call__(self, one: str, other: str) -> float:
        """Return how alike two texts are, at most 1."""


class LearningContent:
    """What a learning says, read once for many comparisons."""

    def __init__(self, learning: Learning) -> None:
        self.learning = learning

    @cached_property
    def meaning(self) -> Meaning:
        """What it states and names."""
        return read(self.learning)

    @cached_property
    def subject(self) -> Subject:
        """What it is about."""
        return Subject(self.learning)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of all its texts."""
        texts = (self.learning.title, *(str(getattr(self.learning, name)) for name in PARAGRAPHS))
        return frozenset(words("\n".join(texts)))

    @cached_property
    def tag_words(self) -> frozenset[str]:
        """The words of its tags."""
        return frozenset(words(" ".join(self.learning.tags)))

    @property
    def is_bare(self) -> bool:
        """Whether it says nothing beyond its statement."""
        return self.meaning.words <= self.meaning.statement.all_words


def compare_by_table(one: str, other: str) -> float:
    """Return how alike two texts are by the table of words' vectors that comes with the package."""
    vectors = embed(words(one)), embed(words(other))
    return likeness(vectors[0], vectors[1]) if vectors[0] and vectors[1] else 0.0


def judge(older: LearningContent, newer: LearningContent, *, measure: Likeness = compare_by_table) -> Verdict:
    """Return how a newer learning relates to an older one."""
    verdict = compare_meanings(older.meaning, newer.meaning)
    if verdict == CONTRADICTS or (verdict == SUPERSEDES and verdict.lacks):
        return verdict
    if verdict in (UNSURE, UNRELATED) and replaces(newer.subject, older.subject):
        return verdict.estimate(SUPERSEDES, "has the same subject and tells of a change")
    if older.is_bare and newer.is_bare:
        return _Statements(older, newer, measure).judge(verdict)
    if verdict in (UNSURE, UNRELATED) and (share := _find_contained(older, newer)):
        return verdict.estimate(REPEATS, "the fuller one says most of what the other says", score=share)
    return verdict


def may_repeat(older: LearningContent, newer: LearningContent) -> bool:
    """Return whether two learnings can say the same at all, whoever says that they do.

    They cannot if each names something that the other does not, if words exclude each other, or if one denies what the
    other states.
    """
    statements = older.meaning.statement, newer.meaning.statement
    adds, lacks = newer.meaning.specifics - older.meaning.specifics, older.meaning.specifics - newer.meaning.specifics
    return not ((adds and lacks) or _exclude_each_other(*statements) or _denies_other(*statements))


def may_be_related(older: LearningContent, newer: LearningContent) -> bool:
    """Return whether two learnings have any word in common; without one, nothing is believed of them."""
    return not older.words.isdisjoint(newer.words)


class _Statements:
    """Two learnings that consist of one statement each."""

    def __init__(self, older: LearningContent, newer: LearningContent, measure: Likeness) -> None:
        self._old, self._new = older.meaning.statement, newer.meaning.statement
        self._texts = older.meaning.stated, newer.meaning.stated
        self._measure = measure

    def judge(self, verdict: Verdict) -> Verdict:
        """Return the verdict by words, or what likeness makes of it."""
        if _exclude_each_other(self._old, self._new):
            return verdict if verdict != REPEATS else verdict.estimate(UNSURE, "one word excludes another")
        if bool(self._old.denied) != bool(self._new.denied):
            return self._judge_denial(verdict)
        is_list = all(_JOINING.search(text) for text in self._texts)
        if _are_swapped(self._old, self._new) and not is_list:
            return verdict  # “yarn to npm”, “npm to yarn”: likeness cannot tell them apart
        if _denies_other(self._old, self._new) or (self._old.specifics ^ self._new.specifics):
            return verdict
        alike = self._weigh(self._old.all_words, self._new.all_words)
        if alike >= _MIN_ALIKE:
            return verdict if verdict == REPEATS else verdict.estimate(REPEATS, "the same in other words", score=alike)
        is_doubtful = verdict == REPEATS and verdict.lacks and not self._old.specifics
        return verdict.estimate(UNSURE, "perhaps about something else") if is_doubtful else verdict

    def _judge_denial(self, verdict: Verdict) -> Verdict:
        """Return whether what one denies is what the other says, in similar words."""
        denying, other = (self._old, self._new) if self._old.denied else (self._new, self._old)
        if verdict not in (UNSURE, UNRELATED) or denying.denied & denying.specifics - other.specifics:
            return verdict
        if self._weigh(other.affirmed, denying.denied) < _MIN_DENIED:
            return verdict
        return verdict.estimate(CONTRADICTS, "denies it in other words")

    def _weigh(self, old: frozenset[str], new: frozenset[str]) -> float:
        """Return how alike both are as a whole, and word by word."""
        whole = self._measure(*self._texts)
        return whole + _NEWER_WEIGHT * _find_least(new, old) + _OLDER_WEIGHT * _find_least(old, new)


def _find_least(some: frozenset[str], others: frozenset[str]) -> float:
    """Return how alike the word with the worst counterpart among others is to it."""
    unmatched = some - others
    return min((max((_compare_words(word, other) for other in others), default=0.0) for word in unmatched), default=1.0)


@lru_cache(maxsize=50_000)
def _compare_words(word: str, other: str) -> float:
    vectors = embed((word,)), embed((other,))
    return likeness(vectors[0], vectors[1]) if vectors[0] and vectors[1] else 0.0


def _find_contained(older: LearningContent, newer: LearningContent) -> float:
    """Return how much of what the shorter one says the fuller one says, too, if that is most of it; otherwise 0."""
    shorter, fuller = sorted((older, newer), key=lambda content: len(content.words))
    differs = _exclude_each_other(older.meaning.statement, newer.meaning.statement) or any(
        any(map(str.isdigit, word)) for word in shorter.meaning.specifics - fuller.meaning.specifics
    )
    if differs or len(fuller.words) > _MAX_WORDS:
        return 0.0
    total = sum(map(rarity, shorter.words))
    share = sum(map(rarity, shorter.words & (fuller.words | fuller.tag_words))) / total if total else 0.0
    is_on_topic = older.subject.measure_likeness(newer.subject) >= _MIN_SAME_TOPIC
    return share if share >= _MIN_CONTAINED and is_on_topic else 0.0


def _exclude_each_other(old: Statement, new: Statement) -> bool:
    """Return whether a word of one statement excludes a word of the other."""
    some, others = (statement.all_words | statement.small for statement in (old, new))
    return any(exclude_each_other(word, other) for word, other in product(some - others, others - some))


def _are_swapped(old: Statement, new: Statement) -> bool:
    """Return whether two words of a statement changed places in the other one, and all else is the same."""
    if len(old.sequence) != len(new.sequence):
        return False
    changed = [pair for pair in zip(old.sequence, new.sequence, strict=True) if pair[0] != pair[1]]
    return len(changed) == 2 and changed[0] == changed[1][::-1]


def _denies_other(old: Statement, new: Statement) -> bool:
    """Return whether one of them denies what the other affirms."""
    return bool((old.affirmed & new.denied) | (old.denied & new.affirmed))
