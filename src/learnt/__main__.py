"""Choose the door without importing the others: a hook must not pay for the command line."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


def main() -> int:
    """Run `learnt` with the arguments of this process and return its exit code."""
    # Whatever else is said to a hook, it fails open.
    if sys.argv[1:2] == ["hook"] and sys.argv[2:] not in (["--help"], ["-h"]):
        _run_and_end(_hook)
    if sys.argv[1:2] == ["brief"]:
        _run_and_end(_command)
    return _command()


def _run_and_end(door: Callable[[], int]) -> NoReturn:
    """Run what agents wait for, and end at once: all is said and closed, and to take everything apart takes time."""
    import gc
    import os

    gc.disable()  # whatever a process leaves that lives for so short a time
    code = door()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            continue  # nobody is there to read it
    os._exit(code)


def _hook() -> int:
    from learnt.doors.hook import run_hook

    return run_hook()


def _command() -> int:
    from learnt.doors.cli import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
