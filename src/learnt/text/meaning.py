"""Stand-in: what a text means, as a vector."""

from __future__ import annotations

from functools import lru_cache
from operator import mul

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MODEL = "stand-in"
DIMENSIONS = 256
_OFFSET = 128


@lru_cache(maxsize=50_000)
def _lanes(stem: str) -> int:
    """Return the vector of a stem, plus an offset, in lanes of 16 bits."""
    import random

    lanes = bytearray(2 * DIMENSIONS)
    lanes[::2] = random.Random(stem).randbytes(DIMENSIONS)
    return int.from_bytes(lanes, "little")


def embed(stems: Iterable[str]) -> bytes | None:
    """Return the vector of a text's stems."""
    known = [_lanes(stem) for stem in stems]
    if not known:
        return None
    offset = _OFFSET * len(known)
    sums = memoryview(sum(known).to_bytes(2 * DIMENSIONS + 2, "little")[:-2]).cast("H").tolist()
    most = max(max(sums) - offset, offset - min(sums)) or 1
    return bytes([(value - offset) * 127 // most & 255 for value in sums])


def likeness(a: bytes, b: bytes) -> float:
    """Return the cosine of two vectors."""
    left, right = memoryview(a).cast("b"), memoryview(b).cast("b")
    dot = sum(map(mul, left, right))
    return float(dot / ((sum(map(mul, left, left)) * sum(map(mul, right, right))) ** 0.5 or 1))
