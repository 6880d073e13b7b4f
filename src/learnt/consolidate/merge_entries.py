"""Merge the staging file, a topic file or their index of two branches, entry by entry.

An entry is the same on both sides if it has the same id or, without one, the same title. So two branches that both
append entries have no conflict, and an entry that one side has consolidated or removed does not come back from a side
that has not changed it. If one side has removed an entry and the other has edited it, or both have edited the same
lines, the entry is shown with git's conflict markers: only a person knows what is right.

The sections of the index are merged in the same way, but without conflicts: it can be repaired from the topic files.

Line endings, white space and what our comment says besides the id are no edits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from learnt.model import Value
from learnt.text.entries import EntryText, split_entries
from learnt.text.three_way import MergedText, choose, find_common, mark_conflict, merge_texts, unite_texts

_COMMENT = re.compile(r"^(<!--\s*learn.*-->)[ \t]*(?:\n|\Z)", re.MULTILINE)
_SPACES = re.compile(r"[ \t]+$", re.MULTILINE)
Key = tuple[str, int]


class _Version(Value):
    """One version of the file: the text above the entries, and the entries by their keys, in order."""

    above: str
    entries: Mapping[Key, str]


def merge_entries(
    base: str, ours: str, theirs: str, *, is_consolidated: Callable[[str, str], bool] = lambda _id, _text: False
) -> MergedText:
    """Return the merged file, which has line feeds only.

    `is_consolidated` returns whether the learning with an id stands in a topic file here and an entry says nothing
    else, so that the staging file needs it no more, even if the common version does not show that it was ever there.
    """
    splits = [split_entries(text) for text in (base, ours, theirs)]
    ids = _find_ids(entry for _, entries in splits for entry in entries)
    before, own, other = (_Version(above=above, entries=_by_key(entries, ids)) for above, entries in splits)
    merged = {
        key: _merge_entry(*(version.entries.get(key) for version in (before, own, other)))
        for key in _order(list(own.entries), list(other.entries))
        if key in before.entries or key in own.entries or not is_consolidated(key[0], other.entries[key])
    }
    above = _merge_above(before.above, own.above, other.above)
    last = {text for version in (own, other) for text in list(version.entries.values())[-1:]}
    return MergedText(
        text=above.text + _join([entry.text for entry in merged.values() if entry.text], last),
        conflicts=above.conflicts + sum(entry.conflicts for entry in merged.values()),
    )


def _merge_above(base: str, ours: str, theirs: str) -> MergedText:
    """Return the merged text above the entries, which ends before the line of the first one."""
    chosen = choose(base, ours, theirs)
    if chosen is not None:
        return MergedText(text="".join(chosen))
    merged = merge_texts(*(text.rstrip("\n") for text in (base, ours, theirs)))
    return merged.replace(text=f"{merged.text}\n\n" if merged.text else "")


def merge_index(base: str, ours: str, theirs: str) -> MergedText:
    """Return the merged index, with the lines of both sides where both have changed the same section."""
    before, own, other = (_by_title(text) for text in (base, ours, theirs))
    sections = []
    for title in _order(list(own), list(other)):
        old, mine, its = (version.get(title) for version in (before, own, other))
        if mine is not None and its is not None:
            sections.append(unite_texts(old or "", mine, its).text)
        elif old is None or old not in (mine, its):  # it is new, or was edited on one side and removed on the other
            sections.append(mine or its or "")
    return MergedText(text="\n\n".join(filter(None, sections)) + "\n")


def _by_title(text: str) -> dict[Key, str]:
    """Return the sections of an index by their headings; what stands above them has none."""
    above, sections = split_entries(text)
    texts = {("", 0): above, **_by_key([section.replace(id="") for section in sections], {})}
    return {key: section.strip("\n") for key, section in texts.items()}


def _find_ids(entries: Iterable[EntryText]) -> dict[str, str]:
    """Return the ids of titles: an entry may have got its id on one side only."""
    return {entry.title: entry.id for entry in entries if entry.id}


def _by_key(entries: Sequence[EntryText], ids: Mapping[str, str]) -> dict[Key, str]:
    seen: Counter[str] = Counter()
    by_key: dict[Key, str] = {}
    for entry in entries:
        name = entry.id or ids.get(entry.title, entry.title)
        by_key[name, seen[name]] = entry.text
        seen[name] += 1
    return by_key


def _order(ours: Sequence[Key], theirs: Sequence[Key]) -> list[Key]:
    """Return all keys in our order; what only they have stands where it stands there, after what only we have."""
    order = list(ours)
    common = {*ours} & {*theirs}
    place = 0
    for key in theirs:
        if key in common:
            place = order.index(key) + 1
            continue
        while place < len(order) and order[place] not in common:
            place += 1
        order.insert(place, key)
        place += 1
    return order


def _merge_entry(base: str | None, ours: str | None, theirs: str | None) -> MergedText:
    """Return an entry's merged text, which is empty if the entry is gone."""
    if ours is None or theirs is None:
        return _keep_or_drop(base, ours, theirs)
    if _says(ours) == _says(theirs) or (base is not None and _says(theirs) == _says(base)):
        return MergedText(text=ours)
    if base is not None and _says(ours) == _says(base):
        return MergedText(text=theirs)
    comment = _choose_comment(base, ours, theirs)
    own, other = (_with_comment(text, comment).rstrip("\n") for text in (ours, theirs))
    before = "\n".join(find_common(own.split("\n"), other.split("\n")))
    if base is not None:
        before = _with_comment(base, comment).rstrip("\n")
    merged = merge_texts(before, own, other)
    return merged.replace(text=f"{merged.text}\n\n")


def _keep_or_drop(base: str | None, ours: str | None, theirs: str | None) -> MergedText:
    """Return an entry that only one side has: it is new there, was removed on the other, or that is a conflict."""
    text = ours if ours is not None else theirs or ""
    if base is None:
        return MergedText(text=text)
    if _says(text) == _says(base):
        return MergedText(text="")
    lines = text.rstrip("\n").split("\n")
    marked = mark_conflict(lines, []) if ours is not None else mark_conflict([], lines)
    return MergedText(text="\n".join(marked) + "\n\n", conflicts=1)


def _says(text: str) -> str:
    """Return what an entry says, without what is no edit."""
    return _SPACES.sub("", _COMMENT.sub("", text, count=1)).strip("\n")


def _choose_comment(base: str | None, ours: str, theirs: str) -> str:
    """Return the comment that one side has changed; ours if both have, because the store knows what holds."""
    old, own, other = ("".join(_COMMENT.findall(text or "")[:1]) for text in (base, ours, theirs))
    return other if own in ("", old) and other else own


def _with_comment(text: str, comment: str) -> str:
    """Return an entry with this comment below its heading."""
    if not comment:
        return text
    heading, _, rest = _COMMENT.sub("", text, count=1).partition("\n")
    return f"{heading}\n{comment}\n{rest}"


def _join(entries: Sequence[str], last: Collection[str]) -> str:
    """Return the entries in a row; those in `last` ended their file and get a blank line if they do not any more."""
    joined = [f"{text.rstrip()}\n\n" if text in last else text for text in entries[:-1]]
    return "".join(joined) + "".join(text if text in last else f"{text.rstrip()}\n" for text in entries[-1:])
