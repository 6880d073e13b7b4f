"""The time and memory that a cold `learnt hook` needs for each client event, with 10,000 learnings."""

from __future__ import annotations

import itertools
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.processes import BARE, LEARNT, Run, peak_megabytes, time_side_by_side
from bench.recall import natural_learning, natural_word
from bench.report import Bar, Report, say, table
from bench.workspace import Workspace
from learnt import Memory
from learnt.flow.background import is_at_work, worker_state

LEARNINGS = 10_000
ROUNDS = 21
MAX_RATIO = 5.2
MAX_MB = 60
PINNED = 5
WRONG = {"command": "npx release --quick"}
RIGHT = {"command": "npx release --safe"}
COMPLAINT = "Exit code 2\nrelease: unknown option --quick"
PARALLEL = 10
PARALLEL_ROUNDS = 7
MAX_ADDED = 4.0
"""How many hooks that stop a call may take as long as what the hooks of ten calls at once add to one such hook."""
WITHOUT_ANSWER = ("call without a warning", "result that succeeded", "stop", "end")
"""The events to which the hook does not answer."""


def measure(workspace: Workspace) -> Report:
    """Start the hook for each event; every event that can have an answer has one."""
    folder = workspace.new_folder()
    chance = random.Random(LEARNINGS)
    say(f"  storing {LEARNINGS:,} learnings")
    title = _fill(folder, chance)
    _record_misstep(folder)
    starts = dict(_events(folder, f"{title} " + " ".join(natural_word(chance) for _ in range(32))))
    for name, start in starts.items():
        has_answer = bool(_run_hook(start()))
        if has_answer == (name in WITHOUT_ANSWER):
            raise RuntimeError(
                f"{name}: {'unexpected' if has_answer else 'missing'} answer, so its time is meaningless"
            )
    times = time_side_by_side(starts, rounds=ROUNDS, before_each=lambda: _wait_for_worker(folder))
    rows, bars = [], []
    for name, start in starts.items():
        _wait_for_worker(folder)
        ratio, megabytes = times[name].cpu_ms / times[BARE].cpu_ms, peak_megabytes(start())
        figures = (f"{times[name].wall_ms:.1f}", f"{times[name].cpu_ms:.1f}", f"{ratio:.1f}", f"{megabytes:.0f}")
        rows.append([name, *figures])
        bars.append(Bar(f"{name}: CPU ≤ {MAX_RATIO} × bare Python ({ratio:.1f})", ratio <= MAX_RATIO))
        bars.append(Bar(f"{name} ≤ {MAX_MB} MB ({megabytes:.0f})", megabytes <= MAX_MB))
    _wait_for_worker(folder)
    parallel, parallel_bars = _measure_parallel(folder)
    bars += parallel_bars
    notes = (
        f"`learnt hook --client claude`, {LEARNINGS:,} learnings, a new conversation each time, medians of {ROUNDS} "
        f"rounds; bare Python: {times[BARE].wall_ms:.1f} ms, {times[BARE].cpu_ms:.1f} ms of processor time. "
        "The worker that a stop starts ends before the next run. " + parallel
    )
    return Report("Hooks", notes, table(("event", "ms", "CPU ms", "× bare Python", "MB"), rows), tuple(bars))


def _measure_parallel(folder: Path) -> tuple[str, list[Bar]]:
    """Start the hooks of ten calls at once, one of which is stopped, beside two busy processes; return a note and bars.

    The hook that stops a call alone, and bare Pythons, alone and ten at once, are measured in turn with them, under the
    same load. On two cores, ten processes take five times as long as one even if they share nothing.
    """
    log = folder / ".learnt" / "hook.log"
    log.unlink(missing_ok=True)
    busy = [subprocess.Popen((sys.executable, "-c", "while True: pass")) for _ in range(2)]
    bare = Run((sys.executable, "-c", "pass"), folder)
    times: dict[str, list[float]] = {}
    stopped = []
    try:
        for number in range(PARALLEL_ROUNDS):
            commands = [WRONG, *({"command": f"make part{part}"} for part in range(1, PARALLEL))]
            alone, *others = (_call(folder, f"{kind} {number}", commands[0]) for kind in ("alone", "first"))
            ten = [*others, *(_call(folder, f"first {number}", command) for command in commands[1:])]
            for name, runs in {"hook": [alone], "hooks": ten, "Python": [bare], "Pythons": [bare] * PARALLEL}.items():
                began = time.perf_counter()
                answers = [_end(process) for process in [_start(run) for run in runs]]
                times.setdefault(name, []).append(time.perf_counter() - began)
                stopped += answers[:1] if runs[0] is not bare else []
    finally:
        for process in busy:
            process.kill()
            process.wait()
    gave_up = (log.read_text() if log.exists() else "").count("\n") + stopped.count(b"")
    one, ten_at_once, python, pythons = (statistics.median(measured) * 1000 for measured in times.values())
    added = (ten_at_once - one) / one
    note = (
        f"Beside two busy processes, the hook that stops a call takes {one:.0f} ms, and the hooks of ten calls at "
        f"once, one of which is stopped, take {ten_at_once:.0f} ms, which adds {added:.1f} hooks; {gave_up} gave up. "
        f"Ten bare Pythons at once add {(pythons - python) / python:.1f} to one."
    )
    bars = [
        Bar(f"ten hooks at once add ≤ {MAX_ADDED} hooks that stop a call ({added:.1f})", added <= MAX_ADDED),
        Bar(f"no hook gives up ({gave_up})", not gave_up),
    ]
    return note, bars


def _call(folder: Path, session: str, command: dict[str, str]) -> Run:
    return _hook(folder, "PreToolUse", session, tool_name="Bash", tool_input=command)


def _start(run: Run) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(run.words, cwd=run.folder, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
    assert process.stdin
    process.stdin.write(run.stdin)
    process.stdin.close()
    return process


def _end(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout
    answer = process.stdout.read()
    process.wait()
    return answer


def _fill(folder: Path, chance: random.Random) -> str:
    """Store the learnings, and pin a few of them; return the title of a learning that is not pinned."""
    with Memory.open(folder) as memory:
        for _ in range(0, LEARNINGS, 1_000):
            memory.add_all([natural_learning(chance) for _ in range(1_000)])
        learnings = memory.learnings(limit=PINNED + 1).learnings
        for learning in learnings[1:]:
            memory.pin(learning.id)
        return learnings[0].title


def _record_misstep(folder: Path) -> None:
    """Report a command that fails, and another command that works instead."""
    for name, fields in (
        ("PostToolUseFailure", {"tool_input": WRONG, "error": COMPLAINT}),
        ("PostToolUse", {"tool_input": RIGHT, "tool_response": {"stdout": "released"}}),
    ):
        _run_hook(_hook(folder, name, "first", tool_name="Bash", **fields))


def _events(folder: Path, text: str) -> Iterator[tuple[str, Callable[[], Run]]]:
    """Yield the name of each measured event, and a function that returns its run."""
    numbers = itertools.count()
    bash = {"tool_name": "Bash"}
    failed: dict[str, Any] = {**bash, "tool_input": WRONG, "error": COMPLAINT}
    succeeded: dict[str, Any] = {**bash, "tool_input": {"command": "make build"}, "tool_response": {"stdout": "built"}}

    def start(name: str, **fields: Any) -> Callable[[], Run]:
        return lambda: _hook(folder, name, **{"session": f"session {next(numbers)}", **fields})

    yield "session start", start("SessionStart", source="startup")
    yield "prompt", start("UserPromptSubmit", prompt=text)
    yield "sub-agent's errand", start("UserPromptSubmit", prompt=text, agent_id="a1", agent_type="general-purpose")
    yield "call with a warning", start("PreToolUse", **bash, tool_input=WRONG)
    yield "call without a warning", start("PreToolUse", **bash, tool_input={"command": "make build"})
    yield "result that failed", start("PostToolUseFailure", **failed)
    yield "result that succeeded", start("PostToolUse", **succeeded)
    _run_hook(start("UserPromptSubmit", session="compacted", prompt=text)())
    yield "start after a compaction", start("SessionStart", session="compacted", source="compact")
    yield "stop", start("Stop", last_assistant_message="The cart is emptied once.\n<learning>Lock the cart</learning>")
    yield "end", start("SessionEnd", reason="other")


def _hook(folder: Path, name: str, session: str, **fields: Any) -> Run:
    event = {"hook_event_name": name, "session_id": session, "cwd": str(folder), **fields}
    return Run((LEARNT, "hook", "--client", "claude"), folder, stdin=json.dumps(event).encode())


def _run_hook(run: Run) -> bytes:
    _wait_for_worker(run.folder)
    return subprocess.run(run.words, cwd=run.folder, input=run.stdin, capture_output=True, check=True).stdout


def _wait_for_worker(folder: Path) -> None:
    """Wait until no worker is running or about to run, because it would slow the measured process down."""
    store_folder = str(folder / ".learnt")
    while worker_state(store_folder)[0] in ("started", "begun") or is_at_work(store_folder):
        time.sleep(0.005)
