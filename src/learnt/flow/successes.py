"""Observed use: what a learning recommends was done after the learning was given, and it worked.

Hooks record which commands succeed in a conversation. The worker compares them with the learnings that the
conversation had been given before. A use counts like a helpful mark, once in a conversation, unless the agent marks the
learning itself: its own word counts instead, before or after. A file that a learning names proves nothing: whoever
edits it may follow the learning or ignore it.

An error that a warning prevented shows in which situation the learning about the same misstep matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from learnt.flow.context import Context
from learnt.flow.marks import after_helpful_mark, source_of, vouch_when_enough
from learnt.flow.observed_cues import observe_cue, observe_cue_before
from learnt.flow.warnings import tells_of
from learnt.mine.recommend import list_recommended_signs
from learnt.model import PROGRAM, Learning, text_id
from learnt.store import Store, evidence, learnings, missteps, tasks
from learnt.store.database import Database
from learnt.store.index import Filter
from learnt.store.learnings import Change
from learnt.store.missteps import PreventedError
from learnt.text.times import DAY_MS, MONTH_MS
from learnt.weigh.confidence import are_due_to_learning, are_run_anyway, is_copied

_KEPT_MS = 90 * DAY_MS
_MAX_TAUGHT = 20


def count_successes(context: Context, *, reached: Sequence[str] = ()) -> list[str]:
    """Count the uses since the last call; return the learnings that they vouch for.

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
        active = [learning for learning in given if learning.status == "active"]
        vouched = [learning.id for learning in active if _count_uses(context, database, learning, now)]
        evidence.forget_runs(database, before=now - _KEPT_MS)
        evidence.set_counted_until(database, now)
    return vouched


def observe_prevented_errors(context: Context) -> list[str]:
    """Add cues to the learnings about missteps that warnings have prevented; return the changed learnings."""
    store, now = context.store, context.clock()
    if store.place.read_only or store.database.read_only:
        return []
    changed: list[str] = []
    with store.transaction():
        for warning in missteps.list_prevented(store.database, since=now - MONTH_MS):
            for learning in _list_about(store, warning):
                decide = partial(observe_cue_before, store.database, task=warning.task, at=warning.at)
                change = Change(what="prevented", who=PROGRAM, at=now, reason=warning.task)
                before, after = learnings.change(store.database, learning.id, decide, change)
                changed += [learning.id] if after.version > before.version else []
    return changed


def _list_about(store: Store, warning: PreventedError) -> list[Learning]:
    """Within a transaction: return the learnings that say what a warning says, once for each warning."""
    misstep = missteps.find(store.database, warning.sign)
    if misstep is None or not misstep.task:
        return []
    if not store.claim_operation(text_id("op", f"prevented {warning.task} {warning.sign}")):
        return []
    taught = learnings.page(store.database, Filter(task=misstep.task), limit=_MAX_TAUGHT)
    return [learning for learning in taught if tells_of(learning, misstep)]


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


def _count_uses(context: Context, database: Database, learning: Learning, now: int) -> bool:
    """Within a transaction: count the uses of what a learning recommends; return whether they vouch for it now."""
    # Of what was copied from elsewhere, only a person can say that it is any good.
    signs = [] if is_copied(learning) and not learning.vouched else list_recommended_signs(learning)
    if not signs or not evidence.has_run(database, signs):
        return False
    runs, after = evidence.count_runs(database, learning, signs)
    if not are_due_to_learning(runs):
        return False
    source = source_of(context, learning)
    went_well = [task for task in after if not _has_failed(database, task)]
    used_in = {tasks.conversation_of(database, task): task for task in went_well}
    for conversation in sorted(used_in.keys() - {source}):
        if evidence.add(database, learning.id, conversation, evidence.WORKED, at=now):
            is_marked = evidence.is_marked(database, learning.id, conversation)
            decide = partial(_note_use, context, task=used_in[conversation], at=now, is_marked=is_marked)
            learnings.change(database, learning.id, decide, Change(what="worked", who=PROGRAM, at=now))
    return not learning.vouched and bool(vouch_when_enough(context, database, learning, at=now).vouched)


def _has_failed(database: Database, task: str) -> bool:
    """Return whether the last attempt at a task failed."""
    attempts = tasks.attempts(database, task)
    return bool(attempts) and attempts[0].result == "failed"


def _note_use(context: Context, learning: Learning, *, task: str, at: int, is_marked: bool) -> dict[str, Any]:
    counted = {"last_helpful_at": at} if is_marked else after_helpful_mark(learning, at=at)
    return counted | observe_cue(context, context.store.database, learning, task)
