"""Whether the briefs of hooks reached the agent.

A client may drop what a hook says, so such a brief is undecided until the client's transcript shows it. Once a brief is
delivered (`happened.deliver`), it stays so, whatever becomes of the transcript; one that was missed may still turn out
to be delivered. A brief with a warning is undecided until it is known, too, that the agent went on after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from learnt.model import DELIVERED, MISSED, Value
from learnt.store.database import Database, read_json

_FENCED = ("shown", "failed", "unfinished", "notes")  # the parts of a hook's brief between tags with its id


class UndecidedBrief(Value):
    """A hook's brief that is not known to be delivered, or a warning after which the agent has not been seen."""

    id: str
    task: str
    client: str
    occasion: str
    created_at: int
    delivery: str
    has_id: bool
    """Whether its text contains its id. If not, it is only a line that asks the agent for something."""
    warns: bool
    """Whether it warns about a command that failed."""


class TaskTranscript(Value):
    """The transcript of an attempt."""

    task: str
    transcript: str
    started_at: int


class Deliveries(Value):
    """How many briefs of a client's latest conversation were delivered and missed."""

    client: str
    delivered: int
    missed: int
    at: int


def list_undecided(database: Database, *, since: int) -> list[UndecidedBrief]:
    """Return the briefs of hooks of which something is not known yet, oldest first."""
    rows = database.rows(
        f"""
        select id, task, client, occasion, created_at, delivery, receipt
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


def _undecided(row: Mapping[str, Any], receipt: Mapping[str, Any]) -> UndecidedBrief:
    has_id = any(receipt.get(part) for part in _FENCED)
    return UndecidedBrief.from_row(row, has_id=has_id, warns=bool(receipt.get("failed")))


def list_transcripts(database: Database, tasks: Sequence[str]) -> list[TaskTranscript]:
    """Return the transcripts of these tasks, oldest first; only the loop's tasks have several."""
    rows = database.rows(
        f"""
        select task, transcript, started_at
          from attempt
         where project = :project
           and {database.one_of("task", "tasks")}
           and transcript <> ''
         order by started_at, id
        """,
        tasks=database.list_value(tasks),
    )
    return [TaskTranscript.from_row(row) for row in rows]


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
    """Return for each client how many briefs of its latest conversation with a decided brief were delivered."""
    rows = database.rows(
        f"""
        select client, task, max(created_at) as at,
               sum(case when delivery = '{DELIVERED}' then 1 else 0 end) as delivered,
               sum(case when delivery = '{MISSED}' then 1 else 0 end) as missed
          from brief
         where project = :project
           and created_at >= :since
           and asked_by = 'hook'
           and delivery <> ''
         group by client, task
         order by at
        """,
        since=since,
    )
    counts = ({**row, "delivered": int(row["delivered"]), "missed": int(row["missed"])} for row in rows)
    return list({row["client"]: Deliveries.from_row(row) for row in counts}.values())
