"""What happens in a client, in our words, and how each client is answered.

Clients tell much the same under different names. Whatever they send becomes an Event, or nothing: foreign fields may be
of any type. What a client puts into a prompt itself is no part of it, and what no person wrote is no prompt.
"""

from __future__ import annotations

import json
import os

from learnt.clients.tool_input import COMMANDS, FOLDERS, PATCHES, PATHS, command_line, first, patched, patched_by
from learnt.model import Value
from learnt.text.triggers import beginning_and_end

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
    "StopFailure": "stop",
    "SubagentStop": "stop",
    "AfterAgent": "stop",
    "SessionEnd": "end",
}
_OF_GEMINI = ("BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent")
_RUNS = ("bash", "run_shell_command", "exec_command", "shell", "shell_command", "local_shell", "powershell")
_EDITS = ("edit", "write", "multiedit", "notebookedit", "write_file", "replace", "apply_patch", "patch")
# Of more, a hook reads the beginning and the end: it has little time.
_HALF_PROMPT = 50_000
_HALF_SAID = 200_000
_FORKS = "SubagentStop"  # a client's own forks, such as for a summary, end like sub-agents that nobody started
_WITHOUT_WORDS = "StopFailure"  # what it hands over as the last message is the client's own, on what went wrong


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
    """Where it happens; of a command, where it is run."""
    source: str = ""
    """Of a session: how it began."""
    prompt: str = ""
    tool: str = ""
    """Of a call and a result: the tool, as the client calls it."""
    command: str = ""
    """Of a call and a result: the command line that is run."""
    paths: tuple[str, ...] = ()
    """Of a call and a result: the files that are edited."""
    failed: bool | None = None
    """Of a result; None where the client does not tell, or where it has neither failed nor succeeded."""
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
        # Not every event of a client that nobody names tells which it is: what speaks as Claude Code does is one.
        return f"{self.client or 'claude'} {self.session} {self.agent_id}"


def read_event(told: Mapping[str, Any], client: str) -> Event | None:
    """Return what a client tells; None for what is not served. `client`: which one, if somebody knows."""
    name = _text(told.get("hook_event_name"))
    kind, session = KINDS.get(name), _text(told.get("session_id"))
    if kind is None or not session:
        return None
    event = Event(
        client=_known(client) or _known(_text(told.get("client"))) or _by_its_ways(told, name),
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
        said = told.get("last_assistant_message", told.get("prompt_response")) if name != _WITHOUT_WORDS else None
        return event.replace(said=beginning_and_end(said, _HALF_SAID) if isinstance(said, str) else None)
    return _about_tool(event, told) if kind in ("call", "result") else event


def _known(name: str) -> str:
    """Return a client's name, however it is called; nothing for one that is not served."""
    if not name or name in CLIENTS:
        return name
    from learnt.text.names import client_name

    return client_name(name) if client_name(name) in CLIENTS else ""


def _by_its_ways(told: Mapping[str, Any], name: str) -> str:
    """Return the client that nobody has named, by what only its events have; nothing where that is nothing."""
    transcript = _text(told.get("transcript_path")).replace("\\", "/")
    file = transcript.rpartition("/")[2]
    if name in _OF_GEMINI or "/.gemini/" in transcript:
        return "gemini"
    if ("turn_id" in told and "model" in told) or (file.startswith("rollout-") and file.endswith(".jsonl")):
        return "codex"
    is_claude = "prompt_id" in told or ("permission_mode" in told and "turn_id" not in told)
    return "claude" if is_claude or "/.claude/" in transcript else ""


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
    if prompt.lstrip().startswith("/"):
        from learnt.clients.slash_commands import asked

        prompt = asked(prompt)
    return beginning_and_end(prompt, _HALF_PROMPT)


def _about_tool(event: Event, told: Mapping[str, Any]) -> Event:
    given = told.get("tool_input")
    arguments = given if isinstance(given, dict) else {}
    tool = _text(told.get("tool_name"))
    runs = tool.lower() in _RUNS
    if runs:
        command = command_line(first(arguments, COMMANDS))
        folder = _folder(event.folder, _text(first(arguments, FOLDERS)))
        event = event.replace(command=command, paths=patched_by(command), folder=folder)
    elif tool.lower() in _EDITS:
        path = _text(first(arguments, PATHS))
        paths = (path,) if path else patched(command_line(first(arguments, (*PATCHES, *COMMANDS))))
        event = event.replace(paths=paths)
    if event.kind == "call":
        return event.replace(tool=tool)
    from learnt.clients.results import read_result

    failed, output = read_result(told, event.client, runs=runs, transcript=event.transcript)
    return event.replace(tool=tool, failed=failed, output=output)


def _folder(around: str, named: str) -> str:
    """Return where a command is run, by the one name that a folder with several has."""
    if not around and not os.path.isabs(named):
        return ""
    try:
        return os.path.realpath(os.path.join(around, named))
    except ValueError:  # no file can have such a name
        return around


def _path(found: object) -> str:
    """Return a path; nothing for what no file can be called."""
    path = _text(found)
    try:
        return "" if b"\0" in os.fsencode(path) else path
    except UnicodeEncodeError:
        return ""


def _text(found: object) -> str:
    return found if isinstance(found, str) else ""
