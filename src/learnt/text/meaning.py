"""What a text means, as a vector: the sum of its words' vectors, from a table that comes with the package.

The table was fitted to a small sentence model (`tools/fit_meaning.py`; `meaning.NOTICE.txt` says from what). It is
mapped into memory, where only the pages with the words of a text are read. Vectors are bytes, one signed number per
dimension, all of the same length; they can be compared only if they were made by the same `MODEL`.
"""

from __future__ import annotations

import os
from binascii import crc32
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from mmap import ACCESS_READ, mmap
from operator import mul
from struct import Struct

DIMENSIONS = 192
MODEL = "learnt-192-eff63e9b"  # with the beginning of the table's SHA-256

_PATH = os.path.join(os.path.dirname(__file__), "meaning.bin")
_HEADER = Struct("<8sHHI")  # mark, dimensions, steps of rarity per unit, number of stems
_ROW = Struct(f"{DIMENSIONS}b")
_LENGTH = 400.0  # the length of every vector: its numbers rarely exceed ±127, and rounding hardly changes likeness
_WHOLE = 256  # the weight of a word that counts fully; 65,000 such words fit into the 32 bits of a lane
_HALF_AT = 10  # in a text that says first what it is about, the word after so many others counts half
_MANY = 20  # so many vectors are compared faster together
_SIGN_FLIPPED = bytes(number ^ 128 for number in range(256))


class _Table:
    """The open file: the sorted hashes of the stems, their rarities, and their vectors."""

    __slots__ = ("hashes", "rarities", "rows", "steps")

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            content = memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
        _, _, self.steps, count = _HEADER.unpack(content[: _HEADER.size])
        rarities = _HEADER.size + 4 * count
        self.hashes = content[_HEADER.size : rarities].cast("I")
        self.rarities = content[rarities : rarities + count]
        self.rows = content[rarities + count :]

    def find(self, stem: str) -> int | None:
        """Return the number of a stem's row; None if it has none."""
        wanted = crc32(stem.encode("utf-8", "surrogatepass"))
        number = bisect_left(self.hashes, wanted)
        return number if number < len(self.hashes) and self.hashes[number] == wanted else None

    def read_row(self, number: int) -> memoryview:
        """Return a stem's vector; the longer it is, the more the stem counts."""
        return self.rows[number * DIMENSIONS : (number + 1) * DIMENSIONS]


@cache
def _open_table() -> _Table:
    return _Table(_PATH)


def embed(stems: Iterable[str], weights: Mapping[str, float] | None = None) -> bytes | None:
    """Return the vector of a text by its words, each counted once; None if none of them is known.

    `weights` says how much each word counts, at most 1; a word that it lacks counts 1.
    """
    counted: dict[int, int] = {}
    for stem in stems:
        number = _find(stem)
        if number is not None:
            counted.setdefault(number, round(_WHOLE * weights.get(stem, 1.0)) if weights else _WHOLE)
    return _embed_counted(counted)


def embed_in_order(stems: Iterable[str]) -> bytes | None:
    """Return the vector of a text that says first what it is about: a word counts less the later it first occurs."""
    numbers = [number for number in dict.fromkeys(map(_find, stems)) if number is not None]
    return _embed_counted({number: _WHOLE * _HALF_AT // (_HALF_AT + place) for place, number in enumerate(numbers)})


def _embed_counted(counted: Mapping[int, int]) -> bytes | None:
    """Return the vector of rows of the table that count as much as is said."""
    if not counted:
        return None
    total, zero = _add_up(counted)
    return _scale(total, zero)


def _add_up(counted: Mapping[int, int]) -> tuple[list[int], int]:
    """Return the sum of rows that count as much as is said, and a number that was added to each dimension."""
    total = sum([count * _read_lanes(number) for number, count in counted.items()])
    lanes = memoryview(total.to_bytes(4 * DIMENSIONS, "little")).cast("I")
    return lanes.tolist(), 128 * sum(counted.values())


@lru_cache(maxsize=50_000)
def _find(stem: str) -> int | None:
    return _open_table().find(stem)


@lru_cache(maxsize=20_000)  # of 0.8 kB each
def _read_lanes(number: int) -> int:
    """Return a stem's vector as one number with 32 bits for each dimension, which has 128 added to it."""
    lanes = bytearray(4 * DIMENSIONS)
    lanes[::4] = bytes(_open_table().read_row(number)).translate(_SIGN_FLIPPED)
    return int.from_bytes(lanes, "little")


def _scale(numbers: list[int], zero: int) -> bytes | None:
    """Return the vector of the usual length in the direction of numbers, which all have `zero` added to them."""
    square = _square(numbers, zero)
    if not square:
        return None
    factor = _LENGTH / square**0.5
    shift = 128.5 - zero * factor
    rounded = [int(number * factor + shift) for number in numbers]
    try:
        return bytes(rounded).translate(_SIGN_FLIPPED)
    except ValueError:  # a number is too large for a byte
        return bytes([max(1, min(255, number)) for number in rounded]).translate(_SIGN_FLIPPED)


def _square(numbers: list[int], zero: int) -> int:
    """Return the square of the length of a vector whose numbers all have `zero` added to them."""
    squares: int = sum(map(mul, numbers, numbers))
    return squares - 2 * zero * sum(numbers) + DIMENSIONS * zero * zero


def shorten_numbers(numbers: Sequence[float]) -> bytes | None:
    """Return the vector of another model, with any number of dimensions, as bytes; None if it has no direction."""
    length = sum(map(mul, numbers, numbers)) ** 0.5
    if not 0 < length < float("inf"):
        return None
    factor = _LENGTH / length
    return bytes([max(-127, min(127, round(number * factor))) & 255 for number in numbers])


def likeness(one: bytes, other: bytes) -> float:
    """Return how alike two texts are by their vectors: the cosine, at most 1."""
    unpack = (_ROW if len(one) == DIMENSIONS else Struct(f"{len(one)}b")).unpack
    return float(sum(map(mul, unpack(one), unpack(other)))) / (_LENGTH * _LENGTH)


def liken_stems(one: str, other: str) -> float:
    """Return how alike two stems are; 0 if one of them is not known."""
    first, second = _find(one), _find(other)
    if first is None or second is None:
        return 0.0
    (numbers, length), (others, other_length) = _read_numbers(first), _read_numbers(second)
    return float(sum(map(mul, numbers, others))) / (length * other_length or 1.0)


@lru_cache(maxsize=5_000)
def _read_numbers(number: int) -> tuple[tuple[int, ...], float]:
    """Return a stem's vector, and its length."""
    numbers = _ROW.unpack(_open_table().read_row(number))
    return numbers, float(sum(map(mul, numbers, numbers))) ** 0.5


def liken_words(stems: tuple[str, ...], vectors: Iterable[bytes]) -> list[float]:
    """Return how alike a text is, by its words, to each of others, by their vectors; empty if no word is known."""
    total, zero, length = _add_up_words(stems)
    if not length:
        return []
    unpacked = map(_unpack, vectors)
    return [(sum(map(mul, numbers, total)) - zero * surplus) / (_LENGTH * length) for numbers, surplus in unpacked]


@lru_cache(maxsize=5_000)  # titles and cues are compared with many texts
def _add_up_words(stems: tuple[str, ...]) -> tuple[list[int], int, float]:
    """Return the sum of stems' vectors, a number that was added to each dimension, and the length of the sum."""
    total, zero = _add_up({number: 1 for number in map(_find, stems) if number is not None})
    return total, zero, _square(total, zero) ** 0.5


@lru_cache(maxsize=100)  # a text is compared with many others
def _unpack(vector: bytes) -> tuple[tuple[int, ...], int]:
    """Return a vector's numbers, and their sum."""
    numbers = _ROW.unpack(vector)
    return numbers, sum(numbers)


def likenesses(one: bytes, others: Iterable[bytes]) -> list[float]:
    """Return how alike one text is to each of the others; all vectors have the same number of dimensions."""
    others = list(others)
    if len(others) < _MANY:
        return [likeness(one, other) for other in others]
    # For each dimension, the others' numbers are parts of one long number, so that they are multiplied together. Every
    # number has 128 added to it, because the parts must not be negative.
    joined = b"".join(others).translate(_SIGN_FLIPPED)
    dimensions = len(one)
    parts = bytearray(4 * (len(joined) // dimensions))
    numbers = memoryview(one).cast("b").tolist()
    positive = negative = 0
    for place, number in enumerate(numbers):
        parts[::4] = joined[place::dimensions]
        if number > 0:
            positive += number * int.from_bytes(parts, "little")
        elif number < 0:
            negative -= number * int.from_bytes(parts, "little")
    surplus = 128 * sum(numbers)
    pairs = zip(_split(positive, len(parts)), _split(negative, len(parts)), strict=True)
    return [(more - less - surplus) / (_LENGTH * _LENGTH) for more, less in pairs]


def _split(total: int, length: int) -> list[int]:
    return memoryview(total.to_bytes(length, "little")).cast("I").tolist()


@lru_cache(maxsize=20_000)
def rarity(stem: str) -> float:
    """Return how rare a stem is in technical English: about 1 for everyday words, above 10 for the rarest."""
    table = _open_table()
    number = table.find(stem)
    steps: int = table.rarities[number] if number is not None else 255
    return steps / int(table.steps)
