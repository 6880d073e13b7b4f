"""The command that explains why a brief contains what it does, and the outcome of an attempt."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from learnt.doors.cli.agent_work import brief_record
from learnt.doors.cli.arguments import Arguments, Parser, open_memory, print_result
from learnt.doors.cli.screen import paint, say, show_json
from learnt.errors import LearntError, WrongRequest
from learnt.flow.reports import AttemptReport
from learnt.model import Brief, Failure

_PURGED = "(purged)"


def explain_arguments(parser: Parser) -> None:
    ids = "a brief, a task (its latest brief) or an attempt (its outcome); default: the latest brief"
    parser.add_argument("id", metavar="ID", nargs="?", help=ids)
    parser.add_argument(
        "--replay", action="store_true", help="render its text again, and check that it is what was sent"
    )


def explain_run(arguments: Arguments) -> None:
    id = arguments.id or ""
    if id.startswith("attempt_"):
        _explain_attempt(id, arguments)
        return
    with open_memory(arguments) as memory:
        brief = memory.explain(memory.reports.latest_brief(task=id) if not id or id.startswith("task_") else id)
        as_sent = memory.is_as_sent(brief)
        other_version = memory.is_of_another_version(brief)
        beside = brief.receipt.get("beside", [])
        titles = memory.titles([*(entry["id"] for entry in brief.receipt["considered"]), *beside])
    if arguments.replay and not as_sent:
        _refuse_replay(brief, titles, other_version=other_version)
    if arguments.json:
        show_json({**brief_record(brief), "as_said": as_sent, **({"text": brief.text} if arguments.replay else {})})
    elif arguments.replay:
        sys.stdout.write(brief.text)
    else:
        for line in describe_receipt(brief, titles):
            say(line)


def _explain_attempt(id: str, arguments: Arguments) -> None:
    if arguments.replay:
        raise WrongRequest("only a brief can be rendered again", hint="leave --replay out, or name a brief")
    with open_memory(arguments) as memory:
        report = memory.reports.attempt(id)
    print_result(arguments, _attempt_record(report), "\n".join(_describe_attempt(report)))


def _describe_attempt(report: AttemptReport) -> list[str]:
    attempt = report.attempt
    figures = {
        "duration": "" if attempt.duration_ms is None else f"{attempt.duration_ms:,} ms",
        "tokens in": "" if attempt.tokens_in is None else f"{attempt.tokens_in:,}",
        "tokens out": "" if attempt.tokens_out is None else f"{attempt.tokens_out:,}",
        "cost": "" if attempt.cost_usd is None else f"${attempt.cost_usd:.4f}",
    }
    lines = [
        f"{paint(attempt.id, 'bold')} at {attempt.task}: {attempt.result}",
        _join_parts({"agent": report.agent, "client": report.client, "model": attempt.model}),
        f"task: {report.title}",
        _join_parts(figures),
    ]
    effects = {"taught": report.learnings, "helpful": report.helpful, "not helpful": report.not_helpful}
    for what, learnings in effects.items():
        lines += [f"{what}: {id}: {title or _PURGED}" for id, title in learnings.items()]
    if not any(effects.values()):
        lines.append("it taught nothing new, and no mark counted")
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
    purged = [entry["id"] for entry in brief.receipt["shown"] if entry["id"] not in titles]
    message = f"{brief.id} cannot be rendered as it was sent"
    if purged:
        raise WrongRequest(
            f"{message}: {', '.join(purged)} was purged", hint="`learnt explain` still shows its receipt"
        )
    raise LearntError(message, hint="a purge may have changed a report in it; `learnt explain` still shows its receipt")


def describe_receipt(brief: Brief, titles: Mapping[str, str]) -> list[str]:
    """Return why a brief contains what it does: the request, and what was considered."""
    receipt = brief.receipt
    warning = ", including a stuck warning outside the budget" if receipt["stuck"] else ""
    budget = receipt["settings"]["budget_tokens"]
    lines = [f"{paint(brief.id, 'bold')} for {brief.task}: {brief.tokens} tokens of {budget}{warning}"]
    lines.append(_join_parts({"occasion": brief.occasion, "agent": brief.agent, "client": brief.client}))
    lines += _describe_request(receipt)
    if "mirror_age_s" in receipt:
        lines.append(f"from the mirror of the server, {receipt['mirror_age_s']:,} s old")
    lines += _describe_conversation(receipt)
    if receipt.get("attempts_left_out"):
        lines.append(f"attempts left out: {', '.join(map(str, receipt['attempts_left_out']))}")
    for entry in receipt["considered"]:
        lines += _describe_entry(entry, titles.get(entry["id"], _PURGED), measured=bool(receipt["query"]))
    for id in receipt.get("beside", ()):
        source = paint("given by the learnings file in the prompt", "green")
        lines.append(f"{id}  {source}: {titles.get(id, _PURGED)}")
    if receipt["query"] and not receipt["considered"]:
        lines.append("no learning shares a word or a trigger with it")
    return lines


def _describe_request(receipt: Mapping[str, Any]) -> list[str]:
    lines = []
    if receipt["query"]:
        cut = receipt.get("query_length", 0) - len(receipt["query"])
        lines.append(f"query: {receipt['query']}{f' … and {cut:,} more characters' if cut > 0 else ''}")
    for name in ("paths", "command", "tools", "task_type", "goal", "exclude_goal"):
        value = receipt.get(name)
        if value:
            lines.append(f"{name.replace('_', ' ')}: {', '.join(value) if isinstance(value, list) else value}")
    return lines


def _describe_conversation(receipt: Mapping[str, Any]) -> list[str]:
    """Return what a brief in a conversation says beside learnings: what failed before, what is unfinished, notes."""
    lines = []
    for failure in receipt.get("failed", ()):
        lines.append(f"failed before: {failure['command']}" + (f": {failure['error']}" if failure["error"] else ""))
        if failure["worked"]:
            lines.append(f"    then worked: {failure['worked']}")
    for task in receipt.get("unfinished", ()):
        lines.append(f"unfinished: {task['task']}: {task['title']}")
        lines += [f"    {text}" for text in (task["reason"], task["suggestion"]) if text]
    lines += [f"note: {note}" for note in receipt.get("notes", ())]
    return [line.rstrip().replace("\n", " ") for line in lines]


def _describe_entry(entry: Mapping[str, Any], title: str, *, measured: bool) -> list[str]:
    verdict = f"left out: {entry['left_out']}" if entry["left_out"] else paint("chosen", "green")
    trigger = f"; trigger {entry['trigger']}" if entry["trigger"] else ""
    figures = f"confidence {entry['confidence']:.2f}"
    if measured:
        figures = f"relevance {entry['relevance']:.2f}, score {entry['score']:.2f}, {figures}"
    return [f"{entry['id']}  {verdict}", f"    {figures}{trigger}: {title}"]


def _join_parts(parts: Mapping[str, str]) -> str:
    """Return named values on one line, without the empty ones."""
    return ", ".join(f"{name}: {value}" for name, value in parts.items() if value)
