"""What is done in a process of its own, which nobody waits for: detached, and one at a time.

Learnings files are made anew by `learnt update`; the worker takes up what waits, and reads what was said.
"""

from __future__ import annotations

import os
import sys
import time

from learnt.errors import LearntError, NoStore, WrongRequest
from learnt.model import Value
from learnt.store import counters, regenerations
from learnt.store.spool import Locked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.config import Settings
    from learnt.flow.context import Context
    from learnt.store import Store
    from learnt.store.regenerations import Regeneration

LOCK = "update.lock"
_LOG = "update.log"
KILLED = "it was killed"
_TIME_TO_START_MS = 30_000
INTERNAL = "LEARNT_INTERNAL"
"""The environment variable that tells such a process from others."""
WORKER_LOG = "worker.log"
WORKER_LOCK = "worker.lock"
_WORKER_STATE = "worker.state"
_LONGEST_LOG = 100_000
# How long a worker may take from its start until it is at work; one that took longer is not waited for.
_TIME_TO_BEGIN_S = 10.0
_BETWEEN_MIRRORS_S = 60.0


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


def refuse_without_project(context: Context) -> None:
    """Raise for the user-wide store, which has no learnings files."""
    if not context.root:
        raise WrongRequest("learnings.md belongs to a project", hint="go to one; `learnt init` makes a folder one")


def update_when_due(context: Context) -> None:
    """Start an update of the learnings files if enough tasks are done; finishing a task never fails because of it."""
    if not context.root or os.environ.get(INTERNAL):
        return
    try:
        start_when_due(context.store, context.settings, root=context.root, now=context.clock())
    except (LearntError, OSError):
        return  # the next finished task tries again


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
        _start_update(store.place.folder, root)


def start_worker(context: Context, *, at_most_every_s: float = 0.0) -> None:
    """Start the worker of a memory's store, unless one is at it or on its way; whoever wants it must not fail for it.

    `at_most_every_s`: not if one was started so short a time ago.
    """
    place = context.store.place
    # A store that the settings do not name is one that the worker would not find.
    if not context.root or os.environ.get(INTERNAL) or place.address != context.settings.database:
        return
    try:
        context.store.make_folder()  # beside a server, there may be none yet
        with Locked(os.path.join(place.folder, _WORKER_STATE), wait=False) as first:
            if first and _is_wanted(place.folder, at_most_every_s):
                tell_state(place.folder, "started")
                _start(place.folder, WORKER_LOG, "-m", "learnt.doors.worker", context.root)
    except (LearntError, OSError):
        return


def mirror_or_none(context: Context) -> None:
    """Raise NoStore when there is no mirror of a memory's server that can be used, and let the worker make one."""
    try:
        _ = context.store.database
    except (LearntError, OSError) as error:
        context.close()
        start_worker(context, at_most_every_s=_BETWEEN_MIRRORS_S)
        raise NoStore(f"no mirror can be read: {error}", hint="`learnt doctor` tells why, if it stays so") from None


def worker_state(folder: str) -> tuple[str, float]:
    """Return how the last worker stands (`started`, `begun`, `done` or `failed`; empty: none ever was), and since when.

    The time is in seconds since 1970.
    """
    try:
        with open(os.path.join(folder, _WORKER_STATE), encoding="ascii", errors="replace") as file:
            what, _, since = file.read(100).partition(" ")
        return what, float(since or 0)
    except (OSError, ValueError):
        return "", 0.0


def tell_state(folder: str, what: str) -> None:
    """Say how the worker stands from now on."""
    path = os.path.join(folder, _WORKER_STATE)
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        file.write(f"{what} {time.time():.3f}")


def is_at_work(folder: str) -> bool:
    """Say whether a worker is at work at this moment; whoever asks holds its lock for an instant."""
    with Locked(os.path.join(folder, WORKER_LOCK), wait=False) as free:
        return not free


def _is_wanted(folder: str, at_most_every_s: float) -> bool:
    what, since = worker_state(folder)
    age_s = time.time() - since
    if 0 <= age_s < (max(at_most_every_s, _TIME_TO_BEGIN_S) if what == "started" else at_most_every_s):
        return False
    return not is_at_work(folder)


def _start_update(folder: str, root: str) -> None:
    """Start a process that makes the files and outlives us; nobody waits for it."""
    _start(folder, _LOG, "-m", "learnt", "update", "-C", root)


def _start(folder: str, log_name: str, *words: str) -> None:
    path = os.path.join(folder, log_name)
    if log_name == WORKER_LOG and os.path.exists(path) and os.path.getsize(path) > _LONGEST_LOG:
        os.replace(path, path + ".old")
    anew = os.O_APPEND if log_name == WORKER_LOG else os.O_TRUNC
    log = os.open(path, os.O_CREAT | os.O_WRONLY | anew, 0o600)
    try:
        # Without -P, a module of the user's would be taken for one of Python's.
        _spawn([sys.executable, "-P", *words], {**os.environ, INTERNAL: "1"}, log)
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
