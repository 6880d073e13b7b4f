"""Turn any text into words to search for. It cannot raise, and a long text stays fast.

Rare words say most and are cheapest to look up: they are taken first, until enough learnings are on the table. The
common ones still count when those are ranked.
"""

from __future__ import annotations

import math

from learnt.text.triggers import beginning_and_end
from learnt.text.words import IN_ONE, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from learnt.store.index import Counts

_LONGEST_TEXT = 100_000
_MOST_WORDS = 300
_MOST_LOOKED_UP = 16
_USUAL_WORDS = 100  # of what a text has beyond them, every second word is looked up, too
MOST_POSTINGS = 5_000


def query_words(text: str) -> tuple[str, ...]:
    """Return the distinct words of a text; of a very long one, those of its beginning and its end."""
    return tuple(dict.fromkeys(words(beginning_and_end(text, _LONGEST_TEXT))))


def with_joined(wanted: Sequence[str]) -> list[str]:
    """Return the words, and how the index has those of them that may be parts of an identifier written in one."""
    return [*wanted, *(IN_ONE + word for word in wanted if word.isalpha())]


def as_known(wanted: Sequence[str], frequencies: Mapping[str, int]) -> tuple[str, ...]:
    """Return the words as the index has them: a word that stands nowhere may be an identifier written in one."""
    return tuple(
        IN_ONE + word if not frequencies.get(word) and frequencies.get(IN_ONE + word) else word for word in wanted
    )


def telling(wanted: Sequence[str], frequencies: Mapping[str, int]) -> tuple[str, ...]:
    """Return the words that a text is searched by: all of a usual text, of a long one those that say most.

    First those that learnings have, the rarest before the others, and the last before the first: an error at the end
    of a long log must be found.
    """
    if len(wanted) <= _MOST_WORDS:
        return tuple(wanted)
    last_first = wanted[::-1]
    rarest = sorted(last_first, key=lambda word: frequencies.get(word) or math.inf)
    return tuple(rarest[:_MOST_WORDS])


def looked_up(wanted: Sequence[str], frequencies: Mapping[str, int]) -> list[str]:
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


def newest_looked_at(counts: Counts, chosen: Sequence[str]) -> int | None:
    """Return how many of the newest learnings to look at, or None for all: needed where every word is a common one."""
    commonest = max((counts.frequencies[word] for word in chosen), default=0)
    if commonest <= MOST_POSTINGS:
        return None
    return counts.learnings * MOST_POSTINGS // commonest
