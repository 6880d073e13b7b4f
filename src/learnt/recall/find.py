"""Look for learnings in one store: those whose triggers hold come first, then those that share words with the text."""

from __future__ import annotations

from learnt.model import Hit
from learnt.recall.query import as_known, looked_up, newest_looked_at, query_words, telling, with_joined
from learnt.recall.rank import matched_fields, relevance, shares, weights_of, worth_of
from learnt.store import index, learnings
from learnt.text.patterns import Signs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from learnt.store.database import Database
    from learnt.store.index import Counts
    from learnt.store.learnings import Candidate, Filter
    from learnt.text.patterns import Situation

_LEAST_CANDIDATES = 60


def find(database: Database, situation: Situation, which: Filter, *, limit: int) -> list[Hit]:
    """Return the best hits of one store, best first."""
    return find_each(database, situation, [(which, limit)])[0]


def find_each(database: Database, situation: Situation, asked: Sequence[tuple[Filter, int]]) -> list[list[Hit]]:
    """Return the best hits for each filter, as many as it says; the text is cut and weighed once for all."""
    signs = Signs(situation)
    everything = query_words(situation.text)
    counts = index.counts(database, with_joined(everything))
    wanted = telling(as_known(everything, counts.frequencies), counts.frequencies)
    return [_find(database, signs, wanted, counts, which, limit=limit) for which, limit in asked]


def _find(
    database: Database, signs: Signs, wanted: Sequence[str], counts: Counts, which: Filter, *, limit: int
) -> list[Hit]:
    triggers = learnings.with_triggers(database, signs.anchors(), signs.show, which)
    found = {one.id: one for one in _by_words(database, wanted, counts, which, limit=limit)}
    aside = [id for id in triggers if id not in found]
    found.update((one.id, one) for one in (learnings.words_of(database, aside) if aside else ()))
    return _best(database, found.values(), triggers, wanted, counts, limit=limit)


def _by_words(
    database: Database, wanted: Sequence[str], counts: Counts, which: Filter, *, limit: int
) -> list[Candidate]:
    chosen = looked_up(wanted, counts.frequencies)
    if not chosen:
        return []
    return learnings.with_words(
        database,
        worth_of(chosen, counts),
        which,
        limit=max(_LEAST_CANDIDATES, 4 * limit),
        newest=newest_looked_at(counts, chosen),
    )


def _best(
    database: Database,
    found: Iterable[Candidate],
    triggers: Mapping[str, str],
    wanted: Sequence[str],
    counts: Counts,
    *,
    limit: int,
) -> list[Hit]:
    """Return the best of what was found; the learnings themselves are read for these only: that is what costs."""
    worth, weights = worth_of(wanted, counts), weights_of(wanted, counts)
    scored = [(one, shares(one.words, one.length, worth, counts)) for one in found]

    def order(pair: tuple[Candidate, dict[str, float]]) -> tuple[object, ...]:
        one, parts = pair
        return (one.id not in triggers, -sum(parts.values()), -one.confidence, -one.created_at, one.id)

    best = sorted((pair for pair in scored if pair[1] or pair[0].id in triggers), key=order)[:limit]
    read = learnings.get_all(database, [one.id for one, _ in best])
    return [
        Hit(
            learning=read[one.id],
            score=sum(parts.values()),
            matched_fields=matched_fields(one.words, worth),
            words=parts,
            relevance=relevance(parts, weights),
            trigger=triggers.get(one.id, ""),
        )
        for one, parts in best
        if one.id in read  # else it was purged this very moment
    ]
