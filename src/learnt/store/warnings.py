"""Warnings of missteps in the database: what came of them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.store.database import Database


def prevented(database: Database, since: int | None = None) -> dict[str, int]:
    """Return how many errors warnings prevented, by the agent that was warned; `since`: warned from that moment on.

    A warning prevented an error when it was not needless and the command did not fail again. Where the call was not
    stopped, the one failure that it warned of could still happen, and counts for nothing.
    """
    rows = database.rows(
        """
        select agent, count(*) as prevented
          from warning
         where project = :project
           and needless = 0
           and failures <= case when denied = 1 then 0 else 1 end
           and warned_at >= :since
         group by agent
         order by prevented desc, agent
        """,
        since=since or 0,
    )
    return {row["agent"]: row["prevented"] for row in rows}
