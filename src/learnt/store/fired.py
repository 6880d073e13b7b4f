"""Each client's last hook event, in one small file per client, which every event overwrites.

A hook writes the file at every event, so writing takes one open and one write, without fsync and without further
imports. Errors are ignored. For a client that may send an event to several hooks, another file has the identities of
the last events, so that one hook serves it.
"""

from __future__ import annotations

import os

from learnt.system.files import Locked, list_names, make_folders, open_private, read_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = "fired"
_ENDING = ".json"
_MAX_NAME_LENGTH = 60
_MAX_EVENT_LENGTH = 20
# The content has a fixed length, so the file is overwritten in place: replacing or truncating it is 50 times slower.
_LENGTH = 360
_CLAIMS_ENDING = ".events"
_IDENTITY_LENGTH = 16
_MAX_CLAIMS = 64


class Fired:
    """A client's last event: its time, its name, how long the hook took, the length of its answer, the conversation.

    `session` is the conversation that a sub-agent works for, or else the same. `other` is the last other session that
    had not ended, and `other_at` the time of its last event.
    """

    __slots__ = ("at", "chars", "conversation", "duration_ms", "event", "other", "other_at", "session")

    def __init__(
        self,
        *,
        at: int,
        event: str,
        duration_ms: float,
        chars: int,
        conversation: str = "",
        session: str = "",
        other: str = "",
        other_at: int = 0,
    ) -> None:
        self.at = at
        self.event = event
        self.duration_ms = duration_ms
        self.chars = chars
        self.conversation = conversation
        self.session = session
        self.other = other
        self.other_at = other_at

    def as_dict(self) -> dict[str, Any]:
        """Return what is reported, as JSON."""
        return {"at": self.at, "event": self.event, "duration_ms": self.duration_ms, "chars": self.chars}

    def list_live(self, *, since: int) -> list[str]:
        """Return the sessions that had an event since the given time, and have not ended, the last one first."""
        last = [self.session] if self.session and self.at >= since and self.event != "end" else []
        return [*last, *([self.other] if self.other and self.other_at >= since else [])]


def note(  # noqa: PLR0917 - one line of a log
    folder: str,
    client: str,
    event: str,
    at: int,
    duration_ms: float,
    chars: int,
    *,
    conversation: str = "",
    session: str = "",
) -> None:
    """Record in a store's folder that a client's event was served, if possible."""
    if not client.replace("-", "").isalnum() or len(client) > _MAX_NAME_LENGTH:
        return  # unsafe as the name of a file
    import json

    fired = Fired(at=at, event=event[:_MAX_EVENT_LENGTH], duration_ms=round(duration_ms, 1), chars=chars)
    path = os.path.join(folder, FOLDER, client + _ENDING)
    told = {**fired.as_dict(), "conversation": conversation, "session": session, **_find_other(path, session)}
    content = json.dumps(told).encode().ljust(_LENGTH)
    try:
        try:
            _write(path, content)
        except FileNotFoundError:
            if not os.path.isdir(folder):
                return
            make_folders(os.path.dirname(path))
            _write(path, content)
    except OSError:
        return


def _find_other(path: str, session: str) -> dict[str, Any]:
    """Return the last other session of a client that has not ended, and the time of its last event."""
    before = _read_file(path)
    if before is None:
        return {}
    if before.session and before.session != session and before.event != "end":
        return {"other": before.session, "other_at": before.at}
    return {"other": before.other, "other_at": before.other_at} if before.other != session else {}


def claim(folder: str, client: str, identity: str) -> bool:
    """Return whether an event is claimed for the first time; True if this cannot be determined."""
    path = os.path.join(folder, FOLDER, client + _CLAIMS_ENDING)
    mine = identity[:_IDENTITY_LENGTH].encode()
    try:
        make_folders(os.path.dirname(path))
        with Locked(path):
            claims = read_own(path, max_bytes=_MAX_CLAIMS * (_IDENTITY_LENGTH + 1)).split()
            if mine in claims:
                return False
            _write(path, b"\n".join([*claims, mine][-_MAX_CLAIMS:]) + b"\n")
    except OSError:
        return True
    return True


def read(folder: str) -> dict[str, Fired]:
    """Return each client's last event, by the client's name."""
    fired_folder = os.path.join(folder, FOLDER)
    try:
        names = list_names(fired_folder)
    except OSError:
        return {}
    events = {}
    for name in names:
        fired = _read_file(os.path.join(fired_folder, name)) if name.endswith(_ENDING) else None
        if fired is not None:
            events[name.removesuffix(_ENDING)] = fired
    return events


def _write(path: str, content: bytes) -> None:
    file = open_private(path, os.O_CREAT | os.O_WRONLY)
    try:
        os.write(file, content)
        os.ftruncate(file, len(content))  # somebody else's file may have been longer
    finally:
        os.close(file)


def _read_file(path: str) -> Fired | None:
    import json

    try:
        fields = json.loads(read_own(path, max_bytes=_LENGTH))
        return Fired(
            at=int(fields["at"]),
            event=str(fields["event"]),
            duration_ms=float(fields["duration_ms"]),
            chars=int(fields["chars"]),
            conversation=str(fields.get("conversation", "")),
            session=str(fields.get("session", "")),
            other=str(fields.get("other", "")),
            other_at=int(fields.get("other_at", 0)),
        )
    except (OSError, ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return None
