"""Observed successes: what a learning recommends was done after the learning was given, and it worked.

Hooks record which commands succeed in a conversation. The worker compares them with the learnings that the
conversation had been given before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from learnt.flow.context import Context
from learnt.flow.marks import source_of, vouch_when_enough
from learnt.mine.recommend import list_recommended_signs
from learnt.model import PROGRAM, Learning
from learnt.store import evidence, learnings, missteps, tasks
from learnt.store.database import Database
from learnt.store.learnings import Change
from learnt.text.times import DAY_MS
from learnt.weigh.confidence import are_due_to_learning, are_run_anyway, is_copied

_KEPT_MS = 90 * DAY_MS


def count_successes(context: Context, *, reached: Sequence[str] = ()) -> list[str]:
    """Count the successes since the last call; return the learnings that they vouch for.

    `reached` are learnings that are now known to have reached an agent, perhaps before successes that were counted.
    """
    store, now = context.store, context.clock()
    if store.place.read_only or store.database.read_only:
        return []
    with store.transaction():
        database = store.database
        since = min(evidence.counted_until(database), now)
        _note_own_successes(database, since=since, until=now)
        ids = sorted({*evidence.list_given_before_runs(database, since=since, until=now), *reached})
        given = learnings.get_all(database, ids).values() if ids else ()
        unvouched = [learning for learning in given if learning.status == "active" and not learning.vouched]
        vouched = [learning.id for learning in unvouched if _vouches(context, database, learning, now)]
        evidence.forget_runs(database, before=now - _KEPT_MS)
        evidence.set_counted_until(database, now)
    return vouched


def _note_own_successes(database: Database, *, since: int, until: int) -> None:
    """Within a transaction: note which new learnings recommend what worked in their own conversation.

    It does not vouch for them, but they are tried more often.
    """
    ids = evidence.list_taught_after_runs(database, since=since, until=until)
    for learning in learnings.get_all(database, ids).values() if ids else ():
        signs = [] if is_copied(learning) else list_recommended_signs(learning)
        has_worked = signs and missteps.has_run(database, learning.task, signs)
        if has_worked and not are_run_anyway(evidence.count_runs(database, learning, signs)[0]):
            worked = Change(what="worked", who=PROGRAM, at=until)
            learnings.change(database, learning.id, _note_own_success, worked)


def _note_own_success(learning: Learning) -> dict[str, Any]:
    return {"last_helpful_at": learning.created_at}


def _vouches(context: Context, database: Database, learning: Learning, now: int) -> bool:
    """Within a transaction: store the successes of what a learning recommends; return whether they vouch for it."""
    signs = [] if is_copied(learning) else list_recommended_signs(learning)
    if not signs:
        return False
    runs, after = evidence.count_runs(database, learning, signs)
    if not are_due_to_learning(runs):
        return False
    source = source_of(context, learning)
    others = sorted({tasks.conversation_of(database, task) for task in after} - {source})
    new = [other for other in others if evidence.add(database, learning.id, other, evidence.WORKED, at=now)]
    if new:
        worked = Change(what="worked", who=PROGRAM, at=now)
        learnings.change(database, learning.id, lambda _: {"last_helpful_at": now}, worked)
    return bool(vouch_when_enough(context, database, learning, at=now).vouched)
