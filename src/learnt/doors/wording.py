"""What the command line and the MCP tools both say: about a brief, a debrief, a mark, and a receipt."""

from __future__ import annotations

from learnt.brief.render import GIVEN_TO, NO_ROOM
from learnt.doors.cli.screen import paint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from learnt.model import Brief, Debrief, Learning

_PURGED = "(purged)"


def explain_empty_brief(brief: Brief) -> str:
    """Return why a brief has no text."""
    reasons = [entry["left_out"] for entry in brief.receipt["considered"]]
    too_long = reasons.count(NO_ROOM)
    repeated = [reason for reason in reasons if reason.startswith(GIVEN_TO)]
    if too_long:
        budget = brief.receipt["settings"]["budget_tokens"]
        matter = "1 learning matters, but does" if too_long == 1 else f"{too_long} learnings matter, but do"
        return f"{matter} not fit in {budget} tokens."
    if not repeated:
        return "Nothing known matters for this task."
    counts = {reason: repeated.count(reason) for reason in repeated}
    parts = (f"{count} {'was' if count == 1 else 'were'} {reason}" for reason, count in counts.items())
    return f"Nothing new: {', '.join(parts)} already."


def describe_debrief(debrief: Debrief, *, task_was_named: bool, verbose: bool) -> list[str]:
    """Return what an output taught; a new task is pointed out if the caller named it, as the id may be misspelt."""
    if debrief.spooled:
        return [f"Saved the output of {debrief.task}; it is read when the database is available"]
    new = " (a new task)" if debrief.new_task and task_was_named else ""
    lines = [f"Debriefed {debrief.task}{new}: {debrief.result}"]
    parts = {
        "learnt": debrief.learnings,
        "known already": debrief.repeated,
        "helpful": debrief.helpful,
        "not helpful": debrief.not_helpful,
        "marks that do not count": [f"{id} ({reason})" for id, reason in debrief.refusals.items()],
    }
    lines += [f"  {name}: {', '.join(ids)}" for name, ids in parts.items() if ids]
    lines += [f"  secrets redacted: {debrief.redactions}"] if debrief.redactions else []
    return [*lines, *(f"  ignored: {reason}" for reason in debrief.ignored if verbose)]


def describe_mark(learning: Learning, *, helpful: bool) -> str:
    """Return what a mark did."""
    return f"Marked {learning.id} as {'helpful' if helpful else 'not helpful'}: confidence {learning.confidence:.2f}"


def describe_receipt(brief: Brief, titles: Mapping[str, str]) -> list[str]:
    """Return why a brief contains what it does: the request, and what was considered."""
    receipt = brief.receipt
    warning = ", including a stuck warning outside the budget" if receipt["stuck"] else ""
    budget = receipt["settings"]["budget_tokens"]
    lines = [f"{paint(brief.id, 'bold')} for {brief.task}: {brief.tokens} tokens of {budget}{warning}"]
    lines.append(join_parts({"occasion": brief.occasion, "agent": brief.agent, "client": brief.client}))
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


def join_parts(parts: Mapping[str, str]) -> str:
    """Return named values on one line, without the empty ones."""
    return ", ".join(f"{name}: {value}" for name, value in parts.items() if value)
