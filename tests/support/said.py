"""Invented final words of agents (`said.txt`) and invented commit messages (`commit_messages.txt`), with their lessons.

Texts are separated by `%%`. Above a text stand its lessons, one in a line: words that must stand together in one
learning. A text without lessons teaches nothing. The projects, tools and names differ from text to text.
"""

from __future__ import annotations

from pathlib import Path

Said = tuple[str, tuple[tuple[str, ...], ...]]


def read_said(name: str) -> list[Said]:
    """Return the texts of a file, each with its lessons."""
    pieces = (
        (Path(name) if name.startswith("/") else Path(__file__).parent / name)
        .read_text(encoding="utf-8")
        .split("\n%%\n")
    )
    return [_read(piece) for piece in pieces]


def _read(piece: str) -> Said:
    head, _, text = piece.partition("\n") if piece.startswith("\n") else piece.partition("\n\n")
    lessons = (line.removeprefix("learn: ").split(" | ") for line in head.splitlines() if line)
    return text, tuple(tuple(lesson) for lesson in lessons)


def has_lesson(texts: list[str], lesson: tuple[str, ...]) -> bool:
    """Return whether one of the texts of learnings has all words of a lesson."""
    return any(all(word.lower() in text.lower() for word in lesson) for text in texts)
