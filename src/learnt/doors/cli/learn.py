"""The command `learn`: learn from past conversations and commits."""

from __future__ import annotations

import sys
from typing import Any

from learnt.doors.cli.arguments import Arguments, Parser, open_memory, print_result, report_redactions
from learnt.doors.cli.terminal import confirm
from learnt.doors.output import Progress, format_count, is_terminal, note, now_ms, say, show_json
from learnt.errors import LearntError, ModelFailed, WrongRequest
from learnt.flow.history import UnreadHistory
from learnt.flow.mining import MiningReport
from learnt.memory import Memory
from learnt.text.times import DAY_MS, HOUR_MS

_UNITS_MS = {"h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}


def learn_arguments(parser: Parser) -> None:
    parser.add_argument("--since", default="30d", metavar="TIME", help="how far back: 12h, 30d, 8w; default: 30d")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be read, and its cost")
    parser.add_argument("--yes", action="store_true", help="do not ask before paid model calls")
    parser.add_argument("--no-git", action="store_true", help="do not read commits")


def learn_run(arguments: Arguments) -> None:
    since_ms = now_ms() - _parse_duration(arguments.since)
    with open_memory(arguments) as memory:
        past = memory.transcripts.find(since_ms=since_ms)
        if arguments.no_git:
            past = past.replace(commits=())
        if arguments.dry_run:
            _show_past(past, arguments)
            return
        _confirm_cost(past, yes=arguments.yes)
        learnt, failures = _read_all(memory, past)
    report_redactions(memory)
    record = _record(learnt, failures)
    if arguments.json:
        show_json(record)
    else:
        _print_summary(past, record)
    if failures and not learnt and past.calls:
        raise LearntError(failures[0], hint="nothing was learnt; run `learnt learn` again to read the rest")


def _parse_duration(text: str) -> int:
    number, unit = text[:-1], text[-1:]
    if not (number.isdecimal() and len(number) < 6 and unit in _UNITS_MS):
        raise WrongRequest(f"--since `{text}` is not a duration", hint="write it like 12h, 30d or 8w")
    return int(number) * _UNITS_MS[unit]


def _show_past(past: UnreadHistory, arguments: Arguments) -> None:
    record = {
        "id": "learn",
        "transcripts": [transcript.as_dict() for transcript in past.transcripts],
        "read_before": past.read_before,
        "commits": len(past.commits),
        "calls": past.calls,
        "forecast_usd": past.forecast_usd,
    }
    files = [f"{file.client:<9} {file.size / 1e6:8.1f} MB  {file.path}" for file in past.transcripts]
    print_result(arguments, record, "\n".join([*files, _describe_past(past)]))


def _describe_past(past: UnreadHistory) -> str:
    known = f" ({past.read_before} read before)" if past.read_before else ""
    transcripts, commits = len(past.transcripts), len(past.commits)
    text = f"{format_count(transcripts, 'transcript')}{known} and {format_count(commits, 'commit')} to read"
    if past.calls:
        cost = "at an unknown price" if past.forecast_usd is None else f"about ${past.forecast_usd:.2f}"
        text += f"; {format_count(past.calls, 'model call')}, {cost}"
    return f"{text}."


def _confirm_cost(past: UnreadHistory, *, yes: bool) -> None:
    """Raise unless the model calls cost nothing or the person agrees to pay for them."""
    if yes or not past.calls:
        return
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise WrongRequest(_describe_past(past), hint="--yes continues without asking; --dry-run shows the list")
    if not confirm(f"{_describe_past(past)} Go on?"):
        raise WrongRequest("nothing was read", hint="--since 7d reads less")


def _read_all(memory: Memory, past: UnreadHistory) -> tuple[list[MiningReport], list[str]]:
    """Read everything; return the learnings, and the reasons why parts could not be read."""
    learnt: list[MiningReport] = []
    failures: list[str] = []
    total = sum(transcript.size for transcript in past.transcripts) + len(past.commits)
    done = 0
    with Progress("reading", total) as progress:
        for transcript in past.transcripts:
            try:
                report = memory.transcripts.debrief(transcript.path)[1]
                learnt.append(report)
                failures += [report.remark] if report.remark and report.remark not in failures else []
            except ModelFailed as error:
                failures.append(error.message)
                return learnt, failures  # it cannot be reached, and would probably fail again
            except LearntError as error:
                failures.append(error.message)
            done += transcript.size
            progress.show(done)
        for commit in past.commits:
            learnt.append(memory.transcripts.learn_from_commit(commit))
            done += 1
            progress.show(done)
    return learnt, failures


def _record(learnt: list[MiningReport], failures: list[str]) -> dict[str, Any]:
    return {
        "id": "learn",
        "read": len(learnt),
        "learnings": [id for mined in learnt for id in mined.learnings],
        "repeated": sorted({id for mined in learnt for id in mined.repeated}),
        "proposed": [id for mined in learnt for id in (*mined.proposed, *mined.escalated)],
        "skipped": sum(len(mined.skipped) for mined in learnt),
        "failures": failures,
    }


def _print_summary(past: UnreadHistory, record: dict[str, Any]) -> None:
    say(f"Read {record['read']} of {len(past.transcripts) + len(past.commits)} transcripts and commits.")
    say(f"{format_count(len(record['learnings']), 'new learning')}, {len(record['repeated'])} known already.")
    if record["proposed"]:
        say(f"{format_count(len(record['proposed']), 'proposal')} for you to decide on.")
    if record["learnings"] or record["proposed"]:
        say("`learnt review` shows them one by one.")
    for reason in record["failures"][:5]:
        note(reason)
