"""Duplicates: two learnings that say the same are proposed in `review`, and a person decides which one stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from learnt import Memory, WrongRequest
from learnt.flow.duplicates import MAX_OPEN
from tests.conftest import Clock
from tests.support.doors import Learnt

FIRST, SECOND = "Never edit `migrations/0001.py`", "Don't edit migrations/0001.py"


def add_pair(memory: Memory) -> tuple[str, str]:
    return memory.add(FIRST).id, memory.add(SECOND).id


def test_a_pair_is_proposed_once_and_the_older_one_stays(memory: Memory, clock: Clock) -> None:
    older, newer = add_pair(memory)
    memory.add("Run the migrations before the tests")
    assert memory.tidy().duplicates == 1
    (item,) = memory.review.items(kinds=["duplicate"])
    assert (item.learning.id, [other.id for other in item.replaces]) == (older, [newer])
    assert memory.review.counts()["duplicate"] == 1

    decision = memory.review.decide(item.id, "accept")
    assert (memory.get(newer).status, memory.get(newer).superseded_by) == ("superseded", older)
    assert decision.learning.id == older
    clock.advance(days=2)
    assert memory.tidy().duplicates == 0
    assert memory.review.items(kinds=["duplicate"]) == []


def test_the_other_one_stays_if_the_person_says_so(memory: Memory) -> None:
    older, newer = add_pair(memory)
    memory.tidy()
    (item,) = memory.review.items(kinds=["duplicate"])
    assert memory.review.decide(item.id, "other").learning.id == newer
    assert memory.get(older).superseded_by == newer


def test_both_stay_and_are_not_asked_about_again(memory: Memory, clock: Clock) -> None:
    older, newer = add_pair(memory)
    memory.tidy()
    (item,) = memory.review.items(kinds=["duplicate"])
    memory.review.decide(item.id, "reject")
    assert {memory.get(id).status for id in (older, newer)} == {"active"}
    clock.advance(days=2)
    memory.edit(newer, tags=["database"])
    assert memory.tidy().duplicates == 0
    with pytest.raises(WrongRequest):
        memory.review.decide(item.id, "accept")


def test_an_edit_keeps_one_text_and_a_decision_is_undone(memory: Memory) -> None:
    older, newer = add_pair(memory)
    memory.tidy()
    (item,) = memory.review.items(kinds=["duplicate"])
    decision = memory.review.decide(item.id, "edit", changes={"title": "Never edit old migrations"})
    assert memory.get(older).title == "Never edit old migrations"
    again = memory.review.undo(decision)
    assert (again.id, memory.get(older).title, memory.get(newer).status) == (item.id, FIRST, "active")


def test_a_persons_learning_stays_before_an_agents(memory: Memory, clock: Clock) -> None:
    agents = memory.add(FIRST, origin="agent")
    clock.advance(days=1)
    persons = memory.add(SECOND)
    memory.tidy()
    (item,) = memory.review.items(kinds=["duplicate"])
    assert (item.learning.id, item.replaces[0].id) == (persons.id, agents.id)


def test_what_differs_in_one_name_is_no_duplicate(memory: Memory) -> None:
    memory.add("Never edit `migrations/0001.py`")
    memory.add("Never edit `migrations/0002.py`")
    assert memory.tidy().duplicates == 0


def test_a_learning_that_is_hidden_meanwhile_is_not_asked_about(memory: Memory) -> None:
    _, newer = add_pair(memory)
    memory.tidy()
    (item,) = memory.review.items(kinds=["duplicate"])
    memory.hide(newer)
    assert memory.review.items(kinds=["duplicate"]) == []
    assert "duplicate" not in memory.review.counts()
    with pytest.raises(WrongRequest):
        memory.review.decide(item.id, "accept")


def test_a_purge_of_either_removes_the_question(memory: Memory) -> None:
    _, newer = add_pair(memory)
    memory.tidy()
    memory.purge(newer)
    assert memory.tasks.escalations(status=None) == []


def test_only_so_many_are_open_and_the_rest_comes_later(sqlite_memory: Memory, clock: Clock) -> None:
    for number in range(MAX_OPEN + 5):
        sqlite_memory.add(f"Never edit `migrations/{number:04}.py`")
        sqlite_memory.add(f"Don't edit migrations/{number:04}.py")
    assert sqlite_memory.tidy().duplicates == MAX_OPEN
    items = sqlite_memory.review.items(kinds=["duplicate"])
    assert len(items) == MAX_OPEN
    for item in items:
        sqlite_memory.review.decide(item.id, "reject")
    assert sqlite_memory.tidy().duplicates == 5


def test_only_of_duplicates_the_other_one_can_stay(memory: Memory) -> None:
    learning = memory.add("Run the migrations first", origin="agent")
    with pytest.raises(WrongRequest):
        memory.review.decide(learning.id, "other")


def test_the_command_line_shows_and_decides(project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        older, newer = add_pair(memory)
    assert "Found 1 pair of learnings that say the same" in learnt("tidy").out
    (item,) = json.loads(learnt("review", "--list", "--json").out)
    assert (item["kind"], item["learning"]["id"], item["replaces"][0]["id"]) == ("duplicate", older, newer)
    decided = learnt("review", stdin=f"{item['id']} other\n")
    assert f"Kept only {newer}: {SECOND}" in decided.out
    near = learnt("similar", newer, "--all").out
    assert older in near


def test_the_nearest_ones_are_shown_on_demand(memory: Memory) -> None:
    learning = memory.add("Never edit `migrations/0001.py`")
    near = memory.add("The folder `migrations` is read at start")
    assert memory.similar(learning) == []
    (similar,) = memory.similar(learning, near_too=True)
    assert (similar.learning.id, similar.verdict) == (near.id, "unrelated")
    assert 0 < similar.relevance <= 1


def test_what_a_learning_says_below_its_title_finds_the_nearest_ones_too(memory: Memory) -> None:
    near = memory.add("The nightly job", observation="Dumps of the database are encrypted and kept for a month.")
    memory.add("The weekly report", observation="Sales are summed up by country.")
    learning = memory.add("What changed on Monday", observation="Encrypted dumps of the database stay for a year.")
    assert [similar.learning.id for similar in memory.similar(learning, near_too=True)][:1] == [near.id]


def test_a_note_that_a_fuller_learning_contains_is_proposed_and_the_fuller_one_stays(memory: Memory) -> None:
    note = memory.add("stripe resends webhook events, check ProcessedStripeEvent first")
    fuller = memory.add(
        "Stripe delivers the same webhook event more than once",
        observation="After an outage Stripe resends events, and every handler ran twice.",
        action="Insert event.id into ProcessedStripeEvent first; on IntegrityError return 200.",
    )
    assert memory.compare(note.id, fuller.id).is_estimate
    assert memory.tidy().duplicates == 1
    (item,) = memory.review.items(kinds=["duplicate"])
    assert (item.learning.id, item.replaces[0].id) == (fuller.id, note.id)


def test_what_a_newer_learning_replaces_is_proposed(memory: Memory, clock: Clock) -> None:
    older = memory.add("Run the tests with `manage.py test`")
    clock.advance(days=1)
    newer = memory.add("Tests: `make test` with a real Postgres; `manage.py test` is gone")
    assert memory.tidy().duplicates == 1
    (item,) = memory.review.items(kinds=["duplicate"])
    assert (item.learning.id, item.replaces[0].id) == (newer.id, older.id)
    assert "seems to replace" in item.question
