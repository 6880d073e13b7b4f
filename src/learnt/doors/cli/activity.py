"""The command that shows what learnt does inside clients: a list, or one line for a status bar."""

from __future__ import annotations

import os
import sys

from learnt.doors.cli.screen import note, paint, say
from learnt.errors import LearntError, WrongRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from learnt.flow.activity import Activity
    from learnt.store.activity import Entry, Today

_KINDS = {"briefs": "brief", "warnings": "warning", "debriefs": "debrief"}
_ASKERS = {"hook": "hooks", "prompt": "whoever builds prompts", "tool": "agents themselves", "person": "people"}
_LONGEST_TITLE = 60
_LONGEST_NAME = 20
_ENOUGH_OF_A_TITLE = 30
# What goes first where a terminal is too narrow; the others stay.
_DROPPED = ("id", "ms", "tokens", "occasion", "learnings", "agent", "client")
_GAP = 3
_LINE_MS = 1_000


def activity_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=int, metavar="N", help="so many of the latest; 20 if not given")
    parser.add_argument("--client", default="", metavar="NAME", help="only in this client: claude-code, codex, …")
    parser.add_argument("--agent", default="", metavar="NAME", help="only of this agent")
    parser.add_argument(
        "--what", type=_plural, choices=tuple(_KINDS), metavar="WHAT", help=f"only {', '.join(_KINDS)}: one of these"
    )
    parser.add_argument("--ids", action="store_true", help="with ids, however narrow: `learnt explain ID` takes them")
    parser.add_argument("--line", action="store_true", help="one line on today, for a status bar; never fails")


def _plural(what: str) -> str:
    """Return a kind as the choices spell it: one of them may be named, too."""
    return f"{what}s" if what in _KINDS.values() else what


def activity_run(arguments: argparse.Namespace) -> None:
    narrowed = bool(arguments.client or arguments.agent or arguments.what)
    if arguments.line:
        if narrowed or arguments.ids or arguments.limit is not None:
            note("--line tells of all that was done today, whatever the other options say")
        say(_line(arguments))
        return
    from learnt.doors.cli.arguments import open_memory
    from learnt.doors.cli.screen import show_json
    from learnt.flow.context import now_ms

    limit = 20 if arguments.limit is None else arguments.limit
    if limit < 0:
        raise WrongRequest("--limit is at least 0", hint="leave it out for the latest 20")
    with open_memory(arguments) as memory:
        watched = memory.reports.activity(
            limit=limit,
            what=_KINDS.get(arguments.what or "", ""),
            client=arguments.client,
            agent=arguments.agent,
        )
    if arguments.json:
        show_json(_record(watched))
        return
    if not watched.entries and limit:
        _say_why_nothing(watched, arguments, now=now_ms())
    _show(watched.entries, now=now_ms(), ids=arguments.ids)
    in_all = ", in all" if narrowed else ""
    if watched.used:
        total = sum(watched.used.values())
        counts = _counts(watched.used, _ASKERS, "nobody noted whom")
        say(f"Asked in the last 30 days{in_all}: {'once' if total == 1 else f'{total:,} times'}, {counts}")
    if watched.prevented:
        total = sum(watched.prevented.values())
        counts = _counts(watched.prevented, {}, "agents without a name")
        say(f"Errors prevented (not repeated after a warning){in_all}: {total:,} ({counts})")


def _line(arguments: argparse.Namespace) -> str:
    """Return what a status bar shows; nothing where there is no store, or none that answers in time."""
    from learnt.doors.deadline import Deadline

    _take_what_was_sent()
    try:
        from learnt.memory import Memory

        with Deadline(_LINE_MS), Memory.open(".", create=False) as memory:
            today = memory.reports.today()
    except (LearntError, OSError):
        return ""
    if arguments.json:
        import json

        return json.dumps({"id": "today", **today.as_dict()})
    return f"{paint('learnt:', 'dim')} {_told(today)}"


def _told(today: Today) -> str:
    parts = [
        f"{today.briefs:,} brief{'s' * (today.briefs != 1)} today",
        f"{today.warnings:,} warning{'s' * (today.warnings != 1)}" if today.warnings else "",
        f"{today.prevented:,} error{'s' * (today.prevented != 1)} prevented" if today.prevented else "",
        f"{today.to_review:,} to review" if today.to_review else "",
    ]
    return ", ".join(part for part in parts if part)


def _take_what_was_sent() -> None:
    """Take what a client has sent along, which we do not need, so that it finds an open ear; wait for nothing."""
    try:
        if not sys.stdin.isatty():
            from select import select

            if select([sys.stdin], [], [], 0)[0]:
                os.read(sys.stdin.fileno(), 65_536)
    except (OSError, ValueError):
        return  # closed, or nothing that can be looked at


def _say_why_nothing(watched: Activity, arguments: argparse.Namespace, *, now: int) -> None:
    from learnt.clients.registry import client_name, setup_names
    from learnt.flow.activity import describe_fired

    if arguments.client or arguments.agent or arguments.what:
        say("Nothing of that kind yet; `learnt activity` shows everything.")
        for asked, noun, known in (
            (arguments.client, "clients", watched.clients),
            (arguments.agent, "agents", watched.agents),
        ):
            if asked:
                names = ", ".join(_shortened(name, _LONGEST_NAME) for name in known)
                say(f"The {noun} that there are: {names or 'none yet'}")
        silent = {one: last for one, last in watched.fired.items() if one == client_name(arguments.client)}
        if silent and not (arguments.agent or arguments.what):
            say(f"But {describe_fired(silent, now)}, and nothing fitted so far.")
        return
    if watched.fired:
        say(f"Nothing yet: {describe_fired(watched.fired, now)}, and nothing fitted so far.")
        say('`learnt brief "what is to be done"` tries it out; `learnt explain` then shows what was left out, and why.')
        return
    say("Nothing yet: no agent was briefed, warned or debriefed in this project.")
    first, *others = setup_names(with_hooks=True)
    say(f"`learnt install {first}` (or {', '.join(others)}) lets a client do that by itself;")
    say("`learnt doctor` tells whether one that is installed has fired.")


def _show(entries: tuple[Entry, ...], *, now: int, ids: bool) -> None:
    if not entries:
        return
    from learnt.doors.cli.screen import is_terminal, show_table

    columns = _columns(entries, now=now if is_terminal() else None)
    if is_terminal():
        import shutil

        columns = _fitting(columns, shutil.get_terminal_size().columns, keep=("id",) if ids else ())
    show_table(tuple(columns), list(zip(*columns.values(), strict=True)), wide=len(columns) - 1, always_heads=True)
    say()


def _columns(entries: tuple[Entry, ...], *, now: int | None) -> dict[str, list[str]]:
    """Return the cells of each column by its head, without the columns in which there is nothing.

    `now`: for a person who looks at them, times are told as how long ago that was.
    """
    from learnt.doors.cli.screen import moment
    from learnt.text.times import ago

    columns = {
        "when": [moment(entry.at, seconds=True) if now is None else ago(entry.at, now) for entry in entries],
        "what": [entry.what for entry in entries],
        "client": [_shortened(entry.client, _LONGEST_NAME) for entry in entries],
        "agent": [_shortened(entry.agent, _LONGEST_NAME) for entry in entries],
        "occasion": [entry.occasion for entry in entries],
        "learnings": [f"{entry.learnings:,}" for entry in entries],
        "tokens": ["" if entry.tokens is None else f"{entry.tokens:,}" for entry in entries],
        "ms": ["" if entry.duration_ms is None else f"{entry.duration_ms:,}" for entry in entries],
        "outcome": [_outcome(entry) for entry in entries],
        "id": [entry.id for entry in entries],
        "task or command": [_shortened(entry.command or entry.title, _LONGEST_TITLE) for entry in entries],
    }
    last = list(columns)[-1]
    return {head: cells for head, cells in columns.items() if head == last or any(cells)}


def _fitting(columns: dict[str, list[str]], width: int, *, keep: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the columns that a terminal has room for, with enough left for the last one."""
    fitting = dict(columns)
    last = list(columns)[-1]
    for head in (one for one in _DROPPED if one not in keep):
        widths = {name: max(map(len, (name, *cells))) + _GAP for name, cells in fitting.items()}
        if sum(widths.values()) - widths[last] + min(widths[last], _ENOUGH_OF_A_TITLE + _GAP) <= width:
            break
        fitting.pop(head, None)
    return fitting


def _outcome(entry: Entry) -> str:
    return f"{entry.outcome}, denied" if entry.denied else entry.outcome


def _shortened(text: str, longest: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _counts(counts: Mapping[str, int], names: Mapping[str, str], nameless: str) -> str:
    """Return who has how many, in words."""
    return ", ".join(
        f"{_shortened(names.get(who, who), _LONGEST_TITLE) or nameless} {count:,}" for who, count in counts.items()
    )


def _record(watched: Activity) -> dict[str, Any]:
    return {
        "id": "activity",
        "activity": [entry.as_dict() for entry in watched.entries],
        "used_in_30_days": dict(watched.used),
        "prevented": dict(watched.prevented),
        "fired": {client: last.as_dict() for client, last in watched.fired.items()},
    }
