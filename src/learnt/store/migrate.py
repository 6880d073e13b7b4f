"""Migrate a database to this program's schema.

A file `0002_name.sql` is for both engines; `0002_name.sqlite.sql` and `0002_name.postgres.sql` are for one engine.
Files with the same number form one migration. Each migration and the row that records it are written in one
transaction, under a lock. If the process is killed, the old schema remains; if two processes migrate at the same time,
the second finds nothing to do.
"""

from __future__ import annotations

import os

from learnt.errors import LearntError
from learnt.store import bulk
from learnt.store.database import MIGRATIONS, Database
from learnt.store.sqlite import SqliteDatabase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.store.database import Row

_RECORD = """
create table if not exists migration (
    number bigint primary key,
    name text not null,
    learnt text not null,
    applied_at bigint not null
)
"""


_INDEX_PARTS = "learning_index_"


# SQL alone cannot do these steps, because our own code splits and compares texts. Each step runs in its migration's
# transaction, on all existing data.
_AFTERWARDS = {"cues": bulk.index_anew}


class Migration:
    """A numbered migration with its files for one engine."""

    def __init__(self, number: int, name: str, paths: list[str]) -> None:
        self.number = number
        self.name = name
        self.paths = paths


def migrations(engine: str, folder: str = MIGRATIONS) -> list[Migration]:
    """Return the migrations for an engine, in order."""
    by_number: dict[int, Migration] = {}
    for file in sorted(os.listdir(folder)):
        stem, _, rest = file.partition(".")
        if rest not in ("sql", f"{engine}.sql"):
            continue
        number, _, name = stem.partition("_")
        migration = by_number.setdefault(int(number), Migration(int(number), name, []))
        migration.paths.append(os.path.join(folder, file))
    return [by_number[number] for number in sorted(by_number)]


def bring_up_to_date(database: Database, *, version: str, now_ms: int, folder: str = MIGRATIONS) -> list[str]:
    """Apply the missing migrations and return their names; raise if the database is newer than this program."""
    applied = []
    database.enforce_foreign_keys(False)  # rebuilding a table must not delete the rows that refer to it
    try:
        for migration in migrations(database.engine, folder):
            if _apply(database, migration, version=version, now_ms=now_ms, folder=folder):
                applied.append(migration.name)
    finally:
        database.enforce_foreign_keys(True)
    return applied


def find_foreign(database: Database) -> list[str]:
    """Return the names of tables, triggers and views in an SQLite file that its migrations do not make like that.

    A trigger, a default or a view could turn one change into another, long after somebody has looked at the rows.
    """
    number = database.schema_number()
    ours = SqliteDatabase(":memory:", wait_ms=0, own=False)
    try:
        ours.script(_RECORD)
        for migration in migrations("sqlite"):
            if migration.number <= number:
                _run_files(ours, migration)
        expected = {row["name"]: _describe(row) for row in _schema(ours)}
    finally:
        ours.close()
    return [row["name"] for row in _schema(database) if expected.get(row["name"]) != _describe(row)]


def _schema(database: Database) -> list[Row]:
    return database.rows("select type, name, sql from sqlite_master where name not like 'sqlite^_%' escape '^'")


def _describe(row: Row) -> tuple[str, str]:
    """Return what an object is. The wording of FTS's own tables depends on the version of SQLite."""
    sql = "" if row["name"].startswith(_INDEX_PARTS) else row["sql"] or ""
    return row["type"], " ".join(sql.split())


def _run_files(database: Database, migration: Migration) -> None:
    for path in migration.paths:
        with open(path, encoding="utf-8") as file:
            database.script(file.read())


def _apply(database: Database, migration: Migration, *, version: str, now_ms: int, folder: str) -> bool:
    with database.transaction():
        database.lock_schema()
        if database.check_schema(folder) >= migration.number:
            return False
        database.script(_RECORD)
        _run_files(database, migration)
        if migration.name in _AFTERWARDS:
            _AFTERWARDS[migration.name](database)
        database.execute(
            "insert into migration (number, name, learnt, applied_at) values (:number, :name, :version, :now)",
            number=migration.number,
            name=migration.name,
            version=version,
            now=now_ms,
        )
        broken_references = database.broken_references()
        if broken_references:
            raise LearntError(
                f"migration {migration.name} would leave {broken_references[0]}",
                hint="report this; nothing has changed",
            )
    return True
