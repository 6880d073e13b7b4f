"""Tasks, the attempts at them, and the reports on those that failed."""

from __future__ import annotations

import json

from learnt.errors import NotFound
from learnt.model import DIFFICULTIES, Attempt, Failure, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.store.database import Database, Row


def ensure(database: Database, task: Task) -> None:
    """Insert a task on its first use, and its goal on that one's."""
    database.execute(
        """
        insert into task (project, id, title, text, type, status, goal, agent, created_at, updated_at)
        values (:project, :id, :title, :text, :type, :status, :goal, :agent, :created_at, :updated_at)
        on conflict (project, id) do nothing
        """,
        **task.as_dict(),
    )
    if task.goal:
        database.execute(
            """
            insert into goal (project, name, created_at)
            values (:project, :name, :created_at)
            on conflict (project, name) do nothing
            """,
            name=task.goal,
            created_at=task.created_at,
        )


def set_status(database: Database, id: str, status: str, *, at: int) -> None:
    """Change what a task waits for."""
    database.execute(
        "update task set status = :status, updated_at = :at where project = :project and id = :id",
        id=id,
        status=status,
        at=at,
    )


def find(database: Database, id: str, *, for_update: bool = False) -> Task | None:
    """Return a task, or None."""
    lock = database.for_update if for_update else ""
    row = database.row(f"select * from task where project = :project and id = :id{lock}", id=id)
    return None if row is None else Task(**{field: row[field] for field in Task.fields})


def get(database: Database, id: str) -> Task:
    """Return a task, or raise NotFound."""
    task = find(database, id)
    if task is None:
        raise NotFound(f"no task `{id}`", hint="`learnt task add` makes one")
    return task


def attempts(database: Database, task: str) -> list[Attempt]:
    """Return the attempts at a task, the latest first."""
    rows = database.rows(
        """
        select *
          from attempt
         where project = :project
           and task = :task
         order by number desc
        """,
        task=task,
    )
    return [_attempt(row) for row in rows]


def failures(database: Database, task: str) -> dict[str, Failure]:
    """Return the reports on failed attempts at a task, by attempt."""
    rows = database.rows("select * from failure where project = :project and task = :task", task=task)
    return {row["attempt"]: _failure(row) for row in rows}


def archive_failures(database: Database, *, done_before: int, at: int) -> int:
    """Put the reports on tasks away that were done before a moment; return how many."""
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


def attempts_since(database: Database, at: int) -> int:
    """Return how many attempts there were after a moment."""
    return int(
        database.value("select count(*) as made from attempt where project = :project and started_at > :at", at=at)
    )


def results_since(database: Database, at: int) -> list[str]:
    """Return the results of all attempts since a moment."""
    rows = database.rows("select result from attempt where project = :project and started_at >= :at", at=at)
    return [row["result"] for row in rows]


def add_attempt(database: Database, attempt: Attempt, failure: Failure | None) -> None:
    """Record an attempt and, if it failed, its report; a second time changes nothing."""
    database.execute(
        """
        insert into attempt (project, id, task, number, result, model, model_reason, started_at, duration_ms,
                             cost_usd, tokens_in, tokens_out, difficulty)
        values (:project, :id, :task, :number, :result, :model, :model_reason, :started_at, :duration_ms,
                :cost_usd, :tokens_in, :tokens_out, :difficulty)
        on conflict (project, id) do nothing
        """,
        **{**attempt.as_dict(), "difficulty": DIFFICULTIES.index(attempt.difficulty) if attempt.difficulty else None},
    )
    if failure is not None:
        database.execute(
            """
            insert into failure (project, attempt, task, tried, reason, category, files, error, avoid, suggestion,
                                 created_at)
            values (:project, :attempt, :task, :tried, :reason, :category, :files, :error, :avoid, :suggestion,
                    :created_at)
            on conflict (project, attempt) do nothing
            """,
            **{**failure.as_dict(), "files": json.dumps(failure.files, ensure_ascii=False)},
        )


def _attempt(row: Row) -> Attempt:
    fields = {field: row[field] for field in Attempt.fields}
    rank = row["difficulty"]
    return Attempt(**{**fields, "difficulty": "" if rank is None else DIFFICULTIES[rank]})


def _failure(row: Row) -> Failure:
    fields = {field: row[field] for field in Failure.fields}
    return Failure(**{**fields, "files": tuple(json.loads(row["files"]))})
