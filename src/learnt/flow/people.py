"""Keep what people say to agents: their rules, corrections and decisions, from transcripts and from the prompt hook.

What a person typed in an interactive client and said as a rule is vouched for by that person, and active at once.
Softer corrections, decisions, what may be pasted, prompts of unattended runs and of tasks of `learnt work`, and
everything that an agent lets learnt read, are proposed: the person decides in `learnt review`. A file that lies in the
project may have come with it, so nobody vouches for what it says.

The same words are one learning, however often and from wherever they are read. What a person said later replaces what
he said earlier about the same thing, and what was taken back stays away until he says it again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from learnt.clients.kit.transcript import Step, is_stored_by_client, lies_in
from learnt.clients.registry import FOLDER_VARIABLES
from learnt.flow.context import Context
from learnt.flow.learnings import replace_by
from learnt.flow.mining import MiningReport, redact_discovery
from learnt.mine.decisions import chooses_instead, is_narrower, read_decision
from learnt.mine.extract import LearningDraft, NoDraft, extract
from learnt.mine.people import Utterance, read_prompt
from learnt.mine.people_rules import ASKED, SOFT
from learnt.mine.quality import find_flaw
from learnt.model import TITLE_LIMIT, Discovery, Learning, Task, new_id, text_id
from learnt.store import Store, learnings, mined, tasks
from learnt.store.database import Database
from learnt.store.happened import KEPT, PromptRecord, add_notice
from learnt.text.clean import fold
from learnt.text.records import read_fields
from learnt.weigh.compare import CONTRADICTS, SUPERSEDES, compare
from learnt.weigh.confidence import PERSON, STATEMENT_FIELDS, start, vouch_by_person

_MAX_ANSWERED = 160
_MAX_COMPARED = 200
_NOT_IN_FORCE = ("archived", "hidden", "superseded")


class Listener:
    """Hears what a person says while the steps of a conversation go by."""

    def __init__(self) -> None:
        self.heard: list[Utterance] = []
        self._answered = ""

    def follow(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield the steps."""
        for step in steps:
            if step.kind == "said" and not step.aside:
                self._answered = step.text
            elif step.kind == "prompt" and not step.aside:
                self.heard += listen(step.text, answers=self._answered, typed=step.typed, at=step.at)
            yield step


def listen(prompt: str, *, answers: str = "", typed: bool, at: int) -> list[Utterance]:
    """Return what a prompt states; `answers` is the agent's message that it answers."""
    found, decision = read_prompt(prompt), read_decision(answers, prompt)
    if decision is not None:  # the answer as a whole says more than its sentences, unless one is a rule
        found = [utterance for utterance in found if utterance.force != SOFT]
        decision = None if found else decision
    context = _cut_line(answers)
    return [
        utterance.replace(answers=context, typed=typed, at=at)
        for utterance in (*found, *([decision] if decision else []))
    ]


def apply(context: Context, database: Database, body: dict[str, Any]) -> None:
    """Within a transaction: keep what a prompt states that a hook has spooled."""
    record = PromptRecord.from_row(body)
    new = Task(
        id=record.task,
        title=record.task,
        type="session",
        client=record.client,
        created_at=record.at,
        updated_at=record.at,
    )
    heard = listen(record.text, typed=record.typed, at=record.at)
    if not heard:
        return
    tasks.ensure(database, new)
    task = tasks.get(database, record.task)
    if not task.skip_learnings:
        keep(context, heard, task=task)


def keep(context: Context, heard: Sequence[Utterance], *, task: Task, attempt: str = "") -> MiningReport:
    """Within a transaction: keep what a person said in a conversation; what was said before is not kept twice."""
    keeper = _Keeper(context, task, attempt)
    for utterance in heard:
        keeper.keep(utterance)
    return keeper.report


def may_vouch(context: Context, path: str) -> bool:
    """Return whether a person may have said what is in a transcript: it is a client's own, or not from the project."""
    if context.by != PERSON:
        return False
    variables = {name: os.environ[name] for name in FOLDER_VARIABLES if name in os.environ}
    is_in_project = bool(context.root) and lies_in(os.path.realpath(path), os.path.realpath(context.root))
    return not is_in_project or is_stored_by_client(path, variables)


class _Keeper:
    """Within a transaction: keeps what a person says in one conversation, and reports what was done."""

    def __init__(self, context: Context, task: Task, attempt: str) -> None:
        self._context = context
        self._task = task
        self._attempt = attempt
        self._store: Store = context.store
        self.report = MiningReport(task=task.id)

    def keep(self, utterance: Utterance) -> None:
        """Keep an utterance: as a learning, as a proposal, or as the reason why it is neither."""
        discovery = self._discover(utterance)
        if not is_new_or_stored(self._context, discovery):
            return
        drafted = extract(discovery)
        reason = drafted.reason if isinstance(drafted, NoDraft) else find_flaw(drafted)
        vouches = self._vouches(utterance)
        if reason or isinstance(drafted, NoDraft):
            mined.add(self._store.database, discovery, at=self._context.clock(), skipped=reason)
            self._note("skipped", reason)
            return
        learning = self._make(drafted, utterance, discovery, vouches=vouches)
        known = self._find_known(discovery, learning, vouches=vouches)
        if known is None:
            known = self._add(learning, utterance, vouches=vouches)
        else:
            self._repeat(*known, learning, utterance, vouches=vouches)
        mined.add(self._store.database, discovery, at=utterance.at or self._context.clock(), learning=known[1].id)

    def _writing(self, store: Store) -> AbstractContextManager[object]:
        """Return the transaction in which a store is written to: the caller's own, or one of another store."""
        return nullcontext() if store is self._store else store.transaction()

    def _note(self, name: str, value: str) -> None:
        self.report = self.report.replace(**{name: (*getattr(self.report, name), value)})

    def _discover(self, utterance: Utterance) -> Discovery:
        type = "decision" if utterance.is_decision else "pattern"
        discovery = Discovery(
            type=type, rule=mined.SAID, text=utterance.text, excerpt=utterance.words, attempt=self._attempt
        )
        return redact_discovery(self._context, discovery, self._task)

    def _vouches(self, utterance: Utterance) -> bool:
        """Return whether the person stands behind these words as a rule."""
        is_rule = utterance.force != SOFT and utterance.own
        is_direct = self._task.type == "session" and not self._task.parent and self._context.by == PERSON
        return utterance.typed and is_rule and is_direct

    def _find_known(self, discovery: Discovery, new: Learning, *, vouches: bool) -> tuple[Store, Learning] | None:
        """Return the learning that these words became before, or one that says the same.

        What an agent wrote under the same title may say more. It is the same only if the person's words, which he
        vouches for, take the place of its own.
        """
        id = mined.find_learning(self._store.database, discovery)
        for store in self._context.sound_stores():
            learning = learnings.find(store.database, id) if id else None
            same = learning or learnings.find_same(store.database, new.title)
            is_same = same is not None and (learning or same.vouched == PERSON or (vouches and same.status == "active"))
            if same is not None and is_same and not store.place.read_only:
                return store, same
        return None

    def _repeat(self, store: Store, known: Learning, new: Learning, utterance: Utterance, *, vouches: bool) -> None:
        """Let a known learning recur, or renew it with the person's word and words, if these are newer than it."""
        now = self._context.clock()
        is_newer = known.status not in _NOT_IN_FORCE or utterance.at > known.updated_at
        self._note("repeated", known.id)
        if vouches and is_newer and (known.status != "active" or known.vouched != PERSON):
            renewed = {name: getattr(new, name) for name in (*STATEMENT_FIELDS, "origin", "author", "status")}
            change = self._context.change("restore", at=now, reason=utterance.words)
            with self._writing(store):
                decide = partial(vouch_by_person, changes={**renewed, "superseded_by": ""})
                learnings.change(store.database, known.id, decide, change)
            self._settle(learnings.get(store.database, known.id), utterance)
        elif known.status == "active":
            who, task = self._context.person, self._task.id
            with self._writing(store):
                learnings.recur(store.database, known, task=task, who=who, at=now)

    def _add(self, learning: Learning, utterance: Utterance, *, vouches: bool) -> tuple[Store, Learning]:
        store = self._context.find_user_store() if vouches and utterance.everywhere else self._store
        change = self._context.change("add" if vouches else "propose", at=self._context.clock())
        with self._writing(store):
            learnings.add(store.database, learning, change)
        self._note("learnings" if vouches else "proposed", learning.id)
        if vouches:
            self._settle(learning, utterance)
        return store, learning

    def _make(self, draft: LearningDraft, utterance: Utterance, discovery: Discovery, *, vouches: bool) -> Learning:
        now = self._context.clock()
        drafted = {**draft.as_dict(), "context": utterance.answers and f"In answer to: {utterance.answers}"}
        fields = {name: value for name, value in drafted.items() if name in STATEMENT_FIELDS and value}
        learning = Learning(
            id=new_id("learn", now),
            **read_fields(self._context.redact_record(fields)),
            origin="person",
            task=self._task.id,
            goal=self._task.goal,
            discovery=discovery.type,
            commit=discovery.commit,
            confidence=start("person" if vouches else "agent"),
            author=self._context.person[:TITLE_LIMIT],
            status="active" if vouches else "proposed",
            created_at=now,
            updated_at=now,
        )
        return learning.replace(**vouch_by_person(learning)) if vouches else learning

    def _settle(self, learning: Learning, utterance: Utterance) -> None:
        """Replace what the person said before and no longer holds; confirm what he asked to be remembered.

        Transcripts may be read in any order: what was said before something else is replaced by that.
        """
        change = self._context.change("supersede", at=self._context.clock(), reason=utterance.words)
        for holder, other in self._list_others(learning):
            is_later = mined.last_found_at(self._store.database, other.id) > (utterance.at or self._context.clock())
            old, new = (learning, other) if is_later else (other, learning)
            if says_otherwise(old, new):
                store = self._find_store(learning.id) if is_later else holder
                with self._writing(store):
                    learnings.change(store.database, old.id, replace_by(new.id, only_active=True), change)
                if is_later:
                    return
        if utterance.force == ASKED:
            add_notice(self._store.database, self._task.id, KEPT, learning.id, at=self._context.clock())

    def _find_store(self, id: str) -> Store:
        stores = self._context.sound_stores()
        return next((store for store in stores if learnings.find(store.database, id) is not None), self._store)

    def _list_others(self, learning: Learning) -> Iterator[tuple[Store, Learning]]:
        """Yield the active learnings that the same person stated at other times, latest first."""
        ids = [
            id
            for id in mined.list_learnings(self._store.database, mined.SAID, limit=_MAX_COMPARED)
            if id != learning.id
        ]
        for store in self._context.sound_stores():
            for other in learnings.get_all(store.database, ids).values():
                is_own = other.vouched == PERSON and other.author == learning.author
                if is_own and other.status == "active" and not store.place.read_only:
                    yield store, other


def says_otherwise(earlier: Learning, later: Learning) -> bool:
    """Return whether a later rule replaces an earlier one: it denies it, contains it, or chooses something else.

    One that holds elsewhere only is an exception: `use tabs`, then `never use tabs in YAML`.
    """
    verdict = compare(earlier, later)
    if verdict == CONTRADICTS:
        return not is_narrower(earlier.title, later.title)
    return verdict == SUPERSEDES or chooses_instead(earlier.title, later.title)


def is_new_or_stored(context: Context, discovery: Discovery) -> bool:
    """Return whether a discovery is new or still stored; reading a source again never restores a purged discovery."""
    is_new = context.store.claim_operation(text_id("op", f"found {discovery.task} {mined.discovery_key(discovery)}"))
    return is_new or mined.is_stored(context.store.database, discovery)


def _cut_line(text: str) -> str:
    """Return the end of an agent's message on one line: its last sentences say what it asks or has done."""
    line = fold(re.sub(r"`{3}.*?`{3}", " ", text[-2_000:], flags=re.DOTALL))
    return line if len(line) <= _MAX_ANSWERED else f"…{line[-_MAX_ANSWERED:].partition(' ')[2]}"
