"""Say how long ago something was, as people do."""

from __future__ import annotations

_STEPS = ((365, "year"), (30, "month"), (7, "week"), (1, "day"))
_DAY_MS = 86_400_000
_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000


def age(then_ms: int, now_ms: int) -> str:
    """Return the time between two moments in its largest whole unit."""
    days = max(0, now_ms - then_ms) // _DAY_MS
    for length, unit in _STEPS:
        if days >= length:
            count = days // length
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "today"


def ago(then_ms: int, now_ms: int) -> str:
    """Return the same to the minute, for what may have been just now."""
    passed = max(0, now_ms - then_ms)
    if passed >= _DAY_MS:
        return age(then_ms, now_ms)
    if passed < _MINUTE_MS:
        return "just now"
    return f"{passed // _HOUR_MS} h ago" if passed >= _HOUR_MS else f"{passed // _MINUTE_MS} min ago"
