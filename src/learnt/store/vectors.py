"""What learnings mean, as vectors, and the search for the most similar ones.

Looking at whole vectors would take too long. So the signs of their dimensions are also stored in blocks of some hundred
learnings, eight signs in a byte, and bytes for the same dimensions stand together. A query has a table for each such
byte, which says how well each combination of signs fits: `bytes.translate` looks up the bytes of all learnings at once,
and the sums for all learnings are additions of long numbers. Only the vectors of the best are read.

Only the signs of the first dimensions are looked at: the vectors themselves decide. A process that searches again keeps
the signs, as long as no process has changed a learning.

Each learning has a vector of the embedded table. If an encoder is configured, the worker adds vectors of its model.
"""

from __future__ import annotations

from learnt.store.database import insert_statement
from learnt.text.meaning import MODEL, likenesses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from learnt.store.database import Database

_LEARNINGS = 480
"""How many learnings a block is for: so many that a part of a block just fits into a page."""
_BYTES = 8
"""How many bytes of each learning a part of a block holds."""
_MAX_PARTS = 2
_MANY = 150_000
_COMPARED, _MORE_COMPARED = 80, 200
"""How many vectors are read at least, and in a store with more than `_MANY` learnings."""
_SAMPLE = 400
_MAX_KEPT = 20_000
_IS_POSITIVE = b"0" + b"1" * 127 + b"0" * 128
_LANES = 256
_ONES = int.from_bytes(b"\1\0" * _LANES, "little")
_HAS_BIT = tuple(
    int.from_bytes((b"\0\0" * (1 << bit) + b"\1\0" * (1 << bit)) * (_LANES >> bit + 1), "little") for bit in range(8)
)


def put(database: Database, vectors: Mapping[int, bytes], *, model: str = MODEL) -> None:
    """Store vectors by the numbers of their learnings, which have none of this model yet."""
    rows = [{"model": model, "number": number, "vector": vector} for number, vector in vectors.items()]
    database.execute_many(insert_statement("learning_vector", ("model", "number", "vector")), rows)
    _put_signs(database, {number: _signs(vector) for number, vector in vectors.items()}, model)
    if model != MODEL:
        database.put_for_extension(rows)


def remove(database: Database, number: int) -> None:
    """Remove a learning's vectors, if there are any."""
    where = "project = :project and model = :model and number = :number"
    for model in list_models(database):
        vector = database.value(f"select vector from learning_vector where {where}", model=model, number=number)
        if vector is not None:
            database.execute(f"delete from learning_vector where {where}", model=model, number=number)
            _put_signs(database, {number: bytes(-(-len(vector) // 8))}, model)


def list_models(database: Database) -> list[str]:
    """Return the models that have vectors here."""
    return sorted(database.column("select distinct model from vector_block where project = :project"))


def remove_model(database: Database, model: str) -> None:
    """Remove all vectors of a model."""
    for table in ("learning_vector", "vector_block"):
        database.execute(f"delete from {table} where project = :project and model = :model", model=model)


def list_lacking(database: Database, model: str, *, after: int, limit: int) -> dict[str, int]:
    """Return the ids and numbers of learnings without a vector of this model, those after a number, in order."""
    rows = database.rows(
        """
        select learning.id, learning.number
          from learning
          left join learning_vector
            on learning_vector.project = :project
           and learning_vector.model = :model
           and learning_vector.number = learning.number
         where learning.project = :project
           and learning.number > :after
           and learning_vector.number is null
         order by learning.number
         limit :limit
        """,
        model=model,
        after=after,
        limit=limit,
    )
    return {row["id"]: row["number"] for row in rows}


def list_lacking_of(database: Database, model: str, ids: Sequence[str]) -> dict[str, int]:
    """Return which of these learnings have no vector of this model, with their numbers."""
    sql = f"select id, number from learning where project = :project and {database.one_of('id', 'ids')}"
    numbers = {row["id"]: row["number"] for row in database.rows(sql, ids=database.list_value(ids))}
    done = read(database, ids, model=model)
    return {id: number for id, number in numbers.items() if number and id not in done}


def count(database: Database, model: str) -> int:
    """Return how many learnings have a vector of this model."""
    sql = "select count(*) as number from learning_vector where project = :project and model = :model"
    return int(database.value(sql, model=model))


def prepare(database: Database) -> None:
    """Let the server's extension search the vectors of encoders, if it has one; those that are there already, too."""
    if database.prepare_extension():
        sql = "select model, number, vector from learning_vector where project = :project and model <> :model"
        database.put_for_extension(database.rows(sql, model=MODEL))


def clear(database: Database) -> None:
    """Remove all vectors."""
    for table in ("learning_vector", "vector_block"):
        database.execute(f"delete from {table} where project = :project")


def read(database: Database, ids: Sequence[str], *, model: str = MODEL) -> dict[str, bytes]:
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
        model=model,
        ids=database.list_value(ids),
    )
    return {row["id"]: row["vector"] for row in rows}


class Compared:
    """Vectors that were compared with another one, by the numbers of their learnings."""

    __slots__ = ("likeness", "numbers", "vectors")

    def __init__(self, numbers: list[int], vectors: dict[int, bytes], likeness: dict[int, float]) -> None:
        self.numbers = numbers
        """The learnings that were looked for, most similar first."""
        self.vectors = vectors
        self.likeness = likeness


def find(database: Database, vector: bytes, *, limit: int, model: str = MODEL, also: Iterable[int] = ()) -> Compared:
    """Return the learnings with the most similar vectors; also compare those with the numbers in `also`.

    More than `limit` are returned, because some of them may be unwanted.
    """
    by_extension = None if model == MODEL else database.find_by_extension(model, vector, limit=_COMPARED)
    numbers = _find_near(database, vector, model, limit=limit) if by_extension is None else by_extension
    read = read_by_number(database, [*dict.fromkeys((*numbers, *also))], model, len(vector))
    likeness = dict(zip(read, likenesses(vector, read.values()), strict=True))
    near = [number for number in numbers if number in read]
    return Compared(sorted(near, key=lambda number: (-likeness[number], -number)), read, likeness)


def read_by_number(database: Database, numbers: Sequence[int], model: str, length: int) -> dict[int, bytes]:
    """Return the vectors of learnings, by number; a vector of another length is not one of this model."""
    if model != MODEL:
        return _read_by_number(database, numbers, model, length)
    kept = database.kept.vectors
    if len(kept) > _MAX_KEPT:
        kept.clear()
    kept |= _read_by_number(database, [number for number in numbers if number not in kept], model, length)
    return {number: kept[number] for number in numbers if number in kept}


def _read_by_number(database: Database, numbers: Sequence[int], model: str, length: int) -> dict[int, bytes]:
    rows = database.tuples(
        f"""
        select learning_vector.number, learning_vector.vector
          from {database.each_number("numbers", "near")}
          {database.then_join} learning_vector
            on learning_vector.project = :project
           and learning_vector.model = :model
           and learning_vector.number = near.value
        """,
        model=model,
        numbers=database.list_value(numbers),
    )
    return {number: vector for number, vector in rows if len(vector) == length}


def _signs(vector: bytes) -> bytes:
    """Return one bit for each dimension: whether it is positive."""
    return int(vector[::-1].translate(_IS_POSITIVE), 2).to_bytes(-(-len(vector) // 8), "little")


def _put_signs(database: Database, signs: Mapping[int, bytes], model: str) -> None:
    by_block: dict[int, dict[int, bytes]] = {}
    for number, code in signs.items():
        block, place = divmod(number - 1, _LEARNINGS)
        by_block.setdefault(block, {})[place] = code
    for block, codes in by_block.items():
        _put_block(database, block, codes, model)


def _put_block(database: Database, block: int, codes: Mapping[int, bytes], model: str) -> None:
    """Write the signs of some learnings into their block."""
    length = len(next(iter(codes.values())))
    sql = "select part, signs from vector_block where project = :project and model = :model and block = :block"
    parts = {row["part"]: bytearray(row["signs"]) for row in database.rows(sql, model=model, block=block)}
    for part in range(-(-length // _BYTES)):
        signs = parts.get(part) or bytearray(_LEARNINGS * _BYTES)
        for column in range(part * _BYTES, min(length, (part + 1) * _BYTES)):
            start = (column - part * _BYTES) * _LEARNINGS
            for place, code in codes.items():
                signs[start + place] = code[column]
        row = {"model": model, "part": part, "block": block, "signs": bytes(signs)}
        replace = "on conflict (project, model, part, block) do update set signs = excluded.signs"
        database.insert("vector_block", row, otherwise=replace)


def _find_near(database: Database, vector: bytes, model: str, *, limit: int) -> list[int]:
    """Return the numbers of the learnings whose signs fit a vector best, in no particular order."""
    parts = min(_MAX_PARTS, -(-len(vector) // (8 * _BYTES)))
    fits = _fits_of(database, vector, parts, model)
    most = max(2 * limit, _COMPARED if len(fits) <= _MANY else _MORE_COMPARED)
    return [place + 1 for place in _best_places(fits, most)] if fits else []


def _fits_of(database: Database, vector: bytes, parts: int, model: str) -> bytes:
    """Return for each learning how well its signs fit a vector, as a byte."""
    tables = _tables(vector[: parts * 8 * _BYTES])
    columns = _read_columns(database, parts, model) if model != MODEL else _keep_columns(database, parts)
    total = 0
    for column, table in zip(columns, tables, strict=False):
        total += int.from_bytes(column.translate(table), "little")
    return total.to_bytes(min(map(len, columns), default=0), "little")


def _keep_columns(database: Database, parts: int) -> list[bytes]:
    """Return the signs of the embedded table's vectors as this process keeps them."""
    kept = database.kept.signs
    if parts not in kept:
        kept[parts] = _read_columns(database, parts, MODEL)
    return kept[parts]


def _read_columns(database: Database, parts: int, model: str) -> list[bytes]:
    """Return the signs of all learnings, one text of bytes for each eight dimensions of the first parts."""
    sql = "select part, block, signs from vector_block where project = :project and model = :model and part < :parts"
    blocks = {(part, block): signs for part, block, signs in database.tuples(sql, model=model, parts=parts)}
    missing = bytes(_LEARNINGS * _BYTES)
    last = max((block for _, block in blocks), default=-1)
    columns = []
    for part in range(parts):
        in_order = [blocks.get((part, block), missing) for block in range(last + 1)]
        starts = range(0, _LEARNINGS * _BYTES, _LEARNINGS)
        columns += [b"".join([signs[start : start + _LEARNINGS] for signs in in_order]) for start in starts]
    return columns


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
    places.reverse()  # of equals, those with greater places come first
    return sorted(places, key=fits.__getitem__, reverse=True)[:most]


def _places_from(fits: bytes, least: int) -> list[int]:
    marked = fits.translate(bytes(least) + b"\1" * (256 - least))
    places = []
    place = marked.find(1)
    while place >= 0:
        places.append(place)
        place = marked.find(1, place + 1)
    return places
