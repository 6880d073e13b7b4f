"""Why a learning is in a brief or among the results of a search, and why another one is not."""

from __future__ import annotations

import json
import re

import pytest

from learnt import Memory, NotFound
from learnt.flow.briefs import SHOWN_BEFORE, SearchRequest
from learnt.flow.why import (
    FOUND,
    GIVEN,
    LEFT_OUT,
    NOT_CONSIDERED,
    NOT_FOUND,
    NOTHING_IN_COMMON,
    WhyNot,
)
from learnt.model import Brief, Learning
from learnt.recall import coefficients
from learnt.recall.reasons import estimate_again, list_reasons
from tests.conftest import Clock
from tests.support.doors import Learnt

PROMPT = "The till shows the wrong total after a shift. Please fix the drawer."


@pytest.fixture
def drawer(memory: Memory) -> Learning:
    return memory.add("Close the cash drawer under its lock", action="Take drawer_lock before close_drawer()")


@pytest.fixture
def prices(memory: Memory) -> Learning:
    return memory.add("Prices are integers in cents")


def ask(memory: Memory, brief: Brief, learning: Learning) -> WhyNot:
    """Ask from the stored receipt alone."""
    return memory.why.not_in_brief(memory.explain(brief.id), learning.id)


def test_a_receipt_keeps_the_figures_that_the_probability_comes_from(
    memory: Memory, drawer: Learning, prices: Learning
) -> None:
    brief = memory.brief(PROMPT)
    entries = {entry["id"]: entry for entry in memory.explain(brief.id).receipt["considered"]}
    for id in (drawer.id, prices.id):
        assert estimate_again(entries[id]["features"]) == pytest.approx(entries[id]["relevance"], abs=0.005)
    assert memory.why.is_as_sent(memory.explain(brief.id))


def test_what_was_given_says_what_spoke_for_it(memory: Memory, drawer: Learning, prices: Learning) -> None:
    answer = ask(memory, memory.brief(PROMPT), drawer)
    assert (answer.verdict, answer.remedies) == (GIVEN, ())
    assert answer.relevance is not None
    assert answer.relevance > answer.bar
    effects = {reason.name: reason.effect for reason in answer.reasons}
    assert effects["words"] > 0
    assert effects["self_meaning"] > 0
    assert answer.rival == prices.id


def test_the_proposed_cue_brings_the_learning_into_the_next_brief(
    memory: Memory, drawer: Learning, prices: Learning
) -> None:
    answer = ask(memory, memory.brief(PROMPT), prices)
    assert (answer.verdict, answer.reason) == (LEFT_OUT, "not relevant enough")
    assert answer.rival == drawer.id
    cue, trigger = answer.remedies[:2]
    assert cue.relevance is not None
    assert cue.relevance > answer.bar
    assert "learnt edit" in trigger.command
    (text,) = re.findall(r"--add '(.*)'", cue.command)
    memory.edit(prices.id, add_cues=[text])
    assert prices.id in memory.brief(PROMPT).learning_ids


def test_a_hidden_learning_was_not_considered_as_long_as_it_was_hidden(
    memory: Memory, drawer: Learning, clock: Clock
) -> None:
    memory.hide(drawer.id)
    hidden = memory.brief(PROMPT)
    memory.restore(drawer.id)
    shown = memory.brief(PROMPT)
    memory.archive(drawer.id)
    assert [ask(memory, brief, drawer).reason for brief in (hidden, shown)] == ["it was hidden", ""]
    assert ask(memory, shown, drawer).verdict == GIVEN
    assert ask(memory, memory.brief(PROMPT), drawer).remedies[0].command == f"learnt restore {drawer.id}"


def test_a_learning_from_after_the_brief_did_not_exist(memory: Memory) -> None:
    brief = memory.brief(PROMPT)
    later = memory.add("Close the cash drawer under its lock")
    answer = ask(memory, brief, later)
    assert (answer.verdict, answer.reason) == (NOT_CONSIDERED, "it did not exist yet")


def test_a_conversation_is_told_which_brief_gave_it_before(memory: Memory, drawer: Learning) -> None:
    first = memory.brief(PROMPT, task="task_1", task_type="session")
    second = memory.brief("Rename the invoices", task="task_1", only_new=True, task_type="session", keep=False)
    answer = memory.why.not_in_brief(second, drawer.id)
    assert answer.reason.startswith(SHOWN_BEFORE)
    assert first.id in answer.reason or answer.verdict == LEFT_OUT


def test_what_a_conversation_taught_itself_is_named_as_such(memory: Memory) -> None:
    memory.brief("start", task="task_1", task_type="session")
    debrief = memory.debrief("task_1", "<learning category='pitfall'>Cache the schema of the replica</learning>")
    learning = memory.get(debrief.learnings[0])
    for text in ("cache the schema of the replica", "paint the fence"):
        answer = ask(memory, memory.brief(text, task="task_1"), learning)
        assert answer.reason == "learnt in this very conversation"


def test_excluded_goals_and_tasks_without_learnings_are_named(memory: Memory) -> None:
    learning = memory.add("Close the cash drawer under its lock", goal="till")
    brief = memory.brief(PROMPT, exclude_goal="till")
    assert ask(memory, brief, learning).reason == "learnings of the goal till were excluded"
    task = memory.tasks.add("Fix the drawer", skip_learnings=True)
    assert ask(memory, memory.brief(PROMPT, task=task.id), learning).reason == "the task takes no learnings"


def test_a_category_of_other_roles_is_named(memory: Memory, learnt: Learnt) -> None:
    root = memory.root
    like, unlike = (memory.add(title, category="windows") for title in ("Wash the shop window", "zzyzx qwrtp"))
    memory.add("Close the drawer", category="tills")
    memory.close()
    with open(f"{root}/learnt.toml", "a", encoding="utf-8") as file:
        file.write('[agents.cleaner]\ncategories = ["windows"]\n[agents.cashier]\ncategories = ["tills"]\n')
    with Memory.open(root) as again:
        brief = again.brief("Count the cash in the shop", agent="cashier")
        answers = [ask(again, brief, learning) for learning in (like, unlike)]
    assert [answer.verdict for answer in answers] == [LEFT_OUT, NOT_CONSIDERED]
    assert {answer.reason for answer in answers} == {"not in the categories of cashier"}


def test_a_learning_without_anything_in_common_is_measured_now(memory: Memory, drawer: Learning) -> None:
    strange = memory.add("zzyzx qwrtp")
    answer = ask(memory, memory.brief(PROMPT), strange)
    assert (answer.verdict, answer.reason) == (NOT_CONSIDERED, NOTHING_IN_COMMON)
    assert answer.is_measured_now


def test_receipts_without_figures_are_explained_by_a_new_search(memory: Memory, drawer: Learning) -> None:
    brief = memory.brief(PROMPT)
    entries = [{**entry} for entry in brief.receipt["considered"]]
    for entry in entries:
        del entry["features"]
    old = brief.replace(receipt={**brief.receipt, "considered": entries})
    answer = memory.why.not_in_brief(old, drawer.id)
    assert answer.is_measured_now
    assert answer.relevance == entries[0]["relevance"]
    assert {reason.name for reason in answer.reasons} >= {"words", "margin"}


def test_a_search_says_which_option_leaves_a_learning_out(memory: Memory, drawer: Learning, prices: Learning) -> None:
    request = SearchRequest(query="close the drawer")
    found = memory.why.not_in_search(request, drawer.id)
    assert (found.verdict, found.reason) == (FOUND, "in place 1")
    memory.hide(drawer.id)
    hidden = memory.why.not_in_search(request, drawer.id)
    assert (hidden.verdict, hidden.reason) == (NOT_FOUND, "it is hidden: `--status hidden` finds it")
    assert hidden.relevance
    other = memory.why.not_in_search(request.replace(category="tills"), prices.id)
    assert other.reason == "its category is empty, not tills"


def test_the_effects_are_differences_of_the_probability() -> None:
    figures = {"words": 1.2, "rarest": 0.7, "meaning": 0.5, "self_meaning": 0.4, "cued": True, "margin": -1.0}
    effects = {reason.name: reason.effect for reason in list_reasons(figures)}
    without = estimate_again({**figures, "words": 0.0, "margin": -1.0 - coefficients.WORDS * 1.2})
    assert effects["words"] == pytest.approx(estimate_again(figures) - without)
    assert effects["cued"] < 0
    assert effects["margin"] < 0
    assert effects["trigger"] == 0


def test_people_read_a_short_table(sqlite_memory: Memory, learnt: Learnt) -> None:
    learnt("add", "Close the cash drawer under its lock")
    prices = learnt("add", "Prices are integers in cents").out.split()[1].rstrip(":")
    brief = json.loads(learnt("brief", PROMPT, "--json").out)["id"]
    told = learnt("explain", brief, "--why-not", prices).out
    assert f"left out in {brief}: not relevant enough" in told
    assert re.search(r"words in common +0\.00 +\+0\.00", told)
    assert f"`learnt cues {prices} --add" in told
    record = json.loads(learnt("explain", brief, "--why-not", prices, "--json").out)
    assert (record["id"], record["verdict"]) == (prices, "left out")
    assert {reason["name"] for reason in record["reasons"]} >= {"words", "rarest", "self_meaning", "margin"}
    assert "because: " in learnt("explain", brief).out
    assert "a brief's bar of" in learnt("search", "drawer", "--why").out
    assert "features" in json.loads(learnt("search", "drawer", "--json").out)[0]
    assert "others match better" in learnt("search", "drawer", "--limit", "1", "--why-not", prices).out
    assert NOTHING_IN_COMMON in learnt("search", "drawer", "--why-not", prices).out
    assert learnt("explain", brief, "--why-not", "learn_none").code != 0
    assert learnt("explain", brief, "--why-not", prices, "--replay").code == 2


def test_an_unknown_learning_is_an_error(memory: Memory) -> None:
    with pytest.raises(NotFound):
        memory.why.not_in_brief(memory.brief(PROMPT), "learn_none")
