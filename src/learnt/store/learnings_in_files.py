"""Learnings that stand in files: in files with rules, and those that a learnings file could show."""

from __future__ import annotations

from learnt.model import PROGRAM
from learnt.store.learnings import read_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from learnt.model import Learning
    from learnt.store.database import Database

_MAX_IN_A_FILE = 5_000


def in_file(database: Database, path: str) -> list[Learning]:
    """Return the learnings that stand in a file with rules, whatever their status, oldest first."""
    sql = "select * from learning where project = :project and loaded_from = :path order by created_at, id"
    return database.readable(read_row, database.rows(sql, path=path), "learning")


def files(database: Database) -> list[str]:
    """Return the files with rules that active learnings stand in."""
    return database.column(
        "select distinct loaded_from from learning "
        "where project = :project and status = 'active' and loaded_from <> '' order by loaded_from"
    )


def cared_for(database: Database) -> frozenset[str]:
    """Return the ids of the learnings that a person has edited or restored."""
    subjects = database.column(
        """
        select distinct subject
          from event
         where project = :project
           and what in ('edit', 'restore')
           and who != :program
        """,
        program=PROGRAM,
    )
    return frozenset(subjects)


def for_file(
    database: Database, *, tasks: Sequence[str], since: int, goal: str | None, cared_for: Collection[str] = ()
) -> list[Learning]:
    """Return candidates for a learnings file; they include everything that `learnings_file.write.select` would choose.

    If `goal` is set, only learnings with this goal are returned; if it is empty, only learnings without a goal.
    """
    rows = database.rows(
        f"""
        select *
          from learning
         where project = :project
           and status = 'active'
           and topic_file = ''
           and (pinned = 1 or vouched <> '' or times_helpful > 0 or updated_at >= :since
                or {database.one_of("task", "tasks")} or {database.one_of("id", "cared_for")})
           and (:any_goal = 1 or goal = :goal)
         order by pinned desc, case when vouched <> '' or times_helpful > 0 then 0 else 1 end, created_at desc, id
         limit {_MAX_IN_A_FILE}
        """,
        tasks=database.list_value(tasks),
        cared_for=database.list_value(sorted(cared_for)),
        since=since,
        any_goal=int(goal is None),
        goal=goal or "",
    )
    return database.readable(read_row, rows, "learning")


def goals(database: Database) -> list[str]:
    """Return the goals that active learnings have."""
    return database.column(
        "select distinct goal from learning where project = :project and status = 'active' order by goal"
    )
