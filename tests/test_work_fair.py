"""An agent is told before it starts how it will be judged, what its task is for and what is there already."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.doors import Learnt
from tests.support.shop import PATIENCE_S, Shop, until
from tests.support.words import tells

KEEPS_PROMPT = "open('asked', 'w').write(prompt); print('<task-done/>')"


@pytest.fixture
def shop(project: Path, learnt: Learnt) -> Shop:
    return Shop(project, learnt)


def asked(shop: Shop) -> str:
    """Return the prompt that the last agent kept."""
    return (shop.folder / "asked").read_text()


def test_the_first_prompt_says_how_the_work_is_judged(shop: Shop) -> None:
    shop.agent(KEEPS_PROMPT, verify="test -e asked")
    shop.add("Build the shop", "--acceptance", "A customer can walk in.")

    shop.work()

    assert tells(asked(shop), "accepted when", "A customer can walk in.")
    assert tells(asked(shop), "`test -e asked` is run here")
    assert asked(shop).index("How it will be judged") < asked(shop).index("What is asked for")


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ('grep "<div>" page', '`grep "<div>" page` is run here'),
        ("test -e made\ntest `cat made` = 1", "  ```sh\n  test -e made\n  test `cat made` = 1\n  ```\n\n  is run here"),
        ("echo '```'", "  ````sh\n  echo '```'\n  ````\n"),
    ],
)
def test_the_prompt_shows_the_command_that_judges_as_it_is(shop: Shop, command: str, shown: str) -> None:
    shop.agent("")
    assert shown in shop.learnt("task", "prompt", shop.add("Make it", "--verify", command)).out


def test_the_prompt_says_what_the_parent_and_the_goal_want(shop: Shop) -> None:
    shop.agent(KEEPS_PROMPT)
    whole = shop.add("Open the shop", "--text", "All of it, before noon.", "--goal", "fair")
    shop.add("Hang up the flags", "--goal", "fair")
    shop.learnt("task", "edit", whole, "--acceptance", "Somebody buys something.")
    parts = [json.loads(shop.learnt("task", "split", whole, "Sweep", "Unlock", "--json").out)[0]["id"]]

    prompt = shop.learnt("task", "prompt", parts[0]).out

    assert tells(prompt, "part of", "Open the shop")
    assert "All of it, before noon." in prompt
    assert tells(prompt, "accepted when", "Somebody buys something.")
    assert tells(prompt, "other parts", "Unlock", "ready")
    assert tells(prompt, "goal", "`fair`")
    assert tells(prompt, "its other tasks", "Hang up the flags")


def test_a_verification_that_succeeds_already_is_said_so(shop: Shop) -> None:
    shop.agent(KEEPS_PROMPT, verify="true", isolation="worktree")
    shop.repository()
    task = shop.add("Build the shop")

    done = shop.learnt("work")

    prompt = shop.git("show", f"learnt/{task}:asked")
    commit = shop.git("rev-parse", "HEAD")[:10]
    assert tells(done.out, "`true` succeeds already")
    assert tells(prompt, "succeeds already", commit)


def test_a_verification_runs_once_per_commit_and_leaves_nothing_in_a_worktree(shop: Shop, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    check = f"pwd >> {runs}; touch left; grep -q done work || {{ echo 'AssertionError: no work yet'; exit 1; }}"
    agent = "there = os.path.exists('left'); open('work', 'w').write('done'); print(f'<task-done>{there}</task-done>')"
    shop.agent(agent, verify=check, isolation="worktree", jobs=2)
    shop.repository()
    tasks = [shop.add(f"Build shop {number}") for number in range(3)]

    shop.work("--all")

    assert len(runs.read_text().splitlines()) == 1 + 3, "once before all, and once after each"
    assert [shop.show(task)["attempts"][0]["summary"] for task in tasks] == ["False"] * 3


def test_a_missing_tool_is_for_a_person_before_money_is_spent(shop: Shop) -> None:
    shop.agent("open('started', 'w'); print('<task-done/>')", verify="no-such-tool --check")
    first, second = shop.add("Build the shop"), shop.add("Sweep the shop")

    summary = shop.work("--all", code=1)

    assert not (shop.folder / "started").exists()
    assert tells(summary["stopped"], "no attempt can mend", "no-such-tool")
    assert [shop.show(task)["status"] for task in (first, second)] == ["escalated", "ready"]
    (question,) = json.loads(shop.learnt("escalations", "--json").out)
    assert tells(question["question"], "no-such-tool", "not found")
    again = shop.work("--all", code=1)
    assert tells(again["stopped"], "no-such-tool")
    assert len(json.loads(shop.learnt("escalations", "--json").out)) == 1, "it is asked once"
    assert shop.learnt("resolve", first, "Go on, it will be there").code == 0
    shop.work("--max-iterations", "1", code=1)
    assert (shop.folder / "started").exists()


def test_a_check_of_one_task_that_cannot_run_does_not_hold_up_the_others(shop: Shop) -> None:
    shop.agent("print('<task-done/>')")
    broken = shop.add("Build the shop", "--verify", "echo 'ERROR collecting tests/test_shop.py'; exit 2")
    good = shop.add("Sweep the shop", "--verify", "true")

    summary = shop.work("--all", code=1)

    assert (summary["done"], summary["escalated"]) == (1, 1)
    assert [shop.show(task)["status"] for task in (broken, good)] == ["escalated", "done"]


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        ("ModuleNotFoundError: No module named 'shop.reset'", 1),
        ("ImportError: cannot import name 'reset' from 'shop' (shop/__init__.py)", 1),
        ("ModuleNotFoundError: No module named 'till'", 1),
        ("Cannot find module '../src/reset' from 'tests/reset.test.js'", 1),
        ("ModuleNotFoundError: No module named 'requests'", 0),
        ("ModuleNotFoundError: No module named 'requests.adapters'", 0),
        ("ModuleNotFoundError: No module named 'shop'", 0),
        ("ModuleNotFoundError: No module named 'shop.reset'\\nImportError: cannot import name 'x' from 'requests'", 0),
        ("ModuleNotFoundError: No module named 'shop.reset'\\nsh: 1: jq: not found", 0),
        ("SyntaxError: invalid syntax", 0),
    ],
)
def test_tests_of_what_is_to_be_written_are_no_question_to_a_person(shop: Shop, error: str, attempts: int) -> None:
    shop.agent("open('shop/made', 'w').close(); print('<task-done/>')")
    (shop.folder / "shop").mkdir()
    (shop.folder / "shop" / "__init__.py").touch()
    check = f'test -e shop/made || {{ printf "E   {error}\\n! 1 error during collection !\\n"; exit 2; }}'
    task = shop.add("Write the reset of the shop, and till.py", "--verify", check)

    shop.work(code=0 if attempts else 1)

    results = [attempt["result"] for attempt in shop.show(task)["attempts"]]
    assert results == (["done"] if attempts else [])


def test_a_check_that_an_attempt_can_make_succeed_costs_nobody_a_question(shop: Shop) -> None:
    shop.agent("open('made', 'w').close(); open('asked', 'w').write(prompt); print('<task-done/>')")
    shop.add("Make it", "--verify", "test -e made || { echo 'AssertionError: nothing is made'; exit 1; }")
    shop.work()
    assert tells(asked(shop), "before any work, it fails", "AssertionError: nothing is made")


def test_the_next_agent_is_told_what_an_interrupted_one_left(shop: Shop) -> None:
    shop.agent(
        "if os.path.exists('half'): open('asked', 'w').write(prompt); print('<task-done/>'); sys.exit()\n"
        "import subprocess\n"
        "open('whole', 'w').close()\n"
        "subprocess.run('git add whole && git -c user.name=a -c user.email=a@b commit -qm Whole', shell=True)\n"
        "open('half', 'w').close(); open('new', 'w').close(); os.rename('new', '../../../started'); time.sleep(600)",
        isolation="worktree",
    )
    shop.repository()
    task = shop.add("Build the shop")
    worker = subprocess.Popen([sys.executable, "-m", "learnt", "work"], cwd=shop.folder, stdout=subprocess.DEVNULL)
    until((shop.folder / "started").exists)
    worker.send_signal(signal.SIGTERM)
    worker.wait(timeout=PATIENCE_S)

    shown = shop.learnt("task", "prompt", task).out
    shop.work()

    for prompt in (shown, shop.git("show", f"learnt/{task}:asked")):
        assert tells(prompt, "Committed", "Whole")
        assert tells(prompt, "Not committed", "`half`")
