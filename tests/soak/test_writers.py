"""Many writers, killed at random: what was acknowledged is there, once."""

from __future__ import annotations

import random
import selectors
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from learnt import Memory
from tests.soak import seed_of
from tests.support import faults

pytestmark = pytest.mark.soak

WRITERS = 24
WRITES = 500
ACKNOWLEDGED_PER_KILL = 100
PATIENCE_S = 120


class Writer:
    """One process that adds learnings; when it is killed, another life does the rest."""

    def __init__(self, number: int, count: int, project: Path) -> None:
        self.number = number
        self.acknowledged: list[str] = []
        self.lives = 0
        self._count = count
        self._project = project
        self._log = project.parent / f"writer-{number}.log"
        self._begin_life()

    def _begin_life(self) -> None:
        self.lives += 1
        left = self._count - len(self.acknowledged)
        arguments = (self.number, self.lives, left)
        with self._log.open("ab") as log:
            self._process = faults.start(
                "write_many", *arguments, cwd=self._project, stdout=subprocess.PIPE, stderr=log, bufsize=0
            )

    @property
    def pipe(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)

    def read(self) -> int:
        """Take what was acknowledged since; -1 when this life is over."""
        # A line is shorter than what a pipe takes in one piece, so that none arrives in halves.
        lines = self.pipe.read(1 << 16).decode().splitlines()
        self.acknowledged += lines
        return len(lines) or -1

    def next_life(self) -> bool:
        """Begin another life if something is left to do."""
        self.pipe.close()
        self._process.wait()
        assert self._process.returncode in (0, -signal.SIGKILL), self.complaints()
        if len(self.acknowledged) >= self._count:
            return False
        assert self._process.returncode == -signal.SIGKILL, "a writer stopped early without a word"
        self._begin_life()
        return True

    def complaints(self) -> str:
        return self._log.read_text()


def test_killed_writers_lose_and_double_nothing_that_was_acknowledged(
    database: str,
    project: Path,
    share: Callable[[int], int],
    chance: random.Random,
    pytestconfig: pytest.Config,
) -> None:
    with Memory.open(project) as memory:
        assert memory.learnings().total == 0  # the schema is there before the writers come
    writers = [Writer(number, share(WRITES), project) for number in range(WRITERS)]

    kills = _let_them_write(writers, chance)

    acknowledged = [id for writer in writers for id in writer.acknowledged]
    complaints = "".join(writer.complaints() for writer in writers)
    with Memory.open(project) as memory:
        faults.wait_for_others(memory.context.store.database)
        stored = {learning.id: learning.title for learning in memory.transfer.export()}
        born = [
            row["subject"]
            for row in memory.context.store.database.rows(
                "select subject from event where project = :project and what = 'add'"
            )
        ]
        found = memory.context.store.database.check()
    lost = set(acknowledged) - set(stored)
    doubled = len(stored) - len(set(stored.values())) + len(born) - len(set(born))
    busy = complaints.count("TryAgain")
    print(
        f"\n{'PostgreSQL' if database else 'SQLite'}: {WRITERS} writers x {share(WRITES)}, {kills} kills "
        f"(seed {seed_of(pytestconfig)}): {len(acknowledged):,} acknowledged, {len(stored):,} stored, "
        f"{len(lost)} lost, {doubled} doubled, {busy} busy errors, integrity {'; '.join(found) or 'ok'}"
    )
    assert not complaints, complaints[:3000]
    assert len(acknowledged) == len(set(acknowledged)) == WRITERS * share(WRITES)
    assert lost == set()
    assert doubled == 0
    assert set(born) == set(stored)
    assert len(stored) <= len(acknowledged) + kills
    assert found == []


def _let_them_write(writers: list[Writer], chance: random.Random) -> int:
    """Read until all are done, killing a random one now and then; return how many kills hit."""
    kills = 0
    living = list(writers)
    with selectors.DefaultSelector() as selector:
        for writer in writers:
            selector.register(writer.pipe, selectors.EVENT_READ, writer)
        while living:
            ready = selector.select(PATIENCE_S)
            assert ready, f"no writer moved for {PATIENCE_S} s"
            for key, _ in ready:
                writer = key.data
                count = writer.read()
                if count > 0:
                    for _ in range(count):
                        if chance.randrange(ACKNOWLEDGED_PER_KILL) == 0:
                            chance.choice(living).kill()
                    continue
                selector.unregister(key.fileobj)
                if writer.next_life():
                    kills += 1
                    selector.register(writer.pipe, selectors.EVENT_READ, writer)
                else:
                    living.remove(writer)
    return kills
