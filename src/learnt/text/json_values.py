"""Read single values from untrusted JSON; a value that is missing or has another type is None or empty."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def parsed(text: str) -> dict[str, Any]:
    """Return the JSON object that a text contains; empty if the text is anything else."""
    if not text.lstrip().startswith("{"):
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def dig(value: object, *keys: str) -> Any:
    """Return the value at a path of keys; None if there is no such value."""
    for key in keys:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def text_of(value: object) -> str:
    """Return a string unchanged; empty for anything else."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int | None:
    """Return a count as a whole number; None for anything else."""
    number = amount(value)
    return None if number is None else int(number)


def amount(value: object) -> float | None:
    """Return a number that is not negative; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e15 else None  # excludes NaN and infinity, too


def total(counts: Sequence[int | None]) -> int | None:
    """Return the sum of the counts that are not None; None if there are none."""
    known_counts = [count for count in counts if count is not None]
    return sum(known_counts) if known_counts else None
