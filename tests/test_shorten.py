"""A title is a whole sentence of at most 100 characters; the full text stands in the observation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnt.model import TITLE_LIMIT
from learnt.text.sentences import is_whole
from learnt.text.shorten import shorten

LONG = [
    (
        "Run `make fixtures` before the integration tests of the shop, because they read the database that it fills "
        "with the prices of the last quarter.",
        "Run `make fixtures` before the integration tests of the shop",
    ),
    (
        "It turns out that the payment service rejects requests without an idempotency key (see the handbook, page 12, "
        "and the ticket of last week).",
        "The payment service rejects requests without an idempotency key",
    ),
    (
        "Note that `npm ci` deletes `node_modules` first, which takes about two minutes on the runners, so cache the "
        "folder `~/.npm` instead.",
        "`npm ci` deletes `node_modules` first, which takes about two minutes on the runners",
    ),
    (
        "Lesson learned: the search index must be rebuilt after every change of the analyzer; otherwise old documents "
        "are not found any more.",
        "The search index must be rebuilt after every change of the analyzer",
    ),
    (
        "The worker keeps its connection for the whole life of the process and never reconnects when the database was "
        "restarted in the meantime.",
        "The worker keeps its connection for the whole life of the process",
    ),
    (
        "Never run `terraform apply` on a laptop unless the state has been locked by hand in the console of the cloud "
        "provider before that.",
        "Never run `terraform apply` on a laptop unless the state has been locked by hand",
    ),
    (
        "Dates in the export are local times of the customer's branch, so convert them with `branch.zone` before you "
        "compare them with ours.",
        "Dates in the export are local times of the customer's branch",
    ),
    (
        "Die Migrationen müssen vor den Tests laufen, weil die Fixtures Spalten erwarten, die erst die letzte "
        "Migration anlegt und füllt.",
        "Die Migrationen müssen vor den Tests laufen, weil die Fixtures Spalten erwarten",
    ),
]
WHOLE = [
    "Use `uv run pytest` instead of `python -m pytest`, because pytest is installed in the environment of the project "
    "only and not for the system.",
    "When the build fails with `ENOSPC`, delete the folder `target/debug` of the service, which grows by several "
    "gigabytes a day on the shared runner.",
    "The proxy drops every header with an underscore in its name, so `X_Request_Id` never arrives at the backend; "
    "`X-Request-Id` does arrive there.",
    "Always close the cursor before the commit – SQLite otherwise keeps a read lock on the file until the garbage "
    "collector finds the cursor again.",
    "Keep the price in integer cents in every table and every message, and convert it to a decimal number only where "
    "it is printed for a customer.",
    "The flag `--no-verify` must not be used here: the hook writes the changelog entry that the release job reads "
    "afterwards, and the job fails without it.",
]


@pytest.mark.parametrize(("text", "title"), LONG)
def test_clauses_are_dropped_until_the_sentence_fits(text: str, title: str) -> None:
    assert shorten(text) == title


@pytest.mark.parametrize("text", WHOLE + [text for text, _ in LONG])
def test_what_remains_is_a_whole_sentence(text: str) -> None:
    title = shorten(text)
    assert len(title) <= TITLE_LIMIT
    assert is_whole(title)
    assert not title.endswith("…")


@pytest.mark.parametrize(
    "text",
    [
        "Never commit the generated client unless the schema of the partner has been released and announced to all of "
        "the teams concerned",
        "Deploy to production only if the canary has been green for an hour and nobody from support has objected in "
        "the channel of the release",
        "Do not retry a payment except when the provider has confirmed in writing that the first attempt was not "
        "booked at all",
    ],
)
def test_a_condition_is_not_dropped(text: str) -> None:
    condition = next(word for word in ("unless", "only if", "except") if word in text)
    assert condition in shorten(text)


def test_a_short_sentence_only_loses_its_full_stop() -> None:
    assert shorten("Note: run `make gen` first.") == "Note: run `make gen` first"


def test_long_code_loses_its_middle() -> None:
    path = "services/shop/internal/prices/of/the/last/quarter"
    title = shorten(f"Run `task run --file {path}/a.toml --only totals` instead of `task run --file {path}/b.toml`")
    assert len(title) <= TITLE_LIMIT
    assert title.count("`") == 4


@given(st.text(max_size=400))
def test_any_text_is_shortened(text: str) -> None:
    assert len(shorten(text)) <= TITLE_LIMIT
