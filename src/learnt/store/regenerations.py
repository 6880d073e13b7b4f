"""Updates of learnings files. Every rendering is stored with its changes and its cost.

One counter decides when the next update is due, and another decides which process starts it.
"""

from __future__ import annotations

import json

from learnt.model import Value, digest
from learnt.store.database import insert_statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from learnt.store.database import Database, Row

    Line = tuple[str, str, str]  # learning, text, section


class Regeneration(Value):
    """One update of a learnings file."""

    id: str
    cause: str
    started_at: int
    goal: str = ""
    result: str = "running"
    reason: str = ""
    text: str = ""
    bullets: Sequence[Line] = ()
    loose: Sequence[tuple[str, str, bool]] = ()
    tasks: int = 0
    added: int = 0
    removed: int = 0
    kept: int = 0
    skipped: int = 0
    churn: float = 0.0
    cost_usd: float | None = None
    finished_at: int | None = None


TASKS_SINCE_UPDATE = "tasks since update"
_UPDATE_STARTED_AT = "update started at"
_ANY_TEXT = ""
"""The sign that stands for every text of a purged learning; no real text has this sign."""


def claim_update(database: Database, *, now: int, before: int) -> bool:
    """Within a transaction: claim the next update; return False if another process has started one since `before`."""
    claim = "on conflict (project, name) do update set value = :value where counter.value <= :before"
    row = {"name": _UPDATE_STARTED_AT, "value": now}
    return bool(database.execute(insert_statement("counter", row, claim), **row, before=before))


def release_update(database: Database) -> None:
    """Within a transaction: allow the next update to start immediately."""
    sql = "update counter set value = 0 where project = :project and name = :name"
    database.execute(sql, name=_UPDATE_STARTED_AT)


def put(database: Database, regeneration: Regeneration) -> None:
    """Store a regeneration, replacing its earlier state."""
    row = regeneration.as_dict()
    row |= {name: json.dumps(row[name], ensure_ascii=False) for name in ("bullets", "loose")}
    changes = ", ".join(f"{column} = :{column}" for column in row if column != "id")
    database.insert("regeneration", row, otherwise=f"on conflict (project, id) do update set {changes}")
    for learning, text, _ in regeneration.bullets:
        _remember(database, learning, _sign(text))


def is_running_elsewhere(database: Database, *, host: str, since: int) -> bool:
    """Return whether an update that began since the given time is running on another machine.

    While an update is running, its `reason` contains the name of its host.
    """
    return database.has(
        """
        select id
          from regeneration
         where project = :project
           and result = 'running'
           and reason != :host
           and started_at >= :since
        """,
        host=host,
        since=since,
    )


def end_running(database: Database, *, at: int, reason: str) -> None:
    """Mark unfinished updates as failed. The caller holds the update lock."""
    database.execute(
        """
        update regeneration
           set result = 'failed', reason = :reason, finished_at = :at
         where project = :project
           and result = 'running'
        """,
        at=at,
        reason=reason,
    )


def find(database: Database, id: str) -> Regeneration | None:
    """Return a regeneration, or None."""
    row = database.row("select * from regeneration where project = :project and id = :id", id=id)
    return None if row is None else _regeneration(row)


def latest(database: Database, *, limit: int, goal: str | None = None) -> list[Regeneration]:
    """Return the latest regenerations, newest first; if `goal` is set, only those of this goal's file."""
    rows = database.rows(
        """
        select *
          from regeneration
         where project = :project
           and (:any_goal = 1 or goal = :goal)
         order by started_at desc, id desc
         limit :limit
        """,
        any_goal=int(goal is None),
        goal=goal or "",
        limit=limit,
    )
    return [_regeneration(row) for row in rows]


def was_shown(database: Database, learning: str, text: str) -> bool:
    """Return whether a file has ever shown a learning with this text.

    For a purged learning, return True if a file has ever shown it with any text, unless a person has imported the
    learning again.
    """
    return database.has(
        """
        select sign
          from rendered_line
         where project = :project
           and learning = :learning
           and (sign = :sign
                or (sign = :any_text
                    and not exists (
                        select 1
                          from learning
                         where learning.project = :project
                           and learning.id = :learning
                    )))
         limit 1
        """,
        learning=learning,
        sign=_sign(text),
        any_text=_ANY_TEXT,
    )


def forget(database: Database, learning: str) -> None:
    """Remove a learning's bullets from all renderings, and remember that it was purged."""
    rows = database.rows(
        "select * from regeneration where project = :project and bullets like :learning", learning=f'%"{learning}"%'
    )
    for regeneration in map(_regeneration, rows):
        lines = [line for line in regeneration.text.split("\n") if f"<!-- {learning} -->" not in line]
        bullets = [bullet for bullet in regeneration.bullets if bullet[0] != learning]
        database.execute(
            "update regeneration set text = :text, bullets = :bullets where project = :project and id = :id",
            id=regeneration.id,
            text="\n".join(lines),
            bullets=json.dumps(bullets, ensure_ascii=False),
        )
    _remember(database, learning, _ANY_TEXT)


def _remember(database: Database, learning: str, sign: str) -> None:
    ignore = "on conflict (project, learning, sign) do nothing"
    database.insert("rendered_line", {"learning": learning, "sign": sign}, otherwise=ignore)


def _sign(text: str) -> str:
    return digest(text)[:32]


def _regeneration(row: Row) -> Regeneration:
    pairs = {name: tuple(map(tuple, json.loads(row[name]))) for name in ("bullets", "loose")}
    return Regeneration.from_row(row, **pairs)
