"""Read the database in which opencode keeps its conversations, while opencode may be writing to it.

Nothing is created, changed or blocked. Sessions and messages have the format of `opencode export`. Rows that are too
long or are not JSON are skipped or shortened without an error.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager

from learnt.errors import LearntError, TryAgain, WrongRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import apsw

# A longer part is a file or a picture, not words.
_LONGEST_PART = 8_000_000
_SESSION = """
    select id, directory, parent_id, model, time_created, time_updated,
           (select sum(length(part.data)) from part where part.session_id = session.id) as size
      from session
"""


def sessions(path: str, *, since_ms: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the sessions that changed since a moment, newest first."""
    with _open(path) as connection:
        for row in connection.execute(
            f"{_SESSION} where time_updated >= :since_ms order by time_updated desc, id", {"since_ms": since_ms}
        ):
            yield _info(row)


def session(path: str, id: str) -> dict[str, Any]:
    """Return a session, or an empty object."""
    with _open(path) as connection:
        return next((_info(row) for row in connection.execute(f"{_SESSION} where id = :id", {"id": id})), {})


def messages(path: str, id: str) -> Iterator[dict[str, Any]]:
    """Yield the messages of a session in their order, each with its parts."""
    with _open(path) as connection:
        for message, text in connection.execute(
            "select id, data from message where session_id = :id order by time_created, id", {"id": id}
        ):
            yield {"info": {**_object(text), "id": message}, "parts": list(_parts(connection, message))}


def _parts(connection: apsw.Connection, message: object) -> Iterator[dict[str, Any]]:
    for (text,) in connection.execute(
        "select data from part where message_id = :message and length(data) <= :longest order by id",
        {"message": message, "longest": _LONGEST_PART},
    ):
        yield _object(text)


def _info(row: tuple[Any, ...]) -> dict[str, Any]:
    id, directory, parent, model, created, updated, size = row
    return {
        "id": id,
        "directory": directory,
        "parentID": parent,
        "model": _object(model),
        "time": {"created": created, "updated": updated},
        "size": size or 0,
    }


def _object(text: object) -> dict[str, Any]:
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


@contextmanager
def _open(path: str) -> Iterator[apsw.Connection]:
    import apsw

    if not os.path.isfile(path):
        raise WrongRequest(f"there is no file {path}", hint="opencode keeps its conversations in `opencode.db`")
    try:
        connection = apsw.Connection(_address(path), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            yield connection
        finally:
            connection.close(True)
    except apsw.Error as error:
        raise _as_our_error(path, error) from None


def _address(path: str) -> str:
    """Return the URI with which SQLite reads without creating files."""
    from urllib.parse import quote

    # If there is a log, SQLite shares its index with the writer. If there is none, SQLite would create both files,
    # unless the database is opened as immutable.
    log = f"{path}-wal"
    shared = os.path.exists(log) and (os.path.exists(f"{path}-shm") or os.path.getsize(log) > 0)
    absolute = os.path.abspath(path).replace(os.sep, "/")
    return f"file:///{quote(absolute.lstrip('/'))}?{'mode=ro&readonly_shm=1' if shared else 'immutable=1'}"


def _as_our_error(path: str, error: apsw.Error) -> LearntError:
    import apsw

    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return TryAgain(f"{path} is busy", hint="try again when opencode is done")
    return WrongRequest(
        f"{path} cannot be read as a database of opencode: {error}",
        hint="start opencode once, or give what `opencode export` prints",
    )
