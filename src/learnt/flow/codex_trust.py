"""Ask Codex itself which hooks it trusts: only Codex knows whether a hook is still the one that was approved.

`codex app-server` is started, asked over its stdin and ended, all within a few seconds; nothing of it stays. If
anything goes wrong there is no answer. Like every start of Codex, it may write into Codex's own folder.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import Any

from learnt import __version__
from learnt.system.detached import INTERNAL
from learnt.system.run import run

LIMIT_S = 3.0
_MOST_BYTES = 10_000_000
_QUESTION_ID = 2
_GREETING: tuple[dict[str, Any], ...] = (
    {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "learnt", "version": __version__}}},
    {"method": "initialized"},
)


def trust(folder: str, *, limit_s: float = LIMIT_S) -> dict[str, str] | None:
    """Return what Codex says about each hook that it would run in a folder, by its key; None when it says nothing.

    A hook is `trusted`, `untrusted`, `modified` since it was trusted, `managed`, or `disabled`.
    """
    program = shutil.which("codex")
    if program is None or sys.platform == "win32":
        return None
    question = {"id": _QUESTION_ID, "method": "hooks/list", "params": {"cwds": [folder]}}
    replies = _Replies()
    reading, writing = os.pipe()
    # Codex would leave at the end of its input, so the pipe stays open until it is over.
    with open(reading, "rb") as stdin, open(writing, "wb", buffering=0) as pipe:
        pipe.write(b"".join(json.dumps(message).encode() + b"\n" for message in (*_GREETING, question)))
        run(
            [program, "app-server"],
            folder=folder,
            environ={**os.environ, INTERNAL: "1"},
            stdin=stdin,
            keep=replies.keep,
            time_limit_s=limit_s,
        )
    return replies.statuses


class _Replies:
    """Reads what Codex prints, line by line, until it has answered the question."""

    def __init__(self) -> None:
        self.statuses: dict[str, str] | None = None
        self._rest = b""
        self._room = _MOST_BYTES

    def keep(self, name: str, chunk: bytes) -> bool:
        """Read a piece of output; False when no more is wanted."""
        if name != "stdout":
            return True
        self._room -= len(chunk)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return not any(map(self._answers, lines)) and self._room > 0

    def _answers(self, line: bytes) -> bool:
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError):
            return False
        if not isinstance(reply, dict) or reply.get("id") != _QUESTION_ID:
            return False
        self.statuses = _read_statuses(reply)
        return True


def _read_statuses(reply: dict[str, Any]) -> dict[str, str] | None:
    try:
        hooks = [hook for entry in reply["result"]["data"] for hook in entry["hooks"]]
        return {
            str(hook["key"]): str(hook["trustStatus"]) if hook.get("enabled", True) else "disabled" for hook in hooks
        }
    except (KeyError, TypeError, AttributeError):
        return None  # a version that answers otherwise
