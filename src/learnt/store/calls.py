"""Calls to language models: each is written down before it is made, so that no spending cap can be passed unseen."""

from __future__ import annotations

from learnt.model import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.store.database import Database, Row


class ModelCall(Value):
    """One call: what for, to whom, and what came of it."""

    id: str
    purpose: str
    provider: str
    model: str
    result: str
    at: int
    task: str = ""
    regeneration: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    duration_ms: int | None = None
    reason: str = ""


class Spent(Value):
    """What a group of calls came to."""

    purpose: str
    provider: str
    model: str
    calls: int
    done: int
    tokens_in: int
    tokens_out: int
    cost_usd: float


def add(database: Database, call: ModelCall) -> None:
    """Write a call down."""
    database.execute(
        """
        insert into model_call (project, id, purpose, provider, model, task, regeneration, result, tokens_in,
                                tokens_out, cost_usd, duration_ms, at, reason)
        values (:project, :id, :purpose, :provider, :model, :task, :regeneration, :result, :tokens_in,
                :tokens_out, :cost_usd, :duration_ms, :at, :reason)
        """,
        **call.as_dict(),
    )


def change(database: Database, call: ModelCall) -> None:
    """Say what came of a call."""
    database.execute(
        """
        update model_call
           set model = :model, result = :result, tokens_in = :tokens_in, tokens_out = :tokens_out,
               cost_usd = :cost_usd, duration_ms = :duration_ms, reason = :reason
         where project = :project
           and id = :id
        """,
        **{
            name: value
            for name, value in call.as_dict().items()
            if name in ("id", "model", "result", "tokens_in", "tokens_out", "cost_usd", "duration_ms", "reason")
        },
    )


def get(database: Database, id: str) -> ModelCall:
    """Return a call."""
    row = database.row("select * from model_call where project = :project and id = :id", id=id)
    assert row is not None  # noqa: S101 - the caller has written it down
    return _call(row)


def spent_since(database: Database, at: int) -> float:
    """Return what all calls since a moment have cost."""
    sql = "select sum(cost_usd) as spent from model_call where project = :project and at >= :at"
    return float(database.value(sql, at=at) or 0.0)


def spent_on(database: Database, regeneration: str) -> float | None:
    """Return what the calls for a regeneration have cost; None when there was none."""
    found = database.value(
        "select sum(coalesce(cost_usd, 0)) as spent from model_call where project = :project and regeneration = :id",
        id=regeneration,
    )
    return None if found is None else float(found)


def latest(database: Database, *, limit: int) -> list[ModelCall]:
    """Return the latest calls, the newest first."""
    rows = database.rows(
        """
        select *
          from model_call
         where project = :project
         order by at desc, id desc
         limit :limit
        """,
        limit=limit,
    )
    return [_call(row) for row in rows]


def summed(database: Database, *, since: int) -> list[Spent]:
    """Return what was spent since a moment, by purpose and model, the dearest first."""
    rows = database.rows(
        """
        select purpose, provider, model, count(*) as calls,
               sum(case when result = 'done' then 1 else 0 end) as done,
               coalesce(sum(tokens_in), 0) as tokens_in, coalesce(sum(tokens_out), 0) as tokens_out,
               coalesce(sum(cost_usd), 0) as cost_usd
          from model_call
         where project = :project
           and at >= :since
         group by purpose, provider, model
         order by 8 desc, purpose, provider, model
        """,
        since=since,
    )
    whole = ("calls", "done", "tokens_in", "tokens_out")
    return [Spent(**{**row, **{name: int(row[name]) for name in whole}}) for row in rows]


def _call(row: Row) -> ModelCall:
    return ModelCall(**{field: row[field] for field in ModelCall.fields})


def latest_failures(database: Database, *, limit: int) -> list[ModelCall]:
    """Return the latest calls that gave no answer, the newest first."""
    rows = database.rows(
        """
        select *
          from model_call
         where project = :project
           and result != 'done'
         order by at desc, id desc
         limit :limit
        """,
        limit=limit,
    )
    return [_call(row) for row in rows]
