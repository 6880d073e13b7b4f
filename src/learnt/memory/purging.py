"""Take a purged learning out of the learnings files of this worktree, so that the next update cannot bring it back."""

from __future__ import annotations

import os

from learnt.brief.learnings_file import purged
from learnt.errors import LearntError, TryAgain
from learnt.memory import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

_HURRIES = 5


def take_out_of_files(root: str, id: str, texts: Collection[str]) -> list[str]:
    """Take a learning out of the learnings files; return which could not be looked into, and why."""
    flaws = []
    for path in disk.paths(root):
        try:
            _take_out(path, root, id, texts)
        except LearntError as error:
            flaws.append(f"not looked into for {id}: {error.message}; {error.hint}")
    return flaws


def _take_out(path: str, root: str, id: str, texts: Collection[str]) -> None:
    if os.path.lexists(disk.unfinished(path)):
        os.unlink(disk.unfinished(path))  # left by an update that was killed
    for _ in range(_HURRIES):
        found = disk.read(path, root)
        text = (found or b"").decode("utf-8")
        left = purged(text, id, texts)
        if found is None or left == text or disk.replace(path, root, found, left):
            return
    raise TryAgain(f"somebody keeps changing {path}", hint="save it, then run the same command again")
