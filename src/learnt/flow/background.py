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
from learnt.system import detached
from learnt.system.detached import INTERNAL
from learnt.system.files import rotate, write_private
from learnt.system.locks import Locked

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
        _start(store.place.folder, _LOG, "-m", "learnt", "update", "-C", root)


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
                rotate(os.path.join(place.folder, WORKER_LOG), longest=_LONGEST_LOG)
                _start(place.folder, WORKER_LOG, "-m", "learnt.doors.worker", context.root, append=True)
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
    write_private(path, f"{what} {time.time():.3f}")


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


def _start(folder: str, log_name: str, *words: str, append: bool = False) -> None:
    # Without -P, a module of the user's could be loaded instead of one of Python's.
    detached.start(
        [sys.executable, "-P", *words],
        environ={**os.environ, INTERNAL: "1"},
        log=os.path.join(folder, log_name),
        append=append,
    )
