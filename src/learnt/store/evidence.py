"""What speaks for and against learnings, once for each conversation, and which commands succeeded.

The rows about a learning are in the store that contains it. What they mean is decided by `weigh.confidence`.
"""

from __future__ import annotations

from learnt.model import Value
from learnt.store.database import read_json
from learnt.store.tasks import UNKNOWN_CONVERSATION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from learnt.model import Learning
    from learnt.store.database import Database

HELPFUL, NOT_HELPFUL, REPEATED, WORKED = "helpful", "not helpful", "repeated", "worked"
_MAX_RECENT = 500
_BY_AGENT = "tool"  # who asks for a brief over MCP
_COUNTED_UNTIL = "successes counted until"


class Evidence(Value):
    """How many conversations, other than the one that taught a learning, speak for or against it."""

    worked: int = 0
    """In how many that were given it unasked, what it recommends succeeded."""
    marked: int = 0
    """In how many others that were given it unasked, it was marked as helpful."""
    repeating: int = 0
    """How many that had not been given it taught it again."""
    rejecting: int = 0
    """In how many it was marked as not helpful."""
    turnout: float = 0.0
    """Of all recent conversations that were given anything, the share that marked anything."""


class Runs(Value):
    """In how many conversations a learning's commands succeeded."""

    after_given: int
    """Conversations that had been given the learning before."""
    others: int
    """Conversations that had not been given it."""
    all_others: int
    """Conversations that had not been given it, whatever they ran."""


class Prompt(Value):
    """What a person wrote in a task, without secrets."""

    text: str
    """Its beginning, if it is very long."""
    length: int
    is_own: bool
    """Whether the brief in question was an answer to it, and not only later."""


def add(database: Database, learning: str, conversation: str, kind: str, *, at: int) -> bool:
    """Store a row; return False if the conversation has said the same before."""
    row = {"learning": learning, "conversation": conversation, "kind": kind, "at": at}
    key = "(project, learning, conversation, kind)"
    return bool(database.insert("evidence", row, otherwise=f"on conflict {key} do nothing"))


def remove(database: Database, learning: str, kind: str, *, at: int) -> None:
    """Delete the row of a mark that is undone; its time identifies it."""
    database.execute(
        """
        delete from evidence
         where project = :project
           and learning = :learning
           and kind = :kind
           and at = :at
        """,
        learning=learning,
        kind=kind,
        at=at,
    )


def copy(database: Database, source: str, successor: str, *, at: int) -> None:
    """Within a transaction: let what speaks for or against a learning also speak for or against its successor."""
    database.execute(
        """
        insert into evidence (project, learning, conversation, kind, at)
        select project, :successor, conversation, kind, :at
          from evidence
         where project = :project
           and learning = :source
        on conflict (project, learning, conversation, kind) do nothing
        """,
        source=source,
        successor=successor,
        at=at,
    )


def withdraw(database: Database, source: str, successor: str, *, at: int) -> None:
    """Within a transaction: delete what was copied at this time from a learning to its successor."""
    database.execute(
        """
        delete from evidence
         where project = :project
           and learning = :successor
           and at = :at
           and exists (
               select 1
                 from evidence as original
                where original.project = :project
                  and original.learning = :source
                  and original.conversation = evidence.conversation
                  and original.kind = evidence.kind
           )
        """,
        source=source,
        successor=successor,
        at=at,
    )


def exists(database: Database, learning: str) -> bool:
    """Return whether any conversation speaks for or against a learning."""
    return database.has(
        "select learning from evidence where project = :project and learning = :learning", learning=learning
    )


def is_marked(database: Database, learning: str, conversation: str) -> bool:
    """Return whether a conversation has marked a learning."""
    return database.has(
        f"""
        select learning
          from evidence
         where project = :project
           and learning = :learning
           and conversation = :conversation
           and kind in ('{HELPFUL}', '{NOT_HELPFUL}')
        """,
        learning=learning,
        conversation=conversation,
    )


def count(
    database: Database, learning: Learning, *, source: str, given: Collection[str] | None, turnout: float
) -> Evidence:
    """Return the evidence for a learning; `source` is the conversation that taught it, which does not count.

    `given` lists the conversations that were given it unasked; it is None if other projects' stores know them.
    """
    rows = database.rows(
        """
        select conversation, kind
          from evidence
         where project = :project
           and learning = :learning
           and conversation not in ('', :unknown, :source, :task)
        """,
        learning=learning.id,
        unknown=UNKNOWN_CONVERSATION,
        source=source,
        task=learning.task,
    )
    by_kind: dict[str, set[str]] = {kind: set() for kind in (HELPFUL, NOT_HELPFUL, REPEATED, WORKED)}
    for row in rows:
        by_kind[row["kind"]].add(row["conversation"])
    others = by_kind[HELPFUL] | by_kind[WORKED] if given is None else set(given) - {source, learning.task}
    return Evidence(
        worked=len((by_kind[WORKED] - by_kind[NOT_HELPFUL]) & others),
        marked=len((by_kind[HELPFUL] - by_kind[WORKED]) & others),
        repeating=len(by_kind[REPEATED] - others),
        rejecting=len(by_kind[NOT_HELPFUL]),
        turnout=turnout,
    )


def list_given(database: Database, learning: str) -> list[str]:
    """Return the conversations that were given a learning without asking for it."""
    return database.column(
        f"""
        select distinct coalesce(nullif(task.parent, ''), injection.task) as conversation
          from injection
          join brief on brief.project = injection.project and brief.id = injection.brief
          join task on task.project = injection.project and task.id = injection.task
         where injection.project = :project
           and injection.learning = :learning
           and injection.delivered_at is not null
           and brief.asked_by <> '{_BY_AGENT}'
        """,
        learning=learning,
    )


def measure_turnout(database: Database) -> float:
    """Return which share of the recent conversations that were given anything marked anything."""
    row = database.row(
        f"""
        select count(*) as given, coalesce(sum(has_marked), 0) as marking
          from (
                select distinct recent.task,
                       case when exists (
                           select 1 from mark where mark.project = :project and mark.task = recent.task
                       ) then 1 else 0 end as has_marked
                  from (
                        select brief.id, brief.task
                          from brief
                          join task on task.project = brief.project and task.id = brief.task
                         where brief.project = :project
                           and brief.asked_by <> '{_BY_AGENT}'
                           and task.parent = ''
                         order by brief.created_at desc
                         limit {_MAX_RECENT}
                       ) as recent
                  join injection on injection.project = :project and injection.brief = recent.id
                 where injection.delivered_at is not null
               ) as conversations
        """
    )
    return row["marking"] / row["given"] if row and row["given"] else 0.0


def list_taught_after_runs(database: Database, *, since: int, until: int) -> list[str]:
    """Return the new unvouched learnings of conversations in which a command succeeded."""
    return database.column(
        f"""
        select learning.id
          from learning
         where learning.project = :project
           and learning.created_at > :since
           and learning.created_at <= :until
           and learning.status = 'active'
           and learning.vouched = ''
           and exists (
               select 1 from command_run
                where command_run.project = learning.project
                  and command_run.task = learning.task
           )
         order by learning.created_at, learning.id
         limit {_MAX_RECENT}
        """,
        since=since,
        until=until,
    )


def list_given_before_runs(database: Database, *, since: int, until: int) -> list[str]:
    """Return the learnings that a conversation was given before a command succeeded in it."""
    return database.column(
        f"""
        select distinct learning.id
          from command_run
          join injection on injection.project = command_run.project and injection.task = command_run.task
          join learning on learning.project = injection.project and learning.id = injection.learning
         where command_run.project = :project
           and command_run.at > :since
           and command_run.at <= :until
           and injection.delivered_at <= command_run.at
           and learning.status = 'active'
         order by learning.id
         limit {_MAX_RECENT}
        """,
        since=since,
        until=until,
    )


def has_run(database: Database, signs: Sequence[str]) -> bool:
    """Return whether any of these commands has succeeded in any conversation."""
    return database.has(
        f"select sign from command_run where project = :project and {database.one_of('sign', 'signs')} limit 1",
        signs=database.list_value(signs),
    )


def has_worked(database: Database, learning: str, conversation: str) -> bool:
    """Return whether what a learning recommends succeeded in a conversation that was given it."""
    return database.has(
        f"""
        select learning
          from evidence
         where project = :project
           and learning = :learning
           and conversation = :conversation
           and kind = '{WORKED}'
        """,
        learning=learning,
        conversation=conversation,
    )


def count_runs(database: Database, learning: Learning, signs: Sequence[str]) -> tuple[Runs, list[str]]:
    """Return how often a learning's commands succeeded, and the tasks in which they did after it was given."""
    rows = database.rows(
        f"""
        select command_run.task, min(command_run.at) as at, max(injection.delivered_at) as given_at,
               max(case when {database.one_of("command_run.sign", "signs")} then command_run.at end) as ran_at
          from command_run
          left join injection on injection.project = command_run.project
                             and injection.task = command_run.task
                             and injection.learning = :learning
         where command_run.project = :project
           and command_run.task <> :source
         group by command_run.task
        """,
        signs=database.list_value(signs),
        learning=learning.id,
        source=learning.task,
    )
    given = [row for row in rows if row["given_at"] is not None]
    others = [row for row in rows if row["given_at"] is None]
    tasks = [row["task"] for row in given if row["ran_at"] is not None and row["ran_at"] >= row["given_at"]]
    ran = sum(row["ran_at"] is not None for row in others)
    return Runs(after_given=len(tasks), others=ran, all_others=len(others)), tasks


def counted_until(database: Database) -> int:
    """Return up to which time the successes of commands have been counted."""
    return database.counter(_COUNTED_UNTIL)


def set_counted_until(database: Database, at: int) -> None:
    """Record up to which time the successes of commands have been counted."""
    row = {"name": _COUNTED_UNTIL, "value": at}
    database.insert("counter", row, otherwise="on conflict (project, name) do update set value = :value")


def forget_runs(database: Database, *, before: int) -> None:
    """Delete old successes of commands."""
    database.execute("delete from command_run where project = :project and at < :before", before=before)


def find_prompt(database: Database, learning: str, task: str) -> Prompt | None:
    """Return the prompt that a task was given a learning with, or the last one before; None if no person wrote one."""
    row = database.row(
        """
        select brief, injected_at
          from injection
         where project = :project
           and learning = :learning
           and task = :task
           and held_out = 0
        """,
        learning=learning,
        task=task,
    )
    return None if row is None else find_prompt_before(database, task, at=row["injected_at"], own=row["brief"])


def find_prompt_before(database: Database, task: str, *, at: int, own: str = "") -> Prompt | None:
    """Return the last prompt that a person wrote in a task before a time; `own` is the brief that it may belong to.

    What an agent asked for, and the errands of sub-agents, are left out.
    """
    row = database.row(
        """
        select brief.id, brief.receipt
          from brief
          join task on task.project = brief.project and task.id = brief.task
         where brief.project = :project
           and brief.task = :task
           and brief.created_at <= :at
           and brief.occasion in ('task', 'prompt')
           and brief.asked_by <> 'tool'
           and task.parent = ''
         order by brief.created_at desc, brief.id desc
         limit 1
        """,
        task=task,
        at=at,
    )
    receipt = read_json(row["receipt"]) if row else {}
    if row is None or not receipt.get("query"):
        return None
    text = str(receipt["query"])
    return Prompt(text=text, length=int(receipt.get("query_length", len(text))), is_own=row["id"] == own)
