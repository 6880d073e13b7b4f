"""What happens in a client, in our words, and how each client is answered.

Clients tell much the same under different names. Whatever they send becomes an Event, or nothing: foreign fields may be
of any type. What a client puts into a prompt itself is no part of it, and what no person wrote is no prompt.
"""

from __future__ import annotations

import json
import os

from learnt.clients.tool_input import COMMANDS, PATHS, command_line, first, patched
from learnt.model import Value
from learnt.text.patterns import beginning_and_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

CLIENTS = ("claude", "codex", "gemini", "opencode")
KINDS = {
    "SessionStart": "session",
    "UserPromptSubmit": "prompt",
    "BeforeAgent": "prompt",
    "SubagentStart": "agent",
    "PreToolUse": "call",
    "BeforeTool": "call",
    "PostToolUse": "result",
    "PostToolUseFailure": "result",
    "AfterTool": "result",
    "PreCompact": "compaction",
    "Stop": "stop",
    "SubagentStop": "stop",
    "AfterAgent": "stop",
    "SessionEnd": "end",
}
_OF_GEMINI = ("BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent")
_RUNS = ("bash", "run_shell_command", "exec_command", "shell", "shell_command", "local_shell", "powershell")
_EDITS = ("edit", "write", "multiedit", "notebookedit", "write_file", "replace", "apply_patch", "patch")
_ENDED_WITH = "\nExit Code: "  # Gemini CLI tells it in the text alone
_AROUND = ("<untrusted_context>", "\n", "Output: ")  # Gemini CLI writes this before what a command printed
_LONGEST_OUTPUT = 20_000
# Of more, a hook reads the beginning and the end: it has little time.
_HALF_PROMPT = 50_000
_HALF_SAID = 200_000
_ROLLOUT_END = 1_000_000
_FORKS = "SubagentStop"  # a client's own forks, such as for a summary, end like sub-agents that nobody started


class Event(Value):
    """One thing that happened in a conversation."""

    client: str
    name: str
    """The client's own name for it."""
    kind: str
    """`session`, `prompt`, `agent` (a sub-agent starts), `call` (of a tool), `result` (of a call), `compaction`, `stop`
    or `end`."""
    session: str
    agent_id: str = ""
    agent: str = ""
    folder: str = ""
    """Where it happens."""
    source: str = ""
    """Of a session: how it began."""
    prompt: str = ""
    command: str = ""
    """Of a call and a result: the command line that is run."""
    paths: tuple[str, ...] = ()
    """Of a call and a result: the files that are edited."""
    failed: bool | None = None
    """Of a result; None where the client does not tell."""
    output: str = ""
    said: str | None = None
    """Of a stop: the agent's last words; None where the client does not tell."""
    transcript: str = ""

    @property
    def is_end(self) -> bool:
        """Whether a turn or the conversation is over: nobody hears an answer, and nothing need be read for one."""
        return self.kind in ("stop", "end")

    @property
    def conversation(self) -> str:
        """What names the conversation: that of a sub-agent is one of its own."""
        return f"{self.session} {self.agent_id}"


def read_event(told: Mapping[str, Any], client: str) -> Event | None:
    """Return what a client tells; None for what is not served."""
    name = _text(told.get("hook_event_name"))
    kind, session = KINDS.get(name), _text(told.get("session_id"))
    if kind is None or not session:
        return None
    client = client or _text(told.get("client")) or ("gemini" if name in _OF_GEMINI else "")
    event = Event(
        client=client if client in CLIENTS else "",
        name=name,
        kind=kind,
        session=session,
        agent_id=_text(told.get("agent_id")),
        agent=_text(told.get("agent_type")),
        folder=_path(told.get("cwd")),
        source=_text(told.get("source")),
        transcript=_path(told.get("agent_transcript_path") or told.get("transcript_path")),
    )
    if name == _FORKS and not event.agent:
        return None
    if kind == "prompt":
        return event.replace(prompt=_prompt(told))
    if kind == "stop":
        said = told.get("last_assistant_message", told.get("prompt_response"))
        return event.replace(said=beginning_and_end(said, _HALF_SAID) if isinstance(said, str) else None)
    return _about_tool(event, told) if kind in ("call", "result") else event


def tells_before(event: Event) -> bool:
    """Say whether the model hears what is said before a call; otherwise it must be said with the result."""
    return event.client != "gemini"


def answer(event: Event, text: str, *, denies: bool = False) -> str:
    """Return what is printed so that the model hears a text, or so that a call is not made."""
    if not text:
        return ""
    if denies and event.client == "gemini":
        return _as_json({"decision": "deny", "reason": text})
    if event.kind == "compaction" and event.client != "opencode":
        # Claude Code adds plain words to what it asks the summary for; no other client hears them.
        return f"{text}\n" if event.client == "claude" else ""
    said = {"permissionDecision": "deny", "permissionDecisionReason": text} if denies else {"additionalContext": text}
    return _as_json({"hookSpecificOutput": {"hookEventName": event.name, **said}})


def _as_json(answer: dict[str, Any]) -> str:
    # Letters as they are: otherwise a text in another script would be six times as long.
    return json.dumps(answer, ensure_ascii=False) + "\n"


def _prompt(told: Mapping[str, Any]) -> str:
    from learnt.text.injected import wrote

    prompt = wrote(_text(told.get("prompt")))
    return "" if _is_slash_command(prompt) else beginning_and_end(prompt, _HALF_PROMPT)


def _is_slash_command(prompt: str) -> bool:
    """Say whether a prompt is for the client itself: `/compact`, unlike `/home/x/app.py fails`."""
    word = prompt.split(None, 1)[0] if prompt.strip() else ""
    return word.startswith("/") and len(word) > 1 and "/" not in word[1:]


def _about_tool(event: Event, told: Mapping[str, Any]) -> Event:
    given = told.get("tool_input")
    arguments = given if isinstance(given, dict) else {}
    tool = _text(told.get("tool_name")).lower()
    command, paths = "", tuple[str, ...]()
    if tool in _RUNS:
        command = command_line(first(arguments, COMMANDS))
    elif tool in _EDITS:
        path = _text(first(arguments, PATHS))
        paths = (path,) if path else patched(command_line(first(arguments, ("input", "patch", *COMMANDS))))
    if event.kind == "call":
        return event.replace(command=command, paths=paths)
    output = _output(told.get("error") or told.get("tool_response"))
    failed = _failed(event, told, output)
    printed = _printed(output) if event.client == "gemini" and command else output
    return event.replace(command=command, paths=paths, failed=failed, output=printed)


def _failed(event: Event, told: Mapping[str, Any], output: str) -> bool | None:
    """Say whether a call failed; a person's interruption says nothing about it."""
    if event.name == "PostToolUseFailure":
        return None if told.get("is_interrupt") is True else True
    if event.client == "codex":
        return _failed_in_rollout(event.transcript, _text(told.get("tool_use_id")))
    if event.client == "gemini":
        response = told.get("tool_response")
        code = output.rpartition(_ENDED_WITH)[2].split("\n", 1)[0] if _ENDED_WITH in output else "0"
        return bool(code.strip("-0 ")) or (isinstance(response, dict) and bool(response.get("error")))
    return False


def _failed_in_rollout(path: str, call: str) -> bool | None:
    """Say how a call of Codex's ended: its events do not tell, the end of its transcript does."""
    if not path or not call:
        return None
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - _ROLLOUT_END))
            lines = file.read(_ROLLOUT_END).split(b"\n")
    except OSError:
        return None
    for line in reversed(lines):
        if call.encode() in line and b"item_completed" in line:
            item = _item(line)
            if item.get("id") == call:
                return item.get("exit_code") not in (None, 0) or item.get("status") == "failed"
    return None


def _item(line: bytes) -> dict[str, Any]:
    try:
        item = json.loads(line)["payload"]["item"]
        return item if isinstance(item, dict) else {}
    except (ValueError, LookupError, TypeError):
        return {}


def _output(response: object) -> str:
    """Return what a tool printed, of a long text the end."""
    if isinstance(response, dict):
        keys = ("llmContent", "stdout", "stderr", "error", "content", "output")
        response = "\n".join(filter(None, (_output(response.get(key)) for key in keys)))
    elif isinstance(response, list):
        response = "\n".join(_text(part.get("text")) for part in response if isinstance(part, dict))
    return _text(response)[-_LONGEST_OUTPUT:]


def _printed(output: str) -> str:
    """Return what a command printed, of what Gemini CLI makes of it."""
    for word in _AROUND:
        output = output.removeprefix(word)
    printed, ended, _ = output.rpartition(_ENDED_WITH)
    return printed if ended else output


def _path(found: object) -> str:
    """Return a path; nothing for what no file can be called."""
    path = _text(found)
    try:
        return "" if b"\0" in os.fsencode(path) else path
    except UnicodeEncodeError:
        return ""


def _text(found: object) -> str:
    return found if isinstance(found, str) else ""
