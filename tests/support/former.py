"""Stores as earlier versions wrote them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from learnt.store import migrate
from learnt.store.database import MIGRATIONS
from learnt.store.sqlite import PROJECT, SqliteDatabase

# What the index holds is made anew by the migration that changed it.
_INDEX = ("learning_words", "learning_index", "learning_vector", "vector_block", "word", "corpus", "learning_trigger")


def write_as_before(path: Path, *, schema: int) -> None:
    """Give a store's file the schema of an earlier version; what that version did not know is lost."""
    with tempfile.TemporaryDirectory() as folder:
        for file in Path(MIGRATIONS).iterdir():
            if file.suffix == ".sql" and int(file.name.partition("_")[0]) <= schema:
                shutil.copy(file, folder)
        former = Path(folder, "former.db")
        old, new = SqliteDatabase(str(path), wait_ms=0), SqliteDatabase(str(former), wait_ms=0, create=True)
        try:
            migrate.bring_up_to_date(new, version="0.1", now_ms=0, folder=folder)
            new.stamp(old.value("pragma application_id"))
            _copy(old, new)
            new.run("pragma wal_checkpoint(truncate)", {})
        finally:
            old.close()
            new.close()
        shutil.copyfile(former, path)


def _copy(old: SqliteDatabase, new: SqliteDatabase) -> None:
    new.enforce_foreign_keys(False)
    tables = new.column("select name from sqlite_master where type = 'table' and name <> 'migration'")
    for table in (table for table in tables if not table.startswith((*_INDEX, "sqlite_"))):
        columns = new.column(f"select name from pragma_table_info('{table}')")
        for row in old.rows(f"select * from {table}"):
            new.insert(table, {"project": PROJECT, **{name: row[name] for name in columns if name in row}})
