"""What a person sees of a run: a live table on a terminal, plain lines in a pipe, an account by titles, the log."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.doors import Learnt
from tests.support.shop import Shop
from tests.support.words import tells

PATIENCE_S = 60
LEARNS = (
    "print('<learning>Close the drawer before counting the till. It jams otherwise.</learning>')\n"
    "print('<task-done>counted</task-done>' if sys.argv[1] == 'large' else '<task-failed>too weak</task-failed>')"
)


@pytest.fixture
def shop(project: Path, learnt: Learnt) -> Shop:
    return Shop(project, learnt)


def see(shop: Shop, *words: str, columns: int = 160) -> str:
    """Return what a terminal shows while a command runs."""
    import pty  # there is none on Windows
    import termios

    own, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, columns))
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns)}
    command = [sys.executable, "-m", "learnt", *words]
    process = subprocess.Popen(command, cwd=shop.folder, stdout=theirs, stderr=subprocess.DEVNULL, env=environ)
    os.close(theirs)
    seen = bytearray()
    with os.fdopen(own, "rb", buffering=0) as screen:
        try:
            while chunk := screen.read(10_000):
                seen += chunk
        except OSError:
            pass  # Linux ends a terminal that nobody writes to any more like this
    process.wait(timeout=PATIENCE_S)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())


def test_on_a_terminal_a_run_is_a_live_table_and_what_ended_stands_above_it(shop: Shop) -> None:
    shop.agent(LEARNS)
    shop.models("small", "large")
    shop.add("Count the till")

    seen = see(shop, "work", "--budget-usd", "9")

    assert all(head in seen for head in ("task", "attempt", "model", "why this model", "time", "cost", "doing"))
    assert "Count the till" in seen
    assert "no attempts yet" in seen
    assert "≤ $1.00" in seen
    assert "$8.00 of $9.00 left" in seen, "while the first attempt is running"
    assert re.search(r"✗ task_\w+  Count the till  attempt 1  failed", seen)
    assert seen.count("too weak") == 1
    assert "2 attempts: 1 task done, 1 attempt failed" in seen


def test_a_run_that_waits_for_a_quota_shows_no_attempt_in_its_table(shop: Shop) -> None:
    shop.agent(
        "if not os.path.exists('asked'):\n"
        "    open('asked', 'w').close(); sys.exit('429 Too Many Requests: try again in 1.5 s')\n"
        "print('<task-done/>')"
    )
    shop.models("only")
    shop.add("Count the till")

    seen = see(shop, "work", "--budget-usd", "9")

    assert "$9.00 of $9.00 left" in seen[seen.index("continues at") :], "nothing is reserved while it waits"
    assert "1 attempt: 1 task done" in seen


def test_a_narrow_terminal_and_a_pipe_get_plain_lines(shop: Shop) -> None:
    shop.agent(LEARNS)
    task = shop.add("Count the till", "--model", "large")
    for seen in (see(shop, "work", columns=60), shop.learnt("work").out):
        assert "why this model" not in seen
        assert "\x1b" not in seen
    shown = shop.show(task)
    assert shown["status"] == "done"


def test_the_account_tells_titles_what_was_learnt_what_waits_and_the_cost_by_model(shop: Shop) -> None:
    shop.agent(
        "import json\n"
        "cost = 0.25 if 'Count' in prompt else 0.5\n"
        f"{LEARNS}\n"
        "print(json.dumps({'cost_usd': cost}), file=sys.stderr)"
    )
    shop.models("small", "large")
    counted = shop.add("Count the till")
    fly = shop.add("Fly to the moon", "--model", "small")

    done = shop.learnt("work", "--all")

    account = done.out
    assert account.splitlines()[-1].startswith("6 attempts: 1 task done, ")
    assert f"Count the till ({counted}): 2 attempts" in account
    assert f"Fly to the moon ({fly}): 4 attempts, escalated" in account
    assert "Learnt:\n  Close the drawer before counting the till. (learn_" in account
    assert "1 question for a person to decide (`learnt escalations`):\n  Fly to the moon (esc_" in account
    assert "By model:\n  large: 1 attempt, 1 done, cost unknown\n  small: 5 attempts, 0 done, cost unknown" in account


def test_the_account_for_programs_has_the_same(shop: Shop) -> None:
    shop.agent(LEARNS)
    shop.models("small", "large")
    task = shop.add("Count the till")
    account = shop.work()
    assert account["tasks"] == [
        {"id": task, "title": "Count the till", "status": "done", "attempts": 2, "cost_usd": 0.0}
    ]
    assert [one["title"] for one in account["learnt"]] == ["Close the drawer before counting the till."]
    assert account["waiting"] == []
    assert [(one["model"], one["attempts"], one["done"]) for one in account["models"]] == [
        ("large", 1, 1),
        ("small", 1, 0),
    ]


def test_a_followed_log_tells_an_attempt_to_its_last_line(shop: Shop) -> None:
    shop.agent(
        "open('started', 'w').close()\n"
        "while not os.path.exists('go'): time.sleep(0.01)\n"
        "print('<task-failed>the lamp is cold</task-failed>')"
    )
    task = shop.add("Warm the lamp")
    command = [sys.executable, "-m", "learnt"]
    worker = subprocess.Popen([*command, "work", "--max-iterations", "1"], cwd=shop.folder, stdout=subprocess.DEVNULL)
    waits = threading.Event()
    while not (shop.folder / "started").exists():
        assert worker.poll() is None
        waits.wait(0.01)
    following = subprocess.Popen([*command, "log", "-f", task], cwd=shop.folder, stdout=subprocess.PIPE, text=True)
    assert following.stdout is not None
    first = following.stdout.readline()
    (shop.folder / "go").touch()

    rest, _ = following.communicate(timeout=PATIENCE_S)

    assert worker.wait(timeout=PATIENCE_S) == 1
    assert "model: " in first
    assert rest.splitlines()[-1].endswith("failed: the attempt ended as failed, without a report: the lamp is cold")


def test_a_run_goes_on_with_the_same_words_after_a_crash(shop: Shop) -> None:
    shop.agent(
        "if os.path.exists('started'): print('<task-done/>'); sys.exit()\n"
        "open('new', 'w').write(str(os.getpid())); os.rename('new', 'started'); time.sleep(600)",
        lease_s=2,
    )
    task = shop.add("Anything")
    words = [sys.executable, "-m", "learnt", "work", "--all", "--jobs", "1"]
    worker = subprocess.Popen(words, cwd=shop.folder, stdout=subprocess.DEVNULL)
    waits = threading.Event()
    while not (shop.folder / "started").exists():
        assert worker.poll() is None
        waits.wait(0.01)
    worker.kill()
    worker.wait()

    subprocess.run(words, cwd=shop.folder, capture_output=True, timeout=PATIENCE_S, check=True)

    done, interrupted = shop.show(task)["attempts"]
    assert (done["result"], interrupted["result"]) == ("done", "interrupted")
    last = shop.learnt("log", interrupted["id"]).out.splitlines()[-1]
    assert tells(last, "interrupted", str(worker.pid), "died")


def test_the_table_of_the_strategy_holds_the_figures_that_its_reasons_name(shop: Shop) -> None:
    shop.agent("print('<task-done/>' if sys.argv[1] == 'large' or 'Quick' in prompt else '<task-failed/>')")
    shop.models("small", "large")
    for title in ("Quick one", "Quick two", "Slow one"):
        shop.add(title)
    file, settings = shop.folder / "learnt.toml", (shop.folder / "learnt.toml").read_text()
    file.write_text(f'strategy = "escalate"\n{settings}')  # `learned` explores: which model begins, its draws decide
    shop.work("--all")
    file.write_text(settings)

    told = shop.learnt("strategy").out
    ((model, reason),) = re.findall(r"(\w+): (\d of \d) attempts at `implement` tasks succeeded", told)
    row = next(line for line in told.splitlines() if line.startswith(model))
    assert reason in row
    assert shop.learnt("strategy").out == told, "the same record gives the same answer"
    large = next(line for line in told.splitlines() if line.startswith("large"))
    assert "1 of 1" in large, "after a failure"
    (first, *_) = json.loads(shop.learnt("strategy", "--json").out)["choices"]
    assert sum(first["draws"].values()) == pytest.approx(1.0)
