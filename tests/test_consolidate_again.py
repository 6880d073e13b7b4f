"""Consolidating again: what became of earlier entries and questions, and what briefs of the past would miss."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from learnt.errors import TryAgain, WrongRequest
from learnt.model import Brief, Learning
from learnt.store import consolidations
from learnt.system.journal import Content, Journal
from tests.conftest import Clock
from tests.support.aged import PLAIN, TOPICS, Aged, kill_after, verdicts
from tests.support.doors import Learnt
from tests.support.hooks import Client
from tests.support.repository import STAGING, Repository

NAMES = [f"{word}{letter}" for word in ("lint", "seed", "gen", "sync") for letter in "abcdef"]
REDIS = "Start Redis before the queue tests"


def moved(aged: Aged) -> Learning:
    """Return a learning that was consolidated."""
    aged.hand_over(PLAIN)
    aged.work(8)
    aged.consolidate()
    return next(learning for learning in aged.memory.learnings().learnings if learning.title == REDIS)


def put_back(aged: Aged, learning: Learning, title: str) -> None:
    aged.repository.append(f'\n## {title}\n<!-- learnt: {{"id": "{learning.id}"}} -->\n')
    aged.work(9)


# Entries that stand in a topic file.


def test_an_entry_that_is_put_back_with_an_edit_is_written_anew_in_its_place(aged: Aged) -> None:
    learning = moved(aged)
    put_back(aged, learning, "Start Valkey before the queue tests")
    report = aged.consolidate()
    assert [entry.verdict for entry in report.plan.entries] == ["dropped", "revised"]
    assert aged.memory.get(learning.id).title == "Start Valkey before the queue tests"
    assert REDIS not in aged.documents()
    assert aged.documents().count(f"## Start Valkey before the queue tests\n<!-- {learning.id} -->") == 1
    assert "Valkey" not in aged.repository.read()
    assert "- Start Valkey before" in aged.repository.read(f"{TOPICS}/memory-index.md")
    aged.memory.consolidations.undo()
    assert REDIS in aged.documents()
    assert "Valkey" in aged.repository.read()


def test_an_entry_that_is_put_back_as_it_was_only_leaves(aged: Aged) -> None:
    learning = moved(aged)
    before = aged.documents()
    put_back(aged, learning, REDIS)
    assert verdicts(aged.consolidate()) == {REDIS: "dropped"}
    assert aged.documents() == before


@pytest.mark.parametrize(("keep", "title"), [("new", "Start Valkey before the queue tests"), ("old", REDIS)])
def test_an_entry_that_was_edited_in_both_files_is_a_persons_choice(aged: Aged, keep: str, title: str) -> None:
    learning = moved(aged)
    path = aged.memory.get(learning.id).topic_file
    aged.repository.write(aged.repository.read(path).replace(REDIS, f"{REDIS}, and stop it afterwards"), path)
    put_back(aged, learning, "Start Valkey before the queue tests")
    assert [entry.verdict for entry in aged.consolidate().plan.entries] == ["escalated"]
    assert aged.consolidate().plan.of("dropped") == []
    (question,) = aged.memory.decisions.pending()
    aged.memory.decisions.resolve(question.id, keep=keep)
    aged.consolidate()
    assert aged.memory.get(learning.id).status == "active"
    assert title in aged.documents()
    assert (f"{REDIS}, and stop it afterwards" in aged.documents()) == (keep == "old")
    assert "Valkey" not in aged.repository.read()


def test_what_was_edited_in_the_store_is_written_anew_and_the_rest_of_the_file_stays(aged: Aged) -> None:
    learning = moved(aged)
    path = aged.memory.get(learning.id).topic_file
    aged.repository.append("\nA remark of mine.\n", path)
    before = aged.repository.read(path)
    aged.memory.edit(learning.id, action="Run `make redis`.")
    report = aged.consolidate()
    assert [entry.verdict for entry in report.plan.entries] == ["revised"]
    added = f"## {REDIS}\n<!-- {learning.id} -->\n\n**Action**: Run `make redis`.\n"
    assert aged.repository.read(path) == before.replace(f"## {REDIS}\n<!-- {learning.id} -->\n", added)
    assert not aged.consolidate().is_applied


def test_an_answer_says_what_the_next_consolidation_does(aged: Aged) -> None:
    older = moved(aged)
    (rejected,) = aged.memory.handoff("- Never start Redis before the queue tests\n").rejected
    answered = aged.memory.decisions.resolve(rejected.escalation, keep="new")
    told = f"takes what does not hold any more out of {aged.memory.get(older.id).topic_file}"
    assert told in aged.memory.decisions.describe_next(answered)


def test_the_new_side_that_a_person_takes_stands_in_place_of_the_old_one(aged: Aged) -> None:
    older = moved(aged)
    (rejected,) = aged.memory.handoff("- Never start Redis before the queue tests\n").rejected
    aged.memory.decisions.resolve(rejected.escalation, keep="new")
    report = aged.consolidate()
    assert [(entry.verdict, entry.id, entry.other) for entry in report.plan.entries] == [
        ("revised", rejected.id, older.id)
    ]
    assert f"## Never start Redis before the queue tests\n<!-- {rejected.id} -->" in aged.documents()
    assert older.id not in aged.documents()
    assert aged.memory.get(rejected.id).topic_file == report.plan.entries[0].target
    assert aged.memory.get(older.id).topic_file == ""
    assert not aged.memory.topics.check_index().faults


def test_a_staged_entry_that_a_person_takes_moves_and_the_old_one_leaves_the_file(aged: Aged) -> None:
    older = moved(aged)
    aged.repository.append("\n## Never start Redis before the queue tests\n")
    aged.work(9)
    assert verdicts(aged.consolidate()) == {"Never start Redis before the queue tests": "escalated"}
    (question,) = aged.memory.decisions.pending()
    aged.memory.decisions.resolve(question.id, keep="new")
    report = aged.consolidate()
    assert sorted(entry.verdict for entry in report.plan.entries) == ["moved", "removed"]
    assert "Never start Redis before the queue tests" in aged.documents()
    assert older.id not in aged.documents()
    assert not aged.consolidate().is_applied


def test_what_a_person_retires_leaves_the_file_unless_somebody_has_edited_it_there(aged: Aged) -> None:
    learning = moved(aged)
    path = aged.memory.get(learning.id).topic_file
    text = aged.repository.read(path)
    aged.repository.write(text.replace("Use port 8080", "Use port 8080 or 8081"), path)
    port = next(one for one in aged.memory.learnings().learnings if "8080" in one.title)
    for id in (learning.id, port.id):
        aged.memory.archive(id)
    report = aged.consolidate()
    assert verdicts(report) == {REDIS: "removed"}
    assert REDIS not in aged.documents()
    assert "Use port 8080 or 8081" in aged.documents()
    assert any("take it out yourself" in remark for remark in report.remarks)
    assert aged.documents().count("\n\n\n") == 0


# Questions.


def test_both_hold_with_a_scope_is_not_asked_again(aged: Aged) -> None:
    older = moved(aged)
    aged.repository.append("\n## Never start Redis before the queue tests\n")
    aged.work(9)
    aged.consolidate()
    (question,) = aged.memory.decisions.pending()
    aged.memory.decisions.resolve(question.id, keep="both", scope="on the build server")
    assert [entry.verdict for entry in aged.consolidate().plan.entries] == ["moved"]
    assert aged.memory.decisions.pending() == []
    assert "**Context**: on the build server" in aged.documents()
    assert older.id in aged.documents()
    assert not aged.consolidate().is_applied


def test_a_question_that_was_withdrawn_is_asked_again_when_its_sides_are_as_they_were(aged: Aged) -> None:
    older = moved(aged)
    aged.repository.append("\n## Never start Redis before the queue tests\n")
    aged.work(9)
    aged.consolidate()
    aged.memory.edit(older.id, title="Start Redis before the slow tests")
    assert aged.memory.decisions.pending() == []
    aged.memory.edit(older.id, title=REDIS)
    aged.consolidate()
    assert [question.status for question in aged.memory.decisions.pending()] == ["open"]


def test_an_expired_question_is_not_asked_again_and_its_entry_is_not_judged_again(aged: Aged, clock: Clock) -> None:
    moved(aged)
    aged.repository.append("\n## Never start Redis before the queue tests\n")
    aged.work(9)
    aged.consolidate()
    clock.advance(days=31)
    assert aged.memory.decisions.pending() == []
    aged.consolidate()
    runs = len(consolidations.latest(aged.memory.context.store.database, limit=100))
    for _ in range(2):
        report = aged.consolidate()
        assert not report.is_applied
        assert list(verdicts(report).values()) == ["kept"]
    assert len(consolidations.latest(aged.memory.context.store.database, limit=100)) == runs
    assert aged.memory.decisions.pending() == []


def test_what_does_not_fit_among_the_open_questions_is_asked_when_there_is_room(aged: Aged) -> None:
    aged.repository.write(
        "# General\n\n" + "".join(f"- Never run `{name}` before the tests.\n" for name in NAMES),
        f"{TOPICS}/general.md",
    )
    aged.hand_over("".join(f"- Run `{name}` before the tests\n" for name in NAMES))
    aged.work(8)
    report = aged.consolidate()
    assert (len(aged.memory.decisions.pending()), report.waiting) == (20, 4)
    assert not aged.consolidate().is_applied
    for question in aged.memory.decisions.pending()[:3]:
        aged.memory.decisions.resolve(question.id, keep="old")
    aged.consolidate()
    assert len(aged.memory.decisions.pending()) == 20


def make_long_file(aged: Aged, *, words: str = "Some words.") -> str:
    sections = "".join(f"## Part {number}\n\n" + f"{words}\n\n" * 10 for number in range(20))
    aged.repository.write(f"# General\n\n{sections}", f"{TOPICS}/general.md")
    aged.hand_over(PLAIN)
    aged.work(8)
    aged.consolidate()
    (question,) = aged.memory.decisions.pending()
    return question.id


@pytest.mark.parametrize("words", ["Some words.", "Words, many \x0c words,\u2028 and 世界 more. " * 3])
def test_the_patch_for_a_persons_long_file_can_be_applied(aged: Aged, words: str) -> None:
    make_long_file(aged, words=words)
    (question,) = aged.memory.decisions.pending()
    (side,) = aged.memory.decisions.sides(question)
    path = side.evidence.removeprefix("apply it: `git apply ").removesuffix("`")
    assert len(side.text) <= 2_000
    subprocess.run(["git", "apply", path], cwd=aged.repository.folder, check=True)
    assert aged.documents().count(words.strip()) == 200
    assert aged.memory.decisions.pending() == []
    assert set(verdicts(aged.consolidate()).values()) == {"moved"}


def test_a_persons_long_file_is_split_when_the_person_says_so(aged: Aged) -> None:
    aged.memory.decisions.resolve(make_long_file(aged), keep="new")
    report = aged.consolidate()
    assert set(verdicts(report).values()) == {"moved"}
    assert report.plan.split == (f"{TOPICS}/general.md",)
    assert aged.documents().count("Some words.") == 200
    assert not aged.memory.topics.check_index().faults


def test_a_persons_long_file_stays_whole_when_the_person_says_so(aged: Aged) -> None:
    aged.memory.decisions.resolve(make_long_file(aged), keep="old")
    assert set(verdicts(aged.consolidate()).values()) == {"moved"}
    aged.hand_over("- Restart the worker after `make deploy`\n")
    aged.work(8)
    assert set(verdicts(aged.consolidate()).values()) == {"moved"}
    assert aged.memory.decisions.pending() == []


def test_the_question_about_a_staging_file_that_is_too_long_is_withdrawn(aged: Aged) -> None:
    entries = "".join(f"## Entry {number}\n\n{'Words.' * number}\n\n" for number in range(60))
    aged.repository.write(f"# Ours\n\n{entries}")
    aged.work(1)
    aged.consolidate(force=False)
    assert [question.subject for question in aged.memory.decisions.pending()] == [STAGING]
    aged.repository.write("# Ours\n\n## Only one\n")
    assert aged.memory.decisions.pending() == []
    aged.repository.write(f"# Ours\n\n{entries}")
    aged.consolidate(force=False)
    assert [question.subject for question in aged.memory.decisions.pending()] == [STAGING]


# When it is due.


def incidents(count: int) -> str:
    return "".join(
        f"## The build {number} was broken on 2026-03-04\n\nSomebody pushed to part {number}.\n\n{'Words. ' * 3}\n\n"
        for number in range(count)
    )


def test_entries_that_wait_for_a_person_do_not_keep_a_long_file_from_being_shortened(aged: Aged) -> None:
    aged.repository.write(f"# Ours\n\n{incidents(12)}")
    aged.work(1)
    lessons = "".join(f"## Run `step{number}` before `make`\n\n{'Words.' * 9}\n\n\n" for number in range(12))
    aged.repository.append(lessons)
    aged.work(8)
    aged.repository.append("".join(f"## Young {number}\n\nWords.\n\n\n\n" for number in range(10)))
    report = aged.consolidate(force=False)
    assert report.decision.cause == "size"
    assert list(verdicts(report).values()).count("moved") > 3
    assert aged.repository.read().count("\n") < 150


def test_a_run_that_only_asks_is_no_consolidation(aged: Aged) -> None:
    aged.repository.write(f"# Ours\n\n{incidents(4)}")
    aged.work(20)
    report = aged.consolidate(force=False)
    assert (report.decision.cause, report.is_applied) == ("staleness", True)
    ages = aged.memory.consolidation.ages()
    assert ages.last_consolidation == ""
    assert len(ages.waiting) == 4
    assert not ages.decision.is_due  # nothing is left that could be consolidated
    for question in aged.memory.decisions.pending():
        aged.memory.decisions.resolve(question.id, keep="new")
    assert aged.memory.consolidation.ages().decision.is_due
    assert set(verdicts(aged.consolidate(force=False)).values()) == {"moved"}


# Files, people and processes.


def test_a_learning_that_is_changed_after_the_plan_was_made_stops_it(aged: Aged) -> None:
    ids = aged.hand_over(PLAIN)
    aged.work(8)
    report, intent = aged.memory.consolidations.plan(force=True)
    assert intent is not None
    aged.memory.archive(ids[0])
    before = aged.files()
    with pytest.raises(TryAgain, match="was changed meanwhile"):
        aged.memory.consolidations.apply(report, intent)
    assert aged.files() == before
    assert list(verdicts(aged.consolidate()).values()).count("moved") == 3


@pytest.mark.parametrize(
    ("replaced", "is_edited"), [(0, False), (1, False), (2, False), (0, True), (1, True), (2, True)]
)
def test_a_killed_run_that_only_changes_topic_files_is_completed_or_taken_back(
    aged: Aged, replaced: int, is_edited: bool, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    learning = moved(aged)
    path = aged.memory.get(learning.id).topic_file
    aged.memory.edit(learning.id, title="Start Valkey before the queue tests")
    report, intent = aged.memory.consolidations.plan(force=True)
    assert intent is not None
    assert STAGING not in [change.path for change in intent.changes]
    with monkeypatch.context() as killing:
        kill_after(killing, replaced)
        with pytest.raises(KeyboardInterrupt):
            aged.memory.consolidations.apply(report, intent)
    if is_edited:
        aged.repository.append("\nA remark of mine.\n", f"{TOPICS}/memory-index.md")
    with Memory.open(aged.repository.folder, clock=clock) as memory:
        is_complete = not memory.consolidations.plan(force=True)[0].changes_something
    assert ("Valkey" in aged.repository.read(path)) == is_complete
    assert is_complete or is_edited
    assert ("A remark of mine." in aged.repository.read(f"{TOPICS}/memory-index.md")) == is_edited
    aged.consolidate()
    assert "Valkey" in aged.repository.read(path)
    assert not aged.memory.topics.check_index().faults


def test_an_edit_of_a_file_that_is_taken_back_stays_and_ours_leaves(
    aged: Aged, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved(aged)
    ids = aged.hand_over("- Restart the worker after `make deploy`\n")
    aged.work(8)
    report, intent = aged.memory.consolidations.plan(force=True)
    assert intent is not None
    topic = aged.repository.folder / intent.changes[0].path
    replace = Journal._replace

    def edit_both_before_the_last(journal: Journal, path: str, before: Content, after: Content) -> bool:
        if path == STAGING and b"Mine" not in topic.read_bytes():
            topic.write_bytes(topic.read_bytes().replace(b"# General\n", b"# General\n\nMine.\n"))
            aged.repository.append("\n## Mine, too\n")
        return replace(journal, path, before, after)

    with monkeypatch.context() as editing:
        editing.setattr(Journal, "_replace", edit_both_before_the_last)
        with pytest.raises(TryAgain):
            aged.memory.consolidations.apply(report, intent)
    assert "Mine." in topic.read_text()
    assert not [id for id in ids if id in topic.read_text()]
    assert "## Mine, too" in aged.repository.read()
    assert all(aged.repository.read().count(id) == 1 for id in ids)


def test_undo_twice_undoes_two_runs_and_then_says_that_there_is_none(aged: Aged) -> None:
    aged.hand_over(PLAIN)
    aged.work(8)
    first = aged.files()
    aged.consolidate()
    aged.hand_over("- Restart the worker after `make deploy`\n")
    aged.work(8)
    second = aged.files()
    aged.consolidate()
    aged.memory.consolidations.undo()
    assert aged.files() == second
    aged.memory.consolidations.undo()
    assert "- Restart" not in aged.documents()
    assert "Restart the worker" in aged.repository.read()
    assert set(first) == set(aged.files())
    with pytest.raises(WrongRequest, match="no consolidation to undo"):
        aged.memory.consolidations.undo()


def test_undo_leaves_a_topic_file_away_that_a_person_has_deleted(aged: Aged) -> None:
    learning = moved(aged)
    path = aged.repository.folder / aged.memory.get(learning.id).topic_file
    path.unlink()
    aged.memory.consolidations.undo()
    assert not path.exists()
    assert REDIS in aged.repository.read()


def test_undo_in_another_worktree_undoes_what_was_done_there(aged: Aged, tmp_path: Path, clock: Clock) -> None:
    aged.hand_over(PLAIN)
    aged.work(8)
    other = tmp_path / "other"
    aged.repository.git("worktree", "add", "-q", str(other), "-b", "other")
    aged.consolidate()
    before = (other / STAGING).read_bytes()
    with Memory.open(other, clock=clock) as memory:
        with pytest.raises(WrongRequest, match="changed the files in"):
            memory.consolidations.undo()
        report, intent = memory.consolidations.plan(force=True)
        assert intent is not None
        memory.consolidations.apply(report, intent)
    here = aged.files()
    with Memory.open(other, clock=clock) as memory:
        memory.consolidations.undo()
    assert (other / STAGING).read_bytes() == before
    assert aged.files() == here
    aged.memory.consolidations.undo()
    assert REDIS in aged.repository.read()


@pytest.mark.parametrize(
    "settings",
    [
        {"STAGING_FILE": "notes.md", "INDEX_FILE": "./notes.md"},
        {"STAGING_FILE": "docs/a.md", "TOPIC_FILES": "docs/a.md"},
        {"INDEX_FILE": "docs/a.md", "TOPIC_FILES": "docs/./a.md"},
    ],
)
def test_settings_that_name_one_file_twice_are_refused(learnt: Learnt, settings: dict[str, str]) -> None:
    learnt("init")
    environ = {f"LEARNT_CONSOLIDATE_{name}": value for name, value in settings.items()}
    refused = learnt("consolidate", "--dry-run", env=environ)
    assert refused.code == 2
    assert "the same file" in refused.err


def test_a_staging_file_among_the_topic_files_and_an_index_in_agents_md_work(
    project: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEARNT_CONSOLIDATE_STAGING_FILE", f"{TOPICS}/staging.md")
    monkeypatch.setenv("LEARNT_CONSOLIDATE_INDEX_FILE", "AGENTS.md")
    repository = Repository(project)
    repository.write("# Agents\n\nOurs.\n", "AGENTS.md")
    with Memory.open(project, clock=clock) as memory:
        aged = Aged(repository, memory)
        aged.hand_over(PLAIN)
        aged.work(8)
        assert set(verdicts(aged.consolidate()).values()) == {"moved"}
        assert not aged.consolidate().is_applied
    assert "## " not in repository.read(f"{TOPICS}/staging.md")
    assert "- Start Redis before" in repository.read("AGENTS.md")


def test_a_handoff_of_a_task_that_does_not_exist_says_so(learnt: Learnt) -> None:
    learnt("init")
    told = learnt("handoff", "--task", "task_unknown", stdin="- Start Redis before the queue tests\n")
    assert told.code == 0
    assert "there is no task `task_unknown`" in told.err
    assert "Staged" in told.out
    told = learnt("handoff", "--task", "task_unknown", "--json", stdin="")
    assert "there is no task `task_unknown`" in json.loads(told.out)["problems"][0]


# Briefs of the past.


PORT, NO_PORT = "Use port 8080 for the dev server", "Do not use port 8080 for the dev server"
PROMPT = "start the dev server on port 8080"


def help_in(aged: Aged, ids: Sequence[str], task: str, **request: Any) -> Brief:
    """Let learnings be given for a task, and be marked helpful there."""
    brief = aged.memory.brief(PROMPT, task=task, **request)
    assert set(ids) <= set(brief.learning_ids)
    aged.memory.debrief(task, "\n".join(f"LEARNING_HELPFUL: {id}" for id in ids), result="done")
    return brief


def stage(aged: Aged, title: str, **fields: Any) -> str:
    """Add a learning, and stage it on a day of its own; return its id."""
    learning = aged.memory.add(title, **fields)
    above = aged.repository.read() if (aged.repository.folder / STAGING).exists() else "# Ours\n"
    aged.repository.write(f'{above}\n## {title}\n<!-- learnt: {{"id": "{learning.id}"}} -->\n')
    aged.work(1)
    return learning.id


def correct_for_architects(aged: Aged, *, helps: bool = True) -> tuple[str, str]:
    """Stage a learning that helps a tester, and a newer one that corrects it, which a tester is not given."""
    older = stage(aged, PORT, category="testing")
    if helps:
        help_in(aged, [older], "task_1", agent="tester")
    newer = stage(aged, NO_PORT, category="architecture")
    aged.work(9)
    return older, newer


def test_a_learning_that_has_not_helped_is_dropped_for_the_one_that_corrects_it(aged: Aged) -> None:
    older, newer = correct_for_architects(aged, helps=False)
    assert verdicts(aged.consolidate()) == {PORT: "dropped", NO_PORT: "moved"}
    assert aged.memory.get(older).superseded_by == newer


def test_a_learning_that_helped_is_withheld_if_briefs_would_miss_it(aged: Aged) -> None:
    older, _ = correct_for_architects(aged)
    report = aged.consolidate()
    assert verdicts(report) == {PORT: "escalated", NO_PORT: "escalated"}
    assert report.replay.lost == {older: 1}
    assert f"Withheld: {older} (1 ×)" in Path(report.path).read_text()
    assert aged.memory.get(older).status == "active"
    (question,) = aged.memory.decisions.pending()
    assert question.detail["kind"] == "regression"


@pytest.mark.parametrize(("keep", "verdict"), [("old", "moved"), ("new", "dropped"), ("both", "moved")])
def test_a_person_decides_on_what_briefs_would_miss(aged: Aged, keep: str, verdict: str) -> None:
    older, newer = correct_for_architects(aged)
    report, intent = aged.memory.consolidations.plan(force=True)
    assert intent is not None
    (asked,) = report.asked
    aged.memory.consolidations.apply(report, intent)
    aged.memory.decisions.resolve(asked, keep=keep, scope="for architects" if keep == "both" else "")
    assert verdicts(aged.consolidate())[PORT] == verdict
    assert aged.memory.get(older).status == ("superseded" if keep == "new" else "active")
    assert (aged.memory.get(newer).status, aged.memory.get(newer).times_helpful) == ("active", int(keep == "new"))
    assert aged.memory.decisions.pending() == []


def test_a_move_is_withheld_if_it_pushes_out_what_helped_and_so_is_every_one_that_does(aged: Aged) -> None:
    prompt = "start the dev server and seed the database"
    ids = [
        stage(aged, title) for title in ("Start the dev server with `make dev`", "Seed the database with `make seed`")
    ]
    for id in ids:
        aged.memory.pin(id)

    def gives_both(tokens: int, **request: Any) -> bool:
        given = aged.memory.brief(prompt, agent="engineer", budget_tokens=tokens, **request).learning_ids
        return set(given) == set(ids)

    def help_with(task: str) -> None:
        aged.memory.debrief(task, "\n".join(f"LEARNING_HELPFUL: {id}" for id in ids), result="done")

    assert gives_both(1_000, task="task_1")
    help_with("task_1")
    # The id of a brief takes a token more or less.
    tokens = next(tokens for tokens in range(120, 300) if gives_both(tokens, task="task_2"))
    help_with("task_2")
    third = stage(aged, "Close the cursor before the commit in `store.py`")
    aged.work(9)

    report = aged.consolidate()

    # A citation of the topic file takes room: without the gate, one of both would be missing from the brief, and with
    # one of them withheld, the other one would still push it out.
    assert {entry.id: entry.verdict for entry in report.plan.entries} == {
        **dict.fromkeys(ids, "escalated"),
        third: "moved",
    }
    assert gives_both(tokens + 5)
    for question in aged.memory.decisions.pending():
        aged.memory.decisions.resolve(question.id, keep="new")
    assert set(verdicts(aged.consolidate()).values()) == {"moved"}


def test_briefs_of_hooks_at_calls_and_at_the_start_are_replayed_too(aged: Aged, learnt: Learnt) -> None:
    id = stage(aged, "Run `make gen` before `make test`", triggers={"commands": ["make test"]}, category="testing")
    aged.memory.pin(id)
    client = Client(learnt, "claude")
    client.hear("SessionStart", source="startup")
    assert "make gen" in client.call("make test")
    aged.work(9)
    report = aged.consolidate()
    assert set(verdicts(report).values()) == {"moved"}
    assert report.replay.briefs == 1
    assert report.replay.left == {}


def test_the_replay_changes_nothing(aged: Aged) -> None:
    older, newer = correct_for_architects(aged)
    aged.repository.append("\n## Written by hand in `notes.md`\n")
    aged.work(9)
    states = [aged.memory.get(id).as_dict() for id in (older, newer)]
    _, intent = aged.memory.consolidations.plan(force=True)
    assert intent is not None
    assert [aged.memory.get(id).as_dict() for id in (older, newer)] == states
    assert len(aged.memory.learnings().learnings) == 2
