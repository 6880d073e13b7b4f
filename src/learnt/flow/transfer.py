"""Learnings in and out: export, import, templates and backups."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from learnt import __version__
from learnt.errors import CorruptDatabase, InvalidValue, WrongRequest
from learnt.flow.context import Context
from learnt.flow.learnings import refuse_agent, refuse_circle, revert
from learnt.flow.rules_files import RulesFiles
from learnt.model import PARAGRAPHS, TAG_LIMIT, Event, Learning, Value, new_id, text_id
from learnt.store import BACKUPS_FOLDER, learnings
from learnt.store.backup import back_up, open_backup, restore
from learnt.store.bulk import Prepared, add_imported
from learnt.store.index import Filter
from learnt.store.learnings import Change
from learnt.system.ahead import work_ahead
from learnt.text.entries import read_entries
from learnt.text.records import PLACE, read_fields
from learnt.text.triggers import refuse_wild_patterns
from learnt.weigh import confidence
from learnt.weigh.confidence import NOBODY, PERSON, STATEMENT_FIELDS, after_agents_edit, is_persons

_BATCH = 2_000
TEMPLATE_TAG = "template"
# Included templates: common learnings to start a project with, as Markdown entries.
_TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")
# What an import takes over of a file whose claims are not believed: what the learnings say, and when.
_TAKEN_OVER = ("id", *STATEMENT_FIELDS, "goal", "task", "discovery", "commit", "created_at", "updated_at")
_RETIRING = ("status", "superseded_by")
_MODEST = frozenset((*_TAKEN_OVER, *_RETIRING))  # a record with these fields alone claims nothing
_STORED = tuple(name for name in Learning.fields if name not in PLACE)
_OUTCOMES = ("added", "updated", "unchanged", "kept")
_OWN_TEMPLATE_FIELDS = (*STATEMENT_FIELDS, "confidence", "pinned")


class ImportReport(Value):
    """The outcome of an import."""

    id: str = ""
    """For `learnt undo`."""
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    kept: int = 0
    """Learnings whose version in the file was ignored: they have been changed here since the export, or the file is not
    believed and they were not imported."""


class ImportUndo(Value):
    """What an undo of an import did."""

    id: str
    archived: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    """Learnings that have their former fields again."""
    left: tuple[str, ...] = ()
    """Learnings that were changed again since the import, and stay as they are."""


class Claims(Value):
    """What the records of a file claim about themselves."""

    learnings: int
    kinds: dict[str, int]
    origins: dict[str, int]
    pinned: int
    least_confidence: float
    most_confidence: float


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
        self.rules = RulesFiles(context)
        """The import of CLAUDE.md, AGENTS.md and other files with rules."""

    def export(self, *, status: str | None = None) -> Iterator[Learning]:
        """Yield the learnings in the project's own store, oldest first."""
        for learning in learnings.each(self._store.database, Filter(status=status)):
            yield learning.replace(scope=self._store.place.scope)

    def import_all(
        self,
        records: Iterable[dict[str, Any]],
        *,
        as_is: bool = True,
        progress: Callable[[int], None] = lambda _: None,
    ) -> ImportReport:
        """Import exported learnings with their ids, without duplicates and without overwriting newer learnings.

        Without `as_is`, the file's claims are not believed: new learnings are unpinned, have the origin `import` and
        the confidence of a new learning. Learnings that are here already change only if they were imported, too.
        """
        if as_is:
            refuse_agent(self._context, "import --as-is")
        id = new_id("import", self._context.clock())
        counts = dict.fromkeys(_OUTCOMES, 0)
        # A list is checked as a whole, before anything is written. What is read while it is imported is checked batch
        # by batch, so that it need not fit into memory.
        is_list = isinstance(records, Sequence)
        safe: Iterable[dict[str, Any]] = (
            self._read_all(records) if is_list else map(self._context.redact_record, records)
        )
        done = 0
        # What takes longest is done by a second process, and between the transactions.
        for batch, prepared in work_ahead(partial(_prepare, as_is=as_is), self._batches(safe)):
            change = self._context.change("import", at=batch.now, reason=id)
            with self._store.transaction():
                self._store.database.lock_words()  # so that two imports do not add the same learning
                for outcome in self._import_batch(batch, map(Prepared.from_plain, prepared), change, as_is=as_is):
                    counts[outcome] += 1
            progress(done)
            done += len(batch.records)
        self._store.analyze_if_many(counts["added"] + counts["updated"])
        return ImportReport(id=id, **counts)

    def undo_import(self, id: str, *, reason: str = "") -> ImportUndo:
        """Take back a whole import: archive what it added, and give what it changed its former fields again."""
        imported = learnings.imported_by(self._store.database, id)
        if not imported:
            raise WrongRequest(f"no import `{id}` changed anything here", hint="`learnt history ID` shows imports, too")
        outcome: dict[str, list[str]] = {"archived": [], "restored": [], "left": []}
        with self._store.transaction():
            for learning in imported:
                for what in self._undo_events(learning, id, reason=reason):
                    outcome[what].append(learning)
        if not any(outcome.values()):
            raise WrongRequest(f"nothing is left to undo in {id}", hint="import the file again to get it back")
        return ImportUndo(id=id, **{what: tuple(ids) for what, ids in outcome.items()})

    def _undo_events(self, learning: str, id: str, *, reason: str) -> Iterator[str]:
        """Undo what an import did to a learning, the latest first; yield what came of it."""
        history = learnings.history(self._store.database, learning)
        undone = {event.undoes for event in history}
        for event in reversed(history):
            if event.what == "import" and event.reason == id and event.id not in undone:
                change = self._context.change("undo", at=self._context.clock(), reason=reason, undoes=event.id)
                what = self._undo_event(event, change)
                if what:
                    yield what

    def _undo_event(self, event: Event, change: Change) -> str:
        database = self._store.database
        if is_persons(learnings.get(database, event.subject)):
            refuse_agent(self._context, "undo")
        try:
            before, after = learnings.change(database, event.subject, partial(revert, event), change)
        except WrongRequest:
            return "left"
        if before.version == after.version:
            return ""
        return "restored" if event.old else "archived"

    @staticmethod
    def claims(records: Iterable[dict[str, Any]]) -> Claims:
        """Return what records claim about themselves; raise if one of them is invalid."""
        kinds: Counter[str] = Counter()
        origins: Counter[str] = Counter()
        pinned, least, most = 0, 1.0, 0.0
        for number, record in enumerate(records, 1):
            learning = _check(record, now=0, number=number)
            kinds[learning.kind] += 1
            origins[learning.origin] += 1
            pinned += learning.pinned
            least, most = min(least, learning.confidence), max(most, learning.confidence)
        return Claims(
            learnings=kinds.total(),
            kinds=dict(kinds.most_common()),
            origins=dict(origins.most_common()),
            pinned=pinned,
            least_confidence=least if kinds else 0.0,
            most_confidence=most,
        )

    def start_with(self, records: Iterable[dict[str, Any]], *, template: str = "") -> TemplateReport:
        """Add a template's learnings that are missing here; only the content of the records is used.

        `template` is the name of one of our own templates, whose confidences and pins are believed, or a file's path.
        Records that are archived, hidden or superseded are left out.
        """
        everything = self._read_all(records)
        now = self._context.clock()
        change = self._context.change("import", at=now, reason=f"template {template}".strip())
        # A person who starts with one of our own templates vouches for it; a file may be anybody's.
        is_ours = template in self.templates()
        vouched = PERSON if is_ours and self._context.by == PERSON else NOBODY
        taken_over = _OWN_TEMPLATE_FIELDS if is_ours else STATEMENT_FIELDS
        added = known = 0
        with self._store.transaction():
            self._store.database.lock_words()  # so that two processes do not add the same learning
            for record in everything:
                if record.get("status", "active") == "active":
                    learning = _read_template_record(record, taken_over, now=now + added)
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
            target = path
        else:
            folder, name = os.path.split(os.path.abspath(path))
            target = os.path.join(os.path.realpath(folder), name)  # a folder that the user chose may be a link
        back_up(self._store.database, target, version=__version__, now_ms=self._context.clock())
        return path

    def restore_backup(self, path: str) -> str:
        """Restore a backup after backing up the current store; return the path of the new backup.

        A damaged store is moved aside instead of being backed up.
        """
        refuse_agent(self._context, "backup --restore")
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
            _check(record, now=0, number=number)
        return everything

    def _add_if_new(self, learning: Learning, change: Change) -> bool:
        """Within a transaction: add a learning unless the store has a learning that says the same thing."""
        database = self._store.database
        if any(learnings.find_same(database, text) for text in (learning.observation, learning.title) if text):
            return False
        learnings.add(database, learning, change)
        return True

    def _batches(self, records: Iterable[dict[str, Any]]) -> Iterator[_Batch]:
        """Yield records in batches, each with the time of its import."""
        waiting = iter(records)
        first = 1
        while batch := list(islice(waiting, _BATCH)):
            yield _Batch(first=first, now=self._context.clock(), records=batch)
            first += len(batch)

    def _import_batch(
        self, batch: _Batch, prepared: Iterable[Prepared], change: Change, *, as_is: bool
    ) -> Iterator[str]:
        """Within a transaction: import records, the new ones together; yield what became of each."""
        database = self._store.database
        entries = list(prepared)
        known = learnings.existing(database, [entry.row["id"] for entry in entries])
        new: list[Prepared] = []
        for place, entry in enumerate(entries):
            if entry.row["id"] in known or entry.row["superseded_by"]:
                add_imported(database, new, change)  # it may be about one of these
                new = []
                yield self._import_record(batch.records[place], batch.now + place, change, as_is=as_is)
            else:
                new.append(entry)
                yield "added"
            known.add(entry.row["id"])
        add_imported(database, new, change)

    def _import_record(self, record: dict[str, Any], now: int, change: Change, *, as_is: bool) -> str:
        """Add or update a learning; fields that the record lacks stay unchanged."""
        database = self._store.database
        id = _read_record(record, now=now).id
        stored = learnings.find(database, id, for_update=True)
        if not as_is:
            record = _without_claims(record, known=stored is not None)
        learning = _read_record(record, now=now)
        refuse_circle(self._context, id, learning.superseded_by)
        if stored is None:
            add_imported(database, [Prepared.of(learning)], change)
            return "added"
        stated = [name for name in record if name not in ("updated_at", *(() if as_is else ("vouched",)), *PLACE)]
        changes = {name: getattr(learning, name) for name in stated}
        if all(getattr(stored, name) == value for name, value in changes.items()):
            return "unchanged"
        if not as_is and stored.origin != "import":
            return "kept"
        last = learnings.history(database, learning.id)[-1]
        if stored.updated_at > record.get("updated_at", 0) and last.what != "import":
            return "kept"  # it has been changed here since, and not by an earlier import of the same file
        if is_persons(stored) and self._context.by != PERSON:
            return "kept"
        decide = (lambda _: changes) if as_is else (lambda known: after_agents_edit(known, changes))
        learnings.change(database, learning.id, decide, change)
        return "updated"


class _Batch(Value):
    """Some records of an import, the number of the first one, and when they are imported."""

    first: int
    now: int
    records: list[dict[str, Any]]


def _prepare(batch: _Batch, *, as_is: bool) -> list[tuple[Any, ...]]:
    """Return what is written of each record, as if all were new; raise if one is invalid."""
    prepared = []
    for place, record in enumerate(batch.records):
        # Entries without a time keep the order in which the file lists them.
        now = batch.now + place
        learning = _check(record, now=now, number=batch.first + place)
        if not as_is and not record.keys() <= _MODEST:
            learning = _read_record(_without_claims(record, known=False), now=now)
        prepared.append(Prepared.of(learning).as_plain())
    return prepared


def _without_claims(record: dict[str, Any], *, known: bool) -> dict[str, Any]:
    """Return what is taken over of a record that is not believed: a known learning's status stays, too."""
    return {name: record[name] for name in record if name in _TAKEN_OVER or (name in _RETIRING and not known)}


def _check(record: dict[str, Any], *, now: int, number: int) -> Learning:
    """Return the learning in a record; raise with the number of the entry if it is invalid."""
    try:
        return _read_record(record, now=now)
    except InvalidValue as error:
        raise InvalidValue(f"entry {number}: {error.message}", hint=error.hint or "correct the entry") from None


def _read_record(record: dict[str, Any], *, now: int) -> Learning:
    stated = {name: value for name, value in record.items() if name not in PLACE}
    fields = read_fields(stated, allowed=_STORED)
    refuse_wild_patterns(fields)
    if "id" not in fields:
        # The id depends on the text alone, so importing the same file again adds nothing.
        fields["id"] = text_id("learn", "\0".join(str(fields.get(name, "")) for name in ("title", *PARAGRAPHS)))
    fields.setdefault("origin", "import")
    fields.setdefault("confidence", confidence.start(fields["origin"]))
    fields.setdefault("created_at", now)
    fields.setdefault("updated_at", fields["created_at"])
    return Learning(**{"title": "", **fields})


def _read_template_record(record: dict[str, Any], taken_over: Collection[str], *, now: int) -> Learning:
    """Return a new learning with the content of a record, without its history elsewhere."""
    statement = {name: record[name] for name in record if name in taken_over}
    learning = _read_record(statement, now=now)
    tags = sorted({*learning.tags, TEMPLATE_TAG})[:TAG_LIMIT]
    return learning.replace(id=new_id("learn", now), tags=tuple(tags))


def _read_template(name: str) -> str:
    with open(os.path.join(_TEMPLATES, f"{name}.md"), encoding="utf-8") as file:
        return file.read()
