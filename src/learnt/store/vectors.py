"""What learnings mean, as vectors, and the search for the most similar ones.

Looking at whole vectors would take too long. So the signs of their dimensions are also stored in blocks of some hundred
learnings, eight signs in a byte, and bytes for the same dimensions stand together. A query has a table for each such
byte, which says how well each combination of signs fits: `bytes.translate` looks up the bytes of all learnings at once,
and the sums for all learnings are additions of long numbers. Only the vectors of the best are read.

In a large store only the first dimensions are looked at, so that a search stays fast.
"""

from __future__ import annotations

from learnt.store.database import insert_statement
from learnt.text.meaning import MODEL, likenesses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from learnt.store.database import Condition, Database

_LEARNINGS = 480
"""How many learnings a block is for: so many that a part of a block just fits into a page."""
_BYTES = 8
"""How many bytes of each learning a part of a block holds."""
# Up to so many learnings, so many parts are looked at.
_PARTS = ((150_000, 4), (400_000, 2))
_COMPARED = 3  # so many times more vectors than wanted are read
_SAMPLE = 2_000
_IS_POSITIVE = b"0" + b"1" * 127 + b"0" * 128
_LANES = 256
_ONES = int.from_bytes(b"\1\0" * _LANES, "little")
_HAS_BIT = tuple(
    int.from_bytes(bytes(byte for code in range(_LANES) for byte in (code >> bit & 1, 0)), "little") for bit in range(8)
)


def put(database: Database, vectors: Mapping[int, bytes]) -> None:
    """Store vectors by the numbers of their learnings, which have none yet."""
    rows = [{"model": MODEL, "number": number, "vector": vector} for number, vector in vectors.items()]
    database.execute_many(insert_statement("learning_vector", ("model", "number", "vector")), rows)
    _put_signs(database, {number: _signs(vector) for number, vector in vectors.items()})


def remove(database: Database, number: int) -> None:
    """Remove a learning's vector, if there is one."""
    sql = "select vector from learning_vector where project = :project and model = :model and number = :number"
    vector = database.value(sql, model=MODEL, number=number)
    if vector is not None:
        database.execute("delete from learning_vector where project = :project and number = :number", number=number)
        _put_signs(database, {number: bytes(len(vector) // 8)})


def clear(database: Database) -> None:
    """Remove all vectors."""
    for table in ("learning_vector", "vector_block"):
        database.execute(f"delete from {table} where project = :project")


def read(database: Database, ids: Sequence[str]) -> dict[str, bytes]:
    """Return the vectors of learnings, by id."""
    rows = database.rows(
        f"""
        select learning.id, learning_vector.vector
          from learning
          join learning_vector on learning_vector.project = learning.project
           and learning_vector.model = :model
           and learning_vector.number = learning.number
         where learning.project = :project
           and {database.one_of("learning.id", "ids")}
        """,
        model=MODEL,
        ids=database.list_value(ids),
    )
    return {row["id"]: row["vector"] for row in rows}


def find(database: Database, vector: bytes, which: Condition, *, limit: int) -> list[tuple[str, float]]:
    """Return the ids of the learnings with the most similar vectors, most similar first, with their likeness."""
    conditions, parameters = which
    numbers = _find_near(database, vector, most=limit * _COMPARED)
    rows = database.rows(
        f"""
        select learning.id, learning_vector.vector
          from {database.each_number("numbers", "near")}
          {database.then_join} learning on learning.project = :project and learning.number = near.value
          {database.then_join} learning_vector
            on learning_vector.project = :project
           and learning_vector.model = :model
           and learning_vector.number = learning.number
         where {conditions}
        """,
        model=MODEL,
        numbers=database.list_value(numbers),
        **parameters,
    )
    whole = [row for row in rows if isinstance(row["vector"], bytes) and len(row["vector"]) == len(vector)]
    found = zip([row["id"] for row in whole], likenesses(vector, [row["vector"] for row in whole]), strict=True)
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit]


def _signs(vector: bytes) -> bytes:
    """Return one bit for each dimension: whether it is positive."""
    return int(vector[::-1].translate(_IS_POSITIVE), 2).to_bytes(-(-len(vector) // 8), "little")


def _put_signs(database: Database, signs: Mapping[int, bytes]) -> None:
    by_block: dict[int, dict[int, bytes]] = {}
    for number, code in signs.items():
        block, place = divmod(number - 1, _LEARNINGS)
        by_block.setdefault(block, {})[place] = code
    for block, codes in by_block.items():
        _put_block(database, block, codes)


def _put_block(database: Database, block: int, codes: Mapping[int, bytes]) -> None:
    """Write the signs of some learnings into their block."""
    length = len(next(iter(codes.values())))
    sql = "select part, signs from vector_block where project = :project and model = :model and block = :block"
    parts = {row["part"]: bytearray(row["signs"]) for row in database.rows(sql, model=MODEL, block=block)}
    for part in range(-(-length // _BYTES)):
        signs = parts.get(part) or bytearray(_LEARNINGS * _BYTES)
        for column in range(part * _BYTES, min(length, (part + 1) * _BYTES)):
            start = (column - part * _BYTES) * _LEARNINGS
            for place, code in codes.items():
                signs[start + place] = code[column]
        row = {"model": MODEL, "part": part, "block": block, "signs": bytes(signs)}
        replace = "on conflict (project, model, part, block) do update set signs = excluded.signs"
        database.insert("vector_block", row, otherwise=replace)


def _find_near(database: Database, vector: bytes, *, most: int) -> list[int]:
    """Return the numbers of the learnings whose signs fit a vector best, in no particular order."""
    parts = -(-len(vector) // (8 * _BYTES))
    size = int(database.value("select max(number) as last from learning where project = :project") or 0)
    parts = next((min(parts, few) for most_learnings, few in _PARTS if size <= most_learnings), 1)
    fits = _fits_of(database, vector, parts)
    return [place + 1 for place in _best_places(fits, most)] if fits else []


def _fits_of(database: Database, vector: bytes, parts: int) -> bytes:
    """Return for each learning how well its signs fit a vector, as a byte."""
    tables = _tables(vector[: parts * 8 * _BYTES])
    total = length = 0
    for part in range(parts):
        sql = "select block, signs from vector_block where project = :project and model = :model and part = :part"
        blocks = {row["block"]: row["signs"] for row in database.rows(sql, model=MODEL, part=part)}
        if not blocks:
            return b""
        missing = bytes(_LEARNINGS * _BYTES)
        in_order = [blocks.get(block, missing) for block in range(max(blocks) + 1)]
        length = len(in_order) * _LEARNINGS
        for column, table in enumerate(tables[part * _BYTES : (part + 1) * _BYTES]):
            start = column * _LEARNINGS
            codes = b"".join([signs[start : start + _LEARNINGS] for signs in in_order])
            total += int.from_bytes(codes.translate(table), "little")
    return total.to_bytes(length, "little")


def _tables(vector: bytes) -> list[bytes]:
    """Return for each eight dimensions how well each combination of signs fits; all tables have the same scale."""
    weights = memoryview(vector).cast("b").tolist()
    eights = [weights[start : start + 8] for start in range(0, len(weights), 8)]
    steepest = max(sum(map(abs, eight)) for eight in eights) or 1
    # The sum over all tables must fit into a byte, and a lane of two bytes holds the fit times 256.
    scale = (255 // len(eights)) * 256 / steepest
    return [_table([int(weight * scale) for weight in eight]) for eight in eights]


def _table(weights: list[int]) -> bytes:
    lanes = -sum(weight for weight in weights if weight < 0) * _ONES
    for weight, has_bit in zip(weights, _HAS_BIT, strict=False):
        lanes += weight * has_bit
    return lanes.to_bytes(2 * _LANES, "little")[1::2]


def _best_places(fits: bytes, most: int) -> list[int]:
    """Return the places of the greatest bytes."""
    sample = sorted(fits[:: max(1, len(fits) // _SAMPLE)])
    least = sample[max(0, len(sample) - 1 - len(sample) * most // len(fits))]
    places = _places_from(fits, least)
    while len(places) < most and least > 0:
        least -= 1
        places = _places_from(fits, least)
    return sorted(places, key=lambda place: (fits[place], place), reverse=True)[:most]


def _places_from(fits: bytes, least: int) -> list[int]:
    marked = fits.translate(bytes(int(value >= least) for value in range(256)))
    places = []
    place = marked.find(1)
    while place >= 0:
        places.append(place)
        place = marked.find(1, place + 1)
    return places
