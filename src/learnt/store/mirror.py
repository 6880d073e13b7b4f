"""A copy of a server's learnings in a local file, for hooks, which never wait for a server.

What happens to agents is applied to the copy and, in the same moment, kept in the spool for the server: the next hook
of a conversation knows it, and the server gets it with the next replay of the spool. The copy is refreshed by
the worker, from one snapshot of the server and in one transaction. It holds nothing that is not elsewhere: a copy that
is damaged, of another schema, or holds what was purged is thrown away and rebuilt.
"""

from __future__ import annotations

import os

from learnt.errors import CorruptDatabase, LearntError, NoStore
from learnt.store import Store, learnings
from learnt.store.database import insert_statement, newest_schema
from learnt.store.purge import forget_missteps
from learnt.store.spool import SpoolRecord
from learnt.store.sqlite import SqliteDatabase
from learnt.system.files import Locked
from learnt.text.times import DAY_MS, MONTH_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from learnt.store import Place
    from learnt.store.database import Database, Row
    from learnt.store.happened import BriefRecord, Happening, WarningRecord

FILE = "mirror.db"
_LOCK = "mirror.lock"
_REFRESHED_AT = "mirror refreshed at"
_AT_ONCE = 1_000
_RECENT_MS = MONTH_MS
# Machines disagree about the time: what changed shortly before the last refresh is read once more.
_SKEW_MS = DAY_MS
_ENDINGS = ("", "-wal", "-shm", "-journal")
# Copied as they are: words were cut by the same code.
_OF_LEARNINGS = {"learning": "id", "learning_words": "learning", "learning_trigger": "learning", "word": "word"}
# Beside learnings, a hook asks for what happened lately: also that a task is over, and a later one of the same title.
_CHANGED_TASKS = """
    select task.id
      from task
     where task.project = :project
       and (task.updated_at >= :since
            or task.id in (select task from attempt where project = :project and started_at >= :since)
            or task.id in (select task from brief where project = :project and created_at >= :since))
"""
# What a task was given is asked for as long as it is not over, and a conversation never is.
_OPEN_TASKS = f"{_CHANGED_TASKS} and (task.type = 'session' or task.status not in ('done', 'cancelled'))"
_OF_TASKS = {
    "task": ("id",),
    "attempt": ("id",),
    "failure": ("attempt",),
    "brief": ("id",),
    "injection": ("learning", "task"),
    "warning": ("task", "sign"),
}
# What other machines change as well: the rest of a conversation is known best where it is held.
_OF_OTHERS = ("task", "attempt", "failure")
# What only grows: it may have grown here, and the server not know it yet.
_GROWING = {"task": ("fresh_since", "updated_at")}
_TIMES = ("failed_at", "worked_at", "succeeded_at")


class Mirror(Store):
    """The local copy of a server's store, as hooks use it."""

    _guard: Locked | None = None
    """Held while the file is open: deleting the file waits for it."""

    def record(self, happening: Happening) -> bool:
        """Keep what happened for the server and apply it here, or neither; False, because it waits in the spool."""
        record = self._new_record(happening)
        with self.transaction():
            self._take_effect(record)
            self.spool.append(record)
        return False

    def spool_and_apply(self, happening: Happening) -> tuple[str, object]:
        """Keep what happened for the server; return the operation's id, and no outcome yet."""
        return self.spool_for_later(happening), None

    def replay_spool(
        self, *, wait: bool = False, locked: bool = False, outcomes: dict[str, object] | None = None
    ) -> int:
        """Leave the spool to those who reach the server."""
        return 0

    def pending_briefs(self, task: str) -> list[BriefRecord | WarningRecord]:
        """Return nothing: what waits for the server has taken effect here."""
        return []

    def age_s(self) -> int | None:
        """Return how many seconds ago it was refreshed."""
        return max(0, self.clock() - self.refreshed_at) // 1000

    @property
    def refreshed_at(self) -> int:
        """When it was like the server, in UTC milliseconds."""
        return self.database.counter(_REFRESHED_AT)

    def close(self) -> None:
        """Close the file."""
        super().close()
        if self._guard is not None:
            self._guard.__exit__(None, None, None)
            self._guard = None

    def _open(self) -> Database:
        path = _path(self.place)
        missing = NoStore(f"there is no mirror of the server at {path} yet", hint="the worker makes it; try again soon")
        if not os.path.exists(path):
            raise missing
        self._guard = Locked(os.path.join(self.place.folder, _LOCK), wait=False, shared=True)
        database = None
        try:
            if not self._guard.__enter__():
                raise missing  # it is being rebuilt
            database = SqliteDatabase(path, wait_ms=self.place.wait_ms, read_only=self.place.read_only)
            if database.schema_number() != newest_schema() or not database.counter(_REFRESHED_AT):
                raise missing
            database.run("pragma synchronous = normal", {})  # what a power cut takes away is in the spool
        except BaseException:
            if database is not None:
                database.close()
            self.close()
            raise
        return database


def refresh(server: Store, *, examine: bool = True) -> None:
    """Bring the mirror of a server up to date, as far as hooks read it; rebuild one that is missing or unusable.

    `examine`: look for damage in all of it first, which takes longer than to find that nothing changed.
    """
    mirror = Mirror(server.place, version=server.version, clock=server.clock)
    try:
        if _is_sound(mirror, examine=examine) and _take_over_changes(mirror, server):
            return
    except CorruptDatabase:
        pass  # no server says so
    finally:
        mirror.close()
    _rebuild(server)


def discard(place: Place) -> None:
    """Delete the mirror of a server, if there is one, with all that it holds; hooks that use it are waited for."""
    if os.path.exists(_path(place)):
        with Locked(os.path.join(place.folder, _LOCK)):
            _delete(place)


def forget(server: Store, signs: Sequence[str]) -> None:
    """Let the mirror of a server forget missteps, too; one that cannot be used is rebuilt later."""
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


def _take_over_changes(mirror: Mirror, server: Store) -> bool:
    """Take over what changed since the last refresh; False when something was purged or forgotten since."""
    now, since = server.clock(), mirror.refreshed_at - _SKEW_MS
    source, target = server.database, mirror.database
    with source.transaction():
        _as_of_now(source)
        theirs, ours = dict(_versions(source)), dict(_versions(target))
        if ours.keys() - theirs.keys():
            return False
        if _signs(target) - _signs(source) - _signs_waiting(server):
            return False
        changed = [id for id, version in theirs.items() if ours.get(id) != version]
        with target.transaction():
            for start in range(0, len(changed), _AT_ONCE):
                for learning in learnings.get_all(source, changed[start : start + _AT_ONCE]).values():
                    learnings.put_copy(target, learning)
            _put_tasks(target, source, since)
            _put_missteps(target, source, since)
            _finish(target, source, now)
    return True


def _rebuild(server: Store) -> None:
    place = server.place
    server.make_folder()
    # First alone, then the snapshot: what is purged after the snapshot is thrown away after us.
    with Locked(os.path.join(place.folder, _LOCK)):
        _delete(place)
        waiting = server.spool.pending()  # before the snapshot: what is not in it by then is among these
        mirror = _Filling(place, version=server.version, clock=server.clock)
        try:
            with server.database.transaction():
                _as_of_now(server.database)
                _fill(mirror, server.database, waiting, now=server.clock())
        finally:
            mirror.close()


class _Filling(Mirror):
    """A mirror while it is built."""

    def _open(self) -> Database:
        database = SqliteDatabase(_path(self.place), wait_ms=self.place.wait_ms, create=True)
        from learnt.store import migrate  # a hook need not load it

        migrate.bring_up_to_date(database, version=self.version, now_ms=self.clock())
        return database

    def take_effect(self, record: SpoolRecord) -> None:
        """Within a transaction: apply what waits for the server; a debrief takes rules, and waits for it alone."""
        if record.kind != "debrief":
            self._take_effect(record)


def _fill(mirror: _Filling, source: Database, waiting: list[SpoolRecord], *, now: int) -> None:
    target = mirror.database
    with target.transaction():
        for table, key in _OF_LEARNINGS.items():
            for rows in _pages(source, table, key):
                _insert(target, table, rows)
        _insert(target, "corpus", source.rows("select * from corpus where project = :project"))
        for table in _OF_TASKS:
            _insert(target, table, _rows_of_tasks(source, table, now - _RECENT_MS))
        _put_missteps(target, source, 0)
        for record in waiting:
            mirror.take_effect(record)
        _finish(target, source, now)
    target.run("pragma wal_checkpoint(truncate)", {})


def _as_of_now(source: Database) -> None:
    """Within a transaction: read everything as of one moment."""
    source.execute("set transaction isolation level repeatable read, read only")


def _versions(database: Database) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield of each learning what tells whether it changed: being shown makes no new version."""
    for rows in _pages(database, "learning", "id", "id, version, times_injected"):
        yield from ((row["id"], (row["version"], row["times_injected"])) for row in rows)


def _pages(database: Database, table: str, key: str, columns: str = "*") -> Iterator[list[Row]]:
    """Yield the rows of a table, some at once, by a key of text; rows with the same key come together."""
    after = ""
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
                   limit {_AT_ONCE}
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
    which = _CHANGED_TASKS if table in _OF_OTHERS else _OPEN_TASKS
    return source.rows(f"select * from {table} where project = :project and {column} in ({which})", since=since)


def _put_tasks(target: Database, source: Database, since: int) -> None:
    """Take over tasks with their attempts; a report that its attempt has no longer goes."""
    for table in _OF_OTHERS:
        for row in _rows_of_tasks(source, table, since):
            _put(target, table, _OF_TASKS[table], row)
            if table == "attempt":
                target.execute("delete from failure where project = :project and attempt = :id", id=row["id"])


def _signs(database: Database) -> set[str]:
    return set(database.column("select sign from misstep where project = :project"))


def _signs_waiting(server: Store) -> set[str]:
    """Return the signs of what failed here, and the server does not know yet."""
    return {record.body["sign"] for record in server.spool.pending() if record.kind == "misstep"}


def _put_missteps(target: Database, source: Database, since: int) -> None:
    """Take over missteps, unless more has happened here since."""
    changed = " or ".join(f"{time} >= :since" for time in _TIMES)
    newer = " and ".join(f"coalesce(excluded.{time}, 0) >= coalesce(misstep.{time}, 0)" for time in _TIMES)
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
    growing = _GROWING.get(table, ())
    changes = ", ".join(
        f"{column} = max({table}.{column}, excluded.{column})" if column in growing else f"{column} = excluded.{column}"
        for column in row
        if column not in ("project", *keys)
    )
    conflict = f"on conflict (project, {', '.join(keys)}) do update set {changes} where {only_if}"
    target.insert(table, row, otherwise=conflict)


def _path(place: Place) -> str:
    return os.path.join(place.folder, FILE)


def _delete(place: Place) -> None:
    for ending in _ENDINGS:
        if os.path.exists(_path(place) + ending):
            os.unlink(_path(place) + ending)
