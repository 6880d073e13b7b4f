"""What is learnt from conversations in which something went wrong and then worked, over many programs."""

from __future__ import annotations

import pytest

from learnt.model import TITLE_LIMIT
from tests.support.overcome import OvercomeError, read_table

CASES = read_table()
LESSONS = [case for case in CASES if case.teaches]
OTHERS = [case for case in CASES if not case.teaches]


def test_the_table_has_lessons_and_what_teaches_nothing() -> None:
    assert len(LESSONS) >= 80
    assert len(OTHERS) >= 40
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", LESSONS, ids=lambda case: case.name)
def test_what_went_wrong_and_then_worked_is_learnt(case: OvercomeError) -> None:
    drafts = case.learn()

    assert drafts
    assert all(case.fits(draft) for draft in drafts), [draft.title for draft in drafts]


@pytest.mark.parametrize("case", OTHERS, ids=lambda case: case.name)
def test_a_matter_of_one_moment_or_of_unfinished_code_teaches_nothing(case: OvercomeError) -> None:
    assert [draft.title for draft in case.learn() if not case.allows(draft)] == []


@pytest.mark.parametrize("case", LESSONS, ids=lambda case: case.name)
def test_a_lesson_is_put_in_whole_sentences(case: OvercomeError) -> None:
    for draft in case.learn():
        assert len(draft.title) <= TITLE_LIMIT
        assert not draft.title.endswith(("…", ":", ","))
        assert draft.title.count("`") % 2 == 0
        assert draft.observation.endswith((".", "!"))
        assert " failed: " in draft.observation
        assert draft.action.startswith(("Use ", "Run ", "Set "))
        assert draft.triggers.commands
