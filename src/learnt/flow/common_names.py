"""Names that say nothing about a call, because many learnings or many of the project's files contain them.

The worker counts them when the names have changed, and once a week. It reads a bounded number of files, and leaves out
folders of dependencies and of generated files.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from learnt.flow.context import Context
from learnt.model import digest
from learnt.store import mined, names
from learnt.system.files import open_to_read
from learnt.text.times import WEEK_MS

_SOURCE = "names in files"
_MAX_FILES, _MAX_FILE_BYTES = 3_000, 200_000
_MAX_SHARE, _MIN_FILES = 0.05, 8
_LIMIT_S = 5.0
_SKIPPED = frozenset("node_modules venv env dist build target vendor __pycache__ site-packages coverage out".split())


def update_common_names(context: Context, *, limit_s: float = _LIMIT_S) -> int:
    """Find out which names are common, if they may have changed; return how many changed."""
    store, now = context.store, context.clock()
    if store.place.read_only or store.database.read_only:
        return 0
    listed = names.list_vouched(store.database, common_too=True)
    state = int(digest("\n".join(listed))[:8], 16)
    is_known = mined.size_read(store.database, _SOURCE) == state
    if not listed or (is_known and mined.read_at(store.database, _SOURCE) > now - WEEK_MS):
        return 0
    frequent = _find_frequent(context.root, listed, deadline=time.monotonic() + min(limit_s, _LIMIT_S))
    with store.transaction():
        mined.note_read(store.database, _SOURCE, size=state, task="", at=now)
        return names.mark_common(store.database, {*names.list_frequent(store.database), *frequent})


def _find_frequent(root: str, listed: Sequence[str], *, deadline: float) -> list[str]:
    """Return the names that stand in many of the files below a folder."""
    counts: Counter[str] = Counter()
    files = 0
    for text in _read_files(root) if root else ():
        files += 1
        counts.update(name for name in listed if name.rpartition(".")[2] in text)
        if files == _MAX_FILES or time.monotonic() > deadline:
            break
    most = max(_MIN_FILES, _MAX_SHARE * files)
    return [name for name, count in counts.items() if count > most]


def _read_files(root: str) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        for file in sorted(files):
            try:
                with open(os.path.join(folder, file), "rb", opener=open_to_read) as source:
                    content = source.read(_MAX_FILE_BYTES)
            except (OSError, ValueError):
                continue
            if b"\0" not in content:
                yield content.decode("utf-8", "replace")
