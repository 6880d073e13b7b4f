"""The store of one project: its database, its spool, and the promise that an acknowledged write is never lost.

A change by hand is committed or fails with TryAgain. What happened to agents goes into the database or, when that
cannot take it, into the spool, which the next opening takes up. Opening never creates a store unless asked to.
"""

from __future__ import annotations

import os
import time
from zlib import crc32

from learnt.errors import LearntError, NewerDatabase, NoStore, WrongRequest, cannot_write
from learnt.model import Value, new_id
from learnt.store import happened, learnings
from learnt.store.database import newest_schema
from learnt.store.happened import BriefRecord, WarningRecord
from learnt.store.spool import UNUSABLE, Spool, SpoolRecord
from learnt.store.sqlite import SqliteDatabase
from learnt.system.files import write_private
from learnt.text.redact import without_password

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Any

    from learnt.store.database import Database, Transaction
    from learnt.store.happened import Happening

    Applier = Callable[[Database, dict[str, Any]], object]

DATABASE_FILE = "learnt.db"
BACKUPS_FOLDER = "backups"
PATIENCE_MS = 100  # for a process that came for something else
_PATIENCE_OF_OWNER_MS = 1_000  # for the process that has just brought a record
_MANY = 300
_LONG_SPOOL = 50_000  # bytes: a dozen records or two
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
    """Holds the SQLite file and the spool."""
    address: str = ""
    """A PostgreSQL address; empty for SQLite."""
    project: str = ""
    """The key of the project's rows in PostgreSQL."""
    scope: str = "project"
    """What its learnings are shown as: project, user, or the name of another project."""
    wait_ms: int = 10_000
    skip_long_spool: bool = False
    """Whether a long spool is left to those who have time for it."""
    create: bool = False
    read_only: bool = False

    @property
    def path(self) -> str:
        """The SQLite file."""
        return os.path.join(self.folder, DATABASE_FILE)

    def spool(self) -> Spool:
        """Return what waits for this place; that of a server is named after it, so that no other database takes it."""
        if not self.address:
            return Spool(self.folder)
        return Spool(self.folder, f"spool.{crc32(f'{without_password(self.address)} {self.project}'.encode()):08x}")

    def exists(self) -> bool:
        """Say whether there is something to open; of a server only its address is known."""
        try:
            return bool(self.address) or os.stat(self.path).st_size > 0  # an empty one was never finished
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True  # opening it says why


class Store:
    """One opened store; it connects when it is first used."""

    def __init__(
        self, place: Place, *, version: str, clock: Callable[[], int], appliers: Mapping[str, Applier] | None = None
    ) -> None:
        if not place.exists() and not place.create:
            raise NoStore(f"there is no store in {place.folder}", hint=_way_to_a_store(place.folder))
        self.place = place
        self.spool = place.spool()
        self.version = version
        self.clock = clock
        # For kinds of records that need rules beyond the store.
        self._appliers = appliers or {}
        self._database: Database | None = None

    @property
    def database(self) -> Database:
        """The connection, opened on first use; the schema is then up to date."""
        if self._database is None:
            self._database = self._open()
            self.replay_spool()
        return self._database

    def transaction(self) -> Transaction:
        """Return a context in which all changes take effect, or none."""
        if self.place.read_only or self.database.read_only:
            raise self.database.refuse_writing()
        return self.database.transaction()

    def analyze_if_many(self, learnings: int) -> None:
        """After a change that added many learnings: update the database's statistics, so that searches stay fast."""
        if learnings >= _MANY:
            self.database.analyze()

    def record(self, happening: Happening) -> bool:
        """Keep what happened; return False when it had to go to the spool.

        Only what no database could ever take is refused at once.
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
        """Write what happened to the disk without applying it yet; return the operation's id."""
        record = self._new_record(happening)
        self.make_folder()
        self.spool.append(record)
        return record.op

    def spool_and_apply(self, happening: Happening) -> tuple[str, object]:
        """Write what happened to the disk first, then apply it if possible.

        Return the operation's id and what its applier returned; None unless this process applied it.
        """
        outcomes: dict[str, object] = {}
        self.make_folder()
        with self.spool.replay_lock() as alone:  # so that no other process applies it before us
            op = self.spool_for_later(happening)
            if alone:
                self._try_to_replay(outcomes, locked=True)
        if not alone:
            self._try_to_replay(outcomes)
        return op, outcomes.get(op)

    def _try_to_replay(self, outcomes: dict[str, object], *, locked: bool = False) -> None:
        try:
            self.replay_spool(wait=True, locked=locked, outcomes=outcomes)
        except LearntError:
            pass  # the database cannot be opened now; the record waits

    def _new_record(self, happening: Happening) -> SpoolRecord:
        now_ms = self.clock()
        return SpoolRecord(new_id("op", now_ms), happening.kind, now_ms, happening.as_body())

    def apply_once(self, op: str, act: Callable[[Database], object]) -> None:
        """Do something in this store exactly once, however often the operation is repeated."""
        with self.transaction():
            if self.claim_operation(op):
                act(self.database)

    def forget_operation(self, op: str) -> None:
        """Within a transaction: let an operation that was taken back be done once more."""
        self.database.execute("delete from operation where project = :project and id = :id", id=op)

    def replay_spool(
        self, *, wait: bool = False, locked: bool = False, outcomes: dict[str, object] | None = None
    ) -> int:
        """Bring what waits in the spool into the database, if it has time for it now; return how many records.

        `locked`: the caller holds the replay lock. `outcomes`: takes what the applier of each record returns.
        """
        outcomes = {} if outcomes is None else outcomes

        def apply(record: SpoolRecord) -> None:
            outcomes[record.op] = self._apply(record)

        if not self._is_time_for_spool() or self.place.read_only or self.database.read_only:
            return 0
        wait_ms = self.database.wait_at_most(_PATIENCE_OF_OWNER_MS if wait else PATIENCE_MS)
        try:
            return self.spool.replay(apply, wait=wait, locked=locked)
        except (LearntError, OSError):
            return 0  # what waits must not stop the caller; the next process tries again
        finally:
            self.database.wait_at_most(wait_ms)

    def _is_time_for_spool(self) -> bool:
        """Say whether something waits, and not too much of it; what cannot be looked at waits on."""
        try:
            waiting = self.spool.size()
        except OSError:
            return False
        return waiting > 0 and not (self.place.skip_long_spool and waiting > _LONG_SPOOL)

    def age_s(self) -> int | None:
        """Return how many seconds ago a copy was last in step with its original; None for an original."""
        return None

    def pending_briefs(self, task: str) -> list[BriefRecord | WarningRecord]:
        """Return the briefs and warnings of a task that wait in the spool, so that nothing is said twice meanwhile."""
        records = [] if self.spool.is_empty() else map(_read_given, self.spool.pending())
        return [record for record in records if record is not None and record.given.brief.task == task]

    def check(self) -> list[str]:
        """Return what an integrity check finds wrong, in the files and in the history."""
        lost = learnings.without_event(self.database)
        return self.database.check() + ([f"{lost} learnings lack the event of their last change"] if lost else [])

    def scrubbing(self, id: str) -> Scrubbing:
        """Return a context in which a thing is deleted for good: at its end no trace of it is left in the files."""
        return Scrubbing(self, id)

    def may_hold_traces(self, id: str) -> bool:
        """Say whether the deletion of a thing for good was interrupted before its traces were gone."""
        return os.path.exists(os.path.join(self.place.folder, _SCRUB_NOTE + id))

    def set_damaged_file_aside(self) -> str:
        """Set a damaged file aside under a dated name and go on with an empty one; return where the old one is."""
        self.close()
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.clock() / 1000))
        aside = f"{self.place.path}.damaged-{moment}"
        try:
            for ending in ("", "-wal", "-shm"):
                if os.path.exists(self.place.path + ending):
                    os.rename(self.place.path + ending, aside + ending)
        except OSError as error:
            raise cannot_write(aside, error, hint="check who owns the folder and its files") from None
        self.place = self.place.replace(create=True)
        return aside

    def close(self) -> None:
        """Close the connection."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _apply(self, record: SpoolRecord) -> object:
        with self.transaction():
            return self._take_effect(record)

    def _take_effect(self, record: SpoolRecord) -> object:
        """Within a transaction: apply a record, unless that was done before; return what its applier returns."""
        return self._applier(record.kind)(self.database, record.body) if self.claim_operation(record.op) else None

    def _applier(self, kind: str) -> Applier:
        apply = self._appliers.get(kind) or happened.APPLY.get(kind)
        if apply is None:
            from learnt.store import missteps

            apply = missteps.APPLY.get(kind)
        if apply is None:
            raise WrongRequest(f"this version does not know the kind `{kind}`")
        return apply

    def claim_operation(self, op: str) -> bool:
        """Within a transaction: say whether an operation has not taken effect yet, and note that it now does."""
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
        new = self.place.create and not self.place.exists()
        if new:
            self.make_folder()
        database = self._connect(new=new)
        try:
            number = database.check_schema()
            if number == 0 and not self.place.create:
                raise NoStore(f"there is no store in {database.path}", hint="`learnt init` creates one")
            if number < newest_schema():
                self._migrate(database)
            if self.place.create and not os.path.isdir(self.place.folder):
                self.make_folder()  # beside a server, for the spool
        except BaseException:
            database.close()
            raise
        return database

    def _connect(self, *, new: bool) -> Database:
        place = self.place
        if place.address:
            from learnt.store.postgres import PostgresDatabase

            return PostgresDatabase(place.address, project=place.project, wait_ms=place.wait_ms)
        return SqliteDatabase(place.path, wait_ms=place.wait_ms, read_only=place.read_only, create=new)

    def _migrate(self, database: Database) -> None:
        if self.place.read_only or database.read_only:
            raise LearntError(
                f"{database.path} has an older schema and cannot be brought up to date from here",
                hint="run any learnt command in its own project first",
            )
        from learnt.store import migrate  # few processes have anything to migrate

        migrate.bring_up_to_date(database, version=self.version, now_ms=self.clock())
        database.analyze()

    def make_folder(self) -> None:
        """Make the folder if it is missing, for its owner only, with a note to git that it is not to be committed."""
        make_folder(self.place.folder)


def _read_given(record: SpoolRecord) -> BriefRecord | WarningRecord | None:
    """Return a brief or a warning; None for other records, and for one that a replay will set aside."""
    try:
        if record.kind == "brief":
            return BriefRecord.from_body(record.body)
        return WarningRecord.from_body(record.body) if record.kind == "warning" else None
    except UNUSABLE:
        return None


def make_folder(folder: str) -> None:
    """Make a store's folder if it is missing, for its owner only, with a note to git that it is not to be committed."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        ignore = os.path.join(folder, ".gitignore")
        if not os.path.exists(ignore):
            write_private(ignore, IGNORE)
    except OSError as error:
        raise cannot_write(folder, error, hint="choose a folder that you can write to") from None


def unfinished_purge(folder: str) -> bool:
    """Say whether a deletion for good was interrupted in this folder."""
    return any(name.startswith(_SCRUB_NOTE) for name in os.listdir(folder))


def _way_to_a_store(folder: str) -> str:
    backups = os.path.join(folder, BACKUPS_FOLDER)
    if os.path.isdir(backups) and any(name.endswith(".db") for name in os.listdir(backups)):
        return f"there are backups in {backups}: `learnt init`, then `learnt backup --restore FILE`"
    return "`learnt init` creates one"


class Scrubbing:
    """Leaves a note while it lasts, so that an interrupted deletion can be finished by repeating it."""

    def __init__(self, store: Store, id: str) -> None:
        self._store = store
        self._note = os.path.join(store.place.folder, _SCRUB_NOTE + id)

    def __enter__(self) -> None:
        self._store.make_folder()
        write_private(self._note, "")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._store.database.scrub()
            if os.path.exists(self._note):
                os.unlink(self._note)
