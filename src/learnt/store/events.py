"""The history of learnings: events are only ever added, and numbered for each learning from 1."""

from __future__ import annotations

import json

from learnt.errors import NotFound
from learnt.model import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.store.database import Database, Row


def append(database: Database, event: Event) -> None:
    """Add an event."""
    database.execute(
        """
        insert into event (project, subject, version, id, at, who, what, old, new, reason, undoes)
        values (:project, :subject, :version, :id, :at, :who, :what, :old, :new, :reason, :undoes)
        """,
        **{**event.as_dict(), "old": _json(event.old), "new": _json(event.new)},
    )


def of(database: Database, subject: str) -> list[Event]:
    """Return the events of a learning, oldest first."""
    rows = database.rows(
        """
        select *
          from event
         where project = :project
           and subject = :subject
         order by version
        """,
        subject=subject,
    )
    return [_event(row) for row in rows]


def get(database: Database, id: str) -> Event:
    """Return one event, or raise NotFound."""
    row = database.row(
        """
        select *
          from event
         where project = :project
           and id = :id
        """,
        id=id,
    )
    if row is None:
        raise NotFound(f"no event `{id}`", hint="`learnt history ID` shows the events of a learning")
    return _event(row)


def _json(fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False)


def _event(row: Row) -> Event:
    fields = {field: row[field] for field in Event.fields}
    return Event(**{**fields, "old": json.loads(row["old"]), "new": json.loads(row["new"])})
