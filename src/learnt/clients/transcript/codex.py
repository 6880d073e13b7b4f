"""Codex's transcripts: one record a line, with the items as they went to the model and back.

A sub-agent has a file of its own, whose first record says so: its prompts are another agent's words. An edit of several
files in one patch is one call for each of them, with the same id. How a command ended stands in a record of its own
before its output, and in older versions in the output only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from learnt.clients.codex_outcome import OUTPUTS, item_failed, read_output
from learnt.clients.shapes import dig, text_of
from learnt.clients.transcript.files import first_records, last_records, line_records
from learnt.clients.transcript.patch import BEGINNING, changes
from learnt.clients.transcript.step import About, Calls, Step, call, kept, moment, named, prompts, result, said, texts
from learnt.text.json_values import parsed

_KINDS = {"exec_command": "run", "shell": "run", "shell_command": "run", "local_shell": "run", "container.exec": "run"}
_RECORDS = ("session_meta", "response_item", "turn_context", "event_msg")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_FAILED = re.compile(
    r"\s*(?:unsupported (?:custom tool )?call|failed to |(?:exec_command|write_stdin|shell\w*) failed "
    r"|apply_patch verification failed|aborted by user|execution error|error[: ])",
    re.I,
)
_REFUSED = re.compile(
    r"rejected by (?:the )?user|rejected by configuration|requires approval, but approval policy"
    r"|approval review denied|(?:blocked|denied|rejected) by policy",
    re.I,
)
_LONGEST_REFUSAL = 1_000
# Of a call, its output comes soon after its end.
_MOST_ENDED = 1_000


def recognised(record: Mapping[str, Any]) -> bool:
    """Return whether a record is one of Codex's."""
    kind = record.get("type")
    if isinstance(record.get("payload"), Mapping):
        return kind in _RECORDS
    # Before records had a payload.
    return "instructions" in record and "timestamp" in record and "id" in record and "git" in record


def steps(path: str) -> Iterator[Step]:
    """Yield the steps of a transcript."""
    calls, ended, aside = Calls(), dict[str, tuple[bool, bool]](), False
    for found in line_records(path):
        payload = found.get("payload")
        item = payload if isinstance(payload, Mapping) else found
        kind, at = item.get("type"), moment(found.get("timestamp"))
        if found.get("type") == "session_meta":
            aside = aside or _of_sub_agent(item)
        elif found.get("type") == "event_msg":
            _note_ending(item.get("item"), ended)
        elif item is not found and found.get("type") != "response_item":
            continue
        elif kind == "message":
            yield from _of_message(item, at=at, aside=aside)
        elif kind in _CALLS:
            for step in _called(item, at=at, aside=aside):
                yield calls.opened(step)
        elif kind in OUTPUTS:
            yield _result(item, calls, ended, at=at, aside=aside)


def about(path: str) -> About:
    """Return what a transcript tells of its conversation."""
    found: dict[str, Any] = {"client": "codex"}
    for one in first_records(path):
        payload = one.get("payload") if isinstance(one.get("payload"), Mapping) else one
        meta = one.get("type") in ("session_meta", None)
        for field, value in (
            ("session", named(dig(payload, "id")) if meta else ""),
            ("folder", named(dig(payload, "cwd"))),
            ("branch", named(dig(payload, "git", "branch"))),
            ("model", named(dig(payload, "model")) if one.get("type") == "turn_context" else ""),
            ("started_at", moment(one.get("timestamp"))),
        ):
            found[field] = found.get(field) or value
    times = [moment(one.get("timestamp")) for one in last_records(path)]
    return About(**found, ended_at=max(times, default=0))


def _of_sub_agent(meta: Mapping[str, Any]) -> bool:
    return meta.get("thread_source") == "subagent" or dig(meta, "source", "subagent") is not None


def _note_ending(item: object, ended: dict[str, tuple[bool, bool]]) -> None:
    """Keep whether a call failed, and whether it was refused, until its output comes."""
    status, id = dig(item, "status"), named(dig(item, "id"))
    if id and status in ("completed", "failed", "declined"):
        if len(ended) >= _MOST_ENDED:
            ended.clear()
        declined = status == "declined"
        ended[id] = (declined or bool(isinstance(item, Mapping) and item_failed(item)), declined)


def _of_message(item: Mapping[str, Any], *, at: int, aside: bool) -> Iterator[Step]:
    if item.get("role") == "assistant":
        yield from said(texts(item.get("content")), at=at, aside=aside)
    elif item.get("role") == "user" and not aside:
        yield from prompts(item.get("content"), at=at)


def _called(item: Mapping[str, Any], *, at: int, aside: bool) -> Iterator[Step]:
    tool = "local_shell" if item.get("type") == "local_shell_call" else item.get("name")
    given = _arguments(item)
    made = call(tool, given, _KINDS, id=item.get("call_id"), at=at, aside=aside)
    patch = _patch(given)
    # A command may print a patch, or write one down.
    applied = made.does != "run" or "apply_patch" in patch.partition(BEGINNING)[0]
    edits = list(changes(patch)) if applied else []
    for edit in edits:
        yield made.replace(does="edit", path=named(edit.path), text=kept(edit.after), before=kept(edit.before))
    if not edits:
        yield made


def _arguments(item: Mapping[str, Any]) -> object:
    if item.get("type") == "local_shell_call":
        return item.get("action")
    if item.get("type") == "custom_tool_call":
        return item.get("input")
    arguments = text_of(item.get("arguments"))
    return parsed(arguments) or arguments


def _patch(given: object) -> str:
    """Return the text that holds a patch; nothing when there is none."""
    for text in (given, dig(given, "input"), dig(given, "patch"), dig(given, "cmd"), dig(given, "command")):
        words = text if isinstance(text, list) else [text]
        joined = " ".join(word for word in words if isinstance(word, str))
        if BEGINNING in joined:
            return joined
    return ""


def _result(
    item: Mapping[str, Any], calls: Calls, ended: dict[str, tuple[bool, bool]], *, at: int, aside: bool
) -> Step:
    id, output = named(item.get("call_id")), item.get("output")
    text, failed, denied = _output(texts(dig(output, "content") if isinstance(output, Mapping) else output))
    noted_failed, noted_denied = ended.pop(id, (False, False))
    return result(
        text,
        call=id,
        tool=calls.tool(id),
        failed=failed or noted_failed or dig(output, "success") is False,
        denied=denied or noted_denied,
        at=at,
        aside=aside,
    )


def _output(text: str) -> tuple[str, bool, bool]:
    """Return what a tool answered, whether it failed and whether it was refused, as far as the text tells."""
    answered, failed = read_output(text)
    if failed is not None or answered != text:
        return answered, bool(failed), False
    denied = len(text) <= _LONGEST_REFUSAL and bool(_REFUSED.search(text))
    return text, denied or bool(_FAILED.match(text)), denied
