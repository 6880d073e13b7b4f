"""Marks: whether a learning helped with a task.

Only the first mark per learning and task is valid, and only if a brief for the task contained the learning. A mark
changes the learning's confidence in its store, and can be undone.
"""

from __future__ import annotations

from learnt.errors import WrongRequest
from learnt.flow.briefs import injected
from learnt.model import text_id
from learnt.store import happened, learnings
from learnt.store.happened import Mark
from learnt.store.learnings import Change
from learnt.weigh import confidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from learnt.debrief.marks import Marks
    from learnt.flow.context import Context
    from learnt.model import Event, Learning
    from learnt.store import Store

_REPEATED = "marked for this task already"


def mark(context: Context, learning: str, task: str, helpful: bool) -> Learning:
    """Apply a person's mark to a learning; raise if the mark is not valid."""
    store, _ = context.locate(learning, writable=True)
    with context.store.transaction():
        if injected(context, task).get(learning) is not False:
            raise WrongRequest(
                f"`{learning}` was not given to `{task}`", hint="only learnings in a brief for the task can be marked"
            )
        mark = Mark(learning=learning, task=task, helpful=helpful, at=context.clock(), who=context.person)
        if not _add_mark(context, mark):
            raise WrongRequest(
                f"`{learning}` has already been marked for `{task}`",
                hint=f"only the first mark is valid; `learnt undo {learning}` undoes the last change",
            )
    return learnings.get(store.database, learning).replace(scope=store.place.scope)


def apply_marks(
    context: Context, marks: Marks, task: str, *, at: int, who: str, only_once: bool = False
) -> dict[str, str]:
    """Within a transaction: apply the marks in an agent's output; return the rejected marks, and why.

    With `only_once`, a mark that the same task has made before is ignored, even if a person has undone it.
    """
    refusals = dict.fromkeys(marks.contradicting, "marked both ways")
    for helpful, ids in ((True, marks.helpful), (False, marks.not_helpful)):
        for id in ids:
            reason = _reason_against_mark(context, id, task)
            if not reason and only_once and not context.store.claim_operation(text_id("op", f"said mark {task} {id}")):
                reason = _REPEATED
            if not reason and not _add_mark(context, Mark(learning=id, task=task, helpful=helpful, at=at, who=who)):
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
        learning=event.subject, task=event.reason, helpful="times_helpful" in event.new, at=event.at, who=event.who
    )
    act = happened.remove_mark if is_undone else happened.add_mark
    if store is context.store:
        act(store.database, mark)
        return
    with context.store.transaction():
        act(context.store.database, mark)
    if is_undone:
        store.forget_operation(_operation_id(context, mark))


def _reason_against_mark(context: Context, id: str, task: str) -> str:
    """Return why this task's mark on this learning is not valid; empty if it is valid."""
    holding = [store for store in context.sound_stores() if learnings.find(store.database, id)]
    held_out = injected(context, task).get(id)
    checks = {
        "no such learning": not holding,
        "not in a brief of this task": held_out is None,
        "held out of the brief": held_out,
        "belongs to a source, which is only read": all(store.place.read_only for store in holding),
    }
    return next((reason for reason, holds in checks.items() if holds), "")


def _add_mark(context: Context, mark: Mark) -> bool:
    """Within a transaction of the project's store: store a mark and change the learning's confidence."""
    database = context.store.database
    if not happened.add_mark(database, mark):
        return False
    change = Change(what="mark", who=mark.who, at=mark.at, reason=mark.task)
    if learnings.find(database, mark.learning):
        learnings.change(database, mark.learning, _count_mark(mark), change)
        return True
    op = _operation_id(context, mark)
    for store in context.sound_stores()[1:]:
        if not store.place.read_only and learnings.find(store.database, mark.learning):
            store.apply_once(op, lambda other: learnings.change(other, mark.learning, _count_mark(mark), change))
    return True


def _operation_id(context: Context, mark: Mark) -> str:
    """Return the id of the operation that applies a mark from this project to another store."""
    place = context.store.place
    return text_id("op", f"mark {place.folder} {place.address} {place.project} {mark.learning} {mark.task}")


def _count_mark(mark: Mark) -> Callable[[Learning], dict[str, Any]]:
    def decide(learning: Learning) -> dict[str, Any]:
        changes: dict[str, Any] = {"confidence": confidence.after_mark(learning.confidence, helpful=mark.helpful)}
        if mark.helpful:
            return {**changes, "times_helpful": learning.times_helpful + 1, "last_helpful_at": mark.at}
        return {**changes, "times_not_helpful": learning.times_not_helpful + 1}

    return decide
