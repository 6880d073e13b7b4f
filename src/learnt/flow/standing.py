"""The standing learnings of an agent: what it is given where no task says what matters.

Read from every store along, by category, and chosen by the rule in `brief/standing`. A process that lives on goes by
what it has cached; only how often the chosen ones were shown is read anew each time, because a showing changes nothing
else about them.
"""

from __future__ import annotations

import threading

from learnt.brief.categories import named, seen_by, spellings
from learnt.brief.standing import Considered, StandingRules, choose
from learnt.model import PARAGRAPHS, Value
from learnt.store import learnings
from learnt.store.index import Filter
from learnt.weigh.confidence import impact, stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from learnt.flow.context import Context
    from learnt.model import Learning
    from learnt.store import Place, Store

# Beside those that are shown, so many times as many are read: some were given to another agent of the same task, and
# some say the same as another.
_SPARE = 4


class Looked(Value):
    """What was considered, the chosen ones first, and what the cache did for it."""

    considered: tuple[Considered, ...]
    hits: int = 0
    misses: int = 0
    age_s: float = 0.0

    @property
    def chosen(self) -> list[Learning]:
        """The learnings to tell, in their order."""
        return [one.learning for one in self.considered if not one.left_out]


def standing(
    context: Context, *, agent: str = "", limit: int | None = None, proven_only: bool = False, cached: bool = False
) -> list[Learning]:
    """Return the learnings that an agent should always know, in the order in which they are told.

    `proven_only`: only what is pinned or proven. `cached`: go by what this process has read before.
    """
    return look(context, agent=agent, limit=limit, proven_only=proven_only, cached=cached).chosen


def look(
    context: Context,
    *,
    agent: str,
    limit: int | None = None,
    proven_only: bool = False,
    known: Mapping[str, str] | None = None,
    taught_in: str = "",
    cached: bool = False,
) -> Looked:
    """Return the standing learnings and all that were considered.

    `known` gives a reason against those that the agent need not be told; `taught_in` is the conversation whose own
    learnings are not given back to it.
    """
    reasons = dict(known or {})
    told = Filter(exclude_ids=tuple(sorted(reasons)), exclude_task=taught_in or None)
    shelf = _Shelf(context, told, cached=cached and not proven_only, proven_only=proven_only)
    groups: dict[str, list[Learning]] = {}
    holders: dict[str, Store] = {}
    for category in seen_by(agent, context.settings.agents):
        groups[category] = []
        for store in context.sound_stores():
            fresh = [one for one in shelf.read(store, category) if one.id not in holders]
            holders.update((one.id, store) for one in fresh)
            groups[category] += fresh
    own = [one.id for group in groups.values() for one in group if taught_in and one.task == taught_in]
    reasons.update(dict.fromkeys(own, "learnt in this very conversation"))
    rules = StandingRules(
        per_category=context.settings.brief_per_category,
        min_confidence=context.settings.brief_confidence,
        most=limit,
        proven_only=proven_only,
    )
    found = choose(groups, rules, known=reasons, impact=impact, is_proven=lambda one: stage(one) == "proven")
    considered = _as_they_are_now(found, holders)
    return Looked(considered=tuple(considered), hits=shelf.hits, misses=shelf.misses, age_s=shelf.age_s)


def cache_state(context: Context) -> CacheState:
    """Return how the caches of this process for the stores of a memory did so far."""

    now, ttl_s = context.clock(), context.settings.cache_ttl_s
    state = CacheState(ttl_s=ttl_s)
    for store in context.sound_stores() if ttl_s else ():
        state = state.plus(cache_of(store.place, ttl_s=ttl_s).state(now))
    return state


class _Shelf:
    """Reads the foremost learnings of categories, from the cache where that may be.

    `told` leaves out what the agent need not be told.
    """

    def __init__(self, context: Context, told: Filter, *, cached: bool, proven_only: bool) -> None:
        self._settings = context.settings
        self._told = told
        self._most = _SPARE * context.settings.brief_per_category
        self._now_ms = context.clock()
        self._cached = cached and context.settings.cache_ttl_s > 0
        self._proven_only = proven_only
        self._spelt: dict[int, list[str]] = {}
        self._stamps: dict[int, tuple[object, ...]] = {}
        self._caches: set[LearningsCache] = set()
        self.hits = self.misses = 0

    @property
    def age_s(self) -> float:
        """How long ago the oldest of what it went by was read."""
        return max((cache.state(self._now_ms).age_s for cache in self._caches), default=0.0)

    def read(self, store: Store, category: str) -> Sequence[Learning]:
        """Return the foremost learnings of a category in a store; of those that may be told enough, if there are."""
        found = self._foremost(store, category)
        new = [one for one in found if one.id not in self._told.exclude_ids and one.task != self._told.exclude_task]
        if len(found) < self._most or len(new) >= self._settings.brief_per_category:
            return found
        passed_over = (*self._told.exclude_ids, *(one.id for one in found))
        return [*found, *self._from_store(store, category, self._told.replace(exclude_ids=passed_over))]

    def _foremost(self, store: Store, category: str) -> Sequence[Learning]:
        if not self._cached:
            return self._from_store(store, category, Filter())

        cache = cache_of(store.place, ttl_s=self._settings.cache_ttl_s)
        stamp = self._stamp(store)
        found = cache.get(category, stamp=stamp, now_ms=self._now_ms)
        if found is None:
            self.misses += 1
            return cache.set(category, self._from_store(store, category, Filter()), stamp=stamp, now_ms=self._now_ms)
        self.hits += 1
        self._caches.add(cache)
        return found

    def _stamp(self, store: Store) -> tuple[object, ...]:
        """Return what an entry counts under: the state of the store, and the settings that decide what is read."""
        if id(store) not in self._stamps:
            settings = self._settings
            read_by = (settings.brief_per_category, settings.brief_confidence, *sorted(named(settings.agents)))
            self._stamps[id(store)] = (learnings.stamp(store.database), *read_by)
        return self._stamps[id(store)]

    def _from_store(self, store: Store, category: str, which: Filter) -> list[Learning]:
        if id(store) not in self._spelt:
            self._spelt[id(store)] = learnings.categories(store.database)
        spelt = spellings(category, self._settings.agents, self._spelt[id(store)])
        gate = self._settings.brief_confidence
        which = which.replace(trusted_from=gate, in_categories=spelt)
        return learnings.foremost(store.database, which, limit=self._most, helpful_only=self._proven_only)


def _as_they_are_now(found: Sequence[Considered], holders: Mapping[str, Store]) -> list[Considered]:
    """Return what was considered, the chosen ones with where they are from and how often they were shown by now."""
    chosen = [one.learning.id for one in found if not one.left_out]
    uses: dict[str, int] = {}
    for store in {id(holders[one]): holders[one] for one in chosen}.values():
        uses |= learnings.uses(store.database, [one for one in chosen if holders[one] is store])
    return [
        one
        if one.left_out
        else one.replace(
            learning=one.learning.replace(
                times_injected=uses.get(one.learning.id, one.learning.times_injected),
                scope=holders[one.learning.id].place.scope,
            )
        )
        for one in found
    ]


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
