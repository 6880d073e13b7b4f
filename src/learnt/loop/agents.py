"""Run an agent: start its client, keep what it prints, and end everything that it started.

Whatever happens, `run` returns with a truthful account and nothing left running: the client ends by itself, takes too
long, prints too much, is stopped, or cannot be started at all. Processes that outlive it are ended with it, and a
pipe that one of them holds open does not keep us waiting.

Output goes to files in the log folder and stops at the limit to the byte; memory stays small however much is printed.
Two threads read the pipes and one waits for the client; all of them report to one queue, so nothing is polled.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import BinaryIO, Self

from learnt.clients import programs
from learnt.clients.shapes import PLACES, Call, Output
from learnt.errors import LearntError
from learnt.loop import processes
from learnt.model import Value

_CHUNK = 65_536
# A line is shown when it is this short; more of one line is never held in memory.
_LINE_LIMIT = 1_000_000
# What a watcher has not taken yet, and what is looked at of one chunk; a flood drops the oldest.
_PROGRESS_KEPT = 200
_LINES_A_CHUNK = 100
# How long a pipe may take to close once everything that could hold it is dead.
_PIPE_PATIENCE_S = 5.0
_LONGEST_WAIT_S = 3600.0

_EXITED, _FLOODED, _STOPPED, _UNKEPT, _PROGRESS = "exited", "flooded", "stopped", "unkept", "progress"
_ENDING_OF = {_EXITED: "exited", _FLOODED: "output limit", _STOPPED: "interrupted", _UNKEPT: "interrupted"}
Events = SimpleQueue[str]

if sys.platform == "win32":
    _NEW_GROUP = subprocess.CREATE_NEW_PROCESS_GROUP
else:
    _NEW_GROUP = 0  # a new session stands for it


class Run(Value):
    """What became of an agent.

    `ending` is `exited`, `time limit`, `output limit`, `interrupted` or `not started`. `exit_code` is as a shell tells
    it (137 for a kill) and None when nothing was started. `outlived` counts the processes beside the client that ran
    when it was over and were ended, `left` names those that not even we could end. `error` says why the client was
    not started or its output not kept.
    """

    ending: str
    exit_code: int | None
    duration_ms: int
    pid: int
    stdout_path: str
    stderr_path: str
    output: Output
    outlived: int = 0
    left: tuple[int, ...] = ()
    error: str = ""


class Stop:
    """Ends the runs that it is given to. `now` may be called from a signal handler and from any thread."""

    def __init__(self) -> None:
        self._asked = False
        self._listeners: list[Events] = []

    def now(self) -> None:
        """End the runs, now and whenever one starts."""
        self._asked = True
        for listener in tuple(self._listeners):
            listener.put(_STOPPED)

    @property
    def asked(self) -> bool:
        """Whether the end was asked for."""
        return self._asked

    def _listen(self, events: Events) -> None:
        # First in the list, then the look: whoever stops in between is heard at least once.
        self._listeners.append(events)
        if self._asked:
            events.put(_STOPPED)

    def _unlisten(self, events: Events) -> None:
        self._listeners.remove(events)


def run(
    call: Call,
    *,
    folder: str,
    environ: Mapping[str, str],
    time_limit_s: float,
    output_limit_bytes: int,
    log_folder: str,
    on_progress: Callable[[str], None] | None = None,
    on_started: Callable[[int, str], None] | None = None,
    stop: Stop | None = None,
    grace_s: float = processes.GRACE_S,
) -> Run:
    """Run the agent to its end, whichever that is.

    `on_started` is given the process's number and start time before anything else happens; `on_progress` a short line
    now and then. Both are called in the caller's thread; when one raises, the agent is ended and the error goes on.
    """
    inherited = {name: text for name, text in environ.items() if name not in ("LEARNT_INTERNAL", *call.without)}
    environment = {**inherited, **call.environment}
    stop = stop or Stop()
    with _Log(log_folder, call) as log:
        began = time.monotonic()
        agent = _Agent(log, call, environment.get(processes.MARK, ""), output_limit_bytes, grace_s)
        stop._listen(agent.events)
        try:
            ending = "interrupted" if stop.asked else agent.start(folder, environment)
            if not ending:
                ending = agent.watch(began + time_limit_s, on_started, on_progress)
        finally:
            stop._unlisten(agent.events)
            agent.end()
        if on_progress:
            agent.show(on_progress)
        duration_ms = round((time.monotonic() - began) * 1000)
    return Run(
        # What was cut off after the client's end is cut off all the same.
        ending="output limit" if ending == "exited" and agent.flooded else ending,
        exit_code=agent.exit_code,
        duration_ms=duration_ms,
        pid=agent.pid,
        stdout_path=log.path("stdout"),
        stderr_path=log.path("stderr"),
        output=Output(
            call=call,
            folder=folder,
            stdout=log.path("stdout"),
            stderr=log.path("stderr"),
            exit_code=agent.exit_code,
            places={name: environment[name] for name in PLACES if name in environment},
        ),
        outlived=agent.outlived,
        left=agent.left,
        error=agent.error,
    )


class _Log:
    """The files of one run: what went in on `stdin`, what came out on `stdout` and `stderr`."""

    def __init__(self, folder: str, call: Call) -> None:
        self._folder = os.path.abspath(folder)
        self._call = call
        self.files: dict[str, BinaryIO] = {}

    def __enter__(self) -> Self:
        try:
            for path, content in {**self._call.files, self.path("stdin"): self._call.stdin}.items():
                os.makedirs(os.path.dirname(path), exist_ok=True)
                _write(path, content)
            self.files["stdin"] = open(self.path("stdin"), "rb")
            for name in ("stdout", "stderr"):
                self.files[name] = open(self.path(name), "w+b", buffering=0, opener=_private)
        except OSError as mistake:
            self._close()
            raise self._refused(mistake) from None
        return self

    def __exit__(self, *_: object) -> None:
        try:
            for name in ("stdout", "stderr"):
                if not os.path.exists(self.path(name)):
                    self._restore(name, self.files[name])
        except OSError as mistake:
            raise self._refused(mistake) from None
        finally:
            self._close()

    def _close(self) -> None:
        for file in self.files.values():
            file.close()

    def path(self, name: str) -> str:
        """Return where a stream is kept."""
        return os.path.join(self._folder, name)

    def _refused(self, mistake: OSError) -> LearntError:
        return LearntError(
            f"the agent's log cannot be written: {mistake}", hint=f"make room for and give access to {self._folder}"
        )

    def _restore(self, name: str, file: BinaryIO) -> None:
        # An agent that clears the folder it works in may have taken its own log along; the open file still has it.
        os.makedirs(self._folder, exist_ok=True)
        file.seek(0)
        with open(self.path(name), "wb", opener=_private) as anew:
            shutil.copyfileobj(file, anew)


class _Agent:
    """One agent while it runs, and the threads that serve it."""

    def __init__(self, log: _Log, call: Call, mark: str, output_limit_bytes: int, grace_s: float) -> None:
        self.events: Events = SimpleQueue()
        self.exit_code: int | None = None
        self.error = ""
        self.flooded = False
        self.outlived = 0
        self.left: tuple[int, ...] = ()
        self._log = log
        self._call = call
        self._mark = mark
        self._grace_s = grace_s
        self._process: subprocess.Popen[bytes] | None = None
        self._threads: list[threading.Thread] = []
        self._progress: deque[str] = deque(maxlen=_PROGRESS_KEPT)
        self._room = output_limit_bytes
        self._lock = threading.Lock()
        self._over = False

    @property
    def pid(self) -> int:
        """The number of the client's process; 0 when there is none."""
        return self._process.pid if self._process else 0

    def start(self, folder: str, environment: dict[str, str]) -> str:
        """Start the client; return an ending when that was not possible."""
        if not os.path.isdir(folder):
            self.error = f"the folder {folder} does not exist"
            return "not started"
        try:
            self._process = subprocess.Popen(
                self._call.argv,
                stdin=self._log.files["stdin"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=folder,
                env=environment,
                start_new_session=sys.platform != "win32",
                creationflags=_NEW_GROUP,
            )
        except (OSError, ValueError) as mistake:
            self.error = _why_not_started(self._call.argv, mistake)
            return "not started"
        for name, pipe in (("stdout", self._process.stdout), ("stderr", self._process.stderr)):
            self._thread(self._keep, name, pipe)
        self._waiter = self._thread(self._wait, self._process)
        return ""

    def watch(
        self,
        deadline: float,
        on_started: Callable[[int, str], None] | None,
        on_progress: Callable[[str], None] | None,
    ) -> str:
        """Wait for the first reason to end; return it."""
        if on_started:
            on_started(self.pid, processes.start_time(self.pid))
        while True:
            left_s = deadline - time.monotonic()
            try:
                event = self.events.get(timeout=min(max(0.0, left_s), _LONGEST_WAIT_S))
            except Empty:
                event = ""
            if event in _ENDING_OF:
                return _ENDING_OF[event]
            if left_s <= 0:  # also when there is always something to show
                return "time limit"
            if on_progress:
                self.show(on_progress)

    def show(self, on_progress: Callable[[str], None]) -> None:
        """Hand over the lines that nobody has seen yet."""
        while self._progress:
            on_progress(self._progress.popleft())

    def end(self) -> None:
        """End what is left of the family, take the exit code and the rest of the output."""
        process = self._process
        if process is None:
            return
        if sys.platform == "win32":
            processes.end_tree(process.pid)
        else:
            family = processes.family_of(process.pid, self._mark)
            self.outlived = sum(member.pid != process.pid for member in family)
            self.left = processes.end(lambda: processes.family_of(process.pid, self._mark), grace_s=self._grace_s)
        self._waiter.join(_PIPE_PATIENCE_S)
        if not self._waiter.is_alive():
            code = process.wait()
            self.exit_code = code if code >= 0 else 128 - code
        for thread in self._threads:
            thread.join(_PIPE_PATIENCE_S)
        with self._lock:
            self._over = True  # a thread that still hangs on a pipe must not write into closed files

    def _thread(self, work: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=work, args=arguments, name=f"learnt-{work.__name__}", daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        if sys.platform == "linux":
            # Seen, but not taken: until the family is ended, the client's number must stay its own.
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        else:
            process.wait()
        self.events.put(_EXITED)

    def _keep(self, name: str, pipe: BinaryIO) -> None:
        line = b""
        with pipe:
            while chunk := pipe.read(_CHUNK):
                event = self._write(name, chunk)
                if event:
                    self.events.put(event)
                    return
                if name == "stdout":
                    *whole, line = (line + chunk).split(b"\n")
                    self._tell(whole[-_LINES_A_CHUNK:])
                    line = line if len(line) < _LINE_LIMIT else b""

    def _write(self, name: str, chunk: bytes) -> str:
        """Keep as much as there is room for; return an event when that was not all of it."""
        with self._lock:
            if self._over:
                return _STOPPED
            kept = chunk[: self._room]
            self.flooded = self.flooded or len(kept) < len(chunk)
            self._room -= len(kept)
            try:
                while kept:
                    kept = kept[self._log.files[name].write(kept) :]
            except OSError as mistake:
                self.error = f"the agent's output could not be kept: {mistake}"
                return _UNKEPT
            return _FLOODED if self.flooded else ""

    def _tell(self, lines: list[bytes]) -> None:
        for line in lines:
            text = programs.progress(self._call, line.decode("utf-8", "replace"))
            if text:
                self._progress.append(text)
                # After the append: whoever empties the list has either taken this line or is woken for it.
                if len(self._progress) == 1:
                    self.events.put(_PROGRESS)


def _write(path: str, content: str) -> None:
    with open(path, "w", encoding="utf-8", errors="replace", newline="", opener=_private) as file:
        file.write(content)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _why_not_started(argv: tuple[str, ...], mistake: Exception) -> str:
    if isinstance(mistake, FileNotFoundError):
        return f"`{argv[0]}` was not found: is it installed and on PATH?"
    if isinstance(mistake, PermissionError):
        return f"`{argv[0]}` may not be executed"
    return f"`{argv[0]}` could not be started: {mistake}"
