"""Gemini CLI: hooks and the server in settings.json, which may hold comments.

The server is trusted: without that, Gemini CLI does not even offer its tools in a run without a person.
"""

from __future__ import annotations

import os

from learnt.clients.setup.events import gemini_hooks
from learnt.clients.setup.json_file import JsonFile
from learnt.clients.setup.json_text import WITH_COMMENTS
from learnt.clients.setup.shapes import Setting, Target, server


def targets(setting: Setting) -> list[Target]:
    """Return the files that Gemini CLI reads."""
    folder = setting.root
    if setting.user:
        folder = setting.places.get("GEMINI_CLI_HOME") or setting.home("HOME")
    edit = JsonFile(
        hooks=gemini_hooks(setting),
        servers="mcpServers",
        server={**server(setting), "trust": True},
        dialect=WITH_COMMENTS,
    )
    return [Target(path=os.path.join(folder, ".gemini", "settings.json"), edit=edit)]


def wants(setting: Setting) -> str:
    """Return what the client still wants from the user."""
    return "start Gemini CLI anew" + ("" if setting.user else "; the folder must be trusted (`/permissions`)")
