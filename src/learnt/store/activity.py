"""What learnt has done inside clients: the latest briefs, warnings and debriefs, and how often recall was used.

Each kind of entry is read through an index on time; receipts and learnings are read only for the entries that are
shown. A brief with a warning is listed as the warning. Agents' names are compared with `text.titles.key_of`.
"""

from __future__ import annotations

from learnt.model import DELIVERED, MISSED, Value
from learnt.store.database import read_json
from learnt.store.happened import UNKNOWN, search_counter
from learnt.store.missteps import OUTCOME, OUTCOMES
from learnt.text.titles import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from learnt.store.database import Database, Row

KINDS = ("brief", "warning", "debrief")
# Attempts are read by their start but sorted by their end, so more than the limit are read: otherwise a long attempt
# could be missing.
_EXTRA_ATTEMPTS = 100
# This pattern occurs only in the receipt of a brief with a warning: in any string of a receipt, the quotes are escaped.
WARNING_PATTERN = '%"failed": [{%'
_HAS_CURRENT_WARNING = """
    exists (
        select 1
          from warning
         where warning.project = brief.project
           and warning.task = brief.task
           and warning.brief = brief.id
    )
"""
# A conversation that was compacted, or whose warning was dropped, is warned again, and its warning then refers only to
# the later brief. The earlier briefs are found through the few conversations with warnings, because searching every
# receipt would be slow.
_HAS_EARLIER_WARNING = f"""
    brief.id in (
        select brief.id
          from warning
          join task on task.project = warning.project and task.id = warning.task
          join brief on brief.project = task.project and brief.task = task.id
         where warning.project = :project
           and (brief.created_at < task.fresh_since or brief.delivery = '{MISSED}')
           and brief.occasion in ('tool', 'failure')
           and brief.receipt like :warns
           and not {_HAS_CURRENT_WARNING}
    )
"""
# A conversation's task records its client; for any other task, it is the client that received the latest brief.
_TASK_CLIENT = """
    coalesce(nullif(task.client, ''),
             (select brief.client
                from brief
               where brief.project = task.project
                 and brief.task = task.id
               order by brief.created_at desc
               limit 1),
             '')
"""
_AGENTS = """
    select agent from brief where project = :project
    union select agent from warning where project = :project
    union select agent from task where project = :project
"""
HAS_WARNING = f"({_HAS_CURRENT_WARNING} or {_HAS_EARLIER_WARNING})"
# A warning that was answered was evidently given, although nothing else shows it.
_WAS_GIVEN = f"""
    (brief.delivery = '{DELIVERED}'
     or exists (
         select 1
           from warning
          where warning.project = brief.project
            and warning.task = brief.task
            and warning.brief = brief.id
            and {OUTCOME} <> '{UNKNOWN}'
     ))
"""


class ActivityEntry(Value):
    """A brief, a warning or a debrief."""

    what: str
    """One of KINDS."""
    id: str
    """The id of the brief or of the attempt; a warning has the id of its brief."""
    at: int
    task: str = ""
    title: str = ""
    """The task's title."""
    client: str = ""
    agent: str = ""
    occasion: str = ""
    asked_by: str = ""
    learnings: int = 0
    """How many learnings the brief contained, or how many the debrief added."""
    tokens: int | None = None
    """The number of tokens in the brief, or the number of tokens that the attempt used, as far as it is known."""
    duration_ms: int | None = None
    """How long it took to assemble the brief, or how long the attempt took."""
    command: str = ""
    """The command that the warning is about, or the command, file or tool of the call at which a brief was given."""
    outcome: str = ""
    """For a warning, it is prevented, ignored, needless or unknown, or empty if a later warning in the conversation
    replaced it. For a debrief, it is the attempt's result."""
    denied: bool = False
    """Whether the warning stopped the call."""
    delivery: str = ""
    """For a brief and a warning, whether the agent was given it: delivered, not delivered or unknown."""


class Today(Value):
    """How much has been done since the given time, and how much a person has to decide.

    Only delivered briefs and warnings count as given, and warnings that were answered, as their outcome shows.
    """

    briefs: int = 0
    warnings: int = 0
    unknown_deliveries: int = 0
    """How many more briefs and warnings may have been delivered."""
    prevented: int = 0
    ignored: int = 0
    needless: int = 0
    unknown: int = 0
    to_review: int = 0


def latest(database: Database, *, limit: int, what: str = "", client: str = "", agent: str = "") -> list[ActivityEntry]:
    """Return the latest entries, newest first; an empty filter matches everything."""
    filters = {"client": client, "agent": agent, "spelt": database.list_value(_spellings(database, agent))}
    entries = [entry for kind, read in _READERS if what in ("", kind) for entry in read(database, filters, limit=limit)]
    shown = sorted(entries, key=lambda entry: (-entry.at, entry.what, entry.id))[:limit]
    counts = _count_from_attempts(database, [entry.id for entry in shown if entry.what == "debrief"])
    receipts = _read_receipts(database, [entry.id for entry in shown if entry.what != "debrief"])
    return [
        _add_receipt(entry, receipts[entry.id])
        if entry.id in receipts
        else entry.replace(learnings=counts.get(entry.id, 0))
        for entry in shown
    ]


def names(database: Database) -> tuple[list[str], list[str]]:
    """Return the names of all clients, and the names of all agents, in the records."""
    clients = database.column(
        """
        select client from brief where project = :project
        union select client from task where project = :project
        """
    )
    return sorted(filter(None, clients)), sorted(filter(None, database.column(_AGENTS)))


def used(database: Database, *, since: int) -> dict[str, int]:
    """Return how often each kind of asker has requested a brief or searched since the given time.

    Searches are counted by day, so all searches on the first day are included.
    """
    rows = database.rows(
        """
        select asked_by, count(*) as briefs
          from brief
         where project = :project
           and created_at >= :since
         group by asked_by
        """,
        since=since,
    )
    counts = {row["asked_by"]: int(row["briefs"]) for row in rows}
    for asker in ("person", "tool"):
        searches = database.value(
            "select sum(value) as searches from counter where project = :project and name >= :since and name < :end",
            since=search_counter(asker, since),
            end=search_counter(asker, None),
        )
        counts[asker] = counts.get(asker, 0) + int(searches or 0)
    return {asker: count for asker, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])) if count}


def today(database: Database, *, since: int) -> Today:
    """Return how much has been done since the given time, and how many proposals and removals await a decision."""
    row = database.row(
        f"""
        select (select count(*)
                  from brief
                 where brief.project = :project
                   and brief.created_at >= :since
                   and brief.delivery = '{DELIVERED}'
                   and not {HAS_WARNING}) as briefs,
               (select count(*)
                  from brief
                 where brief.project = :project
                   and brief.created_at >= :since
                   and {_WAS_GIVEN}
                   and {HAS_WARNING}) as warnings,
               (select count(*)
                  from brief
                 where brief.project = :project
                   and brief.created_at >= :since
                   and brief.delivery = ''
                   and not {_WAS_GIVEN}) as unknown_deliveries,
               {_count_today(OUTCOMES)},
               (select count(*) from learning where project = :project and status = 'proposed')
                 + (select count(*)
                      from escalation
                     where project = :project
                       and status = 'open'
                       and subject like 'learn%') as to_review
        """,
        since=since,
        warns=WARNING_PATTERN,
    )
    return Today(**{name: int(count) for name, count in (row or {}).items()})


def _count_today(outcomes: Sequence[str]) -> str:
    """Return the columns with the number of warnings that had each outcome."""
    count = "(select count(*) from warning where project = :project and warned_at >= :since and {} = '{}') as {}"
    return ", ".join(count.format(OUTCOME, outcome, outcome) for outcome in outcomes)


def latest_brief(database: Database, task: str) -> str:
    """Return the id of the latest brief, or of a task's latest brief; empty if there is none."""
    which = "project = :project and task = :task" if task else "project = :project"
    sql = f"select id from brief where {which} order by created_at desc, id desc limit 1"
    return str(database.value(sql, **({"task": task} if task else {})) or "")


def client_of(database: Database, task: str) -> str:
    """Return a task's client; empty if it is unknown."""
    query = f"select {_TASK_CLIENT} as client from task where task.project = :project and task.id = :task"
    return str(database.value(query, task=task) or "")


def taught(database: Database, attempt: str) -> dict[str, str]:
    """Return the ids and titles of the learnings from an attempt, oldest first."""
    rows = database.rows(
        f"""
        select learning.id, learning.title
          from attempt
          join learning on learning.project = attempt.project and learning.task = attempt.task
         where attempt.project = :project
           and attempt.id = :attempt
           and {_during("learning.created_at")}
         order by learning.created_at, learning.id
        """,
        attempt=attempt,
    )
    return {row["id"]: row["title"] for row in rows}


def marked(database: Database, attempt: str) -> dict[str, bool]:
    """Return the learnings that the agent (not a person) marked in an attempt, and whether each was helpful."""
    rows = database.rows(
        f"""
        select mark.learning, mark.helpful
          from attempt
          join task on task.project = attempt.project and task.id = attempt.task
          join mark on mark.project = attempt.project and mark.task = attempt.task
         where attempt.project = :project
           and attempt.id = :attempt
           and mark.who in ('agent', task.agent)
           and {_during("mark.at")}
         order by mark.at, mark.learning
        """,
        attempt=attempt,
    )
    return {row["learning"]: bool(row["helpful"]) for row in rows}


def _during(time: str) -> str:
    """Return the condition that a time is within an attempt: before the next attempt at the same task began.

    The first attempt includes everything before it, because a conversation is one attempt that restarts with each turn.
    """
    return f"""
        (attempt.number = 1 or {time} >= attempt.started_at)
        and not exists (
            select 1
              from attempt later
             where later.project = attempt.project
               and later.task = attempt.task
               and later.number > attempt.number
               and later.started_at <= {time}
        )
    """


def _spellings(database: Database, agent: str) -> list[str]:
    """Return all spellings of an agent's name that occur in the records."""
    if not agent:
        return []
    return [name for name in database.column(_AGENTS) if key_of(name) == key_of(agent)]


def _briefs(database: Database, filters: dict[str, Any], *, limit: int) -> list[ActivityEntry]:
    rows = _read_briefs(database, filters, f"not {HAS_WARNING}", limit=limit)
    return [_entry("brief", row) for row in rows]


def _earlier_warnings(database: Database, filters: dict[str, Any], *, limit: int) -> list[ActivityEntry]:
    rows = _read_briefs(database, filters, _HAS_EARLIER_WARNING, limit=limit, more=", brief.receipt")
    return [_entry("warning", {"command": _warned_command(row.pop("receipt")), **row}) for row in rows]


def _read_briefs(database: Database, filters: dict[str, Any], which: str, *, limit: int, more: str = "") -> list[Row]:
    return database.rows(
        f"""
        select given.*, coalesce(task.title, '') as title
          from (select brief.id, brief.created_at as at, brief.task, brief.agent, brief.occasion, brief.asked_by,
                       brief.tokens, brief.duration_ms, brief.client, brief.delivery{more}
                  from brief
                 where brief.project = :project
                   and (:client = '' or brief.client = :client)
                   and (:agent = '' or {database.one_of("brief.agent", "spelt")})
                   and {which}
                 order by brief.created_at desc, brief.id desc
                 limit :limit) given
          left join task on task.project = :project and task.id = given.task
        """,
        **filters,
        warns=WARNING_PATTERN,
        limit=limit,
    )


def _warnings(database: Database, filters: dict[str, Any], *, limit: int) -> list[ActivityEntry]:
    rows = database.rows(
        f"""
        select warned.brief as id, warned.warned_at as at, warned.task, warned.agent, warned.denied, warned.outcome,
               coalesce(brief.occasion, '') as occasion, coalesce(brief.asked_by, '') as asked_by,
               coalesce(brief.client, '') as client, coalesce(brief.delivery, '') as delivery,
               brief.tokens, brief.duration_ms,
               coalesce(task.title, '') as title, coalesce(misstep.command, '') as command,
               case when misstep.command is null then brief.receipt end as receipt
          from (select warning.brief, warning.warned_at, warning.task, warning.sign, warning.agent, warning.denied,
                       {OUTCOME} as outcome
                  from warning
                 where warning.project = :project
                   and (:client = '' or :client = (select brief.client
                                                     from brief
                                                    where brief.project = warning.project
                                                      and brief.id = warning.brief))
                   and (:agent = '' or {database.one_of("warning.agent", "spelt")})
                 order by warning.warned_at desc, warning.task, warning.sign
                 limit :limit) warned
          left join brief on brief.project = :project and brief.id = warned.brief
          left join task on task.project = :project and task.id = warned.task
          left join misstep on misstep.project = :project and misstep.sign = warned.sign
        """,
        **filters,
        limit=limit,
    )
    for row in rows:
        receipt = row.pop("receipt")  # not None only if the misstep was deleted
        row.update(command=row["command"] or _warned_command(receipt), denied=bool(row["denied"]))
    return [_entry("warning", row) for row in rows]


def _entry(what: str, row: Row) -> ActivityEntry:
    return ActivityEntry(what=what, **{**row, "delivery": row["delivery"] or UNKNOWN})


def _warned_command(receipt: str | None) -> str:
    """Return the command that a brief warned about, from the brief's receipt."""
    failed = read_json(receipt or "{}").get("failed") or [{"command": ""}]
    return str(failed[0]["command"])


def _debriefs(database: Database, filters: dict[str, Any], *, limit: int) -> list[ActivityEntry]:
    rows = database.rows(
        f"""
        select ended.*, task.title, task.agent, {_TASK_CLIENT} as client
          from (select attempt.id, attempt.started_at + coalesce(attempt.duration_ms, 0) as at, attempt.task,
                       attempt.result as outcome, attempt.duration_ms,
                       case when attempt.tokens_in is not null or attempt.tokens_out is not null
                            then coalesce(attempt.tokens_in, 0) + coalesce(attempt.tokens_out, 0)
                       end as tokens
                  from attempt
                 where attempt.project = :project
                   and (:client = '' and :agent = ''
                        or exists (select 1
                                     from task
                                    where task.project = attempt.project
                                      and task.id = attempt.task
                                      and (:client = '' or {_TASK_CLIENT} = :client)
                                      and (:agent = '' or {database.one_of("task.agent", "spelt")})))
                 order by attempt.started_at desc, attempt.id desc
                 limit :limit) ended
          join task on task.project = :project and task.id = ended.task
        """,
        **filters,
        limit=limit + _EXTRA_ATTEMPTS,
    )
    return [ActivityEntry(what="debrief", **row) for row in rows]


_READERS: tuple[tuple[str, Callable[..., list[ActivityEntry]]], ...] = (
    ("brief", _briefs),
    ("warning", _warnings),
    ("warning", _earlier_warnings),
    ("debrief", _debriefs),
)


def _read_receipts(database: Database, briefs: Sequence[str]) -> dict[str, dict[str, Any]]:
    rows = database.rows(
        f"select id, receipt from brief where project = :project and {database.one_of('id', 'ids')}",
        ids=database.list_value(briefs),
    )
    return {row["id"]: read_json(row["receipt"]) for row in rows}


def _add_receipt(entry: ActivityEntry, receipt: dict[str, Any]) -> ActivityEntry:
    """Return an entry with what its brief's receipt says: how many learnings it has, and about which call it is."""
    called = [receipt.get("command"), *receipt.get("paths", ()), *receipt.get("tools", ())]
    is_at_call = entry.what == "brief" and entry.occasion in ("tool", "failure")
    command = next(filter(None, called), "") if is_at_call else entry.command
    return entry.replace(learnings=len(receipt.get("shown", ())), command=command)


def _count_from_attempts(database: Database, attempts: Sequence[str]) -> dict[str, int]:
    """Return how many learnings came from each attempt."""
    rows: list[Row] = database.rows(
        f"""
        select attempt.id, count(*) as learnings
          from attempt
          join learning on learning.project = attempt.project and learning.task = attempt.task
         where attempt.project = :project
           and {database.one_of("attempt.id", "ids")}
           and {_during("learning.created_at")}
         group by attempt.id
        """,
        ids=database.list_value(attempts),
    )
    return {row["id"]: int(row["learnings"]) for row in rows}
