"""Choose the door without importing the others: a hook must not pay for the command line."""

from __future__ import annotations

import sys


def main() -> int:
    """Run `learnt` with the arguments of this process and return its exit code."""
    # Whatever else is said to a hook, it fails open.
    if sys.argv[1:2] == ["hook"] and sys.argv[2:] not in (["--help"], ["-h"]):
        import gc
        import os

        gc.disable()  # whatever a process leaves that lives for so short a time
        from learnt.doors.hook import run_hook

        os._exit(run_hook())  # all is said and closed: to take everything apart in order would only take time
    from learnt.doors.cli import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
