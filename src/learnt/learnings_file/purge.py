"""Take a purged learning out of the file, and nothing else: its bullets go, all other lines stay as they are.

A bullet is the learning's by its id, or, where a person's bullet has none, by saying the same as one of its texts. Text
of people beside bullets stays, but for texts of the learning that it repeats in whole.
"""

from __future__ import annotations

from itertools import groupby

from learnt.learnings_file.lines import same_text
from learnt.learnings_file.read import bullets_by_line, split_lines
from learnt.model import AVOID
from learnt.text.redact import black_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection


def purged(text: str, id: str, texts: Collection[str]) -> str:
    """Return the file without a learning, given its id and all texts that it ever had."""
    lines = split_lines(text)
    same = {same_text(start + one) for one in texts for start in ("", AVOID)} - {""}
    theirs: set[int] = set()
    others: set[int] = set()
    for places, bullet in bullets_by_line(lines):
        is_theirs = bullet.id == id or (not bullet.id and same_text(bullet.text) in same)
        (theirs if is_theirs else others).update(places)
    kept = [place for place in range(len(lines)) if place not in theirs]
    parts = []
    for is_bullet, run in groupby(kept, key=others.__contains__):
        part = "\n".join(lines[place] for place in run)
        parts.append(part if is_bullet else black_out(part, texts))
    left = "\n".join(parts)
    return text if left == "\n".join(lines) else _as_it_was(text, left)


def _as_it_was(text: str, left: str) -> str:
    """Return what is left with the line ends and the mark of the file."""
    return ("\ufeff" if text.startswith("\ufeff") else "") + left.replace("\n", "\r\n" if "\r\n" in text else "\n")
