"""Time whole cold processes, as users start them, side by side with a bare Python.

Each round runs every command once, in a new order, so that other load on the machine affects all commands equally. A
command that fails stops the measurement, because a failure can be fast.
"""

from __future__ import annotations

import random
import resource
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
    """One start of a process: its command line, folder and input."""

    words: tuple[str, ...]
    folder: Path
    stdin: bytes = b""


@dataclass(frozen=True, slots=True)
class Timing:
    """A run's wall-clock time, and its processor time, which other load on the machine affects less."""

    wall_ms: float
    cpu_ms: float


def time_side_by_side(
    commands: Mapping[str, Callable[[], Run]], *, rounds: int, before_each: Callable[[], None] = lambda: None
) -> dict[str, Timing]:
    """Return each command's median times, and those of bare Python with the same interpreter.

    A command's next run is prepared before the time is measured, so that each run can have its own learning.
    `before_each` is called before each run, for example to wait for earlier runs' background processes.
    """
    starts = {BARE: lambda: bare(sys.executable), **commands}
    for start in starts.values():
        before_each()
        _run(start())  # the first run fills the file caches
    times: dict[str, list[Timing]] = {name: [] for name in starts}
    chance = random.Random(rounds)
    for _ in range(rounds):
        for name in chance.sample(list(starts), len(starts)):
            before_each()
            times[name].append(_run(starts[name]()))
    return {name: _median(measured) for name, measured in times.items()}


def bare(python: str) -> Run:
    """Return a run of an interpreter that does nothing."""
    return Run((python, "-c", "pass"), Path.cwd())


def _median(timings: list[Timing]) -> Timing:
    wall_ms, cpu_ms = [timing.wall_ms for timing in timings], [timing.cpu_ms for timing in timings]
    return Timing(statistics.median(wall_ms), statistics.median(cpu_ms))


def _run(run: Run) -> Timing:
    began, cpu_before = time.perf_counter(), _cpu_ms_of_children()
    done = subprocess.run(
        run.words, cwd=run.folder, input=run.stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    timing = Timing((time.perf_counter() - began) * 1000, _cpu_ms_of_children() - cpu_before)
    if done.returncode:
        raise RuntimeError(f"{' '.join(run.words)} ended with {done.returncode}: {done.stderr.decode()}")
    return timing


def _cpu_ms_of_children() -> float:
    """Return the processor time of all children that have ended and have been waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def peak_megabytes(run: Run) -> float:
    """Return a process's peak memory. It is measured by a helper process whose only child is that process."""
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
