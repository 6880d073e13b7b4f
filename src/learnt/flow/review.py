"""What waits for a person's review, one decision at a time, each of which can be taken back.

A decision counts only while its learning still waits: of two people who decide at once, the second is told. Each is
one transaction, so that nothing is half done, whenever somebody leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from learnt.errors import NotFound, WrongRequest
from learnt.flow.context import check_rows
from learnt.flow.learnings import replace_by, take_back, to_status
from learnt.flow.tasks import answer_escalation
from learnt.model import PARAGRAPHS, Learning, Value, is_id, new_id
from learnt.store import escalations, learnings, reviews
from learnt.store.mined import Found, evidence_for
from learnt.text.records import read_fields
from learnt.weigh import confidence

if TYPE_CHECKING:
    from learnt.flow.context import Context
    from learnt.model import Event
    from learnt.store import Store
    from learnt.store.database import Database
    from learnt.store.escalations import Escalation

    Step = tuple[str, str, Callable[[Learning], dict[str, Any]]]  # the learning, the verb, what it changes

# In the order in which they are walked through.
REVIEW_KINDS = ("merged", "revised", "proposed", "removed", "new")
DECISIONS = ("accept", "reject", "edit")
OPINIONS = ("yes", "no", "unsure")
MOST_COUNTED = 1_000
_TEXTS = ("title", *PARAGRAPHS)


class ReviewItem(Value):
    """Something that waits for a person: a learning, and what is to be decided about it."""

    id: str
    """The learning's id; of a removal, the escalation's."""
    kind: str
    learning: Learning
    replaces: tuple[Learning, ...] = ()
    """What the learning would replace."""
    question: str = ""
    """Why it should be removed."""
    evidence: tuple[Found, ...] = ()


class Decided(Value):
    """A decision, with what it takes to take it back."""

    item: str
    kind: str
    decision: str
    learning: Learning
    """As it is now."""
    events: tuple[str, ...]
    """The changes that were made, in their order."""


class Review:
    """What a person decides on what others learnt."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    def evidence(self, id: str) -> list[Found]:
        """Return what was seen that speaks for a learning, the oldest first."""
        return evidence_for(self._store.database, id)

    def items(self, *, limit: int = 100, kinds: Sequence[str] = ()) -> list[ReviewItem]:
        """Return what waits, in the order in which it is best looked at; `kinds`: only these."""
        check_rows(limit=limit)
        unknown = [kind for kind in kinds if kind not in REVIEW_KINDS]
        if unknown:
            raise WrongRequest(f"nothing of the kind `{unknown[0]}` waits", hint=f"kinds: {', '.join(REVIEW_KINDS)}")
        found: list[ReviewItem] = []
        for kind in REVIEW_KINDS:
            if not kinds or kind in kinds:
                found += self._waiting(kind, limit=limit - len(found))
        return found

    def counts(self) -> dict[str, int]:
        """Return how much waits of each kind; of new ones, at most `MOST_COUNTED` are counted."""
        counted = reviews.counts(self._store.database, most=MOST_COUNTED)
        counted["removed"] = len(self._removals())
        return {kind: counted[kind] for kind in REVIEW_KINDS if counted.get(kind)}

    def decide(
        self,
        item_id: str,
        decision: str,
        *,
        changes: Mapping[str, Any] | None = None,
        version: int | None = None,
    ) -> Decided:
        """Accept or reject something that waits, or accept it with other words: `edit`, with the changed fields.

        `version` is that of the learning which the person saw: if its text was changed since, they are told instead.
        """
        if decision not in DECISIONS:
            raise WrongRequest(f"`{decision}` is no decision", hint=f"decisions are: {', '.join(DECISIONS)}")
        if decision != "edit" and changes:
            raise WrongRequest("only `edit` takes changes", hint="leave them out, or decide `edit`")
        fields = read_fields(self._context.redact_record(changes or {}))
        if is_id("esc", item_id):
            return self._decide_removal(item_id, decision, fields, version)
        store = self._store
        with store.transaction():
            store.database.lock_words()  # of two that decide, the second must see what the first did
            learning = self._seen(store.database, item_id, version)
            kind = self._waits_as(store.database, learning)
            if not kind:
                raise _no_longer(item_id, learnings.history(store.database, item_id))
            verdict = _rejected if decision == "reject" else _accepted
            steps = [*_edited(item_id, fields), *verdict(kind, learning)]
            made = self._make(store.database, steps)
            decided = learnings.get(store.database, item_id).replace(scope=store.place.scope)
        return Decided(item=item_id, kind=kind, decision=decision, learning=decided, events=made)

    def take_back(self, decided: Decided) -> ReviewItem:
        """Undo a decision; return what waits again."""
        holder, _ = self._context.locate(decided.learning.id, writable=bool(decided.events))
        with self._store.transaction():
            if is_id("esc", decided.item):
                self._reopen(decided.item)
            if holder is self._store:
                self._undo_all(holder.database, decided.events)
            else:
                with holder.transaction():
                    self._undo_all(holder.database, decided.events)
        return self.item(decided.item)

    def item(self, id: str) -> ReviewItem:
        """Return one thing that waits."""
        database = self._store.database
        if is_id("esc", id):
            escalation = escalations.get(database, id)
            if escalation.status == "open" and is_id("learn", escalation.subject):
                return self._removal(escalation)
            raise _answered(escalation)
        learning = self._seen(database, id, None)
        kind = self._waits_as(database, learning)
        if not kind:
            raise _no_longer(id, learnings.history(database, id))
        return self._item(kind, learning)

    def tell_opinion(self, answer: str) -> None:
        """Keep what a person says to whether the learnings helped."""
        if answer not in OPINIONS:
            raise WrongRequest(f"`{answer}` is no answer", hint=f"answers are: {', '.join(OPINIONS)}")
        now = self._context.clock()
        with self._store.transaction():
            escalations.add_opinion(
                self._store.database, new_id("opinion", now), answer, who=self._context.person, at=now
            )

    def _waiting(self, kind: str, *, limit: int) -> list[ReviewItem]:
        if limit <= 0:
            return []
        if kind == "removed":
            return [self._removal(escalation) for escalation in self._removals()[:limit]]
        database = self._store.database
        if kind == "new":
            found = reviews.untouched(database, limit=limit)
        else:
            found = reviews.proposals(database, kind, limit=limit)
        return [self._item(kind, learning) for learning in found]

    def _removals(self) -> list[Escalation]:
        """Return the questions whether a learning is to be hidden, as long as it is there."""
        asked = [one for one in escalations.every(self._store.database, status="open") if is_id("learn", one.subject)]
        known = {
            id
            for store in self._context.sound_stores()
            for id in learnings.get_all(store.database, [one.subject for one in asked])
        }
        return [one for one in asked if one.subject in known]

    def _removal(self, escalation: Escalation) -> ReviewItem:
        store, learning = self._context.locate(escalation.subject)
        item = self._item("removed", learning, store)
        return item.replace(id=escalation.id, question=escalation.question)

    def _item(self, kind: str, learning: Learning, store: Store | None = None) -> ReviewItem:
        store = store or self._store
        replaced = learnings.get_all(store.database, learning.replaces) if learning.status == "proposed" else {}
        evidence = [one for id in (learning.id, *replaced) for one in evidence_for(self._store.database, id)]
        return ReviewItem(
            id=learning.id,
            kind=kind,
            learning=learning.replace(scope=store.place.scope),
            replaces=tuple(replaced[id] for id in learning.replaces if id in replaced),
            evidence=tuple(evidence),
        )

    def _waits_as(self, database: Database, learning: Learning) -> str:
        if learning.status == "proposed":
            return ("proposed", "revised", "merged")[min(2, len(learning.replaces))]
        return "new" if reviews.is_untouched(database, learning.id) else ""

    def _seen(self, database: Database, id: str, version: int | None) -> Learning:
        """Return a learning, unless its text is no longer what the person saw."""
        learning = learnings.find(database, id, for_update=version is not None) if is_id("learn", id) else None
        if learning is None:
            raise NotFound(f"nothing that waits has the id `{id[:100]}`", hint="`learnt review --list` shows the ids")
        if version is not None and version < learning.version:
            later = [event for event in learnings.history(database, id) if event.version > version]
            changed = [event for event in later if any(name in event.new for name in _TEXTS)]
            if changed:
                raise WrongRequest(
                    f"{changed[-1].who} changed the text of `{id}` meanwhile", hint="look at it again, then decide"
                )
        return learning

    def _decide_removal(self, id: str, decision: str, fields: dict[str, Any], version: int | None) -> Decided:
        """Hide the learning that an escalation is about, or keep it, as it is or with other words."""
        asked = escalations.get(self._store.database, id)
        if not is_id("learn", asked.subject):
            raise WrongRequest(f"`{id}` is about no learning", hint=f'`learnt resolve {id} "what to do"` answers it')
        hides = decision == "accept"
        holder, _ = self._context.locate(asked.subject, writable=hides or bool(fields))
        steps = [(asked.subject, "hide", to_status("hidden"))] if hides else _edited(asked.subject, fields)
        with self._store.transaction():
            self._store.database.lock_words()
            escalation = escalations.get(self._store.database, id, for_update=True)
            if escalation.status != "open":
                raise _answered(escalation)
            self._seen(holder.database, asked.subject, version)
            answer_escalation(self._context, escalation, "hide" if hides else "keep")
            if holder is self._store or not steps:
                made = self._make(holder.database, steps)
            else:
                with holder.transaction():
                    made = self._make(holder.database, steps)
        decided = learnings.get(holder.database, asked.subject).replace(scope=holder.place.scope)
        return Decided(item=id, kind="removed", decision=decision, learning=decided, events=made)

    def _make(self, database: Database, steps: Sequence[Step]) -> tuple[str, ...]:
        """Within a transaction: change learnings step by step; return the ids of the events."""
        made = []
        for id, what, decide in steps:
            if learnings.find(database, id) is None:
                continue  # what a proposal would replace may have been purged
            before, after = learnings.change(database, id, decide, self._context.change(what, at=self._context.clock()))
            if after.version != before.version:
                made.append(learnings.history(database, id)[-1].id)
        return tuple(made)

    def _undo_all(self, database: Database, made: Sequence[str]) -> None:
        """Within a transaction: take changes back, the last one first."""
        for id in reversed(made):
            event = learnings.get_event(database, id)
            change = self._context.change("undo", at=self._context.clock(), undoes=id)
            learnings.change(database, event.subject, partial(take_back, event), change)

    def _reopen(self, id: str) -> None:
        """Within a transaction: let an escalation wait again."""
        escalation = escalations.get(self._store.database, id, for_update=True)
        open_again = escalation.replace(status="open", answer="", resolved_at=None, resolved_by="")
        escalations.resolve(self._store.database, open_again)


def _accepted(kind: str, learning: Learning) -> list[Step]:
    if kind == "new":
        return [(learning.id, "like", lambda one: {"confidence": confidence.liked(one.confidence)})]
    replaced: list[Step] = [(id, "supersede", replace_by(learning.id)) for id in learning.replaces]
    return [(learning.id, "restore", to_status("active")), *replaced]


def _rejected(kind: str, learning: Learning) -> list[Step]:
    if kind == "new":
        return [(learning.id, "hide", to_status("hidden"))]
    return [(learning.id, "archive", to_status("archived"))]


def _edited(id: str, fields: dict[str, Any]) -> list[Step]:
    return [(id, "edit", lambda _: fields)] if fields else []


def _no_longer(id: str, history: Sequence[Event]) -> WrongRequest:
    """Return the error for something that does not wait: somebody decided on it, or nobody needs to."""
    touched = [event for event in history if event.what in reviews.TOUCHES]
    told = f": {touched[-1].who} decided `{touched[-1].what}`" if touched else ""
    return WrongRequest(f"`{id}` does not wait for review{told}", hint=f"`learnt history {id}` shows what became of it")


def _answered(escalation: Escalation) -> WrongRequest:
    told = f": {escalation.resolved_by} answered `{escalation.answer}`" if escalation.status != "open" else ""
    return WrongRequest(f"`{escalation.id}` does not wait for review{told}", hint="`learnt escalations --all` shows it")
