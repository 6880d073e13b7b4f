"""The system calls that hooks need: files of our own, written whole and privately, locks, and a block's deadline.

A file of our own may lie in a folder that came from elsewhere. So no link is followed, neither at the end of a path nor
on the way; a file is opened only if it is a regular file that belongs to us or to the owner of its folder; and opening
never waits. Everything else raises OSError, as an unreadable file does. Paths must be canonical up to the project's
folder or the user's data folder.

After a crash, a file has either its old content or its new content, because new content is first written to another
file next to it, which has a random name. Only their owner can read private files. `durable` means that the content is
on disk when the function returns. System errors are passed to the caller.
"""

from __future__ import annotations

import errno
import os
import sys
import time

from learnt.errors import TryAgain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

PRIVATE = 0o600
_BINARY = getattr(os, "O_BINARY", 0)  # without it, Windows changes line ends
# Python drops an exception raised inside some of its callbacks, so the alarm repeats.
_ALARM_REPEAT_S = 0.1
_DO_NOT_WAIT = getattr(os, "O_NONBLOCK", 0)
_FOLLOW_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_KIND_BITS, _REGULAR, _FOLDER, _LINK = 0o170000, 0o100000, 0o040000, 0o120000  # as in the module `stat`
REFUSED = (errno.ELOOP, errno.EINVAL, errno.EPERM, errno.EFBIG)
"""Why a file is not used although it may be readable: a link, not a regular file, another user's, too long."""
_NOT_REGULAR = "it is not a regular file"
_IS_LINK = "it is a link, and learnt follows none"
_FOREIGN = "it belongs to another user"
_STORE_ENDING = ".learnt"  # of a store's folder
_UNFINISHED = ".new"
_END_BYTES = 1_000_000  # of a transcript
_RANDOM_BYTES = 8
# A temporary file that has not been written to for so long is left over, if no lock tells.
_LEFT_OVER_S = 600
_CHUNK_BYTES = 1 << 20

_known_folders: dict[str, tuple[int, int, int]] = {}


def check_folder(folder: str) -> int:
    """Return the owner of a folder that is not reached by a link; below a store, another user must not have made it.

    A folder that has been checked is checked again only if it is not the same folder any more.
    """
    status = os.lstat(folder)
    seen = (status.st_dev, status.st_ino, status.st_uid)
    if _known_folders.get(folder) != seen:
        _refuse_links(folder)
        if status.st_mode & _KIND_BITS != _FOLDER:
            raise NotADirectoryError(errno.ENOTDIR, f"{folder} is not a folder", folder)
        if _is_in_store(folder) and status.st_uid not in (user_id(), os.lstat(os.path.dirname(folder)).st_uid):
            raise PermissionError(errno.EPERM, f"its folder {folder} belongs to another user", folder)
        _known_folders[folder] = seen
    return status.st_uid


def _is_in_store(path: str) -> bool:
    return f"{_STORE_ENDING}{os.sep}" in path + os.sep


def _refuse_links(folder: str) -> None:
    real = os.path.realpath(folder)
    if real != folder and os.path.normcase(real) != os.path.normcase(folder):
        raise OSError(
            errno.ELOOP, f"its folder {folder} is a link or is reached by one, and learnt follows none", folder
        )


def check_file(path: str) -> os.stat_result | None:
    """Return the status of a file of our own, None if it does not exist; raise for a link and whatever is not ours."""
    try:
        owner = check_folder(os.path.dirname(path))
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    _check_status(status, owner, path)
    return status


def exists(path: str) -> bool:
    """Return whether there is a file of our own; raise for a link and whatever is not ours."""
    return check_file(path) is not None


def _check_status(status: os.stat_result, folder_owner: int, path: str) -> None:
    kind = status.st_mode & _KIND_BITS
    if kind == _LINK:
        raise OSError(errno.ELOOP, _IS_LINK, path)
    if kind != _REGULAR:
        raise OSError(errno.EINVAL, _NOT_REGULAR, path)
    if status.st_uid not in (user_id(), folder_owner):
        raise PermissionError(errno.EPERM, _FOREIGN, path)


def user_id() -> int:
    """Return the user's number, as in a file's status."""
    if sys.platform == "win32":
        return 0
    return os.geteuid()


def open_private(path: str, flags: int, mode: int = PRIVATE) -> int:
    """Open a file of our own; only its owner can read a new one. This is an `opener` for Python's `open`.

    An existing file is not emptied before it has been checked.
    """
    folder_owner = check_folder(os.path.dirname(path))
    if not _FOLLOW_NO_LINK:
        check_file(path)
    try:
        file = os.open(path, flags & ~os.O_TRUNC | _BINARY | _DO_NOT_WAIT | _FOLLOW_NO_LINK, mode)
    except OSError as error:
        raise _explain(error, path) from None
    try:
        _check_status(os.fstat(file), folder_owner, path)
        if flags & os.O_TRUNC:
            os.ftruncate(file, 0)
    except BaseException:
        os.close(file)
        raise
    return file


def _explain(error: OSError, path: str) -> OSError:
    if error.errno in (errno.ELOOP, getattr(errno, "EMLINK", errno.ELOOP)):
        return OSError(errno.ELOOP, _IS_LINK, path)
    # A named pipe that nobody reads, or a socket.
    return OSError(errno.EINVAL, _NOT_REGULAR, path) if error.errno == errno.ENXIO else error


def open_to_read(path: str, flags: int) -> int:
    """Open a file as one of our own if it is in a store, and otherwise any regular file. This is an `opener`."""
    if _is_in_store(path):
        return open_private(path, flags)
    return _open_regular(path, flags)


def read_transcript_end(path: str) -> bytes:
    """Return the last bytes of a transcript, because a hook has little time; empty if it cannot be read."""
    try:
        with open(path, "rb", opener=open_to_read) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _END_BYTES))
            return file.read(_END_BYTES)
    except (OSError, ValueError):
        return b""


def _open_regular(path: str, flags: int) -> int:
    try:
        file = os.open(path, flags | _BINARY | _DO_NOT_WAIT)
    except OSError as error:
        raise _explain(error, path) from None
    if os.fstat(file).st_mode & _KIND_BITS != _REGULAR:
        os.close(file)
        raise OSError(errno.EINVAL, _NOT_REGULAR, path)
    return file


def touch_private(path: str, *, at_s: float | None = None) -> None:
    """Create an empty file unless it exists; `at_s` sets the time of its last change."""
    file = open_private(path, os.O_CREAT | os.O_RDWR)
    try:
        if at_s is not None:
            os.utime(file if os.utime in os.supports_fd else path, (at_s, at_s))
    finally:
        os.close(file)


def make_private(path: str) -> None:
    """Let nobody but the user read a file or enter a folder, if there is one."""
    if sys.platform != "win32" and os.path.lexists(path):
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            os.fchmod(file, os.fstat(file).st_mode & ~0o077)
        finally:
            os.close(file)


def write_private(path: str, text: str) -> None:
    """Write a small file in place; after a crash, it may be incomplete."""
    with open(path, "w", encoding="utf-8", opener=open_private) as file:
        file.write(text)


def append_private(path: str, text: str) -> None:
    """Append to a file."""
    with open(path, "a", encoding="utf-8", opener=open_private) as file:
        file.write(text)


def append_remark(path: str, remark: str) -> None:
    """Append a line with the time to a log."""
    append_private(path, f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {as_remark(remark)}\n")


def as_remark(text: str) -> str:
    """Return text for a line of a log: foreign text that it quotes brings no line break or control character along."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def read_own(path: str, *, max_bytes: int) -> bytes:
    """Return the content of a file of our own; raise OSError if it is too long."""
    file = open_private(path, os.O_RDONLY)
    try:
        content = _read(file, max_bytes + 1)
    finally:
        os.close(file)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it has more than {max_bytes:,} bytes", path)
    return content


def read_end(path: str, *, max_bytes: int) -> bytes:
    """Return the end of a file of our own."""
    file = open_private(path, os.O_RDONLY)
    try:
        os.lseek(file, max(0, os.fstat(file).st_size - max_bytes), os.SEEK_SET)
        return _read(file, max_bytes)
    finally:
        os.close(file)


def read_regular(path: str, *, max_bytes: int) -> bytes:
    """Return the content of any regular file; raise ValueError for anything else, and for one that is too long.

    Links are followed. Opening does not wait: a named pipe without a writer would block for ever.
    """
    try:
        file = _open_regular(path, os.O_RDONLY)
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise ValueError(_NOT_REGULAR) from None
        raise
    try:
        content = _read(file, max_bytes + 1)
    finally:
        os.close(file)
    if len(content) > max_bytes:
        raise ValueError(f"it has more than {max_bytes:,} bytes")
    return content


def _read(file: int, max_bytes: int) -> bytes:
    pieces = []
    while max_bytes > 0 and (piece := os.read(file, min(max_bytes, _CHUNK_BYTES))):
        pieces.append(piece)
        max_bytes -= len(piece)
    return b"".join(pieces)


def list_names(folder: str) -> list[str]:
    """Return the names in a folder of our own in order; an empty list if it does not exist."""
    try:
        check_folder(folder)
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def make_folders(folder: str, *, mode: int = 0o700) -> None:
    """Create a folder and those above it, unless they exist; raise if one of them is a link."""
    try:
        check_folder(folder)
    except FileNotFoundError:
        parent = os.path.dirname(folder)
        if not os.path.lexists(parent):
            make_folders(parent, mode=0o777)
        _refuse_links(parent)
        try:
            os.mkdir(folder, mode)
        except FileExistsError:
            pass  # another process has created it
        check_folder(folder)


def remove_file(path: str) -> None:
    """Delete a file in a folder of our own, if it exists; of a link, only the link."""
    try:
        check_folder(os.path.dirname(path))
        os.unlink(path)
    except FileNotFoundError:
        return


def remove_tree(path: str) -> None:
    """Delete a folder in a folder of our own, as far as possible; of a link, only the link."""
    import shutil  # hooks do not need it

    try:
        check_folder(os.path.dirname(path))
        if os.lstat(path).st_mode & _KIND_BITS == _FOLDER:  # `rmtree` would wait at a named pipe
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
    except OSError:
        return


def rename(source: str, target: str) -> None:
    """Rename a file of our own; this overwrites the target."""
    check_folder(os.path.dirname(target))
    if not exists(source):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
    os.replace(source, target)


def rotate(path: str, *, max_bytes: int) -> None:
    """Rename a log that has grown too long; this overwrites the log that was renamed before it."""
    status = check_file(path)
    if status is not None and status.st_size > max_bytes:
        os.replace(path, path + ".old")


def replace_file(path: str, content: bytes, *, durable: bool = True) -> None:
    """Replace the content of a private file, completely or not at all."""
    check_folder(os.path.dirname(path))
    unfinished = stage(path, (content,), durable=durable)
    try:
        os.replace(unfinished, path)
    except OSError:
        os.unlink(unfinished)
        raise
    if durable:
        _sync_folder(path)


def replace_shared(
    path: str,
    pieces: Iterable[bytes],
    *,
    mode: int,
    durable: bool = True,
    is_unchanged: Callable[[], bool] = lambda: True,
) -> bool:
    """Replace the content of a file that other users can read, completely or not at all; keep an existing file's mode.

    `is_unchanged` is called just before the file is replaced. If it returns False, the file is not replaced, and this
    function also returns False.
    """
    _refuse_links(os.path.dirname(path))
    unfinished = stage(path, pieces, mode=mode, durable=durable)
    try:
        if os.path.lexists(path):
            os.chmod(unfinished, os.lstat(path).st_mode & 0o777)
        if not is_unchanged():
            return False
        os.replace(unfinished, path)
    finally:
        if os.path.lexists(unfinished):
            os.unlink(unfinished)
    return True


def stage(path: str, pieces: Iterable[bytes], *, mode: int = PRIVATE, durable: bool = True) -> str:
    """Write a new file next to a file that it will replace; return its path. If that fails, nothing is left."""
    unfinished = f"{path}.{os.urandom(_RANDOM_BYTES).hex()}{_UNFINISHED}"
    file = os.open(unfinished, _BINARY | os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FOLLOW_NO_LINK, mode)
    try:
        try:
            for piece in pieces:
                _write_all(file, piece)
            if durable:
                os.fsync(file)
        finally:
            os.close(file)
    except BaseException:
        os.unlink(unfinished)
        raise
    return unfinished


def remove_unfinished(path: str, *, locked: bool, is_former: Callable[[str], bool] = lambda _ending: False) -> None:
    """Remove the temporary files that killed processes left next to a file.

    `locked` means that no other process can be writing the file; otherwise only old temporary files are removed.
    `is_former` recognises the endings that earlier versions gave to this file's temporary files.
    """
    folder, name = os.path.split(path)
    check_folder(folder)
    for other in os.listdir(folder):
        ending = other[len(name) + 1 :]
        if other.startswith(f"{name}.") and (_is_unfinished(ending) or is_former(ending)):
            unfinished = os.path.join(folder, other)
            try:
                if locked or abs(time.time() - os.lstat(unfinished).st_mtime) > _LEFT_OVER_S:
                    os.unlink(unfinished)
            except OSError:
                continue  # another process was faster, or it is a folder


def _is_unfinished(ending: str) -> bool:
    """Return whether a file's ending is random, as that of a temporary file."""
    middle = ending.removesuffix(_UNFINISHED)
    return middle != ending and len(middle) == 2 * _RANDOM_BYTES and not middle.strip("0123456789abcdef")


def append_line(path: str, line: bytes) -> None:
    """Append a whole line to a private file, durably; on failure, leave the file as it was.

    If a crash left an incomplete line at the end, the new line starts after it.
    """
    file = open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
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
            return not os.path.samestat(os.fstat(self._file), os.lstat(self._path))
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

    def _give_up(self, _number: int, frame: FrameType | None) -> None:
        # Raised while the timer is being stopped, the error would leave it running, and later alarms would go off in
        # code that does not expect them.
        if frame is not None and frame.f_code in _TIMER_CODE:
            return
        raise TryAgain(f"no answer within {self._milliseconds} ms", hint="allow more time, or try again")


_TIMER_CODE = tuple(method.__code__ for method in (Deadline.__exit__, Deadline.stop, Deadline._set, Deadline._give_up))
