"""Remove a purged learning from the file and nothing else: its bullets go, all other lines stay as they are.

A bullet belongs to the learning by its id, or, where it has none, by having one of its texts. Other text of people
stays, except where it repeats a text of the learning in full.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import groupby

from learnt.learnings_file.lines import same_text
from learnt.learnings_file.read import bullets_by_line, split_lines
from learnt.model import AVOID
from learnt.text.redact import black_out


def remove_learning(text: str, id: str, texts: Collection[str]) -> str:
    """Return the file without a learning, given its id and all texts that it ever had."""
    lines = split_lines(text)
    keys = {same_text(start + own_text) for own_text in texts for start in ("", AVOID)} - {""}
    own_lines: set[int] = set()
    other_lines: set[int] = set()
    for places, bullet in bullets_by_line(lines):
        is_own = bullet.id == id or (not bullet.id and same_text(bullet.text) in keys)
        (own_lines if is_own else other_lines).update(places)
    kept = [place for place in range(len(lines)) if place not in own_lines]
    parts = []
    for is_bullet, run in groupby(kept, key=other_lines.__contains__):
        part = "\n".join(lines[place] for place in run)
        parts.append(part if is_bullet else black_out(part, texts))
    rest = "\n".join(parts)
    return text if rest == "\n".join(lines) else _restore_format(text, rest)


def _restore_format(text: str, rest: str) -> str:
    """Return the rest with the line ends and the byte order mark of the file."""
    return ("\ufeff" if text.startswith("\ufeff") else "") + rest.replace("\n", "\r\n" if "\r\n" in text else "\n")
