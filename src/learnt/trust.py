"""Who vouches for a project's store and settings: what came with a clone has no effect until the user trusts it.

A store that this user's learnt made has an id, in a file beside it. The user's own data folder has a record for each
trusted id: where the store is, and which of the project's settings the user has accepted. A store without a record
came from somebody else. A store that has moved is recognised by its id; a copy beside the original is not trusted.
Nothing here follows a link, and nothing of an untrusted store is opened except the file with its id.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time

from learnt.errors import NotTrusted, cannot_write
from learnt.model import Value, digest, is_id
from learnt.project import HOOK_LOG, user_data_folder
from learnt.system import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from learnt.project import Project

EVERYTHING = "*"  # accepted settings: all of them, also those that come later
NOTHING = "-"
ID_FILE = "id"
PROMPTS = "prompts"
_RECORDS = "trust"
_USED_FOR_S = 3_600
_MAX_INDEX_BYTES = 500_000_000
_MAX_BYTES = 1_000_000
# What people write and share; it is read as text of strangers, and makes no store.
SHARED = frozenset((".gitignore", "learnings.md", "learnings", PROMPTS, HOOK_LOG, "fired", "backups"))
# Set by the clients in the shells that they give to their agents.
AGENT_VARIABLES = (
    "AGENT",
    "AI_AGENT",
    "CLAUDECODE",
    "CODEX_SANDBOX",
    "CODEX_THREAD_ID",
    "CURSOR_AGENT",
    "GEMINI_CLI",
    "GOOSE_TERMINAL",
    "LEARNT_TASK",
    "OPENCODE",
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


def examine(here: Project, environ: dict[str, str]) -> Standing:
    """Return how far a project is trusted; reads two small files, so that a hook can afford it."""
    try:
        status = os.lstat(here.folder)
    except OSError:
        return Standing(trusted=True)  # there is no store, or opening it says what is wrong
    if not stat.S_ISDIR(status.st_mode):
        kind = "a link" if stat.S_ISLNK(status.st_mode) else "not a folder"
        return Standing(trusted=False, reason=f"{here.folder} is {kind}")
    id = read_id(here.folder)
    record = _read_record(environ, id) if id else {}
    if status.st_uid not in (_user_id(status), record.get("owner")):
        return Standing(trusted=False, reason=f"{here.folder} belongs to another user")
    if record and not _is_copy(here.folder, id, record):
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


def require(standing: Standing) -> None:
    """Raise unless a project is trusted."""
    if not standing.trusted:
        raise NotTrusted(
            f"this project is not trusted: {standing.reason}",
            hint="`learnt trust` shows what it contains and asks; until then nothing of it is used",
        )


def adopt(here: Project, environ: dict[str, str], *, settings: str | None = None, prompts: str | None = None) -> str:
    """Trust a store from now on, and return its id; its folder must exist.

    `settings` and `prompts` are the digests of what is accepted; None leaves what was accepted as it is.
    """
    id = read_id(here.folder)
    record = _read_record(environ, id) if id else {}
    if not id or (record and _is_copy(here.folder, id, record)):
        id, record = f"store_{os.urandom(16).hex()}", {}
    content = {
        "folder": here.folder,
        "owner": os.lstat(here.folder).st_uid,
        "settings": record.get("settings", NOTHING) if settings is None else settings,
        "prompts": record.get("prompts", NOTHING) if prompts is None else prompts,
        "at": time.time_ns() // 1_000_000,
    }
    path = os.path.join(_records_folder(environ), id)
    try:
        for folder in (user_data_folder(environ), os.path.dirname(path)):
            files.make_folders(folder)
        files.replace_file(path, json.dumps(content).encode(), durable=False)
        if read_id(here.folder) != id:
            own = os.path.join(here.folder, ID_FILE)
            files.replace_file(own, f"{id}\n".encode(), durable=False)
    except OSError as error:
        raise cannot_write(path, error, hint="trust is recorded there: make the folder writable") from None
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


def revoke(here: Project, environ: dict[str, str]) -> bool:
    """Take trust back; return whether there was any."""
    id = read_id(here.folder)
    try:
        os.unlink(os.path.join(_records_folder(environ), id or NOTHING))
    except FileNotFoundError:
        return False
    return True


def _user_id(status: os.stat_result) -> int:
    return status.st_uid if sys.platform == "win32" else os.geteuid()


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

    The times at which files were last changed cannot be brought along: unpacking sets them all at once.
    """
    try:
        times = [os.lstat(os.path.join(here.folder, name)).st_ctime for name in os.listdir(here.folder)]
    except OSError:
        return False
    return max(times) - min(times) >= _USED_FOR_S and not _is_tracked(here)


def _is_tracked(here: Project) -> bool:
    """Return whether git may have brought the store: its index contains a path in the store that people do not share.

    From version 4 on, the index shortens paths, so only git could tell.
    """
    index = os.path.join(here.root, ".git", "index")
    try:
        content = files.read_regular(index, max_bytes=_MAX_INDEX_BYTES)
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    names = (b".learnt/learnt.db", b".learnt/spool", b".learnt/mirror")
    return content[4:8] not in (b"\0\0\0\2", b"\0\0\0\3") or any(name in content for name in names)


def _records_folder(environ: dict[str, str]) -> str:
    return os.path.join(user_data_folder(environ), _RECORDS)


def _read_record(environ: dict[str, str], id: str) -> dict[str, object]:
    try:
        record = json.loads(_read_small(os.path.join(_records_folder(environ), id)))
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
