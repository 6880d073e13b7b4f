"""What checks and reviewers rejected: the rule is learnt in words, and unfinished code teaches nothing."""

from __future__ import annotations

from learnt.clients.kit.transcript import Step
from learnt.mine.extract import LearningDraft, extract
from learnt.mine.norms import states_rule
from learnt.mine.quality import find_flaw
from learnt.mine.rejections import observe_rejections
from learnt.model import Discovery
from tests.support.rejections import CHECKS, REVIEWS, SENTENCES, CheckCase, Happened, ReviewCase

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
        return observe_rejections(self.steps, folder=FOLDER)


def converse(case: CheckCase) -> list[Discovery]:
    conversation = Conversation()
    conversation.call("run", case.command, output=f"Exit code 1\n{case.output}", failed=True)
    for event in case.happened:
        conversation.happen(event)
    last = case.happened[-1]
    is_changed = len(last) == 2 and case.command.startswith("git commit")
    conversation.call("run", last[1] if is_changed else case.command, output="ok")
    return conversation.learn()


def drafts(found: list[Discovery]) -> list[LearningDraft]:
    drafted = [extract(discovery) for discovery in found]
    return [draft for draft in drafted if isinstance(draft, LearningDraft) and not find_flaw(draft)]


def says(draft: LearningDraft, must: tuple[str, ...]) -> bool:
    text = f"{draft.title} {draft.action} {draft.observation}".lower()
    return all(any(word in text for word in words.split("|")) for words in must)


def name(case: CheckCase | ReviewCase) -> str:
    text = f"{case.command}: {case.output}" if isinstance(case, CheckCase) else case.text
    return " ".join(text.split())[:120]


def test_what_a_check_demands_is_learnt_with_what_fulfilled_it() -> None:
    found = {case: drafts(converse(case)) for case in CHECKS if case.must}
    wrong = {
        name(case): learnt
        for case, learnt in found.items()
        if not any(says(draft, case.must) for draft in learnt) or not all(draft.action for draft in learnt)
    }
    assert wrong == {}


def test_unfinished_code_and_mishaps_teach_nothing() -> None:
    assert {name(case): found for case in CHECKS if not case.must and (found := converse(case))} == {}


def test_a_check_that_still_fails_has_not_accepted_anything() -> None:
    wrong = {}
    for case in CHECKS:
        if case.must and len(case.happened[0]) == 3:
            conversation = Conversation()
            conversation.call("run", case.command, output=case.output, failed=True)
            for event in case.happened:
                conversation.happen(event)
            conversation.call("run", case.command, output=case.output, failed=True)
            if found := conversation.learn():
                wrong[name(case)] = found
    assert wrong == {}


def test_a_rule_that_a_reviewer_states_is_learnt_when_it_was_heeded() -> None:
    found = {case: drafts(observe_rejections([Step(kind="said", text=case.text)])) for case in REVIEWS if case.must}
    wrong = {
        name(case): learnt for case, learnt in found.items() if not any(says(draft, case.must) for draft in learnt)
    }
    assert wrong == {}


def test_a_remark_on_one_place_teaches_nothing() -> None:
    others = [case for case in REVIEWS if not case.must]
    wrong = {name(case): found for case in others if (found := observe_rejections([Step(kind="said", text=case.text)]))}
    assert wrong == {}


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
    assert "rejected a change in `billing/stripe.py`" in found.observed


def test_what_was_fixed_is_not_said_as_if_it_were_true() -> None:
    case = next(case for case in CHECKS if "not listed in .env.example" in case.output)

    (draft,) = drafts(converse(case))

    assert draft.title.startswith("Change `.env.example` as well")


def test_a_rule_in_general_is_told_from_a_remark_on_one_case() -> None:
    assert {sentence: is_rule for sentence, is_rule in SENTENCES.items() if states_rule(sentence) is not is_rule} == {}
