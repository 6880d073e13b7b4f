"""What learning costs and what it achieves, in figures: the accounts of model calls, and the statistics.

All figures are of the project's own store. The database sums, `weigh/statistics` judges what may be said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from learnt.flow.activity import (
    Activity,
    AttemptReport,
    count_today,
    latest_brief,
    read_activity,
    report_attempt,
)
from learnt.flow.context import Context, check_rows
from learnt.model import Value
from learnt.store import calls, missteps, reviews, statistics
from learnt.store.activity import Today
from learnt.store.calls import ModelCall, Spent
from learnt.store.statistics import Effect, Ranked, Regenerated
from learnt.text.times import DAY_MS, MONTH_MS
from learnt.weigh import statistics as rules
from learnt.weigh.statistics import Gone, Outcomes, Period, month_of

_FAILURES_SHOWN = 5
_ERRORS_SHOWN = 10
# How many failed attempts are compared: more would be slow, and older ones say little about today.
_SIGNS_READ = 2_000


class Usage(Value):
    """What model calls cost, in three windows, and what the caps leave."""

    today: tuple[Spent, ...]
    """The last 24 hours."""
    month: tuple[Spent, ...]
    """The last 30 days."""
    ever: tuple[Spent, ...]
    daily_cap_usd: float
    daily_usd: float
    monthly_cap_usd: float
    monthly_usd: float
    failures: tuple[ModelCall, ...]
    provider: str
    model: str


class GoneError(Value):
    """An error that no longer occurs, and the learning that was learnt where it did."""

    gone: Gone
    learning: str = ""
    title: str = ""


class Stats(Value):
    """What the learnings did, as far as the record tells."""

    helpful: tuple[Ranked, ...]
    not_helpful: tuple[Ranked, ...]
    recurring: tuple[Ranked, ...]
    task_tokens: tuple[Period, ...]
    """By week: estimated tokens of the texts of new tasks."""
    brief_tokens: tuple[Period, ...]
    """By week: tokens of briefs."""
    gone: tuple[GoneError, ...]
    cost: tuple[Period, ...]
    """By month: model calls, and what they cost in USD."""
    before: Outcomes
    """Tasks that were begun before there was a learning."""
    after: Outcomes
    by_month: Mapping[str, Outcomes]
    regenerations: Regenerated
    opinions: Mapping[str, int]
    prevented: Mapping[str, int]
    """By agent: how many errors were not repeated after a warning."""

    @property
    def cost_usd(self) -> float:
        """What all model calls have cost."""
        return sum(month.total for month in self.cost)


class Reports:
    """What a person reads to see what learnt does, what it costs, and whether it is worth it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._settings = context.settings

    def activity(self, *, limit: int = 20, what: str = "", client: str = "", agent: str = "") -> Activity:
        """Return what was done last inside clients, the newest first, and what it comes to.

        `what`: only `brief`, `warning` or `debrief`; `client` and `agent`: only theirs.
        """
        return read_activity(self._context, limit=limit, what=what, client=client, agent=agent)

    def attempt(self, id: str) -> AttemptReport:
        """Return what came of an attempt: its result, what it taught, which learnings it marked, and its report."""
        return report_attempt(self._context, id)

    def latest_brief(self, *, task: str = "") -> str:
        """Return the id of the latest brief, of a task if one is named; raise NotFound, with the reason, for none."""
        return latest_brief(self._context, task)

    def today(self) -> Today:
        """Return how much was done today, and how much waits for a person."""
        return count_today(self._context)

    def prevented(self, *, since: int | None = None) -> dict[str, int]:
        """Return how many errors were not repeated after a warning, by the agent that was warned."""
        return missteps.prevented(self._store.database, since)

    def model_calls(self, *, limit: int) -> list[ModelCall]:
        """Return the latest calls to models, the newest first."""
        check_rows(limit=limit)
        return calls.latest(self._store.database, limit=limit)

    def usage(self) -> Usage:
        """Return what model calls cost, by purpose and model."""
        database, now = self._store.database, self._context.clock()
        day, month = now - DAY_MS, now - MONTH_MS
        return Usage(
            today=tuple(calls.summed(database, since=day)),
            month=tuple(calls.summed(database, since=month)),
            ever=tuple(calls.summed(database, since=0)),
            daily_cap_usd=self._settings.model_daily_cap_usd,
            daily_usd=calls.spent_since(database, day),
            monthly_cap_usd=self._settings.model_monthly_cap_usd,
            monthly_usd=calls.spent_since(database, month),
            failures=tuple(calls.latest(database, limit=_FAILURES_SHOWN, failed_only=True)),
            provider=self._settings.model_provider,
            model=self._settings.model_name,
        )

    def stats(self, *, limit: int = 5, weeks: int = 12) -> Stats:
        """Return what the learnings did: the leading ones, and how prompts, errors and attempts went over time."""
        check_rows(limit=limit)
        database, now = self._store.database, self._context.clock()
        since = now - (weeks + 1) * 7 * DAY_MS
        lengths = statistics.task_lengths(database, since=since)
        tasks = [(day, count, rules.tokens_of_letters(total)) for day, count, total in lengths]
        briefs = statistics.brief_tokens(database, since=since)
        learnt_at = statistics.first_learning_at(database)
        effects = statistics.effects(database, learnt_at=now if learnt_at is None else learnt_at)
        return Stats(
            helpful=tuple(statistics.ranked(database, "times_helpful", limit=limit)),
            not_helpful=tuple(statistics.ranked(database, "times_not_helpful", limit=limit)),
            recurring=tuple(statistics.ranked(database, "recurrences", limit=limit)),
            task_tokens=tuple(rules.weeks(tasks, now_ms=now, count=weeks)),
            brief_tokens=tuple(rules.weeks(briefs, now_ms=now, count=weeks)),
            gone=self._find_gone_errors(now),
            cost=tuple(rules.months(statistics.spent(database))),
            before=_sum_up([effect for effect in effects if not effect.after]),
            after=_sum_up([effect for effect in effects if effect.after]),
            by_month=_sum_up_months(effects),
            regenerations=statistics.regenerated(database),
            opinions=reviews.count_opinions(database),
            prevented=missteps.prevented(database),
        )

    def _find_gone_errors(self, now: int) -> tuple[GoneError, ...]:
        database = self._store.database
        signs = statistics.failure_signs(database, limit=_SIGNS_READ)
        starts = statistics.attempt_starts(database, limit=rules.GONE_AFTER_ATTEMPTS)
        errors = []
        for gone in rules.gone(signs, starts, now_ms=now)[:_ERRORS_SHOWN]:
            id, title = statistics.learnt_from(database, gone.tasks) or ("", "")
            errors.append(GoneError(gone=gone, learning=id, title=title))
        return tuple(errors)


def _sum_up(effects: Iterable[Effect]) -> Outcomes:
    total = Outcomes()
    for effect in effects:
        total = total.plus(effect.tasks, effect.done, effect.at_first, effect.attempts)
    return total


def _sum_up_months(effects: Iterable[Effect]) -> dict[str, Outcomes]:
    months: dict[str, list[Effect]] = {}
    for effect in effects:
        months.setdefault(month_of(effect.day), []).append(effect)
    return {month: _sum_up(its_effects) for month, its_effects in months.items()}
