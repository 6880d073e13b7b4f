"""Who speaks through this process: a person, or an agent whose shell it was started in."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Clients set these variables in the shells of their agents.
AGENT_VARIABLES = (
    "CLAUDECODE",
    "CODEX_SANDBOX",
    "CODEX_THREAD_ID",
    "GEMINI_CLI",
    "OPENCODE",
    "CURSOR_AGENT",
    "AGENT",
    "AI_AGENT",
    "GOOSE_TERMINAL",
    "LEARNT_TASK",
)


def is_agent(environ: Mapping[str, str]) -> bool:
    """Return whether a process with this environment was started by an agent."""
    return any(environ.get(name) for name in AGENT_VARIABLES)
