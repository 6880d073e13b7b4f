"""What time asks for: decay of the unused, and putting away what nobody used for long. Nothing is deleted."""

from __future__ import annotations

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
