"""A folder cannot make itself a part of somebody's repository, and so get its learnings."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from learnt import Memory
from tests.support.doors import Learnt
from tests.support.hooks import event_text

SECRET = "The roadmap is private"


@pytest.fixture
def private(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own project."""
    monkeypatch.delenv("LEARNT_TRUSTED")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    with Memory.open(project) as memory:
        memory.pin(memory.add(SECRET).id)
    return project


def _git_file(folder: Path, private: Path) -> Path:
    (folder / ".git").write_text(f"gitdir: {private}/.git\n")
    return folder


def _git_directory(folder: Path, name: str) -> Path:
    for part in ("objects", "refs"):
        (folder / name / part).mkdir(parents=True)
    (folder / name / "HEAD").write_text("ref: refs/heads/main\n")
    return folder / name


def _common_directory(folder: Path, private: Path) -> Path:
    (_git_directory(folder, "git") / "commondir").write_text(f"{private}/.git\n")
    (folder / ".git").write_text("gitdir: git\n")
    return folder


def _configured_worktree(folder: Path, private: Path) -> Path:
    (_git_directory(folder, "git") / "config").write_text(f"[core]\n\tworktree = {private}\n")
    (folder / ".git").write_text("gitdir: git\n")
    return folder


def _bare_with_common_directory(folder: Path, private: Path) -> Path:
    (_git_directory(folder, "docs") / "commondir").write_text(f"{private}/.git\n")
    return folder / "docs"


def _bare_with_worktree(folder: Path, private: Path) -> Path:
    (_git_directory(folder, "docs") / "config").write_text(f"[core]\n\tworktree = {private}\n")
    return folder / "docs"


@pytest.mark.parametrize(
    "plant",
    [_git_file, _common_directory, _configured_worktree, _bare_with_common_directory, _bare_with_worktree],
)
def test_a_folder_that_points_to_another_repository_gets_nothing_of_it(
    private: Path, tmp_path: Path, learnt: Learnt, plant: Callable[[Path, Path], Path]
) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    place = plant(folder, private)

    listed = learnt("list", cwd=place)
    told = learnt("hook", "--client", "claude", stdin=event_text("SessionStart", source="startup"), cwd=place)

    assert SECRET not in listed.out + listed.err + told.out
    assert SECRET in learnt("list", cwd=private).out


def test_a_worktree_shares_the_learnings_also_after_it_was_moved(private: Path, tmp_path: Path, learnt: Learnt) -> None:
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@y"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=private, check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tmp_path / "beside")], cwd=private, check=True)
    assert SECRET in learnt("list", cwd=tmp_path / "beside").out

    (tmp_path / "beside").rename(tmp_path / "moved")

    assert SECRET in learnt("list", cwd=tmp_path / "moved").out
