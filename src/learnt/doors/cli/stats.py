"""Commands that show statistics: how the learnings performed, and the cost of model calls."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from learnt.doors.cli.arguments import Arguments, Parser, open_memory
from learnt.doors.output import NOT_KNOWN, format_count, format_outcomes, format_time, paint, say, show_json, show_table
from learnt.errors import WrongRequest
from learnt.flow.reports import GoneError, Stats, Usage
from learnt.project import user_settings_file
from learnt.store.calls import ModelCall, Spent
from learnt.store.statistics import Ranked
from learnt.weigh.statistics import Outcomes, Period, mean_of, share

_TOO_FEW = "too few to tell"
_MAX_ERROR_CHARS = 160
_MAX_WEEKS = 520
_BARS = "▁▂▃▄▅▆▇█"


def stats_arguments(parser: Parser) -> None:
    parser.add_argument("--limit", type=int, default=5, metavar="N", help="how many learnings per ranking; default: 5")
    parser.add_argument(
        "--weeks", type=int, default=12, metavar="N", help="how many weeks the charts cover; default: 12"
    )


def stats_run(arguments: Arguments) -> None:
    if not 1 <= arguments.weeks <= _MAX_WEEKS:
        raise WrongRequest(f"--weeks must be from 1 to {_MAX_WEEKS}, not {arguments.weeks}", hint="the default is 12")
    with open_memory(arguments) as memory:
        stats = memory.reports.stats(limit=arguments.limit, weeks=arguments.weeks)
    if arguments.json:
        show_json(_stats_record(stats))
        return
    _show_ranking("Most helpful", stats.helpful, "times_helpful", "helpful")
    _show_ranking("Most often not helpful", stats.not_helpful, "times_not_helpful", "not helpful")
    _show_ranking("Learnt again most often", stats.recurring, "recurrences", "time")
    _show_weeks("Length of new tasks, without conversations", stats.task_tokens, "task")
    more = f"; {stats.unknown_deliveries:,} more {NOT_KNOWN}" if stats.unknown_deliveries else ""
    _show_weeks("Length of briefs", stats.brief_tokens, "brief", more=more)
    _show_fixed_errors(stats.gone)
    _show_prevented(stats)
    _show_effect(stats)
    _show_upkeep(stats)


def usage_arguments(parser: Parser) -> None:
    parser.add_argument("--calls", type=int, default=0, metavar="N", help="also list the latest N calls")


def usage_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        usage = memory.reports.usage()
        calls = memory.reports.model_calls(limit=arguments.calls)
    if arguments.json:
        show_json(_usage_record(usage, calls))
        return
    if not usage.ever:
        say("No model has ever been called.")
        if usage.provider == "none":
            path = user_settings_file(dict(os.environ))
            say(f'None is configured: set one under [model] in {path}, as in `provider = "command"`;')
            say("`learnt config model.provider` lists the choices.")
        return
    for title, spent in (("Last 24 hours", usage.last_24_hours), ("Last 30 days", usage.month), ("Ever", usage.ever)):
        _show_spent(title, spent)
    say(f"\n{_describe_cap('24 hours', usage.daily_usd, usage.daily_cap_usd)}")
    say(_describe_cap("30 days", usage.monthly_usd, usage.monthly_cap_usd))
    if usage.failures:
        say(f"\n{paint('Latest failures', 'bold')}")
        for call in usage.failures:
            why = call.reason or "unknown reason"
            say(f"  {format_time(call.at)}  {call.purpose}  {_name_model(call)}  {call.result}: {why}")
    if calls:
        say()
        heads = ("at", "purpose", "model", "result", "in", "out", "USD", "ms")
        show_table(heads, [_call_row(call) for call in calls], wide=1, always_heads=True)


def _show_ranking(title: str, ranked: Sequence[Ranked], field: str, unit: str) -> None:
    say(paint(title, "bold"))
    if not ranked:
        say("  none yet\n")
        return
    for learning in ranked:
        status = f"  ({learning.status})" if learning.status != "active" else ""
        count = getattr(learning, field)
        units = f"{unit}{'s' * (unit == 'time' and count != 1)}"
        say(f"  {count:>4} {units}{_format_share(learning, field)}  {learning.id}  {learning.title}{status}")
    say()


def _format_share(learning: Ranked, field: str) -> str:
    if field == "recurrences":
        return ""
    part = share(getattr(learning, field), learning.times_injected)
    return f" of {learning.times_injected} shown ({_TOO_FEW if part is None else f'{part:.0%}'})"


def _show_weeks(title: str, weeks: Sequence[Period], noun: str, *, more: str = "") -> None:
    say(f"{paint(title, 'bold')}: estimated tokens each, by week since {weeks[0].start}")
    if not any(week.count for week in weeks):
        say(f"  no {noun} yet{more}\n")
        return
    say(f"  {draw_bars([week.mean for week in weeks])}")
    say(f"  {_describe_trend(weeks, noun)}{more}\n")


def _describe_trend(weeks: Sequence[Period], noun: str) -> str:
    """Return how the first half of the weeks compares with the second half, if both have enough data."""
    half = len(weeks) // 2
    then, now = mean_of(weeks[:half]), mean_of(weeks[half:])
    count = format_count(sum(week.count for week in weeks), noun)
    if then is None or now is None:
        return f"{count}: {_TOO_FEW} whether they get shorter"
    return f"{count}: {then:,.0f} tokens in the first half, {now:,.0f} in the second"


def _show_fixed_errors(gone: Sequence[GoneError]) -> None:
    say(paint("Errors that no longer occur", "bold"))
    for fixed in gone:
        error = " ".join(fixed.gone.error.split())
        say(f"  {error if len(error) <= _MAX_ERROR_CHARS else error[:_MAX_ERROR_CHARS] + '…'}")
        learnt = f"; learnt there: {fixed.learning} {fixed.title}" if fixed.learning else ""
        say(paint(f"    {len(fixed.gone.tasks)} tasks, last on {format_time(fixed.gone.last_at)}{learnt}", "dim"))
    say("" if gone else "  none known\n")


def _show_prevented(stats: Stats) -> None:
    say(paint("Errors prevented", "bold"))
    for agent, count in stats.prevented.items():
        say(f"  {count:>4} {agent or '(no agent)'}")
    if not stats.prevented:
        say("  none known")
    if any(stats.outcomes.values()):
        say(f"  of all warnings: {format_outcomes(stats.outcomes)}")
    say()


def _show_effect(stats: Stats) -> None:
    say(paint("Effect, without conversations", "bold"))
    say(f"  before the first learning: {_describe_outcomes(stats.before)}")
    say(f"  since then:                {_describe_outcomes(stats.after)}")
    for month, outcomes in list(stats.by_month.items())[-6:]:
        say(f"  {month}: {_describe_outcomes(outcomes)}")
    calls = sum(month.count for month in stats.cost)
    say(f"  cost of model calls: ${stats.cost_usd:.2f} for {format_count(calls, 'call')}\n")


def _describe_outcomes(outcomes: Outcomes) -> str:
    if not outcomes.tasks:
        return "no tasks"
    tasks = format_count(outcomes.tasks, "task")
    first, each = outcomes.share_at_first, outcomes.attempts_per_done
    if first is None:
        return f"{tasks}: {_TOO_FEW}"
    attempts = "" if each is None else f", {each:.1f} attempts per finished task"
    return f"{tasks}, {first:.0%} done at the first attempt{attempts}"


def _show_upkeep(stats: Stats) -> None:
    updates = stats.regenerations
    total = updates.made + updates.unchanged + updates.failed
    say(paint("learnings.md", "bold"))
    if total:
        say(f"  {format_count(total, 'update')}: {updates.unchanged:,} changed nothing, {updates.failed:,} failed")
        bullets = format_count(updates.added, "bullet")
        say(f"  {bullets} added, {updates.removed:,} removed; on average an update changed {updates.churn:.0%}")
    else:
        say("  not written yet")
    answers = ", ".join(f"{count:,} {answer}" for answer, count in stats.opinions.items())
    say(f"\n{paint('Did the learnings help? What people answered at the end of `learnt work`', 'bold')}")
    say(f"  {answers or 'no answers yet; the marks of agents are above'}")


def _show_spent(title: str, spent: Sequence[Spent]) -> None:
    say(paint(title, "bold"))
    if not spent:
        say("  no calls")
        return
    counts = ("calls", "done", "tokens_in", "tokens_out")
    heads = ("purpose", "model", "calls", "done", "tokens in", "tokens out", "USD")
    rows = [
        (line.purpose, _name_model(line), *(f"{getattr(line, name):,}" for name in counts), f"{line.cost_usd:.4f}")
        for line in spent
    ]
    show_table(heads, rows, wide=0, always_heads=True)


def _name_model(call: Spent | ModelCall) -> str:
    return " ".join(part for part in (call.provider, call.model) if part)


def _describe_cap(window: str, spent: float, cap: float) -> str:
    used = f" ({spent / cap:.0%})" if cap > 0 else ""
    return f"In {window}, ${spent:.4f} of ${cap:.2f} used{used}."


def _call_row(call: ModelCall) -> tuple[str, ...]:
    numbers = (call.tokens_in, call.tokens_out, call.cost_usd, call.duration_ms)
    return (
        format_time(call.at),
        call.purpose,
        _name_model(call),
        call.result,
        *("" if number is None else f"{number}" for number in numbers),
    )


def _usage_record(usage: Usage, calls: Sequence[ModelCall]) -> dict[str, Any]:
    record = {{"last_24_hours": "today"}.get(name, name): value for name, value in usage.as_dict().items()}
    for name in ("today", "month", "ever", "failures"):
        record[name] = [entry.as_dict() for entry in record[name]]
    return {"id": "usage", **record, "calls": [call.as_dict() for call in calls]}


def _stats_record(stats: Stats) -> dict[str, Any]:
    return {
        "id": "stats",
        "helpful": [_ranked_record(learning) for learning in stats.helpful],
        "not_helpful": [_ranked_record(learning) for learning in stats.not_helpful],
        "recurring": [_ranked_record(learning) for learning in stats.recurring],
        "task_tokens": [_period_record(week) for week in stats.task_tokens],
        "brief_tokens": [_period_record(week) for week in stats.brief_tokens],
        "unknown_deliveries": stats.unknown_deliveries,
        "gone": [{**fixed.gone.as_dict(), "learning": fixed.learning, "title": fixed.title} for fixed in stats.gone],
        "cost": [_period_record(month) for month in stats.cost],
        "cost_usd": stats.cost_usd,
        "before": _outcomes_record(stats.before),
        "after": _outcomes_record(stats.after),
        "by_month": {month: _outcomes_record(outcomes) for month, outcomes in stats.by_month.items()},
        "regenerations": stats.regenerations.as_dict(),
        "opinions": stats.opinions,
        "prevented": stats.prevented,
        "outcomes": stats.outcomes,
    }


def _ranked_record(learning: Ranked) -> dict[str, Any]:
    return {**learning.as_dict(), "share_helpful": share(learning.times_helpful, learning.times_injected)}


def _period_record(period: Period) -> dict[str, Any]:
    return {**period.as_dict(), "mean": period.mean}


def _outcomes_record(outcomes: Outcomes) -> dict[str, Any]:
    derived = {"share_at_first": outcomes.share_at_first, "attempts_per_done": outcomes.attempts_per_done}
    return {**outcomes.as_dict(), **derived}


def draw_bars(numbers: Sequence[float | None]) -> str:
    """Return one bar for each number, which is at least 0; the largest has full height, and None is a dot."""
    largest = max((number for number in numbers if number is not None), default=0.0) or 1.0
    return "".join(
        "·" if number is None else _BARS[min(len(_BARS) - 1, int(number / largest * len(_BARS)))] for number in numbers
    )
