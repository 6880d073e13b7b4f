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
from learnt.settings import Model
from learnt.strategy.choose_model import ATTEMPTS, Facts, choose
from learnt.strategy.figures import PastAttempt, TrackRecord

DATA = os.environ.get("LEARNT_BENCH_DATA", "")
FILE = "strategy-dev/attempts.jsonl"
ORDERS = 20
MIN_SOLVED = 0.955
MAX_USD = 0.475
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
    """The share of tasks that were solved, and what a task took."""

    solved: float
    cost_usd: float
    attempts: float


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
    learned = _measure(rows, tasks, front)
    _measure(rows, tasks, everyone)
    notes = (
        f"{len(tasks)} tasks, {ORDERS} random orders, no record at the start, at most {ATTEMPTS} models a task; "
        f"the worst order in brackets. The Pareto front, cheapest first: {', '.join(front)}. In hindsight: the steps "
        "up to the last model that would have cost least. The oracle knows which model solves what."
    )
    text = f"learned, {len(front)} models"
    bars = (
        Bar(f"{text}: solved ≥ {MIN_SOLVED} ({learned.solved:.3f})", learned.solved >= MIN_SOLVED),
        Bar(f"{text}: ≤ ${MAX_USD} a task ({learned.cost_usd:.3f})", learned.cost_usd <= MAX_USD),
    )
    return Report("Strategy", notes, table(("policy", "models", "solved", "$ a task", "attempts"), rows), bars)


def _measure(rows: list[list[str]], tasks: list[Task], names: list[str]) -> Score:
    """Add the rows of one set of models, and return what `learned` came to."""
    best = max(names, key=lambda name: statistics.mean(task.results[name].solved for task in tasks))
    label = str(len(names))
    if len(names) <= ATTEMPTS:
        rows.append(_row("ladder of all", label, [_walk(tasks, names)]))
        shorter = [_walk(tasks, [*some, names[-1]]) for some in _subsets(names[:-1])]
        rows.append(_row("ladder, in hindsight", label, [min(shorter, key=lambda one: one.cost_usd)]))
    scores = []
    for strategy in ("fixed", "cost-optimized", "escalate", "learned"):
        say(f"  {strategy}, {label} models")
        scores = [_replay(tasks, names, strategy, best, seed) for seed in range(ORDERS)]
        rows.append(_row(f"`fixed`: {best}" if strategy == "fixed" else f"`{strategy}`", label, scores))
    rows.append(_row("oracle", label, [_oracle(tasks, names)]))
    return _mean(scores)


def _replay(tasks: list[Task], names: Sequence[str], strategy: str, best: str, seed: int) -> Score:
    """Let the chooser work through the tasks in one random order."""
    models = [Model(name=name, price=_as_written(_mean_cost(tasks, name))) for name in names]
    record, by_repository = TrackRecord(), dict[str, list[PastAttempt]]()
    solved, cost, attempts = 0, 0.0, 0
    for task in random.Random(seed).sample(tasks, len(tasks)):
        similar = by_repository.setdefault(task.repository, [])
        failures: list[str] = []
        while len(failures) < ATTEMPTS:
            facts = Facts(task=task.name, failures=tuple(failures), similar=tuple(similar[-SIMILAR:]))
            choice = choose(strategy, models, record, facts, fixed=best)
            outcome = _attempt(task, choice.model, len(failures))
            record.add(outcome)
            similar.append(outcome)
            attempts += 1
            cost += outcome.cost_usd or 0.0
            solved += outcome.done
            if outcome.done or choice.last:
                break
            failures.append(choice.model)
    return Score(solved / len(tasks), cost / len(tasks), attempts / len(tasks))


def _attempt(task: Task, model: str, before: int) -> PastAttempt:
    result = task.results[model]
    return PastAttempt(
        model=model,
        task=task.name,
        result="done" if result.solved else "failed",
        before=before,
        cost_usd=result.cost_usd,
        likeness=LIKENESS,
    )


def _walk(tasks: list[Task], names: Sequence[str]) -> Score:
    """Try the same models in the same order at every task."""
    solved, cost, attempts = 0, 0.0, 0
    for task in tasks:
        for name in names:
            attempts += 1
            cost += task.results[name].cost_usd
            if task.results[name].solved:
                solved += 1
                break
    return Score(solved / len(tasks), cost / len(tasks), attempts / len(tasks))


def _oracle(tasks: list[Task], names: Sequence[str]) -> Score:
    """Try only the cheapest model that solves a task; the cheapest of all where none does."""
    solved, cost = 0, 0.0
    for task in tasks:
        results = [task.results[name] for name in names]
        solving = [result.cost_usd for result in results if result.solved]
        solved += bool(solving)
        cost += min(solving or [result.cost_usd for result in results])
    return Score(solved / len(tasks), cost / len(tasks), 1.0)


def _front(tasks: list[Task], names: Sequence[str]) -> list[str]:
    """Return the models that solve more than every cheaper one."""
    front: list[str] = []
    most = 0.0
    for name in names:
        solved = statistics.mean(task.results[name].solved for task in tasks)
        if solved > most:
            front.append(name)
            most = solved
    return front


def _subsets(names: Sequence[str]) -> list[tuple[str, ...]]:
    return [some for size in range(len(names) + 1) for some in itertools.combinations(names, size)]


def _mean_cost(tasks: list[Task], name: str) -> float:
    return statistics.mean(task.results[name].cost_usd for task in tasks)


def _as_written(price: float) -> float:
    """Return a price as a person would write it: with two digits that count."""
    return float(f"{price:.2g}")


def _mean(scores: Sequence[Score]) -> Score:
    return Score(*(statistics.mean(column) for column in zip(*scores, strict=True)))


def _row(policy: str, label: str, scores: Sequence[Score]) -> list[str]:
    mean = _mean(scores)
    solved, cost = f"{mean.solved:.3f}", f"{mean.cost_usd:.3f}"
    if len(scores) > 1:
        solved += f" ({min(score.solved for score in scores):.3f})"
        cost += f" ({max(score.cost_usd for score in scores):.3f})"
    return [policy, label, solved, cost, f"{mean.attempts:.2f}"]


def _tasks(path: Path) -> list[Task]:
    tasks = []
    for line in path.read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        results = {name: Result(bool(one["solved"]), one["cost_usd"]) for name, one in found["models"].items()}
        tasks.append(Task(found["task"], found["repo"], results))
    return tasks
