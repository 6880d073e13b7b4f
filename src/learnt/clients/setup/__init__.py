"""What learnt writes into the settings of each client, as plain functions of a file's bytes.

A client is a module with `targets`, which names its files and what is done to each, and `wants`, which says what the
client still wants from the user. Nothing here writes, starts a process, or looks at the environment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType

from learnt.clients.setup import aider, claude_code, codex, gemini, opencode
from learnt.clients.setup.shapes import Edit, Setting, Target, Unfit

CLIENTS: Mapping[str, ModuleType] = {
    "claude-code": claude_code,
    "codex": codex,
    "gemini": gemini,
    "opencode": opencode,
    "aider": aider,
}
# What moves the folders of clients: variables of the environment.
PLACES = ("HOME", "USERPROFILE", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME")

__all__ = ["CLIENTS", "PLACES", "Edit", "Setting", "Target", "Unfit", "targets", "wants"]


def targets(client: str, setting: Setting) -> list[Target]:
    """Return the files of a client and what is done to each."""
    named: Callable[[Setting], list[Target]] = CLIENTS[client].targets
    return named(setting)


def wants(client: str, setting: Setting) -> str:
    """Return what a client still wants from the user."""
    said: Callable[[Setting], str] = CLIENTS[client].wants
    return said(setting)
