"""Take a purged learning out of the learnings files of this worktree, so that the next update cannot bring it back."""

from __future__ import annotations

import os
from contextlib import contextmanager

from learnt.brief.learnings_file import purged
from learnt.errors import LearntError, TryAgain
from learnt.memory.accumulating import FILE, FOLDER_OF_GOALS, read_file
from learnt.memory.background import LOCK
from learnt.memory.filing import _replace
from learnt.project import STORE_FOLDER
from learnt.store.spool import Locked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from learnt.store import Store

_HURRIES = 5


@contextmanager
def nobody_writes_files(store: Store) -> Iterator[None]:
    """Keep updates away: one that has read the files would write the learning once more."""
    store.make_folder()
    with Locked(os.path.join(store.place.folder, LOCK), wait=False) as alone:
        if not alone:
            raise TryAgain(
                "the learnings files are being made, with the learning in them perhaps",
                hint="`learnt status` shows it; then run the same command again",
            )
        yield


def take_out_of_files(root: str, id: str, texts: Collection[str]) -> list[str]:
    """Take a learning out of the learnings files; return which could not be looked into, and why."""
    flaws = []
    for path in _files(root):
        try:
            _take_out(path, root, id, texts)
        except LearntError as error:
            flaws.append(f"not looked into for {id}: {error.message}; {error.hint}")
    return flaws


def _take_out(path: str, root: str, id: str, texts: Collection[str]) -> None:
    unfinished = f"{os.path.realpath(path)}.new"
    if os.path.lexists(unfinished):
        os.unlink(unfinished)  # left by an update that was killed
    for _ in range(_HURRIES):
        found = read_file(path, root)
        text = (found or b"").decode("utf-8")
        left = purged(text, id, texts)
        if found is None or left == text or _replace(path, root, found, left):
            return
    raise TryAgain(f"somebody keeps changing {path}", hint="save it, then run the same command again")


def _files(root: str) -> list[str]:
    folder = os.path.join(root, STORE_FOLDER)
    goals = os.path.join(folder, FOLDER_OF_GOALS)
    names = sorted(os.listdir(goals)) if os.path.isdir(goals) else []
    return [os.path.join(folder, FILE), *(os.path.join(goals, name) for name in names if name.endswith(".md"))]
