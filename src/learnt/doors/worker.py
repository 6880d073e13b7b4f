"""The door of the worker: `python -P -m learnt.doors.worker FOLDER` catches up with a project, and ends by itself.

Nobody waits for it and nobody reads what it prints: what goes wrong stands in `.learnt/worker.log`, which
`learnt doctor` shows. It works alone in its store, within a time limit, and never in front of a person.
"""

from __future__ import annotations

import os
import sys
import time

from learnt.errors import LearntError, NoStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_GRACE_S = 60  # for whatever does not heed the limit by itself
_LONGEST_REMARK = 1_000
_PATIENCE_MS = 1_000  # what cannot be done now waits for the next worker: none is to stay for what others hold


def main(words: Sequence[str]) -> int:
    """Catch up with the project in a folder; return the exit code."""
    from learnt.doors.deadline import Deadline
    from learnt.memory import Memory
    from learnt.system.detached import INTERNAL

    os.environ[INTERNAL] = "1"  # started by hand or not: it starts nothing that would start it again
    try:
        os.chdir(words[0] if words else ".")
        with Memory.open(".", create=False, wait_ms=_PATIENCE_MS) as memory:
            limit_s = memory.settings.learnings_time_limit_s
            with Deadline((limit_s + _GRACE_S) * 1000):
                remarks = memory.worker.catch_up(limit_s=limit_s).remarks
    except NoStore:
        return 0  # it was removed meanwhile
    except LearntError as error:
        remarks = (f"{error.message}; {error.hint}",)
    except OSError as error:
        remarks = (f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}",)
    for remark in remarks:
        _log(remark)
    return 1 if remarks else 0


def _log(remark: str) -> None:
    from learnt.text.redact import redact_line

    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    print(f"{moment} {redact_line(remark, _LONGEST_REMARK)[0]}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
