"""What a task costs, and whether it is solved, when `learnt.strategy` chooses the models.

The set contains one result and one cost for every task and model: 500 real tasks, 34 models. A replay goes through the
tasks in random order, starts with an empty record, asks the chooser before each attempt, and adds only the attempts
that it made to the record. The chooser knows only the models' names, order and rounded prices. If a model is chosen
twice for the same task, it has the same result and the same cost again. Tasks in the same repository are similar.
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
    """One model's result for one task, which is always the same."""

    solved: bool
    cost_usd: float


class Task(NamedTuple):
    """One task in the set."""

    name: str
    repository: str
    results: dict[str, Result]


class Score(NamedTuple):
    """The share of tasks that were solved, and the mean cost and attempts per task."""

    solved: float
    cost_usd: float
    attempts: float


def measure(_workspace: Workspace) -> Report:
    """Replay every strategy with the models on the Pareto front, and with all models."""
    path = Path(DATA) / FILE
    if not DATA or not path.exists():
        notes = (
            f"Not measured: {FILE}. Set LEARNT_BENCH_DATA to a folder with the set; it is derived from the OpenHands "
            "index's public results on SWE-bench Verified."
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
        f"the worst order is in brackets. The Pareto front, cheapest first: {', '.join(front)}. `In hindsight` is the "
        "ladder that would have cost least. The oracle knows which model solves which task."
    )
    text = f"learned, {len(front)} models"
    bars = (
        Bar(f"{text}: solved ≥ {MIN_SOLVED} ({learned.solved:.3f})", learned.solved >= MIN_SOLVED),
        Bar(f"{text}: ≤ ${MAX_USD} a task ({learned.cost_usd:.3f})", learned.cost_usd <= MAX_USD),
    )
    return Report("Strategy", notes, table(("policy", "models", "solved", "$ a task", "attempts"), rows), bars)


def _measure(rows: list[list[str]], tasks: list[Task], names: list[str]) -> Score:
    """Add the rows for one set of models, and return the mean score of `learned`."""
    best = max(names, key=lambda name: statistics.mean(task.results[name].solved for task in tasks))
    label = str(len(names))
    if len(names) <= ATTEMPTS:
        rows.append(_row("ladder of all", label, [_walk(tasks, names)]))
        shorter = [_walk(tasks, [*subset, names[-1]]) for subset in _subsets(names[:-1])]
        rows.append(_row("ladder, in hindsight", label, [min(shorter, key=lambda score: score.cost_usd)]))
    scores = []
    for strategy in ("fixed", "cost-optimized", "escalate", "learned"):
        say(f"  {strategy}, {label} models")
        scores = [_replay(tasks, names, strategy, best, seed) for seed in range(ORDERS)]
        rows.append(_row(f"`fixed`: {best}" if strategy == "fixed" else f"`{strategy}`", label, scores))
    rows.append(_row("oracle", label, [_oracle(tasks, names)]))
    return _mean(scores)


def _replay(tasks: list[Task], names: Sequence[str], strategy: str, best: str, seed: int) -> Score:
    """Let the chooser choose models for all tasks, in one random order."""
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
    """Try the same models in the same order for every task."""
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
    """Try only the cheapest model that solves a task, or the cheapest of all if no model solves it."""
    solved, cost = 0, 0.0
    for task in tasks:
        results = [task.results[name] for name in names]
        solving = [result.cost_usd for result in results if result.solved]
        solved += bool(solving)
        cost += min(solving or [result.cost_usd for result in results])
    return Score(solved / len(tasks), cost / len(tasks), 1.0)


def _front(tasks: list[Task], names: Sequence[str]) -> list[str]:
    """Return the models that solve more tasks than every cheaper model."""
    front: list[str] = []
    most = 0.0
    for name in names:
        solved = statistics.mean(task.results[name].solved for task in tasks)
        if solved > most:
            front.append(name)
            most = solved
    return front


def _subsets(names: Sequence[str]) -> list[tuple[str, ...]]:
    return [subset for size in range(len(names) + 1) for subset in itertools.combinations(names, size)]


def _mean_cost(tasks: list[Task], name: str) -> float:
    return statistics.mean(task.results[name].cost_usd for task in tasks)


def _as_written(price: float) -> float:
    """Return a price as a person would write it, with two significant digits."""
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
        entry = json.loads(line)
        results = {name: Result(bool(run["solved"]), run["cost_usd"]) for name, run in entry["models"].items()}
        tasks.append(Task(entry["task"], entry["repo"], results))
    return tasks
