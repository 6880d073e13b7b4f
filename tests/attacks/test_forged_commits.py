"""A commit in the user's name is the user's own only if it was made in this clone."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from learnt.system.git_lines import find_owners

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

FILE = "learnings.md"


def run(folder: Path, *words: str) -> None:
    # The stranger commits under the user's name and address.
    alone = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    who = ("-c", "user.name=anna", "-c", "user.email=anna@example.org", "-c", "core.editor=true")
    subprocess.run(["git", *who, *words], cwd=folder, env=alone, check=True, capture_output=True)


def commit(folder: Path, line: str, file: str = FILE) -> None:
    with open(folder / file, "a") as text:
        text.write(f"{line}\n")
    run(folder, "add", file)
    run(folder, "commit", "-q", "-m", line)


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    folder = tmp_path / "upstream"
    folder.mkdir()
    run(folder, "init", "-q", "-b", "main")
    commit(folder, "- first")
    return folder


@pytest.fixture
def clone(tmp_path: Path, upstream: Path) -> Path:
    folder = tmp_path / "clone"
    run(tmp_path, "clone", "-q", str(upstream), str(folder))
    run(folder, "config", "user.email", "anna@example.org")
    run(folder, "config", "user.name", "anna")
    return folder


def owned(folder: Path) -> list[str]:
    owners = find_owners(str(folder), FILE, dict(os.environ))
    lines = (folder / FILE).read_text().splitlines()
    return [line for number, line in enumerate(lines) if owners.are_own((number,))]


def _rebase(folder: Path) -> None:
    run(folder, "fetch", "-q")
    run(folder, "rebase", "-q", "origin/main")


def _rebase_every_commit(folder: Path) -> None:
    run(folder, "fetch", "-q")
    run(folder, "rebase", "-q", "-i", "origin/main")


def _pull_with_rebase(folder: Path) -> None:
    run(folder, "pull", "-q", "--rebase")


def _merge(folder: Path) -> None:
    run(folder, "pull", "-q", "--no-rebase", "--no-edit")


@pytest.mark.parametrize("take", [_rebase, _rebase_every_commit, _pull_with_rebase, _merge])
def test_a_forged_commit_under_the_users_own_ones_is_not_theirs(
    clone: Path, upstream: Path, take: Callable[[Path], None]
) -> None:
    commit(upstream, "- forged")
    commit(clone, "mine", file="other.txt")

    take(clone)

    assert "- forged" in (clone / FILE).read_text()
    assert owned(clone) == []
    commit(clone, "- mine")
    assert owned(clone) == ["- mine"]


def _pull(folder: Path) -> None:
    run(folder, "pull", "-q", "--ff-only")


def _merge_forward(folder: Path) -> None:
    run(folder, "fetch", "-q")
    run(folder, "merge", "-q", "origin/main")


def _reset(folder: Path) -> None:
    run(folder, "fetch", "-q")
    run(folder, "reset", "-q", "--hard", "origin/main")


def _check_out(folder: Path) -> None:
    run(folder, "fetch", "-q")
    run(folder, "checkout", "-q", "origin/main")


def _cherry_pick_forward(folder: Path) -> None:
    run(folder, "fetch", "-q")
    run(folder, "cherry-pick", "--ff", "origin/main")


def _rebase_forward(folder: Path) -> None:
    """Pick what is on top already: git keeps the commit as it is."""
    run(folder, "pull", "-q", "--ff-only")
    run(folder, "-c", "sequence.editor=sed -i '1i break'", "rebase", "-q", "-i", "HEAD~1")
    run(folder, "rebase", "--continue")


@pytest.mark.parametrize(
    "take", [_pull, _merge_forward, _reset, _check_out, _cherry_pick_forward, _rebase, _rebase_forward]
)
def test_a_clone_that_only_moves_to_a_forged_commit_has_not_made_it(
    clone: Path, upstream: Path, take: Callable[[Path], None]
) -> None:
    commit(upstream, "- forged")

    take(clone)

    assert "- forged" in (clone / FILE).read_text()
    assert owned(clone) == []
    assert not find_owners(str(clone), FILE, dict(os.environ)).last_change_is_own


def test_the_users_own_commits_stay_theirs_after_a_rebase(clone: Path, upstream: Path) -> None:
    commit(upstream, "theirs", file="other.txt")
    commit(clone, "- mine")
    _rebase(clone)
    assert owned(clone) == ["- mine"]
    run(clone, "commit", "-q", "--amend", "-m", "another message")
    assert owned(clone) == ["- mine"]
