"""Numbers that count up, in the transaction of what they count."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.store.database import Database

TASKS_SINCE_UPDATE = "tasks since update"


def add(database: Database, name: str, number: int = 1) -> int:
    """Within a transaction: count on, or back; return where the counter now stands."""
    return int(
        database.value(
            """
            insert into counter (project, name, value)
            values (:project, :name, :number)
            on conflict (project, name) do update set value = counter.value + :number
            returning value
            """,
            name=name,
            number=number,
        )
    )


def value(database: Database, name: str) -> int:
    """Return where a counter stands."""
    return int(database.value("select value from counter where project = :project and name = :name", name=name) or 0)
