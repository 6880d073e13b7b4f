"""What ages: learnings that have not been used for a while, reports on finished tasks, and which time is believed."""

from __future__ import annotations

from learnt.model import PROGRAM
from learnt.store.learnings import read_row
from learnt.text.times import DAY_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.model import Learning
    from learnt.store.database import Database

_AGED_UNTIL = "learnings aged until"
_AGED_AT = "learnings aged at"


def unused_since(database: Database, *, before: int, after: str = "", limit: int) -> list[Learning]:
    """Return active learnings that have not been created, shown or decayed since `before`, in the order of their ids.

    Only learnings with ids greater than `after` are returned.
    """
    rows = database.rows(
        """
        select *
          from learning
         where project = :project
           and status = 'active'
           and created_at <= :before
           and (last_injected_at is null or last_injected_at <= :before)
           and (last_decayed_at is null or last_decayed_at <= :before)
           and id > :after
         order by id
         limit :limit
        """,
        before=before,
        after=after,
        limit=limit,
    )
    return database.readable(read_row, rows, "learning")


def believe_time(database: Database, now: int, *, at_most: int) -> int:
    """Within a transaction: return the time to age learnings by, at most `at_most` after the last sign of life.

    A sign of life is an earlier call, an attempt, an event that the program did not cause, or the first event; one from
    the future is ignored. Calls within a day return the same time, so that repeating a call ages nothing.
    """
    last_call, earlier = database.counter(_AGED_AT), database.counter(_AGED_UNTIL)
    if 0 <= now - last_call < DAY_MS and earlier <= now:
        return earlier
    sql = """
        select coalesce(max(case when who <> :program then at end), min(at)) as latest
          from (
              select at, who from event where project = :project
              union all
              select at, who from import_batch where project = :project
          ) known
         where at <= :now
    """
    latest = int(database.value(sql, now=now, program=PROGRAM) or 0)
    sql = "select max(started_at) as latest from attempt where project = :project and started_at <= :now"
    latest = max(latest, int(database.value(sql, now=now) or 0))
    believed = min(now, max(latest, earlier if earlier <= now else 0) + at_most)
    for name, value in ((_AGED_UNTIL, believed), (_AGED_AT, now)):
        row = {"name": name, "value": value}
        database.insert("counter", row, otherwise="on conflict (project, name) do update set value = :value")
    return believed


def latest_summary_at(database: Database) -> int:
    """Return when the latest learning that replaces others, or would replace them, was created; 0 if there is none."""
    sql = "select max(created_at) as latest from learning where project = :project and replaces != '[]'"
    return int(database.value(sql) or 0)


def archive_failures(database: Database, *, done_before: int, at: int) -> int:
    """Archive the failure reports on tasks that were done before the given time; return how many."""
    return database.execute(
        """
        update failure
           set archived_at = :at
         where project = :project
           and archived_at is null
           and exists (
               select 1
                 from task
                where task.project = failure.project
                  and task.id = failure.task
                  and task.status = 'done'
                  and task.updated_at < :done_before
           )
        """,
        at=at,
        done_before=done_before,
    )
