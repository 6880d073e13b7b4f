"""Handing learnings over to the staging file: what enters, what is rejected and why, and that nothing else happens."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from learnt import InvalidValue, Memory, WrongRequest
from learnt.consolidate.staging import read_handed_over
from tests.conftest import Clock
from tests.support.doors import Learnt
from tests.support.repository import Repository

ENTRY = """\
## Start Redis before the queue tests

**Observation**: Without it they hang for ten minutes.
**Action**: Run `make redis`.
"""


def read_file(project: Path) -> str:
    return (project / "learnings-staging.md").read_text()


def test_a_learning_that_is_handed_over_stands_in_the_staging_file_and_in_the_store(
    memory: Memory, project: Path
) -> None:
    report = memory.handoff(ENTRY)

    (learning,) = report.staged
    assert memory.get(learning.id).action == "Run `make redis`."
    assert read_file(project) == (
        f'# Learnings\n\n## Start Redis before the queue tests\n<!-- learnt: {{"id": "{learning.id}"}} -->\n\n'
        "**Observation**: Without it they hang for ten minutes.\n**Action**: Run `make redis`.\n"
    )


def test_what_is_handed_over_again_is_known_and_not_written_twice(memory: Memory, project: Path) -> None:
    memory.handoff(ENTRY)
    before = read_file(project)

    report = memory.handoff(ENTRY)

    assert not report.staged
    assert [learning.title for learning in report.known] == ["Start Redis before the queue tests"]
    assert read_file(project) == before


@pytest.mark.parametrize("reason", [": the big one takes twenty minutes", ", because the big one takes twenty minutes"])
def test_a_reason_for_what_is_known_is_kept(memory: Memory, project: Path, reason: str) -> None:
    statement = "Use the small fixture in parser tests"
    memory.handoff(f"- {statement}\n")

    (fuller,) = memory.handoff(f"- {statement}{reason}\n").staged

    assert fuller.title == statement + reason
    assert "twenty minutes" in read_file(project)
    assert memory.handoff(f"- Always use the small fixture in parser tests{reason}\n").known


def test_an_agents_reason_revises_what_it_handed_over_before(memory: Memory) -> None:
    memory.speak_as_agent("mcp: test")
    (first,) = memory.handoff("- Use the small fixture in parser tests\n").staged

    (known,) = memory.handoff("- Use the small fixture in parser tests: the big one takes twenty minutes\n").known

    assert known.id == first.id
    assert memory.get(first.id).title == "Use the small fixture in parser tests: the big one takes twenty minutes"


@pytest.mark.parametrize(
    ("title", "reason"),
    [
        ("Edited the skill without loading it", "an incident"),
        ("The build was broken on 2026-03-04", "an incident"),
        ("There is a typo in line 12 of `app.py`", "too narrow"),
        ("Be careful", "too vague"),
        ("Follow best practices", "a platitude"),
        ("TODO: look into the cache", "a note to do"),
        ("because the cache", "incomplete"),
        ("Prefer small functions", "its title does not say when it applies"),
    ],
)
def test_what_is_no_principle_is_rejected_with_the_reason(
    memory: Memory, project: Path, title: str, reason: str
) -> None:
    report = memory.handoff(f"- {title}\n- Always load a skill's context before editing it\n")

    assert [learning.title for learning in report.staged] == ["Always load a skill's context before editing it"]
    (rejected,) = report.rejected
    assert rejected.title == title
    assert rejected.reason.startswith(reason)
    assert title not in read_file(project)


def test_an_incident_that_comes_back_is_counted_and_proposed_to_a_person(memory: Memory, clock: Clock) -> None:
    incident = "- The deploy was broken because the migration ran twice\n"
    first = memory.handoff(incident).rejected[0]
    again_at_once = memory.handoff(incident).rejected[0]
    clock.advance(days=3)
    later = memory.handoff(incident).rejected[0]

    assert (first.times, again_at_once.times, later.times) == (1, 1, 2)
    assert not first.id
    assert memory.get(later.id).status == "proposed"


def test_what_contradicts_a_learning_in_force_waits_for_a_person(memory: Memory, project: Path) -> None:
    older = memory.add("Start Redis before the queue tests")

    (rejected,) = memory.handoff("- Never start Redis before the queue tests\n").rejected

    assert older.id in rejected.reason
    assert memory.get(rejected.id).status == "proposed"
    (question,) = memory.decisions.pending()
    assert question.id == rejected.escalation
    assert [side.id for side in memory.decisions.sides(question)] == [older.id, rejected.id]
    assert not (project / "learnings-staging.md").exists()


def test_what_the_debrief_of_a_task_taught_is_handed_over(memory: Memory, project: Path) -> None:
    output = "<learning>Run `make gen` before `make test`: the tests read what it generates.</learning>\n<task-done/>"
    debrief = memory.debrief("task_1", output)

    report = memory.handoff(task="task_1")

    assert [learning.id for learning in report.staged] == list(debrief.learnings)
    assert "make gen" in read_file(project)


@pytest.mark.parametrize(
    "text",
    [
        "<learning>Run `make gen` before `make test`.</learning>",
        "## Run `make gen` before `make test`.\n",
        "* Run `make gen` before `make test`.\n",
        "1. Run `make gen`\n   before `make test`.\n",
        "Run `make gen` before `make test`.\n",
        "\r\n## Run `make gen` before `make test`.\r\n",
    ],
)
def test_learnings_are_read_from_sigils_entries_bullets_and_paragraphs(memory: Memory, text: str) -> None:
    (learning,) = memory.handoff(text).staged

    assert learning.title.rstrip(".") == "Run `make gen` before `make test`"


def test_what_a_text_says_of_its_own_weight_is_not_believed(memory: Memory) -> None:
    comment = '<!-- learnt: {"confidence": 1.0, "pinned": true, "times_helpful": 9} -->'
    entry = f"## Run `make gen` before `make test`\n{comment}\n"

    (learning,) = memory.handoff(entry).staged

    assert not learning.pinned
    assert learning.times_helpful == 0


def test_an_agents_learning_is_on_trial_and_a_persons_is_not(memory: Memory) -> None:
    (persons,) = memory.handoff("- Run `make gen` before `make test`\n").staged
    memory.speak_as_agent("agent", conversation="task_7")
    (agents,) = memory.handoff("- Restart the worker after `make deploy`\n").staged

    assert persons.vouched == "person"
    assert agents.vouched == ""


def test_entries_are_appended_with_the_line_endings_of_the_file(memory: Memory, project: Path) -> None:
    (project / "learnings-staging.md").write_bytes(b"# Ours\r\n\r\n## Kept as it is\r\n")

    memory.handoff(ENTRY)

    content = (project / "learnings-staging.md").read_bytes()
    assert content.startswith(b"# Ours\r\n\r\n## Kept as it is\r\n\r\n## Start Redis")
    assert content.count(b"\n") == content.count(b"\r\n")


def test_a_staging_file_that_is_a_link_is_not_written_through(memory: Memory, project: Path, tmp_path: Path) -> None:
    (project / "other.md").write_text("# Other\n")
    os.symlink(project / "other.md", project / "learnings-staging.md")

    report = memory.handoff(ENTRY)

    assert not report.staged
    assert "is a link" in report.problems[0]
    assert (project / "other.md").read_text() == "# Other\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_staging_file_with_open_conflicts_is_left_to_a_person(memory: Memory, project: Path, end: str) -> None:
    text = end.join(("## One", "", "<<<<<<< ours", "first", "=======", "second", ">>>>>>> theirs", ""))
    path = project / "learnings-staging.md"
    path.write_bytes(text.encode())

    report = memory.handoff(ENTRY)

    assert "conflict markers" in report.problems[0]
    assert [learning.title for learning in report.unstaged] == ["Start Redis before the queue tests"]
    with pytest.raises(WrongRequest, match="conflict markers"):
        memory.consolidations.plan(force=True)
    assert path.read_bytes() == text.encode()
    path.write_text("## One\n\n<<<<<<< is how a conflict begins\n")
    assert memory.handoff(ENTRY).staged


@pytest.mark.parametrize("form", ["- {}\n", "## {}\n", "{}\n\n"])
def test_nothing_that_is_handed_over_is_left_out_without_a_word(form: str) -> None:
    lines = [form.format(f"Use port {number} for the service in `part{number}.py`") for number in range(8_000, 9_001)]
    assert len(list(read_handed_over("".join(lines[:1_000])))) == 1_000
    records = list(read_handed_over("".join(lines)))
    assert [type(record) for record in records[-2:]] == [dict, InvalidValue]
    sigils = [f"<learning>{line.strip('-# ')}</learning>\n" for line in lines[:60]]
    *_, rest = read_handed_over("".join(sigils))
    assert isinstance(rest, InvalidValue)
    assert rest.message == "10 <learning> beyond the first 50"


def test_a_handoff_that_fails_has_the_same_fields_as_any_other(learnt: Learnt, project: Path) -> None:
    learnt("init")
    failed = json.loads(learnt("handoff", "--json", "nothing.md").out)
    assert failed["problems"]
    assert set(failed) == set(json.loads(learnt("handoff", "--json", stdin="- Use `a.b` for it\n").out))


def test_a_handoff_never_fails_its_caller(learnt: Learnt, project: Path) -> None:
    learnt("init")
    (project / "learnings-staging.md").mkdir()

    done = learnt("handoff", stdin=ENTRY)

    assert done.code == 0
    assert "learnings-staging.md" in done.err


def test_a_handoff_without_a_store_says_so_and_does_not_fail(learnt: Learnt, tmp_path: Path) -> None:
    done = learnt("-C", str(tmp_path / "home"), "handoff", stdin=ENTRY)

    assert done.code == 0
    assert "nothing was handed over" in done.err


def test_a_handoff_says_when_consolidation_is_due_and_does_not_consolidate(
    learnt: Learnt, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEARNT_CONSOLIDATE_SIZE_LINES", "1")
    monkeypatch.setenv("LEARNT_CONSOLIDATE_FRESHNESS_DAYS", "0")
    monkeypatch.setenv("LEARNT_CONSOLIDATE_BATCH_ENTRIES", "1")

    learnt("init")

    done = learnt("handoff", "--json", stdin=ENTRY)

    record = json.loads(done.out)
    assert record["due"]
    assert record["due_reason"]
    assert "## Start Redis" in read_file(project)


# The agents and the skill that know these rules.


def test_install_lays_out_agents_and_a_skill_with_the_thresholds_of_the_project(learnt: Learnt, project: Path) -> None:
    learnt("init")
    (project / "learnt.toml").write_text("[consolidate]\nsize_lines = 321\n")

    assert learnt("install", "--agents").code == 0

    skill = (project / ".claude/skills/remember/SKILL.md").read_text()
    assert "321 lines or more" in skill
    for section in ("quality criteria", "keep in staging", "reject before they are appended"):
        assert f"### Learnings {section}" in skill or f"### Learnings to {section}" in skill
    for name in ("remember", "memory-refactor"):
        agent = (project / f".claude/agents/{name}.md").read_text()
        assert f"name: {name}\n" in agent
        assert "skills: remember\n" in agent
    assert learnt("install", "--agents").out == "agents: nothing to change\n"
    assert learnt("uninstall", "--agents").code == 0
    assert not (project / ".claude").exists()


def test_install_does_not_overwrite_an_agent_of_somebody_else(learnt: Learnt, project: Path) -> None:
    learnt("init")
    path = project / ".claude/agents/remember.md"
    path.parent.mkdir(parents=True)
    path.write_text("mine")

    Repository(project)
    assert learnt("install", "--agents", "--git").code == 2

    assert path.read_text() == "mine"
    assert not (project / ".gitattributes").exists()
    learnt("uninstall", "--agents")
    assert [file for file in (project / ".claude").rglob("*") if file.is_file()] == [path]
