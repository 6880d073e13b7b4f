"""Whether the briefs of hooks reached the agent.

A client may drop what a hook says, so such a brief is undecided until the client's transcript shows it, or a plugin of
ours that saw the requests to the model reports it. Once a brief is delivered (`happened.deliver`), it stays so,
whatever becomes of the transcript; one that was missed may still turn out to be delivered. A brief
with a warning is undecided until it is known, too, that the agent went on after it.
"""

from __future__ import annotations

from learnt.model import DELIVERED, MISSED, Value
from learnt.store.database import read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from learnt.store.database import Database

_SUB_AGENT = "agent"
_FENCED = ("shown", "failed", "unfinished", "notes", "index")  # the parts of a hook's brief between tags with its id


class UndecidedBrief(Value):
    """A hook's brief that is not known to be delivered, or a warning after which the agent has not been seen."""

    id: str
    task: str
    client: str
    occasion: str
    created_at: int
    delivery: str
    reported: str
    """What a plugin of ours says about it; empty if there is none, or it has not said anything yet."""
    has_id: bool
    """Whether its text contains its id. If not, it is only a line that asks the agent for something."""
    warns: bool
    """Whether it warns about a command that failed."""


class TaskTranscript(Value):
    """The transcript of an attempt."""

    task: str
    transcript: str
    started_at: int
    of_parent: bool
    """Whether it is that of the conversation which a sub-agent works for, because the client keeps no other."""


class Deliveries(Value):
    """How many briefs of a client's latest conversation were delivered and missed on one occasion."""

    client: str
    occasion: str
    delivered: int = 0
    missed: int = 0


def list_undecided(database: Database, *, since: int) -> list[UndecidedBrief]:
    """Return the briefs of hooks of which something is not known yet, oldest first."""
    rows = database.rows(
        f"""
        select id, task, client, occasion, created_at, delivery, reported, receipt
          from brief
         where project = :project
           and created_at >= :since
           and asked_by = 'hook'
           and (delivery <> '{DELIVERED}'
                or exists (
                    select 1
                      from warning
                     where warning.project = brief.project
                       and warning.task = brief.task
                       and warning.brief = brief.id
                       and warning.seen_at is null
                ))
         order by created_at, id
        """,
        since=since,
    )
    return [_undecided(row, read_json(row["receipt"])) for row in rows]


def apply_report(database: Database, body: Mapping[str, Any]) -> None:
    """Within a transaction: store which of a conversation's briefs were in the requests to the model.

    A brief that an earlier report proves stays proven: later requests may leave it out, as after a compaction.
    """
    rows = database.rows(
        f"""
        select id, receipt
          from brief
         where project = :project
           and task = :task
           and created_at <= :at
           and asked_by = 'hook'
           and delivery <> '{DELIVERED}'
           and reported <> '{DELIVERED}'
        """,
        task=body["task"],
        at=body["at"],
    )
    for row in rows:
        is_given = (row["id"] if _has_id(read_json(row["receipt"])) else "notice") in body["given"]
        database.execute(
            "update brief set reported = :reported where project = :project and id = :id",
            reported=DELIVERED if is_given else MISSED,
            id=row["id"],
        )


APPLY: dict[str, Callable[[Database, Any], None]] = {"report": apply_report}


def _has_id(receipt: Mapping[str, Any]) -> bool:
    return any(receipt.get(part) for part in _FENCED)


def _undecided(row: Mapping[str, Any], receipt: Mapping[str, Any]) -> UndecidedBrief:
    return UndecidedBrief.from_row(row, has_id=_has_id(receipt), warns=bool(receipt.get("failed")))


def list_transcripts(database: Database, tasks: Sequence[str]) -> list[TaskTranscript]:
    """Return the transcripts of these tasks, oldest first; only the loop's tasks have several."""
    rows = database.rows(
        f"""
        select task, transcript, started_at, 0 as of_parent, started_at as at
          from attempt
         where project = :project
           and {database.one_of("task", "tasks")}
           and transcript <> ''
         union all
        select attempt.task, parents.transcript, attempt.started_at, 1, parents.started_at
          from attempt
          join task on task.project = attempt.project and task.id = attempt.task
          join attempt as parents on parents.project = task.project and parents.task = task.parent
         where attempt.project = :project
           and {database.one_of("attempt.task", "tasks")}
           and attempt.transcript = ''
           and parents.transcript <> ''
         order by started_at, at, transcript
        """,
        tasks=database.list_value(tasks),
    )
    return [TaskTranscript.from_row(row, of_parent=bool(row["of_parent"])) for row in rows]


def miss(database: Database, id: str) -> None:
    """Within a transaction: record that a brief was not delivered, unless it is known to be delivered."""
    database.execute(
        f"update brief set delivery = '{MISSED}' where project = :project and id = :id and delivery = ''", id=id
    )


def find_undelivered(database: Database, learning: str, task: str) -> str:
    """Return the latest brief that contained a learning in a task, unless it is delivered; empty if there is none."""
    id = database.value(
        f"""
        select brief.id
          from injection
          join brief on brief.project = injection.project and brief.id = injection.brief
         where injection.project = :project
           and injection.learning = :learning
           and injection.task = :task
           and injection.held_out = 0
           and brief.delivery <> '{DELIVERED}'
        """,
        learning=learning,
        task=task,
    )
    return str(id or "")


def count_latest(database: Database, *, since: int) -> list[Deliveries]:
    """Return for each client how many briefs of its latest conversation with a decided brief were delivered.

    The occasions are counted separately, because a client may pass prompts on and drop what is said at a call. The
    sub-agents that were started meanwhile belong to the conversation.
    """
    rows = database.rows(
        f"""
        select client, task, occasion, min(created_at) as began, max(created_at) as at,
               sum(case when delivery = '{DELIVERED}' then 1 else 0 end) as delivered,
               sum(case when delivery = '{MISSED}' then 1 else 0 end) as missed
          from brief
         where project = :project
           and created_at >= :since
           and asked_by = 'hook'
           and delivery <> ''
         group by client, task, occasion
         order by at, occasion
        """,
        since=since,
    )
    counts: dict[tuple[str, str], Deliveries] = {}
    beginnings = {client: _find_beginning(rows, client) for client in {row["client"] for row in rows}}
    for row in rows:
        if row["at"] >= beginnings[row["client"]]:
            key = (row["client"], row["occasion"])
            known = counts.get(key, Deliveries(client=key[0], occasion=key[1]))
            counts[key] = known.replace(
                delivered=known.delivered + int(row["delivered"]), missed=known.missed + int(row["missed"])
            )
    return list(counts.values())


def _find_beginning(rows: Sequence[Mapping[str, Any]], client: str) -> int:
    """Return when a client's latest conversation began, which is not that of a sub-agent if there is another."""
    own = [row for row in rows if row["client"] == client]
    *_, latest = [row for row in own if row["occasion"] != _SUB_AGENT] or own
    return min(int(row["began"]) for row in own if row["task"] == latest["task"])


def find_brief_that_gave(database: Database, task: str, learning: str, *, before: int) -> str:
    """Return the first brief that gave a learning to a task before a time; empty if none did."""
    sql = """
        select brief
          from injection
         where project = :project
           and task = :task
           and learning = :learning
           and injected_at < :before
         order by injected_at
         limit 1
        """
    return next(iter(database.column(sql, task=task, learning=learning, before=before)), "") or ""
