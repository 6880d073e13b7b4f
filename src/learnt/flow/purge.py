"""Permanent deletion of a learning, or of the command that a brief warned about, at a person's request.

The data is removed from the store, its history, the spool, the backups, the log and this worktree's learnings files.
Copies are deleted first, so that an interrupted purge can be repeated as long as the store itself contains the data.

A person can also just dismiss a warning. The warning returns only if the command fails and is replaced again.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from learnt.errors import LearntError, TryAgain, WrongRequest
from learnt.flow import disk
from learnt.flow.context import Context
from learnt.flow.learnings import refuse_agent
from learnt.learnings_file.write import remove_learning
from learnt.model import Brief, is_id
from learnt.store import BACKUPS_FOLDER, Store, learnings, mirror
from learnt.store.backup import purge_from_backups
from learnt.store.database import Database
from learnt.store.happened import get_brief
from learnt.store.missteps import Misstep
from learnt.store.purge import (
    find_topic_file,
    forget_missteps,
    purge_learning,
    purge_missteps,
    signs_in,
    texts_ever,
)
from learnt.system.files import list_names, read_own, remove_tree

_MAX_TRIES = 5
_MAX_DOCUMENT_BYTES = 50_000_000


class Purge:
    """Deletes learnings permanently."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    def learning(self, id: str) -> int:
        """Delete a learning permanently; return how many backups contained it.

        An interrupted purge can be repeated: traces are searched for even if the learning itself is gone. No file or
        branch can restore the learning.
        """
        refuse_agent(self._context, "purge")
        own = [store for store in self._context.sound_stores() if not store.place.read_only]
        holding = [store for store in own if is_id("learn", id) and learnings.exists(store.database, id)]
        holding = holding or [store for store in own if is_id("learn", id) and store.may_hold_traces(id)]
        if not holding:
            self._context.locate(id, writable=True)  # raises with the reason
        with disk.locked(self._store):  # because a running update would write the learning again
            return sum(self._purge_from(store, id) for store in holding)

    def _purge_from(self, store: Store, id: str) -> int:
        """Delete a learning from the files, then from its store, which knows all versions of its text."""
        root = self._context.root
        with store.scrubbing(id):
            if root:
                self._context.remarks += _purge_from_files(root, id, texts_ever(store.database, id))
                self._context.remarks += self._find_in_documents(id)
            _purge_consolidations(store.place.folder, id)
            with store.transaction():
                purge_learning(store.database, id)
            store.spool.forget(id)
            if store.place.address:
                mirror.discard(store.place)
            backups = os.path.join(store.place.folder, BACKUPS_FOLDER)
            return purge_from_backups(backups, lambda backup: _delete(backup, id))

    def _find_in_documents(self, id: str) -> list[str]:
        """Return which documents of consolidation name the learning: they are the user's, and are not changed."""
        topic_file = find_topic_file(self._store.database, id)
        paths = {self._context.settings.consolidate_staging_file, topic_file} - {""}
        named = []
        for path in sorted(paths):
            try:
                content = read_own(os.path.join(self._context.root, path), max_bytes=_MAX_DOCUMENT_BYTES)
            except OSError:
                continue
            named += [f"{path} still has {id}: remove the entry there, too"] if id.encode() in content else []
        return named


def _purge_consolidations(folder: str, id: str) -> None:
    """Delete the backups and reports of consolidations that name a learning; these runs cannot be undone any more."""
    for part in ("consolidations", "reports"):
        place = os.path.join(folder, part)
        for name in list_names(place):
            path = os.path.join(place, name)
            files = [path] if not os.path.isdir(path) else [os.path.join(path, file) for file in list_names(path)]
            if any(id.encode() in read_own(file, max_bytes=_MAX_DOCUMENT_BYTES) for file in files):
                remove_tree(path)


class Warnings:
    """Dismisses or deletes the commands that briefs warned about."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    def purge(self, brief: str) -> int:
        """Delete all data about the command that a brief warned about; return how many backups contained it."""
        refuse_agent(self._context, "purge")
        store, warning = self._store, _get_warning(self._store, brief)
        commands = [str(failed["command"]) for failed in warning.receipt["failed"]]
        signs = signs_in(store.database, warning)
        with store.scrubbing(brief):
            backups = purge_from_backups(
                os.path.join(store.place.folder, BACKUPS_FOLDER), lambda backup: purge_missteps(backup, signs, commands)
            )
            for sign in signs:
                store.spool.drop(sign)
            if store.place.address:
                mirror.discard(store.place)
            with store.transaction():
                purge_missteps(store.database, signs, commands)
            if store.place.address:
                mirror.discard(store.place)  # a worker may have rebuilt it before the server was purged
        return backups

    def dismiss(self, brief: str) -> Misstep | None:
        """Dismiss the command that a brief warned about; return None if it was dismissed before."""
        refuse_agent(self._context, "hide")
        store, warning = self._store, _get_warning(self._store, brief)
        with store.transaction():
            signs = signs_in(store.database, warning)
            dismissed = forget_missteps(store.database, signs)
        if store.place.address:
            mirror.forget(store, signs)
        return dismissed[0] if dismissed else None

    def command_of(self, brief: str) -> str:
        """Return the command that a brief warned about."""
        return str(_get_warning(self._store, brief).receipt["failed"][0]["command"])


def _delete(database: Database, id: str) -> bool:
    """Delete a learning; return whether it existed."""
    if not learnings.exists(database, id):
        return False
    purge_learning(database, id)
    return True


def _get_warning(store: Store, id: str) -> Brief:
    """Return a brief that warned about a command; raise if it did not."""
    brief = get_brief(store.database, id)
    if not brief.receipt.get("failed"):
        raise WrongRequest(
            f"`{id}` did not warn about a command",
            hint="`learnt activity --what warning --ids` shows briefs that did; to purge a learning, pass its id",
        )
    return brief


def _purge_from_files(root: str, id: str, texts: Collection[str]) -> list[str]:
    """Remove a learning from the learnings files; return remarks on files that could not be read."""
    flaws = []
    for path in disk.paths(root):
        try:
            _purge_from_file(path, id, texts)
        except LearntError as error:
            flaws.append(f"not searched for {id}: {error.message}; {error.hint}")
    return flaws


def _purge_from_file(path: str, id: str, texts: Collection[str]) -> None:
    disk.remove_unfinished(path)
    for _ in range(_MAX_TRIES):
        content = disk.read(path)
        text = (content or b"").decode("utf-8")
        remaining = remove_learning(text, id, texts)
        if content is None or remaining == text or disk.replace(path, content, remaining):
            return
    raise TryAgain(f"{path} keeps changing", hint="save it, then run the same command again")
