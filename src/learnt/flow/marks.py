"""Marks: whether a learning helped with a task.

Only the first mark per learning and task is valid, and only if a brief for the task contained the learning. A mark
changes the learning's confidence in its store, and can be undone. Agents' marks count once per learning and
conversation, whichever door they come through, and never in the conversation that taught the learning. They are also
evidence: enough of them vouch for an agent's conclusion, and propose to a person that a learning be retired. They show,
too, that the learning's brief was delivered. Where the use of a learning was seen (`successes`), that has counted
already: a mark takes its place.
"""

from __future__ import annotations

from learnt.errors import WrongRequest
from learnt.flow.injections import confirm_delivery, injected
from learnt.flow.observed_cues import observe_cue
from learnt.model import PROGRAM, text_id
from learnt.store import deliveries, evidence, happened, learnings, reviews, tasks
from learnt.store.happened import Mark
from learnt.store.learnings import Change
from learnt.store.reviews import Escalation
from learnt.weigh import confidence
from learnt.weigh.confidence import PERSON, is_persons, speaks_against, vouch_by_evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from learnt.debrief.marks import Marks
    from learnt.flow.context import Context, Talk
    from learnt.model import Event, Learning
    from learnt.store import Store
    from learnt.store.database import Database
    from learnt.store.evidence import Evidence

_REPEATED, _MARKED_HERE = "marked for this task already", "was marked in this conversation already"
COUNTED_BEFORE = (_REPEATED, _MARKED_HERE)
"""Why a mark that has counted does not count again, for example because each turn of a conversation repeats it."""


def mark(context: Context, learning: str, task: str, helpful: bool, *, by: str | None = None) -> Learning:
    """Apply a mark to a learning; raise if the mark is not valid. `by` is who speaks, a `person` or an `agent`."""
    by = by or context.by
    store, _ = context.locate(learning, writable=True)
    with context.store.transaction():
        # An agent that marks a learning has seen it, whatever the transcript shows.
        if injected(context, task, missed_too=by != PERSON).get(learning) is not False:
            raise WrongRequest(
                f"`{learning}` was not given to `{task}`", hint="only learnings in a brief for the task can be marked"
            )
        reason = "" if by == PERSON else _reason_against_agent(context, store, learning, task, context.talk)
        if reason:
            raise WrongRequest(f"`{learning}` {reason}", hint="a person can mark it: `learnt feedback`")
        mark = Mark(learning=learning, task=task, helpful=helpful, at=context.clock(), who=context.person)
        if not _add_mark(context, mark, by=by, talk=context.talk):
            raise WrongRequest(
                f"`{learning}` has already been marked for `{task}`",
                hint=f"only the first mark is valid; `learnt undo {learning}` undoes the last change",
            )
    return learnings.get(store.database, learning).replace(scope=store.place.scope)


def apply_marks(
    context: Context, marks: Marks, task: str, *, at: int, who: str, talk: Talk, only_once: bool = False
) -> dict[str, str]:
    """Within a transaction: apply the marks in an agent's output; return the rejected marks, and why.

    With `only_once`, a mark that the same task has made before is ignored, even if a person has undone it.
    """
    refusals = dict.fromkeys(marks.contradicting, "marked both ways")
    for helpful, ids in ((True, marks.helpful), (False, marks.not_helpful)):
        for id in ids:
            reason = _reason_against_mark(context, id, task, talk)
            if not reason and only_once and not context.store.claim_operation(text_id("op", f"said mark {task} {id}")):
                reason = _REPEATED
            mark = Mark(learning=id, task=task, helpful=helpful, at=at, who=who)
            if not reason and not _add_mark(context, mark, by="agent", talk=talk):
                reason = _REPEATED
            if reason:
                refusals[id] = reason
    return refusals


def undo_mark(context: Context, store: Store, undone: tuple[Event, bool]) -> None:
    """Within the transaction of an undo: remove the mark that a change came from, or add it again.

    `undone` is the change, and whether it is undone (True) or restored (False).
    """
    event, is_undone = undone
    if event.what != "mark":
        return
    mark = Mark(
        learning=event.subject,
        task=event.reason,
        helpful=not _is_against(event),
        at=event.at,
        who=event.who,
    )
    act = happened.remove_mark if is_undone else happened.add_mark
    if is_undone:
        evidence.remove(store.database, mark.learning, _kind_of(mark), at=mark.at)
    else:
        conversation = tasks.conversation_of(context.store.database, mark.task)
        conversation = _name_in(context, store.database, conversation)
        evidence.add(store.database, mark.learning, conversation, _kind_of(mark), at=mark.at)
    if store is context.store:
        act(store.database, mark)
        return
    with context.store.transaction():
        act(context.store.database, mark)
    if is_undone:
        store.forget_operation(_operation_id(context, mark))


def _reason_against_mark(context: Context, id: str, task: str, talk: Talk) -> str:
    """Return why this task's mark on this learning is not valid; empty if it is valid."""
    holding = [store for store in context.sound_stores() if learnings.find(store.database, id)]
    held_out = injected(context, task, missed_too=True).get(id)
    own = [store for store in holding if not store.place.read_only]
    checks = {
        "no such learning": not holding,
        "not in a brief of this task": held_out is None,
        "held out of the brief": held_out,
        "belongs to a source, which is only read": all(store.place.read_only for store in holding),
    }
    reason = next((reason for reason, holds in checks.items() if holds), "")
    return reason or _reason_against_agent(context, own[0], id, task, talk)


def _reason_against_agent(context: Context, store: Store, id: str, task: str, talk: Talk) -> str:
    """Return why an agent's mark does not count in this conversation; empty if it counts."""
    learning, conversation = learnings.get(store.database, id), talk.of(context, task)
    known_as = _name_in(context, store.database, conversation)
    if conversation in (learning.task, source_of(context, learning)):
        return "was taught in this very conversation"
    if talk.since and learning.created_at >= talk.since and not is_persons(learning):
        return "may have been taught in this very conversation"
    if evidence.is_marked(store.database, id, known_as):
        return _MARKED_HERE
    return ""


def source_of(context: Context, learning: Learning) -> str:
    """Return the conversation that taught a learning."""
    return tasks.conversation_of(context.store.database, learning.task) if learning.task else ""


def note_repetition(context: Context, learning: Learning, conversation: str, *, at: int) -> Learning:
    """Within a transaction: record that a conversation taught a known learning again; return the learning."""
    database = context.store.database
    if conversation:
        evidence.add(database, learning.id, conversation, evidence.REPEATED, at=at)
    return vouch_when_enough(context, database, learning, at=at)


def vouch_when_enough(context: Context, database: Database, learning: Learning, *, at: int) -> Learning:
    """Within a transaction: vouch for a learning if its evidence is enough; return the learning."""

    def decide(present: Learning) -> dict[str, Any]:
        return vouch_by_evidence(present, _count(context, database, present))

    return learnings.change(database, learning.id, decide, Change(what="vouch", who=PROGRAM, at=at))[1]


def without_mark(context: Context, learning: Learning, undone: tuple[Event, bool]) -> Evidence | None:
    """Return the evidence for a learning after the undo of a mark; None if another change is undone."""
    event, is_undone = undone
    was_counted = "times_helpful" in event.new and not _is_against(event)
    if event.what != "mark" or not is_undone or not was_counted:
        return None
    counted = _count(context, context.locate(learning.id)[0].database, learning)
    return counted.replace(marked=max(0, counted.marked - 1))


def _is_against(event: Event) -> bool:
    """Return whether a change is from a mark that a learning was not helpful.

    Such a mark by an agent on a person's learning only takes back a use that was seen.
    """
    took_back = event.new.get("times_helpful", 0) < event.old.get("times_helpful", 0)
    return "times_not_helpful" in event.new or took_back


def _count(context: Context, database: Database, learning: Learning) -> Evidence:
    here = context.store.database
    given = evidence.list_given(here, learning.id) if database is here else None
    source, turnout = source_of(context, learning), evidence.measure_turnout(here)
    return evidence.count(database, learning, source=source, given=given, turnout=turnout)


def _name_in(context: Context, database: Database, conversation: str) -> str:
    """Return a conversation's name in a learning's store: two projects may have conversations with the same id."""
    place = context.store.place
    if database is context.store.database or conversation == tasks.UNKNOWN_CONVERSATION:
        return conversation
    return text_id("task", f"{place.folder} {place.address} {place.project} {conversation}")


def _kind_of(mark: Mark) -> str:
    return evidence.HELPFUL if mark.helpful else evidence.NOT_HELPFUL


def _add_mark(context: Context, mark: Mark, *, by: str, talk: Talk) -> bool:
    """Within a transaction of the project's store: store a mark and change the learning's confidence."""
    database, mark = context.store.database, _under_origin(context, mark)
    if not happened.add_mark(database, mark):
        return False
    brief = "" if by == PERSON else deliveries.find_undelivered(database, mark.learning, mark.task)
    if brief:
        confirm_delivery(context, brief)
    if learnings.find(database, mark.learning):
        _apply_mark(context, database, mark, by=by, talk=talk)
        return True
    op = _operation_id(context, mark)
    for store in context.sound_stores()[1:]:
        if not store.place.read_only and learnings.find(store.database, mark.learning):
            store.apply_once(op, lambda other: _apply_mark(context, other, mark, by=by, talk=talk))
    return True


def _under_origin(context: Context, mark: Mark) -> Mark:
    """Return a mark under the conversation that was given the learning, if a copy of that conversation made it."""
    database = context.store.database
    origin = tasks.find_origin(database, mark.task)
    if origin is None or mark.learning in happened.injected(database, mark.task, missed_too=True):
        return mark
    return mark.replace(task=origin.id)


def _apply_mark(context: Context, database: Database, mark: Mark, *, by: str, talk: Talk) -> None:
    """Within a transaction of the learning's store: count a mark, and draw the conclusions from all marks."""
    conversation = _name_in(context, database, talk.of(context, mark.task))
    was_used = evidence.has_worked(database, mark.learning, conversation)
    evidence.add(database, mark.learning, conversation, _kind_of(mark), at=mark.at)

    def decide(learning: Learning) -> dict[str, Any]:
        uncounted = _without_use(learning) if was_used else learning
        if by != PERSON and is_persons(learning) and not mark.helpful:
            return {"confidence": uncounted.confidence, "times_helpful": uncounted.times_helpful}
        changes = _count_mark(mark, uncounted)
        if mark.helpful:
            changes |= observe_cue(context, database, learning, mark.task)
        return changes | vouch_by_evidence(learning.replace(**changes), _count(context, database, learning))

    change = Change(what="mark", who=mark.who, at=mark.at, reason=mark.task)
    _, after = learnings.change(database, mark.learning, decide, change)
    if not mark.helpful and is_persons(after) and speaks_against(_count(context, database, after)):
        _propose_retirement(context, after, at=mark.at)


def _propose_retirement(context: Context, learning: Learning, *, at: int) -> None:
    """Within a transaction: ask a person whether a learning should go; the same question is asked only once."""
    escalation = Escalation(
        id=text_id("esc", f"remove {learning.id}"),
        subject=learning.id,
        question=f"Should `{learning.title}` go? Agents found it not helpful in several conversations.",
        created_at=at,
    )
    reviews.add_escalation(context.store.database, escalation)


def _operation_id(context: Context, mark: Mark) -> str:
    """Return the id of the operation that applies a mark from this project to another store."""
    place = context.store.place
    return text_id("op", f"mark {place.folder} {place.address} {place.project} {mark.learning} {mark.task}")


def _count_mark(mark: Mark, learning: Learning) -> dict[str, Any]:
    if mark.helpful:
        return after_helpful_mark(learning, at=mark.at)
    return {
        "confidence": confidence.after_mark(learning.confidence, helpful=False),
        "times_helpful": learning.times_helpful,
        "times_not_helpful": learning.times_not_helpful + 1,
    }


def after_helpful_mark(learning: Learning, *, at: int) -> dict[str, Any]:
    """Return what a helpful mark, or a use that was seen, changes in a learning."""
    return {
        "confidence": confidence.after_mark(learning.confidence, helpful=True),
        "times_helpful": learning.times_helpful + 1,
        "last_helpful_at": at,
    }


def _without_use(learning: Learning) -> Learning:
    """Return a learning as if its use in a conversation had not been counted, because the agent marks it itself."""
    return learning.replace(
        confidence=confidence.before_helpful_mark(learning.confidence), times_helpful=max(0, learning.times_helpful - 1)
    )
