"""Observed cues: what a person asked for when a learning helped finds the learning the next time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from learnt.model import Learning
from learnt.text.records import as_record
from tests.conftest import Clock
from tests.support.doors import Learnt

PROMPT = "Hi there. The till crashes when two cashiers close the drawer at once. Thanks!"
ALWAYS = {"task_types": ["implement"]}  # it is given with every task
SITUATION = "The till crashes when two cashiers close the drawer at once."


@pytest.fixture
def drawer(memory: Memory) -> Learning:
    return memory.add(
        "Close the drawer under its lock", observation="Two writers race.", tags=["till"], triggers=ALWAYS
    )


def help_with(memory: Memory, learning: Learning, prompt: str, task: str, **how: Any) -> Learning:
    """Brief a task with a learning and mark it as helpful; return the learning."""
    brief = memory.brief(prompt, task=task, **how)
    assert learning.id in brief.learning_ids, brief.receipt
    memory.debrief(task, f"LEARNING_HELPFUL: {learning.id}", result="done")
    return memory.get(learning.id)


def test_the_sentence_that_matters_of_a_prompt_becomes_an_observed_cue(memory: Memory, drawer: Learning) -> None:
    after = help_with(memory, drawer, PROMPT, "task_1")
    assert (after.observed_cues, after.cues, after.times_helpful) == ((SITUATION,), (), 1)
    assert as_record(after)["observed_cues"] == [SITUATION]
    assert memory.search("cashiers")[0].learning.id == drawer.id
    assert memory.search("cashiers")[0].matched_fields == ("cues",)


def test_a_person_who_marks_a_learning_is_believed_as_well(memory: Memory, drawer: Learning) -> None:
    memory.brief(PROMPT, task="task_1")
    assert memory.mark(drawer.id, "task_1", True).observed_cues == (SITUATION,)


def test_a_mark_that_it_did_not_help_leaves_no_cue(memory: Memory, drawer: Learning) -> None:
    memory.brief(PROMPT, task="task_1")
    memory.debrief("task_1", f"LEARNING_NOT_HELPFUL: {drawer.id}", result="done")
    assert memory.get(drawer.id).observed_cues == ()


def test_at_most_three_are_kept_the_newest_and_the_most_different(memory: Memory, drawer: Learning) -> None:
    prompts = [
        "The till jams when the drawer is open",
        "Receipts are missing after the drawer was closed",
        "Why does the drawer of the till lose the evening total?",
        "The till jams when the drawer is still open",
        "A cashier reports that the drawer opens twice for one customer",
    ]
    for number, prompt in enumerate(prompts):
        help_with(memory, drawer, prompt, f"task_{number}")
    kept = memory.get(drawer.id).observed_cues
    assert len(kept) == 3
    assert kept[0] == prompts[4]
    assert prompts[3] in kept  # says nearly what the first one says, and is newer
    assert prompts[0] not in kept


def test_a_persons_cues_stay_where_they_are(memory: Memory) -> None:
    given = [f"situation number {number} of the drawer" for number in range(8)]
    learning = memory.add("Close the drawer under its lock", cues=given, triggers=ALWAYS)
    after = help_with(memory, learning, PROMPT, "task_1")
    assert after.cues == tuple(given)
    assert after.observed_cues == (SITUATION,)


def test_undoing_the_mark_removes_its_cue_and_no_other(memory: Memory, drawer: Learning, clock: Clock) -> None:
    help_with(memory, drawer, PROMPT, "task_1")
    assert memory.undo(drawer.id).observed_cues == ()
    help_with(memory, drawer, PROMPT, "task_2")
    clock.advance(days=1)
    memory.edit(drawer.id, drop_cues=[SITUATION])
    mark = next(event for event in reversed(memory.history(drawer.id)) if event.what == "mark")
    assert memory.undo(mark.id).observed_cues == ()  # although a person has removed it meanwhile


def test_a_person_removes_an_observed_cue(memory: Memory, drawer: Learning) -> None:
    help_with(memory, drawer, PROMPT, "task_1")
    assert memory.edit(drawer.id, drop_cues=[SITUATION]).observed_cues == ()
    assert not memory.search("cashiers")


def test_the_conversation_that_taught_a_learning_gives_it_no_cue(memory: Memory, clock: Clock) -> None:
    learning = memory.add("Close the drawer under its lock", task="task_1", tags=["till"], triggers=ALWAYS)
    memory.brief(PROMPT, task="task_1")
    memory.mark(learning.id, "task_1", True)
    assert memory.get(learning.id).observed_cues == ()


@pytest.mark.parametrize(
    "prompt",
    [
        "Explain this mail\nThe till crashes when two cashiers close the drawer at once.",
        "# Report\n\nThe till crashes when two cashiers close the drawer at once.",
        "> The till crashes when two cashiers close the drawer at once.",
        "<task>The till crashes when two cashiers close the drawer at once.</task>",
        "2026-01-01 12:00 the till crashes when two cashiers close the drawer at once",
        "drawer, till!",
        "The till crashes at the drawer with " + "word " * 600,
    ],
)
def test_nothing_is_taken_from_what_looks_pasted_or_says_little(memory: Memory, drawer: Learning, prompt: str) -> None:
    assert help_with(memory, drawer, prompt, "task_1").observed_cues == ()


def test_nothing_is_taken_from_what_an_agent_asked_for(memory: Memory, drawer: Learning) -> None:
    assert help_with(memory, drawer, PROMPT, "task_1", asked_by="tool").observed_cues == ()
    assert help_with(memory, drawer, PROMPT, "task_2", occasion="agent").observed_cues == ()


def test_a_secret_in_a_prompt_is_in_no_cue(memory: Memory, drawer: Learning) -> None:
    secret = "ghp_" + "aB3" * 12
    prompt = f"The till with {secret} crashes. The drawer of the till does not close any more."
    assert help_with(memory, drawer, prompt, "task_1").observed_cues == (
        "The drawer of the till does not close any more.",
    )


def test_a_long_sentence_is_shortened(memory: Memory, drawer: Learning) -> None:
    prompt = "The till crashes at the drawer, " + ", ".join(f"also at number {number}" for number in range(20)) + "."
    (cue,) = help_with(memory, drawer, prompt, "task_1").observed_cues
    assert len(cue) <= 100


def test_a_learning_for_all_projects_keeps_no_words_of_one(project: Path, clock: Clock) -> None:
    with Memory.open_user(clock=clock) as user:
        learning = user.add("Close the drawer under its lock", tags=["till"], triggers=ALWAYS)
    with Memory.open(project, clock=clock) as memory:
        assert help_with(memory, learning, PROMPT, "task_1").observed_cues == ()


def test_a_purge_deletes_observed_cues(sqlite_memory: Memory, project: Path) -> None:
    learning = sqlite_memory.add("Close the drawer under its lock", tags=["till"], triggers=ALWAYS)
    help_with(sqlite_memory, learning, PROMPT, "task_1")
    sqlite_memory.purge(learning.id)
    sqlite_memory.close()
    for path in (project / ".learnt").rglob("*"):
        assert path.is_dir() or b"cashiers" not in path.read_bytes(), path


def test_observed_cues_are_shown_as_such_and_dropped_on_the_command_line(project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        learning = memory.add("Close the drawer under its lock", cues=["the drawer is stuck"], triggers=ALWAYS)
        help_with(memory, learning, PROMPT, "task_1")
        brief = memory.brief("cashiers are stuck at the till", task="task_2")
    shown = learnt("show", learning.id).out
    assert "when:          the drawer is stuck\n" in shown
    assert f"observed:      {SITUATION}\n" in shown
    assert f"cue (observed): {SITUATION}" in learnt("explain", brief.id).out
    learnt("edit", learning.id, "--drop-when", SITUATION)
    assert "observed:" not in learnt("show", learning.id).out
