"""Change several files of a project together: all of them or, if somebody else has changed one meanwhile, none.

What is intended is written down first: the old and the new content of each file, then the note that says so. Each file
is replaced as a whole, right after its content has been compared with the old one. If the process is killed, the note
is still there, and the next process completes the change, or takes it back if a person has edited a file since:

    the last file was replaced                       nothing is left to do: the others were replaced before
    all files have their old or their new content    complete
    a file was edited                                take back; what a person wrote stays

The contents are kept as a backup after the change.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from learnt.errors import TryAgain
from learnt.model import Value
from learnt.system.files import (
    list_names,
    make_folders,
    read_own,
    remove_file,
    remove_tree,
    remove_unfinished,
    replace_file,
    replace_shared,
)

_MAX_BYTES = 20_000_000
_MAX_INTENT_BYTES = 500_000_000
"""It lists every entry of a run, and must be readable after a crash."""
_MODE = 0o644
_INTENT = "intent.json"
_MAX_BACKUPS = 20
Content = bytes | None
"""The content of a file; None if there is none."""
MergeBack = Callable[[str, bytes, bytes, Content], Content]
"""Returns a file without our change: of its path, our content, the present one and the one from before."""


class JournaledFile(Value):
    """The content of a file before and after a change."""

    path: str
    """In the project, with `/`."""
    before: Content
    after: Content


class Intent(Value):
    """A change of several files that was begun."""

    id: str
    changes: tuple[JournaledFile, ...]
    """In the order in which they are made."""
    detail: Mapping[str, Any] = {}
    """What else belongs to the change."""


class Journal:
    """The changes of files in one working tree; the caller holds a lock."""

    def __init__(self, folder: str, note: str, root: str) -> None:
        """`folder` has the backups, `note` is the path of the file that says that a change was begun."""
        self._folder = folder
        self._note = note
        self._root = root

    @property
    def is_pending(self) -> bool:
        """Whether a change was begun and neither completed nor taken back."""
        return os.path.lexists(self._note)

    def begin(self, intent: Intent) -> None:
        """Write down what is intended, durably."""
        place = os.path.join(self._folder, intent.id)
        make_folders(place)
        self._drop_old_backups()
        for number, change in enumerate(intent.changes):
            for name, content in (("before", change.before), ("after", change.after)):
                if content is not None:
                    replace_file(os.path.join(place, f"{number}.{name}"), content)
        files = [
            {"path": change.path, "before": _digest(change.before), "after": _digest(change.after)}
            for change in intent.changes
        ]
        record = json.dumps({"id": intent.id, "files": files, "detail": dict(intent.detail)}, ensure_ascii=False)
        replace_file(os.path.join(place, _INTENT), record.encode())
        make_folders(os.path.dirname(self._note))
        remove_unfinished(self._note, locked=True)
        replace_file(self._note, intent.id.encode())

    def apply(self, intent: Intent, *, merge_back: MergeBack) -> str:
        """Make the changes; return the path of a file that somebody else has changed, and then change nothing.

        If a file cannot be written, the changes are taken back, too, and OSError is raised. What somebody has edited
        meanwhile in a file that is taken back stays.
        """
        for number, change in enumerate(intent.changes):
            try:
                is_made = self._replace(change.path, change.before, change.after)
            except OSError:
                self._take_back(intent.changes[:number], merge_back)
                self.end()
                raise
            if not is_made:
                self._take_back(intent.changes[:number], merge_back)
                return change.path
        return ""

    def _take_back(self, changes: Sequence[JournaledFile], merge_back: MergeBack) -> None:
        for change in reversed(changes):
            if not self._replace(change.path, change.after, change.before):
                self._merge_back(change, merge_back)

    def _merge_back(self, change: JournaledFile, merge_back: MergeBack) -> None:
        """Take our change out of a file that somebody has edited since."""
        content = self.read_file(change.path)
        if change.after is not None and content is not None:
            kept = merge_back(change.path, change.after, content, change.before)
            if kept != content:
                self._replace(change.path, content, kept)

    def end(self) -> None:
        """Forget that a change was begun, because it was completed or taken back."""
        remove_file(self._note)

    def read_pending(self) -> Intent | None:
        """Return the change that was begun; None if there is none, or if it cannot be read and so was not begun."""
        try:
            return self.read(read_own(self._note, max_bytes=1_000).decode())
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def read(self, id: str) -> Intent:
        """Return a change by its id; raise OSError, ValueError, KeyError or TypeError if its backup is not whole."""
        if not id.replace("_", "").isalnum():
            raise ValueError(id)
        place = os.path.join(self._folder, id)
        record = json.loads(read_own(os.path.join(place, _INTENT), max_bytes=_MAX_INTENT_BYTES))
        changes = []
        for number, file in enumerate(record["files"]):
            contents: dict[str, Content] = {}
            for name in ("before", "after"):
                path = os.path.join(place, f"{number}.{name}")
                contents[name] = read_own(path, max_bytes=_MAX_BYTES) if file[name] else None
                if _digest(contents[name]) != file[name]:
                    raise ValueError(path)
            changes.append(JournaledFile(path=str(file["path"]), **contents))
        return Intent(id=id, changes=tuple(changes), detail=record["detail"])

    def complete(self, intent: Intent, *, was_replaced: Callable[[bytes], bool], merge_back: MergeBack) -> bool:
        """After a crash: complete a change, or take it back; return whether it was completed.

        `was_replaced` says of the last file, which somebody has edited, whether we had replaced it before. A file that
        is gone was replaced if all others were.
        """
        for change in intent.changes:
            self._remove_unfinished(change.path)
        contents = {change.path: self.read_file(change.path) for change in intent.changes}
        edited = [change for change in intent.changes if contents[change.path] not in (change.before, change.after)]
        last = intent.changes[-1]
        content = contents[last.path]
        others = [change for change in intent.changes[:-1] if change.before != change.after]
        is_last = not any(contents[change.path] == change.before for change in others)
        if content == last.after or (last in edited and is_last and (content is None or was_replaced(content))):
            return True
        if not edited:
            self._apply_rest(intent)
            return True
        for change in reversed(intent.changes):
            content = contents[change.path]
            if content == change.after and content != change.before:
                self._replace(change.path, content, change.before)
            elif change in edited:
                self._merge_back(change, merge_back)
        return False

    def _apply_rest(self, intent: Intent) -> None:
        """Make those changes that are not made yet."""
        for change in intent.changes:
            is_made = self.read_file(change.path) == change.after
            if not is_made and not self._replace(change.path, change.before, change.after):
                raise TryAgain(f"{change.path} is being changed", hint="save it, then run the same command again")

    def read_file(self, path: str) -> Content:
        """Return the content of a file in the project; None if there is none. Raise OSError for a link."""
        try:
            return read_own(self.locate(path), max_bytes=_MAX_BYTES)
        except FileNotFoundError:
            return None

    def locate(self, path: str) -> str:
        """Return the absolute path of a file in the project; raise ValueError if it leads out of it."""
        parts = path.split("/")
        if not path or path.startswith("/") or any(part in ("", ".", "..") or os.sep in part for part in parts):
            raise ValueError(f"`{path}` is no path in the project")
        return os.path.join(self._root, *parts)

    def _replace(self, path: str, before: Content, after: Content) -> bool:
        """Replace a file if its content is still the one from before."""
        if before == after:
            return True
        place = self.locate(path)
        if after is None:
            if self.read_file(path) != before:
                return False
            remove_file(place)
            return True
        make_folders(os.path.dirname(place), mode=0o777)
        remove_unfinished(place, locked=True)
        return replace_shared(place, (after,), mode=_MODE, is_unchanged=lambda: self.read_file(path) == before)

    def _remove_unfinished(self, path: str) -> None:
        place = self.locate(path)
        if os.path.isdir(os.path.dirname(place)):
            remove_unfinished(place, locked=True)

    def _drop_old_backups(self) -> None:
        for name in list_names(self._folder)[:-_MAX_BACKUPS]:
            remove_tree(os.path.join(self._folder, name))


def _digest(content: Content) -> str:
    return "" if content is None else sha256(content).hexdigest()
