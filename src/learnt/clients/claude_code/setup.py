"""Set up Claude Code: hooks and a permission in settings.json, the server in .mcp.json or, for the user, .claude.json.

The permission covers only our server's tools, which read and write learnings. Without it, an unattended run could not
use them. A deny rule still overrides it. The hooks set a timeout, because Claude Code otherwise stops them one second
after the end of a session.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from learnt.clients import registry
from learnt.clients.kit import setup as kit
from learnt.clients.kit.json_file import JsonFile, read_json, value_at

PERMISSION = "mcp__learnt__*"


def hooks(location: kit.Location) -> Mapping[str, Mapping[str, Any]]:
    """Return the hooks by event."""
    command = kit.hook_command(location, "claude")
    return {event: kit.hook(command, kit.TIMEOUT_S) for event in registry.get("claude", "setup").events}


def targets(location: kit.Location) -> list[kit.Target]:
    """Return Claude Code's settings files and the change to each."""
    settings = JsonFile(hooks=hooks(location), words={("permissions", "allow"): PERMISSION})
    servers = JsonFile(servers="mcpServers", server=kit.server(location))
    if not location.user:
        return [
            kit.Target(path=os.path.join(location.root, ".claude", "settings.json"), edit=settings),
            kit.Target(path=os.path.join(location.root, ".mcp.json"), edit=servers),
        ]
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


def next_step(location: kit.Location) -> str:
    """Return the next step for the user after the files are written."""
    asks = "" if location.user else "; it asks once whether you trust the folder and the server `learnt`"
    return f"restart Claude Code (2.1 or newer){asks}"


def find_switch(location: kit.Location, read: kit.Read) -> kit.Fault | None:
    """Return the setting that prevents Claude Code from running our hooks; None if there is none."""
    here = os.path.join(location.root, ".claude")
    user = os.path.join(_user_folder(location), "settings.json")
    paths = [os.path.join(here, "settings.local.json"), os.path.join(here, "settings.json"), user]
    for path in paths:
        disabled = value_at(read_json(path, read), ("disableAllHooks",))
        if disabled is True:
            remedy = "set `disableAllHooks` to false"
            return kit.switched_off("Claude Code", "`disableAllHooks` is true", path, remedy=remedy)
        if disabled is False:
            break
    return None


def find_trust(location: kit.Location, targets: Sequence[kit.Target], disk: kit.Disk) -> kit.Trust:
    """Return whether the user has accepted the project's trust dialog."""
    if location.user:
        return kit.Trust()
    accepted = ("projects", location.root, "hasTrustDialogAccepted")
    return kit.Trust(trusted=value_at(read_json(_user_state(location), disk.read), accepted) is True or None)
