"""Consolidation: what becomes of aged entries, what waits for a person, and that files and store stay whole."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from learnt import Memory
from learnt.consolidate.questions import ask_to_shorten
from learnt.errors import NotFound, TryAgain, WrongRequest
from learnt.flow.decisions import propose
from learnt.store import consolidations
from tests.conftest import Clock
from tests.support.aged import PLAIN, TOPICS, Aged, kill_after, verdicts
from tests.support.doors import Learnt
from tests.support.repository import STAGING, Repository, entry


def test_aged_entries_move_into_a_topic_file_and_stay_active(aged: Aged) -> None:
    ids = aged.hand_over(PLAIN)
    aged.work(8)

    report = aged.consolidate()

    assert set(verdicts(report).values()) == {"moved"}
    for id in ids:
        learning = aged.memory.get(id)
        assert learning.status == "active"
        assert learning.topic_file.startswith(f"{TOPICS}/")
        assert f"<!-- {id} -->" in aged.repository.read(learning.topic_file)
    assert "## " not in aged.repository.read()
    assert not aged.memory.topics.check_index().faults
    assert "4 moved" in Path(report.path).read_text()


# `s2_…` and `row_…` name the requirement that a test proves.


def test_s2_75_ages_come_from_git_across_merge_commits(aged: Aged) -> None:
    repository = aged.repository
    repository.write(f"# Ours\n\n{entry('On main')}")
    repository.commit("2026-01-01T12:00:00+0000")
    repository.git("checkout", "-q", "-b", "side")
    repository.append(entry("On a branch"))
    repository.commit("2026-01-02T12:00:00+0000")
    repository.git("checkout", "-q", "main")
    repository.write("x", "other.txt")
    repository.commit("2026-01-03T12:00:00+0000")
    repository.merge("side", "2026-01-05T12:00:00+0000")
    repository.commit("2026-01-06T12:00:00+0000")
    repository.commit("2026-01-06T18:00:00+0000")
    ages = {aged.title: aged.active_days for aged in aged.memory.consolidation.ages().entries}
    assert ages == {"On main": 4, "On a branch": 3}


@pytest.mark.parametrize(
    ("entries", "lines", "days", "cause"),
    [
        (3, 150, 7, "size"),  # long enough, and three have aged
        (3, 149, 7, ""),
        (2, 150, 7, ""),  # too few for a batch
        (3, 20, 14, "staleness"),
        (3, 20, 13, ""),
        (2, 20, 14, ""),
        (3, 150, 6, ""),  # nothing has aged
    ],
)
def test_s2_76_it_is_due_by_size_or_staleness_and_with_a_minimum_batch(
    aged: Aged, entries: int, lines: int, days: int, cause: str
) -> None:
    text = "# Ours\n" + "".join(f"\n## Run `step{number}` first\n" for number in range(entries))
    aged.repository.write(text + "\n" * (lines - text.count("\n")))
    aged.work(1 + days)
    decision = aged.memory.consolidation.ages().decision
    assert (decision.is_due, decision.cause if decision.is_due else "") == (bool(cause), cause)
    assert len(decision.batch) == (entries if cause else 0)


def test_s2_77_the_freshness_filter_never_takes_young_entries(aged: Aged) -> None:
    aged.hand_over(PLAIN)
    aged.work(8)
    aged.hand_over("- Restart the worker after `make deploy`\n")
    aged.work(2)

    aged.consolidate()

    assert "Restart the worker" in aged.repository.read()
    assert "Restart the worker" not in aged.documents()


def test_a_second_run_changes_nothing(aged: Aged) -> None:
    aged.hand_over(PLAIN + "- Broke the build yesterday in `ci.yml`\n")
    (aged.repository.folder / STAGING).write_text(
        aged.repository.read() + "\n## The build was broken on 2026-03-04 by `ci.yml`\n\nSomebody pushed.\n"
    )
    aged.work(9)
    aged.consolidate()
    before, runs = aged.files(), len(consolidations.latest(aged.memory.context.store.database, limit=100))

    report = aged.consolidate()

    assert not report.is_applied
    assert aged.files() == before
    assert len(consolidations.latest(aged.memory.context.store.database, limit=100)) == runs
    assert len(aged.memory.decisions.pending()) == 1


# The rows of the table of partial failures: the target file is full (1), the learning is too vague or about an incident
# (2), contradicts an existing document (3), is superseded by a newer one (4), or redundant (5).


def test_row_1_a_target_file_at_its_limit_is_split_and_does_not_block_the_entries(aged: Aged) -> None:
    sections = "".join(f"## Part {number}\n\n" + "Some words.\n\n" * 10 for number in range(20))
    aged.repository.write(f"# General\n\n<!-- learnt-topic -->\n\n{sections}", f"{TOPICS}/general.md")
    ids = aged.hand_over(PLAIN)
    aged.work(8)

    report = aged.consolidate()

    assert report.plan.split == (f"{TOPICS}/general.md",)
    assert len(list((aged.repository.folder / TOPICS).glob("*.md"))) > 2
    assert all(aged.documents().count(id) == 1 for id in ids)
    assert aged.documents().count("Some words.") == 200
    assert not aged.memory.topics.check_index().faults


def test_learnings_are_found_where_a_split_or_a_person_has_moved_them(aged: Aged) -> None:
    early = aged.hand_over(PLAIN)
    aged.work(8)
    aged.consolidate()
    path = f"{TOPICS}/general.md"
    aged.repository.append("".join(f"\n## Part {number}\n" + "Some words.\n" * 40 for number in range(10)), path)
    aged.hand_over(
        "- Restart the worker after `make deploy`\n- Seed the cache with `make seed` first\n- Use `b.py` on CI\n"
    )
    aged.work(8)

    report = aged.consolidate()

    assert report.plan.split == (path,)
    assert all(id in aged.repository.read(aged.memory.get(id).topic_file) for id in early)
    aged.memory.consolidations.undo()
    assert {aged.memory.get(id).topic_file for id in early} == {path}

    aged.repository.git("mv", path, f"{TOPICS}/moved.md")
    aged.memory.topics.fix_index()
    assert {aged.memory.get(id).topic_file for id in early} == {f"{TOPICS}/moved.md"}


def test_an_entry_that_two_branches_moved_into_two_files_stays_in_one(aged: Aged) -> None:
    ids = aged.hand_over(PLAIN)
    aged.work(8)
    aged.consolidate()
    home = aged.memory.get(ids[0]).topic_file
    twin, name = aged.repository.read(home), f"{TOPICS}/another.md"
    aged.repository.write(twin.replace("## Run", "## Always run"), name)
    assert aged.memory.topics.fix_index().remarks

    report = aged.consolidate()

    removed = {entry.id: entry.target for entry in report.plan.of("removed")}
    assert removed == dict.fromkeys((ids[0], *ids[2:]), name)
    assert aged.repository.read(home) == twin
    assert aged.repository.read(name).count("## ") == 1  # what a person has edited there stays
    assert {aged.memory.get(id).topic_file for id in ids} == {home}
    assert not aged.memory.topics.check_index().faults
    assert not aged.consolidate().is_applied
    aged.memory.consolidations.undo()
    assert aged.repository.read(name).count("## ") == len(ids)


def test_a_persons_file_at_the_limit_is_not_split_but_a_patch_is_proposed(aged: Aged) -> None:
    sections = "".join(f"## Part {number}\n\n" + "Some words.\n\n" * 10 for number in range(20))
    text = f"# General\n\n{sections}"
    aged.repository.write(text, f"{TOPICS}/general.md")
    aged.hand_over(PLAIN)
    aged.work(8)

    report = aged.consolidate()

    assert "escalated" in verdicts(report).values()
    assert aged.repository.read(f"{TOPICS}/general.md") == text
    (question,) = aged.memory.decisions.pending()
    assert question.detail["passage"].startswith("--- ")


def test_row_2_a_learning_that_is_too_vague_or_about_an_incident_is_escalated(aged: Aged) -> None:
    aged.hand_over(PLAIN)
    aged.repository.append("\n## The build was broken on 2026-03-04\n\nSomebody pushed to main.\n")
    aged.work(9)

    report = aged.consolidate()

    assert verdicts(report)["The build was broken on 2026-03-04"] == "escalated"
    assert "The build was broken" in aged.repository.read()
    assert "The build was broken" not in aged.documents()


def test_row_3_and_s2_79_contradiction_an_entry_that_contradicts_the_target_file_is_escalated(aged: Aged) -> None:
    aged.repository.write("# General\n\n- Never start Redis before the queue tests.\n", f"{TOPICS}/general.md")
    aged.hand_over(PLAIN)
    aged.work(8)

    report = aged.consolidate()

    assert verdicts(report)["Start Redis before the queue tests"] == "escalated"
    assert "- Never start Redis before the queue tests.\n" in aged.documents()
    (question,) = aged.memory.decisions.pending()
    old, new = aged.memory.decisions.sides(question)
    assert (old.file, new.name) == (f"{TOPICS}/general.md", "new")


def test_row_4_and_s2_78_supersession_a_newer_entry_that_contradicts_an_older_one_drops_it(aged: Aged) -> None:
    aged.repository.write("# Learnings\n\n## Use port 8080 for the dev server\n")
    aged.work(2)
    aged.repository.append("\n## Do not use port 8080 for the dev server\n")
    aged.work(2)
    aged.hand_over(PLAIN.replace("- Use port 8080 for the dev server\n", ""))
    aged.work(9)

    report = aged.consolidate()

    assert verdicts(report)["Use port 8080 for the dev server"] == "dropped"
    assert verdicts(report)["Do not use port 8080 for the dev server"] == "moved"
    dropped = next(entry for entry in report.plan.entries if entry.verdict == "dropped")
    assert aged.memory.get(dropped.id).superseded_by == dropped.other


def test_row_5_and_s2_80_redundancy_an_entry_that_says_what_the_target_file_says_is_dropped(aged: Aged) -> None:
    aged.repository.write("# General\n\n- Start Redis before the queue tests.\n", f"{TOPICS}/general.md")
    aged.hand_over(PLAIN)
    aged.work(8)

    report = aged.consolidate()

    assert verdicts(report)["Start Redis before the queue tests"] == "dropped"
    assert aged.documents().count("Start Redis before the queue tests") == 1


def test_a_repetition_that_says_more_is_not_dropped_and_the_loss_is_shown(aged: Aged) -> None:
    aged.hand_over(PLAIN)
    aged.work(8)
    aged.consolidate()
    aged.repository.append("\n## Start Redis before the queue tests\n\nIt listens on port 6390 there.\n")
    aged.work(9)

    aged.consolidate()

    assert "6390" in aged.documents()


def test_of_two_that_say_the_same_the_one_with_the_reason_stays(aged: Aged) -> None:
    aged.hand_over(f"{PLAIN}- Use the small fixture in parser tests\n")
    aged.repository.append("\n## Use the small fixture in parser tests: the big one takes twenty minutes\n")
    aged.work(9)

    report = aged.consolidate()

    assert verdicts(report)["Use the small fixture in parser tests"] == "dropped"
    assert aged.documents().count("## Use the small fixture in parser tests") == 1
    assert "twenty minutes" in aged.documents()


def test_an_open_question_keeps_no_other_entry_from_being_dropped(aged: Aged) -> None:
    aged.hand_over(PLAIN)
    staged = aged.repository.read()
    aged.work(8)
    aged.consolidate()
    aged.repository.write(f"{staged}\n## The build was broken on 2026-03-04\n\nSomebody pushed to main.\n")
    aged.work(9)
    aged.consolidate()
    aged.repository.write(staged)
    aged.work(9)

    report = aged.consolidate()

    assert len(aged.memory.decisions.pending()) == 1
    assert set(verdicts(report).values()) == {"dropped"}


# Files and people.


def test_a_file_that_a_person_changes_meanwhile_is_kept_and_everything_is_rolled_back(aged: Aged) -> None:
    aged.hand_over(PLAIN)
    aged.work(8)
    report, intent = aged.memory.consolidations.plan(force=True)
    assert intent is not None
    aged.repository.append("\n## Written meanwhile\n")
    before = aged.files()

    with pytest.raises(TryAgain):
        aged.memory.consolidations.apply(report, intent)

    assert aged.files() == before
    assert all(not learning.topic_file for learning in aged.memory.learnings().learnings)
    assert aged.consolidate().is_applied


@pytest.mark.parametrize("replaced", [0, 1, 2, 3])
def test_a_run_that_was_killed_is_completed_by_the_next_command(
    aged: Aged, replaced: int, monkeypatch: pytest.MonkeyPatch, project: Path, clock: Clock
) -> None:
    ids = aged.hand_over(PLAIN)
    aged.work(8)
    report, intent = aged.memory.consolidations.plan(force=True)
    assert intent is not None
    with monkeypatch.context() as killing:
        kill_after(killing, replaced)
        with pytest.raises(KeyboardInterrupt):
            aged.memory.consolidations.apply(report, intent)

    with Memory.open(project, clock=clock) as memory:
        topics = [memory.get(id).topic_file for id in ids]

    assert all(topics)
    assert all(aged.documents().count(id) == 1 for id in ids)
    assert "## " not in aged.repository.read()


def test_a_killed_run_is_taken_back_if_a_person_has_edited_a_file_since(
    aged: Aged, monkeypatch: pytest.MonkeyPatch, project: Path, clock: Clock
) -> None:
    ids = aged.hand_over(PLAIN)
    aged.work(8)
    report, intent = aged.memory.consolidations.plan(force=True)
    assert intent is not None
    with monkeypatch.context() as killing:
        kill_after(killing, 1)
        with pytest.raises(KeyboardInterrupt):
            aged.memory.consolidations.apply(report, intent)
    aged.repository.append("\n## Written by a person since then\n")

    with Memory.open(project, clock=clock) as memory:
        assert not any(memory.get(id).topic_file for id in ids)

    assert not aged.documents()
    assert "Written by a person" in aged.repository.read()
    assert all(aged.repository.read().count(id) == 1 for id in ids)


@pytest.mark.parametrize("replaced", [0, 1, 2, 3])
def test_a_killed_run_whose_staging_file_is_gone_is_completed_only_if_the_other_files_were_written(
    aged: Aged, replaced: int, monkeypatch: pytest.MonkeyPatch, project: Path, clock: Clock
) -> None:
    ids = aged.hand_over(PLAIN)
    aged.work(8)
    report, intent = aged.memory.consolidations.plan(force=True)
    assert intent is not None
    with monkeypatch.context() as killing:
        kill_after(killing, replaced)
        with pytest.raises(KeyboardInterrupt):
            aged.memory.consolidations.apply(report, intent)
    (project / STAGING).unlink()

    with Memory.open(project, clock=clock) as memory:
        topics = [memory.get(id).topic_file for id in ids]

    assert {id in aged.documents() for id in ids} == {replaced >= 2}
    assert {bool(topic) for topic in topics} == {replaced >= 2}
    assert not (project / STAGING).exists()


def test_undo_restores_the_files_and_the_learnings(aged: Aged) -> None:
    ids = aged.hand_over(PLAIN)
    aged.work(8)
    before = aged.files()
    aged.consolidate()

    aged.memory.consolidations.undo()

    assert aged.files() == before
    assert not any(aged.memory.get(id).topic_file for id in ids)
    assert aged.memory.consolidation.ages().last_consolidation == ""


def test_undo_keeps_what_a_person_wrote_since(aged: Aged) -> None:
    aged.hand_over(PLAIN)
    aged.work(8)
    aged.consolidate()
    aged.repository.append("\n## Written since then\n")

    aged.memory.consolidations.undo()

    assert "## Written since then" in aged.repository.read()
    assert "## Start Redis" in aged.repository.read()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("general.md", "## Run", "## Keep `x` open\n\n## Run"),
        ("general.md", "", "\n## Keep `x` open\n"),
        ("memory-index.md", "", "- Keep `x` open\n"),
    ],
)
def test_undo_keeps_what_a_person_wrote_into_the_files_and_leaves_a_valid_index(
    aged: Aged, name: str, old: str, new: str
) -> None:
    aged.hand_over(PLAIN)
    aged.work(8)
    before = aged.repository.read()
    aged.consolidate()
    path = f"{TOPICS}/{name}"
    text = aged.repository.read(path)
    aged.repository.write(text.replace(old, new, 1) if old else text + new, path)

    aged.memory.consolidations.undo()

    left = aged.repository.read(path)
    assert "Keep `x` open" in left
    assert "Redis" not in left
    assert aged.repository.read() == before
    assert aged.memory.topics.check_index().faults == ()


def test_undo_leaves_an_entry_to_a_person_who_has_edited_it(aged: Aged) -> None:
    ids = aged.hand_over(PLAIN)
    aged.work(8)
    aged.consolidate()
    path = aged.memory.get(ids[0]).topic_file
    aged.repository.write(aged.repository.read(path).replace("## Start", "## Always start"), path)
    with pytest.raises(WrongRequest, match="was edited where the consolidation wrote"):
        aged.memory.consolidations.undo()


def test_purging_a_learning_removes_the_backups_and_reports_that_have_it(aged: Aged) -> None:
    ids = aged.hand_over(PLAIN)
    aged.work(8)
    report = aged.consolidate()

    aged.memory.purge(ids[0])

    assert not Path(report.path).exists()
    assert not list((Path(aged.memory.folder) / "consolidations").iterdir())
    assert any("remove the entry there" in remark for remark in aged.memory.remarks)


# Questions to a person.


@pytest.mark.parametrize(
    ("keep", "statuses"),
    [
        ("old", ("active", "superseded")),
        ("new", ("superseded", "active")),
        ("both", ("active", "active")),
        ("neither", ("archived", "archived")),
    ],
)
def test_a_person_chooses_between_two_sides(memory: Memory, keep: str, statuses: Sequence[str]) -> None:
    older = memory.add("Start Redis before the queue tests")
    (rejected,) = memory.handoff("- Never start Redis before the queue tests\n").rejected

    memory.decisions.resolve(rejected.escalation, keep=keep, scope="on CI" if keep == "both" else "")

    assert (memory.get(older.id).status, memory.get(rejected.id).status) == tuple(statuses)
    assert memory.decisions.pending() == []
    if keep == "both":
        assert memory.get(rejected.id).context == "on CI"


@pytest.mark.parametrize("keep", ["new", "both"])
def test_what_a_person_accepts_is_staged_and_can_be_consolidated(memory: Memory, project: Path, keep: str) -> None:
    memory.add("Start Redis before the queue tests")
    (rejected,) = memory.handoff("- Never start Redis before the queue tests\n").rejected

    memory.decisions.resolve(rejected.escalation, keep=keep, scope="on CI" if keep == "both" else "")

    assert (project / STAGING).read_text().count(rejected.id) == 1
    assert memory.context.remarks == []


def test_a_person_is_told_which_document_still_has_the_other_side(aged: Aged) -> None:
    older = aged.hand_over(PLAIN)[0]
    aged.work(8)
    aged.consolidate()
    (rejected,) = aged.memory.handoff("- Never start Redis before the queue tests\n").rejected
    resolved = aged.memory.decisions.resolve(rejected.escalation, keep="new")

    assert f"{TOPICS}/general.md" in aged.memory.decisions.describe_next(resolved)
    assert rejected.id not in aged.repository.read()
    assert aged.memory.get(older).superseded_by == rejected.id


def test_both_sides_are_shown_with_what_speaks_for_them(learnt: Learnt) -> None:
    learnt("init")
    learnt("add", "Start Redis before the queue tests")
    learnt("handoff", stdin="- Never start Redis before the queue tests\n")
    shown = learnt("escalations").out
    record = json.loads(learnt("escalations", "--json").out)[0]
    for side in record["sides"]:
        assert f"    {side['name']}: {side['id']}\n        {side['text']}\n        [{side['evidence']}]\n" in shown
        assert re.match(r"since \d{4}-\d\d-\d\d; vouched by person", side["evidence"])
    assert f"`learnt resolve {record['id']} --keep …`" in shown
    assert learnt("resolve", record["id"]).code == 2
    assert learnt("resolve", record["id"], "--keep", "both").code == 2
    assert learnt("resolve", record["id"], "--keep", "both", "--scope", "on CI").code == 0
    assert learnt("escalations").out == "Nothing to decide.\n"
    assert "both: on CI" in learnt("escalations", "--all").out


def test_a_question_is_withdrawn_when_one_of_its_sides_changes(memory: Memory) -> None:
    older = memory.add("Start Redis before the queue tests")
    memory.handoff("- Never start Redis before the queue tests\n")

    memory.edit(older.id, title="Start Redis before the slow tests")

    assert memory.decisions.pending() == []
    (closed,) = memory.decisions.pending(status=None)
    assert closed.answer == "withdrawn: one of the learnings has changed"


def test_of_a_file_that_is_too_long_only_the_latest_question_is_open(memory: Memory, project: Path) -> None:
    (project / STAGING).write_text("# Learnings\n" + "\n" * 200)
    with memory.context.store.transaction():
        for run in ("run_1", "run_2", "run_3"):
            propose(memory.context, ask_to_shorten(STAGING, "200 lines", run), at=memory.context.clock())

    assert len(memory.decisions.pending()) == 1
    assert len(memory.decisions.pending(status=None)) == 3


def test_a_question_expires(memory: Memory, clock: Clock) -> None:
    memory.add("Start Redis before the queue tests")
    memory.handoff("- Never start Redis before the queue tests\n")
    clock.advance(days=31)

    assert memory.decisions.pending() == []


def test_at_most_twenty_questions_are_open(memory: Memory) -> None:
    for number in range(25):
        memory.add(f"Start server {number} before the queue tests of `part{number}`")
        memory.handoff(f"- Never start server {number} before the queue tests of `part{number}`\n")

    assert len(memory.decisions.pending()) == 20


# Briefs of the past.


def test_a_learning_that_helped_is_not_dropped_if_briefs_would_miss_it(aged: Aged) -> None:
    aged.repository.write("# Learnings\n\n## Use port 8080 for the dev server\n")
    aged.work(2)

    aged.memory.handoff(aged.repository.read())
    older = aged.memory.learnings().learnings[0]
    aged.memory.brief("start the dev server on a port", task="task_1")
    aged.memory.debrief("task_1", f"LEARNING_HELPFUL: {older.id}", result="done")
    assert aged.memory.get(older.id).times_helpful == 1
    aged.repository.append("\n## Since v2 the port 8080 is no longer used by the dev server\n")
    aged.work(9)

    report = aged.consolidate()

    by_title = verdicts(report)
    assert by_title["Use port 8080 for the dev server"] in ("escalated", "moved")
    assert aged.memory.get(older.id).status == "active"


# The command.


@pytest.mark.parametrize("id", ["x", "esc_nope"])
def test_a_side_of_a_question_that_does_not_exist_cannot_be_kept(memory: Memory, id: str) -> None:
    with pytest.raises(NotFound, match=f"no escalation `{id}`"):
        memory.decisions.resolve(id, keep="old")


def test_the_command_shows_the_plan_and_changes_nothing_without_yes(learnt: Learnt, project: Path) -> None:
    repository = Repository(project)
    learnt("init")
    learnt("handoff", stdin=PLAIN)
    assert "No entry is old enough: 13 lines" in learnt("consolidate", "--force").out
    assert "Consolidation is not due: 13 lines" in learnt("consolidate", "--yes").out
    for day in range(1, 11):
        repository.commit(f"2026-01-{day:02d}T12:00:00+0000")
    before = repository.read()

    shown = learnt("consolidate", "--force")

    assert "4 moved" in shown.out
    assert repository.read() == before
    record = json.loads(learnt("consolidate", "--force", "--yes", "--json").out)
    assert record["applied"]
    assert [entry["verdict"] for entry in record["entries"]] == ["moved"] * 4
    assert os.path.exists(record["report"])
    assert "Undone" in learnt("consolidate", "--undo").out
    assert repository.read() == before
