"""The command `learn`: go back over what clients and git have kept of the past."""

from __future__ import annotations

import sys
import time

from learnt.doors.cli.arguments import open_memory, tell_redactions
from learnt.doors.cli.screen import Progress, counted, is_terminal, note, say, show_json
from learnt.errors import LearntError, ModelFailed, NoModel, SpendingCap, WrongRequest
from learnt.text.times import DAY_MS, HOUR_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from learnt.flow.history import UnreadHistory
    from learnt.flow.mining import MiningReport
    from learnt.memory import Memory

_UNITS_MS = {"h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}


def learn_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--since", default="30d", metavar="TIME", help="how far back: 12h, 30d, 8w; default: 30d")
    parser.add_argument("--dry-run", action="store_true", help="only show what there is to read, and its cost")
    parser.add_argument("--yes", action="store_true", help="do not ask before a model is paid")
    parser.add_argument("--no-git", action="store_true", help="leave the history in git aside")


def learn_run(arguments: argparse.Namespace) -> None:
    since_ms = time.time_ns() // 1_000_000 - _length_ms(arguments.since)
    with open_memory(arguments) as memory:
        past = memory.transcripts.find(since_ms=since_ms)
        if arguments.no_git:
            past = past.replace(commits=())
        if arguments.dry_run:
            _show(past, json=arguments.json)
            return
        _ask_first(past, yes=arguments.yes)
        learnt, failures = _learnt(memory, past)
    tell_redactions(memory)
    record = _record(learnt, failures)
    if arguments.json:
        show_json(record)
    else:
        _tell(past, record)
    if failures and not learnt and past.calls:
        raise LearntError(failures[0], hint="nothing was learnt; what was not read is read the next time")


def _length_ms(text: str) -> int:
    number, unit = text[:-1], text[-1:]
    if not (number.isdecimal() and len(number) < 6 and unit in _UNITS_MS):
        raise WrongRequest(f"--since `{text}` is no length of time", hint="write it like 12h, 30d or 8w")
    return int(number) * _UNITS_MS[unit]


def _show(past: UnreadHistory, *, json: bool) -> None:
    if json:
        show_json(
            {
                "id": "learn",
                "transcripts": [one.as_dict() for one in past.transcripts],
                "read_before": past.read_before,
                "commits": len(past.commits),
                "calls": past.calls,
                "forecast_usd": past.forecast_usd,
            }
        )
        return
    for one in past.transcripts:
        say(f"{one.client:<9} {one.size / 1e6:8.1f} MB  {one.path}")
    say(_there_is(past))


def _there_is(past: UnreadHistory) -> str:
    known = f" ({past.read_before} read before)" if past.read_before else ""
    told = f"{counted(len(past.transcripts), 'transcript')}{known} and {counted(len(past.commits), 'commit')} to read"
    if past.calls:
        cost = "nobody knows what it costs" if past.forecast_usd is None else f"about ${past.forecast_usd:.2f}"
        told += f"; the model is asked {counted(past.calls, 'time')}: {cost}"
    return f"{told}."


def _ask_first(past: UnreadHistory, *, yes: bool) -> None:
    """Go on only if nothing has to be paid, or a person agrees."""
    if yes or not past.calls:
        return
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise WrongRequest(_there_is(past), hint="--yes goes on without asking; --dry-run shows the list")
    print(f"{_there_is(past)} Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise WrongRequest("nothing was read", hint="--since 7d reads less")


def _learnt(memory: Memory, past: UnreadHistory) -> tuple[list[MiningReport], list[str]]:
    """Read everything; return what it taught, and why something could not be read."""
    learnt: list[MiningReport] = []
    failures: list[str] = []
    total = sum(one.size for one in past.transcripts) + len(past.commits)
    read = 0
    with Progress("reading", total) as progress:
        for one in past.transcripts:
            try:
                learnt.append(memory.transcripts.debrief(one.path)[1])
            except (ModelFailed, NoModel, SpendingCap) as error:
                failures.append(error.message)
                return learnt, failures  # a model that fails now fails the next time, too, and is paid for it
            except LearntError as error:
                failures.append(error.message)
            read += one.size
            progress.show(read)
        for commit in past.commits:
            learnt.append(memory.transcripts.learn_from_commit(commit))
            read += 1
            progress.show(read)
    return learnt, failures


def _record(learnt: list[MiningReport], failures: list[str]) -> dict[str, Any]:
    return {
        "id": "learn",
        "read": len(learnt),
        "learnings": [id for one in learnt for id in one.learnings],
        "repeated": sorted({id for one in learnt for id in one.repeated}),
        "proposed": [id for one in learnt for id in (*one.proposed, *one.escalated)],
        "skipped": sum(len(one.skipped) for one in learnt),
        "failures": failures,
    }


def _tell(past: UnreadHistory, record: dict[str, Any]) -> None:
    say(f"Read {record['read']} of {len(past.transcripts) + len(past.commits)} transcripts and commits.")
    say(f"{counted(len(record['learnings']), 'new learning')}, {counted(len(record['repeated']), 'known one')} again.")
    if record["learnings"]:
        say("`learnt review` shows them one by one.")
    for reason in record["failures"][:5]:
        note(reason)
