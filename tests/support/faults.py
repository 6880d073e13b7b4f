"""Tests of killed processes: the children's code, and functions with which a test starts and checks them.

A child runs one function in this file by its name. It imports little, because hundreds of children are started.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from typing import Any

    from learnt import Memory
    from learnt.store.database import Database

ROOT = Path(__file__).parents[2]
# Fields that events store in separate columns, and fields that come from use, which has separate rows.
_UNTOLD = ("updated_at", "version", "scope", "times_injected", "last_injected_at")
_FILE_CALLS = ("open", "write", "fsync", "replace", "unlink", "ftruncate")


# In the test's process


def start(function: str, *arguments: object, cwd: Path, **options: Any) -> subprocess.Popen[bytes]:
    """Start a child that runs a function in this file with string arguments."""
    import subprocess

    code = f"import sys; from tests.support import faults; faults.{function}(*sys.argv[1:])"
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], cwd=cwd, env=environ, **options)


def run(function: str, *arguments: object, cwd: Path) -> tuple[int, list[str]]:
    """Run a child to its end; return its exit code, which is negative for a signal, and the lines that it printed."""
    from tests.support.forks import nursery

    code, lines, complaint = nursery().run(function, *arguments, cwd=cwd)
    if code not in (0, -signal.SIGKILL):
        raise AssertionError(f"{function}{arguments} ended with {code}: {complaint}")
    return code, lines


def contradictions(memory: Memory) -> list[str]:
    """Return the differences between the learnings and their events; empty if the store is consistent."""
    from learnt.model import Learning
    from learnt.text.records import as_record

    database = memory.context.store.database
    found = database.check()
    learnings = {learning.id: learning for learning in memory.transfer.export()}
    told = {row["subject"] for row in database.rows("select subject from event where project = :project")}
    found += [f"events of {subject}, which is not there" for subject in told - set(learnings)]
    for id, learning in learnings.items():
        history = memory.history(id)
        replayed = as_record(Learning(id=id, title="-"))
        for event in history:
            if any(replayed[name] != value for name, value in event.old.items()):
                found.append(f"{event.id} changes what was not so")
            replayed.update(event.new)
        record = as_record(learning)
        told_of = [name for name in record if name not in _UNTOLD]
        found += [f"{name} of {id} is not as told" for name in told_of if record[name] != replayed[name]]
        if [event.version for event in history] != list(range(1, learning.version + 1)):
            found.append(f"the history of {id} has gaps")
    return found


def wait_for_others(database: Database) -> None:
    """Wait until a server has noticed that clients were killed; SQLite's locks end with their process."""
    if database.engine != "postgres":
        return
    others = """
        select count(*) as others, pg_sleep(0.005)
          from pg_stat_activity
         where datname = current_database()
           and backend_type = 'client backend'
           and pid <> pg_backend_pid()
    """
    while database.value(others):
        pass


# In the child


def count_up(database: Database, body: dict[str, Any]) -> None:
    """A record whose effect shows if it is applied twice."""
    database.execute(
        """
        update learning
           set times_injected = times_injected + 1
         where project = :project
           and id = :id
        """,
        id=body["learning"],
    )


def change_and_die(flow: str, engine: str, number: str, *arguments: str) -> None:
    """Change a store as a person does, and be killed before the statement with this number."""
    from learnt import Memory

    _die_at_step(int(number), engine, calls=False)
    with Memory.open(".") as memory:
        if flow == "add":
            memory.add("Run `make lint` before each commit", tags=["make"])
        elif flow == "edit":
            memory.edit(arguments[0], action=f"make lint, the {number}th time", reason="it is quicker")
        elif flow == "undo":
            memory.undo(arguments[0])
        elif flow == "purge":
            memory.purge(arguments[0])
        elif flow == "supersede":
            memory.supersede(*arguments)
        elif flow == "import":
            memory.transfer.import_all(json.loads(arguments[0]))
        else:
            _ = memory.context.store.database
    print("done")


def append_and_die(folder: str, number: str) -> None:
    """Append three records to the spool, print each acknowledged record, and be killed at a step."""
    from learnt.store.spool import Spool, SpoolRecord

    _die_at_step(int(number), None, calls=True)
    for part in range(3):
        record = SpoolRecord(f"op_{number}x{part}", "count", int(number), {"text": "x" * 500})
        Spool(folder).append(record)
        print(record.op, flush=True)


def take_up_and_die(engine: str, number: str) -> None:
    """Open a store with records in its spool, and be killed at a step."""
    from learnt import Memory
    from learnt.store import happened

    happened.APPLY["count"] = count_up
    _die_at_step(int(number), engine, calls=True)
    with Memory.open(".") as memory:
        memory.context.store.replay_spool()


def open_together(writer: str) -> None:
    """Report that everything is loaded, wait for the signal to start, then open the store and add a learning."""
    import apsw  # noqa: F401 - loaded before the start, so that all children open the store at the same time

    from learnt import Memory

    print("ready", flush=True)
    sys.stdin.readline()
    with Memory.open(".") as memory:
        print(memory.add(f"Writer {writer} was here").id)


def fill_up_to(limit_bytes: str) -> None:
    """Add learnings under a file size limit; print each id, then how it ended."""
    import resource

    from learnt import Memory
    from learnt.errors import TryAgain

    with Memory.open(".") as memory:
        memory.add("The first one")
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit_bytes), resource.RLIM_INFINITY))
        try:
            for number in itertools.count():
                print(memory.add(f"Number {number}", observation="x" * 10_000).id, flush=True)
        except TryAgain as error:
            print(f"{type(error).__name__}: {error.hint}")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def write_many(writer: str, life: str, count: str) -> None:
    """Add learnings, and print each id after it is acknowledged."""
    from learnt import Memory

    with Memory.open(".") as memory:
        for number in range(int(count)):
            learning = memory.add(f"Writer {writer}, life {life}, number {number}", observation="Seen in the soak")
            os.write(1, f"{learning.id}\n".encode())


def migrate_slowly(address_or_path: str, folder: str) -> None:
    """Apply a folder's migrations to a database; print when the process is ready, starts and is done."""
    from learnt.store import migrate

    _kind_of("postgres" if address_or_path.startswith("postgresql:") else "sqlite")  # loads the driver
    os.write(1, b"ready\n")
    database = open_database(address_or_path)
    original = database.script

    def script(sql: str) -> None:
        os.write(1, b"begun\n")
        original(sql)

    vars(database)["script"] = script
    migrate.bring_up_to_date(database, version="99.0", now_ms=1, folder=folder)
    os.write(1, b"done\n")


def open_database(address_or_path: str) -> Database:
    """Connect without checking the schema."""
    if address_or_path.startswith("postgresql:"):
        from learnt.store.postgres import PostgresDatabase

        return PostgresDatabase(address_or_path, project="shop", wait_ms=60_000)
    from learnt.store.sqlite import SqliteDatabase

    return SqliteDatabase(address_or_path, wait_ms=60_000)


def _die_at_step(number: int, engine: str | None, *, calls: bool) -> None:
    """Kill this process before its n-th statement or, with `calls`, file call; a write is done only halfway."""
    steps = itertools.count(1)

    def dying(original: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            if next(steps) == number:
                if original is write:
                    write(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **named)

        return step

    write = os.write
    if engine is not None:
        kind = _kind_of(engine)
        for name in ("run", "script"):
            setattr(kind, name, dying(getattr(kind, name)))
    if calls:
        for name in _FILE_CALLS:
            setattr(os, name, dying(getattr(os, name)))


def _kind_of(engine: str) -> type[Database]:
    if engine == "postgres":
        from learnt.store.postgres import PostgresDatabase

        return PostgresDatabase
    from learnt.store.sqlite import SqliteDatabase

    return SqliteDatabase


class Raw:
    """A record of any kind and with any body, for `Store.record`."""

    def __init__(self, kind: str, body: dict[str, Any]) -> None:
        self.kind = kind
        self._body = body

    def as_body(self) -> dict[str, Any]:
        return self._body
