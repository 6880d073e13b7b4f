"""What is done in detached processes, one at a time: `learnt update` and the worker.

The update writes the learnings files again; the worker applies waiting records and reads transcripts. A caller that
starts one does not wait for it, and never fails because of it.
"""

from __future__ import annotations

import os
import sys
import time

from learnt.errors import LearntError, WrongRequest
from learnt.model import Value
from learnt.store import regenerations
from learnt.system import detached
from learnt.system.detached import INTERNAL
from learnt.system.files import Locked, rotate, write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.flow.context import Context
    from learnt.settings import Settings
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
# How long a worker may take from its start until it is at work; after that, another is started.
_TIME_TO_BEGIN_S = 10.0


class State(Value):
    """The state of the learnings files."""

    running_since: int | None
    tasks_since: int
    every: int
    """After how many tasks they are updated automatically; 0 for never."""
    last: Regeneration | None

    @property
    def is_due(self) -> bool:
        """Whether enough tasks were done since the last update."""
        return 0 < self.every <= self.tasks_since


def state(store: Store, settings: Settings) -> State:
    """Return the state of the learnings files."""
    last = next(iter(latest(store, limit=1)), None)
    return State(
        running_since=last.started_at if last and last.result == "running" else None,
        tasks_since=_tasks_since(store),
        every=_interval(settings),
        last=last,
    )


def _tasks_since(store: Store) -> int:
    return store.database.counter(regenerations.TASKS_SINCE_UPDATE)


def _interval(settings: Settings) -> int:
    """Return after how many tasks the files are updated automatically; 0 for never."""
    return settings.learnings_regenerate_every if settings.learnings_enabled else 0


def latest(store: Store, *, limit: int) -> list[Regeneration]:
    """Return the latest updates, the newest first; one that is recorded as running while none runs was killed."""
    updates = regenerations.latest(store.database, limit=limit)
    if not any(update.result == "running" for update in updates) or is_updating(store):
        return updates
    failed = {"result": "failed", "reason": KILLED}
    return [update.replace(**failed) if update.result == "running" else update for update in updates]


def is_updating(store: Store) -> bool:
    """Say whether an update runs at this moment.

    The question holds the lock for an instant: ask only when an update is recorded as running.
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
    """Start an update of the files in the background, if enough tasks are done and none runs."""
    if not 0 < _interval(settings) <= _tasks_since(store):
        return
    files = state(store, settings)
    if files.running_since is not None:
        return
    # Of many that finish a task at once, one starts it. For a while, an update counts that has not begun yet.
    before = max(now - _TIME_TO_START_MS, files.last.started_at if files.last else 0)
    with store.transaction():
        first = regenerations.claim_update(store.database, now=now, before=before)
    if first:
        _start(store.place.folder, _LOG, "-m", "learnt", "update", "-C", root)


def start_worker(context: Context, *, at_most_every_s: float = 0.0) -> None:
    """Start the worker of a memory's store, unless one is at work or starting; never raise.

    `at_most_every_s`: not if one was started less than that ago.
    """
    place = context.store.place
    # The worker would not find a store that the settings do not name.
    if not context.root or os.environ.get(INTERNAL) or place.address != context.settings.database:
        return
    try:
        context.store.make_folder()  # with a database server, there may be none yet
        with Locked(os.path.join(place.folder, _WORKER_STATE), wait=False) as first:
            if first and _is_wanted(place.folder, at_most_every_s):
                tell_state(place.folder, "started")
                rotate(os.path.join(place.folder, WORKER_LOG), longest=_LONGEST_LOG)
                _start(place.folder, WORKER_LOG, "-m", "learnt.doors.worker", context.root, append=True)
    except (LearntError, OSError):
        return


def worker_state(folder: str) -> tuple[str, float]:
    """Return the state of the last worker (`started`, `begun`, `done`, `failed`; empty if none ever ran), and its time.

    The time is in seconds since 1970.
    """
    try:
        with open(os.path.join(folder, _WORKER_STATE), encoding="ascii", errors="replace") as file:
            state, _, since = file.read(100).partition(" ")
        return state, float(since or 0)
    except (OSError, ValueError):
        return "", 0.0


def tell_state(folder: str, what: str) -> None:
    """Record the state of the worker."""
    write_private(os.path.join(folder, _WORKER_STATE), f"{what} {time.time():.3f}")


def is_at_work(folder: str) -> bool:
    """Say whether a worker is at work at this moment; the question holds its lock for an instant."""
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
