"""Retired learnings leave learnings.md."""

from __future__ import annotations

import pytest

from learnt import Memory
from learnt.system.detached import INTERNAL
from tests.conftest import Clock


@pytest.fixture(autouse=True)
def updates(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is updated after ten tasks, and by this process only."""
    monkeypatch.setenv(INTERNAL, "1")
    memory.context.settings = memory.context.settings.replace(learnings_regenerate_every=10)


@pytest.mark.parametrize("verb", ["archive", "hide"])
def test_what_is_retired_makes_an_update_due_so_that_it_leaves_the_file(memory: Memory, verb: str) -> None:
    id = memory.add("Run make seed before the tests").id
    memory.file.update()
    assert id in (memory.file.read() or "")
    assert not memory.file.state().is_due

    getattr(memory, verb)(id)

    assert memory.file.state().is_due
    memory.worker.catch_up()
    assert id not in (memory.file.read() or "")


def test_what_the_upkeep_retires_beside_a_command_leaves_the_file(memory: Memory, clock: Clock) -> None:
    id = memory.add("Run make seed before the tests", origin="model").id
    memory.file.update()
    clock.advance(days=200)
    for _ in range(30):
        clock.advance(days=1)
        memory._upkeep.tidy_beside_a_command()
    assert memory.get(id).status == "archived"
    assert memory.file.state().is_due
