"""How much the automatic update of learnings files slows down a debrief. It must not be noticeable.

Every fifth finished task starts a process that updates the files. That task's debrief is compared with the debrief
before it, which does not start a process. Each round waits until the process has ended, so that it does not slow down
the next round.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from bench.report import Bar, Report, say, table
from bench.workspace import Workspace
from learnt import Memory

ROUNDS = 60
EVERY = 5
MAX_MS = 20
OUTPUT = "I looked at the next part, and changed what had to be changed.\n" * 600
_PATIENCE_S = 60


def measure(workspace: Workspace) -> Report:
    """Debrief tasks, with and without the work for learnings files."""
    say(f"  {ROUNDS} rounds of {EVERY} tasks")
    plain, starting = _starts(workspace.new_folder())
    without, kept = _keeps(workspace.new_folder(), workspace.new_folder())
    started = [after - before for before, after in zip(plain, starting, strict=True)]
    keeping = [after - before for before, after in zip(without, kept, strict=True)]
    rows = [
        _row(f"task {EVERY - 1} of {EVERY}", plain),
        _row(f"task {EVERY} of {EVERY}, which starts the process", starting),
        _row("difference", started),
        _row("learnings off", without),
        _row("learnings on, no process", kept),
        _row("difference", keeping),
    ]
    median = statistics.median(started)
    return Report(
        "Start of an update",
        f"`Memory.debrief` with outputs of {len(OUTPUT) // 1000} kB in one process, {ROUNDS} rounds; "
        "differences are between successive debriefs.",
        table(("debrief", "median ms", "p95 ms"), rows),
        (Bar(f"starting an update delays its caller by at most {MAX_MS} ms ({median:.1f})", median <= MAX_MS),),
    )


def _starts(folder: Path) -> tuple[list[float], list[float]]:
    """Return how long the debriefs that start an update took, after the times of the debriefs just before them."""
    plain, starting = [], []
    numbers = itertools.count()
    with Memory.open(folder) as memory:
        for number in range(ROUNDS + 1):
            times = [_time_debrief_ms(memory, f"task_{next(numbers)}") for _ in range(EVERY)]
            _wait_for_update(memory, number + 1)
            plain.append(times[-2])
            starting.append(times[-1])
    return plain[1:], starting[1:]  # the first round loads modules


def _keeps(without: Path, kept: Path) -> tuple[list[float], list[float]]:
    """Return how long debriefs took without and with storing material to learn from."""
    (without / "learnt.toml").write_text("learnings.enabled = false\n")
    (kept / "learnt.toml").write_text("learnings.regenerate_every = 0\n")
    times: tuple[list[float], list[float]] = ([], [])
    with Memory.open(without) as memory_off, Memory.open(kept) as memory_on:
        for number in range(ROUNDS + 1):
            for memory, measured in zip((memory_off, memory_on), times, strict=True):
                measured.append(_time_debrief_ms(memory, f"task_{number}"))
    return times[0][1:], times[1][1:]


def _time_debrief_ms(memory: Memory, task: str) -> float:
    started = time.perf_counter()
    memory.debrief(task, OUTPUT, result="done")
    return (time.perf_counter() - started) * 1000


def _wait_for_update(memory: Memory, count: int) -> None:
    until = time.monotonic() + _PATIENCE_S
    while len(memory.file.regenerations(limit=count + 1)) < count or memory.file.is_updating():
        if time.monotonic() > until:
            raise RuntimeError("no update was started, so the time is meaningless")
        time.sleep(0.02)


def _row(name: str, times: Sequence[float]) -> list[str]:
    p95 = statistics.quantiles(times, n=20)[18]
    return [name, f"{statistics.median(times):.1f}", f"{p95:.1f}"]
