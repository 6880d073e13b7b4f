"""What people are asked: escalations, which wait for an answer, and opinions on whether the learnings helped."""

from __future__ import annotations

import json

from learnt.errors import NotFound
from learnt.model import Value, check_choice, check_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from learnt.store.database import Database, Row


class Escalation(Value):
    """Something that only a person may decide."""

    id: str
    subject: str
    question: str
    detail: Mapping[str, Any] = {}
    status: str = "open"
    answer: str = ""
    created_at: int = 0
    resolved_at: int | None = None
    resolved_by: str = ""

    def check(self) -> None:
        check_id("esc", self.id)
        check_choice("status", self.status, ("open", "resolved"))


def add(database: Database, escalation: Escalation) -> None:
    """Ask a person; a second time changes nothing."""
    row = {**escalation.as_dict(), "detail": json.dumps(escalation.detail, ensure_ascii=False)}
    database.insert("escalation", row, otherwise="on conflict (project, id) do nothing")


def get(database: Database, id: str, *, for_update: bool = False) -> Escalation:
    """Return an escalation, or raise NotFound."""
    lock = database.for_update if for_update else ""
    row = database.row(f"select * from escalation where project = :project and id = :id{lock}", id=id)
    if row is None:
        raise NotFound(f"no escalation `{id[:100]}`", hint="`learnt escalations --all` shows the ids")
    return _escalation(row)


def every(database: Database, *, status: str | None = "open", subject: str | None = None) -> list[Escalation]:
    """Return the escalations that fit, the oldest first; None means any."""
    rows = database.rows(
        """
        select *
          from escalation
         where project = :project
           and (:status = '' or status = :status)
           and (:subject = '' or subject = :subject)
         order by created_at, id
        """,
        status=status or "",
        subject=subject or "",
    )
    return [_escalation(row) for row in rows]


def resolve(database: Database, escalation: Escalation) -> None:
    """Keep a person's answer."""
    database.execute(
        """
        update escalation
           set status = :status, answer = :answer, resolved_at = :resolved_at, resolved_by = :resolved_by
         where project = :project
           and id = :id
        """,
        **{name: getattr(escalation, name) for name in ("id", "status", "answer", "resolved_at", "resolved_by")},
    )


def add_opinion(database: Database, id: str, answer: str, *, who: str, at: int) -> None:
    """Keep what a person answered when asked whether the learnings helped."""
    database.insert("opinion", {"id": id, "answer": answer, "who": who, "at": at})


def count_opinions(database: Database) -> dict[str, int]:
    """Return how often each answer was given."""
    rows = database.rows(
        "select answer, count(*) as given from opinion where project = :project group by answer order by answer"
    )
    return {row["answer"]: int(row["given"]) for row in rows}


def _escalation(row: Row) -> Escalation:
    return Escalation.from_row(row, detail=json.loads(row["detail"]))
