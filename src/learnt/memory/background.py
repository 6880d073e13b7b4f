"""Learnings files that are made anew in a process of its own: detached, and one at a time."""

from __future__ import annotations

import os
import sys

from learnt.model import Value
from learnt.store import counters, regenerations
from learnt.store.spool import Locked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.config import Settings
    from learnt.store import Store
    from learnt.store.regenerations import Regeneration

LOCK = "update.lock"
_LOG = "update.log"
KILLED = "it was killed"
_TIME_TO_START_MS = 30_000
INTERNAL = "LEARNT_INTERNAL"
"""The environment variable that tells such a process from others."""


class State(Value):
    """How the learnings files stand."""

    running_since: int | None
    tasks_since: int
    every: int
    """After how many tasks they are made anew by themselves; 0 for never."""
    last: Regeneration | None

    @property
    def is_due(self) -> bool:
        """Whether enough tasks were done since."""
        return 0 < self.every <= self.tasks_since


def state(store: Store, settings: Settings) -> State:
    """Return how the learnings files stand."""
    last = next(iter(latest(store, limit=1)), None)
    return State(
        running_since=last.started_at if last and last.result == "running" else None,
        tasks_since=counters.value(store.database, counters.TASKS_SINCE_UPDATE),
        every=settings.learnings_regenerate_every if settings.learnings_enabled else 0,
        last=last,
    )


def latest(store: Store, *, limit: int) -> list[Regeneration]:
    """Return the latest makings, the newest first; one that says it runs while nobody is at it was killed."""
    made = regenerations.latest(store.database, limit=limit)
    left = any(one.result == "running" for one in made) and not is_updating(store)
    return [one.replace(result="failed", reason=KILLED) if left and one.result == "running" else one for one in made]


def is_updating(store: Store) -> bool:
    """Say whether somebody makes the learnings files at this moment.

    Whoever asks holds the lock for an instant: ask only when somebody says that they are at it.
    """
    try:
        with Locked(os.path.join(store.place.folder, LOCK), wait=False) as alone:
            return not alone
    except OSError:
        return False


def start_when_due(store: Store, settings: Settings, *, root: str, now: int) -> None:
    """Let the files be made anew in a process of its own, if enough tasks are done and nobody is at it."""
    stands = state(store, settings)
    if not stands.is_due or stands.running_since is not None:
        return
    # Of many that finish a task at once, one starts it; whoever was started and has begun by now is not waited for.
    before = max(now - _TIME_TO_START_MS, stands.last.started_at if stands.last else 0)
    with store.transaction():
        first = counters.claim(store.database, counters.UPDATE_STARTED_AT, now=now, before=before)
    if first:
        _start_worker(store.place.folder, root)


def _start_worker(folder: str, root: str) -> None:
    """Start a process that makes the files and outlives us; nobody waits for it."""
    # Without -P, a module of the user's would be taken for one of Python's.
    words = [sys.executable, "-P", "-m", "learnt", "update", "-C", root]
    environ = {**os.environ, INTERNAL: "1"}
    log = os.open(os.path.join(folder, _LOG), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        _spawn(words, environ, log)
    finally:
        os.close(log)


if sys.platform == "win32":

    def _spawn(words: list[str], environ: dict[str, str], log: int) -> None:
        import subprocess

        process = subprocess.Popen(words, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        process.returncode = 0  # it is on its own: nobody is to be warned that it still runs

else:

    def _spawn(words: list[str], environ: dict[str, str], log: int) -> None:
        """Start a process in a session of its own; `subprocess` does the same, but to load it takes far longer."""
        _take_note_of_ends()
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            actions = [(os.POSIX_SPAWN_DUP2, nothing, 0), (os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
            # Whoever waits for the end of a pipe that we were given must not wait for the process as well.
            closed = [(os.POSIX_SPAWN_CLOSE, number) for number in _inherited()]
            _started.append(os.posix_spawn(words[0], words, environ, file_actions=[*actions, *closed], setsid=True))
        finally:
            os.close(nothing)


_started: list[int] = []


def _take_note_of_ends() -> None:
    """Let those go that ended: until then they stay in the system's table."""
    for process in list(_started):
        if sys.platform == "win32":
            return
        try:
            ended = os.waitpid(process, os.WNOHANG)[0] != 0
        except ChildProcessError:
            ended = True
        if ended:
            _started.remove(process)


def _inherited() -> list[int]:
    """Return the open files beyond the usual three that a new process would get."""
    found = []
    for name in os.listdir("/dev/fd"):
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
        except OSError:
            continue  # the one through which they were listed
    return found
