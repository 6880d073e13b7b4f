"""What a process that lives on remembers of a store: the foremost learnings of each category.

Nothing stale is handed out: an entry counts only while the store's stamp, which every change of a learning renews, is
the one that it was read under, and no longer than the setting `cache_ttl_s` says. It belongs to the process and the
place of the store, so that it outlives connections; hooks, which end at once, do not use it. What goes in holds no
secrets, and threads may share it.
"""

from __future__ import annotations

import threading

from learnt.model import PARAGRAPHS, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from learnt.model import Learning
    from learnt.store import Place

_REDACTED = ("title", *PARAGRAPHS, "tags", "triggers", "domain", "category", "goal", "task", "discovery", "commit")


class CacheState(Value):
    """How a cache did so far."""

    hits: int = 0
    misses: int = 0
    categories: int = 0
    """How many it holds now."""
    learnings: int = 0
    age_s: float = 0.0
    """How long ago the oldest of them was read."""
    ttl_s: int = 0

    def plus(self, other: CacheState) -> CacheState:
        """Return both together."""
        return CacheState(
            hits=self.hits + other.hits,
            misses=self.misses + other.misses,
            categories=self.categories + other.categories,
            learnings=self.learnings + other.learnings,
            age_s=max(self.age_s, other.age_s),
            ttl_s=max(self.ttl_s, other.ttl_s),
        )


class LearningsCache:
    """The learnings of each category as they were read at one time, all under one stamp."""

    def __init__(self, ttl_s: int = 300) -> None:
        self._ttl_ms = ttl_s * 1000
        self._lock = threading.Lock()
        self._stamp: Hashable = None
        self._held: dict[str, tuple[tuple[Learning, ...], int]] = {}
        self._hits = self._misses = 0

    def get(self, category: str, *, stamp: Hashable, now_ms: int) -> tuple[Learning, ...] | None:
        """Return the learnings of a category, or None when they must be read; at another stamp all are let go."""
        with self._lock:
            if stamp != self._stamp:
                self._held, self._stamp = {}, stamp
            found = self._held.get(category)
            if found is None or not 0 <= now_ms - found[1] < self._ttl_ms:
                self._misses += 1
                return None
            self._hits += 1
            return found[0]

    def set(
        self, category: str, learnings: Sequence[Learning], *, stamp: Hashable, now_ms: int
    ) -> tuple[Learning, ...]:
        """Keep the learnings that were read after the stamp was; return them as they are kept, without secrets."""
        safe = tuple(map(without_secrets, learnings))
        with self._lock:
            if stamp == self._stamp:  # else another thread has seen a newer one meanwhile
                self._held[category] = (safe, now_ms)
        return safe

    def state(self, now_ms: int) -> CacheState:
        """Return how it did so far, and what it holds."""
        with self._lock:
            held = list(self._held.values())
            return CacheState(
                hits=self._hits,
                misses=self._misses,
                categories=len(held),
                learnings=sum(len(learnings) for learnings, _ in held),
                age_s=max((max(0, now_ms - at) / 1000 for _, at in held), default=0.0),
                ttl_s=self._ttl_ms // 1000,
            )


_caches: dict[tuple[str, str, int], LearningsCache] = {}
_caches_lock = threading.Lock()


def cache_of(place: Place, *, ttl_s: int) -> LearningsCache:
    """Return the cache that this process has for a store."""
    key = (place.address or place.path, place.project, ttl_s)
    with _caches_lock:
        return _caches.setdefault(key, LearningsCache(ttl_s))


def without_secrets(learning: Learning) -> Learning:
    """Return a learning as it would have been stored had it come in now; what is stored holds no secrets already."""
    from learnt.text.records import as_record, read_fields
    from learnt.text.records import without_secrets as redacted

    record = as_record(learning)
    safe, count = redacted({name: record[name] for name in _REDACTED})
    return learning.replace(**read_fields(safe)) if count else learning
