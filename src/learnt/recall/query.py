"""Turn any text into words to search for. It cannot raise, and a long text stays fast.

Rare words say most and are cheapest to look up: they are taken first, until enough learnings are on the table. The
common ones still count when those are ranked.
"""

from __future__ import annotations

from learnt.text.words import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from learnt.store.index import Counts

_LONGEST_TEXT = 20_000
_MOST_WORDS = 300
_MOST_LOOKED_UP = 16
MOST_POSTINGS = 5_000


def query_words(text: str) -> tuple[str, ...]:
    """Return the distinct words of a text; of a very long one, those of its beginning and its end."""
    if len(text) > 2 * _LONGEST_TEXT:
        text = f"{text[:_LONGEST_TEXT]} {text[-_LONGEST_TEXT:]}"
    return tuple(dict.fromkeys(words(text)))[:_MOST_WORDS]


def looked_up(wanted: Sequence[str], frequencies: Mapping[str, int]) -> list[str]:
    """Return the words to look up, rarest first; words that no learning has are left out."""
    known = sorted((word for word in wanted if frequencies.get(word)), key=lambda word: (frequencies[word], word))
    chosen: list[str] = []
    postings = 0
    for word in known[:_MOST_LOOKED_UP]:
        postings += frequencies[word]
        if chosen and postings > MOST_POSTINGS:
            break
        chosen.append(word)
    return chosen


def newest_looked_at(counts: Counts, chosen: Sequence[str]) -> int | None:
    """Return how many of the newest learnings to look at, or None for all: needed where every word is a common one."""
    commonest = max((counts.frequencies[word] for word in chosen), default=0)
    if commonest <= MOST_POSTINGS:
        return None
    return counts.learnings * MOST_POSTINGS // commonest
