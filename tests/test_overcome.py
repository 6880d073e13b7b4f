"""What is learnt from conversations in which something went wrong and then worked, over many programs."""

from __future__ import annotations

from functools import cache

from learnt.mine.extract import LearningDraft
from learnt.model import TITLE_LIMIT
from tests.support.overcome import read_table

CASES = read_table()
LESSONS = [case for case in CASES if case.teaches]
OTHERS = [case for case in CASES if not case.teaches]


@cache
def learn_all() -> dict[str, list[LearningDraft]]:
    """Return what is learnt from each conversation, by its name."""
    return {case.name: case.learn() for case in CASES}


def is_in_whole_sentences(draft: LearningDraft) -> bool:
    return (
        len(draft.title) <= TITLE_LIMIT
        and not draft.title.endswith(("…", ":", ","))
        and draft.title.count("`") % 2 == 0
        and draft.observation.endswith((".", "!"))
        and " failed: " in draft.observation
        and draft.action.startswith(("Use ", "Run ", "Set "))
        and bool(draft.triggers.commands)
    )


def test_the_table_has_lessons_and_what_teaches_nothing() -> None:
    assert len(LESSONS) >= 80
    assert len(OTHERS) >= 40
    assert len({case.name for case in CASES}) == len(CASES)


def test_what_went_wrong_and_then_worked_is_learnt() -> None:
    drafts = {case: learn_all()[case.name] for case in LESSONS}
    wrong = {
        case.name: [draft.title for draft in learnt]
        for case, learnt in drafts.items()
        if not learnt or not all(case.fits(draft) for draft in learnt)
    }
    assert wrong == {}


def test_a_matter_of_one_moment_or_of_unfinished_code_teaches_nothing() -> None:
    wrong = {
        case.name: titles
        for case in OTHERS
        if (titles := [draft.title for draft in learn_all()[case.name] if not case.allows(draft)])
    }
    assert wrong == {}


def test_a_lesson_is_put_in_whole_sentences() -> None:
    wrong = [
        (case.name, draft) for case in LESSONS for draft in learn_all()[case.name] if not is_in_whole_sentences(draft)
    ]
    assert wrong == []
