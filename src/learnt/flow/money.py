"""Money for attempts: what an attempt may cost is reserved before it starts, and what it did cost is recorded.

Until its cost is known, an attempt counts at the price of its model. That price stands in the attempt's claim, so a
reservation ends with the claim, however the worker ends; a dead worker's attempt is recorded at its price.

The budget of a run counts what all workers of the project spend from the run's beginning on. The daily cap counts what
all projects of the user spend: the attempts in this project's store, and those in a file that all projects share.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from learnt.errors import LearntError
from learnt.model import Value
from learnt.project import user_data_folder
from learnt.store.spending import ATTEMPTS, spent_on_attempts, user_spending
from learnt.text.times import DAY_MS

if TYPE_CHECKING:
    from learnt.flow.context import Context
    from learnt.model import Claim, Task

# An attempt that fits exactly must not be refused because of a rounding error in a sum.
_ROUNDING_USD = 1e-9


class Budget(Value):
    """What may be spent from a moment on; 0 means no limit."""

    usd: float = 0.0
    since: int = 0


class Refused(Value):
    """Why the next attempt at a task is not started: it might cost more than what is left."""

    task: Task
    reason: str
    only_task: bool = False
    """Whether it is the task's own cap that refuses it."""


def price_of(context: Context, model: str) -> float:
    """Return what an attempt with a model may cost, by its configured price."""
    return next((known.price for known in context.settings.models if known.name == model), 0.0)


def reserve(context: Context, task: Task, claim: Claim, budget: Budget) -> Refused | None:
    """Within a transaction: reserve the price of a claim that is about to be made; return why it must not be made."""
    settings, database = context.settings, context.store.database
    if not (claim.price_usd or budget.usd or settings.work_daily_cap_usd or settings.work_task_cap_usd):
        return None
    database.lock_spending()  # if two attempts together exceed a limit, the second must see the first
    what = f"an attempt at “{task.title}”" + (f" with {claim.model}" if claim.model else "")
    own = sum(spent_on_attempts(database, since=task.fresh_since, task=task.id).values())
    flaw = _find_flaw(own, claim.price_usd, settings.work_task_cap_usd, "`work.task_cap_usd`", what)
    if flaw:
        return Refused(task=task, reason=f"{flaw} on the task", only_task=True)
    run = sum(spent_on_attempts(database, since=budget.since).values()) if budget.usd else 0.0
    flaw = _find_flaw(run, claim.price_usd, budget.usd, "the budget", what)
    if flaw:
        return Refused(task=task, reason=f"{flaw} or reserved")
    if not settings.work_daily_cap_usd:
        record(claim, cost_usd=claim.price_usd)
        return None
    day_ago = claim.started_at - DAY_MS
    with user_spending(user_data_folder(dict(os.environ)), ATTEMPTS) as spending:
        everywhere = {**spending.each_since(day_ago), **spent_on_attempts(database, since=day_ago)}
        day = sum(everywhere.values())
        flaw = _find_flaw(day, claim.price_usd, settings.work_daily_cap_usd, "`work.daily_cap_usd`", what)
        if flaw:
            return Refused(task=task, reason=f"{flaw} in all projects within 24 hours")
        spending.put(claim.attempt, at=claim.started_at, cost_usd=claim.price_usd)
    return None


def record(claim: Claim, *, cost_usd: float) -> None:
    """Record what an attempt costs, for the daily cap of other projects; without it, its price stays reserved there."""
    if cost_usd or claim.price_usd:
        with suppress(LearntError), user_spending(user_data_folder(dict(os.environ)), ATTEMPTS) as spending:
            spending.put(claim.attempt, at=claim.started_at, cost_usd=cost_usd)


def _find_flaw(spent: float, price: float, limit: float, name: str, what: str) -> str:
    """Return why a limit does not allow an attempt of this price; empty if it does, or if there is no limit."""
    if not limit or (spent < limit and spent + price <= limit + _ROUNDING_USD):
        return ""
    needs = f"{what} may cost ${price:.2f}, but of " if price else ""
    return f"{needs}${limit:.2f} ({name}) ${spent:.2f} are spent"
