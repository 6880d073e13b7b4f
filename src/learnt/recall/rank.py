"""Put candidates into order by BM25, the same for every database.

The same arguments always give the same order: nothing here reads the database, the clock or the settings. A word is
worth more the fewer learnings have it, and a further occurrence of it adds less and less, sooner in long learnings.
"""

from __future__ import annotations

import math

from learnt.text.words import mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from learnt.model import Hit, Learning
    from learnt.store.index import Counts

SATURATION = 0.9
LENGTH_MATTERS = 0.75


def worth_of(wanted: Iterable[str], counts: Counts) -> dict[str, float]:
    """Return what each word is worth that stands anywhere: more, the fewer learnings have it."""
    worth = {}
    for word in wanted:
        having = counts.frequencies.get(word, 0)
        if having:
            without = max(counts.learnings, having) - having
            worth[word] = math.log(1 + (without + 0.5) / (having + 0.5))
    return worth


def shares(words: Mapping[str, Sequence[str]], worth: Mapping[str, float], counts: Counts) -> dict[str, float]:
    """Return what each wanted word adds to the score of a learning with these words, field by field."""
    average_length = counts.words / counts.learnings if counts.learnings else 1.0
    length = sum(map(len, words.values()))
    damping = SATURATION * (1 - LENGTH_MATTERS + LENGTH_MATTERS * length / average_length)
    times: dict[str, int] = {}
    for found in words.values():
        for word in found:
            if word in worth:
                times[word] = times.get(word, 0) + 1
    return {word: worth[word] * count * (SATURATION + 1) / (count + damping) for word, count in times.items()}


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
