"""Replace several files at once: all of them, or none.

All new content is written next to the old files first, so that a full disk or a read-only folder is noticed before
anything changes. Links and modes stay. A file that another program has changed in the meantime is not overwritten.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence

from learnt.errors import LearntError, TryAgain, cannot_write
from learnt.model import Value
from learnt.system.files import stage

_READ_ONLY = "it is read-only; make it writable for you (`chmod u+w`)"


class Replacement(Value):
    """The old and the new content of a file; None means no file. `mode` is that of a new file."""

    path: str
    before: bytes | None
    after: bytes | None
    mode: int = 0o666


def replace_all(replacements: Sequence[Replacement]) -> None:
    """Write all files, or raise and leave all as they were."""
    for replacement in replacements:
        _refuse_read_only(replacement.path)
    staged: dict[str, str] = {}
    folders: list[str] = []
    done: list[Replacement] = []
    path = ""
    try:
        for replacement in replacements:
            path = replacement.path
            if replacement.after is not None:
                folders += _make_folders(path)
                _stage(replacement, staged)
        for replacement in replacements:
            path = replacement.path
            if content_of(path) != replacement.before:
                raise TryAgain(f"{path} was just changed by another program", hint="try again")
            _put(replacement, staged)
            done.append(replacement)
    except (OSError, LearntError) as error:
        for replacement in reversed(done):
            _put_back(replacement)
        for unfinished in staged.values():
            _unlink(unfinished)
        for folder in reversed(folders):
            remove_empty(folder)
        if isinstance(error, LearntError):
            raise
        raise cannot_write(path, error, hint="check who owns the folder and its files") from None


def content_of(path: str) -> bytes | None:
    """Return the content of a file; None if it does not exist."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LearntError(f"cannot read {path}: {error.strerror}", hint="check who may read the file") from None


def remove_unfinished(path: str) -> None:
    """Remove temporary files that a killed process left next to a file; no other process may be writing it."""
    place = os.path.realpath(path)
    for unfinished in glob.glob(f"{glob.escape(place)}.*.new"):
        if unfinished[len(place) + 1 : -len(".new")].isdigit():
            _unlink(unfinished)


def missing_folders(path: str) -> list[str]:
    """Return the folders above a file that do not exist, outermost first."""
    missing: list[str] = []
    folder = os.path.dirname(os.path.realpath(path))
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return missing


def remove_empty(folder: str) -> None:
    """Remove a folder if it is empty."""
    try:
        os.rmdir(folder)
    except OSError:
        return


def _refuse_read_only(path: str) -> None:
    # The mode is checked as well, because an administrator can write to any file.
    if os.path.exists(path) and not (os.access(path, os.W_OK) and os.stat(path).st_mode & 0o222):
        raise LearntError(f"cannot write {path}", hint=_READ_ONLY)


def _make_folders(path: str) -> list[str]:
    missing = missing_folders(path)
    os.makedirs(os.path.dirname(os.path.realpath(path)), exist_ok=True)
    return missing


def _stage(replacement: Replacement, staged: dict[str, str]) -> None:
    place = os.path.realpath(replacement.path)
    unfinished = f"{place}.{os.getpid()}.new"
    staged[replacement.path] = unfinished
    present = os.stat(place) if os.path.exists(place) else None
    mode = present.st_mode & 0o7777 if present else replacement.mode
    stage(unfinished, (replacement.after or b"",), mode=mode)
    if present:
        os.chmod(unfinished, mode)  # undoes the process's umask
        _give_to(unfinished, present)


def _give_to(path: str, owner: os.stat_result) -> None:
    ours = os.stat(path)
    if hasattr(os, "chown") and (ours.st_uid, ours.st_gid) != (owner.st_uid, owner.st_gid):
        try:
            os.chown(path, owner.st_uid, owner.st_gid)
        except OSError:
            return  # only an administrator can do this


def _put(replacement: Replacement, staged: dict[str, str]) -> None:
    if replacement.after is not None:
        os.replace(staged.pop(replacement.path), os.path.realpath(replacement.path))
    elif replacement.before is not None:
        os.unlink(os.path.realpath(replacement.path))


def _put_back(replacement: Replacement) -> None:
    try:
        if replacement.before is None:
            os.unlink(os.path.realpath(replacement.path))
            return
        staged: dict[str, str] = {}
        reverse = replacement.replace(after=replacement.before)
        _stage(reverse, staged)
        _put(reverse, staged)
    except OSError:
        return


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
