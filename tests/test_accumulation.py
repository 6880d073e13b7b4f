"""Learnings accumulate: from finished tasks into a file that people edit, with a model and without, whatever fails."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from learnt.brief.learnings_file import parse
from learnt.text.tokens import estimate_tokens
from tests.conftest import Done
from tests.support.accumulation import AGENT, Workshop, lesson


@pytest.fixture
def shop(project: Path, learnt: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A project whose file is made anew after five tasks, with an agent that says a lesson for each."""
    monkeypatch.setenv("LEARNT_LEARNINGS_REGENERATE_EVERY", "5")
    shop = Workshop(project, learnt)
    shop.agent(AGENT)
    return shop


# Twenty tasks, and people who edit


@pytest.mark.parametrize("max_tokens", [2_000, 260])
def test_over_twenty_tasks_no_edit_by_hand_is_lost_and_nothing_deleted_comes_back(
    shop: Workshop, max_tokens: int
) -> None:
    shop.settings(learnings_max_tokens=max_tokens)
    shop.versioned()
    shop.done(range(1, 5))
    assert not shop.path.exists(), "four tasks are too few"
    shop.done([5])
    shop.wait(1)
    assert sum(lesson(number) in shop.text for number in range(1, 6)) == 5
    shop.commit("first file")

    shop.append("Ask Anna before `vat.py` is touched.")
    shop.rewrite(lesson(2), "Run `bin/check2` only on Mondays: the till is closed then")
    shop.delete("bin/check3")
    shop.move("bin/check4", "House rules")
    shop.done(range(6, 11))
    shop.wait(2)
    _holds(shop, max_tokens)
    with shop.path.open("a") as file:
        subprocess.run(["echo", "- Bring coffee to the `till-7` people."], stdout=file, check=True)
    shop.delete("bin/check10")
    shop.rewrite("before `vat.py` is touched", "before anything in `vat/` is touched")

    shop.done(range(11, 16))
    shop.wait(3)
    _holds(shop, max_tokens)
    shop.move("Bring coffee", "House rules")
    shop.path.write_bytes(shop.text.replace("\n", "\r\n").encode())
    shop.done(range(16, 21))
    makings = shop.wait(4)

    _holds(shop, max_tokens)
    assert [one.result for one in makings] == ["done"] * 4
    assert [one.cause for one in makings] == ["count"] * 4
    known = shop.all()
    by_hand = {
        "Ask Anna before anything in `vat/` is touched.": "",
        "Run `bin/check2` only on Mondays: the till is closed then": known[lesson(1)].category,
        "Bring coffee to the `till-7` people.": "house_rules",
        lesson(4): "house_rules",
    }
    assert {title: (known[title].status, known[title].category) for title in by_hand} == {
        title: ("active", category) for title, category in by_hand.items()
    }
    for deleted in (lesson(3), lesson(10)):
        assert known[deleted].status == "hidden"
        assert deleted not in shop.text
    for written in ("Ask Anna before anything in `vat/` is touched.", "Bring coffee to the `till-7` people."):
        assert shop.bullets.count(written) == 1
    assert len(known) == 20 + 2
    assert (lesson(20) in shop.text) or max_tokens < 2_000


def _holds(shop: Workshop, max_tokens: int) -> None:
    """The file stays within its bound, and shows each learning once."""
    assert estimate_tokens(shop.text) <= max_tokens
    ids = [bullet.id for bullet in parse(shop.text).bullets]
    assert len(ids) == len(set(ids))
    assert all(ids)


def test_what_people_did_on_branches_arrives_with_the_merge_and_old_branches_bring_nothing_back(shop: Workshop) -> None:
    shop.versioned()
    shop.done(range(1, 6))
    shop.wait(1)
    shop.commit("first file")
    shop.git("branch", "side")
    shop.git("branch", "old")
    side = shop.folder.parent / "side"
    shop.git("worktree", "add", "-q", str(side), "side")
    theirs = side / ".learnt" / "learnings.md"

    with theirs.open("a") as file:
        file.write("- Ask Bert about `ean.py` first.\n")
    shop.delete("bin/check1", theirs)
    shop.rewrite(lesson(3), "Run `bin/check3` only by night: the till is closed then", theirs)
    shop.commit("by hand on a branch", side)
    shop.delete("bin/check5")
    shop.done(range(6, 11))
    shop.wait(2)
    shop.commit("second file")
    assert lesson(1) in shop.text, "on this branch nobody deleted it"

    _merge(shop, "side")
    shop.done(range(11, 16))
    shop.wait(3)
    shop.commit("third file")

    assert "Ask Bert about `ean.py` first." in shop.bullets
    assert "Run `bin/check3` only by night: the till is closed then" in shop.text
    known = shop.all()
    assert [known[lesson(number)].status for number in (1, 5)] == ["hidden", "hidden"]
    assert "Run `bin/check3` only by night: the till is closed then" in known
    assert not {lesson(1), lesson(3), lesson(5)} & {text.removeprefix("Avoid: ") for text in shop.bullets}

    # A branch from before all that: first in a worktree of its own, then merged.
    ancient = shop.folder.parent / "ancient"
    shop.git("worktree", "add", "-q", str(ancient), "old")
    own = ancient / ".learnt" / "learnings.md"
    assert lesson(1) in own.read_text()
    before = shop.text
    with own.open("a") as file:
        file.write("- Greet the `cash-desk` first.\n")
    shop.commit("by hand on an old branch", ancient)
    _merge(shop, "old")
    shop.update()
    shop.update(cwd=ancient)

    for text in (shop.text, own.read_text()):
        bullets = [bullet.text.removeprefix("Avoid: ") for bullet in parse(text).bullets]
        assert bullets.count("Greet the `cash-desk` first.") == 1
        assert not {lesson(1), lesson(3), lesson(5)} & set(bullets)
        assert lesson(15) in bullets
    assert [shop.all()[lesson(number)].status for number in (1, 5)] == ["hidden", "hidden"]
    assert len(shop.all()) == 15 + 2
    assert set(parse(before).bullets) <= set(parse(shop.text).bullets)


def test_while_a_merge_conflicts_nothing_is_read_and_what_a_person_makes_of_it_counts(shop: Workshop) -> None:
    shop.versioned()
    shop.done(range(1, 6))
    shop.wait(1)
    shop.commit("first file")
    shop.git("checkout", "-q", "-b", "side")
    shop.rewrite(lesson(5), "Run `bin/check5` on the fake till")
    shop.append("Ask Bert about `ean.py` first.")
    shop.update()
    shop.commit("by hand on a branch")
    shop.git("checkout", "-q", "main")
    shop.delete("bin/check4")
    shop.append("Ask Anna before `vat.py` is touched.")
    shop.update()
    shop.commit("by hand")

    with pytest.raises(subprocess.CalledProcessError):
        shop.git("merge", "side")
    conflicting = shop.text
    assert "<<<<<<<" in conflicting
    before = shop.everything()
    assert "conflict" in shop.update(code=2)
    shop.done(range(6, 11))
    assert [one.result for one in shop.wait(5)] == ["done", "done", "done", "failed", "failed"]
    assert shop.text == conflicting
    assert shop.everything()["events"] == before["events"]
    assert "conflict" in shop.learnt("status").out

    _resolve(shop)
    shop.update()
    shop.commit("merged")

    bullets = {text.removeprefix("Avoid: ") for text in shop.bullets}
    assert {
        "Ask Anna before `vat.py` is touched.", "Ask Bert about `ean.py` first.", "Run `bin/check5` on the fake till",
        *map(lesson, (1, 2, 3, *range(6, 11))),
    } == bullets  # fmt: skip
    assert shop.all()[lesson(4)].status == "hidden"


def _merge(shop: Workshop, branch: str) -> None:
    """Merge a branch as people do: with their own hands where git cannot."""
    try:
        shop.git("merge", "-q", "-m", f"merge {branch}", branch)
    except subprocess.CalledProcessError:
        _resolve(shop)
        shop.commit(f"merge {branch}")


def _resolve(shop: Workshop) -> None:
    """Keep the lines of both sides, but our own date and last line, and no bullet twice."""
    kept: list[str] = []
    is_theirs = False
    for line in shop.text.split("\n"):
        is_theirs = line.startswith("=======") or (is_theirs and not line.startswith(">>>>>>>"))
        generated = line.startswith(("Last updated", "<!-- learnt:"))
        if not line.startswith(("<<<<<<<", "=======", ">>>>>>>")) and not (is_theirs and generated):
            kept.append(line)
    shop.path.write_text("\n".join(kept))


def test_a_task_that_is_to_have_no_learnings_neither_gets_nor_feeds_the_file(shop: Workshop) -> None:
    shop.settings(learnings_injection_strategy="global_only")
    shop.done(range(1, 6))
    shop.wait(1)
    (task,) = shop.queue([6], skip_learnings=True)
    assert lesson(5) not in shop.learnt("task", "prompt", task).out
    assert shop.learnt("task", "add", "Check 7", "--no-learnings").code == 0

    shop.work("--all")

    assert all(lesson(5) not in (shop.folder / f"prompt-{number}.txt").read_text() for number in (6, 7))
    assert shop.state().tasks_since == 0
    shop.update()
    assert not {lesson(6), lesson(7)} & set(shop.all())
    shop.queue([8])
    shop.work("--all")
    assert lesson(5) in (shop.folder / "prompt-8.txt").read_text()
