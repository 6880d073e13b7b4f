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

ACCEPTS_ALL = "*"  # accepted settings: all of them, also those that come later
NOTHING = ""
ID_FILE = "id"
PROMPTS = "prompts"
RECORDS = "trust"
_LOCK = "lock"
_SAME_TIME_NS = 1_000_000
_MAX_BYTES = 1_000_000
_MAX_INDEX_BYTES = 500_000_000
_OTHERS = 0o077
# What people write and share; it is read as text of strangers, and makes no store.
SHARED = frozenset((".gitignore", "learnings.md", "learnings", PROMPTS, HOOK_LOG, "fired", "backups"))
_MAX_ACCEPTED = 500


class Standing(Value):
    """Whether a project is trusted, and which of its settings are accepted."""

    trusted: bool
    id: str = ""
    """The id of the store; empty if it has none yet."""
    settings: str = NOTHING
    """The digests of the settings that the user has accepted, with spaces between them; or ACCEPTS_ALL."""
    prompts: str = NOTHING
    """The digests of the prompts that the user has accepted, likewise."""
    has_moved: bool = False
    """Whether the store is no longer where the record says."""
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
        return _examine_recorded(here.folder, id, record)
    if not _has_store(here.folder):
        return Standing(trusted=True)
    if _was_written_here(here.folder):
        return Standing(trusted=True, is_older=True)
    if record:
        return Standing(trusted=False, reason=f"{here.folder} is a copy of {record['folder']}")
    return Standing(trusted=False, reason=f"nothing says that your learnt made {here.folder}")


def _examine_recorded(folder: str, id: str, record: dict[str, object]) -> Standing:
    brought = find_brought(folder)
    if brought:
        return Standing(trusted=False, reason=f"git has put {brought} into {folder}")
    settings, prompts = (str(record.get(name, NOTHING)) for name in ("settings", "prompts"))
    return Standing(trusted=True, id=id, settings=settings, prompts=prompts, has_moved=record.get("folder") != folder)


def is_below(path: str, folders: Sequence[str]) -> bool:
    """Return whether a path is one of these folders, or below one."""
    return any(
        path == folder or path.startswith(os.path.join(folder, ""))
        for folder in (os.path.realpath(os.path.expanduser(folder)) for folder in folders)
    )


def is_accepted(wanted: str, accepted: str) -> bool:
    """Return whether the user has accepted all these digests."""
    return accepted == ACCEPTS_ALL or set(wanted.split()) <= set(accepted.split())


def require_trust(standing: Standing) -> None:
    """Raise unless a project is trusted."""
    if not standing.trusted:
        raise NotTrusted(
            f"this project is not trusted: {standing.reason}",
            hint="`learnt trust` shows what it contains and asks; until then nothing of it is used",
        )


def adopt_store(here: Project, environ: dict[str, str], *, settings: str = NOTHING, prompts: str = NOTHING) -> str:
    """Trust a store from now on, and return its id; its folder must exist.

    `settings` and `prompts` are the digests of what is accepted besides what was accepted before.
    """
    records = _records_folder(environ)
    try:
        for folder in (user_data_folder(environ), records):
            files.make_folders(folder)
        with files.Locked(os.path.join(records, _LOCK)):  # others may make the same store at the same time
            return _adopt(here, records, {"settings": settings, "prompts": prompts})
    except OSError as error:
        raise cannot_write(records, error, hint="trust is recorded there: make the folder writable") from None


def _adopt(here: Project, records: str, accepted: dict[str, str]) -> str:
    id = read_id(here.folder)
    record = _read_record(records, id) if id else {}
    if not id or (record and _is_copy(here.folder, id, record)):
        id, record = f"store_{os.urandom(16).hex()}", {}
    content = {
        "folder": here.folder,
        "owner": os.lstat(here.folder).st_uid,
        **{name: _join(str(record.get(name, NOTHING)), value) for name, value in accepted.items()},
        "at": time.time_ns() // 1_000_000,
    }
    files.replace_file(os.path.join(records, id), json.dumps(content).encode(), durable=False)
    if read_id(here.folder) != id:
        files.replace_file(os.path.join(here.folder, ID_FILE), f"{id}\n".encode(), durable=False)
    for name in set(os.listdir(here.folder)) - SHARED:
        files.make_private(os.path.join(here.folder, name))
    return id


def _join(known: str, new: str) -> str:
    """Return what is accepted, newest last: on another branch, what was accepted before may count again."""
    return " ".join(dict.fromkeys([*known.split(), *new.split()][-_MAX_ACCEPTED:]))


def digest_prompts(folder: str) -> str:
    """Return the digest of a store's own prompts; empty if it has none."""
    prompts = os.path.join(folder, PROMPTS)
    try:
        names = sorted(os.listdir(prompts))
    except OSError:
        return ""
    contents = [f"{name}\0{_read_small(os.path.join(prompts, name)).hex()}" for name in names]
    return digest("\n".join(contents)) if names else ""


def is_tracked(folder: str) -> bool | None:
    """Return whether git tracks more of a store than people share; None if only git can tell."""
    tracked = _list_tracked(folder)
    return None if tracked is None else bool(tracked - SHARED)


def find_brought(folder: str, names: Collection[str] | None = None) -> str:
    """Return the name of something in a store that git has made; empty if there is none.

    `names` are those to look at; by default, all but what people share. learnt's own files are private, and git's are
    as open as the user's mask lets. Git removes a file before it makes another one in its place, so the mode is never
    that of the file before.
    """
    present = set(os.listdir(folder)) - SHARED if names is None else names
    public = sorted(name for name in present if _is_public(os.path.join(folder, name)))
    tracked = _list_tracked(folder) if public else set()
    return next((name for name in public if tracked is None or name in tracked), "")


def revoke(here: Project, environ: dict[str, str]) -> bool:
    """Take trust back; return whether there was any."""
    id = read_id(here.folder)
    if not id:
        return False
    try:
        os.unlink(os.path.join(_records_folder(environ), id))
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


def _was_written_here(folder: str) -> bool:
    """Return whether a store without an id was last written on this machine, and git did not bring it.

    A file that came in an archive has the time of its author's last change, and the system notes when it was unpacked.
    """
    if os.path.lexists(os.path.join(folder, ID_FILE)):
        return False
    try:
        status = os.lstat(os.path.join(folder, "learnt.db"))
    except OSError:
        return False
    return abs(status.st_ctime_ns - status.st_mtime_ns) < _SAME_TIME_NS and is_tracked(folder) is False


def _list_tracked(folder: str) -> set[str] | None:
    """Return the names of what git tracks in a store; None if only git can tell."""
    holder, name = os.path.split(folder)
    if os.path.lexists(os.path.join(folder, ".git")):
        return set(os.listdir(folder))  # a submodule
    try:
        content = files.read_regular(index_of(holder), max_bytes=_MAX_INDEX_BYTES)
    except FileNotFoundError:
        return set()
    except (OSError, ValueError, LearntError):
        return None
    if content[4:8] not in (b"\0\0\0\2", b"\0\0\0\3"):
        return None  # from version 4 on, the index shortens paths
    found = re.findall(rb"(?<!/)%b/([^/\0]+)" % re.escape(name.encode()), content)
    return {os.fsdecode(path) for path in found}


def _is_public(path: str) -> bool:
    try:
        return bool(os.lstat(path).st_mode & _OTHERS)
    except OSError:
        return False


def _records_folder(environ: dict[str, str]) -> str:
    return os.path.join(user_data_folder(environ), RECORDS)


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
