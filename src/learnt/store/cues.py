"""Learnings without cues, and what a model has written for them."""

from __future__ import annotations

from learnt.model import Event, Learning
from learnt.store import learnings
from learnt.store.database import Database

ASKED_ABOUT = "cues of "
"""Before a learning's id: the name under which it is recorded that a model was asked about it."""
_WITHOUT = "project = :project and status = 'active' and cues = '[]' and model_cues = '[]'"


def list_without(database: Database, *, limit: int) -> list[Learning]:
    """Return active learnings that neither came with cues nor have a model's, the most trusted first, then newest."""
    ids = database.column(
        f"""
        select id
          from learning
         where {_WITHOUT}
         order by pinned desc, case when vouched = '' then 1 else 0 end, created_at desc, id
         limit :limit
        """,
        limit=limit,
    )
    found = learnings.get_all(database, ids) if ids else {}
    return [found[id] for id in ids if id in found]


def count_without(database: Database) -> int:
    """Return how many active learnings neither came with cues nor have a model's."""
    return int(database.value(f"select count(*) as lacking from learning where {_WITHOUT}"))


def list_changes(database: Database, what: str, reason: str) -> list[Event]:
    """Return the changes of a kind with exactly this reason, the latest first."""
    ids = database.column(
        """
        select id
          from event
         where project = :project
           and what = :what
           and reason = :reason
         order by at desc, subject, version desc
        """,
        what=what,
        reason=reason,
    )
    return [learnings.get_event(database, id) for id in ids]


def latest_reason(database: Database, what: str) -> str:
    """Return the reason of the latest change of a kind that has not been undone; empty if there is none."""
    reason = database.value(
        """
        select reason
          from event
         where project = :project
           and what = :what
           and not exists (
               select 1
                 from event as undo
                where undo.project = event.project
                  and undo.subject = event.subject
                  and undo.undoes = event.id
           )
         order by at desc, id desc
         limit 1
        """,
        what=what,
    )
    return str(reason or "")
