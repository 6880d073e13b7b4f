"""Claude Code's transcripts: one record a line, with the messages as they went to the model and back.

A sub-agent's conversation lies in a file of its own, in records of the same file that are marked as a side chain, or,
in older versions, in reports on its progress. Its prompts are the agent's words, and stand in the call already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from learnt.clients.shapes import dig, text_of
from learnt.clients.transcript.files import first_records, last_records, line_records
from learnt.clients.transcript.step import About, Calls, Step, blocks, call, moment, named, prompts, result, said, texts

_KINDS = {
    "Bash": "run",
    "PowerShell": "run",
    "Edit": "edit",
    "MultiEdit": "edit",
    "Write": "edit",
    "NotebookEdit": "edit",
    "Read": "read",
    "NotebookRead": "read",
}
# What a transcript may begin with, before anybody says anything.
_OTHERS = (
    "attachment",
    "file-history-snapshot",
    "mode",
    "permission-mode",
    "progress",
    "queue-operation",
    "summary",
    "system",
)
_KEYS = ("sessionId", "leafUuid", "messageId")
_EXIT_CODE = re.compile(r"\s*(?:Error: )?Exit code (\d+)\b")
# How the results of calls begin that a person, the permissions or a hook refused.
_REFUSED = re.compile(
    r"\s*(?:<tool_use_error>\s*)?(?:Error: )?(?:"
    r"The user doesn't want to (?:proceed|take this action)"
    r"|\[Request interrupted by user for tool use\]"
    r"|Permission (?:to use|for this) .{1,200}? (?:has been|was) denied"
    r"|Claude requested permissions? .{0,500}but you haven't granted it"
    r"|This command requires approval|This Bash command .{0,200}requires? approval"
    r"|PreToolUse:\S+ hook (?:error|blocking error|stopped)"
    r"|.{0,500} was blocked\. For security)",
    re.S,
)
_PERSON_SAID = "the user said:\n"
_NO_ANSWER = "The user wants to clarify these questions."


def recognised(record: Mapping[str, Any]) -> bool:
    """Return whether a record is one of Claude Code's."""
    if record.get("type") in ("user", "assistant"):
        return isinstance(record.get("message"), Mapping) and "uuid" in record
    return record.get("type") in _OTHERS and any(key in record for key in _KEYS)


def steps(path: str) -> Iterator[Step]:
    """Yield the steps of a transcript."""
    calls, queue = Calls(), _Queue()
    for record in line_records(path):
        kind, at = record.get("type"), moment(record.get("timestamp"))
        if kind == "progress":
            yield from _reported(record, calls)
        elif kind == "queue-operation":
            yield from prompts(queue.taken(record), at=at)
        elif kind == "attachment":
            yield from prompts(queue.attached(record.get("attachment")), at=at)
        else:
            yield from _of_message(record, calls, at=at, aside=bool(record.get("isSidechain")))


def about(path: str) -> About:
    """Return what a transcript tells of its conversation."""
    found: dict[str, Any] = {"client": "claude"}
    for record in first_records(path):
        for field, value in (
            ("session", named(record.get("sessionId"))),
            ("folder", named(record.get("cwd"))),
            ("branch", named(record.get("gitBranch"))),
            ("model", _model(record)),
            ("started_at", moment(record.get("timestamp"))),
        ):
            found[field] = found.get(field) or value
    times = [moment(record.get("timestamp")) for record in last_records(path)]
    return About(**found, ended_at=max(times, default=0))


class _Queue:
    """What a person typed while the agent was at work: it reaches the agent between two of its steps."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._taken = ""

    def taken(self, record: Mapping[str, Any]) -> str:
        """Return what went to the agent without a message of its own."""
        operation = record.get("operation")
        if operation == "enqueue":
            self._waiting = [*self._waiting[-100:], texts(record.get("content"))]
        elif operation == "popAll":
            self._waiting = []
        elif operation in ("dequeue", "remove") and self._waiting:
            first = self._waiting.pop(0)
            self._taken = first if operation == "remove" else ""
            return self._taken
        return ""

    def attached(self, attachment: object) -> str:
        """Return what went to the agent as an attachment, unless the queue has told it already."""
        if dig(attachment, "type") != "queued_command" or dig(attachment, "commandMode") not in (None, "prompt"):
            return ""
        prompt = texts(dig(attachment, "prompt"))
        return "" if prompt == self._taken else prompt


def _reported(record: Mapping[str, Any], calls: Calls) -> Iterator[Step]:
    """Yield the steps of a sub-agent, as older versions report them."""
    message = dig(record, "data", "message")
    if dig(record, "data", "type") == "agent_progress" and isinstance(message, Mapping):
        yield from _of_message(message, calls, at=moment(message.get("timestamp")), aside=True)


def _of_message(record: Mapping[str, Any], calls: Calls, *, at: int, aside: bool) -> Iterator[Step]:
    if record.get("type") not in ("user", "assistant") or record.get("isCompactSummary"):
        return
    content = dig(record, "message", "content")
    if record["type"] == "assistant":
        yield from _of_agent(record, content, calls, at=at, aside=aside)
        return
    for block in blocks(content):
        if block.get("type") == "tool_result":
            yield from _results(block, calls, at=at, aside=aside)
    if not (aside or record.get("isMeta") or record.get("isVisibleInTranscriptOnly")):
        yield from prompts(content, at=at)


def _of_agent(record: Mapping[str, Any], content: object, calls: Calls, *, at: int, aside: bool) -> Iterator[Step]:
    if record.get("isApiErrorMessage") or dig(record, "message", "model") == "<synthetic>":
        return
    for block in blocks([{"type": "text", "text": content}] if isinstance(content, str) else content):
        if block.get("type") == "tool_use":
            made = call(block.get("name"), block.get("input"), _KINDS, id=block.get("id"), at=at, aside=aside)
            yield calls.opened(made)
        elif block.get("type") == "text":
            yield from said(text_of(block.get("text")), at=at, aside=aside)


def _results(block: Mapping[str, Any], calls: Calls, *, at: int, aside: bool) -> Iterator[Step]:
    id, text = named(block.get("tool_use_id")), texts(block.get("content"))
    tool = calls.tool(id)
    exit_code = _EXIT_CODE.match(text) if _KINDS.get(tool) == "run" else None
    failed = block.get("is_error") is True or bool(exit_code and exit_code[1].strip("0"))
    denied = failed and bool(_REFUSED.match(text[:2_000]))
    yield result(text, call=id, tool=tool, failed=failed, denied=denied, at=at, aside=aside)
    if denied and _PERSON_SAID in text:
        words = text.partition(_PERSON_SAID)[2]
        yield from prompts("" if words.startswith(_NO_ANSWER) else words, at=at)


def _model(record: Mapping[str, Any]) -> str:
    name = named(dig(record, "message", "model"))
    return "" if name.startswith("<") else name
