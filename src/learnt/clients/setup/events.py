"""Which events of each client are served, and how long it waits: the one table that settings and plugins come from.

Units are the client's own. Codex ends what happens at the end of a session after three seconds, whatever is written
here; Claude Code after one, unless a time is written. Gemini's `PreCompress` is left out: it comes before every call of
a model, so that it would cost a process each time and tell nothing about compression.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from learnt.clients.setup.shapes import NAME, TIMEOUT_S, Setting, hook_command

CLAUDE = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "Stop",
    "StopFailure",
    "SessionEnd",
)
# Codex has no events of their own for what failed, and does not hear what is said before a compaction.
CODEX = tuple(event for event in CLAUDE if event not in ("PostToolUseFailure", "PreCompact", "StopFailure"))
GEMINI = ("SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd")
_CODEX_END_S = 3


def claude_hooks(setting: Setting) -> Mapping[str, Mapping[str, Any]]:
    """Return Claude Code's hooks by event."""
    return {event: _hook(hook_command(setting, "claude"), TIMEOUT_S) for event in CLAUDE}


def codex_hooks(setting: Setting) -> Mapping[str, Mapping[str, Any]]:
    """Return Codex's hooks by event."""
    command = hook_command(setting, "codex", cmd_on_windows=True)
    return {event: _hook(command, _CODEX_END_S if event == "SessionEnd" else TIMEOUT_S) for event in CODEX}


def gemini_hooks(setting: Setting) -> Mapping[str, Mapping[str, Any]]:
    """Return Gemini CLI's hooks by event; it counts in milliseconds."""
    command = hook_command(setting, "gemini", cmd_on_windows=True)
    return {event: {"name": NAME, **_hook(command, TIMEOUT_S * 1000)} for event in GEMINI}


def _hook(command: str, timeout: int) -> dict[str, Any]:
    return {"type": "command", "command": command, "timeout": timeout}
