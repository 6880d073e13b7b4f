"""What learnings mean, as vectors, and the search for the most similar ones.

Looking at whole vectors would take too long. So the signs of their dimensions are also stored in blocks of some hundred
learnings, eight signs in a byte, and bytes for the same dimensions stand together. A query has a table for each such
byte, which says how well each combination of signs fits: `bytes.translate` looks up the bytes of all learnings at once,
and the sums for all learnings are additions of long numbers. Only the vectors of the best are read.

In a large store only the first dimensions are looked at, so that a search stays fast. A process that searches again
keeps the signs, as long as no process has changed a learning.
"""

from __future__ import annotations

from learnt.store.database import STAMP, insert_statement
from learnt.text.meaning import MODEL, likenesses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from learnt.store.database import Condition, Database

_LEARNINGS = 480
"""How many learnings a block is for: so many that a part of a block just fits into a page."""
_BYTES = 8
"""How many bytes of each learning a part of a block holds."""
_MANY = 150_000
"""In a store with more learnings, fewer parts are looked at, so that a search stays fast."""
_FEWER_PARTS = 2
_COMPARED, _MORE_COMPARED = 200, 300
"""How many vectors are read at least, if all parts were looked at and if not."""
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
          {database.then_join} learning_vector on learning_vector.project = learning.project
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
    near = _read_near(database, _find_near(database, vector, limit=limit), len(vector))
    likeness = dict(zip(near, likenesses(vector, [*near.values()]), strict=True)) if near else {}
    in_order = sorted(near, key=lambda number: (-likeness[number], -number))
    found: list[tuple[str, float]] = []
    start, size = 0, limit
    while start < len(in_order) and len(found) < limit:
        ids = _fitting(database, in_order[start : start + size], which)
        found += [(ids[number], likeness[number]) for number in in_order[start : start + size] if number in ids]
        start, size = start + size, size * 4
    return found[:limit]


def _read_near(database: Database, numbers: Sequence[int], length: int) -> dict[int, bytes]:
    rows = database.rows(
        f"""
        select learning_vector.number, learning_vector.vector
          from {database.each_number("numbers", "near")}
          {database.then_join} learning_vector
            on learning_vector.project = :project
           and learning_vector.model = :model
           and learning_vector.number = near.value
        """,
        model=MODEL,
        numbers=database.list_value(numbers),
    )
    return {row["number"]: row["vector"] for row in rows if len(row["vector"]) == length}


def _fitting(database: Database, numbers: Sequence[int], which: Condition) -> dict[int, str]:
    """Return the ids of those of these learnings that fulfil a condition, by number."""
    conditions, parameters = which
    rows = database.rows(
        f"""
        select learning.number, learning.id
          from {database.each_number("numbers", "near")}
          {database.then_join} learning on learning.project = :project and learning.number = near.value
         where {conditions}
        """,
        numbers=database.list_value(numbers),
        **parameters,
    )
    return {row["number"]: row["id"] for row in rows}


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


def _find_near(database: Database, vector: bytes, *, limit: int) -> list[int]:
    """Return the numbers of the learnings whose signs fit a vector best, in no particular order."""
    parts = -(-len(vector) // (8 * _BYTES))
    size = int(database.value("select max(number) as last from learning where project = :project") or 0)
    has_few = size <= _MANY or parts <= _FEWER_PARTS
    fits = _fits_of(database, vector, parts if has_few else _FEWER_PARTS)
    most = max(2 * limit, _COMPARED if has_few else _MORE_COMPARED)
    return [place + 1 for place in _best_places(fits, most)] if fits else []


def _fits_of(database: Database, vector: bytes, parts: int) -> bytes:
    """Return for each learning how well its signs fit a vector, as a byte."""
    tables = _tables(vector[: parts * 8 * _BYTES])
    columns = [column for part in range(parts) for column in _columns(database, part)]
    total = 0
    for column, table in zip(columns, tables, strict=False):
        total += int.from_bytes(column.translate(table), "little")
    return total.to_bytes(min(map(len, columns), default=0), "little")


def _columns(database: Database, part: int) -> list[bytes]:
    """Return the signs of all learnings, one text of bytes for each eight dimensions."""
    stamp = database.counter(STAMP)
    known = database.kept.get(part)
    if known is None or known[0] != stamp:
        known = database.kept[part] = (stamp, _read_columns(database, part))
    return known[1]


def _read_columns(database: Database, part: int) -> list[bytes]:
    sql = "select block, signs from vector_block where project = :project and model = :model and part = :part"
    blocks = {row["block"]: row["signs"] for row in database.rows(sql, model=MODEL, part=part)}
    missing = bytes(_LEARNINGS * _BYTES)
    in_order = [blocks.get(block, missing) for block in range(max(blocks, default=-1) + 1)]
    starts = range(0, _LEARNINGS * _BYTES, _LEARNINGS)
    return [b"".join([signs[start : start + _LEARNINGS] for signs in in_order]) for start in starts]


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
