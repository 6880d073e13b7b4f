"""Read a patch as Codex writes it: `*** Begin Patch`, a heading for each file, its lines with +, - or a space."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

BEGINNING = "*** Begin Patch"
_HEADING = re.compile(r"\*\*\* (?:Add|Update|Delete) File: (.+)")


class Change(NamedTuple):
    """What a patch does to one file: the lines that it wants to find, and those that it leaves."""

    path: str
    before: str
    after: str


def changes(patch: str) -> Iterator[Change]:
    """Yield the change of each file."""
    path = ""
    before: list[str] = []
    after: list[str] = []
    for line in patch.replace("\r\n", "\n").split("\n"):
        if line.startswith("*** "):
            if path and not line.startswith(("*** Move to:", "*** End of File")):
                yield Change(path, "\n".join(before), "\n".join(after))
                path, before, after = "", [], []
            if heading := _HEADING.match(line):
                path = heading[1].strip()
        elif path and not line.startswith("@@"):
            if line[:1] in ("-", " ", ""):
                before.append(line[1:])
            if line[:1] in ("+", " ", ""):
                after.append(line[1:])
    if path:  # the end of the patch is missing
        yield Change(path, "\n".join(before), "\n".join(after))
