"""Of two learnings a person has said that both hold: from then on, neither is dropped or left out for the other one."""

from __future__ import annotations

import pytest

from tests.support.aged import Aged, verdicts

OLDER = "Use port 8080 for the dev server: 8000 is taken by the proxy"
NEWER = "Never use port 8080 for the dev server"
OTHERS = "- Start Redis before the queue tests\n- Close the cursor before the commit in `store.py`\n"


def keep_both(aged: Aged) -> tuple[str, str]:
    """Hand two learnings over that contradict each other, and say that both hold; return their ids."""
    older = aged.hand_over(f"- {OLDER}\n{OTHERS}")[0]
    (rejected,) = aged.memory.handoff(f"- {NEWER}\n").rejected
    aged.memory.decisions.resolve(rejected.escalation, keep="both", scope="on CI")
    return older, rejected.id


@pytest.mark.parametrize("edits", [{}, {"observation": "The proxy of the build machine takes it."}])
def test_both_are_consolidated(aged: Aged, edits: dict[str, str]) -> None:
    ids = keep_both(aged)
    if edits:
        aged.memory.edit(ids[1], **edits)
    aged.work(19)

    assert set(verdicts(aged.consolidate()).values()) == {"moved"}
    assert [aged.memory.get(id).status for id in ids] == ["active", "active"]
    assert all(id in aged.documents() for id in ids)
    assert aged.memory.decisions.pending() == []


def test_both_are_given_in_a_brief(aged: Aged) -> None:
    ids = keep_both(aged)

    assert set(aged.memory.brief("Which port may the dev server use, 8080?").learning_ids) == set(ids)


def test_an_agents_older_one_is_a_persons_afterwards(aged: Aged) -> None:
    (older,) = aged.memory.debrief("task_1", f"Done.\n\n<learning>{OLDER}</learning>").learnings
    (rejected,) = aged.memory.handoff(f"- {NEWER}\n").rejected
    aged.memory.decisions.resolve(rejected.escalation, keep="both", scope="on CI")

    assert aged.memory.get(older).vouched == "person"
    given = aged.memory.brief("Which port may the dev server use, 8080?").learning_ids
    assert set(given) == {older, rejected.id}
