"""What time does to learnings: the unused lose a little confidence with every month.

A period counts from creation, the last showing or the last decay, whichever came last, so that running it twice
changes nothing.
"""

from __future__ import annotations

from learnt.model import LEAST_CONFIDENCE, Learning
from learnt.weigh.confidence import within_bounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PERIOD_MS = 30 * 24 * 60 * 60 * 1000
_LOSS = 0.02


def decayed(learning: Learning, now_ms: int) -> dict[str, Any]:
    """Return what time changes of a learning; nothing, when no whole period has passed."""
    since = max(learning.created_at, learning.last_injected_at or 0, learning.last_decayed_at or 0)
    periods = max(0, now_ms - since) // PERIOD_MS
    if not periods or learning.confidence <= LEAST_CONFIDENCE:
        return {}
    return {
        "confidence": within_bounds(learning.confidence - _LOSS * periods),
        "last_decayed_at": since + periods * PERIOD_MS,
    }
