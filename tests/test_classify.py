"""What a learning says decides its polarity, its category and its triggers, whoever wrote it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnt.mine.classify import complete, find_category, find_triggers, forbids
from learnt.model import Learning, Triggers

FORBIDDING = [
    "Never mock the database",
    "Do not edit `migrations/0001.py`",
    "Don't commit the `.env` file",
    "dont push to main",
    "Avoid wildcard imports in `shop/`",
    "Stop adding comments to every line",
    "In tests, never open a real connection",
    "When the cache is cold, do not retry",
    "Generated files must not be edited",
    "Prices should never be floats",
    "No waitForTimeout in Playwright",
    "`legacy/` is off-limits without asking Jana",
    "Please never rename the columns",
    "Direct writes to the ledger are not allowed",
    "Nie direkt auf `main` pushen",
    "Vermeide Sternimporte",
    "Keine Zugangsdaten ins Repository legen",
    "Bitte nicht die Tabelle umbenennen",
    "Generierte Dateien dürfen nicht geändert werden",
    "Ne modifiez jamais `schema.sql`",
    "Il ne faut pas relancer le job",
    "Évitez les imports globaux",
    "N'utilise pas `npm install`",
    "Pas de variables globales",
    "Nunca subas el archivo `.env`",
    "No uses `npm install` aquí",
    "Evita los mocks de la base de datos",
    "No se debe cambiar el esquema a mano",
]
ADVISING = [
    "Use `npm ci` instead of `npm install`",
    "Run `uv run pytest`, not `python -m pytest`",
    "Close the cursor before the commit",
    "The worker does not reconnect after a restart",
    "`sqlite3` cannot load extensions here",
    "Use the fixture `db`, no mocks",
    "Prefer composition, never mind the extra class",
    "A missing key is not an error",
    "Notes are kept in `docs/notes.md`",
    "Nothing is cached between runs",
    "Immer `make gen` vor den Tests laufen lassen",
    "Der Worker verbindet sich nicht neu",
    "Toujours lancer les migrations avant les tests",
    "Siempre usa `npm ci`",
]


@pytest.mark.parametrize("title", FORBIDDING)
def test_a_prohibition_is_something_to_avoid(title: str) -> None:
    assert forbids(title)
    assert complete({"title": title})["polarity"] == "avoid"


@pytest.mark.parametrize("title", ADVISING)
def test_advice_and_facts_are_not(title: str) -> None:
    assert not forbids(title)
    assert complete({"title": title}).get("polarity", "do") == "do"


@pytest.mark.parametrize("title", FORBIDDING)
def test_avoid_is_not_said_twice(title: str) -> None:
    assert Learning(id="learn_1", title=title, polarity="avoid").advise(title) == title


def test_avoid_is_said_where_the_title_does_not() -> None:
    learning = Learning(id="learn_1", title="Weigh apples on the left scale", polarity="avoid")
    assert learning.advise(learning.title) == "Avoid: Weigh apples on the left scale"


@pytest.mark.parametrize(
    ("title", "category"),
    [
        ("Run `uv run pytest`, not `python -m pytest`", "pytest"),
        ("Integration tests need a running Redis", "testing"),
        ("Playwright needs `--with-deps` on Debian", "testing"),
        ("Never log access tokens or passwords", "security"),
        ("Rebase on `main` before opening a pull request", "git"),
        ("`terraform apply` runs in Atlantis only", "infrastructure"),
        ("Deploys to staging need the label `release`", "infrastructure"),
        ("The domain model must not import from the web layer", "architecture"),
        ("Use pnpm, not npm, in this repository", "build"),
        ("The lock file is generated with `uv lock`", "build"),
        ("Azure DevOps pipelines read `azure-pipelines.yml` from main", "azure-devops"),
        ("Close the cursor before the commit", ""),
        ("Run `make seed` before the tests", ""),
        ("Mocks of the clock hide flaky timeouts", "testing"),
        ("Prices are integers of cents", ""),
        ("Dates in the export are local times", ""),
    ],
)
def test_the_topic_decides_the_category(title: str, category: str) -> None:
    assert find_category(title) == category


@pytest.mark.parametrize(
    ("text", "files", "commands", "errors"),
    [
        ("Never edit `migrations/0001.py`", ("migrations/0001.py",), (), ()),
        ("The totals are in shop/cart.py", ("shop/cart.py",), (), ()),
        ("Ask before touching `legacy/erp_sync/`", ("legacy/erp_sync/",), (), ()),
        ("See README.md and `index.ts`", (), (), ()),
        ("Read `docs/README.md` first", ("docs/README.md",), (), ()),
        ("Run `make lint` before each commit", (), ("make lint",), ()),
        ("Use `uv run pytest` instead of `python -m pytest`", (), ("python -m pytest",), ()),
        ("Never run `git commit --no-verify`", (), ("git commit --no-verify",), ()),
        ("Use `git` for everything", (), (), ()),
        ("`pytest` is slow here", (), (), ()),
        ("Run `npm ci`, not `npm install`", (), ("npm install",), ()),
        ("Call `flurb sync` after a change", (), ("flurb sync",), ()),
        ("`error is nil` is wrong", (), (), ()),
        ("`user is None` means nobody is logged in", (), (), ()),
        ("`kubectl apply` fails with `error validating data: unknown field`", (), ("kubectl apply",), None),
        ('It says "relation does not exist" until the migrations ran', (), (), ("relation does not exist",)),
        ("The compiler stops with E0308", (), (), ("E0308",)),
        ("A ValueError means a wrong key", (), (), ()),
        ("Call `transaction.on_commit` around it", (), (), ()),
        ("Visit https://example.com/a/b.html for more", (), (), ()),
    ],
)
def test_what_is_named_becomes_a_trigger_if_it_is_specific(
    text: str, files: tuple[str, ...], commands: tuple[str, ...], errors: tuple[str, ...] | None
) -> None:
    triggers = find_triggers(text, given=Triggers())
    assert (triggers.files, triggers.commands) == (files, commands)
    if errors is None:
        assert triggers.errors
    else:
        assert triggers.errors == errors


def test_what_the_author_states_stays() -> None:
    own = Triggers(files=("shop/*.py",))
    completed = complete({"title": "Never edit `shop/cart.py` with `make fmt`", "category": "money", "triggers": own})
    assert completed["category"] == "money"
    assert completed["triggers"].files == ("shop/*.py",)
    assert completed["triggers"].commands == ("make fmt",)


@given(st.text(), st.text(), st.text())
def test_any_text_is_classified(title: str, action: str, observation: str) -> None:
    completed = complete({"title": title, "action": action, "observation": observation})
    assert isinstance(completed["triggers"], Triggers)


def test_what_stands_between_two_pieces_of_code_is_no_error() -> None:
    text = "`round()` rounds half to even, so an invalid sum must be rounded with `Decimal.quantize`"
    assert find_triggers(text, given=Triggers()).errors == ()
