"""What a person sees while `learnt work` runs: on a terminal a live table, in a pipe one line for each event."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Self

from learnt.debrief.sigils import is_sigil
from learnt.doors.output import is_terminal, paint, say
from learnt.loop.work import Notice, Plan
from learnt.model import Value
from learnt.text.clean import clean, fold

if TYPE_CHECKING:
    from rich.table import Table

    from learnt.loop.attempt import AttemptResult

_MIN_COLUMNS = 80  # a table is unreadable on a narrower terminal
_REFRESHES_PER_S = 2


def make_printer(plan: Plan, *, quiet: bool) -> EventPrinter:
    """Return what shows a run to whoever looks."""
    is_wide = is_terminal() and os.get_terminal_size().columns >= _MIN_COLUMNS
    if quiet or not is_wide or os.environ.get("TERM") == "dumb":
        return EventPrinter(quiet=quiet)
    return LiveTable(plan)


class EventPrinter:
    """Shows what happens while agents work, one line per event."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._one_at_a_time = threading.Lock()
        self._spent = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def show(self, event: Notice) -> None:
        """Show an event; it may come from any thread."""
        if self._quiet:
            return
        with self._one_at_a_time:
            try:
                for line in self._lines(event):
                    self._print(line)
                sys.stdout.flush()
            except OSError:
                self._quiet = True  # the reader has closed the pipe; the work continues

    def _print(self, line: str) -> None:
        say(line)

    def _lines(self, event: Notice) -> list[str]:
        if event.what == "started":
            return [paint(f"▶ {event.task}  attempt {event.attempt}  {event.title}", "bold")]
        if event.what == "progress":
            return [] if is_sigil(event.text) else [paint(f"  {event.task}  {event.text}", "dim")]
        if event.what == "given back":
            return []
        if event.what == "paused":
            return [paint(f"… {event.text}", "yellow")]
        if event.what == "waiting":
            return [paint(f"… {event.task} is {event.text}; waiting", "dim")]
        if event.what == "stopped" or event.ended is None:
            return [paint(f"■ stopping: {event.text}", "yellow")]
        return self._describe_ended(event.task, event.ended)

    def _describe_ended(self, name: str, ended: AttemptResult) -> list[str]:
        self._spent += ended.cost_usd or 0.0
        figures = [ended.model, f"{ended.duration_ms / 1000:.1f} s"]
        figures += [f"${ended.cost_usd:.2f}"] if ended.cost_usd is not None else []
        figures += [f"on {ended.task.branch}"] if ended.result == "done" and ended.task.branch else []
        figures += [f"so far ${self._spent:.2f}"] if self._spent else []
        sign, color = ("✓", "green") if ended.result == "done" else ("✗", "red")
        lines = [paint(f"{sign} {name}  {ended.result}", color) + f"  {'  '.join(filter(None, figures))}"]
        lines += [f"  {ended.reason}"] if ended.reason else []
        if ended.debrief:
            lines += [f"  learnt {id}" for id in ended.debrief.learnings]
        if ended.task.status == "escalated":
            lines.append(paint("  it needs a person: `learnt escalations`", "yellow"))
        return lines


class _Row(Value):
    """An attempt that is being made."""

    title: str
    number: int
    model: str = ""
    why: str = ""
    price_usd: float = 0.0
    began: float = 0.0
    last: str = ""


class LiveTable(EventPrinter):
    """Shows the running attempts in a table below what has ended."""

    def __init__(self, plan: Plan) -> None:
        from rich.console import Console
        from rich.live import Live

        super().__init__()
        self._plan = plan
        # Replaced, never changed: another thread draws it.
        self._rows: dict[str, _Row] = {}
        self._assumed_usd = 0.0
        self._done = self._failed = 0
        colored = paint("x", "bold") != "x"
        self._console = Console(no_color=not colored)
        self._live = Live(
            get_renderable=self._draw,
            console=self._console,
            refresh_per_second=_REFRESHES_PER_S,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *_error: object) -> None:
        self._live.stop()

    def _print(self, line: str) -> None:
        from rich.text import Text

        self._console.print(Text.from_ansi(line))

    def _lines(self, event: Notice) -> list[str]:
        """Update the table, and return the lines that stay above it."""
        row = self._rows.get(event.task)
        if event.what == "started":
            row = _Row(
                title=event.title,
                number=event.attempt,
                model=event.model,
                why=event.model_reason,
                price_usd=event.price_usd,
                began=time.monotonic(),
            )
            self._rows = {**self._rows, event.task: row}
            self._live.refresh()
            return []
        if event.what == "progress" and row is not None:
            if not is_sigil(event.text):
                self._rows = {**self._rows, event.task: row.replace(last=fold(clean(event.text)))}
            return []
        if event.what in ("ended", "given back"):
            self._rows = {task: other for task, other in self._rows.items() if task != event.task}
        if event.what == "ended" and event.ended is not None:
            self._assumed_usd += event.ended.assumed_usd
            self._done += event.ended.result == "done"
            self._failed += event.ended.result in ("failed", "incomplete")
            return self._describe_ended(f"{event.task}  {event.title}  attempt {event.attempt}", event.ended)
        return super()._lines(event)

    def _draw(self) -> Table:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        rows, now = self._rows, time.monotonic()
        table = Table(
            box=SIMPLE_HEAD, pad_edge=False, expand=True, caption=self._summarize(rows), caption_justify="left"
        )
        wide: dict[str, Any] = {"overflow": "ellipsis", "no_wrap": True}
        table.add_column("task", ratio=3, **wide)
        for head in ("attempt", "model"):
            table.add_column(head, no_wrap=True)
        table.add_column("why this model", ratio=3, **wide)
        for head in ("time", "cost"):
            table.add_column(head, justify="right", no_wrap=True)
        table.add_column("doing", ratio=3, **wide)
        for row in rows.values():
            cost = f"≤ ${row.price_usd:.2f}" if row.price_usd else "?"
            cells = (
                row.title,
                str(row.number),
                row.model or "default",
                row.why,
                _format_time(now - row.began),
                cost,
                row.last,
            )
            table.add_row(*(Text(fold(clean(cell))) for cell in cells))
        return table

    def _summarize(self, rows: dict[str, _Row]) -> str:
        parts = [f"{self._done} done", f"{self._failed} failed", f"${self._assumed_usd:.2f} spent"]
        if self._plan.budget_usd:
            reserved = sum(row.price_usd for row in rows.values())
            left = max(0.0, self._plan.budget_usd - self._assumed_usd - reserved)
            parts.append(f"${left:.2f} of ${self._plan.budget_usd:.2f} left")
        return " · ".join(parts)


def _format_time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"
