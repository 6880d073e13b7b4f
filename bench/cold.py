"""What a hook and a brief cost as cold processes in a store of 10,000 learnings: time, and memory."""

from __future__ import annotations

import functools
import random
import subprocess
import sys
from pathlib import Path

from bench.processes import BARE, LEARNT, Run, time_side_by_side
from bench.recall import natural_learning, natural_word
from bench.report import Bar, Report, say, table
from bench.workspace import Workspace
from learnt import Memory

LEARNINGS = 10_000
ROUNDS = 21
MOST_RATIO = 5.0
MOST_MB = 40


def measure(workspace: Workspace) -> Report:
    """Brief a task of forty words, and let a hook come by."""
    folder = workspace.new_folder()
    chance = random.Random(LEARNINGS)
    say(f"  storing {LEARNINGS:,} learnings")
    with Memory.open(folder) as memory:
        for _ in range(0, LEARNINGS, 1_000):
            memory.add_all([natural_learning(chance) for _ in range(1_000)])
        known = memory.learnings(limit=1).learnings[0].title
    text = f"{known} " + " ".join(natural_word(chance) for _ in range(32))
    lines = {"brief": (LEARNT, "brief", text), "hook": (LEARNT, "hook")}
    starts = {name: functools.partial(Run, words, folder) for name, words in lines.items()}
    times = time_side_by_side(starts, rounds=ROUNDS)
    rows, bars = [], []
    for name, words in lines.items():
        ratio, megabytes = times[name] / times[BARE], _peak_megabytes(words, folder)
        rows.append([name, f"{times[name]:.1f}", f"{ratio:.1f}", f"{megabytes:.0f}"])
        bars.append(Bar(f"cold `learnt {name}` ≤ {MOST_RATIO} × bare Python ({ratio:.1f})", ratio <= MOST_RATIO))
        bars.append(Bar(f"cold `learnt {name}` ≤ {MOST_MB} MB ({megabytes:.0f})", megabytes <= MOST_MB))
    notes = (
        f"{LEARNINGS:,} learnings, a task of 40 words, medians of {ROUNDS} rounds; bare Python: {times[BARE]:.1f} ms."
    )
    return Report("Cold", notes, table(("command", "ms", "× bare Python", "MB"), rows), tuple(bars))


def _peak_megabytes(words: tuple[str, ...], folder: Path) -> float:
    """Return the peak memory of a process; it is measured in a child of a child, whose children are it alone."""
    program = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, "
        "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return int(done.stdout) / unit
