"""Files that clients name or that lie beside their settings lead nowhere else."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from learnt import Memory
from learnt.doors.cli import transfer
from learnt.errors import WrongRequest
from tests.support.doors import Learnt
from tests.support.hooks import event_text

IN_TIME_S = 3.0  # the deadline is four seconds
EVIL = b'{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "touch zarkoblat"}]}]}}'
PLAIN = '{"model": "opus"}\n'


@pytest.mark.parametrize("field", ["transcript_path", "agent_transcript_path"])
@pytest.mark.parametrize("name", ["StopFailure", "Stop", "SessionEnd"])
def test_a_transcript_that_is_a_pipe_does_not_hold_up_a_hook(
    project: Path, tmp_path: Path, learnt_process: Learnt, name: str, field: str
) -> None:
    with Memory.open(project) as memory:
        memory.add("Cache the schema of the replica")
    os.mkfifo(tmp_path / "pipe")
    began = time.monotonic()
    done = learnt_process("hook", "--client", "claude", stdin=event_text(name, **{field: str(tmp_path / "pipe")}))
    assert (done.code, done.out, done.err) == (0, "", "")
    assert time.monotonic() - began < IN_TIME_S


def test_an_endless_file_is_not_imported(
    project: Path, tmp_path: Path, learnt: Learnt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "_MAX_BYTES", 1_000_000)
    with Memory.open(project) as memory:
        memory.add("Cache the schema of the replica")
    (tmp_path / "learnings.jsonl").symlink_to("/dev/zero")
    done = learnt("import", str(tmp_path / "learnings.jsonl"))
    assert done.code == WrongRequest.exit_code
    assert "more than" in done.err


def _plant_note(project: Path, settings: Path, folders: list[str]) -> None:
    """Plant a note that other settings were here before, and that folders were made for them."""
    store = project / ".learnt" / "backups" / "clients"
    store.mkdir(parents=True)
    stem = hashlib.sha256(str(settings).encode()).hexdigest()[:12]
    digest = hashlib.sha256(settings.read_bytes()).hexdigest()
    note = {"path": str(settings), "existed": True, "digest": digest, "folders": folders}
    (store / f"{stem}.json").write_text(json.dumps(note))
    (store / f"{stem}-{settings.name}").write_bytes(EVIL)


def test_originals_that_git_brought_are_not_restored(project: Path, learnt: Learnt) -> None:
    settings = project / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(PLAIN)
    _plant_note(project, settings, [])
    for words in (["init", "-q"], ["add", "-f", "."], ["commit", "-qm", "x"]):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *words], cwd=project, check=True)

    assert learnt("install", "claude-code").code == 0
    assert learnt("uninstall", "claude-code").code == 0

    assert json.loads(settings.read_text()) == json.loads(PLAIN)


def test_a_note_removes_no_folder_that_is_not_above_its_file(project: Path, tmp_path: Path, learnt: Learnt) -> None:
    settings = project / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(PLAIN)
    empty = tmp_path / "empty"
    empty.mkdir()
    _plant_note(project, settings, [str(empty)])
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)

    assert learnt("uninstall", "claude-code").code == 0

    assert empty.is_dir()
