"""The clients: their names, events, tools, folders and modules.

This file contains plain data, because every hook loads it. A client's code is in the folder with its name, in up to
four modules: `run` (run it unattended), `hooks` (read tool results in its own format), `transcript` (read its
conversations) and `setup` (edit its settings). `load` imports a module when it is needed.
"""

from __future__ import annotations

from learnt.errors import WrongRequest
from learnt.model import EVERYTHING, GENERAL, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Unknown clients use Claude Code's format.
DEFAULT = "claude"
# Set by the clients in the shells that they give to their agents.
AGENT_VARIABLES = (
    "AGENT",
    "AI_AGENT",
    "CLAUDECODE",
    "CODEX_SANDBOX",
    "CODEX_THREAD_ID",
    "COPILOT_AGENT_SESSION_ID",
    "CURSOR_AGENT",
    "GEMINI_CLI",
    "GOOSE_TERMINAL",
    "LEARNT_TASK",
    "OPENCODE",
)
# The variables with the name of the conversation that a shell, or an MCP server, belongs to.
_CONVERSATION_VARIABLES = {
    "CODEX_THREAD_ID": "codex",
    "CLAUDE_CODE_SESSION_ID": "claude",
    "COPILOT_AGENT_SESSION_ID": "copilot",
}


class Client(Value):
    """The facts about a client that are needed without loading its modules."""

    name: str
    """The name under which its activity is stored."""
    title: str
    setup_name: str = ""
    """The name for `learnt install`, if it is different."""
    aliases: tuple[str, ...] = ()
    """Other names, such as the name that the client uses over MCP."""
    alias_prefix: str = ""
    """The beginning of the client's name over MCP, if the rest varies."""
    folder: str = ""
    """The folder with the client's modules, if it has another name."""
    offers: tuple[str, ...] = ()
    """The client's modules."""
    entry_variable: str = ""
    """The environment variable that tells hooks how the client was started, if there is one."""
    interactive_entries: tuple[str, ...] = ()
    """How a client is started in which a person types the prompts, as its hooks and transcripts call it."""
    folder_variables: tuple[str, ...] = ()
    """The environment variables that relocate the client's folders."""
    events: Mapping[str, str] = {}
    """Our kind of event for each event that is served, in the order in which `install` writes them."""
    tools: Mapping[str, str] = {}
    """The tools that `run` a command, or `edit` or `read` a file."""
    hears_before_call: bool = True
    """Whether the model sees a hook's answer before a call. If not, the answer must come with the result."""
    own_tools: tuple[str, ...] = ()
    """How the names of our server's tools begin, if the client asks a hook whether they are permitted."""
    briefs_at_first_prompt: bool = False
    """Whether what is said at the start of a conversation must come with its first prompt instead."""
    errand_tools: tuple[str, ...] = ()
    """The tools that start a sub-agent, if their calls are the only events with its errand."""
    call_keys: tuple[str, ...] = ()
    """What the client calls the session, and the thread of a sub-agent, in the metadata of a call over MCP."""
    shows_messages: bool = True
    """Whether the person sees a message in a hook's answer."""
    runs_hooks_of: str = ""
    """Another client whose hooks this client runs, too, so that one event may be sent to several hooks."""
    context_levels: tuple[str, ...] = ("nested",)
    """Where the client reads a text for the model in an answer: `top`, or `nested` in `hookSpecificOutput`."""
    adapts_events: bool = False
    """Whether `hooks.adapt_event` completes what is read from the client's events."""
    deny_format: str = "permission"
    """How a hook prevents a call: `permission` or `decision`."""
    tells_whole_turn: bool = False
    """Whether all words of a turn are told when it ends, even if a person cancels it, and not only the last ones."""
    stop_decision: str = ""
    """The decision with which a hook makes the agent go on at the end of a turn; empty if a hook cannot."""
    speaks_by_name: bool = False
    """Whether transcripts identify the agent by the client's name instead of `assistant`."""
    reports: str = ""
    """What the client reports about the price of a run: `cost`, `tokens`, or nothing."""
    keeps_database: bool = False
    """Whether the client stores its conversations in a database."""
    per_project: bool = False
    """Whether the client can be set up only in a project."""
    models_need_provider: bool = False
    """Whether models are written as `provider/model`."""
    loads: tuple[str, ...] = ()
    """The files with rules that the client gives to every conversation by itself, below the project's folder or below
    the user's (`~/`); a `*` stands for any text. Files that it reads only in some folders are not listed."""


_CLAUDE_EVENTS = {
    "SessionStart": "session",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "call",
    "PostToolUse": "result",
    "PostToolUseFailure": "result",
    "SubagentStart": "agent",
    "SubagentStop": "stop",
    "Stop": "stop",
    "StopFailure": "stop",
    "SessionEnd": "end",
}
# Codex has no separate events for failures.
_NOT_IN_CODEX = ("PostToolUseFailure", "StopFailure")
# Gemini CLI's `PreCompress` is omitted, because it is sent before every model call, with or without compression.
_GEMINI_EVENTS = {
    "SessionStart": "session",
    "BeforeAgent": "prompt",
    "BeforeTool": "call",
    "AfterTool": "result",
    "AfterAgent": "stop",
    "SessionEnd": "end",
}
# Copilot's `SubagentStart` is omitted, because its input has no event's name; a sub-agent's errand is a prompt to it.
_NOT_IN_COPILOT = ("SubagentStart", "StopFailure")
_EVERY_MODULE = ("run", "hooks", "transcript", "setup")

CLIENTS = (
    Client(
        name="claude",
        title="Claude Code",
        setup_name="claude-code",
        folder="claude_code",
        offers=("run", "transcript", "setup"),
        entry_variable="CLAUDE_CODE_ENTRYPOINT",
        interactive_entries=("cli", "claude-vscode", "claude-desktop"),
        folder_variables=("CLAUDE_CONFIG_DIR",),
        events=_CLAUDE_EVENTS,
        tools={
            **dict.fromkeys(("Bash", "PowerShell"), "run"),
            **dict.fromkeys(("Edit", "MultiEdit", "Write", "NotebookEdit"), "edit"),
            **dict.fromkeys(("Read", "NotebookRead"), "read"),
        },
        own_tools=("mcp__learnt__", "mcp__plugin_learnt_learnt__"),
        errand_tools=("Agent", "Task"),
        stop_decision="block",
        reports="cost",
        # AGENTS.md only where there is no CLAUDE.md
        loads=(
            *("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", ".claude/rules/*"),
            *("~/.claude/CLAUDE.md", "~/.claude/rules/*", "~/.claude/projects/*/memory/MEMORY.md"),
        ),
    ),
    Client(
        name="codex",
        title="Codex",
        aliases=("codex-cli", "codex-mcp-client"),
        offers=_EVERY_MODULE,
        interactive_entries=("codex_cli_rs", "codex-tui", "codex_vscode", "Codex Desktop"),
        folder_variables=("CODEX_HOME",),
        events={event: kind for event, kind in _CLAUDE_EVENTS.items() if event not in _NOT_IN_CODEX},
        tools={
            **dict.fromkeys(("exec_command", "shell", "shell_command", "local_shell"), "run"),
            "apply_patch": "edit",
        },
        call_keys=("sessionId", "threadId"),
        stop_decision="block",
        reports="tokens",
        loads=("AGENTS.md", "AGENTS.override.md", "~/.codex/AGENTS.md", "~/.codex/memories/memory_summary.md"),
    ),
    Client(
        name="gemini",
        title="Gemini CLI",
        aliases=("gemini-cli",),
        alias_prefix="gemini-cli-mcp-client",  # over MCP it appends the server's name
        offers=_EVERY_MODULE,
        folder_variables=("GEMINI_CLI_HOME",),
        events=_GEMINI_EVENTS,
        tools={
            "run_shell_command": "run",
            **dict.fromkeys(("write_file", "replace", "edit"), "edit"),
            "read_file": "read",
        },
        hears_before_call=False,
        briefs_at_first_prompt=True,  # when it resumes, it drops prompts that begin with the text of a hook
        deny_format="decision",
        stop_decision="deny",
        speaks_by_name=True,
        reports="tokens",
        loads=("GEMINI.md", "~/.gemini/GEMINI.md"),
    ),
    Client(
        name="opencode",
        title="opencode",
        offers=("run", "transcript", "setup"),
        folder_variables=("XDG_DATA_HOME", "XDG_CONFIG_HOME"),
        events=_CLAUDE_EVENTS,  # our plugin uses Claude Code's format
        shows_messages=False,
        tools={
            **dict.fromkeys(("bash", "shell"), "run"),
            **dict.fromkeys(("edit", "multiedit", "write", "patch", "apply_patch"), "edit"),
            "read": "read",
        },
        tells_whole_turn=True,
        keeps_database=True,
        reports="cost",
        models_need_provider=True,
        loads=("AGENTS.md", "~/.config/opencode/AGENTS.md"),  # CLAUDE.md only where there is no AGENTS.md
    ),
    Client(
        name="copilot",
        title="Copilot CLI",
        aliases=("copilot-cli", "github-copilot-cli"),
        offers=_EVERY_MODULE,
        folder_variables=("COPILOT_HOME",),
        events={
            **{event: kind for event, kind in _CLAUDE_EVENTS.items() if event not in _NOT_IN_COPILOT},
            "PreCompact": "compaction",
        },
        # Hooks get Claude Code's names, transcripts have Copilot's own; the last ones are those of VS Code.
        tools={
            **dict.fromkeys(("Bash", "PowerShell", "bash", "powershell", "run_in_terminal"), "run"),
            **dict.fromkeys(("Edit", "MultiEdit", "Write", "apply_patch", "create", "edit"), "edit"),
            **dict.fromkeys(("create_file", "replace_string_in_file", "insert_edit_into_file"), "edit"),
            **dict.fromkeys(("Read", "view", "read_file"), "read"),
        },
        # What a hook says before a call or at the start arrives late or apart, and is lost when it resumes.
        hears_before_call=False,
        briefs_at_first_prompt=True,
        shows_messages=False,
        runs_hooks_of="claude",
        context_levels=("top", "nested"),
        adapts_events=True,
        stop_decision="block",
        reports="tokens",
        loads=(
            *(".github/copilot-instructions.md", ".github/instructions/*", "AGENTS.md", "CLAUDE.md", "GEMINI.md"),
            *(".claude/rules/*", "~/.copilot/copilot-instructions.md", "~/.copilot/instructions/*"),
        ),
    ),
    Client(name="aider", title="aider", offers=("run", "setup"), reports="cost", per_project=True),
    Client(name="command", title="any other program", offers=("run",)),
)
# Every client can be run unattended.
NAMES = tuple(client.name for client in CLIENTS)
_BY_NAME = {alias: client for client in CLIENTS for alias in (client.name, client.setup_name, *client.aliases) if alias}
# What each tool does in all clients, by the tool's name in lower case.
TOOLS = {tool.lower(): does for client in CLIENTS for tool, does in client.tools.items()}
_READER = ("architecture", "infrastructure", GENERAL)
_PLANNER = ("architecture", "infrastructure", "security", "testing", GENERAL)
# The clients' built-in sub-agents, and the categories that each of them sees by default.
SUB_AGENTS: dict[str, tuple[str, ...]] = {
    # Claude Code; opencode uses some of the same names
    "general-purpose": (EVERYTHING,),
    "explore": _READER,
    "plan": _PLANNER,
    "statusline-setup": (GENERAL,),
    "claude-code-guide": (GENERAL,),
    # Codex
    "default": (EVERYTHING,),
    "worker": (EVERYTHING,),
    "explorer": _READER,
    # opencode
    "build": (EVERYTHING,),
    "general": (EVERYTHING,),
    "scout": _READER,
    # Gemini CLI
    "generalist": (EVERYTHING,),
    "codebase-investigator": _READER,
    "cli-help": (GENERAL,),
    "browser-agent": ("testing", GENERAL),
    # Copilot CLI
    "task": (EVERYTHING,),
    "research": _READER,
    "code-review": _PLANNER,
    "rubber-duck": _PLANNER,
    "security-review": ("architecture", "infrastructure", "security", GENERAL),
}
# The files with rules that any of the clients loads by itself.
LOADED_FILES = tuple(dict.fromkeys(file for client in CLIENTS for file in client.loads))
# The kind of each event in all clients.
KINDS = {event: kind for client in CLIENTS for event, kind in client.events.items()}
# The environment variables that relocate the clients' folders.
FOLDER_VARIABLES = ("HOME", "USERPROFILE", *(variable for client in CLIENTS for variable in client.folder_variables))


def tells_whole_turn(name: str) -> bool:
    """Return whether a client tells all words of a turn when it ends, so that they do not show what came last."""
    client = find(name)
    return client is not None and client.tells_whole_turn


def find(name: str) -> Client | None:
    """Return the client with this name or alias; None if it is unknown."""
    plain = name.strip().lower()
    if plain in _BY_NAME:
        return _BY_NAME[plain]
    prefixed = (client for client in CLIENTS if client.alias_prefix and plain.startswith(client.alias_prefix))
    return next(prefixed, None)


def client_name(name: str) -> str:
    """Return the name under which a client's activity is stored; an unknown name is only converted to lower case."""
    client = find(name)
    return client.name if client else name.strip().lower()


def loaded_files(name: str) -> tuple[str, ...]:
    """Return the files with rules that a client loads by itself; none for an unknown client."""
    client = find(name) if name else None
    return client.loads if client else ()


def setup_name(client: Client) -> str:
    """Return the name that `learnt install` uses for a client."""
    return client.setup_name or client.name


def setup_names() -> tuple[str, ...]:
    """Return the names that `learnt install` accepts."""
    return tuple(map(setup_name, that_offer("setup")))


def that_offer(module: str) -> tuple[Client, ...]:
    """Return the clients with this module."""
    return tuple(client for client in CLIENTS if module in client.offers)


def load(client: Client, module: str) -> Any:
    """Return one of a client's modules."""
    from importlib import import_module

    return import_module(f"learnt.clients.{client.folder or client.name}.{module}")


def get(name: str, module: str) -> Client:
    """Return the client with this name and module, or raise WrongRequest."""
    client = find(name)
    if client is None or module not in client.offers:
        names = ", ".join(client.name for client in that_offer(module))
        raise WrongRequest(f"there is no client `{name}`", hint=f"the clients are: {names}")
    return client


def recognise(event: str, payload: Mapping[str, Any]) -> str:
    """Return the client that sent an event, recognised by its fields and paths; empty if this is unclear."""
    path = payload.get("transcript_path")
    transcript = path.replace("\\", "/") if isinstance(path, str) else ""
    file = transcript.rpartition("/")[2]
    if (event in _GEMINI_EVENTS and event not in _CLAUDE_EVENTS) or "/.gemini/" in transcript:
        return "gemini"
    if ("turn_id" in payload and "model" in payload) or (file.startswith("rollout-") and file.endswith(".jsonl")):
        return "codex"
    if _is_of_copilot(payload, transcript):
        return "copilot"
    is_claude = "prompt_id" in payload or ("permission_mode" in payload and "turn_id" not in payload)
    return DEFAULT if is_claude or "/.claude/" in transcript else ""


def _is_of_copilot(payload: Mapping[str, Any], transcript: str) -> bool:
    """Return whether Copilot sent an event. Claude Code's events have no time, and other clients' name a transcript."""
    if not isinstance(payload.get("timestamp"), str) or "permission_mode" in payload:
        return False
    is_its_transcript = transcript.endswith("/events.jsonl") or "/github.copilot-chat/" in transcript.lower()
    return is_its_transcript or "tool_result" in payload or "transcript_path" not in payload


def is_interactive(name: str, environ: Mapping[str, str]) -> bool:
    """Return whether a hook's client takes its prompts from a person; False if the hook cannot know it."""
    client = find(name)
    return client is not None and environ.get(client.entry_variable) in client.interactive_entries


def conversation_of_shell(environ: Mapping[str, str], *, of: str = "") -> str:
    """Return the client and the conversation that an agent's shell belongs to, as hooks know it; empty if unknown.

    With `of`, only that client's conversation.
    """
    named = (
        f"{client} {environ[name]} "
        for name, client in _CONVERSATION_VARIABLES.items()
        if environ.get(name) and of in ("", client)
    )
    return next(named, "")


def conversation_of_call(name: str, metadata: Mapping[str, Any]) -> str:
    """Return the client and the conversation of a call over MCP, as hooks know it; empty if it is not stated."""
    client = find(name)
    keys = client.call_keys if client else ()
    session, *threads = (str(metadata.get(key) or "") for key in keys) if keys else ("",)
    sub_agent = next((thread for thread in threads if thread != session), "")
    return f"{client.name} {session} {sub_agent}" if client and session else ""
