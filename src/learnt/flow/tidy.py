"""What time asks for: decay of the unused, putting away what has had its time, and proposals to put the many together.

Nothing is deleted, and nothing that a person wrote is replaced before a person says so.
"""

from __future__ import annotations

import os
import time
from itertools import islice
from typing import TYPE_CHECKING

from learnt.errors import LearntError
from learnt.model import PROGRAM, Value
from learnt.store import learnings, tasks
from learnt.store.index import Filter
from learnt.store.learnings import Change
from learnt.text.times import DAY_MS
from learnt.weigh.confidence import DECAY_PERIOD_MS, decay, stage
from learnt.weigh.summary import groups, summary

if TYPE_CHECKING:
    from learnt.flow.context import Context
    from learnt.model import Learning
    from learnt.store import Store

_OLD_MS = 90 * DAY_MS
_UNUSED_MS = 30 * DAY_MS
_DONE_MS = 7 * DAY_MS
_ATTEMPTS_BETWEEN_SUMMARIES = 10
_MOST_SUMMARISED = 2_000
_MOST_PROPOSALS = 10
_AT_ONCE = 200
# How long the tidying may take that comes by itself, at the end of somebody's command.
_LIMIT_OF_A_GUEST_S = 1.0
_NOTE = "tidied"


class Tidied(Value):
    """What a tidying changed."""

    decayed: int = 0
    archived: int = 0
    failures_archived: int = 0
    """Failure reports on tasks that were done a week ago: they stand in no brief any more."""
    proposed: tuple[str, ...] = ()
    """Learnings that would each replace several; they wait for a person."""


class Upkeep:
    """What runs once a day."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def tidy(self, *, limit_s: float) -> Tidied:
        """Decay, archive and propose; what the time limit does not allow is left for the next time."""
        return _tidy(self._context, limit_s=limit_s)

    def tidy_when_due(self) -> None:
        """Tidy if the last time was a day ago; a store that was never tidied starts to count now."""
        _tidy_when_due(self._context)


def _tidy(context: Context, *, limit_s: float) -> Tidied:
    """Let the unused lose confidence, archive what has had its time, and propose to put the many together.

    What the time limit does not allow is left for the next time.
    """
    deadline = time.monotonic() + limit_s
    decayed = archived = failures = 0
    proposed: list[str] = []
    for store in context.sound_stores():
        if not store.place.read_only:
            fewer, away = _fade(context, store, deadline)
            decayed, archived = decayed + fewer, archived + away
            failures += _archive_failures(context, store)
            proposed += _propose_summaries(context, store)
    return Tidied(decayed=decayed, archived=archived, failures_archived=failures, proposed=tuple(proposed))


def _tidy_when_due(context: Context) -> None:
    """Tidy if the last time was a day ago; a store that was never tidied starts to count now."""
    try:
        if _is_due(context):
            tidied = _tidy(context, limit_s=_LIMIT_OF_A_GUEST_S)
            if tidied.archived and context.report is not None:
                context.report(f"archived {tidied.archived} old, unused learnings: `learnt list --status archived`")
            if tidied.proposed and context.report is not None:
                context.report(
                    "many learnings are alike: `learnt list --status proposed` shows what could replace them"
                )
    except (LearntError, OSError):
        return  # what is only tidy must not fail what somebody came for; tomorrow is another day


def _is_due(context: Context) -> bool:
    """Say whether a day has passed, and start to count anew: of two that come by, one tidies."""
    store = context.store
    if not os.path.isdir(store.place.folder) or store.database.read_only:
        return False
    note = os.path.join(store.place.folder, _NOTE)
    now = context.clock()
    is_noted = os.path.exists(note)
    if is_noted and os.stat(note).st_mtime * 1000 > now - DAY_MS:
        return False
    os.close(os.open(note, os.O_CREAT | os.O_WRONLY, 0o600))
    os.utime(note, (now / 1000, now / 1000))
    return is_noted


def _archive_failures(context: Context, store: Store) -> int:
    now = context.clock()
    with store.transaction():
        return tasks.archive_failures(store.database, done_before=now - _DONE_MS, at=now)


def _propose_summaries(context: Context, store: Store) -> list[str]:
    """Where there are too many learnings, propose for each group of them one that could stand in its place."""
    if learnings.count(store.database, Filter()) <= context.settings.summarise_above:
        return []
    latest = learnings.latest_summary_at(store.database)
    if latest and tasks.attempts_since(store.database, latest) < _ATTEMPTS_BETWEEN_SUMMARIES:
        return []
    now = context.clock()
    oldest = islice(learnings.each(store.database, Filter()), _MOST_SUMMARISED)
    unproven = [one for one in oldest if not one.pinned and stage(one) != "proven"]
    proposals = [summary(group, now_ms=now) for group in groups(unproven)]
    made = []
    with store.transaction():
        for proposal in [proposal for proposal in proposals if proposal is not None][:_MOST_PROPOSALS]:
            if learnings.find(store.database, proposal.id) is None:  # else a person has decided on it already
                reason = f"more than {context.settings.summarise_above} learnings"
                learnings.add(store.database, proposal, Change(what="propose", who=PROGRAM, at=now, reason=reason))
                made.append(proposal.id)
    return made


def _fade(context: Context, store: Store, deadline: float) -> tuple[int, int]:
    """Let time take its toll, some at once; return how many faded and how many were archived."""
    now = context.clock()
    faded = away = 0
    last = ""
    while time.monotonic() < deadline:
        with store.transaction():
            some = learnings.quiet(store.database, before=now - DECAY_PERIOD_MS, after=last, limit=_AT_ONCE)
            for learning in some:
                fades, goes = _aged(context, store, learning, now)
                faded, away = faded + fades, away + goes
        if len(some) < _AT_ONCE:
            break
        last = some[-1].id
    return faded, away


def _aged(context: Context, store: Store, learning: Learning, now: int) -> tuple[bool, bool]:
    """Within a transaction: say whether a learning faded, and whether it was archived.

    What a person wrote, pinned or proved stays. The others count as new from when somebody last cared for them.
    """
    change = Change(what="decay", who=PROGRAM, at=now)
    before, after = learnings.change(store.database, learning.id, lambda learning: decay(learning, now), change)
    fades = after.version != before.version
    stays = after.pinned or after.origin == "person" or stage(after) == "proven"
    if stays or after.created_at >= now - _OLD_MS or (after.last_injected_at or 0) >= now - _UNUSED_MS:
        return fades, False
    cared_at = max(event.at for event in learnings.history(store.database, after.id) if event.who != PROGRAM)
    if cared_at >= now - _OLD_MS:
        return fades, False
    change = Change(what="archive", who=PROGRAM, at=now, reason="old, unproven and long unused")
    learnings.change(store.database, after.id, lambda _: {"status": "archived"}, change)
    return fades, True
