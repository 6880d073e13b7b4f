"""Read opencode's conversations: messages with their parts, from an exported document or from its database.

`<database>#<session>` identifies a conversation in the database. The caller passes a reader for the database, which
returns sessions and messages in the export's shape. `opencode run` forbids the agent to ask questions, which shows that
nobody is there to type an answer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from learnt.clients import registry
from learnt.clients.kit import transcript as kit
from learnt.clients.kit.run import find_folder
from learnt.errors import LearntError
from learnt.text.json_values import dig, text_of

_TOOLS = registry.get("opencode", "transcript").tools
_DENIED = (
    "The user rejected permission",
    "The user has specified a rule which prevents",
    "The user dismissed this question",
)
# Since this version `opencode run` forbids questions in every session that it starts.
_TELLS_SINCE = (1, 2)
_PERSON_SAID = "with the following feedback: "


def root(variables: Mapping[str, str]) -> str:
    """Return the folder of opencode's database; empty if it is unknown."""
    folder = find_folder(variables, "XDG_DATA_HOME", ".local", "share")
    return folder and os.path.join(folder, "opencode")


def database_path(variables: Mapping[str, str]) -> str:
    """Return the path of opencode's database; empty if it is unknown."""
    folder = root(variables)
    return folder and os.path.join(folder, "opencode.db")


def find(
    variables: Mapping[str, str], *, folder: str, since_ms: int, database: kit.SessionDatabase | None = None
) -> Iterator[kit.TranscriptFile]:
    """Yield all conversations in the database, because opencode does not store them by folder."""
    path = database_path(variables)
    if database is None or not os.path.isfile(path):
        return
    try:
        sessions = list(database.sessions(path, since_ms=since_ms))
    except LearntError:  # other clients' transcripts can still be read
        return
    for info in sessions:
        facts, size = about_of(info), info.get("size")
        yield kit.TranscriptFile(
            client="opencode",
            path=f"{path}#{facts.session}",
            session=facts.session,
            folder=facts.folder,
            size=size if isinstance(size, int) else 0,
            changed_at=facts.ended_at,
        )


def recognises(record: Mapping[str, Any]) -> bool:
    """Return whether a document (without its messages) is an opencode export."""
    return text_of(dig(record, "info", "id")).startswith("ses") and "messages" in record


def steps(path: str) -> Iterator[kit.Step]:
    """Yield the steps in an export."""
    return steps_of(kit.document_frame(path).get("info"), kit.document_parts(path))


def about(path: str) -> kit.About:
    """Return the facts about an exported conversation."""
    return about_of(kit.document_frame(path).get("info"))


def list_given_texts(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts in a message that the model was given, without those that only our plugin can add to it."""
    for part in kit.blocks(record.get("parts")):
        if part.get("type") == "text" and dig(record, "info", "role") == "user" and not part.get("ignored"):
            yield text_of(part.get("text"))
        elif part.get("type") == "tool":
            yield from (text_of(dig(part, "state", key)) for key in ("output", "error"))


def records_hooks(record: Mapping[str, Any]) -> bool:
    """Return False: what our plugin adds to messages and results is not recorded; it reports that itself."""
    return False


def steps_of(info: object, messages: Iterable[Mapping[str, Any]]) -> Iterator[kit.Step]:
    """Yield the steps in a session."""
    aside, typed = bool(dig(info, "parentID")), _is_interactive(info)
    for message in messages:
        role, id = dig(message, "info", "role"), dig(message, "info", "id")
        at = kit.read_time(dig(message, "info", "time", "created"))
        if dig(message, "info", "summary") is True:  # a summary of compacted messages
            continue
        for part in kit.blocks(message.get("parts")):
            if part.get("synthetic") or part.get("ignored"):
                continue
            if part.get("type") == "tool":
                yield from kit.in_message(id, _tool_steps(part, at=at, aside=aside, typed=typed))
            elif part.get("type") == "text" and role == "assistant":
                yield from kit.in_message(id, kit.make_messages(text_of(part.get("text")), at=at, aside=aside))
            elif part.get("type") == "text" and role == "user" and not aside:
                yield from kit.make_prompts(part.get("text"), at=at, typed=typed)


def _is_interactive(info: object) -> bool:
    """Return whether a person types the prompts of a session; False if its version does not show it."""
    version = tuple(int(number) for number in text_of(dig(info, "version")).split(".")[:2] if number.isdecimal())
    rules = kit.blocks(dig(info, "permission"))
    is_unattended = any(rule.get("permission") == "question" and rule.get("action") == "deny" for rule in rules)
    return version >= _TELLS_SINCE and not is_unattended


def about_of(info: object) -> kit.About:
    """Return the facts about a session."""
    return kit.About(
        client="opencode",
        session=kit.read_name(dig(info, "id")),
        folder=kit.read_name(dig(info, "directory")),
        model=kit.read_name(dig(info, "model", "id")),
        started_at=kit.read_time(dig(info, "time", "created")),
        ended_at=kit.read_time(dig(info, "time", "updated")),
    )


def _tool_steps(part: Mapping[str, Any], *, at: int, aside: bool, typed: bool) -> Iterator[kit.Step]:
    state = part.get("state")
    arguments, status = dig(state, "input"), dig(state, "status")
    step = kit.make_call(
        part.get("tool"),
        arguments,
        _TOOLS,
        id=part.get("callID"),
        at=kit.read_time(dig(state, "time", "start")) or at,
        aside=aside,
    )
    yield from kit.split_by_file(step, text_of(dig(arguments, "patchText")) if step.does == "edit" else "")
    if status in ("completed", "error"):
        yield from _result_steps(step, state, aside=aside, typed=typed)


def _result_steps(step: kit.Step, state: object, *, aside: bool, typed: bool) -> Iterator[kit.Step]:
    failed = dig(state, "status") == "error"
    text = text_of(dig(state, "error" if failed else "output"))
    denied = failed and text.startswith(_DENIED)
    at = kit.read_time(dig(state, "time", "end")) or step.at
    exit_code = dig(state, "metadata", "exit")
    ended_badly = step.does == "run" and exit_code not in (None, 0)
    yield kit.make_result(
        text, call=step.call, tool=step.tool, failed=failed or ended_badly, denied=denied, at=at, aside=aside
    )
    if denied:
        yield from kit.make_prompts(text.partition(_PERSON_SAID)[2], at=at, typed=typed and not aside)
