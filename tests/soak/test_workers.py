"""Many workers on one queue, killed at random: each task is done once, none is lost, nothing is left running."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from learnt import Memory
from tests.soak import seed_of

pytestmark = pytest.mark.soak

WORKERS = 8
TASKS = 300
TASKS_PER_KILL = 15
PATIENCE_S = 1_800
AGENT = """cat > /dev/null
echo '<task-done>did it</task-done>'
"""
SETTINGS = """
[work]
agent = "command"
command = "sh agent.sh"
lease_s = 3
"""


class Worker:
    """One place at the queue: when its process is killed, another takes it."""

    def __init__(self, project: Path, number: int) -> None:
        self._project = project
        self._log = project.parent / f"worker-{number}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def work(self) -> bool:
        """Make sure that somebody works here; False when the last one found nothing left to do."""
        if self._process is not None:
            code = self._process.poll()
            if code == 0:
                return False
            assert code in (None, -9), self._log.read_text()[-2000:]
            if code is None:
                return True
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "learnt", "work", "--all"], cwd=self._project, stdout=log, stderr=log
            )
        return True

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()


def test_killed_workers_do_each_task_once_and_leave_nothing_behind(
    database: str,
    project: Path,
    chance: random.Random,
    share: Callable[[int], int],
    request: pytest.FixtureRequest,
) -> None:
    (project / "agent.sh").write_text(AGENT)
    settings = project / "learnt.toml"
    settings.write_text((settings.read_text() if settings.exists() else "") + SETTINGS)
    count = share(WORKERS * TASKS)
    with Memory.open(project) as memory:
        tasks = [memory.tasks.add(f"Task {number}").id for number in range(count)]
        workers = [Worker(project, number) for number in range(WORKERS)]
        kills = 0
        deadline = time.monotonic() + PATIENCE_S
        while sum(worker.work() for worker in workers):
            assert time.monotonic() < deadline, "the queue does not end"
            time.sleep(0.05)  # paces the killing; nothing is asserted of it
            done = memory.tasks.counts().get("done", 0)
            while kills < min(done, count - WORKERS) // TASKS_PER_KILL:
                chance.choice(workers).kill()
                kills += 1
        results = {task: [attempt.result for attempt in memory.tasks.attempts(task)] for task in tasks}
        assert memory.work.claims() == []
        assert memory.tasks.counts() == {"done": count}
    done_once = sum(result.count("done") == 1 for result in results.values())
    interrupted = sum(result.count("interrupted") for result in results.values())
    others = {one for result in results.values() for one in result} - {"done", "interrupted"}
    assert done_once == count
    assert not others
    assert list(_agents_of(project)) == []
    print(
        f"\n{'PostgreSQL' if database else 'SQLite'}: {WORKERS} workers, {count:,} tasks, {kills} kills "
        f"(seed {seed_of(request.config)}): {done_once:,} done once, {interrupted} interrupted, 0 lost, 0 left claimed"
    )


def _agents_of(project: Path) -> Iterator[int]:
    """Yield the processes that work in the project."""
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                if os.readlink(f"/proc/{name}/cwd") == str(project) and int(name) != os.getpid():
                    yield int(name)
            except OSError:
                continue
