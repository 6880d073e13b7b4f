"""Replace several files together: either all of them are replaced, or none.

All new content is first written to temporary files next to the old files, so that a full disk or a read-only folder is
noticed before anything changes. Symbolic links and file modes are preserved. A file that another program has changed
in the meantime is not overwritten.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence

from learnt.errors import LearntError, TryAgain, cannot_write
from learnt.model import Value
from learnt.system.files import stage

_READ_ONLY = "it is read-only; make it writable (`chmod u+w`)"


class Replacement(Value):
    """A file's old and new content; None means that the file does not exist. `mode` applies if the file is new."""

    path: str
    before: bytes | None
    after: bytes | None
    mode: int = 0o666


def replace_all(replacements: Sequence[Replacement]) -> None:
    """Write all files, or raise and leave all of them unchanged."""
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
            remove_folder_if_empty(folder)
        if isinstance(error, LearntError):
            raise
        raise cannot_write(path, error, hint="check the owner of the folder and its files") from None


def content_of(path: str) -> bytes | None:
    """Return a file's content; None if it does not exist."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LearntError(f"cannot read {path}: {error.strerror}", hint="check the file's permissions") from None


def remove_unfinished(path: str) -> None:
    """Remove temporary files that a killed process left next to a file; no other process must be writing to it."""
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


def remove_folder_if_empty(folder: str) -> None:
    """Remove a folder if it is empty."""
    try:
        os.rmdir(folder)
    except OSError:
        return


def _refuse_read_only(path: str) -> None:
    # The mode is checked as well, because `os.access` allows an administrator to write to any file.
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
    old = os.stat(place) if os.path.exists(place) else None
    mode = old.st_mode & 0o7777 if old else replacement.mode
    stage(unfinished, (replacement.after or b"",), mode=mode)
    if old:
        os.chmod(unfinished, mode)  # undoes the process's umask
        _copy_owner(old, unfinished)


def _copy_owner(source: os.stat_result, path: str) -> None:
    target = os.stat(path)
    if hasattr(os, "chown") and (target.st_uid, target.st_gid) != (source.st_uid, source.st_gid):
        try:
            os.chown(path, source.st_uid, source.st_gid)
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
