"""What time asks for: decay of the unused, and putting away what nobody used for long. Nothing is deleted."""

from __future__ import annotations

import os

from learnt.errors import LearntError
from learnt.memory.stores import Stores
from learnt.model import Value
from learnt.store import learnings
from learnt.store.learnings import Change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.store import Store

_DAY_MS = 24 * 60 * 60 * 1000
_OLD_MS = 90 * _DAY_MS
_UNUSED_MS = 30 * _DAY_MS
_PROGRAM = "learnt"
_NOTE = "tidied"


class Tidied(Value):
    """What a tidying changed."""

    decayed: int = 0
    archived: int = 0


class Tidying(Stores):
    """What runs once a day."""

    def tidy(self) -> Tidied:
        """Let the unused lose confidence, and archive what is superseded or unproven and unused for long."""
        decayed = archived = 0
        for store in self.sound_stores():
            if not store.place.read_only:
                fewer, away = self._tidy(store)
                decayed, archived = decayed + fewer, archived + away
        return Tidied(decayed=decayed, archived=archived)

    def tidy_when_due(self) -> None:
        """Tidy if the last time was a day ago; a store that was never tidied starts to count now."""
        store = self.store
        if not os.path.isdir(store.place.folder) or store.database.read_only:
            return
        note = os.path.join(store.place.folder, _NOTE)
        now = self._clock()
        try:
            due = os.stat(note).st_mtime * 1000 <= now - _DAY_MS
        except OSError:
            due = False
        else:
            if not due:
                return
        try:
            os.close(os.open(note, os.O_CREAT | os.O_WRONLY, 0o600))
            os.utime(note, (now / 1000, now / 1000))  # first: of two that come by, one tidies
            if due:
                self.tidy()
        except (LearntError, OSError):
            return  # what is only tidy must not fail what somebody came for; tomorrow is another day

    def _tidy(self, store: Store) -> tuple[int, int]:
        from learnt.weigh.decay import PERIOD_MS, decayed
        from learnt.weigh.stage import stage

        now = self._clock()
        count = away = 0
        for learning in learnings.quiet(store.database, before=now - PERIOD_MS):
            with store.transaction():
                change = Change(what="decay", who=_PROGRAM, at=now)
                before, after = learnings.change(
                    store.database, learning.id, lambda one: dict(decayed(one, now)), change
                )
            count += after.version != before.version
            unused = (after.last_injected_at or after.created_at) < now - _UNUSED_MS
            if after.created_at < now - _OLD_MS and unused and not after.pinned and stage(after) != "proven":
                with store.transaction():
                    change = Change(what="archive", who=_PROGRAM, at=now, reason="old, unproven and long unused")
                    learnings.change(store.database, learning.id, lambda _: {"status": "archived"}, change)
                away += 1
        return count, away
