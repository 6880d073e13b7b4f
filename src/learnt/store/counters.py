"""Numbers that count up, in the transaction of what they count."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.store.database import Database

TASKS_SINCE_UPDATE = "tasks since update"
UPDATE_STARTED_AT = "update started at"
LEARNINGS_STAMP = "stamp of learnings"


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


def claim(database: Database, name: str, *, now: int, before: int) -> bool:
    """Within a transaction: put the time into a counter; False when another process has done so after a moment."""
    return bool(
        database.execute(
            """
            insert into counter (project, name, value)
            values (:project, :name, :now)
            on conflict (project, name) do update set value = :now where counter.value <= :before
            """,
            name=name,
            now=now,
            before=before,
        )
    )


def reset(database: Database, name: str) -> None:
    """Within a transaction: set a counter back to 0."""
    database.execute("update counter set value = 0 where project = :project and name = :name", name=name)


def renew(database: Database, name: str) -> None:
    """Within a transaction: give a counter a value that it never had.

    By chance, not by counting on: a database that was restored would count to the same numbers again.
    """
    database.execute(
        """
        insert into counter (project, name, value)
        values (:project, :name, :value)
        on conflict (project, name) do update set value = :value
        """,
        name=name,
        value=int.from_bytes(os.urandom(7), "big"),
    )
