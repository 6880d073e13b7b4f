"""Situations in which a learning matters: which sentence of a prompt becomes an observed cue, and which ones are kept.

A cue is taken only from what a person has probably typed. It is the sentence that shares most words with the learning,
or the first one that says enough. What a known cue or the title says already is no new cue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from learnt.mine.pasted import list_typed_sentences
from learnt.model import CUE_FIELDS, OBSERVED_LIMIT, PARAGRAPHS, TITLE_LIMIT, Learning
from learnt.text.shorten import shorten
from learnt.text.titles import share_most_words, text_key
from learnt.text.words import words

MAX_WORDS = 25
_MIN_WORDS = 3
_REDACTED = "[redacted"


def find_situation(prompt: str, learning: Learning, *, must_share: bool = False) -> str:
    """Return the sentence of a prompt that says in which situation a learning helped; empty if none does.

    With `must_share`, it must share a word with the learning, because the prompt may be about something else.
    """
    said = _list_words(learning.title, *(getattr(learning, name) for name in PARAGRAPHS), *learning.tags)
    candidates = [
        sentence
        for sentence in list_typed_sentences(prompt)
        if len(_list_words(sentence)) >= _MIN_WORDS and _REDACTED not in sentence
    ]
    if not candidates:
        return ""
    best = max(candidates, key=lambda sentence: len(_list_words(sentence) & said))
    if must_share and not _list_words(best) & said:
        return ""
    return shorten(best) if len(best) > TITLE_LIMIT or len(best.split()) > MAX_WORDS else best


def add_observed(learning: Learning, situation: str) -> tuple[str, ...]:
    """Return a learning's observed cues with another one: the newest, and the most different of the rest."""
    known = (learning.title, *learning.all_cues)
    if not situation or any(is_alike(situation, other) for other in known):
        return learning.observed_cues
    kept = [situation, *learning.observed_cues]
    while len(kept) > OBSERVED_LIMIT:
        kept.remove(max(reversed(kept[1:]), key=lambda cue: _likeness(cue, kept)))
    return tuple(kept)


def find_best_cue(text: str, learning: Learning) -> tuple[str, str] | None:
    """Return the field and the text of the cue that shares most words with a text; None if none shares any."""
    asked = _list_words(text)
    cues = [(field, cue) for field in CUE_FIELDS for cue in getattr(learning, field)]
    best = max(cues, key=lambda entry: len(_list_words(entry[1]) & asked), default=None)
    return best if best and _list_words(best[1]) & asked else None


def is_alike(one: str, other: str) -> bool:
    """Return whether two situations say the same, or nearly."""
    return text_key(one) == text_key(other) or share_most_words(_list_words(one), _list_words(other))


def _likeness(cue: str, cues: Sequence[str]) -> float:
    """Return how much a cue shares with the one of the others that is most like it."""
    own = _list_words(cue)
    return max((_share(own, _list_words(other)) for other in cues if other != cue), default=0.0)


def _share(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def _list_words(*texts: str) -> set[str]:
    return {word for text in texts for word in words(text)}


def list_useful(cues: Iterable[str], learning: Learning) -> list[str]:
    """Return the cues that say something which neither the title nor an earlier one says."""
    useful: list[str] = []
    for cue in cues:
        if not any(is_alike(cue, other) for other in (learning.title, *useful)):
            useful.append(cue)
    return useful
