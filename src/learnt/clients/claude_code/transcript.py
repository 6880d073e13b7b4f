"""Read Claude Code's transcripts, which have one record per line, with the messages to and from the model.

A sub-agent's conversation is in a separate file, in records marked as a side chain, or, in older versions, in progress
records. The agent wrote the sub-agent's prompts. They are skipped, because the tool call already contains them.
Records of messages say how Claude Code was started; other records count as the last message before them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from learnt.clients import registry
from learnt.clients.kit import transcript as kit
from learnt.clients.kit.run import find_folder
from learnt.text.json_values import dig, text_of

_CLIENT = registry.get("claude", "transcript")
_TOOLS = _CLIENT.tools
# Record types that can precede the first message in a transcript.
_OTHER_TYPES = "attachment file-history-snapshot mode permission-mode progress queue-operation summary system".split()
# Claude Code shortens longer folder names.
_MAX_FOLDER_NAME = 180
_KEYS = ("sessionId", "leafUuid", "messageId")
_EXIT_CODE = re.compile(r"\s*(?:Error: )?Exit code (\d+)\b")
# How the result begins if a person, the permissions or a hook denied the call.
_DENIED = re.compile(
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
# The attachments with hooks' texts for the model.
_HOOKS_TEXTS = ("hook_additional_context", "hook_blocking_error")
_PERSON_SAID = "the user said:\n"
_NO_ANSWER = "The user wants to clarify these questions."


def root(variables: Mapping[str, str]) -> str:
    """Return Claude Code's folder; empty if it is unknown."""
    return find_folder(variables, "CLAUDE_CONFIG_DIR", ".claude")


def find(
    variables: Mapping[str, str], *, folder: str, since_ms: int, database: kit.SessionDatabase | None = None
) -> Iterator[kit.TranscriptFile]:
    """Yield the transcripts of conversations in a folder and in the folders below it."""
    names = {_folder_name(path) for path in (folder, os.path.realpath(folder))}
    for project in kit.matching_paths(root(variables), "projects", "*"):
        name = os.path.basename(project)[:_MAX_FOLDER_NAME]
        if not name.startswith(tuple(names)):
            continue
        for pattern in (("*.jsonl",), ("*", "subagents", "*.jsonl")):
            for file in kit.changed_files("claude", since_ms, project, *pattern):
                cwd = kit.first_name(file.path, ("cwd",)) or (folder if name in names else "")
                yield file.replace(session=kit.first_name(file.path, ("sessionId",)) or file.session, folder=cwd)


def _folder_name(folder: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "-", folder)[:_MAX_FOLDER_NAME]


def recognises(record: Mapping[str, Any]) -> bool:
    """Return whether Claude Code wrote this record."""
    if record.get("type") in ("user", "assistant"):
        return isinstance(record.get("message"), Mapping) and "uuid" in record
    return record.get("type") in _OTHER_TYPES and any(key in record for key in _KEYS)


def steps(path: str) -> Iterator[kit.Step]:
    """Yield the steps of a transcript."""
    calls, queue, typed = kit.Calls(), _Queue(), False
    for record in kit.line_records(path):
        kind, at = record.get("type"), kit.read_time(record.get("timestamp"))
        if kind in ("user", "assistant"):
            typed = record.get("entrypoint") in _CLIENT.interactive_entries
        if kind == "progress":
            yield from _progress_steps(record, calls)
        elif kind == "queue-operation":
            yield from kit.make_prompts(queue.read_operation(record), at=at, typed=typed)
        elif kind == "attachment":
            yield from kit.make_prompts(queue.read_attachment(record.get("attachment")), at=at, typed=typed)
        else:
            yield from _message_steps(record, calls, at=at, aside=bool(record.get("isSidechain")), typed=typed)


def about(path: str) -> kit.About:
    """Return the facts about the conversation in a transcript."""
    return kit.gather("claude", path, _facts)


def list_given_texts(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts in a record that the model was given; `hook_success` only logs what a hook printed."""
    attachment = record.get("attachment")
    if dig(attachment, "type") in _HOOKS_TEXTS:
        yield kit.texts(dig(attachment, "content"))
        yield text_of(dig(attachment, "blockingError", "blockingError"))
    if record.get("type") == "user":
        content = dig(record, "message", "content")
        yield kit.texts(content)
        yield from (kit.texts(block.get("content")) for block in kit.blocks(content))


def records_hooks(record: Mapping[str, Any]) -> bool:
    """Return whether a record is about a hook; older versions do not record what hooks tell the model."""
    return text_of(dig(record, "attachment", "type")).startswith("hook_")


def _facts(record: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "session": kit.read_name(record.get("sessionId")),
        "folder": kit.read_name(record.get("cwd")),
        "branch": kit.read_name(record.get("gitBranch")),
        "model": real_model(dig(record, "message", "model")),
        "started_at": kit.read_time(record.get("timestamp")),
    }


class _Queue:
    """Messages that a person typed while the agent was working. The agent gets them between two steps."""

    def __init__(self) -> None:
        self._messages: list[str] = []
        self._last_removed = ""

    def read_operation(self, record: Mapping[str, Any]) -> str:
        """Return the message that the agent got without a separate record; empty if there is none."""
        operation = record.get("operation")
        if operation == "enqueue":
            self._messages = [*self._messages[-100:], kit.texts(record.get("content"))]
        elif operation == "popAll":
            self._messages = []
        elif operation in ("dequeue", "remove") and self._messages:
            first = self._messages.pop(0)
            self._last_removed = first if operation == "remove" else ""
            return self._last_removed
        return ""

    def read_attachment(self, attachment: object) -> str:
        """Return the message that the agent got as an attachment, unless it came from the queue."""
        if dig(attachment, "type") != "queued_command" or dig(attachment, "commandMode") not in (None, "prompt"):
            return ""
        prompt = kit.texts(dig(attachment, "prompt"))
        return "" if prompt == self._last_removed else prompt


def _progress_steps(record: Mapping[str, Any], calls: kit.Calls) -> Iterator[kit.Step]:
    """Yield a sub-agent's steps, as older versions report them."""
    message = dig(record, "data", "message")
    if dig(record, "data", "type") == "agent_progress" and isinstance(message, Mapping):
        yield from _message_steps(message, calls, at=kit.read_time(message.get("timestamp")), aside=True)


def _message_steps(
    record: Mapping[str, Any], calls: kit.Calls, *, at: int, aside: bool, typed: bool = False
) -> Iterator[kit.Step]:
    if record.get("type") not in ("user", "assistant") or record.get("isCompactSummary"):
        return
    content = dig(record, "message", "content")
    if record["type"] == "assistant":
        steps = _agent_steps(record, content, calls, at=at, aside=aside)
        yield from kit.in_message(dig(record, "message", "id"), steps)
        return
    for block in kit.blocks(content):
        if block.get("type") == "tool_result":
            yield from _result_steps(block, calls, at=at, aside=aside, typed=typed)
    if not (aside or record.get("isMeta") or record.get("isVisibleInTranscriptOnly")):
        yield from kit.make_prompts(content, at=at, typed=typed)


def _agent_steps(
    record: Mapping[str, Any], content: object, calls: kit.Calls, *, at: int, aside: bool
) -> Iterator[kit.Step]:
    if record.get("isApiErrorMessage") or dig(record, "message", "model") == "<synthetic>":
        return
    for block in kit.blocks([{"type": "text", "text": content}] if isinstance(content, str) else content):
        if block.get("type") == "tool_use":
            step = kit.make_call(block.get("name"), block.get("input"), _TOOLS, id=block.get("id"), at=at, aside=aside)
            yield calls.add(step)
        elif block.get("type") == "text":
            yield from kit.make_messages(text_of(block.get("text")), at=at, aside=aside)


def _result_steps(
    block: Mapping[str, Any], calls: kit.Calls, *, at: int, aside: bool, typed: bool
) -> Iterator[kit.Step]:
    id, text = kit.read_name(block.get("tool_use_id")), kit.texts(block.get("content"))
    tool = calls.pop_tool(id)
    exit_code = _EXIT_CODE.match(text) if _TOOLS.get(tool) == "run" else None
    failed = block.get("is_error") is True or bool(exit_code and exit_code[1].strip("0"))
    denied = failed and bool(_DENIED.match(text[:2_000]))
    yield kit.make_result(text, call=id, tool=tool, failed=failed, denied=denied, at=at, aside=aside)
    if denied and _PERSON_SAID in text:
        words = text.partition(_PERSON_SAID)[2]
        yield from kit.make_prompts("" if words.startswith(_NO_ANSWER) else words, at=at, typed=typed and not aside)


def real_model(value: object) -> str:
    """Return a model's name; empty for `<synthetic>`, which marks a service error."""
    name = kit.read_name(value)
    return "" if name.startswith("<") else name
