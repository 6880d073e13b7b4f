"""Learnings by hand: add, list, change and undo them; and learnings that an agent reports while it works.

Input is cleaned and redacted here, so that every store contains the same text.
"""

from __future__ import annotations

from learnt.consolidate.overlap import compare_by_table
from learnt.errors import NotFound, WrongRequest
from learnt.flow.background import update_soon
from learnt.flow.context import check_rows, take_over_edits
from learnt.flow.folding import Similar, add_or_repeat, find_similar, refuse
from learnt.flow.marks import mark, undo_mark, without_mark
from learnt.mine.classify import complete, find_category
from learnt.mine.quality import find_flaw_in
from learnt.model import CUE_FIELDS, OBSERVED_LIMIT, TITLE_LIMIT, Discovery, Learning, Value, is_id, new_id
from learnt.store import Store, happened, learnings, mined, tasks
from learnt.store.index import Filter
from learnt.store.learnings import Change
from learnt.text.clean import fold
from learnt.text.records import as_record, read_fields
from learnt.text.shorten import shorten
from learnt.text.triggers import refuse_wild_patterns
from learnt.weigh import confidence
from learnt.weigh.confidence import (
    PERSON,
    PERSON_CONFIDENCE,
    after_agents_edit,
    is_persons,
    vouch_by_evidence,
    vouch_by_person,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from learnt.flow.context import Context
    from learnt.model import Event
    from learnt.store.database import Database


# How many of the latest learnings from a person's words are looked through for one that is in force.
_MAX_SAID = 200
# Marks add to this field, and undoing one of them leaves alone what the others have added.
_OBSERVED = ("observed_cues",)
# Only a person can set these fields.
_PERSONS_FIELDS = ("origin", "confidence", "pinned")


_JUDGED = ("title", "observation", "action")
_WHAT_TO_WRITE = (
    "say in one sentence what to do or to avoid, and where, and name the command, file or error, as in "
    "“Run `make gen` before `make test`: the tests read what it generates”"
)


class LearningsPage(Value):
    """A page of a list of learnings, and the total number."""

    learnings: tuple[Learning, ...]
    total: int


class Learnings:
    """What a person does with learnings."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def add_all(
        self, records: Sequence[dict[str, Any]], *, created_at: int | None = None, by: str | None = None
    ) -> list[Learning]:
        """Add several learnings, all or none; each record contains the fields of `Memory.add`."""
        now = self._context.clock()
        added = [
            new_learning(self._context, record, created_at=now if created_at is None else created_at, by=by)
            for record in records
        ]
        with self._context.store.transaction():
            for learning in added:
                learnings.add(self._context.store.database, learning, self._context.change("add", at=now))
        self._context.store.analyze_if_many(len(added))
        return added

    def learn(self, record: dict[str, Any]) -> tuple[Learning, bool]:
        """Add an agent's learning and return whether it is new; a known learning recurs instead.

        Raise WrongRequest if it is no useful learning; it is then kept as a discovery, with the reason.
        """
        now, database, task_id = self._context.clock(), self._context.store.database, record.get("task", "")
        task = tasks.find(database, task_id) if task_id else None
        if task is not None and task.skip_learnings:
            raise WrongRequest(f"`{task_id}` is a task that leaves no learnings", hint="tell a person instead")
        origin = {"goal": task.goal if task else "", "origin": "agent"}
        learning = new_learning(self._context, {**origin, **fit_title(record)}, created_at=now, by="agent")
        learning = learning.replace(category=learning.category or find_category(learning.title, learning.action))
        who, talk = self._context.person, self._context.talk
        with self._context.store.transaction():
            same = learnings.find_same(database, learning.observation or learning.title)
            reason = "" if same else find_flaw_in(**{name: getattr(learning, name) for name in _JUDGED})
            if not reason:
                how: dict[str, Any] = {"task": learning.task, "who": who, "at": now, "talk": talk}
                return add_or_repeat(self._context, same, lambda: learning, **how)
            text = learning.observation or learning.title
            discovery = Discovery(type="pattern", text=text, rule="words", task=learning.task)
            refuse(self._context, lambda: learning, discovery, reason, who=who, at=now)
        raise WrongRequest(f"not kept: {reason}", hint=_WHAT_TO_WRITE)

    def similar(self, learning: str | Learning, *, limit: int = 10, near_too: bool = False) -> list[Similar]:
        """Return the learnings in the same store that resemble a learning, with how the newer one relates to it."""
        check_rows(limit=limit, offset=0)
        store, learning = self._find(learning)
        is_stored = learnings.exists(store.database, learning.id)
        how: dict[str, Any] = {"limit": limit, "near_too": near_too, "measure": compare_by_table}
        similar = find_similar(store.database, learning, is_stored=is_stored, **how)
        return [one.replace(learning=one.learning.replace(scope=store.place.scope)) for one in similar]

    def _find(self, learning: str | Learning) -> tuple[Store, Learning]:
        """Return a learning, given by itself or by its id, and its store; a new one belongs to the project's."""
        if isinstance(learning, Learning):
            stores = (store for store in self._context.sound_stores() if store.place.scope == learning.scope)
            return next(stores, self._context.store), learning
        store, found = self._context.locate(learning)
        return store, found

    def page(
        self, which: Filter, *, scope: str | None = None, limit: int | None = None, offset: int = 0
    ) -> LearningsPage:
        """Return the matching learnings, newest first, from all stores or from the store named by `scope`."""
        limit = self._context.settings.page_size if limit is None else limit
        check_rows(limit=limit, offset=offset)
        take_over_edits(self._context)
        which = which.replace(
            domain=None if which.domain is None else fold(which.domain),
            category=None if which.category is None else fold(which.category),
            tag=None if which.tag is None else fold(which.tag[: 2 * TITLE_LIMIT]).removeprefix("#"),
            goal=None if which.goal is None else fold(which.goal),
        )
        stores = [store for store in self._context.sound_stores() if scope in (None, store.place.scope)]
        if not stores:
            scopes = ", ".join(store.place.scope for store in self._context.stores)
            raise WrongRequest(f"no store is named `{scope}` here", hint=f"the stores are: {scopes}")
        total = sum(learnings.count(store.database, which) for store in stores)
        return LearningsPage(learnings=_merge_pages(stores, which, limit=limit, offset=offset), total=total)

    def edit(
        self,
        id: str,
        changes: dict[str, Any],
        *,
        reason: str = "",
        more: Mapping[str, Sequence[str]],
        fewer: Mapping[str, Sequence[str]],
        by: str | None = None,
    ) -> Learning:
        """Change fields of a learning. A person vouches for the result; an agent's new text has to prove itself.

        `more` and `fewer` are entries to add to the fields that are lists, and to remove from them.
        """
        by = by or self._context.by
        if by != PERSON and (unsettable := [name for name in changes if name in _PERSONS_FIELDS]):
            raise WrongRequest(f"an agent cannot set `{unsettable[0]}`", hint="only a person can: ask the user")
        fields = read_fields(self._context.redact_record(changes))
        refuse_wild_patterns(fields)
        added, dropped = read_fields(self._context.redact_record(more)), read_fields(fewer)

        def decide(learning: Learning) -> dict[str, Any]:
            before = {name: fields.get(name, getattr(learning, name)) for name in more}
            lists = {
                name: [word for word in (*before[name], *added[name]) if word not in dropped[name]] for name in more
            }
            changed = {**fields, **read_fields(lists), **_drop_cues(learning, dropped.get("cues", ()))}
            return (vouch_by_person if by == PERSON else after_agents_edit)(learning, changed)

        return alter(self._context, id, "edit", decide, reason=reason, by=by)

    def archive(self, id: str, *, reason: str = "") -> Learning:
        """Remove a learning from lists and briefs; it can be restored."""
        return self._retire(id, "archive", "archived", reason)

    def hide(self, id: str, *, reason: str = "") -> Learning:
        """Keep a learning out of every brief."""
        return self._retire(id, "hide", "hidden", reason)

    def _retire(self, id: str, what: str, status: str, reason: str) -> Learning:
        learning = alter(self._context, id, what, to_status(status), reason=reason)
        update_soon(self._context)  # so that it leaves learnings.md
        return learning

    def restore(self, id: str, *, reason: str = "") -> Learning:
        """Make an archived, hidden, proposed or superseded learning active; a proposal then supersedes its members."""
        refuse_agent(self._context, "restore")
        store, _ = self._context.locate(id, writable=True)
        with store.transaction():
            activate(self._context, store, id, self._context.change("restore", at=self._context.clock(), reason=reason))
            return learnings.get(store.database, id).replace(scope=store.place.scope)

    def pin(self, id: str, *, pinned: bool = True, reason: str = "", by: str | None = None) -> Learning:
        """Show a learning first where it is relevant, whatever its confidence; a person vouches for it so."""
        refuse_agent(self._context, "pin", by=by)

        def decide(learning: Learning) -> dict[str, Any]:
            return vouch_by_person(learning, {"pinned": True}) if pinned else {"pinned": False}

        return alter(self._context, id, "pin" if pinned else "unpin", decide, reason=reason)

    def like(self, id: str, *, reason: str = "", by: str | None = None) -> Learning:
        """Vouch for a learning and raise its confidence a little; this has an effect once per person."""
        refuse_agent(self._context, "like", by=by)
        store, _ = self._context.locate(id)
        return alter(self._context, id, "like", like_by(self._context.person, store.database), reason=reason)

    def supersede(self, old: str, new: str, *, reason: str = "") -> Learning:
        """Replace a learning with a better one; return the replaced learning."""
        self._context.get(new)
        return alter(self._context, old, "supersede", replace_by(new), reason=reason)

    def superseded_by(self, id: str) -> list[str]:
        """Return the ids of the learnings that this one replaced."""
        self._context.get(id)  # raises NotFound
        replaced = [
            old for store in self._context.sound_stores() for old in learnings.superseded_by(store.database, id)
        ]
        return sorted(dict.fromkeys(replaced))

    def history(self, id: str) -> list[Event]:
        """Return every change to a learning, oldest first."""
        return learnings.history(self._context.locate(id)[0].database, id)

    def undo(self, id: str, *, reason: str = "") -> Learning:
        """Undo the last change to a learning, or the change with this event id."""
        event = _find_event(self._context, id) if is_id("event", id) else _last_undoable(self.history(id))
        before = self._context.get(event.subject)
        after = alter(
            self._context,
            event.subject,
            "undo",
            lambda learning: self._revert(event, learning),
            reason=reason,
            undoes=event.id,
            also=lambda store: undo_mark(self._context, store, _resolve_undos(self._context, event)),
        )
        if after.version == before.version:
            raise WrongRequest(f"nothing is left to undo in {event.id}", hint=f"see `learnt history {after.id}`")
        return after

    def undo_said(self, *, reason: str = "") -> Learning:
        """Take back what was kept of what a person said; what it had replaced holds again.

        What the last confirmation named comes first, then what was kept without one, latest first.
        """
        refuse_agent(self._context, "undo")
        database = self._context.store.database
        confirmed = happened.list_shown(database, happened.KEPT, limit=_MAX_SAID)
        for id in (*confirmed, *mined.list_learnings(database, mined.SAID, limit=_MAX_SAID)):
            learning = self._find_active(id)
            if learning is not None:
                after = self.undo(self.history(id)[0].id, reason=reason)
                for replaced in self.superseded_by(id):
                    self.undo(replaced, reason=reason)
                return after
        raise WrongRequest(
            "nothing that you said was kept", hint="`learnt undo ID` undoes the last change to a learning"
        )

    def _find_active(self, id: str) -> Learning | None:
        for store in self._context.sound_stores():
            learning = learnings.find(store.database, id)
            if learning is not None and learning.status == "active" and is_persons(learning):
                return learning
        return None

    def mark(self, learning: str, task: str, helpful: bool, *, by: str | None = None) -> Learning:
        """Record whether a learning helped with a task that was given it; only the first mark of a pair is valid."""
        return mark(self._context, learning, task, helpful, by=by)

    def _revert(self, event: Event, learning: Learning) -> dict[str, Any]:
        """Return the changes that undo an event; without the event's mark, the evidence may no longer be enough."""
        changes = revert(event, learning)
        without = without_mark(self._context, learning, _resolve_undos(self._context, event))
        return changes if without is None else {**vouch_by_evidence(learning.replace(**changes), without), **changes}


def activate(context: Context, store: Store, id: str, change: Change) -> None:
    """Within a transaction: make a learning active, with the person's word; a proposal then supersedes its members."""

    def decide(learning: Learning) -> dict[str, Any]:
        return vouch_by_person(learning, to_status("active")(learning))

    before, _ = learnings.change(store.database, id, decide, change)
    for member in before.replaces if before.status == "proposed" else ():
        if learnings.find(store.database, member):
            supersede = context.change("supersede", at=change.at, reason=change.reason)
            learnings.change(store.database, member, replace_by(id, only_active=True), supersede)


def alter(
    context: Context,
    id: str,
    what: str,
    decide: Callable[[Learning], dict[str, Any]],
    *,
    reason: str = "",
    undoes: str = "",
    also: Callable[[Store], object] = lambda _: None,
    by: str | None = None,
) -> Learning:
    """Change a learning in the store that contains it; `also` runs in the same transaction.

    An agent cannot change what a person vouches for.
    """
    store, _ = context.locate(id, writable=True)

    def decide_without_circles(learning: Learning) -> dict[str, Any]:
        if is_persons(learning):
            refuse_agent(context, what, by=by)
        changes = decide(learning)
        refuse_circle(context, id, changes.get("superseded_by", ""))
        return changes

    with store.transaction():
        change = context.change(what, at=context.clock(), reason=reason, undoes=undoes)
        _, after = learnings.change(store.database, id, decide_without_circles, change)
        also(store)
    return after.replace(scope=store.place.scope)


def refuse_agent(context: Context, what: str, *, by: str | None = None) -> None:
    """Raise if an agent speaks, for what only a person may do."""
    if (by or context.by) != PERSON:
        raise WrongRequest(
            f"an agent cannot `{what}` here: a person decides on that",
            hint="ask the user, who can do it in a terminal of their own, or with `learnt review`",
        )


def refuse_circle(context: Context, id: str, successor: str) -> None:
    """Raise if a learning would supersede itself, directly or through others."""
    seen = {id}
    last = id
    while successor:
        if successor in seen:
            raise WrongRequest(
                f"`{id}` would supersede itself" + (f" through `{last}`" if last != id else ""),
                hint="`learnt supersede OLD NEW` expects the old learning first; OLD must not have replaced NEW",
            )
        seen.add(successor)
        last = successor
        try:
            successor = context.get(successor).superseded_by
        except NotFound:
            return  # the successor was purged, or has not been imported yet


def to_status(status: str) -> Callable[[Learning], dict[str, Any]]:
    """Return the change to a status."""
    return lambda _: {"status": status, "superseded_by": ""}


def replace_by(successor: str, *, only_active: bool = False) -> Callable[[Learning], dict[str, Any]]:
    """Return the change that supersedes a learning; with `only_active`, a hidden, archived or superseded one stays."""
    changes = {"status": "superseded", "superseded_by": successor}
    return lambda learning: {} if only_active and learning.status != "active" else changes


def like_by(person: str, database: Database) -> Callable[[Learning], dict[str, Any]]:
    """Return the change that raises a learning's confidence a little, once per person."""

    def decide(learning: Learning) -> dict[str, Any]:
        valid = _valid_changes(learnings.history(database, learning.id))
        if any(event.what == "like" and event.who == person for event in valid):
            return {}
        raised = max(PERSON_CONFIDENCE, confidence.after_like(learning.confidence))
        return vouch_by_person(learning, {"confidence": raised})

    return decide


def revert(event: Event, learning: Learning) -> dict[str, Any]:
    """Return the changes that undo an event; raise if its fields have been changed again since."""
    if not event.old:
        return {
            "status": "archived",
            "superseded_by": "",
        }  # undoing an addition archives the learning, because nothing is deleted
    current_fields = as_record(learning)
    changed = [name for name, value in event.new.items() if current_fields[name] != value and name not in _OBSERVED]
    if changed:
        raise WrongRequest(
            f"{changed[0]} of {learning.id} was changed again after {event.id}",
            hint=f"undo the later change first: `learnt history {learning.id}`",
        )
    before = {name: event.old[name] for name in event.old if name not in _OBSERVED}
    return read_fields(before | _revert_observed(event, learning), allowed=Learning.fields)


def _revert_observed(event: Event, learning: Learning) -> dict[str, Any]:
    """Return the observed cues without those that an event added, together with those that it displaced.

    Cues from other prompts, and a person's removals, stay as they are.
    """
    changes: dict[str, Any] = {}
    for name in (name for name in _OBSERVED if name in event.new):
        added, displaced = set(event.new[name]) - set(event.old[name]), set(event.old[name]) - set(event.new[name])
        kept = [cue for cue in getattr(learning, name) if cue not in added]
        changes[name] = [*kept, *(cue for cue in event.old[name] if cue in displaced)][:OBSERVED_LIMIT]
    return changes


def _drop_cues(learning: Learning, dropped: Sequence[str]) -> dict[str, Any]:
    """Return the changes that remove cues which did not come with a learning."""
    kept = {name: tuple(cue for cue in getattr(learning, name) if cue not in dropped) for name in CUE_FIELDS}
    return {name: cues for name, cues in kept.items() if name != "cues" and cues != getattr(learning, name)}


def new_learning(context: Context, record: dict[str, Any], *, created_at: int, by: str | None = None) -> Learning:
    """Return a learning from input fields, without secrets.

    A person vouches for what he adds in his own name. An agent chooses neither origin nor confidence nor pin. `by` is
    who speaks; by default, the context knows it.
    """
    fields = read_fields(context.redact_record(record))
    refuse_wild_patterns(fields)
    if (by or context.by) == "agent":
        fields = {name: value for name, value in fields.items() if name not in _PERSONS_FIELDS}
        fields["origin"] = "agent"
    by = by or fields.get("origin", PERSON)
    fields.setdefault("confidence", confidence.start(by))
    fields = complete(fields, has_topic=False)
    times = read_fields({"created_at": created_at, "updated_at": created_at}, allowed=("created_at", "updated_at"))
    provenance: dict[str, Any] = {"vouched": PERSON if by == PERSON else "", "author": context.person[:TITLE_LIMIT]}
    return Learning(id=new_id("learn", context.clock()), **times, **provenance, **{"title": "", **fields})


def fit_title(record: dict[str, Any]) -> dict[str, Any]:
    """Return an agent's learning with a title that fits; what does not fit is kept as the observation."""
    title = record.get("title")
    if not isinstance(title, str) or len(fold(title)) <= TITLE_LIMIT:
        return record
    return {**record, "title": shorten(title), "observation": record.get("observation") or title}


def _merge_pages(stores: Sequence[Store], which: Filter, *, limit: int, offset: int) -> tuple[Learning, ...]:
    """Return a page of several stores' learnings, newest first."""
    if len(stores) == 1:
        pages = [(stores[0], learnings.page(stores[0].database, which, limit=limit, offset=offset))]
        offset = 0
    else:
        pages = [(store, learnings.page(store.database, which, limit=limit + offset)) for store in stores]
    merged = [learning.replace(scope=store.place.scope) for store, page in pages for learning in page]
    merged.sort(key=lambda learning: (learning.created_at, learning.id), reverse=True)
    return tuple(merged[offset : offset + limit])


def _find_event(context: Context, id: str) -> Event:
    missing = NotFound(f"no event `{id}`")
    for store in context.sound_stores():
        try:
            return learnings.get_event(store.database, id)
        except NotFound as error:
            missing = error
    raise missing


def _resolve_undos(context: Context, event: Event) -> tuple[Event, bool]:
    """Return the original change of a chain of undos, and whether undoing this event undoes that change."""
    undone = True
    while event.undoes:
        event, undone = _find_event(context, event.undoes), not undone
    return event, undone


def _valid_changes(history: list[Event]) -> list[Event]:
    """Return the changes in force, without undone changes and without undos."""
    undone: set[str] = set()
    valid = []
    for event in reversed(history):
        if event.id in undone:
            continue  # the undo of an undo restores the original change
        if event.undoes:
            undone.add(event.undoes)
        else:
            valid.append(event)
    return valid[::-1]


def _last_undoable(history: list[Event]) -> Event:
    """Return the latest change in force, so that repeated undos go back in time."""
    valid = _valid_changes(history)
    if valid:
        return valid[-1]
    raise WrongRequest("every change to this learning has already been undone", hint="`learnt history ID` shows them")
