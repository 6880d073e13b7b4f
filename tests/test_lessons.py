"""Lessons that agents put into words, and what closed a failure: what counts, and what is only talk."""

from __future__ import annotations

import pytest

from learnt.mine.attempts import observe_attempts
from learnt.mine.lessons import observe_words
from learnt.model import Failure

LESSONS = (
    "It turns out that `bin/check` must be run with `STAGE=dev`, never with `STAGE=prod`.",
    "Turns out `sqlite3` refuses extensions here, so load them through `apsw`.",
    "The build must use `make -j1` because `gen/` is not safe in parallel.",
    "Use `uv run pytest` instead of `python -m pytest`: the tests need the project's environment.",
    "Run `npm ci` instead of `npm install` in CI.",
    "The tests must be run with `uv run pytest`, never with plain `pytest`.",
    "You must run `make gen` before `make test`.",
    "Never commit `.env` files: the deploy reads them.",
    "Migrations in `db/migrate` must never be edited after they are released.",
    "Note: always pass `--frozen` to `uv sync`, otherwise the lock file changes.",
    "I learned that the tests must be run with `make test`, not with pytest directly.",
    "I should have used `uv run pytest` instead of `pytest`.",
    "Prefer `ruff` over `flake8` in this repository.",
    "Lesson: Run `make gen` first.",
    "In future, use `poetry add` rather than `pip install`.",
    "You must never edit `migrations/0001.py`; add a new file instead.",
    "Make sure to run `docker compose up` before the integration tests, otherwise they hang.",
    "Understood: always use `make db-shell` instead of `psql`.",
    "`--generate` requires `-c`: without it the command ends with an error.",
)
TALK = (
    "I used `git switch` instead of `git checkout`.",
    "Let me run `make test` instead of `pytest` now.",
    "Should we use `uv` instead of `pip`?",
    "The `ci` job must be running `gofmt` as part of it.",
    "Always stores its data in `var/db` when it ends.",
    "It turns out the file `a.py` was there all the time.",
    "I must have broken `setup.py` a while ago.",
    "We never used `old.py` in this branch.",
    "One must be careful and never give up too early.",
    "All tests pass, and `make lint` is clean.",
)


@pytest.mark.parametrize("sentence", LESSONS)
def test_a_rule_that_names_a_thing_is_a_lesson(sentence: str) -> None:
    (found,) = observe_words(f"I looked at the shop.\n\n{sentence}\n\n<task-done/>")
    assert (found.rule, found.excerpt) == ("words", sentence)
    assert found.type in ("constraint", "pattern")


@pytest.mark.parametrize("sentence", TALK)
def test_plans_questions_guesses_and_accounts_are_no_lessons(sentence: str) -> None:
    assert list(observe_words(sentence)) == []


@pytest.mark.parametrize("sentence", LESSONS)
def test_what_is_quoted_is_nobodys_lesson(sentence: str) -> None:
    assert list(observe_words(f"> {sentence}\n\n```\n{sentence}\n```\n")) == []


def test_words_that_only_say_that_it_is_a_lesson_are_no_part_of_it() -> None:
    told = {
        "Note: always run `make gen` before `make test`.": "Always run `make gen` before `make test`.",
        "I should have used `uv run` instead of `pip`.": "Use `uv run` instead of `pip`.",
        "Make sure to run `make up` before the tests.": "Run `make up` before the tests.",
    }
    for sentence, statement in told.items():
        (found,) = observe_words(sentence)
        assert (found.text, found.excerpt) == (statement, sentence)


def failed(error: str, *files: str) -> Failure:
    return Failure(attempt="attempt_1", task="task_1", reason="the check failed", error=error, files=files)


def test_what_closed_a_complaint_names_a_thing_that_it_complains_of() -> None:
    complaint = failed("error: settings.ini is missing; make_settings.py writes it")
    found = observe_attempts(complaint, summary="built", said="I ran make_settings.py first, then build.py.")
    assert found is not None
    assert found.text == "Run make_settings.py first, then build.py: otherwise the check says “settings.ini is missing”"
    assert found.worked.startswith("Run make_settings.py")


@pytest.mark.parametrize(
    "said", ["I ran build.py; it ended with 0.", "All is well now.", "", "Shall I add settings.ini?"]
)
def test_an_account_that_says_nothing_of_the_complaint_closes_nothing(said: str) -> None:
    complaint = failed("error: settings.ini is missing; make_settings.py writes it")
    assert observe_attempts(complaint, summary="built the shop", said=said) is None
