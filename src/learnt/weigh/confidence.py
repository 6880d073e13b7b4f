"""A learning's confidence, impact and stage.

Confidence is between 0.1 and 1.0. Marks change it, and an unused learning loses a little every month, unless a person
vouches for it. A month starts at the creation, the last use or the last decay, whichever is latest, so decaying twice
changes nothing.
"""

from __future__ import annotations

from learnt.model import LEAST_CONFIDENCE, Learning
from learnt.text.times import MONTH_MS
from learnt.weigh.provenance import PERSON_CONFIDENCE, is_persons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Neither the category nor the kind of discovery lifts it: both are chosen by the author.
_START = 0.5
_LIKE = 0.05
_HELPFUL = 0.05
_NOT_HELPFUL = -0.1
DECAY_PERIOD_MS = MONTH_MS
_LOSS = 0.02
_PROVEN_AFTER = 3
_RETIRED = ("archived", "superseded")


def start(origin: str) -> float:
    """Return the confidence of a new learning with this origin."""
    return PERSON_CONFIDENCE if origin == "person" else _START


def after_mark(confidence: float, *, helpful: bool) -> float:
    """Return the confidence after one mark."""
    return _within_bounds(confidence + (_HELPFUL if helpful else _NOT_HELPFUL))


def after_like(confidence: float) -> float:
    """Return the confidence after one like."""
    return _within_bounds(confidence + _LIKE)


def decay(learning: Learning, now_ms: int) -> dict[str, Any]:
    """Return the changes that a learning's age causes; empty if a whole period has not passed yet."""
    since = max(learning.created_at, learning.last_injected_at or 0, learning.last_decayed_at or 0)
    periods = max(0, now_ms - since) // DECAY_PERIOD_MS
    if not periods or learning.confidence <= LEAST_CONFIDENCE or is_persons(learning):
        return {}
    return {
        "confidence": _within_bounds(learning.confidence - _LOSS * periods),
        "last_decayed_at": since + periods * DECAY_PERIOD_MS,
    }


def _within_bounds(confidence: float) -> float:
    """Return the confidence within its bounds, rounded to six digits."""
    return round(min(1.0, max(LEAST_CONFIDENCE, confidence)), 6)


def impact(learning: Learning) -> float:
    """Return the number of helpful marks minus the number of other marks, plus a fraction below 1 for recurrences.

    So one mark always weighs more than any number of recurrences.
    """
    recurrence_share = min(0.99, learning.recurrences / (learning.recurrences + 1))
    return round(learning.times_helpful - learning.times_not_helpful + recurrence_share, 2)


def stage(learning: Learning) -> str:
    """Return a learning's stage: `trial`, `proven` (by marks) or `retired`."""
    if learning.status in _RETIRED:
        return "retired"
    return "proven" if is_proven(learning) else "trial"


def is_proven(learning: Learning) -> bool:
    """Return whether a learning is not retired and has enough helpful marks."""
    helpful = learning.times_helpful
    return learning.status not in _RETIRED and helpful >= _PROVEN_AFTER and helpful > learning.times_not_helpful
