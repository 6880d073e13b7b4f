"""Learnings files that are made anew in a process of its own: detached, and one at a time."""

from __future__ import annotations

import os

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


def start_when_due(store: Store, settings: Settings, *, root: str) -> None:
    """Let the files be made anew in a process of its own, if enough tasks are done and nobody is at it."""
    now = state(store, settings)
    if now.is_due and now.running_since is None:
        _start_worker(store.place.folder, root)


def _start_worker(folder: str, root: str) -> None:
    """Start a process that makes the files and outlives us; nobody waits for it."""
    import subprocess
    import sys

    log = os.open(os.path.join(folder, _LOG), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "learnt", "update"],
            cwd=root,
            env={**os.environ, INTERNAL: "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=sys.platform != "win32",
        )
    finally:
        os.close(log)
    process.returncode = 0  # it is on its own: nobody is to be warned that it still runs
