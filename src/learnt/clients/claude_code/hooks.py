"""How a call of a tool ended, in Claude Code's format. Clients without a `hooks` module use it, too.

Our plugin for opencode adds `tool_failed`, which decides.
"""

from __future__ import annotations

from learnt.clients.kit.events import whole_output
from learnt.text.json_values import dig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def read_result(payload: Mapping[str, Any], *, runs: bool, transcript: str) -> tuple[bool | None, str]:
    """Return whether a call failed, None where neither holds, and what it printed."""
    response = payload.get("tool_response")
    output = whole_output(payload.get("error") or response)
    if "tool_failed" in payload:
        failed = payload["tool_failed"]
        return failed if isinstance(failed, bool) else None, output
    return None if _is_unfinished(payload.get("tool_input"), response) else False, output


def _is_unfinished(arguments: object, response: object) -> bool:
    """Return whether a command was interrupted, or goes on in the background."""
    in_background = dig(arguments, "run_in_background") is True or bool(dig(response, "backgroundTaskId"))
    return in_background or dig(response, "interrupted") is True
