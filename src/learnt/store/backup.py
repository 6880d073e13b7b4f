"""Back up and restore a store. A backup is always one SQLite file, whichever engine the store uses."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from learnt import __version__
from learnt.errors import CorruptDatabase, LearntError, TryAgain, WrongRequest, cannot_write
from learnt.store import bulk, index, migrate
from learnt.store.database import Database, newest_schema
from learnt.store.sqlite import ENDINGS, SqliteDatabase
from learnt.system import files

# These tables are derived from the learnings and differ between the engines, so a restore builds them again.
_INDEX_TABLES = (
    *("learning_words", "learning_trigger", "posting", "word", "corpus", "learning_vector", "vector_block"),
)
_WHERE = "`learnt backup` prints the path of the backup that it writes"


def back_up(database: Database, path: str, *, version: str, now_ms: int) -> None:
    """Write the whole project to a new file; if that fails, the unfinished file is removed."""
    if os.path.lexists(path):
        raise WrongRequest(f"{path} already exists", hint="choose another file: a backup never overwrites a file")
    unfinished = f"{path}.{os.urandom(8).hex()}.{os.getpid()}.unfinished"
    try:
        files.make_folders(os.path.dirname(path))
        if not database.copy_to(unfinished):
            _copy_rows(database, unfinished, version=version, now_ms=now_ms)
        os.replace(unfinished, path)
    except OSError as error:
        raise cannot_write(path, error, hint="choose a folder that you can write to") from None
    finally:
        for ending in ENDINGS:
            if os.path.lexists(unfinished + ending):
                files.remove_file(unfinished + ending)


def purge_from_backups(folder: str, delete: Callable[[Database], bool]) -> int:
    """Run `delete` on every backup in a folder; return how many backups contained the deleted data."""
    count, damaged = 0, []
    for path in _files(folder, tuple(f".unfinished{ending}" for ending in ENDINGS)):
        if _is_being_written(path):
            raise TryAgain(
                f"{path} is being written and contains the same data",
                hint="run the same command again when the backup is finished",
            )
        files.remove_file(path)  # a backup that was killed has left it
    for path in _files(folder, ".db"):
        try:
            count += _with_backup(path, lambda database: _purge(database, delete))
        except CorruptDatabase:
            damaged.append(path)
    if damaged:
        raise LearntError(
            f"{', '.join(damaged)} cannot be read and might still contain the data",
            hint="delete that backup, and run the same command again",
        )
    return count


def open_backup(path: str) -> SqliteDatabase:
    """Open a backup for a restore; raise if it cannot be restored."""
    if not os.path.isfile(path):
        raise WrongRequest(f"there is no backup {path}", hint=_WHERE)
    try:
        return _open_checked(path)
    except CorruptDatabase as error:
        raise CorruptDatabase(error.message, hint="use another backup") from None


def _open_checked(path: str) -> SqliteDatabase:
    source = SqliteDatabase(os.path.realpath(path), wait_ms=1000, read_only=True, own=False)
    try:
        number = source.check_schema()
        if not number:
            raise WrongRequest(f"{path} is not a backup", hint=_WHERE)
        if number < newest_schema():
            raise WrongRequest(
                f"{path} has an older schema ({number})", hint="open a copy of it as a store first, which updates it"
            )
        if damage := source.check():
            raise CorruptDatabase(f"{path} is damaged: {damage[0]}")
    except BaseException:
        source.close()
        raise
    return source


def restore(target: Database, source: Database) -> None:
    """Replace a database's content with a backup's content, in one transaction."""
    tables = [table for table in _tables(source) if table not in _INDEX_TABLES]
    with target.transaction():
        target.lock_words()
        index.clear(target)
        for table in reversed(tables):
            target.execute(f"delete from {table} where project = :project")
        for table in tables:
            for row in source.rows(f"select * from {table}"):
                target.insert(table, {**row, "project": target.project})
        bulk.index_project(target)


def _purge(database: Database, delete: Callable[[Database], bool]) -> bool:
    migrate.bring_up_to_date(database, version=__version__, now_ms=time.time_ns() // 1_000_000)
    with database.transaction():
        has_deleted = delete(database)
    if has_deleted:
        database.scrub()
    return has_deleted


def _with_backup(path: str, do: Callable[[Database], bool]) -> bool:
    database = SqliteDatabase(path, wait_ms=1000)
    try:
        return do(database)
    finally:
        database.close()


def _is_being_written(path: str) -> bool:
    """Return whether the process whose id is part of an unfinished backup's name is still running."""
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
    try:
        names = files.list_names(folder)
    except OSError as error:
        raise LearntError(f"cannot read {folder}: {error.strerror}", hint="put a folder of your own there") from None
    return [os.path.join(folder, name) for name in names if name.endswith(ending)]


def _copy_rows(source: Database, path: str, *, version: str, now_ms: int) -> None:
    target = SqliteDatabase(path, wait_ms=1000, create=True)
    try:
        migrate.bring_up_to_date(target, version=version, now_ms=now_ms)
        # All tables are read from one snapshot, so that they are consistent with each other.
        with source.transaction(), target.transaction():
            source.execute("set transaction isolation level repeatable read")
            for table in (table for table in _tables(target) if table not in _INDEX_TABLES):
                for row in source.rows(f"select * from {table} where project = :project"):
                    target.insert(table, {**row, "project": target.project})
            bulk.index_project(target)
        target.run("pragma wal_checkpoint(truncate)", {})
    finally:
        target.close()


def _tables(database: Database) -> list[str]:
    rows = database.rows("select name from sqlite_master where type = 'table' and name != 'migration' order by rowid")
    engine_tables = ("sqlite_", "learning_index")
    return [row["name"] for row in rows if not row["name"].startswith(engine_tables)]
