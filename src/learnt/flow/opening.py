"""What a conversation is told when it begins: standing learnings, unfinished work on the branch, notes for the user."""

from __future__ import annotations

from learnt.brief.render import Unfinished
from learnt.brief.select import without_copies, without_twins
from learnt.flow.briefs import Opening
from learnt.flow.standing import standing
from learnt.model import NO_REPORT
from learnt.project import head_branch
from learnt.store import learnings, tasks
from learnt.store.index import Filter
from learnt.text.times import DAY_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from learnt.flow.hook_events import Conversation
    from learnt.model import Learning

_MAX_UNFINISHED = 3
_UNFINISHED_MS = 14 * DAY_MS


def find_opening(conversation: Conversation, before: Mapping[str, Learning], *, is_new: bool) -> Opening:
    """Return what a conversation is told at its start; `before` is what is told again."""
    event = conversation.event
    permanent = standing(conversation.context, agent=event.agent, client=event.client, proven_only=True)
    shown = {**before, **{learning.id: learning for learning in permanent}}
    return Opening(
        hits=without_twins(conversation.unseen(without_copies(shown.values()))),
        unfinished=_list_unfinished(conversation) if is_new else (),
        notes=_list_notes(conversation) if is_new else (),
    )


def _list_unfinished(conversation: Conversation) -> tuple[Unfinished, ...]:
    """Return the unfinished tasks on the current branch."""
    branch = head_branch(conversation.context.root) if conversation.context.root else ""
    if not branch:
        return ()
    since = conversation.now - _UNFINISHED_MS
    failed = tasks.unfinished(conversation.database, branch=branch, since=since, limit=_MAX_UNFINISHED)
    return tuple(
        Unfinished(
            task=task.id, title=task.title, reason=report.reason, suggestion=report.suggestion, at=report.created_at
        )
        for task, report in failed
        # A failure without a reason in a conversation without a title is useless, so it is left out.
        if task.id != conversation.id and not (task.title == task.id and report.reason.endswith(NO_REPORT))
    )


def _list_notes(conversation: Conversation) -> tuple[str, ...]:
    """Return the notes for the user."""
    waiting = learnings.count(conversation.database, Filter(status="proposed"))
    if not waiting or learnings.count(conversation.database, Filter()) <= conversation.context.settings.summarise_above:
        return ()
    return (f"Consolidation is due: {waiting} proposals wait for the user, who can decide with `learnt review`.",)
