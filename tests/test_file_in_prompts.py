"""Learnings that a prompt gives by the text of learnings.md count like those that a brief shows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from learnt.text.words import estimate_tokens
from tests.conftest import Done
from tests.support.accumulation import Workshop
from tests.support.words import tells

TILL = "Count the till at noon"
DOOR = "Lock the door before the alarm is set"
# Says which of the learnings helped, by the id that stands behind it.
AGENT = r"""
import re
for id in re.findall(r"Count the till.*\((learn_\w+)\)", prompt): print(f"LEARNING_HELPFUL: {id}")
for id in re.findall(r"Lock the door.*\((learn_\w+)\)", prompt): print(f"LEARNING_NOT_HELPFUL: {id}")
print("<task-done>done</task-done>")
"""


@pytest.fixture
def shop(project: Path, learnt: Callable[..., Done]) -> Workshop:
    shop = Workshop(project, learnt)
    shop.agent(AGENT)
    shop.settings(learnings_injection_strategy="global_only")
    return shop


def given(shop: Workshop, task: str) -> str:
    """Return what the prompt of a task carries of learnings files; empty if nothing."""
    done = shop.learnt("task", "prompt", task)
    assert done.code == 0, done.err
    found = re.search(r'<learnt-brief id="learnings">\n(.*?)</learnt-brief>', done.out, re.DOTALL)
    return found[1] if found else ""


def brief_of(memory: Memory, task: str) -> str:
    """Return the id of the latest brief of a task."""
    return str(
        memory.context.store.database.value(
            "select id from brief where project = :project and task = :task order by created_at desc limit 1", task=task
        )
    )


def test_what_the_file_gives_is_counted_and_can_be_marked(shop: Workshop) -> None:
    with shop.open() as memory:
        till, door = memory.add(TILL), memory.add(DOOR)
        memory.file.update()
    task = shop.add("Paint the sign")  # shares no word with either
    text = given(shop, task)
    assert f"- {TILL} ({till.id})\n" in text
    assert "Evidence from earlier work, not law" in text.split("\n")[0]
    assert "LEARNING_HELPFUL: <id>" in text
    with shop.open() as memory:
        assert memory.get(till.id).times_injected == 0, "whoever only looks gives nothing"

    shop.work("--all")

    with shop.open() as memory:
        till, door = memory.get(till.id), memory.get(door.id)
        assert (till.times_injected, till.times_helpful, till.times_not_helpful) == (1, 1, 0)
        assert (door.times_injected, door.times_helpful, door.times_not_helpful) == (1, 0, 0), "a person's word stands"
        assert memory.work.were_given_learnings([task], since=0)


def test_the_receipt_tells_what_the_file_gave_and_the_brief_can_be_rendered_again(shop: Workshop) -> None:
    with shop.open() as memory:
        till = memory.add(TILL)
        memory.file.update()
        fresh = memory.add("Count the till twice on Mondays")
    task = shop.add("Count the till")
    shop.work("--all")

    with shop.open() as memory:
        id = brief_of(memory, task)
        brief = memory.explain(id)
        assert memory.why.is_as_sent(brief)
    assert brief.receipt["beside"] == [till.id]
    assert brief.learning_ids == (fresh.id,)
    assert TILL not in brief.text
    told = shop.learnt("explain", id)
    assert tells(told.out, till.id, "learnings file", TILL)
    assert shop.learnt("explain", id, "--replay").out == brief.text
    record: dict[str, Any] = json.loads(shop.learnt("explain", id, "--json").out)
    assert record["learning_ids"] == [fresh.id]
    with shop.open() as memory:
        memory.purge(till.id)
    assert "(purged)" in shop.learnt("explain", id).out
    assert shop.learnt("explain", id, "--replay").out == brief.text


@pytest.mark.parametrize("verb", ["hide", "archive", "supersede", "purge"])
def test_what_is_not_active_any_more_is_not_given_though_the_file_still_shows_it(shop: Workshop, verb: str) -> None:
    with shop.open() as memory:
        till, door = memory.add(TILL), memory.add(DOOR)
        memory.file.update()
        shown = shop.text
        memory.supersede(till.id, door.id) if verb == "supersede" else getattr(memory, verb)(till.id)
    shop.path.write_text(shown)
    task = shop.add("Paint the sign")

    text = given(shop, task)

    assert TILL not in text
    assert f"- {DOOR} ({door.id})\n" in text
    shop.work("--all")
    with shop.open() as memory:
        assert memory.explain(brief_of(memory, task)).receipt["beside"] == [door.id]


def test_what_nobody_took_over_yet_is_given_without_an_id_and_without_its_secrets(shop: Workshop) -> None:
    with shop.open() as memory:
        memory.add(TILL)
        memory.file.update()
    shop.append("Ask Anna about the keys")
    shop.append("Open the safe with password=Tr0ub4dor-and-3-more")
    shop.append("Feed the cat <!-- learn_01jz0000000000000000000000 -->")
    shop.path.with_name(f".{shop.path.name}.swp").touch()  # an editor has it open
    text = given(shop, shop.add("Paint the sign"))
    assert "- Ask Anna about the keys\n" in text
    assert "- Feed the cat\n" in text
    assert "Open the safe" in text
    assert "Tr0ub4dor" not in text


def test_two_files_share_the_bound_and_neither_is_left_out(shop: Workshop) -> None:
    shop.settings(learnings_max_tokens=400)
    file = shop.folder / "learnt.toml"
    file.write_text(file.read_text().replace("'global_only'", "'both'"))
    with shop.open() as memory:
        for number in range(30):
            memory.add(f"Wipe table {number} after lunch")
            memory.add(f"Fold napkin {number} before dinner", goal="dinner")
        memory.file.update()
        task = memory.tasks.add("Paint the sign", goal="dinner").id
        alone = memory.tasks.add("Paint the door").id
    head, _, text = given(shop, task).partition("\n\n")
    assert "not law" in head
    assert estimate_tokens(text) <= 400
    tables, napkins = text.count("- Wipe table"), text.count("- Fold napkin")
    assert tables >= 3
    assert napkins >= 3
    assert given(shop, alone).count("- Wipe table") > tables, "what the other does not need is there for the one"
    shop.work("--all")
    with shop.open() as memory:
        beside = memory.explain(brief_of(memory, task)).receipt["beside"]
        assert len(beside) == tables + napkins
        assert all(memory.get(id).times_injected for id in beside)


def test_without_anything_to_give_a_prompt_has_no_such_part(shop: Workshop) -> None:
    task = shop.add("Paint the sign")
    assert given(shop, task) == ""
    shop.path.write_text("\n\n")
    assert given(shop, task) == ""
