"""Ask a client's own program about itself, such as which hooks it trusts.

The program is started, asked over its stdin and stopped, all within a few seconds. If anything goes wrong, there is no
reply. Starting the client may write files into the client's folder, as it does at every start.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import Any

from learnt.clients.kit.setup import Question
from learnt.system.detached import INTERNAL
from learnt.system.run import run

LIMIT_S = 3.0
_MAX_BYTES = 10_000_000


def ask_client(question: Question, *, limit_s: float = LIMIT_S) -> dict[str, Any] | None:
    """Return the program's reply to a question; None if it does not reply."""
    program = shutil.which(question.words[0])
    if program is None or sys.platform == "win32":
        return None
    reader = _ReplyReader(question.reply_id)
    reading, writing = os.pipe()
    # The program would stop at the end of its input, so the pipe stays open until the reply has arrived.
    with open(reading, "rb") as stdin, open(writing, "wb", buffering=0) as pipe:
        pipe.write(b"".join(json.dumps(message).encode() + b"\n" for message in question.messages))
        run(
            [program, *question.words[1:]],
            folder=question.folder,
            environ={**os.environ, INTERNAL: "1"},
            stdin=stdin,
            keep=reader.keep,
            time_limit_s=limit_s,
        )
    return reader.reply


class _ReplyReader:
    """Reads what the program prints, line by line, until the reply has arrived."""

    def __init__(self, reply_id: int) -> None:
        self.reply: dict[str, Any] | None = None
        self._reply_id = reply_id
        self._rest = b""
        self._bytes_left = _MAX_BYTES

    def keep(self, name: str, chunk: bytes) -> bool:
        """Read a piece of output; return False when no more output is needed."""
        if name != "stdout":
            return True
        self._bytes_left -= len(chunk)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return not any(map(self._is_reply, lines)) and self._bytes_left > 0

    def _is_reply(self, line: bytes) -> bool:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return False
        if not isinstance(message, dict) or message.get("id") != self._reply_id:
            return False
        self.reply = message
        return True
