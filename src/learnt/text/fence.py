"""Mark text as data: a fence around what an agent is given, which nothing inside can end."""

from __future__ import annotations

import re

NAME = "learnt-brief"
# What clients put around text that is not the agent's own.
QUOTING = (
    NAME,
    "system-reminder",
    "hook_context",
    "tool_result",
    "tool_output",
    "function_results",
    "local-command-stdout",
    "local-command-stderr",
    "command-message",
    "user-prompt",
    "quoted",
    "prompt",
)
# Compiled where it is first needed: few learnings hold a tag.
_TAG = rf"(?i)<(?=\s*/?\s*(?:{'|'.join(QUOTING)})\b)|<(?=!--)"


def fenced(text: str, id: str, *, name: str = NAME) -> str:
    """Return the text between an opening and a closing tag; `name` is one of QUOTING."""
    return f'<{name} id="{id}">\n{text.strip()}\n</{name}>\n' if text.strip() else ""


def harmless(text: str) -> str:
    """Return foreign text that can stand inside the fence: it cannot end it, open another, nor look like a heading."""
    return "\n".join(
        f"\\{line}" if line.lstrip().startswith(("#", "```", "~~~")) else line
        for line in without_tags(text).split("\n")
    )


def without_tags(text: str) -> str:
    """Return foreign text of several parts that can stand inside the fence; its headings stay."""
    return re.sub(_TAG, "‹", text) if "<" in text else text
