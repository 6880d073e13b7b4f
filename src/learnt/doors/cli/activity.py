"""The command that shows what learnt did inside clients, as a list or as one line for a status bar."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Collection, Mapping
from select import select
from typing import Any

from learnt.clients.registry import client_name, find, setup_name
from learnt.doors.cli.arguments import Arguments, Parser, open_memory
from learnt.doors.output import (
    NOT_KNOWN,
    format_count,
    format_outcomes,
    format_time,
    is_terminal,
    note,
    now_ms,
    paint,
    say,
    show_json,
    show_table,
)
from learnt.errors import LearntError, WrongRequest
from learnt.flow.reports import Activity, Reports
from learnt.memory import Memory
from learnt.model import MISSED
from learnt.store.activity import ActivityEntry, Today
from learnt.system.files import Deadline
from learnt.text.times import ago

_KINDS = {"briefs": "brief", "warnings": "warning", "debriefs": "debrief"}
_ASKERS = {"hook": "hooks", "prompt": "programs", "tool": "agents", "person": "people"}
_MAX_TITLE_CHARS = 60
_MAX_NAME_CHARS = 20
_MIN_TITLE_CHARS = 30
# The columns that are dropped, in this order, on a narrow terminal.
_OPTIONAL_COLUMNS = ("id", "ms", "tokens", "occasion", "learnings", "delivery", "agent", "client")
_GAP = 3
_LINE_MS = 1_000


def activity_arguments(parser: Parser) -> None:
    parser.add_argument("--limit", type=int, metavar="N", help="how many entries to show; default: 20")
    parser.add_argument(
        "--client", default="", metavar="NAME", help="only entries from this client: claude-code, codex, …"
    )
    parser.add_argument("--agent", default="", metavar="NAME", help="only entries for this agent")
    parser.add_argument(
        "--what", type=_to_plural, choices=tuple(_KINDS), metavar="WHAT", help=f"only one kind: {', '.join(_KINDS)}"
    )
    parser.add_argument("--ids", action="store_true", help="always show ids, for `learnt explain ID`")
    parser.add_argument("--line", action="store_true", help="one line about today, for a status bar; never fails")


def _to_plural(what: str) -> str:
    """Return the plural of a kind, because the choices are plurals and the singular should work, too."""
    return f"{what}s" if what in _KINDS.values() else what


def activity_run(arguments: Arguments) -> None:
    narrowed = bool(arguments.client or arguments.agent or arguments.what)
    if arguments.line:
        if narrowed or arguments.ids or arguments.limit is not None:
            note("--line shows everything from today and ignores the other options")
        say(_format_line(arguments))
        return
    limit = 20 if arguments.limit is None else arguments.limit
    if limit < 0:
        raise WrongRequest("--limit must be at least 0", hint="leave it out for the latest 20")
    with open_memory(arguments) as memory:
        what = _KINDS.get(arguments.what or "", "")
        activity = memory.reports.activity(limit=limit, what=what, client=arguments.client, agent=arguments.agent)
    if arguments.json:
        show_json(_record(activity))
        return
    if not activity.entries and limit:
        _explain_nothing(activity, arguments, now=now_ms())
    _show_entries(activity.entries, now=now_ms(), ids=arguments.ids)
    in_all = ", in all" if narrowed else ""
    if activity.used:
        say(f"Requests in the last 30 days{in_all}: {_format_counts(activity.used, _ASKERS, 'unknown')}")
    if any(activity.outcomes.values()):
        say(f"Warnings{in_all}: {format_outcomes(activity.outcomes)}")
    if activity.prevented:
        counts = _format_counts(activity.prevented, {}, "agents without a name")
        say(f"Errors prevented{in_all}: {counts}")


def _format_line(arguments: Arguments) -> str:
    """Return the line for a status bar; empty if there is no store, or if it does not answer in time."""
    _drain_stdin()
    try:
        with Deadline(_LINE_MS), Memory.open(".", create=False) as memory:
            today = memory.reports.today()
    except (LearntError, OSError):
        return ""
    if arguments.json:
        return json.dumps({"id": "today", **today.as_dict()})
    return f"{paint('learnt:', 'dim')} {_describe_today(today)}"


def _describe_today(today: Today) -> str:
    unknown, given = today.unknown_deliveries, today.briefs + today.warnings
    parts = [
        f"{format_count(today.briefs if given else unknown, 'brief')} today",
        format_count(today.warnings, "warning") if today.warnings else "",
        f"{f'{unknown:,} more ' if given else ''}{NOT_KNOWN}" if unknown else "",
        f"{format_count(today.prevented, 'error')} prevented" if today.prevented else "",
        f"{today.ignored:,} ignored" if today.ignored else "",
        f"{today.to_review:,} to review" if today.to_review else "",
    ]
    return ", ".join(part for part in parts if part)


def _drain_stdin() -> None:
    """Read the client's input without waiting for it, so that the client does not get a broken pipe."""
    try:
        if not sys.stdin.isatty() and select([sys.stdin], [], [], 0)[0]:
            os.read(sys.stdin.fileno(), 65_536)
    except (OSError, ValueError):
        return  # stdin is closed, or is not a file that can be polled


def _name_as_typed(name: str) -> str:
    """Return a client's name as `learnt install` uses it."""
    client = find(name)
    return setup_name(client) if client else name


def _explain_nothing(activity: Activity, arguments: Arguments, *, now: int) -> None:
    if arguments.client or arguments.agent or arguments.what:
        say("Nothing of that kind yet; `learnt activity` shows everything.")
        for filter, noun, names in (
            (arguments.client, "clients", map(_name_as_typed, activity.clients)),
            (arguments.agent, "agents", activity.agents),
        ):
            if filter:
                known = ", ".join(_shorten(name, _MAX_NAME_CHARS) for name in names)
                say(f"Known {noun}: {known or 'none yet'}")
        silent = {name: last for name, last in activity.fired.items() if name == client_name(arguments.client)}
        if silent and not (arguments.agent or arguments.what):
            say(f"But {Reports.describe_fired(silent, now)}, and no learning has matched so far.")
        return
    if activity.fired:
        say(f"Nothing yet: {Reports.describe_fired(activity.fired, now)}, and no learning has matched so far.")
        say('`learnt brief "a task"` tries it out; `learnt explain` then shows what was left out, and why.')
        return
    say("Nothing yet: no agent has been briefed, warned or debriefed in this project.")
    say("`learnt install` finds your agent clients, and lets them do that automatically;")
    say("`learnt doctor` shows whether an installed client's hooks have fired.")


def _show_entries(entries: tuple[ActivityEntry, ...], *, now: int, ids: bool) -> None:
    if not entries:
        return
    columns = _build_columns(entries, now=now if is_terminal() else None)
    if is_terminal():
        is_dropped = any(entry.delivery == MISSED for entry in entries)
        keep = {head for head, is_kept in (("id", ids), ("delivery", is_dropped)) if is_kept}
        columns = _drop_columns(columns, shutil.get_terminal_size().columns, keep=keep)
    show_table(tuple(columns), list(zip(*columns.values(), strict=True)), wide=len(columns) - 1, always_heads=True)
    say()


def _build_columns(entries: tuple[ActivityEntry, ...], *, now: int | None) -> dict[str, list[str]]:
    """Return the cells of each column by its head, without empty columns; with `now`, times are relative to it."""
    columns = {
        "when": [format_time(entry.at, seconds=True) if now is None else ago(entry.at, now) for entry in entries],
        "what": [entry.what for entry in entries],
        "client": [_shorten(entry.client, _MAX_NAME_CHARS) for entry in entries],
        "agent": [_shorten(entry.agent, _MAX_NAME_CHARS) for entry in entries],
        "occasion": [entry.occasion for entry in entries],
        "learnings": [f"{entry.learnings:,}" for entry in entries],
        "tokens": ["" if entry.tokens is None else f"{entry.tokens:,}" for entry in entries],
        "ms": ["" if entry.duration_ms is None else f"{entry.duration_ms:,}" for entry in entries],
        "delivery": [entry.delivery for entry in entries],
        "outcome": [f"{entry.outcome}, denied" if entry.denied else entry.outcome for entry in entries],
        "id": [entry.id for entry in entries],
        "task or command": [_shorten(entry.command or entry.title, _MAX_TITLE_CHARS) for entry in entries],
    }
    last = list(columns)[-1]
    return {head: cells for head, cells in columns.items() if head == last or any(cells)}


def _drop_columns(columns: dict[str, list[str]], width: int, *, keep: Collection[str]) -> dict[str, list[str]]:
    """Return the columns that fit into the width and leave enough space for the last column."""
    fitting = dict(columns)
    last = list(columns)[-1]
    for head in (head for head in _OPTIONAL_COLUMNS if head not in keep):
        widths = {name: max(map(len, (name, *cells))) + _GAP for name, cells in fitting.items()}
        if sum(widths.values()) - widths[last] + min(widths[last], _MIN_TITLE_CHARS + _GAP) <= width:
            break
        fitting.pop(head, None)
    return fitting


def _shorten(text: str, max_chars: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= max_chars else line[: max_chars - 1] + "…"


def _format_counts(counts: Mapping[str, int], names: Mapping[str, str], nameless: str) -> str:
    """Return the total, followed by each name's count in brackets."""
    parts = [
        f"{_shorten(names.get(who, who), _MAX_TITLE_CHARS) or nameless} {count:,}" for who, count in counts.items()
    ]
    return f"{sum(counts.values()):,} ({', '.join(parts)})"


def _record(activity: Activity) -> dict[str, Any]:
    return {
        "id": "activity",
        "activity": [entry.as_dict() for entry in activity.entries],
        "used_in_30_days": dict(activity.used),
        "prevented": dict(activity.prevented),
        "outcomes": dict(activity.outcomes),
        "fired": {client: last.as_dict() for client, last in activity.fired.items()},
    }
