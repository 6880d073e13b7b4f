"""Find the project that contains a folder, and the place of its store.

All worktrees of a repository share one store: git's files are followed to the common directory, without starting
git. The store is in the main worktree; for a bare repository, it is beside the common directory. A submodule is a
separate project. Outside git, the nearest folder with `learnt.toml` or `.learnt` is the project, unless its `.learnt`
contains only files left by clients.
"""

from __future__ import annotations

import os
import sys

from learnt.errors import WrongRequest
from learnt.model import Value
from learnt.system.files import read_regular

SETTINGS_FILE = "learnt.toml"
_MAX_GIT_FILE_BYTES = 1_000_000
STORE_FOLDER = ".learnt"
HOOK_LOG = "hook.log"
_BACKUPS = "backups"
_CLIENT_FILES = {".gitignore", "fired", HOOK_LOG}


class Project(Value):
    """A project's folder, and the folder of its store."""

    root: str
    """The current worktree, from which `learnt.toml` is read."""
    folder: str
    """The store's folder, shared by all worktrees."""

    @property
    def name(self) -> str:
        """The main folder's name."""
        holder = os.path.dirname(self.folder)
        if os.path.basename(self.folder) != STORE_FOLDER:
            return os.path.basename(self.folder).removesuffix(STORE_FOLDER)
        return os.path.basename(holder) or "root"


def find_project(start: str) -> Project | None:
    """Return the project that contains a folder, or None outside any project."""
    start = os.path.realpath(start)
    for folder in _with_parents(start):
        git_dir = _git_dir(folder)
        if git_dir:
            store = _store_of(_common_dir(git_dir))
            # A git directory contains no worktree, so settings are looked for where the store is.
            return Project(root=os.path.dirname(store) if git_dir == folder else folder, folder=store)
    for folder in _with_parents(start):
        store = os.path.join(folder, STORE_FOLDER)
        if folder != start and not _is_own(folder):
            continue  # such as /tmp, where anybody can put a store
        if os.path.exists(os.path.join(folder, SETTINGS_FILE)) or _is_in_use(store):
            return Project(root=folder, folder=store)
    return None


def new_project(folder: str) -> Project:
    """Return the project that a folder outside any project would become."""
    folder = os.path.realpath(folder)
    return Project(root=folder, folder=os.path.join(folder, STORE_FOLDER))


def head_branch(root: str) -> str:
    """Return the branch that is checked out in a folder; empty outside git, or if a commit is checked out directly."""
    name = _head(_git_dir(root))
    return name.removeprefix("ref:").strip().removeprefix("refs/heads/") if name.startswith("ref:") else ""


def head_commit(root: str) -> str:
    """Return the commit that is checked out in a folder, if git's files show it without starting git."""
    git_dir = _git_dir(root)
    head = _head(git_dir)
    if not git_dir or not head.startswith("ref:"):
        return head
    name = head.removeprefix("ref:").strip()
    for folder in (git_dir, _common_dir(git_dir)):
        commit = _first_line(os.path.join(folder, name))
        if commit:
            return commit
    packed = [line.split() for line in _lines(os.path.join(_common_dir(git_dir), "packed-refs"))]
    return next((words[0] for words in packed if words[1:] == [name]), "")


def user_data_folder(environ: dict[str, str]) -> str:
    """Return the user-wide store's folder, following the platform's convention."""
    folder = _platform_folder(environ, "XDG_DATA_HOME", ".local/share", "LOCALAPPDATA")
    return os.path.realpath(os.path.join(folder, "learnt"))  # users may link their own folders


def user_settings_file(environ: dict[str, str]) -> str:
    """Return the path of the user-wide settings, following the platform's convention."""
    folder = _platform_folder(environ, "XDG_CONFIG_HOME", ".config", "APPDATA")
    return os.path.join(folder, "learnt", SETTINGS_FILE)


def _platform_folder(environ: dict[str, str], xdg: str, unix: str, windows: str) -> str:
    if environ.get(xdg) and os.path.isabs(environ[xdg]):
        return environ[xdg]
    if sys.platform == "win32":
        return environ.get(windows) or os.path.expanduser("~")
    home = environ.get("HOME") or _user_home()
    return os.path.join(home, "Library/Application Support" if sys.platform == "darwin" else unix)


def _user_home() -> str:
    if sys.platform == "win32":
        return os.path.expanduser("~")
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        raise WrongRequest("your home folder is unknown", hint="set HOME") from None


def _is_in_use(store: str) -> bool:
    """Return whether a store's folder contains more than the files left by setting up clients and by their hooks."""
    try:
        names = set(os.listdir(store)) - _CLIENT_FILES
        if names == {_BACKUPS}:
            names = set(os.listdir(os.path.join(store, _BACKUPS))) - {"clients"}
        return bool(names)
    except OSError:
        return os.path.exists(store)  # opening the store reports what is wrong


def _is_own(folder: str) -> bool:
    """Return whether a folder and the store in it belong to this user."""
    if sys.platform == "win32":
        return True
    try:
        paths = (folder, os.path.join(folder, STORE_FOLDER), os.path.join(folder, SETTINGS_FILE))
        return all(os.lstat(path).st_uid == os.geteuid() for path in paths if os.path.lexists(path))
    except OSError:
        return False


def _with_parents(folder: str) -> list[str]:
    folders = [folder]
    while os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
        folders.append(folder)
    return folders


def _git_dir(folder: str) -> str | None:
    """Return the git directory whose worktree is `folder`, or `folder` itself if it is a bare repository."""
    dot_git = os.path.join(folder, ".git")
    if os.path.isfile(dot_git):
        line = _first_line(dot_git)
        target = os.path.realpath(os.path.join(folder, line.removeprefix("gitdir:").strip()))
        if line.startswith("gitdir:") and not os.path.isfile(os.path.join(target, "HEAD")):
            raise WrongRequest(
                f"{dot_git} points to {target}, which does not exist",
                hint="restore the main checkout, or run `git worktree repair`",
            )
        return target if line.startswith("gitdir:") else None
    return next((place for place in (dot_git, folder) if _is_git_dir(place)), None)


def _head(git_dir: str | None) -> str:
    return _first_line(os.path.join(git_dir, "HEAD")) if git_dir else ""


def _is_git_dir(folder: str) -> bool:
    return all(os.path.exists(os.path.join(folder, name)) for name in ("HEAD", "objects", "refs"))


def _common_dir(git_dir: str) -> str:
    pointer = os.path.join(git_dir, "commondir")
    if not os.path.isfile(pointer):
        return git_dir
    return os.path.realpath(os.path.join(git_dir, _first_line(pointer)))


def _store_of(common_dir: str) -> str:
    parent, name = os.path.split(common_dir)
    if name == ".git":
        return os.path.join(parent, STORE_FOLDER)
    worktree = _configured_worktree(common_dir)  # set for submodules
    if worktree:
        return os.path.join(worktree, STORE_FOLDER)
    # `.bare` is inside its project. `api.git` may have neighbours, which must not share its store.
    return os.path.join(parent, STORE_FOLDER if name == ".bare" else name.removesuffix(".git") + STORE_FOLDER)


def _configured_worktree(common_dir: str) -> str | None:
    section = ""
    # A sparse checkout moves the setting into a separate file.
    for line in _lines(os.path.join(common_dir, "config")) + _lines(os.path.join(common_dir, "config.worktree")):
        if line.startswith("["):
            section = line.strip("[]").lower()
        key, equals, value = line.partition("=")
        if section == "core" and equals and key.strip().lower() == "worktree":
            return os.path.realpath(os.path.join(common_dir, value.strip().strip('"')))
    return None


def _first_line(path: str) -> str:
    return next(iter(_lines(path)), "")


def _lines(path: str) -> list[str]:
    try:
        content = read_regular(path, max_bytes=_MAX_GIT_FILE_BYTES)
    except (OSError, ValueError):
        return []
    return [line.strip() for line in content.decode("utf-8", "surrogateescape").split("\n")]
