"""What every client's setup shares: where it is set up, what is written where, and how it is found again.

An `Edit` is a pair of plain functions of a file's bytes: `add` puts in what is ours and changes nothing where it is
there already, `remove` takes it out and leaves every other byte. What cannot be changed safely raises Unfit, and
`by_hand` says what a person can add instead.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any, Protocol

from learnt.clients.setup.json_text import Unfit
from learnt.clients.shapes import place
from learnt.errors import WrongRequest
from learnt.model import Value

__all__ = ["Edit", "Setting", "Target", "Unfit", "decoded", "hook_command", "is_our_hook", "is_our_server", "server"]

# Longer than a hook ever takes by itself: only an interpreter that hangs gets to feel it.
TIMEOUT_S = 5
NAME = "learnt"
_OUR_HOOK = re.compile(r"(?<![\w.-])learnt(?:\.exe|\.cmd)?[\"'\\]*\s+hook\b")
_OUR_SERVER = re.compile(r"(?<![\w.-])learnt(?:\.exe|\.cmd)?[\"'\\]*\s+mcp$")
_BOM = b"\xef\xbb\xbf"


class Setting(Value):
    """Where a client is set up: in a project, or for the user, with `places` for what moves a client's folders.

    `program` holds the words that start learnt: its name, to be found on PATH, or its path.
    """

    root: str
    user: bool = False
    places: Mapping[str, str] = {}
    program: tuple[str, ...] = (NAME,)
    windows: bool = False

    def home(self, variable: str, *below: str) -> str:
        """Return the folder that the variable names, or the one below the home folder that it stands for."""
        found = place(self.places, variable, *below)
        if not found:
            raise WrongRequest("nobody knows your home folder", hint=f"set HOME, or {variable}")
        return found


class Edit(Protocol):
    """What is done to one file."""

    def add(self, content: bytes | None) -> bytes:
        """Return the file with what is ours in it; None stands for no file."""

    def remove(self, content: bytes, before: bytes | None) -> bytes | None:
        """Return the file without what is ours, None when nothing is left; `before` is what it was without it."""

    def holds(self, content: bytes) -> bool:
        """Say whether anything of ours is in the file."""

    def by_hand(self, content: bytes | None, /) -> str:
        """Return what a person can add to the file as it is; nothing where only `add` can write it."""


class Target(Value):
    """One file of a client, and what is done to it."""

    path: str
    edit: Edit


def hook_command(setting: Setting, client: str, *, cmd_on_windows: bool = False) -> str:
    """Return the command line that serves an event, and that says nothing and does no harm where learnt is missing.

    It never changes without need: Codex asks anew whether a hook is trusted when its command is another.
    """
    words = [*setting.program, "hook", "--client", client]
    if setting.windows and cmd_on_windows:
        line = " ".join(f'"{word}"' if " " in word else word for word in words)
        return f'cmd /d /c "{line} 2>nul || exit /b 0"'
    line = " ".join(shlex.quote(word) for word in words)
    return f"sh -c {shlex.quote(f'{line} 2>/dev/null || exit 0')}"


def server(setting: Setting) -> dict[str, Any]:
    """Return how the MCP server is started, as most clients want to be told."""
    program, *words = setting.program
    return {"command": program, "args": [*words, "mcp"]}


def is_our_hook(handler: object) -> bool:
    """Say whether a client's hook starts ours, whoever wrote it down."""
    return isinstance(handler, dict) and bool(_OUR_HOOK.search(str(handler.get("command", ""))))


def is_our_server(found: object) -> bool:
    """Say whether an MCP server is ours."""
    if not isinstance(found, dict):
        return False
    command, words = found.get("command"), found.get("args")
    line = [*(command if isinstance(command, list) else [command]), *(words if isinstance(words, list) else [])]
    return bool(_OUR_SERVER.search(" ".join(map(str, line))))


def decoded(content: bytes) -> tuple[str, str]:
    """Return the byte order mark that a file begins with, if any, and its text."""
    try:
        text = content.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unfit(f"it is not UTF-8 at byte {error.start}") from None
    return ("\ufeff" if content.startswith(_BOM) else ""), text


def as_json(value: object) -> str:
    """Return a value as a person reads it."""
    return json.dumps(value, ensure_ascii=False, indent=2)
