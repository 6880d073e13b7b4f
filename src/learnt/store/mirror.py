"""A copy of a server's learnings in a local file, for hooks, which never wait for a server.

Records are applied to the copy and, at the same time, spooled for the server: the next hook in the conversation sees
them, and the server receives them when the spool is next replayed. The worker refreshes the copy from one snapshot of
the server, in one transaction. Everything in the copy is also stored elsewhere, so a copy that is damaged, has another
schema or contains purged data is deleted and rebuilt.
"""

from __future__ import annotations

import os

from learnt.errors import CorruptDatabase, LearntError, NoStore
from learnt.model import DELIVERED
from learnt.store import Store, index, learnings
from learnt.store.database import insert_statement, newest_schema
from learnt.store.purge import forget_missteps
from learnt.store.spool import SpoolRecord
from learnt.store.sqlite import ENDINGS, SqliteDatabase
from learnt.system import files
from learnt.system.files import Locked
from learnt.text.times import DAY_MS, MONTH_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from learnt.store import Place
    from learnt.store.database import Database, Row
    from learnt.store.happened import BriefRecord, Happening, WarningRecord

_LOCK = "mirror.lock"
_REFRESHED_AT = "mirror refreshed at"
_BATCH_ROWS = 1_000
_RECENT_MS = MONTH_MS
# The clocks of different machines disagree, so changes from shortly before the last refresh are read again.
_SKEW_MS = DAY_MS
# The rows of these tables are copied unchanged.
_LEARNING_TABLES = {"learning": "id", "learning_trigger": "learning", "learning_name": "learning"}
_VECTOR_TABLES = {"learning_vector": "number", "vector_block": "block"}
# Hooks also need recent tasks, including ended ones and later ones with the same title.
_CHANGED_TASKS = """
    select task.id
      from task
     where task.project = :project
       and (task.updated_at >= :since
            or task.id in (select task from attempt where project = :project and started_at >= :since)
            or task.id in (select task from brief where project = :project and created_at >= :since))
"""
# A task's injections are needed until the task ends; a conversation never ends.
_OPEN_TASKS = f"{_CHANGED_TASKS} and (task.type = 'session' or task.status not in ('done', 'cancelled'))"
_TASK_TABLES = {
    "task": ("id",),
    "attempt": ("id",),
    "failure": ("attempt",),
    "brief": ("id",),
    "injection": ("learning", "task"),
    "warning": ("task", "sign"),
    "notice": ("task", "what", "subject"),
}
# Other machines change these tables, too. Everything else about a conversation is most current on its own machine.
_SHARED_TABLES = ("task", "attempt", "failure")
# These columns only increase, and their local values can be ahead of the server's.
_GROWING_COLUMNS = {"task": ("fresh_since", "updated_at")}
# Older ones are not decided any more.
_UNDECIDED = f"""
    select id, task
      from brief
     where project = :project
       and created_at >= :since
       and delivery <> '{DELIVERED}'
     order by created_at desc, id
     limit {_BATCH_ROWS}
"""
_DECIDED = "project = :project and delivery <> ''"
_DECIDE = f"""
    update brief
       set delivery = :delivery
     where project = :project
       and id = :id
       and delivery <> '{DELIVERED}'
"""
_GIVEN = "project = :project and delivered_at is not null"
_GIVE = """
    update injection
       set delivered_at = :delivered_at
     where project = :project
       and learning = :learning
       and task = :task
       and delivered_at is null
"""
_MISSTEP_TIMES = ("failed_at", "worked_at", "succeeded_at")


class Mirror(Store):
    """The local copy of a server's store, as hooks use it."""

    _guard: Locked | None = None
    """A lock that is held while the file is open, so that no other process deletes the file."""

    def record(self, happening: Happening) -> bool:
        """Apply a record here and spool it for the server, or do neither; return False, because it is spooled."""
        record = self._new_record(happening)
        with self.transaction():
            self._take_effect(record)
            self.spool.append(record)
        return False

    def spool_and_apply(self, happening: Happening) -> tuple[str, object]:
        """Spool a record for the server; return the operation's id without an outcome."""
        return self.spool_for_later(happening), None

    def replay_spool(
        self, *, wait: bool = False, locked: bool = False, outcomes: dict[str, object] | None = None
    ) -> int:
        """Do nothing: processes that reach the server replay the spool."""
        return 0

    def pending_briefs(self, task: str) -> list[BriefRecord | WarningRecord]:
        """Return nothing: spooled records are already applied here."""
        return []

    def age_s(self) -> int | None:
        """Return how many seconds ago the mirror was refreshed."""
        return max(0, self.clock() - self.refreshed_at) // 1000

    @property
    def refreshed_at(self) -> int:
        """When the mirror was last refreshed, in UTC milliseconds."""
        return self.database.counter(_REFRESHED_AT)

    def close(self) -> None:
        """Close the file."""
        super().close()
        if self._guard is not None:
            self._guard.__exit__(None, None, None)
            self._guard = None

    def _open(self) -> Database:
        path = self.place.local_path
        no_mirror = NoStore(
            f"there is no mirror of the server at {path} yet", hint="the worker creates it; try again soon"
        )
        if not os.path.lexists(path):
            raise no_mirror
        self._guard = Locked(os.path.join(self.place.folder, _LOCK), wait=False, shared=True)
        database = None
        try:
            if not self._guard.__enter__():
                raise no_mirror  # it is being rebuilt
            database = SqliteDatabase(
                path, wait_ms=self.place.wait_ms, read_only=self.place.read_only, stamp=self.place.stamp
            )
            if database.schema_number() != newest_schema() or not database.counter(_REFRESHED_AT):
                raise no_mirror
            database.run("pragma synchronous = normal", {})  # after a power cut, the spool still has the records
        except BaseException:
            if database is not None:
                database.close()
            self.close()
            raise
        return database


def refresh(server: Store, *, examine: bool = True) -> None:
    """Refresh a server's mirror; rebuild it if it is missing or unusable.

    `examine` checks the whole file for damage first, which takes longer than finding that nothing has changed.
    """
    mirror = Mirror(server.place, version=server.version, clock=server.clock)
    try:
        if _is_sound(mirror, examine=examine) and _copy_changes(mirror, server):
            return
    except CorruptDatabase:
        pass  # only the mirror can raise it
    finally:
        mirror.close()
    _rebuild(server)


def discard(place: Place) -> None:
    """Delete a server's mirror, if there is one, once hooks have closed it."""
    if os.path.lexists(place.local_path):
        with Locked(os.path.join(place.folder, _LOCK)):
            _delete(place)


def forget(server: Store, signs: Sequence[str]) -> None:
    """Delete missteps from a server's mirror; an unusable mirror is deleted, and rebuilt later."""
    mirror = Mirror(server.place, version=server.version, clock=server.clock)
    try:
        with mirror.transaction():
            forget_missteps(mirror.database, signs)
    except LearntError:
        discard(server.place)
    finally:
        mirror.close()


def _is_sound(mirror: Mirror, *, examine: bool) -> bool:
    try:
        return not (mirror.database.check() if examine else mirror.refreshed_at == 0)
    except LearntError:
        return False


def _copy_changes(mirror: Mirror, server: Store) -> bool:
    """Copy the changes since the last refresh; return False if something has been deleted since."""
    now, since = server.clock(), mirror.refreshed_at - _SKEW_MS
    source, target = server.database, mirror.database
    with source.transaction():
        _use_snapshot(source)
        theirs, ours = dict(_versions(source)), dict(_versions(target))
        if ours.keys() - theirs.keys():
            return False
        if _signs(target) - _signs(source) - _pending_signs(server):
            return False
        changed = [id for id, version in theirs.items() if ours.get(id) != version]
        with target.transaction():
            for start in range(0, len(changed), _BATCH_ROWS):
                for learning in learnings.get_all(source, changed[start : start + _BATCH_ROWS]).values():
                    learnings.put_copy(target, learning)
            _put_tasks(target, source, since)
            _put_notices(target, source, since)
            _put_deliveries(target, source, now)
            _put_missteps(target, source, since)
            _finish(target, source, now)
    return True


def _rebuild(server: Store) -> None:
    place = server.place
    server.make_folder()
    # Lock before the snapshot, so that a purge after the snapshot discards this mirror.
    with Locked(os.path.join(place.folder, _LOCK)):
        _delete(place)
        pending = server.spool.pending()  # read before the snapshot, so that no record is missed
        mirror = _NewMirror(place, version=server.version, clock=server.clock)
        try:
            with server.database.transaction():
                _use_snapshot(server.database)
                _fill(mirror, server.database, pending, now=server.clock())
        finally:
            mirror.close()


class _NewMirror(Mirror):
    """A mirror that is being built."""

    def _open(self) -> Database:
        database = SqliteDatabase(
            self.place.local_path, wait_ms=self.place.wait_ms, create=True, stamp=self.place.stamp
        )
        self._bring_up_to_date(database)
        return database

    def take_effect(self, record: SpoolRecord) -> None:
        """Within a transaction: apply a spooled record, unless it is a debrief, which only the server can apply."""
        if record.kind != "debrief":
            self._take_effect(record)


def _fill(mirror: _NewMirror, source: Database, pending: list[SpoolRecord], *, now: int) -> None:
    target = mirror.database
    set_aside: set[str] = set()
    with target.transaction():
        for table, key in _LEARNING_TABLES.items():
            for rows in _pages(source, table, key):
                if table == "learning":
                    set_aside |= learnings.unreadable_ids(source, rows)
                # A row that the mirror would not accept must not keep the others out of it.
                _insert(target, table, [row for row in rows if row[key] not in set_aside])
        target.execute("update learning set batch = null where project = :project")  # the history stays on the server
        for rows in _pages(source, "learning_words", "learning"):
            index.put_cut(target, [row for row in rows if row["learning"] not in set_aside])
        for table, key in _VECTOR_TABLES.items():
            for rows in _pages(source, table, key, start=-1):
                _insert(target, table, rows)
        for table in _TASK_TABLES:
            _insert(target, table, _rows_of_tasks(source, table, now - _RECENT_MS))
        _put_missteps(target, source, 0)
        for record in pending:
            mirror.take_effect(record)
        _finish(target, source, now)
    target.run("pragma wal_checkpoint(truncate)", {})


def _use_snapshot(source: Database) -> None:
    """Within a transaction: make all reads use one snapshot."""
    source.execute("set transaction isolation level repeatable read, read only")


def _versions(database: Database) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the version and the use count of each learning, because showing a learning does not change its version."""
    for rows in _pages(database, "learning", "id", "id, version, times_injected"):
        yield from ((row["id"], (row["version"], row["times_injected"])) for row in rows)


def _pages(
    database: Database, table: str, key: str, columns: str = "*", *, start: str | int = ""
) -> Iterator[list[Row]]:
    """Yield a table's rows in batches, ordered by a key; rows with equal keys are in the same batch."""
    after = start
    while True:
        last = database.value(
            f"""
            select max({key}) as last
              from (
                  select {key}
                    from {table}
                   where project = :project
                     and {key} > :after
                   order by {key}
                   limit {_BATCH_ROWS}
              ) page
            """,
            after=after,
        )
        if last is None:
            return
        yield database.rows(
            f"select {columns} from {table} where project = :project and {key} > :after and {key} <= :last",
            after=after,
            last=last,
        )
        after = last


def _rows_of_tasks(source: Database, table: str, since: int) -> list[Row]:
    column = "id" if table == "task" else "task"
    which = _CHANGED_TASKS if table in _SHARED_TABLES else _OPEN_TASKS
    return source.rows(f"select * from {table} where project = :project and {column} in ({which})", since=since)


def _put_tasks(target: Database, source: Database, since: int) -> None:
    """Copy tasks with their attempts, and delete reports that no longer exist."""
    for table in _SHARED_TABLES:
        for row in _rows_of_tasks(source, table, since):
            _put(target, table, _TASK_TABLES[table], row)
            if table == "attempt":
                target.execute("delete from failure where project = :project and attempt = :id", id=row["id"])


def _put_notices(target: Database, source: Database, since: int) -> None:
    """Copy notices; what has been shown here or elsewhere stays shown."""
    kept = "on conflict (project, task, what, subject) do update set shown_at = coalesce(notice.shown_at, :shown_at)"
    for row in source.rows("select * from notice where project = :project and created_at >= :since", since=since):
        target.insert("notice", {**row, "project": target.project}, otherwise=kept)


def _put_deliveries(target: Database, source: Database, now: int) -> None:
    """Copy which of the mirror's latest briefs reached the agent, and when their learnings first did."""
    undecided = target.rows(_UNDECIDED, since=now - _RECENT_MS)
    if not undecided:
        return
    ids, tasks = [row["id"] for row in undecided], sorted({row["task"] for row in undecided})
    decided = f"select id, delivery from brief where {source.one_of('id', 'ids')} and {_DECIDED}"
    target.execute_many(_DECIDE, source.rows(decided, ids=source.list_value(ids)))
    given = f"select learning, task, delivered_at from injection where {source.one_of('task', 'tasks')} and {_GIVEN}"
    target.execute_many(_GIVE, source.rows(given, tasks=source.list_value(tasks)))


def _signs(database: Database) -> set[str]:
    return set(database.column("select sign from misstep where project = :project"))


def _pending_signs(server: Store) -> set[str]:
    """Return the signs of missteps that are still in the spool."""
    return {record.body["sign"] for record in server.spool.pending() if record.kind == "misstep"}


def _put_missteps(target: Database, source: Database, since: int) -> None:
    """Copy missteps, except those that are newer in the mirror."""
    changed = " or ".join(f"{time} >= :since" for time in _MISSTEP_TIMES)
    newer = " and ".join(f"coalesce(excluded.{time}, 0) >= coalesce(misstep.{time}, 0)" for time in _MISSTEP_TIMES)
    for row in source.rows(f"select * from misstep where project = :project and ({changed})", since=since):
        _put(target, "misstep", ("sign",), row, only_if=newer)


def _finish(target: Database, source: Database, now: int) -> None:
    for row in source.rows("select * from counter where project = :project"):
        _put(target, "counter", ("name",), row)
    _put(target, "counter", ("name",), {"name": _REFRESHED_AT, "value": now})


def _insert(target: Database, table: str, rows: list[Row]) -> None:
    if rows:
        sql = insert_statement(table, rows[0])
        target.execute_many(sql, [{**row, "project": target.project} for row in rows])


def _put(target: Database, table: str, keys: tuple[str, ...], row: Row, *, only_if: str = "true") -> None:
    row = {**row, "project": target.project}
    growing = _GROWING_COLUMNS.get(table, ())
    changes = ", ".join(
        f"{column} = max({table}.{column}, excluded.{column})" if column in growing else f"{column} = excluded.{column}"
        for column in row
        if column not in ("project", *keys)
    )
    conflict = f"on conflict (project, {', '.join(keys)}) do update set {changes} where {only_if}"
    target.insert(table, row, otherwise=conflict)


def _delete(place: Place) -> None:
    for ending in ENDINGS:
        files.remove_file(place.local_path + ending)
