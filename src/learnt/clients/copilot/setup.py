"""Set up Copilot CLI: hooks in a file of their own, the server in .mcp.json or, for the user, mcp-config.json.

A project's files are read from the repository's root, also if Copilot is started below it, but only if the folder is
trusted. A hook that fails before a call denies the call, so the command always succeeds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from learnt.clients import registry
from learnt.clients.kit import setup as kit
from learnt.clients.kit.json_file import WITH_COMMENTS, JsonFile, read_json, value_at

_TITLE = "Copilot CLI"
_FILE = f"{kit.NAME}.json"


def hooks(location: kit.Location) -> Mapping[str, Mapping[str, Any]]:
    """Return the hooks by event."""
    command = kit.hook_command(location, "copilot", cmd_on_windows=True)
    return {event: kit.hook(command, kit.TIMEOUT_S) for event in registry.get("copilot", "setup").events}


def targets(location: kit.Location) -> list[kit.Target]:
    """Return Copilot's settings files and the change to each."""
    hook_file = JsonFile(hooks=hooks(location), fresh={"version": 1})
    servers = JsonFile(servers="mcpServers", server=kit.server(location))
    if location.user:
        folder = user_folder(location)
        paths = os.path.join(folder, "hooks", _FILE), os.path.join(folder, "mcp-config.json")
    else:
        paths = os.path.join(location.root, ".github", "hooks", _FILE), os.path.join(location.root, ".mcp.json")
    return [kit.Target(path=path, edit=edit) for path, edit in zip(paths, (hook_file, servers), strict=True)]


def user_folder(location: kit.Location) -> str:
    """Return the folder with the user's own settings."""
    return location.home("COPILOT_HOME", ".copilot")


def other_settings(location: kit.Location) -> list[kit.Target]:
    """Return the other files that decide whether Copilot uses our settings."""
    return [kit.Target(path=path, edit=JsonFile(dialect=WITH_COMMENTS)) for path in _settings_files(location)]


def _settings_files(location: kit.Location) -> list[str]:
    here = os.path.join(location.root, ".github", "copilot")
    names = [os.path.join(here, "settings.local.json"), os.path.join(here, "settings.json")]
    return [*names, *_user_settings_files(location)]


def _user_settings_files(location: kit.Location) -> list[str]:
    return [os.path.join(user_folder(location), name) for name in ("settings.json", "config.json")]


def next_step(location: kit.Location) -> str:
    """Return the next step for the user after the files are written."""
    return f"restart {_TITLE}" + ("" if location.user else "; it asks once whether you trust the folder")


def find_switch(location: kit.Location, read: kit.Read) -> kit.Fault | None:
    """Return the setting that prevents Copilot from running our hooks; None if there is none.

    The setting can be in the file with our hooks, too. In the user's own settings it is documented, but version 1.0.102
    runs the hooks nevertheless.
    """
    hook_file = targets(location)[0].path
    for path in (hook_file, *_settings_files(location)):
        disabled = value_at(read_json(path, read, WITH_COMMENTS), ("disableAllHooks",))
        if disabled is True:
            remedy = "set `disableAllHooks` to false"
            fault = kit.switched_off(_TITLE, "`disableAllHooks` is true", path, remedy=remedy)
            return fault.replace(files=(path,)) if path in _user_settings_files(location) else fault
    return None


def find_faults(location: kit.Location, disk: kit.Disk) -> Iterator[kit.Fault]:
    """Yield what keeps Copilot from our server or our settings; it finds the latter by the repository's root."""
    if ".git" not in disk.names(location.root) and kit.find_trace("copilot", location, disk):
        yield from kit.below_root(_TITLE, location, again="learnt install copilot")
    path = os.path.join(user_folder(location), "settings.json")
    servers = value_at(read_json(path, disk.read, WITH_COMMENTS), ("disabledMcpServers",))
    if isinstance(servers, list) and kit.NAME in servers:
        remedy = f"`copilot mcp enable {kit.NAME}`"
        yield kit.server_off(_TITLE, f"`disabledMcpServers` lists `{kit.NAME}`", path, remedy=remedy)


def find_trust(location: kit.Location, targets: Sequence[kit.Target], disk: kit.Disk) -> kit.Trust:
    """Return whether Copilot trusts the project's folder, or one above it."""
    if location.user:
        return kit.Trust()
    record = os.path.join(user_folder(location), "config.json")
    folders = value_at(read_json(record, disk.read, WITH_COMMENTS), ("trustedFolders",))
    trusted = _is_below(location.root, folders if isinstance(folders, list) else [])
    is_used = bool(kit.find_trace("copilot", location, disk))
    if not trusted and not is_used:
        return kit.Trust()
    reason = "" if trusted else f"{_TITLE} does not trust {location.root}, and does not run its hooks"
    return kit.Trust(trusted=trusted, reason=reason, runs_none=True, record=record, matters=is_used)


def _is_below(root: str, folders: Sequence[object]) -> bool:
    inner = os.path.join(os.path.realpath(root), "")
    return any(inner.startswith(os.path.join(os.path.realpath(str(folder)), "")) for folder in folders)
