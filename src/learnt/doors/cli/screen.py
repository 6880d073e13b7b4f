"""Output for people: colour, tables and progress on a terminal, plain text in a pipe.

`rich` is imported only where it draws on a terminal, because its import is slow.
"""

from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Self, TextIO

    from learnt.errors import LearntError

_STYLES = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "dim": "2", "bold": "1"}
_NARROW = 60  # columns below which a table is unreadable
_choice = "auto"


def use_color(choice: str) -> None:
    """Set whether colour is used: auto, always or never."""
    global _choice  # noqa: PLW0603 - one screen for one process
    _choice = choice


def is_terminal(stream: TextIO | None = None) -> bool:
    """Return whether the stream is a terminal."""
    return (stream or sys.stdout).isatty()


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    """Return the text in a style, if colour is wanted."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    wanted = _choice == "always" or (_choice == "auto" and is_terminal(stream) and not plain)
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if wanted else text


def say(text: str = "") -> None:
    """Print a line for a person."""
    print(text)


def note(text: str) -> None:
    """Print a remark on stderr."""
    print(paint(text, "dim", sys.stderr), file=sys.stderr)


def print_error(error: LearntError, subject: str = "") -> None:
    """Print an error and its hint on stderr; `subject`: what it is about, if several things were asked for."""
    about = f"{subject}: " if subject else ""
    print(f"{paint('error:', 'red', sys.stderr)} {about}{error.message}", file=sys.stderr)
    if error.hint:
        print(f"\n{paint('hint:', 'cyan', sys.stderr)} {error.hint}", file=sys.stderr)


def show_json(content: Any) -> None:
    """Print a result for a program."""
    print(json.dumps(content, ensure_ascii=False, indent=2))


def show_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, wide: int, always_heads: bool = False) -> None:
    """Print rows: a table on a terminal, with column `wide` filling the width; otherwise padded columns.

    Padded columns get heads only with `always_heads`.
    """
    if not is_terminal() or os.get_terminal_size().columns < _NARROW:
        rows = [heads, *rows] if always_heads else rows
        widths = [max((len(row[column]) for row in rows), default=0) for column in range(len(heads))]
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    colored = paint("x", "bold") != "x"
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold" if colored else "")
    for position, head in enumerate(heads):
        table.add_column(head, ratio=1 if position == wide else None, no_wrap=position != wide, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(no_color=not colored, color_system="auto" if colored else None).print(table)


class Progress:
    """A progress bar on a terminal; nothing in a pipe."""

    def __init__(self, what: str, total: int | None) -> None:
        self._what = what
        self._total = total
        self._close: Callable[[], None] = lambda: None
        self.show: Callable[[int], None] = lambda done: None

    def __enter__(self) -> Self:
        if is_terminal(sys.stderr):
            from rich.console import Console
            from rich.progress import Progress as Bar

            bar = Bar(console=Console(stderr=True), transient=True)
            task = bar.add_task(self._what, total=self._total)
            bar.start()
            self._close = bar.stop
            self.show = lambda done: bar.update(task, completed=done)
        return self

    def __exit__(self, *_error: object) -> None:
        self._close()


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 task`, `2 tasks`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def format_field(name: str, value: Any) -> Any:
    """Return the value of a field for a person: times are formatted, the rest stays."""
    return format_time(value) if name.endswith("_at") and isinstance(value, int) else value


def format_time(at_ms: int, *, seconds: bool = False) -> str:
    """Return a time in the local time zone."""
    return time.strftime(f"%Y-%m-%d %H:%M{':%S' * seconds}", time.localtime(at_ms / 1000))


def now_ms() -> int:
    """Return the time in UTC milliseconds."""
    return time.time_ns() // 1_000_000
