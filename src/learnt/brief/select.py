"""Which categories of learnings an agent sees, and which few learnings a brief contains.

A learning counts as `general` if it has no category, or one that is assigned to no agent; otherwise no agent would see
it. Every agent sees general learnings. People, and agents without assigned categories, see everything.

A brief does not guess: a learning must have a trigger that holds, or share enough significant words with the task.
Pinned learnings come first, then those with triggers, then by relevance and confidence. Of several learnings that say
the same, only the newest is shown. One slot is reserved for a relevant learning of low confidence that was rarely
shown, so that it can prove itself.
"""

from __future__ import annotations

from learnt.model import EVERYTHING, GENERAL, PARAGRAPHS, Hit, Value
from learnt.text.titles import key_of, share_most_words
from learnt.text.words import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from learnt.model import Learning

    Mapped = Mapping[str, tuple[str, ...]]

_TRIAL_RELEVANCE = 0.5
_TRIAL_MARKS = 3
_TRIAL_SHOWINGS = 10


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


def assigned_categories(agents: Mapped) -> set[str]:
    """Return the categories that are assigned to any agent, without the general one."""
    return {category for categories in agents.values() for category in categories} - {GENERAL, EVERYTHING}


def visible_categories(agent: str, agents: Mapped) -> tuple[str, ...]:
    """Return the categories that an agent sees, in the order of the settings; `general` is last unless it is listed."""
    categories = agents.get(key_of(agent), (EVERYTHING,))
    if EVERYTHING in categories:
        return (*sorted(assigned_categories(agents)), GENERAL)
    return tuple(dict.fromkeys((*categories, GENERAL)))


def hidden_categories(agent: str, agents: Mapped, categories: Iterable[str]) -> tuple[str, ...]:
    """Return the categories that an agent does not see, in the spelling of the learnings."""
    hidden = assigned_categories(agents) - set(visible_categories(agent, agents))
    return tuple(category for category in categories if key_of(category) in hidden)


def is_restricted(agent: str, agents: Mapped) -> bool:
    """Say whether there are categories that an agent does not see."""
    return bool(assigned_categories(agents) - set(visible_categories(agent, agents)))


def spellings(category: str, agents: Mapped, categories: Iterable[str]) -> tuple[str, ...]:
    """Return the spellings of a category among all categories of learnings; `general` includes the empty one."""
    if category == GENERAL:
        others = assigned_categories(agents)
        return ("", *(spelling for spelling in categories if key_of(spelling) not in others))
    return tuple(spelling for spelling in categories if key_of(spelling) == category)


def unassigned_categories(agents: Mapped, categories: Iterable[str]) -> list[str]:
    """Return the categories that count as general because they are assigned to no agent."""
    return [category for category in categories if key_of(category) not in assigned_categories(agents) | {GENERAL}]


def categories_without_learnings(wanted: Iterable[str], categories: Collection[str]) -> list[str]:
    """Return the wanted categories that no learning has."""
    present = {*map(key_of, categories), GENERAL, EVERYTHING}
    return [category for category in wanted if category not in present]


def choose(
    hits: Sequence[Hit],
    rules: Rules,
    *,
    known: Mapping[str, str],
    impact: Callable[[Learning], float],
) -> list[Choice]:
    """Return every hit, the chosen ones first and in the order of the brief.

    `known`: reasons to leave out learnings, by id. `impact` decides between equally good learnings.
    """
    ranked = sorted(hits, key=lambda hit: _rank(hit, impact(hit.learning)))
    reasons = {hit.learning.id: known.get(hit.learning.id) or _reason_against(hit, rules) for hit in ranked}
    fitting = [hit for hit in ranked if not reasons[hit.learning.id]]
    trusted = _without_repetitions([hit for hit in fitting if not _on_trial(hit, rules)], (), reasons)
    trials = _without_repetitions([hit for hit in fitting if _on_trial(hit, rules)], trusted, reasons)
    slots = max(0, min(rules.trial_slots, rules.max_learnings - bool(trusted)))
    reasons.update((hit.learning.id, "not trusted enough, and no trial slot left") for hit in trials[slots:])
    pinned = sum(hit.learning.pinned for hit in trusted)
    room = min(rules.max_learnings, max(pinned, rules.max_learnings - len(trials[:slots])))
    chosen = [*trusted[:room], *trials[: min(slots, rules.max_learnings - len(trusted[:room]))]]
    ids = {hit.learning.id for hit in chosen}
    choices = [
        Choice(
            hit=hit,
            on_trial=_on_trial(hit, rules),
            left_out="" if hit.learning.id in ids else reasons[hit.learning.id] or "enough others fit better",
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
        -worth,
        -hit.learning.created_at,
        hit.learning.id,
    )


def _on_trial(hit: Hit, rules: Rules) -> bool:
    return hit.learning.confidence < rules.min_confidence and not hit.learning.pinned


def _reason_against(hit: Hit, rules: Rules) -> str:
    if not hit.trigger and hit.relevance < rules.min_relevance:
        return "not relevant enough"
    if not _on_trial(hit, rules):
        return ""
    if _is_tried(hit.learning):
        return "not trusted enough, and tried often enough"
    if not hit.trigger and hit.relevance < _TRIAL_RELEVANCE:
        return "not relevant enough for a trial"
    return ""


def _is_tried(learning: Learning) -> bool:
    """Say whether a learning on trial was marked, or shown without a helpful mark, often enough to end the trial."""
    marks = learning.times_helpful + learning.times_not_helpful
    return marks >= _TRIAL_MARKS or (learning.times_injected >= _TRIAL_SHOWINGS and not learning.times_helpful)


def _without_repetitions(hits: Sequence[Hit], before: Sequence[Hit], reasons: dict[str, str]) -> list[Hit]:
    """Return the hits without repetitions; of two that say the same, the newer one gets the better position."""
    kept: list[Hit] = []
    words_by_id = {hit.learning.id: LearningWords(hit.learning) for hit in (*before, *hits)}
    for hit in hits:
        mine = words_by_id[hit.learning.id]
        if any(mine.repeats(words_by_id[other.learning.id]) for other in before):
            reasons[hit.learning.id] = "repeats another"
            continue
        same = (number for number, other in enumerate(kept) if mine.repeats(words_by_id[other.learning.id]))
        position = next(same, None)
        if position is None:
            kept.append(hit)
            continue
        other = kept[position]
        is_newer = hit.learning.created_at > other.learning.created_at
        takes_over = is_newer and hit.learning.pinned == other.learning.pinned
        kept[position] = hit if takes_over else other
        reasons[(other if takes_over else hit).learning.id] = "repeats another"
    return kept


class LearningWords:
    """The words of a learning for comparisons, split on first use."""

    def __init__(self, learning: Learning) -> None:
        self._learning = learning
        self._words: tuple[set[str], set[str]] | None = None

    def words(self) -> tuple[set[str], set[str]]:
        """Return the words of the title, and those of the paragraphs."""
        if self._words is None:
            paragraphs = " ".join(str(getattr(self._learning, field)) for field in PARAGRAPHS)
            self._words = set(words(self._learning.title)), set(words(paragraphs))
        return self._words

    def repeats(self, other: LearningWords) -> bool:
        """Say whether two learnings say the same: most of their words are equal, also without those of the titles.

        Titles often repeat the first sentence of the text, so the rest of the text makes the difference.
        """
        mine, theirs = self._learning, other._learning
        if (mine.polarity, mine.category) != (theirs.polarity, theirs.category):
            return False
        (title, text), (their_title, their_text) = self.words(), other.words()
        titles = title | their_title
        return share_most_words(title | text, their_title | their_text) and (
            (not text - titles and not their_text - titles) or share_most_words(text - titles, their_text - titles)
        )
