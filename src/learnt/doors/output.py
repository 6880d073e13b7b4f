"""Output for the command line and the MCP server: colour, tables and progress, and sentences that both use.

Colour, tables and progress bars are printed on a terminal only; a pipe gets plain text. `rich` is imported only where
it draws on a terminal, because its import is slow.

Whatever a text contains, only our own colours reach the terminal as sequences.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time

from learnt.text.clean import clean
from learnt.text.titles import OWN_LINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Self, TextIO

    from learnt.errors import LearntError
    from learnt.model import Debrief, Learning
    from learnt.store.mined import StoredDiscovery

PURGED = "(purged)"
NOT_KNOWN = "not known to be delivered"
_STYLES = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "dim": "2", "bold": "1"}
_COLOUR = f"(\x1b\\[(?:0|{'|'.join(_STYLES.values())})m)"
_MIN_TABLE_COLUMNS = 60  # a table is unreadable on a narrower terminal
_choice = "auto"


def use_color(choice: str) -> None:
    """Set when colour is used: auto, always or never."""
    global _choice  # noqa: PLW0603 - a process has only one screen
    _choice = choice


def is_terminal(stream: TextIO | None = None) -> bool:
    """Return whether the stream, or stdout, is a terminal."""
    return (stream or sys.stdout).isatty()


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    """Return the text in a style, or unchanged if colour is off."""
    return f"\x1b[{_STYLES[style]}m{clean(text)}\x1b[0m" if _wants_color(stream) else text


def _wants_color(stream: TextIO | None) -> bool:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return _choice == "always" or (_choice == "auto" and is_terminal(stream) and not plain)


def printable(text: str, stream: TextIO | None = None) -> str:
    """Return a text for a terminal, without sequences and invisible characters other than our own colours."""
    if not _wants_color(stream):
        return clean(text)
    return "".join(part if place % 2 else clean(part) for place, part in enumerate(re.split(_COLOUR, text)))


def say(text: str = "") -> None:
    """Print a line for a person."""
    print(printable(text))


def note(text: str) -> None:
    """Print a remark on stderr."""
    _print_remark(paint(clean(text), "dim", sys.stderr))


def print_error(error: LearntError, subject: str = "") -> None:
    """Print an error and its hint on stderr; `subject` is what the error is about, if the request had several parts."""
    about = f"{subject}: " if subject else ""
    _print_remark(f"{paint('error:', 'red', sys.stderr)} {_indent(about + error.message)}")
    if error.hint:
        # A hint is ours, and may contain lines for a file, where an indent would matter.
        _print_remark(f"\n{paint('hint:', 'cyan', sys.stderr)} {clean(error.hint)}")


def _print_remark(text: str) -> None:
    """Print a text on stderr; inside an attempt of `learnt work`, its lines are marked as ours."""
    if os.environ.get("LEARNT_TASK"):
        text = "\n".join(f"{OWN_LINE}{line}" for line in text.split("\n") if line)
    print(text, file=sys.stderr)


def _indent(text: str) -> str:
    """Return a cleaned text in which only the first line can start like one of ours."""
    return clean(text).replace("\n", "\n  ")


def show_json(content: Any) -> None:
    """Print a result for a program."""
    print(format_json(content, indent=2))


def format_json(content: Any, indent: int | None = None) -> str:
    """Return JSON in which characters that a terminal would obey, or not show, are escaped."""
    text = json.dumps(content, ensure_ascii=False, indent=indent)
    if clean(text) == text:
        return text
    return "".join(letter if clean(letter) == letter else json.dumps(letter)[1:-1] for letter in text)


def show_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, wide: int, always_heads: bool = False) -> None:
    """Print rows as a table on a terminal, where column `wide` fills the width, and otherwise as padded columns.

    Padded columns have heads only with `always_heads`.
    """
    rows = [[clean(cell).replace("\n", " ") for cell in row] for row in rows]
    if not is_terminal() or os.get_terminal_size().columns < _MIN_TABLE_COLUMNS:
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
    """A progress bar on a terminal; in a pipe, nothing is printed."""

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


def format_outcomes(outcomes: Mapping[str, int]) -> str:
    """Return how many warnings had each outcome: `3 prevented, 1 unknown`."""
    return ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.items() if count)


def format_field(name: str, value: Any) -> Any:
    """Return a field's value as a person reads it: times are formatted, other values are unchanged."""
    return format_time(value) if name.endswith("_at") and isinstance(value, int) else value


def format_time(at_ms: int, *, seconds: bool = False) -> str:
    """Return a time in the local time zone."""
    return time.strftime(f"%Y-%m-%d %H:%M{':%S' * seconds}", time.localtime(at_ms / 1000))


def now_ms() -> int:
    """Return the current time in UTC milliseconds."""
    return time.time_ns() // 1_000_000


def describe_debrief(debrief: Debrief, *, has_given_task: bool, verbose: bool) -> list[str]:
    """Return a debrief's result. It mentions that a task is new if the caller passed its id, which may be misspelt."""
    if debrief.spooled:
        return [f"Saved the output of {debrief.task}; it will be read when the database is available"]
    new = " (a new task)" if debrief.new_task and has_given_task else ""
    lines = [f"Debriefed {debrief.task}{new}: {debrief.result}"]
    parts = {
        "learnt": debrief.learnings,
        "known already": debrief.repeated,
        "helpful": debrief.helpful,
        "not helpful": debrief.not_helpful,
        "invalid marks": [f"{id} ({reason})" for id, reason in debrief.refusals.items()],
    }
    lines += [f"  {name}: {', '.join(ids)}" for name, ids in parts.items() if ids]
    lines += [f"  secrets redacted: {debrief.redactions}"] if debrief.redactions else []
    return [*lines, *(f"  ignored: {reason}" for reason in debrief.ignored if verbose)]


def describe_discovery(stored: StoredDiscovery, titles: Mapping[str, str]) -> str:
    """Return a sentence that says what became of a discovery."""
    if stored.learning:
        return f"Kept {stored.id}: learnt {stored.learning}: {titles.get(stored.learning, PURGED)}"
    return f"Kept {stored.id}; no learning: {stored.skipped}"


def describe_mark(learning: Learning, *, helpful: bool) -> str:
    """Return a sentence that says what a mark did."""
    return f"Marked {learning.id} as {'helpful' if helpful else 'not helpful'}: confidence {learning.confidence:.2f}"


def join_parts(parts: Mapping[str, str]) -> str:
    """Return names and their values on one line, without the empty values."""
    return ", ".join(f"{name}: {value}" for name, value in parts.items() if value)
