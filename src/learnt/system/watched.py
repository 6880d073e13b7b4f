"""The words without which a call concerns nothing in the stores, in one small file beside the project's store.

Most calls contain none of them, so that a hook can end before it opens a database. The worker writes the file within a
transaction, and so do the commands that set up a project. Whoever adds a trigger, or what worked instead of a command,
removes it within a transaction, too, so no outdated file remains. What else the words depend on (settings, other
stores) is compared by size and time.
"""

from __future__ import annotations

import json
import os

from learnt.system.files import read_own, remove_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    Signatures = dict[str, list[int] | None]

FILE = "calls.json"
_VERSION = 1
_MAX_WORDS = 5_000
_MAX_BYTES = 500_000
_MAX_CHARS = 200_000
# A call with one of these arguments runs a command, or reads or changes a file. Other tools may start agents.
_ARGUMENTS = frozenset(("command", "cmd", "file_path", "filePath", "absolute_path", "notebook_path", "path"))
_PATCH = "*** begin patch"
_UNREADABLE = (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError)


def forget(database: str) -> None:
    """Within a transaction: remove the file beside a database's file, because what it says no longer holds.

    Hooks do not compare calls with words if the store is on a server.
    """
    if os.path.isabs(database):
        remove_file(os.path.join(os.path.dirname(database), FILE))


def write(folder: str, words: Iterable[str], *, any_file: bool, database: str, others: Signatures) -> None:
    """Write the file, unless there are too many words, or one that cannot be looked for.

    `any_file` means that something is said about files whatever their names. `others` are the signatures of the files
    on which the words depend, from before those were read.
    """
    listed = sorted(set(words))
    if len(listed) > _MAX_WORDS or not all(word and word.isascii() for word in listed):
        return
    content = {
        "version": _VERSION,
        "words": listed,
        "any_file": any_file,
        "database": database,
        "inode": os.stat(database).st_ino,
        "others": others,
    }
    replace_file(os.path.join(folder, FILE), json.dumps(content).encode(), durable=False)


def signature(path: str) -> list[int] | None:
    """Return what changes with a file; None if there is no file or it is empty, as the log of an unchanged database."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return [status.st_ino, status.st_size, status.st_mtime_ns] if status.st_size else None


def has_file(folder: str) -> bool:
    """Return whether there is a file, perhaps an outdated one."""
    return os.path.lexists(os.path.join(folder, FILE))


def is_current(folder: str) -> bool:
    """Return whether calls can be compared with the words, because nothing has changed since they were written."""
    try:
        return _is_current(_read(folder))
    except _UNREADABLE:
        return False


def concerns_nothing(folder: str, tool: str, arguments: object) -> bool:
    """Return whether a call surely concerns nothing in the stores; in case of doubt, return False."""
    if not isinstance(arguments, dict) or _ARGUMENTS.isdisjoint(arguments) or "prompt" in arguments or "mcp" in tool:
        return False  # perhaps a tool that starts an agent, or one of our own
    text = "\n".join((tool, *_list_texts(arguments))).lower()
    if len(text) > _MAX_CHARS or not text.isascii():
        return False
    try:
        known = _read(folder)
        is_about_files = not {"command", "cmd"} & arguments.keys() or _PATCH in text
        if not _is_current(known) or (known["any_file"] and is_about_files):
            return False
        return not any(word in text for word in known["words"])
    except _UNREADABLE:
        return False


def _read(folder: str) -> Any:
    return json.loads(read_own(os.path.join(folder, FILE), max_bytes=_MAX_BYTES))


def _is_current(known: Any) -> bool:
    is_same = known["version"] == _VERSION and known["inode"] == os.stat(known["database"]).st_ino
    return is_same and all(signature(path) == status for path, status in known["others"].items())


def _list_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _list_texts(part)
