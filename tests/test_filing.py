"""What becomes of learnings.md over several updates, and of those who start one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from learnt import Memory
from learnt.errors import InvalidValue, WrongRequest
from learnt.system import detached
from learnt.system.detached import INTERNAL


def test_what_was_removed_from_the_file_and_restored_stays_restored(memory: Memory) -> None:
    learning = memory.add("Use pytest fixtures for database setup")
    memory.file.update()
    path = Path(memory.file.path())
    path.write_text("".join(line for line in path.read_text().splitlines(True) if learning.id not in line))
    memory.file.update()
    assert memory.get(learning.id).status == "hidden"
    memory.restore(learning.id)
    memory.file.update()
    assert memory.get(learning.id).status == "active"
    assert learning.id in path.read_text()


def test_words_behind_a_learnings_action_are_kept_though_the_line_lost_its_comments(memory: Memory) -> None:
    memory.add("Start Redis before the tests", action="Run `make redis` first.")
    memory.file.update()
    path = Path(memory.file.path())
    line = "- Start Redis before the tests → Run `make redis` first."
    path.write_text(f"{line}\n")
    assert memory.file.update().taken == ()
    path.write_text(f"{line}\n  because the cache is cold\n")
    assert [edit.text for edit in memory.file.update().taken] == [f"{line[2:]} because the cache is cold"]


def test_empty_lines_do_not_take_the_file_beyond_its_bound(memory: Memory) -> None:
    memory.add("Use pytest fixtures for database setup")
    memory.file.update()
    path = Path(memory.file.path())
    short = path.read_text()
    path.write_text(short.replace("\n\n", "\n" + " \n" * 20_000))
    memory.file.update()
    assert len(path.read_text()) == len(short)


def test_what_a_killed_update_left_beside_the_file_goes_with_the_next(sqlite_memory: Memory) -> None:
    sqlite_memory.add("Use pytest fixtures for database setup")
    left = Path(f"{sqlite_memory.file.path()}.new")
    left.write_text("half of it")
    sqlite_memory.file.update()
    assert not left.exists()


def test_the_process_that_makes_the_files_holds_nothing_that_its_starter_was_given(
    project: Path, sqlite_memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqlite_memory.add("Use pytest fixtures for database setup")
    monkeypatch.setenv("LEARNT_LEARNINGS_REGENERATE_EVERY", "1")
    sqlite_memory.debrief("task_1", "Well.", result="done")
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    process = detached.start(
        [sys.executable, "-P", "-m", "learnt", "update", "-C", str(project)],
        environ={**os.environ, INTERNAL: "1"},
        log=os.path.join(sqlite_memory.context.store.place.folder, "update.log"),
    )
    os.close(writing)
    assert os.read(reading, 1) == b""  # whoever reads to the end is not kept waiting by the process
    os.close(reading)
    assert os.waitpid(process.pid, 0)[1] == 0
    assert process.poll() == 0
    assert "Use pytest fixtures" in Path(sqlite_memory.file.path()).read_text()


def test_a_link_out_of_the_project_is_neither_read_nor_written(memory: Memory, tmp_path: Path) -> None:
    memory.add("Use pytest fixtures for database setup")
    outside = tmp_path / "outside.md"
    outside.write_text("- precious\n")
    Path(memory.file.path()).symlink_to(outside)
    for act in (memory.file.update, memory.file.clear, memory.file.read):
        with pytest.raises(WrongRequest, match="it is a link, and learnt follows none"):
            act()
    assert outside.read_text() == "- precious\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
@pytest.mark.parametrize("make", ["folder", "pipe", "latin", "huge"])
def test_what_can_be_no_learnings_file_is_refused_and_left_alone(sqlite_memory: Memory, make: str) -> None:
    path = Path(sqlite_memory.file.path())
    if make == "folder":
        path.mkdir()
    elif make == "pipe":
        os.mkfifo(path)
    elif make == "latin":
        path.write_bytes("- café\n".encode("latin-1"))
    else:
        path.write_text("x" * 5_000_001)
    with pytest.raises(WrongRequest, match=r"is not a file|not UTF-8 text|larger than"):
        sqlite_memory.file.update()
    assert make != "latin" or path.read_bytes() == "- café\n".encode("latin-1")


def test_a_window_beyond_all_numbers_is_refused(sqlite_memory: Memory) -> None:
    for window in (0, -1, 10**20):
        with pytest.raises(WrongRequest, match="the window cannot be"):
            sqlite_memory.file.update(window=window)
    assert sqlite_memory.file.regenerations() == []


def test_a_goal_is_a_name_and_no_path(sqlite_memory: Memory) -> None:
    with pytest.raises(InvalidValue, match="goal"):
        sqlite_memory.file.read("../../secret")


def test_a_bullet_that_says_the_opposite_does_not_keep_the_advice(memory: Memory) -> None:
    turned = memory.add("Use tox for the tests", action="Run `tox -e py`")
    reworded = memory.add("Integration tests need the fake mail server", action="make mail-up first")
    memory.file.update()
    path = Path(memory.file.path())
    text = path.read_text().replace("Use tox for the tests", "Do not use tox for the tests, it was removed")
    path.write_text(text.replace("the fake mail server", "the fake mail server running"))
    memory.file.update()
    assert memory.get(turned.id).action == ""
    assert memory.get(reworded.id).action == "make mail-up first"


def test_the_file_of_another_clone_keeps_its_ids_and_is_on_trial(memory: Memory) -> None:
    path = Path(memory.file.path())
    path.parent.mkdir(exist_ok=True)
    path.write_text("# Project Learnings\n\n- Use tox <!-- learn_theirs -->\n\n<!-- learnt: r_theirs -->\n")
    update = memory.file.update()
    assert [(one.what, one.id) for one in update.taken] == [("added", "learn_theirs")]
    learning = memory.get("learn_theirs")
    assert (learning.title, learning.origin, learning.confidence) == ("Use tox", "import", 0.5)
    path.write_text(path.read_text().replace("Use tox", "Use nox"))
    memory.file.update()
    assert memory.get("learn_theirs").title == "Use nox"


def test_what_an_agent_does_to_the_file_is_on_trial_or_put_back(memory: Memory) -> None:
    pinned = memory.add("Never skip the tests", pinned=True)
    other = memory.add("Use tabs")
    memory.file.update()
    path = Path(memory.file.path())
    assert memory.file.apply_edits(agent="coder") is None
    kept = [line for line in path.read_text().splitlines(True) if pinned.id not in line]
    path.write_text("".join(kept).replace("Use tabs", "Use spaces") + "- Skip the tests\n")
    update = memory.file.apply_edits(agent="coder")
    assert update is not None
    assert any("were reverted" in remark for remark in update.remarks)
    assert (memory.get(pinned.id).status, memory.get(other.id).title) == ("active", "Use tabs")
    (added,) = [one for one in memory.learnings().learnings if one.title == "Skip the tests"]
    assert (added.origin, added.confidence) == ("agent", 0.5)
    assert pinned.id in path.read_text()


def test_what_is_mined_late_is_not_lost_by_a_small_window(memory: Memory) -> None:
    for number in range(4):
        said = f"Never run `bin/check{number}` with `STAGE=prod`: it deletes the data."
        memory.debrief(f"task_{number}", said, result="done")
    assert len(memory.file.update(window=1).mined) == 1
    assert len(memory.file.update(window=30).mined) == 3


def test_a_review_and_its_improvement_are_understood_in_one_update(memory: Memory) -> None:
    review = memory.tasks.add("Look at the shop", type="review")
    improve = memory.tasks.add("Mend the shop", type="improve", based_on=review.id)
    memory.debrief(review.id, "- `app/db.py` opens a connection without closing it\n\n<task-done/>", result="done")
    said = "I closed the connection that `app/db.py` opens, so it is not left without closing.\n\n<task-done/>"
    memory.debrief(improve.id, said, result="done")
    memory.file.update()
    titles = [one.title for one in memory.learnings().learnings]
    assert any("app/db.py" in title for title in titles), titles
    assert not any("task-done" in title for title in titles)


def test_what_is_taken_out_of_the_file_by_a_killed_update_can_be_restored(
    sqlite_memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    learning = sqlite_memory.add("Use pytest fixtures for database setup")
    sqlite_memory.file.update()
    path = Path(sqlite_memory.file.path())
    path.write_text("".join(line for line in path.read_text().splitlines(True) if learning.id not in line))
    with monkeypatch.context() as patch:
        patch.setattr("learnt.flow.disk.replace", _die)
        with pytest.raises(KeyboardInterrupt):
            sqlite_memory.file.update()
    assert sqlite_memory.get(learning.id).status == "hidden"
    sqlite_memory.restore(learning.id)
    sqlite_memory.file.update()
    assert sqlite_memory.get(learning.id).status == "active"


def _die(*_: object) -> bool:
    raise KeyboardInterrupt


def test_what_an_agent_says_in_a_conversation_is_mined_too(memory: Memory) -> None:
    memory.debrief("task_talk", "Never run `bin/check` with `STAGE=prod`: it deletes the data.", task_type="session")
    memory.file.update()
    assert [one.title for one in memory.learnings().learnings] == [
        "Never run `bin/check` with `STAGE=prod`: it deletes the data"
    ]
