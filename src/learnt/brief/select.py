"""Decide which categories of learnings an agent sees, and which few learnings a brief contains.

A learning is `general` if it has no category, or if its category is not assigned to any agent; otherwise no agent would
see it. Every agent sees general learnings. People, and agents without assigned categories, see everything.

A brief does not guess: a learning must have a matching trigger, or share enough significant words with the task. Pinned
learnings come first, then learnings with a matching trigger, then the others by relevance and confidence. If several
learnings say the same thing, only the newest is shown, and of two that conflict only one (`Conflicts`). Other learnings
with much the same words as one that a person vouches for are left out.

Only learnings that somebody vouches for are trusted. One slot is reserved for a relevant learning on trial that has
rarely been shown, so that it can prove itself: first those that anything speaks for, and at most one from each
conversation.

What a person says is neither hidden nor outranked by what anybody else says in much the same words. Few other words can
turn a learning into its opposite, so a near copy of a person's learning is never shown beside it or instead of it, not
even if the person's learning was shown before: the person decides in the review. The rule (`Originals`) is the same
for briefs, for standing learnings and for warnings.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cached_property

from learnt.model import EVERYTHING, GENERAL, Hit, Value
from learnt.text.titles import key_of, share_most_words
from learnt.text.words import speaks_of_change, words
from learnt.weigh.confidence import count_trial_showings, has_support, is_persons, is_trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from types import ModuleType

    from learnt.model import Learning
    from learnt.weigh.compare import Subject

    AgentCategories = Mapping[str, tuple[str, ...]]
    BothHold = Callable[[], Collection[frozenset[str]]]

# Of the weight of the words in the lighter title, and in the heavier one.
_MIN_SHARED_OF_LIGHTER, _MIN_SHARED_OF_HEAVIER = 0.6, 0.4
REPEATS = "repeats another"
CONFLICTS = "another one on the same subject says otherwise"
NOT_RELEVANT = "not relevant enough"
NOT_RELEVANT_FOR_TRIAL = "not relevant enough for a trial"
NO_TRIAL_SLOT = "not trusted enough, and no trial slot left"
TRIED_ENOUGH = "not trusted enough, and tried often enough"
NO_SUPPORT = "nothing speaks for it, and a trusted one fits as well"
ENOUGH_OTHERS = "enough others fit better"
MIN_TRIAL_RELEVANCE = 0.6
_MAX_TRIAL_MARKS = 3
HAS_ORIGINAL = "a person's learning has much the same words"
_MIN_SHARE = 0.6
_MIN_SHARE_WITH_CODE = 0.5


class Rules(Value):
    """The limits for the learnings in a brief."""

    max_learnings: int = 5
    min_confidence: float = 0.6
    min_relevance: float = 0.35
    trial_slots: int = 1


class Choice(Value):
    """A learning that was chosen for a brief, or left out for a reason."""

    hit: Hit
    on_trial: bool = False
    left_out: str = ""
    newer: str = ""
    """The id of a newer learning on the same subject, if this one is chosen although it is older."""


def assigned_categories(agents: AgentCategories) -> set[str]:
    """Return the categories that are assigned to any agent, except `general`."""
    return {category for categories in agents.values() for category in categories} - {GENERAL, EVERYTHING}


def visible_categories(agent: str, agents: AgentCategories) -> tuple[str, ...]:
    """Return the categories that an agent sees, in the order of the settings; `general` is last unless listed there."""
    categories = agents.get(key_of(agent), (EVERYTHING,))
    if EVERYTHING in categories:
        return (*sorted(assigned_categories(agents)), GENERAL)
    return tuple(dict.fromkeys((*categories, GENERAL)))


def hidden_categories(agent: str, agents: AgentCategories, categories: Iterable[str]) -> tuple[str, ...]:
    """Return the categories that an agent does not see, as they are spelt in the learnings."""
    hidden = assigned_categories(agents) - set(visible_categories(agent, agents))
    return tuple(category for category in categories if key_of(category) in hidden)


def is_restricted(agent: str, agents: AgentCategories) -> bool:
    """Return whether there is any category that an agent does not see."""
    return bool(assigned_categories(agents) - set(visible_categories(agent, agents)))


def spellings(category: str, agents: AgentCategories, categories: Iterable[str]) -> tuple[str, ...]:
    """Return a category's spellings among the learnings' categories; `general` includes the empty category."""
    if category == GENERAL:
        assigned = assigned_categories(agents)
        return ("", *(spelling for spelling in categories if key_of(spelling) not in assigned))
    return tuple(spelling for spelling in categories if key_of(spelling) == category)


def unassigned_categories(agents: AgentCategories, categories: Iterable[str]) -> list[str]:
    """Return the categories that are general because they are not assigned to any agent."""
    return [category for category in categories if key_of(category) not in assigned_categories(agents) | {GENERAL}]


def categories_without_learnings(wanted: Iterable[str], categories: Collection[str]) -> list[str]:
    """Return the wanted categories that no learning has."""
    used = {*map(key_of, categories), GENERAL, EVERYTHING}
    return [category for category in wanted if category not in used]


def choose(
    hits: Sequence[Hit],
    rules: Rules,
    *,
    excluded: Mapping[str, str],
    impact: Callable[[Learning], float],
    is_observed: bool = False,
    undecided: Mapping[str, int] = {},
    both_hold: BothHold = tuple,
) -> list[Choice]:
    """Return a choice for every hit; the chosen learnings come first, in the order of the brief.

    `excluded` maps the ids of learnings that must be left out to the reasons. `impact` decides between learnings that
    are equally relevant and trusted. `is_observed` says that hooks will report what becomes of a learning on trial.
    `undecided` is how often learnings were shown without being known to have arrived: on trial, that counts as well.
    `both_hold` is as for `Conflicts`.
    """

    def is_on_trial(hit: Hit) -> bool:
        return not is_trusted(hit.learning, rules.min_confidence)

    originals = Originals(hit.learning for hit in hits)
    ranked = _originals_first(sorted(hits, key=lambda hit: _rank(hit, impact(hit.learning))), originals)
    reasons = {
        hit.learning.id: excluded.get(hit.learning.id)
        or _reason_against(hit, rules)
        or (HAS_ORIGINAL if originals.of(hit.learning) else "")
        or (_reason_against_trial(hit, undecided, is_observed=is_observed) if is_on_trial(hit) else "")
        for hit in ranked
    }
    conflicts = Conflicts((hit.learning for hit in ranked), both_hold)
    eligible = [hit for hit in ranked if not reasons[hit.learning.id]]
    trusted = _without_repetitions([hit for hit in eligible if not is_on_trial(hit)], (), reasons)
    trusted = _without_conflicts(trusted, conflicts, reasons, most=rules.max_learnings)
    trials = _without_repetitions([hit for hit in eligible if is_on_trial(hit)], trusted, reasons)
    if is_observed:
        trials = _where_needed(trials, trusted, reasons)
    trials = _one_per_source(sorted(trials, key=lambda hit: _rank_trial(hit, is_observed=is_observed)), reasons)
    slots = max(0, min(rules.trial_slots, rules.max_learnings - bool(trusted)))
    trials = _without_conflicts(trials, conflicts, reasons, most=slots)
    reasons.update((hit.learning.id, NO_TRIAL_SLOT) for hit in trials[slots:])
    pinned = sum(hit.learning.pinned for hit in trusted)
    room = min(rules.max_learnings, max(pinned, rules.max_learnings - len(trials[:slots])))
    chosen = [*trusted[:room], *trials[: min(slots, rules.max_learnings - len(trusted[:room]))]]
    ids = {hit.learning.id for hit in chosen}
    newer = _find_newer(chosen, conflicts)
    choices = [
        Choice(
            hit=hit,
            on_trial=is_on_trial(hit),
            newer=newer.get(hit.learning.id, ""),
            left_out="" if hit.learning.id in ids else reasons[hit.learning.id] or ENOUGH_OTHERS,
        )
        for hit in ranked
    ]
    return sorted(choices, key=lambda choice: bool(choice.left_out))


def _rank(hit: Hit, impact: float) -> tuple[object, ...]:
    worth = hit.relevance * hit.learning.confidence
    return (
        not hit.learning.pinned,
        not hit.trigger,
        -round(worth, 2),
        -impact,
        -hit.relevance,
        -hit.learning.created_at,
        hit.learning.id,
    )


def _rank_trial(hit: Hit, *, is_observed: bool) -> tuple[object, ...]:
    """The learnings come first that most speaks for, and of these the most relevant."""
    return (not hit.trigger, -count_trial_showings(hit.learning, is_observed=is_observed))


def _originals_first(ranked: Sequence[Hit], originals: Originals) -> list[Hit]:
    """Return the hits with each person's learning before the others that have much the same words."""
    by_id = {hit.learning.id: hit for hit in ranked}
    ordered: dict[str, Hit] = {}
    for hit in ranked:
        for original in originals.of(hit.learning):
            ordered.setdefault(original.id, by_id[original.id])
        ordered.setdefault(hit.learning.id, hit)
    return list(ordered.values())


def _where_needed(trials: Sequence[Hit], trusted: Sequence[Hit], reasons: dict[str, str]) -> list[Hit]:
    """Return the hits that anything speaks for, and those that fit better than every trusted one."""
    kept = []
    for hit in trials:
        fits_better = all(round(hit.relevance, 1) > round(other.relevance, 1) for other in trusted)
        if has_support(hit.learning) or fits_better:
            kept.append(hit)
        else:
            reasons[hit.learning.id] = NO_SUPPORT
    return kept


def _one_per_source(hits: Sequence[Hit], reasons: dict[str, str]) -> list[Hit]:
    """Return the first hit from each conversation, so that no conversation fills a brief with its own learnings."""
    kept: dict[str, Hit] = {}
    for hit in hits:
        source = hit.learning.task or hit.learning.id
        if kept.setdefault(source, hit) is not hit:
            reasons[hit.learning.id] = "another one from its conversation is on trial"
    return list(kept.values())


def _reason_against(hit: Hit, rules: Rules) -> str:
    return NOT_RELEVANT if not hit.trigger and hit.relevance < rules.min_relevance else ""


def _reason_against_trial(hit: Hit, undecided: Mapping[str, int], *, is_observed: bool) -> str:
    showings = hit.learning.times_injected + undecided.get(hit.learning.id, 0)
    if _trial_has_ended(hit.learning, showings, is_observed=is_observed):
        return TRIED_ENOUGH
    if not hit.trigger and hit.relevance < MIN_TRIAL_RELEVANCE:
        return NOT_RELEVANT_FOR_TRIAL
    return ""


def _trial_has_ended(learning: Learning, showings: int, *, is_observed: bool) -> bool:
    """Return whether a learning was marked often enough, or shown as often as what speaks for it allows."""
    marks = learning.times_helpful + learning.times_not_helpful
    most = count_trial_showings(learning, is_observed=is_observed)
    return marks >= _MAX_TRIAL_MARKS or showings >= most


def _without_repetitions(hits: Sequence[Hit], before: Sequence[Hit], reasons: dict[str, str]) -> list[Hit]:
    """Return the hits without repetitions, and record in `reasons` why the other hits are left out.

    If two hits say the same thing, the one that precedes the other is returned, at the position of the first. A hit
    that repeats a hit in `before` is left out.
    """
    kept: list[Hit] = []
    words_by_id = {hit.learning.id: LearningWords(hit.learning) for hit in (*before, *hits)}
    for hit in hits:
        mine = words_by_id[hit.learning.id]
        if any(mine.repeats(words_by_id[other.learning.id]) for other in before):
            reasons[hit.learning.id] = REPEATS
            continue
        same = (number for number, other in enumerate(kept) if mine.repeats(words_by_id[other.learning.id]))
        position = next(same, None)
        if position is None:
            kept.append(hit)
            continue
        other = kept[position]
        is_better = _precedes(hit.learning, other.learning)
        kept[position] = hit if is_better else other
        reasons[(other if is_better else hit).learning.id] = REPEATS
    return kept


def _without_conflicts(hits: Sequence[Hit], conflicts: Conflicts, reasons: dict[str, str], *, most: int) -> list[Hit]:
    """Return the hits without those that another learning contradicts or replaces, whether that one is shown or not.

    A pinned one is shown all the same, and marked. Only the first `most` of those that remain can be shown, so the
    others are not compared.
    """
    kept: list[Hit] = []
    for hit in hits:
        if len(kept) < most and not hit.learning.pinned and conflicts.find_winner(hit.learning):
            reasons[hit.learning.id] = CONFLICTS
        else:
            kept.append(hit)
    return kept


def _find_newer(chosen: Sequence[Hit], conflicts: Conflicts) -> dict[str, str]:
    """Return the ids of the chosen learnings that a newer one updates, each with the id of that one."""
    found = ((hit.learning, conflicts.find_update(hit.learning)) for hit in chosen)
    pinned = (hit.learning for hit in chosen if hit.learning.pinned)
    lost = ((learning, conflicts.find_winner(learning)) for learning in pinned)
    return {older.id: newer.id for older, newer in (*found, *lost) if newer}


def _precedes(learning: Learning, other: Learning) -> bool:
    """Return whether a learning is shown instead of another that says the same thing: a person's, or the newer one."""
    if is_persons(learning) != is_persons(other):
        return is_persons(learning)
    return learning.pinned == other.pinned and learning.created_at > other.created_at


class Conflicts:
    """Learnings that may be said together, for comparisons with each other.

    Two conflict if the newer one tells of a change of what the older one is about, or if they contradict each other.
    Reading statements takes long, so contradictions are looked for only between learnings whose titles share most of
    what their words weigh: a word weighs less if more of the titles contain it.
    """

    def __init__(self, learnings: Iterable[Learning], both_hold: BothHold) -> None:
        """`both_hold` returns the pairs of ids that a person has judged to be no conflict; it is called if needed."""
        self._find_both_hold = both_hold
        titles = [(learning, frozenset(words(learning.title))) for learning in learnings]
        counts = Counter(stem for _, title in titles for stem in title)
        self._weights = {stem: math.log1p(len(titles) / count) for stem, count in counts.items()}
        self._titles = [(learning, title, self._weigh(title)) for learning, title in titles]
        self._subjects: dict[str, Subject] = {}

    def find_winner(self, learning: Learning) -> Learning | None:
        """Return a learning that is said instead of this one: a person's, a vouched one, or the newer one."""
        rank = _rank_in_conflict(learning)
        rivals = [other for other, *_ in self._titles if _rank_in_conflict(other) > rank]
        by_change = (other for other in rivals if self._is_replaced(*_by_age(learning, other)))
        close = (other for other in self._find_close(learning) if _rank_in_conflict(other) > rank)
        contrary = (other for other in close if _compare().contradict(*_by_age(learning, other)))
        return self._find_first(learning, by_change) or self._find_first(learning, contrary)

    def find_update(self, learning: Learning) -> Learning | None:
        """Return a newer learning that somebody vouches for and that differs from this one only in numbers."""
        newer = (other for other in self._find_close(learning) if other.vouched and _age(other) > _age(learning))
        updates = (other for other in newer if _compare().differ_in_numbers(learning, other))
        return self._find_first(learning, updates)

    def _find_first(self, learning: Learning, rivals: Iterable[Learning]) -> Learning | None:
        """Return the first rival with which a person has not said that both hold."""
        return next((other for other in rivals if frozenset((learning.id, other.id)) not in self._both_hold), None)

    @cached_property
    def _both_hold(self) -> Collection[frozenset[str]]:
        return self._find_both_hold()

    def _find_close(self, learning: Learning) -> Iterator[Learning]:
        """Find the learnings whose titles are about the same."""
        title = frozenset(words(learning.title))
        weight = self._weigh(title)
        for other, their_title, their_weight in self._titles:
            shared = self._weigh(title & their_title) if other.id != learning.id else 0.0
            lighter, heavier = sorted((weight, their_weight))
            if shared and shared >= _MIN_SHARED_OF_LIGHTER * lighter and shared >= _MIN_SHARED_OF_HEAVIER * heavier:
                yield other

    def _is_replaced(self, older: Learning, newer: Learning) -> bool:
        """Return whether a newer learning tells of a change of what an older one is about."""
        return newer.id in self._telling and _compare().replaces(self._subject(newer), self._subject(older))

    @cached_property
    def _telling(self) -> set[str]:
        """The ids of the learnings that tell of a change."""
        return {one.id for one, *_ in self._titles if speaks_of_change(f"{one.title} {one.paragraphs}")}

    def _subject(self, learning: Learning) -> Subject:
        if learning.id not in self._subjects:
            self._subjects[learning.id] = _compare().Subject(learning)
        return self._subjects[learning.id]

    def _weigh(self, stems: frozenset[str]) -> float:
        return sum(self._weights[stem] for stem in stems)


def _compare() -> ModuleType:
    import learnt.weigh.compare  # most briefs have nothing to compare

    return learnt.weigh.compare


def _by_age(one: Learning, other: Learning) -> tuple[Learning, Learning]:
    return (one, other) if _age(one) < _age(other) else (other, one)


def _rank_in_conflict(learning: Learning) -> tuple[object, ...]:
    return is_persons(learning), learning.vouched, _age(learning)


def _age(learning: Learning) -> tuple[int, str]:
    return learning.created_at, learning.id


class LearningWords:
    """A learning's words for comparisons; they are split on first use."""

    def __init__(self, learning: Learning) -> None:
        self._learning = learning

    @cached_property
    def _title(self) -> set[str]:
        return set(words(self._learning.title))

    @cached_property
    def _text(self) -> set[str]:
        return set(words(self._learning.paragraphs))

    @cached_property
    def _all(self) -> set[str]:
        return self._title | self._text

    def _list_numbers(self) -> set[str]:
        return set(re.findall(r"\d+(?:\.\d+)*", f"{self._learning.title} {self._learning.paragraphs}"))

    def repeats(self, other: LearningWords) -> bool:
        """Return whether two learnings say the same thing.

        They do if they share most of their words, and also most of the words that are not in the titles: a title often
        repeats the first sentence of the text, so the rest of the text must be compared, too. Their numbers must be the
        same: one digit can be the whole difference.
        """
        if not share_most_words(self._all, other._all):
            return False
        mine, theirs = self._learning, other._learning
        # The opposite of what a person says must not stand beside it, nor a copy in another category.
        is_own_kind = is_persons(mine) == is_persons(theirs)
        if is_own_kind and (mine.polarity, mine.category) != (theirs.polarity, theirs.category):
            return False
        titles = self._title | other._title
        my_rest, their_rest = self._text - titles, other._text - titles
        is_same_text = (not my_rest and not their_rest) or share_most_words(my_rest, their_rest)
        return is_same_text and self._list_numbers() == other._list_numbers()


class Originals:
    """The learnings among others that people vouch for."""

    def __init__(self, learnings: Iterable[Learning]) -> None:
        self._originals = [learning for learning in learnings if is_persons(learning)]

    @cached_property
    def _titles(self) -> list[tuple[Learning, _Title]]:
        """The originals with their titles, which are read only if there are learnings to compare with them."""
        return [(original, _read_title(original)) for original in self._originals]

    def of(self, learning: Learning) -> list[Learning]:
        """Return the people's learnings of which somebody else's learning is a near copy."""
        if not self._originals or is_persons(learning):
            return []
        title = _read_title(learning)
        return [original for original, theirs in self._titles if _is_near_copy(title, theirs)]


def without_twins(hits: Sequence[Hit], before: Iterable[Hit] = ()) -> list[Hit]:
    """Return the hits without those that say word for word what another one says, or one of those before.

    Of two, a person's is kept, otherwise the newer one.
    """
    said = {_read_out(hit.learning) for hit in before}
    kept: dict[tuple[str, ...], Hit] = {}
    for hit in sorted(hits, key=_rank_twin):
        kept.setdefault(_read_out(hit.learning), hit)
    return [hit for hit in hits if (text := _read_out(hit.learning)) not in said and kept[text] is hit]


def _rank_twin(hit: Hit) -> tuple[bool, int, str]:
    return not is_persons(hit.learning), -hit.learning.created_at, hit.learning.id


def _read_out(learning: Learning) -> tuple[str, ...]:
    """Return everything that a brief may say of a learning."""
    return (
        learning.polarity,
        learning.title,
        learning.context,
        learning.observation,
        learning.implication,
        learning.action,
    )


def without_copies(learnings: Collection[Learning]) -> list[Learning]:
    """Return the learnings without near copies of those among them that people vouch for."""
    originals = Originals(learnings)
    return [learning for learning in learnings if not originals.of(learning)]


class _Title(Value):
    """The words of a title, and those of them that are code."""

    words: frozenset[str]
    code: frozenset[str]


def _read_title(learning: Learning) -> _Title:
    code = " ".join(learning.title.split("`")[1::2])
    return _Title(words=frozenset(words(learning.title)), code=frozenset(words(code)))


def _is_near_copy(title: _Title, original: _Title) -> bool:
    shared, both = len(title.words & original.words), len(title.words | original.words)
    has_its_code = bool(original.code) and original.code <= title.words
    return bool(shared) and shared >= (_MIN_SHARE_WITH_CODE if has_its_code else _MIN_SHARE) * both
