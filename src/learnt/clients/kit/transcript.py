"""Read the conversations that clients store, as steps: prompts, messages, tool calls and their results.

A client's `transcript` module provides the functions of `Reader`. A file's content shows which client wrote it. Text
that the client or learnt added to a conversation (reminders, hook output, briefs, synthetic prompts) is never part of a
step; `find_briefs` tells which briefs the model was given. `<database>#<session>` identifies a conversation in a
client's database.

Only a small part of a file is in memory at a time. Files are untrusted, and a client might still be writing to them: a
line that is incomplete, too long or not an object is skipped, bytes that are not UTF-8 are replaced, and a value of the
wrong type is treated as missing. The objects in a long list, such as a conversation's messages, are read one at a time.
A step's text is cleaned, and only the beginning and the end of a long text are kept.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Protocol

from learnt.clients import registry
from learnt.clients.kit.events import COMMANDS, PATHS, command_line, first_value
from learnt.clients.kit.run import LINE_LIMIT, lines
from learnt.errors import WrongRequest
from learnt.model import Value
from learnt.system.files import open_to_read
from learnt.text.clean import clean
from learnt.text.fence import NAME, NOTICE, strip_answer, strip_prompt
from learnt.text.json_values import dig, parsed, text_of

# Only the beginning and the end of a longer text are kept in a step.
MAX_STEP_TEXT = 20_000
# A longer string is not an identifier, a tool or a path.
_MAX_NAME_LENGTH = 4_000
# The limit for calls that have no result yet.
_MAX_OPEN_CALLS = 1_000
PATCH_BEGINNING = "*** Begin Patch"
_PATCH_HEADING = re.compile(r"\*\*\* (?:Add|Update|Delete) File: (.+)")
_NEW = ("new_string", "newString", "new_str", "content", "file_text", "new_source")
_OLD = ("old_string", "oldString", "old_str")
# These limits are high enough to find the facts about a conversation.
_MAX_FIRST_RECORDS = 200
_MAX_FIRST_LINES = 1_000
_LAST_BYTES = 262_144
_CHUNK_BYTES = 65_536
# How a brief begins, perhaps escaped: in a JSON string, or by a client that escapes tags.
_BRIEF = re.compile(rf'{NAME} id=(?:\\*"|&quot;)(brief_\w+)')
# A line of ours without a brief.
_NOTICE = re.compile(rf"(?:<|&lt;){NOTICE}(?:>|&gt;)")
_SIGN = NOTICE.encode()  # stands in both
_OPENING, _CLOSING = (b"{", b"["), (b"}", b"]")
_BRACKET_OR_QUOTE = re.compile(rb'[{}\[\]"]')
_REST_OF_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.S)


class Step(Value):
    """A step in a conversation."""

    kind: str
    """`prompt` (from a person), `said` (a message from the agent), `call` (of a tool) or `result` (of a call)."""
    text: str = ""
    """The text of a prompt or message, the command line or new text of a call, or a result's output."""
    call: str = ""
    """The id of the call. An edit to several files is one call per file, all with the same id."""
    tool: str = ""
    """For a call and a result, the client's name for the tool."""
    does: str = ""
    """For a call, `run` (a command), `edit` (a file), `read` (a file) or `other`."""
    path: str = ""
    """For a call, the path of the file, as the client writes it."""
    before: str = ""
    """For an edit, the replaced text, if the client records it."""
    failed: bool = False
    """For a result, whether the client marks it as an error or its exit code is not 0."""
    denied: bool = False
    """For a result, whether a person or the permissions denied the call."""
    at: int = 0
    """The time in UTC milliseconds; 0 if the client does not record it."""
    aside: bool = False
    """Whether the step belongs to a sub-agent's conversation."""
    message: str = ""
    """The id of the model's message that a step is part of, if the results of its calls can stand before its end."""
    typed: bool = False
    """For a prompt, whether a person typed it in an interactive client; False if it was run unattended, or unknown."""


class About(Value):
    """The facts about a conversation. A fact that is not in the transcript is empty."""

    client: str
    session: str = ""
    folder: str = ""
    branch: str = ""
    model: str = ""
    started_at: int = 0
    ended_at: int = 0


class TranscriptFile(Value):
    """An existing transcript. `path` can be passed to `steps`; `changed_at` is the last change in UTC milliseconds."""

    client: str
    path: str
    session: str
    folder: str
    size: int
    changed_at: int


class GivenBriefs(Value):
    """Which briefs a transcript shows to have been given to the model."""

    ids: frozenset[str] = frozenset()
    has_notice: bool = False
    """Whether the model was given a line of ours, which has no id."""
    is_complete: bool = False
    """Whether a brief that is not among them was not given; False if the client did not record what hooks said."""


class SessionDatabase(Protocol):
    """Reads the database in which a client stores its conversations."""

    def sessions(self, path: str, *, since_ms: int = 0) -> Iterable[Mapping[str, Any]]:
        """Return the sessions that changed since the given time, in the shape of the export's `info`, plus `size`."""

    def session(self, path: str, id: str) -> Mapping[str, Any]:
        """Return one session in the shape of the export's `info`; empty if there is none."""

    def messages(self, path: str, id: str) -> Iterable[Mapping[str, Any]]:
        """Return a session's messages in order, in the shape of the export's `messages`."""


class Reader(Protocol):
    """A client's `transcript` module."""

    def root(self, variables: Mapping[str, str]) -> str:
        """Return the folder in which the client stores conversations; empty if it is unknown."""

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """Return whether the client wrote this record, or the document that begins with it."""

    def steps(self, path: str) -> Iterator[Step]:
        """Yield the steps of a transcript."""

    def about(self, path: str) -> About:
        """Return the facts about the conversation in a transcript."""

    def find(
        self, variables: Mapping[str, str], *, folder: str, since_ms: int, database: SessionDatabase | None
    ) -> Iterator[TranscriptFile]:
        """Yield the transcripts that have changed since the given time, possibly with other folders' transcripts."""

    def list_given_texts(self, record: Mapping[str, Any]) -> Iterator[str]:
        """Yield the texts in a record that the model was given: messages, hooks' texts and tools' results.

        A record is a line, or a message of a document or a database. What a hook printed is not given to the model.
        """

    def records_hooks(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record shows that this transcript also contains what hooks tell the model."""


def steps(path: str, database: SessionDatabase | None = None) -> Iterator[Step]:
    """Yield the steps of a transcript, which is a file or a conversation in a database that `database` reads."""
    if reference := _in_database(path, database):
        reader, file, session = reference
        info = _session(reader, file, session)
        session_steps: Iterator[Step] = _database_reader().steps_of(info, reader.messages(file, session))
        return session_steps
    return _reader(path).steps(path)


def about(path: str, database: SessionDatabase | None = None) -> About:
    """Return the facts about the conversation in a transcript."""
    if reference := _in_database(path, database):
        facts: About = _database_reader().about_of(_session(*reference))
        return facts
    return _reader(path).about(path)


def find_briefs(path: str, database: SessionDatabase | None = None) -> GivenBriefs:
    """Return the briefs in the texts that a transcript shows to have been given to the model."""
    if reference := _in_database(path, database):
        sessions, file, session = reference
        reader: Reader = _database_reader()
        return _find_briefs(reader, sessions.messages(file, session))
    reader = _reader(path)
    if "messages" in document_frame(path):
        return _find_briefs(reader, document_parts(path))
    return _find_briefs(reader, _records(_lines_with_briefs(path, reader)))


def _find_briefs(reader: Reader, records: Iterable[Mapping[str, Any]]) -> GivenBriefs:
    ids, has_notice, is_complete = set[str](), False, False
    for record in records:
        is_complete = is_complete or reader.records_hooks(record)
        for text in reader.list_given_texts(record):
            ids.update(_BRIEF.findall(text))
            has_notice = has_notice or bool(_NOTICE.search(text))
    return GivenBriefs(ids=frozenset(ids), has_notice=has_notice, is_complete=is_complete)


def _lines_with_briefs(path: str, reader: Reader) -> Iterator[bytes]:
    """Yield the lines until one shows that hooks are recorded, and of the rest those that may contain our text."""
    is_known = False
    for line in lines(path):
        if not is_known:
            is_known = any(map(reader.records_hooks, _records([line])))
            yield line
        elif _SIGN in line:
            yield line


def find(
    variables: Mapping[str, str], *, folder: str, since_ms: int, database: SessionDatabase | None = None
) -> Iterator[TranscriptFile]:
    """Yield a project folder's transcripts that have changed since the given time, newest first.

    `variables` has the `registry.FOLDER_VARIABLES` that are set. A transcript belongs to the folder that is recorded in
    it. If none is recorded, the folder in which the client stores the transcript decides.
    """
    transcripts = [
        transcript
        for reader in _readers()
        for transcript in reader.find(variables, folder=folder, since_ms=since_ms, database=database)
        if lies_in(transcript.folder, folder)
    ]
    yield from sorted(transcripts, key=lambda transcript: (-transcript.changed_at, transcript.path))


def is_stored_by_client(path: str, variables: Mapping[str, str]) -> bool:
    """Return whether a transcript lies where a client stores its conversations."""
    roots = [os.path.realpath(root) for reader in _readers() if (root := reader.root(variables))]
    return any(lies_in(os.path.realpath(path), root) for root in roots)


def _readers() -> list[Reader]:
    return [registry.load(client, "transcript") for client in registry.that_offer("transcript")]


def _database_client() -> registry.Client:
    return next(client for client in registry.CLIENTS if client.keeps_database)


def _database_reader() -> Any:
    return registry.load(_database_client(), "transcript")


def _in_database(path: str, database: SessionDatabase | None) -> tuple[SessionDatabase, str, str] | None:
    """Return the reader, the file and the session of a conversation in a database; None for a plain file."""
    file, mark, session = path.rpartition("#")
    if database is None or not mark or os.path.exists(path):
        return None
    return database, file, session


def _session(database: SessionDatabase, file: str, session: str) -> object:
    info = database.session(file, session)
    if not info:
        hint = f"`{_database_client().name} session list` shows all conversations"
        raise WrongRequest(f"there is no conversation `{session}` in {file}", hint=hint)
    return info


def _reader(path: str) -> Reader:
    """Return the module that reads a file's format."""
    if not os.path.isfile(path):
        raise WrongRequest(f"there is no file {path}", hint="pass the path of a client's transcript")
    readers = _readers()
    for record in (document_frame(path), *first_records(path)):
        for reader in readers:
            if reader.recognises(record):
                return reader
    raise WrongRequest(f"{path} is not a transcript of a known client", hint=_list_known_formats())


def _list_known_formats() -> str:
    *others, last = (client.title for client in registry.that_offer("transcript") if not client.keeps_database)
    name = _database_client().name
    return (
        f"learnt reads transcripts of {', '.join(others)} and {last}, the output of `{name} export`, and "
        f"`{name}.db#<session>`"
    )


def first_name(path: str, *paths: tuple[str, ...]) -> str:
    """Return the first name that a record has at one of these paths."""
    for record in first_records(path):
        for keys in paths:
            if name := read_name(dig(record, *keys)):
                return name
    return ""


def changed_files(client: str, since_ms: int, root: str, *pattern: str) -> Iterator[TranscriptFile]:
    """Yield the matching files below `root` that have changed since the given time, with the file name as session."""
    for path in matching_paths(root, *pattern):
        try:
            status = os.stat(path)
        except OSError:  # deleted in the meantime
            continue
        changed_at = status.st_mtime_ns // 1_000_000
        if changed_at >= since_ms and os.path.isfile(path):
            name = os.path.splitext(os.path.basename(path))[0]
            size = status.st_size
            yield TranscriptFile(client=client, path=path, session=name, folder="", size=size, changed_at=changed_at)


def gather(client: str, path: str, facts_in: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> About:
    """Return the facts in a transcript's first records, and the time of its last record."""
    facts: dict[str, Any] = {}
    for record in first_records(path):
        for field, value in facts_in(record).items():
            facts[field] = facts.get(field) or value
    times = [read_time(record.get("timestamp")) for record in last_records(path)]
    return About(client=client, **facts, ended_at=max(times, default=0))


def matching_paths(root: str, *pattern: str) -> Iterator[str]:
    """Yield the matching paths below a folder, and nothing if the folder is unknown."""
    return glob.iglob(os.path.join(glob.escape(root), *pattern)) if root else iter(())


def lies_in(inner: str, outer: str) -> bool:
    """Return whether a folder is the same as another folder or below it, with or without resolving links."""
    if not os.path.isabs(inner):
        return False
    pairs = ((inner, outer), (os.path.realpath(inner), os.path.realpath(outer)))
    return any(
        os.path.join(os.path.normcase(below), "").startswith(os.path.join(os.path.normcase(above), ""))
        for below, above in pairs
    )


def line_records(path: str) -> Iterator[dict[str, Any]]:
    """Yield the objects in a file that has one per line."""
    return _records(lines(path))


def first_records(path: str) -> Iterator[dict[str, Any]]:
    """Yield the first objects in a file that has one per line."""
    return islice(_records(islice(lines(path), _MAX_FIRST_LINES)), _MAX_FIRST_RECORDS)


def last_records(path: str) -> Iterator[dict[str, Any]]:
    """Yield the last objects in a file that has one per line."""
    try:
        with open(path, "rb", opener=open_to_read) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LAST_BYTES))
            end = file.read(_LAST_BYTES)
    except OSError:
        return
    yield from _records(end.split(b"\n"))


def _records(raw: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in raw:
        if record := parsed(line.decode("utf-8", "replace")):
            yield record


def document_frame(path: str) -> dict[str, Any]:
    """Return the object at the beginning of a file, up to its first list, which is returned empty."""
    return next(_records(islice(_pieces(path), 1)), {})


def document_parts(path: str) -> Iterator[dict[str, Any]]:
    """Yield the objects in the lists of the object at the beginning of a file."""
    return _records(islice(_pieces(path), 1, None))


def _pieces(path: str) -> Iterator[bytes]:
    """Yield the frame of a document, closed where its first list begins, then each object in its lists."""
    piece = bytearray()
    depth, in_list, framed, too_long = 0, False, False, False
    for bracket, text in _split_at_brackets(path):
        if len(piece) + len(text) > LINE_LIMIT:
            if not framed:
                return
            piece.clear()
            too_long = True
        piece += text
        if bracket in _OPENING:
            depth += 1
            if depth == 2:
                in_list = bracket == b"["
                if in_list and not framed:
                    yield bytes(piece) + b"]}"
                framed = framed or in_list
            elif depth == 3 and in_list:
                piece, too_long = bytearray(bracket), False
        elif bracket in _CLOSING:
            depth -= 1
            if depth == 2 and in_list and not too_long:
                yield bytes(piece)
            elif depth <= 0:
                break
    if not framed:
        yield bytes(piece)


def _split_at_brackets(path: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield the file in pieces, each after the bracket outside a string at its end; empty if it has no bracket."""
    in_string, rest = False, b""
    for read in _read(path):
        text, position, rest = rest + read, 0, b""
        while position < len(text):
            if in_string:
                end = _REST_OF_STRING.match(text, position).end()  # type: ignore[union-attr]  # it always matches
                if text[end : end + 1] == b"\\":  # the escaped character is in the next chunk
                    rest = b"\\"
                    yield b"", text[position:end]
                    break
                in_string = end == len(text)
                yield b"", text[position : end + 1]
                position = end + 1
            else:
                mark = _BRACKET_OR_QUOTE.search(text, position)
                end = mark.end() if mark else len(text)
                in_string = bool(mark) and text[end - 1 : end] == b'"'
                yield b"" if in_string or not mark else mark[0], text[position:end]
                position = end


def _read(path: str) -> Iterator[bytes]:
    try:
        with open(path, "rb", opener=open_to_read) as file:
            while read := file.read(_CHUNK_BYTES):
                yield read
    except OSError:
        return


class Calls:
    """Maps open calls to their tools, because a result has only the id of its call."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}

    def add(self, step: Step) -> Step:
        """Remember a call's tool, and return the call."""
        if len(self._tools) >= _MAX_OPEN_CALLS:
            del self._tools[next(iter(self._tools))]
        self._tools[step.call] = step.tool
        return step

    def pop_tool(self, call: str) -> str:
        """Return a call's tool, and forget the call."""
        return self._tools.pop(call, "")


def make_call(
    tool: object, raw_arguments: object, tools: Mapping[str, str], *, id: object, at: int, aside: bool = False
) -> Step:
    """Return the step for a tool call. `tools` maps the client's tools to what they do."""
    name = read_name(tool)
    does = tools.get(name, "other")
    arguments = raw_arguments if isinstance(raw_arguments, Mapping) else {}
    if does == "run":
        text = command_line(first_value(arguments, COMMANDS))
    elif does == "edit":
        text = "\n".join(_each(arguments, _NEW))
    elif does == "read":
        text = ""
    else:
        text = raw_arguments if isinstance(raw_arguments, str) else _as_json(raw_arguments)
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
    """Return the step for a tool's output."""
    text = shorten(strip_answer(text))
    return Step(kind="result", text=text, call=call, tool=tool, failed=failed, denied=denied, at=at, aside=aside)


def make_prompts(content: object, *, at: int, typed: bool) -> Iterator[Step]:
    """Yield the step for the part of a prompt that a person wrote, if there is one."""
    if words := "\n".join(filter(None, map(strip_prompt, _parts(content)))):
        yield Step(kind="prompt", text=shorten(words), at=at, typed=typed)


def make_messages(text: str, *, at: int, aside: bool = False) -> Iterator[Step]:
    """Yield the step for a message from the agent, if the message has any text."""
    if words := strip_answer(text).strip():
        yield Step(kind="said", text=shorten(words), at=at, aside=aside)


def in_message(id: object, steps: Iterable[Step]) -> Iterator[Step]:
    """Yield steps as parts of the model's message with this id."""
    return (step.replace(message=read_name(id)) for step in steps)


def shorten(text: str) -> str:
    """Return the cleaned text. Only the beginning and the end of a long text are kept."""
    if len(text) > MAX_STEP_TEXT:
        half = MAX_STEP_TEXT // 2 - 50
        text = f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
    return clean(text)


def read_name(value: object) -> str:
    """Return a name, an id or a path; empty for other values."""
    name = text_of(value)
    return clean(name) if len(name) <= _MAX_NAME_LENGTH else ""


def read_time(value: object) -> int:
    """Return a time in UTC milliseconds, from a string or a number; 0 if it is not a time."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value) if 0 < value < 2**53 else 0
    try:
        when = datetime.fromisoformat(text_of(value)[:40])
        return max(0, int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError):
        return 0


def blocks(content: object) -> list[Mapping[str, Any]]:
    """Return the parts of a message; empty if the message is not a list of objects."""
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def texts(content: object) -> str:
    """Return a message's text. The message is a string or a list of parts."""
    return "\n".join(filter(None, _parts(content)))


def _parts(content: object) -> list[str]:
    parts = content if isinstance(content, list) else [content]
    return [part if isinstance(part, str) else text_of(dig(part, "text")) for part in parts]


def _each(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    """Yield the text under one of the keys in an edit, or in each of several edits to one file."""
    for edit in (arguments, *blocks(arguments.get("edits"))):
        if text := text_of(first_value(edit, keys)):
            yield text


def _as_json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False) if value else ""
    except RecursionError:
        return ""


def split_by_file(step: Step, patch: str) -> list[Step]:
    """Return one step for each file in an `apply_patch` patch, or the step itself if there is no patch."""
    return [
        step.replace(does="edit", path=read_name(path), text=shorten(after), before=shorten(before))
        for path, before, after in _read_patch(patch)
    ] or [step]


def _read_patch(patch: str) -> Iterator[tuple[str, str, str]]:
    """Yield each file in a patch, with its lines before and after the patch."""
    path = ""
    before: list[str] = []
    after: list[str] = []
    for line in patch.replace("\r\n", "\n").split("\n"):
        if line.startswith("*** "):
            if path and not line.startswith(("*** Move to:", "*** End of File")):
                yield path, "\n".join(before), "\n".join(after)
                path, before, after = "", [], []
            if heading := _PATCH_HEADING.match(line):
                path = heading[1].strip()
        elif path and not line.startswith("@@"):
            if line[:1] in ("-", " ", ""):
                before.append(line[1:])
            if line[:1] in ("+", " ", ""):
                after.append(line[1:])
    if path:  # the end of the patch is missing
        yield path, "\n".join(before), "\n".join(after)
