"""Warnings of missteps in the database: what came of them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.store.database import Database


# The warning was no mistake, and the command did not fail again; where it did not stop the call, that one may fail.
PREVENTED = "warning.needless = 0 and warning.failures <= 1 - warning.denied"


def prevented(database: Database, since: int | None = None) -> dict[str, int]:
    """Return how many errors warnings prevented, by the agent that was warned; `since`: warned from that moment on."""
    rows = database.rows(
        f"""
        select agent, count(*) as prevented
          from warning
         where project = :project
           and {PREVENTED}
           and warned_at >= :since
         group by agent
         order by prevented desc, agent
        """,
        since=since or 0,
    )
    return {row["agent"]: row["prevented"] for row in rows}
