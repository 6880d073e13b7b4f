"""What a hook and a brief cost as cold processes in a store of 10,000 learnings: time, and memory."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
from collections.abc import Callable

from bench.processes import BARE, LEARNT, Run, peak_megabytes, time_side_by_side
from bench.recall import natural_learning, natural_word
from bench.report import Bar, Report, say, table
from bench.workspace import Workspace
from learnt import Memory

LEARNINGS = 10_000
ROUNDS = 21
MOST_RATIO = 5.0
MOST_MB = 40


def measure(workspace: Workspace) -> Report:
    """Brief a task of forty words, by hand and through a hook; both have something to say."""
    folder = workspace.new_folder()
    chance = random.Random(LEARNINGS)
    say(f"  storing {LEARNINGS:,} learnings")
    with Memory.open(folder) as memory:
        for _ in range(0, LEARNINGS, 1_000):
            memory.add_all([natural_learning(chance) for _ in range(1_000)])
        known = memory.learnings(limit=1).learnings[0].title
    text = f"{known} " + " ".join(natural_word(chance) for _ in range(32))
    numbers = itertools.count()
    starts: dict[str, Callable[[], Run]] = {
        "brief": lambda: Run((LEARNT, "brief", text), folder),
        "hook": lambda: Run((LEARNT, "hook"), folder, stdin=prompt_event(text, session=f"session {next(numbers)}")),
    }
    _check_that_the_hook_answers(starts["hook"]())
    times = time_side_by_side(starts, rounds=ROUNDS)
    rows, bars = [], []
    for name, start in starts.items():
        ratio, megabytes = times[name] / times[BARE], peak_megabytes(start())
        rows.append([name, f"{times[name]:.1f}", f"{ratio:.1f}", f"{megabytes:.0f}"])
        bars.append(Bar(f"cold `learnt {name}` ≤ {MOST_RATIO} × bare Python ({ratio:.1f})", ratio <= MOST_RATIO))
        bars.append(Bar(f"cold `learnt {name}` ≤ {MOST_MB} MB ({megabytes:.0f})", megabytes <= MOST_MB))
    notes = (
        f"{LEARNINGS:,} learnings, a task of 40 words, medians of {ROUNDS} rounds; bare Python: {times[BARE]:.1f} ms."
    )
    return Report("Cold", notes, table(("command", "ms", "× bare Python", "MB"), rows), tuple(bars))


def prompt_event(prompt: str, *, session: str) -> bytes:
    """Return what a client sends to a hook when a person has written a prompt."""
    event = {"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": ".", "prompt": prompt}
    return json.dumps(event).encode()


def _check_that_the_hook_answers(run: Run) -> None:
    done = subprocess.run(run.words, cwd=run.folder, input=run.stdin, capture_output=True, check=True)
    if b"additionalContext" not in done.stdout:
        raise RuntimeError("the hook has nothing to say, so its time says nothing")
