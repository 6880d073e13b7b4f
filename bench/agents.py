"""What it costs to fill in the template of an agent's prompt, with and without what the process remembers.

Each rendering opens the store anew, as a server does for each call, and records what it shows, as always.
"""

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
MOST_GROWTH = 2.0
AGENT = "engineer"
TEMPLATE = "You are an engineer.\n\n{{ learnings }}\nYour task: {{ task }}\n"
CATEGORIES = ("git", "pytest", "azure-devops", "security", "architecture", "testing", "")


def measure(workspace: Workspace) -> Report:
    """Render for stores of several sizes, in turn with the cache and without it."""
    rows, with_cache = [], []
    for size in SIZES:
        say(f"  {size:,} learnings")
        cached, uncached = _times(workspace.new_folder(), size)
        rows.append([f"{size:,}", f"{cached:.2f}", f"{uncached:.2f}", f"{uncached / cached:.1f}"])
        with_cache.append(cached)
    growth = with_cache[-1] / with_cache[0]
    notes = (
        f"`Memory.render_agent` in one process, opened anew for each, medians of {ROUNDS} rounds; {len(CATEGORIES)} "
        f"categories, of which `{AGENT}` sees four."
    )
    bar = Bar(
        f"with the cache, {SIZES[-1]:,} learnings cost at most {MOST_GROWTH} × {SIZES[0]:,} ({growth:.2f})",
        growth <= MOST_GROWTH,
    )
    heads = ("learnings", "cached ms", "uncached ms", "uncached / cached")
    return Report("Templates of agents", notes, table(heads, rows), (bar,))


def _times(folder: Path, size: int) -> tuple[float, float]:
    """Return how long a rendering takes with and without the cache, in milliseconds."""
    _fill(folder, size)
    times: dict[str, list[float]] = {"300": [], "0": []}
    for _ in range(ROUNDS + 1):
        for ttl_s, measured in times.items():
            os.environ["LEARNT_CACHE_TTL_S"] = ttl_s
            measured.append(_rendered_ms(folder))
    del os.environ["LEARNT_CACHE_TTL_S"]
    cached, uncached = (statistics.median(measured[1:]) for measured in times.values())  # the first loads and fills
    return cached, uncached


def _fill(folder: Path, size: int) -> None:
    chance = random.Random(size)
    with Memory.open(folder) as memory:
        for start in range(0, size, 1_000):
            count = min(1_000, size - start)
            memory.add_all([{**record(chance), "category": chance.choice(CATEGORIES)} for _ in range(count)])


def _rendered_ms(folder: Path) -> float:
    started = time.perf_counter()
    with Memory.open(folder) as memory:
        text = memory.render_agent(TEMPLATE, agent=AGENT, context={"task": "Add password reset"})
    if "learn_" not in text:
        raise RuntimeError("the template shows no learning, so its time says nothing")
    return (time.perf_counter() - started) * 1000
