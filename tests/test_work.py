"""`learnt work` with real processes: fail, learn, retry, succeed; agents that misbehave; runs that are stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from learnt.flow.claims import Work
from learnt.flow.money import Refused
from learnt.model import Claim
from tests.support.doors import Learnt
from tests.support.shop import PATIENCE_S, Shop, until
from tests.support.words import tells


@pytest.fixture
def shop(project: Path, learnt: Learnt) -> Shop:
    return Shop(project, learnt)


FAIL_THEN_LEARN = """
if "Generate the price catalogue" in prompt:
    open("built", "w").close()
    print("<task-done>built it</task-done>")
else:
    learning = "Generate the price catalogue before the shop is packaged. Packaging fails without it."
    print(f'<learning category="pitfall" tags="packaging">{learning}</learning>')
    print("<failure-report>\\nwhat_tried: building\\nwhy_failed: no setup\\n</failure-report>")
    print("<task-failed>no setup</task-failed>")
"""


def test_an_agent_fails_learns_and_succeeds_and_the_next_task_starts_wiser(database: str, shop: Shop) -> None:
    shop.agent(FAIL_THEN_LEARN)
    first = shop.add("Package the shop")
    second = shop.add("Package the shop and its price catalogue for the fair", "--after", first, "--goal", "fair")

    summary = shop.work("--all")

    assert [one["result"] for one in summary["attempts"]] == ["failed", "done", "done"]
    assert [one["task"] for one in summary["attempts"]] == [first, first, second]
    shown = shop.show(first)
    assert shown["status"] == "done"
    assert [attempt["result"] for attempt in shown["attempts"]] == ["done", "failed"]
    assert shown["attempts"][0]["summary"] == "built it"
    assert shown["attempts"][1]["failure"]["reason"] == "no setup"


def test_the_brief_reaches_the_agent_as_it_was_recorded(shop: Shop) -> None:
    shop.agent("open('asked', 'w').write(prompt); print('<task-done/>')")
    shop.learn("Run setup before you build the shop")
    shop.add("Build the shop")
    shop.work()
    asked = (shop.folder / "asked").read_text()
    start, end = asked.index("<learnt-brief id="), asked.index("</learnt-brief>")
    recorded = shop.learnt("explain", asked[start:end].split('"')[1], "--replay").out
    assert asked[start:end] == recorded.removesuffix("</learnt-brief>\n")


def test_done_counts_only_when_the_verification_passes(shop: Shop) -> None:
    shop.agent(
        "open('result', 'w').write('right' if 'Previous Attempts' in prompt else 'wrong')\nprint('<task-done/>')",
        verify="grep -q right result || { echo 'AssertionError: assert value'; exit 3; }",
    )
    task = shop.add("Write the result")

    shop.work()

    done, failed = shop.show(task)["attempts"]
    assert (done["result"], failed["result"]) == ("done", "failed")
    report = failed["failure"]
    assert report["category"] == "test"
    assert "ended with exit code 3" in report["reason"]
    assert "assert value" in report["error"]


@pytest.mark.parametrize(("order", "turns"), [("breadth", "123123"), ("depth", "112233")])
def test_every_task_is_tried_once_before_any_is_tried_again_unless_the_order_is_depth(
    database: str, shop: Shop, order: str, turns: str
) -> None:
    shop.agent("print('<task-done/>' if 'Previous Attempts' in prompt else '<task-failed/>')", order=order)
    tasks = [shop.add(f"Task {number}") for number in range(3)]
    tried = [one["task"] for one in shop.work("--all")["attempts"]]
    assert tried == [tasks[int(turn) - 1] for turn in turns]


def test_breadth_is_the_order_unless_another_one_is_set(shop: Shop) -> None:
    shop.agent("print('<task-done/>')")
    assert "breadth" in shop.learnt("config", "work.order").out


def test_a_stuck_task_warns_its_next_agent_and_the_person_who_watches(shop: Shop) -> None:
    shop.agent("open('asked', 'w').write(prompt); print('<task-failed>no key</task-failed>')")
    shop.models("small", "medium", "large", "huge")
    shop.add("Open the door")
    seen = shop.learnt("work", "--all").out
    warned = "stuck: 3 attempts ended with the same error: no key"
    assert seen.index("model: large") < seen.index("model: huge") < seen.index(warned)
    assert "## Stuck Loop Warning" in (shop.folder / "asked").read_text(), "before the most expensive attempt"


def test_a_task_may_have_a_verification_of_its_own(shop: Shop) -> None:
    shop.agent("print('<task-done/>')", verify="false")
    task = shop.add("Anything", "--verify", "true")
    shop.work()
    assert shop.show(task)["status"] == "done"


def test_no_sigil_is_incomplete_and_after_four_times_a_person_is_asked(shop: Shop) -> None:
    shop.agent("print('hm')")
    task = shop.add("Anything")

    summary = shop.work("--all", code=1)

    assert [one["result"] for one in summary["attempts"]] == ["incomplete"] * 4
    assert shop.show(task)["status"] == "escalated"
    (asked,) = json.loads(shop.learnt("escalations", "--json").out)
    assert shop.learnt("resolve", asked["id"], "Say <task-done/> at last").code == 0
    assert "Say <task-done/> at last" in shop.learnt("task", "prompt", task).out
    assert shop.show(task)["status"] == "ready"


def test_each_failure_brings_a_stronger_model_and_the_reason_is_kept(shop: Shop) -> None:
    shop.agent("print('<task-done/>' if sys.argv[1] == 'large' else '<task-failed/>')")
    shop.models("small", "medium", "large")
    task = shop.add("Anything")

    shop.work()

    attempts = shop.show(task)["attempts"][::-1]
    assert [attempt["model"] for attempt in attempts] == ["small", "medium", "large"]
    assert all(attempt["model_reason"] for attempt in attempts)
    told = shop.learnt("strategy").out
    assert told.startswith("model   type       done  of  share")
    assert "small" in told
    assert tells(shop.learnt("strategy", "--type", "nosuch").out, "no attempts", "type")
    picture = shop.folder / "picture.svg"
    assert shop.learnt("strategy", "--plot", str(picture)).code == 0
    assert picture.read_text().startswith("<svg")


def test_what_the_agent_asks_for_is_what_works_next(shop: Shop) -> None:
    shop.agent("print('<task-done/>' if sys.argv[1] == 'large' else '<next-model>large</next-model><task-failed/>')")
    shop.models("small", "medium", "large")
    task = shop.add("Anything")
    shop.work()
    assert [attempt["model"] for attempt in shop.show(task)["attempts"]] == ["large", "small"]


def test_a_named_model_is_the_only_one(shop: Shop) -> None:
    shop.agent("print('<task-failed/>' if sys.argv[1] == 'small' else '<task-done/>')")
    shop.models("small", "large")
    task = shop.add("Anything", "--model", "small")
    shop.work("--max-iterations", "2", code=1)
    assert [attempt["model"] for attempt in shop.show(task)["attempts"]] == ["small", "small"]


def test_the_budget_and_the_number_of_attempts_end_a_run(shop: Shop) -> None:
    shop.agent("print('<task-failed/>')")
    shop.add("Anything")
    summary = shop.work("--all", "--max-iterations", "2", code=1)
    assert len(summary["attempts"]) == 2
    assert "2 attempts" in summary["stopped"]


def test_as_many_attempts_as_were_needed_are_no_early_end(shop: Shop) -> None:
    shop.agent("print('<task-done/>')")
    shop.add("Anything")
    assert shop.work("--all", "--max-iterations", "1")["stopped"] == ""
    shop.add("Anything else")
    assert shop.work("--max-iterations", "1")["stopped"] == "", "one task was asked for"
    shop.add("One more")
    shop.add("And another")
    assert shop.work("--all", "--max-iterations", "1", code=1)["stopped"].startswith("1 attempt was made")


def test_a_person_reads_each_thing_once_and_what_to_do_next(shop: Shop) -> None:
    shop.agent(
        "print('looking'); open('made', 'w').close()\n"
        "print('<task-done/>' if 'Build' in prompt else '<task-failed>boom</task-failed>')",
        isolation="worktree",
    )
    shop.repository()
    built = shop.add("Build the shop")
    broken = shop.add("Break the shop")
    after = shop.add("Sweep up", "--after", broken)

    done = shop.learnt("work", "--all")

    assert done.code == 1
    assert f"on learnt/{built}" in done.out
    assert tells(done.out, "`git merge BRANCH`", f"learnt/{built}")
    assert "looking" in done.out
    assert "<task-" not in done.out
    assert done.out.count("boom") == 4, "once for each attempt"
    assert tells(done.out, "5 attempts", "1 task done", "4 attempts failed")
    assert tells(done.out, 1, "person")
    assert tells(done.out, after, broken, "escalated", f"`learnt resolve {broken}")
    shop.learnt("task", "cancel", broken)
    idle = shop.learnt("work")
    assert "no task is ready" in idle.out
    assert tells(idle.out, after, broken, "cancelled", f"`learnt task retry {broken}`")


def test_an_answer_that_comes_too_late_is_told_so(shop: Shop) -> None:
    shop.agent("print('hm')")
    task = shop.add("Anything")
    shop.work("--all", code=1)
    assert shop.learnt("debrief", "--task", task, "--result", "done", stdin="did it by hand").code == 0
    (asked,) = json.loads(shop.learnt("escalations", "--json").out)
    assert f"{task} is done" in shop.learnt("resolve", asked["id"], "Try again").out


def test_only_so_many_tasks_are_worked_on(shop: Shop) -> None:
    shop.agent("print('<task-done/>')")
    tasks = [shop.add(f"Task {number}") for number in range(4)]
    shop.work()
    shop.work("--tasks", "2")
    assert [shop.show(task)["status"] for task in tasks] == ["done", "done", "done", "ready"]
    assert shop.work("--all")["done"] == 1
    assert shop.work("--all")["attempts"] == []


def test_the_same_error_in_three_tasks_stops_the_run_and_asks_about_what_they_share(shop: Shop) -> None:
    shop.agent(
        "print('<failure-report>\\nwhat_tried: x\\nwhy_failed: y\\nstack_trace: disk 7 is full\\n</failure-report>'"
        " + '<task-failed/>')",
    )
    learning = json.loads(shop.learnt("add", "Write to the disk often", "--json").out)["id"]
    for number in range(5):
        shop.add(f"Write to the disk, part {number}")

    summary = shop.work("--all", code=1)

    assert tells(summary["stopped"], "3 tasks", "same error")
    assert len(summary["attempts"]) == 3, "before it costs more"
    (asked,) = [one for one in json.loads(shop.learnt("escalations", "--json").out) if one["subject"] == learning]
    assert shop.learnt("resolve", asked["id"], "--hide").code == 0
    assert json.loads(shop.learnt("show", learning, "--json").out)["status"] == "hidden"


MISBEHAVING = {
    "hangs": ("time.sleep(600)", "timeout", "stopped after 2 s"),
    "floods": ("while True: sys.stdout.write('x' * 65536)", "unknown", "stopped after 1 MB of output"),
    "exits": ("print('<task-done/>', flush=True); os._exit(137)", "unknown", "exit code 137"),
    "is killed": ("os.kill(os.getpid(), 9)", "unknown", "exit code 137"),
    "crashes": ("raise FileNotFoundError('settings.ini')", "missing-file", "exit code 1"),
}


@pytest.mark.parametrize("how", MISBEHAVING)
def test_an_agent_that_misbehaves_is_reported_as_a_failure_and_the_loop_goes_on(shop: Shop, how: str) -> None:
    program, category, reason = MISBEHAVING[how]
    shop.agent(f"if 'second' in prompt: print('<task-done/>')\nelse:\n    {program}", time_limit_s=2, output_limit_mb=1)
    bad, good = shop.add("The first"), shop.add("The second")

    shop.work("--all", "--max-iterations", "1", code=1)
    shop.learnt("task", "cancel", bad)
    shop.work("--all")

    (attempt,) = shop.show(bad)["attempts"]
    assert attempt["result"] == "failed"
    assert attempt["failure"]["category"] == category
    assert reason in attempt["failure"]["reason"]
    assert shop.show(good)["status"] == "done"
    assert os.listdir(shop.folder / ".learnt" / "running") == []


def test_invalid_text_and_children_that_stay_do_not_disturb(shop: Shop) -> None:
    shop.agent(
        "import subprocess\n"
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "open('child', 'w').write(str(child.pid))\n"
        "sys.stdout.buffer.write(b'\\xff\\xfe It works \\x80.\\n<task-done>\\xc3\\x28 done</task-done>\\n')"
    )
    task = shop.add("Anything")
    shop.work()
    assert shop.show(task)["status"] == "done"
    assert not _alive(int((shop.folder / "child").read_text()))


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


IN_WORKTREE = """
name = prompt.split("# Task: ")[1].split("\\n")[0]
there = " ".join(sorted(one for one in os.listdir(".") if not one.startswith(".")))
open(name, "w").write(there)
print(f"<task-done>wrote {name}</task-done>")
"""


def test_each_task_has_a_worktree_that_starts_from_what_it_waited_for(shop: Shop) -> None:
    shop.agent(IN_WORKTREE, isolation="worktree", jobs=2)
    shop.repository()
    left, right = shop.add("left"), shop.add("right")
    both = shop.add("both", "--after", left, "--after", right)

    shop.work("--all")

    branch = shop.show(both)["branch"]
    assert branch == f"learnt/{both}"
    assert set(shop.git("ls-tree", "--name-only", branch).split()) == {".gitignore", "left", "right", "both"}
    assert shop.git("show", f"{branch}:both") == "left right"
    assert not (shop.folder / "left").exists(), "the project's own folder is untouched"
    assert shop.git("worktree", "list").count("\n") == 1
    assert "wrote left" in shop.learnt("task", "prompt", both).out


def test_branches_that_conflict_are_left_to_the_agent(shop: Shop) -> None:
    shop.agent(
        "name = prompt.split('# Task: ')[1].split('\\n')[0]\n"
        "open('same', 'w').write(name)\n"
        "open('asked', 'w').write(prompt)\n"
        "print('<task-done/>')",
        isolation="worktree",
    )
    shop.repository()
    left, right = shop.add("left"), shop.add("right")
    both = shop.add("both", "--after", left, "--after", right)
    shop.work("--all")
    assert f"`learnt/{right}` conflicts" in shop.git("show", f"learnt/{both}:asked")


def test_an_agent_that_deletes_its_worktree_has_failed_and_the_next_attempt_has_a_new_one(shop: Shop) -> None:
    shop.agent(
        "import shutil\n"
        "if 'Previous Attempts' in prompt: open('here', 'w').close()\n"
        "else: shutil.rmtree(os.getcwd())\n"
        "print('<task-done/>')",
        isolation="worktree",
        verify="test -e here",
    )
    shop.repository()
    task = shop.add("Anything")

    shop.work()

    assert [attempt["result"] for attempt in shop.show(task)["attempts"]] == ["done", "failed"]
    assert "here" in shop.git("ls-tree", "--name-only", f"learnt/{task}")


def test_a_worktree_needs_a_repository_with_a_commit(shop: Shop) -> None:
    shop.agent("print('<task-done/>')", isolation="worktree")
    task = shop.add("Anything")
    done = shop.learnt("work")
    assert done.code == 2
    assert "not in a git repository" in done.err
    shop.git("init", "-q")
    assert "no commit" in shop.learnt("work").err
    shop.git("commit", "-q", "--allow-empty", "-m", "start")
    shop.git("branch", "learnt")
    assert tells(shop.learnt("work").err, "branch `learnt`", "git can make no branch")
    assert shop.show(task)["status"] == "ready"
    shop.git("branch", "-m", "learnt", "ours")
    assert shop.work()["done"] == 1


def test_an_agent_that_cannot_be_started_ends_the_run_and_costs_no_attempt(shop: Shop) -> None:
    shop.agent("pass", command="/no/such/program")
    task = shop.add("Anything")

    done = shop.learnt("work")

    assert done.code == 1
    assert "cannot be started" in done.err
    assert "hint: install it" in done.err
    assert shop.show(task)["status"] == "ready"


def test_an_agent_that_is_not_committed_is_missed_in_a_worktree_by_that_name(shop: Shop) -> None:
    shop.agent("pass", command="./own.sh", isolation="worktree")
    program = shop.folder / "own.sh"
    program.write_text("#!/bin/sh\necho '<task-done/>'\n")
    program.chmod(0o700)
    shop.repository()
    shop.add("Anything")

    done = shop.learnt("work")

    assert done.code == 1
    assert "`./own.sh` is not committed" in done.err
    assert "hint: commit it" in done.err
    shop.git("add", "own.sh")
    shop.git("commit", "-q", "-m", "agent")
    again = shop.learnt("work")
    assert again.code == 0, again.out + again.err


WAIT = "open('started', 'w').write(str(os.getpid())); time.sleep(600)"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stopped_run_leaves_nothing_running_and_a_task_to_take_up_again(shop: Shop, number: signal.Signals) -> None:
    shop.agent(WAIT)
    task = shop.add("Anything")
    process = subprocess.Popen(
        [sys.executable, "-m", "learnt", "work"], cwd=shop.folder, stdout=subprocess.PIPE, text=True
    )
    until(lambda: (shop.folder / "started").exists() and (shop.folder / "started").read_text())

    process.send_signal(number)

    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert f"stopped by {number.name}" in out
    assert not _alive(int((shop.folder / "started").read_text()))
    shown = shop.show(task)
    assert shown["status"] == "ready"
    assert [attempt["result"] for attempt in shown["attempts"]] == ["interrupted"]


def test_a_run_in_the_background_can_be_seen_and_stopped(shop: Shop, learnt_process: Learnt) -> None:
    shop.agent(WAIT)
    task = shop.add("Anything")
    assert learnt_process("work", "--background").code == 0
    until(lambda: (shop.folder / "started").exists() and (shop.folder / "started").read_text())

    status = json.loads(shop.learnt("status", "--json").out)
    assert [one["task"] for one in status["running"]] == [task]
    assert len(status["runs"]) == 1
    assert "model:" in shop.learnt("log", task).out
    assert "attempt 1: running  since " in shop.learnt("task", "show", task).out
    assert "the next attempt" in shop.learnt("task", "edit", task, "--title", "Another").out
    for name in ("running", "worktrees"):
        assert (shop.folder / ".learnt" / name).stat().st_mode & 0o777 == 0o700
    assert "Stopped 1 run" in shop.learnt("stop").out

    assert not _alive(int((shop.folder / "started").read_text()))
    assert json.loads(shop.learnt("status", "--json").out)["runs"] == []
    assert shop.show(task)["status"] == "ready"
    assert "No run" in shop.learnt("stop").out


def test_status_says_how_the_last_run_in_the_background_ended(
    shop: Shop, learnt_process: Learnt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEARNT_LEARNINGS_REGENERATE_EVERY", "50")
    shop.agent("print('<task-done/>')")
    shop.add("Anything")
    assert learnt_process("work", "--background").code == 0
    until(lambda: not json.loads(shop.learnt("status", "--json").out)["runs"])

    assert "learnings.md: none yet" in (shop.folder / ".learnt" / "work.log").read_text()
    assert tells(shop.learnt("status").out, "ended with", "1 attempt", "1 task done", "0 attempts failed")


def test_runs_end_when_trust_is_taken_back(shop: Shop, learnt_process: Learnt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LEARNT_TRUSTED")
    shop.agent(WAIT)
    assert shop.learnt("trust", "--yes").code == 0
    task = shop.add("Anything")
    assert learnt_process("work", "--background").code == 0
    until(lambda: (shop.folder / "started").exists() and (shop.folder / "started").read_text())

    done = shop.learnt("untrust")

    assert (done.code, done.err) == (0, "Stopped 1 run.\n")
    assert "not trusted any more" in done.out
    assert not _alive(int((shop.folder / "started").read_text()))
    assert shop.learnt("status").code == 2
    assert shop.learnt("trust", "--yes").code == 0
    assert shop.show(task)["status"] == "ready"


def test_watching_leaves_the_terminal_as_it_was(shop: Shop, learnt_process: Learnt) -> None:
    import pty  # there is none on Windows

    shop.agent(WAIT)
    shop.add("Anything")
    assert learnt_process("work", "--background").code == 0
    until(lambda: (shop.folder / "started").exists() and (shop.folder / "started").read_text())
    own, theirs = pty.openpty()
    watching = subprocess.Popen([sys.executable, "-m", "learnt", "status"], cwd=shop.folder, stdout=theirs)
    os.close(theirs)
    seen = b""
    while b"Tasks: 1 running" not in seen:
        seen += os.read(own, 10_000)

    watching.send_signal(signal.SIGINT)

    assert watching.wait(timeout=PATIENCE_S) == 0
    seen += os.read(own, 10_000)
    os.close(own)
    shop.learnt("stop")
    assert seen.startswith(b"\x1b[?1049h"), "nothing is shown before"
    live, _, after = seen.partition(b"\x1b[?1049l")
    assert live.count(b"Tasks: 1 running") == live.count(b"\x1b[H\x1b[J")
    assert after.count(b"Tasks: 1 running") == 1


def test_the_next_worker_ends_what_a_killed_one_left_within_a_lease(database: str, shop: Shop) -> None:
    shop.agent(
        "if os.path.exists('started'): print('<task-done/>'); sys.exit()\n"
        "open('new', 'w').write(str(os.getpid())); os.rename('new', 'started'); time.sleep(600)",
        lease_s=3,
    )
    task = shop.add("Anything")
    worker = subprocess.Popen([sys.executable, "-m", "learnt", "work"], cwd=shop.folder, stdout=subprocess.DEVNULL)
    until((shop.folder / "started").exists)
    worker.kill()
    worker.wait()
    orphan = int((shop.folder / "started").read_text())
    assert _alive(orphan)

    # A process of its own: threads of the tests must not delay the renewal of so short a lease.
    work = [sys.executable, "-m", "learnt", "work", "--all", "--json"]
    ended = subprocess.run(work, cwd=shop.folder, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    summary = json.loads(ended.stdout)

    assert not _alive(orphan)
    assert summary["done"] == 1
    assert [attempt["result"] for attempt in shop.show(task)["attempts"]] == ["done", "interrupted"]


def test_a_task_that_is_released_while_it_is_asked_for_is_still_done(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that renews claims may release a dead worker's task just after it could not be claimed."""
    shop.agent("print('<task-done/>')")
    shop.add("Anything")
    with Memory.open(shop.folder) as memory:
        dead = memory.work.claim(worker="dead", host="elsewhere", pid=1)
    assert isinstance(dead, Claim)
    claim = Work.claim

    def claim_and_release(work: Work, **who: Any) -> Claim | Refused | None:
        claimed = claim(work, **who)
        work.release_interrupted(dead)
        return claimed

    monkeypatch.setattr(Work, "claim", claim_and_release)

    assert shop.work("--all")["done"] == 1


def test_a_fault_of_ours_in_one_job_ends_the_run_instead_of_letting_the_others_wait(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.agent("while True: time.sleep(0.01)")
    for title in ("first", "second"):
        shop.add(title)
    claim = Work.claim

    def claim_once(work: Work, **who: Any) -> Claim | Refused | None:
        if work.claims():
            raise RuntimeError("a fault")
        return claim(work, **who)

    monkeypatch.setattr(Work, "claim", claim_once)

    with pytest.raises(RuntimeError, match="a fault"):
        shop.work("--all", "--jobs", "2")


ORPHAN_THEN_LONG = """
name = prompt.split("# Task: ")[1].split("\\n")[0]
open(f"{name}.new", "w").write(str(os.getpid())); os.rename(f"{name}.new", f"{name}.pid")
while not os.path.exists("over"): time.sleep(0.01)
print("<task-done/>")
"""


def test_a_busy_worker_ends_what_a_killed_one_left(shop: Shop) -> None:
    shop.agent(ORPHAN_THEN_LONG, lease_s=1)
    first = shop.add("first")
    command = [sys.executable, "-m", "learnt", "work", "--all"]
    dying = subprocess.Popen(command, cwd=shop.folder, stdout=subprocess.DEVNULL)
    until((shop.folder / "first.pid").exists)
    orphan = int((shop.folder / "first.pid").read_text())
    shop.add("second")
    busy = subprocess.Popen(command, cwd=shop.folder, stdout=subprocess.DEVNULL)
    until((shop.folder / "second.pid").exists)

    dying.kill()
    dying.wait()

    until(lambda: not _alive(orphan))
    assert busy.poll() is None, "it works on the second task all the while"
    (shop.folder / "over").touch()
    assert busy.wait(timeout=PATIENCE_S) == 0
    assert [one["result"] for one in shop.show(first)["attempts"]] == ["done", "interrupted"]


def test_cancelling_after_the_worker_died_still_ends_its_agent(shop: Shop) -> None:
    shop.agent(WAIT, lease_s=1)
    task = shop.add("Anything")
    worker = subprocess.Popen([sys.executable, "-m", "learnt", "work"], cwd=shop.folder, stdout=subprocess.DEVNULL)
    until(lambda: (shop.folder / "started").exists() and (shop.folder / "started").read_text())
    worker.kill()
    worker.wait()
    shop.learnt("task", "cancel", task)

    shop.work("--all")

    assert not _alive(int((shop.folder / "started").read_text()))
    shown = shop.show(task)
    assert shown["status"] == "cancelled"
    assert [one["result"] for one in shown["attempts"]] == ["interrupted"]
    assert os.listdir(shop.folder / ".learnt" / "running") == []


def test_a_run_in_the_background_that_cannot_begin_says_so_at_once(shop: Shop) -> None:
    shop.agent("pass", command="/no/such/program")
    shop.add("Anything")
    done = shop.learnt("work", "--background")
    assert done.code == 1
    assert "cannot be started" in done.err


def test_cancelling_stops_the_agent_that_works_on_it(shop: Shop) -> None:
    shop.agent(WAIT, lease_s=1)
    task = shop.add("Anything")
    process = subprocess.Popen([sys.executable, "-m", "learnt", "work"], cwd=shop.folder, stdout=subprocess.DEVNULL)
    until(lambda: (shop.folder / "started").exists() and (shop.folder / "started").read_text())

    shop.learnt("task", "cancel", task)

    process.wait(timeout=PATIENCE_S)
    assert not _alive(int((shop.folder / "started").read_text()))
    assert shop.show(task)["status"] == "cancelled"


def test_the_agent_is_told_whose_it_is_and_its_own_hooks_stay_silent(shop: Shop) -> None:
    shop.agent(
        "import subprocess\n"
        'event = \'{"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "build the shop"}\'\n'
        "said = subprocess.run([sys.executable, '-m', 'learnt', 'hook'], input=event, text=True, capture_output=True)\n"
        "print(f'<task-done>{os.environ[\"LEARNT_TASK\"]} {said.stdout!r}</task-done>')"
    )
    shop.learnt("add", "Build the shop with care")
    task = shop.add("Build the shop")
    shop.work()
    assert shop.show(task)["attempts"][0]["summary"] == f"{task} ''"


def test_a_project_can_have_prompts_of_its_own(shop: Shop) -> None:
    shop.agent("print('<task-done/>')")
    prompts = shop.folder / ".learnt" / "prompts"
    prompts.mkdir()
    (prompts / "task.md").write_text("Do: $title for $$5\n$instructions\n$unknown")
    (prompts / "poem.md").write_text("Write verses.")
    task = shop.add("A song", "--type", "poem")
    assert shop.learnt("task", "prompt", task).out == "Do: A song for $5\nWrite verses.\n$unknown\n"


def test_what_a_task_builds_on_stands_in_its_prompt_and_learnings_can_be_left_out(shop: Shop) -> None:
    shop.agent("print('<task-done>found a hole in the fence</task-done>')")
    shop.learnt("add", "Mend the fence with wire")
    review = shop.add("Look at the fence", "--type", "review")
    shop.work()
    plain = shop.add("Mend the fence", "--based-on", review, "--type", "improve")
    without = shop.add("Mend the fence", "--no-learnings")

    prompt = shop.learnt("task", "prompt", plain).out

    assert "found a hole in the fence" in prompt
    assert prompt.index("Mend the fence with wire") < prompt.index("What this builds on")
    assert prompt.index("What this builds on") < prompt.index("Work through the findings")
    assert "wire" not in shop.learnt("task", "prompt", without).out


def test_looking_at_a_prompt_leaves_no_trace(shop: Shop) -> None:
    shop.agent("print('<task-done/>')")
    learning = json.loads(shop.learnt("add", "Mend the fence with wire", "--json").out)["id"]
    task = shop.add("Mend the fence")
    assert learning in shop.learnt("task", "prompt", task).out
    with Memory.open(shop.folder) as memory:
        assert memory.get(learning).times_injected == 0


def test_secrets_that_an_agent_prints_are_in_no_file_afterwards(shop: Shop) -> None:
    secret = "ghp_" + "Zx9Q" * 9
    shop.agent(f"print('I ran it with', '{secret[:10]}' + '{secret[10:]}')\nprint('<task-done/>')")
    (shop.folder / "agent.py").write_text((shop.folder / "agent.py").read_text())
    shop.add("Anything")
    shop.work()
    for path in (shop.folder / ".learnt").rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


def test_an_agent_that_removes_its_repository_does_not_touch_the_one_around_it(shop: Shop) -> None:
    shop.agent("os.remove('.git'); open('new', 'w').close(); print('<task-done/>')", isolation="worktree")
    shop.repository()
    (shop.folder / "dirty").write_text("mine")
    before = shop.git("rev-parse", "HEAD")
    task = shop.add("Anything")

    shop.work("--max-iterations", "1", code=1)

    assert shop.git("rev-parse", "HEAD") == before
    assert shop.git("status", "--short") == "?? dirty\n"
    assert shop.show(task)["attempts"][0]["result"] == "failed"
    assert "no longer a worktree" in shop.show(task)["attempts"][0]["failure"]["reason"]


def test_work_on_a_branch_of_the_agents_own_is_kept(shop: Shop) -> None:
    shop.agent(
        "import subprocess\nsubprocess.run(['git', 'checkout', '-q', '-b', 'feature'])\n"
        "open('new', 'w').close()\nprint('<task-done/>')",
        isolation="worktree",
    )
    shop.repository()
    task = shop.add("Anything")
    shop.work()
    assert "new" in shop.git("ls-tree", "--name-only", f"learnt/{task}")


def test_a_deleted_worktree_is_never_done(shop: Shop) -> None:
    shop.agent("import shutil\nshutil.rmtree(os.getcwd())\nprint('<task-done/>')", isolation="worktree")
    shop.repository()
    task = shop.add("Anything")
    shop.work("--max-iterations", "1", code=1)
    assert shop.show(task)["attempts"][0]["failure"]["category"] == "missing-file"


def test_a_split_task_gets_the_work_of_its_parts_and_what_came_to_the_main_branch(shop: Shop) -> None:
    shop.agent(
        "name = prompt.split('# Task: ')[1].split('\\n')[0]\n"
        "there = sorted(one for one in os.listdir('.') if not one.startswith('.'))\n"
        "open(name, 'w').write(' '.join(there))\n"
        "print('<task-failed/>' if name == 'whole' and 'part' not in there else '<task-done/>')",
        isolation="worktree",
    )
    shop.repository()
    whole = shop.add("whole")
    shop.work("--max-iterations", "1", code=1)
    shop.learnt("task", "split", whole, "part")
    (shop.folder / "late").write_text("x")
    shop.git("add", "late")
    shop.git("commit", "-q", "-m", "late")

    shop.work("--all")

    assert "part" in shop.git("show", f"learnt/{whole}:whole").split()


def test_the_budget_counts_what_a_model_costs_about_where_nobody_tells(shop: Shop) -> None:
    shop.agent("print('<task-failed/>')")
    shop.models("small", "large")
    shop.add("Anything")

    summary = shop.work("--all", "--budget-usd", "3.5", code=1)

    assert len(summary["attempts"]) == 2, "1 and 2 dollars"
    assert tells(summary["stopped"], "$3.00 are spent", "$2.00")


def test_a_task_that_cannot_be_begun_is_handed_to_a_person_and_costs_no_attempt(shop: Shop) -> None:
    shop.agent("print('<task-done/>')")
    (shop.folder / "spec.md").write_text("x")
    broken, good = shop.add("One", "--spec", "spec.md"), shop.add("Two")
    (shop.folder / "spec.md").unlink()

    summary = shop.work("--all", "--max-iterations", "1", code=1)

    assert (shop.show(broken)["status"], shop.show(good)["status"]) == ("escalated", "done")
    assert [attempt["task"] for attempt in summary["attempts"]] == [good]
    assert {task["id"]: task["attempts"] for task in summary["tasks"]} == {broken: 0, good: 1}
    assert [model["attempts"] for model in summary["models"]] == [1]
    assert shop.show(broken)["attempts"] == []
    assert shop.learnt("log", broken).code == 0, "it says what was tried"
    (asked,) = json.loads(shop.learnt("escalations", "--json").out)
    assert "spec.md" in asked["question"]
    assert f"`learnt task edit {broken}`" in asked["question"]
    assert f"`learnt task retry {broken}`" in asked["question"]
    assert shop.learnt("task", "edit", broken, "--spec", "").code == 0
    assert shop.learnt("task", "retry", broken).code == 0
    assert shop.work()["done"] == 1


def test_a_wrong_setting_ends_the_run_before_any_attempt(shop: Shop) -> None:
    shop.agent("print('<task-done/>')", model="typo")
    file = shop.folder / "learnt.toml"
    file.write_text(f'strategy = "fixed"\n{file.read_text()}')
    shop.models("small")
    task = shop.add("Anything")
    done = shop.learnt("work")
    assert done.code == 2
    assert "`typo` is not configured" in done.err
    assert shop.show(task)["attempts"] == []


def test_the_reader_of_the_screen_may_leave(shop: Shop) -> None:
    shop.agent("print('<task-done/>')")
    tasks = [shop.add(f"Task {number}") for number in range(3)]
    command = f"{sys.executable} -m learnt work --all | head -1"
    done = subprocess.run(["sh", "-c", command], cwd=shop.folder, capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr
    assert [shop.show(task)["status"] for task in tasks] == ["done"] * 3


def test_a_result_that_had_to_wait_for_the_database_is_not_worked_for_again(shop: Shop) -> None:
    shop.agent(
        "open('count', 'a').write('x')\ntime.sleep(1)\nprint('<task-done/>', flush=True)",
        lease_s=2,
    )
    task = shop.add("Anything")
    with Memory.open(shop.folder) as memory:
        holder = subprocess.Popen(
            [sys.executable, "-c", LOCK, memory.context.store.place.path], stdin=subprocess.PIPE, cwd=shop.folder
        )
    with holder:
        worker = subprocess.Popen([sys.executable, "-m", "learnt", "work"], cwd=shop.folder, stdout=subprocess.DEVNULL)
        worker.wait(timeout=PATIENCE_S)
    assert (shop.folder / "count").read_text() == "x"
    assert [one["result"] for one in shop.show(task)["attempts"]] == ["done"]


# Waits for the agent to start, then keeps the database to itself for longer than a debrief waits, and than a lease.
LOCK = """
import apsw, os, sys, time
while not os.path.exists("count"): time.sleep(0.01)
connection = apsw.Connection(sys.argv[1])
connection.set_busy_timeout(60000)
connection.execute("begin immediate")
time.sleep(3)
connection.execute("commit")
"""
