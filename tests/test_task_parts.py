"""What a task is about: its text, its specification, its parent, its goal, the files it names, and what failed last."""

from __future__ import annotations

from pathlib import Path

import pytest

from learnt import Memory, WrongRequest
from learnt.flow.task_parts import INHERITED_WEIGHT
from learnt.loop.prompt import build_prompt
from learnt.model import Brief, Learning
from learnt.strategy.choose_model import ModelChoice
from tests.support.doors import Learnt

SPEC = "# Till\n\nThe drawer of the till must be closed under its lock, also when two cashiers count at once.\n"
OTHER = "The shop opens at nine. Apples are weighed on the left scale. Invoices are printed in the office.\n\n"


@pytest.fixture
def drawer(memory: Memory) -> Learning:
    memory.add("Prices are integers in cents")
    memory.add("Run make settings before the build")
    return memory.add("Close the cash drawer under its lock", action="Take drawer_lock before close_drawer()")


def entry_of(brief: Brief, learning: Learning) -> dict[str, object]:
    return next(entry for entry in brief.receipt["considered"] if entry["id"] == learning.id)


def test_a_task_called_fix_it_gets_what_its_specification_names(
    memory: Memory, project: Path, drawer: Learning
) -> None:
    (project / "till.md").write_text(SPEC)
    task = memory.tasks.add("Fix it", spec="till.md")
    assert drawer.id not in memory.brief("Fix it").learning_ids
    brief = memory.brief("Fix it", task=task.id)
    assert brief.learning_ids == (drawer.id,)
    assert entry_of(brief, drawer)["part"] == "spec"
    assert brief.receipt["parts"] == [{"part": "spec", "source": "till.md", "length": len(SPEC.strip())}]
    assert memory.why.is_as_sent(memory.explain(brief.id))


def test_the_loops_prompt_contains_what_the_specification_names(
    memory: Memory, project: Path, drawer: Learning
) -> None:
    (project / "till.md").write_text(SPEC)
    task = memory.tasks.add("Fix it", spec="till.md")
    prompt = build_prompt(memory, task, ModelChoice(model="", reason=""))
    assert "### Close the cash drawer under its lock" in prompt


def test_a_long_specification_drowns_neither_the_task_nor_its_own_middle(
    memory: Memory, project: Path, drawer: Learning
) -> None:
    office = memory.add("Import ledgers with the office's own converter")
    (project / "long.md").write_text(OTHER * 60 + SPEC + OTHER * 60)
    task = memory.tasks.add("Import the ledgers of the office", spec="long.md")
    brief = memory.brief("Import the ledgers of the office", task=task.id)
    assert {office.id, drawer.id} <= {*brief.learning_ids}
    assert "part" not in entry_of(brief, office)


def test_a_specification_that_cannot_be_read_is_left_out(memory: Memory, project: Path, drawer: Learning) -> None:
    task = memory.tasks.add("Close the drawer under its lock", spec="missing.md")
    (project / "binary.md").write_bytes(b"\xff\0")
    other = memory.tasks.add("Close the drawer under its lock", spec="binary.md")
    for one in (task, other):
        brief = memory.brief(one.title, task=one.id)
        assert brief.learning_ids == (drawer.id,)
        assert "parts" not in brief.receipt


def test_a_stored_task_needs_no_text(memory: Memory, learnt: Learnt, drawer: Learning) -> None:
    task = memory.tasks.add("Fix it", text="The drawer must be closed under its lock.")
    assert memory.brief("", task=task.id).learning_ids == (drawer.id,)
    assert drawer.id in learnt("brief", "--task", task.id).out
    with pytest.raises(WrongRequest):
        memory.brief("", task="task_none")
    assert learnt("brief").code == 2


def test_other_words_for_a_stored_task_do_not_replace_what_it_says(memory: Memory, drawer: Learning) -> None:
    task = memory.tasks.add("Close the drawer under its lock")
    brief = memory.brief("carry on", task=task.id)
    assert brief.learning_ids == (drawer.id,)
    assert entry_of(brief, drawer)["part"] == "task"


def test_the_files_of_the_project_that_a_task_names_belong_to_its_situation(memory: Memory, project: Path) -> None:
    learning = memory.add("Keep the order of the columns", triggers={"files": ["src/till.py"]})
    (project / "src").mkdir()
    (project / "src" / "till.py").write_text("")
    (project / "spec.md").write_text(
        "Change `src/till.py`, not /usr/lib/python3/till.py nor ../other.py nor src/no.py."
    )
    task = memory.tasks.add("Fix it", spec="spec.md")
    brief = memory.brief("Fix it", task=task.id)
    assert brief.receipt["paths"] == ["src/till.py"]
    assert brief.learning_ids == (learning.id,)


def test_a_parent_counts_less_and_gives_at_most_one(memory: Memory, drawer: Learning) -> None:
    scale = memory.add("Weigh apples on the left scale")
    parent = memory.tasks.add("Close the cash drawer under its lock. Weigh apples on the left scale")
    part = memory.tasks.add("Write the tests", parent=parent.id)
    brief = memory.brief("Write the tests", task=part.id)
    assert len(brief.learning_ids) == 1
    assert set(brief.learning_ids) < {drawer.id, scale.id}
    entry = entry_of(brief, memory.get(brief.learning_ids[0]))
    whole = memory.brief(parent.title)
    same = entry_of(whole, memory.get(brief.learning_ids[0]))
    assert entry["part"] == "parent"
    assert entry["relevance"] == pytest.approx(float(str(same["relevance"])) * INHERITED_WEIGHT, abs=0.001)


def test_a_task_of_its_own_subject_gets_its_learning_before_its_parents(memory: Memory, drawer: Learning) -> None:
    scale = memory.add("Weigh apples on the left scale")
    parent = memory.tasks.add("Close the cash drawer under its lock")
    part = memory.tasks.add("Weigh apples on the left scale", parent=parent.id)
    assert memory.brief(part.title, task=part.id).learning_ids == (scale.id, drawer.id)


def test_triggers_of_a_parent_decide_nothing(memory: Memory) -> None:
    memory.add("Keep the order of the columns", triggers={"files": ["src/till.py"]})
    parent = memory.tasks.add("Rework src/till.py")
    part = memory.tasks.add("Write the changelog", parent=parent.id)
    assert memory.brief(part.title, task=part.id).learning_ids == ()


def test_the_name_of_a_goal_is_read_too(memory: Memory, drawer: Learning) -> None:
    task = memory.tasks.add("Write the tests", goal="cash-drawer-lock")
    brief = memory.brief("Write the tests", task=task.id)
    assert [part["part"] for part in brief.receipt["parts"]] == ["goal"]
    assert entry_of(brief, drawer)["part"] == "goal"


def test_what_failed_last_brings_the_learning_that_names_it(memory: Memory, drawer: Learning) -> None:
    task = memory.tasks.add("Fix it")
    report = "what_tried: x\nwhy_failed: the drawer was closed without its lock\nerror: drawer_lock is not held"
    memory.debrief(task.id, f"<failure-report>\n{report}\n</failure-report><task-failed/>")
    brief = memory.brief("Fix it", task=task.id)
    assert drawer.id in brief.learning_ids
    assert entry_of(brief, drawer)["part"] == "failure"


def test_in_a_conversation_only_the_prompt_counts(memory: Memory, drawer: Learning) -> None:
    memory.brief("Close the cash drawer under its lock", task="task_1", task_type="session")
    brief = memory.brief("Write the tests", task="task_1", task_type="session", goal="cash-drawer-lock")
    assert (brief.learning_ids, "parts" in brief.receipt) == ((), False)


def test_people_see_which_part_matched(memory: Memory, learnt: Learnt, project: Path, drawer: Learning) -> None:
    (project / "till.md").write_text(SPEC)
    task = memory.tasks.add("Fix it", spec="till.md")
    brief = memory.brief("", task=task.id)
    told = learnt("explain", brief.id).out
    assert f"with its spec till.md: {len(SPEC.strip())} characters" in told
    assert "fits the task's spec" in told
    assert "it fits the task's spec" in learnt("explain", brief.id, "--why-not", drawer.id).out
