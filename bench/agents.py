"""What it costs to render the template of an agent's prompt, with and without the process's cache."""

from __future__ import annotations

import os
import random
import statistics
import time
from pathlib import Path

from bench.report import Bar, Report, say, table
from bench.workspace import Workspace, record
from learnt import Memory

SIZES = (100, 1_000, 10_000)
ROUNDS = 60
MAX_GROWTH = 2.0
AGENT = "engineer"
TEMPLATE = "You are an engineer.\n\n{{ learnings }}\nYour task: {{ task }}\n"
CATEGORIES = ("git", "pytest", "azure-devops", "security", "architecture", "testing", "")


def measure(workspace: Workspace) -> Report:
    """Render with stores of several sizes, alternating between no learnings, the cache, and no cache."""
    rows, with_cache = [], []
    for size in SIZES:
        say(f"  {size:,} learnings")
        plain, cached, uncached = _times(workspace.new_folder(), size)
        rows.append([f"{size:,}", f"{plain:.2f}", f"{cached:.2f}", f"{uncached:.2f}", f"{uncached / cached:.2f}"])
        with_cache.append(cached)
    growth = with_cache[-1] / with_cache[0]
    notes = (
        f"`Memory.render_agent` in one process, medians of {ROUNDS} rounds in ms of processor time; the learnings are "
        f"recorded as a brief each time. There are {len(CATEGORIES)} categories, and `{AGENT}` sees four of them."
    )
    bar = Bar(
        f"with the cache, {SIZES[-1]:,} learnings cost at most {MAX_GROWTH} × {SIZES[0]:,} ({growth:.2f})",
        growth <= MAX_GROWTH,
    )
    heads = ("learnings", "without learnings", "cached", "uncached", "uncached / cached")
    return Report("Agent templates", notes, table(heads, rows), (bar,))


def _times(folder: Path, size: int) -> list[float]:
    """Return how long a rendering takes without learnings, with the cache and without it, in milliseconds."""
    _fill(folder, size)
    times: list[list[float]] = [[], [], []]
    with _open_memory(folder, ttl_s=300) as with_cache, _open_memory(folder, ttl_s=0) as without_cache:
        for _ in range(ROUNDS + 1):
            times[0].append(_time_rendering_ms(with_cache, inject=False))
            times[1].append(_time_rendering_ms(with_cache))
            times[2].append(_time_rendering_ms(without_cache))
    return [statistics.median(measured[1:]) for measured in times]  # the first round loads modules and fills the cache


def _open_memory(folder: Path, *, ttl_s: int) -> Memory:
    os.environ["LEARNT_CACHE_TTL_S"] = str(ttl_s)
    try:
        return Memory.open(folder)
    finally:
        del os.environ["LEARNT_CACHE_TTL_S"]


def _fill(folder: Path, size: int) -> None:
    chance = random.Random(size)
    with Memory.open(folder) as memory:
        for start in range(0, size, 1_000):
            count = min(1_000, size - start)
            memory.add_all([{**record(chance), "category": chance.choice(CATEGORIES)} for _ in range(count)])


def _time_rendering_ms(memory: Memory, *, inject: bool = True) -> float:
    started = time.thread_time()
    text = memory.render_agent(TEMPLATE, agent=AGENT, context={"task": "Add password reset"}, inject_learnings=inject)
    taken_ms = (time.thread_time() - started) * 1000
    if inject != ("learn_" in text):
        raise RuntimeError("the prompt does not have the expected learnings, so its time is meaningless")
    return taken_ms
