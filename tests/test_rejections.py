"""What checks and reviewers rejected: the rule is learnt in words, and unfinished code teaches nothing."""

from __future__ import annotations

import pytest

from learnt.clients.kit.transcript import Step
from learnt.mine.extract import LearningDraft, extract
from learnt.mine.norms import states_rule
from learnt.mine.quality import find_flaw
from learnt.mine.rejections import observe_rejections
from learnt.model import Discovery
from tests.support.rejections import (
    NOT_TAUGHT_BY_CHECKS,
    NOT_TAUGHT_BY_REVIEWS,
    REMARKS,
    RULES,
    TAUGHT_BY_CHECKS,
    TAUGHT_BY_REVIEWS,
    CheckCase,
    Happened,
    ReviewCase,
)

FOLDER = "/srv/shop"


class Conversation:
    """The steps of a conversation."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def call(
        self, does: str, text: str, *, path: str = "", before: str = "", output: str = "", failed: bool = False
    ) -> None:
        id = f"call_{len(self.steps)}"
        self.steps.append(Step(kind="call", call=id, tool=does, does=does, text=text, path=path, before=before))
        self.steps.append(Step(kind="result", call=id, tool=does, text=output, failed=failed))

    def happen(self, happened: Happened) -> None:
        if len(happened) == 1:
            self.steps.append(Step(kind="said", text=happened[0]))
        elif len(happened) == 2:
            self.call("run", happened[1])
        else:
            path, before, after = happened
            self.call("edit", after, path=f"{FOLDER}/{path}", before=before, output="The file has been updated.")

    def learn(self) -> list[Discovery]:
        return list(observe_rejections(self.steps, folder=FOLDER))


def converse(case: CheckCase) -> list[Discovery]:
    command, output, happened, _ = case
    conversation = Conversation()
    conversation.call("run", command, output=f"Exit code 1\n{output}", failed=True)
    for event in happened:
        conversation.happen(event)
    last = happened[-1]
    conversation.call("run", last[1] if len(last) == 2 and command.startswith("git commit") else command, output="ok")
    return conversation.learn()


def drafts(found: list[Discovery]) -> list[LearningDraft]:
    drafted = [extract(discovery) for discovery in found]
    return [draft for draft in drafted if isinstance(draft, LearningDraft) and not find_flaw(draft)]


def says(draft: LearningDraft, must: tuple[str, ...]) -> bool:
    text = f"{draft.title} {draft.action} {draft.observation}".lower()
    return all(any(word in text for word in words.split("|")) for words in must)


def name(case: CheckCase | ReviewCase) -> str:
    return " ".join(case[0].split())[:40]


@pytest.mark.parametrize("case", TAUGHT_BY_CHECKS, ids=name)
def test_what_a_check_demands_is_learnt_with_what_fulfilled_it(case: CheckCase) -> None:
    learnt = drafts(converse(case))

    assert any(says(draft, case[3]) for draft in learnt), learnt
    assert all(draft.action for draft in learnt)


@pytest.mark.parametrize("case", NOT_TAUGHT_BY_CHECKS, ids=name)
def test_unfinished_code_and_mishaps_teach_nothing(case: CheckCase) -> None:
    assert converse(case) == []


@pytest.mark.parametrize("case", [case for case in TAUGHT_BY_CHECKS if len(case[2][0]) == 3], ids=name)
def test_a_check_that_still_fails_has_not_accepted_anything(case: CheckCase) -> None:
    command, output, happened, _ = case
    conversation = Conversation()
    conversation.call("run", command, output=output, failed=True)
    for event in happened:
        conversation.happen(event)
    conversation.call("run", command, output=output, failed=True)

    assert conversation.learn() == []


@pytest.mark.parametrize("case", TAUGHT_BY_REVIEWS, ids=name)
def test_a_rule_that_a_reviewer_states_is_learnt_when_it_was_heeded(case: ReviewCase) -> None:
    review, must = case
    learnt = drafts(list(observe_rejections([Step(kind="said", text=review)])))

    assert any(says(draft, must) for draft in learnt), learnt


@pytest.mark.parametrize("case", NOT_TAUGHT_BY_REVIEWS, ids=name)
def test_a_remark_on_one_place_teaches_nothing(case: ReviewCase) -> None:
    assert list(observe_rejections([Step(kind="said", text=case[0])])) == []


def test_a_review_that_a_person_pastes_counts_once_its_file_was_changed() -> None:
    review = (
        "Please fix what the review found:\n\n1. [high] `billing/stripe.py:88`: the handler books twice. Webhook "
        "handlers "
        "must be idempotent.\n2. [nit] `billing/cart.py:3`: typo."
    )
    conversation = Conversation()
    conversation.steps.append(Step(kind="prompt", text=review))
    conversation.steps.append(Step(kind="said", text="I look at it."))
    assert conversation.learn() == []
    conversation.happen(("billing/stripe.py", "book(event)", "book_once(event)"))
    conversation.steps.append(Step(kind="said", text="Both are fixed."))

    (found,) = conversation.learn()

    assert found.text == "Webhook handlers must be idempotent"
    assert found.files == ("billing/stripe.py",)
    assert "rejected a change in `billing/stripe.py`" in found.excerpt


def test_what_was_fixed_is_not_said_as_if_it_were_true() -> None:
    case = next(case for case in TAUGHT_BY_CHECKS if "not listed in .env.example" in case[1])

    (draft,) = drafts(converse(case))

    assert draft.title.startswith("Change `.env.example` as well")


@pytest.mark.parametrize("sentence", RULES)
def test_a_rule_in_general_is_recognised(sentence: str) -> None:
    assert states_rule(sentence)


@pytest.mark.parametrize("sentence", REMARKS)
def test_a_remark_on_one_case_is_no_rule(sentence: str) -> None:
    assert not states_rule(sentence)
