"""One name for each agent client, however it calls itself: when it is installed, in its hooks, or over MCP."""

from __future__ import annotations

_OTHERWISE = {"claude-code": "claude", "codex-mcp-client": "codex", "gemini-cli": "gemini"}
# Over MCP it adds the server's name.
_GEMINI = "gemini-cli-mcp-client"


def client_name(name: str) -> str:
    """Return the name under which what a client does is kept; that of an unknown one as it is."""
    plain = name.strip().lower()
    if plain.startswith(_GEMINI):
        return "gemini"
    return _OTHERWISE.get(plain, plain)
