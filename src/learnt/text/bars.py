"""A row of numbers as a small chart of one line."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_STEPS = "▁▂▃▄▅▆▇█"
_NONE = "·"


def bars(numbers: Sequence[float | None]) -> str:
    """Return one bar for each number from 0 on, the largest in full height; None is a dot."""
    largest = max((number for number in numbers if number is not None), default=0.0)
    return "".join(_NONE if number is None else _bar(number, largest) for number in numbers)


def _bar(number: float, largest: float) -> str:
    share = number / largest if largest > 0 else 0.0
    return _STEPS[min(len(_STEPS) - 1, int(share * len(_STEPS)))]
