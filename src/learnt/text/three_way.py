"""Merge two versions of a text with the version that both are based on, line by line or item by item.

A place that only one side has changed is taken from that side. Where both have changed the same place differently, a
text shows both between git's conflict markers, and a list keeps the items of both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeVar

from learnt.model import Value

OURS, MIDDLE, THEIRS = "<<<<<<< ours", "=======", ">>>>>>> theirs"
_BYTE_ORDER_MARK = "\ufeff"
_CONFLICT = re.compile(r"^<{7}(?: .*)?$[^\0]*?^={7}$[^\0]*?^>{7}(?: .*)?$", re.MULTILINE)
Item = TypeVar("Item", bound=Hashable)


class MergedText(Value):
    """A merged text, and in how many places a person has to choose."""

    text: str
    conflicts: int = 0


def merge_files(base: str, ours: str, theirs: str, merge: Callable[[str, str, str], MergedText]) -> MergedText:
    """Return a merge of files whose line endings may differ; `merge` gets all of them with line feeds alone."""
    has_mark, has_returns = (
        _choose_change(*(is_so(text) for text in (base, ours, theirs)))
        for is_so in (lambda text: text.startswith(_BYTE_ORDER_MARK), lambda text: "\r\n" in text)
    )
    plain = [text.removeprefix(_BYTE_ORDER_MARK).replace("\r\n", "\n") for text in (base, ours, theirs)]
    merged = merge(*plain)
    text = merged.text.replace("\n", "\r\n") if has_returns else merged.text
    return merged.replace(text=_BYTE_ORDER_MARK + text if has_mark else text)


def merge_texts(base: str, ours: str, theirs: str) -> MergedText:
    """Return a merge of texts, with conflict markers around the lines that both sides have changed."""
    merged: list[str] = []
    conflicts = 0
    for old, own, other in _split(*(text.split("\n") for text in (base, ours, theirs))):
        chosen = choose(old, own, other)
        conflicts += chosen is None
        merged += mark_conflict(own, other) if chosen is None else chosen
    return MergedText(text="\n".join(merged), conflicts=conflicts)


def merge_items(base: Sequence[Item], ours: Sequence[Item], theirs: Sequence[Item]) -> list[Item]:
    """Return a merge of lists; where both sides have changed the same place, it has the items of both."""
    merged: list[Item] = []
    for old, own, other in _split(list(base), list(ours), list(theirs)):
        chosen = choose(old, own, other)
        merged += _unite(old, own, other) if chosen is None else chosen
    return merged


def unite_texts(base: str, ours: str, theirs: str) -> MergedText:
    """Return a merge of texts without conflicts; where both have changed the same place, it has the lines of both."""
    return MergedText(text="\n".join(merge_items(*(text.split("\n") for text in (base, ours, theirs)))))


def has_conflict(text: str) -> bool:
    """Return whether a text has git's conflict markers, in the right order."""
    return "<<<<<<<" in text and _CONFLICT.search(text.replace("\r\n", "\n")) is not None


def mark_conflict(ours: Sequence[str], theirs: Sequence[str]) -> list[str]:
    """Return the lines of both sides between git's conflict markers."""
    return [OURS, *ours, MIDDLE, *theirs, THEIRS]


def choose(base: Sequence[Item], ours: Sequence[Item], theirs: Sequence[Item]) -> Sequence[Item] | None:
    """Return what only one side has changed, or both alike; None if they differ."""
    if theirs in (ours, base):
        return ours
    return theirs if ours == base else None


def find_common(first: Sequence[Item], second: Sequence[Item]) -> list[Item]:
    """Return the items that two lists have in common, in order."""
    return [first[place] for place in _match(first, second)]


def _choose_change(base: bool, ours: bool, theirs: bool) -> bool:
    return theirs if ours == base else ours


def _split(
    base: Sequence[Item], ours: Sequence[Item], theirs: Sequence[Item]
) -> Iterator[tuple[Sequence[Item], Sequence[Item], Sequence[Item]]]:
    """Yield the parts of three lists between the items that all have in common, and these items themselves."""
    in_ours, in_theirs = _match(base, ours), _match(base, theirs)
    old, own, other = 0, 0, 0
    for place in [place for place in in_ours if place in in_theirs]:
        yield base[old:place], ours[own : in_ours[place]], theirs[other : in_theirs[place]]
        old, own, other = place + 1, in_ours[place] + 1, in_theirs[place] + 1
        common = base[place:old]
        yield common, common, common
    yield base[old:], ours[own:], theirs[other:]


def _match(first: Sequence[Item], second: Sequence[Item]) -> dict[int, int]:
    """Return the places of the first list's items in the second list, as far as the order is the same."""
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    return {block.a + step: block.b + step for block in blocks for step in range(block.size)}


def _unite(base: Sequence[Item], ours: Sequence[Item], theirs: Sequence[Item]) -> list[Item]:
    """Return the items of both sides without those that one of them has removed; blank lines stay."""
    removed = {item for item in base if item and (item not in ours or item not in theirs)}
    united: list[Item] = []
    for _, start, end, other_start, other_end in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        own, other = ours[start:end], theirs[other_start:other_end]
        united += own if own == other else [*own, *other]
    return [item for item in united if item not in removed]
