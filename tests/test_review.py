"""Review: what waits for a person, one decision each, and every decision can be taken back."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from learnt import Learning, Memory, NotFound, WrongRequest
from learnt.model import PROGRAM, Discovery
from learnt.store import learnings, mined
from learnt.store.learnings import Change
from learnt.store.purge import purge_learning
from tests.conftest import Clock, Done
from tests.support.terminal import COLOUR, Terminal
from tests.support.words import tells
from tests.test_loop import age

Command = Callable[..., Done]
SEEN = Discovery(type="blocker", text="It fails", excerpt="make: *** no rule", task="task_7", files=("Makefile",))


def by_agent(memory: Memory, title: str, **fields: Any) -> Learning:
    return memory.add(title, origin="agent", **fields)


def proposal(memory: Memory, title: str, *replaced: Learning) -> Learning:
    """A learning that waits, as tidying or a model proposes one."""
    made = by_agent(memory, title).replace(
        id=f"learn_{title.lower().replace(' ', '')}", status="proposed", replaces=tuple(one.id for one in replaced)
    )
    database = memory.context.store.database
    with memory.context.store.transaction():
        purge_learning(database, by_title(memory, title).id)
        learnings.add(database, made, Change(what="propose", who=PROGRAM, at=made.created_at))
    return made


def by_title(memory: Memory, title: str) -> Learning:
    return next(one for one in memory.learnings(status=None, limit=1000).learnings if one.title == title)


def waiting(memory: Memory) -> list[tuple[str, str]]:
    return [(item.kind, item.learning.title) for item in memory.review.items()]


@pytest.fixture
def full(memory: Memory) -> Memory:
    """One of everything that waits, and a learning that does not."""
    mine = memory.add("Written by a person")
    old = memory.add("Old words")
    proposal(memory, "New words", old)
    proposal(memory, "Both in one", mine, old)
    proposal(memory, "Out of the blue")
    by_agent(memory, "Found by an agent")
    suspect = memory.add("Skip the slow tests")
    memory.work.propose_quarantine(suspect.id, error="it hangs", task_ids=["task_1", "task_2"])
    return memory


class TestWhatWaits:
    def test_the_kinds_come_in_their_order_and_what_people_wrote_does_not_wait(self, full: Memory) -> None:
        assert waiting(full) == [
            ("merged", "Both in one"),
            ("revised", "New words"),
            ("proposed", "Out of the blue"),
            ("removed", "Skip the slow tests"),
            ("new", "Found by an agent"),
        ]
        assert full.review.counts() == {"merged": 1, "revised": 1, "proposed": 1, "removed": 1, "new": 1}

    def test_limit_and_kinds_narrow_it_down(self, full: Memory) -> None:
        assert [item.kind for item in full.review.items(limit=2)] == ["merged", "revised"]
        assert [item.kind for item in full.review.items(kinds=["new", "revised"])] == ["revised", "new"]
        assert full.review.items(limit=0) == []
        with pytest.raises(WrongRequest, match="no kind `old`"):
            full.review.items(kinds=["old"])

    @pytest.mark.parametrize("touch", ["like", "edit", "pin", "hide", "archive", "undo_of_recurrence"])
    def test_what_a_person_has_touched_waits_no_more(self, memory: Memory, touch: str) -> None:
        learning = by_agent(memory, "Found by an agent")
        if touch == "edit":
            memory.edit(learning.id, action="make lint")
        elif touch == "undo_of_recurrence":
            memory.debrief("task_1", "<learning>Found by an agent</learning>", result="done")
            memory.undo(learning.id)
        else:
            getattr(memory, touch)(learning.id)
        assert waiting(memory) == []

    def test_a_like_that_was_undone_lets_it_wait_again(self, memory: Memory) -> None:
        learning = by_agent(memory, "Found by an agent")
        memory.like(learning.id)
        memory.undo(learning.id)
        assert waiting(memory) == [("new", "Found by an agent")]

    def test_what_the_program_put_away_and_brought_back_still_waits(self, memory: Memory, clock: Clock) -> None:
        by_agent(memory, "Found by an agent")
        assert age(memory, clock, days=130) == 1
        assert waiting(memory) == []
        memory.debrief("task_1", "<learning>Found by an agent</learning>", result="done")
        assert waiting(memory) == [("new", "Found by an agent")]

    def test_the_newest_comes_first_and_what_was_asked_about_is_not_asked_twice(self, memory: Memory) -> None:
        for title in ("First", "Second", "Third"):
            by_agent(memory, title)
        memory.work.propose_quarantine(by_title(memory, "Second").id, error="it hangs", task_ids=["task_1"])
        assert waiting(memory) == [("removed", "Second"), ("new", "Third"), ("new", "First")]
        memory.review.decide(memory.review.items()[0].id, "reject")
        assert waiting(memory) == [("new", "Third"), ("new", "First")]

    def test_it_comes_with_its_evidence_and_with_what_it_would_replace(self, full: Memory) -> None:
        new = by_title(full, "Found by an agent")
        with full.context.store.transaction():
            mined.add(full.context.store.database, SEEN, at=1, learning=new.id)
        items = {item.kind: item for item in full.review.items()}
        [found] = items["new"].evidence
        assert (found.discovery.excerpt, found.discovery.files) == ("make: *** no rule", ("Makefile",))
        assert [one.title for one in items["merged"].replaces] == ["Written by a person", "Old words"]
        assert "Hide it?" in items["removed"].question

    def test_a_removal_whose_learning_was_purged_is_left_out(self, full: Memory) -> None:
        full.purge(by_title(full, "Skip the slow tests").id)
        assert "removed" not in full.review.counts()
        assert all(kind != "removed" for kind, _ in waiting(full))


# What each decision makes of the learning that it is about.
OUTCOMES = [
    ("merged", "accept", "active"),
    ("merged", "reject", "archived"),
    ("revised", "accept", "active"),
    ("revised", "reject", "archived"),
    ("proposed", "accept", "active"),
    ("proposed", "reject", "archived"),
    ("removed", "accept", "hidden"),
    ("removed", "reject", "active"),
    ("new", "accept", "active"),
    ("new", "reject", "hidden"),
]


class TestDecisions:
    @pytest.mark.parametrize(("kind", "decision", "status"), OUTCOMES)
    def test_each_takes_effect_and_can_be_taken_back(self, full: Memory, kind: str, decision: str, status: str) -> None:
        before = {one.id: one for one in full.transfer.export()}
        order = waiting(full)
        [item] = full.review.items(kinds=[kind])

        decided = full.review.decide(item.id, decision)
        assert (decided.kind, decided.learning.status) == (kind, status)
        assert full.get(item.learning.id).status == status
        assert kind not in full.review.counts()

        assert full.review.undo(decided).id == item.id
        assert waiting(full) == order
        told = ("version", "updated_at")
        after = {one.id: one for one in full.transfer.export()}
        for id, one in before.items():
            same = {name: getattr(after[id], name) for name in told}
            assert after[id] == one.replace(**same)

    def test_an_accepted_merger_replaces_its_members(self, full: Memory) -> None:
        [item] = full.review.items(kinds=["merged"])
        full.review.decide(item.id, "accept")
        assert {full.get(one.id).superseded_by for one in item.replaces} == {item.id}

    def test_accepting_a_new_one_is_the_like_of_this_person(self, full: Memory) -> None:
        [item] = full.review.items(kinds=["new"])
        after = full.review.decide(item.id, "accept").learning
        assert after.confidence == 0.8
        assert full.like(item.id).confidence == after.confidence

    @pytest.mark.parametrize("kind", ["merged", "revised", "proposed", "removed", "new"])
    def test_an_edited_one_is_kept_with_its_new_words(self, full: Memory, kind: str) -> None:
        [item] = full.review.items(kinds=[kind])
        decided = full.review.decide(item.id, "edit", changes={"action": "make lint"})
        assert (decided.learning.action, decided.learning.status) == ("make lint", "active")
        assert kind not in full.review.counts()
        assert full.review.undo(decided).learning.action == ""
        assert full.review.counts()[kind] == 1

    def test_secrets_in_new_words_are_redacted(self, full: Memory) -> None:
        [item] = full.review.items(kinds=["new"])
        secret = "ghp_" + "a1B2" * 9
        full.review.decide(item.id, "edit", changes={"action": f"use {secret}"})
        assert secret not in full.get(item.id).action
        assert full.redactions == 1

    def test_keeping_and_hiding_answer_the_escalation(self, full: Memory) -> None:
        [item] = full.review.items(kinds=["removed"])
        decided = full.review.decide(item.id, "reject")
        assert [(one.answer, one.resolved_by) for one in full.tasks.escalations(status=None)] == [("keep", "anna")]
        full.review.undo(decided)
        assert [one.status for one in full.tasks.escalations(status=None)] == ["open"]
        full.review.decide(item.id, "accept")
        assert [one.answer for one in full.tasks.escalations(status=None)] == ["hide"]

    def test_decisions_can_be_taken_back_one_after_the_other(self, full: Memory) -> None:
        order = waiting(full)
        made = [full.review.decide(item.id, "accept") for item in full.review.items()]
        assert full.review.items() == []
        for decided in reversed(made):
            full.review.undo(decided)
        assert waiting(full) == order

    @pytest.mark.parametrize("kind", ["revised", "removed", "new"])
    def test_of_two_who_decide_the_second_is_told(self, full: Memory, project: Path, kind: str) -> None:
        [item] = full.review.items(kinds=[kind])
        with Memory.open(project) as other:
            other.person = "bob"
            other.review.decide(item.id, "reject")
        with pytest.raises(WrongRequest, match="bob") as told:
            full.review.decide(item.id, "accept", version=item.learning.version)
        assert told.value.hint

    def test_who_decides_on_words_that_were_changed_meanwhile_is_told(self, full: Memory, project: Path) -> None:
        [item] = full.review.items(kinds=["proposed"])
        with Memory.open(project) as other:
            other.person = "bob"
            other.edit(item.id, title="Something else")
        with pytest.raises(WrongRequest, match="bob changed the text"):
            full.review.decide(item.id, "accept", version=item.learning.version)
        assert full.review.decide(item.id, "accept").learning.status == "active"

    def test_what_somebody_went_on_from_is_not_taken_back(self, full: Memory) -> None:
        [item] = full.review.items(kinds=["proposed"])
        decided = full.review.decide(item.id, "accept")
        full.hide(item.id)
        with pytest.raises(WrongRequest, match="was changed again"):
            full.review.undo(decided)
        assert full.get(item.id).status == "hidden"

    def test_wrong_requests_are_refused(self, full: Memory) -> None:
        [item] = full.review.items(kinds=["new"])
        with pytest.raises(WrongRequest, match="is not a decision"):
            full.review.decide(item.id, "later")
        with pytest.raises(WrongRequest, match="only `edit`"):
            full.review.decide(item.id, "accept", changes={"title": "x"})
        with pytest.raises(NotFound):
            full.review.decide("learn_none", "accept")
        with pytest.raises(NotFound):
            full.review.decide("esc_none", "accept")
        with pytest.raises(WrongRequest, match="is not waiting"):
            full.review.decide(by_title(full, "Written by a person").id, "accept")


@pytest.fixture
def shop(sqlite_memory: Memory) -> Memory:
    """Two learnings of an agent wait in a project on SQLite: `Second`, then `First`."""
    by_agent(sqlite_memory, "First", action="Do this")
    by_agent(sqlite_memory, "Second")
    return sqlite_memory


class TestAnswersOnStdin:
    def test_json_lists_what_waits_and_changes_nothing(self, shop: Memory, learnt: Command) -> None:
        done = learnt("review", "--json")
        assert (done.code, done.err) == (0, "")
        listed = json.loads(done.out)
        assert [(one["kind"], one["title"]) for one in listed] == [("new", "Second"), ("new", "First")]
        assert listed[1]["learning"]["action"] == "Do this"
        assert learnt("review", "--json", "--limit", "1", "--kind", "new").out.count('"kind": "new"') == 1
        assert json.loads(learnt("review", "--json", "--kind", "merged").out) == []
        assert len(shop.review.items()) == 2

    def test_a_list_in_words_names_the_ids(self, shop: Memory, learnt: Command) -> None:
        done = learnt("review", "--list", stdin="accept\n")
        assert [line.split()[0] for line in done.out.splitlines()] == [one.id for one in shop.review.items()]
        assert "2 to review" in done.err

    def test_answers_are_taken_in_turn(self, shop: Memory, learnt: Command) -> None:
        done = learnt("review", stdin="accept\nn\n")
        assert done.code == 0, done.err
        assert "Liked" in done.out
        assert "Hid" in done.out
        assert done.out.endswith("Decided: 2. Nothing left to review.\n")
        assert (by_title(shop, "Second").confidence, by_title(shop, "First").status) == (0.8, "hidden")

    def test_answers_by_id_are_told_as_json(self, shop: Memory, learnt: Command) -> None:
        first, second = by_title(shop, "First").id, by_title(shop, "Second").id
        done = learnt("review", "--json", stdin=f"{first} reject\n{second} later\n{second} accept\n{second} undo\n")
        told = json.loads(done.out)
        assert [(one["id"], one["decision"], one["status"]) for one in told["decided"]] == [(first, "reject", "hidden")]
        assert told["waiting"] == {"new": 1}
        assert done.code == 0

    def test_undo_goes_back_and_quit_ends(self, shop: Memory, learnt: Command) -> None:
        done = learnt("review", stdin="y\nundo\nn\nlater\nquit\ny\n")
        assert "is no longer liked" in done.out
        assert by_title(shop, "Second").status == "hidden"
        assert waiting(shop) == [("new", "First")]

    def test_a_line_that_is_no_answer_is_refused_before_anything_changes(self, shop: Memory, learnt: Command) -> None:
        done = learnt("review", stdin="accept\nperhaps\n")
        assert done.code == 2
        assert "line 2, `perhaps`" in done.err
        assert "hint: " in done.err
        assert len(waiting(shop)) == 2

    def test_what_does_not_wait_is_told_and_the_rest_is_done(self, shop: Memory, learnt: Command) -> None:
        first = by_title(shop, "First").id
        done = learnt("review", "--json", stdin=f"learn_none accept\n{first} accept\n{first} accept\n")
        assert done.code == 2
        told = json.loads(done.out)
        assert [one["id"] for one in told["decided"]] == [first]
        assert [one["id"] for one in told["refused"]] == ["learn_none", first]
        assert "Traceback" not in done.err

    def test_nothing_to_review_is_said(self, sqlite_memory: Memory, learnt: Command) -> None:
        assert tells(learnt("review").out, "nothing", "review")
        assert json.loads(learnt("review", "--json").out) == []
        assert learnt("review", "--json", stdin="accept\n").code == 2

    def test_status_tells_how_much_waits_if_anything_does(self, shop: Memory, learnt: Command) -> None:
        assert tells(learnt("status").out, 2, "`learnt review`")
        assert json.loads(learnt("status", "--json").out)["review"] == {"new": 2}
        learnt("review", stdin="y\ny\n")
        assert "review" not in learnt("status").out

    def test_like_and_hide_do_what_review_does(self, shop: Memory, learnt: Command) -> None:
        assert learnt("like", by_title(shop, "Second").id).code == 0
        assert learnt("hide", by_title(shop, "First").id).code == 0
        assert tells(learnt("review").out, "nothing", "review")


class TestAtATerminal:
    def walk(self, project: Path, typed: str, **environ: str) -> str:
        code, screen = Terminal(project).run("review", typed=typed, **environ)
        assert "Traceback" not in screen
        assert code == 0, screen
        return COLOUR.sub("", screen)

    def test_one_key_decides_without_enter(self, shop: Memory, project: Path) -> None:
        screen = self.walk(project, "ynq")
        assert "1 of 2" in screen
        assert re.search(r"\[y\].*\[n\].*\[e\].*\[l\].*\[u\].*\[q\]", screen)
        assert "Action: Do this" in screen
        assert tells(screen.splitlines()[-1], 2, "nothing left")
        assert by_title(shop, "First").status == "hidden"

    def test_undo_walks_back_as_far_as_wanted(self, shop: Memory, project: Path) -> None:
        screen = self.walk(project, "nnuuulyq")
        assert screen.count("is visible again") == 2
        assert "there is nothing to undo" in screen
        assert by_title(shop, "Second").status == "active"
        assert waiting(shop) == [("new", "Second")]
        assert by_title(shop, "First").confidence == pytest.approx(0.8)

    def test_other_keys_and_arrows_do_nothing_and_enter_is_later(self, shop: Memory, project: Path) -> None:
        self.walk(project, "x?\x1b[A\x1b[1;5D\n\nq")
        assert len(waiting(shop)) == 2

    def test_edit_opens_the_editor_and_accepts(self, shop: Memory, project: Path) -> None:
        screen = self.walk(project, "eq", EDITOR="sed -i s/Second/Better/", VISUAL="")
        assert "Edited" in screen
        assert by_title(shop, "Better").confidence == pytest.approx(0.85)
        assert waiting(shop) == [("new", "First")]

    def test_an_editor_that_changes_nothing_decides_nothing(self, shop: Memory, project: Path) -> None:
        screen = self.walk(project, "eq", EDITOR="true", VISUAL="")
        assert tells(screen, "nothing", "changed")
        assert screen.count("1 of 2") == 2
        assert len(waiting(shop)) == 2

    def test_a_revision_is_shown_as_a_difference(self, sqlite_memory: Memory, project: Path) -> None:
        old = sqlite_memory.add("Old words", action="make lint")
        proposal(sqlite_memory, "New words", old)
        screen = self.walk(project, "yq")
        assert "- title: Old words" in screen
        assert "+ title: New words" in screen
        assert sqlite_memory.get(old.id).status == "superseded"

    def test_evidence_is_shown(self, shop: Memory, project: Path) -> None:
        with shop.context.store.transaction():
            mined.add(shop.context.store.database, SEEN, at=1, learning=by_title(shop, "Second").id)
        screen = self.walk(project, "q")
        assert "seen in task_7  blocker  Makefile" in screen
        assert "| make: *** no rule" in screen

    def test_ctrl_c_keeps_what_was_decided_and_leaves_the_terminal_as_it_was(self, shop: Memory, project: Path) -> None:
        import pty
        import termios

        ours, theirs = pty.openpty()
        before = termios.tcgetattr(theirs)
        process = subprocess.Popen(
            [sys.executable, "-m", "learnt", "review"],
            cwd=project,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        while b"[q] quit" not in process.stdout.readline():
            pass
        os.write(ours, b"n")
        while b"[q] quit" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130
        assert termios.tcgetattr(theirs) == before
        assert waiting(shop) == [("new", "First")]
        os.close(ours)
        os.close(theirs)
