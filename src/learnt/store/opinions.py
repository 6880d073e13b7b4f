"""What people answered when asked whether the learnings helped."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.store.database import Database


def add(database: Database, id: str, answer: str, *, who: str, at: int) -> None:
    """Keep an answer."""
    database.execute(
        "insert into opinion (project, id, answer, who, at) values (:project, :id, :answer, :who, :at)",
        id=id,
        answer=answer,
        who=who,
        at=at,
    )


def counts(database: Database) -> dict[str, int]:
    """Return how often each answer was given."""
    rows = database.rows(
        "select answer, count(*) as given from opinion where project = :project group by answer order by answer"
    )
    return {row["answer"]: int(row["given"]) for row in rows}
