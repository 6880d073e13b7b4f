"""Where an agent works: in the project's folder itself, or in a git worktree for each task.

A worktree starts from HEAD, merged with the branches of the tasks that its task depends on or continues. It is kept
between attempts. When nobody works on the task any more, everything in it that git does not ignore is committed to its
branch, and the worktree is removed; where that is impossible, it stays. So nothing that an agent wrote is thrown away.
A branch without a commit of its own goes. Nothing outside a worktree is committed, even if an agent has deleted its
worktree and git would find a repository in a parent folder.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from learnt.errors import LearntError, WrongRequest
from learnt.model import Task, Value
from learnt.system.files import Locked, list_names, make_folders, read_own, remove_tree, replace_file
from learnt.system.git import git

_PREFIX = "learnt/"
_LOCK = "worktrees.lock"
_ASIDE = "-kept-"
_GITLINK = "160000 "
_MERGED = "learnt-merged"
_LEARNINGS_FILES = (":(glob)**/.learnt/learnings.md", ":(glob)**/.learnt/learnings/*.md")
_MAX_COPY_BYTES = 5_000_000
_MAX_SHOWN = 20
_threads = threading.Lock()


class Folder(Value):
    """The folder that an agent works in."""

    path: str
    branch: str = ""
    unmerged: tuple[str, ...] = ()
    """Branches of finished tasks that could not be merged."""
    is_new: bool = False
    """Whether nobody has worked in it yet."""


class KeptWork(Value):
    """Where the work on a task is that has not been merged."""

    branch: str = ""
    commits: tuple[str, ...] = ()
    """The branch's own commits, the latest first: abbreviated ids with subjects."""
    folder: str = ""
    """The worktree, if there is one."""
    changes: tuple[str, ...] = ()
    """The files with uncommitted changes in the worktree."""
    aside: tuple[str, ...] = ()
    """Folders that were worktrees of the task until an agent damaged them."""


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
    name = _PREFIX.rstrip("/")
    if _has_branch(root, name):
        raise WrongRequest(
            f"{root} has a branch `{name}`, so git can make no branch `{_PREFIX}TASK`",
            hint=f'rename it: `git branch -m {name} NAME`, or set `isolation = "none"` under [work] in learnt.toml',
        )


def folder_of(worktrees: str, task: str) -> Folder:
    """Return the worktree of a task, which might not exist."""
    return Folder(path=os.path.join(worktrees, task), branch=_PREFIX + task)


def prepare(
    root: str, worktrees: str, task: Task, earlier: Sequence[Task], *, isolation: str, files: Sequence[str] = ()
) -> Folder:
    """Return the folder for a task, with earlier tasks' work merged; create its worktree if needed.

    `files` are paths of the project's files that agents get even if they are not committed.
    """
    if isolation == "none":
        return Folder(path=root)
    folder = folder_of(worktrees, task.id)
    with _one_at_a_time(worktrees):
        if not _is_own(folder.path):
            _set_aside(folder.path)
            _git(root, "worktree", "prune")
            new = () if _has_branch(root, folder.branch) else ("-b", folder.branch)
            # Without --force, because the branch may be checked out elsewhere.
            _git(root, "worktree", "add", *new, folder.path, "HEAD" if new else folder.branch)
            folder = folder.replace(is_new=bool(new))
        else:
            _remove_locks(folder)
        branches = [other.branch for other in earlier if other.branch and _has_branch(root, other.branch)]
        unmerged = tuple(branch for branch in branches if not _merge(folder.path, branch))
        _copy(root, folder.path, files)
        return folder.replace(unmerged=unmerged)


def commit(folder: Folder, message: str) -> None:
    """Commit all changes in a worktree to its branch; raise if that is impossible."""
    if not folder.branch:
        return
    if not _is_own(folder.path):
        raise LearntError(
            f"{folder.path} is no longer a worktree", hint="the agent damaged or deleted it; what is left is set aside"
        )
    _remove_locks(folder)
    copies = _find_copies(folder.path)
    _git(folder.path, "add", "--all", "--", ".", *(f":(exclude,literal){copy}" for copy in copies))
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


def retire(root: str, folder: Folder, message: str = "", *, unless: Callable[[], bool] = bool) -> str | None:
    """Commit what is left in a worktree to its branch and remove the worktree, but not what is not on the branch.

    Return the branch, or an empty text if it had no commit and is gone, too; None if the worktree stays. Without a
    message, everything has been committed already. `unless` is asked while nobody can prepare a worktree.
    """
    if not folder.branch:
        return None
    with _one_at_a_time(os.path.dirname(folder.path)):
        if unless():
            return None
        if _is_own(folder.path):
            try:
                if message:
                    commit(folder, message)
            except LearntError:
                return None
            if _has_repository_inside(folder.path):
                return None
            if _git(root, "worktree", "remove", "--force", folder.path, check=False) is None:
                remove_tree(folder.path)
                _git(root, "worktree", "prune", check=False)
        else:
            _set_aside(folder.path)
            _git(root, "worktree", "prune", check=False)
        return _keep_branch(root, folder.branch)


def identify(folder: Folder) -> tuple[str, str]:
    """Return the id of the tree of files that is checked out in a folder, and its commit; both empty without git."""
    ids = (_git(folder.path, "rev-parse", "HEAD^{tree}", "HEAD", check=False) or "").split()
    return (ids[0], ids[1]) if len(ids) == 2 else ("", "")


def restore(folder: Folder) -> None:
    """Remove what a program left in a worktree that had no changes before."""
    if folder.branch:
        _remove_locks(folder)
        _git(folder.path, "reset", "--hard", "--quiet", check=False)
        _git(folder.path, "clean", "-d", "--force", "--quiet", "--exclude=.learnt", check=False)


def list_tasks(worktrees: str) -> list[str]:
    """Return the ids of the tasks that have a worktree."""
    return [name for name in list_names(worktrees) if name.startswith("task_") and _ASIDE not in name]


def find_kept(root: str, worktrees: str, task: Task) -> KeptWork:
    """Return where the work on a task is."""
    folder = folder_of(worktrees, task.id)
    prefix = task.id + _ASIDE
    try:
        aside = [os.path.join(worktrees, name) for name in list_names(worktrees) if name.startswith(prefix)]
    except OSError:
        aside = []
    has_folder = _is_own(folder.path)
    if not has_folder and os.path.isdir(folder.path):
        aside.append(folder.path)  # it is renamed when the next agent needs its place
    branch = task.branch or folder.branch
    has_branch = bool(has_folder or aside or task.branch) and _has_branch(root, branch)
    return KeptWork(
        branch=branch if has_branch else "",
        commits=tuple(_list_commits(root, branch)) if has_branch else (),
        folder=folder.path if has_folder else "",
        changes=tuple(_list_changes(folder.path)) if has_folder else (),
        aside=tuple(sorted(aside)),
    )


def _list_commits(root: str, branch: str) -> list[str]:
    """Return the commits of a task's agents that are neither on HEAD nor on another task's branch, the latest first."""
    others = (f"--exclude={branch}", f"--branches={_PREFIX}*", "HEAD")
    theirs = ("--invert-grep", f"--grep=^{_MERGED}: ", f"--max-count={_MAX_SHOWN}")
    listed = _git(root, "log", "--format=%h %s", *theirs, branch, "--not", *others, check=False)
    return listed.splitlines() if listed else []


def _list_changes(path: str) -> list[str]:
    """Return the files in a worktree with uncommitted changes."""
    changed = _list_files(path, "diff", "--no-ext-diff", "--no-textconv", "--name-only", "HEAD")
    added = _list_files(path, "ls-files", "--others", "--exclude-standard")
    copies = _find_copies(path)
    return [name for name in dict.fromkeys((*changed, *added)) if name not in copies]


def _list_files(path: str, *words: str) -> list[str]:
    listed = _git(path, "-c", "core.quotePath=false", *words, check=False)
    return listed.splitlines() if listed else []


def _copy(root: str, path: str, files: Sequence[str]) -> None:
    """Copy files of the project into a worktree, except for those that are committed."""
    present = [file for file in files if os.path.lexists(file)]
    top = (_git(root, "rev-parse", "--show-toplevel", check=False) if present else "") or root
    copies = _find_copies(path) if present else []
    for file in present:
        target = os.path.join(path, os.path.relpath(os.path.realpath(file), os.path.realpath(top)))
        is_committed = os.path.lexists(target) and os.path.relpath(target, path) not in copies
        if is_committed or os.path.islink(os.path.dirname(target)):
            continue
        with suppress(OSError):
            content = read_own(file, max_bytes=_MAX_COPY_BYTES)
            make_folders(os.path.dirname(target))
            replace_file(target, content, durable=False)


def has_copies(folder: Folder) -> bool:
    """Return whether there are learnings files in a worktree that are not committed."""
    return bool(folder.branch) and bool(_find_copies(folder.path))


def _find_copies(path: str) -> list[str]:
    """Return the learnings files in a worktree that are not committed: copies of the project's own."""
    return _list_files(path, "ls-files", "--others", "--", *_LEARNINGS_FILES)


def _set_aside(path: str) -> None:
    """Rename a folder that is no worktree any more, because it may hold the only copy of an agent's work."""
    try:
        is_empty = not os.listdir(path)
    except NotADirectoryError:
        is_empty = False
    except FileNotFoundError:
        return
    if is_empty or os.path.islink(path):
        remove_tree(path)
        return
    number = 1
    while os.path.lexists(f"{path}{_ASIDE}{number}"):
        number += 1
    os.rename(path, f"{path}{_ASIDE}{number}")


def _has_repository_inside(path: str) -> bool:
    """Return whether a worktree contains another repository, of which git commits only the id of its commit."""
    listed = _git(path, "ls-files", "--stage", check=False) or ""
    links = (line.partition("\t")[2] for line in listed.splitlines() if line.startswith(_GITLINK))
    return any(os.path.lexists(os.path.join(path, link, ".git")) for link in links)


def _keep_branch(root: str, branch: str) -> str:
    """Return a branch if it has a commit that HEAD does not have; otherwise delete it."""
    if not _has_branch(root, branch):
        return ""
    if _git(root, "rev-list", "--max-count=1", branch, "--not", "HEAD", check=False) != "":
        return branch
    return branch if _git(root, "branch", "--delete", "--force", branch, check=False) is None else ""


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


def _remove_locks(folder: Folder) -> None:
    """Remove the locks that git leaves in a worktree if it is killed; nobody works there now."""
    names = ("index.lock", "HEAD.lock", f"refs/heads/{folder.branch}.lock")
    paths = _git(folder.path, "rev-parse", *(word for name in names for word in ("--git-path", name)), check=False)
    for path in (paths or "").splitlines():
        with suppress(OSError):
            os.unlink(os.path.join(folder.path, path))


def _has_branch(root: str, branch: str) -> bool:
    return _git(root, "rev-parse", "--verify", "-q", f"refs/heads/{branch}", check=False) is not None


def _merge(path: str, branch: str) -> bool:
    """Merge a branch into a worktree unless it is merged already; return False if there are conflicts."""
    if _git(path, "merge-base", "--is-ancestor", branch, "HEAD", check=False) is not None:
        return True
    message = f"Merge {branch}\n\n{_MERGED}: {branch}"
    if _git(path, *_identity(path), "merge", "--quiet", "-m", message, branch, check=False) is not None:
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
