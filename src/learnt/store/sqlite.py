"""SQLite through apsw, which has its own SQLite, because the standard library's SQLite might have the WAL-reset bug.

With the write-ahead log and `synchronous=full`, committed changes survive a power failure. Writers wait for each other
with a jittered retry, because with SQLite's own back-off some writers starve.

A damaged file is not written to: whoever finds the damage leaves a note beside the file, which keeps every later
process from opening it, until the file is replaced or a backup is restored.

A file may come from elsewhere. So its schema is not trusted, and a deadline (an alarm of the process) also interrupts a
statement that never ends.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from itertools import chain

import apsw

from learnt.errors import CorruptDatabase, InvalidValue, LearntError, NotTrusted, TryAgain, cannot_write
from learnt.store.database import SEARCHED_FIELDS, Database
from learnt.store.word_index import WordIndex
from learnt.system import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from learnt.store.database import CutWords, Row

PROJECT = "local"  # an SQLite file contains one project, and a fixed key survives renaming the folder
_PAGE = 4096
_RESTORE = "`learnt backup --restore FILE` renames it and restores a backup (see .learnt/backups/)"
_RETRY_S = (0.0005, 0.005)
# After so many steps of a statement, a few milliseconds, Python gets to run.
_STEPS_BETWEEN_ALARMS = 100_000
# Checking the size of cells finds more damage before anything is written. The cache grows to 16 MB as pages are read,
# so that a process that searches again does not read them again.
_PRAGMAS = (
    "pragma synchronous = full; pragma cell_size_check = on; pragma foreign_keys = on; pragma secure_delete = on; "
    "pragma cache_size = -16000"
)
ENDINGS = ("", "-wal", "-shm", "-journal")
"""The endings of the files that make up a database."""
LOGGED = ("", "-wal", "-journal")
"""The endings of those that contain what was written."""
_PLANTED = "learnt did not make it: look at it, then remove it or put a file of your own in its place"


class SqliteDatabase(Database):
    """A store in one file."""

    engine = "sqlite"
    begin_statement = "begin immediate"
    then_join = "cross join"
    word_columns = "learning_words.words, learning_words.length"
    is_words_of_learning = "learning_words.number = learning.number"

    def __init__(
        self,
        path: str,
        *,
        wait_ms: int,
        read_only: bool = False,
        create: bool = False,
        own: bool = True,
        stamp: int = 0,
        damage_note: str = "",
    ) -> None:
        """Open a file. `own=False` is for a file that the user chose, which may belong to anybody.

        If there is a `stamp`, the file must have it in its header, unless the file is empty.
        `damage_note` is the path of the file that says that the database is damaged; empty if there is none.
        """
        super().__init__(path, PROJECT)
        self._damage_note = ""
        self._word_index: WordIndex | None = None
        if damage_note and _is_unchanged_since(damage_note, path):
            raise CorruptDatabase(f"{path} is damaged, as {os.path.basename(damage_note)} says", hint=_RESTORE)
        self._wait_s = wait_ms / 1000
        self._may_write = not read_only
        if create:
            _create_private(path)
        if own:
            _refuse_planted(path)
        _refuse_journal(path)
        try:
            self._connection = _connect(path, wait_ms)
            self.read_only = read_only or self._connection.readonly("main")
            self._connection.set_busy_handler(self._wait)
            self._prepare()
            if stamp:
                self._check_stamp(stamp)
        except apsw.Error as error:
            raise self._as_our_error(error) from None
        self._damage_note = damage_note  # damage that keeps the file from being opened needs no note

    def stamp(self, number: int) -> None:
        """Write a stamp into the file's header."""
        self.run(f"pragma application_id = {number}", {})

    def _check_stamp(self, number: int) -> None:
        if self.value("pragma application_id") == number:
            return
        if not self.read_only and not self.value("select count(*) from sqlite_master"):
            self.stamp(number)
            return
        self.close()
        raise NotTrusted(
            f"{self.path} is not the file that learnt wrote: somebody replaced it",
            hint="`learnt trust` shows what it contains and asks",
        )

    def _prepare(self) -> None:
        if self.read_only:
            # The file itself is not opened read-only, so that the last process to close it can remove the log.
            self.run("pragma query_only = on", {})
        else:
            self._enable_log()
        self.script(_PRAGMAS)

    def _enable_log(self) -> None:
        """Switch to the write-ahead log, with our own retry: for a new file, SQLite does not call our busy handler."""
        retries = 0
        while True:
            try:
                self._connection.execute("pragma journal_mode = wal")
            except apsw.BusyError:
                if not self._wait(retries):
                    raise
                retries += 1
            else:
                return

    def _wait(self, retries: int) -> bool:
        """Sleep for a short random time and return True; return False if this statement has waited long enough."""
        now = time.monotonic()
        if retries == 0:
            self._give_up_at = now + self._wait_s
        if now >= self._give_up_at:
            return False
        shortest, longest = _RETRY_S
        time.sleep(shortest + (longest - shortest) * os.urandom(1)[0] / 255)
        return True

    def read_only_error(self) -> LearntError:
        # SQLite also opens a file read-only if the disk is full.
        return _disk_full_error(self.path) if self._may_write and _is_full(self.path) else super().read_only_error()

    def wait_at_most(self, wait_ms: int) -> int:
        previous_ms, self._wait_s = round(self._wait_s * 1000), wait_ms / 1000
        return previous_ms

    def run(self, sql: str, parameters: dict[str, Any]) -> tuple[list[Row], int]:
        try:
            cursor = self._connection.execute(sql, parameters)
            first = next(cursor, None)
            if first is None:  # then the cursor does not know its columns any more
                return [], self._connection.changes()
            names = [column[0] for column in cursor.get_description()]
            return [dict(zip(names, values, strict=True)) for values in (first, *cursor)], self._connection.changes()
        except apsw.Error as error:
            raise self._as_our_error(error) from None

    def tuples(self, sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
        try:
            return list(self._connection.execute(sql, {"project": self.project, **parameters}))
        except apsw.Error as error:
            raise self._as_our_error(error) from None

    def execute_many(self, sql: str, parameters: Sequence[dict[str, Any]]) -> None:
        try:
            self._connection.executemany(sql, ({"project": self.project, **row} for row in parameters))
        except apsw.Error as error:
            raise self._as_our_error(error) from None

    def one_of(self, column: str, name: str) -> str:
        return f"{column} in (select value from json_each(:{name}))"

    def list_value(self, values: Sequence[str] | Sequence[int]) -> object:
        return json.dumps(values, ensure_ascii=False)

    def each_number(self, name: str, alias: str) -> str:
        return f"json_each(:{name}) as {alias}"

    each_text = each_number

    @property
    def _words(self) -> WordIndex:
        if self._word_index is None:
            self._word_index = WordIndex(self._connection, self.project, SEARCHED_FIELDS)
        return self._word_index

    def put_words(self, entries: Sequence[CutWords]) -> None:
        counts = Counter(chain.from_iterable(entry.distinct for entry in entries))
        try:
            letters = self._words.count(counts)
            self._words.put(entries, letters)
        except apsw.Error as error:
            raise self._as_our_error(error) from None
        self.count_in_corpus(learnings=len(entries), words=sum(entry.length for entry in entries))

    def remove_words(self, learning: str, number: int) -> None:
        try:
            removed = self._words.remove(number)
            if removed is None:
                return
            words, length = removed
            self._words.count(dict.fromkeys(words, -1))
        except apsw.Error as error:
            raise self._as_our_error(error) from None
        self.count_in_corpus(learnings=-1, words=-length)

    def forget_words(self) -> None:
        super().forget_words()
        self._words.forget()

    def clear_words(self) -> None:
        self._words.clear()
        self.execute("delete from corpus where project = :project")

    def rank_words(self, weights: Mapping[str, float], *, limit: int | None, newest: int | None) -> list[int]:
        floor = 0 if newest is None else self.last_number() - newest
        try:
            return self._words.rank(weights, floor=floor, limit=-1 if limit is None else limit)
        except apsw.Error as error:
            raise self._as_our_error(error) from None

    def match_words(self, rows: list[Row], wanted: Collection[str]) -> list[Row]:
        try:
            return self._words.match(rows, wanted)
        except apsw.Error as error:
            raise self._as_our_error(error) from None

    def script(self, sql: str) -> None:
        self.run(sql, {})

    def which_tables(self, *names: str) -> list[str]:
        wanted = {f"name_{number}": name for number, name in enumerate(names)}
        sql = f"select name from sqlite_master where type = 'table' and name in (:{', :'.join(wanted)})"
        return self.column(sql, **wanted)

    def check(self) -> list[str]:
        lines = [str(row["integrity_check"]) for row in self.rows("pragma integrity_check")]
        return [line for line in lines if line != "ok"] + self.broken_references()

    def enforce_foreign_keys(self, enforced: bool) -> None:
        self.run(f"pragma foreign_keys = {'on' if enforced else 'off'}", {})

    def broken_references(self) -> list[str]:
        rows = self.rows("pragma foreign_key_check")
        return [f"a row in {row['table']} that refers to a missing row in {row['parent']}" for row in rows]

    def scrub(self) -> None:
        # VACUUM rewrites every page, so that no free page keeps old text; then the log is truncated.
        self.run("vacuum", {})
        busy = self.rows("pragma wal_checkpoint(truncate)")[0]["busy"]
        if busy:
            raise TryAgain(
                "the rows are deleted, but another process is still reading the log that contains their old text",
                hint="end other learnt processes and run the same command again",
            )

    def copy_to(self, path: str) -> bool:
        _create_private(path)
        try:
            target = connect_guarded(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
            with target.backup("main", self._connection, "main") as backup:
                # All pages at once: a change by another process between two steps would restart the backup.
                backup.step(-1)
            target.close()
        except apsw.Error as error:
            raise self._as_our_error(error, path) from None
        return True

    def versions(self) -> dict[str, str]:
        return {"SQLite": apsw.sqlite_lib_version(), "apsw": apsw.apsw_version()}

    def close(self) -> None:
        self._connection.close()

    def _note_damage(self) -> None:
        """Leave a note for other processes, and keep even the log from being written into the file."""
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        if self._damage_note:
            try:
                files.touch_private(self._damage_note)
                os.utime(self._damage_note, follow_symlinks=False)
            except OSError:
                return  # in a read-only folder, nobody can write the database either

    def _as_our_error(self, error: apsw.Error, path: str = "") -> LearntError:
        """Return the error to raise for an SQLite error."""
        path = path or self.path
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            return TryAgain(
                f"{self.path} is busy: other processes kept writing for {self._wait_s:g} s",
                hint="try again; `wait_ms` sets how long to wait",
            )
        # On a full disk, SQLite can also raise one of these.
        write_errors = apsw.IOError | apsw.CantOpenError | apsw.ReadOnlyError | apsw.SQLError
        if isinstance(error, apsw.FullError) or (isinstance(error, write_errors) and _is_full(path)):
            return _disk_full_error(path)
        if isinstance(error, apsw.IOError):
            return TryAgain(f"cannot write {path}: {error}", hint="free some disk space and try again")
        if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError | apsw.PermissionsError):
            return LearntError(
                f"cannot write {self.path}: the file or its folder is read-only, or belongs to another user",
                hint=f"check the permissions: `ls -la {os.path.dirname(self.path)}`",
            )
        if isinstance(error, apsw.NotADBError | apsw.CorruptError):
            self._note_damage()
            return CorruptDatabase(f"{self.path} is damaged: {error}", hint=_RESTORE)
        if isinstance(error, apsw.ConstraintError):
            return InvalidValue(f"the database rejected the value: {error}")
        return LearntError(f"{self.path}: {error}", hint="`learnt doctor` checks the store")


def _connect(path: str, wait_ms: int) -> apsw.Connection:
    """Open a file for writing if permissions allow it, otherwise for reading."""
    for flags in (apsw.SQLITE_OPEN_READWRITE, apsw.SQLITE_OPEN_READONLY):
        connection = _try_connect(path, flags | apsw.SQLITE_OPEN_NOFOLLOW, wait_ms)
        if connection is not None:
            return connection
    if _size(path + "-wal") == 0:
        # In a read-only folder, SQLite cannot create the log's index. Without a log it needs no index, if the database
        # is opened as immutable.
        address = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23") + "?immutable=1"
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOFOLLOW
        return connect_guarded(address, flags)
    raise apsw.CantOpenError("the folder is read-only, and the log contains changes that are not in the file yet")


def connect_guarded(path: str, flags: int) -> apsw.Connection:
    """Open a database whose schema is not trusted, and whose statements an alarm can interrupt."""
    connection = apsw.Connection(path, flags=flags)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.set_progress_handler(_let_alarms_strike, _STEPS_BETWEEN_ALARMS)
    return connection


def _let_alarms_strike() -> bool:
    """Go on. Python handles signals only while it runs: what the handler raises here ends the statement."""
    return False


def _try_connect(path: str, flags: int, wait_ms: int) -> apsw.Connection | None:
    connection = None
    try:
        connection = connect_guarded(path, flags)
        connection.set_busy_timeout(wait_ms)
        connection.execute("select count(*) from sqlite_master").fetchall()
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.IOError, apsw.FullError):
        if connection is not None:
            connection.close()
        return None
    return connection


def _refuse_planted(path: str) -> None:
    """Raise if the file, or one that SQLite would open with it, is a link, not a regular file, or another user's."""
    for ending in ENDINGS:
        try:
            files.check_file(path + ending)
        except OSError as error:
            raise LearntError(f"cannot open {path}{ending}: {error.strerror}", hint=_PLANTED) from None


def _refuse_journal(path: str) -> None:
    """Raise if SQLite would undo a change that learnt never made: our changes are in the log, and need no journal.

    Only the switch to the log, when a database is made, needs one for its first page.
    """
    if _size(path + "-journal") and _size(path) > _PAGE:
        raise LearntError(f"cannot open {path}-journal: it would change the database", hint=_PLANTED)


def _is_unchanged_since(note: str, path: str) -> bool:
    """Return whether there is a note that is newer than the last change to a file."""
    try:
        return os.lstat(note).st_mtime_ns >= os.stat(path).st_ctime_ns
    except OSError:
        return False


def _create_private(path: str) -> None:
    """Create an empty file that only its owner can read; SQLite creates the log with the same mode."""
    try:
        files.touch_private(path)
    except OSError as error:
        raise cannot_write(path, error, hint="choose a folder that you can write to") from None


def _is_full(path: str) -> bool:
    """Return whether there is no space for another page on a file's disk."""
    import shutil

    try:
        return shutil.disk_usage(os.path.dirname(path)).free < _PAGE
    except OSError:
        return False


def _disk_full_error(path: str) -> TryAgain:
    return TryAgain(f"cannot write {path}: no space is left on the disk", hint="free some disk space and try again")


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
