"""Start a process that outlives us and that nobody waits for.

It has a session of its own, reads nothing, writes to a private log file and inherits no open file. Hooks load this
module: it imports nothing of ours, and `subprocess`, which takes longer to load than the start itself, only on Windows.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

INTERNAL = "LEARNT_INTERNAL"
"""The environment variable that marks processes started by learnt itself."""

_running: list[int] = []


def start(words: list[str], *, environ: Mapping[str, str], log: str, append: bool = False) -> None:
    """Start a program, given by its full path, with what it prints in a log that is new unless `append`."""
    file = os.open(log, os.O_CREAT | os.O_WRONLY | (os.O_APPEND if append else os.O_TRUNC), 0o600)
    try:
        _spawn(words, environ, file)
    finally:
        os.close(file)


if sys.platform == "win32":

    def _spawn(words: list[str], environ: Mapping[str, str], log: int) -> None:
        import subprocess

        process = subprocess.Popen(words, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        process.returncode = 0  # nobody waits for it: without this, Python warns that it still runs

else:

    def _spawn(words: list[str], environ: Mapping[str, str], log: int) -> None:
        _reap()
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            actions = [(os.POSIX_SPAWN_DUP2, nothing, 0), (os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
            # A caller that waits for the end of a pipe that we inherited must not wait for the new process as well.
            closed = [(os.POSIX_SPAWN_CLOSE, number) for number in _inheritable_files()]
            _running.append(os.posix_spawn(words[0], words, environ, file_actions=[*actions, *closed], setsid=True))
        finally:
            os.close(nothing)

    def _reap() -> None:
        """Remove ended processes from the system's table."""
        for pid in list(_running):
            try:
                has_ended = os.waitpid(pid, os.WNOHANG)[0] != 0
            except ChildProcessError:
                has_ended = True
            if has_ended:
                _running.remove(pid)


def _inheritable_files() -> list[int]:
    """Return the open files beyond the usual three that a new process would get."""
    numbers = []
    for name in os.listdir("/dev/fd"):
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):
                numbers.append(int(name))
        except OSError:
            continue  # the one through which they were listed
    return numbers
