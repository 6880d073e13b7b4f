"""Durations, and how long ago something was, in words."""

from __future__ import annotations

_STEPS = ((365, "year"), (30, "month"), (7, "week"), (1, "day"))
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
DAY_S = DAY_MS // 1000
WEEK_MS = 7 * DAY_MS
MONTH_MS = 30 * DAY_MS


def age(then_ms: int, now_ms: int) -> str:
    """Return how long ago `then_ms` was, in the largest whole unit from days to years."""
    days = max(0, now_ms - then_ms) // DAY_MS
    for length, unit in _STEPS:
        if days >= length:
            count = days // length
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "today"


def ago(then_ms: int, now_ms: int) -> str:
    """Return how long ago `then_ms` was; within the last day, in hours or minutes."""
    passed = max(0, now_ms - then_ms)
    if passed >= DAY_MS:
        return age(then_ms, now_ms)
    if passed < MINUTE_MS:
        return "just now"
    return f"{passed // HOUR_MS} h ago" if passed >= HOUR_MS else f"{passed // MINUTE_MS} min ago"
