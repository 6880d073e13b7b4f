"""Claims: which worker holds which task, and until when.

A claim is taken and given back in the transaction that changes the task, so that a task is held by one worker at most.
A worker that gives no sign of life loses its claim when the lease runs out.
"""

from __future__ import annotations

from learnt.model import Claim
from learnt.store import tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from learnt.store.database import Database


_FIXED = ("worker", "host", "pid", "started_at")


def take(database: Database, claim: Claim, *, only: Sequence[str] | None = None) -> Claim | None:
    """Hold the task that has been ready longest, of all or of some; None when there is none. Its id is filled in."""
    row = database.row(
        f"""
        select id
          from task
         where project = :project
           and status = 'ready'
           and queued = 1
           and not exists (select 1 from claim where claim.project = task.project and claim.task = task.id)
           and (:any = 1 or {database.one_of("id", "only")})
         order by created_at, id
         limit 1{database.skip_locked}
        """,
        any=int(only is None),
        only=database.list_value(only or ()),
    )
    if row is None:
        return None
    claim = claim.replace(task=row["id"])
    tasks.set_status(database, claim.task, "running", at=claim.started_at)
    database.insert("claim", claim.as_dict())
    return claim


def renew(database: Database, claim: Claim) -> bool:
    """Hold a task longer; False when the claim is lost."""
    return bool(
        database.execute(
            """
            update claim
               set held_until = :held_until
             where project = :project
               and task = :task
               and attempt = :attempt
            """,
            task=claim.task,
            attempt=claim.attempt,
            held_until=claim.held_until,
        )
    )


def keep(database: Database, claim: Claim) -> bool:
    """Hold a task longer, and keep what is known of its agent; False when the claim is lost."""
    return bool(
        database.execute(
            """
            update claim
               set held_until = :held_until,
                   agent_pid = :agent_pid,
                   agent_started = :agent_started,
                   model = :model,
                   model_reason = :model_reason,
                   folder = :folder
             where project = :project
               and task = :task
               and attempt = :attempt
            """,
            **{field: value for field, value in claim.as_dict().items() if field not in _FIXED},
        )
    )


def give_back(database: Database, *, task: str, attempt: str, lapsed_at: int | None = None) -> Claim | None:
    """Let go of a task; None when the claim was lost already, or has not lapsed at a moment that is given."""
    row = database.row(
        f"select * from claim where project = :project and task = :task and attempt = :attempt{database.for_update}",
        task=task,
        attempt=attempt,
    )
    if row is None or (lapsed_at is not None and row["held_until"] >= lapsed_at):
        return None
    database.execute("delete from claim where project = :project and task = :task", task=task)
    return Claim.from_row(row)


def all_of(database: Database) -> list[Claim]:
    """Return all claims, the oldest first."""
    rows = database.rows("select * from claim where project = :project order by started_at, attempt")
    return [Claim.from_row(row) for row in rows]
