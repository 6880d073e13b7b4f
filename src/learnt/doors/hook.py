"""The door of the agent clients: an event on stdin, at most one answer on stdout.

Fails open: whatever goes wrong, the client goes on as if we were not there. It ends with 0 and an empty answer, and the
reason stands in `.learnt/hook.log`. Without a store, and inside a model call of our own, it says nothing.
"""

from __future__ import annotations

import os
import sys
import time

_LONGEST_LOG = 100_000

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.project import Project


def run_hook() -> int:
    """Serve one event and return 0."""
    if os.environ.get("LEARNT_INTERNAL"):
        return 0
    here = None
    try:
        from learnt.project import find_project

        here = find_project(".")
        if here is not None and os.path.isdir(here.folder):
            _serve()
    except Exception as error:  # the one place that must never disturb whom it serves
        _log(here, error)
    return 0


def _serve() -> None:
    """Take up what waits in the spool: every process that comes by helps."""
    from learnt.memory import Memory

    sys.stdin.buffer.read()
    with Memory.open(".", create=False) as memory:
        if not memory.store.place.address:  # a hook never waits for a server
            memory.store.take_up_spool()


def _log(here: Project | None, error: Exception) -> None:
    if here is None:
        return
    try:
        from learnt.store import HOOK_LOG

        path = os.path.join(here.folder, HOOK_LOG)
        if os.path.exists(path) and os.path.getsize(path) > _LONGEST_LOG:
            os.replace(path, path + ".old")
        with open(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "a", encoding="utf-8") as file:
            moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            file.write(f"{moment} {type(error).__name__}: {error}\n")
    except OSError:
        return
