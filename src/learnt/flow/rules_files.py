"""Import the rules that people wrote for agents: CLAUDE.md, AGENTS.md, .cursor/rules, memories, a learnings.md.

A preview is the import itself in a transaction that is rolled back, so it shows exactly what would be done. A person
who has seen it vouches for what is taken over; in an agent's shell it is on trial. All changes of an import have its id
as their reason, so that one undo finds them.

A learning remembers the file that it stands in. If that file is imported again, what it still says stays, what was
reworded there is revised, and what it no longer says is reported. Briefs for a client that loads the file by itself
leave such learnings out (`clients.registry`), until the worker finds that the file does not contain them any more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from learnt.clients.registry import CLIENTS
from learnt.errors import InvalidValue, LearntError
from learnt.flow.context import Context
from learnt.flow.folding import find_similar
from learnt.flow.learnings import new_learning
from learnt.flow.rules_paths import (
    RulesSource,
    find_rules_files,
    is_rules_file,
    list_sources,
    read_source,
    read_text,
)
from learnt.mine.classify import find_kind
from learnt.mine.quality import find_flaw_in
from learnt.mine.rules_file import LeftOut, Rule, read_rules
from learnt.model import AVOID, PROGRAM, Learning, Value, new_id
from learnt.store import Store, learnings, learnings_in_files
from learnt.store.index import Filter
from learnt.store.learnings import Change
from learnt.text.titles import text_key
from learnt.text.words import words
from learnt.weigh.confidence import PERSON, is_persons, vouch_by_person

ADDED, UPDATED, UNCHANGED, KEPT = "added", "updated", "unchanged", "kept"
_CHECKED_AT = "files with rules checked at"
_MIN_SHARED_WORDS = 0.5
_MAX_COMPARED = 5


class TakenRule(Value):
    """What becomes of a rule in a file."""

    what: str
    """`added`, `updated` (a known learning is revised or vouched for), `unchanged`, or `kept` as it is here."""
    id: str
    rule: Rule
    file: str
    before: str = ""
    """The title that a revised learning had."""
    reason: str = ""


class GoneRule(Value):
    """A learning that its file no longer contains."""

    id: str
    title: str
    file: str


class RulesImport(Value):
    """What an import did, or would do."""

    id: str
    files: tuple[str, ...]
    taken: tuple[TakenRule, ...] = ()
    left_out: tuple[tuple[str, LeftOut], ...] = ()
    """What is no rule, each with its file."""
    gone: tuple[GoneRule, ...] = ()
    loaded_by: tuple[str, ...] = ()
    """The clients that load one of the files by themselves."""
    vouched: bool = False
    """Whether a person vouches for what is taken over."""

    def count(self, what: str) -> int:
        """Return how many rules had this outcome."""
        return sum(rule.what == what for rule in self.taken)

    @property
    def changes_something(self) -> bool:
        """Whether the store changes."""
        return bool(self.count(ADDED) + self.count(UPDATED))


class _RolledBack(Exception):
    """Rolls back the transaction of a preview."""


class RulesFiles:
    """The import of files with rules."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    @staticmethod
    def find(folder: str) -> list[str]:
        """Return the usual files with rules in a project's main folder."""
        return find_rules_files(folder)

    @staticmethod
    def recognises(path: str, text: str = "") -> bool:
        """Return whether a file has rules for agents, by its name and otherwise by its content."""
        return is_rules_file(path, text)

    def read(self, path: str) -> list[RulesSource]:
        """Return the files with rules at a path, which may be a folder; raise WrongRequest if there is none."""
        return [read_source(self._context, file) for file in list_sources(self._context, path)]

    def read_text(self, content: bytes, name: str) -> list[RulesSource]:
        """Return rules that come from elsewhere than a file."""
        return [RulesSource(name=name, text=read_text(self._context, content, name))]

    def preview(self, sources: Sequence[RulesSource]) -> RulesImport:
        """Return what an import would do; nothing is changed."""
        try:
            with self._store.transaction():
                previewed = self._import(sources, "")
                raise _RolledBack
        except _RolledBack:
            return previewed

    def import_all(self, sources: Sequence[RulesSource]) -> RulesImport:
        """Take over the rules in files, all or none."""
        id = new_id("import", self._context.clock())
        with self._store.transaction():
            imported = self._import(sources, id)
        self._store.analyze_if_many(imported.count(ADDED))
        return imported

    def _import(self, sources: Sequence[RulesSource], id: str) -> RulesImport:
        """Within a transaction: take over the rules."""
        self._store.database.lock_words()  # so that two imports do not add the same learning
        taken: list[TakenRule] = []
        left_out: list[tuple[str, LeftOut]] = []
        gone: list[GoneRule] = []
        for source in sources:
            intake = _FileIntake(self._context, source, id)
            taken += intake.take_all()
            left_out += [(source.name, text) for text in intake.left_out]
            gone += intake.gone
        return RulesImport(
            id=id,
            files=tuple(source.name for source in sources),
            taken=tuple(taken),
            left_out=tuple(left_out),
            gone=tuple(gone),
            loaded_by=_list_clients(source.place for source in sources),
            vouched=self._context.by == PERSON,
        )


class _FileIntake:
    """Takes over the rules of one file."""

    def __init__(self, context: Context, source: RulesSource, import_id: str) -> None:
        self._context = context
        self._database = context.store.database
        self._source = source
        self._change = context.change("import", at=context.clock(), reason=import_id)
        self.left_out: list[LeftOut] = []
        self.gone: list[GoneRule] = []

    def take_all(self) -> list[TakenRule]:
        """Take over all rules; afterwards `left_out` and `gone` are known."""
        parsed = read_rules(self._source.text)
        self.left_out = list(parsed.left_out)
        rules = [rule.replace(files=rule.files or self._source.files) for rule in parsed.rules]
        rules = [rule for rule in rules if not self._is_flawed(rule)]
        place = self._source.place
        stored = learnings_in_files.in_file(self._database, place) if place else []
        known = {key: learning for learning in stored for key in self._keys(learning)}
        matched = {learning.id for rule in rules for learning in [known.get(rule.key)] if learning}
        free = [one for one in stored if one.id not in matched and one.status == "active"]
        taken = []
        for rule in rules:
            learning = known.get(rule.key)
            former = None if learning else _find_former(rule, free)
            if former is not None:
                free.remove(former)
            taken.append(self._revise(former, rule) if former else self._take(rule, learning))
        self.gone = [GoneRule(id=one.id, title=one.title, file=self._source.name) for one in free]
        return taken

    def _is_flawed(self, rule: Rule) -> bool:
        said = f"{AVOID}{rule.title}" if rule.polarity == "avoid" else rule.title
        flaw = find_flaw_in(title=said, observation=rule.text)
        if flaw:
            self.left_out.append(LeftOut(text=rule.title, reason=flaw, line=rule.line))
        return bool(flaw)

    def _keys(self, learning: Learning) -> Iterator[str]:
        """Yield the keys of a learning's text, and of the text that was imported if it has been edited here since."""
        yield text_key(learning.observation or learning.title)
        fields: dict[str, Any] = {}
        for event in learnings.history(self._database, learning.id):
            if event.what in ("import", "undo"):
                fields |= event.new
        yield text_key(fields.get("observation") or fields.get("title") or learning.title)

    def _take(self, rule: Rule, known: Learning | None) -> TakenRule:
        """Add a rule, or mark the learning that says it already."""
        new = self._make(rule)
        same = known if known and (is_persons(known) or _says_no_more(known, new)) else self._find_known(new)
        if same is None:
            learnings.add(self._database, new, self._change)
            return self._report(ADDED, new.id, rule)
        if same.status in ("hidden", "superseded") or (same.status == "archived" and not self._was_undone(same)):
            return self._report(KEPT, same.id, rule, reason=f"it is {same.status} here")
        before, after = learnings.change(self._database, same.id, partial(self._mark, rule), self._change)
        what = UNCHANGED if after.version == before.version else UPDATED
        return self._report(what, same.id, rule)

    def _find_known(self, new: Learning) -> Learning | None:
        """Return the learning that says what a rule says.

        A person has seen the rule only, so nobody else's learning counts that says more than it.
        """
        texts = dict.fromkeys((new.observation or new.title, new.title))
        exact = [same for text in texts if (same := learnings.find_same(self._database, text))]
        nearest = find_similar(self._database, new, limit=_MAX_COMPARED)
        known = [*exact, *(similar.learning for similar in nearest if similar.says_it_all)]
        return next((one for one in known if is_persons(one) or _says_no_more(one, new)), None)

    def _was_undone(self, learning: Learning) -> bool:
        """Return whether a learning was archived by the undo of an import, so that another import brings it back."""
        changes = [event for event in learnings.history(self._database, learning.id) if "status" in event.new]
        return bool(changes) and changes[-1].what == "undo"

    def _mark(self, rule: Rule, learning: Learning) -> dict[str, Any]:
        """Return the changes to a known learning: the file that it stands in, and the person's word for it."""
        is_by_person = self._context.by == PERSON
        if is_persons(learning) and not is_by_person:
            return {}
        changes: dict[str, Any] = {}
        if self._source.place and not learning.loaded_from and _stands_in(learning, {rule.key}):
            changes["loaded_from"] = self._source.place
        if learning.status == "archived":
            changes["status"] = "active"
        if rule.files and learning.origin == "import" and learning.loaded_from == self._source.place:
            changes["triggers"] = learning.triggers.replace(files=rule.files)
        if is_by_person and not rule.on_trial and not is_persons(learning):
            return vouch_by_person(learning, changes)
        return changes

    def _revise(self, learning: Learning, rule: Rule) -> TakenRule:
        """Give a learning the text that its file has now, unless it was changed here, too."""
        if is_persons(learning) and self._context.by != PERSON:
            return self._report(KEPT, learning.id, rule, before=learning.title, reason="a person vouches for it")
        if any(event.what == "edit" for event in learnings.history(self._database, learning.id)):
            reason = "it was changed here, and in the file"
            return self._report(KEPT, learning.id, rule, before=learning.title, reason=reason)
        new = self._make(rule)
        fields = ("title", "observation", "context", "category", "polarity", "triggers", "vouched", "confidence")
        changes = {name: getattr(new, name) for name in fields}
        learnings.change(self._database, learning.id, lambda _: changes, self._change)
        return self._report(UPDATED, learning.id, rule, before=learning.title)

    def _make(self, rule: Rule) -> Learning:
        """Return a new learning with a rule's text."""
        record = {
            "title": rule.title,
            "observation": "" if rule.text.rstrip(" .") == rule.title else rule.text,
            "context": rule.context,
            "category": rule.category,
            "kind": find_kind(rule.title),
            "polarity": rule.polarity,
            "triggers": {"files": list(rule.files)} if rule.files else {},
            "origin": "import",
        }
        learning = new_learning(self._context, record, created_at=self._context.clock(), by="import")
        learning = learning.replace(loaded_from=self._source.place)
        is_vouched = self._context.by == PERSON and not rule.on_trial
        return learning.replace(**vouch_by_person(learning)) if is_vouched else learning

    def _report(self, what: str, id: str, rule: Rule, *, before: str = "", reason: str = "") -> TakenRule:
        return TakenRule(what=what, id=id, rule=rule, file=self._source.name, before=before, reason=reason)


def _says_no_more(known: Learning, new: Learning) -> bool:
    """Return whether a known learning has the words of a new one, and no others."""
    text = text_key(known.observation or known.title)
    is_same = text in (text_key(new.observation or new.title), text_key(new.title))
    return is_same and text_key(known.title) == text_key(new.title) and not (known.implication or known.action)


def _find_former(rule: Rule, free: Sequence[Learning]) -> Learning | None:
    """Return the learning whose text a rule replaces: the one with the most common words, at least half of them."""
    ours = set(words(rule.text))

    def share(learning: Learning) -> float:
        theirs = set(words(learning.observation or learning.title))
        return len(ours & theirs) / max(1, len(ours), len(theirs))

    best = max(free, key=share, default=None)
    return best if best is not None and share(best) >= _MIN_SHARED_WORDS else None


def _list_clients(places: Iterable[str]) -> tuple[str, ...]:
    """Return the clients that load one of these files by themselves."""
    known = tuple(places)
    loading = [
        client.title for client in CLIENTS if any(map(Filter(exclude_loaded=client.loads).leaves_out_file, known))
    ]
    return tuple(loading)


def refresh_marks(context: Context) -> int:
    """Let briefs show again what its file does not contain any more; return how many learnings that concerns.

    Only files that have changed since the last check are read.
    """
    return sum(_refresh_store(context, store) for store in context.sound_stores() if not store.place.read_only)


def _refresh_store(context: Context, store: Store) -> int:
    now, checked_at = context.clock(), store.database.counter(_CHECKED_AT)
    cleared, was_read = 0, False
    for place in learnings_in_files.files(store.database):
        keys = _read_keys(context, place, since_ms=checked_at)
        if keys is None:
            continue
        gone = [one for one in learnings_in_files.in_file(store.database, place) if not _stands_in(one, keys)]
        with store.transaction():
            for learning in gone:
                change = Change(what="import", who=PROGRAM, at=now, reason=f"no longer in {place}")
                learnings.change(store.database, learning.id, lambda _: {"loaded_from": ""}, change)
        cleared += len(gone)
        was_read = True
    if was_read:
        with store.transaction():
            store.database.count(_CHECKED_AT, now - checked_at)
    return cleared


def _read_keys(context: Context, place: str, *, since_ms: int) -> set[str] | None:
    """Return the keys of the rules in a file, none without a file, and None if it has not changed or is no text."""
    path = os.path.join(context.root, os.path.expanduser(place))
    try:
        if os.stat(path).st_mtime_ns // 1_000_000 < since_ms:
            return None
        return {rule.key for rule in read_rules(read_source(context, path).text).rules}
    except InvalidValue:
        return None  # in the middle of a merge, for example
    except (OSError, LearntError):
        return set()


def _stands_in(learning: Learning, keys: set[str]) -> bool:
    """Return whether a file with these rules says all that a learning says."""
    return text_key(learning.observation or learning.title) in keys and not (learning.implication or learning.action)
