"""Many learnings at once: those of an import, and a new index of all learnings.

The events of an import are stored together: see `learnings.unfold`.
"""

from __future__ import annotations

from learnt.store import index
from learnt.store.database import insert_statement
from learnt.store.index import Filter
from learnt.store.learnings import COLUMNS, DERIVED, Change, derive, each, make_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from learnt.model import Learning
    from learnt.store.database import Database, Row

_INSERT = insert_statement("learning", (*COLUMNS, *DERIVED, "number", "batch"))
_NUMBER = """
    update learning
       set number = :number,
           sameness = :sameness,
           title_sameness = :title_sameness
     where project = :project
       and id = :id
"""
_BATCH = 500


class Prepared:
    """A new learning as it is written: its row and its entry in the index."""

    __slots__ = ("entry", "row")

    def __init__(self, row: Row, entry: index.Entry) -> None:
        self.row = row
        self.entry = entry

    @classmethod
    def of(cls, learning: Learning) -> Prepared:
        """Return what is written of a learning."""
        return cls(make_row(learning), index.Entry.of(learning))

    def as_plain(self) -> tuple[Any, ...]:
        """Return the same as plain values, which can be sent to another process."""
        return (self.row, self.entry.as_plain())

    @classmethod
    def from_plain(cls, values: tuple[Any, ...]) -> Prepared:
        """Return what was made to plain values."""
        row, entry = values
        return cls(row, index.Entry.from_plain(entry))


def add_imported(database: Database, learnings: Sequence[Prepared], change: Change) -> None:
    """Insert new learnings of an import; their events are stored together, see `learnings.unfold`."""
    if not learnings:
        return
    database.lock_words()
    batch = int(database.value("select max(number) as last from import_batch where project = :project") or 0) + 1
    database.insert("import_batch", {"number": batch, "id": change.reason, "at": change.at, "who": change.who})
    first = index.next_number(database)
    for number, prepared in enumerate(learnings, first):
        prepared.row.update(number=number, batch=batch)
    database.execute_many(_INSERT, [prepared.row for prepared in learnings])
    index.put_new(database, [prepared.entry for prepared in learnings], number=first)
    database.renew_learnings_stamp()


def index_anew(database: Database) -> None:
    """Index the learnings of all projects anew."""
    own = database.project
    for project in database.column("select distinct project from learning order by project"):
        database.project = project
        index_project(database)
    database.project = own


def index_project(database: Database) -> None:
    """Index all learnings in this project anew, and give them the numbers of their order."""
    index.clear(database)
    database.execute("update learning set number = null where project = :project")
    first = 1
    for some in _in_batches(each(database, Filter(status=None))):
        rows = [
            {"id": learning.id, "number": number, **derive(learning)} for number, learning in enumerate(some, first)
        ]
        database.execute_many(_NUMBER, rows)
        index.put_new(database, [index.Entry.of(learning) for learning in some], number=first)
        first += len(some)
    database.renew_learnings_stamp()


def _in_batches(learnings: Iterator[Learning]) -> Iterator[list[Learning]]:
    batch: list[Learning] = []
    for learning in learnings:
        batch.append(learning)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
