"""Importing CLAUDE.md, AGENTS.md and the like: preview, import, undo, importing again, and what briefs make of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from learnt import Memory
from learnt.errors import InvalidValue, WrongRequest
from learnt.flow.rules_files import RulesImport, refresh_marks
from learnt.model import Learning
from learnt.text.records import as_record
from tests.support.doors import Learnt
from tests.support.golden import Golden, Outside
from tests.support.hooks import Client
from tests.support.terminal import COLOUR, Terminal

RULES = """# CLAUDE.md

Shopfront is a shop.

## Testing

- Never mock the database in tests
- Run `make seed` before the integration tests, because they read the fixtures that the whole shop has had since March

## Git

- Rebase before you open a pull request
"""
TITLES = [
    "Never mock the database in tests",
    "Run `make seed` before the integration tests",
    "Rebase before you open a pull request",
]


def imported(memory: Memory, path: Path | str) -> RulesImport:
    return memory.transfer.rules.import_all(memory.transfer.rules.read(str(path)))


def stored(memory: Memory, *, status: str | None = "active") -> dict[str, Learning]:
    found = memory.learnings(status=status, scope="project", limit=1000).learnings
    return {learning.title: learning for learning in found}


@pytest.fixture
def rules(project: Path) -> Path:
    file = project / "CLAUDE.md"
    file.write_text(RULES)
    return file


class TestImport:
    """What is taken over."""

    def test_rules_become_learnings_that_a_person_vouches_for(self, memory: Memory, rules: Path) -> None:
        done = imported(memory, rules)

        assert (done.count("added"), len(done.left_out)) == (3, 1)
        found = stored(memory)
        assert set(found) == set(TITLES)
        seed = found["Run `make seed` before the integration tests"]
        assert seed.observation.startswith(
            "Run `make seed` before the integration tests, because they read the fixtures"
        )
        assert (seed.category, seed.origin, seed.vouched, seed.confidence) == ("testing", "import", "person", 0.8)
        assert (seed.loaded_from, seed.author) == ("CLAUDE.md", "anna")
        assert [event.what for event in memory.history(seed.id)] == ["import"]
        assert memory.review.items() == []

    def test_a_preview_changes_nothing_and_shows_what_the_import_does(self, memory: Memory, rules: Path) -> None:
        sources = memory.transfer.rules.read(str(rules))
        before = list(memory.transfer.export())

        preview = memory.transfer.rules.preview(sources)

        assert list(memory.transfer.export()) == before == []
        done = memory.transfer.rules.import_all(sources)
        assert [taken.rule for taken in preview.taken] == [taken.rule for taken in done.taken]
        assert preview.left_out == done.left_out

    def test_the_rules_of_a_folder_apply_to_their_files(self, memory: Memory, project: Path) -> None:
        folder = project / ".cursor" / "rules" / "web"
        folder.mkdir(parents=True)
        (folder / "a.mdc").write_text("---\nglobs: src/**/*.tsx\n---\n\n- Write function components, no classes\n")
        (folder.parent / "b.mdc").write_text("---\nalwaysApply: true\n---\n\n- Use tabs for indentation\n")
        (folder / "notes.txt").write_text("- Not read at all\n")

        imported(memory, project / ".cursor" / "rules")

        found = stored(memory)
        component = found["Write function components, no classes"]
        assert component.triggers.files == ("src/**/*.tsx",)
        assert component.loaded_from == ".cursor/rules/web/a.mdc"
        assert found["Use tabs for indentation"].triggers.files == ()
        assert component.id in memory.brief("open the window", paths=["src/till/Till.tsx"]).learning_ids

    def test_a_file_in_a_subfolder_applies_to_that_folder(self, memory: Memory, project: Path) -> None:
        (project / "packages" / "web" / ".claude").mkdir(parents=True)
        (project / "packages" / "web" / "CLAUDE.md").write_text("- Use tabs for indentation\n")
        (project / "packages" / "web" / ".claude" / "CLAUDE.md").write_text("- Never use default exports\n")

        imported(memory, project / "packages" / "web" / "CLAUDE.md")
        imported(memory, project / "packages" / "web" / ".claude" / "CLAUDE.md")

        assert [learning.triggers.files for learning in stored(memory).values()] == [("packages/web/",)] * 2

    def test_a_learnings_file_of_another_project_keeps_what_is_on_trial_on_trial(
        self, memory: Memory, tmp_path: Path
    ) -> None:
        other = tmp_path / "other" / "learnings.md"
        other.parent.mkdir()
        other.write_text((Path(__file__).parent / "rules_files" / "other-learnings.md").read_text())

        imported(memory, other)

        found = stored(memory)
        assert found["The till needs a warm lamp"].vouched == ""
        assert found["Verify that line endings are LF, not CRLF"].vouched == "person"
        assert found["Mocking the clock in `till.py`"].polarity == "avoid"
        assert not {"learn_0mfx5c8r2w7v6u", "learn_0mfx5c8r2w7v6v"} & {one.id for one in found.values()}

    def test_what_is_known_already_is_vouched_for_and_not_added(self, memory: Memory, rules: Path) -> None:
        known = memory.add("Never mock the database in tests", origin="agent")
        assert known.vouched == ""

        done = imported(memory, rules)

        assert (done.count("added"), done.count("updated")) == (2, 1)
        now = memory.get(known.id)
        assert (now.vouched, now.loaded_from, now.recurrences) == ("person", "CLAUDE.md", 0)

    def test_a_rule_with_a_reason_is_more_than_what_is_known(self, memory: Memory, project: Path) -> None:
        known = memory.add("Use the small fixture in parser tests")
        fuller = f"{known.title}, because the big one takes twenty minutes"
        (project / "CLAUDE.md").write_text(f"- {fuller}\n")

        assert imported(memory, project / "CLAUDE.md").count("added") == 1
        assert set(stored(memory)) == {known.title, fuller}
        assert memory.get(known.id) == known

    def test_what_a_person_said_in_other_words_is_not_added_and_still_briefed(
        self, memory: Memory, rules: Path
    ) -> None:
        mine = memory.add("Do not mock the database in tests")

        done = imported(memory, rules)

        assert (done.count("added"), done.count("unchanged")) == (2, 1)
        assert mine.id in memory.brief("mock the database in tests", client="claude").learning_ids

    @pytest.mark.parametrize("verb", ["hide", "archive"])
    def test_what_a_person_put_away_stays_away(self, memory: Memory, rules: Path, verb: str) -> None:
        getattr(memory, verb)(memory.add("Never mock the database in tests").id)

        done = imported(memory, rules)

        assert (done.count("added"), done.count("kept")) == (2, 1)
        assert "Never mock the database in tests" not in stored(memory)

    def test_platitudes_are_left_out_with_the_reason(self, memory: Memory, project: Path) -> None:
        (project / "AGENTS.md").write_text("- Follow the best practices always\n- Use `ruff` for linting\n")

        done = imported(memory, project / "AGENTS.md")

        assert [left_out.reason for _, left_out in done.left_out] == ["a platitude: it is true of all software"]
        assert list(stored(memory)) == ["Use `ruff` for linting"]


class TestAgain:
    """The same file imported again."""

    def test_nothing_changes_if_the_file_has_not_changed(self, memory: Memory, rules: Path) -> None:
        imported(memory, rules)
        before = [as_record(learning) for learning in memory.transfer.export()]

        again = imported(memory, rules)

        assert (again.count("unchanged"), again.changes_something, again.gone) == (3, False, ())
        assert [as_record(learning) for learning in memory.transfer.export()] == before

    def test_what_was_reworded_is_revised_and_what_is_gone_is_reported(self, memory: Memory, rules: Path) -> None:
        imported(memory, rules)
        before = stored(memory)
        rules.write_text(
            RULES.replace("Rebase before", "Squash before").replace("- Never mock the database in tests\n", "")
        )

        again = imported(memory, rules)

        assert (again.count("updated"), again.count("unchanged"), again.count("added")) == (1, 1, 0)
        (gone,) = again.gone
        assert gone.title == "Never mock the database in tests"
        assert memory.get(gone.id).status == "active"
        now = memory.get(before["Rebase before you open a pull request"].id)
        assert (now.title, now.vouched) == ("Squash before you open a pull request", "person")
        assert memory.undo(now.id).title == "Rebase before you open a pull request"

    def test_an_edit_here_is_not_taken_back(self, memory: Memory, rules: Path) -> None:
        imported(memory, rules)
        id = stored(memory)["Rebase before you open a pull request"].id
        memory.edit(id, title="Rebase onto `next` before you open a pull request")

        assert not imported(memory, rules).changes_something
        rules.write_text(RULES.replace("Rebase before you open", "Rebase and squash before you open"))
        again = imported(memory, rules)

        assert (again.count("kept"), again.count("added")) == (1, 0)
        assert memory.get(id).title == "Rebase onto `next` before you open a pull request"

    def test_a_revision_that_was_undone_can_be_repeated(self, memory: Memory, rules: Path) -> None:
        imported(memory, rules)
        rules.write_text(RULES.replace("Rebase before", "Squash before"))
        memory.transfer.undo_import(imported(memory, rules).id)
        assert "Rebase before you open a pull request" in stored(memory)

        assert imported(memory, rules).count("updated") == 1
        assert "Squash before you open a pull request" in stored(memory)

    def test_an_import_that_was_undone_can_be_repeated(self, memory: Memory, rules: Path) -> None:
        memory.transfer.undo_import(imported(memory, rules).id)
        assert stored(memory) == {}

        again = imported(memory, rules)

        assert again.count("updated") == 3
        assert set(stored(memory)) == set(TITLES)

    def test_the_same_rule_in_two_files_is_one_learning(self, memory: Memory, project: Path, rules: Path) -> None:
        imported(memory, rules)
        (project / "AGENTS.md").write_text(RULES)

        assert not imported(memory, project / "AGENTS.md").changes_something
        assert len(stored(memory)) == 3


class TestUndo:
    """The undo of a whole import."""

    def test_one_undo_takes_everything_back(self, memory: Memory, rules: Path) -> None:
        known = memory.add("Never mock the database in tests", origin="agent")
        done = imported(memory, rules)

        undone = memory.transfer.undo_import(done.id)

        assert (len(undone.archived), undone.restored, undone.left) == (2, (known.id,), ())
        assert stored(memory) == {known.title: memory.get(known.id)}
        now = memory.get(known.id)
        assert (now.vouched, now.loaded_from, now.confidence) == ("", "", known.confidence)
        with pytest.raises(WrongRequest, match="nothing is left"):
            memory.transfer.undo_import(done.id)

    def test_what_was_changed_since_is_left(self, memory: Memory, rules: Path) -> None:
        imported(memory, rules)
        rules.write_text(RULES.replace("Rebase before", "Squash before"))
        done = imported(memory, rules)
        id = stored(memory)["Squash before you open a pull request"].id
        memory.edit(id, title="Squash, then rebase")

        assert memory.transfer.undo_import(done.id).left == (id,)
        assert memory.get(id).title == "Squash, then rebase"

    def test_an_import_of_exported_learnings_is_undone_the_same_way(self, memory: Memory) -> None:
        mine = memory.add("Mine", origin="import")
        records = [{"title": "A new one"}, {**as_record(mine), "action": "Act", "updated_at": mine.updated_at + 1}]
        for record in records:
            record.pop("scope", None)
            record.pop("version", None)
        done = memory.transfer.import_all(records)

        undone = memory.transfer.undo_import(done.id)

        assert (len(undone.archived), undone.restored) == (1, (mine.id,))
        assert memory.get(mine.id).action == ""

    def test_an_unknown_import_is_an_error(self, memory: Memory) -> None:
        with pytest.raises(WrongRequest, match="import_0mfx"):
            memory.transfer.undo_import("import_0mfx3k2p9a1b2c")


class TestBriefs:
    """What a client loads anyway is not repeated in its briefs."""

    @pytest.mark.parametrize(
        ("file", "clients"),
        [
            ("CLAUDE.md", {"claude"}),
            (".claude/rules/tests.md", {"claude"}),
            ("AGENTS.md", {"codex", "opencode"}),
            ("GEMINI.md", {"gemini"}),
            (".github/copilot-instructions.md", set()),
            ("docs/CLAUDE.md", set()),
        ],
    )
    def test_a_client_that_loads_the_file_is_not_briefed_on_it(
        self, memory: Memory, project: Path, file: str, clients: set[str]
    ) -> None:
        path = project / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("- Never mock the database in tests\n")
        imported(memory, path)
        (learning,) = stored(memory).values()

        for client in ("claude", "codex", "gemini", "opencode", "cursor", ""):
            brief = memory.brief("mock the database in the tests", client=client)
            assert (learning.id in brief.learning_ids) == (client not in clients), client
            if client in clients:
                (entry,) = brief.receipt["considered"]
                assert entry["left_out"] == f"the client loads it from {file}"

    def test_others_are_not_crowded_out(self, memory: Memory, project: Path) -> None:
        lines = [f"- Never mock the database of till {number} in tests\n" for number in range(120)]
        (project / "CLAUDE.md").write_text("".join(lines))
        imported(memory, project / "CLAUDE.md")
        mine = memory.add("Mock the clock, not the database, in slow tests of accounting")

        task = "mock the database or the clock in slow tests of accounting"
        assert mine.id in memory.brief(task, client="claude").learning_ids

    def test_it_is_briefed_again_when_the_file_no_longer_contains_it(self, memory: Memory, rules: Path) -> None:
        imported(memory, rules)
        id = stored(memory)["Never mock the database in tests"].id
        assert refresh_marks(memory.context) == 0
        rules.write_text(RULES.replace("- Never mock the database in tests\n", ""))
        os.utime(rules, (4e9, 4e9))

        assert refresh_marks(memory.context) == 1

        assert id in memory.brief("mock the database in the tests", client="claude").learning_ids
        rules.unlink()
        assert refresh_marks(memory.context) == 2
        assert refresh_marks(memory.context) == 0

    def test_a_merge_conflict_changes_no_marks(self, memory: Memory, rules: Path) -> None:
        imported(memory, rules)
        rules.write_text(f"<<<<<<< HEAD\n{RULES}=======\n>>>>>>> other\n")
        os.utime(rules, (4e9, 4e9))

        assert refresh_marks(memory.context) == 0

    def test_a_hook_and_explain_say_so_and_a_call_is_still_warned(
        self, project: Path, learnt: Learnt, rules: Path
    ) -> None:
        with Memory.open(project) as memory:
            imported(memory, rules)
            id = stored(memory)["Run `make seed` before the integration tests"].id
            memory.edit(id, triggers={"commands": ["make integration"]}, kind="gotcha")
            other = memory.add("Seed the till before the integration tests run")
        client = Client(learnt, "claude")

        told = client.hear("UserPromptSubmit", prompt="run the integration tests, seed before")

        assert other.id in told
        assert id not in told
        with Memory.open(project) as memory:
            brief = memory.reports.activity(what="brief").entries[0].id
        assert "left out: the client loads it from CLAUDE.md" in learnt("explain", brief).out
        assert id in client.call("make integration")
        assert id in Client(learnt, "codex").hear("UserPromptSubmit", prompt="run the integration tests, seed before")

    def test_pinned_rules_are_not_repeated_at_the_start(self, project: Path, learnt: Learnt, rules: Path) -> None:
        with Memory.open(project) as memory:
            imported(memory, rules)
            id = stored(memory)["Never mock the database in tests"].id
            memory.pin(id)

        assert id not in Client(learnt, "claude").hear("SessionStart", source="startup")
        assert id in Client(learnt, "codex").hear("SessionStart", source="startup")

    def test_the_worker_looks_at_the_file(self, project: Path, learnt: Learnt, rules: Path, alone: None) -> None:
        with Memory.open(project) as memory:
            imported(memory, rules)
            rules.unlink()
            memory.worker.catch_up()

            assert {learning.loaded_from for learning in stored(memory).values()} == {""}

    def test_learnings_md_does_not_repeat_it(self, project: Path, learnt: Learnt, rules: Path) -> None:
        with Memory.open(project) as memory:
            imported(memory, rules)
            memory.add("Count the till at night")
            memory.file.update()
            text = memory.file.read() or ""

        assert "Count the till at night" in text
        assert "mock the database" not in text


class TestFiles:
    """Which files are read, and how they are remembered."""

    def test_files_in_the_home_folder_are_remembered_by_it(self, project: Path, home: Path) -> None:
        folder = home / ".claude" / "projects" / "-shop" / "memory"
        folder.mkdir(parents=True)
        (home / ".claude" / "CLAUDE.md").write_text("- Use British spelling in prose\n")
        (folder / "MEMORY.md").write_text("- [Database](database.md): tests use a real one\n- Never run `make all`\n")
        (folder / "database.md").write_text((Path(__file__).parent / "rules_files" / "memory-feedback.md").read_text())
        with Memory.open(project) as memory:
            imported(memory, home / ".claude" / "CLAUDE.md")
            imported(memory, folder)

            places = {title: learning.loaded_from for title, learning in stored(memory).items()}
            brief = memory.brief("integration tests with a real database", client="claude")
        assert places == {
            "Use British spelling in prose": "~/.claude/CLAUDE.md",
            "Never run `make all`": "~/.claude/projects/-shop/memory/MEMORY.md",
            "Integration tests hit a real database, not mocks": "~/.claude/projects/-shop/memory/database.md",
        }
        assert len(brief.learning_ids) == 1  # Claude Code loads only the index by itself

    def test_in_a_shared_store_files_of_one_user_are_not_remembered(
        self, memory: Memory, engine: str, home: Path
    ) -> None:
        (home / ".claude").mkdir()
        (home / ".claude" / "CLAUDE.md").write_text("- Use British spelling in prose\n")

        imported(memory, home / ".claude" / "CLAUDE.md")

        (learning,) = stored(memory).values()
        assert learning.loaded_from == ("~/.claude/CLAUDE.md" if engine == "sqlite" else "")

    def test_a_link_within_the_project_is_followed(self, sqlite_memory: Memory, project: Path, rules: Path) -> None:
        (project / "AGENTS.md").symlink_to("CLAUDE.md")

        imported(sqlite_memory, project / "AGENTS.md")

        assert {learning.loaded_from for learning in stored(sqlite_memory).values()} == {"AGENTS.md"}

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"\x89PNG\r\n\x1a\n\x00\x00\xff", "not UTF-8"),
            (b"- use tabs\x00- use spaces", "not a text file"),
            ("- use tabs für Go\n".encode("latin-1"), "not UTF-8"),
            (b"- use tabs\n" * 60_000, "more than 500,000 bytes"),
            (b"- use tabs\n<<<<<<< HEAD\n- a b\n=======\n- c d\n>>>>>>> x\n", "a merge conflict in line 2"),
        ],
    )
    def test_what_is_not_text_is_refused(self, sqlite_memory: Memory, project: Path, content: bytes, said: str) -> None:
        (project / "CLAUDE.md").write_bytes(content)

        with pytest.raises((InvalidValue, WrongRequest), match=said):
            sqlite_memory.transfer.rules.read(str(project / "CLAUDE.md"))

    def test_this_projects_own_learnings_file_is_refused(self, sqlite_memory: Memory, project: Path) -> None:
        sqlite_memory.add("Count the till at night")
        sqlite_memory.file.update()

        with pytest.raises(WrongRequest, match="this project's own file"):
            sqlite_memory.transfer.rules.read(str(project / ".learnt" / "learnings.md"))


class TestCommand:
    """`learnt import` and `learnt undo`."""

    @pytest.fixture(autouse=True)
    def made(self, learnt: Learnt, rules: Path) -> None:
        assert "`learnt import CLAUDE.md`" in learnt("init").out

    def test_without_a_terminal_it_needs_a_yes(self, learnt: Learnt) -> None:
        done = learnt("import", "CLAUDE.md")

        assert (done.code, "--yes" in done.err) == (2, True)
        assert json.loads(learnt("list", "--json").out)["learnings"] == []
        done = learnt("import", "CLAUDE.md", "--yes")
        assert (done.code, done.err) == (0, "")
        assert "Imported: 3 added, 0 updated" in done.out

    def test_a_preview_shows_everything_in_full(self, learnt: Learnt) -> None:
        done = learnt("import", "CLAUDE.md", "--dry-run")

        for said in (
            "CLAUDE.md: Testing",
            "+ Never mock the database in tests",
            "because they read the fixtures that the whole shop has had since March",
            "describes the project: “Shopfront is a shop.”",
            "Claude Code",
            "You vouch for what you take over.",
        ):
            assert said in done.out
        assert json.loads(learnt("list", "--json").out)["learnings"] == []

    def test_one_undo_takes_it_back(self, learnt: Learnt) -> None:
        id = json.loads(learnt("import", "CLAUDE.md", "--yes", "--json").out)["id"]

        done = learnt("undo", id)

        assert (done.code, done.out) == (0, f"Undid {id}: 3 archived\n")
        assert json.loads(learnt("list", "--json").out)["learnings"] == []
        assert learnt("undo", id).code == 2

    def test_at_a_terminal_it_asks(self, project: Path) -> None:
        terminal = Terminal(project)

        code, screen = terminal.run("import", "CLAUDE.md", typed="n\n")
        assert (code, "Take over 3 rules? [y/N]" in screen, "Nothing was imported" in screen) == (0, True, True)
        code, screen = terminal.run("import", "CLAUDE.md", typed="y\n")
        assert (code, "Imported: 3 added" in COLOUR.sub("", screen)) == (0, True)

    def test_without_a_file_it_names_those_that_are_here(self, learnt: Learnt, project: Path) -> None:
        (project / "AGENTS.md").write_text("- Use tabs\n")

        done = learnt("import")

        assert (done.code, "`learnt import CLAUDE.md`, `learnt import AGENTS.md`" in done.err) == (2, True)

    def test_rules_come_from_stdin_too(self, learnt: Learnt) -> None:
        done = learnt("import", "-", "--yes", "--json", stdin="- Use tabs for Go code\n- Never merge at night\n")

        assert json.loads(done.out)["added"] == 2
        (first, _) = json.loads(learnt("list", "--json").out)["learnings"]
        assert first["loaded_from"] == ""

    def test_the_format_can_be_told(self, learnt: Learnt, project: Path) -> None:
        (project / "team.txt").write_text("Never merge at night.\n")

        assert learnt("import", "team.txt", "--dry-run").code == 2
        assert "+ Never merge at night" in learnt("import", "team.txt", "--format", "rules", "--dry-run").out
        assert learnt("import", "CLAUDE.md", "--as-is").code == 2

    def test_steps_are_one_learning_that_is_reworded_as_a_whole(self, learnt: Learnt, rules: Path) -> None:
        steps = (
            "1. Bump the version in `VERSION` and in `package.json`\n2. Tag the commit\n3. Push the tag to `origin`\n"
        )
        steps = f"## Release\n\n{steps}"
        rules.write_text(steps)
        assert "Imported: 1 added" in learnt("import", "CLAUDE.md", "--yes").out
        rules.write_text(steps.replace("Tag the commit", "Sign and tag the commit"))

        done = learnt("import", "CLAUDE.md", "--yes").out

        title = "Release (3 steps), first: Bump the version in `VERSION` and in `package.json`"
        assert f"~ {title}  (reworded)\n      Release:\n      1. Bump" in done
        assert "Imported: 0 added, 1 updated" in done

    @pytest.mark.parametrize("content", ["", "# Title\n", "\n\n\n"])
    def test_a_file_without_rules_is_no_error(self, learnt: Learnt, rules: Path, content: str) -> None:
        rules.write_text(content)

        done = learnt("import", "CLAUDE.md")

        assert (done.code, done.out.splitlines()[-1]) == (0, "Nothing new to take over.")

    def test_secrets_are_not_even_previewed(self, learnt: Learnt, rules: Path) -> None:
        token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
        rules.write_text(f"- Always use the token {token} for the registry\n")

        done = learnt("import", "CLAUDE.md", "--yes")

        assert token not in done.out + done.err
        assert "1 secret was redacted" in done.err
        assert token not in learnt("list", "--json").out


def test_the_answers_about_rules_keep_their_shape(outside: Outside, golden: Golden, project: Path) -> None:
    (project / "CLAUDE.md").write_text(RULES)
    outside.json("init")
    outside.json("import", "CLAUDE.md", "--dry-run")
    outside.json("import", "CLAUDE.md", "--yes")
    (project / "CLAUDE.md").write_text(RULES.replace("Rebase before", "Squash before").replace("- Never mock", "- Nie"))
    done = outside.json("import", "CLAUDE.md", "--yes")
    outside.json("undo", done["id"])

    golden.check("rules/import.txt", outside.transcript())
