"""Commands that failed here, and that a person wants to hear no more of.

A person knows a misstep by the brief that warned of it. Forgotten, it is told of again only when it fails and another
command works in its place anew; purged, nothing of it is left in the store, nor in its copies.
"""

from __future__ import annotations

import os

from learnt.errors import LearntError, TryAgain, WrongRequest
from learnt.flow import disk
from learnt.learnings_file import purged
from learnt.store import BACKUPS_FOLDER, missteps
from learnt.store.happened import get_brief

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from learnt.model import Brief
    from learnt.store import Store
    from learnt.store.missteps import Misstep


def forget(store: Store, id: str) -> Misstep | None:
    """Forget what a brief warned of; None if that was done before."""
    brief = _warning(store, id)
    with store.transaction():
        signs = missteps.signs_in(store.database, brief)
        known = missteps.forget(store.database, signs)
    if store.place.address:
        from learnt.store import mirror

        mirror.forget(store, signs)
    return known[0] if known else None


def purge(store: Store, id: str) -> int:
    """Really delete what a brief warned of; return how many backups held it.

    The copies first: as long as the store itself holds it, a purge that was interrupted can be repeated.
    """
    from learnt.store.backup import purge_from_backups
    from learnt.store.mirror import throw_away

    brief = _warning(store, id)
    commands = [str(one["command"]) for one in brief.receipt["failed"]]
    signs = missteps.signs_in(store.database, brief)
    with store.scrubbing(id):
        backups = purge_from_backups(
            os.path.join(store.place.folder, BACKUPS_FOLDER), lambda backup: missteps.purge(backup, signs, commands)
        )
        for sign in signs:
            store.spool.drop(sign)
        if store.place.address:
            throw_away(store.place)
        with store.transaction():
            missteps.purge(store.database, signs, commands)
        if store.place.address:
            throw_away(store.place)  # a worker may have made it anew, while the server still knew
    return backups


def warned_of(store: Store, id: str) -> str:
    """Return the command that a brief warned of."""
    return str(_warning(store, id).receipt["failed"][0]["command"])


def _warning(store: Store, id: str) -> Brief:
    """Return a brief that warned of a command."""
    brief = get_brief(store.database, id)
    if not brief.receipt.get("failed"):
        raise WrongRequest(
            f"`{id}` warned of no command",
            hint="`learnt activity --what warning --ids` shows those that did; a learning has an id of its own",
        )
    return brief


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
