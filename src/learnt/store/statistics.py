"""Statistics that the database computes, so that not all rows are read.

Statistics over time are sums by day, where a day is a number of UTC days since 1970; callers add up weeks and months.
"""

from __future__ import annotations

from collections.abc import Sequence

from learnt.model import DELIVERED, Value
from learnt.store.activity import HAS_WARNING, WARNING_PATTERN
from learnt.store.database import Database
from learnt.text.times import DAY_MS

DaySum = tuple[int, int, float]  # the day, the number of rows, and their sum

_ORDERS = ("times_helpful", "times_not_helpful", "recurrences")


class Ranked(Value):
    """A learning with its counts."""

    id: str
    title: str
    status: str
    times_injected: int
    times_helpful: int
    times_not_helpful: int
    recurrences: int


class Effect(Value):
    """The tasks that began on one day, before or after the first learning."""

    day: int
    after: bool
    tasks: int
    done: int
    at_first: int
    """How many tasks were done at the first attempt."""
    attempts: int
    """How many attempts the done tasks took in total."""


class Regenerated(Value):
    """Totals over all updates of learnings files."""

    made: int
    unchanged: int
    failed: int
    added: int
    removed: int
    churn: float
    """The mean share of bullets that were added or removed, over all updates that changed something."""
    cost_usd: float


def ranked(database: Database, order: str, *, limit: int) -> list[Ranked]:
    """Return the learnings for which a counter is highest, except those for which it is 0."""
    assert order in _ORDERS  # noqa: S101 - it becomes part of the SQL
    rows = database.rows(
        f"""
        select id, title, status, times_injected, times_helpful, times_not_helpful, recurrences
          from learning
         where project = :project
           and id > '' -- read by id, the order on the disk
           and {order} > 0
         order by {order} desc, id
         limit :limit
        """,
        limit=limit,
    )
    return [Ranked(**row) for row in rows]


def task_lengths(database: Database, *, since: int) -> list[DaySum]:
    """Return how many tasks were created on each day, and how long their texts are in characters."""
    lengths = "sum(length(title) + length(text))"
    return _by_day(database, "task", "created_at", lengths, since, more="and type != 'session'")


def brief_tokens(database: Database, *, since: int) -> list[DaySum]:
    """Return the number of delivered briefs on each day, without warnings, and how many tokens they have."""
    which = f"and delivery = '{DELIVERED}' and not {HAS_WARNING}"
    return _by_day(database, "brief", "created_at", "sum(tokens)", since, more=which, warns=WARNING_PATTERN)


def count_unknown_deliveries(database: Database, *, since: int) -> int:
    """Return how many briefs, without warnings, may have been delivered, or not."""
    sql = f"""
        select count(*)
          from brief
         where project = :project
           and created_at >= :since
           and delivery = ''
           and not {HAS_WARNING}
        """
    return int(database.value(sql, since=since, warns=WARNING_PATTERN))


def spent(database: Database) -> list[DaySum]:
    """Return the number of model calls on each day, and their cost."""
    return _by_day(database, "model_call", "at", "coalesce(sum(cost_usd), 0)", 0)


def first_learning_at(database: Database) -> int | None:
    """Return when the first learning was created, or None."""
    created_at = database.value("select min(created_at) as first from learning where project = :project")
    return None if created_at is None else int(created_at)


def effects(database: Database, *, learnt_at: int) -> list[Effect]:
    """Return the outcomes of the tasks that began on each day; interrupted attempts are ignored."""
    rows = database.rows(
        f"""
        select begun_at / {DAY_MS} as day,
               case when begun_at >= :learnt_at then 1 else 0 end as later,
               count(*) as tasks,
               sum(case when done > 0 then 1 else 0 end) as done,
               sum(case when done > 0 and attempts = 1 then 1 else 0 end) as at_first,
               sum(case when done > 0 then attempts else 0 end) as attempts
          from (
              select attempt.task as task, min(attempt.started_at) as begun_at, count(*) as attempts,
                     sum(case when attempt.result = 'done' then 1 else 0 end) as done
                from attempt
                join task on task.project = attempt.project and task.id = attempt.task
               where attempt.project = :project
                 and attempt.result != 'interrupted'
                 and task.type != 'session'
               group by attempt.task
          ) tried
         group by 1, 2
         order by 1, 2
        """,
        learnt_at=learnt_at,
    )
    int_columns = ("day", "tasks", "done", "at_first", "attempts")
    return [Effect(after=bool(row["later"]), **{name: int(row[name]) for name in int_columns}) for row in rows]


def failure_signs(database: Database, *, limit: int) -> list[tuple[str, str, int]]:
    """Return the task, error and time of the latest failed attempts, newest first; conversations are ignored."""
    rows = database.rows(
        """
        select failure.task as task, failure.created_at as at,
               case when failure.error != '' then failure.error else failure.reason end as text
          from failure
          join task on task.project = failure.project and task.id = failure.task
         where failure.project = :project
           and task.type != 'session'
         order by failure.created_at desc, failure.attempt
         limit :limit
        """,
        limit=limit,
    )
    return [(row["task"], row["text"], row["at"]) for row in rows]


def attempt_starts(database: Database, *, limit: int) -> list[int]:
    """Return the start times of the latest attempts, newest first; conversations and interruptions are ignored."""
    return database.column(
        """
        select attempt.started_at
          from attempt
          join task on task.project = attempt.project and task.id = attempt.task
         where attempt.project = :project
           and attempt.result != 'interrupted'
           and task.type != 'session'
         order by attempt.started_at desc
         limit :limit
        """,
        limit=limit,
    )


def learnt_from(database: Database, tasks: Sequence[str]) -> tuple[str, str] | None:
    """Return the id and title of the most helpful learning from these tasks, or None."""
    row = database.row(
        f"""
        select id, title
          from learning
         where project = :project
           and status = 'active'
           and id in (
               select id
                 from learning
                where project = :project
                  and {database.one_of("task", "tasks")}
                union
               select learning
                 from discovery
                where project = :project
                  and {database.one_of("task", "tasks")}
           )
         order by times_helpful desc, recurrences desc, created_at, id
         limit 1
        """,
        tasks=database.list_value(tasks),
    )
    return None if row is None else (row["id"], row["title"])


def regenerated(database: Database) -> Regenerated:
    """Return the totals over all finished regenerations."""
    row = database.row(
        """
        select coalesce(sum(case when result = 'done' then 1 else 0 end), 0) as made,
               coalesce(sum(case when result = 'unchanged' then 1 else 0 end), 0) as unchanged,
               coalesce(sum(case when result = 'failed' then 1 else 0 end), 0) as failed,
               coalesce(sum(case when result = 'done' then added else 0 end), 0) as added,
               coalesce(sum(case when result = 'done' then removed else 0 end), 0) as removed,
               coalesce(avg(case when result = 'done' then churn end), 0) as churn,
               coalesce(sum(cost_usd), 0) as cost_usd
          from regeneration
         where project = :project
        """
    )
    assert row is not None  # noqa: S101 - sums without groups are one row
    int_columns = ("made", "unchanged", "failed", "added", "removed")
    return Regenerated(**{**row, **{name: int(row[name]) for name in int_columns}})


def _by_day(
    database: Database, table: str, time: str, total: str, since: int, *, more: str = "", **values: str
) -> list[DaySum]:
    rows = database.rows(
        f"""
        select {time} / {DAY_MS} as day, count(*) as count, {total} as total
          from {table}
         where project = :project
           and {time} >= :since
           {more}
         group by 1
         order by 1
        """,
        since=since,
        **values,
    )
    return [(int(row["day"]), int(row["count"]), float(row["total"])) for row in rows]
