"""Cut a long output to what tells most: its beginning, its end, and the lines around errors between them."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Shares of the room: how it began, how it ended; the rest is for errors.
_BEGINNING = 0.25
_END = 0.45
_AROUND = 2
_LINES_A_LIMIT = 10  # one line may take this part of the room at most
_NOTE_ROOM = 40
_ERROR = re.compile(
    r"\b(?:error|exception|traceback|fatal|panic(?:ked)?|fail(?:ed|ure|s)?|cannot|can't|not found|denied|undefined)\b"
    r"|[a-z](?:Error|Exception)\b|^E  |--- FAIL|\bexit (?:code|status) [1-9]",
    re.IGNORECASE,
)
_NO_ERROR = re.compile(r"\b(?:0|no) (?:errors?|fail(?:ed|ures?))\b", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")


def material(text: str, *, limit_chars: int) -> str:
    """Return the text, or what tells most of it within the limit; each gap says how many lines were left out."""
    if len(text) <= limit_chars:
        return text
    lines = [_narrow(line, max(20, limit_chars // _LINES_A_LIMIT)) for line in text.splitlines()]
    first = _fitting(lines, range(len(lines)), int(limit_chars * _BEGINNING))
    last = _fitting(lines, range(len(lines) - 1, first - 1, -1), int(limit_chars * _END))
    kept = {*range(first), *range(len(lines) - last, len(lines))}
    room = limit_chars - _length(lines, kept) - _NOTE_ROOM
    for block in _errors(lines, range(first, len(lines) - last)):
        added = [place for place in block if place not in kept]
        cost = _length(lines, added) + _NOTE_ROOM
        if cost <= room:
            kept.update(added)
            room -= cost
    return _with_gaps(lines, sorted(kept))[:limit_chars]


def _fitting(lines: Sequence[str], places: range, room: int) -> int:
    """Return how many lines, taken in this order, fit into the room."""
    for number, place in enumerate(places):
        room -= len(lines[place]) + 1
        if room < 0:
            return number
    return len(places)


def _errors(lines: Sequence[str], places: range) -> Iterator[range]:
    """Yield the lines around each error, but around the same error only once."""
    seen = set()
    for place in places:
        sign = _DIGITS.sub("", lines[place]).strip()
        if sign not in seen and _ERROR.search(lines[place]) and not _NO_ERROR.search(lines[place]):
            seen.add(sign)
            yield range(max(places.start, place - _AROUND), min(places.stop, place + _AROUND + 1))


def _with_gaps(lines: Sequence[str], kept: Sequence[int]) -> str:
    parts, expected = [], 0
    for place in (*kept, len(lines)):
        if place > expected:
            parts.append(f"[… {place - expected:,} lines left out …]")
        parts += lines[place : place + 1]
        expected = place + 1
    return "\n".join(parts)


def _narrow(line: str, width: int) -> str:
    """Return a line; of a very long one its beginning and its end."""
    half = width // 2 - 3
    return line if len(line) <= width else f"{line[:half]} […] {line[-half:]}"


def _length(lines: Sequence[str], places: Sequence[int] | set[int]) -> int:
    return sum(len(lines[place]) + 1 for place in places)
