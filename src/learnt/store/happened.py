"""Briefs with their injections, and marks: what happened between learnings and agents.

Each is applied by one function from a plain JSON object, the same whether the database takes it at once or a replay of
the spool brings it later; applying one again changes nothing.
"""

from __future__ import annotations

import json

from learnt.errors import NotFound
from learnt.model import Attempt, Brief, Failure, Injection, Task, Value, check_id
from learnt.store import tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from learnt.store.database import Database


class Mark(Value):
    """Helpful or not helpful, on one injection."""

    learning: str
    task: str
    helpful: bool
    at: int
    who: str = ""

    def check(self) -> None:
        check_id("learn", self.learning)
        check_id("task", self.task)


def brief_body(task: Task | None, brief: Brief) -> dict[str, Any]:
    """Return a brief as the object that is applied or spooled."""
    injections = [injection.as_dict() for injection in brief.injections]
    fields = {name: value for name, value in brief.as_dict().items() if name != "text"}
    return {"task": task and task.as_dict(), "brief": {**fields, "injections": injections}}


def attempt_body(task: Task, attempt: Attempt, failure: Failure | None) -> dict[str, Any]:
    """Return an attempt as the object that is applied or spooled."""
    return {"task": task.as_dict(), "attempt": attempt.as_dict(), "failure": failure and failure.as_dict()}


def apply_brief(database: Database, body: dict[str, Any]) -> None:
    """Record a brief; a learning that the task was given before is not counted again."""
    injections = tuple(Injection(**fields) for fields in body["brief"]["injections"])
    brief = Brief(**{**body["brief"], "injections": injections})
    if body["task"]:
        tasks.ensure(database, Task(**body["task"]))
    database.execute(
        """
        insert into brief (project, id, task, agent, tokens, text_hash, client, occasion, asked_by, duration_ms,
                           receipt, created_at)
        values (:project, :id, :task, :agent, :tokens, :text_hash, :client, :occasion, :asked_by, :duration_ms,
                :receipt, :created_at)
        on conflict (project, id) do nothing
        """,
        **{
            **{name: value for name, value in brief.as_dict().items() if name not in ("injections", "text")},
            "receipt": json.dumps(brief.receipt, ensure_ascii=False),
        },
    )
    for injection in sorted(brief.injections, key=lambda injection: injection.learning):  # one order for all writers
        _apply_injection(database, injection)


def apply_attempt(database: Database, body: dict[str, Any]) -> None:
    """Record an attempt and, if it failed, its report."""
    tasks.ensure(database, Task(**body["task"]))
    failure = body["failure"] and Failure(**{**body["failure"], "files": tuple(body["failure"]["files"])})
    tasks.add_attempt(database, Attempt(**body["attempt"]), failure)


APPLY: dict[str, Callable[[Database, dict[str, Any]], None]] = {"brief": apply_brief, "attempt": apply_attempt}


def get_brief(database: Database, id: str) -> Brief:
    """Return a brief with its receipt, or raise NotFound; its text is not stored."""
    row = database.row("select * from brief where project = :project and id = :id", id=id)
    if row is None:
        raise NotFound(f"no brief `{id[:100]}`", hint="`learnt activity --ids` shows the ids")
    fields = {field: row[field] for field in Brief.fields if field in row}
    return Brief(**{**fields, "receipt": json.loads(row["receipt"])})


def injected(database: Database, task: str, *, since: int = 0) -> dict[str, bool]:
    """Return the learnings that a task was given since a moment, and whether each was held out."""
    rows = database.rows(
        """
        select learning, held_out
          from injection
         where project = :project
           and task = :task
           and injected_at >= :since
         order by injected_at, learning
        """,
        task=task,
        since=since,
    )
    return {row["learning"]: bool(row["held_out"]) for row in rows}


def given_to(database: Database, task: str) -> dict[str, str]:
    """Return the learnings that a task was given, and to which agent the latest brief with each of them went."""
    rows = database.rows(
        """
        select injection.learning, brief.agent
          from injection
          join brief on brief.project = injection.project and brief.id = injection.brief
         where injection.project = :project
           and injection.task = :task
           and injection.held_out = 0
        """,
        task=task,
    )
    return {row["learning"]: row["agent"] for row in rows}


def agents(database: Database, *, limit: int) -> list[str]:
    """Return the agents that the latest briefs went to, each once."""
    rows = database.rows(
        """
        select agent, max(created_at) as latest
          from (
                select agent, created_at
                  from brief
                 where project = :project
                 order by created_at desc
                 limit :limit
               ) as briefs
         where agent <> ''
         group by agent
         order by latest desc, agent
        """,
        limit=limit,
    )
    return [row["agent"] for row in rows]


def add_mark(database: Database, mark: Mark) -> bool:
    """Record a mark on an injection; return False when there was one already."""
    return bool(
        database.execute(
            """
            insert into mark (project, learning, task, helpful, at, who)
            values (:project, :learning, :task, :helpful, :at, :who)
            on conflict (project, learning, task) do nothing
            """,
            **{**mark.as_dict(), "helpful": int(mark.helpful)},
        )
    )


def remove_mark(database: Database, mark: Mark) -> None:
    """Take a mark back, so that there can be another one."""
    database.execute(
        "delete from mark where project = :project and learning = :learning and task = :task",
        learning=mark.learning,
        task=mark.task,
    )


def marked_at(database: Database, task: str, at: int) -> set[str]:
    """Return the learnings that were marked for a task at a moment."""
    rows = database.rows(
        "select learning from mark where project = :project and task = :task and at = :at", task=task, at=at
    )
    return {row["learning"] for row in rows}


def _apply_injection(database: Database, injection: Injection) -> None:
    is_new = database.execute(
        """
        insert into injection (project, learning, task, brief, injected_at, held_out)
        values (:project, :learning, :task, :brief, :injected_at, :held_out)
        on conflict (project, learning, task) do nothing
        """,
        **{**injection.as_dict(), "held_out": int(injection.held_out)},
    )
    if not is_new:
        database.execute(
            """
            update injection
               set brief = :brief, injected_at = :injected_at
             where project = :project
               and learning = :learning
               and task = :task
               and injected_at <= :injected_at
            """,
            brief=injection.brief,
            injected_at=injection.injected_at,
            learning=injection.learning,
            task=injection.task,
        )
    elif not injection.held_out:
        count_use(database, injection.learning, at=injection.injected_at)


def count_use(database: Database, id: str, *, at: int) -> None:
    """Count that a learning was shown; where it lives elsewhere, nothing happens here."""
    database.execute(
        """
        update learning
           set times_injected = times_injected + 1,
               last_injected_at = case when last_injected_at > :at then last_injected_at else :at end
         where project = :project
           and id = :id
        """,
        at=at,
        id=id,
    )


def any_injected(database: Database, of_tasks: Sequence[str], *, since: int) -> bool:
    """Say whether one of these tasks was given a learning since a moment."""
    found = database.value(
        f"""
        select 1 as found
          from injection
         where project = :project
           and {database.one_of("task", "tasks")}
           and held_out = 0
           and injected_at >= :since
         limit 1
        """,
        tasks=database.list_value(of_tasks),
        since=since,
    )
    return found is not None
