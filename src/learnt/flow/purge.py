"""Permanent deletion, when a person asks for it: of a learning, or of the command that a brief warned of.

Nothing of it is left in the store, its history, the spool, the backups, the log, or the learnings files of this
worktree. Copies go first: as long as the store itself holds it, an interrupted purge can be repeated.

A person may also only dismiss a warning: it is shown again only if the command fails and another one replaces it again.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from learnt.errors import LearntError, TryAgain, WrongRequest
from learnt.flow import disk
from learnt.flow.context import Context
from learnt.learnings_file.write import remove_learning
from learnt.model import Brief, is_id
from learnt.store import BACKUPS_FOLDER, Store, learnings, mirror
from learnt.store.backup import purge_from_backups
from learnt.store.database import Database
from learnt.store.happened import get_brief
from learnt.store.missteps import Misstep
from learnt.store.purge import forget_missteps, purge_learning, purge_missteps, signs_in, texts_ever

_MOST_TRIES = 5


class Purge:
    """Deletes learnings for good."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    def learning(self, id: str) -> int:
        """Delete a learning for good; return how many backups held it.

        Interrupted, it can be repeated: traces are looked for even when the learning itself is gone. No file or
        branch brings it back.
        """
        own = [store for store in self._context.sound_stores() if not store.place.read_only]
        holding = [store for store in own if is_id("learn", id) and learnings.find(store.database, id)]
        holding = holding or [store for store in own if is_id("learn", id) and store.may_hold_traces(id)]
        if not holding:
            self._context.locate(id, writable=True)  # raises, with what is wrong
        with disk.locked(self._store):  # an update that has read the files would write the learning again
            return sum(self._purge_from(store, id) for store in holding)

    def _purge_from(self, store: Store, id: str) -> int:
        """Delete a learning from the files, then from its store: only the store knows which texts it had."""
        root = self._context.root
        with store.scrubbing(id):
            if root:
                self._context.remarks += _purge_from_files(root, id, texts_ever(store.database, id))
            with store.transaction():
                purge_learning(store.database, id)
            store.spool.forget(id)
            if store.place.address:
                mirror.discard(store.place)
            backups = os.path.join(store.place.folder, BACKUPS_FOLDER)
            return purge_from_backups(backups, lambda backup: _delete(backup, id))


class Warnings:
    """Dismisses or deletes what is known of a command that a brief warned of."""

    def __init__(self, context: Context) -> None:
        self._store = context.store

    def purge(self, brief: str) -> int:
        """Delete all that is kept of the command that a brief warned of; return how many backups held it."""
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
                mirror.discard(store.place)  # a worker may have made it again while the server still had it
        return backups

    def dismiss(self, brief: str) -> Misstep | None:
        """Dismiss the command that a brief warned of; None if that was done before."""
        store, warning = self._store, _get_warning(self._store, brief)
        with store.transaction():
            signs = signs_in(store.database, warning)
            known = forget_missteps(store.database, signs)
        if store.place.address:
            mirror.forget(store, signs)
        return known[0] if known else None

    def command_of(self, brief: str) -> str:
        """Return the command that a brief warned of."""
        return str(_get_warning(self._store, brief).receipt["failed"][0]["command"])


def _delete(database: Database, id: str) -> bool:
    """Delete a learning; say whether it was there."""
    if learnings.find(database, id) is None:
        return False
    purge_learning(database, id)
    return True


def _get_warning(store: Store, id: str) -> Brief:
    """Return a brief that warned of a command."""
    brief = get_brief(store.database, id)
    if not brief.receipt.get("failed"):
        raise WrongRequest(
            f"`{id}` warned of no command",
            hint="`learnt activity --what warning --ids` shows those that did; a learning has an id of its own",
        )
    return brief


def _purge_from_files(root: str, id: str, texts: Collection[str]) -> list[str]:
    """Take a learning out of the learnings files; return which could not be read, and why."""
    flaws = []
    for path in disk.paths(root):
        try:
            _purge_from_file(path, root, id, texts)
        except LearntError as error:
            flaws.append(f"not looked into for {id}: {error.message}; {error.hint}")
    return flaws


def _purge_from_file(path: str, root: str, id: str, texts: Collection[str]) -> None:
    if os.path.lexists(disk.unfinished(path)):
        os.unlink(disk.unfinished(path))  # left by an update that was killed
    for _ in range(_MOST_TRIES):
        content = disk.read(path, root)
        text = (content or b"").decode("utf-8")
        remaining = remove_learning(text, id, texts)
        if content is None or remaining == text or disk.replace(path, root, content, remaining):
            return
    raise TryAgain(f"somebody keeps changing {path}", hint="save it, then run the same command again")
