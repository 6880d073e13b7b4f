"""Merge the staging file, a topic file, their index or learnings.md of two branches, as git's merge driver.

The store, where there is one, tells what was consolidated and which texts are our own renderings. It is only read, and
without one, on another machine say, the three versions alone decide.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable
from functools import partial
from typing import Self

from learnt.consolidate.merge_entries import merge_entries, merge_index
from learnt.consolidate.topics import find_topic_files
from learnt.errors import LearntError, WrongRequest, cannot_write
from learnt.flow.context import Context, load_configuration, open_for_hook
from learnt.flow.documents import read_documents
from learnt.flow.staged import is_said, read_texts
from learnt.learnings_file.branches import merge_branches
from learnt.model import is_id
from learnt.project import STORE_FOLDER
from learnt.settings import Settings
from learnt.store import learnings, regenerations
from learnt.system.files import read_regular, replace_shared
from learnt.text.clean import clean
from learnt.text.entries import read_entries
from learnt.text.three_way import MergedText, merge_files

_MAX_BYTES = 50_000_000
_MODE = 0o666


class FileMerge:
    """Merges versions of a file, with what the store of their project knows."""

    def __init__(self, context: Context | None, settings: Settings) -> None:
        self._context = context
        self._settings = settings
        self._root = context.root if context and context.root else os.getcwd()

    @classmethod
    def open(cls, start: str) -> Self:
        """Return a merge for the project that contains a folder, with its store if it can be read."""
        try:
            context = open_for_hook(start)
            return cls(context, context.settings)
        except LearntError:
            return cls(None, load_configuration(start).settings)

    def close(self) -> None:
        """Close the store."""
        if self._context is not None:
            self._context.close()

    def merge(self, base: str, ours: str, theirs: str, path: str = "") -> int:
        """Merge three files into the second one; return in how many places a person has to choose.

        `path` is the file's path, which tells what it is; by default, that of `ours`.
        """
        versions = [_read(file) for file in (base, ours, theirs)]
        place = os.path.relpath(os.path.realpath(path or ours), os.path.realpath(self._root))
        merged = merge_files(versions[0], versions[1], versions[2], self._choose_merge(_normalise(place)))
        _write(ours, merged)
        return merged.conflicts

    def _choose_merge(self, path: str) -> Callable[[str, str, str], MergedText]:
        if STORE_FOLDER in path.split("/"):
            return partial(merge_branches, is_rendered=self._is_rendered)
        if path == _normalise(self._settings.consolidate_index_file):
            return merge_index
        if path == _normalise(self._settings.consolidate_staging_file):
            return partial(merge_entries, is_consolidated=self._is_consolidated)
        return merge_entries

    def _is_consolidated(self, id: str, text: str) -> bool:
        """Return whether an entry says only what its learning says, which stands in a topic file of this worktree."""
        if self._context is None or not is_id("learn", id):
            return False
        try:
            learning = learnings.find(self._context.store.database, id)
        except LearntError:
            return False
        if learning is None or not learning.topic_file:
            return False
        try:
            said = read_texts(next(read_entries(clean(text))))
            homes = find_topic_files(read_documents(self._context).topics)
            return id in homes and is_said(self._context.store.database, learning, said)
        except LearntError:
            return False

    def _is_rendered(self, id: str, text: str) -> bool:
        """Return whether a rendering has shown a learning with a text, which then nobody has written by hand."""
        if self._context is None or not id:
            return False
        try:
            return regenerations.was_shown(self._context.store.database, id, text)
        except LearntError:
            return False


def _normalise(path: str) -> str:
    return posixpath.normpath(path.replace(os.sep, "/"))


def _read(path: str) -> str:
    try:
        return read_regular(path, max_bytes=_MAX_BYTES).decode("utf-8", "surrogateescape")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise WrongRequest(f"cannot read {path}: {reason}", hint="name three versions of a file") from None


def _write(path: str, merged: MergedText) -> None:
    content = merged.text.encode("utf-8", "surrogateescape")
    try:
        replace_shared(os.path.abspath(path), (content,), mode=_MODE, durable=False)
    except OSError as error:
        raise cannot_write(path, error, hint="nothing was merged") from None
