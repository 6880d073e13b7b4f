"""Commands that failed in a project, the commands that worked instead, and the warnings given to agents.

Each record is applied from its JSON body, immediately or when the spool is replayed. A record that is applied late does
not override newer records.
"""

from __future__ import annotations

import json

from learnt.model import DELIVERED, MISSED, Value
from learnt.store.database import clean_row, insert_statement, read_json
from learnt.store.happened import FollowedRecord, ForgottenRecord, WarningRecord, put_brief
from learnt.system import watched
from learnt.text.times import MONTH_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from learnt.store.database import Database, Row
    from learnt.store.happened import Body

# Programs change, so a command that failed three months ago might work by now.
WARN_FOR_MS = 3 * MONTH_MS
_MAX_UNSETTLED = 10
_MAX_BY_REQUESTS = 20
OUTCOMES = ("prevented", "ignored", "needless", "unknown")
_DELIVERY = """
    (select brief.delivery
       from brief
      where brief.project = warning.project
        and brief.id = warning.brief)
"""
# An error was prevented if the agent was given the warning, did not make the call after it, and went on before a person
# wrote again. If the warning came after a failure, that failure is counted in `failures`. A warning that the agent was
# not given has no outcome. The outcome follows when the worker finds out later what was delivered.
OUTCOME = f"""
    case when {_DELIVERY} = '{MISSED}' then 'unknown'
         when warning.failures > warning.late then 'ignored'
         when warning.needless = 1 then 'needless'
         when warning.late = 1 or warning.made = 1 or warning.seen_at is null then 'unknown'
         when warning.left_at < warning.seen_at then 'unknown'
         when {_DELIVERY} = '{DELIVERED}' then 'prevented'
         else 'unknown'
    end
"""


class MisstepRecord(Value):
    """A command failed in a conversation."""

    kind = "misstep"
    as_body = Value.as_dict
    sign: str
    command: str
    repeats: Sequence[str]
    """The keys of earlier missteps (`sign`) that this command repeats."""
    task: str
    at: int
    error: str


class SuccessRecord(Value):
    """A command succeeded in a conversation, perhaps in place of commands that had failed."""

    kind = "success"
    as_body = Value.as_dict
    sign: str
    command: str
    repeats: Sequence[str]
    """The keys of earlier missteps (`sign`) that this command repeats."""
    task: str
    at: int
    replaces: Mapping[str, tuple[str, Sequence[str]]]
    """The misstep's request and wrong words, by the key of each misstep that this command replaces."""


class RunRecord(Value):
    """Commands succeeded in a conversation for the first time."""

    kind = "run"
    as_body = Value.as_dict
    signs: Sequence[str]
    task: str
    at: int


class Misstep(Value):
    """A command that failed, and the command that worked instead."""

    sign: str
    command: str
    error: str
    task: str
    failed_at: int
    failures: int = 1
    asked: str = ""
    wrong: tuple[str, ...] = ()
    worked: str = ""
    worked_at: int | None = None
    succeeded_at: int | None = None

    @property
    def has_replacement(self) -> bool:
        """Whether another command worked instead, and this command has not succeeded since its last failure."""
        return bool(self.worked) and (self.succeeded_at or 0) < self.failed_at


class PreventedError(Value):
    """A conversation was warned about a misstep, and did not repeat it."""

    sign: str
    task: str
    at: int


def count(database: Database) -> int:
    """Return how many commands failed."""
    return int(database.value("select count(*) from misstep where project = :project"))


def find(database: Database, sign: str) -> Misstep | None:
    """Return the misstep with this sign, or None."""
    row = database.row("select * from misstep where project = :project and sign = :sign", sign=sign)
    return None if row is None else next(iter(database.readable(_misstep, [row], "misstep")), None)


def find_by_requests(database: Database, requests: Sequence[str]) -> list[Misstep]:
    """Return the missteps recorded for any of these requests, latest first."""
    rows = database.rows(
        f"""
        select *
          from misstep
         where project = :project
           and {database.one_of("asked", "requests")}
         order by failed_at desc, sign
         limit :limit
        """,
        requests=database.list_value(requests),
        limit=_MAX_BY_REQUESTS,
    )
    return database.readable(_misstep, rows, "misstep")


def list_replaced(database: Database) -> list[Misstep]:
    """Return the missteps that another command replaced."""
    rows = database.rows("select * from misstep where project = :project and worked <> '' order by sign")
    return database.readable(_misstep, rows, "misstep")


def unsettled(database: Database, task: str) -> list[Misstep]:
    """Return a conversation's missteps that no other command has replaced, latest first."""
    rows = database.rows(
        """
        select *
          from misstep
         where project = :project
           and task = :task
           and (worked_at is null or worked_at < failed_at)
           and (succeeded_at is null or succeeded_at < failed_at)
         order by failed_at desc, sign
         limit :limit
        """,
        task=task,
        limit=_MAX_UNSETTLED,
    )
    return database.readable(_misstep, rows, "misstep")


def was_overcome(database: Database, task: str) -> bool:
    """Return whether a misstep of a conversation was replaced, and no agent has written down a learning since."""
    return database.has(
        """
        select sign
          from misstep
         where project = :project
           and task = :task
           and worked_at >= failed_at
           and not exists (
               select 1
                 from learning
                where learning.project = misstep.project
                  and learning.origin = 'agent'
                  and learning.created_at >= misstep.worked_at
           )
         limit 1
        """,
        task=task,
    )


def warned_since(database: Database, task: str, sign: str, since: int) -> bool:
    """Return whether a conversation has been warned about a misstep since the given time; a dropped warning is none."""
    return database.has(
        f"""
        select warning.sign
          from warning
          left join brief on brief.project = warning.project and brief.id = warning.brief
         where warning.project = :project
           and warning.task = :task
           and warning.sign = :sign
           and warning.warned_at >= :since
           and coalesce(brief.delivery, '') <> '{MISSED}'
        """,
        task=task,
        sign=sign,
        since=since,
    )


def count_outcomes(database: Database, since: int | None = None) -> dict[str, dict[str, int]]:
    """Return how many warnings had each outcome, by the agent that was warned, the most frequent agents first.

    If `since` is set, only warnings since that time are included.
    """
    rows = database.rows(
        f"""
        select {OUTCOME} as outcome, agent, count(*) as warnings
          from warning
         where project = :project
           and warned_at >= :since
         group by 1, agent
         order by warnings desc, agent
        """,
        since=since or 0,
    )
    return {
        outcome: {row["agent"]: int(row["warnings"]) for row in rows if row["outcome"] == outcome}
        for outcome in OUTCOMES
    }


def list_prevented(database: Database, *, since: int) -> list[PreventedError]:
    """Return the errors that warnings prevented, oldest first."""
    rows = database.rows(
        f"""
        select sign, task, warned_at as at
          from warning
         where project = :project
           and warned_at >= :since
           and {OUTCOME} = 'prevented'
         order by warned_at, task, sign
        """,
        since=since,
    )
    return database.readable(PreventedError.from_row, rows, "warning")


def note_seen(database: Database, task: str, at: int, *, brief: str = "") -> None:
    """Record that an agent went on after its warnings, or after the warning in a brief: it said or called something."""
    _note_first(database, "seen_at", task, at, brief=brief)


def apply_followed(database: Database, body: Body) -> None:
    """Record what happened in a conversation after its warnings."""
    followed = FollowedRecord.from_row(body)
    for sign in sorted(followed.made):
        database.execute(
            """
            update warning
               set made = 1
             where project = :project
               and task = :task
               and sign = :sign
               and warned_at <= :at
            """,
            task=followed.task,
            sign=sign,
            at=followed.at,
        )
    if followed.left:
        _note_first(database, "left_at", followed.task, followed.at)


def _note_first(database: Database, column: str, task: str, at: int, *, brief: str = "") -> None:
    """Record a time with a conversation's warnings before it, unless an earlier time is recorded."""
    database.execute(
        f"""
        update warning
           set {column} = :at
         where project = :project
           and task = :task
           and (:brief = '' or brief = :brief)
           and warned_at <= :at
           and ({column} is null or {column} > :at)
        """,
        task=task,
        brief=brief,
        at=at,
    )


def apply_failure(database: Database, body: Body) -> None:
    """Record that a command failed; if the agent had been warned about the command, record that it failed anyway."""
    failure = MisstepRecord.from_row(body)
    database.execute(
        """
        insert into misstep (project, sign, command, error, task, failed_at)
        values (:project, :sign, :command, :error, :task, :at)
        on conflict (project, sign) do update
           set failures = misstep.failures + 1,
               error = case when excluded.failed_at >= misstep.failed_at then excluded.error else misstep.error end,
               task = case when excluded.failed_at >= misstep.failed_at then excluded.task else misstep.task end,
               failed_at = case when excluded.failed_at >= misstep.failed_at then :at else misstep.failed_at end
        """,
        sign=failure.sign,
        command=failure.command,
        error=failure.error,
        task=failure.task,
        at=failure.at,
    )
    for sign in sorted({failure.sign, *failure.repeats}):
        database.execute(
            """
            update warning
               set failures = failures + 1
             where project = :project
               and task = :task
               and sign = :sign
               and warned_at <= :at
            """,
            task=failure.task,
            sign=sign,
            at=failure.at,
        )


def apply_success(database: Database, body: Body) -> None:
    """Record that a command succeeded, both for its own earlier failures and for the missteps that it replaces."""
    success = SuccessRecord.from_row(body)
    at = success.at
    for sign in sorted({success.sign, *success.repeats}):
        _record_own_success(database, sign, at)
        database.execute(
            """
            update warning
               set needless = 1
             where project = :project
               and task = :task
               and sign = :sign
               and warned_at <= :at
            """,
            task=success.task,
            sign=sign,
            at=at,
        )
    if success.replaces:
        watched.forget(database.path)
    for sign, (asked, wrong) in sorted(success.replaces.items()):
        database.execute(
            """
            update misstep
               set worked = :worked,
                   worked_at = :at,
                   asked = :asked,
                   wrong = :wrong
             where project = :project
               and sign = :sign
               and failed_at <= :at
               and (worked_at is null or worked_at < :at)
               and (succeeded_at is null or succeeded_at <= :at)
            """,
            sign=sign,
            worked=success.command,
            asked=asked,
            wrong=json.dumps(wrong, ensure_ascii=False),
            at=at,
        )


def _record_own_success(database: Database, sign: str, at: int) -> None:
    """Record that a previously failing command succeeded.

    Because the command works again, the command that replaced it is forgotten: it would be the wrong advice after the
    next failure.
    """
    database.execute(
        """
        update misstep
           set succeeded_at = :at
         where project = :project
           and sign = :sign
           and (succeeded_at is null or succeeded_at < :at)
        """,
        sign=sign,
        at=at,
    )
    database.execute(
        """
        update misstep
           set worked = '',
               asked = '',
               wrong = '[]'
         where project = :project
           and sign = :sign
           and worked_at <= :at
        """,
        sign=sign,
        at=at,
    )


def apply_warning(database: Database, body: Body) -> None:
    """Record a brief that warns about a misstep, and its warning; the outcome of an earlier warning is reset."""
    warning = WarningRecord.from_body(body)
    put_brief(database, warning.given)
    database.execute(
        """
        insert into warning (project, task, sign, brief, agent, denied, failures, late, warned_at)
        values (:project, :task, :sign, :brief, :agent, :denied, :failures, :failures, :warned_at)
        on conflict (project, task, sign) do update
           set brief = excluded.brief,
               agent = excluded.agent,
               denied = excluded.denied,
               failures = excluded.failures,
               needless = excluded.needless,
               late = excluded.late,
               made = excluded.made,
               seen_at = excluded.seen_at,
               left_at = excluded.left_at,
               warned_at = excluded.warned_at
         where excluded.warned_at >= warning.warned_at
        """,
        **warning.as_body()["warning"],
    )


def apply_forgotten(database: Database, body: Body) -> None:
    """Record that a conversation was compacted or cleared."""
    database.execute(
        "update task set fresh_since = :at where project = :project and id = :task and fresh_since < :at",
        **ForgottenRecord.from_row(body).as_dict(),
    )


def apply_runs(database: Database, body: Body) -> None:
    """Record which commands succeeded in a conversation; only the first time is kept."""
    rows = [{"sign": sign, "task": body["task"], "at": body["at"]} for sign in sorted(body["signs"])]
    otherwise = "on conflict (project, sign, task) do nothing"
    database.execute_many(insert_statement("command_run", ("sign", "task", "at"), otherwise), rows)


def has_run(database: Database, task: str, signs: Sequence[str]) -> bool:
    """Return whether all these commands have succeeded in a conversation before."""
    known = database.value(
        f"""
        select count(*) as known
          from command_run
         where project = :project
           and task = :task
           and {database.one_of("sign", "signs")}
        """,
        task=task,
        signs=database.list_value(signs),
    )
    return int(known) >= len(signs)


def _misstep(row: Row) -> Misstep:
    return Misstep.from_row(clean_row(row), wrong=tuple(read_json(row["wrong"])))


APPLY: dict[str, Callable[[Database, Body], None]] = {
    "misstep": apply_failure,
    "success": apply_success,
    "warning": apply_warning,
    "followed": apply_followed,
    "forgotten": apply_forgotten,
    "run": apply_runs,
}
