"""Merge learnings, or let one replace another: one transaction, links of depth one, and undone as one.

A merge is checked by `consolidate.merge`, whoever proposes its text, and refused with what would be lost. It is refused
as well if a brief of the past would miss a learning that has helped there, and its successor, too. The successor
is one of the learnings; the others are superseded by it and count as recurrences, and what speaks for them speaks for
it. What a person vouches for, and what is pinned, takes others in only as it is: its text is never changed, and it is
not merged into anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from learnt.consolidate.merge import Loss, add_up, check_merge, combine, find_invented
from learnt.errors import InvalidValue, WrongRequest
from learnt.flow.context import Context
from learnt.flow.judging import compare, judge_pairs
from learnt.flow.learnings import refuse_agent, revert
from learnt.flow.replay import PastBriefs, ReplayedChange
from learnt.model import PARAGRAPHS, Event, Learning, Value, new_id
from learnt.store import Store, cues, evidence, learnings
from learnt.store.database import Database
from learnt.store.learnings import Change
from learnt.text.records import as_record, read_fields
from learnt.weigh.compare import Verdict
from learnt.weigh.confidence import EVIDENCE, NOBODY, is_persons

TEXTS = ("title", *PARAGRAPHS)
_WHAT = "merge"
_MAX_SHOWN = 5
# What later uses of the successor change, too: undoing a merge takes back only what the merge added.
_ADDED = ("times_helpful", "times_not_helpful", "recurrences")
_LATEST = ("last_helpful_at", "last_injected_at")


class MergeProposal(Value):
    """What a merge would make of some learnings, and what speaks against it."""

    successor: Learning
    sources: tuple[Learning, ...]
    """The learnings that the successor would supersede."""
    losses: tuple[Loss, ...] = ()
    invented: tuple[str, ...] = ()
    """What only the proposed text says."""
    reason: str = ""
    """Any other reason against it."""

    @property
    def is_refused(self) -> bool:
        """Whether it cannot be applied."""
        return bool(self.losses or self.invented or self.reason)

    def explain(self) -> str:
        """Return why it is refused, in a sentence."""
        if self.reason:
            return self.reason
        lost = [f"{loss.kind} “{loss.text}” of {loss.source}" for loss in self.losses]
        named, verb = (lost, "it would lose") if lost else ([f"“{text}”" for text in self.invented], "no source says")
        more = len(named) - _MAX_SHOWN
        return f"{verb}: {', '.join(named[:_MAX_SHOWN])}" + (f" and {more} more" if more > 0 else "")


class AppliedMerge(Value):
    """A merge that was made."""

    id: str
    """By which it can be undone."""
    successor: Learning
    sources: tuple[str, ...]


class Merges:
    """Merging learnings without loss."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def compare(self, older: str | Learning, newer: str | Learning) -> Verdict:
        """Return how a newer learning relates to an older one, as `Memory.compare` does."""
        return compare(self._context, older, newer)

    def judge(self, pairs: Sequence[tuple[str, str]], *, asks: bool = True) -> list[Verdict]:
        """Return how the second of each two learnings, the newer one, relates to the first.

        If a model is configured, it is asked where words do not decide, unless `asks` is false.
        """
        found = [(self._context.get(older), self._context.get(newer)) for older, newer in pairs]
        return judge_pairs(self._context, found, asks=asks)

    def propose(self, ids: Sequence[str], *, into: str = "", texts: Mapping[str, Any] | None = None) -> MergeProposal:
        """Return what merging learnings would make of them, without a change.

        `into` is the one that stays; by default a person's, a pinned one, or the fullest. `texts` are its title and
        paragraphs afterwards; by default, the sentences that it lacks are added to it.
        """
        store = self._find_store(ids)
        return self._propose(store.database, ids, into=into, texts=texts)

    def merge(self, ids: Sequence[str], *, into: str = "", texts: Mapping[str, Any] | None = None) -> AppliedMerge:
        """Merge learnings as `propose` shows; raise WrongRequest with what would be lost if it is refused."""
        store = self._find_store(ids)
        with store.transaction():
            store.database.lock_words()  # so that nobody changes a source between the check and the merge
            proposal = self._propose(store.database, ids, into=into, texts=texts)
            if any(map(is_persons, proposal.sources)):
                refuse_agent(self._context, _WHAT)
            if proposal.is_refused:
                raise WrongRequest(
                    f"not merged into {proposal.successor.id}: {proposal.explain()}",
                    hint="keep both, or say in one text all that they say; `learnt show ID` shows a learning",
                )
            return self._apply_without_regression(store, proposal)

    def replace(self, older: str, newer: str) -> AppliedMerge:
        """Let a newer learning replace an older one, and all that the older one had replaced."""
        store = self._find_store((older, newer))
        with store.transaction():
            store.database.lock_words()
            old, new = (learnings.get(store.database, id, for_update=True) for id in (older, newer))
            if is_persons(old):
                refuse_agent(self._context, "supersede")
            if problem := _find_obstacle((old,), new):
                raise WrongRequest(f"{older} is not replaced: {problem}", hint="`learnt show ID` shows a learning")
            batch = new_id("batch", self._context.clock())
            supersede(store.database, old.id, new.id, self._change(batch))
        return AppliedMerge(id=batch, successor=new.replace(scope=store.place.scope), sources=(older,))

    def undo(self, id: str = "") -> list[Learning]:
        """Undo a merge, by default the last one; return the learnings that it concerned."""
        refuse_agent(self._context, "undo")
        batch = id or cues.latest_reason(self._context.store.database, _WHAT)
        for store in self._context.sound_stores() if batch else ():
            with store.transaction():
                store.database.lock_words()
                events = cues.list_changes(store.database, _WHAT, batch)
                undone = [learning for event in events if (learning := self._undo(store.database, event))]
            if undone:
                return [learning.replace(scope=store.place.scope) for learning in undone]
        raise WrongRequest("there is no such merge to undo", hint="`learnt history ID` shows a learning's changes")

    def _propose(
        self, database: Database, ids: Sequence[str], *, into: str, texts: Mapping[str, Any] | None
    ) -> MergeProposal:
        found = learnings.get_all(database, ids)
        members = [found[id] for id in dict.fromkeys(ids)]
        if into and into not in found:
            raise WrongRequest(f"`{into}` is not one of the learnings to merge", hint="name it among them, too")
        base = found[into] if into else min(members, key=_rank)
        sources = tuple(learning for learning in members if learning.id != base.id)
        problem = _find_obstacle(sources, base)
        try:
            successor = self._reword(base, texts) if texts else base if _is_fixed(base) else combine(sources, base)
        except InvalidValue as error:
            successor, problem = base, problem or error.message
        if _is_fixed(base) and any(getattr(successor, name) != getattr(base, name) for name in TEXTS):
            problem = problem or f"{base.id} is pinned or a person's: its text is not changed"
        return MergeProposal(
            successor=successor,
            sources=sources,
            losses=tuple(check_merge(members, successor)),
            invented=tuple(find_invented(members, successor)),
            reason=problem,
        )

    def _reword(self, base: Learning, texts: Mapping[str, Any]) -> Learning:
        """Return a learning with the proposed texts, cleaned and without secrets."""
        unknown = [name for name in texts if name not in TEXTS]
        if unknown:
            raise WrongRequest(f"`{unknown[0]}` is no text of a learning", hint=f"texts: {', '.join(TEXTS)}")
        return base.replace(**read_fields(self._context.redact_record(texts)))

    def _apply_without_regression(self, store: Store, proposal: MergeProposal) -> AppliedMerge:
        """Within a transaction: merge; raise if briefs of the past would miss something that has helped."""
        successor, ids = proposal.successor.id, tuple(source.id for source in proposal.sources)
        past = PastBriefs(self._context, ReplayedChange(going=ids, successors=dict.fromkeys(ids, successor)))
        before = past.give_again()
        merge = self._apply(store, proposal)
        replayed, _ = past.compare(before, past.give_again())
        if replayed.lost:
            id, briefs = max(replayed.lost.items(), key=lambda lost: lost[1])
            title = self._context.titles([id]).get(id, id)
            many = "1 brief" if briefs == 1 else f"{briefs} briefs"
            raise WrongRequest(
                f"not merged into {successor}: “{title}” has helped in {many}, which would miss it",
                hint="keep both, or merge them the other way round: `into` names the one that stays",
            )
        return merge

    def _apply(self, store: Store, proposal: MergeProposal) -> AppliedMerge:
        """Within a transaction: change the successor, link the sources to it, and copy what speaks for them."""
        batch = new_id("batch", self._context.clock())
        successor, sources = proposal.successor, proposal.sources
        changes = {name: getattr(successor, name) for name in TEXTS} | add_up(sources, successor)

        def decide(present: Learning) -> dict[str, Any]:
            is_reworded = any(changes[name] != getattr(present, name) for name in TEXTS)
            was_proven = all(source.vouched for source in sources)
            # What speaks for one of the texts does not speak for the others.
            doubts = present.vouched == EVIDENCE and is_reworded and not was_proven
            return {**changes, **({"vouched": NOBODY} if doubts else {})}

        change = self._change(batch)
        _, after = learnings.change(store.database, successor.id, decide, change)
        for source in sources:
            evidence.copy(store.database, source.id, successor.id, at=change.at)
            supersede(store.database, source.id, successor.id, change)
        return AppliedMerge(
            id=batch,
            successor=after.replace(scope=store.place.scope),
            sources=tuple(source.id for source in sources),
        )

    def _undo(self, database: Database, event: Event) -> Learning | None:
        """Within a transaction: undo one change of a merge; None if it was undone before."""
        change = self._context.change("undo", at=self._context.clock(), undoes=event.id)
        return undo_event(database, event, change)

    def _change(self, batch: str) -> Change:
        return self._context.change(_WHAT, at=self._context.clock(), reason=batch)

    def _find_store(self, ids: Sequence[str]) -> Store:
        """Return the store that contains all the learnings; raise if there are several, or too few learnings."""
        if len(set(ids)) < 2:
            raise WrongRequest("a merge needs at least two learnings", hint="name their ids; `learnt list` shows them")
        stores = {store.place.folder: store for store, _ in (self._context.locate(id, writable=True) for id in ids)}
        if len(stores) > 1:
            raise WrongRequest("the learnings are in different stores", hint="merge only those of one project")
        return next(iter(stores.values()))


def _find_obstacle(sources: Sequence[Learning], successor: Learning) -> str:
    """Return why some learnings cannot be superseded by another, whatever they say; empty if they can."""
    for learning in (successor, *sources):
        if learning.status != "active":
            return f"{learning.id} is {learning.status}"
    for source in sources:
        if source.pinned and not successor.pinned:
            return f"{source.id} is pinned"
        if is_persons(source) and not is_persons(successor):
            return f"a person vouches for {source.id}, and not for {successor.id}"
    return ""


def _is_fixed(learning: Learning) -> bool:
    return learning.pinned or is_persons(learning)


def _rank(learning: Learning) -> tuple[object, ...]:
    """Sort the learning first that takes in the others: pinned, a person's, proven, the fullest, the oldest."""
    helped = learning.times_helpful - learning.times_not_helpful
    length = sum(len(getattr(learning, name)) for name in TEXTS)
    return (not learning.pinned, not is_persons(learning), -helped, -length, learning.created_at, learning.id)


def supersede(database: Database, source: str, successor: str, change: Change) -> None:
    """Within a transaction: supersede a learning, and link what it had superseded to the same successor."""
    for id in (*learnings.superseded_by(database, source), source):
        learnings.change(database, id, _supersede_by(successor), change)


def undo_event(database: Database, event: Event, change: Change) -> Learning | None:
    """Within a transaction: undo one change of a merge or a consolidation; None if it was undone before."""
    if any(other.undoes == event.id for other in learnings.history(database, event.subject)):
        return None
    if event.new.get("superseded_by"):
        evidence.withdraw(database, event.subject, event.new["superseded_by"], at=event.at)
    return learnings.change(database, event.subject, lambda learning: _revert(event, learning), change)[1]


def _supersede_by(successor: str) -> Callable[[Learning], dict[str, Any]]:
    return lambda _: {"status": "superseded", "superseded_by": successor}


def _revert(event: Event, learning: Learning) -> dict[str, Any]:
    """Return the changes that undo a merge's event; counts lose what the merge added, and nothing more."""
    apart = (*_ADDED, *_LATEST)
    old, new = ({name: value for name, value in side.items() if name not in apart} for side in (event.old, event.new))
    changes = revert(event.replace(old=old, new=new), learning) if new else {}
    current = as_record(learning)
    for name in (name for name in _ADDED if name in event.new):
        changes[name] = max(0, current[name] - (event.new[name] - event.old[name]))
    changes |= {name: event.old[name] for name in _LATEST if name in event.new and current[name] == event.new[name]}
    return changes
