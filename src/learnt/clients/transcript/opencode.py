"""opencode's conversations: messages with their parts, from the document that it exports or from its database.

`<database>#<session>` names a conversation in the database. Reading that is the business of whoever passes `Database`
in: what comes out of it has the shape of the export.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from learnt.clients.shapes import dig, text_of
from learnt.clients.transcript.files import document_frame, document_parts
from learnt.clients.transcript.patch import changes
from learnt.clients.transcript.step import About, Step, blocks, call, kept, moment, named, prompts, result, said

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


class Database(Protocol):
    """What reads opencode's database."""

    def sessions(self, path: str, *, since_ms: int = 0) -> Iterable[Mapping[str, Any]]:
        """Return the sessions that changed since then, each as the export's `info`, with its `size`."""

    def session(self, path: str, id: str) -> Mapping[str, Any]:
        """Return one session as the export's `info`, empty when there is none."""

    def messages(self, path: str, id: str) -> Iterable[Mapping[str, Any]]:
        """Return the messages of a session in their order, each as one of the export's `messages`."""


def recognised(frame: Mapping[str, Any]) -> bool:
    """Return whether a document without its messages is an export of opencode."""
    return text_of(dig(frame, "info", "id")).startswith("ses") and "messages" in frame


def steps(path: str) -> Iterator[Step]:
    """Yield the steps of an export."""
    return steps_of(document_frame(path).get("info"), document_parts(path))


def about(path: str) -> About:
    """Return what an export tells of its conversation."""
    return about_of(document_frame(path).get("info"))


def steps_of(info: object, messages: Iterable[Mapping[str, Any]]) -> Iterator[Step]:
    """Yield the steps of a session."""
    aside = bool(dig(info, "parentID"))
    for message in messages:
        role, at = dig(message, "info", "role"), moment(dig(message, "info", "time", "created"))
        if dig(message, "info", "summary") is True:  # of what was compacted
            continue
        for part in blocks(message.get("parts")):
            if part.get("synthetic") or part.get("ignored"):
                continue
            if part.get("type") == "tool":
                yield from _of_tool(part, at=at, aside=aside)
            elif part.get("type") == "text" and role == "assistant":
                yield from said(text_of(part.get("text")), at=at, aside=aside)
            elif part.get("type") == "text" and role == "user" and not aside:
                yield from prompts(part.get("text"), at=at)


def about_of(info: object) -> About:
    """Return what a session tells of its conversation."""
    return About(
        client="opencode",
        session=named(dig(info, "id")),
        folder=named(dig(info, "directory")),
        model=named(dig(info, "model", "id")),
        started_at=moment(dig(info, "time", "created")),
        ended_at=moment(dig(info, "time", "updated")),
    )


def _of_tool(part: Mapping[str, Any], *, at: int, aside: bool) -> Iterator[Step]:
    state = part.get("state")
    given, status = dig(state, "input"), dig(state, "status")
    made = call(
        part.get("tool"),
        given,
        _KINDS,
        id=part.get("callID"),
        at=moment(dig(state, "time", "start")) or at,
        aside=aside,
    )
    edits = list(changes(text_of(dig(given, "patchText")))) if made.does == "edit" else []
    for edit in edits:
        yield made.replace(path=named(edit.path), text=kept(edit.after), before=kept(edit.before))
    if not edits:
        yield made
    if status in ("completed", "error"):
        yield from _results(made, state, aside=aside)


def _results(made: Step, state: object, *, aside: bool) -> Iterator[Step]:
    failed = dig(state, "status") == "error"
    text = text_of(dig(state, "error" if failed else "output"))
    denied = failed and text.startswith(_REFUSED)
    at = moment(dig(state, "time", "end")) or made.at
    exit_code = dig(state, "metadata", "exit")
    ended_badly = made.does == "run" and exit_code not in (None, 0)
    yield result(text, call=made.call, tool=made.tool, failed=failed or ended_badly, denied=denied, at=at, aside=aside)
    if denied:
        yield from prompts(text.partition(_PERSON_SAID)[2], at=at)
