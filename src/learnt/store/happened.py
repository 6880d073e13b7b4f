"""Records of briefs with their injections, attempts and marks, and notices.

A notice is something to tell once in a conversation: that a person's words were kept, or a request to write something
down. Who finds something to tell adds a notice; the next hook that can show it shows it, and marks it as shown.

Each kind of record is a value with a JSON body. It is applied in the same way whether it is applied at once or by a
later replay of the spool; applying it again changes nothing. Bodies are stored on users' disks, so bodies written by
older versions must stay readable.

A learning counts as used in a task once a brief that contained it was delivered. A brief that somebody asked for is
delivered when it is recorded; whether a hook's brief was, the client's transcript shows later (`store.deliveries`).
"""

from __future__ import annotations

import json

from learnt.errors import NotFound
from learnt.model import DELIVERED, MISSED, Attempt, Brief, Failure, Injection, Task, Value, check_id
from learnt.store import learnings, tasks
from learnt.store.database import clean_row, read_json
from learnt.text.times import DAY_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from learnt.store.database import Database

    Body = dict[str, Any]

    class Happening(Protocol):
        """A record for `Store.record`."""

        kind: str

        def as_body(self) -> Body: ...


KEPT = "kept"  # tell the person that what they said was kept; the subject is the learning
ASK = "ask"  # ask the agent to write down what it found out
ASKED_IN_BRIEF = "found"  # what the receipt of a brief that does so says
UNKNOWN = "unknown"  # what people read of a brief that may or may not have been delivered
_NOT_STORED = ("injections", "text")


class Mark(Value):
    """A statement that one injected learning was helpful, or not helpful."""

    learning: str
    task: str
    helpful: bool
    at: int
    who: str = ""

    def check(self) -> None:
        check_id("learn", self.learning)
        check_id("task", self.task)


class BriefRecord(Value):
    """A brief was given to an agent, usually for a task."""

    kind = "brief"
    task: Task | None
    brief: Brief

    @property
    def given(self) -> BriefRecord:
        """This record itself: a WarningRecord has the same attribute, so both can be read in the same way."""
        return self

    def as_body(self) -> Body:
        """Return the JSON body."""
        brief = self.brief.as_dict()
        del brief["text"]
        brief["injections"] = [injection.as_dict() for injection in self.brief.injections]
        return {"task": self.task and self.task.as_dict(), "brief": brief}

    @classmethod
    def from_body(cls, body: Body) -> BriefRecord:
        """Return the record of a body."""
        injections = tuple(Injection(**fields) for fields in body["brief"]["injections"])
        fields = {"delivery": delivery_of(body["brief"].get("asked_by", "")), **body["brief"]}
        brief = Brief(**{**fields, "injections": injections})
        return cls(task=Task(**body["task"]) if body["task"] else None, brief=brief)


class WarningRecord(Value):
    """A brief warned a conversation about a command that had failed before."""

    kind = "warning"
    given: BriefRecord
    task: str
    sign: str
    brief: str
    agent: str
    denied: bool
    """Whether the call was stopped."""
    failures: int
    """How often the command has failed since; it starts at 1 if the warning was given after a failed call."""
    warned_at: int

    def as_body(self) -> Body:
        """Return the JSON body."""
        warning = self.as_dict()
        del warning["given"]
        return {"given": self.given.as_body(), "warning": {**warning, "denied": int(self.denied)}}

    @classmethod
    def from_body(cls, body: Body) -> WarningRecord:
        """Return the record of a body."""
        warning = body["warning"]
        return cls.from_row(warning, given=BriefRecord.from_body(body["given"]), denied=bool(warning["denied"]))


class GivenWarning(Value):
    """What is known so far about what came of a conversation's warning."""

    sign: str
    made: bool = False
    left_at: int | None = None


class FollowedRecord(Value):
    """What happened in a conversation after it was warned."""

    kind = "followed"
    as_body = Value.as_dict
    task: str
    made: Sequence[str] = ()
    """The keys of the missteps (`sign`) whose commands were called."""
    left: bool = False
    """Whether a person wrote something."""
    at: int


class ForgottenRecord(Value):
    """A conversation was compacted or cleared, so that it lost its learnings."""

    kind = "forgotten"
    as_body = Value.as_dict
    task: str
    at: int


class ForkRecord(Value):
    """A conversation began as a copy of another one, which its task is based on."""

    kind = "fork"
    task: Task

    def as_body(self) -> Body:
        """Return the JSON body."""
        return self.task.as_dict()


class ReportRecord(Value):
    """A plugin of ours saw the requests to the model in a conversation, up to the end of a turn."""

    kind = "report"
    as_body = Value.as_dict
    task: str
    given: Sequence[str]
    """What of ours was in them: the ids of briefs, and `notice` for a line without an id."""
    at: int


class PendingNotice(Value):
    """Something to tell once in a conversation."""

    task: str
    what: str
    subject: str = ""
    created_at: int
    shown_at: int | None = None


class NoticeRecord(Value):
    """There is something to tell in a conversation or, with `shown`, it has been told."""

    kind = "notice"
    as_body = Value.as_dict
    task: str
    what: str
    subject: str = ""
    at: int
    shown: bool = False


class PromptRecord(Value):
    """A prompt that may state something to be remembered, without secrets."""

    kind = "prompt"
    as_body = Value.as_dict
    task: str
    """The conversation."""
    client: str
    text: str
    typed: bool
    """Whether a person typed it in an interactive client."""
    at: int


def add_notice(database: Database, task: str, what: str, subject: str = "", *, at: int) -> bool:
    """Add a notice; return False if the conversation has had the same notice before."""
    row = {"task": task, "what": what, "subject": subject, "created_at": at}
    return bool(database.insert("notice", row, otherwise="on conflict (project, task, what, subject) do nothing"))


def unshown_notices(database: Database, task: str, what: str | None = None) -> list[PendingNotice]:
    """Return what is still to be told in a conversation, oldest first."""
    rows = database.rows(
        """
        select *
          from notice
         where project = :project
           and task = :task
           and shown_at is null
         order by created_at, what, subject
        """,
        task=task,
    )
    return [PendingNotice.from_row(row) for row in rows if what in (None, row["what"])]


def was_notice_shown(database: Database, task: str, what: str) -> bool:
    """Return whether a conversation has been told something of this kind."""
    return database.has(
        """
        select what
          from notice
         where project = :project
           and task = :task
           and what = :what
           and shown_at is not null
        """,
        task=task,
        what=what,
    )


def list_shown(database: Database, what: str, *, limit: int) -> list[str]:
    """Return the subjects of the notices of a kind that were shown, the last shown first."""
    return database.column(
        """
        select subject
          from notice
         where project = :project
           and what = :what
           and shown_at is not null
         order by shown_at desc, created_at desc, subject desc
         limit :limit
        """,
        what=what,
        limit=limit,
    )


def mark_notice_shown(database: Database, task: str, what: str, subject: str = "", *, at: int) -> None:
    """Record that a notice was shown; one that is not known here yet will not be shown again either."""
    row = {"task": task, "what": what, "subject": subject, "created_at": at, "shown_at": at}
    first = "on conflict (project, task, what, subject) do update set shown_at = coalesce(notice.shown_at, :shown_at)"
    database.insert("notice", row, otherwise=first)


def apply_notice(database: Database, body: Body) -> None:
    """Apply a notice's body."""
    notice = NoticeRecord.from_row(body)
    change = mark_notice_shown if notice.shown else add_notice
    change(database, notice.task, notice.what, notice.subject, at=notice.at)


def list_given_warnings(database: Database, task: str, *, since: int = 0) -> list[GivenWarning]:
    """Return the warnings that a conversation was given since the given time."""
    rows = database.rows(
        """
        select sign, made, left_at
          from warning
         where project = :project
           and task = :task
           and warned_at >= :since
        """,
        task=task,
        since=since,
    )
    return [GivenWarning.from_row(row, made=bool(row["made"])) for row in rows]


def apply_fork(database: Database, body: Body) -> None:
    """Apply the body of a conversation that is a copy of another one."""
    tasks.ensure(database, Task(**body))


def apply_brief(database: Database, body: Body) -> None:
    """Apply a brief's body."""
    put_brief(database, BriefRecord.from_body(body))


def put_brief(database: Database, record: BriefRecord) -> None:
    """Store a brief and its injections; if it is delivered, count the learnings that are new to the task."""
    brief = record.brief
    if record.task:
        tasks.ensure(database, record.task)
    row = {name: value for name, value in brief.as_dict().items() if name not in _NOT_STORED}
    row["receipt"] = json.dumps(brief.receipt, ensure_ascii=False)
    database.insert("brief", row, otherwise="on conflict (project, id) do nothing")
    # All writers use one order, so that they cannot deadlock.
    for injection in sorted(brief.injections, key=lambda injection: injection.learning):
        _put_injection(database, injection)
        if brief.delivery == DELIVERED:
            count_delivery(database, injection.learning, injection.task, at=injection.injected_at)
    if brief.receipt.get("ask") == ASKED_IN_BRIEF:
        mark_notice_shown(database, brief.task, ASK, at=brief.created_at)


def apply_attempt(database: Database, body: Body) -> None:
    """Apply an attempt with its failure report, which older versions have spooled."""
    failure = body["failure"] and Failure(**{**body["failure"], "files": tuple(body["failure"]["files"])})
    tasks.ensure(database, Task(**body["task"]))
    tasks.add_attempt(database, Attempt(**body["attempt"]), failure or None)


APPLY: dict[str, Callable[[Database, Body], None]] = {
    "brief": apply_brief,
    "attempt": apply_attempt,
    "notice": apply_notice,
    "fork": apply_fork,
}


def get_brief(database: Database, id: str) -> Brief:
    """Return a brief with its receipt, or raise NotFound; its text is not stored."""
    row = database.row("select * from brief where project = :project and id = :id", id=id)
    if row is None:
        raise NotFound(f"no brief `{id[:100]}`", hint="`learnt activity --ids` shows the ids")
    return Brief.from_row(clean_row(row), receipt=read_json(row["receipt"]), injections=(), text="")


def delivery_of(asked_by: str) -> str:
    """Return whether a new brief is delivered: who asks for it receives it, but a client may drop what a hook says."""
    return "" if asked_by == "hook" else DELIVERED


def injected(database: Database, task: str, *, since: int = 0, missed_too: bool = False) -> dict[str, bool]:
    """Return the learnings that a task has been given since the given time, and whether each was held out.

    A learning whose brief was not delivered is left out, unless `missed_too` is set.
    """
    rows = database.rows(
        f"""
        select injection.learning, injection.held_out
          from injection
          left join brief on brief.project = injection.project and brief.id = injection.brief
         where injection.project = :project
           and injection.task = :task
           and injection.injected_at >= :since
           and (:missed_too = 1 or injection.delivered_at >= :since or coalesce(brief.delivery, '') <> '{MISSED}')
         order by injection.injected_at, injection.learning
        """,
        task=task,
        since=since,
        missed_too=int(missed_too),
    )
    return {row["learning"]: bool(row["held_out"]) for row in rows}


def delivered(database: Database, task: str) -> set[str]:
    """Return the learnings that have reached the agent in a task."""
    sql = "select learning from injection where project = :project and task = :task and delivered_at is not null"
    return set(database.column(sql, task=task))


def tasks_of(database: Database, briefs: Sequence[str]) -> dict[str, str]:
    """Return the task of each brief that is known here."""
    sql = f"select id, task from brief where project = :project and {database.one_of('id', 'briefs')}"
    return {row["id"]: row["task"] for row in database.rows(sql, briefs=database.list_value(briefs))}


def was_briefed(database: Database, task: str, *, since: int) -> bool:
    """Return whether a task has had a brief since the given time."""
    sql = "select id from brief where project = :project and task = :task and created_at >= :since limit 1"
    return database.has(sql, task=task, since=since)


def was_asked_for_marks(database: Database, tasks: Sequence[str], *, since: int) -> bool:
    """Return whether a brief asked for marks since the given time in one of these tasks."""
    return database.has(
        f"""
        select id
          from brief
         where project = :project
           and {database.one_of("task", "tasks")}
           and created_at >= :since
           and delivery <> '{MISSED}'
           and receipt like :asks
         limit 1
        """,
        tasks=database.list_value(tasks),
        since=since,
        asks='%"asks_marks": true%',
    )


def list_indexed(database: Database, tasks: Sequence[str], *, since: int) -> set[str]:
    """Return the learnings that stood in an index that one of these tasks has been given since the given time."""
    receipts = database.column(
        f"""
        select receipt
          from brief
         where project = :project
           and {database.one_of("task", "tasks")}
           and created_at >= :since
           and delivery <> '{MISSED}'
           and receipt like :listed
        """,
        tasks=database.list_value(tasks),
        since=since,
        listed='%"index": [{%',
    )
    return {entry["id"] for receipt in receipts for entry in read_json(receipt).get("index", ())}


def count_undecided(database: Database, learnings: Sequence[str]) -> dict[str, int]:
    """Return how often each of these learnings was given in a brief that may or may not have been delivered."""
    rows = database.rows(
        f"""
        select injection.learning, count(*) as times
          from injection
          join brief on brief.project = injection.project and brief.id = injection.brief
         where injection.project = :project
           and {database.one_of("injection.learning", "learnings")}
           and injection.held_out = 0
           and injection.delivered_at is null
           and brief.delivery = ''
         group by injection.learning
        """,
        learnings=database.list_value(learnings),
    )
    return {row["learning"]: int(row["times"]) for row in rows}


def list_given_in_templates(database: Database, task: str) -> dict[str, str]:
    """Return the learnings in the templates of a task, except pinned ones, each with the agent that got it last."""
    rows = database.rows(
        f"""
        select injection.learning, brief.agent
          from injection
          join brief on brief.project = injection.project and brief.id = injection.brief
          left join learning on learning.project = injection.project and learning.id = injection.learning
         where injection.project = :project
           and injection.task = :task
           and injection.held_out = 0
           and brief.delivery <> '{MISSED}'
           and brief.occasion = 'template'
           and coalesce(learning.pinned, 0) = 0
        """,
        task=task,
    )
    return {row["learning"]: row["agent"] for row in rows}


def agents(database: Database, *, limit: int) -> list[str]:
    """Return the distinct agents that received the latest briefs, latest first."""
    return database.column(
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


def add_mark(database: Database, mark: Mark) -> bool:
    """Store a mark on an injection; return False if the injection already has a mark."""
    row = {**mark.as_dict(), "helpful": int(mark.helpful)}
    return bool(database.insert("mark", row, otherwise="on conflict (project, learning, task) do nothing"))


def remove_mark(database: Database, mark: Mark) -> None:
    """Delete a mark, so that the injection can be marked again."""
    sql = "delete from mark where project = :project and learning = :learning and task = :task"
    database.execute(sql, learning=mark.learning, task=mark.task)


def _put_injection(database: Database, injection: Injection) -> None:
    row = {**injection.as_dict(), "held_out": int(injection.held_out)}
    is_new = database.insert("injection", row, otherwise="on conflict (project, learning, task) do nothing")
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


def deliver(database: Database, id: str) -> tuple[Brief, list[str]]:
    """Within a transaction: record that a brief was delivered, and count its learnings.

    Return the brief, and those of its learnings that had not reached the agent before.
    """
    brief = get_brief(database, id)
    is_new = database.execute(
        f"""
        update brief
           set delivery = '{DELIVERED}'
         where project = :project
           and id = :id
           and delivery <> '{DELIVERED}'
        """,
        id=id,
    )
    ids = sorted({*brief.learning_ids, *brief.receipt.get("beside", ())}) if is_new else []
    counted = [learning for learning in ids if count_delivery(database, learning, brief.task, at=brief.created_at)]
    return brief.replace(delivery=DELIVERED), counted


def count_delivery(database: Database, learning: str, task: str, *, at: int) -> bool:
    """Record that a learning reached the agent in a task, and count it; return False if it had reached it before."""
    is_first = database.execute(
        """
        update injection
           set delivered_at = :at
         where project = :project
           and learning = :learning
           and task = :task
           and held_out = 0
           and delivered_at is null
        """,
        learning=learning,
        task=task,
        at=at,
    )
    if is_first:
        count_use(database, learning, at=at)
    return bool(is_first)


def count_use(database: Database, id: str, *, at: int) -> None:
    """Increment a learning's use counter, if the learning is in this store."""
    learnings.unfold(database, id)
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
    """Return whether a learning has reached the agent in any of these tasks since the given time."""
    return database.has(
        f"""
        select learning
          from injection
         where project = :project
           and {database.one_of("task", "tasks")}
           and delivered_at is not null
           and injected_at >= :since
         limit 1
        """,
        tasks=database.list_value(of_tasks),
        since=since,
    )


def search_counter(asker: str, at: int | None) -> str:
    """Return the name of the counter for an asker's searches on one day.

    If `at` is None, return a name after those of all days.
    """
    return f"searches by {asker} on day {'999999' if at is None else f'{at // DAY_MS:06d}'}"
