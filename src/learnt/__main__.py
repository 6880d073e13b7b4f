"""Choose the door and import only that one: a hook does not load the command line."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


def main() -> int:
    """Run `learnt` with the arguments of this process and return its exit code."""
    # With any other arguments, a hook fails open.
    if sys.argv[1:2] == ["hook"] and sys.argv[2:] not in (["--help"], ["-h"]):
        _run_and_exit(_run_hook)
    if sys.argv[1:2] == ["brief"]:
        _run_and_exit(_run_command)
    return _run_command()


def _run_and_exit(door: Callable[[], int]) -> NoReturn:
    """Run a door that agents wait for, and skip the interpreter's slow shutdown."""
    import gc
    import os

    gc.disable()  # the process is too short-lived for garbage to be worth collecting
    code = door()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            continue  # the reader has gone
    os._exit(code)


def _run_hook() -> int:
    from learnt.doors.hook import run_hook

    return run_hook()


def _run_command() -> int:
    from learnt.doors.cli import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
