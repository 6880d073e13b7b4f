"""What a person has to decide: proposals, learnings that no person has seen, and escalations.

People's opinions on whether the learnings helped are stored here, too.
"""

from __future__ import annotations

import json

from learnt.errors import NotFound
from learnt.model import PROGRAM, Value, check_choice, check_id
from learnt.store import learnings
from learnt.store.database import clean_row, read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from learnt.model import Learning
    from learnt.store.database import Database, Row

DUPLICATE = "duplicate"
CONSOLIDATION = "consolidation"
# These changes show that a person has seen a learning.
TOUCHES = ("like", "edit", "pin", "unpin", "hide", "restore", "archive", "supersede")
# A proposal's kind depends on how many learnings it would replace. Ids contain no comma, so a comma means several.
_KIND = """
    case when learning.replaces = '[]' then 'proposed'
         when learning.replaces like '%,%' then 'merged'
         else 'revised'
    end
"""
# A change that was undone is ignored, and so is its undo; but undoing a change by the program shows that a person has
# seen the learning. Learnings with full confidence need no review. Learnings with an escalation are left out, so that a
# person is asked about them only once. (The plus keeps SQLite from using an index that is not ordered by time.)
_TOUCHES = ", ".join(f"'{what}'" for what in TOUCHES)
_UNTOUCHED = f"""
           learning.project = :project
       and learning.status = 'active'
       and learning.origin in ('agent', 'model', 'import')
       and +learning.confidence < 1.0
       and not (learning.vouched = 'person' and learning.loaded_from <> '')
       and learning.id not in (select subject from escalation where project = :project)
       and not exists (
           select 1
             from event
            where event.project = learning.project
              and event.subject = learning.id
              and event.who != '{PROGRAM}'
              and event.what in ('undo', {_TOUCHES})
              and not exists (
                  select 1
                    from event undoing
                   where undoing.project = event.project
                     and undoing.subject = event.subject
                     and undoing.undoes = event.id
              )
              and not exists (
                  select 1
                    from event undone
                   where undone.project = event.project
                     and undone.subject = event.subject
                     and undone.id = event.undoes
                     and undone.what in ({_TOUCHES})
              )
       )
"""


class Escalation(Value):
    """A question that only a person can decide."""

    id: str
    subject: str
    question: str
    detail: Mapping[str, Any] = {}
    status: str = "open"
    answer: str = ""
    created_at: int = 0
    resolved_at: int | None = None
    resolved_by: str = ""

    @property
    def is_about_consolidation(self) -> bool:
        """Whether consolidation asks, so that the answer is one of its sides."""
        return self.detail.get("what") == CONSOLIDATION

    def check(self) -> None:
        check_id("esc", self.id)
        check_choice("status", self.status, ("open", "resolved"))


def proposals(database: Database, kind: str, *, limit: int) -> list[Learning]:
    """Return the proposals of a kind (`merged`, `revised` or `proposed`), oldest first."""
    ids = database.column(
        f"""
        select learning.id
          from learning
         where learning.project = :project
           and learning.status = 'proposed'
           and {_KIND} = :kind
         order by learning.created_at, learning.id
         limit :limit
        """,
        kind=kind,
        limit=limit,
    )
    return _in_order(database, ids)


def untouched(database: Database, *, limit: int) -> list[Learning]:
    """Return the active learnings that were not written, changed or liked by a person, newest first."""
    newest_first = "order by learning.created_at desc, learning.id desc limit :limit"
    ids = database.column(f"select learning.id from learning where {_UNTOUCHED} {newest_first}", limit=limit)
    return _in_order(database, ids)


def is_untouched(database: Database, id: str) -> bool:
    """Return whether a learning is among `untouched`."""
    return database.has(f"select learning.id from learning where {_UNTOUCHED} and learning.id = :id", id=id)


def counts(database: Database, *, most: int) -> dict[str, int]:
    """Return how many items of each kind wait for review, except removals; `new` learnings are counted up to `most`."""
    rows = database.rows(
        f"""
        select {_KIND} as kind, count(*) as waiting
          from learning
         where learning.project = :project
           and learning.status = 'proposed'
         group by 1
        """
    )
    some = f"select 1 as one from learning where {_UNTOUCHED} limit :most"
    untouched = database.value(f"select count(*) as waiting from ({some}) untouched", most=most)
    return {**{row["kind"]: int(row["waiting"]) for row in rows}, "new": int(untouched)}


def list_duplicates(database: Database) -> list[Escalation]:
    """Return the open questions about two active learnings that say the same, oldest first."""
    asked = [question for question in escalations(database) if is_about_duplicate(question)]
    ids = sorted({id for question in asked for id in (question.subject, question.detail["other"])})
    found = learnings.get_all(database, ids) if ids else {}
    active = {id for id, learning in found.items() if learning.status == "active"}
    return [question for question in asked if {question.subject, question.detail["other"]} <= active]


def is_about_duplicate(escalation: Escalation) -> bool:
    """Return whether an escalation asks which of two learnings stays."""
    return escalation.detail.get("what") == DUPLICATE and isinstance(escalation.detail.get("other"), str)


def list_added(database: Database, *, since: int, limit: int) -> list[tuple[str, int]]:
    """Return the learnings that were added since a time, oldest first, and when."""
    rows = database.rows(
        """
        select subject, at
          from event
         where project = :project
           and at >= :since
           and version = 1
         order by at, subject
         limit :limit
        """,
        since=since,
        limit=limit,
    )
    return [(row["subject"], int(row["at"])) for row in rows]


def add_escalation(database: Database, escalation: Escalation) -> int:
    """Store an escalation, unless it already exists; return how many are new."""
    row = {**escalation.as_dict(), "detail": json.dumps(escalation.detail, ensure_ascii=False)}
    return database.insert("escalation", row, otherwise="on conflict (project, id) do nothing")


def get_escalation(database: Database, id: str, *, for_update: bool = False) -> Escalation:
    """Return an escalation, or raise NotFound."""
    lock = database.for_update if for_update else ""
    row = database.row(f"select * from escalation where project = :project and id = :id{lock}", id=id)
    if row is None:
        raise NotFound(f"no escalation `{id[:100]}`", hint="`learnt escalations --all` shows the ids")
    return _escalation(row)


def escalations(database: Database, *, status: str | None = "open", subject: str | None = None) -> list[Escalation]:
    """Return the matching escalations, oldest first; None means any."""
    rows = database.rows(
        """
        select *
          from escalation
         where project = :project
           and (:status = '' or status = :status)
           and (:subject = '' or subject = :subject)
         order by created_at, id
        """,
        status=status or "",
        subject=subject or "",
    )
    return database.readable(_escalation, rows, "escalation")


def resolve_escalation(database: Database, escalation: Escalation) -> None:
    """Store the answer to an escalation."""
    database.execute(
        """
        update escalation
           set status = :status, answer = :answer, resolved_at = :resolved_at, resolved_by = :resolved_by,
               detail = :detail
         where project = :project
           and id = :id
        """,
        **{name: getattr(escalation, name) for name in ("id", "status", "answer", "resolved_at", "resolved_by")},
        detail=json.dumps(escalation.detail, ensure_ascii=False),
    )


def ask_again(database: Database, escalation: Escalation) -> None:
    """Open an escalation again that was withdrawn."""
    database.execute(
        """
        update escalation
           set status = 'open', answer = '', resolved_at = null, resolved_by = '', created_at = :created_at,
               question = :question, detail = :detail
         where project = :project
           and id = :id
        """,
        **{name: getattr(escalation, name) for name in ("id", "question", "created_at")},
        detail=json.dumps(escalation.detail, ensure_ascii=False),
    )


def add_opinion(database: Database, id: str, answer: str, *, who: str, at: int) -> None:
    """Store a person's answer to the question whether the learnings helped."""
    database.insert("opinion", {"id": id, "answer": answer, "who": who, "at": at})


def count_opinions(database: Database) -> dict[str, int]:
    """Return how often each answer was given."""
    sql = "select answer, count(*) as given from opinion where project = :project group by answer order by answer"
    return {row["answer"]: int(row["given"]) for row in database.rows(sql)}


def _escalation(row: Row) -> Escalation:
    return Escalation.from_row(clean_row(row), detail=read_json(row["detail"]))


def _in_order(database: Database, ids: Sequence[str]) -> list[Learning]:
    by_id = learnings.get_all(database, ids)
    return [by_id[id] for id in ids if id in by_id]
