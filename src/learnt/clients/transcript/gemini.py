"""Gemini CLI's transcripts: a log of messages, one a line, or in older versions one document that holds them all.

A message is written again whenever there is more of it, alone or in a patch that sets them all: the last one counts.
The results of calls stand beside the calls; what the model is given of them as a message says the same once more.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from learnt.clients.shapes import dig, text_of
from learnt.clients.transcript.files import (
    document_frame,
    document_parts,
    first_records,
    last_records,
    line_records,
)
from learnt.clients.transcript.step import About, Step, blocks, call, moment, named, prompts, result, said, texts

_KINDS = {
    "run_shell_command": "run",
    "write_file": "edit",
    "replace": "edit",
    "edit": "edit",
    "read_file": "read",
}
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d+)", re.M)
_AFTER_OUTPUT = re.compile(r"(?:\n(?:Exit Code|Signal|Process Group PGID|Background PIDs): [^\n]*+)++\s*\Z")
_FIRST = 100  # messages, of which one names the model
_END = 500  # in it stands how a command ended
_REFUSED = re.compile(r"denied by policy|user denied|user cancelled|cancelled by (?:the )?user", re.I)
_WRAPPING = ("<untrusted_context>", "</untrusted_context>")


def recognised(record: Mapping[str, Any]) -> bool:
    """Return whether a record is one of Gemini CLI's: the head of its log or of its document."""
    return "sessionId" in record and "projectHash" in record


def steps(path: str) -> Iterator[Step]:
    """Yield the steps of a transcript."""
    aside = head(path).get("kind") == "subagent"
    last = {_key(message): number for number, message in enumerate(_messages(path))}
    for number, message in enumerate(_messages(path)):
        if number >= last.get(_key(message), 0) or not message.get("id"):
            yield from _of_message(message, aside=aside)


def about(path: str) -> About:
    """Return what a transcript tells of its conversation."""
    told = head(path)
    model = next(filter(None, (named(message.get("model")) for message in islice(_messages(path), _FIRST))), "")
    ended_at = moment(told.get("lastUpdated"))
    for record in last_records(path):
        time = dig(record, "$set", "lastUpdated") or record.get("lastUpdated") or record.get("timestamp")
        ended_at = max(ended_at, moment(time))
    return About(
        client="gemini",
        session=named(told.get("sessionId")),
        folder=project_folder(os.path.dirname(os.path.dirname(path))),
        model=model,
        started_at=moment(told.get("startTime")),
        ended_at=ended_at,
    )


def project_folder(kept_in: str) -> str:
    """Return the project folder whose chats are kept below this one; nothing where Gemini CLI does not tell."""
    try:
        with open(os.path.join(kept_in, ".project_root"), encoding="utf-8", errors="replace") as file:
            return named(file.read(5_000).strip())
    except OSError:
        return ""


def head(path: str) -> dict[str, Any]:
    """Return what a transcript says of itself before its messages."""
    frame = document_frame(path)
    return frame if recognised(frame) else next((found for found in first_records(path) if recognised(found)), {})


def _messages(path: str) -> Iterator[Mapping[str, Any]]:
    """Yield the messages in the order in which they were written, those that were written again too."""
    if "messages" in document_frame(path):
        yield from document_parts(path)
        return
    for record in line_records(path):
        if "$set" in record:
            yield from blocks(dig(record, "$set", "messages"))
        elif "id" in record:
            yield record


def _key(message: Mapping[str, Any]) -> int:
    # A number instead of the id itself: all of them are in memory at once.
    return hash(text_of(message.get("id")))


def _of_message(message: Mapping[str, Any], *, aside: bool) -> Iterator[Step]:
    at = moment(message.get("timestamp"))
    if message.get("type") == "user" and not aside:
        yield from prompts(message.get("displayContent") or message.get("content"), at=at)
    elif message.get("type") == "gemini":
        yield from said(texts(message.get("content")), at=at, aside=aside)
        for made in blocks(message.get("toolCalls")):
            yield call(made.get("name"), made.get("args"), _KINDS, id=made.get("id"), at=at, aside=aside)
            yield from _results(made, aside=aside)


def _results(made: Mapping[str, Any], *, aside: bool) -> Iterator[Step]:
    status, name = made.get("status"), named(made.get("name"))
    if status not in ("success", "error", "cancelled"):
        return
    text = "\n".join(filter(None, map(_answer, blocks(made.get("result"))))) or text_of(made.get("resultDisplay"))
    codes: list[str] = []
    if _KINDS.get(name) == "run":
        text, codes = _of_command(text)
    yield result(
        text,
        call=named(made.get("id")),
        tool=name,
        failed=status != "success" or bool(codes and codes[-1].strip("-0")),
        denied=status == "cancelled" or (status == "error" and bool(_REFUSED.search(text[:500]))),
        at=moment(made.get("timestamp")),
        aside=aside,
    )


def _of_command(text: str) -> tuple[str, list[str]]:
    """Return what a command printed, and the codes with which it may have ended, the real one last."""
    opening, closing = _WRAPPING
    text = text.strip().removeprefix(opening).removesuffix(closing).strip("\n").removeprefix("Output: ")
    end = text[-_END:]
    return text[:-_END] + _AFTER_OUTPUT.sub("", end), _EXIT_CODE.findall(end)


def _answer(part: Mapping[str, Any]) -> str:
    response = dig(part, "functionResponse", "response")
    return text_of(dig(response, "output")) or text_of(dig(response, "error")) or text_of(part.get("text"))
