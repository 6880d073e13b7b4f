"""A damaged store is not written to: commands say what to do, hooks are silent, and turns are kept in the spool."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import apsw
import pytest

from learnt import Memory
from tests.support.doors import Learnt
from tests.support.hooks import Client, event_text

PROMPT = event_text("UserPromptSubmit", prompt="cache the schema of the replica")


@pytest.fixture
def store(project: Path) -> Path:
    """A store of many pages, with all of it in the file and nothing in the log."""
    with Memory.open(project) as memory:
        for number in range(60):
            memory.add(f"Cache the schema of replica {number}", action="x" * 2_000, confidence=0.9)
    path = project / ".learnt" / "learnt.db"
    connection = apsw.Connection(str(path))
    connection.execute("pragma wal_checkpoint(truncate)").fetchall()
    connection.close()
    return path


def damage_learnings(path: Path) -> None:
    """Overwrite the pages of one table; the schema and the other tables stay sound."""
    content = bytearray(path.read_bytes())
    for start in range(0, len(content), 4096):
        if b"Cache the schema of replica" in content[start : start + 4096] and start:
            content[start : start + 64] = b"\xff" * 64
    path.write_bytes(content)


def fingerprint(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


WRITES = (("add", "Another"), ("update",), ("tidy",), ("brief", "cache the schema"), ("import", "-"), ("backup",))


def test_after_the_damage_is_found_nothing_writes_the_file(store: Path, learnt: Learnt) -> None:
    damage_learnings(store)
    assert learnt("list").code == 1
    before = fingerprint(store)

    for words in WRITES:
        done = learnt(*words, stdin='{"title": "X"}')
        assert done.code == 1, (words, done)
        assert "damaged" in done.err
        assert "learnt backup --restore" in done.err
        assert fingerprint(store) == before, words


def test_hooks_are_silent_and_their_turns_are_kept(store: Path, learnt: Learnt, project: Path) -> None:
    damage_learnings(store)
    learnt("list")
    before = fingerprint(store)

    hook = learnt("hook", stdin=PROMPT)
    Client(learnt, "claude").tell("Stop", last_assistant_message="I cached the schema of the replica.")

    assert (hook.code, hook.out) == (0, "")
    assert fingerprint(store) == before
    (spool,) = (project / ".learnt").glob("spool.*.jsonl")
    assert "I cached the schema" in spool.read_text()


def test_a_backup_puts_an_end_to_it(store: Path, learnt: Learnt) -> None:
    learnt("backup", "--output", "good.db")
    damage_learnings(store)
    assert learnt("list").code == 1

    assert learnt("backup", "--restore", "good.db").code == 0
    assert "Cache the schema of replica 1" in learnt("list").out
    assert learnt("add", "Another").code == 0


def test_doctor_reports_the_damage_with_its_remedy(store: Path, learnt: Learnt) -> None:
    damage_learnings(store)
    learnt("list")

    told = learnt("doctor").out

    assert "damaged" in told
    assert "learnt backup --restore" in told
