"""Who vouches for a project's store and settings: what came with a clone has no effect until the user trusts it.

A store that this user's learnt made has an id, in a file beside it. The user's own data folder has a record for each
trusted id: where the store is, and which of the project's settings the user has accepted. A store without a record
came from somebody else. A store that has moved is recognised by its id; a copy beside the original is not trusted.
Nothing here follows a link, and nothing of an untrusted store is opened except the file with its id.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import time

from learnt.clients.registry import AGENT_VARIABLES
from learnt.errors import LearntError, NotTrusted, cannot_write
from learnt.model import Value, digest, is_id
from learnt.project import HOOK_LOG, index_of, user_data_folder
from learnt.system import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from learnt.project import Project

EVERYTHING = "*"  # accepted settings: all of them, also those that come later
NOTHING = "-"
ID_FILE = "id"
PROMPTS = "prompts"
_RECORDS = "trust"
_LOCK = "lock"
_USED_FOR_S = 3_600
_MAX_BYTES = 1_000_000
_MAX_INDEX_BYTES = 500_000_000
_OTHERS = 0o077
# What people write and share; it is read as text of strangers, and makes no store.
SHARED = frozenset((".gitignore", "learnings.md", "learnings", PROMPTS, HOOK_LOG, "fired", "backups"))
# What only learnt writes; nobody but the user may read it.
_PRIVATE = (
    ID_FILE,
    "learnt.db",
    "learnt.db-wal",
    "learnt.db-journal",
    "learnt.db.damaged",
    "mirror.db",
    "mirror.db-wal",
)


class Standing(Value):
    """Whether a project is trusted, and which of its settings are accepted."""

    trusted: bool
    id: str = ""
    """The id of the store; empty if it has none yet."""
    settings: str = NOTHING
    """The digest of the settings that the user has accepted, EVERYTHING or NOTHING."""
    prompts: str = ""
    """The digest of the prompts that the user has accepted, or EVERYTHING; empty without prompts."""
    is_older: bool = False
    """Whether an earlier version of this user's learnt made the store, so that it gets an id now."""
    reason: str = ""
    """Why it is not trusted."""


def is_agent(environ: Mapping[str, str]) -> bool:
    """Return whether this process runs in the shell of an agent, which cannot speak for a person."""
    return any(environ.get(name) for name in AGENT_VARIABLES)


def examine_store(here: Project, environ: dict[str, str]) -> Standing:
    """Return how far a project is trusted; reads two small files, so that a hook can afford it."""
    try:
        status = os.lstat(here.folder)
    except OSError:
        return Standing(trusted=True)  # there is no store, or opening it says what is wrong
    if not stat.S_ISDIR(status.st_mode):
        kind = "a link" if stat.S_ISLNK(status.st_mode) else "not a folder"
        return Standing(trusted=False, reason=f"{here.folder} is {kind}")
    id = read_id(here.folder)
    record = _read_record(_records_folder(environ), id) if id else {}
    if status.st_uid not in (files.user_id(), record.get("owner")):
        return Standing(trusted=False, reason=f"{here.folder} belongs to another user")
    if record and not _is_copy(here.folder, id, record):
        public = [name for name in _PRIVATE if _may_be_of_git(os.path.join(here.folder, name))]
        if public and is_tracked(here.folder, public) is not False:
            return Standing(trusted=False, reason=f"git has put {public[0]} into {here.folder}")
        settings, prompts = (str(record.get(name, NOTHING)) for name in ("settings", "prompts"))
        return Standing(trusted=True, id=id, settings=settings, prompts=prompts)
    if not _has_store(here.folder):
        return Standing(trusted=True)
    if not id and _was_used_here(here):
        return Standing(trusted=True, is_older=True)
    what = f"{here.folder} is a copy of {record['folder']}" if record else f"{here.folder} was not made by your learnt"
    return Standing(trusted=False, reason=what)


def is_below(path: str, folders: Sequence[str]) -> bool:
    """Return whether a path is one of these folders, or below one."""
    return any(
        path == folder or path.startswith(os.path.join(folder, ""))
        for folder in (os.path.realpath(os.path.expanduser(folder)) for folder in folders)
    )


def require_trust(standing: Standing) -> None:
    """Raise unless a project is trusted."""
    if not standing.trusted:
        raise NotTrusted(
            f"this project is not trusted: {standing.reason}",
            hint="`learnt trust` shows what it contains and asks; until then nothing of it is used",
        )


def adopt_store(
    here: Project, environ: dict[str, str], *, settings: str | None = None, prompts: str | None = None
) -> str:
    """Trust a store from now on, and return its id; its folder must exist.

    `settings` and `prompts` are the digests of what is accepted; None leaves what was accepted as it is.
    """
    records = _records_folder(environ)
    try:
        for folder in (user_data_folder(environ), records):
            files.make_folders(folder)
        with files.Locked(os.path.join(records, _LOCK)):  # others may make the same store at the same time
            return _adopt(here, records, {"settings": settings, "prompts": prompts})
    except OSError as error:
        raise cannot_write(records, error, hint="trust is recorded there: make the folder writable") from None


def _adopt(here: Project, records: str, accepted: dict[str, str | None]) -> str:
    id = read_id(here.folder)
    record = _read_record(records, id) if id else {}
    if not id or (record and _is_copy(here.folder, id, record)):
        id, record = f"store_{os.urandom(16).hex()}", {}
    content = {
        "folder": here.folder,
        "owner": os.lstat(here.folder).st_uid,
        **{name: record.get(name, NOTHING) if value is None else value for name, value in accepted.items()},
        "at": time.time_ns() // 1_000_000,
    }
    files.replace_file(os.path.join(records, id), json.dumps(content).encode(), durable=False)
    if read_id(here.folder) != id:
        files.replace_file(os.path.join(here.folder, ID_FILE), f"{id}\n".encode(), durable=False)
    for name in _PRIVATE:
        files.make_private(os.path.join(here.folder, name))
    return id


def digest_prompts(folder: str) -> str:
    """Return the digest of a store's own prompts; empty if it has none."""
    prompts = os.path.join(folder, PROMPTS)
    try:
        names = sorted(os.listdir(prompts))
    except OSError:
        return ""
    contents = [f"{name}\0{_read_small(os.path.join(prompts, name)).hex()}" for name in names]
    return digest("\n".join(contents)) if names else ""


def is_tracked(folder: str, names: Collection[str] = _PRIVATE) -> bool | None:
    """Return whether git tracks any of these files or folders in a store; None if only git can tell."""
    holder, name = os.path.split(folder)
    try:
        content = files.read_regular(index_of(holder), max_bytes=_MAX_INDEX_BYTES)
    except FileNotFoundError:
        return False
    except (OSError, ValueError, LearntError):
        return None
    if content[4:8] not in (b"\0\0\0\2", b"\0\0\0\3"):
        return None  # from version 4 on, the index shortens paths
    store = re.escape(name.encode())
    wanted = b"|".join(re.escape(os.fsencode(name)) for name in names)
    return bool(re.search(rb"(?<!/)%b(?:/(?:%b)[/\0]|\0)" % (store, wanted), content))


def revoke(here: Project, environ: dict[str, str]) -> bool:
    """Take trust back; return whether there was any."""
    id = read_id(here.folder)
    try:
        os.unlink(os.path.join(_records_folder(environ), id or NOTHING))
    except FileNotFoundError:
        return False
    return True


def _is_copy(folder: str, id: str, record: dict[str, object]) -> bool:
    """Return whether the recorded folder still has this store, so that ours is another one."""
    recorded = str(record.get("folder", ""))
    return recorded != folder and read_id(recorded) == id


def _has_store(folder: str) -> bool:
    """Return whether a folder contains more than what people share."""
    try:
        return bool(set(os.listdir(folder)) - SHARED)
    except OSError:
        return True


def _was_used_here(here: Project) -> bool:
    """Return whether this user's learnt has worked with a store for a while, and git did not bring it.

    The times at which files were last changed cannot be brought along: unpacking sets them all at once. Those of what
    people share say nothing.
    """
    try:
        names = set(os.listdir(here.folder)) - SHARED
        times = [os.lstat(os.path.join(here.folder, name)).st_ctime for name in names]
    except OSError:
        return False
    return max(times) - min(times) >= _USED_FOR_S and is_tracked(here.folder, names) is False


def _may_be_of_git(path: str) -> bool:
    """Return whether git may have made a file: learnt's own are private, and git's are as open as the user's mask lets.

    Git removes a file that it replaces, so the mode is never that of the file before.
    """
    try:
        is_private = not os.lstat(path).st_mode & _OTHERS
    except OSError:
        return False
    if is_private and sys.platform != "win32":
        mask = os.umask(_OTHERS)
        os.umask(mask)
        return mask & _OTHERS == _OTHERS
    return True


def _records_folder(environ: dict[str, str]) -> str:
    return os.path.join(user_data_folder(environ), _RECORDS)


def _read_record(records: str, id: str) -> dict[str, object]:
    try:
        record = json.loads(_read_small(os.path.join(records, id)))
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def read_id(folder: str) -> str:
    """Return the id of the store in a folder; empty if it has none."""
    id = _read_small(os.path.join(folder, ID_FILE)).decode("ascii", "replace").strip() if folder else ""
    return id if is_id("store", id) else ""


def _read_small(path: str) -> bytes:
    """Return the content of a small file; empty for anything else."""
    try:
        return files.read_own(path, max_bytes=_MAX_BYTES)
    except OSError:
        return b""
