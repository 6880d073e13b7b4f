"""Which store a folder belongs to, in the repositories that people really have."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from learnt import Memory, WrongRequest
from learnt.project import find_project
from tests.conftest import Done


@pytest.fixture(autouse=True)
def own_git(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """A git that knows only what the test tells it."""
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Anna\n\temail = anna@example.org\n[init]\n\tdefaultBranch = main\n"
        '[protocol "file"]\n\tallow = always\n'
    )


def git(folder: Path, *words: str) -> None:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def repository(folder: Path, *options: str) -> Path:
    """Make a repository with one commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", *options)
    git(folder, "commit", "-q", "--allow-empty", "-m", "Start")
    return folder


def store(folder: Path) -> Path:
    """Return the folder of the store that a folder belongs to."""
    found = find_project(str(folder))
    assert found is not None
    return Path(found.folder)


def keep(folder: Path, title: str) -> None:
    with Memory.open(folder) as memory:
        memory.add(title)


def titles(folder: Path) -> list[str]:
    with Memory.open(folder, create=False) as memory:
        return [learning.title for learning in memory.learnings().learnings]


def test_what_clients_left_behind_makes_no_project(tmp_path: Path) -> None:
    (tmp_path / ".learnt/backups/clients").mkdir(parents=True)
    (tmp_path / ".learnt/.gitignore").touch()
    (tmp_path / ".learnt/fired").mkdir()
    below = tmp_path / "below"
    below.mkdir()
    assert find_project(str(below)) is None
    (tmp_path / ".learnt/learnt.db").touch()
    found = find_project(str(below))
    assert found is not None
    assert found.root == str(tmp_path)


def test_a_store_is_made_in_an_existing_folder_only(tmp_path: Path) -> None:
    with pytest.raises(WrongRequest, match="no folder"):
        Memory.open(tmp_path / "typo" / "path")
    assert not (tmp_path / "typo").exists()


def test_a_sub_folder_belongs_to_its_repository(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    (main / "src/deep").mkdir(parents=True)
    keep(main, "Known everywhere")
    assert titles(main / "src/deep") == ["Known everywhere"]
    assert store(main / "src/deep") == main / ".learnt"
    found = find_project(str(main / "src"))
    assert found is not None
    assert (found.root, found.name) == (str(main), "main")


def test_a_linked_worktree_shares_the_store_and_has_its_own_settings(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", "../feature", "-b", "feature")
    (main / "learnt.toml").write_text("page_size = 1\n")
    (tmp_path / "feature/learnt.toml").write_text("page_size = 2\n")
    (tmp_path / "feature/src").mkdir()
    keep(main, "From the main worktree")
    keep(tmp_path / "feature/src", "From the linked worktree")

    assert titles(tmp_path / "feature") == ["From the linked worktree", "From the main worktree"]
    assert titles(main) == ["From the linked worktree"]
    assert not (tmp_path / "feature/.learnt").exists()


def test_a_worktree_with_relative_links_shares_the_store(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", "../feature")
    (tmp_path / "feature/.git").write_text("gitdir: ../main/.git/worktrees/feature\n")
    assert store(tmp_path / "feature") == main / ".learnt"


def test_a_worktree_inside_the_repository_is_a_worktree(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", "trees/feature")
    assert store(main / "trees/feature") == main / ".learnt"


def test_a_bare_repository_inside_its_project_folder_keeps_the_store_beside_itself(tmp_path: Path) -> None:
    source = repository(tmp_path / "source")
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "clone", "-q", "--bare", str(source), ".bare")
    (folder / ".git").write_text("gitdir: ./.bare\n")
    git(folder, "worktree", "add", "-q", "one")
    git(folder, "worktree", "add", "-q", "two")

    keep(folder / "one", "Shared")
    assert titles(folder / "two") == ["Shared"]
    assert {store(place) for place in (folder, folder / "one", folder / "two")} == {folder / ".learnt"}
    found = find_project(str(folder / "one"))
    assert found is not None
    assert (found.root, found.name) == (str(folder / "one"), "shop")


def test_bare_repositories_side_by_side_share_nothing(tmp_path: Path) -> None:
    source = repository(tmp_path / "source")
    for name in ("api", "web"):
        git(tmp_path, "clone", "-q", "--bare", str(source), f"{name}.git")
        git(tmp_path / f"{name}.git", "worktree", "add", "-q", f"../{name}-one")
        git(tmp_path / f"{name}.git", "worktree", "add", "-q", f"../{name}-two")
        keep(tmp_path / f"{name}-one", f"Of {name}")
    assert titles(tmp_path / "api-two") == ["Of api"]
    assert titles(tmp_path / "web-two") == ["Of web"]
    assert titles(tmp_path / "web.git") == ["Of web"]
    found = find_project(str(tmp_path / "web-two"))
    assert found is not None
    assert found.name == "web"


def test_hidden_bare_repositories_side_by_side_share_nothing(tmp_path: Path) -> None:
    for name in (".api", ".web"):
        git(tmp_path, "init", "-q", "--bare", name)
    assert store(tmp_path / ".api") != store(tmp_path / ".web")


def test_a_submodule_is_a_project_of_its_own(tmp_path: Path) -> None:
    library = repository(tmp_path / "library")
    main = repository(tmp_path / "main")
    git(main, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "vendor/lib")
    git(main, "commit", "-qm", "Add the library")
    keep(main, "Of the shop")
    keep(main / "vendor/lib", "Of the library")
    assert titles(main / "vendor") == ["Of the shop"]
    assert titles(main / "vendor/lib") == ["Of the library"]
    assert store(main / "vendor/lib") == main / "vendor/lib/.learnt"

    git(main / "vendor/lib", "worktree", "add", "-q", str(tmp_path / "lib-feature"))
    assert titles(tmp_path / "lib-feature") == ["Of the library"]

    git(main, "worktree", "add", "-q", "../feature")
    git(tmp_path / "feature", "submodule", "update", "-q", "--init")
    assert store(tmp_path / "feature/vendor/lib") == tmp_path / "feature/vendor/lib/.learnt"


def test_a_submodule_keeps_its_store_when_it_is_checked_out_sparsely(tmp_path: Path) -> None:
    library = repository(tmp_path / "library")
    main = repository(tmp_path / "main")
    git(main, "submodule", "add", "-q", str(library), "lib")
    keep(main / "lib", "Of the library")
    git(main / "lib", "sparse-checkout", "set", "docs")
    assert titles(main / "lib") == ["Of the library"]


def test_a_repository_with_its_git_directory_elsewhere_has_one_store(tmp_path: Path) -> None:
    (tmp_path / "gits").mkdir()
    for name in ("shop", "blog"):
        repository(tmp_path / name, f"--separate-git-dir={tmp_path / 'gits' / name}")
        (tmp_path / name / "src").mkdir()
        git(tmp_path / name, "worktree", "add", "-q", f"../{name}-feature")
        keep(tmp_path / name, f"Of the {name}")
    for name in ("shop", "blog"):
        assert titles(tmp_path / name / "src") == titles(tmp_path / f"{name}-feature") == [f"Of the {name}"]
        found = find_project(str(tmp_path / name / "src"))
        assert found is not None
        assert (found.root, found.name) == (str(tmp_path / name), name)


def test_without_git_the_nearest_marked_folder_is_the_project(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "a/b/c").mkdir(parents=True)
    assert find_project(str(folder / "a")) is None
    (folder / "learnt.toml").touch()
    assert store(folder / "a/b/c") == folder / ".learnt"
    keep(folder / "a/b", "Of the whole")
    assert titles(folder / "a/b/c") == ["Of the whole"]
    (folder / "a/learnt.toml").touch()
    assert store(folder / "a/b/c") == folder / "a/.learnt"


def test_an_empty_git_directory_is_no_repository(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    (main / "sub/.git").mkdir(parents=True)
    assert store(main / "sub") == main / ".learnt"
    (main / "other").mkdir()
    (main / "other/.git").write_text("")
    assert store(main / "other") == main / ".learnt"


def test_a_folder_reached_by_a_link_is_the_folder(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    (main / "src").mkdir()
    (tmp_path / "link").symlink_to(main / "src")
    keep(main, "Known")
    assert titles(tmp_path / "link") == ["Known"]
    (tmp_path / "elsewhere").mkdir()
    (main / "out").symlink_to(tmp_path / "elsewhere")
    assert find_project(str(main / "out")) is None


def test_a_git_directory_that_is_a_link_is_followed(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/.git").symlink_to(main / ".git")
    assert store(tmp_path / "other").exists() is False
    assert find_project(str(tmp_path / "other")) is not None


def test_a_store_is_made_where_the_worktrees_meet(tmp_path: Path, learnt: Callable[..., Done]) -> None:
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", "../feature")
    (tmp_path / "feature/src").mkdir()
    done = learnt("init", "--json", cwd=tmp_path / "feature/src")
    assert json.loads(done.out) == {
        "id": str(main / ".learnt/learnt.db"),
        "database": str(main / ".learnt/learnt.db"),
        "settings": str(tmp_path / "feature/learnt.toml"),
    }
    assert learnt("add", "Shared", cwd=tmp_path / "feature").code == 0
    assert "Shared" in learnt("list", cwd=main).out


def test_git_is_never_started(tmp_path: Path, learnt: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", "../feature")
    trace = tmp_path / "trace"
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin/git"
    fake.write_text(f"#!/bin/sh\necho started >> '{trace}'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    subprocess.run(["git"], check=True)
    assert trace.read_text() == "started\n"
    trace.unlink()
    for folder in (main, tmp_path / "feature"):
        for words in (["init"], ["add", "Title"], ["list"], ["config"], ["doctor"], ["hook"]):
            assert learnt(*words, cwd=folder).code == 0
    assert not trace.exists()
