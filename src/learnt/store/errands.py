"""The errands of sub-agents that are about to start, in one small file each.

Claude Code states an errand when its agent calls the tool that starts a sub-agent; when the sub-agent starts, it states
only the sub-agent's kind. So the errand is kept in between, under the id of the call.

A sub-agent starts after its errand was kept. So if one errand is kept for its kind, that is its errand. If several are,
any of them may be, whatever their order. Then each of them is returned, and a start only uses one of them up: all are
deleted when the last one is. Which start uses up which file is decided by renaming the file, so no two use up the same.
An errand whose call is over or was denied is dropped, and any after a while.
"""

from __future__ import annotations

import json
import os

from learnt.model import digest
from learnt.system.files import list_names, make_folders, read_own, remove_file, rename, write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

FOLDER = "errands"
_MAX_BYTES = 100_000
_KEPT_MS = 600_000
_USED = ".used"


def keep(folder: str, conversation: str, agent: str, errand: str, *, call: str, at: int) -> None:
    """Keep the errand, without secrets, of a sub-agent of this kind that a call in a conversation is to start."""
    errands = os.path.join(folder, FOLDER)
    make_folders(errands)
    _list_fresh(errands, at)
    content = json.dumps({"agent": agent, "call": call, "errand": errand}, ensure_ascii=False)
    name = f"{_prefix(conversation)}{at:015d}-{digest(content)[:8]}.json"
    write_private(os.path.join(errands, name), content)


def list_calls(folder: str, conversation: str, agent: str, *, now: int) -> list[str]:
    """Return the calls whose errands a sub-agent of this kind may have; empty for a call without an id."""
    return [kept["call"] for kept in _read_for(folder, conversation, agent, now).values()]


def take(folder: str, conversation: str, agent: str, *, calls: Collection[str], now: int) -> list[str]:
    """Return the errands that a starting sub-agent of this kind may have, of which one is used up.

    `calls` are those that may have started it.
    """
    kept = _read_for(folder, conversation, agent, now)  # before a parallel start can use up the last one
    possible = {path: one["errand"] for path, one in kept.items() if one["call"] in calls}
    unused = [path for path in (*possible, *kept) if not path.endswith(_USED)]
    if not any(map(_use_up, unused)):
        return []
    if all(path.endswith(_USED) for path in _read_for(folder, conversation, agent, now)):
        for path in kept:
            _remove(path)
    return list(dict.fromkeys(possible.values()))


def drop(folder: str, conversation: str, *, call: str = "") -> None:
    """Delete the errand of a call; without a call, all errands of a conversation."""
    errands = os.path.join(folder, FOLDER)
    for name in list_names(errands):
        path = os.path.join(errands, name)
        if name.startswith(_prefix(conversation)) and (not call or _read(path).get("call") == call):
            _remove(path)


def _prefix(conversation: str) -> str:
    return f"{digest(conversation)[:16]}-"


def _read_for(folder: str, conversation: str, agent: str, now: int) -> dict[str, dict[str, str]]:
    """Return the errands of a conversation for sub-agents of this kind, or of no stated kind, by their files."""
    errands = os.path.join(folder, FOLDER)
    names = [name for name in _list_fresh(errands, now) if name.startswith(_prefix(conversation))]
    # A parallel start may have renamed a file since it was listed.
    kept = {path: _read(path) or _read(path + _USED) for path in (os.path.join(errands, name) for name in names)}
    return {path: one for path, one in kept.items() if one.get("agent") in ("", agent)}


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


def _read(path: str) -> dict[str, str]:
    try:
        kept = json.loads(read_own(path, max_bytes=_MAX_BYTES))
        return {key: str(kept[key]) for key in ("agent", "call", "errand")}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def _use_up(path: str) -> bool:
    """Rename a file; return False if a parallel start did it first."""
    try:
        rename(path, path + _USED)
    except FileNotFoundError:
        return False
    return True


def _remove(path: str) -> None:
    """Delete a file, whether it is used up or not."""
    remove_file(path)
    remove_file(path.removesuffix(_USED) + _USED)
