"""What a person sees at a real terminal: tables, colour, and questions."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from learnt import Learning, Memory
from tests.support.terminal import COLOUR, Terminal


@pytest.fixture(autouse=True)
def no_wish_for_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def learning(sqlite_memory: Memory) -> Learning:
    kept = sqlite_memory.add("Run [bold]make lint[/] first", action="make lint\ngit commit", tags=["git"])
    return sqlite_memory.edit(kept.id, title="Run [bold]make check[/] first", action="make check\ngit commit")


@pytest.fixture
def terminal(project: Path, learning: Learning) -> Terminal:
    return Terminal(project)


def test_a_list_is_a_table_with_colour_and_literal_titles(terminal: Terminal, learning: Learning) -> None:
    code, screen = terminal.run("list")
    assert code == 0
    assert COLOUR.search(screen)
    text = COLOUR.sub("", screen)
    assert re.search(r"id +confidence +title", text)
    assert re.search(rf"{learning.id} +0\.80 +Run \[bold\]make check\[/\] first  \[#git\]", text)
    assert "─" in text


@pytest.mark.parametrize("words", [["list"], ["show"], ["history"], ["config"], ["show", "learn_none"]])
def test_colour_can_be_switched_off(terminal: Terminal, learning: Learning, project: Path, words: list[str]) -> None:
    words = [*words, learning.id] if words in (["show"], ["history"]) else words
    assert "\x1b" in terminal.run(*words)[1]
    assert "\x1b" not in terminal.run(*words, NO_COLOR="1")[1]
    (project / "learnt.toml").write_text('color = "never"\n')
    assert "\x1b" not in terminal.run(*words)[1]


def test_errors_of_changes_heed_the_setting_too(terminal: Terminal, project: Path) -> None:
    assert "\x1b" in terminal.run("archive", "learn_none")[1]
    (project / "learnt.toml").write_text('color = "never"\n')
    assert "\x1b" not in terminal.run("archive", "learn_none")[1]


def test_colour_can_be_asked_for_in_a_pipe(terminal: Terminal, learning: Learning, project: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "learnt", "history", learning.id],
        cwd=project,
        env={**os.environ, "LEARNT_COLOR": "always"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "\x1b[32m+ title: " in process.stdout


def test_history_is_a_coloured_diff(terminal: Terminal, learning: Learning) -> None:
    _, screen = terminal.run("history", learning.id)
    assert "\x1b[31m- title: Run [bold]make lint[/] first\x1b[0m" in screen
    assert "\x1b[32m+ title: Run [bold]make check[/] first\x1b[0m" in screen
    assert "\x1b[31m- action: make lint\x1b[0m" in screen
    assert "\x1b[33mevent_" in screen


def test_a_learning_is_shown_with_its_brackets(terminal: Terminal, learning: Learning) -> None:
    text = terminal.text("show", learning.id)
    assert text.startswith("Run [bold]make check[/] first\n")
    assert "Action: make check\ngit commit\n" in text


@pytest.mark.parametrize("answer", ["n\n", "\n", "no\n", "\x04"])
def test_purge_asks_and_keeps_what_is_not_confirmed(terminal: Terminal, learning: Learning, answer: str) -> None:
    code, screen = terminal.run("purge", learning.id, typed=answer)
    assert "Run [bold]make check[/] first" in screen
    assert "[y/N]" in screen
    assert "Traceback" not in screen
    assert code in (0, 130)
    assert learning.id in terminal.text("list")


@pytest.mark.parametrize("answer", ["y\n", "yes\n"])
def test_purge_deletes_what_is_confirmed(terminal: Terminal, learning: Learning, answer: str) -> None:
    code, screen = terminal.run("purge", learning.id, typed=answer)
    assert code == 0
    assert "Purged" in screen
    assert learning.id not in terminal.text("list")


def test_purge_with_yes_does_not_ask(terminal: Terminal, learning: Learning) -> None:
    assert "[y/N]" not in terminal.text("purge", learning.id, "--yes")


def test_purge_refuses_a_brief_that_warned_of_nothing_without_asking(terminal: Terminal, sqlite_memory: Memory) -> None:
    brief = sqlite_memory.brief("Paint the shop")
    code, screen = terminal.run("purge", brief.id)
    assert code == 2
    assert f"`{brief.id}` did not warn about a command" in screen
    assert "[y/N]" not in screen


def test_purge_asks_although_its_output_goes_into_a_pipe(terminal: Terminal, learning: Learning) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"n\n")
    subprocess.run(
        [sys.executable, "-m", "learnt", "purge", learning.id, "--json"],
        cwd=terminal.folder,
        stdin=theirs,
        capture_output=True,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert learning.id in terminal.text("list")


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_wide_titles_fit_the_terminal_and_lose_nothing(project: Path, sqlite_memory: Memory, columns: int) -> None:
    wide = sqlite_memory.add("日本語のタイトル" * 12)
    long = sqlite_memory.add("word " * 19 + "end")
    terminal = Terminal(project, columns)
    text = terminal.text("list")
    assert wide.id in text
    assert long.id in text
    assert max(_cells(row) for row in text.splitlines()) <= columns
    shown = "".join(row[len(wide.id) :].strip() for row in text.splitlines())
    assert "日本語のタイトル" * 12 in shown.replace("0.80", "").replace(" ", "")
    assert "end" in text


def _cells(row: str) -> int:
    from rich.cells import cell_len

    return cell_len(row)


def test_a_person_without_a_title_is_told_instead_of_waiting_for_stdin(terminal: Terminal) -> None:
    code, screen = terminal.run("add")
    assert code == 2
    assert "needs a title" in screen


def test_edit_opens_the_editor_when_nothing_else_is_asked(terminal: Terminal, learning: Learning) -> None:
    script = "sed -i 's/first/last/'"
    code, screen = terminal.run("edit", learning.id, EDITOR=script, VISUAL="")
    assert code == 0
    assert "Edited" in screen
    assert "Run [bold]make check[/] last" in terminal.text("show", learning.id)


def test_an_empty_list_and_an_error_are_coloured_beside_the_result(project: Path, sqlite_memory: Memory) -> None:
    _, screen = Terminal(project).run("list")
    assert "No learnings match" in screen
    _, screen = Terminal(project).run("show", "learn_none")
    assert "\x1b[31merror:\x1b[0m" in screen
    assert "\x1b[36mhint:\x1b[0m" in screen
