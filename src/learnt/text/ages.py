"""Say how long ago something was, as people do."""

from __future__ import annotations

_STEPS = ((365, "year"), (30, "month"), (7, "week"), (1, "day"))
_DAY_MS = 86_400_000


def age(then_ms: int, now_ms: int) -> str:
    """Return the time between two moments in its largest whole unit."""
    days = max(0, now_ms - then_ms) // _DAY_MS
    for length, unit in _STEPS:
        if days >= length:
            count = days // length
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "today"
