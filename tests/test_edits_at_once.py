"""What a person changes in learnings.md counts at the next brief, search, list and prompt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from learnt import Memory
from tests.support.doors import Learnt
from tests.support.hooks import Client

ASKED = "Weigh the apples twice"


@pytest.fixture
def file(project: Path) -> Path:
    """A written learnings.md with one bullet."""
    with Memory.open(project) as memory:
        memory.add("Count the till with the drawer closed")
        memory.file.update()
    return project / ".learnt" / "learnings.md"


def add_bullet(file: Path, text: str) -> None:
    before, trailer = file.read_text().rsplit("<!-- learnt:", 1)
    file.write_text(f"{before.rstrip()}\n- {text}\n\n<!-- learnt:{trailer}")


DOORS: dict[str, Callable[[Memory], list[str]]] = {
    "search": lambda memory: [hit.learning.title for hit in memory.search(ASKED)],
    "brief": lambda memory: [memory.get(id).title for id in memory.brief(ASKED).learning_ids],
    "list": lambda memory: [learning.title for learning in memory.learnings().learnings],
    "template": lambda memory: memory.render_agent("{{ learnings }}").split("\n"),
}


@pytest.mark.parametrize("door", DOORS)
def test_an_edit_counts_at_once(project: Path, file: Path, door: str) -> None:
    add_bullet(file, ASKED)

    with Memory.open(project) as memory:
        assert any(ASKED in text for text in DOORS[door](memory))
        (learning,) = [one for one in memory.learnings().learnings if one.title == ASKED]
        assert learning.vouched == "person"
    assert learning.id in file.read_text(), "the file names it now"


def test_a_removed_bullet_is_given_to_nobody(project: Path, file: Path) -> None:
    file.write_text("".join(line for line in file.read_text().splitlines(True) if "till" not in line))

    with Memory.open(project) as memory:
        assert memory.brief("Count the till with the drawer closed").learning_ids == ()


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
def test_an_edit_counts_at_the_next_hook(
    project: Path, file: Path, learnt: Learnt, event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEARNT_HOOK_DEADLINE_MS", "60000")
    add_bullet(file, ASKED)

    assert ASKED in Client(learnt, "claude").hear(event, prompt=ASKED)


def test_what_a_hook_has_no_time_for_is_left_to_the_worker(project: Path, file: Path, learnt: Learnt) -> None:
    add_bullet(file, ASKED)
    swap = file.with_name(".learnings.md.swp")
    swap.touch()

    assert ASKED not in Client(learnt, "claude").hear("UserPromptSubmit", prompt=ASKED)
    swap.unlink()
    with Memory.open(project) as memory:
        memory.worker.catch_up()
        assert ASKED in [learning.title for learning in memory.learnings().learnings]


def test_in_the_loop_the_edits_of_the_agent_are_not_taken_for_a_persons(
    project: Path, file: Path, learnt: Learnt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEARNT_TASK", "task_1")
    before = file.read_text()
    add_bullet(file, ASKED)
    edited = file.read_text()

    Client(learnt, "claude", agent_id="a").hear("UserPromptSubmit", prompt=ASKED)
    assert before != file.read_text() == edited


def test_an_unreadable_edit_is_reported_and_keeps_nothing_from_working(project: Path, file: Path) -> None:
    file.write_text(f"<<<<<<< HEAD\n- a\n=======\n- b\n>>>>>>> other\n{file.read_text()}")

    with Memory.open(project) as memory:
        assert memory.search("till")
        assert any("merge conflict" in remark for remark in memory.remarks)
