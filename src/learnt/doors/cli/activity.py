"""The command that shows what learnt does inside clients: a list, or one line for a status bar."""

from __future__ import annotations

import os
import sys

from learnt.doors.cli.screen import paint, say
from learnt.errors import LearntError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from learnt.memory.watching import Watched
    from learnt.store.activity import Entry, Today

_KINDS = {"briefs": "brief", "warnings": "warning", "debriefs": "debrief"}
_ASKERS = {"hook": "hooks", "prompt": "whoever builds prompts", "tool": "agents themselves", "person": "people"}
_LONGEST_TITLE = 60
_LINE_MS = 1_000


def activity_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="so many of the latest; 20 if not given")
    parser.add_argument("--client", default="", metavar="NAME", help="only in this client: claude-code, codex, …")
    parser.add_argument("--agent", default="", metavar="NAME", help="only of this agent")
    parser.add_argument("--what", choices=tuple(_KINDS), help="only these")
    parser.add_argument("--line", action="store_true", help="one line on today, for a status bar; never fails")


def activity_run(arguments: argparse.Namespace) -> None:
    if arguments.line:
        say(_line(arguments))
        return
    from learnt.doors.cli.arguments import open_memory
    from learnt.doors.cli.screen import show_json
    from learnt.memory.places import now_ms

    with open_memory(arguments) as memory:
        watched = memory.activity(
            limit=arguments.limit,
            what=_KINDS.get(arguments.what or "", ""),
            client=arguments.client,
            agent=arguments.agent,
        )
    if arguments.json:
        show_json(_record(watched))
        return
    if not watched.entries:
        _say_why_nothing(arguments)
    _show(watched.entries, now=now_ms())
    if watched.used:
        total = sum(watched.used.values())
        say(f"Asked in the last 30 days: {total:,} times, {_counts(watched.used, _ASKERS, 'nobody noted whom')}")
    if watched.prevented:
        total = sum(watched.prevented.values())
        say(f"Errors prevented: {total:,}, {_counts(watched.prevented, {}, 'agents without a name')}")


def _line(arguments: argparse.Namespace) -> str:
    """Return what a status bar shows; nothing where there is no store, or none that answers in time."""
    from learnt.doors.deadline import Deadline

    _take_what_was_sent()
    try:
        from learnt.memory import Memory

        with Deadline(_LINE_MS), Memory.open(".", create=False) as memory:
            today = memory.today()
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
        f"{today.prevented:,} prevented" if today.prevented else "",
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


def _say_why_nothing(arguments: argparse.Namespace) -> None:
    if arguments.client or arguments.agent or arguments.what:
        say("Nothing of that kind yet; `learnt activity` shows everything.")
        return
    say("Nothing yet: no agent was briefed, warned or debriefed in this project.")
    say("`learnt install claude-code` (or codex, gemini, opencode) lets a client do that by itself;")
    say("`learnt doctor` tells whether one that is installed has fired.")


def _show(entries: tuple[Entry, ...], *, now: int) -> None:
    if not entries:
        return
    from learnt.doors.cli.screen import is_terminal, moment, show_table
    from learnt.text.ages import ago

    relative = is_terminal()
    rows = [
        (
            ago(entry.at, now) if relative else moment(entry.at),
            entry.what,
            entry.client,
            entry.agent,
            entry.occasion,
            f"{entry.learnings:,}",
            "" if entry.tokens is None else f"{entry.tokens:,}",
            "" if entry.duration_ms is None else f"{entry.duration_ms:,}",
            _outcome(entry),
            _shortened(entry.command or entry.title),
        )
        for entry in entries
    ]
    heads = ("when", "what", "client", "agent", "occasion", "learnings", "tokens", "ms", "outcome", "task or command")
    show_table(heads, rows, wide=len(heads) - 1, always_heads=True)
    say()


def _outcome(entry: Entry) -> str:
    return f"{entry.outcome}, denied" if entry.denied else entry.outcome


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 1] + "…"


def _counts(counts: Mapping[str, int], names: Mapping[str, str], nameless: str) -> str:
    """Return who has how many, in words."""
    return ", ".join(f"{names.get(who, who) or nameless} {count:,}" for who, count in counts.items())


def _record(watched: Watched) -> dict[str, Any]:
    return {
        "id": "activity",
        "activity": [entry.as_dict() for entry in watched.entries],
        "used_in_30_days": dict(watched.used),
        "prevented": dict(watched.prevented),
    }
