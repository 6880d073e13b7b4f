"""Stores that tests start with. learnt creates one, which is then copied, because creating one takes far longer."""

from __future__ import annotations

import atexit
import os
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from learnt import Memory, __version__
from learnt.store import migrate
from learnt.store.postgres import PostgresDatabase

# The files of a SQLite store; the other files belong to the project in which it was created.
_FILES = (".gitignore", "learnt.db")


def put_store(project: Path) -> None:
    """Create a SQLite store in a project, unless it has one."""
    folder = project / ".learnt"
    if (folder / "learnt.db").exists():
        return
    folder.mkdir(mode=0o700, exist_ok=True)
    for name in _FILES:
        source = Path(_new_store().name) / ".learnt" / name
        # Nothing is changed after it was written, as in a store that learnt made itself: trust looks at the times.
        with open(folder / name, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(source.read_bytes())


def make_tables(address: str) -> None:
    """Create learnt's tables in an empty database on a server."""
    database = PostgresDatabase(address, project="shop", wait_ms=60_000)
    migrate.bring_up_to_date(database, version=__version__, now_ms=1_700_000_000_000)
    database.close()


@cache
def _new_store() -> TemporaryDirectory[str]:
    folder = TemporaryDirectory(prefix="learnt-store-")
    atexit.register(folder.cleanup)
    with Memory.open(folder.name) as memory:
        assert memory.learnings().total == 0
    return folder
