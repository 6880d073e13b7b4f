"""Write files whole, so that a crash leaves the old content or the new, privately, for the owner only; and lock them.

What is replaced is written beside its place first. `durable` means that the disk has it when the function returns.
Errors of the system go to the caller. Hooks load this module: it imports nothing of ours.
"""

from __future__ import annotations

import os
import sys

PRIVATE = 0o600
_BINARY = getattr(os, "O_BINARY", 0)  # else Windows would change line ends


def open_private(path: str, flags: int) -> int:
    """Open a file that only its owner may read: the `opener` of Python's `open`."""
    return os.open(path, flags, PRIVATE)


def write_private(path: str, text: str) -> None:
    """Write a small file in place; a crash may leave half of it."""
    with open(path, "w", encoding="utf-8", opener=open_private) as file:
        file.write(text)


def append_private(path: str, text: str) -> None:
    """Write to the end of a file."""
    with open(path, "a", encoding="utf-8", opener=open_private) as file:
        file.write(text)


def rotate(path: str, *, longest: int) -> None:
    """Rename a log that has grown too long; the one before it is lost."""
    if os.path.exists(path) and os.path.getsize(path) > longest:
        os.replace(path, path + ".old")


def replace_file(path: str, content: bytes, *, unfinished: str, durable: bool = True) -> None:
    """Give a private file new content, wholly or not at all; `unfinished` is where it lies while it is written."""
    stage(unfinished, content, durable=durable)
    os.replace(unfinished, path)
    if durable:
        _sync_folder(path)


def stage(path: str, content: bytes, *, mode: int = PRIVATE, durable: bool = True) -> None:
    """Write a file that is to take another one's place."""
    file = os.open(path, _BINARY | os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        _write_all(file, content)
        if durable:
            os.fsync(file)
    finally:
        os.close(file)


def append_line(path: str, line: bytes) -> None:
    """Write a whole line at the end of a private file, durably; on failure leave the file as it was.

    After a torn line the new one begins on a line of its own.
    """
    file = os.open(path, _BINARY | os.O_RDWR | os.O_CREAT | os.O_APPEND, PRIVATE)
    try:
        size = os.fstat(file).st_size
        torn = size > 0 and _last_byte(file, size) != b"\n"
        try:
            _write_all(file, (b"\n" if torn else b"") + line)
            os.fsync(file)
        except OSError:
            os.ftruncate(file, size)
            raise
    finally:
        os.close(file)
    if size == 0:
        _sync_folder(path)


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


if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


class Locked:
    """A lock on a file of its own, so that the files it guards can be renamed; False when it is taken.

    `shared`: many may hold it at once, but then nobody holds it alone. Where a system has no such locks, nothing is
    locked.
    """

    def __init__(self, path: str, *, wait: bool = True, shared: bool = False) -> None:
        self._path = path
        self._wait = wait
        self._shared = shared
        self._file = -1

    def __enter__(self) -> bool:
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        while not _lock(self._file, wait=self._wait, shared=self._shared):
            if not self._wait:
                return False
        return True

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def is_lost(self) -> bool:
        """Say whether the lock's file was removed or replaced while we waited for it."""
        try:
            return not os.path.samestat(os.fstat(self._file), os.stat(self._path))
        except FileNotFoundError:
            return True


def _lock(file: int, *, wait: bool, shared: bool) -> bool:
    try:
        if sys.platform == "win32":
            if shared:
                return True
            msvcrt.locking(file, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)  # LK_LOCK gives up after a while
        else:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except (BlockingIOError, PermissionError):
        return False
    return True
