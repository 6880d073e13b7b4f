"""The command that explains: why a brief says what it says, and what came of an attempt."""

from __future__ import annotations

import sys

from learnt.doors.cli.arguments import open_memory
from learnt.doors.cli.loop import brief_record
from learnt.doors.cli.screen import paint, say, show_json
from learnt.errors import LearntError, WrongRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from learnt.flow.activity import AttemptReport
    from learnt.model import Brief, Failure


def explain_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id",
        metavar="ID",
        nargs="?",
        help="of a brief, of a task (its latest brief) or of a debrief (what came of it); without it, the latest brief",
    )
    parser.add_argument(
        "--replay", action="store_true", help="render its text again, and check it against what was said"
    )


def explain_run(arguments: argparse.Namespace) -> None:
    id = arguments.id or ""
    if id.startswith("attempt_"):
        _explain_attempt(id, arguments)
        return
    with open_memory(arguments) as memory:
        brief = memory.explain(memory.reports.latest_brief(task=id) if not id or id.startswith("task_") else id)
        as_said = memory.is_as_sent(brief)
        other_version = memory.is_of_another_version(brief)
        given = brief.receipt.get("beside", [])
        titles = memory.titles([*(entry["id"] for entry in brief.receipt["considered"]), *given])
    if arguments.replay and not as_said:
        _refuse_replay(brief, titles, other_version=other_version)
    if arguments.json:
        show_json({**brief_record(brief), "as_said": as_said, **({"text": brief.text} if arguments.replay else {})})
    elif arguments.replay:
        sys.stdout.write(brief.text)
    else:
        for line in explained(brief, titles):
            say(line)


def _explain_attempt(id: str, arguments: argparse.Namespace) -> None:
    if arguments.replay:
        raise WrongRequest("only a brief can be rendered again", hint="leave --replay out, or name a brief")
    with open_memory(arguments) as memory:
        attempted = memory.reports.attempt(id)
    if arguments.json:
        show_json(_attempt_record(attempted))
        return
    for line in _told_attempt(attempted):
        say(line)


def _told_attempt(attempted: AttemptReport) -> list[str]:
    """Return what came of an attempt in words."""
    attempt = attempted.attempt
    figures = {
        "duration": "" if attempt.duration_ms is None else f"{attempt.duration_ms:,} ms",
        "tokens in": "" if attempt.tokens_in is None else f"{attempt.tokens_in:,}",
        "tokens out": "" if attempt.tokens_out is None else f"{attempt.tokens_out:,}",
        "cost": "" if attempt.cost_usd is None else f"${attempt.cost_usd:.4f}",
    }
    lines = [
        f"{paint(attempt.id, 'bold')} at {attempt.task}: {attempt.result}",
        _named({"agent": attempted.agent, "client": attempted.client, "model": attempt.model}),
        f"task: {attempted.title}",
        _named(figures),
    ]
    told = {"taught": attempted.learnings, "helpful": attempted.helpful, "not helpful": attempted.not_helpful}
    for what, learnings in told.items():
        lines += [f"{what}: {id}: {title or '(purged)'}" for id, title in learnings.items()]
    if not any(told.values()):
        lines.append("it taught nothing new, and no mark of it counted")
    return [line for line in (*lines, *_told_failure(attempted.failure)) if line]


def _told_failure(failure: Failure | None) -> list[str]:
    if failure is None:
        return []
    told = {
        "tried": failure.tried,
        "why it failed": failure.reason,
        "error": failure.error,
        "files": ", ".join(failure.files),
        "avoid": failure.avoid,
        "suggestion": failure.suggestion,
    }
    lines = [f"failure report ({failure.category}){', put away since' if failure.archived_at else ''}:"]
    return [*lines, *(f"    {name}: {' '.join(text.split())}" for name, text in told.items() if text)]


def _named(parts: Mapping[str, str]) -> str:
    """Return on one line what there is."""
    return ", ".join(f"{name}: {value}" for name, value in parts.items() if value)


def _attempt_record(attempted: AttemptReport) -> dict[str, Any]:
    def listed(learnings: Mapping[str, str]) -> list[dict[str, str]]:
        return [{"id": id, "title": title} for id, title in learnings.items()]

    return {
        **attempted.attempt.as_dict(),
        "title": attempted.title,
        "client": attempted.client,
        "agent": attempted.agent,
        "learnings": listed(attempted.learnings),
        "helpful": listed(attempted.helpful),
        "not_helpful": listed(attempted.not_helpful),
        "failure": attempted.failure and attempted.failure.as_dict(),
    }


def _refuse_replay(brief: Brief, titles: dict[str, str], *, other_version: bool) -> None:
    if other_version and brief.text:
        raise LearntError(
            f"{brief.id} was rendered by another version of learnt, which put it differently",
            hint="`learnt explain` without --replay shows what stood in it",
        )
    gone = [entry["id"] for entry in brief.receipt["shown"] if entry["id"] not in titles]
    told = f"{brief.id} cannot be rendered as it was said"
    if gone:
        raise WrongRequest(f"{told}: {', '.join(gone)} was purged", hint="`learnt explain` still shows its receipt")
    raise LearntError(told, hint="a purge changed a report in it, perhaps; `learnt explain` still shows its receipt")


def explained(brief: Brief, titles: dict[str, str]) -> list[str]:
    """Return the receipt of a brief in words."""
    receipt = brief.receipt
    warning = ", a stuck warning beside the budget included" if receipt["stuck"] else ""
    budget = receipt["settings"]["budget_tokens"]
    lines = [f"{paint(brief.id, 'bold')} for {brief.task}: {brief.tokens} tokens of {budget}{warning}"]
    lines.append(_named({"occasion": brief.occasion, "agent": brief.agent, "client": brief.client}))
    cut = receipt.get("query_length", 0) - len(receipt["query"])
    if receipt["query"]:
        lines.append(f"query: {receipt['query']}{f' … and {cut:,} more characters' if cut > 0 else ''}")
    for name in ("paths", "command", "tools", "task_type", "goal", "exclude_goal"):
        value = receipt.get(name)
        if value:
            lines.append(f"{name.replace('_', ' ')}: {', '.join(value) if isinstance(value, list) else value}")
    if "mirror_age_s" in receipt:
        lines.append(f"from the mirror of the server, {receipt['mirror_age_s']:,} s old")
    lines += _told_beside_learnings(receipt)
    if receipt.get("attempts_left_out"):
        lines.append(f"attempts left out: {', '.join(map(str, receipt['attempts_left_out']))}")
    for entry in receipt["considered"]:
        verdict = f"left out: {entry['left_out']}" if entry["left_out"] else paint("chosen", "green")
        trigger = f"; trigger {entry['trigger']}" if entry["trigger"] else ""
        figures = f"confidence {entry['confidence']:.2f}"
        if receipt["query"]:  # else nothing was measured
            figures = f"relevance {entry['relevance']:.2f}, score {entry['score']:.2f}, {figures}"
        title = titles.get(entry["id"], "(purged)")
        lines += [f"{entry['id']}  {verdict}", f"    {figures}{trigger}: {title}"]
    for id in receipt.get("beside", ()):
        given = paint("given by the learnings file of the prompt", "green")
        lines.append(f"{id}  {given}: {titles.get(id, '(purged)')}")
    if receipt["query"] and not receipt["considered"]:
        lines.append("no learning shares a word or a trigger with it")
    return lines


def _told_beside_learnings(receipt: Mapping[str, Any]) -> list[str]:
    """Return what a brief in a conversation says beside learnings: what failed before, what is unfinished, notes."""
    lines = []
    for one in receipt.get("failed", ()):
        lines.append(f"failed before: {one['command']}" + (f": {one['error']}" if one["error"] else ""))
        if one["worked"]:
            lines.append(f"    then worked: {one['worked']}")
    for one in receipt.get("unfinished", ()):
        lines.append(f"unfinished: {one['task']}: {one['title']}")
        lines += [f"    {told}" for told in (one["reason"], one["suggestion"]) if told]
    lines += [f"note: {note}" for note in receipt.get("notes", ())]
    return [line.rstrip().replace("\n", " ") for line in lines]
