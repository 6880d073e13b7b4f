"""Daily upkeep: unused learnings lose confidence, old ones are archived, and merges of similar ones are proposed.

Nothing is deleted, and learnings are replaced only after a person has agreed. What a person vouches for does not age.

A clock that jumps is not believed: after the last sign of life in the store, a run of the upkeep believes at most one
more decay period. After a long pause, the following runs catch up.
"""

from __future__ import annotations

import time
from itertools import islice

from learnt.errors import LearntError
from learnt.flow.background import update_soon
from learnt.flow.context import Context
from learnt.flow.duplicates import propose_duplicates
from learnt.model import PROGRAM, Learning, Value
from learnt.store import Store, aging, learnings, tasks
from learnt.store.index import Filter
from learnt.store.learnings import Change
from learnt.text.times import DAY_MS
from learnt.weigh.confidence import DECAY_PERIOD_MS, decay, is_persons, stage
from learnt.weigh.summary import groups, summarise

_OLD_MS = 90 * DAY_MS
_UNUSED_MS = 30 * DAY_MS
_DONE_MS = 7 * DAY_MS
_ATTEMPTS_BETWEEN_SUMMARIES = 10
_MAX_SUMMARISED = 2_000
_MAX_PROPOSALS = 10
_BATCH = 200
_MAX_STEP_MS = DECAY_PERIOD_MS
# How long tidying may take at the end of another command.
_LIMIT_AFTER_COMMAND_S = 1.0


class TidyReport(Value):
    """The changes that the upkeep made."""

    decayed: int = 0
    archived: int = 0
    failures_archived: int = 0
    """Failure reports on tasks that were done a week ago; briefs no longer show them."""
    proposed: tuple[str, ...] = ()
    """Proposals that would each replace several learnings."""
    duplicates: int = 0
    """New questions which of two learnings that say the same should stay."""


class Upkeep:
    """The daily upkeep."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def tidy(self, *, limit_s: float) -> TidyReport:
        """Decay, archive and propose; work beyond the time limit is left for the next run."""
        deadline = time.monotonic() + limit_s
        decayed = archived = failures = 0
        proposed: list[str] = []
        for store in self._context.sound_stores():
            if not store.place.read_only:
                decayed_here, archived_here = self._age(store, deadline)
                decayed, archived = decayed + decayed_here, archived + archived_here
                failures += self._archive_failures(store)
                proposed += self._propose_summaries(store)
        return TidyReport(
            decayed=decayed,
            archived=archived,
            failures_archived=failures,
            proposed=tuple(proposed),
            duplicates=propose_duplicates(self._context, deadline=deadline),
        )

    def tidy_beside_a_command(self) -> None:
        """Tidy briefly at the end of a command, and report what was done."""
        report = self._context.report
        try:
            tidied = self.tidy(limit_s=_LIMIT_AFTER_COMMAND_S)
        except (LearntError, OSError):
            return  # the command must not fail because of tidying, which is tried again tomorrow
        if tidied.archived:
            update_soon(self._context)  # so that they leave the file
        if tidied.archived and report is not None:
            report(f"archived {tidied.archived} old, unused learnings: `learnt list --status archived`")
        if tidied.proposed and report is not None:
            report("many learnings are similar: `learnt list --status proposed` shows what could replace them")

    def _archive_failures(self, store: Store) -> int:
        now = self._context.clock()
        with store.transaction():
            return aging.archive_failures(store.database, done_before=now - _DONE_MS, at=now)

    def _propose_summaries(self, store: Store) -> list[str]:
        """If there are too many learnings, propose a replacement for each group of similar learnings."""
        most = self._context.settings.summarise_above
        if learnings.count(store.database, Filter()) <= most:
            return []
        latest = aging.latest_summary_at(store.database)
        if latest and tasks.attempts_since(store.database, latest) < _ATTEMPTS_BETWEEN_SUMMARIES:
            return []
        now = self._context.clock()
        oldest = islice(learnings.each(store.database, Filter()), _MAX_SUMMARISED)
        unproven = [learning for learning in oldest if not learning.pinned and stage(learning) != "proven"]
        proposals = [proposal for group in groups(unproven) if (proposal := summarise(group, now_ms=now)) is not None]
        change = Change(what="propose", who=PROGRAM, at=now, reason=f"more than {most} learnings")
        added = []
        with store.transaction():
            for proposal in proposals[:_MAX_PROPOSALS]:
                # A proposal that is in the store was already decided on by a person.
                if learnings.find(store.database, proposal.id) is None:
                    learnings.add(store.database, proposal, change)
                    added.append(proposal.id)
        return added

    def _age(self, store: Store, deadline: float) -> tuple[int, int]:
        """Age unused learnings in batches; return how many lost confidence and how many were archived."""
        with store.transaction():
            now = aging.believe_time(store.database, self._context.clock(), at_most=_MAX_STEP_MS)
        decayed = archived = 0
        last = ""
        while time.monotonic() < deadline:
            with store.transaction():
                batch = aging.unused_since(store.database, before=now - DECAY_PERIOD_MS, after=last, limit=_BATCH)
                for learning in batch:
                    has_decayed, is_archived = _age_learning(store, learning, now)
                    decayed, archived = decayed + has_decayed, archived + is_archived
            if len(batch) < _BATCH:
                break
            last = batch[-1].id
        return decayed, archived


def _age_learning(store: Store, learning: Learning, now: int) -> tuple[bool, bool]:
    """Within a transaction: age a learning; return whether it lost confidence, and whether it was archived.

    Learnings that are pinned, proven or vouched for by a person are not archived. The age of other learnings is the
    time since their last change by a person or an agent.
    """
    change = Change(what="decay", who=PROGRAM, at=now)
    before, after = learnings.change(store.database, learning.id, lambda known: decay(known, now), change)
    has_decayed = after.version != before.version
    stays = after.pinned or is_persons(after) or stage(after) == "proven"
    if stays or after.created_at >= now - _OLD_MS or (after.last_injected_at or 0) >= now - _UNUSED_MS:
        return has_decayed, False
    by_others = [event.at for event in learnings.history(store.database, after.id) if event.who != PROGRAM]
    if max(by_others, default=0) >= now - _OLD_MS:
        return has_decayed, False
    change = Change(what="archive", who=PROGRAM, at=now, reason="old, unproven and long unused")
    learnings.change(store.database, after.id, lambda _: {"status": "archived"}, change)
    return has_decayed, True
