"""Things to tell once in a conversation: that a person's words were kept, or a request to write something down.

A process that finds something to tell adds a notice; the next hook that can show it shows it and marks it as shown.
Hooks do both through `Store.record`, which spools a record if the database is not available.
"""

from __future__ import annotations

from learnt.model import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from learnt.store.database import Database
    from learnt.store.happened import Body

KEPT = "kept"  # tell the person that what they said was kept; the subject is the learning
ASK = "ask"  # ask the agent to write down what it found out


class Notice(Value):
    """A thing to tell in a conversation."""

    task: str
    what: str
    subject: str = ""
    created_at: int
    shown_at: int | None = None


class NoticeRecord(Value):
    """There is something to tell in a conversation."""

    kind = "notice"
    as_body = Value.as_dict
    task: str
    what: str
    subject: str = ""
    at: int


class NoticeShownRecord(Value):
    """A notice has been shown."""

    kind = "notice shown"
    as_body = Value.as_dict
    task: str
    what: str
    subject: str = ""
    at: int


def add(database: Database, task: str, what: str, subject: str = "", *, at: int) -> bool:
    """Add a notice; return False if the conversation has had the same notice before."""
    row = {"task": task, "what": what, "subject": subject, "created_at": at}
    return bool(database.insert("notice", row, otherwise="on conflict (project, task, what, subject) do nothing"))


def find_unshown(database: Database, task: str, what: str | None = None) -> list[Notice]:
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
    return [Notice.from_row(row) for row in rows if what in (None, row["what"])]


def mark_shown(database: Database, task: str, what: str, subject: str = "", *, at: int) -> None:
    """Record that a notice was shown; one that is not known here yet will not be shown again either."""
    row = {"task": task, "what": what, "subject": subject, "created_at": at, "shown_at": at}
    first = "on conflict (project, task, what, subject) do update set shown_at = coalesce(notice.shown_at, :shown_at)"
    database.insert("notice", row, otherwise=first)


def _apply_notice(database: Database, body: Body) -> None:
    add(database, **body)


def _apply_shown(database: Database, body: Body) -> None:
    mark_shown(database, **body)


APPLY: dict[str, Callable[[Database, Body], None]] = {
    NoticeRecord.kind: _apply_notice,
    NoticeShownRecord.kind: _apply_shown,
}
