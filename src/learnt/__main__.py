"""Choose the door without importing the others: a hook must not pay for the command line."""

from __future__ import annotations

import sys


def main() -> int:
    """Run `learnt` with the arguments of this process and return its exit code."""
    # Whatever else is said to a hook, it fails open.
    if sys.argv[1:2] == ["hook"] and sys.argv[2:] not in (["--help"], ["-h"]):
        from learnt.doors.hook import run_hook

        return run_hook()
    from learnt.doors.cli import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
