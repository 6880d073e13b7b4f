"""Texts that a person purged, taken out of other texts that repeat them in whole."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

PURGED = "[purged]"
_SHORTEST = 12  # shorter ones occur by chance


def telling(texts: Iterable[str]) -> list[str]:
    """Return the texts that no other text holds by chance, the longest first."""
    return sorted({text for text in texts if len(text) >= _SHORTEST}, key=lambda text: (-len(text), text))


def black_out(text: str, texts: Iterable[str]) -> str:
    """Return a text without the others, as far as they are telling."""
    for sought in telling(texts):
        text = text.replace(sought, PURGED)
    return text
