"""One project's store: its database, its spool, and the promise that an acknowledged write is never lost.

A person's change is either committed or fails with TryAgain. Records of what agents did go into the database. If the
database is not available, they go into the spool, which is replayed when the store is next opened. Opening creates a
store only if the caller asks for it.
"""

from __future__ import annotations

import os
import time

from learnt.errors import LearntError, NewerDatabase, NoStore, OldSchema, WrongRequest, cannot_write, make_writable
from learnt.model import Value, digest, new_id
from learnt.store import happened, learnings
from learnt.store.database import newest_schema
from learnt.store.happened import BriefRecord, WarningRecord
from learnt.store.index import Filter
from learnt.store.spool import UNUSABLE, Spool, SpoolRecord, checksum
from learnt.store.sqlite import SqliteDatabase
from learnt.system import files
from learnt.text.redact import without_password

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Any

    from learnt.store.database import Database, Transaction
    from learnt.store.happened import Happening

    Applier = Callable[[Database, dict[str, Any]], object]

DATABASE_FILE = "learnt.db"
MIRROR_FILE = "mirror.db"
DAMAGE_NOTE = "learnt.db.damaged"
BACKUPS_FOLDER = "backups"
PATIENCE_MS = 100  # how long a process waits for the database before it spools or skips a write
_REPLAY_PATIENCE_MS = 1_000  # how long the process waits that has just spooled a record
_MIN_TO_ANALYZE = 300
_LONG_SPOOL_BYTES = 50_000  # 12 to 25 records
_MANY_TO_MIGRATE = 300  # learnings; indexing so many anew takes a tenth of a second
_SCRUB_NOTE = "scrub.pending."
IGNORE = """# Only the learnings and prompts that people write belong into version control.
*
!learnings.md
!learnings/
!learnings/*
!prompts/
!prompts/*
"""


class Place(Value):
    """Where a store is, and how it may be used."""

    folder: str
    """The folder that contains the SQLite file and the spool."""
    address: str = ""
    """A PostgreSQL address; empty for SQLite."""
    project: str = ""
    """The key that marks the project's rows in PostgreSQL."""
    id: str = ""
    """The id of a project's store, which nobody else knows; empty for other stores. It marks files as ours."""
    scope: str = "project"
    """The scope of the store's learnings: project, user, or another project's name."""
    wait_ms: int = 10_000
    is_hurried: bool = False
    """Whether a client waits: a long spool and a long migration are left to a process that has more time."""
    create: bool = False
    read_only: bool = False

    @property
    def path(self) -> str:
        """The SQLite file."""
        return os.path.join(self.folder, DATABASE_FILE)

    @property
    def stamp(self) -> int:
        """The number in the header of this store's databases; 0 if the store has no id."""
        return int(digest(self.id)[:8], 16) >> 1 if self.id else 0

    @property
    def local_path(self) -> str:
        """The SQLite file, or the mirror of a server."""
        return os.path.join(self.folder, MIRROR_FILE) if self.address else self.path

    def spool(self) -> Spool:
        """Return this store's spool. Its name depends on the store's id, and on the server and the project, if any.

        So a spool that somebody else put into the folder is not replayed.
        """
        parts = [self.id, f"{without_password(self.address)} {self.project}" if self.address else ""]
        key = " ".join(filter(None, parts))
        return Spool(self.folder, f"spool.{digest(key)[:8]}" if key else "spool")

    def spool_without_id(self) -> Spool:
        """Return the spool of this store before it had an id."""
        if not self.address:
            return Spool(self.folder)
        return Spool(self.folder, f"spool.{checksum(f'{without_password(self.address)} {self.project}'.encode()):08x}")

    def exists(self) -> bool:
        """Return whether the store exists; on a server, it is assumed to exist."""
        try:
            status = None if self.address else files.check_file(self.path)
            # An empty file is an unfinished creation.
            return bool(self.address) or (status is not None and status.st_size > 0)
        except NotADirectoryError:
            return False
        except OSError:
            return True  # opening the file will raise an error with the reason


class Store:
    """An open store. It connects to its database on first use."""

    def __init__(
        self, place: Place, *, version: str, clock: Callable[[], int], appliers: Mapping[str, Applier] | None = None
    ) -> None:
        if not place.exists() and not place.create:
            raise NoStore(f"there is no store in {place.folder}", hint=_hint_without_store(place.folder))
        self.place = place
        self.spool = place.spool()
        self.version = version
        self.clock = clock
        # They apply the kinds of records that `happened` and `missteps` cannot apply.
        self._appliers = appliers or {}
        self._database: Database | None = None

    @property
    def database(self) -> Database:
        """The connection, opened and migrated on first use."""
        if self._database is None:
            self._database = self._open()
            self.replay_spool()
        return self._database

    def transaction(self) -> Transaction:
        """Return a context manager in which either all changes take effect or none does."""
        if self.place.read_only or self.database.read_only:
            raise self.database.read_only_error()
        return self.database.transaction()

    def analyze_if_many(self, added: int) -> None:
        """Update the database's statistics if many learnings have been added, so that searches stay fast."""
        if added >= _MIN_TO_ANALYZE:
            self.database.analyze()

    def record(self, happening: Happening) -> bool:
        """Apply a record. If the database is not available, spool it and return False.

        A record that no database would accept raises WrongRequest.
        """
        record = self._new_record(happening)
        try:
            self._apply(record)
        except LearntError as error:
            if isinstance(error, WrongRequest) and not isinstance(error, NewerDatabase | NoStore):
                raise
            self.make_folder()
            self.spool.append(record)
            return False
        return True

    def spool_for_later(self, happening: Happening) -> str:
        """Append a record to the spool without applying it; return the operation's id."""
        record = self._new_record(happening)
        self.make_folder()
        self.spool.append(record)
        return record.op

    def spool_and_apply(self, happening: Happening) -> tuple[str, object]:
        """Append a record to the spool, then try to apply it.

        Return the operation's id and the applier's result, which is None unless this process applied the record.
        """
        outcomes: dict[str, object] = {}
        self.make_folder()
        with self.spool.replay_lock() as acquired:  # so that no other process applies the record first
            op = self.spool_for_later(happening)
            if acquired:
                self._try_to_replay(outcomes, locked=True)
        if not acquired:
            self._try_to_replay(outcomes)
        return op, outcomes.get(op)

    def _try_to_replay(self, outcomes: dict[str, object], *, locked: bool = False) -> None:
        try:
            self.replay_spool(wait=True, locked=locked, outcomes=outcomes)
        except LearntError:
            pass  # the database is not available; the record stays in the spool

    def _new_record(self, happening: Happening) -> SpoolRecord:
        now_ms = self.clock()
        return SpoolRecord(new_id("op", now_ms), happening.kind, now_ms, happening.as_body())

    def apply_once(self, op: str, act: Callable[[Database], object]) -> None:
        """Run `act` in a transaction, unless this operation has already been applied."""
        with self.transaction():
            if self.claim_operation(op):
                act(self.database)

    def forget_operation(self, op: str) -> None:
        """Within a transaction: allow an operation that was undone to be applied again."""
        self.database.execute("delete from operation where project = :project and id = :id", id=op)

    def replay_spool(
        self, *, wait: bool = False, locked: bool = False, outcomes: dict[str, object] | None = None
    ) -> int:
        """Apply the records in the spool, if the database is available; return how many were applied.

        `locked` means that the caller holds the replay lock. `outcomes` is filled with the applier's result for each
        record, by operation.
        """
        outcomes = {} if outcomes is None else outcomes

        def apply(record: SpoolRecord) -> None:
            outcomes[record.op] = self._apply(record)

        if not self._should_replay() or self.place.read_only or self.database.read_only:
            return 0
        wait_ms = self.database.wait_at_most(_REPLAY_PATIENCE_MS if wait else PATIENCE_MS)
        try:
            return self.spool.replay(apply, wait=wait, locked=locked)
        except (LearntError, OSError):
            return 0  # the caller must not fail because of the spool; the next process tries again
        finally:
            self.database.wait_at_most(wait_ms)

    def _should_replay(self) -> bool:
        """Return whether the spool has records, but not too many for this process."""
        try:
            size = self.spool.size()
        except OSError:
            return False
        return size > 0 and not (self.place.is_hurried and size > _LONG_SPOOL_BYTES)

    def age_s(self) -> int | None:
        """Return how many seconds ago a mirror was refreshed; None for a store that is not a mirror."""
        return None

    def pending_briefs(self, task: str) -> list[BriefRecord | WarningRecord]:
        """Return a task's briefs and warnings that are still in the spool, so that they are not repeated."""
        records = [] if self.spool.is_empty() else map(_read_brief, self.spool.pending())
        return [record for record in records if record is not None and record.given.brief.task == task]

    def count_uses(self, ids: Sequence[str], *, at: int) -> str:
        """Count uses of learnings, without waiting long for the database; return why it failed, or nothing."""
        wait_ms = self.database.wait_at_most(PATIENCE_MS)
        try:
            with self.transaction():
                for id in ids:
                    happened.count_use(self.database, id, at=at)
        except LearntError as error:
            return error.message
        finally:
            self.database.wait_at_most(wait_ms)
        return ""

    def check(self) -> list[str]:
        """Return the faults that an integrity check finds in the files and in the history."""
        count = learnings.count_without_event(self.database)
        lost = [f"{count} learnings lack the event of their last change"] if count else []
        return [*self.database.check(), *lost, *self._unreadable_rows()]

    def _unreadable_rows(self) -> list[str]:
        for _ in learnings.each(self.database, Filter(status=None)):
            pass  # reading them all notes those that cannot be read
        return [f"{row} cannot be read: {reason}" for row, reason in self.database.unreadable.items()]

    def unreadable(self) -> int:
        """Return how many rows could not be read so far, and were left out."""
        return len(self._database.unreadable) if self._database else 0

    def scrubbing(self, id: str) -> Scrubbing:
        """Return a context manager for a permanent deletion. On exit, no trace is left in the database files."""
        return Scrubbing(self, id)

    def may_hold_traces(self, id: str) -> bool:
        """Return whether a permanent deletion of this id was interrupted, so that traces of it might remain."""
        return os.path.lexists(os.path.join(self.place.folder, _SCRUB_NOTE + id))

    def set_damaged_file_aside(self) -> str:
        """Rename a damaged database file, so that an empty one is created; return the damaged file's new path."""
        self.close()
        timestamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.clock() / 1000))
        aside = f"{self.place.path}.damaged-{timestamp}"
        try:
            for ending in ("", "-wal", "-shm"):
                if files.exists(self.place.path + ending):
                    files.rename(self.place.path + ending, aside + ending)
            files.remove_file(self._damage_note)
        except OSError as error:
            raise cannot_write(aside, error, hint=make_writable(os.path.dirname(aside))) from None
        self.place = self.place.replace(create=True)
        return aside

    @property
    def _damage_note(self) -> str:
        """The file that says that the database is damaged."""
        return os.path.join(self.place.folder, DAMAGE_NOTE)

    def close(self) -> None:
        """Close the connection."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _apply(self, record: SpoolRecord) -> object:
        with self.transaction():
            return self._take_effect(record)

    def _take_effect(self, record: SpoolRecord) -> object:
        """Within a transaction: apply a record unless it has already been applied; return the applier's result."""
        return self._applier(record.kind)(self.database, record.body) if self.claim_operation(record.op) else None

    def _applier(self, kind: str) -> Applier:
        apply = self._appliers.get(kind) or happened.APPLY.get(kind)
        if apply is None:
            from learnt.store import deliveries, missteps

            apply = missteps.APPLY.get(kind) or deliveries.APPLY.get(kind)
        if apply is None:
            raise WrongRequest(f"this version does not support records of the kind `{kind}`")
        return apply

    def claim_operation(self, op: str) -> bool:
        """Within a transaction: record that an operation is applied; return False if it was already applied."""
        return bool(
            self.database.execute(
                """
                insert into operation (project, id, applied_at)
                values (:project, :id, :now)
                on conflict (project, id) do nothing
                """,
                id=op,
                now=self.clock(),
            )
        )

    def _open(self) -> Database:
        is_new = self.place.create and not self.place.exists()
        if is_new:
            self.make_folder()
        database = self._connect(create=is_new)
        try:
            number = database.check_schema()
            if number == 0 and not self.place.create:
                raise NoStore(f"there is no store in {database.path}", hint="`learnt init` creates one")
            if number < newest_schema():
                self._migrate(database)
            if self.place.create and not os.path.isdir(self.place.folder):
                self.make_folder()  # a store on a server also needs a folder, for the spool
        except BaseException:
            database.close()
            raise
        return database

    def _connect(self, *, create: bool) -> Database:
        place = self.place
        if place.address:
            from learnt.store.postgres import PostgresDatabase

            return PostgresDatabase(place.address, project=place.project, wait_ms=place.wait_ms)
        return SqliteDatabase(
            place.path,
            wait_ms=place.wait_ms,
            read_only=place.read_only,
            create=create,
            damage_note=self._damage_note if not place.read_only else "",
            stamp=place.stamp,
        )

    def _migrate(self, database: Database) -> None:
        if self.place.read_only or database.read_only:
            raise LearntError(
                f"{database.path} has an older schema, and it is open for reading only",
                hint="run any learnt command in the project that the store belongs to, which updates the schema",
            )
        if self.place.is_hurried and self._has_many(database):
            raise OldSchema(
                f"{database.path} has an older schema, and bringing it up to date takes a while",
                hint="run any learnt command in the project",
            )
        self._bring_up_to_date(database)
        database.analyze()

    def _has_many(self, database: Database) -> bool:
        """Return whether there are too many learnings to index them anew while somebody waits."""
        sql = "select 1 as found from learning limit 1 offset :most"  # counting all of them takes long, too
        return database.has(sql, most=_MANY_TO_MIGRATE)

    def _bring_up_to_date(self, database: Database) -> None:
        from learnt.store import migrate  # rarely needed

        migrate.bring_up_to_date(database, version=self.version, now_ms=self.clock())

    def make_folder(self) -> None:
        """Create the store's folder if it is missing."""
        make_folder(self.place.folder)


def _read_brief(record: SpoolRecord) -> BriefRecord | WarningRecord | None:
    """Return the brief or the warning in a record; None for a record of another kind or an unusable record."""
    try:
        if record.kind == "brief":
            return BriefRecord.from_body(record.body)
        return WarningRecord.from_body(record.body) if record.kind == "warning" else None
    except UNUSABLE:
        return None


def make_folder(folder: str) -> None:
    """Create a store's folder with a .gitignore if it is missing; only its owner can read it."""
    try:
        files.make_folders(folder)
        ignore = os.path.join(folder, ".gitignore")
        if not files.exists(ignore):
            files.write_private(ignore, IGNORE)
    except OSError as error:
        raise cannot_write(folder, error, hint="choose a folder that you can write to") from None


def has_unfinished_purge(folder: str) -> bool:
    """Return whether a permanent deletion was interrupted in this folder."""
    return any(name.startswith(_SCRUB_NOTE) for name in files.list_names(folder))


def _hint_without_store(folder: str) -> str:
    backups = os.path.join(folder, BACKUPS_FOLDER)
    try:
        names = files.list_names(backups)
    except OSError:
        names = []
    if any(name.endswith(".db") for name in names):
        return f"there are backups in {backups}: `learnt init`, then `learnt backup --restore FILE`"
    return "`learnt init` creates one"


class Scrubbing:
    """Keeps a marker file during a permanent deletion, so that an interrupted deletion can be repeated."""

    def __init__(self, store: Store, id: str) -> None:
        self._store = store
        self._note = os.path.join(store.place.folder, _SCRUB_NOTE + id)

    def __enter__(self) -> None:
        self._store.make_folder()
        files.write_private(self._note, "")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._store.database.scrub()
            files.remove_file(self._note)
