"""Runs of consolidation: when they began and ended, and what became of each entry.

The time since the last one is read from here; nothing is guessed from headings that disappeared from a file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from learnt.errors import NotFound
from learnt.model import Value, check_choice
from learnt.store.database import Database, clean_row, read_json

if TYPE_CHECKING:
    from learnt.store.database import Row

# As `put` writes it. A quotation mark within a title is escaped, so that no title looks like this.
_TOOK_ENTRIES = " or ".join(f"""entries like '%"verdict": "{verdict}"%'""" for verdict in ("moved", "dropped"))
CAUSES = ("size", "staleness", "person")
RESULTS = ("running", "done", "failed")


class ConsolidationRun(Value):
    """A run that moved aged learnings into topic files, or tried to."""

    id: str
    cause: str
    started_at: int
    result: str = "running"
    entries: Sequence[dict[str, Any]] = ()
    """What became of each entry: `entry` (the learning's id, or the title), `verdict`, and `target` (the file)."""
    report: str = ""
    """The path of the report."""
    finished_at: int | None = None
    undone_at: int | None = None

    def check(self) -> None:
        check_choice("cause", self.cause, CAUSES)
        check_choice("result", self.result, RESULTS)

    def count(self, verdict: str) -> int:
        """Return how many entries have this verdict."""
        return sum(entry.get("verdict") == verdict for entry in self.entries)


def put(database: Database, run: ConsolidationRun) -> None:
    """Store a run, replacing its earlier state."""
    row = {**run.as_dict(), "entries": json.dumps(run.entries, ensure_ascii=False)}
    changes = ", ".join(f"{column} = :{column}" for column in row if column != "id")
    database.insert("consolidation", row, otherwise=f"on conflict (project, id) do update set {changes}")


def get(database: Database, id: str) -> ConsolidationRun:
    """Return a run; raise NotFound if there is none with this id."""
    row = database.row("select * from consolidation where project = :project and id = :id", id=id)
    if row is None:
        raise NotFound(f"no consolidation `{id[:100]}` in this project", hint="`learnt ages` shows when the last was")
    return _read_row(row)


def latest(database: Database, *, limit: int) -> list[ConsolidationRun]:
    """Return the latest runs, newest first, whatever came of them."""
    rows = database.rows(
        """
        select *
          from consolidation
         where project = :project
         order by started_at desc, id desc
         limit :limit
        """,
        limit=limit,
    )
    return [_read_row(row) for row in rows]


def last_finished_at(database: Database) -> int | None:
    """Return when the last run ended that took entries out of a staging file and was not undone; None if none did.

    A run that only asked questions is none: the entries still wait.
    """
    finished_at = database.value(
        f"""
        select max(finished_at) as last
          from consolidation
         where project = :project
           and result = 'done'
           and undone_at is null
           and ({_TOOK_ENTRIES})
        """
    )
    return None if finished_at is None else int(finished_at)


def list_unconsolidated(database: Database) -> list[tuple[str, str, int]]:
    """Return the id, the title and the time of each active learning that is in no topic file, oldest first."""
    rows = database.rows(
        """
        select id, title, created_at
          from learning
         where project = :project
           and status = 'active'
           and topic_file = ''
         order by created_at, id
        """
    )
    return [(row["id"], row["title"], row["created_at"]) for row in map(clean_row, rows)]


def _read_row(row: Row) -> ConsolidationRun:
    return ConsolidationRun.from_row(clean_row(row), entries=tuple(read_json(row["entries"])))
