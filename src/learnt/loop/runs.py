"""The runs of the loop on this machine: each leaves a note while it lives, so that others can see and stop it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

from learnt.errors import LearntError
from learnt.model import Value
from learnt.system import family, files

LOG = "work.log"
_FOLDER = "runs"
_START_PATIENCE_S = 20.0


class Run(Value):
    """A process that works on tasks."""

    pid: int
    started: str
    at: int


class Registered:
    """A block during which this process can be seen and stopped."""

    def __init__(self, store_folder: str) -> None:
        self._path = _path(store_folder, os.getpid())

    def __enter__(self) -> None:
        run = Run(pid=os.getpid(), started=family.start_time(os.getpid()), at=time.time_ns() // 1_000_000)
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            content = json.dumps(run.as_dict()).encode()
            files.replace_file(self._path, content, unfinished=f"{self._path}.new", durable=False)
        except OSError as error:
            raise LearntError(f"cannot write {self._path}: {error.strerror}", hint="check the folder") from None

    def __exit__(self, *_: object) -> None:
        try:
            os.unlink(self._path)
        except OSError:
            return


def living(store_folder: str) -> list[Run]:
    """Return the runs that are alive, the oldest first; the notes of dead ones are removed."""
    folder = os.path.join(store_folder, _FOLDER)
    runs = []
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        path = os.path.join(folder, name)
        try:
            with open(path, encoding="utf-8") as file:
                run = Run(**json.load(file))
        except (OSError, ValueError, TypeError):
            continue
        if is_alive(run):
            runs.append(run)
        else:
            try:
                os.unlink(path)
            except OSError:
                continue
    return sorted(runs, key=lambda run: run.at)


def is_alive(run: Run) -> bool:
    """Say whether a run still goes on: another process may have its number by now."""
    return bool(run.started) and family.start_time(run.pid) == run.started


def ask_to_stop(run: Run) -> None:
    """Let a run end its agents and itself."""
    try:
        os.kill(run.pid, signal.SIGTERM)
    except OSError:
        return


def start(words: list[str], store_folder: str) -> Run:
    """Start a run that outlives this process; return it once it is on its way."""
    log = os.path.join(store_folder, LOG)
    with open(log, "wb", opener=files.open_private) as file:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=sys.platform != "win32"
        )
    path = _path(store_folder, process.pid)
    deadline = time.monotonic() + _START_PATIENCE_S
    while not os.path.exists(path):
        if process.poll() is not None:
            with open(log, encoding="utf-8", errors="replace") as file:
                output = file.read().strip()
            if process.returncode == 0:
                break  # there was nothing more to do
            raise LearntError(f"the run ended at once: {output or process.returncode}", hint="try it in the foreground")
        if time.monotonic() > deadline:
            raise LearntError("the run does not start", hint=f"see {log}")
        time.sleep(0.02)
    return Run(pid=process.pid, started=family.start_time(process.pid), at=time.time_ns() // 1_000_000)


def _path(store_folder: str, pid: int) -> str:
    return os.path.join(store_folder, _FOLDER, f"{pid}.json")
