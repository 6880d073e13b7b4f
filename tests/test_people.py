"""What people say in their prompts: which sentences are rules, how firmly they are said, and what is none.

All prompts are invented. Each rule is given by words that its statement must contain, in the order of the prompt.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from learnt.flow import hook_events
from learnt.mine.decisions import read_decision
from learnt.mine.people import Utterance, read_prompt
from learnt.mine.people_rules import ASKED, RULE, SOFT

# A prompt, how firmly its rule is said, and words of the statement.
RULES = [
    # Requests to remember, in four languages.
    ("Remember: the staging database is shared with the sales team, so don't reset it.", ASKED, "staging database"),
    ("please remember that invoices are stored in cents", ASKED, "invoices are stored in cents"),
    ("From now on run `make fmt` before each commit.", ASKED, "`make fmt`"),
    ("ok good. going forward, put new icons into assets/icons, not into the component folder", ASKED, "assets/icons"),
    ("In future, ask me before you add a dependency.", ASKED, "before you add a dependency"),
    ("Keep in mind that the mobile team parses our error strings.", ASKED, "mobile team parses"),
    ("Note for the future: the seed script needs Redis running.", ASKED, "needs Redis"),
    ("Next time, check the feature flag before you touch checkout.", ASKED, "check the feature flag"),
    ("Don't forget: every new env var must also go into `.env.example`.", ASKED, "`.env.example`"),
    ("Merk dir bitte: Die Testdaten liegen in fixtures/, nicht in tests/data.", ASKED, "fixtures/"),
    ("Ab sofort bitte Commit-Nachrichten auf Englisch schreiben.", ASKED, "auf Englisch"),
    ("Für die Zukunft: Datumswerte speichern wir in UTC.", ASKED, "in UTC"),
    ("Vergiss nicht, dass der Worker nur mit Python 3.10 läuft.", ASKED, "Python 3.10"),
    ("À partir de maintenant, lance `npm run lint` avant chaque commit.", ASKED, "`npm run lint`"),
    ("Retiens que le port 8080 est réservé au proxy.", ASKED, "port 8080"),
    ("Désormais, pas de commentaires en français dans le code.", ASKED, "commentaires en français"),
    ("N'oublie pas que les montants sont en centimes.", ASKED, "montants sont en centimes"),
    ("A partir de ahora usa `uv` en lugar de `pip`.", ASKED, "`uv`"),
    ("Recuerda que los precios van sin IVA en la base de datos.", ASKED, "sin IVA"),
    ("De ahora en adelante, escribe los tests antes que el código.", ASKED, "los tests antes"),
    # Prohibitions and universals that are said to the agent.
    ("Never edit the files under gen/, they are overwritten by protoc.", RULE, "gen/"),
    ("Always use the repository layer, never raw SQL in handlers.", RULE, "repository layer"),
    ("Don't ever push to the release branch.", RULE, "release branch"),
    ("Stop adding docstrings to the test functions.", RULE, "docstrings"),
    ("Stop using `any` in this codebase. We have strict mode on for a reason.", RULE, "`any`"),
    ("Please never log access tokens, not even at debug level", RULE, "access tokens"),
    ("When you rename a column, always add a migration.", RULE, "add a migration"),
    ("You must never call the payment API from a test.", RULE, "payment API"),
    ("I never want to see `print` in library code again.", RULE, "`print`"),
    ("do not commit directly to main again, always open a PR", RULE, "open a PR"),
    ("And never run the e2e suite locally, it writes to the shared bucket.", RULE, "e2e suite"),
    ("Verwende niemals `float` für Geldbeträge.", RULE, "`float`"),
    ("Bitte immer zuerst `make gen` ausführen, bevor du die Typen prüfst.", RULE, "`make gen`"),
    ("Hör auf, ständig neue Utility-Module anzulegen.", RULE, "Utility-Module"),
    ("N'utilise jamais `moment`, on a `dayjs`.", RULE, "`dayjs`"),
    ("Arrête d'ajouter des `console.log` partout.", RULE, "`console.log`"),
    ("Nunca borres las migraciones antiguas.", RULE, "migraciones antiguas"),
    ("Deja de usar comillas simples en los ficheros de Rust.", RULE, "comillas simples"),
    # What is said of the project.
    ("We always squash before merging.", RULE, "squash"),
    ("We never use default exports here.", RULE, "default exports"),
    ("In this repo we don't mock the clock, we inject it.", RULE, "inject it"),
    ("As a rule, public functions get a type annotation.", RULE, "type annotation"),
    ("Our convention is one component per file.", RULE, "one component per file"),
    ("Direct writes to the ledger table are forbidden.", RULE, "ledger table"),
    ("Nobody touches `infra/prod` without a second pair of eyes.", RULE, "`infra/prod`"),
    ("All database access goes through the `db` package in this project.", RULE, "`db` package"),
    ("Wir verwenden grundsätzlich keine Enums, sondern Union-Typen.", RULE, "Union-Typen"),
    ("Bei uns heißen Branches immer nach dem Ticket.", RULE, "nach dem Ticket"),
    ("Dans ce projet on n'utilise pas de classes, seulement des fonctions.", RULE, "fonctions"),
    ("Aquí siempre usamos tabuladores.", RULE, "tabuladores"),
    # Corrections of a choice that was just made.
    ("no, use pnpm here", SOFT, "pnpm"),
    ("We use httpx, not requests.", SOFT, "httpx"),
    ("Why did you install lodash? We have remeda for that.", SOFT, "remeda"),
    ('it\'s "workspace", not "project", across the whole product', SOFT, "workspace"),
    ("Don't run the whole test suite, it takes 40 minutes. Use `-k` with the module name.", SOFT, "40 minutes"),
    ("that's not how we name things here, tables are singular", SOFT, "singular"),
    ("Don't touch vendor/, those files are synced from upstream every night", SOFT, "vendor/"),
    ("nein, nimm hier `poetry`, nicht pip", SOFT, "`poetry`"),
    ("Non, ici on utilise yarn, pas npm.", RULE, "yarn"),
    ("No, aquí usamos pytest, no unittest.", RULE, "pytest"),
    ("You keep forgetting the changelog. It needs an entry for every user-visible change.", SOFT, "changelog"),
    ("I'd rather have small commits than one big one, please.", SOFT, "small commits"),
]

NONE = [
    "Remember the bug with the login page? Is it fixed?",
    "Do you remember how we solved this last week?",
    "I remember that this used to work.",
    "never mind, I found it",
    "Nevermind the failing test for now.",
    "It never worked on Windows.",
    "I've never seen this error before, what does it mean?",
    "The page always crashes when I scroll to the bottom.",
    "Why does the build always fail on CI?",
    "The tooltip must never cover the input field.",
    "The parser should always return a list, never None.",
    "Users should always see their latest order on top.",
    'Add a checkbox "Remember me" to the login form.',
    "Make the sidebar remember its width between visits.",
    "The cache must never hold more than 100 entries; evict the oldest one.",
    "Please don't commit yet, I want to look at it first.",
    "Don't change the tests for now, just get the build green.",
    "Use the second approach.",
    "no, the other button",
    "No, that's wrong, the total is off by one.",
    "Don't worry about the styling.",
    "For this PR, leave the docs alone.",
    "Can you always show the spinner while loading?",
    "What should we always check before a release?",
    "yes, go ahead",
    "Fix the failing test in tests/test_cart.py.",
    "Rename `fetchUser` to `loadUser` everywhere.",
    "Use a blue button instead of a green one.",
    "This time run only the unit tests.",
    "The API should never return more than 50 items per page. Implement it.",
    "In the future we might support Postgres, but not now.",
    "We never got around to fixing the header, can you do that?",
    "I always get a 403 when I open the admin page.",
    "Stop.",
    "stop the server and start it again",
    "The job must not run while a backup is in progress.",
    "We have a bug in the invoice export: dates are always one day off.",
    "Write a function that never throws.",
    "Add a rule to the linter that forbids default exports.",
    "Explain why we use Redux here.",
    "Erinnerst du dich an den Fehler von gestern?",
    "Warum schlägt der Build immer fehl?",
    "Der Dialog darf nie außerhalb des Fensters erscheinen.",
    "Das hat noch nie funktioniert.",
    "Diesmal bitte ohne Tests.",
    "Tu te souviens du bug d'hier ?",
    "La page plante toujours au chargement.",
    "Pour l'instant, ne touche pas aux tests.",
    "¿Recuerdas el error de ayer?",
    "La pantalla siempre parpadea al abrir el menú.",
    "Por ahora no toques los tests.",
    "README says:\n\n> Remember: never push to main.\n\nIs that still true?",
    "Explain this config:\n```\n# always use tabs, never spaces\nindent = tab\n```",
    'Traceback (most recent call last):\n  File "a.py", line 3\nValueError: you must always pass a key',
    'The reviewer wrote "never use globals here". What does he mean?',
    "/init remember everything",
]


def read_examples() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the prompts in `prompts.txt`, each with the words of its rule; without words, it states none."""
    for line in (Path(__file__).parent / "support" / "prompts.txt").read_text(encoding="utf-8").split("\n"):
        if line.startswith("+ "):
            words, _, prompt = line[2:].partition(" | ")
            yield prompt, tuple(words.split(" // "))
        elif line.startswith("- "):
            yield line[2:], ()


def said(statements: list[Utterance]) -> list[tuple[str, str]]:
    return [(statement.force, statement.words) for statement in statements]


@pytest.mark.parametrize(("prompt", "force", "words"), [rule for rule in RULES if rule[1] != SOFT])
def test_a_rule_is_found_as_firm_as_it_is_said(prompt: str, force: str, words: str) -> None:
    statements = read_prompt(prompt)
    assert [statement.force for statement in statements] == [force], said(statements)
    assert words in statements[0].words


@pytest.mark.parametrize("prompt", NONE)
def test_what_is_about_the_task_states_nothing(prompt: str) -> None:
    assert said(read_prompt(prompt)) == []


def test_most_rules_are_found_in_ordinary_talk_and_hardly_anything_else() -> None:
    examples = [*read_examples(), *((prompt, (words,)) for prompt, force, words in RULES if force == SOFT)]
    found = [(words, read_prompt(prompt)) for prompt, words in examples]
    rules = [any(word.lower() in said_in(statements) for word in words) for words, statements in found if words]
    others = [bool(statements) for words, statements in found if not words]

    assert sum(rules) / len(rules) >= 0.85
    assert sum(others) / len(others) <= 0.10


def said_in(statements: list[Utterance]) -> str:
    return " ".join(f"{statement.text} {statement.words}" for statement in statements).lower()


def test_one_prompt_may_state_several_rules_and_a_task() -> None:
    prompt = "Fix the typo in the header. Never use tabs here. And from now on run `make lint` before each commit."
    assert [(statement.text, statement.force) for statement in read_prompt(prompt)] == [
        ("Never use tabs here.", RULE),
        ("Run `make lint` before each commit.", ASKED),
    ]


def test_the_items_of_a_list_are_as_firm_as_the_line_above_it() -> None:
    prompt = "From now on:\n- use pnpm for installs\n- no default exports\n- tests live next to the code\n\nNow fix it."
    assert [(statement.text, statement.force) for statement in read_prompt(prompt)] == [
        ("Use pnpm for installs", ASKED),
        ("No default exports", ASKED),
        ("Tests live next to the code", ASKED),
    ]


def test_a_list_of_features_states_nothing() -> None:
    assert read_prompt("Please build the settings page:\n- always show the avatar\n- users can never change ids") == []


@pytest.mark.parametrize(
    ("prompt", "kept"),
    [
        (
            "Fix the header and from now on run prettier before you commit.",
            "From now on run prettier before you commit.",
        ),
        (
            "Never run apply here. It is done by Atlantis. Fix the plan.",
            "Never run apply here. It is done by Atlantis.",
        ),
        ("why did you add axios? we have ky for that", "why did you add axios? we have ky for that"),
        (
            "The sandbox key expires on Fridays. Remember that.",
            "The sandbox key expires on Fridays.",
        ),
        ("Use the `eu` profile. Always!", "Use the `eu` profile. Always!"),
    ],
)
def test_the_words_around_a_rule_are_kept_as_far_as_they_belong_to_it(prompt: str, kept: str) -> None:
    (statement,) = read_prompt(prompt)
    assert statement.words.lower() == kept.lower()


@pytest.mark.parametrize(
    "prompt",
    [
        "Remember for all my projects: answer in English.",
        "From now on use tabs, in every project, not just here.",
        "Merk dir: in allen meinen Projekten schreiben wir Tests zuerst.",
        "Dorénavant, dans tous mes projets, pas de commentaires en français.",
        "A partir de ahora usa tabuladores en todos mis proyectos.",
    ],
)
def test_what_is_said_of_all_projects_holds_everywhere(prompt: str) -> None:
    (statement,) = read_prompt(prompt)
    assert statement.everywhere
    assert not read_prompt("From now on use tabs in this project.")[0].everywhere


QUESTION = "Two ways:\n1. Redis for the queue\n2. a Postgres table\n\nWhich one should I use?"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("2, because ops can't run another service.", "A Postgres table, because ops can't run another service."),
        ("Let's go with Redis since we run it anyway", "Let's go with Redis since we run it anyway"),
        ("Postgres. We have no budget for another service.", "Postgres. We have no budget for another service."),
        ("Nimm Postgres, weil wir das schon betreiben.", "Nimm Postgres, weil wir das schon betreiben."),
        ("Prends Redis, car il est déjà là.", "Prends Redis, car il est déjà là."),
        ("usa Postgres porque ya lo tenemos", "Usa Postgres porque ya lo tenemos"),
    ],
)
def test_a_choice_with_its_reason_is_a_decision(answer: str, text: str) -> None:
    decision = read_decision(QUESTION, answer)
    assert decision is not None
    assert (decision.text, decision.force, decision.is_decision) == (text, SOFT, True)


@pytest.mark.parametrize("answer", ["yes", "2", "option 2 please", "why not both?", "", "/compact because it is long"])
def test_a_bare_choice_is_none(answer: str) -> None:
    assert read_decision(QUESTION, answer) is None
    assert read_decision("I have changed it.", "Use Redis, because we run it anyway.") is None


@pytest.mark.parametrize("prompt", [prompt for prompt, force, _ in RULES if force == ASKED])
def test_the_hook_lets_every_request_to_remember_through(prompt: str) -> None:
    assert any(word in prompt.lower() for word in hook_events._REMEMBER)


def test_any_text_is_read_in_a_short_time() -> None:
    for text in ("a", "never ", "no, ", "- never do it\n", '"never ', "when you ", ", and ", "always use x not y, "):
        read_prompt(text * (1_000_000 // len(text)))
