"""Decide how a newer learning relates to an older one, by what they say and name. No model is asked.

    repeats      the newer one states what the older one states: the same specifics, the same side
    supersedes   it says all that the older one says and more, or that this is no longer so
    contradicts  it denies what the older one affirms, the other way round, or the other order
    unsure       much the same words, but some differ: a name, a number, a colour
    unrelated    anything else

Which of two learnings on one subject is right cannot be told from their words. But what says that something is no
longer so, or is done differently now, was written by somebody who knew the older state: it replaces the older one
(`replaces`), even if the two share few words.

Similarity alone never makes a repetition: one word that differs can be the whole difference. In case of doubt the
verdict is `unsure`, and both learnings are kept.

Reasons, remarks and further texts do not decide about the relation. What only the newer one says in them is listed
(`explains`), so that a repetition with a reason of its own is not taken for what is known already.
"""

from __future__ import annotations

from functools import cached_property

from learnt.model import Value
from learnt.text.meaning import embed, likeness, rarity
from learnt.text.opposites import find_opposites
from learnt.text.statements import complete_title, read_statement, spell
from learnt.text.words import speaks_of_change, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from learnt.model import Learning
    from learnt.text.statements import Statement

REPEATS, SUPERSEDES, CONTRADICTS, UNRELATED, UNSURE = RELATIONS = (
    "repeats",
    "supersedes",
    "contradicts",
    "unrelated",
    "unsure",
)
_SPECIFIC_WEIGHT = 2.0
_MIN_CONFLICT = 0.7
_MIN_SAME_SUBJECT = 1.2
_MIN_SUBJECT_OF_CONFLICT = 0.5
_MIN_ALIKE = 0.4
_MIN_CONTAINED = 0.5  # what says less in the same words may be about something else
_MIN_BEGINNING = 2
_MIN_SHARED = 0.7
_MIN_SUBJECT = 0.4
_MAX_NAMED = 3


class Verdict(str):
    """The word for how a newer learning relates to an older one, with a score from 0 to 1 and the reason."""

    score: float
    reason: str
    adds: frozenset[str]
    """What only the newer learning says."""
    lacks: frozenset[str]
    """What only the older learning says."""
    explains: frozenset[str]
    """What only the newer learning says in reasons, remarks and other texts below its statement."""
    is_estimate: bool
    """Whether it rests on likeness in meaning or on a model: then it is proposed to a person, and never acted upon."""

    def __new__(
        cls,
        relation: str,
        *,
        score: float = 0.0,
        reason: str = "",
        adds: frozenset[str] = frozenset(),
        lacks: frozenset[str] = frozenset(),
        explains: frozenset[str] = frozenset(),
        is_estimate: bool = False,
    ) -> Verdict:
        self = super().__new__(cls, relation)
        self.score, self.reason, self.adds, self.lacks = score, reason, adds, lacks
        self.explains, self.is_estimate = explains, is_estimate
        return self

    def estimate(self, relation: str, reason: str, *, score: float = 0.0) -> Verdict:
        """Return another verdict on the same two learnings, which is an estimate."""
        score = max(self.score, min(1.0, round(score, 3)))
        said = {"adds": self.adds, "lacks": self.lacks, "explains": self.explains}
        return Verdict(relation, score=score, reason=reason, **said, is_estimate=True)

    @property
    def relation(self) -> str:
        """The word itself."""
        return str(self)


class Meaning(Value):
    """What a learning says: its title as a statement, and everything that all its texts name."""

    statement: Statement
    words: frozenset[str]
    specifics: frozenset[str]
    stated: str
    """The statement's text."""
    text: str


def read(learning: Learning) -> Meaning:
    """Return what a learning says."""
    stated = complete_title(learning.title, learning.observation)
    if learning.polarity == "avoid":
        stated = learning.advise(stated).replace(": ", " ", 1)
    texts = (stated, learning.observation, learning.implication, learning.action)
    statements = [read_statement(text) for text in texts if text]
    return Meaning(
        statement=statements[0],
        words=frozenset().union(*(statement.all_words for statement in statements)),
        specifics=frozenset().union(*(statement.specifics for statement in statements)),
        stated=stated,
        text="\n".join(texts),
    )


def compare(older: Learning, newer: Learning) -> Verdict:
    """Return how a newer learning relates to an older one."""
    return compare_meanings(read(older), read(newer))


def compare_meanings(older: Meaning, newer: Meaning) -> Verdict:
    """Return how a newer learning relates to an older one, from what they say."""
    pair = _Pair(older, newer)
    relation, reason = pair.decide()
    old, new = older.statement.words, newer.statement.words
    return Verdict(
        relation,
        score=round(_share(old & new, old | new, older.specifics | newer.specifics), 3),
        reason=reason,
        adds=(new - older.words) | (newer.specifics - older.specifics),
        lacks=(old - newer.words) | (older.specifics - newer.specifics),
        explains=newer.words - new - older.words,
        is_estimate=relation == SUPERSEDES and pair.is_presumed_change,
    )


def contradict(older: Learning, newer: Learning) -> bool:
    """Return whether two learnings contradict each other."""
    return compare(older, newer) == CONTRADICTS


def differ_in_numbers(older: Learning, newer: Learning) -> bool:
    """Return whether two learnings say the same of different numbers."""
    verdict = compare(older, newer)
    return verdict == UNSURE and all(some and all(map(_has_digit, some)) for some in (verdict.adds, verdict.lacks))


class Subject:
    """What a learning is about, for comparisons; it is determined on first use, because few learnings are compared."""

    def __init__(self, learning: Learning) -> None:
        self._learning = learning
        self._text = f"{learning.title} {learning.paragraphs}"

    @cached_property
    def tells_of_change(self) -> bool:
        """Whether it says that something is no longer as it was."""
        return speaks_of_change(self._text)

    @cached_property
    def _named(self) -> frozenset[str]:
        return frozenset(words(f"{self._learning.title} {' '.join(self._learning.tags)}"))

    @cached_property
    def _title(self) -> bytes | None:
        return embed(words(self._learning.title))

    @cached_property
    def _all(self) -> bytes | None:
        return embed(words(self._text))

    def is_same(self, other: Subject) -> bool:
        """Return whether two learnings have the same subject: by title, by everything, and by the words they share."""
        alike = self.measure_likeness(other)
        return alike > 0 and alike + self._share(other) >= _MIN_SAME_SUBJECT

    def measure_likeness(self, other: Subject) -> float:
        """Return how alike the titles and all texts of two learnings are, at most 2; 0 if no word is known."""
        if None in (self._title, self._all, other._title, other._all):
            return 0.0
        return likeness(self._title, other._title) + likeness(self._all, other._all)  # type: ignore[arg-type]

    def _share(self, other: Subject) -> float:
        """Return how much of the shorter one's words the other one has, too; rare words count more."""
        least = min(_weigh(self._named), _weigh(other._named))
        return _weigh(self._named & other._named) / least if least else 0.0


def _weigh(stems: frozenset[str]) -> float:
    return sum(map(rarity, stems))


def replaces(newer: Subject, older: Subject) -> bool:
    """Return whether a newer learning replaces an older one."""
    return newer.tells_of_change and newer.is_same(older)


class _Pair:
    """Two learnings, and what they have in common."""

    def __init__(self, older: Meaning, newer: Meaning) -> None:
        self.is_presumed_change = False
        """Whether the newer one tells of a change, but does not say the contrary of the older one."""
        self._older, self._newer = older, newer
        self._old, self._new = older.statement, newer.statement
        self._specifics = older.specifics | newer.specifics
        self._shared = self._old.words & self._new.words
        self._smaller = min(self._old.words, self._new.words, key=len)
        self._adds = (self._new.words - older.words) | (newer.specifics - older.specifics)
        self._lacks = (self._old.words - newer.words) | (older.specifics - newer.specifics)

    def decide(self) -> tuple[str, str]:
        """Return the relation and the reason."""
        conflict = self._find_conflict()
        if self._is_change(has_conflict=bool(conflict)):
            self.is_presumed_change = not conflict
            return SUPERSEDES, "says that it is no longer so"
        if conflict:
            return CONTRADICTS, conflict
        share = self._share(self._shared, self._old.words | self._new.words)
        if share >= _MIN_ALIKE or self._goes_on():
            return self._decide_alike(share)
        if _is_same_replacement(self._old, self._new) and not (self._adds | self._lacks) & self._specifics:
            return REPEATS, "recommends and rejects the same"
        if slot := find_slot(self._old, self._new):
            return UNSURE, f"differs: {self._name(frozenset(slot[:1]))} became {self._name(frozenset(slot[1:]))}"
        return UNRELATED, "says something else"

    def _decide_alike(self, share: float) -> tuple[str, str]:
        turned = self._list_turned()[0]
        if not (turned & self._old.affirmed and turned & self._old.denied):  # such as “on 500, not on 503”
            turned -= self._old.places & self._new.places
        if turned:
            return UNSURE, f"perhaps the other side of: {self._name(turned)}"
        if _is_turned_round(self._old, self._new) or not _is_in_order(self._old, self._new):
            return UNSURE, "the same words in another order"
        lost, added = self._old.limits - self._new.limits, self._new.limits - self._old.limits
        if (lost and not self._lacks) or (added and not self._adds) or (lost and added):
            return UNSURE, f"differs: {self._name(lost or added)}"
        if (not self._adds) != (not self._lacks) and share < _MIN_CONTAINED and not self._goes_on():
            return UNSURE, "perhaps about something else"
        if not self._adds:
            return REPEATS, f"says less: {self._name(self._lacks)}" if self._lacks else "says the same"
        if not self._lacks:
            return SUPERSEDES, f"says more: {self._name(self._adds)}"
        if _is_same_replacement(self._old, self._new) and not (self._adds | self._lacks) & self._specifics:
            return REPEATS, "recommends and rejects the same"
        return UNSURE, f"differs: {self._name(self._lacks)} became {self._name(self._adds)}"

    def _goes_on(self) -> bool:
        """Return whether one of the two begins with all that the other says, and goes on."""
        shorter, longer = sorted((self._old, self._new), key=lambda statement: len(statement.words))
        start = shorter.clauses[0] if len(shorter.clauses) == 1 else ()
        return len(start) >= _MIN_BEGINNING and any(clause[: len(start)] == start for clause in longer.clauses)

    def _is_change(self, *, has_conflict: bool) -> bool:
        """Return whether the newer learning says that what the older one is about is no longer so."""
        subject = self._share(self._old.words & self._newer.words, self._old.words)
        is_about = has_conflict or (bool(self._adds and self._shared) and subject >= _MIN_SUBJECT)
        return is_about and speaks_of_change(self._newer.text)

    def _find_conflict(self) -> str:
        """Return in what two statements contradict each other; empty if they do not."""
        turned, on_both_sides = self._list_turned()
        denied = (self._old.denied | self._new.denied) - on_both_sides
        # “Nobody runs down the road” does not deny that somebody runs: all that is denied must be what the other says.
        is_denied = bool(turned) and self._share(turned, denied) >= _MIN_CONFLICT
        if is_denied and self._share(turned, self._smaller - on_both_sides) >= _MIN_SUBJECT_OF_CONFLICT:
            return f"the other side of: {self._name(turned)}"
        if _is_reversed(self._old, self._new):
            return "the other order"
        opposites = self._find_opposites()
        if opposites and self._share(self._shared, self._smaller - opposites) >= _MIN_SHARED:
            return f"the opposite: {self._name(opposites)}"
        return ""

    def _find_opposites(self) -> frozenset[str]:
        """Return two opposites that both affirm or both deny; “not in parallel” is no opposite of “serially”."""
        old, new = self._old, self._new
        all_old, all_new = (statement.words | statement.small for statement in (old, new))
        sides = ((old.affirmed | old.small, new.affirmed | new.small), (old.denied, new.denied))
        pairs = (find_opposites(some - all_new, others - all_old, all_old & all_new) for some, others in sides)
        return next(filter(None, pairs), frozenset())

    def _list_turned(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the words that one affirms and the other denies, and those of them that they agree on elsewhere."""
        old, new = self._old, self._new
        turned = (old.affirmed & new.denied) | (old.denied & new.affirmed)
        agreed = (old.affirmed & new.affirmed) | (old.denied & new.denied)
        return turned - agreed, turned & agreed

    def _name(self, words: frozenset[str]) -> str:
        """Return some of these words for people, as they are written in the learnings."""
        spelled = spell(f"{self._newer.text}\n{self._older.text}")
        named = [spelled.get(word, word) for word in sorted(words)]
        more = len(named) - _MAX_NAMED
        return ", ".join(named[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")

    def _share(self, part: frozenset[str], whole: frozenset[str]) -> float:
        return _share(part, whole, self._specifics)


def find_slot(old: Statement, new: Statement) -> tuple[str, str] | None:
    """Return the words in which two statements differ that are the same word for word otherwise; None if they do not.

    Their details do not matter. In `Run tests with 4 workers` and `Run tests with 8 workers`, `4` became `8`.
    """
    if not 1 < len(old.sequence) == len(new.sequence) or bool(old.denied) != bool(new.denied):
        return None
    different = [pair for pair in zip(old.sequence, new.sequence, strict=True) if pair[0] != pair[1]]
    return different[0] if len(different) == 1 else None


def _is_reversed(old: Statement, new: Statement) -> bool:
    if old.order is None or new.order is None:
        return False
    (first, later), (new_first, new_later) = old.order, new.order
    crossed = len(first & new_later) + len(later & new_first)
    straight = len(first & new_first) + len(later & new_later)
    return crossed > straight and bool(first & new_later) and bool(later & new_first)


def _is_turned_round(old: Statement, new: Statement) -> bool:
    """Return whether shared words follow each other the other way round: `a` calls `b`, `b` calls `a`."""
    if ("by" in old.small) != ("by" in new.small):  # a passive turns the words round, but not the statement
        return False
    pairs = list(_list_pairs(old, new))
    of_code = [is_reversed for first, later, is_reversed in pairs if {first, later} <= old.code & new.code]
    of_all = [is_reversed for *_, is_reversed in pairs]
    return any(2 * sum(reversals) > len(reversals) for reversals in (of_code, of_all))


def _is_in_order(old: Statement, new: Statement) -> bool:
    """Return whether the words that two statements share follow each other in the same order."""
    if ("by" in old.small) != ("by" in new.small) or (old.order and new.order):
        return True  # a passive; or the order is compared by itself
    if (old.places ^ new.places) & old.words & new.words & old.specifics:
        return False
    elsewhere = old.places | new.places | (old.affirmed & old.denied) | (new.affirmed & new.denied)
    for some, others in ((old.affirmed, new.affirmed), (old.denied, new.denied)):
        shared = (some & others) - elsewhere
        first, later = ([word for word in statement.sequence if word in shared] for statement in (old, new))
        if first != later:
            return False
    return True


def _list_pairs(old: Statement, new: Statement) -> Iterator[tuple[str, str, bool]]:
    """Yield the pairs of words that stand together in a clause of both, and whether they changed places."""
    places = {word: (number, place) for number, clause in enumerate(new.clauses) for place, word in enumerate(clause)}
    for clause in old.clauses:
        for index, word in enumerate(clause):
            for later in clause[index + 1 :]:
                if word in places and later in places and places[word][0] == places[later][0]:
                    yield word, later, places[word][1] > places[later][1]


def _is_same_replacement(old: Statement, new: Statement) -> bool:
    """Return whether both recommend the same code instead of the same other code, in the same place."""
    sides = [(side.affirmed & side.code, side.denied & side.code) for side in (old, new)]
    return sides[0] == sides[1] and all(sides[0]) and old.places == new.places


def _share(part: frozenset[str], whole: frozenset[str], specifics: frozenset[str]) -> float:
    """Return the share of some words in others, where specifics count more."""
    total = sum(_SPECIFIC_WEIGHT if word in specifics else 1.0 for word in whole)
    return sum(_SPECIFIC_WEIGHT if word in specifics else 1.0 for word in part) / total if total else 0.0


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))
