"""Backups of a store, always as one SQLite file, whichever engine the store uses."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from learnt import __version__
from learnt.errors import CorruptDatabase, LearntError, TryAgain, WrongRequest, cannot_write
from learnt.store import learnings, migrate
from learnt.store.database import Database, newest_schema
from learnt.store.sqlite import SqliteDatabase

# Derived from the learnings, and different in each engine.
_INDEX_TABLES = ("learning_words", "learning_trigger", "posting", "word", "corpus")


def back_up(database: Database, path: str, *, version: str, now_ms: int) -> None:
    """Write the whole project into a new file; an unfinished file is removed."""
    if os.path.exists(path):
        raise WrongRequest(f"{path} exists already", hint="choose another file: a backup never overwrites")
    unfinished = f"{path}.{os.getpid()}.unfinished"
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), mode=0o700, exist_ok=True)
        if not database.copy_to(unfinished):
            _copy_rows(database, unfinished, version=version, now_ms=now_ms)
        os.replace(unfinished, path)
    except OSError as error:
        raise cannot_write(path, error, hint="choose a folder that you can write to") from None
    finally:
        for ending in ("", "-wal", "-shm", "-journal"):
            if os.path.exists(unfinished + ending):
                os.unlink(unfinished + ending)


def purge_from_backups(folder: str, delete: Callable[[Database], bool]) -> int:
    """Run `delete` on every backup in a folder; return how many backups held the deleted data."""
    holding, damaged = 0, []
    for path in _files(folder, (".unfinished", ".unfinished-wal", ".unfinished-shm", ".unfinished-journal")):
        if _is_being_written(path):
            raise TryAgain(
                f"{path} is being written and holds the same data", hint="run the same command again when it is done"
            )
        os.unlink(path)  # left by a backup that was killed
    for path in _files(folder, ".db"):
        try:
            holding += _with_backup(path, lambda database: _purge(database, delete))
        except CorruptDatabase:
            damaged.append(path)
    if damaged:
        raise LearntError(
            f"{', '.join(damaged)} cannot be read and may still hold the data",
            hint="delete that backup, and run the same command again",
        )
    return holding


def open_backup(path: str) -> SqliteDatabase:
    """Open a backup for a restore; raise if it cannot be restored."""
    if not os.path.isfile(path):
        raise WrongRequest(f"there is no backup {path}", hint="`learnt backup` says where it writes them")
    source = SqliteDatabase(path, wait_ms=1000, read_only=True)
    try:
        number = source.check_schema()
        if number < newest_schema():
            raise WrongRequest(f"{path} has the older schema {number}", hint="open a copy of it as a store first")
        if source.check():
            raise CorruptDatabase(f"{path} is damaged: {source.check()[0]}", hint="use another backup")
    except BaseException:
        source.close()
        raise
    return source


def restore(target: Database, source: Database) -> None:
    """Replace the content of a database by that of a backup, in one transaction."""
    tables = _tables(source)
    with target.transaction():
        target.lock_words()
        for table in reversed(tables):
            if target.has_table(table):
                target.execute(f"delete from {table} where project = :project")
        for table in tables:
            if table not in _INDEX_TABLES:
                for row in source.rows(f"select * from {table}"):
                    target.insert(table, {**row, "project": target.project})
        learnings.index_project(target)
        learnings.renew_stamp(target)


def _purge(database: Database, delete: Callable[[Database], bool]) -> bool:
    migrate.bring_up_to_date(database, version=__version__, now_ms=time.time_ns() // 1_000_000)
    with database.transaction():
        was_there = delete(database)
    if was_there:
        database.scrub()
    return was_there


def _with_backup(path: str, do: Callable[[Database], bool]) -> bool:
    database = SqliteDatabase(path, wait_ms=1000)
    try:
        return do(database)
    finally:
        database.close()


def _is_being_written(path: str) -> bool:
    """Say whether the process in the name of an unfinished backup still runs."""
    process = path.partition(".unfinished")[0].rpartition(".")[2]
    if not process.isdecimal() or sys.platform == "win32":
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return int(process) != os.getpid()


def _files(folder: str, ending: str | tuple[str, ...]) -> list[str]:
    if not os.path.isdir(folder):
        return []
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(ending)]


def _copy_rows(source: Database, path: str, *, version: str, now_ms: int) -> None:
    target = SqliteDatabase(path, wait_ms=1000, create=True)
    try:
        migrate.bring_up_to_date(target, version=version, now_ms=now_ms)
        # One snapshot, so that the tables are consistent with each other.
        with source.transaction(), target.transaction():
            source.execute("set transaction isolation level repeatable read")
            for table in _tables(target):
                for row in source.rows(f"select * from {table} where project = :project"):
                    target.insert(table, {**row, "project": target.project})
        target.run("pragma wal_checkpoint(truncate)", {})
    finally:
        target.close()


def _tables(database: Database) -> list[str]:
    rows = database.rows("select name from sqlite_master where type = 'table' and name != 'migration' order by rowid")
    engine_tables = ("sqlite_", "learning_index")
    return [row["name"] for row in rows if not row["name"].startswith(engine_tables)]
