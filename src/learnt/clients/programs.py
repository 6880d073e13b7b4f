"""The programs that agents run in: how each is started without a person, and how its output is read.

A client is a module with `call`, `read` and `progress`, all of them plain functions: nothing here starts a process,
reads the clock or looks at the environment. `loop/agents` runs what `call` describes.
"""

from __future__ import annotations

from collections.abc import Mapping

from learnt.clients import aider, claude_code, codex, command, gemini, opencode
from learnt.clients.shapes import Answer, Call, Client, Output, Request
from learnt.errors import WrongRequest

CLIENTS: Mapping[str, Client] = {
    "claude": claude_code,
    "codex": codex,
    "gemini": gemini,
    "opencode": opencode,
    "aider": aider,
    "command": command,
}
# What a run of these costs can only be known by the prices of their models.
TELL_TOKENS_ONLY = ("codex", "gemini")

# Those that tell themselves what a run has cost.
TELL_COST = ("claude", "opencode", "aider")

__all__ = [
    "CLIENTS",
    "TELL_TOKENS_ONLY",
    "Answer",
    "Call",
    "Client",
    "Output",
    "Request",
    "call",
    "client",
    "progress",
    "read",
]


def client(name: str) -> Client:
    """Return the client of this name."""
    found = CLIENTS.get(name)
    if found is None:
        raise WrongRequest(f"there is no client `{name}`", hint=f"known are: {', '.join(CLIENTS)}")
    return found


def call(name: str, request: Request) -> Call:
    """Return how the client of this name is started for the request."""
    return client(name).call(request)


def read(output: Output) -> Answer:
    """Return what the client told about its run."""
    return client(output.call.client).read(output)


def progress(called: Call, line: str) -> str:
    """Return one short line for a person who watches, or nothing."""
    return client(called.client).progress(line)
