"""Read the database in which opencode keeps its conversations, while opencode may be writing to it.

Nothing is created, changed or blocked. Sessions and messages have the format of `opencode export`. A part that is too
long is skipped, and a row that is not JSON is read as an empty object; neither is an error.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager

import apsw

from learnt.errors import LearntError, TryAgain, WrongRequest
from learnt.store.sqlite import connect_guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# A longer part is a file or an image, not text.
_MAX_PART_LENGTH = 8_000_000
# Older databases have neither of these.
_OPTIONAL = ("version", "permission")
_SESSION = """
    select id, directory, parent_id, model, time_created, time_updated, {version}, {permission},
           (select sum(length(part.data)) from part where part.session_id = session.id) as size
      from session
"""


def sessions(path: str, *, since_ms: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the sessions that have changed since the given time, newest first."""
    with _open(path) as connection:
        for row in connection.execute(
            f"{_select(connection)} where time_updated >= :since_ms order by time_updated desc, id",
            {"since_ms": since_ms},
        ):
            yield _info(row)


def session(path: str, id: str) -> dict[str, Any]:
    """Return a session; empty if there is no such session."""
    with _open(path) as connection:
        rows = connection.execute(f"{_select(connection)} where id = :id", {"id": id})
        return next(map(_info, rows), {})


def messages(path: str, id: str) -> Iterator[dict[str, Any]]:
    """Yield a session's messages in order, each with its parts."""
    with _open(path) as connection:
        for message_id, text in connection.execute(
            "select id, data from message where session_id = :id order by time_created, id", {"id": id}
        ):
            yield {"info": {**_parse_object(text), "id": message_id}, "parts": list(_parts(connection, message_id))}


def _select(connection: apsw.Connection) -> str:
    columns = {name for _, name, *_ in connection.execute("pragma table_info(session)")}
    return _SESSION.format(**{name: name if name in columns else "''" for name in _OPTIONAL})


def _parts(connection: apsw.Connection, message_id: object) -> Iterator[dict[str, Any]]:
    for (text,) in connection.execute(
        "select data from part where message_id = :message_id and length(data) <= :max_length order by id",
        {"message_id": message_id, "max_length": _MAX_PART_LENGTH},
    ):
        yield _parse_object(text)


def _info(row: tuple[Any, ...]) -> dict[str, Any]:
    id, directory, parent, model, created, updated, version, permission, size = row
    return {
        "id": id,
        "directory": directory,
        "parentID": parent,
        "model": _parse_object(model),
        "version": version,
        "permission": _parse(permission),
        "time": {"created": created, "updated": updated},
        "size": size or 0,
    }


def _parse(text: object) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _parse_object(text: object) -> dict[str, Any]:
    value = _parse(text)
    return value if isinstance(value, dict) else {}


@contextmanager
def _open(path: str) -> Iterator[apsw.Connection]:
    if not os.path.isfile(path):
        raise WrongRequest(f"there is no file {path}", hint="opencode keeps its conversations in `opencode.db`")
    try:
        connection = connect_guarded(_read_only_uri(path), apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            yield connection
        finally:
            connection.close(True)
    except apsw.Error as error:
        raise _as_our_error(path, error) from None


def _read_only_uri(path: str) -> str:
    """Return the URI with which SQLite reads a database without creating files."""
    from urllib.parse import quote

    # If there is a write-ahead log, opencode may be writing, and SQLite shares the log's index file with it. Without a
    # log, SQLite would create the log and its index, so the database is opened as immutable, which prevents that.
    log = f"{path}-wal"
    shared = os.path.exists(log) and (os.path.exists(f"{path}-shm") or os.path.getsize(log) > 0)
    absolute = os.path.abspath(path).replace(os.sep, "/")
    return f"file:///{quote(absolute.lstrip('/'))}?{'mode=ro&readonly_shm=1' if shared else 'immutable=1'}"


def _as_our_error(path: str, error: apsw.Error) -> LearntError:
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return TryAgain(f"{path} is busy", hint="try again when opencode has finished")
    return WrongRequest(
        f"{path} cannot be read as an opencode database: {error}",
        hint="start opencode once, or pass the output of `opencode export`",
    )
