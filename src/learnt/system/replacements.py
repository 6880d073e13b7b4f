"""Replace several files together: either all of them are replaced, or none.

All new content is first written to temporary files next to the old files, so that a full disk or a read-only folder is
noticed before anything changes. File modes are preserved. A file that another program has changed in the meantime is
not overwritten.

Below the folder `closed` no link is followed, because a cloned project may contain links to anywhere. Elsewhere, people
link their own settings files: there, links of the user or the administrator are followed and preserved.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from learnt.errors import LearntError, TryAgain, WrongRequest, cannot_write, make_writable
from learnt.model import Value
from learnt.system import files

_MAX_BYTES = 50_000_000
_READ_ONLY = "it is read-only; make it writable (`chmod u+w`)"


class Replacement(Value):
    """A file's old and new content; None means that the file does not exist. `mode` applies if the file is new."""

    path: str
    before: bytes | None
    after: bytes | None
    mode: int = 0o666
    closed: str = ""
    """The folder below which no link is followed; empty if there is none."""


def replace_all(replacements: Sequence[Replacement]) -> None:
    """Write all files, or raise and leave all of them unchanged."""
    for replacement in replacements:
        _refuse_read_only(replacement.path, resolve(replacement.path, replacement.closed))
    staged: dict[str, str] = {}
    folders: list[str] = []
    done: list[Replacement] = []
    path = ""
    try:
        for replacement in replacements:
            path = replacement.path
            if replacement.after is not None:
                folders += _make_folders(path, replacement.closed)
                _stage(replacement, staged)
        for replacement in replacements:
            path = replacement.path
            if content_of(path, replacement.closed) != replacement.before:
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
        raise cannot_write(path, error, hint=make_writable(os.path.dirname(path))) from None


def resolve(path: str, closed: str = "") -> str:
    """Return the path of the file behind a path; raise if a link on the way must not be followed."""
    real = os.path.realpath(path)
    if real == path:
        return path
    for place in _with_parents(path):
        if os.path.islink(place) and not _may_follow(place, closed):
            hint = "replace it with a file or folder of your own, and try again"
            raise WrongRequest(f"cannot use {path}: {place} is a link, which learnt does not follow here", hint=hint)
    return real


def _with_parents(path: str) -> list[str]:
    places = [os.path.abspath(path)]
    while os.path.dirname(places[-1]) != places[-1]:
        places.append(os.path.dirname(places[-1]))
    return places


def _may_follow(link: str, closed: str) -> bool:
    if closed and link.startswith(os.path.join(closed, "")):
        return False
    return sys.platform == "win32" or os.lstat(link).st_uid in (0, os.geteuid())


def content_of(path: str, closed: str = "") -> bytes | None:
    """Return a file's content; None if it does not exist."""
    try:
        return files.read_regular(resolve(path, closed), max_bytes=_MAX_BYTES)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise WrongRequest(f"cannot read {path}: {error}", hint="move it elsewhere") from None
    except OSError as error:
        raise LearntError(f"cannot read {path}: {error.strerror}", hint="check the file's permissions") from None


def remove_unfinished(path: str, closed: str = "") -> None:
    """Remove temporary files that a killed process left next to a file; no other process must be writing to it."""
    try:
        files.remove_unfinished(resolve(path, closed), locked=True, is_former=_is_former_ending)
    except OSError:
        return


def _is_former_ending(ending: str) -> bool:
    return ending.endswith(".new") and ending.removesuffix(".new").isdecimal()


def missing_folders(path: str, closed: str = "") -> list[str]:
    """Return the folders above a file that do not exist, outermost first."""
    missing: list[str] = []
    folder = os.path.dirname(resolve(path, closed))
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


def _refuse_read_only(path: str, place: str) -> None:
    # The mode is checked as well, because `os.access` allows an administrator to write to any file.
    if os.path.exists(place) and not (os.access(place, os.W_OK) and os.stat(place).st_mode & 0o222):
        raise LearntError(f"cannot write {path}", hint=_READ_ONLY)


def _make_folders(path: str, closed: str) -> list[str]:
    missing = missing_folders(path, closed)
    files.make_folders(os.path.dirname(resolve(path, closed)), mode=0o777)
    return missing


def _stage(replacement: Replacement, staged: dict[str, str]) -> None:
    place = resolve(replacement.path, replacement.closed)
    old = os.lstat(place) if os.path.lexists(place) else None
    mode = old.st_mode & 0o7777 if old else replacement.mode
    unfinished = staged[replacement.path] = files.stage(place, (replacement.after or b"",), mode=mode)
    if old:
        os.chmod(unfinished, mode)  # undoes the process's umask
        _copy_owner(old, unfinished)


def _copy_owner(source: os.stat_result, path: str) -> None:
    target = os.lstat(path)
    if hasattr(os, "chown") and (target.st_uid, target.st_gid) != (source.st_uid, source.st_gid):
        try:
            os.chown(path, source.st_uid, source.st_gid)
        except OSError:
            return  # only an administrator can do this


def _put(replacement: Replacement, staged: dict[str, str]) -> None:
    place = resolve(replacement.path, replacement.closed)
    if replacement.after is not None:
        os.replace(staged[replacement.path], place)
        del staged[replacement.path]
    elif replacement.before is not None:
        os.unlink(place)


def _put_back(replacement: Replacement) -> None:
    try:
        if replacement.before is None:
            os.unlink(resolve(replacement.path, replacement.closed))
            return
        staged: dict[str, str] = {}
        reverse = replacement.replace(after=replacement.before)
        _stage(reverse, staged)
        _put(reverse, staged)
    except (OSError, LearntError):
        return


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
