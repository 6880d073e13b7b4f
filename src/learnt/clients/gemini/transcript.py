"""Read Gemini CLI's transcripts, which are a log with one message per line or, in older versions, a single document.

A message is written again whenever it grows, alone or in a patch that sets all messages, so only its last version is
read. Each call contains its result. The messages that pass the results to the model repeat them and are skipped.

Nothing in a log says whether a person typed its prompts. But `gemini -p` takes one prompt and ends, so where one run of
the program has several, a person was there. A resumed conversation is another run, which begins with a new head.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import islice
from typing import Any

from learnt.clients import registry
from learnt.clients.gemini.hooks import exit_failed, split_output
from learnt.clients.kit import transcript as kit
from learnt.clients.kit.run import find_folder
from learnt.text.json_values import dig, text_of

_TOOLS = registry.get("gemini", "transcript").tools
_MAX_MESSAGES_READ = 100  # to find the model
_GO_ON = "Please continue."  # Gemini CLI says this to itself
_DENIED = re.compile(r"denied by policy|user denied|user cancelled|cancelled by (?:the )?user", re.I)


def root(variables: Mapping[str, str]) -> str:
    """Return the folder in which Gemini CLI stores its transcripts; empty if it is unknown."""
    home = find_folder(variables, "GEMINI_CLI_HOME") or find_folder(variables, "HOME")
    return home and os.path.join(home, ".gemini", "tmp")


def find(
    variables: Mapping[str, str], *, folder: str, since_ms: int, database: kit.SessionDatabase | None = None
) -> Iterator[kit.TranscriptFile]:
    """Yield the transcripts of conversations in a folder and in the folders below it."""
    # Older versions store a project's transcripts under a digest of its path.
    digests = {sha256(path.encode("utf-8", "replace")).hexdigest() for path in (folder, os.path.realpath(folder))}
    for storage in kit.matching_paths(root(variables), "*"):
        project = _project_folder(storage) or (folder if os.path.basename(storage) in digests else "")
        if not kit.lies_in(project, folder):
            continue
        for pattern in (("*.json",), ("*.jsonl",), ("*", "*.jsonl")):
            for file in kit.changed_files("gemini", since_ms, storage, "chats", *pattern):
                session = kit.read_name(_head(file.path).get("sessionId")) or file.session
                yield file.replace(session=session, folder=project)


def recognises(record: Mapping[str, Any]) -> bool:
    """Return whether a record is the head of a log or a document that Gemini CLI wrote."""
    return "sessionId" in record and "projectHash" in record


def steps(path: str) -> Iterator[kit.Step]:
    """Yield the steps of a transcript."""
    aside = _head(path).get("kind") == "subagent"
    typed = _find_typed(path)
    last = {_key(message): number for number, message in enumerate(_messages(path))}
    for number, message in enumerate(_messages(path)):
        if number >= last.get(_key(message), 0) or not message.get("id"):
            steps = _message_steps(message, aside=aside, typed=_key(message) in typed)
            yield from kit.in_message(message.get("id"), steps)


def about(path: str) -> kit.About:
    """Return the facts about the conversation in a transcript."""
    head = _head(path)
    model = next(
        filter(None, (kit.read_name(message.get("model")) for message in islice(_messages(path), _MAX_MESSAGES_READ))),
        "",
    )
    ended_at = kit.read_time(head.get("lastUpdated"))
    for record in kit.last_records(path):
        time = dig(record, "$set", "lastUpdated") or record.get("lastUpdated") or record.get("timestamp")
        ended_at = max(ended_at, kit.read_time(time))
    return kit.About(
        client="gemini",
        session=kit.read_name(head.get("sessionId")),
        folder=_project_folder(os.path.dirname(os.path.dirname(path))),
        model=model,
        started_at=kit.read_time(head.get("startTime")),
        ended_at=ended_at,
    )


def list_given_texts(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts in a record that the model was given."""
    for message in _messages_in(record):
        if message.get("type") == "user":
            yield kit.texts(message.get("content"))
        for tool_call in kit.blocks(message.get("toolCalls")):
            yield from map(_response_text, kit.blocks(tool_call.get("result")))


def records_hooks(record: Mapping[str, Any]) -> bool:
    """Return True: all versions with hooks record what hooks tell the model."""
    return True


def _project_folder(storage: str) -> str:
    """Return the project whose chats are stored below a folder; empty if it is unknown."""
    try:
        with open(os.path.join(storage, ".project_root"), encoding="utf-8", errors="replace") as file:
            return kit.read_name(file.read(5_000).strip())
    except OSError:
        return ""


def _head(path: str) -> dict[str, Any]:
    """Return the record before the messages in a transcript."""
    frame = kit.document_frame(path)
    return frame if recognises(frame) else next(filter(recognises, kit.first_records(path)), {})


def _messages(path: str) -> Iterator[Mapping[str, Any]]:
    """Yield all versions of the messages, in the order in which they were written."""
    if "messages" in kit.document_frame(path):
        yield from kit.document_parts(path)
        return
    for record in kit.line_records(path):
        yield from _messages_in(record)


def _messages_in(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the messages in a line of a log."""
    return kit.blocks(dig(record, "$set", "messages") if "$set" in record else [record] if "id" in record else [])


def _find_typed(path: str) -> set[int]:
    """Return the keys of the prompts in runs with several prompts; a document does not show where a run begins."""
    runs, prompts, run = dict[int, int](), dict[int, set[int]](), 0
    for record in () if "messages" in kit.document_frame(path) else kit.line_records(path):
        run += recognises(record) or dig(record, "$set", "sessionId") is not None
        for message in _messages_in(record):
            for step in kit.make_prompts(_prompt(message), at=0, typed=False):
                if step.text != _GO_ON and _key(message) not in runs:
                    runs[_key(message)] = run
                    prompts.setdefault(run, set()).add(hash(step.text))
    return {key for key, run in runs.items() if len(prompts[run]) > 1}


def _prompt(message: Mapping[str, Any]) -> object:
    """Return what a person wrote in a message; empty for other messages."""
    return (message.get("displayContent") or message.get("content")) if message.get("type") == "user" else ""


def _key(message: Mapping[str, Any]) -> int:
    # All keys are in memory at once, so a number is used instead of the longer id.
    return hash(text_of(message.get("id")))


def _message_steps(message: Mapping[str, Any], *, aside: bool, typed: bool) -> Iterator[kit.Step]:
    at = kit.read_time(message.get("timestamp"))
    if message.get("type") == "user" and not aside:
        yield from kit.make_prompts(_prompt(message), at=at, typed=typed)
    elif message.get("type") == "gemini":
        yield from kit.make_messages(kit.texts(message.get("content")), at=at, aside=aside)
        for tool_call in kit.blocks(message.get("toolCalls")):
            yield kit.make_call(
                tool_call.get("name"), tool_call.get("args"), _TOOLS, id=tool_call.get("id"), at=at, aside=aside
            )
            yield from _result_steps(tool_call, aside=aside)


def _result_steps(tool_call: Mapping[str, Any], *, aside: bool) -> Iterator[kit.Step]:
    status, name = tool_call.get("status"), kit.read_name(tool_call.get("name"))
    if status not in ("success", "error", "cancelled"):
        return
    text = "\n".join(filter(None, map(_response_text, kit.blocks(tool_call.get("result"))))) or text_of(
        tool_call.get("resultDisplay")
    )
    ending: dict[str, str] = {}
    if _TOOLS.get(name) == "run":
        text, ending = split_output(text)
    yield kit.make_result(
        text,
        call=kit.read_name(tool_call.get("id")),
        tool=name,
        failed=status != "success" or exit_failed(ending),
        denied=status == "cancelled" or (status == "error" and bool(_DENIED.search(text[:500]))),
        at=kit.read_time(tool_call.get("timestamp")),
        aside=aside,
    )


def _response_text(part: Mapping[str, Any]) -> str:
    response = dig(part, "functionResponse", "response")
    return text_of(dig(response, "output")) or text_of(dig(response, "error")) or text_of(part.get("text"))
