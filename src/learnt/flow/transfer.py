"""Learnings in and out: export, import, backup, and deletion for good."""

from __future__ import annotations

import os
import time

from learnt import __version__
from learnt.errors import CorruptDatabase, InvalidValue
from learnt.flow.context import Stores
from learnt.model import PARAGRAPHS, TAG_LIMIT, Learning, Value, is_id, new_id, text_id
from learnt.store import BACKUPS_FOLDER, events, learnings
from learnt.store.learnings import Filter
from learnt.text.records import PLACE, read_fields
from learnt.weigh import confidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from learnt.store import Store
    from learnt.store.database import Database
    from learnt.store.learnings import Change
    from learnt.store.missteps import Misstep

_IMPORTED_AT_ONCE = 500
TEMPLATE_TAG = "template"
_TEMPLATE_FIELDS = (
    "title",
    *PARAGRAPHS,
    "tags",
    "domain",
    "category",
    "kind",
    "polarity",
    "triggers",
    "confidence",
    "pinned",
)


class Imported(Value):
    """What became of the learnings of a file."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    kept: int = 0
    """Changed here after the file was written, so the file's version was not taken."""


class Started(Value):
    """What became of the learnings of a template."""

    added: int = 0
    known: int = 0
    """The store holds the same already, in whatever state: what a person put away does not come back."""


class Transfer(Stores):
    """What moves whole stores."""

    def export(self, *, status: str | None = None) -> Iterator[Learning]:
        """Yield the learnings of the own store, oldest first."""
        which = Filter(status=status)
        for learning in learnings.each(self.store.database, which):
            yield learning.replace(scope=self.store.place.scope)

    def import_all(
        self, records: Iterable[dict[str, Any]], *, progress: Callable[[int], None] = lambda _: None
    ) -> Imported:
        """Take in exported learnings: same ids, no duplicates, and nothing newer overwritten."""
        counts = dict.fromkeys(Imported.fields, 0)
        everything = [self._record(record) for record in records]
        for number, record in enumerate(everything, 1):
            self._check_import(record, number)
        for start in range(0, len(everything), _IMPORTED_AT_ONCE):
            self._import_batch(everything[start : start + _IMPORTED_AT_ONCE], counts)
            progress(start)
        self.store.grew_by(counts["added"] + counts["updated"])
        return Imported(**counts)

    def start_with(self, records: Iterable[dict[str, Any]], *, template: str = "") -> Started:
        """Add the learnings of a template that are not there yet; of records from elsewhere, only what they say counts.

        What is archived, hidden or superseded where they come from is left out.
        """
        everything = [self._record(record) for record in records]
        for number, record in enumerate(everything, 1):
            self._check_import(record, number)
        now = self._clock()
        change = self._change("import", at=now, reason=f"template {template}".strip())
        added = known = 0
        with self.store.transaction():
            self.store.database.lock_words()  # of two that start at once, the second must see what the first added
            for record in everything:
                if record.get("status", "active") == "active":
                    is_new = self._add_if_new(self._of_template(record, now=now + added), change)
                    added, known = added + is_new, known + (not is_new)
        self.store.grew_by(added)
        return Started(added=added, known=known)

    def purge(self, id: str) -> int:
        """Really delete a learning: rows, history, spool, backups, log, and the learnings files of this worktree.

        Return how many backups held it. Interrupted, it can be repeated: the traces are looked for even when the
        learning itself is gone. From no file or branch does it come back.
        """
        from learnt.flow.disk import alone

        own = [store for store in self.sound_stores() if not store.place.read_only]
        holding = [store for store in own if is_id("learn", id) and learnings.find(store.database, id)]
        holding = holding or [store for store in own if is_id("learn", id) and store.may_hold_traces(id)]
        if not holding:
            self._holder(id, writable=True)  # says what is wrong
        with alone(self.store):  # whoever has read the files would write the learning once more
            return sum(self._purge_from(store, id) for store in holding)

    def forget(self, brief: str) -> Misstep | None:
        """Forget the command that a brief warned of; None if that was done before.

        It is told of again only when it fails and another one works in its place anew.
        """
        from learnt.flow.purge import forget

        return forget(self.store, brief)

    def purge_warned(self, brief: str) -> int:
        """Really delete all that is kept of the command that a brief warned of; return how many backups held it."""
        from learnt.flow.purge import purge

        return purge(self.store, brief)

    def warned_of(self, brief: str) -> str:
        """Return the command that a brief warned of."""
        from learnt.flow.purge import warned_of

        return warned_of(self.store, brief)

    def _purge_from(self, store: Store, id: str) -> int:
        """Delete a learning from one store, and first from the files: its texts are known as long as it is there."""
        from learnt.flow.purge import take_out_of_files
        from learnt.store.backup import purge_from_backups

        with store.scrubbing(id):
            if self.root:
                self.remarks += take_out_of_files(self.root, id, learnings.texts_ever(store.database, id))
            with store.transaction():
                learnings.delete(store.database, id)
            store.spool.forget(id)
            if store.place.address:
                from learnt.store.mirror import throw_away

                throw_away(store.place)
            backups = os.path.join(store.place.folder, BACKUPS_FOLDER)
            return purge_from_backups(backups, lambda backup: _deleted(backup, id))

    def backup(self, path: str | None = None) -> str:
        """Write a copy of the store into a SQLite file and return its path."""
        from learnt.store.backup import back_up

        if path is None:
            moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._clock() / 1000))
            name = f"{moment}-{new_id('backup', self._clock())[-6:]}.db"
            self.store.make_folder()
            path = os.path.join(self.store.place.folder, BACKUPS_FOLDER, name)
        back_up(self.store.database, path, version=__version__, now_ms=self._clock())
        return path

    def restore_backup(self, path: str) -> str:
        """Put a backup in the store's place, after a backup of what is there; return that one's path.

        A damaged file is set aside instead of backed up.
        """
        from learnt.store.backup import open_backup, restore

        source = open_backup(path)
        try:
            before = self.store.start_anew() if self._is_damaged() else self.backup()
            restore(self.store.database, source)
            self.store.database.analyze()
        finally:
            source.close()
        return before

    def _is_damaged(self) -> bool:
        try:
            return bool(self.store.database.check())
        except CorruptDatabase:
            return True

    def _check_import(self, record: dict[str, Any], number: int) -> None:
        """Refuse the whole file for one bad entry, before anything is written."""
        try:
            self._imported(record, now=0)
        except InvalidValue as error:
            raise InvalidValue(f"entry {number}: {error.message}", hint=error.hint or "correct the entry") from None

    def _import_batch(self, records: list[dict[str, Any]], counts: dict[str, int]) -> None:
        now = self._clock()
        # Without a time of its own, an entry is as new as its place in the file says.
        read = [(record, self._imported(record, now=now + place)) for place, record in enumerate(records)]
        with self.store.transaction():
            self.store.database.lock_words()  # of two that import the same, the second must see what the first added
            for record, learning in read:
                counts[self._take_in(record, learning, now=now)] += 1

    def _imported(self, record: dict[str, Any], *, now: int) -> Learning:
        known = {name: value for name, value in record.items() if name not in PLACE}
        fields = read_fields(known, allowed=tuple(name for name in Learning.fields if name not in PLACE))
        if "id" not in fields:
            fields["id"] = _id_of_text(fields)
        fields.setdefault("origin", "import")
        fields.setdefault("confidence", confidence.start(fields["origin"]))
        fields.setdefault("created_at", now)
        fields.setdefault("updated_at", fields["created_at"])
        return Learning(**{"title": "", **fields})

    def _of_template(self, record: dict[str, Any], *, now: int) -> Learning:
        """Return a fresh learning that says what a record says, and nothing of what became of it elsewhere."""
        said = {name: record[name] for name in record if name in _TEMPLATE_FIELDS}
        learning = self._imported(said, now=now)
        tags = sorted({*learning.tags, TEMPLATE_TAG})[:TAG_LIMIT]
        return learning.replace(id=new_id("learn", now), tags=tuple(tags))

    def _add_if_new(self, learning: Learning, change: Change) -> bool:
        """Within a transaction: add a learning unless there is one that says the same."""
        database = self.store.database
        if any(learnings.same_as(database, text) for text in (learning.observation, learning.title) if text):
            return False
        learnings.add(database, learning, change)
        return True

    def _take_in(self, record: dict[str, Any], learning: Learning, *, now: int) -> str:
        """Add or update one learning; what the record does not state stays as it is here."""
        database = self.store.database
        change = self._change("import", at=now)
        self._refuse_circle(learning.id, learning.superseded_by)
        present = learnings.find(database, learning.id, for_update=True)
        if present is None:
            learnings.add(database, learning, change)
            return "added"
        stated = [name for name in record if name not in ("updated_at", *PLACE)]
        theirs = {name: getattr(learning, name) for name in stated}
        if all(getattr(present, name) == value for name, value in theirs.items()):
            return "unchanged"
        last = events.of(database, learning.id)[-1]
        if present.updated_at > record.get("updated_at", 0) and last.what != "import":
            return "kept"  # changed here meanwhile, and not by an earlier version of the same file
        learnings.change(database, learning.id, lambda _: theirs, change)
        return "updated"


def _deleted(database: Database, id: str) -> bool:
    """Delete a learning; say whether it was there."""
    if learnings.find(database, id) is None:
        return False
    learnings.delete(database, id)
    return True


def _id_of_text(fields: dict[str, Any]) -> str:
    """Return an id that depends on the text alone, so that a second import of the same file adds nothing."""
    parts = [str(fields.get(name, "")) for name in ("title", *PARAGRAPHS)]
    return text_id("learn", "\0".join(parts))
