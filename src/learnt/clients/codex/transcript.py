"""Read Codex's transcripts, which have one record per line, with the items to and from the model.

A sub-agent has a separate file, and its first record says so. The prompts in that file are skipped, because another
agent wrote them. A patch to several files becomes one call per file, all with the same id. A command's result is in a
record before its output; in older versions, it is only in the output. The first record names the program in which the
conversation began (`originator`); a conversation that was begun by a person and resumed by `codex exec` looks the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from learnt.clients import registry
from learnt.clients.codex.hooks import OUTPUTS, item_failed, read_output
from learnt.clients.kit import transcript as kit
from learnt.clients.kit.run import find_folder
from learnt.text.json_values import dig, parsed, text_of

_CLIENT = registry.get("codex", "transcript")
# Edits are recognised by their patch. Versions without hooks used `container.exec`.
_SHELLS = [tool for tool, does in _CLIENT.tools.items() if does == "run"]
_TOOLS = dict.fromkeys((*_SHELLS, "container.exec"), "run")
_RECORDS = ("session_meta", "response_item", "turn_context", "event_msg")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_FAILED = re.compile(
    r"\s*(?:unsupported (?:custom tool )?call|failed to |(?:exec_command|write_stdin|shell\w*) failed "
    r"|apply_patch verification failed|aborted by user|execution error|error[: ])",
    re.I,
)
_DENIED = re.compile(
    r"rejected by (?:the )?user|rejected by configuration|requires approval, but approval policy"
    r"|approval review denied|(?:blocked|denied|rejected) by policy",
    re.I,
)
_MAX_DENIAL_LENGTH = 1_000
# The limit for calls whose result is known but whose output has not been read yet.
_MAX_ENDINGS = 1_000


def root(variables: Mapping[str, str]) -> str:
    """Return Codex's folder; empty if it is unknown."""
    return find_folder(variables, "CODEX_HOME", ".codex")


def find(
    variables: Mapping[str, str], *, folder: str, since_ms: int, database: kit.SessionDatabase | None = None
) -> Iterator[kit.TranscriptFile]:
    """Yield all transcripts, because Codex does not store them by folder."""
    for pattern in (("sessions", "*", "*", "*", "*.jsonl"), ("archived_sessions", "*.jsonl")):
        for file in kit.changed_files("codex", since_ms, root(variables), *pattern):
            session = kit.first_name(file.path, ("payload", "id"), ("id",)) or file.session
            yield file.replace(session=session, folder=kit.first_name(file.path, ("payload", "cwd")))


def recognises(record: Mapping[str, Any]) -> bool:
    """Return whether Codex wrote this record."""
    kind = record.get("type")
    if isinstance(record.get("payload"), Mapping):
        return kind in _RECORDS
    # In the oldest format, records have no payload.
    return "instructions" in record and "timestamp" in record and "id" in record and "git" in record


def steps(path: str) -> Iterator[kit.Step]:
    """Yield the steps of a transcript."""
    calls, endings, aside, typed = kit.Calls(), dict[str, tuple[bool, bool]](), False, False
    for record in kit.line_records(path):
        item = _item(record)
        kind, at = item.get("type"), kit.read_time(record.get("timestamp"))
        if record.get("type") == "session_meta":
            aside, typed = aside or _is_sub_agent(item), _is_interactive(item)
        elif record.get("type") == "event_msg":
            _remember_ending(item.get("item"), endings)
        elif item is not record and record.get("type") != "response_item":
            continue
        elif kind == "message":
            yield from _message_steps(item, at=at, aside=aside, typed=typed)
        elif kind in _CALLS:
            for step in _call_steps(item, at=at, aside=aside):
                yield calls.add(step)
        elif kind in OUTPUTS:
            yield _result(item, calls, endings, at=at, aside=aside)


def about(path: str) -> kit.About:
    """Return the facts about the conversation in a transcript."""
    return kit.gather("codex", path, _facts)


def list_given_texts(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts in a record that the model was given."""
    item = _item(record)
    if item.get("type") == "message" and item.get("role") != "assistant":
        yield kit.texts(item.get("content"))
    elif item.get("type") in OUTPUTS:
        output = item.get("output")
        yield kit.texts(dig(output, "content") if isinstance(output, Mapping) else output)


def records_hooks(record: Mapping[str, Any]) -> bool:
    """Return True for the first record: all versions with hooks record what hooks tell the model."""
    return record.get("type") == "session_meta"


def _facts(record: Mapping[str, Any]) -> dict[str, Any]:
    kind, item = record.get("type"), _item(record)
    return {
        "session": kit.read_name(item.get("id")) if kind in ("session_meta", None) else "",
        "folder": kit.read_name(item.get("cwd")),
        "branch": kit.read_name(dig(item, "git", "branch")),
        "model": kit.read_name(item.get("model")) if kind == "turn_context" else "",
        "started_at": kit.read_time(record.get("timestamp")),
    }


def _item(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the item in a record; in older versions, the record itself is the item."""
    payload = record.get("payload")
    return payload if isinstance(payload, Mapping) else record


def _is_sub_agent(meta: Mapping[str, Any]) -> bool:
    return meta.get("thread_source") == "subagent" or dig(meta, "source", "subagent") is not None


def _is_interactive(meta: Mapping[str, Any]) -> bool:
    """Return whether a conversation began in a program in which a person types; older versions name no source."""
    return meta.get("originator") in _CLIENT.interactive_entries and meta.get("source") in (None, "cli", "vscode")


def _remember_ending(item: object, endings: dict[str, tuple[bool, bool]]) -> None:
    """Remember whether a call failed and whether it was denied, until its output is read."""
    status, id = dig(item, "status"), kit.read_name(dig(item, "id"))
    if id and status in ("completed", "failed", "declined"):
        if len(endings) >= _MAX_ENDINGS:
            endings.clear()
        declined = status == "declined"
        endings[id] = (declined or bool(isinstance(item, Mapping) and item_failed(item)), declined)


def _message_steps(item: Mapping[str, Any], *, at: int, aside: bool, typed: bool) -> Iterator[kit.Step]:
    if item.get("role") == "assistant":
        yield from kit.make_messages(kit.texts(item.get("content")), at=at, aside=aside)
    elif item.get("role") == "user" and not aside:
        yield from kit.make_prompts(item.get("content"), at=at, typed=typed)


def _call_steps(item: Mapping[str, Any], *, at: int, aside: bool) -> list[kit.Step]:
    tool = "local_shell" if item.get("type") == "local_shell_call" else item.get("name")
    arguments = _arguments(item)
    step = kit.make_call(tool, arguments, _TOOLS, id=item.get("call_id"), at=at, aside=aside)
    patch = _patch(arguments)
    # A command can also print a patch or write one to a file, which does not edit the files in the patch.
    applied = step.does != "run" or "apply_patch" in patch.partition(kit.PATCH_BEGINNING)[0]
    return kit.split_by_file(step, patch if applied else "")


def _arguments(item: Mapping[str, Any]) -> object:
    if item.get("type") == "local_shell_call":
        return item.get("action")
    if item.get("type") == "custom_tool_call":
        return item.get("input")
    arguments = text_of(item.get("arguments"))
    return parsed(arguments) or arguments


def _patch(arguments: object) -> str:
    """Return the argument that contains a patch; empty if there is none."""
    for text in (arguments, *(dig(arguments, key) for key in ("input", "patch", "cmd", "command"))):
        words = text if isinstance(text, list) else [text]
        joined = " ".join(word for word in words if isinstance(word, str))
        if kit.PATCH_BEGINNING in joined:
            return joined
    return ""


def _result(
    item: Mapping[str, Any], calls: kit.Calls, endings: dict[str, tuple[bool, bool]], *, at: int, aside: bool
) -> kit.Step:
    id, output = kit.read_name(item.get("call_id")), item.get("output")
    text, failed, denied = _output(kit.texts(dig(output, "content") if isinstance(output, Mapping) else output))
    noted_failed, noted_denied = endings.pop(id, (False, False))
    return kit.make_result(
        text,
        call=id,
        tool=calls.pop_tool(id),
        failed=failed or noted_failed or dig(output, "success") is False,
        denied=denied or noted_denied,
        at=at,
        aside=aside,
    )


def _output(text: str) -> tuple[str, bool, bool]:
    """Return a tool's output, whether the call failed, and whether it was denied, according to the text."""
    output, failed = read_output(text)
    if failed is not None or output != text:
        return output, bool(failed), False
    denied = len(text) <= _MAX_DENIAL_LENGTH and bool(_DENIED.search(text))
    return text, denied or bool(_FAILED.match(text)), denied
