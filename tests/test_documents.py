"""Topic files and their index through the doors: checked, repaired, cited, and safe in a cloned project."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from learnt import InvalidValue, Memory, WrongRequest
from learnt.consolidate.ages import AgedEntry
from learnt.consolidate.topics import write_entries
from learnt.flow.documents import read_documents
from learnt.flow.staged import StagedReader
from learnt.model import Learning
from learnt.settings import Settings
from learnt.store import learnings
from tests.conftest import Clock
from tests.support.doors import open_doors
from tests.support.repository import Repository

INDEX = "docs/learnings/memory-index.md"
TESTING = "docs/learnings/testing.md"


def write(project: Path, path: str, text: str) -> None:
    (project / path).parent.mkdir(parents=True, exist_ok=True)
    (project / path).write_bytes(text.encode())


def read(project: Path, path: str) -> str:
    return (project / path).read_bytes().decode()


def move(memory: Memory, learning: Learning, path: str = TESTING) -> Learning:
    """Write a learning into a topic file, as a consolidation does."""
    place = Path(memory.root) / path
    write(Path(memory.root), path, write_entries(place.read_text() if place.exists() else "", [learning]))
    change = memory.context.change("consolidate", at=memory.context.clock())
    with memory.context.store.transaction():
        learnings.change(memory.context.store.database, learning.id, lambda _: {"topic_file": path}, change)
    return memory.get(learning.id)


def test_index_check_says_what_is_wrong_and_fix_repairs_it(project: Path) -> None:
    learnt = open_doors(project)
    assert learnt("index").out == "There are no topic files yet.\n"
    write(project, TESTING, "# Testing\n\n## Start Redis\n<!-- learn_1 -->\n\nText.\n")
    checked = learnt("index", "--check")
    assert (checked.code, checked.out) == (1, f"{INDEX}: 1 fault\n- missing: there are topic files, but no index\n")
    assert "`learnt index --fix`" in checked.err
    assert not (project / INDEX).exists()
    assert learnt("index", "--fix").code == 0
    assert "- Start Redis — Redis <!-- learn_1 -->\n" in read(project, INDEX)
    assert learnt("index", "--check").code == 0
    before = read(project, INDEX)
    assert json.loads(learnt("index", "--fix", "--json").out)["changed"] == []
    assert read(project, INDEX) == before


def test_an_entry_that_stands_twice_is_named_and_left_to_a_person(project: Path) -> None:
    learnt = open_doors(project)
    write(project, TESTING, "# Testing\n\n## Start Redis\n<!-- learn_1 -->\n\n## Stop Redis\n<!-- learn_2 -->\n")
    write(project, "docs/learnings/redis.md", "# Redis\n\n## Start Redis\n<!-- learn_1 -->\n")
    fixed = learnt("index", "--fix")
    assert (
        fixed.err.splitlines()[0]
        == f"learn_1 stands in docs/learnings/redis.md and in {TESTING}: remove one of the entries"
    )
    checked = learnt("index", "--check", "--json")
    assert (checked.code, len(json.loads(checked.out)["remarks"])) == (0, 1)


def test_a_line_that_was_removed_comes_back_and_no_file_is_deleted(project: Path) -> None:
    learnt = open_doors(project)
    write(project, TESTING, "# Testing\n\n## Start Redis\n\nText.\n\n## Stop Redis\n\nText.\n")
    learnt("index", "--fix")
    write(project, INDEX, read(project, INDEX).partition("- Start")[0] + "- Start Redis — cache <!-- learnt -->\n")
    faults = json.loads(learnt("index", "--json").out)["faults"]
    assert [(fault["kind"], fault["title"]) for fault in faults] == [("orphan", "Stop Redis")]
    learnt("index", "--fix")
    assert "- Start Redis — cache <!-- learnt -->\n- Stop Redis — " in read(project, INDEX)
    assert (project / TESTING).exists()
    (project / TESTING).unlink()
    assert learnt("index", "--check").code == 1
    assert learnt("index", "--fix").code == 0
    assert "Redis" not in read(project, INDEX)
    assert learnt("index").code == 0


def test_with_a_store_new_lines_have_the_triggers_of_their_learnings(memory: Memory, project: Path) -> None:
    learning = memory.add("Start it first", category="testing", triggers={"commands": ["make redis"]}, tags=["queues"])
    move(memory, learning)
    assert memory.topics.check_index().faults[0].kind == "missing"
    assert memory.topics.fix_index().changed == (INDEX,)
    assert f"- Start it first — make redis, queues <!-- {learning.id} -->" in read(project, INDEX)
    assert memory.topics.check_index().faults == ()


def test_claude_md_gets_a_pointer_which_the_setting_takes_back(project: Path) -> None:
    learnt = open_doors(project)
    rules = "# Rules\n\n- Always run `make lint` before a commit.\n"
    write(project, "CLAUDE.md", rules)
    assert learnt("index", "--fix").out == "There are no topic files yet.\n"
    write(project, TESTING, "# Testing\n\n## Start Redis\n\nText.\n")
    learnt("index", "--fix")
    assert INDEX in read(project, "CLAUDE.md")
    assert not (project / "AGENTS.md").exists()
    learnt("init")
    imported = json.loads(learnt("import", "CLAUDE.md", "--yes", "--json").out)
    assert "earlier work taught" not in json.dumps(imported)
    off = {"LEARNT_CONSOLIDATE_POINTER": "false"}
    assert learnt("index", "--check", env=off).code == 1
    learnt("index", "--fix", env=off)
    assert read(project, "CLAUDE.md") == rules


def test_no_link_is_followed(project: Path, tmp_path: Path) -> None:
    private = tmp_path / "private.md"
    private.write_text("# Mine\n\n## Secret\n\nText.\n")
    write(project, TESTING, "# Testing\n\n## Start Redis\n\nText.\n")
    learnt = open_doors(project)
    (project / "CLAUDE.md").symlink_to(private)
    assert learnt("index", "--fix").code == 0
    assert private.read_text() == "# Mine\n\n## Secret\n\nText.\n"
    for path in ("docs/learnings/linked.md", INDEX):
        (project / path).unlink(missing_ok=True)
        (project / path).symlink_to(private)
        failed = learnt("index", "--fix")
        assert (failed.code, "Secret" in failed.out + failed.err) == (2, False)
        (project / path).unlink()
    (project / "docs").rename(tmp_path / "docs")
    (project / "docs").symlink_to(tmp_path / "docs")
    assert learnt("index", "--fix").code == 2


def test_an_index_reaches_no_file_outside_the_project(project: Path, tmp_path: Path) -> None:
    (tmp_path / "private.md").write_text("# Mine\n")
    write(project, INDEX, "# Index\n\n## ../../../private.md\n\n- Mine\n\n## /etc/hosts.md\n")
    faults = json.loads(open_doors(project)("index", "--json").out)["faults"]
    assert [fault["kind"] for fault in faults] == ["dangling", "dangling"]


def test_text_that_is_not_utf_8_and_line_ends_survive_a_repair(project: Path) -> None:
    write(project, TESTING, "# Testing\n\n## Start Redis\n\nText.\n")
    (project / INDEX).write_bytes(b"# Index \xff\r\n\r\nMine.\r\n")
    assert open_doors(project)("index", "--fix").code == 0
    content = (project / INDEX).read_bytes()
    assert content.startswith(b"# Index \xff\r\n\r\nMine.\r\n\r\n## [testing.md](testing.md)\r\n")


def test_files_that_a_person_named_are_topic_files(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, "CLAUDE.md", "# Rules\n")
    monkeypatch.setenv("LEARNT_CONSOLIDATE_TOPIC_FILES", "CLAUDE.md:docs/testing.md:GEMINI.md")
    with Memory.open(project) as memory:
        topics = {topic.path: topic for topic in read_documents(memory.context).topics}
    assert topics["CLAUDE.md"].is_loaded
    assert not topics["docs/testing.md"].is_loaded
    assert "GEMINI.md" not in topics


def test_the_index_and_a_staging_file_among_the_topic_files_are_none_and_keep_their_names(
    project: Path, clock: Clock
) -> None:
    settings = 'staging_file = "docs/learnings/general.md"\nindex_file = "docs/learnings/testing.md"\n'
    write(project, "learnt.toml", f"[consolidate]\n{settings}")
    repository = Repository(project)
    with Memory.open(project, clock=clock) as memory:
        memory.handoff(
            "- Start Redis before the queue tests\n- Run `make gen` before `make lint`\n- Use port 8080 for it\n"
        )
        for learning in memory.learnings().learnings[:2]:
            memory.edit(learning.id, category="testing")
        for day in range(1, 10):
            repository.commit(f"2026-01-{day:02}T12:00:00+0000")
        report, intent = memory.consolidations.plan(force=True)
        assert intent is not None, (report, memory.consolidation.ages())
        memory.consolidations.apply(report, intent)
        homes = {learning.topic_file for learning in memory.learnings().learnings}
        assert homes <= {"docs/learnings/testing-notes.md", "docs/learnings/general-notes.md"}
        assert memory.topics.check_index().faults == ()
    assert repository.read("docs/learnings/general.md").strip() == "# Learnings"
    assert repository.read("docs/learnings/testing.md").startswith("# Memory index")


@pytest.mark.parametrize(
    "path",
    [
        "../notes.md",
        "/notes.md",
        "~/notes.md",
        "notes.txt",
        "",
        "C:/notes.md",
        "a\nb.md",
        ".git/notes.md",
        "a/.Git/b.md",
        ".learnt/notes.md",
    ],
)
def test_paths_lead_into_the_project(path: str) -> None:
    with pytest.raises(InvalidValue, match="consolidate"):
        Settings(consolidate_index_file=path)


@pytest.mark.parametrize("path", ["learnt.toml", ".learnt/learnt.db", ".git/config"])
def test_no_learning_is_staged_in_a_file_of_learnt_or_git(path: str) -> None:
    with pytest.raises(InvalidValue, match="staging_file"):
        Settings(consolidate_staging_file=path)


def test_vouched_entries_go_to_claude_md_if_a_person_named_it_and_its_pointer_stays_right(
    project: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEARNT_CONSOLIDATE_TOPIC_FILES", "CLAUDE.md:docs/gone.md")
    repository = Repository(project)
    repository.write("# Rules\n\n## Testing\n\n- Use pytest\n- Use fixtures\n", "CLAUDE.md")
    with Memory.open(project, clock=clock) as memory:
        text = "- Start Redis before the queue tests\n- Run `make gen` before `make test`\n- Use port 8080 for it\n"
        ids = [learning.id for learning in memory.handoff(text).staged]
        memory.edit(ids[0], category="testing")
        for day in range(1, 10):
            repository.commit(f"2026-01-{day:02}T12:00:00+0000")
        report, intent = memory.consolidations.plan(force=True)
        assert intent is not None
        memory.consolidations.apply(report, intent)
        moved = memory.get(ids[0])
        assert (moved.topic_file, moved.loaded_from) == ("CLAUDE.md", "CLAUDE.md")
        assert memory.topics.check_index().faults == ()
    rules = repository.read("CLAUDE.md")
    assert f"- Use fixtures\n- Start Redis before the queue tests <!-- {ids[0]} -->\n" in rules
    assert rules.endswith("<!-- /learnt-pointer -->\n")
    assert not (project / "docs/gone.md").exists()


def test_a_folder_that_is_a_file_is_refused_with_a_hint(project: Path) -> None:
    write(project, "docs/learnings", "not a folder")
    with Memory.open(project) as memory, pytest.raises(WrongRequest, match="docs/learnings"):
        memory.topics.check_index()


def test_what_claude_md_or_a_skill_says_already_is_for_a_person_to_decide(memory: Memory, project: Path) -> None:
    write(project, "CLAUDE.md", "# Rules\n\n- Run `make lint` before each commit\n")
    write(project, ".claude/skills/deploy/SKILL.md", "# Deploy\n\n- Always tag the release before you deploy it\n")
    titles = (
        "Run `make lint` before every commit",
        "Always tag the release before you deploy it",
        "Run `make test` before each commit",
    )
    ages = [AgedEntry(title=title, line=2 * number + 1) for number, title in enumerate(titles)]
    text = "".join(f"## {title}\n\n" for title in titles)
    staged = StagedReader(memory.context, str(project / "staging.md"), text).read(ages, ages)
    assert [entry.flaw for entry in staged.entries] == [
        "CLAUDE.md says it already: Run `make lint` before each commit",
        ".claude/skills/deploy/SKILL.md says it already: Always tag the release before you deploy it",
        "",
    ]


def test_a_consolidated_learning_stays_active_and_its_brief_cites_the_file(memory: Memory) -> None:
    learning = memory.add("Start Redis before the queue tests", observation="They hang. " * 60)
    before = memory.brief("run the queue tests with Redis", task="task_1")
    moved = move(memory, learning)
    assert (moved.status, moved.topic_file) == ("active", TESTING)
    after = memory.brief("run the queue tests with Redis", task="task_2")
    assert f" | File: {TESTING}_" in after.text
    assert TESTING not in before.text
    short = memory.brief("run the queue tests with Redis", task="task_3", budget_tokens=160)
    assert f"({learning.id}, {TESTING})" in short.text
    for brief in (before, after, short):
        again = memory.explain(brief.id)
        assert (again.text, memory.why.is_as_sent(again)) == (brief.text, True)
