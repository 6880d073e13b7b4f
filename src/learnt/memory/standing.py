"""The standing learnings of an agent: what it is given where no task says what matters.

Read from every store along, by category, and chosen by the rule in `brief/standing`. A process that lives on goes by
what it has cached; only how often the chosen ones were shown is read anew each time, because a showing changes nothing
else about them.
"""

from __future__ import annotations

from learnt.brief.categories import named, seen_by, spellings
from learnt.brief.standing import Considered, Rules, choose
from learnt.model import Value
from learnt.store import learnings
from learnt.store.learnings import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from learnt.memory.caching import CacheState, LearningsCache
    from learnt.memory.stores import Stores
    from learnt.model import Learning
    from learnt.store import Store

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
    memory: Stores, *, agent: str = "", limit: int | None = None, proven_only: bool = False, cached: bool = False
) -> list[Learning]:
    """Return the learnings that an agent should always know, in the order in which they are told.

    `proven_only`: only what is pinned or proven. `cached`: go by what this process has read before.
    """
    return look(memory, agent=agent, limit=limit, proven_only=proven_only, cached=cached).chosen


def look(
    memory: Stores,
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
    from learnt.weigh.impact import impact
    from learnt.weigh.stage import stage

    reasons = dict(known or {})
    told = Filter(exclude_ids=tuple(sorted(reasons)), exclude_task=taught_in or None)
    shelf = _Shelf(memory, told, cached=cached and not proven_only, proven_only=proven_only)
    groups: dict[str, list[Learning]] = {}
    holders: dict[str, Store] = {}
    for category in seen_by(agent, memory.settings.agents):
        groups[category] = []
        for store in memory.sound_stores():
            fresh = [one for one in shelf.read(store, category) if one.id not in holders]
            holders.update((one.id, store) for one in fresh)
            groups[category] += fresh
    own = [one.id for group in groups.values() for one in group if taught_in and one.task == taught_in]
    reasons.update(dict.fromkeys(own, "learnt in this very conversation"))
    rules = Rules(
        per_category=memory.settings.brief_per_category,
        min_confidence=memory.settings.brief_confidence,
        most=limit,
        proven_only=proven_only,
    )
    found = choose(groups, rules, known=reasons, impact=impact, is_proven=lambda one: stage(one) == "proven")
    considered = _as_they_are_now(found, holders)
    return Looked(considered=tuple(considered), hits=shelf.hits, misses=shelf.misses, age_s=shelf.age_s)


def cache_state(memory: Stores) -> CacheState:
    """Return how the caches of this process for the stores of a memory did so far."""
    from learnt.memory.caching import CacheState, cache_of

    now, ttl_s = memory._clock(), memory.settings.cache_ttl_s
    state = CacheState(ttl_s=ttl_s)
    for store in memory.sound_stores() if ttl_s else ():
        state = state.plus(cache_of(store.place, ttl_s=ttl_s).state(now))
    return state


class _Shelf:
    """Reads the foremost learnings of categories, from the cache where that may be.

    `told` leaves out what the agent need not be told.
    """

    def __init__(self, memory: Stores, told: Filter, *, cached: bool, proven_only: bool) -> None:
        self._settings = memory.settings
        self._told = told
        self._most = _SPARE * memory.settings.brief_per_category
        self._now_ms = memory._clock()
        self._cached = cached and memory.settings.cache_ttl_s > 0
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
        from learnt.memory.caching import cache_of

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
