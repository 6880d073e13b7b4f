"""Read the conversations that clients keep, as steps: what was asked, what the agent said and did, what came of it.

A client's `transcript` module provides `recognises`, `steps`, `about` and `find`; a file shows by its content which
client wrote it. What a client or we ourselves put into a conversation (reminders, hook output, briefs, synthetic
prompts) is no step, and in none. `<database>#<session>` names a conversation that a client keeps in a database.

However large a file is, little of it is in memory. Files are foreign, and may still be written to: a line that is torn,
too long or no object is skipped, and so are bytes that are not UTF-8. An object that holds a long list of objects, such
as the messages of a conversation, is read one of them at a time.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, Protocol

from learnt.clients import registry
from learnt.clients.kit.run import LINE_LIMIT, lines
from learnt.clients.kit.steps import About, Step, read_name
from learnt.errors import WrongRequest
from learnt.model import Value
from learnt.text.json_values import dig, parsed

# Enough to find what a transcript says about its conversation as a whole.
_FIRST = 200
_FIRST_LINES = 1_000
_LAST_BYTES = 262_144
_READ = 65_536
_OPENING, _CLOSING = (b"{", b"["), (b"}", b"]")
_BRACKET_OR_QUOTE = re.compile(rb'[{}\[\]"]')
_REST_OF_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.S)


class TranscriptFile(Value):
    """A transcript that exists: `path` is what `steps` takes, `changed_at` its last change in UTC milliseconds."""

    client: str
    path: str
    session: str
    folder: str
    size: int
    changed_at: int


class FileOnDisk(NamedTuple):
    """A file, or a conversation in a database, with its size and last change."""

    path: str
    size: int
    changed_at: int


class SessionDatabase(Protocol):
    """Reads the database in which a client keeps its conversations."""

    def sessions(self, path: str, *, since_ms: int = 0) -> Iterable[Mapping[str, Any]]:
        """Return the sessions that changed since then, each as the export's `info`, with its `size`."""

    def session(self, path: str, id: str) -> Mapping[str, Any]:
        """Return one session as the export's `info`, empty when there is none."""

    def messages(self, path: str, id: str) -> Iterable[Mapping[str, Any]]:
        """Return the messages of a session in their order, each as one of the export's `messages`."""


class Reader(Protocol):
    """The `transcript` module of a client."""

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """Return whether the client wrote this record, or the document that begins like this."""

    def steps(self, path: str) -> Iterator[Step]:
        """Yield the steps of a transcript."""

    def about(self, path: str) -> About:
        """Return what a transcript says about its conversation."""

    def find(
        self, places: Mapping[str, str], *, folder: str, since_ms: int, database: SessionDatabase | None
    ) -> Iterator[TranscriptFile]:
        """Yield the transcripts that changed since then; those of other folders may be among them."""


def steps(path: str, database: SessionDatabase | None = None) -> Iterator[Step]:
    """Yield the steps of a transcript: a file, or a conversation in a database, which `database` reads."""
    if reference := _in_database(path, database):
        reader, file, session = reference
        of_session: Iterator[Step] = _database_reader().steps_of(
            _session(reader, file, session), reader.messages(file, session)
        )
        return of_session
    return _reader(path).steps(path)


def about(path: str, database: SessionDatabase | None = None) -> About:
    """Return what a transcript says about its conversation as a whole."""
    if reference := _in_database(path, database):
        of_session: About = _database_reader().about_of(_session(*reference))
        return of_session
    return _reader(path).about(path)


def find(
    places: Mapping[str, str], *, folder: str, since_ms: int, database: SessionDatabase | None = None
) -> Iterator[TranscriptFile]:
    """Yield the transcripts of a project folder that changed since then, newest first.

    `places` holds environment variables, see `registry.PLACES`. A transcript belongs to the folder that it names; only
    where it names none, the name of the folder that holds it decides.
    """
    transcripts = [
        transcript
        for reader in _readers()
        for transcript in reader.find(places, folder=folder, since_ms=since_ms, database=database)
        if lies_in(transcript.folder, folder)
    ]
    yield from sorted(transcripts, key=lambda transcript: (-transcript.changed_at, transcript.path))


def _readers() -> list[Reader]:
    return [registry.load(client, "transcript") for client in registry.that_offer("transcript")]


def _database_client() -> registry.Client:
    return next(client for client in registry.CLIENTS if client.keeps_database)


def _database_reader() -> Any:
    return registry.load(_database_client(), "transcript")


def _in_database(path: str, database: SessionDatabase | None) -> tuple[SessionDatabase, str, str] | None:
    """Return what reads a conversation out of a database, the file and the session; nothing for a plain file."""
    file, mark, session = path.rpartition("#")
    if database is None or not mark or os.path.exists(path):
        return None
    return database, file, session


def _session(database: SessionDatabase, file: str, session: str) -> object:
    info = database.session(file, session)
    if not info:
        hint = f"`{_database_client().name} session list` shows those that there are"
        raise WrongRequest(f"there is no conversation `{session}` in {file}", hint=hint)
    return info


def _reader(path: str) -> Reader:
    """Return the module that reads the format of a file."""
    if not os.path.isfile(path):
        raise WrongRequest(f"there is no file {path}", hint="name the transcript that a client wrote")
    readers = _readers()
    for record in (document_frame(path), *first_records(path)):
        for reader in readers:
            if reader.recognises(record):
                return reader
    raise WrongRequest(f"{path} is no transcript that can be read", hint=_known_formats())


def _known_formats() -> str:
    *others, last = (client.title for client in registry.that_offer("transcript") if not client.keeps_database)
    name = _database_client().name
    return (
        f"known are the transcripts of {', '.join(others)} and {last}, what `{name} export` prints, and "
        f"`{name}.db#<session>`"
    )


def make_file(client: str, file: FileOnDisk, *, session: str, folder: str) -> TranscriptFile:
    """Return a transcript, named by its file where it does not name its session."""
    name = os.path.splitext(os.path.basename(file.path))[0]
    return TranscriptFile(
        client=client,
        path=file.path,
        session=session or name,
        folder=folder,
        size=file.size,
        changed_at=file.changed_at,
    )


def first_name(path: str, *ways: tuple[str, ...]) -> str:
    """Return the first name that a record has under one of these paths of keys."""
    for record in first_records(path):
        for keys in ways:
            if name := read_name(dig(record, *keys)):
                return name
    return ""


def changed_files(since_ms: int, root: str, *pattern: str) -> Iterator[FileOnDisk]:
    """Yield the files below the folder that match and changed since then."""
    for path in matching_paths(root, *pattern):
        try:
            status = os.stat(path)
        except OSError:  # gone meanwhile
            continue
        changed_at = status.st_mtime_ns // 1_000_000
        if changed_at >= since_ms and os.path.isfile(path):
            yield FileOnDisk(path, status.st_size, changed_at)


def matching_paths(root: str, *pattern: str) -> Iterator[str]:
    """Yield what matches below a folder; nothing where the folder is not known."""
    return glob.iglob(os.path.join(glob.escape(root), *pattern)) if root else iter(())


def lies_in(inner: str, outer: str) -> bool:
    """Return whether a folder is another one or lies below it, whatever links lead there."""
    if not os.path.isabs(inner):
        return False
    pairs = ((inner, outer), (os.path.realpath(inner), os.path.realpath(outer)))
    return any(
        os.path.join(os.path.normcase(below), "").startswith(os.path.join(os.path.normcase(above), ""))
        for below, above in pairs
    )


def line_records(path: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file with one a line."""
    return _records(lines(path))


def first_records(path: str) -> Iterator[dict[str, Any]]:
    """Yield the first objects of a file with one a line."""
    return islice(_records(islice(lines(path), _FIRST_LINES)), _FIRST)


def last_records(path: str) -> Iterator[dict[str, Any]]:
    """Yield the last objects of a file with one a line."""
    try:
        with open(path, "rb") as file:
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
    """Return the object at the beginning of a file up to the first list in it, which is left empty."""
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
    """Yield a file as pieces with the bracket at their end, if any, first; brackets in strings do not count."""
    in_string, rest = False, b""
    for read in _read(path):
        text, position, rest = rest + read, 0, b""
        while position < len(text):
            if in_string:
                end = _REST_OF_STRING.match(text, position).end()  # type: ignore[union-attr]  # it matches nothing, too
                if text[end : end + 1] == b"\\":  # the last of what was read: its letter is still to come
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
        with open(path, "rb") as file:
            while read := file.read(_READ):
                yield read
    except OSError:
        return
