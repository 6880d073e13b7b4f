"""opencode's conversations: messages with their parts, from the document that it exports or from its database.

`<database>#<session>` names a conversation in the database. The caller passes what reads it: its sessions and messages
have the shape of the export.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from learnt.clients.kit.run import place
from learnt.clients.kit.steps import (
    About,
    Step,
    blocks,
    make_call,
    make_messages,
    make_prompts,
    make_result,
    read_name,
    read_patch,
    read_time,
    shorten,
)
from learnt.clients.kit.transcript import (
    FileOnDisk,
    SessionDatabase,
    TranscriptFile,
    document_frame,
    document_parts,
    make_file,
)
from learnt.errors import LearntError
from learnt.text.json_values import dig, text_of

_KINDS = {
    "bash": "run",
    "shell": "run",
    "edit": "edit",
    "multiedit": "edit",
    "write": "edit",
    "patch": "edit",
    "apply_patch": "edit",
    "read": "read",
}
_REFUSED = (
    "The user rejected permission",
    "The user has specified a rule which prevents",
    "The user dismissed this question",
)
_PERSON_SAID = "with the following feedback: "


def database_path(places: Mapping[str, str]) -> str:
    """Return opencode's database; nothing where it is not known."""
    folder = place(places, "XDG_DATA_HOME", ".local", "share")
    return folder and os.path.join(folder, "opencode", "opencode.db")


def find(
    places: Mapping[str, str], *, folder: str, since_ms: int, database: SessionDatabase | None = None
) -> Iterator[TranscriptFile]:
    """Yield all conversations in the database: opencode does not keep them by folder."""
    path = database_path(places)
    if database is None or not os.path.isfile(path):
        return
    try:
        sessions = list(database.sessions(path, since_ms=since_ms))
    except LearntError:  # the other clients' transcripts are there all the same
        return
    for info in sessions:
        facts, size = about_of(info), info.get("size")
        file = FileOnDisk(f"{path}#{facts.session}", size if isinstance(size, int) else 0, facts.ended_at)
        yield make_file("opencode", file, session=facts.session, folder=facts.folder)


def recognises(record: Mapping[str, Any]) -> bool:
    """Return whether a document without its messages is an export of opencode."""
    return text_of(dig(record, "info", "id")).startswith("ses") and "messages" in record


def steps(path: str) -> Iterator[Step]:
    """Yield the steps of an export."""
    return steps_of(document_frame(path).get("info"), document_parts(path))


def about(path: str) -> About:
    """Return what an export says about its conversation."""
    return about_of(document_frame(path).get("info"))


def steps_of(info: object, messages: Iterable[Mapping[str, Any]]) -> Iterator[Step]:
    """Yield the steps of a session."""
    aside = bool(dig(info, "parentID"))
    for message in messages:
        role, at = dig(message, "info", "role"), read_time(dig(message, "info", "time", "created"))
        if dig(message, "info", "summary") is True:  # of what was compacted
            continue
        for part in blocks(message.get("parts")):
            if part.get("synthetic") or part.get("ignored"):
                continue
            if part.get("type") == "tool":
                yield from _tool_steps(part, at=at, aside=aside)
            elif part.get("type") == "text" and role == "assistant":
                yield from make_messages(text_of(part.get("text")), at=at, aside=aside)
            elif part.get("type") == "text" and role == "user" and not aside:
                yield from make_prompts(part.get("text"), at=at)


def about_of(info: object) -> About:
    """Return what a session says about its conversation."""
    return About(
        client="opencode",
        session=read_name(dig(info, "id")),
        folder=read_name(dig(info, "directory")),
        model=read_name(dig(info, "model", "id")),
        started_at=read_time(dig(info, "time", "created")),
        ended_at=read_time(dig(info, "time", "updated")),
    )


def _tool_steps(part: Mapping[str, Any], *, at: int, aside: bool) -> Iterator[Step]:
    state = part.get("state")
    given, status = dig(state, "input"), dig(state, "status")
    step = make_call(
        part.get("tool"),
        given,
        _KINDS,
        id=part.get("callID"),
        at=read_time(dig(state, "time", "start")) or at,
        aside=aside,
    )
    edits = list(read_patch(text_of(dig(given, "patchText")))) if step.does == "edit" else []
    for edit in edits:
        yield step.replace(path=read_name(edit.path), text=shorten(edit.after), before=shorten(edit.before))
    if not edits:
        yield step
    if status in ("completed", "error"):
        yield from _result_steps(step, state, aside=aside)


def _result_steps(step: Step, state: object, *, aside: bool) -> Iterator[Step]:
    failed = dig(state, "status") == "error"
    text = text_of(dig(state, "error" if failed else "output"))
    denied = failed and text.startswith(_REFUSED)
    at = read_time(dig(state, "time", "end")) or step.at
    exit_code = dig(state, "metadata", "exit")
    ended_badly = step.does == "run" and exit_code not in (None, 0)
    yield make_result(
        text, call=step.call, tool=step.tool, failed=failed or ended_badly, denied=denied, at=at, aside=aside
    )
    if denied:
        yield from make_prompts(text.partition(_PERSON_SAID)[2], at=at)
