"""Replace several files at once: all of them, or none.

Everything is written beside its place first, so that a full disk or a folder that cannot be written is known before
anything changes. Links and modes stay; a file that somebody else has changed meanwhile is not written over.
"""

from __future__ import annotations

import glob
import os

from learnt.errors import LearntError, TryAgain, cannot_write
from learnt.model import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_FOREVER_READ_ONLY = "it is read-only; make it writable for you (`chmod u+w`)"


class Replacement(Value):
    """What a file was and what it becomes; None stands for no file. `mode` is for a new one."""

    path: str
    before: bytes | None
    after: bytes | None
    mode: int = 0o666


def replace_all(replacements: Sequence[Replacement]) -> None:
    """Write all files, or raise and leave all as they were."""
    for one in replacements:
        _refuse_read_only(one.path)
    staged: dict[str, str] = {}
    made: list[str] = []
    done: list[Replacement] = []
    path = ""
    try:
        for one in replacements:
            path = one.path
            if one.after is not None:
                made += _make_folders(os.path.dirname(os.path.realpath(path)))
                _stage(one, staged)
        for one in replacements:
            path = one.path
            if content_of(path) != one.before:
                raise TryAgain(f"{path} was changed by somebody else just now", hint="try again")
            _put(one, staged)
            done.append(one)
    except (OSError, LearntError) as error:
        for one in reversed(done):
            _put_back(one)
        for unfinished in staged.values():
            _unlink(unfinished)
        for folder in reversed(made):
            remove_empty(folder)
        if isinstance(error, LearntError):
            raise
        raise cannot_write(path, error, hint="check who owns the folder and its files") from None


def remove_unfinished(path: str) -> None:
    """Remove what a process that was killed left beside a file; nobody else may be writing it."""
    place = os.path.realpath(path)
    for left in glob.glob(f"{glob.escape(place)}.*.new"):
        if left[len(place) + 1 : -len(".new")].isdigit():
            _unlink(left)


def missing_folders(path: str) -> list[str]:
    """Return the folders that a file needs and that are not there, the outermost first."""
    missing: list[str] = []
    folder = os.path.dirname(os.path.realpath(path))
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return missing


def remove_empty(folder: str) -> None:
    """Remove a folder if nothing is in it."""
    try:
        os.rmdir(folder)
    except OSError:
        return


def _refuse_read_only(path: str) -> None:
    # The mode is looked at, too: to an administrator everything seems writable.
    if os.path.exists(path) and not (os.access(path, os.W_OK) and os.stat(path).st_mode & 0o222):
        raise LearntError(f"cannot write {path}", hint=_FOREVER_READ_ONLY)


def _make_folders(folder: str) -> list[str]:
    missing = missing_folders(os.path.join(folder, "file"))
    os.makedirs(folder, exist_ok=True)
    return missing


def _stage(one: Replacement, staged: dict[str, str]) -> None:
    place = os.path.realpath(one.path)
    unfinished = f"{place}.{os.getpid()}.new"
    staged[one.path] = unfinished
    there = os.stat(place) if os.path.exists(place) else None
    flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC | getattr(os, "O_BINARY", 0)
    mode = there.st_mode & 0o7777 if there else one.mode
    with open(os.open(unfinished, flags, mode), "wb") as file:
        file.write(one.after or b"")
        file.flush()
        os.fsync(file.fileno())
    if there:
        os.chmod(unfinished, mode)  # whatever the process takes away from new files
        _give_to(unfinished, there)


def _give_to(path: str, owner: os.stat_result) -> None:
    mine = os.stat(path)
    if hasattr(os, "chown") and (mine.st_uid, mine.st_gid) != (owner.st_uid, owner.st_gid):
        try:
            os.chown(path, owner.st_uid, owner.st_gid)
        except OSError:
            return  # only an administrator may


def _put(one: Replacement, staged: dict[str, str]) -> None:
    if one.after is not None:
        os.replace(staged.pop(one.path), os.path.realpath(one.path))
    elif one.before is not None:
        os.unlink(os.path.realpath(one.path))


def _put_back(one: Replacement) -> None:
    try:
        if one.before is None:
            os.unlink(os.path.realpath(one.path))
            return
        again: dict[str, str] = {}
        _stage(one.replace(after=one.before), again)
        _put(one.replace(after=one.before), again)
    except OSError:
        return


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def content_of(path: str) -> bytes | None:
    """Return what is in a file; None when there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LearntError(f"cannot read {path}: {error.strerror}", hint="check who may read the file") from None
