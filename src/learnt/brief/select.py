"""Choose the few learnings that a brief carries, and say of every other why it was left out.

A brief stays silent rather than guess: a learning must have a trigger that holds, or share enough of the task's telling
words. Pinned ones come first, then triggers, then what fits and is trusted. Doubtful learnings get a trial slot, so
that they can ever prove themselves.
"""

from __future__ import annotations

from learnt.model import Hit, Value
from learnt.text.words import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_REPEATED_SHARE = 0.8
_TRIAL_RELEVANCE = 0.5
_TRIAL_MARKS = 3


class Rules(Value):
    """What may stand in a brief."""

    max_learnings: int = 5
    min_confidence: float = 0.6
    min_relevance: float = 0.35
    trial_slots: int = 1


class Choice(Value):
    """One learning that was considered: chosen, or left out for a reason."""

    hit: Hit
    on_trial: bool = False
    left_out: str = ""


def choose(hits: Sequence[Hit], rules: Rules, *, seen: frozenset[str] = frozenset()) -> list[Choice]:
    """Return every hit, the chosen ones first and in the order of the brief."""
    chosen: list[Choice] = []
    others: list[Choice] = []
    trials = 0
    for hit in sorted(hits, key=_rank):
        on_trial = hit.learning.confidence < rules.min_confidence and not hit.learning.pinned
        reason = _reason_against(hit, rules, seen, chosen, on_trial=on_trial, trials=trials)
        if reason:
            others.append(Choice(hit=hit, on_trial=on_trial, left_out=reason))
            continue
        trials += on_trial
        chosen.append(Choice(hit=hit, on_trial=on_trial))
    return chosen + others


def _rank(hit: Hit) -> tuple[object, ...]:
    worth = hit.relevance * hit.learning.confidence
    return (not hit.learning.pinned, not hit.trigger, -worth, -hit.learning.created_at, hit.learning.id)


def _reason_against(
    hit: Hit, rules: Rules, seen: frozenset[str], chosen: Sequence[Choice], *, on_trial: bool, trials: int
) -> str:
    checks = {
        "shown before in this conversation": hit.learning.id in seen,
        "not relevant enough": not hit.trigger and hit.relevance < rules.min_relevance,
        "not trusted enough, and tried often enough": on_trial and _is_tried(hit),
        "not trusted enough, and no trial slot left": on_trial and trials >= rules.trial_slots,
        "not relevant enough for a trial": on_trial and not hit.trigger and hit.relevance < _TRIAL_RELEVANCE,
        "repeats another": any(_repeats(hit, other.hit) for other in chosen),
        "enough others fit better": len(chosen) >= rules.max_learnings,
    }
    return next((reason for reason, holds in checks.items() if holds), "")


def _is_tried(hit: Hit) -> bool:
    """Say whether enough marks speak of a doubtful learning: a trial must end."""
    return hit.learning.times_helpful + hit.learning.times_not_helpful >= _TRIAL_MARKS


def _repeats(one: Hit, other: Hit) -> bool:
    """Say whether two learnings tell the same: most of the words of both are the same."""
    ours, theirs = (set(words(f"{hit.learning.title} {hit.learning.action}")) for hit in (one, other))
    same_side = one.learning.polarity == other.learning.polarity and one.learning.category == other.learning.category
    return same_side and bool(ours) and len(ours & theirs) > _REPEATED_SHARE * max(len(ours), len(theirs))
