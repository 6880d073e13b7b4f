"""How far a learning has come: on trial, proven by marks, or retired."""

from __future__ import annotations

from learnt.model import Learning

_PROVEN_AFTER = 3


def stage(learning: Learning) -> str:
    """Return `trial`, `proven` or `retired`."""
    if learning.status in ("archived", "superseded"):
        return "retired"
    enough = learning.times_helpful >= _PROVEN_AFTER
    return "proven" if enough and learning.times_helpful > learning.times_not_helpful else "trial"
