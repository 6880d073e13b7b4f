"""A lock on a file, held by one process at a time. The system releases it when the holder ends, however it ends.

Hooks load this module: it imports nothing of ours.
"""

from __future__ import annotations

import os
import sys

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
