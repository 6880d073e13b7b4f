"""The command that explains why a brief contains what it does, and how an attempt ended."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from learnt.doors.cli.agent_work import brief_record
from learnt.doors.cli.arguments import Arguments, Parser, open_memory, print_result
from learnt.doors.output import PURGED, join_parts, paint, say, show_json
from learnt.doors.reasons import describe_receipt, describe_why_not, list_mentioned
from learnt.errors import LearntError, WrongRequest
from learnt.flow.reports import AttemptReport
from learnt.memory import Memory
from learnt.model import Brief, Failure, is_id


def explain_arguments(parser: Parser) -> None:
    ids = "a brief, a task (its latest brief) or an attempt (its outcome); default: the latest brief"
    parser.add_argument("id", metavar="ID", nargs="?", help=ids)
    parser.add_argument(
        "--replay", action="store_true", help="render its text again, and check that it is the text that was sent"
    )
    parser.add_argument("--why-not", metavar="LEARNING", help="tell why the brief does not contain this learning")


def explain_run(arguments: Arguments) -> None:
    id = arguments.id or ""
    if id.startswith("attempt_"):
        _explain_attempt(id, arguments)
        return
    if is_id("learn", id):
        raise WrongRequest(f"{id} is a learning, not a brief", hint=f"`learnt show {id}` shows it")
    with open_memory(arguments) as memory:
        brief = memory.explain(memory.reports.latest_brief(task=id) if not id or id.startswith("task_") else id)
        if arguments.why_not:
            _explain_why_not(memory, brief, arguments)
            return
        as_sent = memory.why.is_as_sent(brief)
        other_version = memory.why.is_of_another_version(brief)
        titles = memory.titles(list_mentioned(brief))
        considered = [entry["id"] for entry in brief.receipt["considered"]]
        cues = memory.cues.find_matching(brief.receipt["query"], considered)
    if arguments.replay and not as_sent:
        _refuse_replay(brief, titles, other_version=other_version)
    if arguments.json:
        matching = {id: {"cue": cue, "origin": origin} for id, (cue, origin) in cues.items()}
        record = {**brief_record(brief), "as_said": as_sent, "cues": matching}
        show_json({**record, **({"text": brief.text} if arguments.replay else {})})
    elif arguments.replay:
        sys.stdout.write(brief.text)
    else:
        for line in describe_receipt(brief, titles, cues):
            say(line)


def _explain_why_not(memory: Memory, brief: Brief, arguments: Arguments) -> None:
    if arguments.replay:
        raise WrongRequest("--why-not and --replay exclude each other", hint="omit one of them")
    answer = memory.why.not_in_brief(brief, arguments.why_not)
    lines = describe_why_not(answer, memory.titles([answer.rival]), f"in {brief.id}")
    print_result(arguments, {"brief": brief.id, **answer.as_record()}, "\n".join(lines))


def _explain_attempt(id: str, arguments: Arguments) -> None:
    if arguments.replay:
        raise WrongRequest("only a brief can be rendered again", hint="omit --replay, or use the id of a brief")
    with open_memory(arguments) as memory:
        report = memory.reports.attempt(id)
    print_result(arguments, _attempt_record(report), "\n".join(_describe_attempt(report)))


def _describe_attempt(report: AttemptReport) -> list[str]:
    attempt = report.attempt
    statistics = {
        "duration": "" if attempt.duration_ms is None else f"{attempt.duration_ms:,} ms",
        "tokens in": "" if attempt.tokens_in is None else f"{attempt.tokens_in:,}",
        "tokens out": "" if attempt.tokens_out is None else f"{attempt.tokens_out:,}",
        "cost": "" if attempt.cost_usd is None else f"${attempt.cost_usd:.4f}",
    }
    lines = [
        f"{paint(attempt.id, 'bold')} at {attempt.task}: {attempt.result}",
        join_parts({"agent": report.agent, "client": report.client, "model": attempt.model}),
        f"task: {report.title}",
        join_parts(statistics),
    ]
    effects = {"taught": report.learnings, "helpful": report.helpful, "not helpful": report.not_helpful}
    for what, learnings in effects.items():
        lines += [f"{what}: {id}: {title or PURGED}" for id, title in learnings.items()]
    if not any(effects.values()):
        lines.append("it taught nothing new, and had no valid marks")
    lines += [f"ignored: {reason}" for reason in attempt.ignored.splitlines()]
    return [line for line in (*lines, *_describe_failure(report.failure)) if line]


def _describe_failure(failure: Failure | None) -> list[str]:
    if failure is None:
        return []
    fields = {
        "tried": failure.tried,
        "why it failed": failure.reason,
        "error": failure.error,
        "files": ", ".join(failure.files),
        "avoid": failure.avoid,
        "suggestion": failure.suggestion,
    }
    lines = [f"failure report ({failure.category}){', archived' if failure.archived_at else ''}:"]
    return [*lines, *(f"    {name}: {' '.join(text.split())}" for name, text in fields.items() if text)]


def _attempt_record(report: AttemptReport) -> dict[str, Any]:
    def list_titles(learnings: Mapping[str, str]) -> list[dict[str, str]]:
        return [{"id": id, "title": title} for id, title in learnings.items()]

    return {
        **report.attempt.as_dict(),
        "title": report.title,
        "client": report.client,
        "agent": report.agent,
        "learnings": list_titles(report.learnings),
        "helpful": list_titles(report.helpful),
        "not_helpful": list_titles(report.not_helpful),
        "failure": report.failure and report.failure.as_dict(),
    }


def _refuse_replay(brief: Brief, titles: Mapping[str, str], *, other_version: bool) -> None:
    if other_version and brief.text:
        raise LearntError(
            f"{brief.id} was rendered by another version of learnt, which worded it differently",
            hint="`learnt explain` without --replay shows what it contained",
        )
    entries = (*brief.receipt["shown"], *brief.receipt.get("index", ()))
    purged = [entry["id"] for entry in entries if entry["id"] not in titles]
    message = f"{brief.id} cannot be rendered as it was sent"
    if purged:
        raise WrongRequest(
            f"{message}: {', '.join(purged)} was purged", hint="`learnt explain` still shows its receipt"
        )
    raise LearntError(message, hint="a purge may have changed a report in it; `learnt explain` still shows its receipt")
