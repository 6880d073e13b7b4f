"""The learnings files on disk: their paths, their lock, and functions that read or replace one file.

No link is followed, so nothing outside the project is read or written. A file is replaced only if its content is
still what the caller read.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from learnt.errors import LearntError, TryAgain, WrongRequest, cannot_write, make_writable
from learnt.flow.background import LOCK
from learnt.flow.context import GOALS_FOLDER, LEARNINGS_FILE, name_seen_note
from learnt.model import check_goal
from learnt.project import STORE_FOLDER
from learnt.store import Store
from learnt.system import files
from learnt.system.files import Locked

FILE = LEARNINGS_FILE
_MAX_BYTES = 5_000_000


def path_of(root: str, goal: str = "") -> str:
    """Return the path of the learnings file of a project or of one of its goals; each worktree has its own files."""
    check_goal(goal)
    folder = os.path.join(root, STORE_FOLDER)
    return os.path.join(folder, GOALS_FOLDER, f"{goal}.md") if goal else os.path.join(folder, FILE)


def goals(root: str) -> list[str]:
    """Return the goals that have a file."""
    return [os.path.basename(path).removesuffix(".md") for path in paths(root)[1:]]


def paths(root: str) -> list[str]:
    """Return the paths of the project's own file, which might not exist, and of its goals' files."""
    folder = os.path.join(root, STORE_FOLDER, GOALS_FOLDER)
    try:
        names = files.list_names(folder)
    except OSError as error:
        raise _cannot_read(folder, error) from None
    return [path_of(root), *(os.path.join(folder, name) for name in names if name.endswith(".md"))]


def remove_unfinished(path: str) -> None:
    """Remove temporary files of a file that killed processes left; the caller holds the lock."""
    try:
        files.remove_unfinished(path, locked=True, is_former="new".__eq__)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _cannot_read(path, error) from None


@contextmanager
def locked(store: Store) -> Iterator[None]:
    """Hold the learnings files' lock; raise TryAgain if another process holds it."""
    store.make_folder()
    with Locked(os.path.join(store.place.folder, LOCK), wait=False) as acquired:
        if not acquired:
            hint = "`learnt status` shows it; wait a bit, then run the same command again"
            raise TryAgain("the learnings files are being updated by another process", hint=hint)
        yield


def read(path: str) -> bytes | None:
    """Return the content of a learnings file; None if it does not exist. Raise if it is not a readable text file."""
    try:
        content = files.read_own(path, max_bytes=_MAX_BYTES)
        content.decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise WrongRequest(f"{path} is not UTF-8 text", hint="save it as UTF-8, then try again") from None
    except OSError as error:
        raise _cannot_read(path, error) from None
    return content


def _cannot_read(path: str, error: OSError) -> LearntError:
    if error.errno == errno.EFBIG:
        return WrongRequest(f"{path} is larger than {_MAX_BYTES:,} bytes", hint="shorten it, or move it elsewhere")
    if error.errno in (errno.EINVAL, errno.EISDIR):
        return WrongRequest(f"{path} is not a file", hint="move it elsewhere; `learnt update` then writes the file")
    if error.errno in (errno.ELOOP, errno.EPERM):
        return WrongRequest(f"cannot use {path}: {error.strerror}", hint="put a file of your own in its place")
    return LearntError(f"cannot read {path}: {error.strerror}", hint="check the file's permissions")


def check_not_in_editor(path: str) -> None:
    """Raise if an editor's lock file shows that the editor has the file open with unsaved changes."""
    folder, name = os.path.split(path)
    for lock in (f".{name}.swp", f".#{name}"):
        if os.path.lexists(os.path.join(folder, lock)):
            raise TryAgain(
                f"{path} is open in an editor", hint=f"save and close it, or remove {lock} if no editor has it open"
            )


def note_seen(store: Store, path: str, content: bytes) -> None:
    """Note that a file has been read or written with this content, so that it is not read again until it changes."""
    # The status is read first: if the file is saved now, the note is that of another status or is not made.
    note = name_seen_note(store.place.folder, path)
    if not note or read(path) != content:
        return
    folder, name = os.path.split(note)
    try:
        files.make_folders(folder)
        files.touch_private(note)
        for other in files.list_names(folder):
            if other != name and other.partition("-")[0] == name.partition("-")[0]:
                files.remove_file(os.path.join(folder, other))
    except OSError:
        return  # it is read again


def replace(path: str, before: bytes | None, text: str) -> bool:
    """Replace a file if its content is still `before`; otherwise leave it alone and return False.

    The caller holds the lock.
    """
    try:
        files.make_folders(os.path.dirname(path), mode=0o777)
        remove_unfinished(path)
        return files.replace_shared(path, (text.encode(),), mode=0o644, is_unchanged=lambda: read(path) == before)
    except OSError as error:
        raise cannot_write(path, error, hint=make_writable(os.path.dirname(path))) from None
