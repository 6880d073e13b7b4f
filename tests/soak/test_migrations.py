"""A migration that is killed leaves the old schema or the new one, and every row."""

from __future__ import annotations

import hashlib
import os
import random
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from learnt.store.database import MIGRATIONS, Database, newest_schema
from tests.soak import seed_of
from tests.support import faults

pytestmark = pytest.mark.soak

KILLS = 200
LEARNINGS = 4000
PATIENCE_S = 60
HEAVY = """
alter table learning add column weight bigint not null default 0;
update learning set weight = length(title) + length(observation);
create index learning_by_weight on learning (project, weight, id);
create table event_by_day as select at / 86400000 as day, event.* from event;
create index event_by_day_and_id on event_by_day (project, day, id);
alter table event add column day bigint not null default 0;
update event set day = at / 86400000;
create index event_by_day_alone on event (project, day);
"""
TABLES = {"learning": "id", "event": "id"}


class Filled:
    """A filled database that can be put back as it was."""

    def __init__(self, memory: Memory) -> None:
        self.place = memory.context.store.place.address or memory.context.store.place.path
        self._is_file = not memory.context.store.place.address
        memory.close()
        self._keep()

    def restore(self) -> None:
        if self._is_file:
            for ending in ("-wal", "-shm"):
                Path(self.place + ending).unlink(missing_ok=True)
            shutil.copyfile(self.place + ".kept", self.place)
        else:
            name = self._name()
            self._on_server(f"drop database {name} with (force)", f"create database {name} template {name}_kept")

    def _keep(self) -> None:
        if self._is_file:
            shutil.copyfile(self.place, self.place + ".kept")
        else:
            self._on_server(f"create database {self._name()}_kept template {self._name()}")

    def _name(self) -> str:
        return self.place.partition("?")[0].rpartition("/")[2]

    def _on_server(self, *statements: str) -> None:
        import psycopg

        server = self.place.replace(f"/{self._name()}?", "/postgres?")
        with psycopg.connect(server, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


def test_a_killed_migration_leaves_the_old_schema_or_the_new_one_and_every_row(
    database: str,
    project: Path,
    share: Callable[[int], int],
    chance: random.Random,
    pytestconfig: pytest.Config,
) -> None:
    folder = _heavier_migrations(project.parent / "migrations")
    filled = _fill(project)
    columns = _columns(filled)
    old, rows = _look(filled, columns)
    duration_s = _migrate_and_kill(filled, folder, after_s=None)[1]
    new, rows_after = _look(filled, columns)
    assert old != new
    assert rows == rows_after
    filled.restore()

    hits = {"before": 0, "during": 0, "after": 0}
    for number in range(share(KILLS)):
        told, _ = _migrate_and_kill(filled, folder, after_s=chance.uniform(0, duration_s))
        schema, rows_now = _look(filled, columns)
        assert schema in (old, new), f"kill {number} left a schema that is neither old nor new"
        assert rows_now == rows, f"kill {number} changed rows"
        assert schema == new or "done" not in told
        hits["after" if schema == new else "during" if "begun" in told else "before"] += 1
        if schema == new:
            filled.restore()

    print(
        f"\n{'PostgreSQL' if database else 'SQLite'}: {share(KILLS)} kills of a migration of {LEARNINGS:,} learnings "
        f"that takes {duration_s * 1000:.0f} ms (seed {seed_of(pytestconfig)}): {hits['before']} before, "
        f"{hits['during']} during, {hits['after']} after; always the old or the new schema, every row intact, "
        f"integrity ok"
    )


def _fill(project: Path) -> Filled:
    with Memory.open(project) as memory:
        memory.add_all(
            [
                {"title": f"Learning {number}", "observation": f"Seen {number} times. " * 20, "tags": ["soak"]}
                for number in range(LEARNINGS)
            ]
        )
        return Filled(memory)


def _heavier_migrations(folder: Path) -> Path:
    shutil.copytree(MIGRATIONS, folder)
    (folder / f"{newest_schema() + 1:04d}_heavier.sql").write_text(HEAVY)
    return folder


def _migrate_and_kill(filled: Filled, folder: Path, *, after_s: float | None) -> tuple[list[str], float]:
    """Let a child migrate, kill it after a while; return what it told and how long it worked."""
    child = faults.start("migrate_slowly", filled.place, folder, cwd=folder, stdout=subprocess.PIPE, bufsize=0)
    assert child.stdout is not None
    told = _read_until(child.stdout.fileno(), b"ready", PATIENCE_S)
    began = time.monotonic()
    told += _read_until(child.stdout.fileno(), b"done", PATIENCE_S if after_s is None else after_s)
    took = time.monotonic() - began
    child.send_signal(signal.SIGKILL)
    told += child.stdout.read()
    child.stdout.close()
    assert child.wait() in (0, -signal.SIGKILL)
    assert after_s is not None or b"done" in told
    return told.decode().split(), took


def _read_until(pipe: int, word: bytes, patience_s: float) -> bytes:
    """Read until a word arrives, the pipe is closed or the time is up."""
    text = b""
    end = time.monotonic() + patience_s
    while word not in text:
        ready, _, _ = select.select([pipe], [], [], max(0.0, end - time.monotonic()))
        piece = os.read(pipe, 1000) if ready else b""
        if not piece:
            break
        text += piece
    return text


def _columns(filled: Filled) -> dict[str, list[str]]:
    """Return the columns of the old schema, which every later look compares."""
    database = faults.open_database(filled.place)
    found = {table: list(database.row(f"select * from {table} limit 1") or {}) for table in TABLES}
    database.close()
    return found


def _look(filled: Filled, columns: dict[str, list[str]]) -> tuple[list[Any], str]:
    """Return the schema and a digest of all rows, after an integrity check."""
    database = faults.open_database(filled.place)
    try:
        faults.wait_for_others(database)
        assert database.check() == []
        digest = hashlib.sha256()
        for table, key in TABLES.items():
            rows = database.rows(f"select {', '.join(columns[table])} from {table} order by {key}")
            assert len(rows) == LEARNINGS
            digest.update(repr(rows).encode())
        return _schema(database), digest.hexdigest()
    finally:
        database.close()


def _schema(database: Database) -> list[Any]:
    migrations = database.rows("select number, name from migration order by number")
    if database.engine == "sqlite":
        return [migrations, database.rows("select type, name, sql from sqlite_master order by type, name")]
    columns = """
        select table_name, column_name, data_type, is_nullable, column_default
          from information_schema.columns
         where table_schema = 'public'
         order by table_name, ordinal_position
    """
    indexes = "select indexname, indexdef from pg_indexes where schemaname = 'public' order by indexname"
    return [migrations, database.rows(columns), database.rows(indexes)]
