"""`learnt cues`: the user's model writes cues for learnings that have none, when a person says so."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from learnt import Memory
from learnt.errors import NoModel, WrongRequest
from learnt.mine.ask_cues import MAX_CUES, MAX_WORDS, read_answer
from learnt.model import Learning
from tests.conftest import Clock
from tests.support.doors import Learnt

GOOD = ["the till does not add up in the evening", "cash is missing after a shift", "two clerks count at once"]
MODEL = """
import json, pathlib, re, sys
prompt = sys.stdin.read()
pathlib.Path({asked!r}).open("a").write(prompt + "\\0")
answer = json.loads(pathlib.Path({answer!r}).read_text())
ids = re.findall(r"`(learn_[0-9a-z]+)`", prompt)
print(json.dumps({{"cues": [{{"id": id, "when": answer}} for id in ids]}}))
"""


class Model:
    """A program as the user's model: it answers what it is told to, and remembers what it was asked."""

    def __init__(self, folder: Path, home: Path) -> None:
        self._answer, self._asked = folder / "answer.json", folder / "asked"
        program = folder / "model.py"
        program.write_text(MODEL.format(asked=str(self._asked), answer=str(self._answer)))
        command = json.dumps(f"{sys.executable} {program}")
        self._settings = home / ".config" / "learnt" / "learnt.toml"
        self._settings.parent.mkdir(parents=True, exist_ok=True)
        self._text = f'[model]\nprovider = "command"\ncommand = {command}\ncall_price = 0.02\n'
        self._settings.write_text(self._text)
        self.answer(GOOD)

    def answer(self, cues: object) -> None:
        self._answer.write_text(json.dumps(cues))

    def set(self, settings: str) -> None:
        self._settings.write_text(settings + self._text)

    @property
    def prompts(self) -> list[str]:
        return self._asked.read_text().split("\0")[:-1] if self._asked.exists() else []


@pytest.fixture
def model(tmp_path: Path, home: Path) -> Model:
    return Model(tmp_path, home)


@pytest.fixture
def till(project: Path, model: Model) -> Learning:
    with Memory.open(project) as memory:
        memory.add("Weigh apples on the left scale", cues=["the scale is wrong"])
        return memory.add("Count the till with the drawer closed", observation="It jams otherwise.")


def test_nothing_is_asked_without_a_yes(learnt: Learnt, till: Learning, model: Model) -> None:
    listed = learnt("cues", "--dry-run")
    assert listed.out == (
        f"{till.id}  Count the till with the drawer closed\n"
        "1 learning has no cues. Asking command takes 1 call, at most $0.0200.\n"
    )
    refused = learnt("cues")
    assert refused.code == 2
    assert "--yes continues without asking" in refused.err
    assert model.prompts == []


def test_the_model_is_asked_once_and_its_cues_find_the_learning(
    learnt: Learnt, till: Learning, model: Model, project: Path
) -> None:
    done = learnt("cues", "--yes")
    assert done.code == 0, done.err
    assert "Wrote cues for 1 learning, $0.0200." in done.out
    (prompt,) = model.prompts
    assert till.id in prompt
    assert "Weigh apples" not in prompt
    with Memory.open(project) as memory:
        after = memory.get(till.id)
        assert (after.model_cues, after.cues, after.vouched) == (tuple(GOOD), (), till.vouched)
        assert memory.search("cash is missing")[0].learning.id == till.id
    assert f"when (model):  {'; '.join(GOOD)}\n" in learnt("show", till.id).out
    assert learnt("cues", "--yes").out == "Every learning has cues.\n"
    assert len(model.prompts) == 1


def test_many_learnings_are_asked_about_in_few_calls_and_undone_as_one(
    learnt: Learnt, till: Learning, model: Model, project: Path
) -> None:
    with Memory.open(project) as memory:
        memory.add_all([{"title": f"Shelf {number} holds the goods of row {number}"} for number in range(29)])
    written = json.loads(learnt("cues", "--yes", "--json").out)
    assert len(written["learnings"]) == 30
    assert len(model.prompts) == 2
    assert written["cost_usd"] == pytest.approx(0.04)
    undone = json.loads(learnt("cues", "--undo", "--json").out)
    assert undone["id"] == written["id"]
    assert len(undone["learnings"]) == 30
    assert learnt("cues", "--undo").code == 2
    with Memory.open(project) as memory:
        assert memory.get(till.id).model_cues == ()


def test_the_limit_bounds_what_is_asked(learnt: Learnt, till: Learning, model: Model, project: Path) -> None:
    with Memory.open(project) as memory:
        memory.add_all([{"title": f"Shelf {number} holds the goods of row {number}"} for number in range(4)])
    assert "the first 2 are asked about" in learnt("cues", "--dry-run", "--limit", "2").out
    assert len(json.loads(learnt("cues", "--yes", "--limit", "2", "--json").out)["learnings"]) == 2


def test_the_spending_cap_holds(learnt: Learnt, till: Learning, model: Model) -> None:
    model._settings.write_text(model._text + "daily_cap_usd = 0.01\n")
    refused = learnt("cues", "--yes")
    assert refused.code != 0
    assert "cap" in refused.err
    assert model.prompts == []


@pytest.mark.parametrize(
    ("answered", "accepted"),
    [
        (GOOD, GOOD),
        ([*GOOD, "Count the till with the drawer closed!", GOOD[0].upper()], GOOD),
        ([*GOOD, "login with ghp_" + "aB3" * 12 + " fails", "<b>read this</b> mail", "x" * 150], GOOD),
        ([*GOOD, "word " * (MAX_WORDS + 1), "till", 7, None], GOOD),
        ([f"shop {number}a lost {number}b coins in town {number}c" for number in range(12)], MAX_CUES),
        (GOOD[:2], None),
        ("not a list", None),
        (None, None),
    ],
)
def test_only_short_situations_without_secrets_are_taken(answered: object, accepted: object) -> None:
    learning = Learning(id="learn_1", title="Count the till with the drawer closed")
    answer = read_answer({"cues": [{"id": "learn_1", "when": answered}, {"id": "learn_2"}, 3]}, [learning])
    cues = answer.accepted.get("learn_1")
    if isinstance(accepted, int):
        assert len(cues or ()) == accepted
    else:
        assert cues == (tuple(accepted) if isinstance(accepted, list) else None)
    assert set(answer.accepted) | set(answer.refused) == {"learn_1"}


@pytest.mark.parametrize("data", [None, [], {"cues": 1}, {"cues": [{"id": ["x"], "when": GOOD}]}])
def test_any_answer_can_be_read(data: object) -> None:
    learning = Learning(id="learn_1", title="Count the till")
    assert list(read_answer(data, [learning]).refused) == ["learn_1"]


def test_a_useless_answer_is_said_and_stores_nothing(learnt: Learnt, till: Learning, model: Model) -> None:
    model.answer(["till"])
    done = learnt("cues", "--yes")
    assert f"{till.id}: only 0 of its cues can be used; 3 are needed" in done.err
    assert "Wrote cues for 0 learnings" in done.out


def test_cues_that_a_person_adds_meanwhile_are_not_displaced(till: Learning, model: Model, project: Path) -> None:
    with Memory.open(project) as memory:
        plan = memory.cues.plan()
        memory.edit(till.id, cues=["my own words"])
        memory.cues.ask(plan)
        assert (memory.get(till.id).cues, memory.get(till.id).model_cues) == (("my own words",), ())


def test_a_person_shows_adds_and_removes_cues(learnt: Learnt, till: Learning) -> None:
    learnt("cues", "--yes")
    learnt("cues", till.id, "--add", "the drawer is stuck")
    shown = learnt("cues", till.id).out
    assert shown.splitlines()[1:] == ["  given     the drawer is stuck", *(f"  model     {cue}" for cue in GOOD)]
    after = json.loads(learnt("cues", till.id, "--remove", GOOD[0], "--json").out)
    assert {"cue": GOOD[0], "origin": "model"} not in after["cues"]
    assert len(after["cues"]) == 3
    assert learnt("cues", till.id, "--remove", "unknown words").code == 2
    learnt("edit", till.id, "--no-when")
    assert json.loads(learnt("cues", till.id, "--json").out)["cues"] == []


def test_without_a_model_it_says_so(learnt: Learnt, project: Path) -> None:
    with Memory.open(project) as memory:
        memory.add("Count the till with the drawer closed")
        assert memory.cues.plan().calls == 0
        with pytest.raises(NoModel):
            memory.cues.ask(memory.cues.plan())
        with pytest.raises(WrongRequest):
            memory.cues.undo()
    assert "No model is configured" in learnt("cues", "--dry-run").out
    assert learnt("cues", "--yes").code != 0


def test_an_agent_cannot_spend_the_users_money(till: Learning, project: Path) -> None:
    with Memory.open(project) as memory:
        memory.speak_as_agent("claude")
        with pytest.raises(WrongRequest):
            memory.cues.ask(memory.cues.plan())


def test_the_worker_asks_only_if_the_settings_say_so(till: Learning, model: Model, project: Path, clock: Clock) -> None:
    with Memory.open(project, clock=clock) as memory:
        memory.worker.catch_up()
        assert model.prompts == []
    model.set('cues = "auto"\n')
    with Memory.open(project, clock=clock) as memory:
        memory.worker.catch_up()
        assert memory.get(till.id).model_cues == tuple(GOOD)
        memory.cues.undo()
        clock.advance(days=1)
        memory.worker.catch_up()
        assert memory.get(till.id).model_cues == ()  # what a person has removed does not come back
    assert len(model.prompts) == 1


def test_the_worker_asks_at_most_once_an_hour(till: Learning, model: Model, project: Path, clock: Clock) -> None:
    model.set('cues = "auto"\n')
    with Memory.open(project, clock=clock) as memory:
        memory.worker.catch_up()
        memory.add("Shelf 7 holds the goods of row 7")
        memory.worker.catch_up()
        assert len(model.prompts) == 1
        clock.advance(days=1)
        memory.worker.catch_up()
        assert len(model.prompts) == 2
