"""Find the transcripts of a project: those of all clients whose conversation took place in its folder or below it.

Where a client keeps its transcripts, `places` tells: variables of the environment, see `shapes.PLACES`. A transcript
belongs to the folder that it names itself; only where it names none, the name of the folder in which it lies decides.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from learnt.clients.shapes import dig, place
from learnt.clients.transcript.files import first_records
from learnt.clients.transcript.gemini import head, project_folder
from learnt.clients.transcript.opencode import Database, about_of
from learnt.clients.transcript.step import named
from learnt.errors import LearntError
from learnt.model import Value

# Claude Code shortens longer names of folders.
_LONGEST_NAME = 180


class Found(Value):
    """A transcript that exists: `path` is what `steps` takes, `changed_at` its last change in UTC milliseconds."""

    client: str
    path: str
    session: str
    folder: str
    size: int
    changed_at: int


class _File(NamedTuple):
    path: str
    size: int
    changed_at: int


def found(
    places: Mapping[str, str], *, folder: str, since_ms: int, database: Database | None = None
) -> Iterator[Found]:
    """Yield the transcripts of a project folder that changed since then, newest first; `database` reads opencode's."""
    of_all_clients = (
        *_of_claude(place(places, "CLAUDE_CONFIG_DIR", ".claude"), folder, since_ms),
        *_of_codex(place(places, "CODEX_HOME", ".codex"), since_ms),
        *_of_gemini(place(places, "GEMINI_CLI_HOME") or place(places, "HOME"), folder, since_ms),
        *_of_opencode(place(places, "XDG_DATA_HOME", ".local", "share"), since_ms, database),
    )
    wanted = [one for one in of_all_clients if _lies_in(one.folder, folder)]
    yield from sorted(wanted, key=lambda one: (-one.changed_at, one.path))


def _of_claude(root: str, folder: str, since_ms: int) -> Iterator[Found]:
    names = {_as_claude_names(path) for path in (folder, os.path.realpath(folder))}
    for kept_in in _matching(root, "projects", "*"):
        name = os.path.basename(kept_in)[:_LONGEST_NAME]
        if not name.startswith(tuple(names)):
            continue
        for pattern in (("*.jsonl",), ("*", "subagents", "*.jsonl")):
            for file in _changed(since_ms, kept_in, *pattern):
                told, session = _told(file.path, ("cwd",)), _told(file.path, ("sessionId",))
                yield _found("claude", file, session, told or (folder if name in names else ""))


def _as_claude_names(folder: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "-", folder)[:_LONGEST_NAME]


def _of_codex(root: str, since_ms: int) -> Iterator[Found]:
    for pattern in (("sessions", "*", "*", "*", "*.jsonl"), ("archived_sessions", "*.jsonl")):
        for file in _changed(since_ms, root, *pattern):
            session = _told(file.path, ("payload", "id"), ("id",))
            yield _found("codex", file, session, _told(file.path, ("payload", "cwd")))


def _of_gemini(home: str, folder: str, since_ms: int) -> Iterator[Found]:
    from hashlib import sha256

    # Older versions name what they keep by a digest of the project's folder.
    digests = {sha256(path.encode("utf-8", "replace")).hexdigest() for path in (folder, os.path.realpath(folder))}
    for kept_in in _matching(home and os.path.join(home, ".gemini", "tmp"), "*"):
        project = project_folder(kept_in) or (folder if os.path.basename(kept_in) in digests else "")
        if not _lies_in(project, folder):
            continue
        for pattern in (("*.json",), ("*.jsonl",), ("*", "*.jsonl")):
            for file in _changed(since_ms, kept_in, "chats", *pattern):
                yield _found("gemini", file, named(head(file.path).get("sessionId")), project)


def _of_opencode(root: str, since_ms: int, database: Database | None) -> Iterator[Found]:
    path = os.path.join(root, "opencode", "opencode.db")
    if database is None or not root or not os.path.isfile(path):
        return
    try:
        sessions = list(database.sessions(path, since_ms=since_ms))
    except LearntError:  # the other clients' transcripts are there all the same
        return
    for info in sessions:
        told, size = about_of(info), info.get("size")
        reference = _File(f"{path}#{told.session}", size if isinstance(size, int) else 0, told.ended_at)
        yield _found("opencode", reference, told.session, told.folder)


def _found(client: str, file: _File, session: str, folder: str) -> Found:
    name = os.path.splitext(os.path.basename(file.path))[0]
    return Found(
        client=client,
        path=file.path,
        session=session or name,
        folder=folder,
        size=file.size,
        changed_at=file.changed_at,
    )


def _told(path: str, *ways: tuple[str, ...]) -> str:
    """Return the first name that a record has under one of these keys."""
    for record in first_records(path):
        for keys in ways:
            if name := named(dig(record, *keys)):
                return name
    return ""


def _changed(since_ms: int, root: str, *pattern: str) -> Iterator[_File]:
    """Yield the files below the folder that match and changed since then."""
    for path in _matching(root, *pattern):
        try:
            status = os.stat(path)
        except OSError:  # gone meanwhile
            continue
        changed_at = status.st_mtime_ns // 1_000_000
        if changed_at >= since_ms and os.path.isfile(path):
            yield _File(path, status.st_size, changed_at)


def _matching(root: str, *pattern: str) -> Iterator[str]:
    return glob.iglob(os.path.join(glob.escape(root), *pattern)) if root else iter(())


def _lies_in(inner: str, outer: str) -> bool:
    """Return whether a folder is another one or lies below it, whatever links lead there."""
    if not os.path.isabs(inner):
        return False
    pairs = ((inner, outer), (os.path.realpath(inner), os.path.realpath(outer)))
    return any(
        os.path.join(os.path.normcase(one), "").startswith(os.path.join(os.path.normcase(other), ""))
        for one, other in pairs
    )
