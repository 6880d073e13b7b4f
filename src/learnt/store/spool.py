"""A file that keeps what happened while the database cannot take it.

A record is acknowledged once it is on the disk: one line with a checksum and an operation id, fsynced. A torn last
line was never acknowledged and is dropped. Replay moves the file aside, applies each record in a transaction that
also notes its operation id, and removes the file at the end: killed at any point, the next replay repeats nothing.
A record that cannot be applied at all is set aside with the reason, never dropped.
"""

from __future__ import annotations

import json
import os
import sys
import zlib

from learnt.errors import TryAgain, WrongRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Any

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


# What a record raises that no repetition could apply: written by another version, or damaged in a way that no
# checksum shows.
_UNUSABLE = (WrongRequest, ValueError, LookupError, TypeError, ArithmeticError, AttributeError)


class Record:
    """One spooled happening."""

    def __init__(self, op: str, kind: str, at: int, body: dict[str, Any]) -> None:
        self.op = op
        self.kind = kind
        self.at = at
        self.body = body

    def line(self) -> bytes:
        """Return the record as it stands in the file."""
        content = json.dumps({"op": self.op, "kind": self.kind, "at": self.at, "body": self.body}).encode()
        return b"%08x %s\n" % (zlib.crc32(content), content)


class Spool:
    """The waiting records of one store."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, "spool.jsonl")
        self._taken = os.path.join(folder, "spool.taken.jsonl")
        self._refused = os.path.join(folder, "spool.refused.jsonl")
        self._lock = os.path.join(folder, "spool.lock")

    def append(self, record: Record) -> None:
        """Put a record on the disk, or raise TryAgain with nothing acknowledged."""
        try:
            with _Locked(self._path) as file:
                _append_line(file, self._path, record.line())
        except OSError as error:
            raise TryAgain(
                f"neither the database nor {self._path} can be written: {error.strerror}",
                hint="free some disk space or mend the permissions, then try again",
            ) from None

    def waiting(self) -> list[Record]:
        """Return the records that wait for a replay, oldest first."""
        return [*_records(self._taken), *_records(self._path)]

    def refused(self) -> int:
        """Return how many records could not be applied and were set aside."""
        return len({record.op for record in _records(self._refused)})

    def is_empty(self) -> bool:
        """Say quickly whether nothing waits."""
        return not _has_content(self._path) and not _has_content(self._taken)

    def replay(self, apply: Callable[[Record], None]) -> int:
        """Apply what waits, oldest first, and return how many records; 0 while another process does it."""
        with _Locked(self._lock, wait=False) as alone:
            if alone < 0:
                return 0
            applied = self._replay_taken(apply)
            if _has_content(self._path):
                with _Locked(self._path):
                    os.replace(self._path, self._taken)
                applied += self._replay_taken(apply)
            return applied

    def forget(self, word: str) -> int:
        """Remove every record that mentions a word; return how many."""
        removed = 0
        with _Locked(self._lock):
            for path in (self._taken, self._path, self._refused):
                if _has_content(path):
                    with _Locked(path) as file:
                        kept = [line for line in _lines(path) if word.encode() not in line]
                        removed += len(_lines(path)) - len(kept)
                        os.ftruncate(file, 0)
                        os.lseek(file, 0, os.SEEK_SET)
                        _write_all(file, b"".join(kept))
                        os.fsync(file)
        return removed

    def _replay_taken(self, apply: Callable[[Record], None]) -> int:
        applied = 0
        for record in _records(self._taken):
            try:
                apply(record)
            except _UNUSABLE as error:
                self._set_aside(record, str(error))
            applied += 1
        if os.path.exists(self._taken):
            os.unlink(self._taken)
        return applied

    def _set_aside(self, record: Record, reason: str) -> None:
        refused = Record(record.op, record.kind, record.at, {"body": record.body, "refused": reason})
        try:
            with _Locked(self._refused) as file:
                _append_line(file, self._refused, refused.line())
        except OSError as error:
            raise TryAgain(f"cannot write {self._refused}: {error.strerror}", hint="free some disk space") from None


class _Locked:
    """An open file under an exclusive lock; -1 when it is taken and we must not wait."""

    def __init__(self, path: str, *, wait: bool = True) -> None:
        self._path = path
        self._wait = wait
        self._file = -1

    def __enter__(self) -> int:
        while True:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            if not _lock(self._file, wait=self._wait):
                os.close(self._file)
                self._file = -1
                return -1
            if self._is_still_there():
                return self._file
            os.close(self._file)  # replayed and moved aside while we waited

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file >= 0:
            os.close(self._file)

    def _is_still_there(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._file))
        except FileNotFoundError:
            return False


def _lock(file: int, *, wait: bool) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(file, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def _append_line(file: int, path: str, line: bytes) -> None:
    """Write a whole line at the end and wait for the disk; on failure leave the file as it was."""
    size = os.fstat(file).st_size
    torn = size > 0 and _last_byte(file, size) != b"\n"
    try:
        _write_all(file, (b"\n" if torn else b"") + line)
        os.fsync(file)
        if size == 0:
            _sync_folder(path)
    except OSError:
        os.ftruncate(file, size)
        raise


def _last_byte(file: int, size: int) -> bytes:
    os.lseek(file, size - 1, os.SEEK_SET)
    return os.read(file, 1)


def _write_all(file: int, content: bytes) -> None:
    while content:
        content = content[os.write(file, content) :]


def _sync_folder(path: str) -> None:
    """Make a new file's name durable, too; Windows has no such call."""
    if sys.platform == "win32":
        return
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _records(path: str) -> Iterator[Record]:
    for line in _lines(path):
        checksum, _, content = line.rstrip(b"\n").partition(b" ")
        if checksum == b"%08x" % zlib.crc32(content) and line.endswith(b"\n"):
            fields = json.loads(content)
            yield Record(fields["op"], fields["kind"], fields["at"], fields["body"])


def _lines(path: str) -> list[bytes]:
    try:
        with open(path, "rb") as file:
            return file.readlines()
    except FileNotFoundError:
        return []


def _has_content(path: str) -> bool:
    try:
        return os.stat(path).st_size > 0
    except FileNotFoundError:
        return False
