"""Nothing that an agent wrote is thrown away: worktrees, branches, and what `task show` says about them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.doors import Learnt
from tests.support.shop import PATIENCE_S, Shop, until
from tests.support.words import tells

WRITES_AND_WAITS = """
if os.path.exists("half"):
    print("<task-done/>")
    sys.exit()
open("half", "w").write("done"); open(".gitignore", "a").write("\\n")
open("new", "w").close(); os.rename("new", "../../../started"); time.sleep(600)
"""


@pytest.fixture
def shop(project: Path, learnt: Learnt) -> Shop:
    made = Shop(project, learnt)
    made.repository()
    return made


def kept(shop: Shop, task: str) -> dict[str, Any]:
    found: dict[str, Any] = shop.show(task)["kept"]
    return found


def start(shop: Shop) -> subprocess.Popen[bytes]:
    """Start a worker, and wait until its agent has written something."""
    worker = subprocess.Popen([sys.executable, "-m", "learnt", "work"], cwd=shop.folder, stdout=subprocess.DEVNULL)
    until((shop.folder / "started").exists)
    return worker


def test_the_work_on_a_cancelled_task_is_a_commit_on_its_branch(shop: Shop) -> None:
    shop.agent(WRITES_AND_WAITS, isolation="worktree", lease_s=1)
    task = shop.add("Build the shop")
    worker = start(shop)

    shop.learnt("task", "cancel", task)
    worker.wait(timeout=PATIENCE_S)

    assert shop.git("show", f"learnt/{task}:half") == "done"
    assert shop.git("log", "-1", "--format=%s", f"learnt/{task}") == "wip: Build the shop\n"
    assert shop.git("worktree", "list").count("\n") == 1
    shown = shop.learnt("task", "show", task).out
    assert tells(shown, f"learnt/{task}", "1 commit", "wip: Build the shop")
    assert tells(shown, f"git merge learnt/{task}")
    assert tells(shown, f"learnt task retry {task}")
    assert shop.learnt("task", "retry", task).code == 0
    assert shop.work()["done"] == 1


def test_interrupted_work_stays_in_its_worktree_and_is_named(shop: Shop) -> None:
    shop.agent(WRITES_AND_WAITS, isolation="worktree")
    task = shop.add("Build the shop")
    worker = start(shop)

    worker.send_signal(signal.SIGTERM)
    worker.wait(timeout=PATIENCE_S)

    found = kept(shop, task)
    assert found["changes"] == [".gitignore", "half"]
    assert (Path(found["folder"]) / "half").read_text() == "done"
    assert tells(shop.learnt("task", "show", task).out, "uncommitted", found["folder"], "half")


def test_failed_work_is_named_with_what_lets_an_agent_go_on(shop: Shop) -> None:
    shop.agent("open('try', 'a').write('x'); print('<task-failed/>')", isolation="worktree")
    task = shop.add("Build the shop")
    shop.work("--all", code=1)
    shown = shop.learnt("task", "show", task).out
    assert tells(shown, "uncommitted", "try")
    assert tells(shown, f"learnt resolve {task}")


def test_a_branch_without_a_commit_goes_with_its_worktree(shop: Shop) -> None:
    shop.agent("print('<task-done>nothing to do</task-done>')", isolation="worktree")
    done = shop.add("Look around")
    after = shop.add("Look again", "--after", done)
    shop.work("--all")
    assert shop.git("branch", "--list", "learnt/*") == ""
    assert [shop.show(task)["branch"] for task in (done, after)] == ["", ""]


def test_a_worktree_that_its_agent_damaged_is_set_aside(shop: Shop) -> None:
    shop.agent(
        "if 'Previous Attempts' in prompt: print('<task-done/>'); sys.exit()\n"
        "open('only here', 'w').close(); os.remove('.git'); print('<task-done/>')",
        isolation="worktree",
    )
    task = shop.add("Build the shop")

    shop.work()

    (aside,) = kept(shop, task)["aside"]
    assert os.path.exists(os.path.join(aside, "only here"))
    assert aside in shop.learnt("task", "show", task).out
    shop.work()
    assert os.path.exists(aside)


def test_what_is_in_a_damaged_worktree_is_named_before_another_agent_needs_its_place(shop: Shop) -> None:
    commits = "git add . && git -c user.name=a -c user.email=a@b commit -qm Half"
    program = f"open('half', 'w').close(); os.system({commits!r}); open('rest', 'w').close(); os.remove('.git')"
    shop.agent(f"{program}; print('<task-failed/>')", isolation="worktree")
    task = shop.add("Build the shop")

    shop.work("--max-iterations", "1", code=1)

    found = kept(shop, task)
    assert [commit.split()[1] for commit in found["commits"]] == ["Half"]
    (damaged,) = found["aside"]
    assert {"half", "rest"} <= set(os.listdir(damaged))
    assert damaged in shop.learnt("task", "show", task).out


def test_a_repository_inside_a_worktree_keeps_it(shop: Shop) -> None:
    program = (
        "import subprocess\n"
        "subprocess.run('git init -q inside && cd inside && echo x > file && git add . && '\n"
        "    'git -c user.name=a -c user.email=a@b commit -q -m x', shell=True, check=True)\n"
        "print('<task-done/>')"
    )
    shop.agent(program, isolation="worktree")
    task = shop.add("Fetch the other shop")
    shop.work()
    assert os.path.exists(os.path.join(kept(shop, task)["folder"], "inside", "file"))


READS_AND_ADDS = r"""
path = ".learnt/learnings.md"
text = open(path).read()
assert "Sweep before you open" in text
open(path, "w").write(text.replace("- Sweep", "- Count the till at noon\n- Sweep"))
open("made", "w").close()
print("<task-done/>")
"""


def test_a_worktree_has_the_learnings_file_where_it_is_not_committed(shop: Shop) -> None:
    shop.agent(READS_AND_ADDS, isolation="worktree")
    (shop.folder / ".gitignore").write_text("agent.py\nlearnt.toml\n.learnt/*\n!.learnt/learnings.md\n")
    shop.git("add", ".gitignore")
    shop.git("commit", "-q", "-m", "more")
    shop.learn("Sweep before you open")
    assert shop.learnt("update").code == 0
    task = shop.add("Build the shop")

    assert shop.work()["done"] == 1

    assert shop.git("diff", "--name-only", "HEAD", f"learnt/{task}") == "made\n"
    assert "Count the till at noon" in shop.learnt("list").out


LEAVES_LOCKS = r"""
import subprocess
if os.path.exists("work"):
    print("<task-done/>")
    sys.exit()
open("work", "w").close()
for name in ("index.lock", "HEAD.lock", "refs/heads/learnt/" + os.environ["LEARNT_TASK"] + ".lock"):
    place = subprocess.run(["git", "rev-parse", "--git-path", name], capture_output=True, text=True).stdout.strip()
    open(place, "w").close()
print("<task-done/>" if ending == "done" else "<task-failed/>")
"""


@pytest.mark.parametrize("ending", ["done", "failed"])
def test_what_a_killed_git_left_locked_is_committed_all_the_same(shop: Shop, ending: str) -> None:
    shop.agent(f"ending = {ending!r}\n{LEAVES_LOCKS}", isolation="worktree")
    task = shop.add("Build the shop")

    assert shop.work()["done"] == 1

    assert len(shop.show(task)["attempts"]) == (1 if ending == "done" else 2)
    assert shop.git("diff", "--name-only", "HEAD", f"learnt/{task}") == "work\n"


def test_the_merged_work_of_prerequisites_is_nobodys_half_done_work(shop: Shop) -> None:
    program = "made = prompt.split('\\n')[0].split()[-1]\nif made == 'both': print('<task-failed/>'); sys.exit()\n"
    shop.agent(f"{program}open(made, 'w').close(); print('<task-done/>')", isolation="worktree")
    left, right = shop.add("Make left"), shop.add("Make right")
    both = shop.add("Make both", "--after", left, "--after", right)
    shop.work("--all", "--max-iterations", "3", code=1)

    found = kept(shop, both)

    assert sorted(os.listdir(found["folder"]))[-2:] == ["left", "right"]
    assert (found["commits"], found["changes"]) == ([], [])
