"""Learnings in and out: export, import, templates and backups."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from learnt import __version__
from learnt.errors import CorruptDatabase, InvalidValue, WrongRequest
from learnt.flow.context import Context
from learnt.flow.learnings import STATEMENT_FIELDS, refuse_circle
from learnt.model import PARAGRAPHS, TAG_LIMIT, Learning, Value, new_id, text_id
from learnt.store import BACKUPS_FOLDER, learnings
from learnt.store.backup import back_up, open_backup, restore
from learnt.store.index import Filter
from learnt.store.learnings import Change
from learnt.text.entries import read_entries
from learnt.text.records import PLACE, read_fields
from learnt.text.triggers import refuse_wild_patterns
from learnt.weigh import confidence
from learnt.weigh.provenance import NOBODY, PERSON, after_agents_edit, is_persons

_BATCH = 500
TEMPLATE_TAG = "template"
# Included templates: common learnings to start a project with, as Markdown entries.
_TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")
_TEMPLATE_FIELDS = (*STATEMENT_FIELDS, "confidence", "pinned")


class ImportReport(Value):
    """The outcome of an import."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    kept: int = 0
    """Learnings that have been changed here since the export, so the file's version was ignored."""


class TemplateReport(Value):
    """The outcome of adding a template."""

    added: int = 0
    known: int = 0
    """Learnings that the store already has, with any status; archived and hidden learnings are not restored."""


class Transfer:
    """Export, import, templates, and backups of the project's store."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    def export(self, *, status: str | None = None) -> Iterator[Learning]:
        """Yield the learnings in the project's own store, oldest first."""
        for learning in learnings.each(self._store.database, Filter(status=status)):
            yield learning.replace(scope=self._store.place.scope)

    def import_all(
        self,
        records: Iterable[dict[str, Any]],
        *,
        progress: Callable[[int], None] = lambda _: None,
        as_is: bool = False,
    ) -> ImportReport:
        """Import exported learnings with their ids, without duplicates and without overwriting newer learnings.

        Who vouches for a learning is believed only with `as_is`.
        """
        counts = dict.fromkeys(ImportReport.fields, 0)
        everything = self._read_all(records)
        for start in range(0, len(everything), _BATCH):
            now = self._context.clock()
            # Entries without a time keep the order in which the file lists them.
            batch = enumerate(everything[start : start + _BATCH])
            entries = [(record, _read_record(record, now=now + place)) for place, record in batch]
            with self._store.transaction():
                self._store.database.lock_words()  # so that two imports do not add the same learning
                for record, learning in entries:
                    believed = learning if as_is else learning.replace(vouched=NOBODY)
                    counts[self._import_record(record, believed, now=now, as_is=as_is)] += 1
            progress(start)
        self._store.analyze_if_many(counts["added"] + counts["updated"])
        return ImportReport(**counts)

    def start_with(self, records: Iterable[dict[str, Any]], *, template: str = "") -> TemplateReport:
        """Add a template's learnings that are missing here; only the content of the records is used.

        Records that are archived, hidden or superseded are left out.
        """
        everything = self._read_all(records)
        now = self._context.clock()
        change = self._context.change("import", at=now, reason=f"template {template}".strip())
        # A person who starts with one of our own templates vouches for it; a file may be anybody's.
        vouched = PERSON if template in self.templates() and self._context.by == PERSON else NOBODY
        added = known = 0
        with self._store.transaction():
            self._store.database.lock_words()  # so that two processes do not add the same learning
            for record in everything:
                if record.get("status", "active") == "active":
                    learning = _read_template_record(record, now=now + added)
                    is_new = self._add_if_new(learning.replace(vouched=vouched), change)
                    added, known = added + is_new, known + (not is_new)
        self._store.analyze_if_many(added)
        return TemplateReport(added=added, known=known)

    @staticmethod
    def templates() -> dict[str, str]:
        """Return each built-in template's name and subject."""
        names = sorted(file.removesuffix(".md") for file in os.listdir(_TEMPLATES) if file.endswith(".md"))
        return {name: _read_template(name).partition("\n")[0].removeprefix("# ") for name in names}

    @staticmethod
    def template(name: str) -> list[dict[str, Any]]:
        """Return the records of a built-in template; raise WrongRequest if no template has this name."""
        subjects = Transfer.templates()
        if name not in subjects:
            raise WrongRequest(
                f"there is no template `{name[:100]}`",
                hint=f"choose one of: {', '.join(subjects)}; or specify a file, as in `--template ./team.md`",
            )
        return list(read_entries(_read_template(name)))

    def backup(self, path: str | None = None) -> str:
        """Write a backup of the store as a SQLite file and return its path."""
        if path is None:
            moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._context.clock() / 1000))
            name = f"{moment}-{new_id('backup', self._context.clock())[-6:]}.db"
            self._store.make_folder()
            path = os.path.join(self._store.place.folder, BACKUPS_FOLDER, name)
        back_up(self._store.database, path, version=__version__, now_ms=self._context.clock())
        return path

    def restore_backup(self, path: str) -> str:
        """Restore a backup after backing up the current store; return the path of the new backup.

        A damaged store is moved aside instead of being backed up.
        """
        source = open_backup(path)
        try:
            before = self._store.set_damaged_file_aside() if self._is_damaged() else self.backup()
            restore(self._store.database, source)
            self._store.database.analyze()
        finally:
            source.close()
        return before

    def _is_damaged(self) -> bool:
        try:
            return bool(self._store.database.check())
        except CorruptDatabase:
            return True

    def _read_all(self, records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return records without secrets; raise before anything is written if a record is invalid."""
        everything = [self._context.redact_record(record) for record in records]
        for number, record in enumerate(everything, 1):
            try:
                _read_record(record, now=0)
            except InvalidValue as error:
                raise InvalidValue(f"entry {number}: {error.message}", hint=error.hint or "correct the entry") from None
        return everything

    def _add_if_new(self, learning: Learning, change: Change) -> bool:
        """Within a transaction: add a learning unless the store has a learning that says the same thing."""
        database = self._store.database
        if any(learnings.find_same(database, text) for text in (learning.observation, learning.title) if text):
            return False
        learnings.add(database, learning, change)
        return True

    def _import_record(self, record: dict[str, Any], learning: Learning, *, now: int, as_is: bool) -> str:
        """Add or update a learning; fields that the record lacks stay unchanged."""
        database = self._store.database
        change = self._context.change("import", at=now)
        refuse_circle(self._context, learning.id, learning.superseded_by)
        stored = learnings.find(database, learning.id, for_update=True)
        if stored is None:
            learnings.add(database, learning, change)
            return "added"
        stated = [name for name in record if name not in ("updated_at", *(() if as_is else ("vouched",)), *PLACE)]
        changes = {name: getattr(learning, name) for name in stated}
        if all(getattr(stored, name) == value for name, value in changes.items()):
            return "unchanged"
        last = learnings.history(database, learning.id)[-1]
        if stored.updated_at > record.get("updated_at", 0) and last.what != "import":
            return "kept"  # it has been changed here since, and not by an earlier import of the same file
        if is_persons(stored) and self._context.by != PERSON:
            return "kept"
        decide = (lambda _: changes) if as_is else (lambda known: after_agents_edit(known, changes))
        learnings.change(database, learning.id, decide, change)
        return "updated"


def _read_record(record: dict[str, Any], *, now: int) -> Learning:
    stated = {name: value for name, value in record.items() if name not in PLACE}
    fields = read_fields(stated, allowed=tuple(name for name in Learning.fields if name not in PLACE))
    refuse_wild_patterns(fields)
    if "id" not in fields:
        # The id depends on the text alone, so importing the same file again adds nothing.
        fields["id"] = text_id("learn", "\0".join(str(fields.get(name, "")) for name in ("title", *PARAGRAPHS)))
    fields.setdefault("origin", "import")
    fields.setdefault("confidence", confidence.start(fields["origin"]))
    fields.setdefault("created_at", now)
    fields.setdefault("updated_at", fields["created_at"])
    return Learning(**{"title": "", **fields})


def _read_template_record(record: dict[str, Any], *, now: int) -> Learning:
    """Return a new learning with the content of a record, without its history elsewhere."""
    statement = {name: record[name] for name in record if name in _TEMPLATE_FIELDS}
    learning = _read_record(statement, now=now)
    tags = sorted({*learning.tags, TEMPLATE_TAG})[:TAG_LIMIT]
    return learning.replace(id=new_id("learn", now), tags=tuple(tags))


def _read_template(name: str) -> str:
    with open(os.path.join(_TEMPLATES, f"{name}.md"), encoding="utf-8") as file:
        return file.read()
