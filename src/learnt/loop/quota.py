"""Recognise that a client's quota or rate limit is exhausted, and read when it ends.

Only what a client reports as its error is read, never an agent's words: a task may be about rate limits.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

FIRST_PAUSE_S, LONGEST_PAUSE_S = 60.0, 1_800.0
_EXHAUSTED = re.compile(
    r"rate.?limit|too many requests|(?:status|code|error|http)\W{0,3}(?:429|529)\b|overloaded_error"
    r"|(?:usage|session|hour|daily|weekly|monthly|request|spend(?:ing)?)[ -]limit\b.{0,20}\b(?:reached|exceeded)"
    r"|(?:hit|reached|exceeded) your .{0,40}\b(?:limit|quota|allowance)"
    r"|(?<!disk )quota.{0,20}\b(?:exceeded|exhausted|reached)|exhausted your .{0,40}\b(?:capacity|quota)"
    r"|insufficient_quota|RESOURCE_EXHAUSTED|credit balance is too low",
    re.IGNORECASE,
)
_UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_AMOUNT = r"\d+(?:\.\d+)?\s*(?:ms|(?:d(?:ays?)?|h(?:(?:ou)?rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z]))"
_AFTER = re.compile(
    rf"\b(?:again|retry|resets?|wait)\b[^.\n\d]{{0,40}}?((?:{_AMOUNT}[\s,]*(?:and\s)?)+)", re.IGNORECASE
)
_NUMBER_AND_UNIT = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[dhms])", re.IGNORECASE)
_SECONDS = re.compile(r"retry.?after\W{1,3}(\d+(?:\.\d+)?)\b", re.IGNORECASE)
_EPOCH = re.compile(r"\|\s?(\d{10})\b")
_CLOCK = re.compile(r"\b(?:resets?|again) (?:at )?(\d{1,2})(?::(\d\d))?\s?([ap])m\b", re.IGNORECASE)


def is_exhausted(error: str) -> bool:
    """Return whether a client reports that its quota or rate limit is exhausted."""
    return _EXHAUSTED.search(error) is not None


def find_pause_s(error: str, *, now: datetime) -> float | None:
    """Return for how long the client says it will not answer; None if it does not say. `now` is the local time."""
    epoch = _EPOCH.search(error)
    if epoch:
        return max(0.0, int(epoch[1]) - now.timestamp())
    after = _AFTER.search(error)
    if after:
        return sum(float(number) * _UNITS[unit.lower()] for number, unit in _NUMBER_AND_UNIT.findall(after[1]))
    seconds = _SECONDS.search(error)
    if seconds:
        return float(seconds[1])
    clock = _CLOCK.search(error)
    if clock and 1 <= int(clock[1]) <= 12:
        hour = int(clock[1]) % 12 + (12 if clock[3].lower() == "p" else 0)
        reset = now.replace(hour=hour, minute=int(clock[2] or 0), second=0, microsecond=0)
        return (reset + timedelta(days=reset <= now) - now).total_seconds()
    return None
