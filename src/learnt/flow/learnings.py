"""Learnings by hand: keep, look, change, take back.

Text is cleaned and its secrets are redacted here, where it comes in, so that every store holds the same.
"""

from __future__ import annotations

from learnt.errors import WrongRequest
from learnt.flow.context import Stores, check_rows
from learnt.model import TITLE_LIMIT, Learning, Value, is_id, new_id
from learnt.store import Store, events, learnings
from learnt.store.learnings import Filter
from learnt.text.clean import fold
from learnt.text.records import as_record, read_fields
from learnt.weigh import confidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from learnt.model import Event, Triggers


class Page(Value):
    """Some learnings of a longer list, and how many there are in all."""

    learnings: tuple[Learning, ...]
    total: int


class ByHand(Stores):
    """What a person does with learnings."""

    def add(
        self,
        title: str,
        *,
        context: str = "",
        observation: str = "",
        implication: str = "",
        action: str = "",
        tags: Sequence[str] = (),
        domain: str = "",
        category: str = "",
        kind: str = "solution",
        polarity: str = "do",
        triggers: Triggers | dict[str, list[str]] | None = None,
        origin: str = "person",
        goal: str = "",
        task: str = "",
        discovery: str = "",
        commit: str = "",
        confidence: float | None = None,
        pinned: bool = False,
        created_at: int | None = None,
    ) -> Learning:
        """Keep a new learning. Only the title is needed; equal learnings are not merged."""
        return self.add_all(
            [
                {
                    "title": title,
                    "context": context,
                    "observation": observation,
                    "implication": implication,
                    "action": action,
                    "tags": tags,
                    "domain": domain,
                    "category": category,
                    "kind": kind,
                    "polarity": polarity,
                    "triggers": triggers or {},
                    "origin": origin,
                    "goal": goal,
                    "task": task,
                    "discovery": discovery,
                    "commit": commit,
                    "pinned": pinned,
                    **({} if confidence is None else {"confidence": confidence}),
                }
            ],
            created_at=created_at,
        )[0]

    def add_all(self, records: Sequence[dict[str, Any]], *, created_at: int | None = None) -> list[Learning]:
        """Keep several new learnings, all or none; each record holds the fields of `add`."""
        now = self._clock()
        added = [self._new_learning(record, created_at=now if created_at is None else created_at) for record in records]
        with self.store.transaction():
            for learning in added:
                learnings.add(self.store.database, learning, self._change("add", at=now))
        self.store.grew_by(len(added))
        return added

    def learnings(
        self,
        *,
        status: str | None = "active",
        domain: str | None = None,
        category: str | None = None,
        tag: str | None = None,
        kind: str | None = None,
        goal: str | None = None,
        min_confidence: float | None = None,
        scope: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> Page:
        """Return the fitting learnings, newest first; `status=None` means any."""
        which = Filter(
            status=status,
            domain=None if domain is None else fold(domain),
            category=None if category is None else fold(category),
            tag=None if tag is None else fold(tag[: 2 * TITLE_LIMIT]).removeprefix("#"),
            kind=kind,
            goal=None if goal is None else fold(goal),
            min_confidence=min_confidence,
        )
        limit = self.settings.page_size if limit is None else limit
        check_rows(limit=limit, offset=offset)
        stores = [store for store in self.sound_stores() if scope in (None, store.place.scope)]
        if not stores:
            known = ", ".join(store.place.scope for store in self._stores)
            raise WrongRequest(f"no store is named `{scope}` here", hint=f"there are: {known}")
        total = sum(learnings.count(store.database, which) for store in stores)
        return Page(learnings=_merged_page(stores, which, limit=limit, offset=offset), total=total)

    def edit(
        self, id: str, *, reason: str = "", add_tags: Sequence[str] = (), drop_tags: Sequence[str] = (), **changes: Any
    ) -> Learning:
        """Change fields of a learning; the fields are those of `add`."""
        fields = read_fields(self._record(changes))
        more = set(read_fields(self._record({"tags": add_tags}))["tags"])
        fewer = set(read_fields({"tags": drop_tags})["tags"])

        def decide(learning: Learning) -> dict[str, Any]:
            tags = set(fields.get("tags", learning.tags))
            return {**fields, "tags": tuple(sorted((tags | more) - fewer))}

        return self._alter(id, "edit", decide, reason=reason)

    def archive(self, id: str, *, reason: str = "") -> Learning:
        """Put a learning away: it leaves lists and briefs, and can be restored."""
        return self._alter(id, "archive", _to_status("archived"), reason=reason)

    def hide(self, id: str, *, reason: str = "") -> Learning:
        """Keep a learning out of every brief."""
        return self._alter(id, "hide", _to_status("hidden"), reason=reason)

    def restore(self, id: str, *, reason: str = "") -> Learning:
        """Make an archived, hidden, proposed or superseded learning active; a proposal then replaces what it names."""
        store, _ = self._holder(id, writable=True)
        now = self._clock()
        with store.transaction():
            change = self._change("restore", at=now, reason=reason)
            before, after = learnings.change(store.database, id, _to_status("active"), change)
            for member in before.replaces if before.status == "proposed" else ():
                if learnings.find(store.database, member):
                    change = self._change("supersede", at=now, reason=reason)
                    learnings.change(store.database, member, replaced_by(id), change)
        return after.replace(scope=store.place.scope)

    def pin(self, id: str, *, pinned: bool = True, reason: str = "") -> Learning:
        """Let a learning come first where it is relevant, whatever its confidence."""
        return self._alter(id, "pin" if pinned else "unpin", lambda _: {"pinned": pinned}, reason=reason)

    def like(self, id: str, *, reason: str = "") -> Learning:
        """Say that a learning is good: a little more confidence, once per person."""
        store, _ = self._holder(id)

        def decide(learning: Learning) -> dict[str, Any]:
            history = _standing(events.of(store.database, id))
            if any(event.what == "like" and event.who == self.person for event in history):
                return {}
            return {"confidence": confidence.liked(learning.confidence)}

        return self._alter(id, "like", decide, reason=reason)

    def supersede(self, old: str, new: str, *, reason: str = "") -> Learning:
        """Replace a learning by a better one; return the replaced one."""
        self.get(new)
        return self._alter(old, "supersede", lambda _: {"status": "superseded", "superseded_by": new}, reason=reason)

    def supersedes(self, id: str) -> list[str]:
        """Return the ids of the learnings that this one replaced."""
        self._holder(id)  # or say that there is none
        replaced = [old for store in self.sound_stores() for old in learnings.superseded_by(store.database, id)]
        return sorted(dict.fromkeys(replaced))

    def undo(self, id: str, *, reason: str = "") -> Learning:
        """Take back the last change of a learning, or the change with this event id."""
        event = self._find_event(id) if is_id("event", id) else _last_undoable(self.history(id))
        before = self.get(event.subject)
        after = self._alter(
            event.subject,
            "undo",
            lambda learning: taking_back(event, learning),
            reason=reason,
            undoes=event.id,
            also=lambda store: self._undo_mark(store, event),
        )
        if after.version == before.version:
            raise WrongRequest(f"there is nothing left of {event.id} to undo", hint=f"see `learnt history {after.id}`")
        return after

    def _new_learning(self, record: dict[str, Any], *, created_at: int) -> Learning:
        fields = read_fields(self._record(record))
        fields.setdefault("confidence", confidence.start(fields.get("origin", "person")))
        times = read_fields({"created_at": created_at, "updated_at": created_at}, allowed=("created_at", "updated_at"))
        return Learning(id=new_id("learn", self._clock()), **times, **{"title": "", **fields})


def _merged_page(stores: Sequence[Store], which: Filter, *, limit: int, offset: int) -> tuple[Learning, ...]:
    """Return a page of the learnings of several stores as if they were one, newest first."""
    if len(stores) == 1:
        pages = [(stores[0], learnings.page(stores[0].database, which, limit=limit, offset=offset))]
        offset = 0
    else:
        pages = [(store, learnings.page(store.database, which, limit=limit + offset)) for store in stores]
    found = [learning.replace(scope=store.place.scope) for store, page in pages for learning in page]
    found.sort(key=lambda learning: (learning.created_at, learning.id), reverse=True)
    return tuple(found[offset : offset + limit])


def _to_status(status: str) -> Callable[[Learning], dict[str, Any]]:
    return lambda _: {"status": status, "superseded_by": ""}


def replaced_by(successor: str) -> Callable[[Learning], dict[str, Any]]:
    """Supersede what is still active."""
    return lambda one: {"status": "superseded", "superseded_by": successor} if one.status == "active" else {}


def _standing(history: list[Event]) -> list[Event]:
    """Return the changes that still hold: without those that were undone, and without the undoings."""
    undone: set[str] = set()
    standing = []
    for event in reversed(history):
        if event.id in undone:
            continue  # an undoing that was itself undone lets its event stand again
        if event.undoes:
            undone.add(event.undoes)
        else:
            standing.append(event)
    return standing[::-1]


def _last_undoable(history: list[Event]) -> Event:
    """Return the latest change that still holds: repeated undos walk back."""
    standing = _standing(history)
    if standing:
        return standing[-1]
    raise WrongRequest("every change of this learning is undone already", hint="`learnt history ID` shows them")


def taking_back(event: Event, learning: Learning) -> dict[str, Any]:
    """Return what taking a change back changes of a learning; raise when that was changed again since."""
    if not event.old:
        return {"status": "archived", "superseded_by": ""}  # what was added is put away: nothing is deleted
    present = as_record(learning)
    changed = [name for name, value in event.new.items() if present[name] != value]
    if changed:
        raise WrongRequest(
            f"{changed[0]} of {learning.id} was changed again after {event.id}",
            hint=f"undo the later change first: `learnt history {learning.id}`",
        )
    return read_fields(event.old, allowed=Learning.fields)
