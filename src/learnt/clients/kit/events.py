"""Read the events that clients send, and format the answers.

Clients use different names for much the same thing. A payload becomes a HookEvent, or None if it is not an event that
we serve; its fields can be of any type. A client's `hooks` module reads the result of a tool call. Clients without this
module use Claude Code's format.
"""

from __future__ import annotations

import json
import os

from learnt.clients import registry
from learnt.model import Value
from learnt.system.files import open_to_read
from learnt.text.clean import last_words
from learnt.text.fence import strip_prompt
from learnt.text.triggers import beginning_and_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# The names of tool arguments in all clients.
PATHS = ("file_path", "filePath", "absolute_path", "notebook_path", "path")
COMMANDS = ("command", "cmd")
_PATCHES = ("input", "patch", "patchText")
_FOLDERS = ("workdir", "dir_path")
# What clients call an event's name and its session; the latter are those that VS Code documents.
_EVENT_NAMES = ("hook_event_name", "hookEventName")
_SESSIONS = ("session_id", "sessionId")
_SHELL_OPTIONS = ("-c", "-lc", "-Command", "/c")
_PATCH_HEADINGS = ("*** Update File: ", "*** Add File: ", "*** Delete File: ")
# A hook has little time, so it reads only the beginning and the end of a longer text.
_HALF_PROMPT_LENGTH = 50_000
_HALF_MESSAGE_LENGTH = 200_000
_MAX_OUTPUT_LENGTH = 20_000
_HALF_EDIT_LENGTH = 10_000
_MAX_GIVEN = 10_000
_MAX_SECONDS = 1_000_000_000
_MAX_TRANSCRIPT_BYTES = 2_000_000
_FORKS = "SubagentStop"  # internal forks, for example for a summary, also send it, but without an agent's name
_WITHOUT_WORDS = "StopFailure"  # its last message is not the agent's: the client reports the failure in it
# How transcripts identify the agent.
_SPEAKERS = (
    *(b'"assistant"', b'"assistant.message"'),
    *(b'"%s"' % client.name.encode() for client in registry.CLIENTS if client.speaks_by_name),
)
_IN_BACKGROUND = "Async agent launched"  # how the result of a call begins that started a sub-agent
_BY_CLIENT = b'"isApiErrorMessage":true'  # the client wrote this message, after a service error
# The arguments of these slash commands are for the client. The text after others, such as `/plan`, is a task.
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
    """An event in a conversation."""

    client: str
    name: str
    """The client's name for the event."""
    kind: str
    """`session`, `prompt`, `agent` (a sub-agent starts), `call` (of a tool), `result` (of a call), `stop`, `end`, or
    `compaction`, which is only served if the client's `hooks` module makes something else of it."""
    session: str
    agent_id: str = ""
    agent: str = ""
    folder: str = ""
    """The current folder. For a command, it is the folder in which the command runs."""
    source: str = ""
    """For a session, how it began."""
    idle_s: int | None = None
    """For a session, how long ago the agent answered last, if the client says so."""
    prompt: str = ""
    follows_command: bool = False
    """For a prompt, whether it is the text behind a slash command."""
    tool: str = ""
    """For a call and a result, the client's name for the tool."""
    command: str = ""
    """For a call and a result, the command line."""
    paths: tuple[str, ...] = ()
    """For a call and a result, the edited files."""
    edit: str = ""
    """For a call and a result, the texts that an edit removes and inserts."""
    errand: str = ""
    """For a call that starts a sub-agent, what the sub-agent is to do, if no later event tells it."""
    errand_for: str = ""
    """The kind of that sub-agent."""
    errand_call: str = ""
    """The id of that call; for a result, of the call that starts no sub-agent any more."""
    failed: bool | None = None
    """For a result, whether the call failed; None if this is unknown, or if it neither failed nor succeeded."""
    output: str = ""
    said: str | None = None
    """For a stop, the agent's last message; None if the client does not send it."""
    given: tuple[str, ...] | None = None
    """For a stop, what of ours was in the requests to the model, if a plugin of ours saw them: the ids of briefs, and
    `notice` for a line without an id. None if nobody saw them."""
    goes_on: bool = False
    """For a stop, whether a hook has made the agent go on already."""
    transcript: str = ""
    identity: str = ""
    """What distinguishes the event from all others, if the client may send it to several hooks."""

    @property
    def is_end(self) -> bool:
        """Whether a turn or the conversation is over, so that nothing is said unless the agent is to go on."""
        return self.kind in ("stop", "end")

    @property
    def may_go_on(self) -> bool:
        """Whether the answer to this end of a turn can make the agent go on. A sub-agent never does."""
        client = registry.find(self.client)
        is_turn = self.kind == "stop" and self.said is not None and not (self.goes_on or self.agent_id)
        return is_turn and client is not None and bool(client.stop_decision)

    @property
    def conversation(self) -> str:
        """The identity of the conversation. A sub-agent's conversation is separate."""
        # The sender of an event without a client's name is sometimes unknown, so the default is used.
        return f"{self.client or registry.DEFAULT} {self.session} {self.agent_id}"


def read_event(payload: Mapping[str, Any], client: str) -> HookEvent | None:
    """Return the event in a payload; None if it is not served. `client` is empty if the caller does not know it."""
    name = _text(first_value(payload, _EVENT_NAMES))
    kind, session = registry.KINDS.get(name), _text(first_value(payload, _SESSIONS))
    if kind is None or not session:
        return None
    event = HookEvent(
        client=_find_sender(name, payload, client),
        name=name,
        kind=kind,
        session=session,
        agent_id=_text(payload.get("agent_id")),
        agent=_text(payload.get("agent_type")),
        folder=_path(payload.get("cwd")),
        source=_text(payload.get("source")),
        idle_s=_seconds(payload.get("seconds_since_last_response")),
        transcript=_path(payload.get("agent_transcript_path") or payload.get("transcript_path")),
    )
    if name == _FORKS and not event.agent:
        return None
    sender = registry.find(event.client)
    event = _add_content(event, payload)
    if sender is None or not sender.adapts_events:
        return event
    adapted: HookEvent | None = registry.load(sender, "hooks").adapt_event(event, payload)
    return adapted


def _add_content(event: HookEvent, payload: Mapping[str, Any]) -> HookEvent:
    if event.kind == "prompt":
        words = strip_prompt(_text(payload.get("prompt")))
        return event.replace(prompt=_prompt(words), follows_command=words.lstrip().startswith("/"))
    if event.kind == "stop":
        is_told = event.name != _WITHOUT_WORDS
        text = payload.get("last_assistant_message", payload.get("prompt_response")) if is_told else None
        said = beginning_and_end(text, _HALF_MESSAGE_LENGTH) if isinstance(text, str) else None
        goes_on = payload.get("stop_hook_active") is not False
        return event.replace(said=said, goes_on=goes_on, given=_list_given(payload.get("given")))
    return _add_tool(event, payload) if event.kind in ("call", "result") else event


def _list_given(names: object) -> tuple[str, ...] | None:
    return tuple(filter(None, map(_text, names[:_MAX_GIVEN]))) if isinstance(names, list) else None


def _find_sender(name: str, payload: Mapping[str, Any], client: str) -> str:
    """Return the client that sent an event to a hook of `client`; another client may run that hook, too."""
    expected = _name_served(client) or _name_served(_text(payload.get("client")))
    recognised = registry.recognise(name, payload)
    sender = registry.find(recognised)
    return recognised if not expected or (sender and sender.runs_hooks_of == expected) else expected


def _name_served(name: str) -> str:
    """Return a client's name for its name or alias; empty if the client's events are not served."""
    client = registry.find(name)
    return client.name if client and client.events else ""


def hears_before_call(event: HookEvent) -> bool:
    """Return whether the model sees an answer before a call. If not, the answer must come with the result."""
    client = registry.find(event.client)
    return client is None or client.hears_before_call


def shows_too_late(event: HookEvent) -> bool:
    """Return whether the model sees an answer only after the call ran, so that only a stop prevents an error.

    So it is in all clients that we know.
    """
    return registry.find(event.client) is not None


def briefs_at_first_prompt(event: HookEvent) -> bool:
    """Return whether what is said at the start of a conversation must come with its first prompt."""
    client = registry.find(event.client)
    return client is not None and client.briefs_at_first_prompt


def shows_messages(event: HookEvent) -> bool:
    """Return whether the person sees a message in the answer to this event."""
    client = registry.find(event.client)
    return client is not None and client.shows_messages and event.kind in ("session", "prompt", "result")


def answer(event: HookEvent, text: str, *, denies: bool = False, message: str = "") -> str:
    """Return the hook output that passes a text to the model, or that denies a call; `message` is for the person.

    A call of our own server's tools is permitted in the same answer, unless it is denied, so that a client need not be
    told in a project's settings.
    """
    client = registry.find(event.client)
    permits = {"permissionDecision": "allow"} if client and not denies and _is_own_tool(event, client) else {}
    if not text and not permits:
        return tell_person(message) if message else ""
    if event.is_end:
        return _as_json({"decision": client.stop_decision, "reason": text}) if client and event.may_go_on else ""
    if denies and client and client.deny_format == "decision":
        return _as_json({"decision": "deny", "reason": text})
    told = {"additionalContext": text} if text else {}
    body = {"permissionDecision": "deny", "permissionDecisionReason": text} if denies else {**permits, **told}
    top = told if client and "top" in client.context_levels and not denies else {}
    shown = {"systemMessage": message} if message else {}
    return _as_json({"hookSpecificOutput": {"hookEventName": event.name, **body}, **top, **shown})


def _is_own_tool(event: HookEvent, client: registry.Client) -> bool:
    return bool(client.own_tools) and event.kind == "call" and event.tool.startswith(client.own_tools)


def tell_person(text: str) -> str:
    """Return the output that shows a line to the person, and nothing to the model."""
    return _as_json({"systemMessage": text})


def _as_json(answer: dict[str, Any]) -> str:
    # Not escaped, because text in a non-Latin script would be up to six times as long.
    return json.dumps(answer, ensure_ascii=False) + "\n"


def has_words(transcript: str) -> bool:
    """Return whether a transcript has a message from the agent, by a quick scan. A very long one always has."""
    try:
        with open(transcript, "rb", opener=open_to_read) as file:
            beginning = file.read(_MAX_TRANSCRIPT_BYTES)
        lines = (line for line in beginning.split(b"\n") if _BY_CLIENT not in line)
        is_long = len(beginning) == _MAX_TRANSCRIPT_BYTES
        return is_long or any(speaker in line for line in lines for speaker in _SPEAKERS)
    except (OSError, ValueError):
        return False


def _prompt(prompt: str) -> str:
    if prompt.lstrip().startswith("/"):
        prompt = _strip_slash_command(prompt)
    return beginning_and_end(prompt, _HALF_PROMPT_LENGTH)


def _strip_slash_command(prompt: str) -> str:
    """Return the text after a slash command; the whole prompt if it has none, as in `/srv/app.py fails`."""
    word, _, rest = " ".join(prompt.split(None, 1)).partition(" ")
    if len(word) < 2 or "/" in word[1:]:
        return prompt
    return "" if word[1:].lower() in _SLASH_COMMANDS else rest.strip()


def _add_tool(event: HookEvent, payload: Mapping[str, Any]) -> HookEvent:
    tool_input = payload.get("tool_input")
    arguments = tool_input if isinstance(tool_input, dict) else {}
    tool = _text(payload.get("tool_name"))
    does = registry.TOOLS.get(tool.lower(), "")
    if does == "run":
        command = command_line(first_value(arguments, COMMANDS))
        folder = _folder(event.folder, _text(first_value(arguments, _FOLDERS)))
        event = event.replace(command=command, paths=_files_patched_by(command), folder=folder)
    elif does == "edit":
        path = _text(first_value(arguments, PATHS))
        paths = (path,) if path else _list_patched(command_line(first_value(arguments, (*_PATCHES, *COMMANDS))))
        event = event.replace(paths=paths, edit=_read_edit(arguments))
    if event.kind == "call":
        return _add_errand(event.replace(tool=tool), payload, arguments)
    failed, output = _result(event, payload, runs=does == "run")
    event = _end_errand(event.replace(tool=tool), payload)
    return event.replace(failed=failed, output=last_words(output, _MAX_OUTPUT_LENGTH))


def _read_edit(arguments: Mapping[str, Any]) -> str:
    """Return the texts in the arguments of an edit, other than the path of the file."""
    texts = [text for name, value in arguments.items() if name not in PATHS for text in _list_texts(value)]
    return beginning_and_end("\n".join(texts), _HALF_EDIT_LENGTH)


def _list_texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for name, part in value.items() if name not in PATHS for text in _list_texts(part)]
    return [text for part in value for text in _list_texts(part)] if isinstance(value, list) else []


def _add_errand(event: HookEvent, payload: Mapping[str, Any], arguments: Mapping[str, Any]) -> HookEvent:
    if not _starts_agent(event):
        return event
    texts = filter(None, (_text(arguments.get(key)) for key in ("description", "prompt")))
    errand = beginning_and_end("\n".join(texts), _HALF_PROMPT_LENGTH)
    call = _text(payload.get("tool_use_id"))
    return event.replace(errand=errand, errand_for=_text(arguments.get("subagent_type")), errand_call=call)


def _end_errand(event: HookEvent, payload: Mapping[str, Any]) -> HookEvent:
    """Add the call that started a sub-agent, unless the sub-agent works in the background: it may not have begun."""
    response = payload.get("tool_response")
    status = _text(response.get("status")) if isinstance(response, dict) else ""
    if not _starts_agent(event) or status == "async_launched" or whole_output(response).startswith(_IN_BACKGROUND):
        return event
    return event.replace(errand_call=_text(payload.get("tool_use_id")))


def _starts_agent(event: HookEvent) -> bool:
    client = registry.find(event.client or registry.DEFAULT)
    return client is not None and event.tool in client.errand_tools


def _result(event: HookEvent, payload: Mapping[str, Any], *, runs: bool) -> tuple[bool | None, str]:
    """Return whether a call failed (None if it neither failed nor succeeded), and its output.

    A call that was interrupted or denied, or that continues in the background, has neither failed nor succeeded.
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
    """Return whether a call failed, in Claude Code's format; None if it was interrupted or is still running."""
    if "tool_failed" in payload:  # our plugins add it
        failed = payload["tool_failed"]
        return failed if isinstance(failed, bool) else None
    arguments, response = (
        value if isinstance(value, dict) else {} for value in (payload.get("tool_input"), payload.get("tool_response"))
    )
    in_background = arguments.get("run_in_background") is True or response.get("backgroundTaskId")
    return None if in_background or response.get("interrupted") is True else False


def whole_output(response: object) -> str:
    """Return a tool's whole output."""
    if isinstance(response, dict):
        keys = ("llmContent", "stdout", "stderr", "error", "content", "output")
        return "\n".join(filter(None, (whole_output(response.get(key)) for key in keys)))
    if isinstance(response, list):
        return "\n".join(_text(part.get("text")) for part in response if isinstance(part, dict))
    return _text(response)


def first_value(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """Return the first value that is set under one of these keys."""
    return next((arguments[key] for key in keys if arguments.get(key)), None)


def command_line(command: object) -> str:
    """Return the command line in a string, in a list of words, or in the words that start a shell with a command."""
    if not isinstance(command, list):
        return command if isinstance(command, str) else ""
    words = [word for word in command if isinstance(word, str)]
    return words[2] if len(words) == 3 and words[1] in _SHELL_OPTIONS else " ".join(words)


def _files_patched_by(command: str) -> tuple[str, ...]:
    """Return the files that a command line patches; empty if it only prints a patch or writes one to a file."""
    before, begins, patch = command.partition("*** Begin Patch")
    return _list_patched(patch) if begins and "apply_patch" in before else ()


def _list_patched(patch: str) -> tuple[str, ...]:
    """Return the files in an `apply_patch` patch."""
    lines = (line.strip() for line in patch.split("\n"))
    return tuple(line.partition(": ")[2].strip() for line in lines if line.startswith(_PATCH_HEADINGS))


def _folder(around: str, name: str) -> str:
    """Return the real path of the folder in which a command runs."""
    if not around and not os.path.isabs(name):
        return ""
    try:
        return os.path.realpath(os.path.join(around, name))
    except ValueError:  # not a valid path
        return around


def _path(value: object) -> str:
    """Return a path; empty if it is not valid."""
    path = _text(value)
    try:
        return "" if b"\0" in os.fsencode(path) else path
    except UnicodeEncodeError:
        return ""


def _seconds(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and 0 <= value < _MAX_SECONDS else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
