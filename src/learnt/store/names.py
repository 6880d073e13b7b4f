"""Distinctive identifiers that learnings name, by which calls are found that touch what a learning is about.

`index.put_names` stores them. A name that many learnings or many of the project's files contain is `common`: it does
not say what a call is about.
"""

from __future__ import annotations

from learnt.system import watched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from learnt.store.database import Condition, Database

TRIGGER = "names: "
"""How the trigger begins by which a name has shown a learning."""
_MAX_NAMES = 3_000
_MAX_LEARNINGS = 3  # a name that more learnings contain is common
_MAX_FOUND = 50


def find(database: Database, mentioned: Collection[str], conditions: Condition) -> dict[str, str]:
    """Return the learnings that fulfil conditions and contain one of these names, each with its longest such name."""
    where, parameters = conditions
    rows = database.rows(
        f"""
        select learning.id, learning_name.name
          from learning_name
          {database.then_join} learning
            on learning.project = learning_name.project and learning.id = learning_name.learning
         where learning_name.project = :project
           and {database.one_of("learning_name.name", "mentioned")}
           and learning_name.common = 0
           and {where}
         order by length(learning_name.name) desc, learning.confidence desc, learning.id
         limit :most
        """,
        mentioned=database.list_value(sorted(mentioned)),
        most=_MAX_FOUND,
        **parameters,
    )
    found: dict[str, str] = {}
    for row in rows:
        found.setdefault(row["id"], row["name"])
    return found


def count_spoken(database: Database, task: str, *, since: int) -> int:
    """Return how many briefs at calls of a conversation have shown a learning because of a name."""
    count = database.value(
        """
        select count(*) as spoken
          from brief
         where project = :project
           and task = :task
           and created_at >= :since
           and occasion = 'tool'
           and receipt like :trigger
        """,
        task=task,
        since=since,
        trigger=f'%"trigger": "{TRIGGER}%',
    )
    return int(count)


def list_vouched(database: Database, *, common_too: bool = False) -> list[str]:
    """Return the names in vouched, active learnings: those that can make a learning speak, or the common ones, too."""
    return database.column(
        f"""
        select distinct learning_name.name
          from learning_name
          join learning on learning.project = learning_name.project and learning.id = learning_name.learning
         where learning_name.project = :project
           {"" if common_too else "and learning_name.common = 0"}
           and learning.vouched <> ''
           and learning.status = 'active'
         order by learning_name.name
         limit :most
        """,
        most=_MAX_NAMES,
    )


def list_frequent(database: Database) -> list[str]:
    """Return the names that many active learnings contain."""
    return database.column(
        """
        select learning_name.name
          from learning_name
          join learning on learning.project = learning_name.project and learning.id = learning_name.learning
         where learning_name.project = :project
           and learning.status = 'active'
         group by learning_name.name
        having count(*) > :most
        """,
        most=_MAX_LEARNINGS,
    )


def mark_common(database: Database, names: Collection[str]) -> int:
    """Within a transaction: let these names be common, and no others; return how many rows changed."""
    listed = {"names": database.list_value(sorted(names))}
    is_common = database.one_of("name", "names")
    changed = database.execute(
        f"update learning_name set common = 1 where project = :project and common = 0 and {is_common}", **listed
    )
    changed += database.execute(
        f"update learning_name set common = 0 where project = :project and common = 1 and not ({is_common})", **listed
    )
    if changed:
        watched.forget(database.path)
    return changed
