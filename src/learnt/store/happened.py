"""What happened to agents: briefs with their injections, attempts with their failures.

These are the records that may wait in the spool. Each is applied by one function, from a plain JSON object, the same
whether the database takes it at once or a replay brings it later; applying one again changes nothing.
"""

from __future__ import annotations

import json

from learnt.model import DIFFICULTIES, Attempt, Brief, Failure, Injection, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from learnt.store.database import Database


def brief_body(task: Task | None, brief: Brief) -> dict[str, Any]:
    """Return a brief as the object that is applied or spooled."""
    injections = [injection.as_dict() for injection in brief.injections]
    return {"task": task and task.as_dict(), "brief": {**brief.as_dict(), "injections": injections}}


def attempt_body(task: Task, attempt: Attempt, failure: Failure | None) -> dict[str, Any]:
    """Return an attempt as the object that is applied or spooled."""
    return {"task": task.as_dict(), "attempt": attempt.as_dict(), "failure": failure and failure.as_dict()}


def apply_brief(database: Database, body: dict[str, Any]) -> None:
    """Record a brief; a learning that the task was given before is not counted again."""
    injections = tuple(Injection(**fields) for fields in body["brief"]["injections"])
    brief = Brief(**{**body["brief"], "injections": injections})
    if body["task"]:
        _ensure_task(database, Task(**body["task"]))
    database.execute(
        """
        insert into brief (project, id, task, agent, tokens, text_hash, receipt, created_at)
        values (:project, :id, :task, :agent, :tokens, :text_hash, :receipt, :created_at)
        on conflict (project, id) do nothing
        """,
        id=brief.id,
        task=brief.task,
        agent=brief.agent,
        tokens=brief.tokens,
        text_hash=brief.text_hash,
        receipt=json.dumps(brief.receipt, ensure_ascii=False),
        created_at=brief.created_at,
    )
    for injection in sorted(brief.injections, key=lambda injection: injection.learning):  # one order for all writers
        _apply_injection(database, injection)


def apply_attempt(database: Database, body: dict[str, Any]) -> None:
    """Record an attempt and, if it failed, its report."""
    attempt = Attempt(**body["attempt"])
    _ensure_task(database, Task(**body["task"]))
    rank = DIFFICULTIES.index(attempt.difficulty) if attempt.difficulty else None
    database.execute(
        """
        insert into attempt (project, id, task, number, result, model, model_reason, started_at, duration_ms,
                             cost_usd, tokens_in, tokens_out, difficulty)
        values (:project, :id, :task, :number, :result, :model, :model_reason, :started_at, :duration_ms,
                :cost_usd, :tokens_in, :tokens_out, :difficulty)
        on conflict (project, id) do nothing
        """,
        **{**attempt.as_dict(), "difficulty": rank},
    )
    if body["failure"]:
        _apply_failure(database, Failure(**{**body["failure"], "files": tuple(body["failure"]["files"])}))


APPLY: dict[str, Callable[[Database, dict[str, Any]], None]] = {"brief": apply_brief, "attempt": apply_attempt}


def _ensure_task(database: Database, task: Task) -> None:
    """Insert the task on its first use."""
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
        database.execute(
            """
            update learning
               set times_injected = times_injected + 1,
                   last_injected_at = case when last_injected_at > :at then last_injected_at else :at end
             where project = :project
               and id = :id
            """,
            at=injection.injected_at,
            id=injection.learning,
        )


def _apply_failure(database: Database, failure: Failure) -> None:
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
