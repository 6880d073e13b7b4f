"""SQLite through apsw, which carries its own SQLite: the standard library's may have the WAL-reset bug.

With the write-ahead log and `synchronous=full`, committed changes survive a power cut. Writers wait for each other with
a jittered retry, because with SQLite's own back-off some writers starve.
"""

from __future__ import annotations

import json
import os
import time

import apsw

from learnt.errors import CorruptDatabase, InvalidValue, LearntError, TryAgain, cannot_write
from learnt.store.database import Database
from learnt.system.files import touch_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from learnt.store.database import Condition, Row

PROJECT = "local"  # a SQLite file holds one project; a fixed key survives renaming the folder
_PAGE = 4096
_RETRY_S = (0.0005, 0.005)


class SqliteDatabase(Database):
    """A store in one file."""

    engine = "sqlite"
    begin_statement = "begin immediate"
    then_join = "cross join"

    def __init__(self, path: str, *, wait_ms: int, read_only: bool = False, create: bool = False) -> None:
        super().__init__(path, PROJECT)
        self._wait_s = wait_ms / 1000
        self._may_write = not read_only
        if create:
            _create_private(path)
        try:
            self._connection = _connect(path, wait_ms)
            self.read_only = read_only or self._connection.readonly("main")
            self._connection.set_busy_handler(self._wait)
            self._prepare()
        except apsw.Error as error:
            raise self._as_our_error(error) from None

    def _prepare(self) -> None:
        if self.read_only:
            # Opened like any other, so that the last one to close it clears the log away.
            self.run("pragma query_only = on", {})
        else:
            self._use_log()
        self.run("pragma synchronous = full", {})
        self.run("pragma foreign_keys = on", {})
        self.run("pragma secure_delete = on", {})

    def _use_log(self) -> None:
        """Switch to the write-ahead log; on a new file SQLite says `busy` here without asking our handler."""
        tried = 0
        while True:
            try:
                self._connection.execute("pragma journal_mode = wal")
            except apsw.BusyError:
                if not self._wait(tried):
                    raise
                tried += 1
            else:
                return

    def _wait(self, tried: int) -> bool:
        """Sleep a random moment, until this statement's time is up."""
        now = time.monotonic()
        if tried == 0:
            self._give_up_at = now + self._wait_s
        if now >= self._give_up_at:
            return False
        shortest, longest = _RETRY_S
        time.sleep(shortest + (longest - shortest) * os.urandom(1)[0] / 255)
        return True

    def refuse_writing(self) -> LearntError:
        # SQLite also opens a file read-only if the disk is full.
        return _no_room(self.path) if self._may_write and _is_full(self.path) else super().refuse_writing()

    def wait_at_most(self, wait_ms: int) -> int:
        before, self._wait_s = round(self._wait_s * 1000), wait_ms / 1000
        return before

    def run(self, sql: str, parameters: dict[str, Any]) -> tuple[list[Row], int]:
        try:
            cursor = self._connection.execute(sql, parameters)
            found: list[Row] = []
            names: list[str] = []
            for values in cursor:
                names = names or [column[0] for column in cursor.description]
                found.append(dict(zip(names, values, strict=True)))
            return found, self._connection.changes()
        except apsw.Error as error:
            raise self._as_our_error(error) from None

    def execute_many(self, sql: str, parameters: Sequence[dict[str, Any]]) -> None:
        try:
            self._connection.executemany(sql, ({"project": self.project, **row} for row in parameters))
        except apsw.Error as error:
            raise self._as_our_error(error) from None

    def one_of(self, column: str, name: str) -> str:
        return f"{column} in (select value from json_each(:{name}))"

    def list_value(self, values: Sequence[str]) -> object:
        return json.dumps(values, ensure_ascii=False)

    def match_words(
        self, weights: Mapping[str, float], columns: tuple[str, str], which: Condition, newest: int | None
    ) -> list[Row]:
        conditions, parameters = which
        last = self.value("select max(number) as last from learning_words") or 0
        return self.rows(
            f"""
            select {", ".join(columns)}
              from learning_index
             cross join learning_words on learning_words.number = learning_index.rowid -- cross: in this order
             cross join learning on learning.project = learning_words.project and learning.id = learning_words.learning
             where learning_index match :match
               and learning_index.rowid > :floor
               and {conditions}
             order by learning_index.rank
             limit :limit
            """,
            match=" OR ".join(f'"{word}"' for word in weights),
            floor=0 if newest is None else last - newest,
            **parameters,
        )

    def script(self, sql: str) -> None:
        self.run(sql, {})

    def has_table(self, name: str) -> bool:
        return self.has("select name from sqlite_master where type = 'table' and name = :name", name=name)

    def check(self) -> list[str]:
        found = [str(row["integrity_check"]) for row in self.rows("pragma integrity_check")]
        return [line for line in found if line != "ok"] + self.broken_references()

    def enforce_foreign_keys(self, enforced: bool) -> None:
        self.run(f"pragma foreign_keys = {'on' if enforced else 'off'}", {})

    def broken_references(self) -> list[str]:
        rows = self.rows("pragma foreign_key_check")
        return [f"a row of {row['table']} points to a missing {row['parent']}" for row in rows]

    def scrub(self) -> None:
        # VACUUM rewrites every page, so that no free page keeps old text; then the log is truncated.
        self.run("vacuum", {})
        busy = self.rows("pragma wal_checkpoint(truncate)")[0]["busy"]
        if busy:
            raise TryAgain(
                "the rows are deleted, but another process still reads the log that holds their old text",
                hint="end other learnt processes and run the same command again",
            )

    def copy_to(self, path: str) -> bool:
        _create_private(path)
        try:
            target = apsw.Connection(path)
            with target.backup("main", self._connection, "main") as backup:
                backup.step(-1)  # all at once: in steps, each change by another process would restart it
            target.close()
        except apsw.Error as error:
            raise self._as_our_error(error, path) from None
        return True

    def versions(self) -> dict[str, str]:
        return {"SQLite": apsw.sqlite_lib_version(), "apsw": apsw.apsw_version()}

    def close(self) -> None:
        self._connection.close()

    def _as_our_error(self, error: apsw.Error, path: str = "") -> LearntError:
        """Translate an error of SQLite."""
        path = path or self.path
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            return TryAgain(
                f"{self.path} is busy: others kept writing for {self._wait_s:g} s",
                hint="try again; `wait_ms` sets how long to wait",
            )
        no_place = apsw.IOError | apsw.CantOpenError | apsw.ReadOnlyError | apsw.SQLError
        if isinstance(error, apsw.FullError) or (isinstance(error, no_place) and _is_full(path)):
            return _no_room(path)
        if isinstance(error, apsw.IOError):
            return TryAgain(f"cannot write {path}: {error}", hint="free some disk space and try again")
        if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError | apsw.PermissionsError):
            return LearntError(
                f"cannot write {self.path}: the file or its folder is read-only, or not yours",
                hint=f"check the permissions: `ls -la {os.path.dirname(self.path)}`",
            )
        if isinstance(error, apsw.NotADBError | apsw.CorruptError):
            return CorruptDatabase(
                f"{self.path} is damaged: {error}",
                hint="`learnt backup --restore FILE` keeps it aside and puts a backup in its place (.learnt/backups/)",
            )
        if isinstance(error, apsw.ConstraintError):
            return InvalidValue(f"the database refuses it: {error}")
        return LearntError(f"{self.path}: {error}", hint="`learnt doctor` checks the store")


def _connect(path: str, wait_ms: int) -> apsw.Connection:
    """Open for writing if permissions allow it, else for reading."""
    for flags in (apsw.SQLITE_OPEN_READWRITE, apsw.SQLITE_OPEN_READONLY):
        connection = _try_connect(path, flags, wait_ms)
        if connection is not None:
            return connection
    if _size(path + "-wal") == 0:
        # In a read-only folder, SQLite cannot create the index of the log; without a log, it needs none.
        address = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23") + "?immutable=1"
        return apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    raise apsw.CantOpenError("the folder is read-only, and the log holds changes that are not in the file yet")


def _try_connect(path: str, flags: int, wait_ms: int) -> apsw.Connection | None:
    connection = None
    try:
        connection = apsw.Connection(path, flags=flags)
        connection.set_busy_timeout(wait_ms)
        connection.execute("select count(*) from sqlite_master").fetchall()
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.IOError, apsw.FullError):
        if connection is not None:
            connection.close()
        return None
    return connection


def _create_private(path: str) -> None:
    """Create an empty file that only its owner can read; SQLite gives its log the same mode."""
    try:
        touch_private(path)
    except OSError as error:
        raise cannot_write(path, error, hint="choose a folder that you can write to") from None


def _is_full(path: str) -> bool:
    """Say whether the disk of a file has no room for another page."""
    import shutil

    try:
        return shutil.disk_usage(os.path.dirname(path)).free < _PAGE
    except OSError:
        return False


def _no_room(path: str) -> TryAgain:
    """Return the error for a full disk."""
    return TryAgain(f"cannot write {path}: no space is left on the disk", hint="free some disk space and try again")


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
