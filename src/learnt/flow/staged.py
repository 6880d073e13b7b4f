"""Read the staging file for a consolidation: each entry with its learning, as the entry says it now.

An entry without a learning becomes a new one. What a person has edited in the file is an edit of the learning; an older
version of the learning, which is in the file because the learning was edited elsewhere, is none. Lines that the user
did not write in this clone are nobody's word: they came with the project.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from learnt.consolidate.ages import AgedEntry
from learnt.consolidate.pairs import StagedEntry
from learnt.consolidate.redundant import find_redundant
from learnt.errors import LearntError, WrongRequest
from learnt.flow.context import Context
from learnt.flow.documents import read_loaded
from learnt.flow.learnings import fit_title, new_learning
from learnt.mine.classify import find_category
from learnt.mine.quality import find_flaw_in
from learnt.model import PARAGRAPHS, Learning, Value
from learnt.store import learnings
from learnt.store.database import Database
from learnt.system.git_lines import LineOwners, find_owners
from learnt.text.clean import clean, fold
from learnt.text.entries import EntryText, read_entries, split_entries
from learnt.weigh.confidence import after_agents_edit, is_persons, vouch_by_person

_TEXTS = ("title", *PARAGRAPHS)
_FIELDS = (*_TEXTS, "cues")


class StagedFile(Value):
    """The entries of the staging file, and what has to be stored because of them."""

    text: str
    entries: tuple[StagedEntry, ...]
    new: Mapping[str, Learning] = {}
    """The learnings of entries that the store does not know, by id."""
    edits: Mapping[str, Mapping[str, Any]] = {}
    """The changes to known learnings, by id."""
    remarks: tuple[str, ...] = ()
    """Which entries cannot be consolidated, and why."""


class StagedReader:
    """Reads the entries of a staging file."""

    def __init__(self, context: Context, path: str, text: str) -> None:
        self._context = context
        self._path = path
        self._text = text
        self._new: dict[str, Learning] = {}
        self._edits: dict[str, dict[str, Any]] = {}
        self._remarks: list[str] = []

    def read(
        self, ages: Collection[AgedEntry], batch: Collection[AgedEntry], *, aged: Collection[AgedEntry] = ()
    ) -> StagedFile:
        """Return the entries; those in `batch` are to be consolidated, and those in `aged` may be."""
        texts = {entry.line: entry for entry in split_entries(self._text)[1]}
        lines = {entry.line for entry in batch}
        entries: list[StagedEntry] = []
        seen: set[str] = set()
        for one in (one for one in ages if one.line in texts):
            staged = self._read_entry(one, texts[one.line], is_in_batch=one.line in lines)
            if staged is not None and staged.learning.id not in seen:
                seen.add(staged.learning.id)
                entries.append(staged)
        entries = self._mark_redundant(entries, {one.line for one in (*batch, *aged)})
        return StagedFile(
            text=self._text, entries=tuple(entries), new=self._new, edits=self._edits, remarks=tuple(self._remarks)
        )

    def _read_entry(self, aged: AgedEntry, entry: EntryText, *, is_in_batch: bool) -> StagedEntry | None:
        """Return an entry with its learning; None if it cannot be one, and then it stays where it is."""
        try:
            record = next(read_entries(clean(entry.text)))
            fields = {name: record[name] for name in _FIELDS if record.get(name)}
            learning = self._find_learning(entry, fields)
        except LearntError as error:
            self._remarks.append(f"“{aged.title}” is left where it is: {error.message}")
            return None
        judged = {name: getattr(learning, name) for name in ("title", "observation", "action")}
        return StagedEntry(entry=aged, learning=learning, is_in_batch=is_in_batch, flaw=find_flaw_in(**judged))

    def _mark_redundant(self, entries: Sequence[StagedEntry], lines: Collection[int]) -> list[StagedEntry]:
        """Return the entries; whether one is needed that a file says which agents load anyway, a person decides."""
        wanted = [staged.learning for staged in entries if staged.entry.line in lines and not staged.flaw]
        found = find_redundant(wanted, read_loaded(self._context.root)) if wanted else []
        said = {one.learning.id: f"{one.file} says it already: {one.rule.title}" for one in found}
        return [staged.replace(flaw=said.get(staged.learning.id, staged.flaw)) for staged in entries]

    def _find_learning(self, entry: EntryText, fields: dict[str, Any]) -> Learning:
        database = self._context.store.database
        said = read_texts(fields)
        known = learnings.find(database, entry.id) if entry.id else None
        if known is None:
            same = learnings.find_by_title(database, said["title"])
            known = next((one for one in same if _says(one) == said), None)
            known = known or next((one for one in same if is_said(database, one, said)), None)
        if known is None:
            return self._make_learning(entry, fields)
        if is_said(database, known, said):
            return known
        changes = {name: said[name] for name in _TEXTS}
        is_own = self._is_own(entry)
        if is_persons(known) and not is_own:
            raise WrongRequest(f"{known.id} stays: somebody else has edited it in the file", hint="`learnt edit` it")
        self._edits[known.id] = (vouch_by_person if is_own else after_agents_edit)(known, changes)
        return known.replace(**changes)

    def _make_learning(self, entry: EntryText, fields: dict[str, Any]) -> Learning:
        by = "person" if self._is_own(entry) else "agent"
        learning = new_learning(self._context, fit_title(dict(fields)), created_at=self._context.clock(), by=by)
        learning = learning.replace(category=learning.category or find_category(learning.title, learning.action))
        if entry.id:
            learning = learning.replace(id=entry.id)  # another clone has given it this id
        self._new[learning.id] = learning
        return learning

    def _is_own(self, entry: EntryText) -> bool:
        first = entry.line - 1
        last = first + len(entry.text.rstrip().split("\n"))
        return self._owners.are_own(tuple(range(first, last)))

    @cached_property
    def _owners(self) -> LineOwners:
        return find_owners(self._context.root, self._path, os.environ)


def read_texts(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return what an entry says, of its fields."""
    return {name: fold(fields.get(name, "")) if name == "title" else fields.get(name, "") for name in _TEXTS}


def is_said(database: Database, learning: Learning, said: Mapping[str, str]) -> bool:
    """Return whether a learning says this or once said it: then it was edited elsewhere, and the file is behind."""
    texts = _says(learning)
    if texts == said:
        return True
    for event in reversed(learnings.history(database, learning.id)):
        texts |= {name: event.old[name] for name in _TEXTS if name in event.old}
        if texts == said:
            return True
    return False


def _says(learning: Learning) -> dict[str, str]:
    return {name: getattr(learning, name) for name in _TEXTS}
