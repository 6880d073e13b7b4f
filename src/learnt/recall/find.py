"""Look for learnings in one store: those whose triggers hold come first, then those that share words with the text.

Any text can be searched for, and a long one stays fast. Rare words say most and are cheapest to look up: they are taken
first, until enough learnings are on the table. The common ones still count when those are ranked.

The order is BM25, the same for every database: a word is worth more the fewer learnings have it, and a further
occurrence of it adds less and less, sooner in long learnings. The same arguments always give the same order: nothing
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
    from collections.abc import Iterable, Mapping, Sequence

    from learnt.model import Learning
    from learnt.store.database import Database
    from learnt.store.index import Candidate, Counts, Filter
    from learnt.text.triggers import Situation

_LEAST_CANDIDATES = 60
_FEW = 50  # whose words are read faster than the index is asked
_LONGEST_TEXT = 100_000
_MOST_WORDS = 300
_MOST_LOOKED_UP = 16
_USUAL_WORDS = 100  # of what a text has beyond them, every second word is looked up, too
MOST_POSTINGS = 5_000
_SATURATION = 0.9
_MOST_SATURATED = _SATURATION + 1
_LENGTH_MATTERS = 0.75
_TELLING = 12
_LEAST_SIZE = 100


class Wanted(Value):
    """Some of what is looked for: which learnings, how many at most, and how many are enough."""

    which: Filter
    limit: int
    least: int = 0


def find_each(database: Database, situation: Situation, which: Filter, parts: Sequence[Wanted]) -> list[list[Hit]]:
    """Return the best hits for each part of what is looked for; `which` is what all parts have in common.

    One look mostly serves them all. Where others have crowded a part out, it is looked for alone.
    """
    matcher = SituationMatcher(situation)
    everything = query_words(situation.text)
    counts = index.counts(database, _with_joined(everything))
    wanted = _most_telling(_as_indexed(everything, counts.frequencies), counts.frequencies)
    triggers = index.with_triggers(database, matcher.anchors(), matcher.matches, which)
    most = max(_LEAST_CANDIDATES, *(4 * part.limit for part in parts))
    candidates = {candidate.id: candidate for candidate in _by_words(database, wanted, counts, which, most=most)}
    is_cut = len(candidates) >= most
    aside = [id for id in triggers if id not in candidates]
    candidates.update(
        (candidate.id, candidate) for candidate in (index.read_candidates(database, aside) if aside else ())
    )
    hits = []
    for part in parts:
        fitting = {
            id: candidates[id] for id in candidates if part.which.takes(candidates[id], triggered=id in triggers)
        }
        if is_cut and len(fitting) < part.least:
            fitting.update((candidate.id, candidate) for candidate in _crowded_out(database, wanted, counts, part))
        hits.append(_best(database, fitting.values(), triggers, wanted, counts, limit=part.limit))
    return hits


def best_first(hits: Iterable[Hit]) -> list[Hit]:
    """Return hits in order: those with a trigger, then by score, confidence and youth."""
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
    """Return the matched fields' texts with the found words in `<mark>`."""
    return {field: mark(_text_of(hit.learning, field), hit.words) for field in hit.matched_fields}


def query_words(text: str) -> tuple[str, ...]:
    """Return the distinct words of a text; of a very long one, those of its beginning and its end."""
    return tuple(dict.fromkeys(words(beginning_and_end(text, _LONGEST_TEXT))))


def words_to_look_up(wanted: Sequence[str], frequencies: Mapping[str, int]) -> list[str]:
    """Return the words to look up, rarest first; words that no learning has are left out."""
    known = sorted((word for word in wanted if frequencies.get(word)), key=lambda word: frequencies[word])
    chosen: list[str] = []
    postings = 0
    for word in known[: _MOST_LOOKED_UP + max(0, len(wanted) - _USUAL_WORDS) // 2]:
        postings += frequencies[word]
        if chosen and postings > MOST_POSTINGS:
            break
        chosen.append(word)
    return chosen


def _with_joined(wanted: Sequence[str]) -> list[str]:
    """Return the words, and how the index has those of them that may be parts of an identifier written in one."""
    return [*wanted, *(JOINED + word for word in wanted if word.isalpha())]


def _as_indexed(wanted: Sequence[str], frequencies: Mapping[str, int]) -> tuple[str, ...]:
    """Return the words as the index has them: a word that stands nowhere may be an identifier written in one."""
    return tuple(
        JOINED + word if not frequencies.get(word) and frequencies.get(JOINED + word) else word for word in wanted
    )


def _most_telling(wanted: Sequence[str], frequencies: Mapping[str, int]) -> tuple[str, ...]:
    """Return the words that a text is searched by: all of a usual text, of a long one those that say most.

    First those that learnings have, the rarest before the others, and the last before the first: an error at the end
    of a long log must be found.
    """
    if len(wanted) <= _MOST_WORDS:
        return tuple(wanted)
    last_first = wanted[::-1]
    rarest = sorted(last_first, key=lambda word: frequencies.get(word) or math.inf)
    return tuple(rarest[:_MOST_WORDS])


def _crowded_out(database: Database, wanted: Sequence[str], counts: Counts, part: Wanted) -> list[Candidate]:
    """Return the candidates for a part alone; where few learnings come into question, all of them."""
    few = index.ids(database, part.which, limit=_FEW + 1)
    if len(few) <= _FEW:
        return index.read_candidates(database, few) if few else []
    return _by_words(database, wanted, counts, part.which, most=4 * part.limit)


def _by_words(
    database: Database, wanted: Sequence[str], counts: Counts, which: Filter, *, most: int
) -> list[Candidate]:
    chosen = words_to_look_up(wanted, counts.frequencies)
    if not chosen:
        return []
    newest = _newest_looked_at(counts, chosen)
    return index.with_words(database, _worth_of(chosen, counts), which, limit=most, newest=newest)


def _newest_looked_at(counts: Counts, chosen: Sequence[str]) -> int | None:
    """Return how many of the newest learnings to look at, or None for all: needed where every word is a common one."""
    commonest = max((counts.frequencies[word] for word in chosen), default=0)
    if commonest <= MOST_POSTINGS:
        return None
    return counts.learnings * MOST_POSTINGS // commonest


def _best(
    database: Database,
    candidates: Iterable[Candidate],
    triggers: Mapping[str, str],
    wanted: Sequence[str],
    counts: Counts,
    *,
    limit: int,
) -> list[Hit]:
    """Return the best candidates; the learnings themselves are read for these only: that is what costs."""
    worth, weights = _worth_of(wanted, counts), _weights_of(wanted, counts)
    scored = [(candidate, _shares(candidate, worth, counts)) for candidate in candidates]

    def order(pair: tuple[Candidate, dict[str, float]]) -> tuple[object, ...]:
        candidate, shares = pair
        worst_last = (-sum(shares.values()), -candidate.confidence, -candidate.created_at)
        return (candidate.id not in triggers, *worst_last, candidate.id)

    best = sorted((pair for pair in scored if pair[1] or pair[0].id in triggers), key=order)[:limit]
    read = learnings.get_all(database, [candidate.id for candidate, _ in best])
    return [
        Hit(
            learning=read[candidate.id],
            score=sum(shares.values()),
            matched_fields=_matched_fields(candidate.texts, worth),
            words=shares,
            relevance=_relevance(shares, weights),
            trigger=triggers.get(candidate.id, ""),
        )
        for candidate, shares in best
        if candidate.id in read  # else it was purged this very moment
    ]


def _worth_of(wanted: Iterable[str], counts: Counts) -> dict[str, float]:
    """Return what each word is worth that stands anywhere: more, the fewer learnings have it."""
    having = {word: counts.frequencies.get(word, 0) for word in wanted}
    return {word: _weight(count, counts.learnings) for word, count in having.items() if count}


def _weights_of(wanted: Iterable[str], counts: Counts) -> dict[str, float]:
    """Return how telling each word of a text is, found or not.

    A small store is weighed as if it held more, so that a word is not taken for common because half of three learnings
    have it.
    """
    size = max(counts.learnings, _LEAST_SIZE)
    return {word: _weight(counts.frequencies.get(word, 0), size) for word in wanted}


def _weight(having: int, size: int) -> float:
    return math.log(1 + (max(size, having) - having + 0.5) / (having + 0.5))


def _shares(candidate: Candidate, worth: Mapping[str, float], counts: Counts) -> dict[str, float]:
    """Return what each wanted word adds to the score of a candidate."""
    average_length = counts.words / counts.learnings if counts.words else 1.0
    damping = _SATURATION * (1 - _LENGTH_MATTERS + _LENGTH_MATTERS * candidate.length / average_length)
    times = Counter(filter(worth.__contains__, candidate.words()))
    return {word: worth[word] * count * _MOST_SATURATED / (count + damping) for word, count in times.items()}


def _relevance(matched: Iterable[str], weights: Mapping[str, float]) -> float:
    """Return, from 0 to 1, how much of what the text is about was found.

    The mean of two shares: of everything that the text says, and of what it says most tellingly. The first alone would
    leave long tasks with nothing, the second would take every long learning for relevant.
    """
    everything = sorted(weights.values(), reverse=True)
    got = sorted((weights[word] for word in matched if word in weights), reverse=True)
    if not got:
        return 0.0
    whole = sum(got) / sum(everything)
    telling = sum(got[:_TELLING]) / sum(everything[:_TELLING])
    return min(1.0, math.sqrt(whole * telling))


def _matched_fields(texts: Mapping[str, str], worth: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(field for field, text in texts.items() if any(word in worth for word in text.split()))


def _text_of(learning: Learning, field: str) -> str:
    return " ".join(learning.tags) if field == "tags" else str(getattr(learning, field))
