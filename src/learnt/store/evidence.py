"""What speaks for and against learnings, once for each conversation, and which commands succeeded.

The rows about a learning are in the store that contains it. What they mean is decided by `weigh.provenance`.
"""

from __future__ import annotations

from learnt.model import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from learnt.model import Learning
    from learnt.store.database import Database

HELPFUL, NOT_HELPFUL, REPEATED, WORKED = "helpful", "not helpful", "repeated", "worked"
UNKNOWN_CONVERSATION = "an agent's shell"
"""The conversation of an agent that does not say which one it takes part in; it may be any, so it proves nothing."""
_MAX_PARENTS = 10
_MAX_RECENT = 500
_COUNTED_UNTIL = "successes counted until"


class Evidence(Value):
    """How many conversations, other than the one that taught a learning, speak for or against it."""

    supporting: int = 0
    """In how many it was marked as helpful, or what it recommends succeeded."""
    repeating: int = 0
    """In how many others it was taught again."""
    rejecting: int = 0
    """In how many it was marked as not helpful."""


class Runs(Value):
    """In how many conversations a learning's commands succeeded."""

    after_given: int
    """Conversations that had been given the learning before."""
    others: int
    """Conversations that had not been given it."""
    all_others: int
    """Conversations that had not been given it, whatever they ran."""


def conversation_of(database: Database, task: str) -> str:
    """Return the conversation of a task: the task itself, or for a sub-agent, the task that it works for."""
    for _ in range(_MAX_PARENTS):
        parent = database.value("select parent from task where project = :project and id = :id", id=task)
        if not parent:
            break
        task = parent
    return task


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


def count(database: Database, learning: Learning, *, source: str) -> Evidence:
    """Return the evidence for a learning; `source` is the conversation that taught it, which does not count."""
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
    by_kind: dict[str, set[str]] = {}
    for row in rows:
        by_kind.setdefault(row["kind"], set()).add(row["conversation"])
    supporting = by_kind.get(HELPFUL, set()) | by_kind.get(WORKED, set())
    return Evidence(
        supporting=len(supporting),
        repeating=len(by_kind.get(REPEATED, set()) - supporting),
        rejecting=len(by_kind.get(NOT_HELPFUL, ())),
    )


def list_given_before_runs(database: Database, *, since: int, until: int) -> list[str]:
    """Return the unvouched learnings that a conversation was given before a command succeeded in it."""
    return database.column(
        f"""
        select distinct learning.id
          from command_run
          join injection on injection.project = command_run.project and injection.task = command_run.task
          join learning on learning.project = injection.project and learning.id = injection.learning
         where command_run.project = :project
           and command_run.at > :since
           and command_run.at <= :until
           and injection.held_out = 0
           and injection.injected_at <= command_run.at
           and learning.status = 'active'
           and learning.vouched = ''
         order by learning.id
         limit {_MAX_RECENT}
        """,
        since=since,
        until=until,
    )


def count_runs(database: Database, learning: Learning, signs: Sequence[str]) -> tuple[Runs, list[str]]:
    """Return how often a learning's commands succeeded, and the tasks in which they did after it was given."""
    rows = database.rows(
        f"""
        select command_run.task, min(command_run.at) as at, max(injection.injected_at) as given_at,
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
