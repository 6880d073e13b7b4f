"""Whether a newer learning repeats, extends, replaces or contradicts an older one; similarity alone says nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnt.model import Learning
from learnt.weigh.compare import RELATIONS, Verdict, compare


def learning(text: str, **fields: str) -> Learning:
    title, _, observation = text.partition(" // ")
    return Learning(id="learn_1", title=title, observation=observation, **fields)  # type: ignore[arg-type]


REPEATED = [
    ("Run `make lint` before each commit", "Run make lint before every commit"),
    ("Use `uv run pytest`, not `python -m pytest`", "Run `uv run pytest` instead of `python -m pytest`"),
    (
        "Run `uv run pytest`, not `python -m pytest`: No module named pytest",
        "Use `uv run pytest` instead of `python -m pytest`.",
    ),
    (
        "Run `uv run pytest`, not `python -m pytest`: No module named pytest",
        "Call `uv run pytest`; plain `python -m pytest` fails because it is not in the system interpreter.",
    ),
    ("Never commit the `.env` file", "Do not commit the `.env` file"),
    ("Never edit `migrations/0001.py`", "Don't edit migrations/0001.py"),
    ("Avoid mocking the database in tests", "In tests, avoid mocking the db"),
    ("The config lives in `deploy/prod.yml`", "The configuration lives in deploy/prod.yml."),
    ("The API listens on port 5432", "the api listens on port 5432!"),
    ("Prices are integers of cents", "Prices must always be integers of cents"),
    ("Close the cursor before the commit", "Close the cursor before the commit, because SQLite locks the file."),
    ("`terraform apply` runs in CI only", "terraform apply only runs in CI"),
    ("Run the migrations first, then the tests", "Run the migrations first and then the tests"),
    ("Nie direkt auf `main` pushen", "Niemals direkt auf main pushen"),
    ("No uses `npm install`, usa `npm ci`", "Usa `npm ci`, no uses `npm install`"),
    ("Ne modifiez jamais `schema.sql`", "Ne modifiez pas `schema.sql`"),
    ("Delete the `dist` folder before a release", "Remove the `dist` directory before a release"),
    ("Fixtures are reset by the `db` fixture", "The `db` fixture resets fixtures"),
]

MORE = [
    ("Run the tests with `make test`", "Run the tests with `make test` and `REDIS_URL` set"),
    ("Retry uploads", "Retry uploads 3 times with a pause of 10 s"),
    ("Run `make gen` after changing the schema", "Run `make gen` and `make fmt` after changing the schema"),
    ("The worker needs Redis", "The worker needs Redis 7.2 on port 6380"),
    ("Never log tokens", "Never log tokens or session ids in `audit.py`"),
    ("Use the header from `theme.css`", "Use the header from `theme.css` on mobile"),
]

LESS = [(newer, older) for older, newer in MORE]

OPPOSITE = [
    ("Use `black` here", "Never use `black` here"),
    ("Use tabs in Makefiles", "Do not use tabs in Makefiles"),
    ("Use `npm ci`, not `npm install`", "Use `npm install`, not `npm ci`"),
    ("Run `make gen` before `make test`", "Run `make test` before `make gen`"),
    ("Run `make gen` before `make test`", "Run `make gen` after `make test`"),
    ("Enable the cache in tests", "Disable the cache in tests"),
    ("The endpoint is public", "The endpoint is private"),
    ("Commit the lock file", "Don't commit the lock file"),
    ("Mock the database in unit tests", "Avoid mocking the database in unit tests"),
    ("Turn the proxy on for uploads", "Turn the proxy off for uploads"),
    ("Immer auf `main` pushen", "Nie auf `main` pushen"),
    ("Toujours lancer `make gen` avant les tests", "Ne jamais lancer `make gen` avant les tests"),
    ("Usa la caché en CI", "No uses la caché en CI"),
]

APART = [
    ("The header of the landing page is purple", "The header of the landing page is cyan"),
    ("PR #260 changed the rounding of prices", "PR #480 changed the rounding of prices"),
    ("The database listens on port 5432", "The database listens on port 5433"),
    ("Use Python 3.11 for the lambda", "Use Python 3.12 for the lambda"),
    ("Run `make test` before each commit", "Run `make lint` before each commit"),
    ("The schema is in `db/schema.sql`", "The schema is in `db/structure.sql`"),
    ("Ask Jana before touching the ERP export", "Ask Milo before touching the ERP export"),
    ("Use `--no-cache` for the image", "Use `--pull` for the image"),
    ("Deploys to staging need a label", "Deploys to production need a label"),
    ("Use `npm ci`, not `npm install`, in tests", "Use `npm ci`, not `npm install`, in production"),
    ("Wait 5 seconds for the socket", "Wait 50 seconds for the socket"),
    ("`orders.total` includes tax", "`orders.total` includes shipping"),
    ("Import `a` from `b`", "Import `b` from `a`"),
    ("Set `DEBUG=1` for the worker", "Set `DEBUG=0` for the worker"),
    ("Nur Anna darf die Preise ändern", "Nur Bernd darf die Preise ändern"),
    ("The `users` table has soft deletes", "The `orders` table has soft deletes"),
    ("Rate limit is 100 requests per minute", "Rate limit is 100 requests per hour"),
    ("Use HTTP for health checks", "Use HTTPS for health checks"),
    ("Run tests with 4 workers", "Run tests with 8 workers"),
    ("The client retries on 503 but not on 500", "The client retries on 500 but not on 503"),
    ("Start the server first and then the worker", "Start the worker first and then the server"),
    ("Orders are locked while they are paid", "Orders are locked after they are paid"),
    ("The step is skipped unless LABEL is set", "The step is skipped if LABEL is set"),
    ("At least 3 reviewers are needed", "At most 3 reviewers are needed"),
    ("`orders` depends on `billing`", "`billing` depends on `orders`"),
    ("Staging uses Postgres 14 and production uses Postgres 16", "Production uses Postgres 14"),
    ("`npm ci` fails without a lockfile", "`npm ci` fails with an old lockfile"),
    ("Separate the columns of exports with `;`", "Separate the columns of exports with `,`"),
    ("Split the lines of a report with `split(';')`", "Split the lines of a report with `split(',')`"),
    ('Split the lines of a report at `"\\t"`', 'Split the lines of a report at `" "`'),
    ("Join first and last names with `' '`", "Join first and last names with `''`"),
    ("Delete merged branches with `git branch -d`", "Delete merged branches with `git branch -D`"),
    ("Join the words of a label with one space", "Join the words of a label with two spaces"),
]

UNRELATED = [
    ("Run `make lint` before each commit", "Prices are integers of cents in every table"),
    ("Never log tokens", "Playwright needs `--with-deps` on Debian"),
    ("The API listens on port 5432", "Dates are stored in UTC"),
]

REPLACED = [
    ("Run the tests with `manage.py test`", "Tests: `make test`; `manage.py test` is gone"),
    ("Deploy by pushing a tag", "Deploy by merging to main, tags do nothing since March"),
    ("Mocks come from `mockgen`", "No mocks from `mockgen` any more: write fakes by hand"),
    ("Feature flags live in `flags.json`", "Feature flags moved to LaunchDarkly; `flags.json` is ignored"),
]


@pytest.mark.parametrize(("older", "newer"), REPEATED)
def test_the_same_specifics_on_the_same_side_are_a_repetition(older: str, newer: str) -> None:
    assert compare(learning(older), learning(newer)) == "repeats"


@pytest.mark.parametrize(("older", "newer"), MORE)
def test_more_specifics_supersede(older: str, newer: str) -> None:
    verdict = compare(learning(older), learning(newer))
    assert verdict == "supersedes"
    assert verdict.adds
    assert not verdict.lacks


@pytest.mark.parametrize(("older", "newer"), LESS)
def test_a_shorter_statement_repeats_and_says_what_it_lacks(older: str, newer: str) -> None:
    verdict = compare(learning(older), learning(newer))
    assert verdict == "repeats"
    assert verdict.lacks


@pytest.mark.parametrize(("older", "newer"), OPPOSITE)
def test_the_opposite_contradicts_both_ways(older: str, newer: str) -> None:
    assert compare(learning(older), learning(newer)) == "contradicts"
    assert compare(learning(newer), learning(older)) == "contradicts"


@pytest.mark.parametrize(("older", "newer"), APART)
def test_one_other_name_number_or_word_keeps_two_learnings_apart(older: str, newer: str) -> None:
    assert compare(learning(older), learning(newer)) in ("unsure", "unrelated", "contradicts")
    assert compare(learning(newer), learning(older)) in ("unsure", "unrelated", "contradicts")


@pytest.mark.parametrize(("older", "newer"), UNRELATED)
def test_what_shares_nothing_is_unrelated(older: str, newer: str) -> None:
    assert compare(learning(older), learning(newer)) == "unrelated"


@pytest.mark.parametrize(("older", "newer"), REPLACED)
def test_what_says_that_it_is_no_longer_so_supersedes(older: str, newer: str) -> None:
    assert compare(learning(older), learning(newer)) == "supersedes"


def test_a_learning_to_avoid_contradicts_the_same_advice() -> None:
    advice = learning("Weigh apples on the left scale")
    assert compare(advice, advice.replace(polarity="avoid")) == "contradicts"
    assert compare(advice.replace(polarity="avoid"), learning("Never weigh apples on the left scale")) == "repeats"


def test_the_denial_of_an_opposite_is_no_contradiction() -> None:
    older, newer = learning("Do not run the tests in parallel"), learning("Run the tests serially")
    assert compare(older, newer) != "contradicts"
    assert compare(learning("Run the tests in parallel"), newer) == "contradicts"


def test_specifics_in_the_other_texts_count() -> None:
    older = learning("Retry failed uploads", action="Use `retry(times=3)`.")
    assert compare(older, older.replace(action="Use `retry(times=5)`.")) == "unsure"
    assert compare(older, older.replace(action="")) == "repeats"
    assert compare(older.replace(action=""), older) == "supersedes"


def test_a_verdict_is_its_word_with_a_score_and_a_reason() -> None:
    verdict = compare(learning("Run `make lint`"), learning("Run `make lint`"))
    assert isinstance(verdict, Verdict)
    assert (verdict, verdict.relation, verdict.score) == ("repeats", "repeats", 1.0)
    assert verdict.reason == "says the same"
    turned = compare(learning("Write the policies before the queries"), learning("Never write the policies or queries"))
    assert "polici" not in turned.reason.replace("policies", "")


@given(st.text(min_size=1, max_size=80), st.text(max_size=200))
def test_any_two_texts_are_compared(title: str, text: str) -> None:
    folded = " ".join(title.split()) or "x"
    one, other = (Learning(id="learn_1", title=folded, observation=text) for _ in range(2))
    assert compare(one, other.replace(observation="")) in RELATIONS
    assert compare(one, other) not in ("unsure", "contradicts") or not any(map(str.isalnum, folded))
