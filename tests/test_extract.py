"""Learnings made of discoveries: what they say, and when they are shown again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnt.mine.extract import LearningDraft, NoDraft, extract
from learnt.model import DISCOVERIES, TITLE_LIMIT, Discovery, Learning
from learnt.text.triggers import Situation, SituationMatcher

COMMAND = Discovery(
    type="blocker",
    rule="command",
    text="Run `uv run pytest`, not `python -m pytest`: No module named pytest",
    failed="python -m pytest",
    error="No module named pytest",
    worked="uv run pytest",
)
LINT = Discovery(
    type="constraint",
    rule="verification",
    text="`wrapcheck` rejects: error returned from external package is unwrapped",
    failed="make lint",
    error="error returned from external package is unwrapped (wrapcheck)",
    worked="`return wrap(err)` instead of `return err`",
    files=("shop/total.go",),
)
ELSEWHERE = Discovery(
    type="constraint",
    rule="call",
    text="`src/orders/total.py` does not exist: it is in `src/prices`",
    failed="src/orders/total.py",
    error="File does not exist",
    worked="src/prices/total.py",
    files=("src/prices/total.py",),
)


def drafted(discovery: Discovery) -> LearningDraft:
    draft = extract(discovery)
    assert isinstance(draft, LearningDraft)
    return draft


def shows(draft: LearningDraft, kind: str, situation: Situation) -> bool:
    matcher = SituationMatcher(situation)
    return any(matcher.matches(kind, pattern) for pattern in getattr(draft.triggers, kind))


def test_a_corrected_command_names_both_forms_and_the_error() -> None:
    draft = drafted(COMMAND)

    assert draft.title == "Run `uv run pytest`, not `python -m pytest`: No module named pytest"
    assert draft.observation == "`python -m pytest` failed: No module named pytest. `uv run pytest` worked."
    assert draft.action == "Use `uv run pytest`."
    assert (draft.kind, draft.category) == ("gotcha", "pytest")


def test_its_triggers_match_the_next_time() -> None:
    assert shows(drafted(COMMAND), "commands", Situation(command="python -m pytest -x tests/test_cart.py"))
    assert shows(drafted(COMMAND), "errors", Situation(text="/usr/bin/python3: No module named pytest"))
    assert shows(drafted(LINT), "commands", Situation(command="make lint"))
    assert shows(
        drafted(LINT),
        "errors",
        Situation(text="cart.go:7:2: error returned from external package is unwrapped: sig: func (wrapcheck)"),
    )
    assert shows(drafted(ELSEWHERE), "files", Situation(paths=("src/orders/total.py",)))


def test_they_do_not_match_something_else() -> None:
    assert not shows(drafted(COMMAND), "commands", Situation(command="ls -l"))
    assert not shows(drafted(LINT), "files", Situation(paths=("shop/total.go",)))
    assert not shows(drafted(ELSEWHERE), "files", Situation(paths=("README.md",)))


def test_a_rejected_edit_is_a_constraint_with_an_example() -> None:
    draft = drafted(LINT)

    assert draft.kind == "constraint"
    assert "`shop/total.go`" in draft.observation
    assert draft.action == "Write it so from the start, for example `return wrap(err)` instead of `return err`."


def test_an_exception_is_marked_with_its_reason() -> None:
    draft = drafted(LINT.replace(worked="`//nolint:wrapcheck // the caller wraps`"))

    assert draft.action.startswith("Avoid it, or mark it where it is meant")


def test_a_dependency_makes_no_learning() -> None:
    skipped = extract(Discovery(type="dependency", text="needs the cart first"))

    assert isinstance(skipped, NoDraft)
    assert skipped.reason


def test_the_task_is_context_and_not_in_the_title() -> None:
    draft = extract(COMMAND, task_title="Add discounts", goal="checkout")

    assert isinstance(draft, LearningDraft)
    assert "Add discounts (checkout)" in draft.context
    assert "discounts" not in draft.title


@pytest.mark.parametrize(
    ("type", "kind"),
    [("blocker", "gotcha"), ("constraint", "constraint"), ("pattern", "best-practice"), ("decision", "solution")],
)
def test_each_type_has_its_kind(type: str, kind: str) -> None:
    assert drafted(Discovery(type=type, text="Keep `prices.db` out of the image", rule="words")).kind == kind


def test_a_long_command_is_shortened_in_its_middle() -> None:
    path = "services/shop/internal/prices"
    text = f"Run `task run --file {path}/a.toml --only totals`, not `task run --file {path}/b.toml --only totals`"

    title = drafted(COMMAND.replace(text=f"{text}: unknown")).title

    assert len(title) <= TITLE_LIMIT
    assert title.count("`") == 4


@given(
    st.sampled_from(DISCOVERIES),
    st.sampled_from(("command", "edit", "call", "verification", "review", "words", "revert", "")),
    st.lists(st.text(max_size=300), min_size=6, max_size=6),
)
def test_every_discovery_makes_a_learning_or_says_why_not(type: str, rule: str, words: list[str]) -> None:
    text, failed, error, worked, excerpt, file = words
    made = extract(
        Discovery(
            type=type, rule=rule, text=text, failed=failed, error=error, worked=worked, excerpt=excerpt, files=(file,)
        )
    )

    if isinstance(made, LearningDraft):
        Learning(id="learn_1", **made.as_dict())
    else:
        assert made.reason
