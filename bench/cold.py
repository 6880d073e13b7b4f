"""The time and memory that a hook and a brief need as cold processes with 10,000 learnings.

If `LEARNT_BENCH_OTHER=/path/to/python` is the interpreter of another checkout, its commands are measured in the same
rounds, in a copy of the same store, and the last table compares the two.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from bench.processes import BARE, LEARNT, Run, Timing, bare, peak_megabytes, time_side_by_side
from bench.recall import natural_learning, natural_word
from bench.report import Bar, Report, say, table
from bench.workspace import Workspace
from learnt import Memory

LEARNINGS = 10_000
ROUNDS = 31
MAX_CPU_RATIO = 5.2
MAX_MB = 60
OTHER = os.environ.get("LEARNT_BENCH_OTHER", "")
COMMANDS = ("brief", "hook")
Starts = dict[str, Callable[[], Run]]


def measure(workspace: Workspace) -> Report:
    """Brief a task of forty words, with a command and through a hook; neither brief is empty."""
    folder = workspace.new_folder()
    text = _fill(folder)
    others: Starts = {}
    if OTHER:
        copy = workspace.new_folder()
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        theirs = _starts(str(Path(OTHER).parent / "learnt"), copy, text)
        others = {_other(name): start for name, start in (theirs | {BARE: lambda: bare(OTHER)}).items()}
    starts = _starts(LEARNT, folder, text)
    for name, start in (starts | others).items():
        if name.startswith("hook"):
            _check_hook_answers(start())
    times = time_side_by_side(starts | others, rounds=ROUNDS)
    memory = {name: peak_megabytes((starts | others)[name]()) for name in times if name != BARE}
    rows = [_row(times, memory, name, BARE) for name in COMMANDS]
    rows += [_row(times, memory, _other(name), _other(BARE)) for name in COMMANDS if OTHER]
    head = ("command", "ms", "× bare Python", "CPU ms", "× bare Python", "MB")
    tables = [table(head, rows), *([_comparison(times)] if OTHER else [])]
    return Report("Cold", _notes(times), "\n\n".join(tables), tuple(_bars(times, memory)))


def prompt_event(prompt: str, *, session: str) -> bytes:
    """Return the event that a client sends to a hook after a person has written a prompt."""
    event = {"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": ".", "prompt": prompt}
    return json.dumps(event).encode()


def _fill(folder: Path) -> str:
    """Store the learnings; return a task of forty words, eight of which are the title of a learning."""
    chance = random.Random(LEARNINGS)
    say(f"  storing {LEARNINGS:,} learnings")
    with Memory.open(folder) as memory:
        for _ in range(0, LEARNINGS, 1_000):
            memory.add_all([natural_learning(chance) for _ in range(1_000)])
        title = memory.learnings(limit=1).learnings[0].title
    return f"{title} " + " ".join(natural_word(chance) for _ in range(32))


def _starts(learnt: str, folder: Path, text: str) -> Starts:
    numbers = itertools.count()
    return {
        "brief": lambda: Run((learnt, "brief", text), folder),
        "hook": lambda: Run((learnt, "hook"), folder, stdin=prompt_event(text, session=f"session {next(numbers)}")),
    }


def _other(name: str) -> str:
    return f"{name} (other)"


def _row(times: dict[str, Timing], memory: dict[str, float], name: str, bare_name: str) -> list[str]:
    own, base = times[name], times[bare_name]
    return [
        name,
        f"{own.wall_ms:.1f}",
        f"{own.wall_ms / base.wall_ms:.2f}",
        f"{own.cpu_ms:.1f}",
        f"{own.cpu_ms / base.cpu_ms:.2f}",
        f"{memory[name]:.0f}",
    ]


def _comparison(times: dict[str, Timing]) -> str:
    """Return a table of this checkout's times divided by the other checkout's."""
    pairs = [(name, times[name], times[_other(name)]) for name in (BARE, *COMMANDS)]
    rows = [
        [name, f"{ours.wall_ms / their.wall_ms:.3f}", f"{ours.cpu_ms / their.cpu_ms:.3f}"]
        for name, ours, their in pairs
    ]
    return table(("this / other", "ms", "CPU ms"), rows)


def _bars(times: dict[str, Timing], memory: dict[str, float]) -> list[Bar]:
    bars = []
    for name in COMMANDS:
        ratio = times[name].cpu_ms / times[BARE].cpu_ms
        bar = f"cold `learnt {name}`: CPU ≤ {MAX_CPU_RATIO} × bare Python ({ratio:.2f})"
        bars.append(Bar(bar, ratio <= MAX_CPU_RATIO))
        bars.append(Bar(f"cold `learnt {name}` ≤ {MAX_MB} MB ({memory[name]:.0f})", memory[name] <= MAX_MB))
    return bars


def _notes(times: dict[str, Timing]) -> str:
    base = times[BARE]
    notes = f"{LEARNINGS:,} learnings, a task of 40 words, medians of {ROUNDS} rounds."
    notes += f" Bare Python: {base.wall_ms:.1f} ms, {base.cpu_ms:.1f} ms of processor time."
    return notes + (f" The other checkout: `{OTHER}`." if OTHER else "")


def _check_hook_answers(run: Run) -> None:
    done = subprocess.run(run.words, cwd=run.folder, input=run.stdin, capture_output=True, check=True)
    if b"additionalContext" not in done.stdout:
        raise RuntimeError("the hook's answer is empty, so its time is meaningless")
