"""Calls to language models: each is recorded before it is made, so that every call counts towards the spending caps."""

from __future__ import annotations

from learnt.model import Value
from learnt.store.database import Database, clean_row

_OUTCOME = ("model", "result", "tokens_in", "tokens_out", "cost_usd", "duration_ms", "reason")


class ModelCall(Value):
    """One call: its purpose, its model and its outcome."""

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
    """The totals for a group of calls."""

    purpose: str
    provider: str
    model: str
    calls: int
    done: int
    tokens_in: int
    tokens_out: int
    cost_usd: float


def add(database: Database, call: ModelCall) -> None:
    """Record a call."""
    database.insert("model_call", call.as_dict())


def change(database: Database, call: ModelCall) -> None:
    """Record a call's outcome."""
    changes = ", ".join(f"{column} = :{column}" for column in _OUTCOME)
    database.execute(
        f"update model_call set {changes} where project = :project and id = :id",
        id=call.id,
        **{column: getattr(call, column) for column in _OUTCOME},
    )


def get(database: Database, id: str) -> ModelCall:
    """Return a call."""
    row = database.row("select * from model_call where project = :project and id = :id", id=id)
    assert row is not None  # noqa: S101 - the caller has recorded it
    return ModelCall.from_row(clean_row(row))


def spent_since(database: Database, at: int) -> float:
    """Return the cost of all calls since the given time."""
    sql = "select sum(cost_usd) as spent from model_call where project = :project and at >= :at"
    return float(database.value(sql, at=at) or 0.0)


def spent_on(database: Database, regeneration: str) -> float | None:
    """Return the cost of the calls for a regeneration; None if there were no calls."""
    sql = "select sum(coalesce(cost_usd, 0)) as spent from model_call where project = :project and regeneration = :id"
    spent = database.value(sql, id=regeneration)
    return None if spent is None else float(spent)


def latest(database: Database, *, limit: int, failed_only: bool = False) -> list[ModelCall]:
    """Return the latest calls, newest first; with `failed_only`, only the calls without an answer."""
    rows = database.rows(
        """
        select *
          from model_call
         where project = :project
           and (:failed_only = 0 or result != 'done')
         order by at desc, id desc
         limit :limit
        """,
        failed_only=int(failed_only),
        limit=limit,
    )
    return database.readable(lambda row: ModelCall.from_row(clean_row(row)), rows, "call of a model")


def summed(database: Database, *, since: int) -> list[Spent]:
    """Return the costs since the given time by purpose and model, highest first."""
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
    int_columns = ("calls", "done", "tokens_in", "tokens_out")
    return [Spent(**{**row, **{name: int(row[name]) for name in int_columns}}) for row in rows]
