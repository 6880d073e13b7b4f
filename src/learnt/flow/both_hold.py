"""The pairs of learnings of which a person has said that both hold: no rule is asked again which of them does."""

from __future__ import annotations

from learnt.consolidate.questions import BOTH
from learnt.flow.context import Context
from learnt.store import reviews


def list_both_hold(context: Context) -> set[frozenset[str]]:
    """Return the ids of each pair."""
    answered = reviews.escalations(context.store.database, status="resolved")
    return {
        frozenset((one.subject, str(one.detail["older"])))
        for one in answered
        if one.is_about_consolidation and one.detail.get("older") and one.answer.partition(":")[0] == BOTH
    }
