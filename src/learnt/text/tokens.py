"""Estimate how many tokens a text has, without any model's vocabulary.

The estimate errs on the high side, so that budgets are not exceeded. The tests check it against cl100k.
"""

from __future__ import annotations

import re
from functools import lru_cache

_PIECE = re.compile(r"[A-Za-z]+|\d+|[^\S\n]+|\n+|[^\sA-Za-z\d]+")
_WHOLE_WORD = 6  # words up to this length are mostly one token
_PER_FURTHER_LETTER = 0.18
_PER_PUNCTUATION_MARK = 0.7
_DIGITS_PER_TOKEN = 3


def estimate_tokens(text: str) -> int:
    """Return the approximate number of tokens in a text."""
    total = sum(map(_count_piece, _PIECE.findall(text)))
    return -int(-total // 1)  # rounded up; importing `math` takes longer than the counting


@lru_cache(maxsize=20_000)  # a brief is measured again for each learning that is added
def _count_piece(piece: str) -> float:
    first = piece[0]
    if first == "\n":
        return 1
    if first.isspace():
        return 0 if len(piece) == 1 else 1  # a single space belongs to the next word
    if first.isdigit():
        return -(-len(piece) // _DIGITS_PER_TOKEN) if first.isascii() else len(piece)
    if not piece.isascii():
        return sum(map(_count_letter, piece))
    if first.isalpha():
        return 1 + max(0, len(piece) - _WHOLE_WORD) * _PER_FURTHER_LETTER
    return max(1, len(piece) * _PER_PUNCTUATION_MARK)


def _count_letter(letter: str) -> float:
    if letter < "\u0080":
        return 1
    if letter < "\u3000":
        return 1.5
    return 1.3 if letter < "\U00010000" else 3
