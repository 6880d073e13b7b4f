"""A file that keeps records while the database is not available.

A record is one line with a checksum and an operation id. It is acknowledged once the line has been fsynced. An
incomplete last line was never acknowledged and is dropped. A replay renames the file, applies each record in a
transaction that also stores its operation id, and deletes the file at the end. If a replay is killed, the next replay
applies no record twice. A record that cannot be applied is never dropped; it is set aside with the reason.
"""

from __future__ import annotations

import json
import os

from learnt.errors import WrongRequest, cannot_write
from learnt.system import files
from learnt.system.files import Locked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


# These errors mean that retrying is useless: the record is from another version, or damaged despite its checksum.
UNUSABLE = (WrongRequest, ValueError, LookupError, TypeError, ArithmeticError, AttributeError)


_GONE = object()


class SpoolRecord:
    """A record in the spool."""

    def __init__(self, op: str, kind: str, at: int, body: dict[str, Any]) -> None:
        self.op = op
        self.kind = kind
        self.at = at
        self.body = body

    def line(self) -> bytes:
        """Return the record as a line of the file."""
        content = json.dumps({"op": self.op, "kind": self.kind, "at": self.at, "body": self.body}).encode()
        return b"%08x %s\n" % (checksum(content), content)


class Spool:
    """One store's spooled records. The spools of other databases in the same folder have other names."""

    def __init__(self, folder: str, name: str = "spool") -> None:
        self._folder = folder
        self._path = os.path.join(folder, f"{name}.jsonl")
        self._taken = os.path.join(folder, f"{name}.taken.jsonl")
        self.refused_path = os.path.join(folder, f"{name}.refused.jsonl")
        self._append_lock = os.path.join(folder, f"{name}.lock")
        self._replay_lock = os.path.join(folder, f"{name}.replay.lock")

    def append(self, record: SpoolRecord) -> None:
        """Write a record to the disk, or raise."""
        try:
            with Locked(self._append_lock):
                files.append_line(self._path, record.line())
        except OSError as error:
            what = f"to the database, nor to {self._path}"
            raise cannot_write(
                what, error, hint="check the owner and the permissions of the folder and its files"
            ) from None

    def pending(self) -> list[SpoolRecord]:
        """Return the records that have not been replayed yet, oldest first."""
        # Read the newer file first, so that no record is missed if the file is renamed in the meantime.
        newer = list(_records(self._path))
        return [*_records(self._taken), *newer]

    def pending_for_others(self) -> int:
        """Return how many records in this folder belong to other databases."""
        names = [
            name for name in files.list_names(self._folder) if name.startswith("spool") and name.endswith(".jsonl")
        ]
        paths = [os.path.join(self._folder, name) for name in names if not name.endswith(".refused.jsonl")]
        return sum(len(list(_records(path))) for path in paths if path not in self._files())

    def refused(self) -> int:
        """Return how many records could not be applied and were set aside."""
        return len({record.op for record in _records(self.refused_path)})

    def size(self) -> int:
        """Return the spool's size in bytes."""
        return _size(self._path) + _size(self._taken)

    def is_empty(self) -> bool:
        """Return whether the spool is empty, without reading it."""
        return not self.size()

    def replay_lock(self) -> Locked:
        """Return the replay lock, which does not wait for another process."""
        return Locked(self._replay_lock, wait=False)

    def replay(self, apply: Callable[[SpoolRecord], None], *, wait: bool = False, locked: bool = False) -> int:
        """Apply the records, oldest first; return how many. Return 0 if another process is replaying.

        `wait` waits for the other process instead. `locked` means that the caller holds the lock.
        """
        if locked:
            return self._replay(apply)
        with Locked(self._replay_lock, wait=wait) as acquired:
            return self._replay(apply) if acquired else 0

    def _replay(self, apply: Callable[[SpoolRecord], None]) -> int:
        applied = self._replay_taken(apply)
        if _size(self._path):
            with Locked(self._append_lock):
                files.rename(self._path, self._taken)
            applied += self._replay_taken(apply)
        return applied

    def forget(self, id: str) -> None:
        """Remove everything about an id from all records."""
        self._rewrite(lambda line: _without(line, id))

    def drop(self, word: str) -> None:
        """Remove every record that contains a word."""
        self._rewrite(lambda line: b"" if word.encode() in line else line)

    def _rewrite(self, change: Callable[[bytes], bytes]) -> None:
        """Change all lines, and remove what a killed process left when it did so."""
        try:
            with Locked(self._replay_lock), Locked(self._append_lock):
                for path in self._files():
                    files.remove_unfinished(path, locked=True, is_former="unfinished".__eq__)
                    lines = _lines(path)
                    changed = [change(line) for line in lines]
                    if changed != lines:
                        files.replace_file(path, b"".join(changed))
        except OSError as error:
            raise cannot_write(f"the spool in {self._folder}", error, hint="check its files and their owner") from None

    def rename_to(self, other: Spool) -> None:
        """Let another spool have this spool's records; it must not have any of its own."""
        with Locked(self._replay_lock), Locked(self._append_lock):
            for path, new_path in zip(self._files(), other._files(), strict=True):
                if files.exists(path) and not files.exists(new_path):
                    files.rename(path, new_path)

    def _files(self) -> tuple[str, ...]:
        return (self._taken, self._path, self.refused_path)

    def _replay_taken(self, apply: Callable[[SpoolRecord], None]) -> int:
        applied = 0
        for line in _lines(self._taken):
            record = _record(line)
            if record is None:
                self._set_aside(_unreadable(line), "the line is damaged")
                continue
            try:
                apply(record)
            except UNUSABLE as error:
                self._set_aside(record, str(error))
            applied += 1
        files.remove_file(self._taken)
        return applied

    def _set_aside(self, record: SpoolRecord, reason: str) -> None:
        if any(earlier.op == record.op for earlier in _records(self.refused_path)):
            return  # a killed replay has already set it aside
        refused = SpoolRecord(record.op, record.kind, record.at, {"body": record.body, "refused": reason})
        try:
            files.append_line(self.refused_path, refused.line())
        except OSError as error:
            raise cannot_write(self.refused_path, error, hint="check the owner of the file") from None


def checksum(content: bytes) -> int:
    """Return the CRC-32 of some bytes."""
    from zlib import crc32  # most hooks neither read nor write the spool

    return crc32(content)


def _records(path: str) -> Iterator[SpoolRecord]:
    return (record for record in map(_record, _lines(path)) if record is not None)


def _record(line: bytes) -> SpoolRecord | None:
    """Return the record in a line, or None if the line is damaged."""
    stated_checksum, _, content = line.rstrip(b"\n").partition(b" ")
    if stated_checksum != b"%08x" % checksum(content):
        return None
    try:
        fields = json.loads(content)
        return SpoolRecord(fields["op"], fields["kind"], fields["at"], fields["body"])
    except (ValueError, LookupError, TypeError):
        return None


def _unreadable(line: bytes) -> SpoolRecord:
    return SpoolRecord(f"op_{checksum(line):08x}", "damaged", 0, {"line": line.decode("utf-8", "replace")})


def _without(line: bytes, id: str) -> bytes:
    """Return a line without everything about an id; empty if nothing else remains."""
    if id.encode() not in line:
        return line
    record = _record(line)
    rest: Any = _GONE if record is None else _prune(record.body, id)
    return b"" if record is None or rest is _GONE else SpoolRecord(record.op, record.kind, record.at, rest).line()


def _prune(value: Any, id: str) -> Any:
    """Return a JSON value without the objects and list entries that contain an id."""
    if isinstance(value, dict):
        if id in value.values():
            return _GONE
        pruned = {name: _prune(item, id) for name, item in value.items()}
        return {name: item for name, item in pruned.items() if item is not _GONE}
    if isinstance(value, list):
        return [item for item in (_prune(item, id) for item in value) if item is not _GONE]
    return _GONE if value == id else value


def _lines(path: str) -> list[bytes]:
    """Return a file's complete lines, without an incomplete last line."""
    try:
        with open(path, "rb", opener=files.open_private) as file:
            return [line for line in file if line.endswith(b"\n")]
    except FileNotFoundError:
        return []


def _size(path: str) -> int:
    """Return the size of a file; 0 if it does not exist."""
    status = files.check_file(path)
    return 0 if status is None else status.st_size
