"""The system calls that hooks need: write files whole and privately, lock them, and stop a block at its deadline.

After a crash, a file has either its old content or its new content, because new content is first written to another
file next to it. Only their owner can read private files. `durable` means that the content is on disk when the function
returns. System errors are passed to the caller.
"""

from __future__ import annotations

import errno
import os
import sys

from learnt.errors import TryAgain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PRIVATE = 0o600
_BINARY = getattr(os, "O_BINARY", 0)  # without it, Windows changes line ends
# Python drops an exception raised inside some of its callbacks, so the alarm repeats.
_ALARM_REPEAT_S = 0.1
_DO_NOT_WAIT = getattr(os, "O_NONBLOCK", 0)
_NOT_REGULAR = "it is not a regular file"
_KIND_BITS, _REGULAR = 0o170000, 0o100000  # as in the module `stat`


def open_private(path: str, flags: int) -> int:
    """Open a file that only its owner can read. This is an `opener` for Python's `open`."""
    return os.open(path, flags, PRIVATE)


def touch_private(path: str) -> None:
    """Create an empty file unless it exists."""
    os.close(open_private(path, os.O_CREAT | os.O_RDWR))


def write_private(path: str, text: str) -> None:
    """Write a small file in place; after a crash, it may be incomplete."""
    with open(path, "w", encoding="utf-8", opener=open_private) as file:
        file.write(text)


def append_private(path: str, text: str) -> None:
    """Append to a file."""
    with open(path, "a", encoding="utf-8", opener=open_private) as file:
        file.write(text)


def read_regular(path: str, *, max_bytes: int) -> bytes:
    """Return the content of a regular file; raise ValueError for anything else, and for one that is too long.

    Opening does not wait: a named pipe without a writer would block for ever.
    """
    try:
        file = os.open(path, os.O_RDONLY | _BINARY | _DO_NOT_WAIT)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise ValueError(_NOT_REGULAR) from None
        raise
    try:
        if os.fstat(file).st_mode & _KIND_BITS != _REGULAR:
            raise ValueError(_NOT_REGULAR)
        pieces = []
        left = max_bytes + 1
        while left and (piece := os.read(file, left)):
            pieces.append(piece)
            left -= len(piece)
    finally:
        os.close(file)
    if not left:
        raise ValueError(f"it has more than {max_bytes:,} bytes")
    return b"".join(pieces)


def rotate(path: str, *, max_bytes: int) -> None:
    """Rename a log that has grown too long; this overwrites the log that was renamed before it."""
    if os.path.exists(path) and os.path.getsize(path) > max_bytes:
        os.replace(path, path + ".old")


def replace_file(path: str, content: bytes, *, unfinished: str, durable: bool = True) -> None:
    """Replace the content of a private file, completely or not at all; `unfinished` is the temporary file's path."""
    stage(unfinished, (content,), durable=durable)
    os.replace(unfinished, path)
    if durable:
        _sync_folder(path)


def replace_shared(
    path: str,
    pieces: Iterable[bytes],
    *,
    unfinished: str,
    mode: int,
    durable: bool = True,
    is_unchanged: Callable[[], bool] = lambda: True,
) -> bool:
    """Replace the content of a file that other users can read, completely or not at all; keep an existing file's mode.

    `is_unchanged` is called just before the file is replaced. If it returns False, the file is not replaced, and this
    function also returns False.
    """
    try:
        stage(unfinished, pieces, mode=mode, durable=durable)
        if os.path.exists(path):
            os.chmod(unfinished, os.stat(path).st_mode & 0o777)
        if not is_unchanged():
            return False
        os.replace(unfinished, path)
    finally:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
    return True


def stage(path: str, pieces: Iterable[bytes], *, mode: int = PRIVATE, durable: bool = True) -> None:
    """Write a file that will replace another one."""
    file = os.open(path, _BINARY | os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        for piece in pieces:
            _write_all(file, piece)
        if durable:
            os.fsync(file)
    finally:
        os.close(file)


def append_line(path: str, line: bytes) -> None:
    """Append a whole line to a private file, durably; on failure, leave the file as it was.

    If a crash left an incomplete line at the end, the new line starts after it.
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
    """Make a new file's name durable as well; Windows does not have such a call."""
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
    """Locks a separate file, so that the files it guards can be renamed.

    `with` yields True if the lock was acquired, and False if another process holds it and `wait` is False. With
    `shared`, several processes can hold the lock together, which excludes an exclusive lock. Windows does not have
    shared locks, so there nothing is locked.
    """

    def __init__(self, path: str, *, wait: bool = True, shared: bool = False) -> None:
        self._path = path
        self._wait = wait
        self._shared = shared
        self._file = -1

    def __enter__(self) -> bool:
        self._file = open_private(self._path, os.O_RDWR | os.O_CREAT)
        while not _lock(self._file, wait=self._wait, shared=self._shared):
            if not self._wait:
                return False
        return True

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def is_lost(self) -> bool:
        """Return whether the lock file was removed or replaced while we waited for it."""
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


class Deadline:
    """Raises TryAgain in a block when its time is up; 0 milliseconds means no limit.

    Windows does not have such a timer. There, the only limit is how long SQLite waits for a lock.
    """

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = milliseconds

    def __enter__(self) -> Deadline:
        self._set(self._milliseconds)
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def start(self, milliseconds: int) -> None:
        """Count from now on, with another limit."""
        self._milliseconds = milliseconds
        self._set(milliseconds)

    def stop(self) -> None:
        """Remove the limit."""
        self._set(0)

    def _set(self, milliseconds: int) -> None:
        if sys.platform == "win32" or not self._milliseconds:
            return
        if TYPE_CHECKING:
            import signal
        else:
            import _signal as signal  # `signal` builds enumerations, which takes longer than a query

        signal.signal(signal.SIGALRM, self._give_up)
        signal.setitimer(signal.ITIMER_REAL, milliseconds / 1000, _ALARM_REPEAT_S if milliseconds else 0)

    def _give_up(self, _number: int, _frame: object) -> None:
        raise TryAgain(f"no answer within {self._milliseconds} ms", hint="allow more time, or try again")
