"""Expressions that are compiled when they are first used: a hook uses few of those that its modules have."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def late(expression: str, flags: int = 0) -> re.Pattern[str]:
    """Return what can do all that a compiled expression can."""
    return _Late(expression, flags)  # type: ignore[return-value]


class _Late:
    def __init__(self, expression: str, flags: int) -> None:
        self._expression = expression
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._expression, self._flags), name)
        setattr(self, name, found)
        return found
