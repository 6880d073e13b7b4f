"""Read the files of transcripts in pieces: however large one is, little of it is in memory.

Files are foreign, and may still be written to: a line that is torn, too long or no object is passed over, and so is
whatever is not UTF-8 in it. The same holds for the parts of a document: an object that holds a long list of objects,
such as the messages of a conversation, is read one of them at a time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from learnt.clients.shapes import LINE_LIMIT, lines
from learnt.text.json_values import parsed

# Enough to find what a transcript tells of its conversation as a whole.
_FIRST = 200
_FIRST_LINES = 1_000
_LAST_BYTES = 262_144
_READ = 65_536
_OPENING, _CLOSING = (b"{", b"["), (b"}", b"]")
_BRACKET_OR_QUOTE = re.compile(rb'[{}\[\]"]')
_REST_OF_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.S)


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
        if found := parsed(line.decode("utf-8", "replace")):
            yield found


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
    for bracket, text in _up_to_brackets(path):
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


def _up_to_brackets(path: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield a file as pieces that end with a bracket, which comes first, or with none: no string's bracket counts."""
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
                found = _BRACKET_OR_QUOTE.search(text, position)
                end = found.end() if found else len(text)
                in_string = bool(found) and text[end - 1 : end] == b'"'
                yield b"" if in_string or not found else found[0], text[position:end]
                position = end


def _read(path: str) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            while read := file.read(_READ):
                yield read
    except OSError:
        return
