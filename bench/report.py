"""A measurement's result: some Markdown, and the bars that it must meet."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    """A limit, described in a sentence, and whether the measurement is within it."""

    text: str
    holds: bool

    def render(self) -> str:
        """Return the bar as a Markdown list item."""
        return f"- {self.text}: **{'holds' if self.holds else 'fails'}**"


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one measurement."""

    title: str
    notes: str
    table: str
    bars: tuple[Bar, ...] = ()

    def render(self) -> str:
        """Return the section as Markdown."""
        pieces = [f"## {self.title}", self.notes, self.table, "\n".join(bar.render() for bar in self.bars)]
        return "\n" + "\n\n".join(piece for piece in pieces if piece)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but the first are aligned to the right."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    rule = [f"{'-' * (width - (column > 0))}{':' * (column > 0)}" for column, width in enumerate(widths)]
    return "\n".join(_line(row, widths) for row in (head, rule, *rows))


def say(text: str) -> None:
    """Print progress on stderr."""
    print(text, file=sys.stderr, flush=True)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    return "| " + " | ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]) + " |"
