"""Run a program within its limits, and end everything that it started.

`run` always returns how the program ended and leaves nothing running, whether the program exits, takes too long, prints
too much, is stopped, or cannot be started. Processes that the program leaves behind are ended, and we do not wait for
a pipe that such a process keeps open.

Two threads read the pipes and one waits for the program. All of them report to one queue, so nothing is polled.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import BinaryIO

from learnt.model import Value
from learnt.system import family

_CHUNK = 65_536
# How long to wait for a pipe to close after all processes that could keep it open have been killed.
_PATIENCE_S = 5.0
_MAX_WAIT_S = 3600.0

EXITED, TIME_LIMIT, OUTPUT_LIMIT = "exited", "time limit", "output limit"
INTERRUPTED, NOT_STARTED = "interrupted", "not started"
# The queue's only event that is not an ending: there is new output for the caller.
_OUTPUT = "output"
Events = SimpleQueue[str]
End = Callable[[subprocess.Popen[bytes]], tuple[int, ...]]
"""Ends a program and its family; returns the ids of the processes that could not be ended."""
# Only Windows needs this flag; elsewhere a new session has its own process group.
_NEW_GROUP = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)


class Exit(Value):
    """How a program ended.

    `ending` is `exited`, `time limit`, `output limit`, `interrupted` or `not started`. `exit_code` is the code that a
    shell reports (137 for a kill), or None if the program was not started. `survivors` are the ids of processes that
    could not be ended. `error` says why the program was not started or why its output could not be saved.
    """

    ending: str
    exit_code: int | None
    pid: int
    survivors: tuple[int, ...] = ()
    error: str = ""


class Stop:
    """Stops programs that are running. `now` can be called from a signal handler and from any thread."""

    def __init__(self) -> None:
        self.is_requested = False
        self._listeners: list[Events] = []

    def now(self) -> None:
        """End the programs that are running, and any that start later."""
        self.is_requested = True
        for listener in tuple(self._listeners):
            listener.put(INTERRUPTED)

    def _listen(self, events: Events) -> None:
        # Append before the check, so that a stop in between is not missed.
        self._listeners.append(events)
        if self.is_requested:
            events.put(INTERRUPTED)


def run(
    words: Sequence[str],
    *,
    folder: str,
    environ: Mapping[str, str],
    stdin: BinaryIO,
    keep: Callable[[str, bytes], bool],
    time_limit_s: float,
    end: End = family.kill_group,
    patience_s: float = _PATIENCE_S,
    on_started: Callable[[int, str], None] | None = None,
    on_output: Callable[[], None] | None = None,
    stop: Stop | None = None,
) -> Exit:
    """Run a program until it exits or is ended.

    `keep` is called with each chunk of `stdout` and `stderr`, in other threads but never in two at once; if it returns
    False, the program is ended. `on_started` is called first, with the process id and the start time. `on_output` is
    called after new output. Both are called in the caller's thread; if one raises, the program is ended and the error
    is passed on.
    """
    stop = stop or Stop()
    deadline = time.monotonic() + time_limit_s
    program = _Program(words, keep, notify=on_output is not None)
    stop._listen(program.events)
    try:
        ending = INTERRUPTED if stop.is_requested else program.start(folder, environ, stdin)
        if not ending:
            ending = program.watch(deadline, on_started, on_output)
    finally:
        stop._listeners.remove(program.events)
        survivors = program.end(end, patience_s)
    return Exit(
        # The limit may be noticed only after the program has exited.
        ending=OUTPUT_LIMIT if ending == EXITED and program.flooded else ending,
        exit_code=program.exit_code,
        pid=program.pid,
        survivors=survivors,
        error=program.error,
    )


class _Program:
    """A running program and its threads."""

    def __init__(self, words: Sequence[str], keep: Callable[[str, bytes], bool], *, notify: bool) -> None:
        self.events: Events = SimpleQueue()
        self.exit_code: int | None = None
        self.error = ""
        self.flooded = False
        self._words = words
        self._keep = keep
        self._notify = notify
        self._notified = False
        self._process: subprocess.Popen[bytes] | None = None
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._over = False

    @property
    def pid(self) -> int:
        """The process id, or 0 before the start."""
        return self._process.pid if self._process else 0

    def start(self, folder: str, environ: Mapping[str, str], stdin: BinaryIO) -> str:
        """Start the program; return an empty string, or the ending if it could not be started."""
        if not os.path.isdir(folder):
            self.error = f"the folder {folder} does not exist"
            return NOT_STARTED
        try:
            self._process = subprocess.Popen(
                self._words,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=folder,
                env=environ,
                start_new_session=sys.platform != "win32",
                creationflags=_NEW_GROUP,
            )
        except (OSError, ValueError) as error:
            self.error = _why_not_started(self._words[0], error)
            return NOT_STARTED
        for name, pipe in (("stdout", self._process.stdout), ("stderr", self._process.stderr)):
            self._start_thread(self._read, name, pipe)
        self._waiter = self._start_thread(self._wait, self._process)
        return ""

    def watch(
        self, deadline: float, on_started: Callable[[int, str], None] | None, on_output: Callable[[], None] | None
    ) -> str:
        """Wait for the first reason to end the program, and return it."""
        if on_started:
            on_started(self.pid, family.start_time(self.pid))
        while True:
            left_s = deadline - time.monotonic()
            try:
                event = self.events.get(timeout=min(max(0.0, left_s), _MAX_WAIT_S))
            except Empty:
                event = _OUTPUT
            if event != _OUTPUT:
                return event
            if left_s <= 0:  # checked even while there is constant output
                return TIME_LIMIT
            # Clear the flag before the output is read, so that output saved after this sets it again.
            self._notified = False
            if on_output:
                on_output()

    def end(self, end: End, patience_s: float) -> tuple[int, ...]:
        """End the remaining processes, and collect the exit code and the rest of the output."""
        process = self._process
        if process is None:
            return ()
        survivors = end(process)
        self._waiter.join(patience_s)
        if not self._waiter.is_alive():
            code = process.wait()
            self.exit_code = code if code >= 0 else 128 - code
        for thread in self._threads:
            thread.join(patience_s)
        with self._lock:
            self._over = True  # a thread that is still reading must not call `keep` any more
        return survivors

    def _start_thread(self, work: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=work, args=arguments, name=f"learnt-{work.__name__}", daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        if sys.platform == "linux":
            # Wait without reaping, so that the process id is not reused before the family has ended.
            try:
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            except ChildProcessError:  # reaped by another part of this process
                pass
        else:
            process.wait()
        self.events.put(EXITED)

    def _read(self, name: str, pipe: BinaryIO) -> None:
        with pipe:
            while chunk := pipe.read(_CHUNK):
                ending = self._pass_on(name, chunk)
                if ending:
                    self.events.put(ending)
                    return
                if self._notify and not self._notified:
                    self._notified = True
                    self.events.put(_OUTPUT)

    def _pass_on(self, name: str, chunk: bytes) -> str:
        """Pass a chunk of output to the caller; return a reason to end the program, or an empty string."""
        with self._lock:
            if self._over:
                return INTERRUPTED
            try:
                if self._keep(name, chunk) and not self.flooded:
                    return ""
            except OSError as error:
                self.error = f"the output could not be saved: {error}"
                return INTERRUPTED
            self.flooded = True
            return OUTPUT_LIMIT


def _why_not_started(program: str, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"`{program}` was not found: is it installed and on PATH?"
    if isinstance(error, PermissionError):
        return f"`{program}` cannot be executed: permission denied"
    return f"`{program}` could not be started: {error}"
