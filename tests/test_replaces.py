"""Of two learnings on one subject, the newer one that tells of a change is shown, and the older one is not."""

from __future__ import annotations

import pytest

from learnt import Memory
from tests.conftest import Clock

# The older learning, the newer one, and a prompt that is nearer to the older one.
PAIRS = {
    "a moved service": (
        "Deploy the API with `make deploy` on the build host",
        "Deploying the API with `make deploy` is gone: since the move to Kubernetes the pipeline deploys it",
        "deploy the API with make deploy",
    ),
    "a newer version": (
        "Install the packages of the frontend with `npm install`",
        "Packages of the frontend: `npm install` was replaced, install them with `pnpm install`",
        "install the packages of the frontend with npm install",
    ),
    "no longer": (
        "Run the database migrations by hand after each release",
        "The database migrations are no longer run by hand after each release: the container runs them",
        "run the database migrations by hand after the release",
    ),
}
OTHER = "Round VAT per line item, not on the total"


def _brief(memory: Memory, prompt: str) -> tuple[str, ...]:
    return memory.brief(prompt, keep=False).learning_ids


@pytest.mark.parametrize("pair", PAIRS)
def test_the_newer_one_that_tells_of_a_change_wins_whichever_is_more_relevant(
    memory: Memory, clock: Clock, pair: str
) -> None:
    older_title, newer_title, prompt = PAIRS[pair]
    older = memory.add(older_title)
    clock.advance(days=30)
    newer = memory.add(newer_title)
    memory.add(OTHER)
    relevance = {hit.learning.id: hit.relevance for hit in memory.search(prompt)}
    assert relevance[older.id] > relevance[newer.id]
    assert older.id not in _brief(memory, prompt)
    assert newer.id in _brief(memory, newer_title)


@pytest.mark.parametrize("pair", PAIRS)
def test_an_older_one_that_tells_of_a_change_replaces_nothing(memory: Memory, clock: Clock, pair: str) -> None:
    older_title, newer_title, prompt = PAIRS[pair]
    memory.add(newer_title)
    clock.advance(days=30)
    newest = memory.add(older_title)
    assert newest.id in _brief(memory, prompt)


def test_a_change_of_something_else_replaces_nothing(memory: Memory, clock: Clock) -> None:
    tests = memory.add("Do not mock the payments service in tests")
    older = memory.add("Run the database migrations by hand after each release")
    clock.advance(days=30)
    memory.add("The old colours of the start page are no longer used")
    memory.add("Screenshots of a release moved to the wiki")
    memory.add("Run `make seed` before the integration tests", observation="They read what was there since March")
    assert _brief(memory, "write a test that mocks the payments service") == (tests.id,)
    assert _brief(memory, "run the database migrations by hand after the release") == (older.id,)


def test_a_newer_one_without_a_change_stands_beside_it(memory: Memory, clock: Clock) -> None:
    older = memory.add("Run the database migrations by hand after each release")
    clock.advance(days=30)
    newer = memory.add("Run the database migrations in a transaction, so that a failed one leaves nothing behind")
    assert set(_brief(memory, "run the database migrations after the release")) == {older.id, newer.id}


def test_nobodys_learning_replaces_what_a_person_says(memory: Memory, clock: Clock) -> None:
    older_title, newer_title, prompt = PAIRS["no longer"]
    older = memory.add(older_title)
    clock.advance(days=30)
    memory.add(newer_title, origin="agent", confidence=0.9)
    assert older.id in _brief(memory, prompt)
