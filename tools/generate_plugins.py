"""Write the files in plugin/ that are generated from the code: the hooks, the server and the manifests.

`make docs` writes the files, and a test compares them with this module's output. The prose is written by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from learnt import __version__
from learnt.clients.claude_code import setup as claude_code
from learnt.clients.gemini import setup as gemini
from learnt.clients.kit.setup import NAME, Location, server

PLUGINS = Path(__file__).parent.parent / "plugin"
# https://agent-plugins.org: a manifest with a closed list of fields, and the server in a file of its own
_STANDARD = "https://agent-plugins.org/schemas/1.0.0"
_ABOUT = "Remembers what coding agents learn: briefs them before they work, debriefs them after it"
_ANYWHERE = Location(root="")


def files() -> dict[str, str]:
    """Return the generated files by path."""
    servers = {"mcpServers": {NAME: server(_ANYWHERE)}}
    contents: dict[str, Any] = {
        ".claude-plugin/marketplace.json": {
            "name": NAME,
            "owner": {"name": NAME},
            "plugins": [{"name": NAME, "source": "./claude-code", "description": _ABOUT}],
        },
        "claude-code/.claude-plugin/plugin.json": {"name": NAME, "version": __version__, "description": _ABOUT},
        "claude-code/hooks/hooks.json": _hooks(claude_code.hooks(_ANYWHERE)),
        "claude-code/.mcp.json": servers,
        "gemini/gemini-extension.json": {
            "name": NAME,
            "version": __version__,
            "description": _ABOUT,
            "contextFileName": "GEMINI.md",
            **servers,
        },
        "gemini/hooks/hooks.json": _hooks(gemini.hooks(_ANYWHERE)),
        "agent-plugin/plugin.json": {
            "$schema": f"{_STANDARD}/plugin.schema.json",
            "name": NAME,
            "version": __version__,
            "description": _ABOUT,
            "license": "MIT",
            "keywords": ["memory", "learnings"],
        },
        "agent-plugin/mcp.json": {
            "$schema": f"{_STANDARD}/mcp.schema.json",
            "mcpServers": {NAME: {"type": "stdio", **server(_ANYWHERE)}},
        },
    }
    return {path: json.dumps(content, indent=2) + "\n" for path, content in contents.items()}


def _hooks(hooks: Any) -> dict[str, Any]:
    return {"hooks": {event: [{"hooks": [handler]}] for event, handler in hooks.items()}}


def main() -> None:
    """Write the files."""
    for path, text in files().items():
        (PLUGINS / path).parent.mkdir(parents=True, exist_ok=True)
        (PLUGINS / path).write_text(text, encoding="utf-8")
        print(f"wrote plugin/{path}")


if __name__ == "__main__":
    main()
