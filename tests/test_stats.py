"""Statistics and usage: true figures, and none from too few."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from learnt import Memory, WrongRequest
from learnt.doors.cli.stats import draw_bars
from learnt.store import calls, regenerations
from learnt.store.calls import ModelCall
from learnt.store.regenerations import Regeneration
from learnt.weigh.statistics import find_gone, month_of, week_of, weeks
from tests.conftest import Clock, Done

Command = Callable[..., Done]
DAY_MS = 86_400_000


def call(memory: Memory, number: int, **fields: object) -> None:
    made: dict[str, object] = {
        "id": f"call_{number}", "purpose": "extract", "provider": "anthropic", "model": "haiku", "result": "done",
        "at": memory.context.clock(), "tokens_in": 1_000, "tokens_out": 100, "cost_usd": 0.25,
    }  # fmt: skip
    with memory.context.store.transaction():
        calls.add(memory.context.store.database, ModelCall(**{**made, **fields}))  # type: ignore[arg-type]


def tried(memory: Memory, *results: str) -> None:
    """Make a task, and attempts at it that end like this."""
    task = memory.tasks.new_id()
    for result in results:
        memory.debrief(task, "", result=result)


class TestUsage:
    def test_calls_are_summed_by_window_purpose_and_model(self, memory: Memory, clock: Clock) -> None:
        call(memory, 1)
        clock.advance(days=40)
        call(memory, 2)
        call(memory, 3, result="timeout", cost_usd=None, tokens_in=None, tokens_out=None, reason="after 30 s")
        clock.advance(days=2)
        call(memory, 4, purpose="merge", cost_usd=0.5)

        usage = memory.reports.usage()
        assert [(one.purpose, one.calls) for one in usage.last_24_hours] == [("merge", 1)]
        assert [(one.purpose, one.calls, one.done, one.cost_usd) for one in usage.month] == [
            ("merge", 1, 1, 0.5),
            ("extract", 2, 1, 0.25),
        ]
        assert sum(one.calls for one in usage.ever) == 4
        assert (usage.daily_usd, usage.monthly_usd) == (0.5, 0.75)
        assert [one.reason for one in usage.failures] == ["after 30 s"]
        assert [one.id for one in memory.reports.model_calls(limit=2)] == ["call_4", "call_3"]

    def test_the_command_tells_caps_failures_and_single_calls(self, sqlite_memory: Memory, learnt: Command) -> None:
        now = memory_now()
        call(sqlite_memory, 1, at=now)
        call(sqlite_memory, 2, at=now, result="failed", reason="no such model")
        told = learnt("usage", "--calls", "5")
        assert told.code == 0, told.err
        assert "In 24 hours, $0.5000 of $1.00 used (50%)." in told.out
        assert "failed: no such model" in told.out
        record = json.loads(learnt("usage", "--json", "--calls", "1").out)
        assert (record["id"], record["daily_cap_usd"], len(record["calls"])) == ("usage", 1.0, 1)

    def test_without_a_call_it_says_how_to_name_a_model(
        self, sqlite_memory: Memory, learnt: Command, home: Path
    ) -> None:
        told = learnt("usage").out
        assert "No model has ever been called." in told
        assert f"[model] in {home / '.config/learnt/learnt.toml'}" in told


def memory_now() -> int:
    from learnt.flow.context import now_ms

    return now_ms()


class TestStats:
    def test_an_empty_store_gives_no_figures(self, memory: Memory) -> None:
        stats = memory.reports.stats()
        assert stats.helpful == stats.not_helpful == stats.recurring == stats.gone == ()
        assert (stats.cost_usd, stats.before.tasks, stats.after.share_at_first) == (0, 0, None)
        assert [week.mean for week in stats.task_tokens] == [None] * 12

    def test_the_leading_learnings_are_named_with_their_counts(self, memory: Memory) -> None:
        good = memory.add("Run make lint before each commit")
        memory.add("Nobody needs this")
        for number in range(3):
            memory.brief("make lint before the commit", task=f"task_{number}")
            if number:
                memory.debrief(f"task_{number}", f"LEARNING_HELPFUL: {good.id}", result="done")
            else:
                memory.mark(good.id, f"task_{number}", helpful=False)  # an agent's mark does not count against it
        memory.debrief("task_9", "<learning>Run make lint before each commit</learning>", result="done")
        stats = memory.reports.stats()
        assert [(one.id, one.times_helpful, one.times_injected) for one in stats.helpful] == [(good.id, 2, 3)]
        assert [one.times_not_helpful for one in stats.not_helpful] == [1]
        assert [one.recurrences for one in stats.recurring] == [1]

    def test_task_and_brief_lengths_are_summed_by_week(self, memory: Memory, clock: Clock) -> None:
        for text in ("x" * 398, "x" * 198):
            memory.tasks.add("do", text=text)
            memory.brief("do", task=None)
            clock.advance(days=7)
        stats = memory.reports.stats(weeks=3)
        assert [week.count for week in stats.brief_tokens] == [1, 1, 0]
        means = [week.mean for week in stats.task_tokens]
        assert means[0] is not None
        assert means[1] is not None
        assert means[0] > means[1]

    def test_first_attempts_are_counted_before_and_after_there_was_a_learning(
        self, memory: Memory, clock: Clock
    ) -> None:
        for _ in range(5):
            tried(memory, "failed", "interrupted", "done")
        memory.add("Now it is known")
        for _ in range(4):
            tried(memory, "done")
        stats = memory.reports.stats()
        assert (stats.before.tasks, stats.before.share_at_first, stats.before.attempts_per_done) == (5, 0.0, 2.0)
        assert (stats.after.tasks, stats.after.at_first, stats.after.share_at_first) == (4, 4, None)
        tried(memory, "done")
        assert memory.reports.stats().after.share_at_first == 1.0
        assert sum(one.tasks for one in memory.reports.stats().by_month.values()) == 10

    def test_an_error_of_several_tasks_that_stays_away_is_gone(self, memory: Memory) -> None:
        for number in range(2):
            memory.debrief(f"task_{number}", f"settings.ini is missing, line {number}", result="failed")
        learning = memory.add("Write settings.ini first", task="task_1")
        for _ in range(19):
            tried(memory, "done")
        assert memory.reports.stats().gone == ()
        tried(memory, "done")
        [one] = memory.reports.stats().gone
        assert one.gone.tasks == ("task_0", "task_1")
        assert "settings.ini is missing" in one.gone.error
        assert (one.learning, one.title) == (learning.id, "Write settings.ini first")
        memory.debrief("task_2", "settings.ini is missing, line 7", result="failed")
        assert memory.reports.stats().gone == ()

    def test_cost_regenerations_and_opinions_are_told(self, memory: Memory) -> None:
        call(memory, 1)
        with memory.context.store.transaction():
            for number, (result, churn) in enumerate(
                [("done", 0.5), ("done", 0.1), ("unchanged", 0.0), ("running", 0)]
            ):
                made = Regeneration(
                    id=f"r_{number}", cause="count", started_at=1, result=result, churn=churn, added=2, removed=1
                )
                regenerations.put(memory.context.store.database, made)
        for answer in ("yes", "yes", "no"):
            memory.review.record_opinion(answer)
        stats = memory.reports.stats()
        assert stats.cost_usd == 0.25
        made_of = stats.regenerations
        assert (made_of.made, made_of.unchanged, made_of.added, made_of.removed) == (2, 1, 4, 2)
        assert made_of.churn == pytest.approx(0.3)
        assert stats.opinions == {"no": 1, "yes": 2}
        with pytest.raises(WrongRequest, match="is not an answer"):
            memory.review.record_opinion("perhaps")

    def test_the_command_says_too_few_instead_of_a_share(self, sqlite_memory: Memory, learnt: Command) -> None:
        sqlite_memory.add("Known")
        tried(sqlite_memory, "done")
        told = learnt("stats")
        assert told.code == 0, told.err
        assert "1 task: too few to tell" in told.out
        assert "Length of new tasks, without conversations: " in told.out
        assert "What people answered at the end of `learnt work`\n  no answers yet" in told.out
        made = Regeneration(id="r_1", cause="count", started_at=1, result="done", churn=1.0, added=1)
        with sqlite_memory.context.store.transaction():
            regenerations.put(sqlite_memory.context.store.database, made)
        sqlite_memory.learn("Known", task="task_1")
        told = learnt("stats")
        assert "     1 time  learn_" in told.out
        assert "  1 update: 0 changed nothing, 0 failed\n  1 bullet added, 0 removed;" in told.out
        record = json.loads(learnt("stats", "--json", "--weeks", "4").out)
        assert record["after"]["share_at_first"] is None
        assert len(record["task_tokens"]) == 4
        assert learnt("stats", "--weeks", "0").code == 2


class TestRules:
    def test_weeks_start_on_mondays_and_none_is_left_out(self) -> None:
        assert week_of(0) == "1969-12-29"
        assert week_of(4) == week_of(10) == "1970-01-05"
        assert month_of(31) == "1970-02"
        found = weeks([(4, 1, 10.0), (10, 1, 20.0)], now_ms=18 * DAY_MS, count=3)
        assert [(week.start, week.mean) for week in found] == [
            ("1970-01-05", 15.0),
            ("1970-01-12", None),
            ("1970-01-19", None),
        ]

    def test_an_error_is_not_gone_because_nobody_works(self) -> None:
        signs = [("task_1", "no such table", 10), ("task_2", "no such table", 20)]
        late = 20 + 31 * DAY_MS
        assert find_gone(signs, [], now_ms=late) == []
        assert find_gone(signs, [30] * 4, now_ms=late) == []
        assert [one.times for one in find_gone(signs, [30] * 5, now_ms=late)] == [2]
        assert find_gone(signs, [30] * 5, now_ms=late - 2 * DAY_MS) == []

    def test_an_error_of_one_task_or_of_an_agents_end_is_none(self) -> None:
        signs = [("task_1", "it broke", 1), ("task_1", "it broke", 2)]
        for said in ("the agent was killed", "the attempt ended as failed, without a report"):
            signs += [("task_1", said, 1), ("task_2", said, 2)]
        assert find_gone(signs, [3] * 20, now_ms=4) == []

    def test_bars_are_as_high_as_their_share_of_the_largest(self) -> None:
        assert draw_bars([0, 1, 2, None, 8]) == "▁▂▃·█"
        assert draw_bars([0, 0]) == "▁▁"
        assert draw_bars([]) == ""
