"""People see what learnt does inside clients: who asked, what was given, what a warning came to."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from learnt import Memory, WrongRequest
from learnt.clients.kit.events import HookEvent
from learnt.clients.registry import client_name
from learnt.errors import InvalidValue
from learnt.flow.context import now_ms
from learnt.store import fired
from learnt.store.activity import ActivityEntry, Today
from learnt.system.detached import INTERNAL
from learnt.text.times import ago
from tests.conftest import Clock, Done, command_line
from tests.support.terminal import Terminal
from tests.support.words import tells

Command = Callable[..., Done]
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


def warned(memory: Memory, command: str, **fields: object) -> None:
    """Let an agent have been warned of a command that failed before."""
    brief = memory.brief(f"run {command}", occasion="tool", asked_by="hook", client=str(fields.pop("client", "claude")))
    row = {
        "task": brief.task,
        "sign": f"sign of {command}",
        "brief": brief.id,
        "agent": "engineer",
        "denied": 0,
        "failures": 0,
        "needless": 0,
        "late": 0,
        "made": 0,
        "seen_at": brief.created_at,
        "left_at": None,
        "at": brief.created_at,
        **fields,
    }
    delivery = row.pop("delivery", "delivered")
    with memory.context.store.transaction():
        change = "update brief set delivery = :delivery where project = :project and id = :id"
        memory.context.store.database.execute(change, delivery=delivery, id=brief.id)
        memory.context.store.database.execute(
            """
            insert into misstep (project, sign, command, task, failed_at)
            values (:project, :sign, :command, :task, :at)
            on conflict (project, sign) do nothing
            """,
            command=command,
            **{name: row[name] for name in ("sign", "task", "at")},
        )
        memory.context.store.database.execute(
            """
            insert into warning (project, task, sign, brief, agent, denied, failures, needless, late, made, seen_at,
                                 left_at, warned_at)
            values (:project, :task, :sign, :brief, :agent, :denied, :failures, :needless, :late, :made, :seen_at,
                    :left_at, :at)
            """,
            **row,
        )


def told(memory: Memory, **event: Any) -> str:
    """Let something happen in a conversation in Claude Code; return what it is told."""
    happened = HookEvent(client="claude", **event)
    return memory.hooks.serve(happened, loop_task="", began_ns=time.perf_counter_ns()).text


def kept(memory: Memory, brief: str) -> dict[str, object]:
    """Return what the database holds of a brief."""
    made = memory.explain(brief)
    return {name: getattr(made, name) for name in ("asked_by", "occasion", "client")}


class TestWhoAsked:
    def test_a_brief_is_a_prompts_unless_somebody_says_who_asked(self, memory: Memory) -> None:
        plain = memory.brief("Paint the shop")
        hooked = memory.brief("Paint the shop", asked_by="hook", occasion="session", client="codex")

        assert kept(memory, plain.id) == {"asked_by": "prompt", "occasion": "task", "client": ""}
        assert kept(memory, hooked.id) == {"asked_by": "hook", "occasion": "session", "client": "codex"}
        with pytest.raises(InvalidValue, match="occasion"):
            memory.brief("Paint the shop", occasion="boredom")

    def test_the_making_of_a_brief_is_timed_from_its_call_or_from_when_the_door_began(self, memory: Memory) -> None:
        by_call = memory.brief("Paint the shop")
        by_door = memory.brief("Paint the shop", began_ns=time.perf_counter_ns() - 7_000_000_000)

        assert by_call.duration_ms == memory.explain(by_call.id).duration_ms
        assert (by_call.duration_ms or 0) > 0
        assert (by_door.duration_ms or 0) >= 7_000

    def test_the_command_line_is_a_person(self, sqlite_memory: Memory, learnt: Command) -> None:
        brief = json.loads(learnt("brief", "Paint the shop", "--json").out)["id"]
        assert kept(sqlite_memory, brief)["asked_by"] == "person"

    def test_searches_count_for_who_made_them_and_for_thirty_days(self, memory: Memory, clock: Clock) -> None:
        memory.search("paint")  # of a program: nobody
        memory.search("paint", asked_by="person")
        clock.advance(days=29)
        memory.search("paint", asked_by="tool")
        memory.search("paint", asked_by="tool")
        memory.brief("Paint the shop", asked_by="tool")
        memory.brief("Paint the shop", asked_by="hook")
        assert dict(memory.reports.activity().used) == {"tool": 3, "hook": 1, "person": 1}

        clock.advance(days=5)
        assert dict(memory.reports.activity().used) == {"tool": 3, "hook": 1}

        with pytest.raises(WrongRequest):
            memory.search("paint", asked_by="nobody")

    def test_a_search_succeeds_while_others_write_and_is_not_counted(self, sqlite_memory: Memory) -> None:
        added = sqlite_memory.add("Paint the shop in red")
        writer = apsw.Connection(sqlite_memory.context.store.place.path)
        writer.execute("begin immediate")
        assert [hit.learning.id for hit in sqlite_memory.search("paint", asked_by="person")] == [added.id]
        writer.execute("rollback")
        writer.close()

        assert dict(sqlite_memory.reports.activity().used) == {}

    def test_a_search_in_a_store_that_is_only_read_is_not_counted(self, sqlite_memory: Memory) -> None:
        sqlite_memory.add("Paint the shop in red")
        sqlite_memory.context.store.place = sqlite_memory.context.store.place.replace(read_only=True)
        assert len(sqlite_memory.search("paint", asked_by="tool")) == 1
        assert dict(sqlite_memory.reports.activity().used) == {}


class TestTheList:
    def test_briefs_warnings_and_debriefs_stand_in_one_list_the_newest_first(
        self, memory: Memory, clock: Clock
    ) -> None:
        learning = memory.add("Paint the shop in red")
        brief = memory.brief("Paint the shop", task="task_1", agent="engineer", client="codex", asked_by="hook")
        clock.advance(days=1)
        warned(memory, "make all")
        clock.advance(days=1)
        memory.debrief("task_1", "<learning>Red paint dries slowly.</learning>\n<task-done/>")

        debrief, warning, given = memory.reports.activity().entries

        assert (given.what, given.id, given.title) == ("brief", brief.id, "Paint the shop")
        assert (given.client, given.agent, given.occasion) == ("codex", "engineer", "task")
        assert (given.learnings, given.tokens, given.duration_ms) == (1, brief.tokens, brief.duration_ms)
        assert brief.learning_ids == (learning.id,)
        assert (warning.what, warning.command, warning.outcome) == ("warning", "make all", "prevented")
        assert (warning.client, warning.agent, warning.occasion) == ("claude", "engineer", "tool")
        assert (debrief.what, debrief.outcome, debrief.learnings) == ("debrief", "done", 1)
        assert (debrief.client, debrief.agent) == ("codex", "engineer")
        assert debrief.at > warning.at > given.at

    def test_it_can_be_narrowed_to_a_kind_a_client_or_an_agent(self, memory: Memory) -> None:
        memory.brief("Paint the shop", task="task_1", agent="code reviewer", client="claude")
        memory.brief("Clean the shop", client="codex")
        memory.debrief("task_1", "<task-done/>")
        warned(memory, "make all", client="codex")

        def told(**which: str) -> list[str]:
            return [entry.what for entry in memory.reports.activity(**which).entries]  # type: ignore[arg-type]

        assert told() == ["warning", "debrief", "brief", "brief"]
        assert told(client="claude-code") == told(client="claude") == ["debrief", "brief"]
        assert told(client="codex") == ["warning", "brief"]
        assert told(agent="Code_Reviewer") == ["debrief", "brief"]
        assert told(what="brief", client="claude") == ["brief"]
        assert told(client="nobody") == []
        assert len(memory.reports.activity(limit=2).entries) == 2
        assert memory.reports.activity(limit=0).entries == ()
        with pytest.raises(WrongRequest):
            memory.reports.activity(what="gossip")
        with pytest.raises(WrongRequest):
            memory.reports.activity(limit=-1)

    def test_an_agent_is_the_same_however_its_name_is_spelt(self, memory: Memory) -> None:
        for agent in ("Straße  Reviewer", "strasse__reviewer", "STRASSE-Reviewer", "strassereviewer"):
            memory.brief("Paint the shop", agent=agent)
        assert len(memory.reports.activity(agent="strasse -_ REVIEWER").entries) == 3
        assert memory.reports.activity(agent="nobody").entries == ()

    def test_a_warning_stays_one_when_the_same_is_warned_of_again(self, memory: Memory, clock: Clock) -> None:
        earlier, later = {"session": "s1"}, {"session": "s2", "agent": "engineer"}
        failing = {"kind": "result", "name": "PostToolUse"}
        told(memory, **earlier, **failing, command="ship --fast", failed=True, output="ship: unknown option --fast")
        told(memory, **earlier, **failing, command="ship --safe", failed=False)
        for _ in range(2):
            assert told(memory, **later, kind="call", name="PreToolUse", command="ship --fast")
            clock.advance(days=1 / 24 / 60)
            told(memory, **later, kind="session", name="SessionStart", source="compact")
            clock.advance(days=1 / 24 / 60)

        entries = [entry for entry in memory.reports.activity().entries if entry.what != "brief"]
        assert [(entry.what, entry.command, entry.outcome) for entry in entries] == [
            ("warning", "ship --fast", "unknown"),
            ("warning", "ship --fast", ""),
        ]
        assert {entry.occasion for entry in memory.reports.activity(what="brief").entries} == {"compaction"}
        assert len(memory.reports.activity(what="warning", agent="Engineer", client="claude").entries) == 2
        assert memory.reports.today() == Today(unknown_deliveries=4, unknown=1)

    @pytest.mark.parametrize(
        ("fields", "outcome"),
        [
            ({}, "prevented"),
            ({"denied": 1}, "prevented"),
            ({"left_at": 2**60}, "prevented"),
            ({"failures": 1}, "ignored"),  # the call itself, which was made all the same
            ({"denied": 1, "failures": 1}, "ignored"),
            ({"late": 1, "failures": 2}, "ignored"),
            ({"late": 1, "failures": 1}, "unknown"),  # the call failed before the warning
            ({"made": 1}, "unknown"),
            ({"denied": 1, "seen_at": None}, "unknown"),
            ({"left_at": 0}, "unknown"),
            ({"denied": 1, "delivery": ""}, "unknown"),
            ({"denied": 1, "failures": 1, "delivery": ""}, "ignored"),
            ({"denied": 1, "delivery": "not delivered"}, "unknown"),
            ({"failures": 1, "delivery": "not delivered"}, "unknown"),
            ({"needless": 1}, "needless"),
            ({"needless": 1, "failures": 3}, "ignored"),  # it failed before it succeeded
        ],
    )
    def test_a_warning_tells_what_came_of_it(self, memory: Memory, fields: dict[str, Any], outcome: str) -> None:
        warned(memory, "make all", **fields)

        watched = memory.reports.activity()

        (entry,) = watched.entries
        assert (entry.outcome, entry.denied) == (outcome, bool(fields.get("denied")))
        assert {name: count for name, count in watched.outcomes.items() if count} == {outcome: 1}
        assert sum(watched.prevented.values()) == watched.outcomes["prevented"]
        delivery = fields.get("delivery", "delivered")
        is_given = delivery == "delivered" or outcome != "unknown"
        counts = {"warnings": int(is_given), "unknown_deliveries": int(not is_given and not delivery)}
        assert entry.delivery == (delivery or "unknown")
        assert memory.reports.today() == Today(**counts, **watched.outcomes)

    def test_what_was_learnt_counts_for_the_attempt_that_taught_it(self, memory: Memory) -> None:
        for words in ("<learning>Red dries slowly.</learning>", "nothing", "<learning>Blue is out.</learning>"):
            memory.debrief("task_1", f"{words}\n<task-failed/>")

        assert [entry.learnings for entry in memory.reports.activity().entries] == [1, 0, 1]

    def test_a_long_attempt_stands_where_it_ended(self, memory: Memory, clock: Clock) -> None:
        for number in range(30):
            memory.debrief(f"task_{number}", "<task-done/>")
            clock.advance(days=0.01)
        memory.debrief("task_long", "<task-done/>", duration_ms=5 * HOUR_MS)

        assert memory.reports.activity(limit=3).entries[0].task == "task_long"

    @pytest.mark.parametrize(
        ("figures", "tokens"),
        [({}, None), ({"tokens_in": 100, "tokens_out": 20}, 120), ({"tokens_out": 0}, 0), ({"tokens": 7}, 7)],
    )
    def test_a_debrief_tells_the_figures_of_its_attempt_where_they_are_known(
        self, memory: Memory, figures: dict[str, Any], tokens: int | None
    ) -> None:
        memory.debrief("task_1", "<task-done/>", duration_ms=5_000, **figures)
        memory.debrief("task_2", "<task-done/>")
        (with_figures,) = [one for one in memory.reports.activity().entries if one.task == "task_1"]
        (without,) = [one for one in memory.reports.activity().entries if one.task == "task_2"]
        assert (with_figures.tokens, with_figures.duration_ms) == (tokens, 5_000)
        assert (without.tokens, without.duration_ms) == (None, None)

    def test_a_warning_outlives_its_misstep_its_brief_and_its_task(self, memory: Memory) -> None:
        with memory.context.store.transaction():
            memory.context.store.database.execute(
                """
                insert into warning (project, task, sign, brief, warned_at)
                values (:project, 'task_gone', 'x', '', 5)
                """
            )
        assert memory.reports.activity().entries == (
            ActivityEntry(what="warning", id="", at=5, task="task_gone", outcome="unknown", delivery="unknown"),
        )
        assert memory.reports.activity().outcomes["unknown"] == 1

    def test_today_begins_at_midnight(self, memory: Memory, clock: Clock) -> None:
        memory.brief("Paint the shop")
        clock.advance(days=1)
        assert memory.reports.today() == Today()
        memory.brief("Paint the shop")
        assert memory.reports.today() == Today(briefs=1)


class TestTheCommand:
    def test_without_activity_it_says_how_to_let_a_client_use_learnt(self, learnt: Command) -> None:
        learnt("init")

        told = learnt("activity")

        assert (told.code, told.err) == (0, "")
        assert "`learnt install` finds" in told.out
        assert "learnt doctor" in told.out
        assert "Nothing of that kind" in learnt("activity", "--client", "codex").out

    def test_hooks_that_fired_and_had_nothing_to_say_are_told_of(
        self, sqlite_memory: Memory, learnt: Command, project: Path
    ) -> None:
        fired.note(str(project / ".learnt"), "claude", "prompt", at=now_ms(), duration_ms=20, chars=0)
        silent = "hooks of claude fired just now (prompt), and no learning has matched so far"

        told = learnt("activity").out

        assert f"Nothing yet: {silent}.\n" in told
        assert "learnt brief" in told
        assert "learnt install" not in told
        assert f"But {silent}.\n" in learnt("activity", "--client", "claude-code").out
        assert silent not in learnt("activity", "--client", "codex").out
        assert json.loads(learnt("activity", "--json").out)["fired"]["claude"]["event"] == "prompt"
        assert f"hint: {silent}; `learnt brief" in learnt("explain").err

    def test_a_kind_may_be_named_in_the_singular_and_each_is_offered_once(self, learnt: Command) -> None:
        learnt("init")
        assert learnt("activity", "--what", "warning").code == learnt("activity", "--what", "warnings").code == 0
        offered = learnt("activity", "--what", "foo").err.partition("choose from")[2].partition(")")[0]
        assert re.findall("[a-z]+", offered) == ["briefs", "warnings", "debriefs"]

    def test_it_lists_what_was_done_and_what_it_comes_to(self, sqlite_memory: Memory, learnt: Command) -> None:
        sqlite_memory.context.clock = now_ms
        sqlite_memory.brief("Paint " + "the shop " * 20, client="codex", agent="engineer", asked_by="hook")
        warned(sqlite_memory, "make all", denied=1)
        warned(sqlite_memory, "make none", agent="", failures=4)
        learnt("search", "paint")

        told = learnt("activity").out

        assert "prevented, denied" in told
        assert "make all" in told
        assert "ignored" in told
        assert "the shop…" in told or "the sho…" in told
        assert "Requests in the last 30 days: 4 (hooks 3, people 1)" in told
        assert "Errors prevented: 1 (engineer 1)\n" in told
        assert "make all" not in learnt("activity", "--what", "briefs").out
        assert "Paint" not in learnt("activity", "--what", "warnings", "--limit", "1").out

    def test_a_narrow_terminal_drops_columns_but_never_the_task_or_the_outcome(
        self, sqlite_memory: Memory, learnt: Command, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("COLUMNS", raising=False)
        sqlite_memory.context.clock = now_ms
        sqlite_memory.brief("Paint the shop in red", client="codex", agent="a" * 99, asked_by="hook")
        warned(sqlite_memory, "make all", denied=1)
        heads = "what client agent occasion learnings tokens ms outcome id".split()

        def shown(columns: int, *words: str) -> tuple[list[str], str]:
            told = Terminal(project, columns).text("activity", *words)
            first = next(line for line in told.splitlines() if "when" in line)
            assert "task or command" in first
            return [head for head in heads if f" {head} " in first], told

        narrow, told = shown(80)
        assert narrow == ["what", "client", "outcome"]
        assert "Paint the shop in red" in told
        assert "prevented, denied" in told
        wider, told = shown(120)  # "just now" takes less room than "12 seconds ago"
        assert wider[:3] == ["what", "client", "agent"]
        assert "ms" not in wider
        assert "a" * 19 + "…" in told
        assert shown(200)[0] == heads
        assert shown(90, "--ids")[0] == ["what", "outcome", "id"]
        assert "a" * 21 not in learnt("activity").out

    def test_a_client_or_an_agent_that_there_is_not_is_told_which_there_are(
        self, sqlite_memory: Memory, learnt: Command
    ) -> None:
        sqlite_memory.context.clock = now_ms
        sqlite_memory.brief("Paint the shop", client="codex", agent="engineer")
        warned(sqlite_memory, "make all", agent="tester")
        assert "Known clients: claude-code, codex\n" in learnt("activity", "--client", "foo").out
        assert "Known agents: engineer, tester\n" in learnt("activity", "--agent", "nobody").out
        assert (
            "Warnings, in all: 1 prevented\nErrors prevented, in all: 1 (tester 1)"
            in learnt("activity", "--what", "debrief").out
        )

    def test_no_entries_are_shown_where_none_are_asked_for(self, sqlite_memory: Memory, learnt: Command) -> None:
        sqlite_memory.context.clock = now_ms
        sqlite_memory.brief("Paint the shop")
        assert learnt("activity", "--limit", "0").out.startswith("Requests in the last 30 days: 1 (")
        assert "--limit" in learnt("activity", "--limit", "-1").err

    def test_the_latest_brief_is_explained_without_its_id(self, sqlite_memory: Memory, learnt: Command) -> None:
        sqlite_memory.context.clock = now_ms
        assert "no brief yet" in learnt("explain").err
        sqlite_memory.brief("Paint the shop")
        latest = sqlite_memory.brief("Clean the shop")
        assert learnt("explain").out.startswith(latest.id)
        assert "learnt activity" in learnt("explain", "brief_nobody").err

    def test_json_tells_everything_exactly(self, sqlite_memory: Memory, learnt: Command) -> None:
        sqlite_memory.context.clock = now_ms
        brief = sqlite_memory.brief("Paint the shop", client="codex", asked_by="hook", occasion="prompt")
        warned(sqlite_memory, "make all")

        told = json.loads(learnt("activity", "--json").out)

        assert told["id"] == "activity"
        warning, given = told["activity"]
        assert (given["id"], given["at"], given["occasion"]) == (brief.id, brief.created_at, "prompt")
        assert (given["client"], given["asked_by"], given["title"]) == ("codex", "hook", "Paint the shop")
        assert (warning["command"], warning["outcome"], warning["denied"]) == ("make all", "prevented", False)
        assert told["used_in_30_days"] == {"hook": 2}
        assert told["prevented"] == {"engineer": 1}
        assert learnt("activity", "--what", "gossip").code == 2
        assert learnt("activity", "--limit", "-1").code == 2


class TestExplainingWhatCameOfIt:
    REPORT = "<failure-report>\nwhat_tried: red paint\nwhy_failed: it is out\n</failure-report>\n<task-failed/>"

    def test_a_debrief_tells_what_it_taught_marked_and_reported(self, memory: Memory, project: Path) -> None:
        good, bad = memory.add("Paint the shop in red"), memory.add("Paint the shop at night")
        memory.brief("Paint the shop", task="task_1", agent="engineer", client="codex")
        memory.mark(good.id, "task_1", True)  # of a person
        memory.debrief("task_1", f"LEARNING_NOT_HELPFUL: {bad.id}\n<learning>Red dries slowly.</learning>{self.REPORT}")
        memory.debrief("task_1", "<learning>Blue is out.</learning>\n<task-done/>", duration_ms=0, cost_usd=0.5)
        done, failed = memory.tasks.attempts("task_1")

        first, second = memory.reports.attempt(failed.id), memory.reports.attempt(done.id)

        assert (first.attempt, first.title, first.client, first.agent) == (
            failed,
            "Paint the shop",
            "codex",
            "engineer",
        )
        assert list(first.learnings.values()) == ["Red dries slowly."]
        assert (dict(first.helpful), dict(first.not_helpful)) == ({}, {bad.id: bad.title})
        assert first.failure is not None
        assert first.failure.reason == "it is out"
        assert list(second.learnings.values()) == ["Blue is out."]
        assert (dict(second.helpful), dict(second.not_helpful), second.failure) == ({}, {}, None)

        learnt = command_line(project)
        told = learnt("explain", failed.id).out
        assert tells(told.splitlines()[0], failed.id, "task_1", "failed")
        assert tells(told, "engineer", "codex")
        assert tells(told, "task", "Paint the shop")
        assert ": Red dries slowly.\n" in told
        assert f"not helpful: {bad.id}: {bad.title}\n" in told
        assert tells(told, "failed", "it is out")
        assert "cost: $0.5000" in learnt("explain", done.id).out
        record = json.loads(learnt("explain", failed.id, "--json").out)
        assert (record["id"], record["result"], record["client"]) == (failed.id, "failed", "codex")
        assert record["not_helpful"] == [{"id": bad.id, "title": bad.title}]
        assert (record["learnings"][0]["title"], record["failure"]["tried"]) == ("Red dries slowly.", "red paint")

    def test_all_turns_of_a_conversation_are_one_attempt(
        self, memory: Memory, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(INTERNAL, "1")  # no worker is started
        for words in (
            "<learning>Red dries slowly.</learning>",
            "Done. <learning>Green fades.</learning>",
            "<learning>Blue is out.</learning>\n\nLEARNING_HELPFUL: learn_none",
            "Bye.",
        ):
            told(memory, session="s1", kind="stop", name="Stop", said=words)
            memory.worker.catch_up()
            clock.advance(days=1)
        (entry,) = memory.reports.activity(what="debrief").entries
        outcome = memory.reports.attempt(entry.id)
        assert list(outcome.learnings.values()) == ["Red dries slowly.", "Blue is out."]
        assert (outcome.client, outcome.attempt.result) == ("claude", "incomplete")
        ignored = ["<learning> is not at the start of a line", "mark on learn_none: no such learning"]
        assert outcome.attempt.ignored.splitlines() == ignored

    def test_a_task_is_explained_by_its_latest_brief(self, sqlite_memory: Memory, learnt: Command) -> None:
        sqlite_memory.brief("Paint the shop", task="task_1")
        latest = sqlite_memory.brief("Paint the shop again", task="task_1")
        sqlite_memory.brief("Clean the shop", task="task_2")
        sqlite_memory.debrief("task_3", "<task-done/>")
        assert learnt("explain", "task_1").out.startswith(latest.id)
        assert json.loads(learnt("explain", "task_1", "--json").out)["id"] == latest.id
        assert "`task_3` has never been briefed" in learnt("explain", "task_3").err
        assert "no task `task_none`" in learnt("explain", "task_none").err

    def test_what_cannot_be_explained_is_refused_with_a_hint(self, sqlite_memory: Memory, learnt: Command) -> None:
        attempt = sqlite_memory.debrief("task_1", "Done. <learning>Green fades.</learning>").attempt
        told = learnt("explain", attempt).out
        reason = "<learning> is not at the start of a line"
        assert f"it taught nothing new, and had no valid marks\nignored: {reason}\n" in told
        assert json.loads(learnt("explain", attempt, "--json").out)["ignored"] == reason
        for words in (("attempt_none",), (attempt, "--replay"), ("nonsense",)):
            done = learnt("explain", *words)
            assert (done.code, "hint: " in done.err) == (2, True)

    def test_a_brief_says_for_whom_on_which_occasion_and_in_which_client_it_was(
        self, sqlite_memory: Memory, learnt: Command
    ) -> None:
        sqlite_memory.add("Paint the shop in red", pinned=True)
        measured = sqlite_memory.brief("Paint the shop", agent="engineer", client="codex", asked_by="hook")
        assert tells(learnt("explain", measured.id).out, "task", "agent: engineer", "client: codex")
        assert "    relevance 0.9" in learnt("explain", measured.id).out

        assert told(sqlite_memory, session="s1", kind="session", name="SessionStart", source="startup")
        standing = learnt("explain", sqlite_memory.reports.latest_brief()).out
        assert tells(standing, "session", "client: claude")
        assert tells(standing, "listed: Paint the shop in red")
        assert "relevance" not in standing


class TestTheLine:
    def test_it_tells_of_today_in_one_line(self, sqlite_memory: Memory, learnt: Command) -> None:
        sqlite_memory.context.clock = now_ms
        assert learnt("activity", "--line").out == "learnt: 0 briefs today\n"
        sqlite_memory.brief("Paint the shop")
        assert learnt("activity", "--line", stdin='{"cwd": "."}').out == "learnt: 1 brief today\n"
        warned(sqlite_memory, "make all")
        warned(sqlite_memory, "make none", failures=5, delivery="")  # made after the stop, so it was given
        warned(sqlite_memory, "make more", delivery="")
        sqlite_memory.brief("Paint it", asked_by="hook")
        record = {"title": "Paint it green", "status": "proposed"}
        assert learnt("import", "-", stdin=json.dumps(record)).code == 0
        assert (
            learnt("activity", "--line").out
            == "learnt: 1 brief today, 2 warnings, 2 more not known to be delivered, 1 error prevented, 1 ignored, "
            "1 to review\n"
        )
        told = json.loads(learnt("activity", "--line", "--json").out)
        outcomes = {"prevented": 1, "ignored": 1, "needless": 0, "unknown": 1}
        counts = {"briefs": 1, "warnings": 2, "unknown_deliveries": 2}
        assert told == {"id": "today", **counts, **outcomes, "to_review": 1}
        stats = sqlite_memory.reports.stats()
        assert (stats.brief_tokens[-1].count, stats.unknown_deliveries) == (1, 1), "a warning is no brief"

    def test_it_is_empty_without_a_store_with_a_damaged_one_and_with_wrong_settings(
        self, learnt: Command, project: Path
    ) -> None:
        def told() -> tuple[int, str, str]:
            done = learnt("activity", "--line")
            return done.code, done.out, done.err

        assert told() == (0, "\n", "")
        learnt("init")
        (project / "learnt.toml").write_text("nonsense = 1\n")
        assert told() == (0, "\n", "")
        (project / "learnt.toml").write_text("")
        (project / ".learnt" / "learnt.db").write_bytes(b"garbage" * 1_000)
        assert told() == (0, "\n", "")
        (project / "learnt.toml").write_text('database = "postgresql://nobody@127.0.0.1:9/none"\n')
        assert told() == (0, "\n", "")

    def test_it_is_empty_where_there_is_no_folder(self, learnt: Command, project: Path) -> None:
        nowhere = learnt("-C", "/nowhere", "activity", "--line")
        assert (nowhere.code, nowhere.out, nowhere.err) == (0, "\n", "")
        assert learnt("activity", "--line", "-C", "/nowhere").code == 0
        (project / "gone").mkdir()
        gone = f"cd gone && rmdir ../gone && exec {sys.executable} -m learnt activity --line"
        done = subprocess.run(["sh", "-c", gone], cwd=project, capture_output=True, timeout=60, check=True)
        assert done.stdout == b"\n"

    def test_it_says_that_it_heeds_no_filter(self, learnt: Command) -> None:
        learnt("init")
        told = learnt("activity", "--line", "--what", "briefs")
        assert (told.code, told.out) == (0, "learnt: 0 briefs today\n")
        assert "--line" in told.err

    def test_it_waits_for_no_input(self, learnt: Command, project: Path) -> None:
        learnt("init")
        words = [sys.executable, "-m", "learnt", "activity", "--line"]
        reading, writing = os.pipe()  # somebody holds it open and says nothing
        try:
            done = subprocess.run(
                words, cwd=project, stdin=reading, capture_output=True, timeout=60, check=True, env=dict(os.environ)
            )
            assert done.stdout == b"learnt: 0 briefs today\n"
        finally:
            os.close(reading)
            os.close(writing)
        closed = f"exec {sys.executable} -m learnt activity --line <&-"
        done = subprocess.run(["sh", "-c", closed], cwd=project, capture_output=True, timeout=60, check=True)
        assert done.stdout == b"learnt: 0 briefs today\n"


@pytest.mark.parametrize(
    ("passed", "told"),
    [
        (-5, "just now"),
        (59_000, "just now"),
        (MINUTE_MS, "1 min ago"),
        (HOUR_MS - 1, "59 min ago"),
        (HOUR_MS, "1 h ago"),
        (DAY_MS - 1, "23 h ago"),
        (DAY_MS, "1 day ago"),
        (40 * DAY_MS, "1 month ago"),
    ],
)
def test_a_moment_is_told_in_the_unit_that_fits(passed: int, told: str) -> None:
    assert ago(10**12 - passed, 10**12) == told


def test_a_client_has_one_name_however_it_calls_itself() -> None:
    assert {client_name(name) for name in ("claude", "claude-code", " Claude-Code ")} == {"claude"}
    assert {client_name(name) for name in ("codex", "codex-mcp-client")} == {"codex"}
    assert {client_name(name) for name in ("gemini", "gemini-cli-mcp-client", "gemini-cli-mcp-client-learnt")} == {
        "gemini"
    }
    assert client_name("claude-ai") == "claude-ai"
    assert client_name("") == ""
