"""A person's review: one decision at a time, each of which can be undone.

A decision is accepted only while its item is open: if two people decide at the same time, the second gets an error.
Each decision is one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from learnt.errors import NotFound, WrongRequest
from learnt.flow.context import Context, check_rows
from learnt.flow.learnings import activate, like_by, refuse_agent, replace_by, revert, to_status
from learnt.flow.tasks import answer_escalation
from learnt.model import PARAGRAPHS, Learning, Value, is_id, new_id
from learnt.store import Store, learnings, reviews
from learnt.store.database import Database
from learnt.store.mined import StoredDiscovery, evidence_for
from learnt.store.reviews import Escalation
from learnt.text.records import read_fields
from learnt.text.triggers import refuse_wild_patterns
from learnt.weigh.confidence import vouch_by_person

# The kinds are in the order in which they are reviewed.
REVIEW_KINDS = ("merged", "revised", "proposed", "removed", "duplicate", "new")
DECISIONS = ("accept", "reject", "edit", "other")
OPINIONS = ("yes", "no", "unsure")
MAX_COUNTED = 1_000
_TEXTS = ("title", *PARAGRAPHS, "cues")


class ReviewItem(Value):
    """A learning, and the decision that a person has to make about it."""

    id: str
    """The learning's id, or for a removal and a duplicate, the escalation's id."""
    kind: str
    learning: Learning
    replaces: tuple[Learning, ...] = ()
    """The learnings that the proposal would replace; for a duplicate, the one that would go."""
    question: str = ""
    """The question to answer; only set for a removal and a duplicate."""
    evidence: tuple[StoredDiscovery, ...] = ()


class Decision(Value):
    """A decision, with what is needed to undo it."""

    item: str
    kind: str
    decision: str
    learning: Learning
    """The learning after the decision."""
    events: tuple[str, ...]
    """The events of the decision, in order."""


class Review:
    """A person's decisions on proposals, removals and new learnings."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    def evidence(self, id: str) -> list[StoredDiscovery]:
        """Return the discoveries that support a learning, oldest first."""
        return evidence_for(self._store.database, id)

    def items(self, *, limit: int = 100, kinds: Sequence[str] = ()) -> list[ReviewItem]:
        """Return the open items in the order in which they are reviewed; `kinds` selects only these kinds."""
        check_rows(limit=limit)
        unknown = [kind for kind in kinds if kind not in REVIEW_KINDS]
        if unknown:
            raise WrongRequest(f"there is no kind `{unknown[0]}`", hint=f"kinds: {', '.join(REVIEW_KINDS)}")
        items: list[ReviewItem] = []
        for kind in REVIEW_KINDS:
            if not kinds or kind in kinds:
                items += self._items_of(kind, limit=limit - len(items))
        return items

    def counts(self) -> dict[str, int]:
        """Return the number of open items by kind; new learnings are counted up to `MAX_COUNTED`."""
        counts = reviews.counts(self._store.database, most=MAX_COUNTED)
        counts |= {"removed": len(self._removals()), "duplicate": len(reviews.list_duplicates(self._store.database))}
        return {kind: counts[kind] for kind in REVIEW_KINDS if counts.get(kind)}

    def item(self, id: str) -> ReviewItem:
        """Return an open item."""
        database = self._store.database
        if is_id("esc", id):
            escalation = reviews.get_escalation(database, id)
            if escalation.is_about_consolidation:
                hint = f"`learnt resolve {id} --keep old`, new, both or neither; `learnt escalations` shows both sides"
                raise WrongRequest(f"`{id}` is a question of consolidation", hint=hint)
            if escalation.status == "open" and is_id("learn", escalation.subject):
                is_duplicate = reviews.is_about_duplicate(escalation)
                return self._duplicate_item(escalation) if is_duplicate else self._removal_item(escalation)
            raise _answered_already(escalation)
        learning = _find_unchanged(database, id, None)
        return self._item(_kind_of(database, learning), learning)

    def decide(
        self, item_id: str, decision: str, *, changes: Mapping[str, Any] | None = None, version: int | None = None
    ) -> Decision:
        """Accept or reject an item, or accept it with changed fields (`edit`).

        Of two duplicates, the item's learning stays if it is accepted, the `other` one on demand, or both.
        `version` is the learning's version that the person saw. If its text has changed since, raise WrongRequest.
        """
        refuse_agent(self._context, "review")
        if decision not in DECISIONS:
            raise WrongRequest(f"`{decision}` is not a decision", hint=f"decisions are: {', '.join(DECISIONS)}")
        if decision != "edit" and changes:
            raise WrongRequest("only `edit` takes changes", hint="leave them out, or decide `edit`")
        fields = read_fields(self._context.redact_record(changes or {}))
        refuse_wild_patterns(fields)
        if is_id("esc", item_id):
            is_duplicate = reviews.is_about_duplicate(reviews.get_escalation(self._store.database, item_id))
            decide = self._decide_duplicate if is_duplicate else self._decide_removal
            return decide(item_id, decision, fields, version)
        _refuse_other(decision)
        store = self._store
        with store.transaction():
            store.database.lock_words()  # so that the second of two deciders sees the first decision
            learning = _find_unchanged(store.database, item_id, version)
            kind = _kind_of(store.database, learning)
            subjects = (item_id, *learning.replaces)
            before = _event_ids(store.database, subjects)
            if fields:
                self._change(store, item_id, "edit", lambda known: vouch_by_person(known, fields))
            self._settle(item_id, kind, accepts=decision != "reject")
            events = tuple(id for id in _event_ids(store.database, subjects) if id not in before)
            learning = learnings.get(store.database, item_id).replace(scope=store.place.scope)
        return Decision(item=item_id, kind=kind, decision=decision, learning=learning, events=events)

    def undo(self, decision: Decision) -> ReviewItem:
        """Undo a decision; return the item, which is open again."""
        holder, _ = self._context.locate(decision.learning.id, writable=bool(decision.events))
        with self._store.transaction():
            if is_id("esc", decision.item):
                escalation = reviews.get_escalation(self._store.database, decision.item, for_update=True)
                reopened = escalation.replace(status="open", answer="", resolved_at=None, resolved_by="")
                reviews.resolve_escalation(self._store.database, reopened)
            with self._within(holder):
                for id in reversed(decision.events):
                    event = learnings.get_event(holder.database, id)
                    change = self._context.change("undo", at=self._context.clock(), undoes=id)
                    learnings.change(holder.database, event.subject, partial(revert, event), change)
        return self.item(decision.item)

    def record_opinion(self, answer: str) -> None:
        """Store a person's answer to whether the learnings helped."""
        if answer not in OPINIONS:
            raise WrongRequest(f"`{answer}` is not an answer", hint=f"answers are: {', '.join(OPINIONS)}")
        now, person = self._context.clock(), self._context.person
        with self._store.transaction():
            reviews.add_opinion(self._store.database, new_id("opinion", now), answer, who=person, at=now)

    def _items_of(self, kind: str, *, limit: int) -> list[ReviewItem]:
        if limit <= 0:
            return []
        if kind == "removed":
            return [self._removal_item(escalation) for escalation in self._removals()[:limit]]
        if kind == "duplicate":
            duplicates = reviews.list_duplicates(self._store.database)
            return [self._duplicate_item(escalation) for escalation in duplicates[:limit]]
        database, is_new = self._store.database, kind == "new"
        waiting = reviews.untouched(database, limit=limit) if is_new else reviews.proposals(database, kind, limit=limit)
        return [self._item(kind, learning) for learning in waiting]

    def _removals(self) -> list[Escalation]:
        """Return the open escalations about learnings that still exist."""
        escalations = reviews.escalations(self._store.database, status="open")
        escalations = [escalation for escalation in escalations if not _is_of_another_kind(escalation)]
        ids = [escalation.subject for escalation in escalations if is_id("learn", escalation.subject)]
        existing_ids = {id for store in self._context.sound_stores() for id in learnings.get_all(store.database, ids)}
        return [escalation for escalation in escalations if escalation.subject in existing_ids]

    def _removal_item(self, escalation: Escalation) -> ReviewItem:
        store, learning = self._context.locate(escalation.subject)
        item = self._item("removed", learning, store)
        return item.replace(id=escalation.id, question=escalation.question)

    def _duplicate_item(self, escalation: Escalation) -> ReviewItem:
        """Return the item about two learnings; raise if one of them is gone, or no longer active."""
        ids = (escalation.subject, escalation.detail["other"])
        found = learnings.get_all(self._store.database, ids)
        if any(id not in found or found[id].status != "active" for id in ids):
            raise WrongRequest(
                f"`{escalation.id}` is not waiting for review: one of its learnings is not active any more",
                hint="`learnt review --list` shows the open items",
            )
        item = self._item("duplicate", found[ids[0]])
        other = found[ids[1]].replace(scope=self._store.place.scope)
        return item.replace(id=escalation.id, question=escalation.question, replaces=(other,))

    def _item(self, kind: str, learning: Learning, store: Store | None = None) -> ReviewItem:
        store = store or self._store
        replaced = learnings.get_all(store.database, learning.replaces) if learning.status == "proposed" else {}
        evidence = [
            discovery for id in (learning.id, *replaced) for discovery in evidence_for(self._store.database, id)
        ]
        return ReviewItem(
            id=learning.id,
            kind=kind,
            learning=learning.replace(scope=store.place.scope),
            replaces=tuple(replaced[id] for id in learning.replaces if id in replaced),
            evidence=tuple(evidence),
        )

    def _settle(self, id: str, kind: str, *, accepts: bool) -> None:
        """Within a transaction: like or hide a new learning; activate or archive a proposal.

        An activated proposal supersedes its members.
        """
        if not accepts:
            verb, status = ("hide", "hidden") if kind == "new" else ("archive", "archived")
            self._change(self._store, id, verb, to_status(status))
        elif kind == "new":
            self._change(self._store, id, "like", like_by(self._context.person, self._store.database))
        else:
            activate(self._context, self._store, id, self._context.change("restore", at=self._context.clock()))

    def _decide_removal(self, id: str, decision: str, fields: dict[str, Any], version: int | None) -> Decision:
        """Hide the learning that an escalation is about, or keep it, with or without edits."""
        _refuse_other(decision)
        subject = reviews.get_escalation(self._store.database, id).subject
        if not is_id("learn", subject):
            raise WrongRequest(f"`{id}` is not about a learning", hint=f'`learnt resolve {id} "what to do"` answers it')
        hides = decision == "accept"
        holder, _ = self._context.locate(subject, writable=hides or bool(fields))
        with self._store.transaction():
            self._store.database.lock_words()
            escalation = reviews.get_escalation(self._store.database, id, for_update=True)
            if escalation.status != "open":
                raise _answered_already(escalation)
            _find_unchanged(holder.database, subject, version)
            answer_escalation(self._context, escalation, "hide" if hides else "keep")
            before = _event_ids(holder.database, [subject])
            if hides or fields:
                with self._within(holder):
                    if hides:
                        self._change(holder, subject, "hide", to_status("hidden"))
                    else:
                        self._change(holder, subject, "edit", lambda known: vouch_by_person(known, fields))
            events = tuple(event for event in _event_ids(holder.database, [subject]) if event not in before)
        learning = learnings.get(holder.database, subject).replace(scope=holder.place.scope)
        return Decision(item=id, kind="removed", decision=decision, learning=learning, events=events)

    def _decide_duplicate(self, id: str, decision: str, fields: dict[str, Any], version: int | None) -> Decision:
        """Let one of two learnings supersede the other, or keep both."""
        database = self._store.database
        with self._store.transaction():
            database.lock_words()
            escalation = reviews.get_escalation(database, id, for_update=True)
            if escalation.status != "open":
                raise _answered_already(escalation)
            item = self._duplicate_item(escalation)
            _find_unchanged(database, item.learning.id, version)
            ids = [item.learning.id, item.replaces[0].id]
            stays, goes = ids[::-1] if decision == "other" else ids
            answer_escalation(self._context, escalation, "keep both" if decision == "reject" else f"keep {stays}")
            before = _event_ids(database, ids)
            if fields:
                self._change(self._store, stays, "edit", lambda known: vouch_by_person(known, fields))
            if decision != "reject":
                self._change(self._store, goes, "supersede", replace_by(stays))
            events = tuple(event for event in _event_ids(database, ids) if event not in before)
        learning = learnings.get(database, stays).replace(scope=self._store.place.scope)
        return Decision(item=id, kind="duplicate", decision=decision, learning=learning, events=events)

    def _change(self, store: Store, id: str, verb: str, decide: Callable[[Learning], dict[str, Any]]) -> None:
        """Within a transaction: change a learning on behalf of this person."""
        learnings.change(store.database, id, decide, self._context.change(verb, at=self._context.clock()))

    def _within(self, holder: Store) -> AbstractContextManager[object]:
        """Within a transaction of the project's store: return a transaction of the store that contains a learning."""
        return nullcontext() if holder is self._store else holder.transaction()


def _refuse_other(decision: str) -> None:
    if decision == "other":
        raise WrongRequest("only of two duplicates the other one can stay", hint="decide `accept` or `reject`")


def _find_unchanged(database: Database, id: str, version: int | None) -> Learning:
    """Return a learning; raise if its text has changed since the person saw it."""
    learning = learnings.find(database, id, for_update=version is not None) if is_id("learn", id) else None
    if learning is None:
        raise NotFound(f"no open item has the id `{id[:100]}`", hint="`learnt review --list` shows the ids")
    if version is not None and version < learning.version:
        later = [event for event in learnings.history(database, id) if event.version > version]
        changed = [event for event in later if any(name in event.new for name in _TEXTS)]
        if changed:
            raise WrongRequest(
                f"{changed[-1].who} changed the text of `{id}` meanwhile", hint="read it again, then decide"
            )
    return learning


def _kind_of(database: Database, learning: Learning) -> str:
    """Return the kind of decision that a learning needs; raise if it does not need one."""
    if learning.status == "proposed":
        return ("proposed", "revised", "merged")[min(2, len(learning.replaces))]
    if reviews.is_untouched(database, learning.id):
        return "new"
    touched = [event for event in learnings.history(database, learning.id) if event.what in reviews.TOUCHES]
    why = f": {touched[-1].who} decided `{touched[-1].what}`" if touched else ""
    hint = f"`learnt history {learning.id}` shows what happened to it"
    raise WrongRequest(f"`{learning.id}` is not waiting for review{why}", hint=hint)


def _event_ids(database: Database, learning_ids: Sequence[str]) -> list[str]:
    """Return the ids of all changes to some learnings; each learning's changes are ordered from oldest to newest."""
    return [event.id for id in learning_ids for event in learnings.history(database, id)]


def _is_of_another_kind(escalation: Escalation) -> bool:
    return reviews.is_about_duplicate(escalation) or escalation.is_about_consolidation


def _answered_already(escalation: Escalation) -> WrongRequest:
    why = f": {escalation.resolved_by} answered `{escalation.answer}`" if escalation.status != "open" else ""
    return WrongRequest(f"`{escalation.id}` is not waiting for review{why}", hint="`learnt escalations --all` shows it")
