"""How probable it is that a learning is wanted for a text.

Few figures decide, none of which depends on how long the text is: the best sentence of the text counts, not the share
of the text that a learning covers.

    words         the weight of the words that a sentence shares with the learning
    rarest        the weight of the rarest word that the text shares with the learning
    meaning       the likeness of a sentence to everything the learning says
    self_meaning  the likeness of a sentence to what the learning says it is about: the two best of its title and cues
    cued          whether the learning has many cues, from 0 to 1; they match more often by chance, so more is asked
    trigger       whether one of its triggers matches
    margin        how much stronger all this is than for the best other learning

The coefficients were fitted to labelled prompts (`coefficients.py`), so the result is calibrated: of the learnings with
a probability of 0.4, about four of ten are wanted.
"""

from __future__ import annotations

import math
from functools import lru_cache

from learnt.recall import coefficients
from learnt.text.meaning import rarity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MIN_STORE_SIZE = 100
_RAREST = 12.0
MAX_MARGIN = 4.0
EVERYDAY_WEIGHT = 0.03


FEATURES = ("words", "rarest", "meaning", "self_meaning", "cued", "trigger")


def measure_strength(
    *,
    words: float = 0.0,
    rarest: float = 0.0,
    meaning: float = 0.0,
    self_meaning: float = 0.0,
    cued: float = 0.0,
    trigger: bool = False,
) -> float:
    """Return how much speaks for a learning, all in all."""
    return (
        coefficients.INTERCEPT
        + coefficients.WORDS * words
        + coefficients.RAREST * rarest
        + coefficients.MEANING * meaning
        + coefficients.SELF_MEANING * self_meaning
        + coefficients.CUED * cued
        + coefficients.TRIGGER * trigger
    )


def list_margins(strengths: Sequence[float]) -> list[float]:
    """Return for each learning how much more speaks for it than for the best other one."""
    nothing = measure_strength()
    best, second = (*sorted(strengths, reverse=True)[:2], nothing, nothing)[:2]
    others = (second if strength == best else best for strength in strengths)
    return [
        max(-MAX_MARGIN, min(MAX_MARGIN, strength - other)) for strength, other in zip(strengths, others, strict=True)
    ]


def estimate_probability(strength: float, margin: float) -> float:
    """Return how probable it is that a learning is wanted."""
    exponent = (
        coefficients.PROBABILITY_INTERCEPT
        + coefficients.PROBABILITY_STRENGTH * strength
        + coefficients.PROBABILITY_MARGIN * margin
    )
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, exponent))))


@lru_cache(maxsize=20_000)  # searches share most of their words
def weigh_word(word: str, frequency: int, size: int) -> float:
    """Return, from 0 to 1, how much it says that a text and a learning share a word.

    It says more if few learnings contain the word, and if it is rare in technical English. A small store is treated as
    if it contained more learnings, so that a word is not considered common because two of three learnings contain it.
    """
    size = max(size, _MIN_STORE_SIZE, frequency)
    here = math.log(1 + (size - frequency + 0.5) / (frequency + 0.5)) / math.log(1 + (size + 0.5) / 0.5)
    return math.sqrt(here * min(1.0, rarity(word) / _RAREST))


def weigh_shared_words(
    sentences: Sequence[frozenset[str]], mine: Mapping[str, object], weights: Mapping[str, float]
) -> tuple[float, float]:
    """Return the weight of all words that a learning shares with the sentence that fits it best, and of the rarest."""
    shared = [[*map(weights.__getitem__, filter(sentence.__contains__, mine))] for sentence in sentences]
    return max(map(sum, shared), default=0.0), max(map(max, filter(None, shared)), default=0.0)


def estimate_self_meaning(units: Sequence[float]) -> float:
    """Return the likeness to what a learning says it is about, from those of its title and its cues."""
    best, second = (*sorted(units, reverse=True)[:2], *units, 0.0, 0.0)[:2]
    return (best + second) / 2
