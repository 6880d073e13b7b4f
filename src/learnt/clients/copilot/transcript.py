"""Read Copilot's transcripts, which have one event per line. VS Code writes the same format.

A sub-agent's events are in the same file, marked with its id. Another agent wrote its prompts, so they are skipped. A
message has two texts: what a person wrote, and what the model was given, with the answers of hooks. What hooks say at
the start of a session and before a call reaches the model, too, but only the former is recorded, with the hook. The
first sentences to the model say whether a person uses Copilot.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from learnt.clients import registry
from learnt.clients.copilot.hooks import split_output
from learnt.clients.kit import transcript as kit
from learnt.clients.kit.run import find_folder
from learnt.text.json_values import dig, text_of

_CLIENT = registry.get("copilot", "transcript")
_SESSIONS = "session-state"
_START, _RESUMED = "session.start", "session.resume"
_PROMPT, _MESSAGE, _RESULT = "user.message", "assistant.message", "tool.execution_complete"
_INSTRUCTIONS, _INTERACTIVE, _BEGINNING = "system.message", "You are an interactive tool", 200
_DENIED = ("denied", "rejected")


def root(variables: Mapping[str, str]) -> str:
    """Return Copilot's folder; empty if it is unknown."""
    return find_folder(variables, "COPILOT_HOME", ".copilot")


def find(
    variables: Mapping[str, str], *, folder: str, since_ms: int, database: kit.SessionDatabase | None = None
) -> Iterator[kit.TranscriptFile]:
    """Yield all transcripts, because Copilot does not store them by folder."""
    for file in kit.changed_files("copilot", since_ms, root(variables), _SESSIONS, "*", "events.jsonl"):
        session = os.path.basename(os.path.dirname(file.path))
        yield file.replace(session=session, folder=kit.first_name(file.path, ("data", "context", "cwd")))


def recognises(record: Mapping[str, Any]) -> bool:
    """Return whether Copilot wrote this record."""
    return record.get("type") in (_START, _PROMPT, _MESSAGE) and isinstance(record.get("data"), Mapping)


def steps(path: str) -> Iterator[kit.Step]:
    """Yield the steps of a transcript."""
    calls, typed = kit.Calls(), _is_interactive(path)
    for record in kit.line_records(path):
        kind, data = record.get("type"), record.get("data")
        at, aside = kit.read_time(record.get("timestamp")), bool(record.get("agentId"))
        if not isinstance(data, Mapping):
            continue
        if kind == _PROMPT and not (aside or data.get("source") or data.get("isAutopilotContinuation")):
            yield from kit.make_prompts(data.get("content"), at=at, typed=typed)
        elif kind == _MESSAGE:
            yield from kit.make_messages(text_of(data.get("content")), at=at, aside=aside)
            for request in kit.blocks(data.get("toolRequests")):
                for step in _call_steps(request, at=at, aside=aside):
                    yield calls.add(step)
        elif kind == _RESULT:
            yield _result(data, calls, at=at, aside=aside)


def _is_interactive(path: str) -> bool:
    """Return whether only a person used Copilot in a conversation; False if a resumed one does not say so again."""
    beginnings, starts = list[str](), 0
    for record in kit.line_records(path):
        starts += record.get("type") in (_START, _RESUMED)
        if record.get("type") == _INSTRUCTIONS:
            beginnings.append(text_of(dig(record, "data", "content"))[:_BEGINNING])
    return len(beginnings) >= max(starts, 1) and all(_INTERACTIVE in beginning for beginning in beginnings)


def about(path: str) -> kit.About:
    """Return the facts about the conversation in a transcript."""
    return kit.gather("copilot", path, _facts)


def list_given_texts(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts in a record that the model was given."""
    data, kind = record.get("data"), record.get("type")
    if kind == _PROMPT:
        yield text_of(dig(data, "transformedContent")) or kit.texts(dig(data, "content"))
    elif kind == _RESULT:
        yield text_of(dig(data, "result", "content"))
        yield text_of(dig(data, "error", "message"))
    elif kind == "hook.end" and dig(data, "hookType") == "sessionStart":
        yield text_of(dig(data, "output", "additionalContext"))


def records_hooks(record: Mapping[str, Any]) -> bool:
    """Return whether a record is about a hook."""
    return record.get("type") == "hook.start"


def _facts(record: Mapping[str, Any]) -> dict[str, Any]:
    data = record.get("data")
    is_start = record.get("type") in (_START, _RESUMED)
    return {
        "session": kit.read_name(dig(data, "sessionId")) if is_start else "",
        "folder": kit.read_name(dig(data, "context", "cwd")),
        "branch": kit.read_name(dig(data, "context", "branch")),
        "model": kit.read_name(dig(data, "selectedModel") or dig(data, "model")),
        "started_at": kit.read_time(record.get("timestamp")),
    }


def _call_steps(request: Mapping[str, Any], *, at: int, aside: bool) -> list[kit.Step]:
    arguments = request.get("arguments")
    id = request.get("toolCallId")
    step = kit.make_call(request.get("name"), arguments, _CLIENT.tools, id=id, at=at, aside=aside)
    patch = arguments if isinstance(arguments, str) else text_of(dig(arguments, "input"))
    return kit.split_by_file(step, patch if kit.PATCH_BEGINNING in patch else "")


def _result(data: Mapping[str, Any], calls: kit.Calls, *, at: int, aside: bool) -> kit.Step:
    id = kit.read_name(data.get("toolCallId"))
    text, exit_code = split_output(text_of(dig(data, "result", "content")))
    code = dig(data, "shellExecution", "exitCode")
    return kit.make_result(
        text or text_of(dig(data, "error", "message")),
        call=id,
        tool=calls.pop_tool(id),
        failed=data.get("success") is False or bool(exit_code if code is None else code),
        denied=dig(data, "error", "code") in _DENIED,
        at=at,
        aside=aside,
    )
