"""Learnings accumulate: from finished tasks into a file that people edit, with a model and without, whatever fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from learnt.learnings_file.read import parse
from learnt.text.words import estimate_tokens
from tests.conftest import Done
from tests.support.accumulation import AGENT, Model, Workshop, lesson, until
from tests.support.past import correction, kept_at_home
from tests.support.service_stub import TOKENS_IN, TOKENS_OUT, Reply
from tests.support.terminal import Terminal


@pytest.fixture
def shop(project: Path, learnt: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A project whose file is made anew after five tasks, with an agent that says a lesson for each."""
    monkeypatch.setenv("LEARNT_LEARNINGS_REGENERATE_EVERY", "5")
    shop = Workshop(project, learnt)
    shop.agent(AGENT)
    return shop


def finish(shop: Workshop, numbers: range) -> None:
    """Let tasks be done, as an agent's client tells it."""
    with shop.open() as memory:
        for number in numbers:
            memory.debrief(f"task_{number}", f"{lesson(number)}.", result="done")


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
    shown = [text.removeprefix("Avoid: ") for text in shop.bullets]
    assert [shown.count(title) for title in by_hand] == [1] * len(by_hand), "also beyond the window"
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
    kept = {bullet for bullet in parse(before).bullets if bullet.section != "On trial"}
    assert kept <= set(parse(shop.text).bullets)


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
    with shop.open() as memory:
        memory.like(shop.all()[lesson(5)].id)
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


# A model that is named

PROVIDERS = ("anthropic", "openai", "command")


def change(do: str, **fields: Any) -> dict[str, Any]:
    return {"do": do, **fields}


def answer(*changes: dict[str, Any]) -> str:
    return json.dumps({"changes": changes})


def shown(number: int) -> str:
    """Return the line of an addition in the file."""
    return f"{addition(number)['title']} → {addition(number)['action']}"


def addition(number: int) -> dict[str, Any]:
    return change(
        "ADD",
        type="blocker",
        title=f"Give `bin/check{number}` a stage, or it takes the real till",
        observation=f"Without a stage `bin/check{number}` ran on the real till.",
        action=f"Run `bin/check{number} --stage test`.",
        tags=["tills"],
        category="Testing Patterns",
        reason=f"the agent warns of till {number}",
    )


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def model(provider: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Model]:
    """Return what names a model that answers so."""
    return lambda *replies, **settings: Model(provider, project.parent, monkeypatch, *replies, **settings)


def test_each_task_is_one_call_and_what_the_model_says_is_done_as_far_as_it_may_decide(
    shop: Workshop, provider: str, model: Callable[..., Model]
) -> None:
    wrong = shop.learnt(
        "add", "Check tills with `bin/check`", "--action", "Just run it.", "--on-command", "bin/check", "--json"
    )
    revised = json.loads(wrong.out)["id"]
    stale, kept = (shop.learn(f"Check tills {when}")["id"] for when in ("by `telnet`", "twice with `bin/check`"))
    replies = [
        answer(addition(1)),
        answer(change("REVISE", id=revised, action="Run it with `--stage test`.", reason="it ran on the real till")),
        answer(change("REMOVE", id=stale, reason="there is no telnet any more")),
        answer(change("KEEP", id=kept), change("REVISE", id="learn_nobody", title="x"), {"do": "DANCE"}),
        f"Here you are:\n```json\n{answer(*map(addition, range(50, 55)))}\n```",
        answer(),
    ]
    before = {id: shop.learnt("show", id, "--json").out for id in (stale, kept)}

    with model(*replies) as asked:
        tasks = shop.done(range(1, 6))
        shop.wait(1)
        assert len(asked.asked) == 5, "one call for each task"
        assert [one.result for one in shop.made()] == ["done"], shop.made()[0].reason
        shop.done(range(6, 11))
        shop.wait(2)
        assert len(asked.asked) == 10

    known = shop.all()
    new = known[addition(1)["title"]]
    assert (new.status, new.origin, new.task, new.discovery) == ("active", "model", tasks[0], "blocker")
    assert (new.confidence, new.category, new.times_helpful) == (0.7, "Testing Patterns", 0)
    assert shown(1) in shop.bullets
    told = shop.learnt("show", new.id).out
    assert " · unproven · " in told
    assert f"seen in {tasks[0]}" in told
    assert "the agent warns of till 1" in told
    assert [addition(number)["title"] in known for number in range(50, 55)] == [True, True, True, False, False]
    for id, was in before.items():
        assert _lasting(shop.learnt("show", id, "--json").out) == _lasting(was)
    _waits_for_a_person(shop, revised, stale)
    _is_in_the_book(shop, provider, calls=10)


def _lasting(shown: str) -> dict[str, Any]:
    """What `show` tells, but for what being shown to agents changes."""
    changing = ("times_injected", "last_injected_at", "impact", "evidence", "similar")
    return {name: value for name, value in json.loads(shown).items() if name not in changing}


def _waits_for_a_person(shop: Workshop, revised: str, stale: str) -> None:
    items = {item["kind"]: item for item in json.loads(shop.learnt("review", "--json").out)}
    proposal = items["revised"]["learning"]
    assert (proposal["status"], proposal["replaces"]) == ("proposed", [revised])
    assert (proposal["title"], proposal["action"]) == ("Check tills with `bin/check`", "Run it with `--stage test`.")
    assert proposal["triggers"]["commands"] == ["bin/check"], "what a model cannot say stays"
    assert "Run it with `--stage test`." not in shop.text
    (asked,) = json.loads(shop.learnt("escalations", "--json").out)
    assert (asked["subject"], asked["id"]) == (stale, items["removed"]["id"])
    assert "there is no telnet any more" in asked["question"]

    assert shop.learnt("review", stdin=f"{proposal['id']} yes\n{asked['id']} yes\n").code == 0
    with shop.open() as memory:
        assert memory.get(revised).superseded_by == proposal["id"]
        assert memory.get(proposal["id"]).status == "active"
        assert memory.get(stale).status == "hidden"


def _is_in_the_book(shop: Workshop, provider: str, *, calls: int) -> None:
    usage = json.loads(shop.learnt("usage", "--calls", "100", "--json").out)
    assert len(usage["calls"]) == calls
    (ever,) = usage["ever"]
    assert (ever["purpose"], ever["provider"], ever["calls"], ever["done"]) == ("extract", provider, calls, calls)
    each = 0.01 if provider == "command" else (TOKENS_IN + 5 * TOKENS_OUT) / 1_000_000
    assert ever["cost_usd"] == pytest.approx(calls * each)
    assert ever["tokens_in"] == (0 if provider == "command" else calls * TOKENS_IN)
    assert sum(one.cost_usd or 0 for one in shop.made()) == pytest.approx(calls * each)
    assert all(call["task"] and call["regeneration"] for call in usage["calls"])


def test_the_model_reads_the_task_what_was_said_what_is_known_and_the_project_s_own_words(
    shop: Workshop, provider: str, model: Callable[..., Model]
) -> None:
    known = shop.learn("Check tills with `bin/check`")["id"]
    prompts = shop.folder / ".learnt" / "prompts"
    with model(answer()) as asked:
        shop.done([1, 2])
        with shop.open() as memory:
            memory.file.update()
        prompts.mkdir()
        (prompts / "extract.md").write_text("Speak like a pirate.\n---\nOf $material tell what you learnt.\n")
        finish(shop, range(3, 4))
        with shop.open() as memory:
            memory.file.update()

        ours, _, theirs = asked.asked
        if provider == "command":
            assert asked.signs == ["1", "1", "1"]
    for part in ("Check 1", lesson(1), known, "Check tills with `bin/check`"):
        assert part in ours
    assert "Speak like a pirate." in theirs
    assert lesson(3) in theirs
    assert "patterns that can be used again" not in theirs


def test_of_a_conversation_the_model_reads_both_sides_and_what_the_rules_found_in_one_call(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = "Mend the tills, and never touch `vat.py`"
    path = correction("claude", shop.folder.parent / "s.jsonl", folder=shop.folder, prompt=prompt)
    told = {**addition(1), "when": ["the till test does not start", "pytest is missing"]}
    with Model("command", shop.folder.parent, monkeypatch, answer(told)) as asked, shop.open() as memory:
        memory.transcripts.debrief(path)
        (question,) = asked.asked
    for part in (f"User: {prompt}", "Agent: Mended the tills.", "then worked: uv run pytest tests", "`when`"):
        assert part in question
    by_origin = {learning.origin: learning for learning in shop.all().values()}
    assert by_origin.keys() == {"model", "person"}
    assert by_origin["person"].title == prompt
    learning = by_origin["model"]
    assert (learning.cues, learning.kind) == (("the till test does not start", "pytest is missing"), "gotcha")


def test_what_a_model_adds_passes_the_same_checks_as_what_the_rules_find(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    vague = change("ADD", type="pattern", title="All tests pass now")
    with Model("command", shop.folder.parent, monkeypatch, answer(vague)):
        finish(shop, range(1, 2))
        assert "skipped: " in shop.update()
    assert vague["title"] not in shop.all()


def test_no_model_is_asked_that_nobody_named(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch, model: Callable[..., Model]
) -> None:
    with model(answer(addition(1))) as asked:
        monkeypatch.delenv("LEARNT_MODEL_PROVIDER")
        finish(shop, range(1, 6))
        shop.wait(1)
        shop.update()
        assert asked.asked == []
    assert lesson(1) in shop.text
    assert "No model has ever been called." in shop.learnt("usage").out


# A model that fails

HALF = answer(addition(1))[:100]
SLOW = Reply("slow down", status=429, headers={"retry-after": "0"})
FAILURES: dict[str, tuple[str, Reply, dict[str, float], str]] = {
    "anthropic says nothing": ("anthropic", Reply(silent=True), {"time_limit_s": 1}, "no answer within"),
    "a program says nothing": ("command", Reply(silent=True), {"time_limit_s": 1}, "no answer within"),
    "rubbish": ("openai", Reply("I would rather talk about the weather."), {}, "contains no JSON"),
    "half a JSON": ("anthropic", Reply(HALF), {}, "broken or cut off"),
    "a program prints half a JSON": ("command", Reply(HALF), {}, "broken or cut off"),
    "anthropic refuses": ("anthropic", Reply("I cannot", ending="refusal"), {}, "refused"),
    "openai refuses": ("openai", Reply("", refusal="I cannot do that"), {}, "refused"),
    "anthropic is busy": ("anthropic", SLOW, {}, "429: slow down"),
    "openai is broken": ("openai", Reply("the cat sat on it", status=500), {}, "500: the cat sat on it"),
    "a program fails": ("command", Reply("no credit left", status=1), {}, "no credit left"),
    "the daily cap": ("anthropic", Reply(answer()), {"daily_cap_usd": 0.0001}, "a day"),
    "the monthly cap": ("command", Reply(answer()), {"monthly_cap_usd": 0.005}, "a month"),
}


# Asking again later may help; otherwise the rules serve the task at once.
TEMPORARY = ("says nothing", "is busy", "is broken", "a program fails")


@pytest.fixture
def unread(shop: Workshop) -> Workshop:
    """A shop with a file, a line that a person added to it, and two tasks that nobody has read yet."""
    with shop.open() as memory:
        memory.debrief("task_1", f"{lesson(1)}.", result="done")
        memory.file.update()
        shop.append("Ask Anna before `vat.py` is touched.")
        for number in (2, 3):
            memory.debrief(f"task_{number}", f"{lesson(number)}.", result="done")
    return shop


@pytest.mark.parametrize("case", [case for case in FAILURES if not case.endswith(TEMPORARY)])
def test_where_a_model_gives_no_usable_answer_or_may_not_be_asked_the_rules_serve_the_task(
    unread: Workshop, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = unread
    provider, reply, settings, reason = FAILURES[case]

    with Model(provider, shop.folder.parent, monkeypatch, reply, **settings):
        told = shop.update()

    assert "2 tasks read without the model: " in told
    assert reason in told
    assert "Traceback" not in told
    for words in (["history", "--internal"], ["status"], ["usage"]):
        assert reason in shop.learnt(*words).out, words
    assert {lesson(2), lesson(3), "Ask Anna before `vat.py` is touched."} <= set(shop.bullets)
    assert shop.everything()["left"] == []
    with Model(provider, shop.folder.parent, monkeypatch, answer(addition(2))) as asked:
        shop.update()
        assert asked.asked == [], "nothing is read twice"


@pytest.mark.parametrize("case", [case for case in FAILURES if case.endswith(TEMPORARY)])
def test_what_a_model_that_cannot_be_reached_should_have_read_waits_for_it(
    unread: Workshop, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = unread
    provider, reply, settings, reason = FAILURES[case]
    before = shop.everything()

    with Model(provider, shop.folder.parent, monkeypatch, reply, **settings):
        told = shop.update()

    assert "2 tasks waiting for the model: " in told
    for words in (["history", "--internal"], ["status"], ["usage"]):
        assert reason in shop.learnt(*words).out, words
    assert "Ask Anna before `vat.py` is touched." in shop.bullets, "the file is written"
    assert not {lesson(2), lesson(3)} & set(shop.all())
    assert shop.everything()["left"] == before["left"]
    with Model(provider, shop.folder.parent, monkeypatch, answer(addition(2)), answer()) as asked:
        for name in settings:
            monkeypatch.delenv(f"LEARNT_MODEL_{name.upper()}")
        shop.update()
        assert len(asked.asked) == 2
    assert shown(2) in shop.bullets
    assert shop.everything()["left"] == []


def test_a_task_waits_for_a_model_twice_and_then_the_rules_serve_it(
    database: str, unread: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = unread
    with Model("command", shop.folder.parent, monkeypatch, Reply("no network", status=1)) as asked:
        assert "2 tasks waiting for the model: " in shop.update()
        assert len(asked.asked) == 2, "it is asked about the first task, and once more, but not about the second"
        assert "2 tasks waiting for the model: " in shop.update()
        told = shop.update()
    assert "2 tasks read without the model: " in told
    assert {lesson(2), lesson(3)} <= set(shop.bullets)
    assert shop.everything()["left"] == []


def test_an_answer_that_is_no_json_costs_that_task_only(
    database: str, shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = (answer(addition(1)), Reply("hm"), Reply("hm"), answer(addition(3)))
    with Model("command", shop.folder.parent, monkeypatch, *replies) as asked:
        finish(shop, range(1, 4))
        assert "1 task read without the model: " in shop.update()
        assert len(asked.asked) == 4
        shop.update()
        assert len(asked.asked) == 4, "no task is read again"
    assert set(shop.all()) == {addition(1)["title"], lesson(2), addition(3)["title"]}
    assert {shown(1), lesson(2), shown(3)} == set(shop.bullets)


def test_a_model_that_fails_in_the_background_disturbs_nobody_and_is_asked_again_after_as_many_tasks(
    database: str, shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Model("command", shop.folder.parent, monkeypatch, Reply("no credit left", status=1)):
        shop.done(range(1, 6))
        assert [one.result for one in shop.wait(1)] == ["unchanged"], "there is nothing to show yet"
        shop.done(range(6, 10))
        assert len(shop.made()) == 1
    assert "no credit left" in shop.learnt("status").out
    with Model("command", shop.folder.parent, monkeypatch, answer()) as asked:
        shop.done([10])
        assert [one.result for one in shop.wait(2)] == ["unchanged", "unchanged"]
        assert len(asked.asked) == 10


# In the background: one at a time, whatever happens to it

# Says who asked it, and answers when it may.
HELD = """
import os, sys, time
here = os.path.dirname(os.path.abspath(__file__))
sys.stdin.read()
with open(os.path.join(here, "new"), "w") as file: file.write(str(os.getppid()))
os.rename(os.path.join(here, "new"), os.path.join(here, "worker"))
patience = time.monotonic() + 60
while not os.path.exists(os.path.join(here, "over")) and time.monotonic() < patience: time.sleep(0.02)
print('{"changes": []}')
"""


class Held:
    """A model that keeps its worker waiting."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        folder.mkdir()
        (folder / "held.py").write_text(HELD)
        patch.setenv("LEARNT_MODEL_PROVIDER", "command")
        patch.setenv("LEARNT_MODEL_COMMAND", f"{sys.executable} {folder / 'held.py'}")

    def worker(self) -> int:
        """Wait until it is asked; return the process that asks."""
        until((self._folder / "worker").exists, "nobody asks the model")
        return int((self._folder / "worker").read_text())

    def answer(self) -> None:
        """Let it answer, now and from now on."""
        (self._folder / "over").touch()


@pytest.fixture
def held(project: Path, monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(project.parent / "held", monkeypatch)


def debriefed(shop: Workshop, number: int) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "learnt", "debrief", "--task", f"task_{number}", "--result", "done"]
    process = subprocess.Popen(words, cwd=shop.folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.stdin is not None
    process.stdin.write(f"{lesson(number)}.".encode())
    return process


def test_of_tasks_that_finish_at_the_same_moment_none_is_missed(database: str, shop: Workshop) -> None:
    finish(shop, range(1, 5))
    both = [debriefed(shop, number) for number in (5, 6)]
    for process in both:
        process.communicate()
        assert process.returncode == 0

    (made,) = shop.wait(1)

    assert (made.result, made.cause) == ("done", "count")
    assert made.tasks + shop.state().tasks_since >= 6
    finish(shop, range(7, 12))
    shop.wait(2)
    shop.update()
    assert set(map(lesson, range(1, 12))) == {title for title in shop.all() if "bin/check" in title}


@pytest.mark.soak
def test_tasks_that_finish_at_the_same_moment_never_leave_the_file_behind(
    database: str, shop: Workshop, share: Callable[[int], int]
) -> None:
    rounds = share(100)
    for first in range(1, 6 * rounds, 6):
        finish(shop, range(first, first + 4))
        for process in [debriefed(shop, number) for number in (first + 4, first + 5)]:
            process.communicate()
            assert process.returncode == 0
        with shop.open() as memory:
            until(lambda: not memory.file.state().is_due, "the file is left behind")
            until(lambda: not memory.file.is_updating(), "the worker does not end")
    shop.update("--window", str(6 * rounds))
    assert set(map(lesson, range(1, 6 * rounds + 1))) <= set(shop.all())
    print(f"{rounds} rounds, {len(shop.made())} makings")


def test_while_one_worker_runs_no_other_does_and_it_goes_on_with_what_was_done_meanwhile(
    database: str, shop: Workshop, held: Held
) -> None:
    finish(shop, range(1, 6))
    held.worker()

    assert shop.learnt("update").code == 3
    assert "being updated by another process" in shop.update("--dry-run", code=3)
    assert shop.learnt("clear").code == 3
    assert "learnings.md: being updated since " in shop.learnt("status").out
    assert "automatic: running" in shop.learnt("history", "--internal").out
    finish(shop, range(6, 11))
    assert len(shop.made()) == 1
    held.answer()

    shop.wait(2)
    assert shop.state().tasks_since == 0
    assert [one.cause for one in shop.made()] == ["count", "count"]
    assert shop.everything()["left"] == []


def test_a_worker_that_is_killed_leaves_all_as_it_was_and_the_next_one_goes_on(
    database: str, shop: Workshop, held: Held
) -> None:
    with shop.open() as memory:
        memory.add("Ask Anna before `vat.py` is touched")
    finish(shop, range(1, 5))
    before = shop.everything()
    finish(shop, range(5, 6))
    worker = held.worker()

    os.kill(worker, signal.SIGKILL)

    with shop.open() as memory:
        until(lambda: not memory.file.is_updating(), "the worker lives on")
    held.answer()
    after = shop.everything()
    assert {**after, "left": ()} == {**before, "left": ()}
    assert "failed: it was killed; 5 of 5 tasks since" in shop.learnt("status").out
    assert "automatic: failed: it was killed" in shop.learnt("history", "--internal").out
    assert "begun and never ended" in shop.learnt("usage").out
    finish(shop, range(6, 7))
    makings = shop.wait(2)
    assert [(one.result, one.reason) for one in makings] == [("failed", "it was killed"), ("done", "")]
    assert (shop.state().tasks_since, shop.everything()["left"]) == (0, [])


def test_a_worker_ends_at_its_time_limit(shop: Workshop, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEARNT_LEARNINGS_TIME_LIMIT_S", "1")
    finish(shop, range(1, 6))
    held.worker()

    (made,) = shop.wait(1)

    assert made.result == "unchanged"
    assert "no answer within" in made.reason
    assert not shop.path.exists()
    held.answer()


def test_what_a_model_does_in_our_name_starts_no_worker(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEARNT_INTERNAL", "1")
    finish(shop, range(1, 7))
    assert (shop.state().tasks_since, shop.made()) == (6, [])
    assert not (shop.folder / ".learnt" / "update.log").exists()
    monkeypatch.delenv("LEARNT_INTERNAL")
    finish(shop, range(7, 8))
    shop.wait(1)
    assert shop.state().tasks_since == 0


def test_a_file_that_cannot_be_written_costs_no_count_and_no_edit(shop: Workshop) -> None:
    finish(shop, range(1, 3))
    shop.path.mkdir()
    assert "learnings.md is not a file" in shop.update(code=2)
    shop.path.rmdir()
    assert shop.state().tasks_since == 0
    finish(shop, range(3, 8))
    shop.wait(2)
    assert lesson(7) in shop.text


# What agents are given of the file

GIVEN = {"none": (), "global_only": (1, 2, 3, 4), "task_group": (3, 4), "both": (1, 2, 3, 4)}


def block(prompt: str) -> str:
    """Return the part of a prompt that is the text of learnings files."""
    _, opening, rest = prompt.partition('<learnt-brief id="learnings">')
    return rest.partition("</learnt-brief>")[0] if opening else ""


@pytest.mark.parametrize("strategy", GIVEN)
def test_a_prompt_carries_the_files_that_the_strategy_names(
    shop: Workshop, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEARNT_LEARNINGS_INJECTION_STRATEGY", strategy)
    shop.done([1, 2])
    shop.done([3, 4], goal="fair")
    shop.update()
    with Memory.open(shop.folder) as memory:
        for learning in memory.learnings().learnings:
            memory.like(learning.id)
    shop.update()
    (shop.folder / "spec.md").write_text("Tills have drawers.")

    (task,) = shop.queue([5], goal="fair", spec="spec.md")
    preview = shop.learnt("task", "prompt", task).out
    shop.work()
    sent = (shop.folder / "prompt-5.txt").read_text()

    assert block(sent) == block(preview)
    assert [number for number in range(1, 5) if lesson(number) in block(sent)] == [*GIVEN[strategy]]
    assert "<!--" not in sent
    assert not GIVEN[strategy] or sent.index("Tills have drawers.") < sent.index(lesson(3))
    for number in GIVEN[strategy]:
        assert sent.count(lesson(number)) == 1, "what the file says, the brief does not repeat"
    (plain,) = shop.queue([6])
    alone = (1, 2) if strategy in ("task_group", "both") else GIVEN[strategy]
    prompt = block(shop.learnt("task", "prompt", plain).out)
    assert [number for number in range(1, 5) if lesson(number) in prompt] == [*alone]


def test_each_goal_has_a_file_with_a_window_of_its_own(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEARNT_LEARNINGS_INJECTION_STRATEGY", "both")
    monkeypatch.setenv("LEARNT_LEARNINGS_GOAL_WINDOW_SIZE", "1")
    shop.done([1, 2])
    shop.done([3, 4], goal="fair")
    shop.update()

    fair = shop.folder / ".learnt" / "learnings" / "fair.md"
    assert fair.read_text().startswith("# Learnings: fair\n")
    assert "(from 1 recent tasks)" in fair.read_text()
    assert [number for number in range(1, 5) if lesson(number) in fair.read_text()] == [4]
    assert [number for number in range(1, 5) if lesson(number) in shop.text] == [1, 2]
    assert shop.learnt("show", "--goal", "fair").out == fair.read_text()


def test_a_bullet_that_is_moved_to_another_file_changes_its_goal_and_is_not_hidden(
    database: str, shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEARNT_LEARNINGS_INJECTION_STRATEGY", "both")
    shop.done([1, 2])
    shop.done([3, 4], goal="fair")
    shop.update()
    fair = shop.folder / ".learnt" / "learnings" / "fair.md"
    line = shop.cut("bin/check2")
    with fair.open("a") as file:
        file.write(f"{line}\n")
    with shop.path.open("a") as file:
        file.write(f"{shop.cut('bin/check3', fair)}\n")

    shop.update()

    known = shop.all()
    moved = {number: (known[lesson(number)].goal, known[lesson(number)].status) for number in (2, 3)}
    assert moved == {2: ("fair", "active"), 3: ("", "active")}
    assert [lesson(2) in fair.read_text(), lesson(2) in shop.text] == [True, False]
    assert [lesson(3) in fair.read_text(), lesson(3) in shop.text] == [False, True]


def test_what_is_deleted_in_a_goals_file_that_is_not_written_any_more_stays(memory: Memory) -> None:
    memory.context.settings = memory.settings.replace(learnings_injection_strategy="both")
    learning = memory.add("Count the till at noon", goal="tills")
    memory.file.update()
    path = Path(memory.file.path("tills"))
    memory.context.settings = memory.settings.replace(learnings_injection_strategy="none")
    kept = [line for line in path.read_text().splitlines() if learning.id not in line]
    path.write_text("\n".join(kept))

    assert memory.file.update().taken == ()
    assert memory.get(learning.id).status == "active"


# What clients and git have kept of the past

CLIENTS = ("claude", "codex", "gemini", "opencode")


@pytest.mark.parametrize("client", CLIENTS)
def test_what_failed_and_what_worked_then_in_a_transcript_is_a_learning_with_its_evidence(
    shop: Workshop, client: str
) -> None:
    path = correction(client, shop.folder.parent / f"{client}.transcript", folder=shop.folder)

    done = shop.learnt("debrief", "--transcript", path)

    assert done.code == 0, done.err
    (learning,) = shop.all().values()
    assert f"learnt {learning.id}: {learning.title}" in done.out
    assert "`uv run pytest tests`" in learning.title
    assert (learning.origin, learning.status, learning.discovery) == ("agent", "active", "blocker")
    shown = shop.learnt("show", learning.id).out
    assert f"seen in {learning.task}  blocker" in shown
    assert "No module named pytest" in shown
    (seen,) = json.loads(shop.learnt("show", learning.id, "--json").out)["evidence"]
    assert (seen["failed"], seen["worked"]) == ("python -m pytest tests", "uv run pytest tests")

    again = shop.learnt("debrief", "--transcript", path)
    assert again.code == 2
    assert f"{path} has already been read" in again.err
    assert "hint: it will be read again once it has grown" in again.err
    assert len(shop.all()) == 1


def test_briefs_that_an_agent_repeats_are_not_learnt_again(shop: Workshop) -> None:
    shop.learn("Never run `bin/check` with `STAGE=prod`: it deletes the data")
    brief = shop.learnt("brief", "Run bin/check with STAGE=prod").out
    assert "Never run `bin/check`" in brief
    said = f"I was told:\n\n{brief}\n\nI go on."
    path = correction("claude", shop.folder.parent / "s-1.jsonl", folder=shop.folder, prompt=brief, said=said)

    assert shop.learnt("debrief", "--transcript", path).code == 0

    assert [title for title in shop.all() if "bin/check" in title] == [
        "Never run `bin/check` with `STAGE=prod`: it deletes the data"
    ]
    assert shop.all()["Never run `bin/check` with `STAGE=prod`: it deletes the data"].recurrences == 0


def reverted(shop: Workshop) -> None:
    """Give the project a history in which something was taken back."""
    shop.versioned()
    for text in ("Round prices in the cache", 'Revert "Round prices in the cache"'):
        (shop.folder / "price.py").write_text(f"# {text}\n")
        shop.git("add", "price.py")
        body = "" if text.startswith("Round") else "Rounded prices broke the `vat` report, because it sums them again."
        shop.git("commit", "-q", "-m", text, "-m", body)


def test_the_past_is_read_once_from_all_clients_and_from_git(shop: Workshop, home: Path) -> None:
    paths = kept_at_home(home, shop.folder)
    reverted(shop)

    preview = shop.learnt("learn", "--since", "30d", "--dry-run").out
    assert all(path in preview for path in paths)
    assert "3 transcripts and 3 commits to read." in preview
    assert shop.all() == {}
    done = shop.learnt("learn", "--since", "30d")

    assert done.code == 0, done.err
    assert "Read 6 of 6 transcripts and commits." in done.out
    titles = sorted(shop.all())
    assert len(titles) == 2, "what all clients saw is one learning"
    assert titles[0].startswith("Do not redo “Round prices in the cache”: Rounded prices broke the `vat` report")
    assert "`uv run pytest tests`" in titles[1]
    assert shop.all()[titles[1]].recurrences == 2
    again = json.loads(shop.learnt("learn", "--dry-run", "--json").out)
    assert (again["transcripts"], again["read_before"], again["commits"]) == ([], 3, 0)
    assert shop.learnt("learn", "--since", "soon").code == 2


def test_before_a_model_is_paid_for_the_past_a_person_is_asked(
    shop: Workshop, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_at_home(home, shop.folder)
    with Model("command", shop.folder.parent, monkeypatch, answer(addition(1)), answer()) as asked:
        told = "3 transcripts and 0 commits to read; 3 model calls, about $0.03."
        assert told in shop.learnt("learn", "--dry-run").out
        refused = shop.learnt("learn")
        assert refused.code == 2
        assert told in refused.err
        assert "--yes" in refused.err
        code, screen = Terminal(shop.folder).run("learn", typed="n\n")
        assert code == 2
        assert f"{told} Go on? [y/N]" in screen
        assert asked.asked == []
        code, screen = Terminal(shop.folder).run("learn", typed="y\n")
        assert code == 0
        assert "reading" in screen
        assert "Read 3 of 3" in screen
        assert len(asked.asked) == 3
        assert shop.learnt("learn", "--yes").code == 0
        assert len(asked.asked) == 3, "there is nothing left to read"
    assert list(shop.all()) == [addition(1)["title"]]


def test_of_the_past_only_what_a_model_has_read_counts_as_read(
    shop: Workshop, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_at_home(home, shop.folder)
    with Model("command", shop.folder.parent, monkeypatch, answer(addition(1)), Reply("no credit", status=1)):
        done = shop.learnt("learn", "--yes")
        assert "Read 1 of 3" in done.out
        assert "no credit" in done.err
    with Model("command", shop.folder.parent, monkeypatch, answer()) as asked:
        assert shop.learnt("learn", "--yes").code == 0
        assert len(asked.asked) == 2
