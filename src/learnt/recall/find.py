"""Find learnings in one store: learnings with a matching trigger first, then learnings that share words with the text.

Any text can be searched for, and searching for a long text is fast, too. Rare words say the most and are the cheapest
to look up, so they are looked up first, until there are enough candidates. Common words are still used to rank the
candidates.

The ranking is BM25 and the same for every database: a word is worth more if fewer learnings contain it, and each
further occurrence adds less, especially in long learnings. The same arguments always produce the same order: nothing
here reads the clock or the settings.
"""

from __future__ import annotations

import math
from collections import Counter

from learnt.model import Hit, Value
from learnt.store import index, learnings
from learnt.text.triggers import SituationMatcher, beginning_and_end
from learnt.text.words import JOINED, mark, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from learnt.store.database import Database
    from learnt.store.index import Candidate, Counts, Filter
    from learnt.text.triggers import Situation

_MIN_CANDIDATES = 60
_FEW = 50  # reading the words of so few learnings is faster than searching the index
_MAX_TEXT_LENGTH = 100_000
_MAX_WORDS = 300
_MAX_LOOKED_UP = 16
_USUAL_WORDS = 100  # if a text has more words, the limit grows by one for every two further words
MAX_POSTINGS = 5_000
_SATURATION = 0.9
_MAX_SATURATED = _SATURATION + 1
_LENGTH_WEIGHT = 0.75
_SIGNIFICANT_WORDS = 12
_MIN_STORE_SIZE = 100


class Wanted(Value):
    """One part of a search: which learnings to find, how many at most, and how many are enough."""

    which: Filter
    limit: int
    least: int = 0


def find_each(database: Database, situation: Situation, which: Filter, parts: Sequence[Wanted]) -> list[list[Hit]]:
    """Return the best hits for each part of a search; `which` is the filter that all parts have in common.

    Usually one search is enough for all parts. A part that finds too few candidates, because there are too many for the
    other parts, is searched separately.
    """
    matcher = SituationMatcher(situation)
    text_words = query_words(situation.text)
    counts = index.counts(database, _with_joined(text_words))
    wanted = _most_significant(_as_indexed(text_words, counts.frequencies), counts.frequencies)
    triggers = index.find_by_triggers(database, matcher.anchors(), matcher.matches, which)
    most = max(_MIN_CANDIDATES, *(4 * part.limit for part in parts))
    candidates = {candidate.id: candidate for candidate in _by_words(database, wanted, counts, which, most=most)}
    reached_limit = len(candidates) >= most
    only_triggered = [id for id in triggers if id not in candidates]
    candidates.update(
        (candidate.id, candidate)
        for candidate in (index.read_candidates(database, only_triggered) if only_triggered else ())
    )
    hits = []
    for part in parts:
        fitting = {
            id: candidates[id] for id in candidates if part.which.accepts(candidates[id], triggered=id in triggers)
        }
        if reached_limit and len(fitting) < part.least:
            fitting.update((candidate.id, candidate) for candidate in _search_part(database, wanted, counts, part))
        hits.append(_best(database, fitting.values(), triggers, wanted, counts, limit=part.limit))
    return hits


def find_nearest(database: Database, text: str, which: Filter, *, limit: int) -> list[Hit]:
    """Return the learnings that share most words with a text, best first, whatever their triggers."""
    text_words = query_words(text)
    counts = index.counts(database, _with_joined(text_words))
    wanted = _most_significant(_as_indexed(text_words, counts.frequencies), counts.frequencies)
    candidates = _by_words(database, wanted, counts, which, most=max(_MIN_CANDIDATES, 4 * limit))
    return _best(database, candidates, {}, wanted, counts, limit=limit)


def best_first(hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits in order: first those with a trigger, then by score, by confidence, and newest first."""
    return sorted(
        hits,
        key=lambda hit: (
            not hit.trigger,
            -hit.score,
            -hit.learning.confidence,
            -hit.learning.created_at,
            hit.learning.id,
        ),
    )


def highlights(hit: Hit) -> dict[str, str]:
    """Return the texts of the matched fields, with the matched words in `<mark>`."""
    return {field: mark(index.text_of(hit.learning, field), hit.words) for field in hit.matched_fields}


def query_words(text: str) -> tuple[str, ...]:
    """Return the distinct words of a text; for a very long text, only those of its beginning and its end."""
    return tuple(dict.fromkeys(words(beginning_and_end(text, _MAX_TEXT_LENGTH))))


def words_to_look_up(wanted: Sequence[str], frequencies: Mapping[str, int]) -> list[str]:
    """Return the words to look up, rarest first; words that do not occur in any learning are left out."""
    rarest_first = sorted((word for word in wanted if frequencies.get(word)), key=lambda word: frequencies[word])
    chosen: list[str] = []
    postings = 0
    for word in rarest_first[: _MAX_LOOKED_UP + max(0, len(wanted) - _USUAL_WORDS) // 2]:
        postings += frequencies[word]
        if chosen and postings > MAX_POSTINGS:
            break
        chosen.append(word)
    return chosen


def _with_joined(wanted: Sequence[str]) -> list[str]:
    """Return the words and their joined forms, because a word might be an identifier written without separators."""
    return [*wanted, *(JOINED + word for word in wanted if word.isalpha())]


def _as_indexed(wanted: Sequence[str], frequencies: Mapping[str, int]) -> tuple[str, ...]:
    """Return the words, each in the joined form if only that form is indexed."""
    return tuple(
        JOINED + word if not frequencies.get(word) and frequencies.get(JOINED + word) else word for word in wanted
    )


def _most_significant(wanted: Sequence[str], frequencies: Mapping[str, int]) -> tuple[str, ...]:
    """Return the words to search for: all words of a usual text, or the most significant words of a long text.

    Words that occur in learnings come first, the rarest of them before the others. Among equally rare words, those at
    the end of the text come first, because an error at the end of a long log must be found.
    """
    if len(wanted) <= _MAX_WORDS:
        return tuple(wanted)
    last_first = wanted[::-1]
    rarest = sorted(last_first, key=lambda word: frequencies.get(word) or math.inf)
    return tuple(rarest[:_MAX_WORDS])


def _search_part(database: Database, wanted: Sequence[str], counts: Counts, part: Wanted) -> list[Candidate]:
    """Return the candidates for one part; if only a few learnings match its filter, return all of them."""
    ids = index.find_ids(database, part.which, limit=_FEW + 1)
    if len(ids) <= _FEW:
        return index.read_candidates(database, ids) if ids else []
    return _by_words(database, wanted, counts, part.which, most=4 * part.limit)


def _by_words(
    database: Database, wanted: Sequence[str], counts: Counts, which: Filter, *, most: int
) -> list[Candidate]:
    chosen = words_to_look_up(wanted, counts.frequencies)
    if not chosen:
        return []
    newest = _newest_to_search(counts, chosen)
    return index.find_by_words(database, _worth_of(chosen, counts), which, limit=most, newest=newest)


def _newest_to_search(counts: Counts, chosen: Sequence[str]) -> int | None:
    """Return how many of the newest learnings to search, so that a search for common words is fast; None means all."""
    commonest = max((counts.frequencies[word] for word in chosen), default=0)
    if commonest <= MAX_POSTINGS:
        return None
    return counts.learnings * MAX_POSTINGS // commonest


def _best(
    database: Database,
    candidates: Collection[Candidate],
    triggers: Mapping[str, str],
    wanted: Sequence[str],
    counts: Counts,
    *,
    limit: int,
) -> list[Hit]:
    """Return the best candidates as hits; only their learnings are read, because reading learnings is expensive."""
    if not candidates:
        return []
    worth, weights = _worth_of(wanted, counts), _weights_of(wanted, counts)
    scored = [(candidate, _shares(candidate, worth, counts)) for candidate in candidates]

    def order(pair: tuple[Candidate, dict[str, float]]) -> tuple[object, ...]:
        candidate, shares = pair
        best_first = (-sum(shares.values()), -candidate.confidence, -candidate.created_at)
        return (candidate.id not in triggers, *best_first, candidate.id)

    best = sorted((pair for pair in scored if pair[1] or pair[0].id in triggers), key=order)[:limit]
    by_id = learnings.get_all(database, [candidate.id for candidate, _ in best])
    return [
        Hit(
            learning=by_id[candidate.id],
            score=sum(shares.values()),
            matched_fields=_matched_fields(candidate.texts, worth),
            words=shares,
            relevance=_relevance(shares, weights),
            trigger=triggers.get(candidate.id, ""),
        )
        for candidate, shares in best
        if candidate.id in by_id  # otherwise it has just been purged
    ]


def _worth_of(wanted: Iterable[str], counts: Counts) -> dict[str, float]:
    """Return how much each word that occurs in any learning is worth: more if fewer learnings contain it."""
    frequencies = {word: counts.frequencies.get(word, 0) for word in wanted}
    return {word: _weight(count, counts.learnings) for word, count in frequencies.items() if count}


def _weights_of(wanted: Iterable[str], counts: Counts) -> dict[str, float]:
    """Return how significant each word of a text is, whether it occurs in a learning or not.

    A small store is treated as if it contained more learnings, so that a word is not considered common because two of
    three learnings contain it.
    """
    size = max(counts.learnings, _MIN_STORE_SIZE)
    return {word: _weight(counts.frequencies.get(word, 0), size) for word in wanted}


def _weight(frequency: int, size: int) -> float:
    return math.log(1 + (max(size, frequency) - frequency + 0.5) / (frequency + 0.5))


def _shares(candidate: Candidate, worth: Mapping[str, float], counts: Counts) -> dict[str, float]:
    """Return how much each wanted word adds to a candidate's score."""
    average_length = counts.words / counts.learnings if counts.words else 1.0
    damping = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * candidate.length / average_length)
    times = Counter(filter(worth.__contains__, candidate.words()))
    return {word: worth[word] * count * _MAX_SATURATED / (count + damping) for word, count in times.items()}


def _relevance(matched: Iterable[str], weights: Mapping[str, float]) -> float:
    """Return, from 0 to 1, how much of a text's meaning the matched words cover.

    This is the geometric mean of two shares: the share of all words by weight, and the share of the most significant
    words. With the first share alone, nothing would be relevant to a long task; with the second alone, every long
    learning would be.
    """
    all_weights = sorted(weights.values(), reverse=True)
    matched_weights = sorted((weights[word] for word in matched if word in weights), reverse=True)
    if not matched_weights:
        return 0.0
    overall = sum(matched_weights) / sum(all_weights)
    significant = sum(matched_weights[:_SIGNIFICANT_WORDS]) / sum(all_weights[:_SIGNIFICANT_WORDS])
    return min(1.0, math.sqrt(overall * significant))


def _matched_fields(texts: Mapping[str, str], worth: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(field for field, text in texts.items() if any(word in worth for word in text.split()))
