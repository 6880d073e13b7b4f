"""Regular expressions that are compiled on first use, because a process uses only a few of them."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _LazyPattern:
    """A regular expression that is compiled on first use."""

    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(*self._arguments), name)
        setattr(self, name, method)
        return method


def lazy_pattern(expression: str, flags: int = 0) -> re.Pattern[str]:
    """Return a regular expression that is compiled on first use."""
    return _LazyPattern(expression, flags)  # type: ignore[return-value]
