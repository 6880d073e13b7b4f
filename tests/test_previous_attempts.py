"""What a retry is told about earlier attempts: real reasons, each approach once, six long ones in one brief."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from learnt import Memory
from learnt.mine.complaint import find_first_error
from learnt.text.words import estimate_tokens
from tests.support.doors import Learnt
from tests.support.shop import Shop

OUTPUTS = {
    "pytest": (
        "tests/test_a.py F\n=== FAILURES ===\n>       assert add(1, 2) == 4\nE       assert 3 == 4\n"
        "E        +  where 3 = add(1, 2)\n\ntests/test_a.py:5: AssertionError\n"
        "FAILED tests/test_a.py::test_add - assert 3 == 4\nmake: *** [Makefile:2: test] Error 1\n",
        "assert 3 == 4",
    ),
    "a chain of exceptions": (
        "Traceback (most recent call last):\n  File 'a.py', line 1\nKeyError: 'name'\n\nDuring handling of the above "
        "exception, another exception occurred:\n\nTraceback (most recent call last):\nRuntimeError: cannot go on\n",
        "KeyError: 'name'",
    ),
    "a compiler": (
        "cc -c a.c\na.c: In function 'main':\na.c:3:5: error: unknown type name 'foo'\na.c:9:1: error: expected ';'\n"
        "make: *** [Makefile:2: all] Error 1\n",
        "a.c:3:5: error: unknown type name 'foo'",
    ),
    "go": (
        "--- FAIL: TestAdd (0.00s)\n    add_test.go:8: got 3, want 4\nFAIL\nexit status 1\nFAIL\tx\t0.002s\n",
        "add_test.go:8: got 3, want 4",
    ),
    "cargo": (
        "test tests::sums ... FAILED\n\nthread 'tests::sums' panicked at src/lib.rs:9:9:\nassertion `left == right` "
        "failed\n\ntest result: FAILED. 0 passed; 1 failed\nerror: test failed, to rerun pass `--lib`\n",
        "assertion `left == right` failed",
    ),
    "jest": (
        "FAIL src/sum.test.js\n  ● adds\n\n    expect(received).toBe(expected)\n\n    Received: 3\n\n"
        "npm ERR! Test failed.  See above for more details.\n",
        "expect(received).toBe(expected)",
    ),
    "a linter": ("a.py:1:8: F401 [*] `os` imported but unused\nFound 1 error.\n", "a.py:1:8: F401"),
    "a missing program": ("sh: 1: pytst: not found\n", "sh: 1: pytst: not found"),
    "no reason at all": ("make: *** [Makefile:2: all] Error 1\n", ""),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_first_error_is_the_reason_whatever_was_printed_after_it(name: str) -> None:
    output, error = OUTPUTS[name]
    found = find_first_error(output)
    assert found.startswith(error)
    assert bool(found) == bool(error)


@pytest.fixture
def shop(project: Path, learnt: Learnt) -> Shop:
    return Shop(project, learnt)


def test_a_done_that_the_verification_refuted_is_told_with_the_first_error_and_what_was_done(shop: Shop) -> None:
    verify = "echo 'KeyError: no till'; echo 'learnt: error: ours' >&2; echo 'make: *** [all] Error 1' >&2; exit 2"
    shop.agent("print('<task-done>painted the till</task-done>')", verify=verify)
    task = shop.add("Paint the till")

    shop.work("--max-iterations", "1", code=1)

    report = shop.show(task)["attempts"][0]["failure"]
    assert report["reason"].startswith("said to be done, but the verification `echo ")
    assert report["reason"].endswith("ended with exit code 2: KeyError: no till")
    assert report["error"].startswith("KeyError: no till")
    assert "learnt: error" not in report["error"], "what we print ourselves is nobody's error"
    assert report["tried"] == "painted the till"
    brief = shop.learnt("brief", "--task", task).out
    assert "### Attempt 1: said done, and refuted" in brief
    assert "- Tried: painted the till\n- Failed because: the verification" in brief
    assert brief.count("KeyError: no till") == 2, "in the command, and as the error"


def test_what_our_own_commands_tell_an_agent_is_marked_as_ours(shop: Shop) -> None:
    done = shop.learnt("show", "learn_none", env={"LEARNT_TASK": "task_x"})
    assert all(line.startswith("learnt: ") for line in done.err.splitlines())
    assert shop.learnt("show", "learn_none").err.startswith("error: ")


def fail(memory: Memory, tried: str, reason: str, *, task: str = "task_1", model: str = "", more: str = "") -> None:
    report = f"<failure-report>\nwhat_tried: {tried}\nwhy_failed: {reason}\n{more}\n</failure-report><task-failed/>"
    memory.debrief(task, report, model=model)


def test_each_approach_stands_once_with_how_often_it_was_tried(memory: Memory) -> None:
    fail(memory, "Patched the lexer by hand", "the lexer is generated", model="haiku")
    fail(memory, "Edited the grammar file", "KeyError: 'rule' in line 17", model="sonnet")
    fail(memory, "patched the lexer, by hand", "the lexer is generated", model="opus")
    fail(memory, "Wrote a new parser", "KeyError: 'rule' in line 99", model="opus")

    text = memory.brief("again", task="task_1").text

    assert text.lower().count("patched the lexer") == 1
    assert "### Attempts 3 and 1: tried 2 times, failed (opus, haiku)" in text
    assert text.index("Wrote a new parser") < text.index("patched the lexer") < text.index("Edited the grammar")
    assert "Failed because: as in attempt 4" in text, "the same error is told once"
    assert text.count("KeyError") == 1


def test_attempts_that_say_nothing_are_one_approach_while_their_error_is_the_same(memory: Memory) -> None:
    for number in range(4):
        memory.debrief("task_1", f"Traceback: bad row {number} in /tmp/run{number}/x.csv", result="failed")
    text = memory.brief("again", task="task_1").text
    assert "### Attempts 4, 3, 2 and 1: tried 4 times, failed" in text
    assert text.count("bad row") == 1


LONG = "rewrote the importer so that it reads the whole catalogue at once instead of in parts and then again " * 5


def test_six_long_attempts_fit_into_a_thousand_tokens_and_no_word_is_cut(memory: Memory) -> None:
    names = ("ann", "ben", "cat", "dan", "eva", "fay")
    for name in names:
        unlike = " ".join(f"{name}way{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")
        more = f"avoid: {name}avoid {LONG}\nstack_trace: {name}error {LONG}"
        fail(memory, f"{unlike} {LONG}", f"{name}reason {LONG}", more=more)
    for number in range(5):
        memory.add(f"Import the catalogue again, part {number}", observation="It is read whole. " * 20)
    brief = memory.brief("import the catalogue again", task="task_1", budget_tokens=1_000)

    assert len(brief.learning_ids) == 5
    assert estimate_tokens(brief.text) <= 1_000 + 120, "the stuck warning stands outside of the budget"
    assert brief.receipt["attempts_left_out"] == []
    for name in names:
        assert f"{name}reason" in brief.text
    known = set(LONG.split()) | {f"{name}way{letter}" for name in names for letter in "abcdefghijklmnopqrstuvwxyz"}
    assert {word.strip("…,.:;)") for word in brief.text.split() if "…" in word} <= known
    assert memory.why.is_as_sent(memory.explain(brief.id))


def test_older_attempts_are_shortened_before_the_newest_one(memory: Memory) -> None:
    for number in range(6):
        fail(memory, f"way{number} " + f"step{number} " * 60, f"reason{number} " + f"cause{number} " * 60)
    text = memory.brief("again", task="task_1", budget_tokens=400).text
    assert text.count("step5") > text.count("step4") >= text.count("step0") > 0
    assert "Earlier, in short:" in text


def test_nothing_in_a_report_is_said_twice(memory: Memory) -> None:
    said = "what_tried: x\nwhy_failed: the disk is full\nstack_trace: the disk is full\navoid: small disks"
    output = (
        f"<failure-report>\n{said}\n</failure-report><retry-suggestion>Small disks</retry-suggestion><task-failed/>"
    )
    memory.debrief("task_1", output)
    text = memory.brief("again", task="task_1").text
    assert text.count("the disk is full") == 1
    assert text.lower().count("small disks") == 1


def test_the_latest_suggestion_is_told_however_little_room_there_is(memory: Memory) -> None:
    for number in range(3):
        report = f"<failure-report>\nwhat_tried: way{number} {'x' * 300}\nwhy_failed: reason{number} {'y' * 300}\n"
        output = f"{report}</failure-report><retry-suggestion>Try hint{number}</retry-suggestion><task-failed/>"
        memory.debrief("task_1", output)
    text = memory.brief("again", task="task_1", budget_tokens=190).text
    assert "hint2" in text
    assert "hint0" not in text


def test_the_least_report_of_a_refuted_done_says_so(learnt: Learnt, project: Path) -> None:
    learnt("init")
    done = learnt("debrief", "--task", "task_1", "--result", "failed", "--json", stdin="<task-done>swept</task-done>")
    report = json.loads(done.out)["failure"]
    assert report["tried"] == "swept"
    assert report["reason"].startswith("said to be done, but ")
