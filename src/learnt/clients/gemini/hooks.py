"""Find out whether a tool call failed in Gemini CLI. A command's result is only in the lines after its output.

The transcript reader uses the same functions.
"""

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
_OPENING, _CLOSING = "<untrusted_context>", "</untrusted_context>"


def read_result(payload: Mapping[str, Any], output: str, *, runs: bool, transcript: str) -> tuple[bool | None, str]:
    """Return whether a call failed (None if it neither failed nor succeeded), and its output."""
    response = payload.get("tool_response")
    if not runs or dig(response, "error"):
        return bool(dig(response, "error")), output
    content = whole_output(dig(response, "llmContent"))
    printed, ending = split_output(content)
    has_ended = "Signal" not in ending and not content.removeprefix(_OPENING).lstrip("\n").startswith(_NOT_ENDED)
    return (exit_failed(ending) if has_ended else None), printed


def split_output(text: str) -> tuple[str, dict[str, str]]:
    """Return a command's output, and the values in the lines that Gemini CLI adds after it, by label."""
    text = text.strip().removeprefix(_OPENING).removesuffix(_CLOSING).strip("\n")
    ending: dict[str, str] = {}
    for _ in _LAST_LINES:
        line = text.rpartition("\n")[2]
        if not line.startswith(_LAST_LINES):
            break
        label, _, value = line.partition(": ")
        if value.strip() != "(none)":  # older versions write this for an empty value
            ending.setdefault(label, value.strip())
        text = text[: -len(line)].rstrip("\n")
    return text.removeprefix("Output: "), ending


def exit_failed(ending: Mapping[str, str]) -> bool:
    """Return whether a command ended with an exit code other than 0."""
    return bool(ending.get("Exit Code", "0").strip("-0"))
