"""What a task costs, and whether it gets done, when `learnt.strategy` chooses the models.

The set holds one result and one cost for every task and model: 500 real tasks, 34 models. A replay takes the tasks in
random order with an empty record, asks the chooser before each attempt, and adds to the record only what it tried.
Nothing but names, order and rounded prices of the models is given. A model that is asked twice at one task does
the same again and costs the same again. Other tasks of a task's repository count as similar.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.report import Bar, Report, say, table
from bench.workspace import Workspace
from learnt.strategy.choose_model import ATTEMPTS, Facts, choose
from learnt.strategy.figures import Model, Outcome, Record

DATA = os.environ.get("LEARNT_BENCH_DATA", "")
FILE = "strategy-dev/attempts.jsonl"
ORDERS = 20
LEAST_SOLVED = 0.955
MOST_USD = 0.475
SIMILAR = 40
LIKENESS = 0.5


class Result(NamedTuple):
    """How one model ends at one task, whenever it is asked."""

    solved: bool
    cost_usd: float


class Task(NamedTuple):
    """One task of the set."""

    name: str
    repository: str
    results: dict[str, Result]


class Score(NamedTuple):
    """The share of tasks that were solved, and what a task cost."""

    solved: float
    cost_usd: float


def measure(_workspace: Workspace) -> Report:
    """Replay every strategy with the models on the Pareto front, and with all."""
    path = Path(DATA) / FILE
    if not DATA or not path.exists():
        notes = (
            f"Not measured: {FILE}. Set LEARNT_BENCH_DATA to a folder with the set; it is made from the public results "
            "of the OpenHands index on SWE-bench Verified."
        )
        return Report("Strategy", notes, "")
    tasks = _tasks(path)
    everyone = sorted(tasks[0].results, key=lambda name: _mean_cost(tasks, name))
    front = _front(tasks, everyone)
    rows: list[list[str]] = []
    learned = _rows(rows, f"{len(front)} models", tasks, front)
    _rows(rows, f"{len(everyone)} models", tasks, everyone)
    notes = (
        f"{len(tasks)} tasks, mean of {ORDERS} random orders, at most {ATTEMPTS} models a task; worst order in brackets. "
        f"The Pareto front, cheapest first: {', '.join(front)}. The oracle knows which model solves what."
    )
    bars = (
        Bar(f"learned, {len(front)} models: solved ≥ {LEAST_SOLVED} ({learned.solved:.3f})", learned.solved >= LEAST_SOLVED),
        Bar(f"learned, {len(front)} models: ≤ ${MOST_USD} a task ({learned.cost_usd:.3f})", learned.cost_usd <= MOST_USD),
    )
    return Report("Strategy", notes, table(("policy", "models", "solved", "$ a task", "attempts"), rows), bars)


def _rows(rows: list[list[str]], label: str, tasks: list[Task], names: list[str]) -> Score:
    """Add the rows of one set of models, and return what `learned` came to."""
    for title, steps in (("always the last", names[-1:]), ("first, then last", [names[0], names[-1]])):
        rows.append(_row(title, label, [_walk(tasks, steps)]))
    best = max(names, key=lambda name: _solved(tasks, name))
    rows.append(_row("always the best", label, [_walk(tasks, [best])]))
    if len(names) <= ATTEMPTS:
        rows.append(_row("all steps", label, [_walk(tasks, names)]))
        cheapest = min((_walk(tasks, [*some, names[-1]]) for some in _subsets(names[:-1])), key=lambda one: one.cost_usd)
        rows.append(_row("cheapest steps, in hindsight", label, [cheapest]))
    for strategy in ("fixed", "cost-optimized", "escalate", "learned"):
        say(f"  {strategy}, {label}")
        scores = [_replay(tasks, names, strategy, seed) for seed in range(ORDERS)]
        rows.append(_row(f"`{strategy}`", label, scores))
    rows.append(_row("oracle", label, [_oracle(tasks, names)]))
    return Score(*(statistics.mean(column) for column in zip(*scores, strict=True)))
