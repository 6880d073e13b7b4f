"""The loop's runs on this machine. Each run has a file while it is alive, so that other processes can stop it."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from learnt.errors import LearntError
from learnt.model import Value
from learnt.system import detached, family, files

LOG = "work.log"
_FOLDER = "runs"
_START_PATIENCE_S = 20.0
_STOP_PATIENCE_S = 30.0
_MAX_RUN_BYTES = 10_000
_MAX_OUTPUT_BYTES = 100_000


class Run(Value):
    """A process that works on tasks."""

    pid: int
    started: str
    at: int


@contextmanager
def register(store_folder: str) -> Iterator[None]:
    """Register this process as a run for the duration of the block."""
    path = _path(store_folder, os.getpid())
    try:
        files.make_folders(os.path.dirname(path))
        content = json.dumps(_describe(os.getpid()).as_dict()).encode()
        files.replace_file(path, content, durable=False)
    except OSError as error:
        raise LearntError(f"cannot write {path}: {error.strerror}", hint="check the folder's permissions") from None
    try:
        yield
    finally:
        with suppress(OSError):
            files.remove_file(path)


def living(store_folder: str) -> list[Run]:
    """Return the runs that are alive, oldest first; remove the files of dead runs."""
    folder = os.path.join(store_folder, _FOLDER)
    runs = []
    try:
        names = files.list_names(folder)
    except OSError as error:
        raise LearntError(f"cannot read {folder}: {error.strerror}", hint="put a folder of your own there") from None
    for name in names:
        path = os.path.join(folder, name)
        try:
            run = Run(**json.loads(files.read_own(path, max_bytes=_MAX_RUN_BYTES)))
        except (OSError, ValueError, TypeError):
            continue
        if is_alive(run):
            runs.append(run)
        else:
            with suppress(OSError):
                files.remove_file(path)
    return sorted(runs, key=lambda run: run.at)


def is_alive(run: Run) -> bool:
    """Return whether a run is still alive; its start time is compared, because its process id may have been reused."""
    return bool(run.started) and family.start_time(run.pid) == run.started


def stop_all(store_folder: str) -> list[Run]:
    """Ask each run to end its agents and then itself; return the runs once they have ended."""
    active = living(store_folder)
    for run in active:
        with suppress(OSError):
            os.kill(run.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_PATIENCE_S
    while time.monotonic() < deadline and any(is_alive(run) for run in active):
        time.sleep(0.05)
    remaining = [run.pid for run in active if is_alive(run)]
    if remaining:
        raise LearntError(f"process {remaining[0]} has not ended", hint=f"see `ps -p {remaining[0]}`")
    return active


def start(words: list[str], store_folder: str) -> Run:
    """Start a run that outlives this process; return it once it has registered itself."""
    log = os.path.join(store_folder, LOG)
    process = detached.start(words, environ=os.environ, log=log)
    path = _path(store_folder, process.pid)
    deadline = time.monotonic() + _START_PATIENCE_S
    while not os.path.lexists(path):
        exit_code = process.poll()
        if exit_code == 0:
            break  # there was nothing to do
        if exit_code is not None:
            output = files.read_end(log, max_bytes=_MAX_OUTPUT_BYTES).decode("utf-8", "replace").strip()
            raise LearntError(f"the run ended immediately: {output or exit_code}", hint="try it in the foreground")
        if time.monotonic() > deadline:
            raise LearntError("the run did not start in time", hint=f"see {log}")
        time.sleep(0.02)
    return _describe(process.pid)


def _describe(pid: int) -> Run:
    return Run(pid=pid, started=family.start_time(pid), at=time.time_ns() // 1_000_000)


def _path(store_folder: str, pid: int) -> str:
    return os.path.join(store_folder, _FOLDER, f"{pid}.json")
