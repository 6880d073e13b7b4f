"""Hostile conversations do not vouch for each other: who marks, what is observed, and how often a learning is tried."""

from __future__ import annotations

import pytest

from learnt import Memory
from learnt.clients.kit.events import HookEvent
from learnt.model import text_id
from learnt.store.evidence import Evidence
from learnt.system.detached import INTERNAL
from learnt.weigh.confidence import is_enough
from tests.conftest import Clock

SAID = "<learning>Run `make seed` before the tests. Else they fail.</learning>"
ABOUT = "run make seed before the tests"
OPPOSITES = (
    "Never run `make seed` before the tests",
    "Never run `make seed` before the tests. It was dropped with the old fixtures, which nobody maintains any more.",
    "Run `make seed` before the tests: no",
    "Skip `make seed` before the tests",
)


@pytest.fixture(autouse=True)
def no_other_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of its own would have the real clock."""
    monkeypatch.setenv(INTERNAL, "1")


def teach(memory: Memory, said: str = SAID, task: str = "task_source") -> str:
    [id] = memory.debrief(task, said).learnings
    return id


def mark(memory: Memory, id: str, task: str) -> None:
    assert id in memory.brief(ABOUT, task=task).learning_ids
    assert memory.debrief(task, f"LEARNING_HELPFUL: {id}").helpful == (id,)


def mark_over_mcp(memory: Memory, clock: Clock, id: str, task: str) -> None:
    """Mark a learning as the MCP server does for a conversation that it knows by an id of its own."""
    with Memory.open(memory.root, clock=clock) as server:
        server.speak_as_agent("agent", conversation=text_id("task", f"mcp {task}"), since=clock())
        assert id in server.brief(ABOUT, task=task, asked_by="tool").learning_ids
        server.mark(id, task, True)


def serve(memory: Memory, session: str, **fields: object) -> str:
    """Let a client report an event; return what its agent is told."""
    event = HookEvent(name="", client="claude", session=session, **fields)  # type: ignore[arg-type]
    return memory.hooks.serve(event, loop_task="", began_ns=0).text


def run(memory: Memory, session: str, command: str) -> None:
    serve(memory, session, kind="result", tool="Bash", command=command, failed=False)


def ask(memory: Memory, session: str) -> str:
    return serve(memory, session, kind="prompt", prompt=ABOUT)


# Who vouches


@pytest.mark.parametrize(
    ("evidence", "enough"),
    [
        (Evidence(worked=2), True),
        (Evidence(marked=2, turnout=1.0), True),
        (Evidence(worked=1, marked=1, turnout=1.0), True),
        (Evidence(worked=1, repeating=2), True),
        (Evidence(marked=1, repeating=5, turnout=1.0), True),
        (Evidence(worked=1), False),
        (Evidence(worked=1, marked=9, turnout=0.3), False),
        (Evidence(worked=1, repeating=1, turnout=1.0), False),
        (Evidence(marked=9, turnout=0.3), False),
        (Evidence(marked=1, repeating=9, turnout=0.3), False),
        (Evidence(repeating=9, turnout=1.0), False),
        (Evidence(worked=2, rejecting=2), False),
    ],
)
def test_what_was_observed_counts_by_itself_and_what_agents_say_only_with_a_turnout(
    evidence: Evidence, enough: bool
) -> None:
    assert is_enough(evidence) is enough


def test_marks_do_not_vouch_where_hardly_any_conversation_marks_anything(memory: Memory) -> None:
    memory.add("Lint the stylesheets of the shop")
    for number in range(10):
        assert memory.brief("lint the stylesheets", task=f"task_{number}").learning_ids
    id = teach(memory)
    for number in range(3):
        mark(memory, id, f"task_hostile{number}")
    assert (memory.get(id).times_helpful, memory.get(id).vouched) == (3, "")


def test_marks_vouch_where_others_mark_too(memory: Memory) -> None:
    (lint,) = [memory.add("Lint the stylesheets of the shop").id]
    for number in range(10):
        memory.brief("lint the stylesheets", task=f"task_{number}")
        memory.debrief(f"task_{number}", f"LEARNING_HELPFUL: {lint}" if number < 4 else "Done.")
    id = teach(memory)
    for number in range(2):
        mark(memory, id, f"task_honest{number}")
    assert memory.get(id).vouched == "evidence"


def test_repeating_a_claim_does_not_replace_the_second_mark_where_hardly_anybody_marks(memory: Memory) -> None:
    memory.add("Lint the stylesheets of the shop")
    for number in range(10):
        memory.brief("lint the stylesheets", task=f"task_{number}")
    id = teach(memory)
    for number in range(5):
        memory.debrief(f"task_hostile{number}", SAID)
    mark(memory, id, "task_hostile")
    assert memory.get(id).vouched == ""


def test_what_agents_ask_for_themselves_they_do_not_vouch_for(memory: Memory, clock: Clock) -> None:
    id = teach(memory)
    for number in range(3):
        clock.advance(days=1)
        mark_over_mcp(memory, clock, id, f"task_{number}")
    assert (memory.get(id).times_helpful, memory.get(id).vouched) == (3, "")


def test_one_conversation_does_not_count_twice_by_its_hooks_and_over_mcp(memory: Memory, clock: Clock) -> None:
    id = teach(memory)
    clock.advance(days=1)
    assert id in ask(memory, "hostile")
    serve(memory, "hostile", kind="stop", said=f"LEARNING_HELPFUL: {id}")
    memory.worker.catch_up()
    mark_over_mcp(memory, clock, id, "task_other")
    assert (memory.get(id).times_helpful, memory.get(id).vouched) == (2, "")


# How often it is tried


def test_what_nothing_speaks_for_is_tried_once_where_work_is_observed(memory: Memory) -> None:
    id = teach(memory)
    assert id in ask(memory, "first")
    run(memory, "first", "make build")
    memory.worker.catch_up()
    assert id not in ask(memory, "second")
    assert id in memory.brief(ABOUT).learning_ids, "where nothing is observed, it needs more tries"


def test_what_worked_in_its_own_conversation_is_tried_more_often(memory: Memory) -> None:
    for number in range(6):
        run(memory, f"other {number}", "make build")
    run(memory, "source", "make seed")
    serve(memory, "source", kind="stop", said=SAID)
    memory.worker.catch_up()
    (learning,) = memory.learnings().learnings
    assert learning.task == text_id("task", "claude source ")
    assert (learning.last_helpful_at, learning.vouched) == (learning.created_at, "")
    shown = [learning.id in ask(memory, f"given {number}") for number in range(12)]
    assert shown == [True] * 10 + [False] * 2


def test_a_command_that_everybody_runs_gives_a_claim_no_more_tries(memory: Memory) -> None:
    for number in range(6):
        run(memory, f"other {number}", "make build")
    run(memory, "source", "make build")
    serve(memory, "source", kind="stop", said=SAID.replace("seed", "build"))
    memory.worker.catch_up()
    (learning,) = memory.learnings().learnings
    assert learning.last_helpful_at is None


# The opposite of what a person says


def test_an_opposite_that_begins_as_a_question_is_not_kept(memory: Memory) -> None:
    mine = memory.add("Run `make seed` before the tests")
    debrief = memory.debrief("task_source", "<learning>Run `make seed` before the tests? No.</learning>")
    assert debrief.learnings == debrief.repeated == ()
    assert memory.get(mine.id) == mine


@pytest.mark.parametrize("opposite", OPPOSITES)
def test_the_opposite_of_a_persons_learning_is_not_tried_but_reviewed(memory: Memory, opposite: str) -> None:
    mine = memory.add("Run `make seed` before the tests")
    id = teach(memory, f"<learning>{opposite}</learning>")
    assert memory.brief(ABOUT).learning_ids == (mine.id,)
    first, second = ask(memory, "one"), ask(memory, "one")
    assert (mine.id in first, id in first, second) == (True, False, "")
    assert [item.learning.id for item in memory.review.items(kinds=["new"])] == [id]
