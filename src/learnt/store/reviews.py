"""What waits for a person's review: proposals, and learnings that no person has cared for yet."""

from __future__ import annotations

from learnt.model import PROGRAM
from learnt.store import learnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from learnt.model import Learning
    from learnt.store.database import Database

# By which changes a person shows that they have seen a learning.
TOUCHES = ("like", "edit", "pin", "unpin", "hide", "restore", "archive", "supersede")
# The kind of a proposal, by how many learnings it would replace: ids hold no comma, so that one means two or more.
_KIND = """
    case when learning.replaces = '[]' then 'proposed'
         when learning.replaces like '%,%' then 'merged'
         else 'revised'
    end
"""
# A change that was undone shows nothing any more, and neither does its undoing; undoing what others did does.
# What is trusted in full already has nothing to gain from a person; what a person was asked about is asked once.
# (The plus keeps SQLite from an index that would not give the newest first.)
_TOUCHES = ", ".join(f"'{what}'" for what in TOUCHES)
_UNTOUCHED = f"""
           learning.project = :project
       and learning.status = 'active'
       and learning.origin in ('agent', 'model', 'import')
       and +learning.confidence < 1.0
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


def proposals(database: Database, kind: str, *, limit: int) -> list[Learning]:
    """Return the proposed learnings of one kind, `merged`, `revised` or `proposed`, the oldest first."""
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
    """Return the active learnings that no person wrote or cared for, the newest first."""
    newest_first = "order by learning.created_at desc, learning.id desc limit :limit"
    ids = database.column(f"select learning.id from learning where {_UNTOUCHED} {newest_first}", limit=limit)
    return _in_order(database, ids)


def is_untouched(database: Database, id: str) -> bool:
    """Say whether a learning is one of those."""
    return database.has(f"select learning.id from learning where {_UNTOUCHED} and learning.id = :id", id=id)


def counts(database: Database, *, most: int) -> dict[str, int]:
    """Return how much waits of each kind, but for removals; of `new` ones, none are counted beyond `most`."""
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


def _in_order(database: Database, ids: Sequence[str]) -> list[Learning]:
    by_id = learnings.get_all(database, ids)
    return [by_id[id] for id in ids if id in by_id]
