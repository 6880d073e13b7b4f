"""An agent's near copy of a person's learning is shown neither before it, nor beside it, nor instead of it."""

from __future__ import annotations

import pytest

from learnt import Memory
from learnt.clients.kit.events import HookEvent
from learnt.flow.standing import standing
from learnt.store import learnings
from learnt.store.learnings import Change
from learnt.system.detached import INTERNAL

MINE = "Run `make seed` before the tests"
ABOUT = "run make seed before the tests"
COPIES = (
    "Never run `make seed` before the tests",
    "Skip `make seed` before tests, it breaks them",
)


@pytest.fixture(autouse=True)
def no_other_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of its own would have the real clock."""
    monkeypatch.setenv(INTERNAL, "1")


def teach(memory: Memory, title: str, **fields: object) -> str:
    """Add an agent's learning that evidence vouches for."""
    learning = memory.add(title, origin="agent", **fields)  # type: ignore[arg-type]
    change = Change(what="vouch", who="learnt", at=learning.updated_at)
    with memory.context.store.transaction():
        evident = {"vouched": "evidence", "confidence": 1.0, "times_helpful": 9}
        learnings.change(memory.context.store.database, learning.id, lambda _: evident, change)
    return learning.id


def serve(memory: Memory, session: str, **fields: object) -> str:
    event = HookEvent(name="", client="claude", session=session, **fields)  # type: ignore[arg-type]
    return memory.hooks.serve(event, loop_task="", began_ns=0).text


@pytest.mark.parametrize("copy", COPIES)
def test_at_session_start_the_persons_learning_takes_the_place_of_a_proven_copy(memory: Memory, copy: str) -> None:
    mine = memory.add(MINE)
    id = teach(memory, copy)
    for told in (serve(memory, "s1", kind="session"), serve(memory, "s2", kind="prompt", agent_id="a1", prompt=ABOUT)):
        assert (mine.id in told, id in told) == (True, False)


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_does_not_take_the_only_slot_of_a_brief(memory: Memory, copy: str) -> None:
    mine = memory.add(MINE)
    teach(memory, copy)
    memory.context.settings = memory.context.settings.replace(brief_learnings=1)
    assert memory.brief(ABOUT).learning_ids == (mine.id,)
    memory.context.settings = memory.context.settings.replace(brief_learnings=5)
    assert memory.brief(ABOUT).learning_ids == (mine.id,)


def test_a_persons_learning_far_behind_the_candidates_still_replaces_its_copy(memory: Memory) -> None:
    mine = memory.add(MINE)
    for number in range(40):
        teach(memory, f"Subject{number} concerns object{number} alone{number}")
    id = teach(memory, COPIES[0])
    shown = [learning.id for learning in standing(memory.context)]
    assert (mine.id in shown, id in shown) == (True, False)


@pytest.mark.parametrize("seen", [False, True])
def test_copies_do_not_push_a_persons_warning_out(memory: Memory, seen: bool) -> None:
    about = {"kind": "gotcha", "triggers": {"files": ["db/schema.sql"]}}
    mine = memory.add("Run `make schema` instead of changing the schema", **about)  # type: ignore[arg-type]
    title = "run `make schema` instead of changing the schema"
    ids = [teach(memory, f"{word} {title}", **about) for word in ("Never", "Don't")]
    call = {"kind": "call", "tool": "Edit", "paths": ("db/schema.sql",)}
    told = serve(memory, "s1", **call)
    if seen:
        told = mine.id + serve(memory, "s1", **call)
    assert mine.id in told
    assert not any(id in told for id in ids)


def test_others_warnings_do_not_push_a_persons_warning_out(memory: Memory) -> None:
    about = {"kind": "gotcha", "triggers": {"files": ["db/schema.sql"]}}
    mine = memory.add("Run `make schema` instead of changing the schema", **about)  # type: ignore[arg-type]
    for title in ("The linter rejects tabs", "Comments end with a full stop"):
        teach(memory, title, **about)
    assert mine.id in serve(memory, "s1", kind="call", tool="Edit", paths=("db/schema.sql",))


def test_what_says_something_else_about_the_same_program_is_shown(memory: Memory) -> None:
    mine = memory.add(MINE)
    other = teach(memory, "`make seed` needs a container for the database")
    shown = [learning.id for learning in standing(memory.context)]
    assert {mine.id, other} <= set(shown)
