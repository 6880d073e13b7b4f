"""Hundreds of children: a server process that has everything loaded forks a child for each call.

A child is a process like any other: it can be killed, and its open files are closed with it. It only saves the time to
start Python. The server has one thread and no open database, so a child does not inherit any.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import traceback
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support import faults

_STARTS_WITH = "import apsw, learnt, learnt.memory, learnt.store.sqlite, learnt.store.postgres, psycopg"


class Nursery:
    """The server, as the test's process uses it."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="learnt-forks-")
        code = f"{_STARTS_WITH}; from tests.support import forks; forks.serve()"
        environ = {**os.environ, "PYTHONPATH": str(faults.ROOT)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
        )
        atexit.register(self._end)

    def run(self, function: str, *arguments: object, cwd: Path) -> tuple[int, list[str], str]:
        """Run a function in `faults` in a child; return its exit code, its lines, and its stderr."""
        server = self._process
        assert server.stdin is not None
        assert server.stdout is not None
        call = {"function": function, "arguments": [str(argument) for argument in arguments], "cwd": str(cwd)}
        place = {"environ": dict(os.environ), "folder": self._folder.name}
        server.stdin.write(json.dumps({**call, **place}) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        out, err = ((Path(self._folder.name) / name).read_text() for name in ("out", "err"))
        return code, out.splitlines(), err

    def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


@cache
def nursery() -> Nursery:
    """Return this process's server, which ends with the process."""
    return Nursery()


def serve() -> None:
    """Fork a child for each line on stdin, and print how it ended."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _run(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run(call: dict[str, object]) -> None:
    code = 1
    try:
        for number, name in ((1, "out"), (2, "err")):
            file = os.open(f"{call['folder']}/{name}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
            os.dup2(file, number)
            os.close(file)
        os.chdir(str(call["cwd"]))
        os.environ.clear()
        os.environ.update(dict(call["environ"]))  # type: ignore[call-overload]
        getattr(faults, str(call["function"]))(*call["arguments"])  # type: ignore[misc]
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
