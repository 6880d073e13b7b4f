"""Reports for people: recent activity, costs and statistics.

All statistics are from the project's own store. The database adds them up; `weigh.statistics` rejects statistics that
are based on too few cases.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from learnt.clients.registry import client_name
from learnt.errors import NotFound, WrongRequest
from learnt.flow.context import Context, check_rows
from learnt.model import Attempt, Failure, Value
from learnt.store import activity, calls, fired, missteps, reviews, statistics, tasks
from learnt.store.activity import ActivityEntry, Today
from learnt.store.calls import ModelCall, Spent
from learnt.store.fired import Fired
from learnt.store.statistics import Effect, Ranked, Regenerated
from learnt.text.times import DAY_MS, MONTH_MS, ago
from learnt.weigh import statistics as rules
from learnt.weigh.statistics import Gone, Outcomes, Period, month_of

_FAILURES_SHOWN = 5
_ERRORS_SHOWN = 10
# How many failed attempts are compared: more would be slow, and older attempts say little about today.
_MAX_FAILURES_READ = 2_000


class Activity(Value):
    """The latest activity, and totals."""

    entries: tuple[ActivityEntry, ...]
    used: Mapping[str, int]
    """How often learnings were requested in the last 30 days, by asker (ASKERS)."""
    prevented: Mapping[str, int]
    """How many errors were prevented, by agent."""
    outcomes: Mapping[str, int] = {}
    """How many warnings had each outcome (`store.missteps.OUTCOMES`)."""
    fired: Mapping[str, Fired] = {}
    """The last hook event of each client that was handled, whether or not it got an answer."""
    clients: tuple[str, ...] = ()
    """All known clients; filled only if there are no entries, like `agents`."""
    agents: tuple[str, ...] = ()


class AttemptReport(Value):
    """An attempt and its outcome."""

    attempt: Attempt
    title: str
    """The title of the attempt's task."""
    client: str
    agent: str
    learnings: Mapping[str, str]
    """The titles of the attempt's learnings by id; `helpful` and `not_helpful` have the same form."""
    helpful: Mapping[str, str]
    not_helpful: Mapping[str, str]
    failure: Failure | None


class Usage(Value):
    """The cost of model calls in three periods, and the caps."""

    last_24_hours: tuple[Spent, ...]
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
    """An error that no longer occurs, and the learning from the tasks that had it."""

    gone: Gone
    learning: str = ""
    title: str = ""


class Stats(Value):
    """Statistics on the effect of the learnings."""

    helpful: tuple[Ranked, ...]
    not_helpful: tuple[Ranked, ...]
    recurring: tuple[Ranked, ...]
    task_tokens: tuple[Period, ...]
    """Estimated tokens in the texts of new tasks, by week."""
    brief_tokens: tuple[Period, ...]
    """Tokens in delivered briefs, without warnings, by week."""
    unknown_deliveries: int
    """How many more briefs may have been delivered in these weeks."""
    gone: tuple[GoneError, ...]
    cost: tuple[Period, ...]
    """Model calls and their cost in USD, by month."""
    before: Outcomes
    """Outcomes of tasks that began before the first learning."""
    after: Outcomes
    by_month: Mapping[str, Outcomes]
    regenerations: Regenerated
    opinions: Mapping[str, int]
    prevented: Mapping[str, int]
    """How many errors were prevented, by agent."""
    outcomes: Mapping[str, int]
    """How many warnings had each outcome (`store.missteps.OUTCOMES`)."""

    @property
    def cost_usd(self) -> float:
        """The cost of all model calls."""
        return sum(month.total for month in self.cost)


class Reports:
    """Activity, costs and statistics of the project's store."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._settings = context.settings

    def activity(self, *, limit: int = 20, what: str = "", client: str = "", agent: str = "") -> Activity:
        """Return the latest activity inside clients, newest first, and totals.

        `what` selects only `brief`, `warning` or `debrief`; `client` and `agent` select only their activity.
        """
        check_rows(limit=limit)
        if what and what not in activity.KINDS:
            raise WrongRequest(
                f"there is no activity of the kind `{what}`", hint=f"choose one of: {', '.join(activity.KINDS)}"
            )
        database = self._store.database
        entries = activity.latest(database, limit=limit, what=what, client=client_name(client), agent=agent)
        clients, agents = ([], []) if entries else activity.names(database)
        outcomes = missteps.count_outcomes(database)
        return Activity(
            entries=tuple(entries),
            used=activity.used(database, since=self._context.clock() - MONTH_MS),
            prevented=outcomes["prevented"],
            outcomes=_add_up(outcomes),
            fired=fired.read(self._store.place.folder),
            clients=tuple(clients),
            agents=tuple(agents),
        )

    def attempt(self, attempt: str) -> AttemptReport:
        """Return the outcome of an attempt: its result, its learnings, its marks and its failure report."""
        database = self._store.database
        recorded = tasks.find_attempt(database, attempt)
        if recorded is None:
            raise NotFound(f"no debrief `{attempt[:100]}`", hint="`learnt activity --ids` shows the ids")
        task = tasks.get(database, recorded.task)
        marks = activity.marked(database, attempt)
        titles = self._context.titles(list(marks))
        return AttemptReport(
            attempt=recorded,
            title=task.title,
            client=activity.client_of(database, task.id),
            agent=task.agent,
            learnings=activity.taught(database, attempt),
            helpful={learning: titles.get(learning, "") for learning, helped in marks.items() if helped},
            not_helpful={learning: titles.get(learning, "") for learning, helped in marks.items() if not helped},
            failure=tasks.failures(database, task.id).get(attempt),
        )

    def latest_brief(self, *, task: str = "") -> str:
        """Return the id of the latest brief, or of a task's latest; raise NotFound with the reason if there is none."""
        id = activity.latest_brief(self._store.database, task)
        if id:
            return id
        if task:
            tasks.get(self._store.database, task)
            raise NotFound(f"`{task}` has never been briefed", hint=f'`learnt brief "…" --task {task}` does that')
        last = fired.read(self._store.place.folder)
        why = (
            f"{self.describe_fired(last, self._context.clock())}, and no learning has matched so far; " if last else ""
        )
        raise NotFound("there is no brief yet", hint=f'{why}`learnt brief "what is to be done"` gives one')

    @staticmethod
    def describe_fired(last: Mapping[str, Fired], now: int) -> str:
        """Return a description of when each client's hooks last fired."""
        events = (f"hooks of {client} fired {ago(event.at, now)} ({event.event})" for client, event in last.items())
        return ", ".join(events)

    def today(self) -> Today:
        """Return how much has been done since local midnight, and how many items await a person's review."""
        date = time.localtime(self._context.clock() / 1000)
        midnight = time.mktime((date.tm_year, date.tm_mon, date.tm_mday, 0, 0, 0, 0, 0, -1))
        return activity.today(self._store.database, since=int(midnight * 1000))

    def prevented(self, *, since: int | None = None) -> dict[str, int]:
        """Return how many errors were prevented, by the agent that was warned."""
        return missteps.count_outcomes(self._store.database, since)["prevented"]

    def model_calls(self, *, limit: int) -> list[ModelCall]:
        """Return the latest model calls, newest first."""
        check_rows(limit=limit)
        return calls.latest(self._store.database, limit=limit)

    def usage(self) -> Usage:
        """Return the cost of model calls by purpose and model."""
        database, now = self._store.database, self._context.clock()
        day, month = now - DAY_MS, now - MONTH_MS
        return Usage(
            last_24_hours=tuple(calls.summed(database, since=day)),
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
        """Return statistics: the top learnings, and how prompts, errors and attempts have changed over time."""
        check_rows(limit=limit)
        database, now = self._store.database, self._context.clock()
        since = now - (weeks + 1) * 7 * DAY_MS
        lengths = statistics.task_lengths(database, since=since)
        task_tokens = [(day, count, rules.tokens_of_letters(total)) for day, count, total in lengths]
        brief_tokens = statistics.brief_tokens(database, since=since)
        learnt_at = statistics.first_learning_at(database)
        effects = statistics.effects(database, learnt_at=now if learnt_at is None else learnt_at)
        months = dict.fromkeys(month_of(effect.day) for effect in effects)
        outcomes = missteps.count_outcomes(database)
        return Stats(
            helpful=tuple(statistics.ranked(database, "times_helpful", limit=limit)),
            not_helpful=tuple(statistics.ranked(database, "times_not_helpful", limit=limit)),
            recurring=tuple(statistics.ranked(database, "recurrences", limit=limit)),
            task_tokens=tuple(rules.weeks(task_tokens, now_ms=now, count=weeks)),
            brief_tokens=tuple(rules.weeks(brief_tokens, now_ms=now, count=weeks)),
            unknown_deliveries=statistics.count_unknown_deliveries(database, since=since),
            gone=self._find_gone_errors(now),
            cost=tuple(rules.months(statistics.spent(database))),
            before=_sum_up(effect for effect in effects if not effect.after),
            after=_sum_up(effect for effect in effects if effect.after),
            by_month={
                month: _sum_up(effect for effect in effects if month_of(effect.day) == month) for month in months
            },
            regenerations=statistics.regenerated(database),
            opinions=reviews.count_opinions(database),
            prevented=outcomes["prevented"],
            outcomes=_add_up(outcomes),
        )

    def _find_gone_errors(self, now: int) -> tuple[GoneError, ...]:
        database = self._store.database
        signs = statistics.failure_signs(database, limit=_MAX_FAILURES_READ)
        starts = statistics.attempt_starts(database, limit=rules.GONE_AFTER_ATTEMPTS)
        errors = []
        for gone in rules.find_gone(signs, starts, now_ms=now)[:_ERRORS_SHOWN]:
            id, title = statistics.learnt_from(database, gone.tasks) or ("", "")
            errors.append(GoneError(gone=gone, learning=id, title=title))
        return tuple(errors)


def _add_up(outcomes: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return how many warnings had each outcome, of all agents together."""
    return {outcome: sum(by_agent.values()) for outcome, by_agent in outcomes.items()}


def _sum_up(effects: Iterable[Effect]) -> Outcomes:
    total = Outcomes()
    for effect in effects:
        total = total.plus(effect.tasks, effect.done, effect.at_first, effect.attempts)
    return total
