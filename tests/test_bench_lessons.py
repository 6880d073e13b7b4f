"""The measurement of what is learnt from labelled texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench import lessons
from bench.workspace import Workspace


def item(source: str, text: str = "", *must: list[str], events: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"source": source, "text": text, "events": events or [], "expect": [{"must": words} for words in must]}


def put_items(folder: Path, *items: dict[str, Any]) -> None:
    path = folder / lessons.FILE
    path.parent.mkdir()
    path.write_text("".join(json.dumps(one) + "\n" for one in items) + "\n")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for labelled texts, which the measurement reads."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setattr(lessons, "DATA", str(folder))
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "projects").mkdir()
    return Workspace(tmp_path / "projects")


def test_each_source_has_a_row_and_each_bar_is_told(data: Path, workspace: Workspace) -> None:
    failed = {"tool": "Bash", "input": {"command": "pytest"}, "output": "pytest: command not found", "is_error": True}
    worked = {"tool": "Bash", "input": {"command": "uv run pytest"}, "output": "3 passed", "is_error": False}
    put_items(
        data,
        item("user_prompt", "From now on always run `bin/lint` before you commit.", ["bin/lint", "commit|push"]),
        item("user_prompt", "Rename the second button, please."),
        item("agent_final", "All tests pass.", ["there is no such lesson"]),
        item("commit", "Bump version"),
        item("transcript", "", ["uv run pytest"], events=[{"user": "Run the tests"}, failed, worked]),
    )

    report = lessons.measure(workspace)

    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in report.table.splitlines()]
    by_source = {row[0]: row[1:] for row in rows}
    lesson_count, found, _, *others = by_source["user_prompt"]
    assert (lesson_count, found, others) == ("1", "1.00", ["1", "1.00", "1", "1.00"])
    assert by_source["agent_final"] == ["1", "0.00", "0.00", "0", "-", "0", "-"]
    assert by_source["commit"] == ["0", "-", "-", "0", "-", "1", "1.00"]
    assert by_source["transcript"][:2] == ["1", "1.00"]
    assert by_source["all"][:2] == ["3", "0.67"]
    assert list(by_source)[-1] == "all"
    assert report.notes.startswith("5 items")
    bars = {bar.text.partition(":")[0]: bar.holds for bar in report.bars}
    assert bars["found, user_prompt"]
    assert not bars["found, agent_final"]
    assert bars["quiet"]
    assert "found, commit" not in bars, "there is no lesson to find"


@pytest.mark.parametrize("folder", ["", "/nowhere"])
def test_without_the_texts_the_report_says_how_to_name_them(
    folder: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lessons, "DATA", folder)
    report = lessons.measure(workspace)
    assert report.notes.startswith("Not measured: lessons-dev/lessons.jsonl. Set LEARNT_BENCH_DATA to a folder")
    assert not report.bars


def test_storing_the_whole_text_finds_nothing(data: Path, workspace: Workspace) -> None:
    # A learning counts by its first words only, so what stands late in a long text is not found in it.
    late = "From now on use `bin/lint`. " + "It is quick and it is kept well. " * 30 + "The dog is called Rex."
    put_items(data, item("user_prompt", late, ["rex"]))
    assert lessons.measure(workspace).table.splitlines()[-1].split()[3:6:2] == ["1", "0.00"]
