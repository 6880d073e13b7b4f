"""How long `learnt list` takes in a large store. It shows one page, so the store's size should hardly matter."""

from __future__ import annotations

import functools
from pathlib import Path

from bench.processes import BARE, LEARNT, Run, time_side_by_side
from bench.report import Bar, Report, say, table
from bench.workspace import DOMAINS, TAGS, Workspace

SMALL, LARGE = 100, 100_000
MAX_RATIO = 3
ROUNDS = 21
PLAIN = "list"
LISTS = {
    PLAIN: (),
    "list --status all": ("--status", "all"),
    "list --domain": ("--domain", DOMAINS[0]),
    "list --min-confidence": ("--min-confidence", "0.8"),
    "list --tag": ("--tag", TAGS[0]),
}


def measure(workspace: Workspace) -> Report:
    """Run each list in a small and in a large store."""
    folders = {count: workspace.filled(count).folder for count in (SMALL, LARGE)}
    say(f"  {ROUNDS} rounds")
    starts = {
        f"{name} {count}": functools.partial(_run, folder, options)
        for name, options in LISTS.items()
        for count, folder in folders.items()
    }
    times = {name: timing.wall_ms for name, timing in time_side_by_side(starts, rounds=ROUNDS).items()}
    pairs = {name: (times[f"{name} {SMALL}"], times[f"{name} {LARGE}"]) for name in LISTS}
    rows = [
        [f"`learnt {name}`", *(f"{ms:.1f}" for ms in pair), f"{pair[1] / pair[0]:.2f}"] for name, pair in pairs.items()
    ]
    ratio = pairs[PLAIN][1] / pairs[PLAIN][0]
    bar = Bar(f"`learnt list`: {LARGE:,} ≤ {MAX_RATIO} × {SMALL} learnings ({ratio:.2f})", ratio <= MAX_RATIO)
    notes = f"Cold processes, medians of {ROUNDS} rounds, in ms; bare Python takes {times[BARE]:.1f} ms."
    head = ("command", f"{SMALL:,} learnings", f"{LARGE:,} learnings", "ratio")
    return Report("List", notes, table(head, rows), (bar,))


def _run(folder: Path, options: tuple[str, ...]) -> Run:
    return Run((LEARNT, "list", *options), folder)
