"""learnt's doors: `open_doors` runs them in this process, `start_doors` in a new process for each command.

In this process a command takes milliseconds. It has its own streams, environment and folder, and its changes to them
are undone afterwards. Some behaviour can be tested only in a separate process: the real exit code, the absence of
output, the deadline, processes that are left running, and missing files or streams.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from learnt.doors.cli import run as run_command_line
from learnt.doors.hook import run_hook
from learnt.doors.worker import main as run_worker

_SIGNALS = (signal.SIGALRM, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Done:
    """A finished command's exit code and output."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


Environ = Mapping[str, str] | None
Learnt = Callable[..., Done]
"""Runs a command line; the keywords are `stdin`, `cwd` and `env`, which is added to the environment."""


def open_doors(folder: Path, environ: Mapping[str, str] | None = None) -> Learnt:
    """Return a function that runs commands and hooks in a folder, in this process."""

    def run(*words: str, stdin: str | bytes = "", cwd: Path | None = None, env: Environ = None) -> Done:
        is_hook = words[:1] == ("hook",) and words[1:] not in (("--help",), ("-h",))
        door = run_hook if is_hook else lambda: run_command_line(list(words))
        return run_here(door, words, stdin=stdin, cwd=cwd or folder, environ=_merge(environ, env))

    return run


def start_doors(folder: Path, environ: Mapping[str, str] | None = None) -> Learnt:
    """Return a function that runs commands in a folder, each in a new process."""

    def run(*words: str, stdin: str | bytes = "", cwd: Path | None = None, env: Environ = None) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "learnt", *words],
            cwd=cwd or folder,
            input=_bytes(stdin),
            capture_output=True,
            env=_merge(environ, env),
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


def work_here(folder: Path) -> Done:
    """Let the worker catch up with a project, in this process."""
    return run_here(lambda: run_worker([str(folder)]), ("worker",), stdin="", cwd=folder, environ=dict(os.environ))


def start_worker(folder: Path) -> subprocess.Popen[bytes]:
    """Start a project's worker as learnt itself does."""
    return subprocess.Popen([sys.executable, "-P", "-m", "learnt.doors.worker", str(folder)], stderr=subprocess.DEVNULL)


def run_here(
    door: Callable[[], int], words: tuple[str, ...], *, stdin: str | bytes, cwd: Path, environ: Mapping[str, str]
) -> Done:
    """Run a door in this process, as if it were a separate process."""
    # Streams, the folder and the environment belong to the whole process.
    assert threading.current_thread() is threading.main_thread(), "what runs at once needs processes"
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(_bytes(stdin))
        given.seek(0)
        with ExitStack() as kept:
            kept.enter_context(_process_state(words, cwd, environ))
            kept.enter_context(_streams(given, out, err))
            try:
                code = door()
            except SystemExit as end:  # argparse ends the process after a help page
                code = int(end.code or 0)
        return Done(code, _content(out), _content(err))


@contextmanager
def _process_state(words: tuple[str, ...], cwd: Path, environ: Mapping[str, str]) -> Iterator[None]:
    """Set a door's arguments, folder and environment, and afterwards undo its changes to the process."""
    folder, variables, arguments = os.open(".", os.O_RDONLY), dict(os.environ), sys.argv
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    complain, collects, mask = sys.unraisablehook, gc.isenabled(), os.umask(0)
    os.umask(mask)
    try:
        os.chdir(cwd)
        _set_environment(environ)
        sys.argv = ["learnt", *words]
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        (gc.enable if collects else gc.disable)()
        os.umask(mask)
        sys.unraisablehook, sys.argv = complain, arguments
        _set_environment(variables)
        os.fchdir(folder)
        os.close(folder)


def _set_environment(variables: Mapping[str, str]) -> None:
    if os.environ != variables:
        os.environ.clear()
        os.environ.update(variables)


@contextmanager
def _streams(*files: IO[bytes]) -> Iterator[None]:
    """Use these files as stdin, stdout and stderr, both the system's, which a hook uses, and Python's."""
    ours = sys.stdin, sys.stdout, sys.stderr
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(number) for number in range(3)]
    for number, file in enumerate(files):
        os.dup2(file.fileno(), number)
    sys.stdin, sys.stdout, sys.stderr = (_stream(number) for number in range(3))
    try:
        yield
    finally:
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            stream.close()
        sys.stdin, sys.stdout, sys.stderr = ours
        for number, copy in enumerate(saved):
            os.dup2(copy, number)
            os.close(copy)


def _stream(number: int) -> io.TextIOWrapper:
    # A UTF-8 locale uses `strict`; the command itself decides how to handle bytes that are not UTF-8.
    raw = io.FileIO(number, "wb" if number else "rb", closefd=False)
    errors = "backslashreplace" if number == 2 else "strict"
    if number:
        return io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", errors=errors, line_buffering=number == 2)
    return io.TextIOWrapper(io.BufferedReader(raw), encoding="utf-8", errors=errors)


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


def _merge(environ: Mapping[str, str] | None, more: Mapping[str, str] | None) -> dict[str, str]:
    return {**(os.environ if environ is None else environ), **(more or {})}
