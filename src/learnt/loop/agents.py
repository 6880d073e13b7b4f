"""Run an agent: start its client, save its output, and report its progress to the caller.

A run's files are in its log folder. Output is cut exactly at the limit, and memory use stays small. `system/run`
guarantees that the run ends and that none of its processes stays alive.
"""

from __future__ import annotations

import os
import shutil
from collections import deque
from collections.abc import Callable, Mapping
from typing import BinaryIO, Self

from learnt.clients.kit import run as programs
from learnt.clients.kit.run import Call, Output
from learnt.clients.registry import FOLDER_VARIABLES
from learnt.errors import LearntError
from learnt.model import Value
from learnt.system import family
from learnt.system.detached import INTERNAL
from learnt.system.files import make_folders, open_private
from learnt.system.run import Exit, Stop
from learnt.system.run import run as run_program

# Longer lines are neither shown nor buffered in memory.
_MAX_LINE_BYTES = 1_000_000
# How many lines are queued for the caller, and how many lines of one chunk are read; older lines are dropped.
_MAX_QUEUED_LINES = 200
_MAX_LINES_PER_CHUNK = 100


class AgentRun(Value):
    """How an agent's program ended, and where its output is."""

    exit: Exit
    output: Output


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
    grace_s: float = family.GRACE_S,
) -> AgentRun:
    """Run the agent until it exits or is ended.

    `on_started` and `stop` are passed to `system/run`. `on_progress` is called in the caller's thread with short lines
    that describe what the agent is doing; if it raises, the agent is ended and the error is passed on.
    """
    inherited = {name: text for name, text in environ.items() if name not in (INTERNAL, *call.without)}
    environment = {**inherited, **call.environment}
    mark = environment.get(family.ATTEMPT_VARIABLE, "")
    with _RunLog(log_folder, call, output_limit_bytes) as log:

        def show() -> None:
            while on_progress and log.progress:
                on_progress(log.progress.popleft())

        exit = run_program(
            call.argv,
            folder=folder,
            environ=environment,
            stdin=log.files["stdin"],
            keep=log.keep,
            time_limit_s=time_limit_s,
            end=lambda process: family.end_family(process, mark, grace_s=grace_s),
            on_started=on_started,
            on_output=show if on_progress else None,
            stop=stop,
        )
        show()
    output = Output(
        call=call,
        folder=folder,
        stdout=log.path("stdout"),
        stderr=log.path("stderr"),
        exit_code=exit.exit_code,
        variables={name: environment[name] for name in FOLDER_VARIABLES if name in environment},
    )
    return AgentRun(exit=exit, output=output)


class _RunLog:
    """One run's files (`stdin`, `stdout`, `stderr`), and the lines that show its progress."""

    def __init__(self, folder: str, call: Call, output_limit_bytes: int) -> None:
        self._folder = os.path.abspath(folder)
        self._call = call
        self._remaining_bytes = output_limit_bytes
        self._line = b""
        self.files: dict[str, BinaryIO] = {}
        self.progress: deque[str] = deque(maxlen=_MAX_QUEUED_LINES)

    def __enter__(self) -> Self:
        try:
            for path, content in {**self._call.files, self.path("stdin"): self._call.stdin}.items():
                make_folders(os.path.dirname(path))
                with open(path, "w", encoding="utf-8", errors="replace", newline="", opener=open_private) as file:
                    file.write(content)
            self.files["stdin"] = open(self.path("stdin"), "rb", opener=open_private)
            for name in ("stdout", "stderr"):
                self.files[name] = open(self.path(name), "w+b", buffering=0, opener=open_private)
        except OSError as error:
            self._close()
            raise self._cannot_write(error) from None
        return self

    def __exit__(self, *_: object) -> None:
        try:
            for name in ("stdout", "stderr"):
                if not os.path.lexists(self.path(name)):
                    self._restore(name)
        except OSError as error:
            raise self._cannot_write(error) from None
        finally:
            self._close()

    def path(self, name: str) -> str:
        """Return the path of the file for a stream."""
        return os.path.join(self._folder, name)

    def keep(self, name: str, chunk: bytes) -> bool:
        """Write a chunk up to the output limit; return False if it was cut."""
        unwritten = chunk[: self._remaining_bytes]
        is_complete = len(unwritten) == len(chunk)
        self._remaining_bytes -= len(unwritten)
        while unwritten:
            unwritten = unwritten[self.files[name].write(unwritten) :]
        if is_complete and name == "stdout":
            self._queue_progress(chunk)
        return is_complete

    def _queue_progress(self, chunk: bytes) -> None:
        *complete_lines, rest = (self._line + chunk).split(b"\n")
        self._line = rest if len(rest) < _MAX_LINE_BYTES else b""
        for line in complete_lines[-_MAX_LINES_PER_CHUNK:]:
            text = programs.format_progress(self._call, line.decode("utf-8", "replace"))
            if text:
                self.progress.append(text)

    def _close(self) -> None:
        for file in self.files.values():
            file.close()

    def _cannot_write(self, error: OSError) -> LearntError:
        return LearntError(
            f"the agent's log cannot be written: {error}", hint=f"check disk space and permissions of {self._folder}"
        )

    def _restore(self, name: str) -> None:
        # An agent may delete its own log while it clears its folder, so the content is copied from the open file.
        make_folders(self._folder)
        self.files[name].seek(0)
        with open(self.path(name), "wb", opener=open_private) as copy:
            shutil.copyfileobj(self.files[name], copy)
