"""Claude Code: hooks and a permission in settings.json, the server in .mcp.json or, for the user, in .claude.json.

The permission covers the tools of our own server and no other: they read and write learnings alone, and without it a
run without a person could not use them. A rule that denies still wins over it.
"""

from __future__ import annotations

import os

from learnt.clients.setup.events import claude_hooks
from learnt.clients.setup.json_file import JsonFile
from learnt.clients.setup.shapes import Setting, Target, server

PERMISSION = "mcp__learnt__*"


def targets(setting: Setting) -> list[Target]:
    """Return the files that Claude Code reads."""
    settings = JsonFile(hooks=claude_hooks(setting), words={("permissions", "allow"): PERMISSION})
    servers = JsonFile(servers="mcpServers", server=server(setting))
    if not setting.user:
        return [
            Target(path=os.path.join(setting.root, ".claude", "settings.json"), edit=settings),
            Target(path=os.path.join(setting.root, ".mcp.json"), edit=servers),
        ]
    folder = setting.home("CLAUDE_CONFIG_DIR", ".claude")
    # Beside the folder, unless the folder was moved.
    state = folder if setting.places.get("CLAUDE_CONFIG_DIR") else os.path.dirname(folder)
    return [
        Target(path=os.path.join(folder, "settings.json"), edit=settings),
        Target(path=os.path.join(state, ".claude.json"), edit=servers),
    ]


def wants(setting: Setting) -> str:
    """Return what the client still wants from the user."""
    asks = "" if setting.user else "; it asks once whether you trust the folder and the server `learnt`"
    return f"start Claude Code (2.1 or newer) anew{asks}"
