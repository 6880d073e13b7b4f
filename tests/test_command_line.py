"""The command line as a person and a program use it: every command, its text, its JSON, its errors and exit codes."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from learnt import Memory
from learnt.brief.render import RENDERER
from learnt.doors.cli import COMMANDS, run
from learnt.flow.context import now_ms
from learnt.store import Store, fired
from tests.conftest import Done
from tests.support.words import tells

SECRET = "hunter2-0xDEADBEEF"
# What four learnings, A to D, show under each filter of `list`.
FILTERS = [
    ("", "CBA"),
    ("--status all", "DCBA"),
    ("--status archived", "D"),
    ("--status hidden", ""),
    ("--domain database", "A"),
    ("--category pitfall", "A"),
    ("--tag Git", "BA"),
    ("--tag ci_x", "B"),
    ("--tag %", ""),
    ("--kind gotcha", "B"),
    ("--goal reset", "B"),
    ("--min-confidence 0.7", "CB"),
    ("--scope project", "CBA"),
    ("--limit 2", "CB"),
    ("--limit 2 --offset 2", "A"),
    ("--limit 0", ""),
    ("--offset 9", ""),
    ("--tag git --min-confidence 0.5", "B"),
]


class Line:
    """The command line of one project, run in this process."""

    def __init__(self, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self._capture = capture
        self._patch = patch

    def __call__(self, *words: str, stdin: str = "") -> Done:
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        self._capture.readouterr()
        try:
            code = run(list(words))
        except SystemExit as end:  # argparse ends the process after a help page
            code = int(end.code or 0)
        out, err = self._capture.readouterr()
        return Done(code, out, err)

    def text(self, *words: str, stdin: str = "") -> str:
        """Run a command that must succeed and return what it prints."""
        done = self(*words, stdin=stdin)
        assert (done.code, done.err) == (0, ""), done.err
        return done.out

    def json(self, *words: str, stdin: str = "") -> Any:
        """Run a command that must succeed with --json and return what it prints."""
        return json.loads(self.text(*words, "--json", stdin=stdin))

    def add(self, title: str, *options: str) -> str:
        """Keep a learning and return its id."""
        return str(self.json("add", title, *options)["id"])

    def titles(self, *options: str) -> list[str]:
        """Return the titles that `list` shows."""
        return [learning["title"] for learning in self.json("list", *options)["learnings"]]

    def refused(self, *words: str, code: int = 2, stdin: str = "") -> str:
        """Run a command that must fail, with a way out and without a word on stdout; return its message."""
        done = self(*words, stdin=stdin)
        assert done.code == code, (done.out, done.err)
        assert done.out == ""
        assert_told(done)
        return done.err


class Work:
    """What the doctor says of the work in a project."""

    def __init__(self, line: Line, project: Path, programs: Path) -> None:
        self.line = line
        self.project = project
        self.programs = programs

    def install(self, name: str, folder: Path | None = None) -> Path:
        """Put a program there."""
        path = (folder or self.programs) / name
        path.touch(mode=0o755)
        return path

    def settle(self, settings: str) -> None:
        """Write the project's settings."""
        (self.project / "learnt.toml").write_text(f"{settings}\n")

    def found(self, subject: str) -> list[tuple[bool, str]]:
        """Return what the doctor finds about one part of the work."""
        findings = json.loads(self.line("doctor", "--json").out)["findings"]
        return [(one["fine"], one["detail"]) for one in findings if one["subject"] == f"work: {subject}"]


def assert_told(done: Done) -> None:
    """An error says what happened and what to do, in our words."""
    assert done.err.startswith("error: "), done.err
    assert "\nhint: " in done.err
    assert "Traceback" not in done.err


@pytest.fixture
def line(project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Line:
    """The command line in a folder that is no project yet."""
    monkeypatch.chdir(project)
    return Line(capsys, monkeypatch)


@pytest.fixture
def shop(line: Line) -> Line:
    """The command line in a project on SQLite."""
    line.text("init")
    return line


@pytest.fixture
def either(database: str, line: Line) -> Line:
    """The command line in a project, once on each database."""
    line.text("init")
    return line


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of every file below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def modes(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the permissions of a folder and of everything below it."""
    for path in (folder, *folder.rglob("*")):
        yield str(path), stat.S_IMODE(path.stat().st_mode)


def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Let $EDITOR be a script that changes `text`."""
    script = tmp_path / "editor.py"
    script.write_text(
        "import pathlib, sys\n"
        "path = pathlib.Path(sys.argv[1])\n"
        f"text = path.read_text()\n{program}\n"
        "path.write_text(text)\n"
    )
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"'{sys.executable}' '{script}'")


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script as a person types it, where redirections are what is tested."""
    return subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, text=True, check=False)


class TestInit:
    def test_it_makes_a_store_and_settings_and_a_second_time_changes_nothing(self, line: Line, project: Path) -> None:
        told = line.text("init")
        assert str(project / ".learnt/learnt.db") in told
        assert "learnt add" in told
        before = (project / "learnt.toml").read_bytes()

        again = line.json("init")
        assert again == {
            "id": str(project / ".learnt/learnt.db"),
            "database": str(project / ".learnt/learnt.db"),
            "settings": None,
        }
        assert (project / "learnt.toml").read_bytes() == before

    def test_the_store_is_out_of_gits_sight_but_learnings_for_people_are_not(self, line: Line, project: Path) -> None:
        subprocess.run(["git", "init", "-q", project], check=True)
        line.text("init")
        (project / ".learnt/learnings.md").write_text("# Learnings\n")
        status = subprocess.run(
            ["git", "status", "--short", "-uall"], cwd=project, capture_output=True, text=True, check=True
        ).stdout.split()
        assert [name for name in status if name != "??"] == [".learnt/learnings.md", "learnt.toml"]

    def test_an_address_goes_into_the_settings(self, line: Line, project: Path, postgres: Any) -> None:
        address = postgres.address(empty=True)
        assert address in line.text("init", "--database", address)
        assert f'database = "{address}"' in (project / "learnt.toml").read_text()
        line.add("Ask for a review")
        assert line.titles() == ["Ask for a review"]
        assert not (project / ".learnt/learnt.db").exists()

    @pytest.mark.parametrize("address", ["mysql://db/shop", "postgresql://anna:geheim@db/shop", "nonsense"])
    def test_a_wrong_address_leaves_no_settings_behind(self, line: Line, project: Path, address: str) -> None:
        assert "geheim" not in line.refused("init", "--database", address)
        assert list(project.iterdir()) == []

    @pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
    def test_only_the_owner_can_read_what_is_kept(
        self, learnt: Callable[..., Done], project: Path, home: Path, mask: int
    ) -> None:
        before = os.umask(mask)
        try:
            assert learnt("init").code == 0
            assert learnt("init", "--user").code == 0
            assert learnt("backup").code == 0
            with Memory.open(project) as memory:  # while it is open, the log and its index are there, too
                memory.add("Keep it to yourself")
                names = {Path(name).name for name, _ in modes(project / ".learnt")}
                assert {"learnt.db", "learnt.db-wal", "learnt.db-shm", "backups"} <= names
                found = [*modes(project / ".learnt"), *modes(home / ".local/share/learnt")]
        finally:
            os.umask(before)
        assert [(name, oct(mode)) for name, mode in found if mode not in (0o600, 0o700)] == []
        assert all((mode == 0o700) == Path(name).is_dir() for name, mode in found if Path(name).exists())


class TestAdd:
    def test_a_title_is_enough(self, shop: Line) -> None:
        told = shop.text("add", "  Run `make lint`\n before each   commit ")
        id = told.split()[1].rstrip(":")
        when = "It will be shown when `make lint` is called, once in a conversation."
        assert told == f"Added {id}: Run `make lint` before each commit\n  {when}\n"

        kept = shop.json("show", id)
        assert kept["title"] == "Run `make lint` before each commit"
        assert (kept["confidence"], kept["status"], kept["origin"], kept["scope"]) == (
            0.8,
            "active",
            "person",
            "project",
        )

    def test_every_field_has_an_option(self, either: Line) -> None:
        options = """
            --context C --observation O --implication I --action A --domain database --category pitfall --kind gotcha
            --avoid --origin agent --goal reset --task task_1 --commit abc --confidence 0.9 --tag Git --tag ci --pin
            --on-file *.sql --on-file *.py --on-command 'git push' --on-error 'no such table' --on-tool Bash
            --on-task-type bug
        """
        added = either.json("add", "Never force-push", *shlex.split(options))
        expected = {
            "context": "C",
            "observation": "O",
            "implication": "I",
            "action": "A",
            "domain": "database",
            "category": "pitfall",
            "kind": "gotcha",
            "polarity": "avoid",
            "origin": "agent",
            "goal": "reset",
            "task": "task_1",
            "commit": "abc",
            "confidence": 0.9,
            "tags": ["ci", "git"],
            "pinned": True,
            "triggers": {
                "files": ["*.sql", "*.py"],
                "commands": ["git push"],
                "errors": ["no such table"],
                "tools": ["Bash"],
                "task_types": ["bug"],
            },
        }
        assert {name: added[name] for name in expected} == expected
        shown = either.text("show", added["id"])
        for text in (
            "Never force-push",
            "Context: C",
            "Action: A",
            "ci, git",
            "database",
            "git push",
            "pinned",
            "0.90",
        ):
            assert text in shown

    def test_json_on_stdin_may_hold_one_or_many(self, shop: Line) -> None:
        one = shop.json("add", "-", stdin='{"title": "One", "tags": ["a"]}')
        assert one["tags"] == ["a"]
        many = shop.json("add", "--tag", "b", stdin='{"title": "Two"}\n\n{"title": "Three", "tags": ["c"]}\n')
        assert [learning["tags"] for learning in many] == [["b"], ["c"]]
        told = shop.text("add", "-", stdin='[{"title": "Four"}, {"title": "Five"}]')
        assert told.count("Added learn_") == 2
        assert len(shop.titles()) == 5

    def test_of_several_on_stdin_all_are_kept_or_none(self, shop: Line) -> None:
        shop.refused("add", "-", stdin='{"title": "Good"}\n{"title": ""}')
        assert shop.titles() == []

    def test_the_editor_gives_the_title_and_the_paragraphs(
        self, shop: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        editor(
            tmp_path,
            monkeypatch,
            "assert '**Context**: CI' in text\n"
            "text = text.replace('## ', '## Pin the compiler')\n"
            "text = text.replace('**Action**:', '**Action**: gcc-13\\n\\nAlways.')",
        )
        added = shop.json("add", "--edit", "--context", "CI", "--tag", "ci")
        kept = (added["title"], added["context"], added["action"], added["tags"])
        assert kept == ("Pin the compiler", "CI", "gcc-13\n\nAlways.", ["ci"])

    @pytest.mark.parametrize(
        "program",
        ["text = ''", "text = '## ' + 'long ' * 30 + SECRET", "text = '## A\\n\\n## B ' + SECRET"],
        ids=["emptied", "title too long", "two entries"],
    )
    def test_what_was_written_in_the_editor_is_never_lost(
        self, shop: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
    ) -> None:
        drafts = tmp_path / "drafts"
        drafts.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(drafts))
        editor(tmp_path, monkeypatch, program.replace("SECRET", repr(SECRET)))
        told = shop.refused("add", "--edit")
        (draft,) = drafts.iterdir()
        assert str(draft) in told
        assert (SECRET in draft.read_text()) == ("SECRET" in program)
        assert shop.titles() == []

    def test_an_editor_that_fails_or_is_missing_changes_nothing(
        self, shop: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        editor(tmp_path, monkeypatch, "sys.exit(3)")
        assert "code 3" in shop.refused("add", "Title", "--edit")
        monkeypatch.setenv("EDITOR", "no-such-editor")
        assert "no-such-editor" in shop.refused("add", "Title", "--edit")
        assert shop.titles() == []

    @pytest.mark.parametrize(
        ("words", "stdin", "said"),
        [
            ([], "", "title"),
            ([""], "", "title"),
            (["x" * 101], "", "101"),
            (["-"], "{bad", "JSON"),
            (["-"], "[1]", "object"),
            (["-"], '{"titel": "Typo"}', "titel"),
            (["-"], '{"title": 7}', "title"),
            (["-"], '{"title": "T", "tags": "git"}', "tags"),
            (["-"], '{"title": "T", "status": "archived"}', "status"),
            (["-"], "[" * 100_000, "nested"),
            (["T", "--kind", "wisdom"], "", "wisdom"),
            (["T", "--confidence", "2"], "", "confidence"),
            (["T", "--confidence", "much"], "", "much"),
            (["T", "--goal", "../etc"], "", "goal"),
            (["T", "--tag", " "], "", "tag"),
            (["T", "--nonsense"], "", "nonsense"),
            (["T", "--do", "--avoid"], "", "--do"),
            (["T", "--action", "x" * 20_001], "", "20,001"),
        ],
    )
    def test_a_wrong_request_says_what_is_wrong_and_writes_nothing(
        self, shop: Line, project: Path, words: list[str], stdin: str, said: str
    ) -> None:
        before = listing(project)
        assert said in shop.refused("add", *words, stdin=stdin)
        assert listing(project) == before


class TestList:
    @pytest.fixture
    def stocked(self, either: Line) -> Line:
        records = [
            {"title": "A", "tags": ["git"], "domain": "database", "category": "pitfall", "confidence": 0.3},
            {"title": "B", "tags": ["git", "ci_x"], "kind": "gotcha", "goal": "reset"},
            {"title": "C", "tags": ["github", "ciax"], "polarity": "avoid", "pinned": True},
        ]
        for record in records:
            either.json("add", "-", stdin=json.dumps(record))
        either.text("archive", either.add("D"))
        return either

    def test_each_filter_and_page(self, stocked: Line) -> None:
        for options, titles in FILTERS:
            assert (options, "".join(stocked.titles(*options.split()))) == (options, titles)

    def test_in_a_pipe_each_learning_is_one_plain_line(self, stocked: Line) -> None:
        done = stocked("list", "--limit", "2", "--status", "all")
        lines = done.out.splitlines()
        assert len(lines) == 2
        assert lines[0].endswith("0.80  D  [archived]")
        assert lines[1].endswith("0.80  Avoid: C  [pinned, #ciax, #github]")
        assert "2 of 4" in done.err
        assert "--offset 2" in done.err
        assert "\x1b" not in done.out + done.err
        assert stocked.json("list", "--limit", "1")["total"] == 3

    def test_an_empty_list_says_so_beside_the_result(self, stocked: Line) -> None:
        done = stocked("list", "--tag", "none")
        assert (done.code, done.out) == (0, "")
        assert "No learnings match" in done.err
        assert stocked.json("list", "--tag", "none") == {"learnings": [], "total": 0}

    @pytest.mark.parametrize(
        "options",
        [
            ["--limit", "-1"],
            ["--offset", "-1"],
            ["--limit", "x"],
            ["--scope", "elsewhere"],
            ["--status", "gone"],
            ["--kind", "wisdom"],
            ["surplus"],
        ],
    )
    def test_a_wrong_filter_is_refused(self, shop: Line, options: list[str]) -> None:
        shop.refused("list", *options)

    def test_a_limit_beyond_all_bounds_shows_everything_or_is_refused(self, either: Line) -> None:
        either.add("A")
        for number in ("9223372036854775807", "99999999999999999999"):
            for options in (["--limit", number], ["--limit", number, "--offset", "1"], ["--offset", number]):
                done = either("list", *options)
                assert done.code in (0, 2), done.err
                assert "Traceback" not in done.err


class TestChanges:
    def test_edit_changes_the_named_fields_alone(self, either: Line) -> None:
        id = either.add("Old title", "--action", "keep me", "--tag", "a", "--tag", "b")
        told = either.text("edit", id, "--title", "New title", "--add-tag", "C", "--drop-tag", "A", "--reason", "why")
        assert told == f"Edited {id}: New title\n"
        kept = either.json("show", id)
        assert (kept["title"], kept["action"], kept["tags"], kept["version"]) == (
            "New title",
            "keep me",
            ["b", "c"],
            2,
        )

        assert either.text("edit", id, "--title", "New title") == f"Nothing changed: {id}: New title\n"
        assert either.json("edit", id, "--on-file", "*.py")["triggers"] == {"files": ["*.py"]}
        assert either.json("edit", id, "--action", "")["action"] == ""
        assert [event["what"] for event in either.json("history", id)] == ["add", "edit", "edit", "edit"]

    def test_edit_in_the_editor_shows_and_takes_the_text(
        self, shop: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        id = shop.add("Title", "--context", "Then", "--observation", "## not a heading\n\\## nor this", "--tag", "a")
        editor(tmp_path, monkeypatch, "")
        assert shop.text("edit", id, "--edit") == f"Nothing changed: {id}: Title\n"
        editor(tmp_path, monkeypatch, "text = text.replace('Then', '').replace('## Title', '## Other')")
        after = shop.json("edit", id, "--edit")
        assert (after["title"], after["context"], after["tags"]) == ("Other", "", ["a"])
        assert after["observation"] == "## not a heading\n\\## nor this"

    def test_edit_without_anything_to_change_is_refused(self, shop: Line) -> None:
        id = shop.add("Title")
        assert "--title" in shop.refused("edit", id)
        assert "hint" in shop.refused("edit", id, "--title", "")

    def test_archive_hide_and_restore(self, shop: Line) -> None:
        id = shop.add("Title")
        for verb, said, status in (("archive", "Archived", "archived"), ("hide", "Hid", "hidden")):
            assert shop.text(verb, id, "--reason", "old") == f"{said} {id}: Title\n"
            assert "already done" in shop.text(verb, id)
            assert shop.json("show", id)["status"] == status
            assert shop.titles() == []
            assert shop.json("restore", id)["status"] == "active"
            assert shop.titles() == ["Title"]
        assert shop.text("hide", id).startswith("Hid ")
        assert shop.text("restore", id) == f"Restored {id}: Title\n"

    def test_a_person_likes_a_learning_once(self, either: Line, monkeypatch: pytest.MonkeyPatch) -> None:
        id = either.add("Title")
        assert either.text("like", id) == f"Liked {id}: Title\n"
        assert "already done" in either.text("like", id)
        assert either.json("like", id)["confidence"] == 0.85
        monkeypatch.setenv("LEARNT_PERSON", "ben")
        assert either.json("like", id)["confidence"] == 0.9
        assert [event["who"] for event in either.json("history", id)] == ["anna", "anna", "ben"]

    def test_pin_and_unpin(self, shop: Line) -> None:
        id = shop.add("Title")
        assert shop.text("pin", id) == f"Pinned {id}: Title\n"
        assert "already done" in shop.text("pin", id)
        assert "[pinned]" in shop.text("list")
        assert shop.text("pin", id, "--off") == f"Unpinned {id}: Title\n"
        assert shop.json("pin", id, "--off")["pinned"] is False

    def test_supersede_replaces_the_old_by_the_new(self, either: Line) -> None:
        old, new, newest = either.add("Old"), either.add("New"), either.add("Newest")
        assert old in either.text("supersede", old, new)
        assert either.json("supersede", new, newest)["superseded_by"] == newest
        assert either.titles() == ["Newest"]
        assert either.json("show", new)["supersedes"] == [old]
        assert new in either.text("show", old)
        for wrong in ([newest, old], [old, old]):
            assert "supersede" in either.refused("supersede", *wrong)
        assert "learn_none" in either.refused("supersede", newest, "learn_none")
        assert either.json("restore", old)["superseded_by"] == ""

    def test_the_successor_may_be_gone_without_a_trace(self, shop: Line) -> None:
        old, new, other = shop.add("Old"), shop.add("New"), shop.add("Other")
        shop.text("supersede", old, new)
        shop.text("purge", new, "--yes")
        assert shop.json("supersede", other, old)["superseded_by"] == old

    def test_an_unknown_id_is_refused_by_every_command_that_takes_one(self, shop: Line, project: Path) -> None:
        shop.add("Title")
        before = listing(project)
        for verb in ("show", "history", "archive", "restore", "hide", "like", "pin", "undo", "purge"):
            assert "learn_none" in shop.refused(verb, "learn_none")
            assert verb == "show" or "id" in shop.refused(verb).lower()
        shop.refused("edit", "learn_none", "--title", "X")
        shop.refused("supersede", "learn_none", "learn_none")
        assert "event_none" in shop.refused("undo", "event_none")
        assert listing(project) == before

    def test_any_word_may_be_given_as_an_id_or_a_filter(self, either: Line) -> None:
        either.add("Title")
        for word in ("learn_'; drop table learning; --", "x" * 1000, "日本", "%s %(id)s :id", "\udcff"):
            for verb in ("show", "archive", "undo"):
                assert either(verb, word).code == 2
            for option in ("--domain", "--tag", "--goal"):
                done = either("list", option, word)
                assert (done.code, done.out) == (0, "")
        assert either.titles() == ["Title"]


class TestHistoryAndUndo:
    def test_history_reads_like_a_diff(self, shop: Line) -> None:
        id = shop.add("Old title", "--action", "one\ntwo\nthree", "--tag", "a")
        shop.text("edit", id, "--title", "New title", "--action", "one\n2\nthree", "--add-tag", "b", "--reason", "Why")
        shop.text("archive", id)
        told = shop.text("history", id)
        for text in (
            "anna  add",
            "+ title: Old title",
            "anna  edit (Why)",
            "- title: Old title",
            "+ title: New title",
            "- action: two",
            "+ action: 2",
            "- tags: a",
            "+ tags: a, b",
            "- status: active",
            "+ status: archived",
        ):
            assert text in told
        assert "- action: one" not in told.split("edit")[1]
        events = shop.json("history", id)
        assert [event["version"] for event in events] == [1, 2, 3]
        assert all(event["id"].startswith("event_") and event["subject"] == id for event in events)
        assert events[2]["old"] == {"status": "active"}
        assert events[2]["new"] == {"status": "archived"}

    def test_repeated_undo_walks_back_to_the_beginning(self, either: Line) -> None:
        id = either.add("One", "--tag", "a")
        either.text("edit", id, "--title", "Two")
        either.text("edit", id, "--title", "Three", "--add-tag", "b")
        either.text("pin", id)

        assert either.json("undo", id)["pinned"] is False
        told = either.text("undo", id, "--reason", "wrong")
        assert told.startswith("Undid event_")
        assert "title: Two" in told
        assert either.json("show", id)["tags"] == ["a"]
        assert either.json("undo", id)["title"] == "One"
        assert either.json("undo", id)["status"] == "archived"
        assert "already been undone" in either.refused("undo", id)
        assert "undo event_" in either.text("history", id)

    def test_an_event_can_be_undone_unless_a_later_change_builds_on_it(self, shop: Line) -> None:
        id = shop.add("One")
        shop.text("edit", id, "--title", "Two")
        shop.text("edit", id, "--action", "Act")
        shop.text("edit", id, "--title", "Three")
        _, title, action, _ = [event["id"] for event in shop.json("history", id)]

        assert shop.json("undo", action)["action"] == ""
        refusal = shop.refused("undo", title)
        assert "title" in refusal
        assert title in refusal
        assert shop.json("show", id)["title"] == "Three"
        assert len(shop.json("history", id)) == 5

    def test_an_undo_can_be_undone(self, shop: Line) -> None:
        id = shop.add("One")
        shop.text("edit", id, "--title", "Two")
        assert shop.json("undo", id)["title"] == "One"
        redo = shop.json("history", id)[-1]["id"]
        assert shop.json("undo", redo)["title"] == "Two"

    def test_what_was_redone_is_the_last_change_again(self, shop: Line) -> None:
        id = shop.add("One")
        shop.text("edit", id, "--title", "Two")
        shop.text("undo", id)
        shop.text("undo", shop.json("history", id)[-1]["id"])
        after = shop.json("undo", id)
        assert (after["title"], after["status"]) == ("One", "active")

    def test_undoing_the_addition_puts_the_learning_away_and_can_be_undone(self, shop: Line) -> None:
        id = shop.add("One")
        assert shop.json("undo", id)["status"] == "archived"
        assert shop.json("undo", shop.json("history", id)[-1]["id"])["status"] == "active"

    def test_an_undo_that_changes_nothing_says_so(self, shop: Line) -> None:
        id = shop.add("One")
        shop.text("archive", id)
        done = shop("undo", shop.json("history", id)[0]["id"])
        assert "Undid  of" not in done.out
        assert len(shop.json("history", id)) == 2

    def test_an_empty_id_is_not_taken_for_none(self, shop: Line) -> None:
        done = shop("undo", "")
        assert (done.code, "the id is empty" in done.err) == (2, True)

    def test_a_like_that_was_taken_back_can_be_given_again(self, shop: Line) -> None:
        id = shop.add("One")
        shop.text("like", id)
        assert shop.json("undo", id)["confidence"] == 0.8
        assert shop.json("like", id)["confidence"] == 0.85


class TestExportAndImport:
    @pytest.fixture
    def stocked(self, either: Line) -> Line:
        id = either.add("Ünïcode → `code` <!-- -->", "--action", "a\n\n## b\n**Context**: c", "--tag", "x--y>")
        either.text("edit", id, "--on-command", "git push --force")
        either.text("supersede", either.add("Old"), id)
        either.text("like", either.add("Liked", "--avoid", "--pin", "--context", "# h\n\n- list"))
        return either

    def test_what_goes_out_comes_in_the_same_with_the_same_ids(
        self, stocked: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        texts = {format: stocked.text("export", "--format", format) for format in ("jsonl", "markdown")}
        for format, text in texts.items():
            imported = stocked.json("import", "-", "--format", format, stdin=text)
            assert imported == {"id": imported["id"], "added": 0, "updated": 0, "unchanged": 3, "kept": 0}
        for format, text in texts.items():
            other = tmp_path / format
            other.mkdir()
            monkeypatch.chdir(other)
            stocked.text("init")
            (other / "file").write_text(text)
            assert tells(stocked.text("import", "file", "--as-is"), "3 added", "0 updated", "0 unchanged")
            assert tells(stocked.text("import", "file", "--as-is"), "0 added", "0 updated", "3 unchanged")
            assert {format: stocked.text("export", "--format", format) for format in texts} == texts

    def test_export_writes_one_object_a_line_or_a_file_and_filters_by_status(
        self, stocked: Line, project: Path
    ) -> None:
        records = [json.loads(text) for text in stocked.text("export").splitlines()]
        assert [record["title"] for record in records] == ["Ünïcode → `code` <!-- -->", "Old", "Liked"]
        assert stocked.text("export", "--json") == stocked.text("export")
        done = stocked("export", "--output", "out.jsonl", "--status", "superseded")
        assert (done.code, done.out) == (0, "")
        assert "out.jsonl" in done.err
        assert [json.loads(text)["title"] for text in (project / "out.jsonl").read_text().splitlines()] == ["Old"]
        stocked.refused("export", "--output", "learnt.toml/x", code=2)

    def test_an_edited_markdown_file_updates_the_store(self, shop: Line, project: Path) -> None:
        id = shop.add("Title", "--action", "once", "--tag", "a")
        file = project / "learnings.md"
        text = shop.text("export", "--format", "markdown")
        file.write_text(text.replace("once", "twice").replace("Title", "New"))
        assert shop.json("import", str(file))["kept"] == 1
        assert shop.json("import", str(file), "--as-is")["updated"] == 1
        kept = shop.json("show", id)
        assert (kept["title"], kept["action"], kept["tags"]) == ("New", "twice", ["a"])
        assert shop.json("undo", id)["title"] == "Title"

    def test_a_version_that_is_newer_in_the_store_is_kept(
        self, shop: Line, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        id = shop.add("Title")
        text = shop.text("export").replace("Title", "From the file")
        monkeypatch.setattr("learnt.flow.context.now_ms", lambda: now_ms() + 3_600_000)
        shop.text("edit", id, "--title", "From the store")
        done = shop("import", "-", "--as-is", stdin=text)
        assert done.code == 0
        assert "version was kept: 1" in done.err
        assert shop.json("import", "-", "--as-is", stdin=text)["kept"] == 1
        assert shop.titles() == ["From the store"]

    @pytest.mark.parametrize(
        "text",
        ['{"title": "Title", "action": "Act"}\n', "# Notes\n\n## Title\n\n**Action**: Act\n"],
        ids=["json", "md"],
    )
    def test_an_entry_without_an_id_gets_one_that_stays(self, shop: Line, text: str) -> None:
        assert shop.json("import", "-", stdin=text)["added"] == 1
        (learning,) = shop.json("list")["learnings"]
        assert (learning["origin"], learning["confidence"], learning["action"]) == ("import", 0.5, "Act")
        again = shop.json("import", "-", stdin=text)
        assert again == {"id": again["id"], "added": 0, "updated": 0, "unchanged": 1, "kept": 0}
        assert len(shop.json("history", learning["id"])) == 1

    def test_a_second_import_of_a_plain_file_takes_back_nothing_that_was_done_since(self, shop: Line) -> None:
        text = "## Title\n\nSeen twice.\n"
        shop.text("import", "-", stdin=text)
        (learning,) = shop.json("list")["learnings"]
        shop.text("edit", learning["id"], "--tag", "mine")
        shop.text("archive", learning["id"])
        shop("import", "-", stdin=text)
        kept = shop.json("show", learning["id"])
        assert (kept["status"], kept["tags"], kept["created_at"]) == ("archived", ["mine"], learning["created_at"])

    @pytest.mark.parametrize(
        "bad",
        [
            "{bad",
            '{"title": ""}',
            '{"title": "T", "colour": "red"}',
            '{"title": "T", "id": "nonsense"}',
            '{"title": "T", "created_at": null}',
            '{"title": "T", "times_injected": null}',
            '{"title": "T", "created_at": 99999999999999999999999}',
            '{"title": "T", "created_at": true}',
            '{"title": "T", "status": "gone"}',
            '{"title": "T", "confidence": NaN}',
            '{"title": "T", "superseded_by": "learn_x"}',
            "7",
        ],
    )
    def test_a_bad_line_is_named_and_nothing_is_taken_in(self, shop: Line, bad: str) -> None:
        good = [json.dumps({"title": f"Good {number}"}) for number in range(2)]
        shop.refused("import", "-", stdin="\n".join([*good, bad]))
        assert shop.titles() == []

    def test_a_bad_line_at_the_end_of_a_long_file_leaves_nothing_behind(self, shop: Line) -> None:
        good = [json.dumps({"title": f"Good {number}"}) for number in range(600)]
        assert "line 601" in shop.refused("import", "-", stdin="\n".join([*good, "{bad"]))
        assert shop.json("list")["total"] == 0

    @pytest.mark.parametrize(
        ("name", "content", "said"),
        [
            ("missing.jsonl", None, "missing.jsonl"),
            ("notes.md", b"no headings", "notes.md"),
            ("latin.jsonl", '{"title": "Café"}'.encode("latin-1"), "UTF-8"),
            ("notes.md", b"## T\n<!-- learnt: {bad -->\n", "JSON"),
            ("notes.md", b"## T\n<!-- learnt: [1] -->\n", "JSON object"),
            (".", None, "."),
        ],
    )
    def test_a_file_that_cannot_be_read_is_refused(
        self, shop: Line, project: Path, name: str, content: bytes | None, said: str
    ) -> None:
        if content is not None:
            (project / name).write_bytes(content)
        assert said in shop.refused("import", name)
        assert shop.titles() == []

    def test_text_for_programs_is_valid_whatever_the_encoding_of_the_pipe(
        self, shop: Line, learnt: Callable[..., Done]
    ) -> None:
        shop.add("Café → 日本")
        ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
        assert json.loads(learnt("export", env=ascii_only).out)["title"] == "Café → 日本"
        listed = json.loads(learnt("list", "--json", env=ascii_only).out)["learnings"]
        assert listed[0]["title"] == "Café → 日本"
        assert learnt("list", env=ascii_only).code == 0


class TestPurgeAndBackup:
    def test_a_purged_text_is_nowhere_any_more(self, shop: Line, project: Path) -> None:
        id = shop.add("Title", "--action", SECRET)
        other = shop.add("Other", "--action", "bystander")
        shop.text("edit", id, "--title", f"Use {SECRET}", "--reason", SECRET)
        shop.text("edit", id, "--action", "harmless", "--title", "Harmless")
        shop.text("supersede", id, other)
        shop.text("backup")
        shop.text("backup")
        with Memory.open(project) as memory:
            _spool(memory.context.store, {"learning": id, "text": SECRET})
            memory.add("Keeps the log full", action="x" * 20_000)
        assert any(SECRET.encode() in content for content in contents(project / ".learnt").values())

        told = shop.text("purge", id, "--yes")
        assert id in told
        assert "contained it: 2" in told
        assert [name for name, content in contents(project).items() if SECRET.encode() in content] == []
        assert "learn_" in shop.refused("show", id)
        assert shop.json("show", other)["action"] == "bystander"
        assert len(shop.titles()) == 2

    def test_a_purge_while_another_process_reads_still_empties_the_log_or_says_so(
        self, shop: Line, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        id = shop.add("Title", "--action", SECRET)
        shop.text("backup")
        monkeypatch.setenv("LEARNT_WAIT_MS", "50")
        reader = apsw.Connection(str(project / ".learnt/learnt.db"))
        reader.execute("begin; select count(*) from learning").fetchall()
        done = shop("purge", id, "--yes")
        reader.close()
        assert done.code == 3
        assert_told(done)
        # The advice is to run the same command again; it must then finish the work.
        shop("purge", id, "--yes")
        assert [name for name, content in contents(project).items() if SECRET.encode() in content] == []

    def test_a_purge_reaches_the_rest_of_a_backup_that_was_cut_off(self, shop: Line, project: Path) -> None:
        id = shop.add("Title", "--action", SECRET)
        backup = Path(shop.json("backup")["path"])
        backup.rename(backup.with_suffix(".db.unfinished"))
        shop.text("purge", id, "--yes")
        assert [name for name, content in contents(project).items() if SECRET.encode() in content] == []

    def test_purge_on_either_database_leaves_the_others(self, either: Line) -> None:
        id, other = either.add("Title"), either.add("Other")
        either.text("backup")
        assert either.json("purge", id, "--yes") == {"id": id, "backups": 1}
        assert [learning["id"] for learning in either.json("list", "--status", "all")["learnings"]] == [other]

    def test_a_backup_opens_as_the_store_of_another_project(
        self, either: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        id = either.add("Title", "--tag", "a")
        either.text("edit", id, "--title", "Better")
        history = either.json("history", id)
        backup = Path(either.text("backup").removeprefix("Backed up to ").strip())
        assert stat.S_IMODE(backup.stat().st_mode) == 0o600

        other = tmp_path / "other"
        (other / ".learnt").mkdir(parents=True)
        shutil.copy(backup, other / ".learnt/learnt.db")
        monkeypatch.chdir(other)
        assert either.json("history", id) == history
        assert either.json("undo", id)["title"] == "Title"
        assert either("doctor").out.count("ok") > 3

    def test_a_backup_has_a_name_of_its_own_and_never_overwrites(self, shop: Line, project: Path) -> None:
        shop.add("Title")
        first, second = shop.json("backup"), shop.json("backup")
        assert first["id"] != second["id"]
        assert Path(first["path"]).parent == project / ".learnt/backups"
        assert shop.json("backup", "--output", "deep/er/copy.db")["path"].endswith("copy.db")
        assert "exists" in shop.refused("backup", "--output", "deep/er/copy.db")
        assert sorted(path.name for path in (project / "deep/er").iterdir()) == ["copy.db"]

    def test_a_backup_that_cannot_be_written_is_told(self, shop: Line) -> None:
        done = shop("backup", "--output", "learnt.toml/copy.db")
        assert done.code in (1, 2)
        assert_told(done)


def _spool(store: Store, body: dict[str, Any]) -> None:
    """Let a record wait that this version cannot apply."""
    from learnt.store.spool import SpoolRecord

    store.spool.append(SpoolRecord("op_1", "unknown", 1, body))


class TestUserWideStore:
    def test_its_learnings_are_read_along_everywhere_and_edits_reach_it(
        self, shop: Line, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert "init --user" in shop.refused("add", "X", "--user")
        assert not (home / ".local" / "share" / "learnt" / "learnt.db").exists()
        assert str(home / ".local/share/learnt/learnt.db") in shop.text("init", "--user")
        id = shop.add("True everywhere", "--user")
        shop.add("True here")
        assert "True everywhere  [user]" in shop.text("list")
        assert [learning["scope"] for learning in shop.json("list")["learnings"]] == ["project", "user"]
        assert shop.titles("--user") == ["True everywhere"]
        assert shop.titles("--scope", "user") == ["True everywhere"]
        assert shop.titles("--scope", "project") == ["True here"]
        assert "from user" in shop.text("show", id)

        assert shop.json("edit", id, "--title", "True at home")["scope"] == "user"
        assert shop.json("like", id, "--user")["confidence"] == 0.85
        assert shop.json("undo", shop.json("history", id)[-1]["id"])["confidence"] == 0.8
        assert "True at home" in shop.text("export", "--user")
        assert "True at home" not in shop.text("export")
        monkeypatch.chdir(tmp_path)
        assert shop.titles("--user") == ["True at home"]
        assert shop.json("purge", id, "--yes", "--user")["id"] == id
        assert shop.titles("--user") == []

    def test_it_can_be_left_out_by_a_setting(self, shop: Line, monkeypatch: pytest.MonkeyPatch) -> None:
        shop.text("init", "--user")
        shop.add("True everywhere", "--user")
        monkeypatch.setenv("LEARNT_USER_STORE", "false")
        assert shop.titles() == []
        assert shop.titles("--user") == ["True everywhere"]


class TestSources:
    @pytest.fixture
    def other(self, shop: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        """A learning in another project that the shop reads along."""
        return self._source(shop, tmp_path / "design-system", monkeypatch)

    @staticmethod
    def _source(shop: Line, folder: Path, monkeypatch: pytest.MonkeyPatch, settings: str = "") -> str:
        project = Path.cwd()
        folder.mkdir()
        (folder / "learnt.toml").write_text(settings)
        monkeypatch.chdir(folder)
        shop.text("init")
        id = shop.add("Use the grid", "--action", "grid")
        monkeypatch.chdir(project)
        (project / "learnt.toml").write_text(f'sources = ["../{folder.name}"]\n')
        return id

    def test_its_learnings_are_listed_under_its_name_and_never_written(
        self, shop: Line, other: str, tmp_path: Path
    ) -> None:
        shop.add("Own")
        before = contents(tmp_path / "design-system")
        assert "Use the grid  [design-system]" in shop.text("list")
        assert shop.titles("--scope", "design-system") == ["Use the grid"]
        assert "from design-system" in shop.text("show", other)
        assert len(shop.json("history", other)) == 1
        assert "Use the grid" not in shop.text("export")
        for words in (
            ["edit", other, "--title", "X"],
            ["archive", other],
            ["like", other],
            ["pin", other],
            ["undo", other],
            ["undo", shop.json("history", other)[0]["id"]],
            ["purge", other, "--yes"],
        ):
            assert "design-system" in shop.refused(*words)
        assert shop("doctor").code == 0
        assert contents(tmp_path / "design-system") == before

    @pytest.mark.parametrize("name", ["user", "project"])
    def test_a_source_is_only_read_whatever_its_folder_is_called(
        self, shop: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        id = self._source(shop, tmp_path / name, monkeypatch)
        assert "read-only" in shop.refused("edit", id, "--title", "X")

    @pytest.mark.parametrize("name", ["user", "design-system"])
    def test_a_source_on_a_server_is_only_read_too(
        self, shop: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: Any, name: str
    ) -> None:
        settings = f'database = "{postgres.address()}"\n'
        id = self._source(shop, tmp_path / name, monkeypatch, settings)
        shop.refused("edit", id, "--title", "X")
        assert shop.json("show", id)["title"] == "Use the grid"

    def test_a_project_that_names_itself_lists_its_learnings_once(self, shop: Line, project: Path) -> None:
        shop.add("Own")
        (project / "learnt.toml").write_text('sources = ["."]\n')
        assert shop.titles() == ["Own"]

    def test_a_source_that_is_missing_or_has_no_store_is_named_and_left_out(
        self, shop: Line, project: Path, tmp_path: Path
    ) -> None:
        shop.add("Ours")
        (tmp_path / "bare").mkdir()
        (tmp_path / "bare/learnt.toml").touch()
        for name in ("nowhere", "bare"):
            (project / "learnt.toml").write_text(f'sources = ["../{name}"]\n')
            done = shop("list")
            assert (done.code, "Ours" in done.out, name in done.err) == (0, True, True)
            assert shop("doctor").code == 1
        assert list((tmp_path / "bare").iterdir()) == [tmp_path / "bare/learnt.toml"]


class TestDoctorDemoAndHelp:
    def test_the_doctor_finds_nothing_wrong_with_a_healthy_store(self, either: Line) -> None:
        either.add("Title")
        told = either.text("doctor")
        assert "1 learning," in told
        assert "!!" not in told
        report = either.json("doctor")
        assert report["fine"] is True
        assert {"subject", "fine", "detail", "remedy", "facts"} == set(report["findings"][0])

    def test_the_doctor_names_what_is_wrong_and_the_remedy(self, shop: Line, project: Path) -> None:
        (project / ".learnt/learnt.db").chmod(0o644)
        with Memory.open(project) as memory:
            _spool(memory.context.store, {})
        done = shop("doctor")
        assert done.code == 1
        assert "chmod" in done.out
        assert "1 record pending\n    `learnt list` applies them" in done.out
        shop("list")
        assert "pending" not in shop("doctor").out
        (project / ".learnt/hook.log").write_text("")
        assert "the log is empty" in shop("doctor").out
        (project / ".learnt/hook.log").write_text("2024-01-01 it failed\n")
        assert "1 entry in the log" in shop("doctor").out
        (project / ".learnt/hook.log").write_text("2024-01-01T00:00:00Z JSONDecodeError: at doors/hook.py:92\n")
        assert tells(shop("doctor").out, "client", "JSON", "doors/hook.py:92")
        (project / ".learnt/hook.log").write_text("2024-01-01T00:00:00Z KeyError: at clients/events.py:9\n")
        assert tells(shop("doctor").out, "learnt", "KeyError", "clients/events.py:9")
        self.check_alarms_that_are_over(shop, project / ".learnt")
        (project / ".learnt/learnt.db").write_bytes(b"this is no database" * 100)
        report = json.loads(shop("doctor", "--json").out)
        assert report["fine"] is False
        assert any("damaged" in finding["detail"] and finding["remedy"] for finding in report["findings"])
        (project / "learnt.toml").write_text("colour = 1\n")
        assert "did you mean `color`?" in shop("doctor").out

    def check_alarms_that_are_over(self, shop: Line, store: Path) -> None:
        """See what the doctor says of a hook and a worker that failed, and of the same when it is over."""
        hour = datetime.now(UTC) - timedelta(hours=1)
        (store / "hook.log").write_text(f"{hour:%Y-%m-%dT%H:%M:%SZ} TryAgain: the event did not end within 400 ms\n")
        (store / "worker.log").write_text(f"{hour:%Y-%m-%dT%H:%M:%SZ} the database cannot be written to\n")

        def found() -> dict[str, dict[str, Any]]:
            return {one["subject"]: one for one in json.loads(shop("doctor", "--json").out)["findings"]}

        with Memory.open(store.parent) as memory:
            _spool(memory.context.store, {})
        assert not found()["store: hook"]["fine"]
        assert not found()["store: worker"]["fine"]
        assert found()["store: hook"]["detail"].endswith("Z the event did not end within 400 ms")
        for spool in store.glob("spool*"):
            spool.unlink()
        fired.note(str(store), "claude", "prompt", now_ms(), 1.0, 1)
        assert found()["store: hook"]["detail"].endswith("; hooks have answered since")
        assert found()["store: hook"]["fine"]
        assert found()["store: worker"]["fine"]

    def test_a_read_only_store_is_named_beside_one_that_others_read(self, shop: Line, project: Path) -> None:
        database, access = project / ".learnt/learnt.db", os.access
        database.chmod(0o444)
        with pytest.MonkeyPatch.context() as patch:  # whoever runs the tests may write everything
            patch.setattr(os, "access", lambda path, mode: access(path, mode) and str(path) != str(database))
            told = shop("doctor").out
        assert (
            f"{project}/.learnt is read-only, so that hooks say nothing and record nothing\n    `chmod -R u+w " in told
        )
        assert f"others can read {database}\n    `chmod -R go= " in told

    def test_the_doctor_changes_nothing(self, shop: Line, project: Path) -> None:
        shop.add("Title")
        before = listing(project)
        shop.text("doctor")
        assert listing(project) == before

    def test_the_doctor_works_outside_any_project(self, line: Line, project: Path) -> None:
        done = line("doctor")
        assert done.code == 1
        assert "learnt init" in done.out
        assert list(project.iterdir()) == []

    @pytest.fixture
    def work(self, shop: Line, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
        """A project with nothing but a made-up agent on PATH."""
        programs = tmp_path / "programs"
        programs.mkdir()
        monkeypatch.setenv("PATH", str(programs))
        return Work(shop, project, programs)

    def test_an_agent_that_is_missing_is_wrong_only_while_there_is_something_to_do(self, work: Work) -> None:
        [(fine, told)] = work.found("agent")
        assert (fine, tells(told, "`claude`", "PATH", "no open task")) == (True, True)
        task = work.line.json("task", "add", "Anything")["id"]
        [(fine, told)] = work.found("agent")
        assert (fine, tells(told, "`claude`", "PATH"), "no open task" in told) == (False, True, False)
        assert "install it" in work.line("doctor").out
        program = work.install("claude")
        assert work.found("agent") == [(True, f"claude is {program}")]
        program.unlink()
        work.line.text("task", "cancel", task)
        assert work.line("doctor").code == 0

    @pytest.mark.parametrize(
        ("command", "found"),
        [
            ("agent --model {model}", (True, "command is {programs}/agent")),
            ("./agent", (False, "`./agent` is missing, or not executable")),
            ("bin/agent", (True, "command is {project}/bin/agent")),
            ("", (False, "no command is set for the agent `command`")),
            ("agent 'open", (False, "the command line `agent 'open` cannot be read: No closing quotation")),
        ],
    )
    def test_the_doctor_looks_for_the_first_word_of_a_command(
        self, work: Work, command: str, found: tuple[bool, str]
    ) -> None:
        work.install("agent")
        (work.project / "bin").mkdir()
        work.install("agent", work.project / "bin")
        work.line.text("task", "add", "Anything")
        work.settle(f'work.agent = "command"\nwork.command = "{command}"')
        detail = found[1].format(programs=work.programs, project=work.project)
        assert work.found("agent") == [(found[0], detail)]

    def test_templates_that_no_task_uses_or_that_hide_the_task_are_told(self, work: Work) -> None:
        work.line.text("task", "add", "Anything", "--type", "paint")
        folder = work.project / ".learnt" / "prompts"
        folder.mkdir()
        for name in ("paint.md", "implement.md", "sigils.md"):
            (folder / name).write_text("Take care.\n")
        (folder / "task.md").write_text("Do this: ${title}\n$sigils\n")
        assert work.found("prompts") == []
        for name in ("pant.md", "review.txt"):
            (folder / name).write_text("Take care.\n")
        (folder / "task.md").write_text("Do something.\n$sigils\n")
        details = [detail for fine, detail in work.found("prompts") if not fine]
        assert [detail.split(" ", 1)[0].rpartition("/")[2] for detail in details] == [
            "pant.md",
            "review.txt",
            "task.md",
        ]
        assert "neither $title nor $text" in details[-1]

    def test_worktrees_need_git_and_a_repository(self, work: Work) -> None:
        work.install("claude")
        work.line.text("task", "add", "Anything")
        assert work.found("git") == []
        work.settle('work.isolation = "worktree"')
        assert [fine for fine, _ in work.found("git")] == [False]
        git = work.install("git")
        assert "not a git repository" in work.found("git")[0][1]
        (work.project / ".git").mkdir()
        assert work.found("git") == [(True, str(git))]

    @pytest.mark.parametrize(
        ("settings", "fine", "detail"),
        [
            ("", True, "the client's own default"),
            ('models = ["small", "large"]', True, "`learned` chooses from small, large"),
            ('strategy = "fixed"\nwork.model = "small"', True, "small"),
            ('strategy = "fixed"\nwork.model = "large"\nmodels = ["small"]', False, "model `large` is not configured"),
            ('work.model = "small"', True, "small"),
            ('work.model = "s"\nmodels = ["s", "l"]', False, "the strategy `learned` ignores it"),
            ('models = ["s", "l"]\nwork.arguments = ["--model", "x"]', False, "`work.arguments` already sets one"),
            (
                'models = ["s", "l"]\nwork.agent = "command"\nwork.command = "agent"',
                False,
                "`work.command` does not contain {model}",
            ),
            (
                'models = ["gpt"]\nwork.agent = "opencode"',
                False,
                "needs the provider in the model's name, but gpt has none",
            ),
            ('models = ["p/gpt"]\nwork.agent = "opencode"', True, "`learned` chooses from p/gpt"),
            (
                'models = ["gpt"]\nwork.agent = "codex"',
                True,
                "codex does not report costs, so the cost of gpt is unknown",
            ),
        ],
    )
    def test_the_doctor_says_which_models_will_work_and_what_contradicts_itself(
        self, work: Work, settings: str, fine: bool, detail: str
    ) -> None:
        work.settle(settings)
        found = work.found("models")
        assert all(one[0] for one in found) is fine
        assert detail in found[-1][1]
        assert work.line("doctor").code == (0 if fine else 1)

    def test_the_demo_shows_the_product_and_leaves_nothing(
        self, line: Line, project: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stage = tmp_path / "stage"
        stage.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(stage))
        told = line.text("demo")
        for text in ("$ learnt init", "Added learn_", "+ title: Run `make check`", "3 unchanged"):
            assert text in told
        assert [*stage.iterdir(), *project.iterdir(), *home.iterdir()] == []

    def test_the_demo_without_git_is_told_or_works(self, line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "/nonexistent")
        done = line("demo", "--json")
        if done.code:
            assert_told(done)
        else:
            assert json.loads(done.out)["id"] == "demo"

    @pytest.mark.parametrize("command", [command.name for command in COMMANDS])
    def test_every_command_has_a_help_page(self, line: Line, command: str) -> None:
        page = line.text(command, "--help")
        assert page.startswith(f"usage: learnt {command}")
        assert "--json" in page
        assert line.text("help", command) == page
        assert f"  {command} " in line.text("--help")

    def test_version_and_overview(self, line: Line) -> None:
        from learnt import __version__

        assert line.text("--version") == line.text("-V") == f"learnt {__version__}\n"
        assert line.text() == line.text("-h") == line.text("help")


class TestErrors:
    READING = ("list", "export", "backup")
    WITH_ID = ("show", "history", "archive", "like", "undo", "purge")

    def test_outside_any_project_nothing_is_made(self, line: Line, project: Path, home: Path) -> None:
        for words in (["add", "X"], *([name] for name in self.READING), *([name, "learn_x"] for name in self.WITH_ID)):
            assert "learnt init" in line.refused(*words)
        line.refused("import", "-", stdin='{"title": "X"}')
        assert [*project.iterdir(), *home.iterdir()] == []

    def test_a_repository_without_a_store_stays_without_one(self, line: Line, project: Path) -> None:
        subprocess.run(["git", "init", "-q", project], check=True)
        for words in (["list"], ["add", "X"], ["export"]):
            assert "learnt init" in line.refused(*words)
        assert sorted(path.name for path in project.iterdir()) == [".git"]

    def test_an_unknown_command_is_refused_with_a_near_one(self, line: Line) -> None:
        assert "did you mean `learnt list`?" in line.refused("lst")
        assert "learnt --help" in line.refused("xyzzy")
        assert "learnt --help" in line.refused("help", "xyzzy")

    def test_another_folder_can_be_named(self, shop: Line, project: Path, tmp_path: Path) -> None:
        shop.add("Title")
        os.chdir(tmp_path)
        assert shop.titles("-C", str(project)) == ["Title"]
        os.chdir(tmp_path)
        assert "nowhere" in shop.refused("list", "-C", "nowhere")

    @pytest.mark.parametrize("content", ["colour = 'x'", "[", "wait_ms = 'x'", "\xff", "color = 'pink'"])
    def test_broken_settings_stop_every_command_before_it_writes(self, shop: Line, project: Path, content: str) -> None:
        id = shop.add("Title")
        (project / "learnt.toml").write_bytes(content.encode("latin-1"))
        before = listing(project)
        for words in (["list"], ["add", "X"], ["show", id], ["archive", id], ["config"], ["init"], ["backup"]):
            assert str(project / "learnt.toml") in shop.refused(*words)
        assert listing(project) == before

    def test_a_newer_store_is_refused_and_left_alone(self, shop: Line, project: Path) -> None:
        id = shop.add("Title")
        path = project / ".learnt/learnt.db"
        with apsw.Connection(str(path)) as connection:
            connection.execute("insert into migration values (99, 'later', '9.9', 1)")
        connection.close()
        before = listing(project)
        for words in (["list"], ["add", "X"], ["archive", id], ["purge", id, "--yes"], ["init"]):
            assert "9.9" in shop.refused(*words)
        assert listing(project) == before

    @pytest.mark.parametrize("content", [b"this is no database " * 50, b"SQLite format 3\0" + b"\xff" * 5000])
    def test_a_damaged_store_is_told_and_left_alone(self, shop: Line, project: Path, content: bytes) -> None:
        (project / ".learnt/learnt.db").write_bytes(content)
        before = listing(project)
        for words in (["list"], ["add", "X"], ["show", "learn_x"], ["init"]):
            assert "damaged" in shop.refused(*words, code=1)
        assert listing(project) == before

    def test_an_empty_file_is_no_store(self, shop: Line, project: Path) -> None:
        (project / ".learnt/learnt.db").write_bytes(b"")
        done = shop("list")
        assert "Traceback" not in done.err
        assert done.code in (0, 1, 2)

    def test_a_busy_store_asks_to_try_again(self, shop: Line, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LEARNT_WAIT_MS", "50")
        id = shop.add("Title")
        writer = apsw.Connection(str(project / ".learnt/learnt.db"))
        writer.execute("begin immediate")
        try:
            assert "busy" in shop.refused("add", "X", code=3)
            assert "busy" in shop.refused("archive", id, code=3)
            assert shop.titles() == ["Title"]
        finally:
            writer.close()

    def test_a_server_out_of_reach_asks_to_try_again(self, shop: Line, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LEARNT_DATABASE", "postgresql://anna:geheim@/x?host=/nonexistent")
        assert "geheim" not in shop.refused("list", code=3)
        assert "geheim" not in shop.refused("add", "X", code=3)
        assert "geheim" not in shop("doctor").out


class TestProcess:
    """What only a real process can show."""

    def test_the_way_of_a_learning_through_real_processes(self, learnt: Callable[..., Done]) -> None:
        assert learnt("init").code == 0
        added = json.loads(learnt("add", "Run the linter", "--json").out)
        assert learnt("edit", added["id"], "--title", "Run the [bold]linter[/]").code == 0
        listed = learnt("list")
        assert listed.out == f"{added['id']}  0.80  Run the [bold]linter[/]\n"
        assert listed.err == ""
        history = learnt("history", added["id"])
        assert "+ title: Run the [bold]linter[/]" in history.out
        assert "\x1b" not in history.out + learnt("show", added["id"]).out + learnt("config").out
        assert learnt("export", "--format", "markdown").out.startswith("# Learnings\n\n## Run the [bold]linter[/]\n")

    @pytest.mark.parametrize(("words", "code"), [(["lst"], 2), (["list"], 2), (["--version"], 0), (["doctor"], 1)])
    def test_exit_codes_and_errors_reach_the_shell(
        self, learnt: Callable[..., Done], words: list[str], code: int
    ) -> None:
        done = learnt(*words)
        assert done.code == code
        assert "\x1b" not in done.out + done.err
        if code == 2:
            assert_told(done)

    @pytest.mark.parametrize("ending", ["| head -n 1", "> /dev/full", ">&-", "2>&-"])
    def test_a_reader_that_goes_away_makes_no_noise(self, shop: Line, project: Path, ending: str) -> None:
        shop.text("add", "-", stdin="\n".join(json.dumps({"title": "x" * 100}) for _ in range(60)))
        done = shell(f"'{sys.executable}' -m learnt export {ending}", project)
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr
        assert (done.returncode == 0) == (ending != "> /dev/full")

    def test_a_missing_stdin_or_folder_is_told(self, shop: Line, project: Path) -> None:
        python = f"'{sys.executable}' -m learnt"
        for script in (f"{python} add <&-", f"mkdir gone && cd gone && rmdir ../gone && {python} list"):
            done = shell(script, project)
            assert done.returncode == 2
            assert "Traceback" not in done.stderr
            assert done.stderr.startswith("error: ")


def test_search_and_brief_are_told_what_is_about_to_happen(learnt: Callable[..., Done]) -> None:
    learnt("init")
    told = (
        ("--on-command", "--command", "make"),
        ("--on-tool", "--tool", "Bash"),
        ("--on-task-type", "--type", "review"),
    )
    for trigger, option, value in told:
        id = json.loads(learnt("add", f"About {trigger}", trigger, value, "--json").out)["id"]
        assert json.loads(learnt("search", "anything", option, value, "--json").out)[0]["id"] == id
        assert id in json.loads(learnt("brief", "anything", option, value, "--json").out)["learning_ids"]
    assert "impact 0" in learnt("show", id).out
    assert "impact 0" in learnt("search", "tool", "--why").out
    learning = learnt("add", "Deploying needs a token").out.split()[1].rstrip(":")
    assert any(line.endswith("  deploy") for line in learnt("search", "deploy", "--why").out.splitlines())
    assert f"`learnt show {learning}`" in learnt("explain", learning).err
    assert learnt("add", "x", "--on-command", "").err.startswith("error: --on-command is empty")


def test_explain_says_when_another_version_rendered_a_brief(project: Path, learnt: Callable[..., Done]) -> None:
    learnt("init")
    learnt("add", "Cache the schema")
    brief = json.loads(learnt("brief", "cache the schema", "--path", "a.py", "--json").out)["id"]
    assert "paths: a.py" in learnt("explain", brief).out
    assert learnt("explain", brief, "--replay").code == 0
    with Memory.open(project) as memory, memory.context.store.transaction():
        present = f'"render": {RENDERER}'
        changed = "update brief set text_hash = 'x', receipt = replace(receipt, :present, '\"render\": 0')"
        memory.context.store.database.execute(changed, present=present)
    replay = learnt("explain", brief, "--replay")
    assert (replay.code, "another version" in replay.err) == (1, True)
