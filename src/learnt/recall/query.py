"""Read the text of a search or a task: its sentences, their words and what they mean.

A long text is read sentence by sentence, because a learning that fits one sentence matters however much stands around
it. Of logs and stack traces the lines of other people's code are left out. Any text can be read.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

from learnt.text.meaning import embed, liken_stems
from learnt.text.triggers import beginning_and_end, drop_foreign_lines
from learnt.text.words import numbered_words, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from learnt.store.index import Counts

_MAX_TEXT_LENGTH = 20_000  # of the beginning, and of the end
_MAX_SENTENCES = 60
_MAX_VECTORS = 6
_MAX_WORDS = 300
_MAX_LOOKED_UP = 12
_USUAL_WORDS = 100  # if a text has more words, the limit grows by one for every two further words
MAX_POSTINGS = 2_000
_MIN_SAME_MEANING = 0.6
_LONGER_WORTH = 0.5
_SENTENCE_END = r"(?<=[.!?:;])\s+|\n+"
_TELLS_ERROR = ("error", "exception", "fail", "panic", "fatal", "denied")
# The stems of everyday words: they say what is done with anything, so they say nothing about what a text is about.
EVERYDAY = frozenset(
    (
        "add ask begin bug build call case chang check clean close code come creat delet do done edit error explain "
        "extend featur file find finish first fix get give go handl happen help implement improv issu job keep know "
        "last leav let like line look make mayb mean method move name need new next now number old on open part "
        "pass place pleas problem project put question read realli refactor remov renam replac repositori right run "
        "sai same see set show simpl small someon someth sometim soon start still stop support sure take task tell "
        "test thank thing think time todai tomorrow try turn two understand updat us valu wai want well work write "
        "wrong yesterdai"
    ).split()
)


class Query:
    """A text that learnings are looked for with."""

    def __init__(self, text: str) -> None:
        self.text = text = drop_foreign_lines(beginning_and_end(text, _MAX_TEXT_LENGTH))
        self.words = tuple(dict.fromkeys(words(text)))
        """The distinct words of the text, in order; for a very long text, those of its beginning and its end."""
        self.sentences = [found for found in dict.fromkeys(_read_sentences(text, self.words)) if found]
        """The distinct words of each sentence, also with their numbers; a sentence that is repeated counts once."""
        self.numbered = frozenset(word for sentence in self.sentences for word in sentence if " " in word)
        """The words with numbers, such as `node 8`."""
        self._vectors: dict[frozenset[str], bytes | None] = {}

    def list_vectors(self, weights: Sequence[float]) -> list[bytes]:
        """Return the vectors of the sentences that say the most, by the sentences' weights."""
        heaviest_first = sorted(range(len(self.sentences)), key=weights.__getitem__, reverse=True)
        vectors = (self._embed(self.sentences[number]) for number in heaviest_first[:_MAX_VECTORS])
        return [vector for vector in vectors if vector is not None]

    def embed_whole(self, weights: Mapping[str, float]) -> bytes | None:
        """Return the vector of the whole text, whose words count by their weights; None if no word of it is known."""
        return embed(self.words, weights)

    def _embed(self, sentence: frozenset[str]) -> bytes | None:
        if sentence not in self._vectors:
            self._vectors[sentence] = embed(sentence)
        return self._vectors[sentence]


def _read_sentences(text: str, in_text: tuple[str, ...]) -> Iterator[frozenset[str]]:
    """Yield the words of each sentence of a text with these words."""
    sentences = _split(text)
    for sentence in sentences:
        numbered = (word for word in numbered_words(sentence) if word.partition(" ")[0] not in EVERYDAY)
        yield frozenset((*(words(sentence) if len(sentences) > 1 else in_text), *numbered))


def _split(text: str) -> list[str]:
    """Return the sentences of a text; of a very long one, the first, the last and those that tell of an error."""
    sentences = re.split(_SENTENCE_END, text)
    if len(sentences) <= _MAX_SENTENCES:
        return sentences
    third = _MAX_SENTENCES // 3
    middle = sentences[third:-third]
    telling = [line for line in middle if any(word in line.lower() for word in _TELLS_ERROR)]
    return [*sentences[:third], *telling[-third:], *sentences[-third:]]


def choose_significant(wanted: Sequence[str], frequencies: Mapping[str, int]) -> tuple[str, ...]:
    """Return the words to search for: all words of a usual text, or the most significant words of a long text.

    Words that occur in learnings come first, the rarest of them before the others. Among equally rare words, those at
    the end of the text come first, because an error at the end of a long log must be found.
    """
    if len(wanted) <= _MAX_WORDS:
        return tuple(wanted)
    last_first = wanted[::-1]
    rarest = sorted(last_first, key=lambda word: frequencies.get(word) or math.inf)
    return tuple(rarest[:_MAX_WORDS])


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


@lru_cache(maxsize=20_000)  # searches share most of their words
def is_short_for(word: str, longer: str) -> bool:
    """Return whether a word means much the same as a longer one: `auth` is short for `authentication`, not `author`."""
    return liken_stems(word, longer) >= _MIN_SAME_MEANING


def lessen_longer(worth: dict[str, float], forms: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Return what words are worth, those that a word is only short for at most half as much as the word itself."""
    longer = {one: worth[word] for word, found in forms.items() if word in worth for one in found if one != word}
    return worth | {one: _LONGER_WORTH * min(worth[one], most) for one, most in longer.items() if one in worth}


def worth_of(wanted: Iterable[str], counts: Counts) -> dict[str, float]:
    """Return how much each word that occurs in any learning is worth: more if fewer learnings contain it."""
    frequencies = {word: counts.frequencies.get(word, 0) for word in wanted}
    size = counts.learnings
    return {
        word: math.log(1 + (max(size, count) - count + 0.5) / (count + 0.5))
        for word, count in frequencies.items()
        if count
    }


def selectivity_of(wanted: Iterable[str], counts: Counts) -> dict[str, float]:
    """Return, from 0 to 1, how much each word says about what sets a learning apart from the others here."""
    size = counts.learnings
    most = math.log(2 + 2 * size)
    return {
        word: math.sqrt(math.log(1 + (max(size, count) - count + 0.5) / (count + 0.5)) / most)
        for word in wanted
        if (count := counts.frequencies.get(word, 0))
    }


def newest_to_search(counts: Counts, chosen: Sequence[str]) -> int | None:
    """Return how many of the newest learnings to search, so that a search for common words is fast; None means all."""
    commonest = max((counts.frequencies[word] for word in chosen), default=0)
    if commonest <= MAX_POSTINGS:
        return None
    return counts.learnings * MAX_POSTINGS // commonest
