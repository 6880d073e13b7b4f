"""The errands of sub-agents that are about to start, in one small file each.

Claude Code states an errand when its agent calls the tool that starts a sub-agent; when the sub-agent starts, it states
only the sub-agent's kind. So the errand is kept in between. Sub-agents of a kind start in the order of their calls. A
call that was denied starts nobody: its errand is deleted after a while.
"""

from __future__ import annotations

import json
import os

from learnt.model import digest
from learnt.system.files import list_names, make_folders, read_own, remove_file, write_private

FOLDER = "errands"
_MAX_BYTES = 100_000
_KEPT_MS = 600_000


def keep(folder: str, conversation: str, agent: str, errand: str, *, at: int) -> None:
    """Keep the errand, without secrets, of a sub-agent of this kind that a conversation is about to start."""
    errands = os.path.join(folder, FOLDER)
    make_folders(errands)
    _list_fresh(errands, at)
    content = json.dumps({"agent": agent, "errand": errand}, ensure_ascii=False)
    name = f"{_prefix(conversation)}{at:015d}-{digest(content)[:8]}.json"
    write_private(os.path.join(errands, name), content)


def take(folder: str, conversation: str, agent: str, *, now: int) -> str:
    """Return the oldest errand for a sub-agent of this kind, which is then gone; empty if there is none."""
    errands = os.path.join(folder, FOLDER)
    for name in _list_fresh(errands, now):
        path = os.path.join(errands, name)
        kept = _read(path) if name.startswith(_prefix(conversation)) else {}
        if kept.get("agent") in ("", agent):
            remove_file(path)
            return str(kept.get("errand", ""))
    return ""


def _prefix(conversation: str) -> str:
    return f"{digest(conversation)[:16]}-"


def _list_fresh(errands: str, now: int) -> list[str]:
    """Return the names of the errands, oldest first within a conversation, and delete the old ones of all."""
    fresh = []
    for name in list_names(errands):
        at = name.split("-")[1:2]
        if at and at[0].isdecimal() and now - int(at[0]) < _KEPT_MS:
            fresh.append(name)
        else:
            remove_file(os.path.join(errands, name))
    return fresh


def _read(path: str) -> dict[str, object]:
    try:
        kept = json.loads(read_own(path, max_bytes=_MAX_BYTES))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}
