"""Ask Codex itself which hooks it trusts: only it knows whether a hook is still the one that was approved.

`codex app-server` is started, asked over its stdin and ended, all within a few seconds; nothing of it stays. Whatever
goes wrong gives no answer. Like every start of Codex, it may write into Codex's own folder.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from select import select

from learnt import __version__
from learnt.flow.background import INTERNAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

LIMIT_S = 3.0
_CHUNK = 65_536
_MOST_BYTES = 10_000_000
_ASKED = 2
_QUESTIONS: tuple[dict[str, Any], ...] = (
    {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "learnt", "version": __version__}}},
    {"method": "initialized"},
)


def trust(folder: str, *, limit_s: float = LIMIT_S) -> dict[str, str] | None:
    """Return what Codex says of each hook that it would run in a folder, by its key; None when it says nothing.

    A hook is `trusted`, `untrusted`, `modified` since it was trusted, `managed`, or `disabled`.
    """
    program = shutil.which("codex")
    if program is None or sys.platform == "win32":
        return None
    deadline = time.monotonic() + limit_s
    try:
        process = subprocess.Popen(
            [program, "app-server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd=folder,
            env={**os.environ, INTERNAL: "1"},
            start_new_session=True,
        )
    except OSError:
        return None
    try:
        return _asked(process, folder, deadline)
    except OSError:
        return None
    finally:
        _end(process)


def _asked(process: subprocess.Popen[bytes], folder: str, deadline: float) -> dict[str, str] | None:
    if process.stdin is None or process.stdout is None:
        return None
    question = {"id": _ASKED, "method": "hooks/list", "params": {"cwds": [folder]}}
    process.stdin.write(b"".join(json.dumps(one).encode() + b"\n" for one in (*_QUESTIONS, question)))
    for line in _lines(process.stdout.fileno(), deadline):
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(told, dict) and told.get("id") == _ASKED:
            return _statuses(told)
    return None


def _lines(pipe: int, deadline: float) -> Iterator[bytes]:
    """Yield whole lines as they come, until the pipe is closed, the time is up, or it is far too much."""
    rest, total = b"", 0
    while total < _MOST_BYTES and select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
        chunk = os.read(pipe, _CHUNK)
        if not chunk:
            return
        total += len(chunk)
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines


def _statuses(told: dict[str, Any]) -> dict[str, str] | None:
    try:
        hooks = [hook for one in told["result"]["data"] for hook in one["hooks"]]
        return {
            str(hook["key"]): str(hook["trustStatus"]) if hook.get("enabled", True) else "disabled" for hook in hooks
        }
    except (KeyError, TypeError, AttributeError):
        return None  # a version that answers otherwise


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the program and what it started."""
    try:
        if sys.platform != "win32":
            os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    process.wait()
