"""opencode: a plugin that hands events to `learnt hook`, and the server in opencode.json, which may hold comments."""

from __future__ import annotations

import json
import os

from learnt.clients.setup.json_file import JsonFile
from learnt.clients.setup.json_text import WITH_COMMENTS_AND_COMMAS
from learnt.clients.setup.shapes import TIMEOUT_S, Setting, Target
from learnt.clients.setup.whole_file import WholeFile

_TEMPLATE = os.path.join(os.path.dirname(__file__), "opencode_plugin.js")
_SCHEMA = "https://opencode.ai/config.json"


def targets(setting: Setting) -> list[Target]:
    """Return the files that opencode reads."""
    folder = setting.root
    if setting.user:
        folder = os.path.join(setting.home("XDG_CONFIG_HOME", ".config"), "opencode")
    plugins = os.path.join(folder, "plugin") if setting.user else os.path.join(folder, ".opencode", "plugin")
    edit = JsonFile(
        servers="mcp",
        server={"type": "local", "command": [*setting.program, "mcp"], "enabled": True},
        fresh={"$schema": _SCHEMA},
        dialect=WITH_COMMENTS_AND_COMMAS,
    )
    names = [os.path.join(folder, name) for name in ("opencode.json", "opencode.jsonc")]
    settings = next((path for path in names if os.path.exists(path)), names[0])
    return [
        Target(path=os.path.join(plugins, "learnt.js"), edit=WholeFile(text=plugin(setting))),
        Target(path=settings, edit=edit),
    ]


def plugin(setting: Setting) -> str:
    """Return the plugin's text."""
    with open(_TEMPLATE, encoding="utf-8") as file:
        text = file.read()
    words = json.dumps([*setting.program, "hook", "--client", "opencode"], ensure_ascii=False)
    return text.replace("__COMMAND__", words).replace("__TIMEOUT_MS__", str(TIMEOUT_S * 1000))


def wants(setting: Setting) -> str:
    """Return what the client still wants from the user."""
    return (
        "start opencode anew; on its first start with a plugin it fetches a package, and without a network waits for it"
    )
