"""Merging learnings: every specific survives or nothing is merged, evidence adds up, and all of it can be undone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnt import Memory, WrongRequest
from learnt.consolidate.merge import KINDS, add_up, check_merge, combine, find_invented
from learnt.model import Learning, Triggers
from learnt.store import evidence
from tests.conftest import Clock


def learning(title: str, number: int = 1, **fields: Any) -> Learning:
    return Learning(id=f"learn_{number}", title=title, **fields)


LOST = [
    ("Retry uploads 3 times", "Retry uploads", "number"),
    ("Use Python 3.12 for the lambda", "Use Python for the lambda", "number"),
    ("Use Python 3.12 for the lambda", "Use Python 3.1 for the lambda", "number"),
    ("Ask Jana before a release", "Ask before a release", "name"),
    ("The schema is in db/schema.sql", "The schema is in a file", "name"),
    ("Call `retry(times=3)` for uploads", "Call retry for uploads", "code"),
    ('The log says "no such table"', "The log says a table is missing", "quote"),
    ("Do not edit the lock file", "Edit the lock file", "negation"),
    ("Never deploy on Fridays without a label", "Deploy on Fridays with a label", "negation"),
    ("The job must run in CI", "The job runs in CI", "modal"),
    ("Only Anna changes prices", "Anna changes prices", "modal"),
    ("Skip the step if LABEL is set", "Skip the step, LABEL is set", "condition"),
    ("Run the linter before the tests", "Run the linter and the tests", "condition"),
    ("Deploys to staging need a label", "Deploys need a label", "word"),
    ("Turn the proxy on for uploads", "Turn the proxy off for uploads", "word"),
    ("The db listens on 5432 and Redis on 6380", "The db listens on 6380 and Redis on 5432", "statement"),
    ("`orders` calls `billing`", "`billing` calls `orders`", "statement"),
    ("Use tabs", "Do not use tabs", "statement"),
]


@pytest.mark.parametrize(("source", "successor", "kind"), LOST)
def test_what_a_successor_lacks_is_listed_by_kind(source: str, successor: str, kind: str) -> None:
    losses = check_merge([learning(source)], learning(successor, 2))
    assert kind in [loss.kind for loss in losses]
    assert {loss.source for loss in losses} == {"learn_1"}
    assert all(loss.kind in KINDS for loss in losses)


KEPT = [
    ("Never edit `migrations/0001.py`", "Don't edit migrations/0001.py"),
    ("Run make lint before every commit", "In this repo, run `make lint` before every commit."),
    ("Prices are integers of cents", "Note that prices are integers of cents. They must be positive."),
    ("The worker needs Redis 7.2", "The worker needs the Redis 7.2 on port 6380"),
]


@pytest.mark.parametrize(
    ("sources", "successor"),
    [
        (("PR #260 fixed the login", "PR #480 fixed the export"), "PR #260 #480 fixed the login export"),
        (("Use port 8080 on staging", "Use port 9090 on production"), "Use port 9090 8080 on production staging"),
        (("Jana owns the ledger", "Tom owns the cache"), "Jana Tom owns the ledger cache"),
        (("Run `rm -rf build`",), "Run `rm -rf build /`"),
        (("Prefer tabs rather than spaces",), "Prefer tabs rather without spaces"),
    ],
)
def test_sentences_that_are_woven_into_one_lose_what_they_said(sources: tuple[str, ...], successor: str) -> None:
    assert check_merge([learning(source) for source in sources], learning(successor, 2))


@pytest.mark.parametrize(("source", "successor"), KEPT)
def test_other_endings_articles_and_more_words_lose_nothing(source: str, successor: str) -> None:
    assert check_merge([learning(source)], learning(successor, 2)) == []


def test_every_source_and_every_text_counts() -> None:
    sources = [
        learning("Retry uploads", action="Wait 5 s between tries."),
        learning("Retry uploads", 2, observation="S3 answers 503 under load."),
    ]
    assert {loss.text for loss in check_merge(sources, sources[0])} == {"S3", "answers", "503", "under", "load"}
    united = combine(sources, sources[0])
    assert (united.action, united.observation) == ("Wait 5 s between tries.", "S3 answers 503 under load.")
    assert check_merge(sources, united) == find_invented(sources, united) == []


def test_a_cut_title_counts_as_the_sentence_that_it_begins() -> None:
    text = (
        "The nightly job at 03:00 reads the ledger and writes the totals of the day into the table `daily_totals` again"
    )
    cut = learning(text[:100].strip(), observation=text)
    assert check_merge([cut], learning("The nightly job", 2, observation=text)) == []


def test_what_is_to_be_avoided_is_not_recommended() -> None:
    advice = learning("Weigh apples on the left scale")
    assert check_merge([advice.replace(polarity="avoid")], advice)
    assert check_merge([advice], advice.replace(polarity="avoid"))


def test_a_successor_says_nothing_of_its_own() -> None:
    sources = [learning("Run the tests with 4 workers"), learning("Never run the migrations in CI", 2)]
    assert find_invented(sources, learning("Run the tests with 4 workers on port 9999", 3)) == ["on", "port", "9999"]
    assert find_invented(sources, learning("Never run the tests with 4 workers", 3)) == [
        "Never run the tests with 4 workers"
    ]


def test_counts_cues_tags_and_triggers_add_up() -> None:
    one = learning("A", times_helpful=2, recurrences=1, cues=("a",), tags=("x",), task="task_1", last_helpful_at=5)
    same = learning("A", 2, times_not_helpful=1, cues=("a", "b"), task="task_1", last_helpful_at=9)
    other = learning("A", 3, times_helpful=1, task="task_2", triggers=Triggers(commands=("make",)))
    changes = add_up([same, other], one)
    assert (changes["times_helpful"], changes["times_not_helpful"], changes["recurrences"]) == (3, 1, 2)
    assert (changes["cues"], changes["tags"], changes["last_helpful_at"]) == (("a", "b"), ("x",), 9)
    assert changes["triggers"].commands == ("make",)


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=60), min_size=2, max_size=4))
def test_combining_any_learnings_loses_nothing(texts: list[str]) -> None:
    sources = [learning(" ".join(text.split()) or "x", number) for number, text in enumerate(texts)]
    assert check_merge(sources, combine(sources, sources[0])) == []


def add_agents(memory: Memory, title: str, **fields: Any) -> str:
    return memory.add(title, origin="agent", by="agent", **fields).id


def test_a_merge_is_one_change_that_is_undone_as_one(memory: Memory, clock: Clock) -> None:
    older = add_agents(memory, "Retry uploads 3 times", tags=["s3"], task="task_1")
    clock.advance(days=1)
    newer = add_agents(memory, "Retry uploads", action="Wait 5 s.", cues=["upload fails"], task="task_2")
    before = memory.get(older), memory.get(newer)
    merge = memory.merges.merge([older, newer])
    successor = memory.get(merge.successor.id)
    (source,) = merge.sources
    assert (memory.get(source).status, memory.get(source).superseded_by) == ("superseded", successor.id)
    assert (set(successor.tags), set(successor.cues), successor.recurrences) == ({"s3"}, {"upload fails"}, 1)
    text = f"{successor.title} {successor.observation} {successor.action}"
    assert "3 times" in text
    assert "Wait 5 s." in text

    memory.merges.undo(merge.id)
    unchanged = ("title", "observation", "action", "tags", "cues", "status", "superseded_by", "recurrences")
    for learning in before:
        after = memory.get(learning.id)
        assert [getattr(after, name) for name in unchanged] == [getattr(learning, name) for name in unchanged]
    with pytest.raises(WrongRequest):
        memory.merges.undo(merge.id)


def test_a_lossy_text_is_refused_and_says_what_would_be_lost(memory: Memory) -> None:
    ids = [add_agents(memory, "Retry uploads 3 times"), add_agents(memory, "Never retry downloads")]
    with pytest.raises(WrongRequest, match="3"):
        memory.merges.merge(ids, texts={"title": "Retry uploads", "observation": "Never retry downloads"})
    proposal = memory.merges.propose(ids, texts={"title": "Retry uploads 3 times, also downloads"})
    assert proposal.is_refused
    assert "negation" in {loss.kind for loss in proposal.losses}
    assert [memory.get(id).status for id in ids] == ["active", "active"]


def test_a_merge_that_briefs_of_the_past_would_miss_is_refused(memory: Memory) -> None:
    helpful = add_agents(memory, "Generate the protobuf stubs before the tests", category="testing")
    other = add_agents(
        memory,
        "The protobuf stubs are generated before the tests",
        category="architecture",
        observation="It takes long.",
    )
    brief = memory.brief("test the protobuf stubs", agent="tester", task="task_1")
    assert helpful in brief.learning_ids
    memory.debrief("task_1", f"LEARNING_HELPFUL: {helpful}", result="done")
    texts = {
        "title": "Generate the protobuf stubs before the tests",
        "observation": "It takes long. The protobuf stubs are generated before the tests",
    }
    with pytest.raises(WrongRequest, match="has helped in 1 brief"):
        memory.merges.merge([helpful, other], into=other, texts=texts)
    assert [memory.get(id).status for id in (helpful, other)] == ["active", "active"]
    assert memory.merges.merge([helpful, other], into=helpful, texts=texts).successor.id == helpful


def test_what_a_person_wrote_takes_others_in_unchanged(memory: Memory) -> None:
    persons = memory.add("Never edit `migrations/0001.py`")
    agents = add_agents(memory, "Don't edit migrations/0001.py")
    merge = memory.merges.merge([agents, persons.id])
    after = memory.get(persons.id)
    assert merge.successor.id == persons.id
    assert (after.title, after.vouched, after.recurrences) == (persons.title, "person", 1)


def test_what_a_person_wrote_is_neither_rewritten_nor_merged_into_an_agents(memory: Memory) -> None:
    persons = memory.add("Never edit `migrations/0001.py`")
    agents = add_agents(memory, "Don't edit migrations/0001.py, ask Jana")
    ways: tuple[dict[str, Any], ...] = (
        {},
        {"into": agents},
        {"texts": {"title": "Never edit `migrations/0001.py`, ask Jana"}},
    )
    for how in ways:
        with pytest.raises(WrongRequest):
            memory.merges.merge([agents, persons.id], **how)
    assert memory.get(persons.id).version == 1


def test_links_have_depth_one(memory: Memory, clock: Clock) -> None:
    first, second, third = (memory.add(f"Run the tests with {number} workers").id for number in (2, 4, 8))
    memory.merges.replace(first, second)
    clock.advance(days=1)
    replaced = memory.merges.replace(second, third)
    assert {memory.get(id).superseded_by for id in (first, second)} == {third}
    memory.merges.undo(replaced.id)
    assert (memory.get(first).superseded_by, memory.get(second).status) == (second, "active")


def test_what_is_not_active_is_not_merged(memory: Memory) -> None:
    one, other = memory.add("Run `make lint`").id, memory.add("Run make lint").id
    memory.hide(other)
    with pytest.raises(WrongRequest, match="hidden"):
        memory.merges.merge([one, other])
    with pytest.raises(WrongRequest):
        memory.merges.merge([one])


def test_an_agent_does_not_merge_what_a_person_vouches_for(memory: Memory) -> None:
    ids = [memory.add("Run `make lint`").id, memory.add("Run make lint").id]
    memory.speak_as_agent("claude")
    with pytest.raises(WrongRequest):
        memory.merges.merge(ids)


def test_what_speaks_for_the_sources_speaks_for_the_successor_until_it_is_undone(memory: Memory, clock: Clock) -> None:
    ids = [add_agents(memory, "Run `make lint` first"), add_agents(memory, "Run make lint first")]
    store = memory.context.store
    with store.transaction():
        for number, id in enumerate(ids):
            for task in ("task_shared", f"task_{number}"):
                evidence.add(store.database, id, task, evidence.HELPFUL, at=clock())
    clock.advance(days=1)
    merge = memory.merges.merge(ids)
    tasks = ("task_shared", "task_0", "task_1")
    assert all(evidence.is_marked(store.database, merge.successor.id, task) for task in tasks)

    clock.advance(days=1)
    memory.like(merge.successor.id)
    memory.merges.undo(merge.id)
    marked = [task for task in tasks if evidence.is_marked(store.database, merge.successor.id, task)]
    assert marked == ["task_shared", f"task_{ids.index(merge.successor.id)}"]
    assert memory.get(merge.successor.id).vouched == "person"
