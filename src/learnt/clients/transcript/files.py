"""Read the files of transcripts in pieces: however large one is, little of it is in memory.

Files are foreign, and may still be written to: a line that is torn, too long or no object is passed over, and so is
whatever is not UTF-8 in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import Any

from learnt.clients.shapes import lines, record

# Enough to find what a transcript tells of its conversation as a whole.
_FIRST = 200
_LAST_BYTES = 262_144


def line_records(path: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file with one a line."""
    for line in lines(path):
        if found := record(line.decode("utf-8", "replace")):
            yield found


def first_records(path: str) -> Iterator[dict[str, Any]]:
    """Yield the first objects of a file with one a line."""
    return islice(line_records(path), _FIRST)


def last_records(path: str) -> Iterator[dict[str, Any]]:
    """Yield the last objects of a file with one a line."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LAST_BYTES))
            end = file.read(_LAST_BYTES)
    except OSError:
        return
    for line in end.split(b"\n"):
        if found := record(line.decode("utf-8", "replace")):
            yield found
