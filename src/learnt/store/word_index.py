"""The words of learnings in an SQLite file, as small as possible and quick to rank.

Every word has a number, and a learning's words are stored as one text in which each character stands for one word: it
is short, and SQLite and Python count characters faster than words. The full-text index holds the numbers of the words,
not their texts. So a word's text stands in one place only, the table `word`.

Very large numbers need two characters, which stand for nothing by themselves.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    import apsw

    from learnt.store.database import CutWords

_FIELD_END = "\n"
_FIRST = 32  # the characters before it are for other uses
_SURROGATES, _SURROGATES_END = 0xD800, 0xE000
_PAIRS, _SECONDS, _COUNT_OF_SECONDS = 0xF0000, 0x100000, 0x10000
_SINGLES = _PAIRS - _FIRST - (_SURROGATES_END - _SURROGATES)
_MAX_KNOWN = 200_000

_COUNT = """
    insert into word (project, word, learnings)
    values (?, ?, ?)
        on conflict (project, word) do update set learnings = learnings + excluded.learnings
"""

_POSTINGS = "select rowid as number, ? as weight from learning_index where learning_index match ? and rowid > ?"


def encode(number: int) -> str:
    """Return the characters that stand for a word."""
    if number <= _SINGLES:
        code = _FIRST - 1 + number
        return chr(code if code < _SURROGATES else code + _SURROGATES_END - _SURROGATES)
    first, second = divmod(number - _SINGLES - 1, _COUNT_OF_SECONDS)
    return chr(_PAIRS + first) + chr(_SECONDS + second)


def decode(text: str) -> Iterator[int]:
    """Yield the numbers of the words in a text."""
    letters = iter(text)
    for letter in letters:
        code = ord(letter)
        if code >= _PAIRS:
            second = ord(next(letters, chr(_SECONDS)))
            yield (code - _PAIRS) * _COUNT_OF_SECONDS + second - _SECONDS + _SINGLES + 1
        else:
            yield (code if code < _SURROGATES else code - _SURROGATES_END + _SURROGATES) - _FIRST + 1


class WordIndex:
    """The word index of one connection."""

    def __init__(self, connection: apsw.Connection, project: str, fields: Sequence[str]) -> None:
        self._connection = connection
        self._project = project
        self._fields = fields
        self._spelt: dict[str, str] = {}
        """The words that characters stand for, after a space each, as far as they have been looked up."""
        self._translation: dict[int, str] = {}
        """The same for `str.translate`, without pairs."""
        self._has_pairs = False
        """Whether what was looked up last has pairs of characters, which take longer."""
        self._known: dict[str, str] = {}
        """The characters that stand for words that were counted lately."""
        self._known_at: object = None

    def count(self, learnings: Mapping[str, int]) -> dict[str, str]:
        """Add to the counts of words; return the characters that stand for the words, and perhaps for others."""
        # In the order of the index, they are found faster.
        rows = [(self._project, word, number) for word, number in sorted(learnings.items())]
        self._connection.executemany(_COUNT, rows)
        if self._version() != self._known_at or len(self._known) > _MAX_KNOWN:
            self._known.clear()  # another process may have deleted words
            self._known_at = self._version()
        self._known.update(self._letters([word for word in learnings if word not in self._known]))
        return self._known

    def _version(self) -> object:
        """Return what changes when another connection changes the file."""
        return self._connection.pragma("data_version")

    def put(self, entries: Sequence[CutWords], letters: Mapping[str, str]) -> None:
        """Store the words of learnings."""
        rows = [
            (
                entry.number,
                _FIELD_END.join(["".join([letters[word] for word in words]) for words in entry.by_field]),
                entry.length,
            )
            for entry in entries
        ]
        self._connection.executemany("insert into learning_words (number, words, length) values (?, ?, ?)", rows)
        numbers = {
            word: str(next(decode(letters[word]))) for word in {word for entry in entries for word in entry.distinct()}
        }
        self._connection.executemany(
            "insert into learning_index (rowid, words) values (?, ?)",
            [(entry.number, " ".join([numbers[word] for word in entry.distinct()])) for entry in entries],
        )

    def remove(self, number: int) -> tuple[list[str], int] | None:
        """Remove a learning; return its distinct words and its length, or None if it is not indexed."""
        rows = self._read([number])
        if not rows:
            return None
        _, words, length = rows[0]
        self._connection.execute("delete from learning_words where number = ?", (number,))
        self._connection.execute(
            "insert into learning_index (learning_index, rowid, words) values ('delete', ?, ?)",
            (number, _as_tokens(words)),
        )
        self._spell(words)
        distinct = {self._spelt[letter] for letter in {*_split_pairs(words)} - {_FIELD_END}}
        return sorted(word[1:] for word in distinct if word), length

    def forget(self) -> None:
        """Look up all words again: some have been deleted."""
        self._forget_spelling()
        self._known.clear()

    def clear(self) -> None:
        """Remove everything."""
        self.forget()
        for table in ("learning_words", "word"):
            self._connection.execute(f"delete from {table}")
        self._connection.execute("insert into learning_index (learning_index) values ('delete-all')")

    def rank(self, weights: Mapping[str, float], *, floor: int, limit: int) -> list[int]:
        """Return the numbers of the learnings that match the words best; if `limit` is -1, of all that match any."""
        letters = self._letters(weights)
        tokens = {word: next(decode(letters[word])) for word in weights if word in letters}
        if not tokens:
            return []
        # With parameters, texts with equally many words have the same statement, which is prepared once.
        parts = " union all ".join([_POSTINGS] * len(tokens))
        sql = f"""
            select number
              from ({parts})
             group by number
             order by sum(weight) desc, number desc
             limit ?
        """
        values = [value for word, token in tokens.items() for value in (weights[word], str(token), floor)]
        return [number for (number,) in self._connection.execute(sql, (*values, limit))]

    def read(self, numbers: Sequence[int]) -> dict[int, tuple[dict[str, str] | None, Any]]:
        """Return the words of each field and the lengths of learnings; None for words that cannot be read."""
        rows = self._read(numbers)
        self._spell("".join([words for _, words, _ in rows if isinstance(words, str)]))
        return {number: (self._texts(words), length) for number, words, length in rows}

    def _read(self, numbers: Sequence[int]) -> list[tuple[Any, ...]]:
        sql = "select number, words, length from learning_words where number in (select value from json_each(?))"
        return self._connection.execute(sql, (json.dumps(numbers),)).fetchall()

    def _texts(self, words: object) -> dict[str, str] | None:
        """Return the words of each field; None if they cannot be read."""
        if not isinstance(words, str):
            return None
        if self._has_pairs:
            spelt = "".join([self._spelt.get(letter, letter) for letter in _split_pairs(words)])
        else:
            spelt = words.translate(self._translation)
        texts = [text[1:] for text in spelt.split(_FIELD_END)]
        return dict(zip(self._fields, texts, strict=True)) if len(texts) == len(self._fields) else None

    def _letters(self, words: Iterable[str]) -> dict[str, str]:
        sql = "select word, number from word where project = ? and word in (select value from json_each(?))"
        rows = self._connection.execute(sql, (self._project, json.dumps([*words], ensure_ascii=False)))
        return {word: encode(number) for word, number in rows}

    def _spell(self, text: str) -> None:
        """Look up the words that the characters of a text stand for."""
        if len(self._spelt) > _MAX_KNOWN:
            self._forget_spelling()
        self._has_pairs = bool(text) and max(text) >= chr(_PAIRS)
        known = self._spelt
        letters = {*_split_pairs(text)} if self._has_pairs else {*text}
        unknown = [letter for letter in letters if letter not in known and letter != _FIELD_END]
        if unknown:
            self._spelt.update(dict.fromkeys(unknown, ""))  # a damaged file may lack some
            sql = "select number, word from word where number in (select value from json_each(?))"
            numbers = [next(decode(letter)) for letter in unknown]
            for number, word in self._connection.execute(sql, (json.dumps(numbers),)):
                self._spelt[encode(number)] = f" {word}"
            self._translation.update((ord(letter), self._spelt[letter]) for letter in unknown if len(letter) == 1)

    def _forget_spelling(self) -> None:
        self._spelt.clear()
        self._translation.clear()


def _split_pairs(text: str) -> Iterator[str]:
    """Yield the characters of a text, pairs together."""
    letters = iter(text)
    for letter in letters:
        yield letter + next(letters, "") if letter >= chr(_PAIRS) else letter


def _as_tokens(words: str) -> str:
    """Return the distinct numbers of words, separated by spaces."""
    numbers = set(decode(words.replace(_FIELD_END, "")))
    return " ".join(map(str, sorted(numbers)))
