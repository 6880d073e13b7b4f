"""A secret in the wrong place of the settings, or as a name, reaches no file below `.learnt`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from learnt import Memory
from tests.support import leaks

TOKEN = "ghp_" + "JXlPdoPIDGsdx3Cs9RpXVbeDCS0exbWFjRJ5"
SETTINGS = {
    "a wrong key": f'"{TOKEN}" = 1\n',
    "a wrong value": f'wait_ms = "{TOKEN}"\n',
    "a wrong table": f"[{TOKEN}]\na = 1\n",
    "no TOML": f"wait_ms = {TOKEN}\n",
    "the person": f'person = "{TOKEN}"\n',
}


def files_with_token(project: Path) -> list[str]:
    files = [path for path in (project / ".learnt").rglob("*") if path.is_file()]
    return [path.name for path in files if TOKEN[8:20].encode() in path.read_bytes()]


@pytest.mark.parametrize("place", SETTINGS)
def test_a_secret_in_the_settings_reaches_no_file(place: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    leaks.hurry(monkeypatch)
    with Memory.open(project) as memory:
        memory.add("Run the linter before each commit")
    (project / "learnt.toml").write_text(SETTINGS[place], encoding="utf-8")
    for event in ({"hook_event_name": "SessionStart"}, {"hook_event_name": "UserPromptSubmit", "prompt": "lint it"}):
        leaks.run_with(json.dumps({"session_id": "one", "cwd": str(project), **event}))
    leaks.run("add", "Another learning of this project")
    assert files_with_token(project) == []


def test_a_secret_as_a_person_or_a_branch_reaches_no_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    leaks.hurry(monkeypatch)
    monkeypatch.setenv("LEARNT_PERSON", TOKEN)
    with Memory.open(project) as memory:
        learning = memory.add("Run the linter before each commit")
        memory.person = TOKEN
        memory.edit(learning.id, action="make lint", reason=TOKEN)
        memory.tasks.add(f"Look at {TOKEN}", agent=TOKEN)
        assert TOKEN not in memory.person
    assert files_with_token(project) == []
