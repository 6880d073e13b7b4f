"""Set up Claude Code: hooks in settings.json, the server in .mcp.json or, for the user, .claude.json.

In the user's own settings a hook is a program with arguments, which Claude Code starts without a shell. A project's
settings are also read by colleagues without learnt, to whom Claude Code would show an error with every event, and by
Copilot, which ignores the arguments: there a hook is a line for a shell, which says nothing if learnt is missing. The
hooks set a timeout, because Claude Code otherwise stops them one second after the end of a session.

The permission for our server's tools, which read and write learnings, is in the user's own settings only: in a folder
that is not trusted, Claude Code ignores a project's permissions with a warning in every unattended run. A deny rule
still overrides it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from learnt.clients import registry
from learnt.clients.kit import setup as kit
from learnt.clients.kit.json_file import JsonFile, read_json, value_at

PERMISSION = "mcp__learnt__*"
# What an administrator prescribes; tests look elsewhere.
MANAGED = (
    "/etc/claude-code/managed-settings.json",
    "/Library/Application Support/ClaudeCode/managed-settings.json",
    "C:\\Program Files\\ClaudeCode\\managed-settings.json",
)
_TITLE = "Claude Code"
_ALLOWED = ("permissions", "allow")


def hooks(location: kit.Location) -> Mapping[str, Mapping[str, Any]]:
    """Return the hooks by event."""
    words = [*location.program, "hook", "--client", "claude"]
    handler = kit.hook(words[0] if location.user else kit.shell_line(words), kit.TIMEOUT_S)
    if location.user:
        handler["args"] = words[1:]
    return dict.fromkeys(registry.get("claude", "setup").events, handler)


def targets(location: kit.Location) -> list[kit.Target]:
    """Return Claude Code's settings files and the change to each."""
    servers = JsonFile(servers="mcpServers", server=kit.server(location))
    if not location.user:
        settings = JsonFile(hooks=hooks(location), outdated={_ALLOWED: PERMISSION})
        return [
            kit.Target(path=os.path.join(location.root, ".claude", "settings.json"), edit=settings),
            kit.Target(path=os.path.join(location.root, ".mcp.json"), edit=servers),
        ]
    settings = JsonFile(hooks=hooks(location), words={_ALLOWED: PERMISSION})
    return [
        kit.Target(path=os.path.join(_user_folder(location), "settings.json"), edit=settings),
        kit.Target(path=_user_state(location), edit=servers),
    ]


def _user_folder(location: kit.Location) -> str:
    return location.home("CLAUDE_CONFIG_DIR", ".claude")


def _user_state(location: kit.Location) -> str:
    folder = _user_folder(location)
    # The file is next to the folder, or inside it if CLAUDE_CONFIG_DIR is set.
    parent = folder if location.variables.get("CLAUDE_CONFIG_DIR") else os.path.dirname(folder)
    return os.path.join(parent, ".claude.json")


def _settings_files(location: kit.Location) -> list[str]:
    """Return the settings files that Claude Code reads in a project, the nearest first."""
    here = os.path.join(location.root, ".claude")
    names = (os.path.join(here, "settings.local.json"), os.path.join(here, "settings.json"))
    return [*names, os.path.join(_user_folder(location), "settings.json")]


def other_settings(location: kit.Location) -> list[kit.Target]:
    """Return the other files that decide whether Claude Code uses our settings."""
    return [kit.Target(path=path, edit=JsonFile()) for path in (*_settings_files(location), _user_state(location))]


def next_step(location: kit.Location) -> str:
    """Return the next step for the user after the files are written."""
    step = f"restart {_TITLE} (2.1 or newer)"
    if location.user:
        return step
    asks = "it asks once whether you trust the folder and the server `learnt`: choose to use it"
    return f"{step}; {asks}{kit.start_at_root(_TITLE, location)}"


def find_switch(location: kit.Location, read: kit.Read) -> kit.Fault | None:
    """Return the setting that prevents Claude Code from running our hooks; None if there is none."""
    for path in _settings_files(location):
        disabled = value_at(read_json(path, read), ("disableAllHooks",))
        if disabled is True:
            remedy = "set `disableAllHooks` to false"
            return kit.switched_off(_TITLE, "`disableAllHooks` is true", path, remedy=remedy)
        if disabled is False:
            break
    return None


def find_faults(location: kit.Location, disk: kit.Disk) -> Iterator[kit.Fault]:
    """Yield what keeps Claude Code from our server, hooks or settings, and a plugin that does the same again."""
    if kit.find_trace("claude", location, disk):
        yield from kit.below_root(_TITLE, location, again="learnt install claude-code")
    yield from _find_disabled_server(location, disk)
    for path in MANAGED:
        for switch in ("allowManagedHooksOnly", "disableAllHooks"):
            if value_at(read_json(path, disk.read), (switch,)) is True:
                remedy = "ask your administrator to allow the hooks; the server works without them"
                yield kit.switched_off(_TITLE, f"`{switch}` is true", path, remedy=remedy)
    for path in _settings_files(location):
        plugins = value_at(read_json(path, disk.read), ("enabledPlugins",))
        for name, enabled in plugins.items() if isinstance(plugins, dict) else ():
            if name.partition("@")[0] == kit.NAME and enabled is True:
                detail = f"the plugin `{name}` ({path}) does the same, so that every hook runs twice"
                remedy = f"`claude plugin uninstall {name}`, or `learnt uninstall claude-code`"
                yield kit.Fault(detail=detail, remedy=remedy)


def _find_disabled_server(location: kit.Location, disk: kit.Disk) -> Iterator[kit.Fault]:
    """Yield where our server is switched off: the dialog about a project's servers does so if nobody ticks it."""
    state = _user_state(location)
    places = [(path, read_json(path, disk.read)) for path in _settings_files(location)]
    places.append((state, value_at(read_json(state, disk.read), ("projects", location.root))))
    name = "disabledMcpServers" if location.user else "disabledMcpjsonServers"
    for path, settings in places:
        servers = value_at(settings, (name,))
        if isinstance(servers, list) and kit.NAME in servers:
            remedy = f"take `{kit.NAME}` out of `{name}` in {path}, or enable it under `/mcp` in Claude Code"
            yield kit.server_off(_TITLE, f"`{name}` lists `{kit.NAME}`", path, remedy=remedy)


def find_trust(location: kit.Location, targets: Sequence[kit.Target], disk: kit.Disk) -> kit.Trust:
    """Return whether the user has accepted the trust dialog for the project or a folder above it."""
    if location.user:
        return kit.Trust()
    projects = value_at(read_json(_user_state(location), disk.read), ("projects",))
    answers = [value_at(projects, (folder, "hasTrustDialogAccepted")) for folder in kit.folders_up(location.root)]
    if answers[0] is False and True not in answers:
        reason = f"Claude Code does not trust {location.root}, and does not run its hooks while a person uses it"
        return kit.Trust(trusted=False, reason=reason, runs_none=True)
    return kit.Trust(trusted=True in answers or None)
