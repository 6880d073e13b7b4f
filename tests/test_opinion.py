"""After a run at a terminal a person is asked, once, whether the learnings helped; nobody has to answer."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from learnt import Memory
from tests.conftest import Done
from tests.support.shop import Shop

QUESTION = b"Did the learnings help? [y]es / [n]o / [u]nsure / [d]on't ask again "
PATIENCE_S = 60


@pytest.fixture
def shop(project: Path, learnt: Callable[..., Done]) -> Shop:
    """A project whose agent does a task that a learning is about."""
    made = Shop(project, learnt)
    made.agent("print('<task-done/>')")
    made.learn("Run make_settings.py before the build of the shop")
    made.add("Build the shop")
    return made


def work(shop: Shop, *words: str, typed: bytes) -> tuple[int, bytes]:
    """Let a person work at a terminal, who types as soon as they are asked; return the exit code and the screen."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "learnt", "work", *words],
        cwd=shop.folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    screen = b""
    while True:
        try:
            read = os.read(ours, 10_000)
        except OSError:  # Linux says so when the other end is closed
            break
        if not read:
            break
        screen += read
        if screen.endswith(QUESTION):
            os.write(ours, typed)
    os.close(ours)
    assert b"Traceback" not in screen
    return process.wait(timeout=PATIENCE_S), screen


def opinions(shop: Shop) -> dict[str, int]:
    told: dict[str, int] = json.loads(shop.learnt("stats", "--json").out)["opinions"]
    return told


@pytest.mark.parametrize(("key", "answer"), [(b"y", "yes"), (b"n", "no"), (b"u", "unsure")])
def test_one_key_answers_and_is_kept(shop: Shop, key: bytes, answer: str) -> None:
    code, screen = work(shop, typed=key)
    assert code == 0
    assert screen.count(QUESTION) == 1
    assert opinions(shop) == {answer: 1}


@pytest.mark.parametrize("key", [b"\n", b"\x04", b"x", b"\x1b"])
def test_no_answer_is_fine_and_keeps_nothing(shop: Shop, key: bytes) -> None:
    code, _ = work(shop, typed=key)
    assert code == 0
    assert opinions(shop) == {}


def test_who_does_not_want_to_be_asked_is_told_how(shop: Shop) -> None:
    before = (shop.folder / "learnt.toml").read_bytes()
    _, screen = work(shop, typed=b"d")
    assert b"`ask = false` under [learnings]" in screen
    assert (shop.folder / "learnt.toml").read_bytes() == before
    assert opinions(shop) == {}


def test_nobody_is_asked_when_it_is_switched_off(shop: Shop) -> None:
    settings = shop.folder / "learnt.toml"
    settings.write_text(f"learnings.ask = false\n{settings.read_text()}")
    assert QUESTION not in work(shop, typed=b"y")[1]


def test_nobody_is_asked_without_a_learning_in_the_brief(shop: Shop) -> None:
    with Memory.open(shop.folder) as memory:
        for learning in list(memory.transfer.export()):
            memory.hide(learning.id)
    assert QUESTION not in work(shop, typed=b"y")[1]


def test_nobody_is_asked_when_nothing_was_done(shop: Shop) -> None:
    (shop.folder / "agent.py").write_text("print('<task-failed/>')")
    assert QUESTION not in work(shop, "--max-iterations", "1", typed=b"y")[1]


def test_nobody_is_asked_with_json_or_in_a_pipe(shop: Shop) -> None:
    assert QUESTION not in work(shop, "--json", typed=b"y")[1]
    shop.add("Build the shop again")
    done = shop.learnt("work", stdin="y\n")
    assert "Did the learnings help" not in done.out + done.err
    assert opinions(shop) == {}
