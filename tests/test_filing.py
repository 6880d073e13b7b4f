"""What becomes of learnings.md over several updates, and of those who start one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from learnt import Memory
from learnt.memory import background
from learnt.memory.background import INTERNAL


def test_what_was_removed_from_the_file_and_restored_stays_restored(memory: Memory) -> None:
    learning = memory.add("Use pytest fixtures for database setup")
    memory.update()
    path = Path(memory.learnings_path())
    path.write_text("".join(line for line in path.read_text().splitlines(True) if learning.id not in line))
    memory.update()
    assert memory.get(learning.id).status == "hidden"
    memory.restore(learning.id)
    memory.update()
    assert memory.get(learning.id).status == "active"
    assert learning.id in path.read_text()


def test_empty_lines_do_not_take_the_file_beyond_its_bound(memory: Memory) -> None:
    memory.add("Use pytest fixtures for database setup")
    memory.update()
    path = Path(memory.learnings_path())
    short = path.read_text()
    path.write_text(short.replace("\n\n", "\n" + " \n" * 20_000))
    memory.update()
    assert len(path.read_text()) == len(short)


def test_what_a_killed_update_left_beside_the_file_goes_with_the_next(sqlite_memory: Memory) -> None:
    sqlite_memory.add("Use pytest fixtures for database setup")
    left = Path(f"{sqlite_memory.learnings_path()}.new")
    left.write_text("half of it")
    sqlite_memory.update()
    assert not left.exists()


def test_the_process_that_makes_the_files_holds_nothing_that_its_starter_was_given(
    project: Path, sqlite_memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqlite_memory.add("Use pytest fixtures for database setup")
    monkeypatch.setenv(INTERNAL, "")
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    background._start_worker(sqlite_memory.store.place.folder, str(project))
    os.close(writing)
    assert os.read(reading, 1) == b""  # whoever reads to the end is not kept waiting by the process
    os.close(reading)
    (process,) = background._started
    assert os.waitpid(process, 0)[1] == 0
    background._take_note_of_ends()
    assert background._started == []
    assert "Use pytest fixtures" in Path(sqlite_memory.learnings_path()).read_text()
