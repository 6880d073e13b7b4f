"""What `learnt work` may spend: budgets and caps, prices that are reserved, and quotas that are exhausted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from learnt.flow.money import Budget, Refused
from learnt.loop.quota import find_pause_s, is_exhausted
from learnt.model import Claim
from tests.support.doors import Learnt
from tests.support.shop import Shop, until
from tests.support.words import tells


@pytest.fixture
def shop(project: Path, learnt: Learnt) -> Shop:
    return Shop(project, learnt)


def claim(memory: Memory, **how: Any) -> Claim | Refused | None:
    return memory.work.claim(worker="w", host="h", pid=1, **how)


def test_what_running_attempts_may_still_cost_is_reserved(database: str, shop: Shop) -> None:
    shop.agent("print('<task-failed/>')")
    shop.model("only", price=0.1)
    first, second = shop.add("One"), shop.add("Two")
    with Memory.open(shop.folder) as memory:
        budget = Budget(usd=0.15, since=memory.work.now())
        held = claim(memory, budget=budget)
        refused = claim(memory, budget=budget)

        assert isinstance(held, Claim)
        assert (held.task, held.price_usd) == (first, 0.1)
        assert isinstance(refused, Refused)
        assert refused.task.id == second
        assert tells(refused.reason, "$0.10", "$0.15", "budget")
        assert memory.work.give_back(held)
        again = claim(memory, budget=budget)
        assert isinstance(again, Claim), "nothing was spent"
        memory.debrief(first, "<task-failed/>", claim=again.replace(agent_pid=1), cost_usd=0.04)
        assert isinstance(claim(memory, budget=budget), Claim), "it cost less than was reserved"


def test_jobs_do_not_spend_more_than_the_budget_together(shop: Shop) -> None:
    shop.agent("time.sleep(0.2); print('<task-failed/>')", jobs=3)
    shop.model("only", price=0.1)
    for number in range(6):
        shop.add(f"Task {number}")

    summary = shop.work("--all", "--budget-usd", "0.25", code=1)

    assert len(summary["attempts"]) == 2
    assert (summary["spent_usd"], summary["over_usd"]) == (pytest.approx(0.2), 0)
    assert tells(summary["stopped"], "$0.10", "$0.25", "$0.20")


def test_a_model_above_what_is_left_is_not_started(shop: Shop) -> None:
    shop.agent("open('started', 'w')")
    shop.model("only", price=2)
    task = shop.add("Anything")

    done = shop.learnt("work", "--budget-usd", "0.05")

    assert done.code == 1
    assert tells(done.out, "$2.00", "$0.05")
    assert not (shop.folder / "started").exists()
    assert (shop.show(task)["status"], shop.show(task)["attempts"]) == ("ready", [])


def test_the_reason_why_a_run_ended_names_what_the_whole_run_has_spent(shop: Shop) -> None:
    shop.agent("print('<task-failed/>')")
    shop.model("small", price=0.05)
    shop.model("big", price=0.3)
    shop.add("One", "--model", "big")
    shop.add("Two", "--model", "small")

    summary = shop.work("--all", "--budget-usd", "0.12", code=1)

    assert summary["spent_usd"] == pytest.approx(0.1)
    assert tells(summary["stopped"], "$0.12", "$0.10")


REPORTS_COST = """
print(json.dumps({"type": "result", "result": "<task-failed>no</task-failed>", "total_cost_usd": 0.4}))
"""


def test_what_a_client_reports_at_its_end_can_exceed_the_budget_once_and_is_said(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    program = tmp_path / "claude"
    program.write_text(f"#!{sys.executable}\nimport json, sys\nsys.stdin.read()\n{REPORTS_COST}")
    program.chmod(0o700)
    shop.settle(agent="claude")
    shop.model("only", price=0.1)
    shop.add("Anything")

    done = shop.learnt("work", "--budget-usd", "0.15")

    assert done.out.count("▶") == 1
    assert tells(done.out, "$0.25 more than the budget")


def test_a_task_that_reaches_its_cap_is_for_a_person(shop: Shop) -> None:
    shop.agent("print('<task-failed/>')", task_cap_usd=0.25)
    shop.model("only", price=0.1)
    task = shop.add("Anything")

    summary = shop.work("--all", code=1)

    assert (len(summary["attempts"]), summary["escalated"]) == (2, 1)
    assert [ended["status"] for ended in summary["tasks"]] == ["escalated"]
    assert shop.show(task)["status"] == "escalated"
    (asked,) = json.loads(shop.learnt("escalations", "--json").out)
    assert tells(asked["question"], "task_cap_usd", "$0.25", "$0.20")
    assert shop.learnt("resolve", task, "Try twice more").code == 0
    assert len(shop.work("--all", code=1)["attempts"]) == 2


def test_the_daily_cap_counts_all_projects_of_the_user(shop: Shop, tmp_path: Path, learnt_process: Learnt) -> None:
    shop.agent("print('<task-failed/>')", daily_cap_usd=0.25)
    shop.model("only", price=0.1)
    shop.add("Anything")
    other = tmp_path / "other"
    other.mkdir()
    (other / "learnt.toml").write_text((shop.folder / "learnt.toml").read_text())
    with Memory.open(other) as memory:
        memory.tasks.add("Anything")
        memory.tasks.add("Something")

    work = [sys.executable, "-m", "learnt", "work", "--json", "--max-iterations", "1"]
    subprocess.run(work, cwd=other, capture_output=True, check=False)
    summary = shop.work("--all", code=1)

    assert len(summary["attempts"]) == 1
    assert tells(summary["stopped"], "daily_cap_usd", "$0.25", "$0.20", "all projects")


def test_a_reservation_of_a_killed_worker_becomes_what_its_attempt_may_have_cost(shop: Shop) -> None:
    shop.agent("open('started', 'w').write(str(os.getpid())); time.sleep(600)", lease_s=1)
    shop.model("only", price=0.1)
    task = shop.add("Anything")
    worker = subprocess.Popen([sys.executable, "-m", "learnt", "work"], cwd=shop.folder, stdout=subprocess.DEVNULL)
    until(lambda: (shop.folder / "started").exists() and (shop.folder / "started").read_text())
    with Memory.open(shop.folder) as memory:
        until(lambda: all(claim.agent_pid for claim in memory.work.claims()))  # 0 would stand for the tests themselves
        worker.kill()
        worker.wait()
        until(memory.work.lapsed)
        (lapsed,) = memory.work.lapsed()
        os.kill(lapsed.agent_pid, signal.SIGKILL)
        assert memory.work.spent(0) == pytest.approx(0.1)
        assert memory.work.release_interrupted(lapsed, only_if_lapsed=True)
        assert memory.work.spent(0) == pytest.approx(0.1)
    (attempt,) = shop.show(task)["attempts"]
    assert (attempt["result"], attempt["cost_usd"], attempt["price_usd"]) == ("interrupted", None, 0.1)


def test_a_budget_that_limits_nothing_says_so(shop: Shop) -> None:
    shop.agent("print('<task-done/>')")
    shop.add("Anything")
    assert tells(shop.learnt("work", "--budget-usd", "1").err, "client's default model", "budget does not limit")
    shop.model("cheap")
    shop.model("dear", price=0.5)
    said = shop.learnt("work", "--budget-usd", "1").err
    assert tells(said, "cheap", "unknown", "budget does not limit")
    assert "dear" not in said
    assert "budget" not in shop.learnt("work").err


QUOTA_ONCE = """
if not os.path.exists("asked"):
    open("asked", "w").close()
    sys.exit("You've hit your usage limit: try again in 0.1s")
print("<task-done/>")
"""


def test_an_exhausted_quota_pauses_the_run_and_is_no_attempt(shop: Shop) -> None:
    shop.agent(QUOTA_ONCE)
    shop.model("only", price=0.1)
    task = shop.add("Anything")

    done = shop.learnt("work", "--max-iterations", "1", "--budget-usd", "0.1")

    assert tells(done.out, "quota is exhausted", "continues at")
    assert done.code == 0
    shown = shop.show(task)
    assert shown["status"] == "done"
    assert [(attempt["number"], attempt["result"]) for attempt in shown["attempts"]] == [(1, "done")]


def test_a_run_that_waits_for_a_quota_can_be_stopped(shop: Shop) -> None:
    shop.agent("sys.exit('429 Too Many Requests')")
    task = shop.add("Anything")
    process = subprocess.Popen(
        [sys.executable, "-m", "learnt", "work"], cwd=shop.folder, stdout=subprocess.PIPE, text=True
    )
    said = process.stdout
    assert said is not None
    until(lambda: "continues at" in said.readline())

    process.send_signal(signal.SIGTERM)

    assert "stopped by SIGTERM" in process.communicate(timeout=60)[0]
    assert (shop.show(task)["status"], shop.show(task)["attempts"]) == ("ready", [])


def test_agents_that_meet_the_same_end_of_a_quota_pause_the_run_once(shop: Shop) -> None:
    meet = "open(f'here-{os.getpid()}', 'w').close()\nwhile sum(n.startswith('here-') for n in os.listdir()) < 3: pass"
    shop.agent(f"{meet}\nsys.exit('429 Too Many Requests')", jobs=3)
    for number in range(3):
        shop.add(f"Task {number}")
    process = subprocess.Popen(
        [sys.executable, "-m", "learnt", "work", "--all"], cwd=shop.folder, stdout=subprocess.PIPE, text=True
    )
    said: list[str] = []
    assert process.stdout is not None
    while sum("quota or rate limit is exhausted" in line for line in said) < 3:
        said.append(process.stdout.readline())
    until(lambda: count_claims(shop) == 0)

    process.send_signal(signal.SIGTERM)

    said += process.communicate(timeout=60)[0].splitlines()
    assert sum("continues at" in line for line in said) == 1, said


def count_claims(shop: Shop) -> int:
    with Memory.open(shop.folder) as memory:
        return len(memory.work.claims())


@pytest.mark.parametrize("pause", ["try again in 99999999999999999999 days", "usage limit reached|9999999999"])
def test_a_quota_that_nobody_can_wait_for_ends_the_run(shop: Shop, pause: str) -> None:
    shop.agent(f"sys.exit('429 Too Many Requests: {pause}')")
    task = shop.add("Anything")

    summary = shop.work("--all", code=1)

    assert tells(summary["stopped"], "quota", "more than eight days")
    assert (shop.show(task)["status"], shop.show(task)["attempts"]) == ("ready", [])


def test_an_agent_that_talks_about_rate_limits_has_failed_like_any_other(shop: Shop) -> None:
    shop.agent("print('The server said: 429 Too Many Requests. <task-failed/>'); sys.exit(1)")
    task = shop.add("Anything")
    shop.work("--max-iterations", "1", code=1)
    assert [attempt["result"] for attempt in shop.show(task)["attempts"]] == ["failed"]


NOON = datetime(2026, 11, 18, 12)
LIMITS: list[tuple[str, float | None]] = [
    (f"Claude AI usage limit reached|{NOON.timestamp() + 90:.0f}", 90),
    ("You've hit your session limit · resets 3:45pm", 13_500),
    ("5-hour limit reached ∙ resets 8am", 72_000),
    ("You've hit your usage limit. Upgrade to Pro or try again in 3 days 5 hours 2 minutes.", 277_320),
    ("exceeded retry limit, last status: 429 Too Many Requests", None),
    ("Rate limit reached for gpt-5 on tokens per min. Please try again in 1.2s. Visit our pages.", 1.2),
    ("You exceeded your current quota, please check your plan and billing details", None),
    ("You have exhausted your capacity on this model. Your quota will reset after 3h20m10s.", 12_010),
    ("You have reached your daily gemini-2.5-pro quota limit", None),
    ('API Error: 529 {"type":"error","error":{"type":"overloaded_error"', None),
    ("rate limited; retry-after: 30", 30),
    ("You have exceeded your premium request allowance", None),
]


@pytest.mark.parametrize(("said", "pause_s"), LIMITS)
def test_what_clients_say_about_their_limits_is_read(said: str, pause_s: float | None) -> None:
    assert is_exhausted(said)
    assert find_pause_s(said, now=NOON) == (pause_s if pause_s is None else pytest.approx(pause_s))


@pytest.mark.parametrize(
    "said",
    ["File x.py, line 429", "recursion limit reached", "disk quota exceeded", "context limit reached", "exit code 1"],
)
def test_other_limits_are_no_quota(said: str) -> None:
    assert not is_exhausted(said)
