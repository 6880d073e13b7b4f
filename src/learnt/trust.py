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
from learnt.model import Value, is_id, new_id
from learnt.project import HOOK_LOG, user_data_folder
from learnt.system.files import replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from learnt.project import Project

EVERYTHING = "*"  # accepted settings: all of them, also those that come later
NOTHING = "-"
ID_FILE = "id"
_RECORDS = "trust"
_SINCE = "since"
_MAX_BYTES = 10_000
# What people write and share; it is read as text of strangers, and makes no store.
SHARED = frozenset((".gitignore", "learnings.md", "learnings", "prompts", HOOK_LOG, "fired", "backups"))
# Set by the clients in the shells that they give to their agents.
_AGENT_VARIABLES = (
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
    settings: str = ""
    """The digest of the settings that the user has accepted, or EVERYTHING."""
    reason: str = ""
    """Why it is not trusted."""


def is_agent(environ: dict[str, str]) -> bool:
    """Return whether this process runs in the shell of an agent, which cannot speak for a person."""
    return any(environ.get(name) for name in _AGENT_VARIABLES)


def examine(here: Project, environ: dict[str, str], trusted_folders: Sequence[str] = ()) -> Standing:
    """Return how far a project is trusted; reads two small files, so that a hook can afford it."""
    reason = _find_stranger(here.folder)
    if reason:
        return Standing(trusted=False, reason=reason)
    if any(_is_below(here.root, folder) for folder in trusted_folders):
        return Standing(trusted=True, id=_read_id(here.folder), settings=EVERYTHING)
    id = _read_id(here.folder)
    record = _read_record(environ, id) if id else {}
    if record and not _is_copy(here.folder, id, record):
        return Standing(trusted=True, id=id, settings=str(record.get("settings", "")))
    if not _holds_store(here.folder):
        return Standing(trusted=True)
    if not id and _is_older_than_trust(here, environ):
        return Standing(trusted=True, id=adopt(here, environ))
    what = f"{here.folder} is a copy of {record['folder']}" if record else f"{here.folder} was not made by your learnt"
    return Standing(trusted=False, reason=what)


def require(here: Project, standing: Standing) -> None:
    """Raise unless a project is trusted."""
    if not standing.trusted:
        raise NotTrusted(
            f"this project is not trusted: {standing.reason}",
            hint="`learnt trust` shows what it holds and asks; until then nothing of it is used",
        )


def adopt(here: Project, environ: dict[str, str], *, settings: str | None = None) -> str:
    """Trust a store from now on, and return its id.

    `settings`: the digest of the accepted settings, None to leave that as it is.
    """
    id = _read_id(here.folder)
    record = _read_record(environ, id) if id else {}
    if not id or (record and _is_copy(here.folder, id, record)):
        id, record = new_id("store", time.time_ns() // 1_000_000), {}
    accepted = record.get("settings", "") if settings is None else settings
    content = {"folder": here.folder, "settings": accepted, "at": time.time_ns() // 1_000_000}
    path = os.path.join(_records_folder(environ), id)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        replace_file(path, json.dumps(content).encode(), unfinished=f"{path}.{os.getpid()}", durable=False)
        if _read_id(here.folder) != id:
            own = os.path.join(here.folder, ID_FILE)
            replace_file(own, f"{id}\n".encode(), unfinished=f"{own}.{os.getpid()}", durable=False)
    except OSError as error:
        raise cannot_write(path, error, hint="trust is recorded there: make the folder writable") from None
    return id


def revoke(here: Project, environ: dict[str, str]) -> bool:
    """Take trust back; return whether there was any."""
    id = _read_id(here.folder)
    try:
        os.unlink(os.path.join(_records_folder(environ), id or "-"))
    except FileNotFoundError:
        return False
    return True


def _find_stranger(folder: str) -> str:
    """Return why the folder of a store cannot be the user's own, from its kind and its owner alone."""
    try:
        status = os.lstat(folder)
    except OSError:
        return ""  # there is none, or opening it says why
    if stat.S_ISLNK(status.st_mode):
        return f"{folder} is a link"
    if not stat.S_ISDIR(status.st_mode):
        return f"{folder} is not a folder"
    if sys.platform != "win32" and status.st_uid != os.geteuid():
        return f"{folder} belongs to another user"
    return ""


def _is_below(path: str, folder: str) -> bool:
    folder = os.path.realpath(os.path.expanduser(folder))
    return path == folder or path.startswith(os.path.join(folder, ""))


def _is_copy(folder: str, id: str, record: dict[str, object]) -> bool:
    """Return whether the recorded folder still has this store, so that ours is another one."""
    recorded = str(record.get("folder", ""))
    return recorded != folder and _read_id(recorded) == id


def _holds_store(folder: str) -> bool:
    """Return whether a folder holds more than what people share."""
    try:
        return bool(set(os.listdir(folder)) - SHARED)
    except OSError:
        return False


def _is_older_than_trust(here: Project, environ: dict[str, str]) -> bool:
    """Return whether an earlier version made a store: it was there before this version first ran, and git has none."""
    folder = _records_folder(environ)
    since = os.path.join(folder, _SINCE)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.close(os.open(since, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        pass
    except OSError:
        return False
    try:
        changed_at = max(os.lstat(os.path.join(here.folder, name)).st_ctime for name in os.listdir(here.folder))
        return changed_at <= os.lstat(since).st_ctime and not _is_tracked(here)
    except (OSError, ValueError):
        return False


def _is_tracked(here: Project) -> bool:
    """Return whether git may have brought the store: its index names the folder's database, spool or mirror."""
    index = os.path.join(here.root, ".git", "index")
    try:
        with open(index, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    # From version 4 on, names are shortened: then only git could tell.
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


def _read_id(folder: str) -> str:
    id = _read_small(os.path.join(folder, ID_FILE)).decode("ascii", "replace").strip() if folder else ""
    return id if is_id("store", id) else ""


def _read_small(path: str) -> bytes:
    """Return the content of a small plain file; empty for anything else."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return b""
    try:
        return os.read(file, _MAX_BYTES) if stat.S_ISREG(os.fstat(file).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(file)
