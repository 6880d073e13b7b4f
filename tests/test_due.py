"""Whether consolidation is due: the trigger, the entries that it takes, and what a conversation is told."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from learnt.brief.render import ASKS, OPENING_TOKENS
from learnt.consolidate.ages import AgedEntry
from learnt.consolidate.due import DueDecision, Thresholds, decide
from learnt.store import consolidations
from learnt.store.consolidations import ConsolidationRun
from learnt.text.words import estimate_tokens
from tests.support.doors import open_doors, work_here
from tests.support.hooks import event_text
from tests.support.repository import STAGING, Repository, entry


def entries(*ages: int, lines: int = 10) -> list[AgedEntry]:
    """Return entries of these ages, named by them."""
    return [
        AgedEntry(title=str(age), line=1 + place * lines, lines=lines, day=f"d{99 - age:02}", active_days=age)
        for place, age in enumerate(ages)
    ]


def decided(aged: list[AgedEntry], **changes: Any) -> DueDecision:
    return decide(aged, **{"file_lines": 20, "since_consolidation": 0, "thresholds": Thresholds(), **changes})


def titles(decision: DueDecision) -> list[str]:
    return [entry.title for entry in decision.batch]


def test_a_short_file_that_was_just_consolidated_is_not_due() -> None:
    decision = decided(entries(20, 20, 20), file_lines=149, since_consolidation=13)
    assert (decision.is_due, decision.needs_person, decision.cause, decision.batch) == (False, False, "", ())
    assert decision.reason == (
        "149 lines (limit 150); 13 active days since the last consolidation (limit 14); 3 entries of at least 7 "
        "active days"
    )


def test_a_long_file_is_due_and_gives_its_oldest_entries_until_it_is_short_enough() -> None:
    decision = decided(entries(8, 30, 7, 20, 9, 10, 6), file_lines=189)
    assert (decision.is_due, decision.cause) == (True, "size")
    assert titles(decision) == ["30", "20", "10", "9"]  # 40 lines, so that 149 are left
    assert decision.reason == "189 lines (limit 150), and 6 entries of at least 7 active days"


def test_a_long_file_gives_at_least_a_batch_and_at_most_all_aged_entries() -> None:
    assert titles(decided(entries(30, 20, 10, 9), file_lines=150)) == ["30", "20", "10"]
    assert titles(decided(entries(30, 20, 10, 6), file_lines=900)) == ["30", "20", "10"]


def test_a_long_file_with_too_few_aged_entries_needs_a_person_and_gives_no_young_ones() -> None:
    decision = decided(entries(30, 20, 6, 6, 6), file_lines=300)
    assert (decision.is_due, decision.needs_person, decision.cause, decision.batch) == (False, True, "size", ())
    assert decision.reason == "300 lines (limit 150), but only 2 entries of at least 7 active days, of 3 needed"


def test_after_a_long_pause_all_aged_entries_are_taken() -> None:
    decision = decided(entries(8, 30, 7, 20, 6), since_consolidation=14)
    assert (decision.is_due, decision.cause, titles(decision)) == (True, "staleness", ["30", "20", "8", "7"])
    both = decided(entries(8, 30, 7, 20, 6), since_consolidation=14, file_lines=151)
    assert (both.is_due, both.cause, titles(both)) == (True, "size", ["30", "20", "8", "7"])


def test_after_a_long_pause_a_short_file_with_few_aged_entries_bothers_nobody() -> None:
    decision = decided(entries(30, 20), since_consolidation=99)
    assert (decision.is_due, decision.needs_person) == (False, False)


def test_entries_below_the_freshness_threshold_are_never_taken() -> None:
    for age in range(12):
        decision = decided(entries(*[age] * 20), file_lines=400, since_consolidation=30)
        assert decision.is_due == (age >= 7)


def test_all_thresholds_can_be_set(project: Path) -> None:
    (project / "learnt.toml").write_text(
        "[consolidate]\nsize_lines = 9\nstaleness_days = 3\nfreshness_days = 0\nbatch_entries = 2\n"
    )
    (project / STAGING).write_text(entry("One") + entry("Two"))
    with Memory.open(project) as memory:
        assert not memory.consolidation.ages().decision.is_due
    (project / STAGING).write_text(entry("One") + entry("Two") + "more\n")
    with Memory.open(project) as memory:
        decision = memory.consolidation.ages().decision
    assert (decision.cause, titles(decision)) == ("size", ["One", "Two"])


@pytest.mark.parametrize("staleness", [6, 7])
def test_a_staleness_that_is_not_above_the_freshness_is_refused_with_a_way_out(project: Path, staleness: int) -> None:
    learnt = open_doors(project)
    learnt("init")
    (project / "learnt.toml").write_text(f"[consolidate]\nstaleness_days = {staleness}\n")
    refused = learnt("ages")
    assert refused.code == 2
    assert f"`consolidate.staleness_days` is {staleness}" in refused.err
    assert "`consolidate.freshness_days`, 7" in refused.err
    assert "hint: raise the first or lower the second" in refused.err


class Shop:
    """A repository with a staging file, whose conversations are started."""

    def __init__(self, folder: Path) -> None:
        self.repository = Repository(folder)
        self._learnt = open_doors(folder)
        self._learnt("init")
        self._sessions = 0

    def age(self, days: int) -> None:
        """Commit on so many further days."""
        first = len(set(self.repository.git("log", "--format=%as", "--all").split()))
        for day in range(first, first + days):
            self.repository.commit(f"2026-{1 + day // 28:02}-{1 + day % 28:02}T12:00:00+0000")

    def work(self) -> None:
        done = work_here(self.repository.folder)
        assert done.code == 0, done.err

    def open_conversation(self) -> str:
        """Start a conversation and return what it is told."""
        self._sessions += 1
        fields = {"session_id": f"s{self._sessions}", "source": "startup", "cwd": str(self.repository.folder)}
        answer = self._learnt("hook", stdin=event_text("SessionStart", transcript_path="/none.jsonl", **fields)).out
        return json.loads(answer)["hookSpecificOutput"]["additionalContext"] if answer.strip() else ""


@pytest.fixture
def shop(project: Path) -> Shop:
    return Shop(project)


def test_a_conversation_is_told_in_one_line_when_consolidation_is_due(shop: Shop) -> None:
    shop.repository.append("".join(entry(f"Entry {number}") for number in range(3)))
    shop.age(days=14)
    shop.work()
    assert "onsolidation" not in shop.open_conversation()

    shop.age(days=1)
    assert "onsolidation" not in shop.open_conversation()  # only the worker asks git
    shop.work()
    told = shop.open_conversation()
    line = "Consolidation is due: 3 aged entries, 12 lines (`learnt consolidate`)."
    assert told.count(line) == 1
    assert estimate_tokens(f"{line}\n{ASKS['start']}") <= OPENING_TOKENS

    with Memory.open(shop.repository.folder) as memory:
        entries = ({"entry": "learn_1", "verdict": "moved", "target": "docs/learnings/git.md"},)
        now = memory.context.clock()
        run = ConsolidationRun(id="run_1", cause="staleness", started_at=now, result="done", entries=entries)
        with memory.context.store.transaction():
            consolidations.put(memory.context.store.database, run.replace(finished_at=run.started_at))
    shop.work()
    assert "onsolidation" not in shop.open_conversation()


def test_a_conversation_is_told_when_the_file_is_too_long_for_what_has_aged(shop: Shop) -> None:
    shop.repository.append("".join(entry(f"Entry {number}") for number in range(40)))
    shop.age(days=2)
    shop.work()
    line = "The staging file is too long, and too few entries are old enough (`learnt ages`)."
    assert line in shop.open_conversation()
    assert estimate_tokens(f"{line}\n{ASKS['start']}") <= OPENING_TOKENS


def test_the_worker_asks_git_again_only_when_something_has_changed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.repository.append("".join(entry(f"Entry {number}") for number in range(3)))
    shop.age(days=15)
    with Memory.open(shop.repository.folder) as memory:
        memory.consolidation.note_due()
    monkeypatch.setenv("PATH", os.devnull)  # asked again, git could not tell any ages
    with Memory.open(shop.repository.folder) as memory:
        memory.consolidation.note_due()
    assert "Consolidation is due" in shop.open_conversation()
    shop.repository.append("\n")
    with Memory.open(shop.repository.folder) as memory:
        memory.consolidation.note_due()
    assert "onsolidation" not in shop.open_conversation()


def test_a_history_that_takes_git_long_is_not_read_after_every_commit(shop: Shop) -> None:
    shop.repository.append("".join(entry(f"Entry {number}") for number in range(3)))
    shop.age(days=14)
    shop.work()
    (note,) = (shop.repository.folder / ".learnt/due").iterdir()
    content = json.loads(note.read_text())
    note.write_text(json.dumps({**content, "took_ms": 5_000}))
    shop.age(days=1)
    shop.work()
    assert "onsolidation" not in shop.open_conversation()
    note.write_text(json.dumps({**content, "took_ms": 5_000, "at": content["at"] - 500_000}))
    shop.work()
    assert "Consolidation is due" in shop.open_conversation()


def test_each_worktree_is_told_about_its_own_staging_file(shop: Shop, tmp_path: Path) -> None:
    shop.age(days=1)
    shop.repository.git("worktree", "add", "-q", str(tmp_path / "tree"))
    shop.repository.append("".join(entry(f"Entry {number}") for number in range(3)))
    shop.age(days=15)
    shop.work()
    assert work_here(tmp_path / "tree").code == 0
    assert "Consolidation is due" in shop.open_conversation()
    answer = open_doors(tmp_path / "tree")(
        "hook", stdin=event_text("SessionStart", session_id="t1", source="startup", transcript_path="/none.jsonl")
    ).out
    assert "onsolidation" not in answer


def test_without_a_staging_file_nothing_is_noted(shop: Shop) -> None:
    shop.repository.append("".join(entry(f"Entry {number}") for number in range(3)))
    shop.age(days=15)
    shop.work()
    (shop.repository.folder / STAGING).unlink()
    shop.work()
    assert list((shop.repository.folder / ".learnt/due").iterdir()) == []
    assert "onsolidation" not in shop.open_conversation()


def test_a_damaged_note_is_ignored(shop: Shop) -> None:
    shop.repository.append("".join(entry(f"Entry {number}") for number in range(3)))
    shop.age(days=15)
    shop.work()
    (note,) = (shop.repository.folder / ".learnt/due").iterdir()
    note.write_text("[]")
    assert "onsolidation" not in shop.open_conversation()
    shop.work()
    assert "Consolidation is due" in shop.open_conversation()
