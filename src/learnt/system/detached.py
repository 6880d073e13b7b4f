"""Start a process that outlives us.

The process runs in its own session, reads nothing, writes to a private log file and does not inherit any open file.
Hooks load this module, so `subprocess`, which takes longer to load than the start itself, is imported on Windows only.
"""

from __future__ import annotations

import os
import sys

from learnt.system.files import open_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping

INTERNAL = "LEARNT_INTERNAL"
"""The environment variable that marks processes started by learnt itself."""

_running: list[Detached] = []


def start(words: list[str], *, environ: Mapping[str, str], log: str, append: bool = False) -> Detached:
    """Start the program whose full path is `words[0]`; write its output to the log, emptied first unless `append`."""
    file = open_private(log, os.O_CREAT | os.O_WRONLY | (os.O_APPEND if append else os.O_TRUNC))
    _running[:] = [process for process in _running if process.poll() is None]  # `poll` reaps ended processes
    try:
        process = _spawn(words, environ, file)
    finally:
        os.close(file)
    _running.append(process)
    return process


class Detached:
    """A process that was started. On Windows, it has a handle, from which the exit code is read."""

    def __init__(self, pid: int, handle: subprocess.Popen[bytes] | None = None) -> None:
        self.pid = pid
        self._handle = handle
        self._exit_code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, which is negative for a signal, or None while the process is running."""
        if sys.platform == "win32":
            return self._handle.poll() if self._handle else None
        if self._exit_code is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                pid, status = self.pid, 0  # something else in this process has reaped it
            self._exit_code = os.waitstatus_to_exitcode(status) if pid else None
        return self._exit_code


if sys.platform == "win32":

    def _spawn(words: list[str], environ: Mapping[str, str], log: int) -> Detached:
        import subprocess

        process = subprocess.Popen(words, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return Detached(process.pid, process)

else:

    def _spawn(words: list[str], environ: Mapping[str, str], log: int) -> Detached:
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            actions = [(os.POSIX_SPAWN_DUP2, nothing, 0), (os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
            # Our caller may be reading a pipe until we close it, so the new process must not keep that pipe open.
            closed = [(os.POSIX_SPAWN_CLOSE, number) for number in _inheritable_files()]
            return Detached(os.posix_spawn(words[0], words, environ, file_actions=[*actions, *closed], setsid=True))
        finally:
            os.close(nothing)


def _inheritable_files() -> list[int]:
    """Return the open files, other than the standard streams, that a new process would inherit."""
    numbers = []
    for name in os.listdir("/dev/fd"):
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):
                numbers.append(int(name))
        except OSError:
            continue  # the descriptor that listed the folder is closed by now
    return numbers
