"""The words of learnings in an SQLite file, as small as possible and quick to rank.

Every word has a number, and a learning's words are stored as one text in which each character stands for one word: it
is short, and SQLite and Python count characters faster than words. The full-text index holds the numbers of the words,
not their texts. So a word's text stands in one place only, the table `word`.

Very large numbers need two characters, which stand for nothing by themselves.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import partial

from learnt.store.database import WordMatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    import apsw

    from learnt.store.database import CutWords, Row

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

# As one text, because fetching a row takes longer than splitting off a number.
_POSTINGS = "select group_concat(rowid) from learning_index where learning_index match ? and rowid > ?"


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
        self._known: dict[str, str] = {}
        """The characters that stand for words, as far as they have been looked up."""
        self._known_at: object = None

    def count(self, learnings: Mapping[str, int]) -> dict[str, str]:
        """Add to the counts of words; return the characters that stand for the words, and perhaps for others."""
        # In the order of the index, they are found faster.
        rows = [(self._project, word, number) for word, number in sorted(learnings.items())]
        self._connection.executemany(_COUNT, rows)
        return self._look_up(learnings)

    def _look_up(self, words: Iterable[str]) -> dict[str, str]:
        """Return the characters that stand for words, and perhaps for others; words that nobody has are missing."""
        version = self._connection.pragma("data_version")
        if version != self._known_at or len(self._known) > _MAX_KNOWN:
            self._known.clear()  # another process may have deleted words
            self._known_at = version
        unknown = [word for word in words if word not in self._known]
        if unknown:
            sql = "select word, number from word where project = ? and word in (select value from json_each(?))"
            rows = self._connection.execute(sql, (self._project, json.dumps(unknown, ensure_ascii=False)))
            self._known.update((word, encode(number)) for word, number in rows)
        return self._known

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
        distinct = {word for entry in entries for word in entry.distinct}
        numbers = {word: str(next(decode(letters[word]))) for word in distinct}
        self._connection.executemany(
            "insert into learning_index (rowid, words) values (?, ?)",
            [(entry.number, " ".join([numbers[word] for word in entry.distinct])) for entry in entries],
        )

    def remove(self, number: int) -> tuple[list[str], int] | None:
        """Remove a learning; return its distinct words and its length, or None if it is not indexed."""
        sql = "select words, length from learning_words where number = ?"
        rows: list[Any] = self._connection.execute(sql, (number,)).fetchall()
        if not rows:
            return None
        words, length = rows[0]
        self._connection.execute("delete from learning_words where number = ?", (number,))
        self._connection.execute(
            "insert into learning_index (learning_index, rowid, words) values ('delete', ?, ?)",
            (number, _as_tokens(words)),
        )
        sql = "select word from word where number in (select value from json_each(?)) order by word"
        numbers = sorted({*decode(words.replace(_FIELD_END, ""))})
        return [word for (word,) in self._connection.execute(sql, (json.dumps(numbers),))], length

    def forget(self) -> None:
        """Look up all words again: some have been deleted."""
        self._known.clear()

    def clear(self) -> None:
        """Remove everything."""
        self.forget()
        for table in ("learning_words", "word"):
            self._connection.execute(f"delete from {table}")
        self._connection.execute("insert into learning_index (learning_index) values ('delete-all')")

    def rank(self, weights: Mapping[str, float], *, floor: int, limit: int) -> list[int]:
        """Return the numbers of the learnings that match the words best; if `limit` is -1, of all that match any."""
        letters = self._look_up(weights)
        scores: defaultdict[str, float] = defaultdict(float)
        for word, weight in weights.items():
            token = str(next(decode(letters[word]))) if word in letters else None
            for (numbers,) in self._connection.execute(_POSTINGS, (token, floor)) if token else ():
                for number in numbers.split(",") if numbers else ():
                    scores[number] += weight
        least = sorted(scores.values(), reverse=True)[limit - 1] if 0 < limit < len(scores) else 0.0
        best = sorted([(score, int(number)) for number, score in scores.items() if score >= least], reverse=True)
        return [number for _, number in best[: limit if limit >= 0 else None]]

    def match(self, rows: list[Row], wanted: Collection[str]) -> list[Row]:
        """Return rows of `learning` and `learning_words` with what their learnings contain of the wanted words."""
        letters = self._look_up(wanted)
        words = {letters[word]: word for word in wanted if word in letters}
        for row in rows:
            row["match"] = self._match(row["words"], row["length"], words)
        return rows

    def _match(self, text: object, length: object, words: Mapping[str, str]) -> WordMatch | None:
        """Return which words the text of a learning contains; None if it cannot be read."""
        if not isinstance(text, str) or not isinstance(length, int) or text.count(_FIELD_END) + 1 != len(self._fields):
            return None
        count = text.count
        return WordMatch(
            {word: count(letter) for letter, word in words.items() if letter in text},
            length=length,
            cue_words=len(text) - text.rindex(_FIELD_END) - 1,
            list_fields=partial(self._list_fields, text, words),
        )

    def _list_fields(self, text: str, letters: Iterable[str]) -> tuple[str, ...]:
        """Return the fields that contain any of these words."""
        found = [letter for letter in letters if letter in text]
        parts = zip(self._fields, text.split(_FIELD_END), strict=True)
        return tuple([field for field, part in parts if any(map(part.__contains__, found))])


def _as_tokens(words: str) -> str:
    """Return the distinct numbers of words, separated by spaces."""
    numbers = set(decode(words.replace(_FIELD_END, "")))
    return " ".join(map(str, sorted(numbers)))
