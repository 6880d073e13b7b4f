"""How a call of a tool ended, in each client's own way of telling it, and what it printed.

A success is said only where the client tells one: what was broken off, refused, or goes on in the background has
neither succeeded nor failed.
"""

from __future__ import annotations

import os

from learnt.text.clean import last_words
from learnt.text.json_values import dig, parsed, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Gemini CLI tells in the text alone how a command ended: by how it begins, or in lines at its end.
_NOT_ENDED = (
    "Command was cancelled by user",
    "Command was automatically cancelled",
    "Command moved to background",
    "Command is running in background",
)
_AT_THE_END = ("Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group PGID: ")
_AROUND, _AROUND_END = "<untrusted_context>\n", "\n</untrusted_context>"
_LONGEST_OUTPUT = 20_000
# Of more, a hook reads the end: it has little time.
_ROLLOUT_END = 1_000_000


def read_result(told: Mapping[str, Any], client: str, *, runs: bool, transcript: str) -> tuple[bool | None, str]:
    """Return whether a call failed, None where nobody tells, and what it printed; `runs`: the tool runs commands."""
    response = told.get("tool_response")
    output = _whole(told.get("error") or response)
    failed: bool | None = None
    if told.get("hook_event_name") == "PostToolUseFailure":
        failed = None if told.get("is_interrupt") is True else True
    elif client == "gemini":
        failed = bool(dig(response, "error"))
        if runs and not failed:
            failed, output = _ended_in_gemini(_whole(dig(response, "llmContent")))
    elif client == "codex":
        failed = _in_rollout(transcript, text_of(told.get("tool_use_id")))
    elif client in ("claude", ""):  # whoever is not known speaks as Claude Code does: Codex is known by its events
        failed = None if _is_unfinished(told.get("tool_input"), response) else False
    elif client == "opencode":
        known = told.get("tool_failed", False)
        failed = known if isinstance(known, bool) else None
    return failed, last_words(output, _LONGEST_OUTPUT)


def _is_unfinished(given: object, response: object) -> bool:
    """Say whether Claude Code broke a command off, or lets it go on in the background."""
    goes_on = dig(given, "run_in_background") is True or bool(dig(response, "backgroundTaskId"))
    return goes_on or dig(response, "interrupted") is True


def _ended_in_gemini(text: str) -> tuple[bool | None, str]:
    """Return whether a command of Gemini CLI's failed, and what it printed, of what the client makes of that."""
    text = text.removeprefix(_AROUND).rstrip().removesuffix(_AROUND_END)
    if text.startswith(_NOT_ENDED):
        return None, text
    ended = {}
    while (line := text.rpartition("\n")[2]).startswith(_AT_THE_END):
        name, _, value = line.partition(": ")
        if value.strip() != "(none)":  # as older versions say
            ended[name] = value.strip()
        text = text[: -len(line)].rstrip("\n")
    failed = bool(ended.get("Exit Code", "0").strip("-0"))
    return None if "Signal" in ended else failed, text.removeprefix("Output: ")


def _in_rollout(path: str, call: str) -> bool | None:
    """Say how a call of Codex's ended: its events do not tell, the end of its transcript does."""
    if not path or not call:
        return None
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - _ROLLOUT_END))
            lines = file.read(_ROLLOUT_END).split(b"\n")
    except (OSError, ValueError):
        return None
    for line in reversed(lines):
        if call.encode("utf-8", "replace") in line and (b"item_completed" in line or b"_call_output" in line):
            failed = _told_in(line, call)
            if failed is not None:
                return failed
    return None


def _told_in(line: bytes, call: str) -> bool | None:
    """Say whether a call failed, as far as a line of the transcript tells."""
    from learnt.clients.codex_outcome import OUTPUTS, item_failed, read_output

    payload = parsed(line.decode("utf-8", "replace")).get("payload")
    item = dig(payload, "item")
    if dig(item, "id") == call:
        return item_failed(item)
    if dig(payload, "type") in OUTPUTS and dig(payload, "call_id") == call:
        return read_output(_whole(dig(payload, "output")))[1]
    return None


def _whole(response: object) -> str:
    """Return all that a tool printed."""
    if isinstance(response, dict):
        keys = ("llmContent", "stdout", "stderr", "error", "content", "output")
        return "\n".join(filter(None, (_whole(response.get(key)) for key in keys)))
    if isinstance(response, list):
        return "\n".join(text_of(part.get("text")) for part in response if isinstance(part, dict))
    return text_of(response)
