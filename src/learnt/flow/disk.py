"""The learnings files on disk: their paths, their lock, and functions that read or replace one file.

Nothing outside the project is read or written. A file is replaced only if its content is still what the caller read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from learnt.errors import LearntError, TryAgain, WrongRequest, cannot_write
from learnt.flow.background import LOCK
from learnt.model import check_goal
from learnt.project import STORE_FOLDER
from learnt.store import Store
from learnt.system import files
from learnt.system.files import Locked

FILE = "learnings.md"
_GOALS_FOLDER = "learnings"
_MAX_BYTES = 5_000_000


def path_of(root: str, goal: str = "") -> str:
    """Return the path of the learnings file of a project or of one of its goals; each worktree has its own files."""
    check_goal(goal)
    folder = os.path.join(root, STORE_FOLDER)
    return os.path.join(folder, _GOALS_FOLDER, f"{goal}.md") if goal else os.path.join(folder, FILE)


def goals(root: str) -> list[str]:
    """Return the goals that have a file."""
    return [os.path.basename(path).removesuffix(".md") for path in paths(root)[1:]]


def paths(root: str) -> list[str]:
    """Return the paths of the project's own file, which might not exist, and of its goals' files."""
    folder = os.path.join(root, STORE_FOLDER, _GOALS_FOLDER)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [path_of(root), *(os.path.join(folder, name) for name in names if name.endswith(".md"))]


def unfinished(path: str) -> str:
    """Return the path of the temporary file; the next update removes one left behind by a killed process."""
    return f"{os.path.realpath(path)}.new"


@contextmanager
def locked(store: Store) -> Iterator[None]:
    """Hold the learnings files' lock; raise TryAgain if another process holds it."""
    store.make_folder()
    with Locked(os.path.join(store.place.folder, LOCK), wait=False) as acquired:
        if not acquired:
            hint = "`learnt status` shows it; wait a bit, then run the same command again"
            raise TryAgain("the learnings files are being updated by another process", hint=hint)
        yield


def read(path: str, root: str) -> bytes | None:
    """Return the content of a learnings file; None if it does not exist. Raise if it is not a readable text file."""
    real = os.path.realpath(path)
    if os.path.islink(path) and not real.startswith(os.path.join(os.path.realpath(root), "")):
        raise WrongRequest(
            f"{path} is a symbolic link to a file outside the project",
            hint="replace it with a file: learnt does not write outside the project",
        )
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise WrongRequest(f"{path} is not a file", hint="move it elsewhere; `learnt update` then writes the file")
        if status.st_size > _MAX_BYTES:
            raise WrongRequest(f"{path} is larger than {_MAX_BYTES:,} bytes", hint="shorten it, or move it elsewhere")
        with open(path, "rb") as file:
            content = file.read()
        content.decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise WrongRequest(f"{path} is not UTF-8 text", hint="save it as UTF-8, then try again") from None
    except OSError as error:
        raise LearntError(f"cannot read {path}: {error.strerror}", hint="check the file's permissions") from None
    return content


def check_not_in_editor(path: str) -> None:
    """Raise if an editor's lock file shows that the editor has the file open with unsaved changes."""
    folder, name = os.path.split(path)
    for lock in (f".{name}.swp", f".#{name}"):
        if os.path.lexists(os.path.join(folder, lock)):
            raise TryAgain(
                f"{path} is open in an editor", hint=f"save and close it, or remove {lock} if no editor has it open"
            )


def replace(path: str, root: str, before: bytes | None, text: str) -> bool:
    """Replace a file if its content is still `before`; otherwise leave it alone and return False."""
    path = os.path.realpath(path)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return files.replace_shared(
            path,
            (text.encode(),),
            unfinished=unfinished(path),
            mode=0o644,
            is_unchanged=lambda: read(path, root) == before,
        )
    except OSError as error:
        raise cannot_write(path, error, hint="check the owner of the folder and its files") from None
