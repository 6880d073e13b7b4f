"""The background worker's door: `python -P -m learnt.doors.worker FOLDER` catches up with a project and exits.

Its output goes to `.learnt/worker.log`, which `learnt doctor` shows. It has a time limit, and a store has only one
worker at a time.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from learnt.errors import LearntError, NoStore
from learnt.memory import Memory
from learnt.system.detached import INTERNAL
from learnt.system.files import Deadline
from learnt.text.redact import redact_line

_GRACE_S = 60  # added for steps that do not check the limit
_MAX_REMARK_CHARS = 1_000
_PATIENCE_MS = 1_000  # short, because the next worker can do the work


def main(words: Sequence[str]) -> int:
    """Catch up with the project in a folder; return the exit code."""
    os.environ[INTERNAL] = "1"  # so that this worker does not start another one
    try:
        os.chdir(words[0] if words else ".")
        with Memory.open(".", create=False, wait_ms=_PATIENCE_MS) as memory:
            limit_s = memory.settings.learnings_time_limit_s
            with Deadline((limit_s + _GRACE_S) * 1000):
                remarks = memory.worker.catch_up(limit_s=limit_s).remarks
    except NoStore:
        return 0  # the store has been removed
    except LearntError as error:
        remarks = (f"{error.message}; {error.hint}",)
    except OSError as error:
        remarks = (f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}",)
    for remark in remarks:
        _log(remark)
    return 1 if remarks else 0


def _log(remark: str) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    print(f"{now} {redact_line(remark, _MAX_REMARK_CHARS)[0]}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
