"""Put candidates into order by BM25, the same for every database.

The same arguments always give the same order: nothing here reads the database, the clock or the settings. A word is
worth more the fewer learnings have it, and a further occurrence of it adds less and less, sooner in long learnings.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import chain

from learnt.text.words import mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from learnt.model import Hit, Learning
    from learnt.store.index import Counts

SATURATION = 0.9
LENGTH_MATTERS = 0.75
_TELLING = 12
_LEAST_SIZE = 100


def worth_of(wanted: Iterable[str], counts: Counts) -> dict[str, float]:
    """Return what each word is worth that stands anywhere: more, the fewer learnings have it."""
    worth = {}
    for word in wanted:
        having = counts.frequencies.get(word, 0)
        if having:
            worth[word] = _weight(having, counts.learnings)
    return worth


def shares(
    words: Mapping[str, Sequence[str]], length: int, worth: Mapping[str, float], counts: Counts
) -> dict[str, float]:
    """Return what each wanted word adds to the score of a learning of this length with these words, field by field."""
    average_length = counts.words / counts.learnings if counts.words else 1.0
    damping = SATURATION * (1 - LENGTH_MATTERS + LENGTH_MATTERS * length / average_length)
    times = Counter(filter(worth.__contains__, chain.from_iterable(words.values())))
    return {word: worth[word] * count * (SATURATION + 1) / (count + damping) for word, count in times.items()}


def weights_of(wanted: Iterable[str], counts: Counts) -> dict[str, float]:
    """Return how telling each word of a text is, found or not.

    A small store is weighed as if it held more, so that a word is not taken for common because half of three learnings
    have it.
    """
    size = max(counts.learnings, _LEAST_SIZE)
    return {word: _weight(counts.frequencies.get(word, 0), size) for word in wanted}


def relevance(found: Iterable[str], weights: Mapping[str, float]) -> float:
    """Return, from 0 to 1, how much of what the text is about was found.

    The mean of two shares: of everything that the text says, and of what it says most tellingly. The first alone would
    leave long tasks with nothing, the second would take every long learning for relevant.
    """
    everything = sorted(weights.values(), reverse=True)
    got = sorted((weights[word] for word in found if word in weights), reverse=True)
    if not got:
        return 0.0
    whole = sum(got) / sum(everything)
    telling = sum(got[:_TELLING]) / sum(everything[:_TELLING])
    return min(1.0, math.sqrt(whole * telling))


def _weight(having: int, size: int) -> float:
    return math.log(1 + (max(size, having) - having + 0.5) / (having + 0.5))


def matched_fields(words: Mapping[str, Sequence[str]], worth: Mapping[str, float]) -> tuple[str, ...]:
    """Return the fields that hold one of the wanted words."""
    return tuple(field for field, found in words.items() if any(word in worth for word in found))


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


def _text_of(learning: Learning, field: str) -> str:
    return " ".join(learning.tags) if field == "tags" else str(getattr(learning, field))
