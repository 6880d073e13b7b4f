"""An agent's standing learnings: the learnings that it is given independently of a task.

They are read from every store by category and chosen by `brief.standing`. A long-lived process can use a cache. Only
the chosen learnings' number of uses is read every time, because uses do not change the cache's stamp.
"""

from __future__ import annotations

import _thread

from learnt.brief.render import LOADED_FROM
from learnt.brief.select import Originals, assigned_categories, hidden_categories, spellings, visible_categories
from learnt.brief.standing import Considered, StandingRules, choose
from learnt.clients.registry import loaded_files
from learnt.model import CONTENT, Value
from learnt.store import index, learnings
from learnt.store.index import Filter
from learnt.text.records import as_record, read_fields, without_secrets
from learnt.text.words import words
from learnt.weigh.confidence import PERSON, impact, is_persons, is_proven

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from learnt.flow.context import Context
    from learnt.model import Learning
    from learnt.store import Place, Store

# How many candidates are read per learning shown: some were given to another agent, and some say the same thing.
_CANDIDATES_PER_LEARNING = 4
_MAX_ORIGINALS = 5


class StandingChoice(Value):
    """The learnings that were considered, the chosen ones first, and how the cache was used."""

    considered: tuple[Considered, ...]
    hits: int = 0
    misses: int = 0
    age_s: float = 0.0

    @property
    def chosen(self) -> list[Learning]:
        """The learnings to show, in order."""
        return [entry.learning for entry in self.considered if not entry.left_out]


def standing(
    context: Context,
    *,
    agent: str = "",
    client: str = "",
    limit: int | None = None,
    proven_only: bool = False,
    cached: bool = False,
) -> list[Learning]:
    """Return an agent's standing learnings, in order.

    What the `client` loads by itself is left out. With `proven_only`, return only pinned or proven learnings. `cached`
    allows the use of this process's cache.
    """
    choice = choose_standing(context, agent=agent, client=client, limit=limit, proven_only=proven_only, cached=cached)
    return choice.chosen


def choose_standing(
    context: Context,
    *,
    agent: str,
    client: str = "",
    limit: int | None = None,
    proven_only: bool = False,
    known: Mapping[str, str] | None = None,
    taught_in: str = "",
    cached: bool = False,
) -> StandingChoice:
    """Return the standing learnings and the other learnings that were considered.

    `known` contains reasons for leaving out learnings, by id. `taught_in` is a conversation whose own learnings are
    left out.
    """
    reasons = dict(known or {})
    exclusions = Filter(
        exclude_ids=tuple(sorted(reasons)), exclude_task=taught_in or None, exclude_loaded=loaded_files(client)
    )
    reader = _CandidateReader(context, exclusions, cached=cached and not proven_only, proven_only=proven_only)
    groups: dict[str, list[Learning]] = {}
    holders: dict[str, Store] = {}
    for category in visible_categories(agent, context.settings.agents):
        groups[category] = []
        for store in context.sound_stores():
            fresh = [learning for learning in reader.read(store, category) if learning.id not in holders]
            holders.update((learning.id, store) for learning in fresh)
            groups[category] += fresh
    for learning in [learning for group in groups.values() for learning in group]:
        if taught_in and learning.task == taught_in:
            reasons[learning.id] = "learnt in this very conversation"
        elif exclusions.leaves_out_file(learning.loaded_from):
            reasons[learning.id] = f"{LOADED_FROM}{learning.loaded_from}"
    rules = StandingRules(
        per_category=context.settings.brief_per_category,
        min_confidence=context.settings.brief_confidence,
        most=limit,
        proven_only=proven_only,
    )
    finder = _OriginalFinder(context, agent)
    while True:
        ranked = choose(groups, rules, excluded=reasons, impact=impact, is_proven=is_proven)
        missing = [(store, one) for store, one in finder.find(ranked) if one.id not in holders]
        if not missing:
            break
        holders.update((learning.id, store) for store, learning in missing)
        next(iter(groups.values())).extend(learning for _, learning in missing)
    considered = tuple(_with_present_uses(ranked, holders))
    return StandingChoice(considered=considered, hits=reader.hits, misses=reader.misses, age_s=reader.age_s)


def cache_state(context: Context) -> CacheState:
    """Return the total statistics of this process's caches."""
    now, ttl_s = context.clock(), context.settings.cache_ttl_s
    stores = context.sound_stores() if ttl_s else ()
    states = [cache_of(store.place, ttl_s=ttl_s).state(now) for store in stores]
    counts = ("hits", "misses", "categories", "learnings")
    totals = {name: sum(getattr(state, name) for state in states) for name in counts}
    return CacheState(**totals, age_s=max((state.age_s for state in states), default=0.0), ttl_s=ttl_s)


class _OriginalFinder:
    """Finds the people's learnings that chosen learnings copy, and that were not among the candidates."""

    def __init__(self, context: Context, agent: str) -> None:
        self._context = context
        self._agent = agent
        self._known: set[str] = set()

    def find(self, considered: Sequence[Considered]) -> list[tuple[Store, Learning]]:
        """Return the originals of the chosen learnings, each with its store; no learning is looked up twice."""
        chosen = [entry.learning for entry in considered if not entry.left_out and not is_persons(entry.learning)]
        unknown = [learning for learning in chosen if learning.id not in self._known]
        self._known.update(learning.id for learning in unknown)
        found: dict[str, tuple[Store, Learning]] = {}
        for store in self._context.sound_stores() if unknown else ():
            which = self._persons_in(store)
            for learning in unknown:
                weights = dict.fromkeys(words(learning.title), 1.0)
                matches, _ = index.find(store.database, which, weights=weights, limit=_MAX_ORIGINALS)
                persons = learnings.get_all(store.database, [match.id for match in matches]) if matches else {}
                for original in Originals(persons.values()).of(learning):
                    found.setdefault(original.id, (store, original))
        return list(found.values())

    def _persons_in(self, store: Store) -> Filter:
        settings = self._context.settings
        hidden = hidden_categories(self._agent, settings.agents, learnings.categories(store.database))
        return Filter(vouched=PERSON, trusted_from=settings.brief_confidence, not_in_categories=hidden)


class _CandidateReader:
    """Reads candidates by category, from the cache if that is allowed; `exclusions` filters out known learnings."""

    def __init__(self, context: Context, exclusions: Filter, *, cached: bool, proven_only: bool) -> None:
        self._settings = context.settings
        self._exclusions = exclusions
        self._max_candidates = _CANDIDATES_PER_LEARNING * context.settings.brief_per_category
        self._now_ms = context.clock()
        self._cached = cached and context.settings.cache_ttl_s > 0
        self._proven_only = proven_only
        self._spellings: dict[int, list[str]] = {}
        self._stamps: dict[int, tuple[object, ...]] = {}
        self._caches: set[LearningsCache] = set()
        self.hits = self.misses = 0

    @property
    def age_s(self) -> float:
        """The age of the oldest cache entry that was used."""
        return max((cache.state(self._now_ms).age_s for cache in self._caches), default=0.0)

    def read(self, store: Store, category: str) -> Sequence[Learning]:
        """Return the candidates in a store's category, including enough learnings that the agent does not have yet."""
        ids, task = self._exclusions.exclude_ids, self._exclusions.exclude_task
        candidates = self._candidates(store, category)
        leaves_out_file = self._exclusions.leaves_out_file
        new = [
            learning
            for learning in candidates
            if learning.id not in ids and learning.task != task and not leaves_out_file(learning.loaded_from)
        ]
        if len(candidates) < self._max_candidates or len(new) >= self._settings.brief_per_category:
            return candidates
        passed_over = (*ids, *(learning.id for learning in candidates))
        return [*candidates, *self._from_store(store, category, self._exclusions.replace(exclude_ids=passed_over))]

    def _candidates(self, store: Store, category: str) -> Sequence[Learning]:
        if not self._cached:
            return self._from_store(store, category, Filter())
        cache = cache_of(store.place, ttl_s=self._settings.cache_ttl_s)
        stamp = self._stamp(store)
        cached = cache.get(category, stamp=stamp, now_ms=self._now_ms)
        if cached is None:
            self.misses += 1
            return cache.set(category, self._from_store(store, category, Filter()), stamp=stamp, now_ms=self._now_ms)
        self.hits += 1
        self._caches.add(cache)
        return cached

    def _stamp(self, store: Store) -> tuple[object, ...]:
        """Return the stamp of a cache entry: the state of the store, and the settings that affect the selection."""
        if id(store) not in self._stamps:
            settings = self._settings
            rules = (
                settings.brief_per_category,
                settings.brief_confidence,
                *sorted(assigned_categories(settings.agents)),
            )
            self._stamps[id(store)] = (learnings.stamp(store.database), *rules)
        return self._stamps[id(store)]

    def _from_store(self, store: Store, category: str, which: Filter) -> list[Learning]:
        if id(store) not in self._spellings:
            self._spellings[id(store)] = learnings.categories(store.database)
        names = spellings(category, self._settings.agents, self._spellings[id(store)])
        which = which.replace(trusted_from=self._settings.brief_confidence, in_categories=names)
        return learnings.standing_candidates(
            store.database, which, limit=self._max_candidates, helpful_only=self._proven_only
        )


def _with_present_uses(considered: Sequence[Considered], holders: Mapping[str, Store]) -> list[Considered]:
    """Return the considered learnings, the chosen ones with their scope and their current number of uses."""
    chosen = [entry.learning.id for entry in considered if not entry.left_out]
    uses: dict[str, int] = {}
    for store in {id(holders[learning]): holders[learning] for learning in chosen}.values():
        uses |= learnings.uses(store.database, [learning for learning in chosen if holders[learning] is store])

    def at_present(learning: Learning) -> Learning:
        times = uses.get(learning.id, learning.times_injected)
        return learning.replace(times_injected=times, scope=holders[learning.id].place.scope)

    return [entry if entry.left_out else entry.replace(learning=at_present(entry.learning)) for entry in considered]


class CacheState(Value):
    """A cache's statistics."""

    hits: int = 0
    misses: int = 0
    categories: int = 0
    """How many categories the cache contains."""
    learnings: int = 0
    age_s: float = 0.0
    """The age of the oldest entry."""
    ttl_s: int = 0


class LearningsCache:
    """The learnings of each category, all with the same stamp."""

    def __init__(self, ttl_s: int = 300) -> None:
        self._ttl_ms = ttl_s * 1000
        self._lock = _thread.allocate_lock()
        self._stamp: Hashable = None
        self._entries: dict[str, tuple[tuple[Learning, ...], int]] = {}
        self._hits = self._misses = 0

    def get(self, category: str, *, stamp: Hashable, now_ms: int) -> tuple[Learning, ...] | None:
        """Return a category's learnings, or None if they must be read; a new stamp drops everything."""
        with self._lock:
            if stamp != self._stamp:
                self._entries, self._stamp = {}, stamp
            entry = self._entries.get(category)
            if entry is None or not 0 <= now_ms - entry[1] < self._ttl_ms:
                self._misses += 1
                return None
            self._hits += 1
            return entry[0]

    def set(
        self, category: str, learnings: Sequence[Learning], *, stamp: Hashable, now_ms: int
    ) -> tuple[Learning, ...]:
        """Store the learnings that were read after the stamp; return them as stored, without secrets."""
        safe = tuple(map(_redact_learning, learnings))
        with self._lock:
            if stamp == self._stamp:  # otherwise another thread has a newer stamp
                self._entries[category] = (safe, now_ms)
        return safe

    def state(self, now_ms: int) -> CacheState:
        """Return the cache's statistics."""
        with self._lock:
            entries = list(self._entries.values())
            return CacheState(
                hits=self._hits,
                misses=self._misses,
                categories=len(entries),
                learnings=sum(len(learnings) for learnings, _ in entries),
                age_s=max((max(0, now_ms - at) / 1000 for _, at in entries), default=0.0),
                ttl_s=self._ttl_ms // 1000,
            )


_caches: dict[tuple[str, str, int], LearningsCache] = {}
_caches_lock = _thread.allocate_lock()


def cache_of(place: Place, *, ttl_s: int) -> LearningsCache:
    """Return this process's cache for a store."""
    key = (place.address or place.path, place.project, ttl_s)
    with _caches_lock:
        return _caches.setdefault(key, LearningsCache(ttl_s))


def _redact_learning(learning: Learning) -> Learning:
    """Return a learning without secrets; newer rules may find secrets in an old learning."""
    record = as_record(learning)
    safe, count = without_secrets({name: record[name] for name in CONTENT})
    return learning.replace(**read_fields(safe)) if count else learning
