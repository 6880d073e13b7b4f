"""Bring a database to the schema of this program: numbered files, each whole or not at all.

A file `0002_name.sql` is for both engines, `0002_name.sqlite.sql` and `0002_name.postgres.sql` for one; those of one
number are one migration. Each runs in a transaction of its own, under a lock, together with its record: whoever
is killed midway leaves the old schema, and of two that migrate at once the second finds nothing to do.
"""

from __future__ import annotations

import os

from learnt.errors import LearntError, NewerDatabase
from learnt.store import learnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.store.database import Database

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "migrations")

_RECORD = """
create table if not exists migration (
    number bigint primary key,
    name text not null,
    learnt text not null,
    applied_at bigint not null
)
"""


# What SQL alone cannot do: words are cut, and texts compared, by our own code. Runs in the migration's transaction, and
# once for all that came before.
_AFTERWARDS = {"loop": learnings.index_all}


class Migration:
    """One numbered step: its name and the files that make it up on one engine."""

    def __init__(self, number: int, name: str, paths: list[str]) -> None:
        self.number = number
        self.name = name
        self.paths = paths


def migrations(engine: str, folder: str = FOLDER) -> list[Migration]:
    """Return the migrations for an engine in their order."""
    found: dict[int, Migration] = {}
    for file in sorted(os.listdir(folder)):
        stem, _, rest = file.partition(".")
        if rest not in ("sql", f"{engine}.sql"):
            continue
        number, _, name = stem.partition("_")
        migration = found.setdefault(int(number), Migration(int(number), name, []))
        migration.paths.append(os.path.join(folder, file))
    return [found[number] for number in sorted(found)]


def newest(folder: str = FOLDER) -> int:
    """Return the number of the last migration that this program knows."""
    return max(int(file.partition("_")[0]) for file in os.listdir(folder) if file.endswith(".sql"))


def schema_number(database: Database) -> int:
    """Return the number of the last migration that the database has, 0 for an empty one."""
    # `learning` first: both come in one transaction, so whoever sees it also sees `migration` after it.
    has_learnings = database.has_table("learning")
    if not database.has_table("migration"):
        if has_learnings:
            raise LearntError(f"{database.path} is no store of learnt", hint="choose another database")
        return 0
    return int(database.value("select max(number) as newest from migration") or 0)


def bring_up_to_date(database: Database, *, version: str, now_ms: int, folder: str = FOLDER) -> list[str]:
    """Apply what is missing and return the names; refuse a database newer than this program."""
    applied = []
    database.enforce_foreign_keys(False)  # a table that is built anew must not take its children along
    try:
        for migration in migrations(database.engine, folder):
            if _apply(database, migration, version=version, now_ms=now_ms, folder=folder):
                applied.append(migration.name)
    finally:
        database.enforce_foreign_keys(True)
    return applied


def refuse_newer(database: Database, number: int, folder: str = FOLDER) -> None:
    """Raise when the database has migrations that this program does not know."""
    if number <= newest(folder):
        return
    theirs = database.value("select learnt from migration where number = :number", number=number)
    raise NewerDatabase(
        f"{database.path} was written by learnt {theirs} (schema {number}); this one knows schema {newest(folder)}",
        hint="upgrade with `pip install -U learnt`, or open a backup",
    )


def _apply(database: Database, migration: Migration, *, version: str, now_ms: int, folder: str) -> bool:
    with database.transaction():
        database.lock_schema()
        present = schema_number(database)
        refuse_newer(database, present, folder)
        if present >= migration.number:
            return False
        database.script(_RECORD)
        for path in migration.paths:
            with open(path, encoding="utf-8") as file:
                database.script(file.read())
        if migration.name in _AFTERWARDS:
            _AFTERWARDS[migration.name](database)
        database.execute(
            "insert into migration (number, name, learnt, applied_at) values (:number, :name, :version, :now)",
            number=migration.number,
            name=migration.name,
            version=version,
            now=now_ms,
        )
        astray = database.astray()
        if astray:
            raise LearntError(
                f"migration {migration.name} would leave {astray[0]}", hint="report this; nothing changed"
            )
    return True
