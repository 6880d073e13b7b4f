"""Complete Copilot's events, and find out whether a tool call failed.

Copilot also runs the hooks that are written for Claude Code, each with the same input, so an event has an identity. A
sub-agent has a session of its own, in which its errand is a prompt, and is recorded in the transcript of the
conversation that it works for. A command's exit code is in the last line of its result, and the agent's last message in
the transcript. The transcript reader uses the same functions.
"""

from __future__ import annotations

import json
import re

from learnt.model import digest
from learnt.system.files import read_transcript_end
from learnt.text.json_values import dig, parsed, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from learnt.clients.kit.events import HookEvent

# What Copilot adds to a result: the answers of hooks, and before them the line about a command's end.
_FROM_HOOKS = re.compile(r'\n\nTool "[^"\n]*" \w+\. Additional guidance from postToolUse hooks:\n')
_ENDING = re.compile(r"(?:\A|\n)<shellId: [^\n>]* completed with exit code (-?\d+)>\s*\Z")
_SUCCEEDED = "success"


def adapt_event(event: HookEvent, payload: Mapping[str, Any]) -> HookEvent | None:
    """Return the event as it is served; None for the end of a sub-agent's turn, which another event reports."""
    event = event.replace(identity=_identity(payload))
    parent = text_of(payload.get("parent_agent_id"))
    if parent and event.agent_id:
        return None if event.name == "Stop" else event.replace(session=parent, transcript="")
    if event.kind == "compaction":  # no other event tells that the conversation was compacted
        return event.replace(kind="session", source="compact")
    if event.kind == "stop" and event.said is None and event.transcript:
        return event.replace(said=last_message(event.transcript) or "")  # it may be written a moment later
    return event


def _identity(payload: Mapping[str, Any]) -> str:
    """Return what all hooks are sent for one event: its time and all else but the folder, which can be a hook's own.

    A call has an id, so its time does not matter, which may be that of the hook.
    """
    own = ("cwd", "timestamp") if payload.get("tool_use_id") else ("cwd",)
    fields = {key: payload[key] for key in sorted(payload) if key not in own}
    return digest(json.dumps(fields, default=str)) if "timestamp" in payload else ""


def last_message(transcript: str) -> str | None:
    """Return the agent's last message in a transcript; None if there is none."""
    for line in reversed(read_transcript_end(transcript).split(b"\n")):
        if b'"assistant.message"' in line:
            record = parsed(line.decode("utf-8", "replace"))
            text = text_of(dig(record, "data", "content"))
            if record.get("type") == "assistant.message" and text and not record.get("agentId"):
                return text
    return None


def read_result(payload: Mapping[str, Any], output: str, *, runs: bool, transcript: str) -> tuple[bool | None, str]:
    """Return whether a call failed (None if it neither failed nor succeeded), and its output."""
    result = payload.get("tool_result")
    text, exit_code = split_output(text_of(dig(result, "text_result_for_llm")) or output)
    if exit_code is not None:
        return exit_code != 0, text
    # A command without an exit code was not run, or goes on in the background.
    return (None if runs else dig(result, "result_type") not in (None, _SUCCEEDED)), text


def split_output(text: str) -> tuple[str, int | None]:
    """Return a tool's own output, and a command's exit code; None if there is none."""
    if hooks := _FROM_HOOKS.search(text):
        text = text[: hooks.start()]
    ending = _ENDING.search(text)
    return (text[: ending.start()], int(ending[1])) if ending else (text, None)
