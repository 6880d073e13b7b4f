"""Commands that show figures: what the learnings did, and what calls to models cost."""

from __future__ import annotations

import os

from learnt.doors.cli.arguments import open_memory
from learnt.doors.cli.screen import counted, moment, paint, say, show_json, show_table
from learnt.errors import WrongRequest
from learnt.project import user_settings_file
from learnt.text.bars import bars

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Any

    from learnt.flow.statistics import GoneError, Stats, Usage
    from learnt.store.calls import ModelCall, Spent
    from learnt.store.statistics import Ranked
    from learnt.weigh.statistics import Outcomes, Period

_TOO_FEW = "too few to tell"
_LONGEST_ERROR = 160
_MOST_WEEKS = 520


def stats_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=int, default=5, metavar="N", help="so many leading learnings; 5 if not given")
    parser.add_argument("--weeks", type=int, default=12, metavar="N", help="how far back charts go; 12 if not given")


def stats_run(arguments: argparse.Namespace) -> None:
    if not 1 <= arguments.weeks <= _MOST_WEEKS:
        raise WrongRequest(f"--weeks is {arguments.weeks}", hint=f"give a number from 1 to {_MOST_WEEKS}")
    with open_memory(arguments) as memory:
        stats = memory.reports.stats(limit=arguments.limit, weeks=arguments.weeks)
    if arguments.json:
        show_json(_stats_record(stats))
        return
    _show_ranked("Most followed", stats.helpful, "times_helpful", "helpful")
    _show_ranked("Most often not helpful", stats.not_helpful, "times_not_helpful", "not helpful")
    _show_ranked("Learnt again most often", stats.recurring, "recurrences", "time")
    _show_weeks("Length of new tasks, conversations left out", stats.task_tokens, "task")
    _show_weeks("Length of briefs", stats.brief_tokens, "brief")
    _show_gone(stats.gone)
    _show_prevented(stats)
    _show_effect(stats)
    _show_upkeep(stats)


def usage_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--calls", type=int, default=0, metavar="N", help="also list the latest N calls")


def usage_run(arguments: argparse.Namespace) -> None:
    with open_memory(arguments) as memory:
        usage = memory.reports.usage()
        calls = memory.reports.model_calls(limit=arguments.calls)
    if arguments.json:
        show_json(_usage_record(usage, calls))
        return
    if not usage.ever:
        say("No model was ever called.")
        if usage.provider == "none":
            own = user_settings_file(dict(os.environ))
            say(f'None is configured: name one under [model] in {own}, as in `provider = "command"`;')
            say("`learnt config model.provider` tells which there are.")
        return
    for title, spent in (("Last 24 hours", usage.today), ("Last 30 days", usage.month), ("Ever", usage.ever)):
        _show_spent(title, spent)
    say(f"\n{_cap('24 hours', usage.daily_usd, usage.daily_cap_usd)}")
    say(_cap("30 days", usage.monthly_usd, usage.monthly_cap_usd))
    if usage.failures:
        say(f"\n{paint('Latest failures', 'bold')}")
        for call in usage.failures:
            why = call.reason or "no reason is known"
            say(f"  {moment(call.at)}  {call.purpose}  {_model(call)}  {call.result}: {why}")
    if calls:
        say()
        heads = ("at", "purpose", "model", "result", "in", "out", "USD", "ms")
        show_table(heads, [_call_row(call) for call in calls], wide=1, always_heads=True)


def _show_ranked(title: str, ranked: Sequence[Ranked], field: str, unit: str) -> None:
    say(paint(title, "bold"))
    if not ranked:
        say("  none yet\n")
        return
    for one in ranked:
        status = f"  ({one.status})" if one.status != "active" else ""
        count = getattr(one, field)
        units = f"{unit}{'s' * (unit == 'time' and count != 1)}"
        say(f"  {count:>4} {units}{_of_shown(one, field)}  {one.id}  {one.title}{status}")
    say()


def _of_shown(one: Ranked, field: str) -> str:
    from learnt.weigh.statistics import share

    if field == "recurrences":
        return ""
    found = share(getattr(one, field), one.times_injected)
    return f" of {one.times_injected} shown ({_TOO_FEW if found is None else f'{found:.0%}'})"


def _show_weeks(title: str, weeks: Sequence[Period], noun: str) -> None:
    say(f"{paint(title, 'bold')}: estimated tokens each, by week since {weeks[0].start}")
    if not any(week.count for week in weeks):
        say(f"  no {noun} yet\n")
        return
    say(f"  {bars([week.mean for week in weeks])}")
    say(f"  {_trend(weeks, noun)}\n")


def _trend(weeks: Sequence[Period], noun: str) -> str:
    """Say how the first half of the weeks compares with the second, where there are enough of both."""
    from learnt.weigh.statistics import mean_of

    half = len(weeks) // 2
    then, now = mean_of(weeks[:half]), mean_of(weeks[half:])
    total = sum(week.count for week in weeks)
    counted = f"{total:,} {noun}{'s' * (total != 1)}"
    if then is None or now is None:
        return f"{counted}: {_TOO_FEW} whether they get shorter"
    return f"{counted}: {then:,.0f} tokens in the first half, {now:,.0f} in the second"


def _show_gone(gone: Sequence[GoneError]) -> None:
    say(paint("Errors that no longer occur", "bold"))
    for one in gone:
        said = " ".join(one.gone.error.split())
        said = said if len(said) <= _LONGEST_ERROR else said[:_LONGEST_ERROR] + "…"
        say(f"  {said}")
        learnt = f"; learnt there: {one.learning} {one.title}" if one.learning else ""
        say(paint(f"    {len(one.gone.tasks)} tasks, last on {moment(one.gone.last_at)}{learnt}", "dim"))
    say("" if gone else "  none known\n")


def _show_prevented(stats: Stats) -> None:
    say(paint("Errors prevented (not repeated after a warning)", "bold"))
    for agent, count in stats.prevented.items():
        say(f"  {count:>4} {agent or '(no agent)'}")
    say("" if stats.prevented else "  none known\n")


def _show_effect(stats: Stats) -> None:
    say(paint("Effect, conversations left out", "bold"))
    say(f"  before there was a learning: {_told(stats.before)}")
    say(f"  since then:                  {_told(stats.after)}")
    for month, outcomes in list(stats.by_month.items())[-6:]:
        say(f"  {month}: {_told(outcomes)}")
    calls = sum(month.count for month in stats.cost)
    say(f"  cost of model calls: ${stats.cost_usd:.2f} for {calls:,} call{'s' * (calls != 1)}\n")


def _told(outcomes: Outcomes) -> str:
    if not outcomes.tasks:
        return "no task was tried"
    tasks = f"{outcomes.tasks:,} task{'s' * (outcomes.tasks != 1)}"
    first, each = outcomes.share_at_first, outcomes.attempts_per_done
    if first is None:
        return f"{tasks}: {_TOO_FEW}"
    attempts = "" if each is None else f", {each:.1f} attempts for each that was done"
    return f"{tasks}, {first:.0%} done by the first attempt{attempts}"


def _show_upkeep(stats: Stats) -> None:
    made = stats.regenerations
    total = made.made + made.unchanged + made.failed
    say(paint("learnings.md", "bold"))
    if total:
        often = "once" if total == 1 else f"{total:,} times"
        came = counted(made.added, "bullet")
        say(f"  made {often}: {made.unchanged:,} changed nothing, {made.failed:,} failed")
        say(f"  {came} came, {made.removed:,} went; {made.churn:.0%} of them with each on average")
    else:
        say("  never made yet")
    answers = ", ".join(f"{count:,} {answer}" for answer, count in stats.opinions.items())
    say(f"\n{paint('Did the learnings help? What people answered at the end of `learnt work`', 'bold')}")
    say(f"  {answers or 'no person has answered yet; what agents marked stands above'}")


def _show_spent(title: str, spent: Sequence[Spent]) -> None:
    say(paint(title, "bold"))
    if not spent:
        say("  no calls")
        return
    counts = ("calls", "done", "tokens_in", "tokens_out")
    heads = ("purpose", "model", "calls", "done", "tokens in", "tokens out", "USD")
    rows = [
        (one.purpose, _model(one), *(f"{getattr(one, name):,}" for name in counts), f"{one.cost_usd:.4f}")
        for one in spent
    ]
    show_table(heads, rows, wide=0, always_heads=True)


def _model(one: Spent | ModelCall) -> str:
    return " ".join(part for part in (one.provider, one.model) if part)


def _cap(window: str, spent: float, cap: float) -> str:
    used = f" ({spent / cap:.0%})" if cap > 0 else ""
    return f"In {window}, ${spent:.4f} of ${cap:.2f} are used{used}."


def _call_row(call: ModelCall) -> tuple[str, ...]:
    figures = (call.tokens_in, call.tokens_out, call.cost_usd, call.duration_ms)
    return (
        moment(call.at),
        call.purpose,
        _model(call),
        call.result,
        *("" if one is None else f"{one}" for one in figures),
    )


def _usage_record(usage: Usage, calls: Sequence[ModelCall]) -> dict[str, Any]:
    record = usage.as_dict()
    for name in ("today", "month", "ever", "failures"):
        record[name] = [one.as_dict() for one in record[name]]
    return {"id": "usage", **record, "calls": [call.as_dict() for call in calls]}


def _stats_record(stats: Stats) -> dict[str, Any]:
    from learnt.weigh.statistics import share

    ranked = {
        name: [
            {**one.as_dict(), "share_helpful": share(one.times_helpful, one.times_injected)}
            for one in getattr(stats, name)
        ]
        for name in ("helpful", "not_helpful", "recurring")
    }
    return {
        "id": "stats",
        **ranked,
        "task_tokens": [_period_record(week) for week in stats.task_tokens],
        "brief_tokens": [_period_record(week) for week in stats.brief_tokens],
        "gone": [{**one.gone.as_dict(), "learning": one.learning, "title": one.title} for one in stats.gone],
        "cost": [_period_record(month) for month in stats.cost],
        "cost_usd": stats.cost_usd,
        "before": _outcomes_record(stats.before),
        "after": _outcomes_record(stats.after),
        "by_month": {month: _outcomes_record(outcomes) for month, outcomes in stats.by_month.items()},
        "regenerations": stats.regenerations.as_dict(),
        "opinions": stats.opinions,
        "prevented": stats.prevented,
    }


def _period_record(period: Period) -> dict[str, Any]:
    return {**period.as_dict(), "mean": period.mean}


def _outcomes_record(outcomes: Outcomes) -> dict[str, Any]:
    return {
        **outcomes.as_dict(),
        "share_at_first": outcomes.share_at_first,
        "attempts_per_done": outcomes.attempts_per_done,
    }
