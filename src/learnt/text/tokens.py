"""Estimate how many tokens a text costs, without any model's tables.

Rather too high than too low: a budget must hold. Checked against cl100k in the tests.
"""

from __future__ import annotations

import re

_PIECE = re.compile(r"[A-Za-z]+|\d+|[^\S\n]+|\n+|[^\sA-Za-z\d]+")
_WHOLE_WORD = 6  # letters that mostly make one token; longer words are cut
_PER_FURTHER_LETTER = 0.18
_PER_SIGN_IN_A_RUN = 0.7
_DIGITS_IN_ONE = 3
_MOST_KNOWN = 20_000


class _PieceCosts(dict[str, float]):
    """What pieces cost that were met before: a brief is measured again for each learning that is added to it."""

    def __missing__(self, piece: str) -> float:
        if len(self) > _MOST_KNOWN:
            self.clear()
        cost = self[piece] = _tokens_of(piece)
        return cost


_known = _PieceCosts()


def estimate_tokens(text: str) -> int:
    """Return about how many tokens the text has."""
    return _round_up(sum(map(_known.__getitem__, _PIECE.findall(text))))


def _tokens_of(piece: str) -> float:
    first = piece[0]
    if first == "\n":
        return 1
    if first.isspace():
        return 0 if len(piece) == 1 else 1  # a single space belongs to the next word
    if first.isdigit():
        return -(-len(piece) // _DIGITS_IN_ONE) if first.isascii() else len(piece)
    if not piece.isascii():
        return sum(map(_tokens_of_letter, piece))
    if first.isalpha():
        return 1 + max(0, len(piece) - _WHOLE_WORD) * _PER_FURTHER_LETTER
    return max(1, len(piece) * _PER_SIGN_IN_A_RUN)


def _tokens_of_letter(letter: str) -> float:
    code = ord(letter)
    if code < 0x80:
        return 1
    if code < 0x3000:
        return 1.5
    return 1.3 if code < 0x10000 else 3


def _round_up(number: float) -> int:
    # Not by `math`: importing that costs more than all the counting.
    return -int(-number // 1)
