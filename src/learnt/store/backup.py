"""Copies of a store as one SQLite file, whatever engine it runs on: a backup can always be opened and read."""

from __future__ import annotations

import os

from learnt.errors import CorruptDatabase, LearntError, WrongRequest
from learnt.store import learnings, migrate
from learnt.store.sqlite import SqliteDatabase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from learnt.store.database import Database


def back_up(database: Database, path: str, *, version: str, now_ms: int) -> None:
    """Write all of the project into a new file; a half-written one is removed."""
    if os.path.exists(path):
        raise WrongRequest(f"{path} exists already", hint="name another file: a backup never overwrites")
    unfinished = path + ".unfinished"
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), mode=0o700, exist_ok=True)
        if isinstance(database, SqliteDatabase):
            database.copy_to(unfinished)
        else:
            _copy_rows(database, unfinished, version=version, now_ms=now_ms)
        os.replace(unfinished, path)
    except OSError as error:
        raise LearntError(f"cannot write {path}: {error.strerror}", hint="choose a place that you can write") from None
    finally:
        for leftover in (unfinished, unfinished + "-wal", unfinished + "-shm"):
            if os.path.exists(leftover):
                os.unlink(leftover)


def purge_from_backups(folder: str, id: str) -> int:
    """Delete a learning from every backup in a folder; return how many held it."""
    holding, damaged = 0, []
    for path in _files(folder, ".unfinished"):
        os.unlink(path)  # left by a backup that was killed: nobody can use it
    for path in _files(folder, ".db"):
        try:
            holding += _with_backup(path, lambda database: _purge(database, id))
        except CorruptDatabase:
            damaged.append(path)
    if damaged:
        raise LearntError(
            f"{', '.join(damaged)} cannot be read, so the learning may still be in it",
            hint="delete that backup, and run the same command again",
        )
    return holding


def _purge(database: Database, id: str) -> bool:
    if learnings.find(database, id) is None:
        return False
    with database.transaction():
        learnings.delete(database, id)
    database.scrub()
    return True


def _with_backup(path: str, do: Callable[[Database], bool]) -> bool:
    database = SqliteDatabase(path, wait_ms=1000)
    try:
        return do(database)
    finally:
        database.close()


def _files(folder: str, ending: str) -> list[str]:
    if not os.path.isdir(folder):
        return []
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(ending)]


def _copy_rows(source: Database, path: str, *, version: str, now_ms: int) -> None:
    target = SqliteDatabase(path, wait_ms=1000, create=True)
    try:
        migrate.bring_up_to_date(target, version=version, now_ms=now_ms)
        # One snapshot, so that rows of different tables fit each other.
        with source.transaction(), target.transaction():
            source.execute("set transaction isolation level repeatable read")
            for table in _tables(target):
                for row in source.rows(f"select * from {table} where project = :project"):
                    row["project"] = target.project
                    columns = ", ".join(row)
                    values = ", ".join(f":{column}" for column in row)
                    target.execute(f"insert into {table} ({columns}) values ({values})", **row)
        target.run("pragma wal_checkpoint(truncate)", {})
    finally:
        target.close()


def _tables(database: Database) -> list[str]:
    rows = database.rows("select name from sqlite_master where type = 'table' and name != 'migration' order by rowid")
    return [row["name"] for row in rows if not row["name"].startswith("sqlite_")]
