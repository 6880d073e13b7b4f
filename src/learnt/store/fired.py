"""The last hook event of each client: one small file per client, which every event overwrites.

A hook writes it with every event, so it costs one open and one write, without fsync and without further imports. Errors
are ignored.
"""

from __future__ import annotations

import os

from learnt.system.files import open_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = "fired"
_ENDING = ".json"
_LONGEST_NAME = 60
_LONGEST_EVENT = 20
# The content has a fixed length, so the file is overwritten in place: replacing or truncating it is 50 times slower.
_LENGTH = 240


class Fired:
    """The last served event of a client: its time and name, how long it took, and the length of the answer."""

    __slots__ = ("at", "chars", "duration_ms", "event")

    def __init__(self, *, at: int, event: str, duration_ms: float, chars: int) -> None:
        self.at = at
        self.event = event
        self.duration_ms = duration_ms
        self.chars = chars

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON content."""
        return {"at": self.at, "event": self.event, "duration_ms": self.duration_ms, "chars": self.chars}


def note(folder: str, client: str, event: str, at: int, duration_ms: float, chars: int) -> None:  # noqa: PLR0917 - one line of a log
    """Record in a store's folder that an event of a client was served; best effort."""
    if not client.replace("-", "").isalnum() or len(client) > _LONGEST_NAME:
        return  # it would be the name of a file
    import json

    fired = Fired(at=at, event=event[:_LONGEST_EVENT], duration_ms=round(duration_ms, 1), chars=chars)
    path = os.path.join(folder, FOLDER, client + _ENDING)
    content = json.dumps(fired.as_dict()).encode().ljust(_LENGTH)
    try:
        try:
            _write(path, content)
        except FileNotFoundError:
            os.mkdir(os.path.dirname(path), 0o700)
            _write(path, content)
    except OSError:
        return


def read(folder: str) -> dict[str, Fired]:
    """Return the last served event of each client, by the client's name."""
    place = os.path.join(folder, FOLDER)
    try:
        names = sorted(os.listdir(place))
    except OSError:
        return {}
    events = {}
    for name in names:
        fired = _read_one(os.path.join(place, name)) if name.endswith(_ENDING) else None
        if fired is not None:
            events[name.removesuffix(_ENDING)] = fired
    return events


def _write(path: str, content: bytes) -> None:
    file = open_private(path, os.O_CREAT | os.O_WRONLY)
    try:
        os.write(file, content)
    finally:
        os.close(file)


def _read_one(path: str) -> Fired | None:
    import json

    try:
        with open(path, "rb") as file:
            read = json.loads(file.read(_LENGTH))
        return Fired(
            at=int(read["at"]),
            event=str(read["event"]),
            duration_ms=float(read["duration_ms"]),
            chars=int(read["chars"]),
        )
    except (OSError, ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return None
