"""Runs of the loop with agents that fail, hang, lie, report no cost, run out of quota and are killed, and with workers
that are killed.

Each agent notes what it did outside of the project, so that the record can be compared with what really happened: the
money that was spent, the files that were written, and how each attempt ended.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from learnt.loop.attempt import WORKTREES
from learnt.loop.folders import find_kept
from tests.soak import seed_of
from tests.support.doors import open_doors
from tests.support.shop import Shop

pytestmark = pytest.mark.soak

RUNS, TASKS, JOBS, BUDGET_USD = 100, 40, 4, 2.0
MODELS = ("small", "medium", "large")
PATIENCE_S = 120
EVERY = 5  # so many tasks there are for one that waits for the task before it
LADDER = 4  # attempts that fail before a person is asked
QUOTA_S = 0.1
VERIFY = "test -e made-{0} || {{ echo 'AssertionError: {0} is not made'; exit 1; }}"
# What a behaviour is recorded as; an exhausted quota is no attempt.
RECORDED = {
    "does": "done",
    "does without a cost": "done",
    "costs more": "done",
    "lies": "failed",
    "fails": "failed",
    "says nothing": "incomplete",
    "is killed": "failed",
    "hangs": "failed",
}
WEIGHTS = {"does": 6, "does without a cost": 3, "costs more": 2, "lies": 3, "fails": 3, "says nothing": 2}
WEIGHTS |= {"is killed": 2, "hangs": 1, "out of quota": 1}
# What an agent does in its worktree besides.
HABITS = {"": 8, "commits": 3, "has a branch": 2, "leaves a lock": 2, "damages the worktree": 1}
# Stands in for Claude Code, whose output states the cost. It behaves as chance decides, and notes what it did.
AGENT = r"""#!{python} -IS
import fcntl, json, os, random, sys, time
prompt = sys.stdin.read()
name = prompt.split("# Task: ")[1].split("\n")[0]
model = sys.argv[sys.argv.index("--model") + 1]
prices, weights, habits = {prices!r}, {weights!r}, {habits!r}
with open({notes!r}, "a+") as notes:
    fcntl.flock(notes, fcntl.LOCK_EX)
    notes.seek(0)
    number = sum(json.loads(note)["task"] == os.environ["LEARNT_TASK"] for note in notes)
    chance = random.Random(f"{seed} {{name}} {{number}}")
    how = chance.choices(list(weights), list(weights.values()))[0]
    habit = chance.choices(list(habits), list(habits.values()))[0]
    file = f"{{name}}-{{number}}"
    with open(file, "w") as own:
        own.write(how)
    cost = round(prices[model] * chance.uniform(0.2, 1), 4)
    if how == "costs more":
        cost = round(prices[model] * 1.5, 4)
    elif how in ("does without a cost", "is killed", "hangs"):
        cost = None
    elif how == "out of quota":
        cost = 0
    if how in ("does", "does without a cost", "costs more"):
        open(f"made-{{name}}", "w").close()
    note = {{"task": os.environ["LEARNT_TASK"], "model": model, "how": how, "cost": cost, "file": file}}
    note["habit"] = habit
    notes.write(json.dumps(note) + "\n")
commit = "git add --all && git -c user.name=a -c user.email=a@b commit -qm Own"
if habit == "commits":
    os.system(commit)
elif habit == "has a branch":
    os.system(f"git checkout -qb own-{{name}}-{{number}} && {{commit}}")
elif habit == "leaves a lock":
    open(os.popen("git rev-parse --git-path index.lock").read().strip(), "w").close()
elif habit and not os.path.exists(f"made-{{name}}"):
    os.remove(".git")
if how == "is killed":
    os.kill(os.getpid(), 9)
if how == "hangs":
    time.sleep(600)
if how == "out of quota":
    text = "You've hit your usage limit: try again in {quota_s}s"
    print(json.dumps({{"type": "result", "is_error": True, "result": text}}))
    sys.exit(1)
said = f"I tried {{name}}."
if how in ("does", "does without a cost", "costs more", "lies"):
    said += f"\n<task-done>made {{name}}</task-done>"
elif how == "fails":
    said += f"\n<task-failed>no way to make {{name}}</task-failed>"
result = {{"type": "result", "result": said}}
print(json.dumps(result if cost is None else {{**result, "total_cost_usd": cost}}))
"""


class Namespaces:
    """Where workers run: each in a network of its own if root can make one, so that they share only the database."""

    def __init__(self, count: int) -> None:
        self.names = [f"learnt-{os.getpid()}-{number}" for number in range(count)]
        can_make = os.geteuid() == 0 and shutil.which("ip") is not None
        self._made = [name for name in self.names if can_make and _ip("add", name)]

    def words(self, place: int) -> list[str]:
        """Return the words that start a program in a namespace; none if there is none."""
        name = self.names[place] if self.names else ""
        return ["ip", "netns", "exec", name] if name in self._made else []

    def close(self) -> None:
        for name in self._made:
            _ip("delete", name)


def _ip(*words: str) -> bool:
    return subprocess.run(["ip", "netns", *words], capture_output=True, check=False).returncode == 0


@pytest.fixture
def namespaces(database: str) -> Iterator[Namespaces]:
    made = Namespaces(2 if database else 0)
    yield made
    made.close()


class Run:
    """One run of all workers over a new project."""

    def __init__(self, shop: Shop, seed: int, programs: Path) -> None:
        self.shop = shop
        self.chance = random.Random(seed)
        self.kills = seed % 2 == 1
        self.seed = seed
        self.notes = programs / f"notes-{seed}"
        self.notes.touch()
        scale = self.chance.choice((0.005, 0.02, 0.05))
        self.prices = {model: round(scale * 3**place, 4) for place, model in enumerate(MODELS)}
        program = programs / "claude"
        text = AGENT.format(
            python=sys.executable,
            prices=self.prices,
            weights=WEIGHTS,
            habits=HABITS,
            notes=str(self.notes),
            seed=seed,
            quota_s=QUOTA_S,
        )
        program.write_text(text)
        program.chmod(0o700)
        for model, price in self.prices.items():
            shop.model(model, price=price)
        # A dead worker's tasks are free after the lease; a living one must not lose its own on a busy machine.
        shop.settle(agent="claude", isolation="worktree", time_limit_s=1, lease_s=4 if self.kills else 60)
        shop.repository()
        names = [f"{a}{b}" for a in "bcdfghklmnprst" for b in ("ake", "ell", "ibo", "oru")]
        self.names = self.chance.sample(names, TASKS)
        self.tasks: dict[str, str] = {}
        self.needed: dict[str, list[str]] = {}
        with Memory.open(shop.folder) as memory:
            for place, name in enumerate(self.names):
                after = [*self.tasks][-1:] if place % EVERY == EVERY - 1 else []
                task = memory.tasks.add(name, verify=VERIFY.format(name), after=after)
                self.tasks[task.id], self.needed[task.id] = name, after

    def work(self, namespaces: Namespaces) -> list[dict[str, Any]]:
        """Let the workers work until they end; return their summaries."""
        places = range(max(1 + (self.seed % 3 == 0), len(namespaces.names)))
        self.jobs = JOBS // len(places)
        workers = [self._start(namespaces, place, BUDGET_USD) for place in places]
        if self.kills:
            agents = self.chance.randint(1, 20)
            while len(self.truth()) < agents and workers[0].poll() is None:
                time.sleep(0.02)  # paces the killing; nothing is asserted of it
            workers[0].kill()
            workers[0].communicate()
            with Memory.open(self.shop.folder) as memory:
                left = BUDGET_USD - memory.work.spent(0)
            workers = [*workers[1:], *([self._start(namespaces, 0, left)] if left > 0 else [])]
        outputs = [worker.communicate(timeout=PATIENCE_S)[0] for worker in workers]
        return [json.loads(output) for output in outputs]

    def _start(self, namespaces: Namespaces, place: int, budget_usd: float) -> subprocess.Popen[str]:
        words = ["-m", "learnt", "work", "--all", "--json", "--jobs", str(self.jobs)]
        command = [*namespaces.words(place), sys.executable, *words, "--budget-usd", f"{budget_usd:.6f}"]
        return subprocess.Popen(command, cwd=self.shop.folder, stdout=subprocess.PIPE, text=True)

    def truth(self) -> list[dict[str, Any]]:
        """Return what the agents did."""
        return [json.loads(line) for line in self.notes.read_text().splitlines()]

    def spent(self) -> float:
        """Return what the agents cost; by the price of the model where they did not report it."""
        costs: list[float] = [self.prices[one["model"]] if one["cost"] is None else one["cost"] for one in self.truth()]
        return sum(costs)


def check_money(run: Run, summaries: list[dict[str, Any]]) -> None:
    most = max(run.prices.values()) * 1.5
    assert run.spent() <= BUDGET_USD + JOBS * most
    overshoot = sum(one["cost"] - run.prices[one["model"]] for one in run.truth() if one["how"] == "costs more")
    if len(summaries) == 1 and not run.kills:
        assert run.spent() <= BUDGET_USD + overshoot + 1e-6, "only what exceeds a price exceeds the budget"
        assert summaries[0]["spent_usd"] == pytest.approx(run.spent())
        assert summaries[0]["over_usd"] == pytest.approx(max(0.0, run.spent() - BUDGET_USD))


def expect(attempts: list[dict[str, Any]]) -> Iterator[tuple[str, str, float | None]]:
    """Yield the model, the result and the cost with which each of the attempts at a task should be recorded."""
    is_made = False
    for one in attempts:
        # A killed worker's agent may have done it: then it is no lie any more.
        result = "done" if is_made and one["how"] == "lies" else RECORDED[one["how"]]
        yield one["model"], result, one["cost"]
        is_made = is_made or RECORDED[one["how"]] == "done"


def check_account(run: Run, memory: Memory, summaries: list[dict[str, Any]]) -> None:
    """Expect that the record says what the agents did, attempt by attempt."""
    truth: dict[str, list[dict[str, Any]]] = {task: [] for task in run.tasks}
    for one in run.truth():
        if one["how"] != "out of quota":
            truth[one["task"]].append(one)
    stopped = " ".join(summary["stopped"] for summary in summaries)
    for task, name in run.tasks.items():
        attempts = memory.tasks.attempts(task)[::-1]
        results = [attempt.result for attempt in attempts if attempt.result != "interrupted"]
        recorded = [(attempt.model, attempt.result, attempt.cost_usd) for attempt in attempts]
        happened = list(expect(truth[task]))
        if run.kills:
            assert not Counter(one for one in recorded if one[1] != "interrupted") - Counter(happened)
            assert len(happened) - len(results) <= len(attempts) - len(results), "an agent of a killed worker"
        else:
            assert recorded == happened, name
        failures = [result for result in results if result != "done"]
        assert len(failures) <= LADDER
        status = memory.tasks.get(task).status
        needed = run.needed[task]
        if any(memory.tasks.get(other).status != "done" for other in needed):
            assert (status, attempts) == ("waiting", [])
        elif "done" in results:
            assert (status, results[-1], results.count("done")) == ("done", "done", 1)
            files = run.shop.git("ls-tree", "--name-only", f"learnt/{task}").split()
            assert {f"made-{run.tasks[made]}" for made in (task, *needed)} <= {*files}
        else:
            assert status == ("escalated" if len(failures) == LADDER else "ready")
            assert status == "escalated" or "budget" in stopped
    assert memory.work.claims() == []


def check_files(run: Run, memory: Memory) -> None:
    """Expect each file that an agent wrote on the task's branch, or in a folder that `task show` names."""
    worktrees = os.path.join(memory.folder, WORKTREES)
    for task in run.tasks:
        kept = find_kept(memory.root, worktrees, memory.tasks.get(task))
        branch = kept.branch or "HEAD"
        places = {*run.shop.git("ls-tree", "-r", "--name-only", branch).split()}
        for folder in filter(None, (kept.folder, *kept.aside)):
            places |= set(os.listdir(folder))
        assert {one["file"] for one in run.truth() if one["task"] == task} <= places


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on PATH."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return folder


def test_the_loop_keeps_its_word_whatever_its_agents_do(
    project: Path,
    programs: Path,
    namespaces: Namespaces,
    share: Callable[[int], int],
    request: pytest.FixtureRequest,
) -> None:
    settings = project / "learnt.toml"
    own = settings.read_text() if settings.exists() else ""
    first = seed_of(request.config)
    count = share(RUNS // 2)
    counted: Counter[str] = Counter()
    spent, over = 0.0, 0
    for seed in range(first, first + count):
        folder = project.parent / f"shop-{seed}"
        folder.mkdir()
        (folder / "learnt.toml").write_text(own.replace('"shop"', f'"shop-{seed}"'))
        run = Run(Shop(folder, open_doors(folder)), seed, programs)
        summaries = run.work(namespaces)
        with Memory.open(folder) as memory:
            check_money(run, summaries)
            check_account(run, memory, summaries)
            check_files(run, memory)
        assert not (folder / ".learnt" / "running").exists() or os.listdir(folder / ".learnt" / "running") == []
        counted.update(one["how"] for one in run.truth())
        spent += run.spent()
        over += run.spent() > BUDGET_USD
        shutil.rmtree(folder)
    where = (
        f"PostgreSQL, 2 workers{' in networks of their own' * bool(namespaces.words(0))}"
        if own
        else "SQLite, 1 or 2 workers"
    )
    print(
        f"\n{where}: {count} runs of {TASKS} tasks, {JOBS} jobs, ${BUDGET_USD:.2f} (seed {first}): "
        f"{sum(counted.values())} agents ({dict(counted)}), ${spent / count:.2f} a run by price, {over} runs above the "
        "budget by what an attempt cost above its price, 0 files lost"
    )
