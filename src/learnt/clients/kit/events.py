"""Read the events that clients send, and format the answers.

Clients report much the same under different names. What they send becomes a HookEvent, or nothing: foreign fields may
be of any type. The `hooks` module of a client reads how a call of a tool ended; a client without one uses Claude Code's
format.
"""

from __future__ import annotations

import json
import os

from learnt.clients import registry
from learnt.model import Value
from learnt.text.clean import last_words
from learnt.text.fence import strip_prompt
from learnt.text.triggers import beginning_and_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# The arguments of tools, under the names that clients give them.
PATHS = ("file_path", "filePath", "absolute_path", "notebook_path", "path")
COMMANDS = ("command", "cmd")
_PATCHES = ("input", "patch", "patchText")
_FOLDERS = ("workdir", "dir_path")
_SHELL_OPTIONS = ("-c", "-lc", "-Command", "/c")
_PATCH_HEADINGS = ("*** Update File: ", "*** Add File: ", "*** Delete File: ")
# A hook has little time: of a longer text it reads the beginning and the end.
_HALF_PROMPT_LENGTH = 50_000
_HALF_MESSAGE_LENGTH = 200_000
_MAX_OUTPUT_LENGTH = 20_000
_MAX_TRANSCRIPT_BYTES = 2_000_000
_FORKS = "SubagentStop"  # a client's own forks, such as for a summary, end like sub-agents that were never started
_WITHOUT_WORDS = "StopFailure"  # its last message is the client's own, about what went wrong
# Who speaks, in the records of each client that keeps files.
_SPEAKERS = (b'"assistant"', *(b'"%s"' % client.name.encode() for client in registry.CLIENTS if client.speaks_by_name))
_BY_CLIENT = b'"isApiErrorMessage":true'  # Claude Code speaks for the agent when the service fails
# Slash commands of clients. What follows these is for the client itself; what follows `/plan` and `/review` is work.
_SLASH_COMMANDS = frozenset(
    "about add-dir agent agents app approvals archive auth bashes bug cd chat clear color commands compact "
    "compress config connect context copy corgi cost daemon debug-config delete desktop dir directory "
    "doctor editor effort exit experimental export extensions extra-usage fast feedback fork help hooks ide "
    "init insights install-github-app keybindings keymap login logout mcp mcps memories memory mobile model models "
    "org output-style passes permissions personality plugin plugins policies pr-comments privacy "
    "privacy-settings ps pwd quit raw recap redo release-notes reload-plugins remote-control remote-env rename reset "
    "restore resume rewind rollout sandbox sessions settings setup-github share shells "
    "skills stats status statusline stickers tasks terminal terminal-setup theme themes thinking timeline timestamps "
    "title todos tools tui undo unshare upgrade usage variants vim voice warp workspace workspaces".split()
)


class HookEvent(Value):
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
    """Of a result; None where the client does not say, or where it has neither failed nor succeeded."""
    output: str = ""
    said: str | None = None
    """Of a stop: the agent's last words; None where the client does not say."""
    transcript: str = ""

    @property
    def is_end(self) -> bool:
        """Whether a turn or the conversation is over: no answer is heard, so nothing need be read for one."""
        return self.kind in ("stop", "end")

    @property
    def conversation(self) -> str:
        """What names the conversation; a sub-agent has a separate one."""
        # Not every event of an unnamed client shows which client it is.
        return f"{self.client or registry.DEFAULT} {self.session} {self.agent_id}"


def read_event(payload: Mapping[str, Any], client: str) -> HookEvent | None:
    """Return what a client sent; None for what is not served. `client`: its name, if the caller knows it."""
    name = _text(payload.get("hook_event_name"))
    kind, session = registry.KINDS.get(name), _text(payload.get("session_id"))
    if kind is None or not session:
        return None
    event = HookEvent(
        client=_served(client) or _served(_text(payload.get("client"))) or registry.recognise(name, payload),
        name=name,
        kind=kind,
        session=session,
        agent_id=_text(payload.get("agent_id")),
        agent=_text(payload.get("agent_type")),
        folder=_path(payload.get("cwd")),
        source=_text(payload.get("source")),
        transcript=_path(payload.get("agent_transcript_path") or payload.get("transcript_path")),
    )
    if name == _FORKS and not event.agent:
        return None
    if kind == "prompt":
        return event.replace(prompt=_prompt(payload))
    if kind == "stop":
        said = payload.get("last_assistant_message", payload.get("prompt_response")) if name != _WITHOUT_WORDS else None
        return event.replace(said=beginning_and_end(said, _HALF_MESSAGE_LENGTH) if isinstance(said, str) else None)
    return _about_tool(event, payload) if kind in ("call", "result") else event


def _served(name: str) -> str:
    """Return the name of a client whose events are served, whichever alias it comes with; nothing for another."""
    client = registry.find(name)
    return client.name if client and client.events else ""


def hears_before_call(event: HookEvent) -> bool:
    """Return whether the model hears what is said before a call; otherwise it must be said with the result."""
    client = registry.find(event.client)
    return client is None or client.hears_before_call


def answer(event: HookEvent, text: str, *, denies: bool = False) -> str:
    """Return what is printed so that the model hears a text, or so that a call is not made."""
    if not text:
        return ""
    client = registry.find(event.client)
    if denies and client and client.deny_format == "decision":
        return _as_json({"decision": "deny", "reason": text})
    if event.kind == "compaction" and (client is None or client.compaction_format != "context"):
        return f"{text}\n" if client and client.compaction_format == "text" else ""
    said = {"permissionDecision": "deny", "permissionDecisionReason": text} if denies else {"additionalContext": text}
    return _as_json({"hookSpecificOutput": {"hookEventName": event.name, **said}})


def _as_json(answer: dict[str, Any]) -> str:
    # Letters as they are: otherwise a text in another script would be six times as long.
    return json.dumps(answer, ensure_ascii=False) + "\n"


def has_words(transcript: str) -> bool:
    """Return whether a transcript holds words of an agent, by a quick look; a very long one always does."""
    try:
        with open(transcript, "rb") as file:
            beginning = file.read(_MAX_TRANSCRIPT_BYTES)
        of_agent = (line for line in beginning.split(b"\n") if _BY_CLIENT not in line)
        is_long = len(beginning) == _MAX_TRANSCRIPT_BYTES
        return is_long or any(speaker in line for line in of_agent for speaker in _SPEAKERS)
    except (OSError, ValueError):
        return False


def _prompt(payload: Mapping[str, Any]) -> str:
    prompt = strip_prompt(_text(payload.get("prompt")))
    if prompt.lstrip().startswith("/"):
        prompt = _behind_slash_command(prompt)
    return beginning_and_end(prompt, _HALF_PROMPT_LENGTH)


def _behind_slash_command(prompt: str) -> str:
    """Return the words behind a slash command, all words where there is none, as in `/srv/app.py fails`."""
    word, _, rest = " ".join(prompt.split(None, 1)).partition(" ")
    if len(word) < 2 or "/" in word[1:]:
        return prompt
    return "" if word[1:].lower() in _SLASH_COMMANDS else rest.strip()


def _about_tool(event: HookEvent, payload: Mapping[str, Any]) -> HookEvent:
    tool_input = payload.get("tool_input")
    arguments = tool_input if isinstance(tool_input, dict) else {}
    tool = _text(payload.get("tool_name"))
    does = registry.TOOLS.get(tool.lower(), "")
    if does == "run":
        command = command_line(first_value(arguments, COMMANDS))
        folder = _folder(event.folder, _text(first_value(arguments, _FOLDERS)))
        event = event.replace(command=command, paths=_patched_by(command), folder=folder)
    elif does == "edit":
        path = _text(first_value(arguments, PATHS))
        paths = (path,) if path else _patched(command_line(first_value(arguments, (*_PATCHES, *COMMANDS))))
        event = event.replace(paths=paths)
    if event.kind == "call":
        return event.replace(tool=tool)
    failed, output = _result(event, payload, runs=does == "run")
    return event.replace(tool=tool, failed=failed, output=last_words(output, _MAX_OUTPUT_LENGTH))


def _result(event: HookEvent, payload: Mapping[str, Any], *, runs: bool) -> tuple[bool | None, str]:
    """Return whether a call failed, None where the client does not say, and what it printed.

    A call that was interrupted or refused, or that goes on in the background, has neither succeeded nor failed.
    """
    output = whole_output(payload.get("error") or payload.get("tool_response"))
    if event.name == "PostToolUseFailure":
        return None if payload.get("is_interrupt") is True else True, output
    client = registry.find(event.client)
    if client is None or "hooks" not in client.offers:
        return _has_failed(payload), output
    hooks = registry.load(client, "hooks")
    result: tuple[bool | None, str] = hooks.read_result(payload, output, runs=runs, transcript=event.transcript)
    return result


def _has_failed(payload: Mapping[str, Any]) -> bool | None:
    """Return whether a call failed, in Claude Code's format; None for one that was interrupted or goes on."""
    if "tool_failed" in payload:  # a plugin of ours adds it
        failed = payload["tool_failed"]
        return failed if isinstance(failed, bool) else None
    arguments, response = (
        value if isinstance(value, dict) else {} for value in (payload.get("tool_input"), payload.get("tool_response"))
    )
    in_background = arguments.get("run_in_background") is True or response.get("backgroundTaskId")
    return None if in_background or response.get("interrupted") is True else False


def whole_output(response: object) -> str:
    """Return all that a tool printed."""
    if isinstance(response, dict):
        keys = ("llmContent", "stdout", "stderr", "error", "content", "output")
        return "\n".join(filter(None, (whole_output(response.get(key)) for key in keys)))
    if isinstance(response, list):
        return "\n".join(_text(part.get("text")) for part in response if isinstance(part, dict))
    return _text(response)


def first_value(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """Return the value of the first of these keys that has one."""
    return next((arguments[key] for key in keys if arguments.get(key)), None)


def command_line(command: object) -> str:
    """Return a command line that came as a text, as words, or as words of which the last is a text for a shell."""
    if not isinstance(command, list):
        return command if isinstance(command, str) else ""
    words = [word for word in command if isinstance(word, str)]
    return words[2] if len(words) == 3 and words[1] in _SHELL_OPTIONS else " ".join(words)


def _patched_by(command: str) -> tuple[str, ...]:
    """Return the files that a command line edits with a patch; it may also print a patch, or write one to a file."""
    before, begins, patch = command.partition("*** Begin Patch")
    return _patched(patch) if begins and "apply_patch" in before else ()


def _patched(patch: str) -> tuple[str, ...]:
    """Return the files that an `apply_patch` patch names."""
    lines = (line.strip() for line in patch.split("\n"))
    return tuple(line.partition(": ")[2].strip() for line in lines if line.startswith(_PATCH_HEADINGS))


def _folder(around: str, name: str) -> str:
    """Return the real path of the folder in which a command is run."""
    if not around and not os.path.isabs(name):
        return ""
    try:
        return os.path.realpath(os.path.join(around, name))
    except ValueError:  # no file can have such a name
        return around


def _path(value: object) -> str:
    """Return a path; nothing for what no file can be called."""
    path = _text(value)
    try:
        return "" if b"\0" in os.fsencode(path) else path
    except UnicodeEncodeError:
        return ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
