"""Start detached processes: `learnt update` and the worker, at most one of each per store.

The update rewrites the learnings files; the worker applies pending records and reads transcripts. Callers do not wait
for either, and never fail because of them.
"""

from __future__ import annotations

import os
import sys
import time

from learnt.errors import LearntError, WrongRequest
from learnt.flow.context import learnings_path
from learnt.model import Value
from learnt.store import regenerations
from learnt.system import detached
from learnt.system.detached import INTERNAL
from learnt.system.files import Locked, read_own, rotate, write_private

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
_MAX_LOG_BYTES = 100_000
_MAX_STATE_BYTES = 100
# A worker that has not taken its lock after this time is considered dead, and another worker is started.
_TIME_TO_BEGIN_S = 10.0


class State(Value):
    """The state of the learnings files."""

    running_since: int | None
    tasks_since: int
    every: int
    """After how many finished tasks the files are updated automatically; 0 means never."""
    last: Regeneration | None

    @property
    def is_due(self) -> bool:
        """Whether enough tasks have been finished since the last update."""
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
    """Return after how many tasks the files are updated automatically; 0 means never."""
    return settings.learnings_regenerate_every if settings.learnings_enabled else 0


def latest(store: Store, *, limit: int) -> list[Regeneration]:
    """Return the latest updates, newest first; an update that is recorded as running but is not running was killed."""
    updates = regenerations.latest(store.database, limit=limit)
    if not any(update.result == "running" for update in updates) or is_updating(store):
        return updates
    failed = {"result": "failed", "reason": KILLED}
    return [update.replace(**failed) if update.result == "running" else update for update in updates]


def is_updating(store: Store) -> bool:
    """Return whether an update is running.

    The check takes the lock for an instant, so call it only when an update is recorded as running.
    """
    try:
        with Locked(os.path.join(store.place.folder, LOCK), wait=False) as is_free:
            return not is_free
    except OSError:
        return False


def refuse_without_project(context: Context) -> None:
    """Raise for the user-wide store, which has no learnings files."""
    if not context.root:
        raise WrongRequest(
            "learnings.md belongs to a project", hint="go to a project; `learnt init` turns a folder into one"
        )


def update_soon(context: Context) -> None:
    """Let the learnings files be updated now, as if enough tasks had been finished: learnings must leave them.

    Do nothing if there are no files yet, or if they are never updated automatically; never raise.
    """
    if not context.root or not os.path.lexists(learnings_path(context.root)):
        return
    try:
        with context.store.transaction():
            missing = _interval(context.settings) - _tasks_since(context.store)
            if missing > 0:
                context.store.database.count(regenerations.TASKS_SINCE_UPDATE, missing)
    except (LearntError, OSError):
        return  # the next update leaves them out
    update_when_due(context)


def update_when_due(context: Context) -> None:
    """Start an update of the learnings files if enough tasks have been finished; never raise."""
    if not context.root or os.environ.get(INTERNAL):
        return
    try:
        start_when_due(context.store, context.settings, root=context.root, now=context.clock())
    except (LearntError, OSError):
        return  # tried again after the next finished task


def start_when_due(store: Store, settings: Settings, *, root: str, now: int) -> None:
    """Start an update of the files in the background, if enough tasks have been finished and no update is running."""
    if not 0 < _interval(settings) <= _tasks_since(store):
        return
    files = state(store, settings)
    if files.running_since is not None:
        return
    # Processes that finish tasks at the same time must start only one update, so one that was just started is treated
    # as running.
    before = max(now - _TIME_TO_START_MS, files.last.started_at if files.last else 0)
    with store.transaction():
        is_first = regenerations.claim_update(store.database, now=now, before=before)
    if is_first:
        _start(store.place.folder, _LOG, "-m", "learnt", "update", "-C", root)


def start_worker(context: Context, *, at_most_every_s: float = 0.0) -> None:
    """Start a store's worker, unless one is running or starting; never raise.

    Do nothing if the last worker started less than `at_most_every_s` seconds ago.
    """
    place = context.store.place
    # The worker opens the configured store, so it could not find any other store.
    if not context.root or os.environ.get(INTERNAL) or place.address != context.settings.database:
        return
    try:
        context.store.make_folder()  # with a database server, it may not exist yet
        with Locked(os.path.join(place.folder, _WORKER_STATE), wait=False) as is_alone:
            if is_alone and _is_wanted(place.folder, at_most_every_s):
                record_worker_state(place.folder, "started")
                rotate(os.path.join(place.folder, WORKER_LOG), max_bytes=_MAX_LOG_BYTES)
                _start(place.folder, WORKER_LOG, "-m", "learnt.doors.worker", context.root, append=True)
    except (LearntError, OSError):
        return


def worker_state(folder: str) -> tuple[str, float]:
    """Return the last worker's state, and when that state began, in seconds since 1970.

    The state is `started`, `begun`, `done` or `failed`; it is empty if no worker has ever run.
    """
    try:
        content = read_own(os.path.join(folder, _WORKER_STATE), max_bytes=_MAX_STATE_BYTES)
        state, _, since = content.decode("ascii", "replace").partition(" ")
        return state, float(since or 0)
    except (OSError, ValueError):
        return "", 0.0


def record_worker_state(folder: str, state: str) -> None:
    """Record the worker's state and the current time."""
    write_private(os.path.join(folder, _WORKER_STATE), f"{state} {time.time():.3f}")


def is_at_work(folder: str) -> bool:
    """Return whether a worker is running; the check takes its lock for an instant."""
    with Locked(os.path.join(folder, WORKER_LOCK), wait=False) as is_free:
        return not is_free


def _is_wanted(folder: str, at_most_every_s: float) -> bool:
    state, since = worker_state(folder)
    age_s = time.time() - since
    if 0 <= age_s < (max(at_most_every_s, _TIME_TO_BEGIN_S) if state == "started" else at_most_every_s):
        return False
    return not is_at_work(folder)


def _start(folder: str, log_name: str, *words: str, append: bool = False) -> None:
    # Without -P, Python would look for modules in the current folder first.
    detached.start(
        [sys.executable, "-P", *words],
        environ={**os.environ, INTERNAL: "1"},
        log=os.path.join(folder, log_name),
        append=append,
    )
