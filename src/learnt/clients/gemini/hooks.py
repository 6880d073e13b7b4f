"""How a call of a tool ended in Gemini CLI: for a command only the text says so, at its beginning or its end."""

from __future__ import annotations

from learnt.clients.kit.events import whole_output
from learnt.text.json_values import dig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_NOT_ENDED = (
    "Command was cancelled by user",
    "Command was automatically cancelled",
    "Command moved to background",
    "Command is running in background",
)
_LAST_LINES = ("Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group PGID: ")
_OPENING, _CLOSING = "<untrusted_context>\n", "\n</untrusted_context>"


def read_result(payload: Mapping[str, Any], output: str, *, runs: bool, transcript: str) -> tuple[bool | None, str]:
    """Return whether a call failed, None where neither holds, and what it printed."""
    response = payload.get("tool_response")
    if runs and not dig(response, "error"):
        return _read_command_output(whole_output(dig(response, "llmContent")))
    return bool(dig(response, "error")), output


def _read_command_output(text: str) -> tuple[bool | None, str]:
    """Return whether a command failed, and what it printed, without what the client adds."""
    text = text.removeprefix(_OPENING).rstrip().removesuffix(_CLOSING)
    if text.startswith(_NOT_ENDED):
        return None, text
    ending = {}
    while (line := text.rpartition("\n")[2]).startswith(_LAST_LINES):
        name, _, value = line.partition(": ")
        if value.strip() != "(none)":  # as older versions write it
            ending[name] = value.strip()
        text = text[: -len(line)].rstrip("\n")
    failed = bool(ending.get("Exit Code", "0").strip("-0"))
    return None if "Signal" in ending else failed, text.removeprefix("Output: ")
