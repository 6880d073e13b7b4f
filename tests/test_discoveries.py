"""Raw findings and goals: whoever has one can write it, and what it teaches or wants reaches the next agent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from learnt import Memory, NotFound, WrongRequest
from learnt.mine.choices import observe_choices, observe_need
from learnt.model import Failure
from tests.support.doors import Learnt
from tests.support.shop import Shop

STATEMENT = "Run `make settings` before `make build`: the build reads what it writes"


@pytest.mark.parametrize(
    ("type", "kind", "confidence"),
    [
        ("blocker", "gotcha", 0.7),
        ("constraint", "constraint", 0.6),
        ("pattern", "best-practice", 0.5),
        ("decision", "solution", 0.5),
    ],
)
def test_what_an_agent_discovers_becomes_a_learning_with_the_confidence_and_kind_of_its_type(
    memory: Memory, type: str, kind: str, confidence: float
) -> None:
    task = memory.tasks.add("Build the shop")
    memory.speak_as_agent("engineer")
    found = memory.discover(STATEMENT, type=type, task=task.id, error="no settings.ini", files=["build.py"])
    learning = memory.get(found.learning)
    assert (learning.kind, learning.confidence, learning.vouched) == (kind, confidence, "")
    assert (learning.discovery, learning.task, learning.title) == (type, task.id, STATEMENT)
    assert [one.id for one in memory.discoveries.select(learning=learning.id)] == [found.id]


def test_a_dependency_is_kept_and_is_no_learning(memory: Memory) -> None:
    found = memory.discover("The importer needs the new schema to be merged first", type="dependency")
    assert (found.learning, found.skipped) == ("", "a dependency holds for its task only")
    assert [one.discovery.text for one in memory.discoveries.select(type="dependency")] == [found.discovery.text]


def test_what_a_person_discovers_is_vouched_for(memory: Memory) -> None:
    learning = memory.get(memory.discover(STATEMENT, type="blocker").learning)
    assert (learning.vouched, learning.confidence, learning.origin) == ("person", 0.8, "person")


def test_the_same_discovery_in_another_task_recurs(memory: Memory) -> None:
    one, two = (memory.tasks.add(title) for title in ("Build the shop", "Pack the shop"))
    memory.speak_as_agent("engineer")
    first = memory.discover(STATEMENT, type="blocker", task=one.id)
    second = memory.discover(STATEMENT.upper(), type="blocker", task=two.id)
    assert first.id != second.id
    assert second.learning == first.learning
    assert memory.get(first.learning).recurrences == 1


def test_what_no_learning_can_be_made_of_is_kept_with_the_reason(memory: Memory) -> None:
    memory.speak_as_agent("engineer")
    found = memory.discover("TODO: write the tests", type="pattern")
    assert found.learning == ""
    assert "a note to do" in found.skipped


def test_a_discovery_that_cannot_be_is_refused(memory: Memory) -> None:
    with pytest.raises(WrongRequest, match="no type"):
        memory.discover("x", type="rumour")
    with pytest.raises(WrongRequest, match="text"):
        memory.discover("  ", type="blocker")
    with pytest.raises(NotFound):
        memory.discover("x", type="blocker", task="task_none")
    silent = memory.tasks.add("Silence", skip_learnings=True)
    with pytest.raises(WrongRequest, match="no learnings"):
        memory.discover(STATEMENT, type="blocker", task=silent.id)


def test_a_discovery_from_the_command_line_names_its_learning_and_is_named_by_it(database: str, learnt: Learnt) -> None:
    learnt("init")
    secret = "ghp_" + "aB3dE6gH9j" * 3 + "kL2mN5"
    done = learnt("discover", STATEMENT, "--type", "blocker", "--error", f"no token {secret}", "--json")
    found = json.loads(done.out)
    assert secret not in done.out
    assert f"blocker  {found['id']}" in learnt("show", found["learning"]).out
    assert json.loads(learnt("show", found["learning"], "--json").out)["evidence"][0]["id"] == found["id"]
    assert f"→ {found['learning']}" in learnt("discoveries", "--type", "blocker").out
    assert "No discoveries" in learnt("discoveries", "--type", "pattern").out
    assert learnt("discover", "x", "--type", "rumour").code == 2


# What rules find in what agents say


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (
            "I decided to use SQLite instead of PostgreSQL because the tool runs without a server.",
            "Use SQLite instead of PostgreSQL because the tool runs without a server.",
        ),
        (
            "We chose `httpx` over `requests`, since the client has to be async.",
            "Use `httpx` over `requests`, since the client has to be async.",
        ),
        (
            "I went with YAML due to the comments that people write in it.",
            "Use YAML due to the comments that people write in it.",
        ),
    ],
)
def test_a_choice_with_its_reason_is_a_decision(said: str, text: str) -> None:
    (found,) = observe_choices(f"The work is done.\n\n{said}\n")
    assert (found.type, found.text) == ("decision", text)


@pytest.mark.parametrize(
    "said",
    [
        "I decided to use SQLite.",
        "> I decided to use SQLite because it is small.",
        "The README says:\n\nI decided to use SQLite because it is small.",
        "It depends on the weather.",
        "I went home because it was late.",
    ],
)
def test_a_choice_without_a_reason_or_of_somebody_else_is_none(said: str) -> None:
    assert [*observe_choices(f"The work is done.\n\n{said}\n")] == []


def test_what_work_waits_for_and_what_an_attempt_lacked_are_dependencies() -> None:
    (found,) = observe_choices("The task is blocked until the migration of the orders is merged.\n")
    assert (found.type, found.rule) == ("dependency", "need")
    lacked = observe_need(Failure(attempt="attempt_1", task="task_1", error="sh: 1: jq: not found"))
    assert lacked is not None
    assert (lacked.type, lacked.text) == ("dependency", "The task needs `jq`")
    assert observe_need(Failure(attempt="attempt_1", task="task_1", error="assert 3 == 4")) is None


def test_rules_yield_every_kind_of_discovery_from_the_work_on_a_task(shop: Shop) -> None:
    shop.agent(
        "if 'Attempt 2' not in prompt:\n    print('<task-done>tried</task-done>'); sys.exit()\n"
        "if 'Attempt 3' not in prompt:\n"
        "    report = 'what_tried: a filter\\nwhy_failed: no filter\\nstack_trace: jq: command not found'\n"
        "    print(f'<failure-report>\\n{report}\\n</failure-report><task-failed/>'); sys.exit()\n"
        "print('Always run `make gen` before `make test`, because the tests read what it generates.\\n')\n"
        "print('I decided to use SQLite instead of PostgreSQL because the shop has no server.\\n')\n"
        "print('`make gen` overwrites every file in `gen/`, so edits there are lost without a warning.\\n')\n"
        "open('fixed', 'w').close()\n"
        "print('<task-done>Renamed `price` in orders.py to `price_cents`, as the check demands.</task-done>')",
        verify="test -e fixed || { echo 'orders.py:3: price must end in _cents'; exit 1; }",
    )
    shop.add("Rename the prices")
    shop.work()
    shop.learnt("update")
    found = {one["type"] for one in json.loads(shop.learnt("discoveries", "--json").out)}
    assert found == {"blocker", "constraint", "pattern", "decision", "dependency"}


# Goals


@pytest.fixture
def shop(project: Path, learnt: Learnt) -> Shop:
    return Shop(project, learnt)


def test_a_goal_has_a_title_and_a_text_and_is_shown_with_its_tasks(database: str, learnt: Learnt) -> None:
    learnt("init")
    task = json.loads(learnt("task", "add", "Add password reset", "--goal", "accounts", "--json").out)["id"]
    added = learnt("goal", "add", "accounts", "--title", "Customers manage their accounts", "--text", "No mails.")
    assert "Customers manage their accounts" in added.out, "a goal that tasks only name can be told later"
    assert learnt("goal", "add", "accounts").code == 2
    assert learnt("goal", "edit", "accounts", "--text", "Without asking us.").code == 0
    (listed,) = json.loads(learnt("goal", "list", "--json").out)
    assert (listed["id"], listed["title"], listed["text"]) == (
        "accounts",
        "Customers manage their accounts",
        "Without asking us.",
    )
    assert listed["tasks"] == {"ready": 1}
    shown = learnt("goal", "show", "accounts").out
    assert all(text in shown for text in ("Customers manage", "Without asking us.", task, "1 ready"))
    assert "goal: accounts: Customers manage their accounts" in learnt("task", "show", task).out
    assert learnt("goal", "show", "none").code == 2


def test_what_a_goal_wants_finds_learnings_and_stands_in_prompts(shop: Shop) -> None:
    shop.agent("print('<task-done/>')")
    learning = shop.learn("Send every mail through the outbox table")
    shop.learnt(
        "goal", "add", "accounts", "--title", "Accounts", "--text", "Customers get a mail from the outbox table."
    )
    task = shop.add("Add password reset", "--goal", "accounts")
    prompt = shop.learnt("task", "prompt", task).out
    assert "Customers get a mail from the outbox table." in prompt
    assert learning["id"] in prompt, "its text is searched for"


def test_what_a_goal_wants_is_told_to_the_model_that_extracts(memory: Memory) -> None:
    from learnt.mine.ask import TEMPLATES, make_request
    from learnt.system.templates import read_template

    memory.goals.add("accounts", title="Accounts", text="Customers never wait.")
    how = {"task_title": "t", "task_text": "", "task_type": "implement", "result": "done", "material": "x"}
    template = read_template("extract", (TEMPLATES,), own="")
    goal = memory.goals.describe("accounts")
    _, prompt, _ = make_request(**how, goal=goal, findings=[], nearest=[], template=template)
    assert "Customers never wait." in prompt
