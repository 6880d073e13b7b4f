"""Time whole cold processes, as users start them, side by side with a bare Python.

Each round runs every command once, in a new order, so that a busy moment of the machine falls on all alike. A command
that ends with an error stops the measurement: a failure can be fast.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

BARE = "bare Python"
LEARNT = str(Path(sys.executable).parent / "learnt")


@dataclass(frozen=True, slots=True)
class Run:
    """One start of a process: its words, where it starts, and what it reads."""

    words: tuple[str, ...]
    folder: Path
    stdin: bytes = b""


def time_side_by_side(
    commands: Mapping[str, Callable[[], Run]], *, rounds: int, before_each: Callable[[], None] = lambda: None
) -> dict[str, float]:
    """Return the median milliseconds of each command, and of bare Python with the same interpreter.

    A command is asked for its next run before the watch starts, so that each run can have a learning of its own.
    `before_each` waits, before any run, for what an earlier one has left running.
    """
    starts = {BARE: lambda: Run((sys.executable, "-c", "pass"), Path.cwd()), **commands}
    for start in starts.values():
        before_each()
        _run(start())  # the first one fills the file caches
    times: dict[str, list[float]] = {name: [] for name in starts}
    chance = random.Random(rounds)
    for _ in range(rounds):
        for name in chance.sample(list(starts), len(starts)):
            before_each()
            times[name].append(_run(starts[name]()))
    return {name: statistics.median(measured) for name, measured in times.items()}


def _run(run: Run) -> float:
    started = time.perf_counter()
    done = subprocess.run(
        run.words, cwd=run.folder, input=run.stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    taken_ms = (time.perf_counter() - started) * 1000
    if done.returncode:
        raise RuntimeError(f"{' '.join(run.words)} ended with {done.returncode}: {done.stderr.decode()}")
    return taken_ms


def peak_megabytes(run: Run) -> float:
    """Return the peak memory of a process; it is measured in a child of a child, whose children are it alone."""
    program = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], "
        "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *run.words], cwd=run.folder, input=run.stdin, capture_output=True, check=True
    )
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return int(done.stdout) / unit
