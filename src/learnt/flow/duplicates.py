"""Duplicates: where two active learnings say the same, or the newer one replaces the older, a person decides.

The daily upkeep compares the learnings that were added since the last time with the most similar ones, a bounded number
in each run. A pair is asked about once, whatever the answer, and only so many questions are open at a time.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from learnt.consolidate.overlap import compare_by_table
from learnt.flow.both_hold import list_both_hold
from learnt.flow.context import Context
from learnt.flow.folding import find_similar
from learnt.model import PARAGRAPHS, Learning, text_id
from learnt.store import Store, learnings, mined, reviews
from learnt.store.reviews import DUPLICATE, Escalation
from learnt.weigh.compare import REPEATS, SUPERSEDES, Verdict
from learnt.weigh.confidence import is_persons

MAX_OPEN = 20
_SOURCE = "compared for duplicates"
_MAX_COMPARED = 300
_MAX_SIMILAR = 5


def propose_duplicates(context: Context, *, deadline: float) -> int:
    """Ask about pairs of learnings that say the same; return how many questions are new."""
    store, now = context.store, context.clock()
    if store.place.read_only or store.database.read_only:
        return 0
    asked = 0
    room = MAX_OPEN - len(reviews.list_duplicates(store.database))
    compared_until = mined.size_read(store.database, _SOURCE)
    for id, added_at in reviews.list_added(store.database, since=compared_until, limit=_MAX_COMPARED):
        if asked >= room or time.monotonic() > deadline:
            break
        asked += _ask_about(context, store, id)
        compared_until = added_at
    with store.transaction():
        mined.note_read(store.database, _SOURCE, size=compared_until, task="", at=now)
    return asked


def _ask_about(context: Context, store: Store, id: str) -> int:
    """Ask about the learning that says the same as another one; return 1 if there is one that is new."""
    learning = learnings.find(store.database, id)
    if learning is None or learning.status != "active":
        return 0
    decided = list_both_hold(context)
    how: dict[str, Any] = {"limit": _MAX_SIMILAR, "is_stored": True, "measure": compare_by_table}
    for similar in find_similar(store.database, learning, **how):
        other, verdict = similar.learning, similar.verdict
        if frozenset((id, other.id)) in decided:
            continue
        if verdict in (REPEATS, SUPERSEDES) and other.status == "active":
            with store.transaction():
                return reviews.add_escalation(store.database, _ask(learning, other, verdict, at=context.clock()))
    return 0


def _ask(learning: Learning, other: Learning, verdict: Verdict, *, at: int) -> Escalation:
    """Return the question which of two learnings stays."""
    if verdict == SUPERSEDES:
        goes, stays = sorted((learning, other), key=lambda one: (one.created_at, one.id))
        return _question(stays, goes, f"“{stays.title}” seems to replace “{goes.title}” ({verdict.reason}).", at=at)
    prefers_fuller = verdict.is_estimate or bool(verdict.explains)
    stays, goes = sorted((learning, other), key=partial(_rank, prefers_fuller=prefers_fuller))
    return _question(stays, goes, f"“{stays.title}” and “{goes.title}” say the same.", at=at)


def _rank(learning: Learning, *, prefers_fuller: bool) -> tuple[object, ...]:
    """Sort the learning first that should stay: a person's, a pinned, a proven, then the fuller or the older one."""
    helped = learning.times_helpful - learning.times_not_helpful
    length = sum(len(getattr(learning, name)) for name in ("title", *PARAGRAPHS)) if prefers_fuller else 0
    return (not is_persons(learning), not learning.pinned, -helped, -length, learning.created_at, learning.id)


def _question(stays: Learning, goes: Learning, reason: str, *, at: int) -> Escalation:
    return Escalation(
        id=text_id("esc", " ".join((DUPLICATE, *sorted((stays.id, goes.id))))),
        subject=stays.id,
        question=f"{reason} Should only the first one stay?",
        detail={"what": DUPLICATE, "other": goes.id},
        created_at=at,
    )
