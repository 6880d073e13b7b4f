"""Rules that a database and our own code both decide: on generated learnings, both decide the same."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from learnt import Memory
from learnt.brief.select import Rules, choose
from learnt.brief.standing import StandingRules
from learnt.brief.standing import choose as choose_standing
from learnt.learnings_file.write import select
from learnt.model import Hit, Learning, new_id
from learnt.store import index, learnings, learnings_in_files
from learnt.store.database import Database
from learnt.store.index import Filter
from learnt.store.learnings import Change
from learnt.weigh.confidence import impact, is_proven, stage

GATE = 0.6
CATEGORIES = ("", "api", "ui")
TASKS = ("", "task_1", "task_2", "task_3")
# Helpful and other marks. Where enough marks prove a learning, their balance is above that of every unproven one: the
# store orders its candidates by the balance, which an index serves, and the rule puts proven learnings first.
MARKS = ((0, 0), (1, 0), (2, 0), (0, 2), (4, 1), (5, 0), (9, 2))


@pytest.fixture
def stored(memory: Memory, chance: random.Random) -> list[Learning]:
    """Learnings of every kind, stored."""
    database = memory.context.store.database
    generated = list(_generate(chance, 80))
    with memory.context.store.transaction():
        for learning in generated:
            learnings.add(database, learning, Change(what="add", who="anna", at=learning.created_at))
    return generated


@pytest.fixture
def connection(memory: Memory, stored: list[Learning]) -> Database:
    return memory.context.store.database


def test_the_database_and_our_code_agree_on_trust_categories_and_exclusions(
    connection: Database, stored: list[Learning], chance: random.Random
) -> None:
    ids = [learning.id for learning in stored]
    filters = [
        Filter(status=None),
        Filter(status=None, trusted_from=GATE),
        Filter(status=None, doubted_below=GATE),
        Filter(status=None, in_categories=("", "api")),
        Filter(status=None, not_in_categories=("api",), trusted_from=GATE),
    ]
    excluded = {"exclude_task": "task_1", "exclude_ids": tuple(sorted(chance.sample(ids, 10)))}
    filters += [which.replace(**excluded, only_excluded=only) for which in filters for only in (False, True)]
    filters += [Filter(status=None, only_excluded=True)]
    candidates = index.read_candidates(connection, ids, ())
    for which in filters:
        in_sql = {learning.id for learning in learnings.page(connection, which, limit=1_000)}
        assert in_sql == {candidate.id for candidate in candidates if which.accepts(candidate)}, which


def test_a_brief_takes_on_trial_what_the_database_doubts(connection: Database, stored: list[Learning]) -> None:
    hits = [Hit(learning=learning, score=1.0, relevance=1.0) for learning in stored]
    choices = choose(hits, Rules(min_confidence=GATE), excluded={}, impact=impact)
    doubted = learnings.page(connection, Filter(status=None, doubted_below=GATE), limit=1_000)
    assert {choice.hit.learning.id for choice in choices if choice.on_trial} == {learning.id for learning in doubted}


@pytest.mark.parametrize("proven_only", [False, True])
def test_the_candidates_for_standing_learnings_hold_those_that_the_rule_chooses_from_all(
    connection: Database, stored: list[Learning], proven_only: bool
) -> None:
    rules = StandingRules(per_category=2, min_confidence=GATE, proven_only=proven_only)
    active = [learning for learning in stored if learning.status == "active"]
    which = Filter(trusted_from=GATE)
    of_all = {category: [known for known in active if known.category == category] for category in CATEGORIES}
    candidates = {
        category: learnings.standing_candidates(
            connection, which.replace(in_categories=(category,)), limit=4 * rules.per_category, helpful_only=proven_only
        )
        for category in CATEGORIES
    }
    assert _choose_standing(candidates, rules) == _choose_standing(of_all, rules) != []


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 40])
def test_the_foremost_candidates_are_found_whether_they_stand_first_or_behind_others(
    connection: Database, stored: list[Learning], limit: int
) -> None:
    which = Filter(trusted_from=GATE, in_categories=("api",))
    allowed = {learning.id for learning in learnings.page(connection, which, limit=1_000)}
    trusted = [learning for learning in stored if learning.id in allowed]
    best = sorted(trusted, key=lambda known: (known.pinned, _balance(known), known.recurrences), reverse=True)[:limit]
    found = learnings.standing_candidates(connection, which, limit=limit)
    assert len(found) == len(best)
    assert sorted(map(_balance, found)) == sorted(map(_balance, best))


def _balance(learning: Learning) -> int:
    return learning.times_helpful - learning.times_not_helpful


@pytest.mark.parametrize("goal", [None, "", "release"])
@pytest.mark.parametrize("since_days", [0, 5, 100])
def test_the_candidates_for_a_learnings_file_hold_all_that_it_shows(
    connection: Database, stored: list[Learning], chance: random.Random, goal: str | None, since_days: int
) -> None:
    cared_for = frozenset(chance.sample([learning.id for learning in stored], 5))
    since, tasks = _day(since_days), ["task_1", "task_2"]
    candidates = learnings_in_files.for_file(connection, tasks=tasks, since=since, goal=goal, cared_for=cared_for)
    of_goal = [learning for learning in stored if goal is None or learning.goal == goal]
    assert len(candidates) <= len(of_goal)
    assert _show(candidates, tasks, since, cared_for) == _show(of_goal, tasks, since, cared_for) != []


def _show(candidates: list[Learning], tasks: list[str], since: int, cared_for: frozenset[str]) -> list[str]:
    shown = select(
        candidates, window_tasks=frozenset(tasks), since_ms=since, stage=stage, impact=impact, cared_for=cared_for
    )
    return [learning.id for learning in shown]


def _choose_standing(groups: dict[str, list[Learning]], rules: StandingRules) -> list[str]:
    considered = choose_standing(groups, rules, excluded={}, impact=impact, is_proven=is_proven)
    return [entry.learning.id for entry in considered if not entry.left_out]


def _day(number: int) -> int:
    return 1_700_000_000_000 + number * 86_400_000


def _generate(chance: random.Random, count: int) -> Iterator[Learning]:
    for number in range(count):
        helpful, not_helpful = chance.choice(MARKS)
        created_at = _day(chance.randrange(20)) + number
        vouched = chance.choice(("", "person", "evidence", "evidence"))
        yield Learning(
            id=new_id("learn", created_at),
            # Some say the same, but none the same as a person's.
            title=f"{'Rule' if vouched == 'person' else 'Learning'} {chance.randrange(count)}",
            category=chance.choice(CATEGORIES),
            polarity=chance.choice(("do", "avoid")),
            origin=chance.choice(("person", "agent", "agent", "model")),
            vouched=vouched,
            goal=chance.choice(("", "release")),
            task=chance.choice(TASKS),
            confidence=chance.choice((0.1, 0.59, GATE, 0.1 + 0.2 + 0.3, 0.61, 1.0)),
            times_helpful=helpful,
            times_not_helpful=not_helpful,
            recurrences=chance.randrange(4),
            created_at=created_at,
            updated_at=created_at + chance.choice((0, 3)) * 86_400_000,
            status=chance.choice(("active", "active", "active", "hidden", "archived", "proposed")),
            pinned=chance.random() < 0.1,
        )
