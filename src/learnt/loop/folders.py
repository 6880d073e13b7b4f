"""Where an agent works: in the project's folder itself, or in a git worktree for each task.

A worktree starts from HEAD, merged with the branches of the tasks that its task depends on or continues. It is kept
between attempts and removed when the task is done; its branch, with all changes committed, stays. Nothing outside a
worktree is committed, even if an agent has deleted its worktree and git would find a repository in a parent folder.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from learnt.errors import LearntError, WrongRequest
from learnt.model import Task, Value
from learnt.system.files import Locked, list_names, make_folders, remove_tree
from learnt.system.git import git

_PREFIX = "learnt/"
_LOCK = "worktrees.lock"
_threads = threading.Lock()


class Folder(Value):
    """The folder that an agent works in."""

    path: str
    branch: str = ""
    unmerged: tuple[str, ...] = ()
    """Branches of finished tasks that could not be merged."""


def check(root: str, isolation: str) -> None:
    """Raise unless tasks can be worked on in this project."""
    if isolation == "none":
        return
    if shutil.which("git") is None:
        raise WrongRequest("git is missing, but `work.isolation` is `worktree`", hint="install git, or set `none`")
    if _git(root, "rev-parse", "--git-dir", check=False) is None:
        raise WrongRequest(
            f"{root} is not in a git repository, but `work.isolation` is `worktree`", hint="`git init`, or set `none`"
        )
    if _git(root, "rev-parse", "--verify", "-q", "HEAD^{commit}", check=False) is None:
        raise WrongRequest(
            f"{root} has no commit that a worktree could start from",
            hint='make a first commit, or set `isolation = "none"` under [work] in learnt.toml',
        )


def prepare(root: str, worktrees: str, task: Task, earlier: Sequence[Task], *, isolation: str) -> Folder:
    """Return the folder for a task, with earlier tasks' work merged; create its worktree if needed."""
    if isolation == "none":
        return Folder(path=root)
    folder = Folder(path=os.path.join(worktrees, task.id), branch=_PREFIX + task.id)
    with _one_at_a_time(worktrees):
        if not _is_own(folder.path):
            remove_tree(folder.path)
            _git(root, "worktree", "prune")
            new = () if _has_branch(root, folder.branch) else ("-b", folder.branch)
            # Without --force, because the branch may be checked out elsewhere.
            _git(root, "worktree", "add", *new, folder.path, "HEAD" if new else folder.branch)
        branches = [other.branch for other in earlier if other.branch and _has_branch(root, other.branch)]
        return folder.replace(unmerged=tuple(branch for branch in branches if not _merge(folder.path, branch)))


def commit(folder: Folder, message: str) -> None:
    """Commit all changes in a worktree to its branch; raise if that is impossible."""
    if not folder.branch:
        return
    if not _is_own(folder.path):
        raise LearntError(
            f"{folder.path} is no longer a worktree", hint="the agent deleted the folder, and its work with it"
        )
    _git(folder.path, "add", "--all")
    if _git(folder.path, "diff", "--no-ext-diff", "--no-textconv", "--cached", "--quiet", check=False) is None:
        _git(folder.path, *_identity(folder.path), "commit", "--quiet", "--no-verify", "-m", message)
    if _git(folder.path, "symbolic-ref", "--short", "-q", "HEAD", check=False) == folder.branch:
        return
    # The agent switched to another branch, so our branch is moved to the same commit if that commit builds on it.
    if _git(folder.path, "merge-base", "--is-ancestor", folder.branch, "HEAD", check=False) is None:
        raise LearntError(
            f"the agent switched from {folder.branch} to a commit that does not build on it",
            hint=f"look at {folder.path}; its changes are not on {folder.branch}",
        )
    _git(folder.path, "branch", "--force", folder.branch, "HEAD")


def remove(root: str, folder: Folder) -> None:
    """Remove a worktree, but not its branch."""
    if folder.branch:
        with _one_at_a_time(os.path.dirname(folder.path)):
            _git(root, "worktree", "remove", "--force", folder.path, check=False)
            remove_tree(folder.path)
            _git(root, "worktree", "prune", check=False)


def sweep(root: str, worktrees: str, needed: Container[str]) -> None:
    """Remove the worktrees that no task needs, but not their branches."""
    for name in list_names(worktrees):
        if name.startswith("task_") and name not in needed:
            remove(root, Folder(path=os.path.join(worktrees, name), branch=_PREFIX + name))


def environment(folder: Folder) -> dict[str, str]:
    """Return the variables that keep an agent's git from using the repository around its worktree."""
    return {"GIT_CEILING_DIRECTORIES": os.path.dirname(os.path.realpath(folder.path))} if folder.branch else {}


@contextmanager
def _one_at_a_time(worktrees: str) -> Iterator[None]:
    """Exclude other threads and processes, because git cannot add two worktrees at the same time."""
    path = os.path.join(worktrees, _LOCK)
    with ExitStack() as stack:
        stack.enter_context(_threads)
        try:
            make_folders(worktrees)
            stack.enter_context(Locked(path))
        except OSError as error:
            raise LearntError(f"cannot lock {path}: {error.strerror}", hint="check the folder's permissions") from None
        yield


def _is_own(path: str) -> bool:
    """Return whether a folder is the root of a worktree."""
    if os.path.islink(path):
        return False
    top = _git(path, "rev-parse", "--show-toplevel", check=False)
    return top is not None and os.path.realpath(top) == os.path.realpath(path)


def _has_branch(root: str, branch: str) -> bool:
    return _git(root, "rev-parse", "--verify", "-q", f"refs/heads/{branch}", check=False) is not None


def _merge(path: str, branch: str) -> bool:
    """Merge a branch into a worktree unless it is merged already; return False if there are conflicts."""
    if _git(path, "merge-base", "--is-ancestor", branch, "HEAD", check=False) is not None:
        return True
    if _git(path, *_identity(path), "merge", "--no-edit", "--quiet", branch, check=False) is not None:
        return True
    _git(path, "merge", "--abort", check=False)
    return False


def _identity(path: str) -> tuple[str, ...]:
    """Return git's options for automatic commits: no signature, and a name if none is configured."""
    email = _git(path, "config", "user.email", check=False)
    name = () if email else ("-c", "user.name=learnt", "-c", "user.email=learnt@localhost")
    return ("-c", "commit.gpgsign=false", *name)


def _git(folder: str, *words: str, check: bool = True) -> str | None:
    return git(folder, *words, environ=os.environ, check=check)
