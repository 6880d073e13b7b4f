"""How many learnings several processes can add to one store at the same time, and whether each gets its turn.

All processes open the store first and then start together. A commit is counted only if it ended within the time; a
wait is always counted.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from queue import Queue

from tests.support.postgres import PostgresServer, find_binaries

from bench.report import Bar, Report, say, table
from bench.workspace import Workspace, on_server
from learnt import LearntError, Memory

WRITERS = (1, 8, 24)
SECONDS = 10
MIN_FAIRNESS = 0.25
_PATIENCE_S = 30
_HEAD = ("store", "writers", "commits/s", "p50 ms", "p99 ms", "longest ms", "fewest", "most", "fewest/mean", "errors")


@dataclass(frozen=True, slots=True)
class Written:
    """The commits, waits and errors of one process."""

    commits: int
    waits_ms: list[float]
    errors: list[str]


@dataclass(frozen=True, slots=True)
class Contest:
    """The results of all processes on one store."""

    store: str
    written: list[Written]

    @property
    def errors(self) -> list[str]:
        """All processes' errors."""
        return [error for written in self.written for error in written.errors]

    @property
    def fairness(self) -> float:
        """The lowest number of commits of a process, as a share of the mean."""
        commits = [written.commits for written in self.written]
        return min(commits) / max(statistics.mean(commits), 1)


def measure(workspace: Workspace) -> Report:
    """Let 1, 8 and 24 processes write to SQLite and, if it is installed, to PostgreSQL."""
    contests = [_contest("SQLite", workspace.new_folder(), writers) for writers in WRITERS]
    binaries = find_binaries()
    if binaries is not None:
        with PostgresServer(binaries) as server:
            contests += [
                _contest("PostgreSQL", on_server(server, workspace.new_folder()), writers) for writers in WRITERS
            ]
    notes = f"Processes that call `Memory.add` on one store for {SECONDS} s."
    errors = sorted({error for contest in contests for error in contest.errors})
    notes += "".join(f"\n- error: {error}" for error in errors[:5])
    bars = [bar for contest in contests for bar in _bars(contest)]
    return Report("Writes", notes, table(_HEAD, [_row(contest) for contest in contests]), tuple(bars))


def _contest(store: str, folder: Path, writers: int) -> Contest:
    say(f"  {store}, {writers} writers")
    with Memory.open(folder) as memory:
        memory.learnings(limit=1)  # creates the tables
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(writers), context.Queue()
    processes = [context.Process(target=_write, args=(folder, barrier, results)) for _ in range(writers)]
    for process in processes:
        process.start()
    written = [results.get(timeout=_PATIENCE_S + SECONDS) for _ in processes]
    for process in processes:
        process.join()
    return Contest(store, written)


def _write(folder: Path, barrier: Barrier, results: Queue[Written]) -> None:
    with Memory.open(folder) as memory:
        memory.learnings(limit=1)  # connects
        barrier.wait(timeout=_PATIENCE_S)
        results.put(_write_until(memory.add, time.perf_counter() + SECONDS))


def _write_until(add: Callable[[str], object], deadline: float) -> Written:
    commits = 0
    waits_ms: list[float] = []
    errors: list[str] = []
    started = time.perf_counter()
    while started < deadline:
        try:
            add(f"Writers take turns, number {len(waits_ms)}")
            commits += time.perf_counter() <= deadline
        except LearntError as error:
            errors.append(error.message)
        ended = time.perf_counter()
        waits_ms.append((ended - started) * 1000)
        started = ended
    return Written(commits, waits_ms, errors)


def _bars(contest: Contest) -> list[Bar]:
    where = f"{contest.store}, {len(contest.written)} writers"
    bars = [Bar(f"{where}: no errors ({len(contest.errors)})", not contest.errors)]
    if len(contest.written) == max(WRITERS):
        text = f"{where}: fewest ≥ {MIN_FAIRNESS} × mean ({contest.fairness:.2f})"
        bars.append(Bar(text, contest.fairness >= MIN_FAIRNESS))
    return bars


def _row(contest: Contest) -> list[str]:
    commits = [written.commits for written in contest.written]
    waits_ms = sorted(wait for written in contest.written for wait in written.waits_ms)
    percentiles = statistics.quantiles(waits_ms, n=100)
    waits = (percentiles[49], percentiles[98], waits_ms[-1])
    return [
        contest.store,
        str(len(commits)),
        f"{sum(commits) / SECONDS:,.0f}",
        *(f"{wait:,.1f}" for wait in waits),
        f"{min(commits):,}",
        f"{max(commits):,}",
        f"{contest.fairness:.2f}",
        str(len(contest.errors)),
    ]
