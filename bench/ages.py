"""How long `learnt ages` takes, compared with what git itself needs to blame the file and to list the history."""

from __future__ import annotations

import functools
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench.processes import LEARNT, Run, time_side_by_side
from bench.report import Bar, Report, say, table
from bench.workspace import Workspace, record
from learnt import Memory

ENTRIES, COMMITS = 400, 5_000
STAGING = "learnings-staging.md"
MAX_RATIO, AIM = 3.0, 1.5
ROUNDS = 11
_SOURCES = 200
_FIRST_S, _APART_S = 1_700_000_000, 3 * 3_600
BLAME, LOG, AGES = "git blame -C -C", "git log", "learnt ages"


def measure(workspace: Workspace) -> Report:
    """Compare one run of `learnt ages` with one blame and one log."""
    folder = workspace.new_folder()
    say(f"  a history of {COMMITS:,} commits with {ENTRIES} entries; {ROUNDS} rounds")
    _make_repository(folder)
    with Memory.open(folder):
        pass
    commands = {
        BLAME: ("git", "blame", "-C", "-C", STAGING),
        LOG: ("git", "log", "--date=short", "--format=%ad"),
        AGES: (LEARNT, "ages", "--json"),
    }
    starts = {name: functools.partial(Run, words, folder) for name, words in commands.items()}
    times = {name: timing.wall_ms for name, timing in time_side_by_side(starts, rounds=ROUNDS).items()}
    ratio = times[AGES] / (times[BLAME] + times[LOG])
    rows = [[f"`{name}`", f"{times[name]:.0f}"] for name in commands]
    text = f"`learnt ages` ≤ {MAX_RATIO:g} × the time of blame and log, aiming at {AIM:g} ({ratio:.2f})"
    notes = (
        f"A file with {ENTRIES} entries in a history of {COMMITS:,} commits, medians of {ROUNDS} rounds of cold "
        "processes, in ms."
    )
    return Report("Ages", notes, table(("command", "ms"), rows), (Bar(text, ratio <= MAX_RATIO),))


def _make_repository(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
    stream = "".join(_commits(random.Random(ENTRIES))).encode()
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, input=stream, check=True)
    subprocess.run(["git", "reset", "-q", "--hard"], cwd=folder, check=True)


def _commits(chance: random.Random) -> Iterator[str]:
    """Yield git's import format: entries are added at even distances, and every other commit changes a source file."""
    entries: list[str] = []
    for number in range(COMMITS):
        path = f"src/module_{chance.randrange(_SOURCES)}.py"
        content = f"value = {number}\n" * 20
        if number * ENTRIES // COMMITS >= len(entries):
            fields = record(chance)
            entries.append(f"## {fields['title']}\n\n{fields['observation']}\n\nAction: {fields['action']}\n\n")
            path, content = STAGING, "# Learnings\n\n" + "".join(entries)
        at = f"{_FIRST_S + number * _APART_S} +0200"
        yield f"commit refs/heads/main\nauthor A <a@example.org> {at}\ncommitter A <a@example.org> {at}\n"
        yield f"data 4\nwork\nM 100644 inline {path}\ndata {len(content.encode())}\n{content}\n"
