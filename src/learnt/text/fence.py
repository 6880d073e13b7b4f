"""Mark text as data: a fence around what an agent is given, which nothing inside can end."""

from __future__ import annotations

import re

NAME = "learnt-brief"
_OWN_TAG = re.compile(rf"<(?=\s*/?\s*{NAME})", re.IGNORECASE)


def fenced(text: str, id: str) -> str:
    """Return the text between an opening and a closing tag of ours."""
    return f'<{NAME} id="{id}">\n{text.strip()}\n</{NAME}>\n' if text.strip() else ""


def harmless(text: str) -> str:
    """Return foreign text that can stand inside the fence: it cannot end it, nor look like a heading of ours."""
    text = _OWN_TAG.sub("‹", text)
    return "\n".join(
        f"\\{line}" if line.lstrip().startswith(("#", "```", "~~~")) else line for line in text.split("\n")
    )
