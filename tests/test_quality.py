"""What is no learning, and what is one although it is short or plain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnt.mine.extract import LearningDraft
from learnt.mine.quality import find_flaw, find_flaw_in


@pytest.mark.parametrize(
    ("title", "reason"),
    [
        ("On 2026-03-04 the build of the shop failed", "incident"),
        ("Commit 3f9a2b1c broke the totals of the cart", "incident"),
        ("See /home/ada/notes for how prices are rounded", "incident"),
        ("Pull request #123 changed how prices are rounded", "incident"),
        ("Rename the variable in line 42 of the cart module", "narrow"),
        ("The null check in shop/cart.py:12 is inverted", "narrow"),
        ("Fix it", "vague"),
        ("Various things broke when something was changed", "vague"),
        ("Write more tests for new code", "platitude"),
        ("Follow the documented naming conventions", "platitude"),
        ("Be careful when changing the code", "platitude"),
        ("Handle all errors properly in new code", "platitude"),
        ("All tests pass after the change", "present state"),
        ("The file shop.py contains the totals of the cart", "present state"),
        ("I have added a discount to the cart", "present state"),
        ("Implemented the discount for bundles", "present state"),
        ("`…` with `<n>`, not as before", "incident"),
        ("Use the right configuration for the environment", "platitude"),
        ("Make code better and faster in general", "platitude"),
        ("The project uses Python 3.12 and pytest", "present state"),
        ("Login bug was caused by a null session in the handler", "incident"),
        ("`dupl` rejects: lines are duplicate of `…`", "vague"),
        ("`gh api` with `repos/…/comments`, not `repos/…/comments`", "vague"),
    ],
)
def test_what_is_no_learning_is_refused_with_a_reason(title: str, reason: str) -> None:
    assert reason in find_flaw(LearningDraft(title=title))


@pytest.mark.parametrize(
    "title",
    [
        "Run `uv run pytest`, not `python -m pytest`: No module named pytest",
        "Close the cursor before the commit",
        "`errcheck` rejects: Error return value of `…` is not checked",
        "Run `make fixtures` before the tests of the shop: they read its database",
        "Prices are integers of cents in every table; convert at the door only",
        "The API has a rate limit of 100 requests per minute",
        "The project uses pnpm, not npm",
        "Use pnpm",
        "`src/orders/total.py` does not exist: it is in `src/prices`",
        "Follow the conventions of `docs/naming.md` for new tables: the linter reads them",
    ],
)
def test_a_principle_that_can_be_acted_on_has_no_flaw(title: str) -> None:
    assert find_flaw(LearningDraft(title=title)) == ""


def test_advice_that_repeats_what_failed_is_a_flaw() -> None:
    assert find_flaw_in(
        title="Run `make all`, not `make`", observation="`make all` failed: no.", action="Use `make all`."
    )


@given(st.text(), st.text(), st.text())
def test_any_text_is_judged(title: str, observation: str, action: str) -> None:
    assert isinstance(find_flaw_in(title=title, observation=observation, action=action), str)
