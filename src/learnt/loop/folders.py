"""Where an agent works: the project's folder itself, or a git worktree for each task.

A worktree starts from the branches of the tasks that it waited for, stays between the attempts at its task, and goes
when the task is done; its branch, with everything committed, stays.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading

from learnt.errors import LearntError, WrongRequest
from learnt.model import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from learnt.model import Task

_PREFIX = "learnt/"
_GIT_LIMIT_S = 300
# git itself refuses two that add a worktree at the same moment.
_ONE_AT_A_TIME = threading.Lock()


class Folder(Value):
    """A place to work in."""

    path: str
    branch: str = ""
    unmerged: tuple[str, ...] = ()
    """Branches of finished tasks that could not be merged in."""


def check(root: str, isolation: str) -> None:
    """Raise unless tasks can be worked on in this project."""
    if isolation == "none":
        return
    if shutil.which("git") is None:
        raise WrongRequest(
            "git is missing, and `work.isolation` is `worktree`", hint="install git, or set it to `none`"
        )
    if _git(root, "rev-parse", "--verify", "-q", "HEAD^{commit}", check=False) is None:
        raise WrongRequest(
            f"{root} has no commit that a worktree could start from",
            hint='commit once, or set `isolation = "none"` under [work] in learnt.toml',
        )


def prepare(root: str, worktrees: str, task: Task, needed: Sequence[Task], *, isolation: str) -> Folder:
    """Return the folder to work on a task in; make its worktree if need be."""
    if isolation == "none":
        return Folder(path=root)
    path = os.path.join(worktrees, task.id)
    branch = _PREFIX + task.id
    with _ONE_AT_A_TIME:
        if _git(path, "rev-parse", "--is-inside-work-tree", check=False) is not None and _is_own(path):
            return Folder(path=path, branch=branch)
        shutil.rmtree(path, ignore_errors=True)
        _git(root, "worktree", "prune")
        if _has_branch(root, branch):
            _git(root, "worktree", "add", "--force", path, branch)
            return Folder(path=path, branch=branch)
        others = [other.branch for other in needed if other.branch and _has_branch(root, other.branch)]
        _git(root, "worktree", "add", "--force", "-b", branch, path, others[0] if others else "HEAD")
    return Folder(path=path, branch=branch, unmerged=tuple(other for other in others[1:] if not _merged(path, other)))


def commit(folder: Folder, message: str) -> None:
    """Put everything that was done in a worktree onto its branch."""
    if not folder.branch or not os.path.isdir(folder.path):
        return
    _git(folder.path, "add", "--all")
    if _git(folder.path, "diff", "--cached", "--quiet", check=False) is None:
        _git(folder.path, *_identity(folder.path), "commit", "--quiet", "--no-verify", "-m", message)


def remove(root: str, folder: Folder) -> None:
    """Take a worktree away; its branch stays."""
    if folder.branch:
        with _ONE_AT_A_TIME:
            _git(root, "worktree", "remove", "--force", folder.path, check=False)
            shutil.rmtree(folder.path, ignore_errors=True)
            _git(root, "worktree", "prune", check=False)


def _is_own(path: str) -> bool:
    top = _git(path, "rev-parse", "--show-toplevel", check=False)
    return top is not None and os.path.realpath(top) == os.path.realpath(path)


def _has_branch(root: str, branch: str) -> bool:
    return _git(root, "rev-parse", "--verify", "-q", f"refs/heads/{branch}", check=False) is not None


def _merged(path: str, branch: str) -> bool:
    """Merge a branch into a worktree; False when that needs somebody's judgement."""
    done = _git(path, *_identity(path), "merge", "--no-edit", "--quiet", branch, check=False) is not None
    if not done:
        _git(path, "merge", "--abort", check=False)
    return done


def _identity(path: str) -> tuple[str, ...]:
    """Return a name to commit under, where nobody has set one."""
    known = _git(path, "config", "user.email", check=False)
    return () if known else ("-c", "user.name=learnt", "-c", "user.email=learnt@localhost")


def _git(folder: str, *words: str, check: bool = True) -> str | None:
    """Run git in a folder and return what it says; None when it fails and that is no error."""
    if not os.path.isdir(folder):
        if not check:
            return None
        raise LearntError(f"the folder {folder} is gone", hint="look for what removed it")
    environ = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    environ |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_GIT_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LearntError(f"git could not be run: {error}", hint="check that git works here: `git status`") from None
    if done.returncode:
        if not check:
            return None
        raise LearntError(
            f"`git {' '.join(words)}` failed: {done.stderr.strip()}", hint=f"look at it in {folder}, then try again"
        )
    return done.stdout.strip()
