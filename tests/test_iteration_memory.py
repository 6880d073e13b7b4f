"""The requirements on a loop's memory, each by its id in a test that asserts it, or in a list with why it differs.

`S5-…` are what the specification of iteration memory asks for, `R5-…` the values for what it leaves open, `S4-…` what
the specification of persistent learnings asks of a worker: what it teaches, and what it is given for a task.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from learnt.debrief.sigils import read_sigils
from learnt.errors import NewerDatabase
from learnt.model import FAILURE_CATEGORIES, Attempt
from learnt.store import tasks
from learnt.text.words import estimate_tokens
from tests.conftest import Clock
from tests.support.doors import Learnt
from tests.support.former import write_as_before
from tests.support.shop import Shop
from tests.support.words import tells

DOCS = Path(__file__).parent.parent / "docs"
DIFFERENT = {
    "S4-42": "a person writes it with `add`, `discover`, learnings.md or MCP: there is no page for it",
    "S4-83": "`brief --task` gives a task its learnings by hand: there is no page for it",
    "S4-86": "who vouches decides, not the confidence that an author can choose; relevance is a probability",
    "S4-88": "what a goal's tasks taught helps its other tasks; `exclude_goal` leaves it out",
    "S4-98": "they follow the task and how it is judged, between tags instead of rules: a task is read first",
    "S4-99": "a task without a goal gets learnings, too",
    "S5-19": "the section is called `Relevant Learnings (from past work)`: learnings also come from people and commits",
    "S5-22": "words and meaning, offline and without a model: keywords alone miss what users put in other words",
    "S5-23": "an index scores in SQL, and calibrated relevance decides: overlapping tags alone are mostly noise",
    "S5-27": "figures are one row per attempt, and queries over it: two tables would disagree after a crash",
    "S5-41": "two verbs, `brief` and `debrief`, do what the six functions do, in one transaction each",
    "S5-42": "brief/attempts.py, flow/past_attempts.py and store/tasks.py; the layout named is another code base's",
    "S5-43": "debrief/sigils.py, flow/folding.py and recall/: the same",
    "S5-44": "strategy/figures.py and store/tasks.py: the same",
    "S5-45": "brief/render.py: the same",
    "S5-46": "a numbered migration (3) added the tables: there was no version 1 to start from",
    "S5-57": "see S5-27: no table of its own for the strategy",
    "S5-81": "a rollout plan for another project; all four phases are built",
    "S5-82": "the same",
    "S5-83": "the same",
    "S5-84": "the same",
    "S5-85": "the same",
    "R5-03": "ids are `learn_…`; status and events say what `pruned_at` would; a learning outlives its task",
    "R5-04": "queries over attempts, see S5-27; `stuck` is derived, so it cannot be stale",
    "R5-07": "the five kinds of attributes are optional: agents leave them out, and a title is enough",
    "R5-11": "a budget in tokens (1,000), shared 60/30/10, unused shares passed on: characters differ by language",
    "R5-13": "at most five, each once, but by calibrated relevance: overlapping tags alone are mostly noise",
    "R5-17": "the model is chosen for the task right before the claim, because the claim reserves its price",
    "R5-18": "a person decides on merging: without that, a bad merge would silently hide good learnings",
    "R5-19": "reports are put away after a week, but figures stay, because models are chosen by them",
    "R5-20": "what holds in all projects has a store of the user's; what is a project's stays in the project",
}
_asserted: dict[str, str] = {}


def asserts(*ids: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Say which requirements a test asserts."""

    def note(test: Callable[..., None]) -> Callable[..., None]:
        _asserted.update(dict.fromkeys(ids, test.__name__))
        return test

    return note


@pytest.fixture
def memory(sqlite_memory: Memory) -> Memory:
    return sqlite_memory


@pytest.fixture
def shop(project: Path, learnt: Learnt) -> Shop:
    return Shop(project, learnt)


REPORT = """<failure-report>
what_tried: patched the lexer
why_failed: the lexer is generated
error_category: build_error
relevant_files: lexer.py, grammar.txt
colour: green
stack_trace: GenError: edited by hand
</failure-report>
<retry-suggestion>Change the grammar. Then generate.</retry-suggestion>"""

# What failed


@asserts("S5-02", "S5-04", "S5-05", "S5-06", "S5-47", "S5-48", "S5-59", "S5-62", "R5-06", "R5-09", "S5-55")
def test_a_failed_attempt_leaves_its_report(memory: Memory) -> None:
    failure = memory.debrief("task_1", f"{REPORT}<task-failed/>", duration_ms=5, cost_usd=0.1).failure
    assert failure is not None
    assert (failure.tried, failure.reason, failure.category) == ("patched the lexer", "the lexer is generated", "build")
    assert (failure.files, failure.error) == (("lexer.py", "grammar.txt"), "GenError: edited by hand")
    assert failure.suggestion == "Change the grammar. Then generate."
    assert memory.tasks.failures("task_1")[failure.attempt] == failure.replace(created_at=failure.created_at)
    for name in ("test_failure", "build_error", "missing_file", "logic_error", "type_error", "dependency_error"):
        sigils = read_sigils(
            f"<failure-report>\nwhat_tried: x\nwhy_failed: y\nerror_category: {name}\n</failure-report>"
        )
        assert sigils.failure is not None
        assert sigils.failure.category in FAILURE_CATEGORIES
        assert sigils.failure.category != "unknown"


@asserts("S5-03", "S5-07", "R5-10")
def test_an_attempt_without_a_sigil_is_incomplete_and_leaves_the_end_of_its_output(memory: Memory) -> None:
    read = memory.debrief("task_1", "word " * 400)
    assert (read.result, read.failure is not None) == ("incomplete", True)
    assert read.failure is not None
    assert (read.failure.tried, read.failure.category) == ("", "unknown")
    assert "without a report" in read.failure.reason
    assert 0 < len(read.failure.error) <= 500


@asserts("S5-63", "R5-05", "S5-61")
def test_sigils_are_optional_and_what_cannot_be_read_is_ignored() -> None:
    assert read_sigils("I did it.").ignored == ()
    broken = read_sigils(
        "<failure-report>\nwhat_tried: x\n</failure-report>\n<difficulty-estimate>so so</difficulty-estimate>\n"
        "<difficulty-estimate> Hard </difficulty-estimate>\n<difficulty-estimate>easy</difficulty-estimate>\n"
    )
    assert (broken.failure, broken.difficulty) == (None, "hard")
    assert len(broken.ignored) == 3
    for word in ("trivial", "easy", "moderate", "hard", "blocked"):
        assert read_sigils(f"<difficulty-estimate>{word}</difficulty-estimate>").difficulty == word


@asserts("S5-09", "S5-10", "S5-11", "S5-38", "S5-64", "S5-76")
def test_a_retry_is_told_of_all_earlier_attempts_beside_its_learnings(memory: Memory) -> None:
    memory.add("Change the grammar, not the lexer", action="make gen")
    for number in range(2):
        memory.debrief("task_1", REPORT.replace("lexer\n", f"lexer, way {number}{number}\n"), result="failed")
    text = memory.brief("mend the lexer", task="task_1").text
    attempts, learnings = text.split("## Relevant Learnings")
    assert "## Previous Attempts" in attempts
    assert attempts.index("way 11") < attempts.index("way 00")
    assert all(field in attempts for field in ("Tried:", "Failed because:", "Suggestion:"))
    assert "Change the grammar, not the lexer" in learnings
    assert "Previous Attempts" not in memory.brief("mend the lexer", task="task_2").text


@asserts("R5-12")
def test_what_does_not_fit_is_shortened_by_item_and_the_latest_suggestion_stays(memory: Memory) -> None:
    for number in range(6):
        memory.debrief("task_1", REPORT.replace("patched", f"w{number} " * 200).replace("Change", f"hint{number}"))
    learning = memory.add("Mend the lexer with `make gen`", observation="Long. " * 300)
    brief = memory.brief("mend the lexer", task="task_1", budget_tokens=400)
    assert "hint5" in brief.text
    assert "hint0" not in brief.text
    assert brief.text.count("Long. ") in (0, 300)
    assert learning.id in brief.learning_ids


# What was learnt


@asserts("S5-12", "S5-13", "S5-14", "S5-15", "S5-16", "S5-17", "S5-60", "S5-56", "S5-69")
def test_learnings_are_captured_from_success_and_failure_with_tags_and_their_task(memory: Memory, clock: Clock) -> None:
    one, two = (memory.tasks.add(title) for title in ("Mend store.py, which pytest rejects", "Package the shop"))
    first = "<learning category='pitfall' tags='locking'>Close the cursor before `commit()`.</learning>"
    second = "<learning category='tool_usage' tags='make'>Run `make gen` before `make package`.</learning>"
    failed = memory.debrief(one.id, f"{first}\n{second}\n<task-failed/>")
    done = memory.debrief(two.id, "<learning>Sign the package with `gpg --detach-sign`.</learning>\n<task-done/>")
    assert (len(failed.learnings), len(done.learnings)) == (2, 1)
    learning = memory.get(failed.learnings[0])
    assert (learning.task, learning.created_at > 0) == (one.id, True)
    assert "locking" in learning.tags
    assert {"store.py", "pytest"} & set(learning.tags), "from the words of the task"
    assert memory.get(failed.learnings[1]).task == one.id


@asserts("S5-18", "S5-20", "S5-21", "S5-65")
def test_a_few_relevant_learnings_are_given_within_a_budget_each_once(memory: Memory) -> None:
    parent = memory.tasks.add("Store", text="The replica lags behind while the schema is cached.")
    for number in range(9):
        memory.add(f"Cache the schema of replica {number}")
    same = [memory.add("Read the schema once, then cache it.") for _ in range(2)]
    ids = memory.brief("cache the schema", budget_tokens=1_000).learning_ids
    assert 0 < len(ids) <= 5
    assert not set(ids) >= {learning.id for learning in same}
    (part,) = memory.tasks.split(parent.id, ["Part one"])
    assert memory.brief("", task=part.id).learning_ids != (), "by the text of its parent"
    assert estimate_tokens(memory.brief("cache the schema", budget_tokens=200).text) <= 200


@asserts("S5-74", "S5-75", "S5-71")
def test_learnings_outlive_a_run_fade_unused_and_give_way_to_better_ones(project: Path, clock: Clock) -> None:
    with Memory.open(project, clock=clock) as memory:
        old = memory.get(memory.debrief("task_1", "<learning>Cache the schema of the replica.</learning>").learnings[0])
    with Memory.open(project, clock=clock) as memory:
        assert memory.get(old.id).title == old.title
        clock.advance(days=40)
        memory.tidy()
        assert memory.get(old.id).confidence < old.confidence
        new = memory.add("Cache the schema of the replica in memory")
        memory.supersede(old.id, new.id)
        assert old.id not in memory.brief("cache the schema of the replica").learning_ids


@asserts("S5-70")
def test_many_learnings_are_merged_by_a_proposal(memory: Memory) -> None:
    memory.add_all([{"title": f"Fact {n}", "tags": [f"tag{n}"]} for n in range(memory.settings.summarise_above)])
    memory.add_all(
        [{"title": f"Cargo needs flag {n}", "tags": ["cargo", "build"], "category": "tools"} for n in range(4)]
    )
    (proposed,) = memory.tidy().proposed
    assert memory.get(proposed).status == "proposed"


@asserts("S5-72", "S5-73")
def test_reports_are_put_away_a_week_after_success_and_figures_stay(memory: Memory, clock: Clock) -> None:
    memory.debrief("task_1", REPORT, result="failed", model="haiku", cost_usd=0.1)
    memory.debrief("task_1", "mended", result="done", model="opus", cost_usd=1.0)
    clock.advance(days=8)
    assert memory.tidy().failures_archived == 1
    assert "lexer" not in memory.brief("again", task="task_1").text
    figures = {figure.model: figure for figure in memory.work.model_overview().figures}
    assert (figures["haiku"].share.attempts, figures["opus"].mean_cost_usd) == (1, 1.0)


# Which model, and when it is stuck


@pytest.fixture
def models(project: Path) -> None:
    (project / "learnt.toml").write_text('models = [{name = "haiku"}, {name = "sonnet"}, {name = "opus"}]\n')


@asserts("S5-25", "S5-26", "S5-54", "R5-01", "S5-24", "S5-51")
def test_an_attempt_is_one_row_of_figures_from_which_models_are_chosen(models: None, memory: Memory) -> None:
    said = "<difficulty-estimate>hard</difficulty-estimate><task-done/>"
    how: dict[str, Any] = {"model": "sonnet", "duration_ms": 7, "cost_usd": 0.5, "tokens_in": 3, "tokens_out": 2}
    memory.debrief("task_1", said, **how)
    memory.debrief("task_1", "no word")
    second, first = memory.tasks.attempts("task_1")
    assert first == Attempt(
        id=first.id, task="task_1", number=1, result="done", difficulty="hard", started_at=first.started_at, **how
    )
    assert (second.number, second.result, second.tokens_in) == (2, "incomplete", None)
    task = memory.tasks.add("Mend the lexer")
    assert "sonnet" in memory.work.choose_model(task).reason, "by the record, not by words in a log"


@asserts("S5-28", "S5-29", "S5-30", "S5-31", "S5-37", "S5-77", "R5-15")
@pytest.mark.parametrize(
    ("strategy", "expected"),
    [("cost-optimized", ["sonnet", "sonnet", "opus"]), ("escalate", ["haiku", "sonnet", "opus"])],
)
def test_failures_bring_a_stronger_model_and_success_a_cheaper_one(
    project: Path, strategy: str, expected: list[str]
) -> None:
    models = 'models = [{name = "haiku"}, {name = "sonnet"}, {name = "opus"}]\n'
    (project / "learnt.toml").write_text(f'strategy = "{strategy}"\n{models}')
    with Memory.open(project) as memory:
        task = memory.tasks.add("Mend the lexer")
        chosen = [memory.work.choose_model(task).model]
        for _ in range(2):
            memory.debrief(task.id, "no word", model=chosen[-1])
            chosen.append(memory.work.choose_model(task).model)
        assert chosen == expected
        for number in range(30):
            said = "no word" if number < 10 else "<task-done/>"  # only the last twenty count
            memory.debrief(f"task_{number}", said, model="haiku")
        other = memory.tasks.add("Package the shop")
        assert memory.work.choose_model(other).model == "haiku"
        memory.debrief(other.id, "<next-model>opus</next-model>", model="haiku")
        choice = memory.work.choose_model(memory.tasks.get(other.id))
        assert (choice.model, choice.reason) == ("opus", "the agent asked for opus")


@asserts("S5-40", "R5-08")
def test_how_hard_tasks_were_counts_for_the_next_choice(project: Path) -> None:
    prices = (("haiku", 0.1), ("sonnet", 0.2), ("opus", 1))
    names = ", ".join(f'{{name = "{name}", price = {price}}}' for name, price in prices)
    (project / "learnt.toml").write_text(f"models = [{names}]\n")
    with Memory.open(project) as memory:
        _check_hard(memory)


def _check_hard(memory: Memory) -> None:
    easy, hard = (f"<difficulty-estimate>{word}</difficulty-estimate>" for word in ("easy", "hard"))
    for number in range(40):
        memory.debrief(f"task_easy{number}", easy, model="haiku", cost_usd=0.1)
        memory.debrief(f"task_easy{number}", f"{easy}<task-done/>", model="sonnet", cost_usd=0.2)
        memory.debrief(f"task_hard{number}", hard, model="haiku", cost_usd=0.1)
        memory.debrief(f"task_hard{number}", hard, model="sonnet", cost_usd=0.2)
        memory.debrief(f"task_hard{number}", f"{hard}<task-done/>", model="opus", cost_usd=1)
    task = memory.tasks.add("Mend the lexer")
    memory.debrief(task.id, easy, model="haiku")
    assert memory.work.choose_model(task).model == "sonnet", "enough for what is easy"
    memory.debrief(task.id, hard, model="haiku")
    assert memory.work.choose_model(task).model == "opus", "by the latest estimate"


@asserts("S5-32", "S5-33", "S5-34", "S5-78", "S5-79", "R5-16", "R5-22")
def test_three_failures_warn_and_the_fourth_asks_a_person(project: Path) -> None:
    with Memory.open(project) as memory:
        task = memory.tasks.add("Mend the lexer")
        for number in range(4):
            assert ("Stuck Loop Warning" in memory.brief("", task=task.id).text) == (number == 3)
            claim = memory.work.claim(worker="w", host="here", pid=1)
            memory.debrief(task.id, f"way {number}", claim=claim, model=f"model {number}")  # type: ignore[arg-type]
        assert memory.tasks.get(task.id).status == "escalated"
        (asked,) = memory.tasks.escalations()
        assert (asked.subject, asked.status) == (task.id, "open")
        assert tells(asked.question, "failed again after it was stuck")
        memory.debrief("task_2", "no", result="failed")
        memory.debrief("task_2", "no", result="failed")
        memory.debrief("task_2", "yes", result="done")
        memory.debrief("task_2", "no", result="failed")
        assert memory.tasks.stuck(memory.tasks.get("task_2")) is None, "cleared by success"
    (project / "learnt.toml").write_text("stuck_after = 1\n")
    with Memory.open(project) as memory:
        assert "Stuck Loop Warning" in memory.brief("again", task="task_2").text
        warning = memory.brief("again", task="task_2").text
        assert tells(warning, "another one", "smaller ones")


@asserts("S5-35", "S5-39", "S5-66", "R5-14")
def test_the_loop_status_tells_attempts_rates_and_why_this_model(memory: Memory, clock: Clock) -> None:
    memory.debrief("task_old", "<task-done/>")
    clock.advance(days=0.02)
    memory.debrief("task_1", "no word")
    clock.advance(days=0.07)
    memory.debrief("task_2", "<task-done/>")
    status = memory.brief("again", task="task_1", model="opus", model_reason="one step up").text.split(
        "## Loop Status"
    )[1]
    assert tells(status, "Attempt 2", "1 in a row")
    assert "of the last 2 attempts at any task 1 succeeded" in status, "those of the last two hours"
    assert "Model: opus (one step up)" in status


# Where it is kept


@asserts("S5-01", "S5-36", "S5-53", "S5-58", "R5-02", "S5-52")
def test_all_of_it_is_in_one_file_without_any_setting_and_belongs_together(project: Path) -> None:
    with Memory.open(project) as memory:
        memory.debrief("task_1", f"{REPORT}<learning>Run `make gen` before `make test`.</learning>", result="failed")
        database = memory.context.store.database
        assert memory.database_path.endswith("learnt.db")
        counts = {name: database.value(f"select count(*) from {name}") for name in ("attempt", "failure", "learning")}
        assert counts == {"attempt": 1, "failure": 1, "learning": 1}, "each for itself"
        keys = database.rows("""select "table", on_delete from pragma_foreign_key_list('failure')""")
        assert {(row["table"], row["on_delete"]) for row in keys} == {("attempt", "CASCADE")}
        indexes = {row["name"] for row in database.rows("select name from sqlite_master where type = 'index'")}
        assert {"attempt_by_time", "attempt_by_model", "failure_by_task", "failure_by_category"} <= indexes
    diagram = (DOCS / "schema.md").read_text(encoding="utf-8")
    assert "attempt ||--o{ failure : attempt" in diagram
    assert "task ||--o{ attempt : task" in diagram


@asserts("S5-86", "R5-21")
def test_an_older_store_is_migrated_and_a_newer_one_refused(project: Path) -> None:
    with Memory.open(project) as memory:
        memory.debrief("task_1", REPORT, result="failed")
    write_as_before(project / ".learnt" / "learnt.db", schema=3)
    with Memory.open(project) as memory:
        assert [failure.tried for failure in memory.tasks.failures("task_1").values()] == ["patched the lexer"]
        assert "patched the lexer" in memory.brief("mend it", task="task_1").text
        with memory.context.store.transaction():
            memory.context.store.database.execute(
                "insert into migration (number, name, learnt, applied_at) values (9999, 'later', '9.9', 1)"
            )
    with pytest.raises(NewerDatabase) as error, Memory.open(project) as memory:
        memory.tasks.attempts("task_1")
    assert "upgrade" in (error.value.hint or "")


# What an agent reads


@asserts("S5-08", "S5-49", "S5-50", "S5-68", "S5-80")
def test_a_prompt_holds_it_all_in_its_order_and_the_documentation_shows_one(shop: Shop) -> None:
    page = (DOCS / "loop.md").read_text(encoding="utf-8")  # tests/test_prompt.py: an agent gets that prompt
    order = (
        "# Task: ",
        "## Completed prerequisites",
        "## Previous Attempts",
        "## Relevant Learnings",
        "## Loop Status",
        "## What is asked for",
        "<failure-report>",
        "<learning category=",
        "<difficulty-estimate>",
    )
    places = [page.index(text) for text in order]
    assert places == sorted(places)
    assert "stateDiagram-v2" in page
    assert all(state in page for state in ("first -->", "second -->", "third -->", "warned -->", "escalated -->"))
    shop.agent("print('<task-failed>no</task-failed>')")
    first = shop.add("Mend the lexer")
    prompt = shop.learnt("task", "prompt", first).out
    assert "Previous Attempts" not in prompt
    shop.work("--max-iterations", "1", code=1)
    assert "Previous Attempts" in shop.learnt("task", "prompt", first).out


@asserts("S5-67")
def test_attempts_come_first_in_a_budget_that_they_share_with_learnings(memory: Memory) -> None:
    for number in range(8):
        memory.debrief("task_1", REPORT.replace("patched", f"w{number} " * 200), result="failed")
        memory.add(f"Mend the lexer of part {number} with `make gen`", observation="Why it is so. " * 60)
    brief = memory.brief("mend the lexer with make gen", task="task_1")
    warning, _, shared = brief.text.partition("## Previous Attempts")
    assert "Stuck Loop Warning" in warning
    assert estimate_tokens(shared) <= 1_000
    attempts, learnings = shared.split("## Relevant Learnings")
    assert estimate_tokens(attempts) > estimate_tokens(learnings) > 100
    assert brief.learning_ids


# What a worker teaches, and what it is given


REVIEW = "- Major: `{0}` swallows the database error without logging it. Log it first."


@asserts("S4-41", "S4-43")
def test_what_workers_find_out_and_what_reviews_reject_again_becomes_learnings(shop: Shop) -> None:
    chose = "I decided to use SQLite instead of PostgreSQL because the shop has no server."
    said = f"{{'Store': {chose!r}, 'Cart': {REVIEW.format('cart.py')!r}, 'Stock': {REVIEW.format('stock.py')!r}}}"
    shop.agent(f"print({said}[prompt.split()[2].strip(',')])\nprint('\\n<task-done/>')")
    store = shop.add("Store the orders")
    for title in ("Cart, a review", "Stock, a review"):
        shop.add(title, "--type", "review")
    shop.work("--all")
    shop.learnt("update")
    found = json.loads(shop.learnt("discoveries", "--json").out)
    (decision,) = [one for one in found if one["type"] == "decision"]
    assert (decision["task"], decision["learning"] != "") == (store, True)
    assert any("2 reviews rejected it" in one["text"] and one["learning"] for one in found if one["type"] == "pattern")


@asserts("S4-82", "S4-85", "S4-87", "S4-89", "S4-97")
def test_a_worker_is_given_what_its_title_and_text_need_and_what_is_active(shop: Shop) -> None:
    shop.agent("open('asked', 'w').write(prompt)\nprint('<task-done/>')")
    fields = {"--context": "a replica", "--observation": "it lags", "--implication": "old prices", "--action": "cache"}
    for number in range(7):
        shop.learnt("add", f"Cache the schema of replica {number}", *(word for pair in fields.items() for word in pair))
    archived = shop.learnings()[0]["id"]
    shop.learnt("archive", archived)
    other = shop.learn("Count the till with the drawer closed")["id"]
    shop.add("Be quick", "--text", "Cache the schema of a replica, and count the till with the drawer closed.")
    shop.work()
    brief = (shop.folder / "asked").read_text().split("## Relevant Learnings")[1]
    given = re.findall(r"^_ID: (\w+) \|", brief, re.MULTILINE)
    assert len(given) == 5
    assert other in given
    assert archived not in given
    blocks = [f"**{name.strip('-').capitalize()}**: {text}\n" for name, text in fields.items()]
    assert "".join(blocks) in brief


@asserts("S4-84", "S4-91", "S4-92", "S4-93", "S4-94", "S4-95", "S4-96")
def test_what_is_given_for_a_task_is_recorded_counted_and_marked(memory: Memory) -> None:
    one, two = memory.add("Cache the schema of the replica"), memory.add("Count the till with the drawer closed")
    text = "Cache the schema of the replica, then count the till with the drawer closed"
    task = memory.tasks.add("Be quick", text=text, goal="prices")
    brief = memory.brief(f"{task.title}\n{task.text}", task=task.id, goal="prices")
    assert set(brief.learning_ids) == {one.id, two.id}
    assert {(given.learning, given.task) for given in brief.injections} == {(one.id, task.id), (two.id, task.id)}
    given = memory.get(one.id)
    assert (given.times_injected, given.last_injected_at) == (1, brief.injections[0].injected_at)
    assert "## Relevant Learnings (from past work)" in brief.text
    assert tells(brief.text, "LEARNING_HELPFUL: <id>", "LEARNING_NOT_HELPFUL: <id>")
    memory.debrief(task.id, f"LEARNING_HELPFUL: {one.id}\n<task-done/>")
    again = memory.brief(text, task="task_2").text
    assert re.search(rf"{one.title} \[confidence: 0\.\d\d, helpful 1×", again)
    assert re.search(rf"{two.title} \[confidence: 0\.\d\d, shown 1×", again)


@asserts("S4-90")
def test_without_a_hit_nothing_is_given_and_nothing_recorded(memory: Memory) -> None:
    learning = memory.add("Cache the schema of the replica")
    brief = memory.brief("paint the fence", task="task_1")
    assert (brief.text, brief.learning_ids, brief.injections) == ("", (), ())
    assert memory.get(learning.id).times_injected == 0


def test_every_requirement_is_asserted_or_differs_on_purpose() -> None:
    every = {f"S5-{number:02d}" for number in range(1, 87)} | {f"R5-{number:02d}" for number in range(1, 23)}
    every |= {f"S4-{number}" for number in (*range(41, 44), *range(82, 100))}
    assert every - _asserted.keys() - DIFFERENT.keys() == set()
    assert _asserted.keys() & DIFFERENT.keys() == set(), "one or the other"
    assert all(re.fullmatch(r"S4-\d\d|[SR]5-\d\d", id) for id in (*_asserted, *DIFFERENT))


def test_the_tasks_module_is_the_only_writer_of_attempts() -> None:
    assert tasks.add_attempt.__module__ == "learnt.store.tasks"
