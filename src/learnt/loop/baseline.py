"""The verification before any work: what it says about the files that an agent starts from.

It runs once for each state of the files, before a task's first attempt. Where it fails for a reason that no attempt can
mend, a person is asked before money is spent; otherwise the agent is told how it ended. The result is kept in a file of
its own, except for such a reason, which holds only for the run that found it: meanwhile, somebody may have mended it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress

from learnt.errors import LearntError
from learnt.loop import verify
from learnt.loop.agents import AgentRun
from learnt.model import Value, digest
from learnt.system.files import Locked, list_names, make_folders, read_own, remove_file, replace_file
from learnt.system.run import EXITED, INTERRUPTED
from learnt.text.redact import redact

FOLDER = "verified"
_MAX_BYTES = 100_000


class Baseline(Value):
    """How a verification ended before any work."""

    command: str
    place: str
    """The files that it was run on: a commit, or the run that works in the project's own folder."""
    passes: bool = False
    error: str = ""
    """The first error that it printed."""
    obstacle: str = ""
    """The reason for which no attempt can make it succeed; empty if there is none."""
    missing: tuple[str, ...] = ()
    """What its tests cannot be collected without."""
    worker: str = ""


def measure(
    folder: str, command: str, *, place: str, state: str, worker: str, run: Callable[[], AgentRun]
) -> Baseline | None:
    """Return how a verification ends before any work, from a file in `folder` or by running it; None if it is stopped.

    `state` identifies the files that it is run on, and `place` names them for people.
    """
    path = os.path.join(folder, f"{digest(f'{state} {command}')}.json")
    try:
        make_folders(folder)
        with Locked(f"{path}.lock"):  # other jobs wait, so that it runs only once
            stored = _read(path)
            if stored is not None and (not stored.obstacle or stored.worker == worker):
                return stored
            done = run()
            if done.exit.ending == INTERRUPTED:
                return None
            baseline = _describe(done, Baseline(command=command, place=place, worker=worker))
            replace_file(path, json.dumps(baseline.as_dict()).encode(), durable=False)
            return baseline
    except OSError as error:
        raise LearntError(f"cannot write {path}: {error.strerror}", hint="check the folder's permissions") from None


def forget_old(folder: str, *, before_s: float) -> None:
    """Remove the results from before a time, in seconds since 1970."""
    for name in list_names(folder):
        path = os.path.join(folder, name)
        with suppress(OSError):
            if os.lstat(path).st_mtime < before_s:
                remove_file(path)


def _describe(run: AgentRun, baseline: Baseline) -> Baseline:
    if run.exit.ending == EXITED and run.exit.exit_code == 0:
        return baseline.replace(passes=True)
    how, _, output = verify.describe_failure(baseline.command, run)
    error = redact(verify.read_error(output)[0] or how)[0]
    obstacle = redact(verify.find_obstacle(output, run.exit.exit_code))[0]
    missing = verify.find_missing(output) if obstacle else ()
    return baseline.replace(error=error, obstacle=obstacle, missing=missing)


def _read(path: str) -> Baseline | None:
    try:
        stored = json.loads(read_own(path, max_bytes=_MAX_BYTES))
        return Baseline(**{**stored, "missing": tuple(stored.get("missing", ()))})
    except (FileNotFoundError, ValueError, TypeError, AttributeError):
        return None
