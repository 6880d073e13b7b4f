"""Take single things out of JSON that others wrote: what is not there, or not as expected, is None or empty."""

from __future__ import annotations

import json
from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def parsed(text: str) -> dict[str, Any]:
    """Return the JSON object that a text is, empty when it is none."""
    if not text.lstrip().startswith("{"):
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def dig(found: object, *keys: str) -> Any:
    """Return what lies under the keys, or None where the way ends."""
    for key in keys:
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found


def text_of(found: object) -> str:
    """Return a string as it is, and nothing for anything else."""
    return found if isinstance(found, str) else ""


def count(found: object) -> int | None:
    """Return a number of tokens, or None for what is none."""
    number = amount(found)
    return None if number is None else int(number)


def amount(found: object) -> float | None:
    """Return a figure that is not negative, or None for what is none."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if 0 <= found < 1e15 else None  # also refuses NaN and infinity


def total(figures: Sequence[int | None]) -> int | None:
    """Return the sum of the figures that are known, or None when none is."""
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None
