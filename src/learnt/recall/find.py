"""Look for learnings in one store: those whose triggers hold come first, then those that share words with the text."""

from __future__ import annotations

from learnt.model import Hit, Value
from learnt.recall.query import as_known, looked_up, newest_looked_at, query_words, telling, with_joined
from learnt.recall.rank import matched_fields, relevance, shares, weights_of, worth_of
from learnt.store import index, learnings
from learnt.text.triggers import Signs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from learnt.store.database import Database
    from learnt.store.index import Candidate, Counts, Filter
    from learnt.text.triggers import Situation

_LEAST_CANDIDATES = 60
_FEW = 50  # whose words are read faster than the index is asked


class Wanted(Value):
    """Some of what is looked for: which learnings, how many at most, and of how many one can be content."""

    which: Filter
    limit: int
    least: int = 0


def find(database: Database, situation: Situation, which: Filter, *, limit: int) -> list[Hit]:
    """Return the best hits of one store, best first."""
    return find_each(database, situation, which, [Wanted(which=which, limit=limit)])[0]


def find_each(database: Database, situation: Situation, which: Filter, parts: Sequence[Wanted]) -> list[list[Hit]]:
    """Return the best hits for each part of what is looked for; `which` is what all parts have in common.

    One look mostly serves them all. Where others have crowded a part out, it is looked for alone.
    """
    signs = Signs(situation)
    everything = query_words(situation.text)
    counts = index.counts(database, with_joined(everything))
    wanted = telling(as_known(everything, counts.frequencies), counts.frequencies)
    triggers = index.with_triggers(database, signs.anchors(), signs.show, which)
    most = max(_LEAST_CANDIDATES, *(4 * part.limit for part in parts))
    found = {one.id: one for one in _by_words(database, wanted, counts, which, most=most)}
    is_cut = len(found) >= most
    aside = [id for id in triggers if id not in found]
    found.update((one.id, one) for one in (index.words_of(database, aside) if aside else ()))
    hits = []
    for part in parts:
        mine = {id: one for id, one in found.items() if part.which.takes(one, triggered=id in triggers)}
        if is_cut and len(mine) < part.least:
            mine.update((one.id, one) for one in _crowded_out(database, wanted, counts, part))
        hits.append(_best(database, mine.values(), triggers, wanted, counts, limit=part.limit))
    return hits


def _crowded_out(database: Database, wanted: Sequence[str], counts: Counts, part: Wanted) -> list[Candidate]:
    """Return the candidates for a part alone; where few learnings come into question, all of them."""
    few = index.ids(database, part.which, limit=_FEW + 1)
    if len(few) <= _FEW:
        return index.words_of(database, few) if few else []
    return _by_words(database, wanted, counts, part.which, most=4 * part.limit)


def _by_words(
    database: Database, wanted: Sequence[str], counts: Counts, which: Filter, *, most: int
) -> list[Candidate]:
    chosen = looked_up(wanted, counts.frequencies)
    if not chosen:
        return []
    return index.with_words(
        database,
        worth_of(chosen, counts),
        which,
        limit=most,
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
