"""Set up Gemini CLI: hooks and the server in settings.json, which can contain comments.

The server is marked as trusted, because Gemini CLI otherwise does not offer its tools in an unattended run. Timeouts
are in milliseconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from learnt.clients import registry
from learnt.clients.kit import setup as kit
from learnt.clients.kit.json_file import WITH_COMMENTS, JsonFile, read_json, value_at

_TITLE = "Gemini CLI"


def hooks(location: kit.Location) -> Mapping[str, Mapping[str, Any]]:
    """Return the hooks by event."""
    command = kit.hook_command(location, "gemini", cmd_on_windows=True)
    events = registry.get("gemini", "setup").events
    return {event: {"name": kit.NAME, **kit.hook(command, kit.TIMEOUT_S * 1000)} for event in events}


def targets(location: kit.Location) -> list[kit.Target]:
    """Return Gemini CLI's settings file and the change to it."""
    edit = JsonFile(
        hooks=hooks(location),
        servers="mcpServers",
        server={**kit.server(location), "trust": True},
        dialect=WITH_COMMENTS,
    )
    return [kit.Target(path=_settings(_user_folder(location) if location.user else location.root), edit=edit)]


def _user_folder(location: kit.Location) -> str:
    return location.variables.get("GEMINI_CLI_HOME") or location.home("HOME")


def _settings(folder: str) -> str:
    return os.path.join(folder, ".gemini", "settings.json")


def other_settings(location: kit.Location) -> list[kit.Target]:
    """Return the other files that decide whether Gemini CLI uses our settings."""
    home = os.path.join(_user_folder(location), ".gemini")
    edit = JsonFile(dialect=WITH_COMMENTS)
    return [kit.Target(path=os.path.join(home, name), edit=edit) for name in ("settings.json", "trustedFolders.json")]


def next_step(location: kit.Location) -> str:
    """Return the next step for the user after the files are written."""
    if location.user:
        return f"restart {_TITLE}"
    below = kit.start_at_root(_TITLE, location)
    return f"restart {_TITLE}; the folder must be trusted (`/permissions`){below}"


def find_switch(location: kit.Location, read: kit.Read) -> kit.Fault | None:
    """Return the setting that prevents Gemini CLI from running our hooks; None if there is none."""
    paths = [_settings(folder) for folder in (location.root, _user_folder(location))]
    switches = {path: value_at(read_json(path, read, WITH_COMMENTS), ("hooksConfig",)) for path in paths}
    for path, switch in switches.items():
        enabled = value_at(switch, ("enabled",))
        if enabled is False:
            remedy = "set `hooksConfig.enabled` to true"
            return kit.switched_off(_TITLE, "`hooksConfig.enabled` is false", path, remedy=remedy)
        if enabled is True:
            break
    for path, switch in switches.items():  # the lists in all settings files apply
        names = value_at(switch, ("disabled",))
        if isinstance(names, list) and kit.NAME in names:
            remedy = f"take `{kit.NAME}` out of `hooksConfig.disabled`"
            return kit.switched_off(_TITLE, f"`hooksConfig.disabled` lists `{kit.NAME}`", path, remedy=remedy)
    return None


def find_faults(location: kit.Location, disk: kit.Disk) -> Iterator[kit.Fault]:
    """Yield what keeps Gemini CLI from our server or our settings, and an extension that does the same again."""
    if kit.find_trace("gemini", location, disk):
        yield from kit.below_root(_TITLE, location, again="learnt install gemini")
    home = os.path.join(_user_folder(location), ".gemini")
    switches = os.path.join(home, "mcp-server-enablement.json")
    if value_at(read_json(switches, disk.read), (kit.NAME, "enabled")) is False:
        remedy = f"`/mcp enable {kit.NAME}` in Gemini CLI"
        yield kit.server_off(_TITLE, f"`{kit.NAME}` is disabled", switches, remedy=remedy)
    for path in (_settings(location.root), _settings(_user_folder(location))):
        servers = value_at(read_json(path, disk.read, WITH_COMMENTS), ("mcp",))
        excluded, allowed = (value_at(servers, (name,)) for name in ("excluded", "allowed"))
        if isinstance(excluded, list) and kit.NAME in excluded:
            remedy = f"take `{kit.NAME}` out of `mcp.excluded`"
            yield kit.server_off(_TITLE, f"`mcp.excluded` lists `{kit.NAME}`", path, remedy=remedy)
        elif isinstance(allowed, list) and kit.NAME not in allowed:
            remedy = f"add `{kit.NAME}` to `mcp.allowed`"
            yield kit.server_off(_TITLE, f"`mcp.allowed` does not list `{kit.NAME}`", path, remedy=remedy)
    extension = os.path.join(home, "extensions", kit.NAME)
    if disk.names(extension):
        detail = f"the extension in {extension} does the same, so that every hook runs twice"
        yield kit.Fault(detail=detail, remedy="`gemini extensions uninstall learnt`, or `learnt uninstall gemini`")


def find_trust(location: kit.Location, targets: Sequence[kit.Target], disk: kit.Disk) -> kit.Trust:
    """Return whether Gemini CLI trusts the project's folder; it must, unless the user has turned that off."""
    if location.user:
        return kit.Trust()
    record = os.path.join(_user_folder(location), ".gemini", "trustedFolders.json")
    trusted = _trusts(location.root, read_json(record, disk.read))
    own = read_json(_settings(_user_folder(location)), disk.read, WITH_COMMENTS)
    is_used = bool(kit.find_trace("gemini", location, disk))
    if trusted is None and (not is_used or value_at(own, ("security", "folderTrust", "enabled")) is False):
        return kit.Trust()
    reason = "" if trusted else f"{_TITLE} does not trust {location.root}, and does not run its hooks"
    return kit.Trust(
        trusted=bool(trusted),
        reason=reason,
        runs_none=True,
        record=record,
        refused=trusted is False,
        matters=is_used,
    )


def _trusts(root: str, levels: object) -> bool | None:
    """Return whether a folder, or the nearest folder above it with a trust level, is trusted; None if unknown."""
    trusted: dict[str, bool] = {}
    for path, level in levels.items() if isinstance(levels, dict) else ():
        trusted[os.path.dirname(path) if level == "TRUST_PARENT" else path] = level != "DO_NOT_TRUST"
    return next((trusted[folder] for folder in kit.folders_up(root) if folder in trusted), None)
