"""Look for learnings in one store: those whose triggers hold come first, then those that share words with the text."""

from __future__ import annotations

from learnt.model import Hit
from learnt.recall.query import looked_up, newest_looked_at, query_words
from learnt.recall.rank import best_first, matched_fields, relevance, shares, worth_of
from learnt.store import index, learnings
from learnt.text.patterns import fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.store.database import Database
    from learnt.store.learnings import Filter
    from learnt.text.patterns import Situation

_LEAST_CANDIDATES = 60


def find(database: Database, situation: Situation, which: Filter, *, limit: int) -> list[Hit]:
    """Return the best hits of one store, best first."""
    hits = {hit.learning.id: hit for hit in _by_words(database, situation.text, which, limit=limit)}
    for learning, kind, pattern in learnings.with_triggers(database, situation.anchors(), which):
        if fits(kind, pattern, situation):
            hit = hits.get(learning.id) or Hit(learning=learning, score=0.0)
            hits[learning.id] = hit.replace(trigger=hit.trigger or f"{kind}: {pattern}")
    return best_first(hits.values())[:limit]


def _by_words(database: Database, text: str, which: Filter, *, limit: int) -> list[Hit]:
    wanted = query_words(text)
    counts = index.counts(database, wanted)
    chosen = looked_up(wanted, counts.frequencies)
    if not chosen:
        return []
    found = learnings.with_words(
        database,
        worth_of(chosen, counts),
        which,
        limit=max(_LEAST_CANDIDATES, 4 * limit),
        newest=newest_looked_at(counts, chosen),
    )
    worth = worth_of(wanted, counts)
    scored = [(sum(shares(one.words, worth, counts).values()), one) for one in found]
    # The learnings themselves are read for the best only: that is what costs.
    scored.sort(key=lambda pair: (-pair[0], -pair[1].confidence, -pair[1].created_at, pair[1].id))
    best = learnings.get_all(database, [one.id for _, one in scored[:limit]])
    return [
        Hit(
            learning=best[one.id],
            score=score,
            matched_fields=matched_fields(one.words, worth),
            words=found_words,
            relevance=relevance(found_words, wanted, counts),
        )
        for score, one in scored[:limit]
        if score > 0 and (found_words := shares(one.words, worth, counts))
    ]
