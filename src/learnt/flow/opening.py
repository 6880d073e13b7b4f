"""What a conversation is told when it begins: an index of the learnings, unfinished work on the branch, notes.

The index names the vouched learnings, in one line each. They are not given by that: the full text still comes with the
prompt that it matters for. Nothing is listed that the client loads by itself, that the conversation has been given, or
that it taught. A conversation that goes on is only told which learnings have been pinned since.
"""

from __future__ import annotations

import json

from learnt.brief.index import MIN_LINE_TOKENS, area_of, choose_index
from learnt.brief.render import Index, Unfinished
from learnt.brief.select import hidden_categories, without_copies, without_twins
from learnt.brief.standing import take_turns
from learnt.clients.registry import loaded_files
from learnt.flow.briefs import Opening
from learnt.flow.context import due_note, load_module
from learnt.flow.injections import list_indexed
from learnt.flow.standing import standing
from learnt.model import NO_REPORT
from learnt.project import head_branch
from learnt.store import learnings, tasks
from learnt.store.index import Filter
from learnt.system.files import read_own
from learnt.text.times import DAY_MS
from learnt.weigh.confidence import impact, is_proven

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from learnt.flow.hook_events import Conversation
    from learnt.model import Learning, Task
    from learnt.store import Store

_MAX_UNFINISHED = 3
_UNFINISHED_MS = 14 * DAY_MS
_MIN_PER_CATEGORY = 5
_MAX_NOTE_BYTES = 10_000
# Up to so many, the areas of all learnings are compared; beyond that, only their categories are, by an index.
_MAX_COMPARED = 2_000


def find_opening(conversation: Conversation, before: Mapping[str, Learning], *, is_new: bool) -> Opening:
    """Return what a conversation is told at its start; `before` is what is told again."""
    event, settings = conversation.event, conversation.context.settings
    shown = dict(before)
    if not settings.index_tokens:
        permanent = standing(conversation.context, agent=event.agent, client=event.client, proven_only=True)
        shown |= {learning.id: learning for learning in permanent}
    return Opening(
        hits=without_twins(conversation.unseen(without_copies(shown.values()))),
        unfinished=_list_unfinished(conversation) if is_new else (),
        notes=_list_notes(conversation) if is_new else (),
        index=_make_index(conversation, before) if settings.index_tokens else Index(),
    )


def list_given(conversation: Conversation, task: Task) -> dict[str, Learning]:
    """Return the current versions of the learnings that a conversation was given, if they are active."""
    given_ids = conversation.list_seen_ids(task)
    active: dict[str, Learning] = {}
    for store in conversation.context.sound_stores():
        for id, learning in learnings.get_all(store.database, given_ids).items():
            if learning.status == "active":
                active.setdefault(id, learning.replace(scope=store.place.scope))
    return {id: active[id] for id in given_ids if id in active}


def _make_index(conversation: Conversation, before: Mapping[str, Learning]) -> Index:
    """Return the index for a conversation; `before` is what it is given in full together with the index."""
    settings, task = conversation.context.settings, conversation.task
    listed = list_indexed(conversation.context, task)
    known = {*before, *listed, *conversation.list_seen_ids(task)}
    reader = _IndexReader(conversation, known)
    for store in conversation.context.sound_stores():
        reader.read(store)
    if listed:
        pinned = [learning for learning in reader.learnings if learning.pinned]
        reader.learnings, reader.total = pinned, len(pinned)
    return choose_index(
        reader.learnings,
        total=reader.total,
        max_tokens=min(settings.index_tokens, settings.brief_tokens),
        impact=impact,
        is_proven=is_proven,
        both_hold=lambda: load_module("both_hold").list_both_hold(conversation.context),
    )


class _IndexReader:
    """Reads the learnings of an index: all if there are few, otherwise the most important of each category."""

    def __init__(self, conversation: Conversation, known: set[str]) -> None:
        event, self._settings = conversation.event, conversation.context.settings
        self._agent = event.agent
        # No more lines than these fit, and some of the learnings that are read say the same.
        self._max_read = 2 * (self._settings.index_tokens // MIN_LINE_TOKENS + 1)
        self._which = Filter(
            trusted_from=self._settings.brief_confidence,
            exclude_ids=tuple(sorted(known)),
            exclude_task=conversation.id,
            exclude_loaded=loaded_files(event.client),
        )
        self.learnings: list[Learning] = []
        self.total = 0
        """How many there are, including those that were not read."""

    def read(self, store: Store) -> None:
        """Read the learnings of a store; a copy of a learning in another store is the same learning."""
        categories = learnings.categories(store.database)
        hidden = hidden_categories(self._agent, self._settings.agents, categories)
        which = self._which.replace(not_in_categories=hidden) if hidden else self._which
        # Reading what is left out of each row would take longer than all the rest, so of many it is counted, too.
        most = learnings.count(store.database, which.replace(exclude_ids=(), exclude_task=None, exclude_loaded=()))
        if most <= _MAX_COMPARED:
            found, count = self._read_some(store, which, most)
        else:
            visible = ["", *(category for category in categories if category not in hidden)]
            limit = max(_MIN_PER_CATEGORY, self._max_read // len(visible))
            areas = (which.replace(in_categories=(category,)) for category in visible)
            found = [one for area in areas for one in learnings.standing_candidates(store.database, area, limit=limit)]
            count = most
        known = {learning.id for learning in self.learnings}
        fresh = [learning.replace(scope=store.place.scope) for learning in found if learning.id not in known]
        self.learnings += fresh
        self.total += count - (len(found) - len(fresh))

    def _read_some(self, store: Store, which: Filter, most: int) -> tuple[list[Learning], int]:
        """Return all learnings or, if there are too many, the most important of each area, and how many there are."""
        if most <= self._max_read:
            found = learnings.page(store.database, which, limit=most) if most else []
            return found, len(found)
        areas: dict[str, list[str]] = {}
        listed = learnings.list_areas(store.database, which, limit=_MAX_COMPARED)
        for id, category, tags in listed:
            areas.setdefault(area_of(category, tags), []).append(id)
        ids = list(take_turns(areas.values()))[: self._max_read]
        pinned = learnings.page(store.database, which.replace(pinned=True), limit=self._max_read)
        others = set(ids) - {learning.id for learning in pinned}
        return [*pinned, *learnings.get_all(store.database, sorted(others)).values()], len(listed)


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
    notes = [line] if (line := _read_due(conversation)) else []
    waiting = learnings.count(conversation.database, Filter(status="proposed"))
    most = conversation.context.settings.summarise_above
    if waiting and learnings.count(conversation.database, Filter()) > most:
        notes.append(f"{waiting} proposals wait for the user (`learnt review`).")
    return tuple(notes)


def _read_due(conversation: Conversation) -> str:
    """Return the worker's line that consolidation is due; usually it has left none."""
    try:
        note = json.loads(read_own(due_note(conversation.context), max_bytes=_MAX_NOTE_BYTES))
        return str(note["line"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
