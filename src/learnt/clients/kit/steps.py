"""The steps of a conversation, and how the readers of all clients make them.

A step's texts are fit to be stored, and a long one keeps its beginning and its end. Foreign fields may be of any type:
a value of the wrong type counts as missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from learnt.clients.kit.events import COMMANDS, PATHS, command_line, first_value
from learnt.model import Value
from learnt.text.clean import clean
from learnt.text.fence import strip_answer, strip_prompt
from learnt.text.json_values import dig, text_of

# How much of one step's text is kept: its beginning and its end.
LONGEST_TEXT = 20_000
# Identifiers, tools and paths: what is longer is none of them.
_LONGEST_NAME = 4_000
# Calls that await their result; more are never under way at once.
_MOST_OPEN = 1_000
PATCH_BEGINNING = "*** Begin Patch"
_PATCH_HEADING = re.compile(r"\*\*\* (?:Add|Update|Delete) File: (.+)")
_NEW = ("new_string", "newString", "content", "new_source")
_OLD = ("old_string", "oldString")


class Step(Value):
    """One thing that happened in a conversation."""

    kind: str
    """`prompt` (a person's words), `said` (the agent's own words), `call` (of a tool) or `result` (of a call)."""
    text: str = ""
    """The words; of a call the command line or what an edit writes; of a result the tool's output."""
    call: str = ""
    """What ties a result to its call; an edit of several files is one call for each of them, with the same id."""
    tool: str = ""
    """Of a call and of its result: the tool's name as the client has it."""
    does: str = ""
    """Of a call: `run` (a command), `edit` (a file), `read` (a file) or `other`."""
    path: str = ""
    """Of a call: the file that it is about, as the client has it."""
    before: str = ""
    """Of an edit: the text that it replaces, where the client says."""
    failed: bool = False
    """Of a result: the client counts it as an error, or its exit code is not 0."""
    denied: bool = False
    """Of a result: a person or the permissions refused the call."""
    at: int = 0
    """When, in UTC milliseconds; 0 where the client does not say."""
    aside: bool = False
    """It happened in a sub-agent's conversation."""


class About(Value):
    """What a transcript says about the conversation as a whole; empty where it does not say."""

    client: str
    session: str = ""
    folder: str = ""
    branch: str = ""
    model: str = ""
    started_at: int = 0
    ended_at: int = 0


class Calls:
    """The calls that await their result: a result names only the id of its call."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}

    def add(self, step: Step) -> Step:
        """Return the call, and remember its tool."""
        if len(self._tools) >= _MOST_OPEN:
            del self._tools[next(iter(self._tools))]
        self._tools[step.call] = step.tool
        return step

    def take_tool(self, call: str) -> str:
        """Return the tool of a call whose result has come, and forget the call."""
        return self._tools.pop(call, "")


def make_call(
    tool: object, given: object, kinds: Mapping[str, str], *, id: object, at: int, aside: bool = False
) -> Step:
    """Return the step for a call of a tool with these arguments; `kinds` says what the client's tools do."""
    name = read_name(tool)
    does = kinds.get(name, "other")
    arguments = given if isinstance(given, Mapping) else {}
    if does == "run":
        text = command_line(first_value(arguments, COMMANDS))
    elif does == "edit":
        text = "\n".join(_each(arguments, _NEW))
    elif does == "read":
        text = ""
    else:
        text = given if isinstance(given, str) else _as_json(given)
    return Step(
        kind="call",
        text=shorten(text),
        call=read_name(id),
        tool=name,
        does=does,
        path=read_name(first_value(arguments, PATHS)) if does != "run" else "",
        before=shorten("\n".join(_each(arguments, _OLD))) if does == "edit" else "",
        at=at,
        aside=aside,
    )


def make_result(
    text: str, *, call: str, tool: str, failed: bool, at: int, denied: bool = False, aside: bool = False
) -> Step:
    """Return the step for the output of a tool."""
    return Step(
        kind="result",
        text=shorten(strip_answer(text)),
        call=call,
        tool=tool,
        failed=failed,
        denied=denied,
        at=at,
        aside=aside,
    )


def make_prompts(content: object, *, at: int) -> Iterator[Step]:
    """Yield the step for a prompt, as far as a person wrote it: some of its parts may be the client's."""
    if words := "\n".join(filter(None, map(strip_prompt, _parts(content)))):
        yield Step(kind="prompt", text=shorten(words), at=at)


def make_messages(text: str, *, at: int, aside: bool = False) -> Iterator[Step]:
    """Yield the step for what the agent said, if it said anything."""
    if words := strip_answer(text).strip():
        yield Step(kind="said", text=shorten(words), at=at, aside=aside)


def shorten(text: str) -> str:
    """Return the text as it is kept: fit to be stored, and of a long one the beginning and the end."""
    if len(text) > LONGEST_TEXT:
        half = LONGEST_TEXT // 2 - 50
        text = f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
    return clean(text)


def read_name(value: object) -> str:
    """Return a name, an id or a path; nothing for what cannot be one."""
    name = text_of(value)
    return clean(name) if len(name) <= _LONGEST_NAME else ""


def read_time(value: object) -> int:
    """Return a time in UTC milliseconds, from its text or its number; 0 for what is no time."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value) if 0 < value < 2**53 else 0
    try:
        when = datetime.fromisoformat(text_of(value)[:40])
        return max(0, int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError):
        return 0


def blocks(content: object) -> list[Mapping[str, Any]]:
    """Return the parts of a message that come as a list of objects."""
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def texts(content: object) -> str:
    """Return the text of a message: a string, or the texts of its parts."""
    return "\n".join(filter(None, _parts(content)))


def _parts(content: object) -> list[str]:
    parts = content if isinstance(content, list) else [content]
    return [part if isinstance(part, str) else text_of(dig(part, "text")) for part in parts]


def _each(given: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    """Yield the texts of an edit, or of each of several edits of one file."""
    for edit in (given, *blocks(given.get("edits"))):
        if text := text_of(first_value(edit, keys)):
            yield text


def _as_json(given: object) -> str:
    try:
        return json.dumps(given, ensure_ascii=False) if given else ""
    except RecursionError:  # nested deeper than anybody reads
        return ""


class PatchedFile(NamedTuple):
    """What a patch does to one file: the lines that it expects, and those that it leaves."""

    path: str
    before: str
    after: str


def read_patch(patch: str) -> Iterator[PatchedFile]:
    """Yield what a patch in the format of `apply_patch` does to each file."""
    path = ""
    before: list[str] = []
    after: list[str] = []
    for line in patch.replace("\r\n", "\n").split("\n"):
        if line.startswith("*** "):
            if path and not line.startswith(("*** Move to:", "*** End of File")):
                yield PatchedFile(path, "\n".join(before), "\n".join(after))
                path, before, after = "", [], []
            if heading := _PATCH_HEADING.match(line):
                path = heading[1].strip()
        elif path and not line.startswith("@@"):
            if line[:1] in ("-", " ", ""):
                before.append(line[1:])
            if line[:1] in ("+", " ", ""):
                after.append(line[1:])
    if path:  # the end of the patch is missing
        yield PatchedFile(path, "\n".join(before), "\n".join(after))
