"""Read the text of a search or a task: its sentences, their words and what they mean.

A long text is read sentence by sentence, because a learning that fits one sentence matters however much stands around
it. Of logs and stack traces the lines of other people's code are left out. Any text can be read.
"""

from __future__ import annotations

import re

from learnt.text.meaning import embed
from learnt.text.triggers import beginning_and_end
from learnt.text.words import stem, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_TEXT_LENGTH = 20_000  # of the beginning, and of the end
_MAX_SENTENCES = 60
_MAX_VECTORS = 6
_SENTENCE_END = r"(?<=[.!?:;])\s+|\n+"
# A line that names one of these folders is about installed packages, not about the project.
_FOREIGN = (
    "site-packages/",
    "dist-packages/",
    "node_modules/",
    "/usr/lib/",
    "/usr/local/lib/",
    "/pkg/mod/",
    "/.cargo/",
)
_TELLS_ERROR = ("error", "exception", "fail", "panic", "fatal", "denied")
# Everyday words say what is done with anything, so they say nothing about what a text is about.
EVERYDAY = frozenset(
    stem(word)
    for word in (
        "add ask begin build bug call case change check clean close code come create delete do done edit error "
        "explain extend feature file find finish first fix get give go handle happen help implement improve issue job "
        "keep know last leave let like line look make maybe mean method move name need new next now number old one "
        "open part pass place please problem project put question read really refactor remove rename replace "
        "repository right run same say see set show simple small someone something sometimes soon start still stop "
        "support sure take task tell test thank thanks thing think time today tomorrow try turn two understand update "
        "use value want way well work write wrong yesterday"
    ).split()
)


class Query:
    """A text that learnings are looked for with."""

    def __init__(self, text: str) -> None:
        text = beginning_and_end(text, _MAX_TEXT_LENGTH)
        self.words = tuple(dict.fromkeys(words(text)))
        """The distinct words of the text, in order; for a very long text, those of its beginning and its end."""
        self.sentences = [found for found in dict.fromkeys(map(frozenset, map(words, _split(text)))) if found]
        """The distinct words of each sentence; a sentence that is repeated counts once."""
        self._vectors: dict[frozenset[str], bytes | None] = {}

    def list_vectors(self, weights: Sequence[float]) -> list[bytes]:
        """Return the vectors of the sentences that say the most, by the sentences' weights."""
        heaviest_first = sorted(range(len(self.sentences)), key=weights.__getitem__, reverse=True)
        vectors = (self._embed(self.sentences[number]) for number in heaviest_first[:_MAX_VECTORS])
        return [vector for vector in vectors if vector is not None]

    def embed_whole(self) -> bytes | None:
        """Return the vector of the whole text; None if no word of it is known."""
        return self._embed(frozenset(self.words))

    def _embed(self, sentence: frozenset[str]) -> bytes | None:
        if sentence not in self._vectors:
            self._vectors[sentence] = embed(sentence)
        return self._vectors[sentence]


def _split(text: str) -> list[str]:
    """Return the sentences of a text; of a very long one, the first, the last and those that tell of an error."""
    foreign = [folder for folder in _FOREIGN if folder in text]
    lines = re.split(_SENTENCE_END, text)
    sentences = [line for line in lines if not any(folder in line for folder in foreign)] if foreign else lines
    if len(sentences) <= _MAX_SENTENCES:
        return sentences
    third = _MAX_SENTENCES // 3
    middle = sentences[third:-third]
    telling = [line for line in middle if any(word in line.lower() for word in _TELLS_ERROR)]
    return [*sentences[:third], *telling[-third:], *sentences[-third:]]
