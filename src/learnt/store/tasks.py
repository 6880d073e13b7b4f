"""Tasks, claims, attempts and failure reports.

A claim is acquired and released in the transaction that changes the task, so at most one worker has claimed a task. A
worker that does not renew its claim loses it when the lease expires.
"""

from __future__ import annotations

import json
from itertools import takewhile

from learnt.errors import NotFound
from learnt.model import DIFFICULTIES, Attempt, Claim, Failure, Task, Value
from learnt.store.database import clean_row, read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from learnt.store.database import Database, Row

UNKNOWN_CONVERSATION = "an agent's shell"
"""The conversation of an agent that does not say which one it takes part in; it may be any, so it proves nothing."""
_MAX_PARENTS = 10
_FLAGS = ("skip_learnings", "queued")
_FIXED_IN_CLAIM = ("worker", "host", "pid", "started_at")
_UNCHANGED = ("task", "number", "model_reason", "ignored", "price_usd")
_WHERE_CLAIM = "where project = :project and task = :task and attempt = :attempt"
_SET_MISSING_TITLE = """
    on conflict (project, id) do update
       set title = excluded.title,
           text = excluded.text
     where task.title = task.id
       and excluded.title <> task.id
"""
_BRIEFS_OF = """
    select agent, receipt
      from brief
     where project = :project
       and task = :task
       and created_at >= :since
"""
_UPDATE = f"""
    update task
       set {", ".join(f"{field} = :{field}" for field in Task.fields if field != "id")}
     where project = :project
       and id = :id
"""


class RecordedAttempt(Value):
    """A past attempt, with facts about its task."""

    attempt: Attempt
    type: str
    title: str
    goal: str
    symptom: str


def ensure(database: Database, task: Task) -> None:
    """Insert a task and its goal if they are missing; if a stored task's title is only its id, set its title."""
    database.insert("task", _row(task), otherwise=_SET_MISSING_TITLE)
    if task.goal:
        goal = {"name": task.goal, "created_at": task.created_at}
        database.insert("goal", goal, otherwise="on conflict (project, name) do nothing")


def change(database: Database, task: Task) -> None:
    """Store a changed task; if it is done, tasks that were waiting only for it become ready."""
    database.execute(_UPDATE, **_row(task))
    if task.status == "done":
        _release(database, task.id, at=task.updated_at)


def set_status(database: Database, id: str, status: str, *, at: int) -> None:
    """Change a task's status; if the task is done, tasks that were waiting only for it become ready."""
    database.execute(
        "update task set status = :status, updated_at = :at where project = :project and id = :id",
        id=id,
        status=status,
        at=at,
    )
    if status == "done":
        _release(database, id, at=at)


def _release(database: Database, id: str, *, at: int) -> None:
    """Make those tasks ready that were waiting only for this task."""
    waiting = database.column(
        f"""
        select task.id
          from task
          join prerequisite on prerequisite.project = task.project and prerequisite.task = task.id
         where task.project = :project
           and prerequisite.needs = :id
           and task.status = 'waiting'
         order by task.id
        {database.for_update_of("task")}
        """,
        id=id,
    )
    for task in waiting:
        if not open_needs(database, task):
            set_status(database, task, "ready", at=at)


def add_need(database: Database, task: str, needs: str) -> None:
    """Make a task wait for another task."""
    ignore = "on conflict (project, task, needs) do nothing"
    database.insert("prerequisite", {"task": task, "needs": needs}, otherwise=ignore)


def remove_needs(database: Database, task: str) -> None:
    """Delete a task's prerequisites."""
    database.execute("delete from prerequisite where project = :project and task = :task", task=task)


def needs(database: Database) -> dict[str, list[str]]:
    """Return each task's prerequisites, whether they are done or not."""
    rows = database.rows("select task, needs from prerequisite where project = :project order by task, needs")
    needs: dict[str, list[str]] = {}
    for row in rows:
        needs.setdefault(row["task"], []).append(row["needs"])
    return needs


def prerequisites_of(database: Database, task: str) -> list[Task]:
    """Return a task's prerequisites, whether they are done or not, oldest first."""
    rows = database.rows(
        """
        select task.*
          from task
          join prerequisite on prerequisite.project = task.project and prerequisite.needs = task.id
         where task.project = :project
           and prerequisite.task = :task
         order by task.created_at, task.id
        """,
        task=task,
    )
    return database.readable(_task, rows, "task")


def open_needs(database: Database, task: str) -> list[Task]:
    """Return the tasks that a task is still waiting for."""
    return [needed for needed in prerequisites_of(database, task) if needed.status != "done"]


def select(
    database: Database, *, statuses: Sequence[str] = (), goal: str = "", queued: bool = True, limit: int = 1_000_000
) -> list[Task]:
    """Return the tasks in the queue, or all tasks except conversations, oldest first."""
    rows = database.rows(
        f"""
        select *
          from task
         where project = :project
           and type != 'session'
           and queued >= :queued
           and (:goal = '' or goal = :goal)
           and (:any = 1 or {database.one_of("status", "statuses")})
         order by created_at desc, id desc
         limit :limit
        """,
        goal=goal,
        queued=int(queued),
        any=int(not statuses),
        statuses=database.list_value(statuses),
        limit=limit,
    )
    return database.readable(_task, rows, "task")[::-1]


def counts(database: Database) -> dict[str, int]:
    """Return how many tasks are in the queue, by status."""
    sql = "select status, count(*) as many from task where project = :project and queued = 1 group by status"
    return {row["status"]: int(row["many"]) for row in database.rows(sql)}


def checks(database: Database) -> list[str]:
    """Return the commands that check tasks of their own, each once."""
    return database.column("select distinct verify from task where project = :project and verify != '' order by verify")


# Attempts at a task since a person let it start anew.
_ATTEMPTS_SO_FAR = """(
    select count(*)
      from attempt
     where attempt.project = task.project
       and attempt.task = task.id
       and attempt.started_at >= task.fresh_since
       and attempt.result != 'interrupted'
    ),"""


def find(database: Database, id: str, *, for_update: bool = False) -> Task | None:
    """Return a task, or None."""
    lock = database.for_update if for_update else ""
    row = database.row(f"select * from task where project = :project and id = :id{lock}", id=id)
    return None if row is None else _task(row)


def get(database: Database, id: str, *, for_update: bool = False) -> Task:
    """Return a task, or raise NotFound."""
    task = find(database, id, for_update=for_update)
    if task is None:
        raise NotFound(
            f"no task `{id[:100]}`", hint="`learnt task list --all` shows the ids; `learnt task add` adds a task"
        )
    return task


def attempts(database: Database, task: str) -> list[Attempt]:
    """Return the attempts at a task, latest first."""
    sql = "select * from attempt where project = :project and task = :task order by number desc"
    return database.readable(_attempt, database.rows(sql, task=task), "attempt")


def failures(database: Database, task: str) -> dict[str, Failure]:
    """Return the failure reports on a task, by attempt."""
    rows = database.rows("select * from failure where project = :project and task = :task", task=task)
    return {failure.attempt: failure for failure in database.readable(_failure, rows, "report")}


def unfinished(database: Database, *, branch: str, since: int, limit: int) -> list[tuple[Task, Failure]]:
    """Return the tasks that failed on a branch and are not done, each with its last report, latest first.

    A task is also considered done if a later task with the same title is done. Attempts without a result are left out,
    because they might not have failed. Sub-agents are left out, because they report to the agent that started them.
    """
    rows = database.rows(
        """
        select failure.*
          from attempt
          join failure on failure.project = attempt.project and failure.attempt = attempt.id
          join task on task.project = attempt.project and task.id = attempt.task
         where attempt.project = :project
           and attempt.started_at >= :since
           and attempt.result <> 'incomplete'
           and (attempt.branch = :branch or task.branch = :branch)
           and task.status not in ('done', 'cancelled')
           and (task.type <> 'session' or task.parent = '')
           and failure.archived_at is null
           and not exists (
                   select 1
                     from attempt as later
                    where later.project = attempt.project
                      and later.task = attempt.task
                      and later.number > attempt.number
               )
           and not exists (
                   select 1
                     from attempt as done
                     join task as same on same.project = done.project and same.id = done.task
                    where done.project = attempt.project
                      and done.result = 'done'
                      and done.started_at > attempt.started_at
                      and same.title = task.title
               )
         order by failure.created_at desc, failure.attempt
         limit :limit
        """,
        branch=branch,
        since=since,
        limit=limit,
    )
    return database.readable(lambda row: (get(database, row["task"]), _failure(row)), rows, "report")


def attempts_since(database: Database, at: int) -> int:
    """Return how many attempts have begun after the given time."""
    return int(
        database.value("select count(*) as attempts from attempt where project = :project and started_at > :at", at=at)
    )


def results_since(database: Database, at: int) -> list[str]:
    """Return the results of the attempts since the given time; conversations and interruptions are ignored."""
    return database.column(
        """
        select attempt.result
          from attempt
          join task on task.project = attempt.project and task.id = attempt.task
         where attempt.project = :project
           and attempt.started_at >= :at
           and attempt.result != 'interrupted'
           and task.type != 'session'
        """,
        at=at,
    )


def add_attempt(database: Database, attempt: Attempt, failure: Failure | None) -> None:
    """Store an attempt and its failure report, unless they already exist."""
    row = {**attempt.as_dict(), "difficulty": _rank(attempt)}
    database.insert("attempt", row, otherwise="on conflict (project, id) do nothing")
    if failure is not None:
        _add_failure(database, failure)


def note_ignored(database: Database, attempt: str, ignored: str) -> None:
    """Store what was ignored in the output of an attempt, and why."""
    sql = "update attempt set ignored = :ignored where project = :project and id = :attempt"
    database.execute(sql, attempt=attempt, ignored=ignored)


def replace_attempt(database: Database, attempt: Attempt, failure: Failure | None) -> None:
    """Replace a stored attempt and its failure report; fields that are not known now keep their old values."""
    database.execute(
        """
        update attempt
           set result = :result,
               model = case when :model = '' then model else :model end,
               started_at = :started_at,
               duration_ms = coalesce(:duration_ms, duration_ms),
               cost_usd = coalesce(:cost_usd, cost_usd),
               tokens_in = coalesce(:tokens_in, tokens_in),
               tokens_out = coalesce(:tokens_out, tokens_out),
               difficulty = :difficulty,
               summary = :summary,
               transcript = case when :transcript = '' then transcript else :transcript end,
               branch = case when :branch = '' then branch else :branch end
         where project = :project
           and id = :id
        """,
        **{name: value for name, value in attempt.as_dict().items() if name not in (*_UNCHANGED, "difficulty")},
        difficulty=_rank(attempt),
    )
    database.execute("delete from failure where project = :project and attempt = :attempt", attempt=attempt.id)
    if failure is not None:
        _add_failure(database, failure)


def find_attempt(database: Database, id: str) -> Attempt | None:
    """Return an attempt, or None."""
    row = database.row("select * from attempt where project = :project and id = :id", id=id)
    return None if row is None else _attempt(row)


def conversations(
    database: Database, *, since: int = 0, transcript: str | None = None, limit: int = 1_000
) -> list[Attempt]:
    """Return the attempts of conversations that have a transcript, latest first.

    If `transcript` is set, only attempts with this transcript are returned.
    """
    rows = database.rows(
        """
        select attempt.*
          from attempt
          join task on task.project = attempt.project and task.id = attempt.task
         where attempt.project = :project
           and attempt.started_at >= :since
           and attempt.transcript != ''
           and (:anywhere = 1 or attempt.transcript = :transcript)
           and task.type = 'session'
         order by attempt.started_at desc, attempt.id desc
         limit :limit
        """,
        since=since,
        anywhere=int(transcript is None),
        transcript=transcript or "",
        limit=limit,
    )
    return database.readable(_attempt, rows, "attempt")


def transcripts(database: Database) -> set[str]:
    """Return the paths of the transcripts of the loop's own attempts."""
    paths = database.column(
        """
        select attempt.transcript
          from attempt
          join task on task.project = attempt.project and task.id = attempt.task
         where attempt.project = :project
           and attempt.transcript != ''
           and task.type != 'session'
        """
    )
    return set(paths)


def record_cost(database: Database, attempt: Attempt) -> None:
    """Add an attempt's cost to its record, if it is recorded as interrupted and without a cost."""
    database.execute(
        """
        update attempt
           set cost_usd = :cost_usd, tokens_in = :tokens_in, tokens_out = :tokens_out, transcript = :transcript
         where project = :project
           and id = :id
           and result = 'interrupted'
           and cost_usd is null
        """,
        **{name: getattr(attempt, name) for name in ("id", "cost_usd", "tokens_in", "tokens_out", "transcript")},
    )


def latest_attempts(database: Database, *, limit: int) -> list[RecordedAttempt]:
    """Return the latest attempts at tasks, newest first; conversations and interrupted attempts are ignored."""
    rows = database.rows(
        """
        select attempt.*, task.type as task_type, task.title as task_title, task.goal as task_goal,
               failure.error as failure_error, failure.reason as failure_reason
          from attempt
          join task on task.project = attempt.project and task.id = attempt.task
          left join failure on failure.project = attempt.project and failure.attempt = attempt.id
         where attempt.project = :project
           and attempt.result != 'interrupted'
           and task.type != 'session'
         order by attempt.started_at desc, attempt.id desc
         limit :limit
        """,
        limit=limit,
    )
    return [
        RecordedAttempt(
            attempt=_attempt(row),
            type=row["task_type"],
            title=row["task_title"],
            goal=row["task_goal"],
            symptom=row["failure_error"] or row["failure_reason"] or "",
        )
        for row in rows
    ]


def since_fresh(task: Task, attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return the attempts since the last success or restart; the arguments and the result are in newest-first order."""
    return list(
        takewhile(lambda attempt: attempt.result != "done" and attempt.started_at >= task.fresh_since, attempts)
    )


def find_oldest_ready(
    database: Database,
    *,
    only: Sequence[str] | None = None,
    without: Sequence[str] = (),
    breadth: bool = False,
    lock: bool = False,
) -> Task | None:
    """Return the oldest ready task, from all tasks or from `only`, that is not in `without`; None if there is none.

    With `breadth`, those with the fewest attempts come first. With `lock`, tasks that another transaction has locked
    are skipped.
    """
    row = database.row(
        f"""
        select *
          from task
         where project = :project
           and status = 'ready'
           and queued = 1
           and not exists (select 1 from claim where claim.project = task.project and claim.task = task.id)
           and (:any = 1 or {database.one_of("id", "only")})
           and not {database.one_of("id", "without")}
         order by {_ATTEMPTS_SO_FAR if breadth else ""} created_at, id
         limit 1{database.skip_locked if lock else ""}
        """,
        any=int(only is None),
        only=database.list_value(only or ()),
        without=database.list_value(without),
    )
    return None if row is None else _task(row)


def claim_ready(database: Database, claim: Claim) -> bool:
    """Within a transaction: claim a task; return False if it is not ready any more."""
    if find_oldest_ready(database, only=(claim.task,), lock=True) is None:
        return False
    set_status(database, claim.task, "running", at=claim.started_at)
    database.insert("claim", claim.as_dict())
    return True


def renew_claim(database: Database, claim: Claim) -> bool:
    """Extend a claim; return False if it has been lost."""
    fields = {"task": claim.task, "attempt": claim.attempt, "held_until": claim.held_until}
    return bool(database.execute(f"update claim set held_until = :held_until {_WHERE_CLAIM}", **fields))


def update_claim(database: Database, claim: Claim) -> bool:
    """Extend a claim and store facts about its agent; return False if it has been lost."""
    fields = {field: value for field, value in claim.as_dict().items() if field not in _FIXED_IN_CLAIM}
    changes = ", ".join(f"{field} = :{field}" for field in fields)
    return bool(database.execute(f"update claim set {changes} {_WHERE_CLAIM}", **fields))


def release_claim(database: Database, *, task: str, attempt: str, lapsed_at: int | None = None) -> Claim | None:
    """Delete a claim and return it; return None if it has been lost, or had not lapsed at `lapsed_at`."""
    row = database.row(f"select * from claim {_WHERE_CLAIM}{database.for_update}", task=task, attempt=attempt)
    if row is None or (lapsed_at is not None and row["held_until"] >= lapsed_at):
        return None
    database.execute("delete from claim where project = :project and task = :task", task=task)
    return Claim.from_row(clean_row(row))


def claims(database: Database) -> list[Claim]:
    """Return all claims, oldest first."""
    rows = database.rows("select * from claim where project = :project order by started_at, attempt")
    return database.readable(lambda row: Claim.from_row(clean_row(row)), rows, "claim")


def _add_failure(database: Database, failure: Failure) -> None:
    row = {**failure.as_dict(), "files": json.dumps(failure.files, ensure_ascii=False)}
    database.insert("failure", row, otherwise="on conflict (project, attempt) do nothing")


def _rank(attempt: Attempt) -> int | None:
    return DIFFICULTIES.index(attempt.difficulty) if attempt.difficulty else None


def _row(task: Task) -> dict[str, Any]:
    return {**task.as_dict(), **{name: int(getattr(task, name)) for name in _FLAGS}}


def _task(row: Row) -> Task:
    return Task.from_row(clean_row(row), **{name: bool(row[name]) for name in _FLAGS})


def _attempt(row: Row) -> Attempt:
    rank = row["difficulty"]
    return Attempt.from_row(clean_row(row), difficulty="" if rank is None else DIFFICULTIES[rank])


def _failure(row: Row) -> Failure:
    return Failure.from_row(clean_row(row), files=tuple(read_json(row["files"])))


def find_origin(database: Database, task: str) -> Task | None:
    """Return the conversation that a conversation began as a copy of; None if it did not."""
    sql = "select based_on from task where project = :project and id = :id and type = 'session'"
    origin = database.value(sql, id=task)
    return find(database, origin) if origin else None


_WORKS_FOR = """
    select case when parent = '' and type = 'session' then based_on else parent end
      from task
     where project = :project
       and id = :id
    """


def conversation_of(database: Database, task: str) -> str:
    """Return the conversation of a task: the task itself, or what a sub-agent works for, or what it is a copy of."""
    for _ in range(_MAX_PARENTS):
        parent = database.value(_WORKS_FOR, id=task)
        if not parent:
            break
        task = parent
    return task


def list_given_to_others(database: Database, task: str, agent: str, *, since: int) -> set[str]:
    """Return the learnings that briefs of a task gave to other roles, but neither to this one nor to no role at all."""
    if not database.has(f"{_BRIEFS_OF} and agent not in ('', :agent) limit 1", task=task, agent=agent, since=since):
        return set()
    given: dict[bool, set[str]] = {True: set(), False: set()}
    for row in database.rows(_BRIEFS_OF, task=task, since=since):
        receipt = read_json(row["receipt"])
        ids = (entry["id"] for entry in receipt.get("shown", ()))
        given[row["agent"] in ("", agent)].update(ids, receipt.get("beside", ()))
    return given[False] - given[True]
