"""What the automatic update of learnings files adds to finishing a task: not enough to notice.

Every fifth finished task starts a process that updates them. Its debrief is compared with the one before it, which
starts no process; each round waits until that process is done, so that it does not disturb the next.
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
    """Debrief tasks, with and without what is done for learnings files."""
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
        f"`Memory.debrief` of outputs of {len(OUTPUT) // 1000} kB in one process, {ROUNDS} rounds; "
        "differences are of neighbours.",
        table(("debrief", "median ms", "p95 ms"), rows),
        (Bar(f"starting an update delays its caller by at most {MAX_MS} ms ({median:.1f})", median <= MAX_MS),),
    )


def _starts(folder: Path) -> tuple[list[float], list[float]]:
    """Return how long the debriefs before the due one took, and the due ones."""
    plain, starting = [], []
    numbers = itertools.count()
    with Memory.open(folder) as memory:
        for number in range(ROUNDS + 1):
            times = [_debriefed(memory, f"task_{next(numbers)}") for _ in range(EVERY)]
            _wait_for_update(memory, number + 1)
            plain.append(times[-2])
            starting.append(times[-1])
    return plain[1:], starting[1:]  # the first round loads modules


def _keeps(without: Path, kept: Path) -> tuple[list[float], list[float]]:
    """Return how long debriefs took without and with material that is kept to be learnt from."""
    (without / "learnt.toml").write_text("learnings.enabled = false\n")
    (kept / "learnt.toml").write_text("learnings.regenerate_every = 0\n")
    times: tuple[list[float], list[float]] = ([], [])
    with Memory.open(without) as one, Memory.open(kept) as other:
        for number in range(ROUNDS + 1):
            for memory, measured in zip((one, other), times, strict=True):
                measured.append(_debriefed(memory, f"task_{number}"))
    return times[0][1:], times[1][1:]


def _debriefed(memory: Memory, task: str) -> float:
    started = time.perf_counter()
    memory.debrief(task, OUTPUT, result="done")
    return (time.perf_counter() - started) * 1000


def _wait_for_update(memory: Memory, count: int) -> None:
    until = time.monotonic() + _PATIENCE_S
    while len(memory.file.regenerations(limit=count + 1)) < count or memory.file.is_updating():
        if time.monotonic() > until:
            raise RuntimeError("no update was started, so the time says nothing")
        time.sleep(0.02)


def _row(name: str, times: Sequence[float]) -> list[str]:
    p95 = statistics.quantiles(times, n=20)[18]
    return [name, f"{statistics.median(times):.1f}", f"{p95:.1f}"]
