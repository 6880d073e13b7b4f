"""The briefs in which learnings were given, and whether the learnings helped there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from learnt.model import Value
from learnt.store.database import read_json
from learnt.store.evidence import WORKED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from learnt.store.database import Database

_HELPED = f"""
    case when exists (
             select 1
               from mark
              where mark.project = injection.project
                and mark.learning = injection.learning
                and mark.task = injection.task
                and mark.helpful = 1
         )
           or exists (
             select 1
               from evidence
              where evidence.project = injection.project
                and evidence.learning = injection.learning
                and evidence.conversation = injection.task
                and evidence.kind = '{WORKED}'
         )
         then 1 else 0 end
"""


class GivenBrief(Value):
    """A brief that gave some learnings, and which of them helped."""

    id: str
    agent: str
    client: str = ""
    occasion: str = "task"
    asked_by: str = ""
    receipt: Mapping[str, Any]
    helpful: tuple[str, ...] = ()
    """The learnings that were marked helpful, or whose advice was followed with success."""


def list_briefs(
    database: Database, ids: Sequence[str], *, since: int, limit: int, others_too: bool = False
) -> list[GivenBrief]:
    """Return the briefs that gave one of these learnings, or any other one, too.

    Those in which a learning helped come first, then those that gave one of these, then the latest.
    """
    rows = database.rows(
        f"""
        select brief.id, brief.agent, brief.client, brief.occasion, brief.asked_by, brief.receipt
          from (
                   select injection.brief as id,
                          max({_HELPED}) as helped,
                          max(case when {database.one_of("injection.learning", "ids")} then 1 else 0 end) as concerned
                     from injection
                     join brief on brief.project = injection.project and brief.id = injection.brief
                    where injection.project = :project
                      and injection.held_out = 0
                      and brief.created_at >= :since
                    group by injection.brief
               ) given
          join brief on brief.project = :project and brief.id = given.id
         where given.concerned >= :concerned
         order by given.helped desc, given.concerned desc, brief.created_at desc, brief.id
         limit :limit
        """,
        ids=database.list_value(ids),
        since=since,
        concerned=0 if others_too else 1,
        limit=limit,
    )
    helpful = _list_helpful(database, [row["id"] for row in rows]) if rows else {}
    return [
        GivenBrief(
            id=row["id"],
            agent=row["agent"],
            client=row["client"],
            occasion=row["occasion"],
            asked_by=row["asked_by"],
            receipt=read_json(row["receipt"]),
            helpful=tuple(helpful.get(row["id"], ())),
        )
        for row in rows
    ]


def _list_helpful(database: Database, briefs: Sequence[str]) -> dict[str, list[str]]:
    """Return the learnings that helped in each of some briefs."""
    helpful: dict[str, list[str]] = {}
    rows = database.rows(
        f"""
        select injection.brief, injection.learning
          from injection
         where injection.project = :project
           and injection.held_out = 0
           and {database.one_of("injection.brief", "briefs")}
           and ({_HELPED}) = 1
         order by injection.brief, injection.learning
        """,
        briefs=database.list_value(briefs),
    )
    for row in rows:
        helpful.setdefault(row["brief"], []).append(row["learning"])
    return helpful
