"""Mining what agents did for learnings: by rules, or by the model that the user named.

What waits to be mined is read task by task: first everything that can fail or takes long (transcripts, the model), then
one transaction in which discoveries and learnings are kept and the material is let go. A model that fails changes
nothing: the task's material waits for the next time. New learnings are on trial; a model's revisions and removals of
known ones wait for a person.
"""

from __future__ import annotations

import os
import time
from itertools import chain

from learnt.errors import LearntError, TryAgain
from learnt.flow.briefs import SearchRequest, search
from learnt.flow.learnings import count_recurrence
from learnt.flow.model_calls import Asking
from learnt.model import PROGRAM, TEXT_LIMIT, Discovery, Learning, Value, new_id, text_id
from learnt.project import head_commit
from learnt.store import escalations, learnings, mined, tasks
from learnt.store.escalations import Escalation
from learnt.store.learnings import Change
from learnt.text.records import read_fields
from learnt.weigh import confidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from learnt.clients.kit.steps import Step
    from learnt.mine.ask import ProposedChange, ProposedChanges
    from learnt.mine.extract import LearningDraft
    from learnt.model import Task
    from learnt.store.database import Database
    from learnt.store.mined import Material

NO_HURRY_S = 24 * 3600.0
_NEAREST = 8
LONGEST_READ = 24_000
_LONGEST_QUERY = 4_000
_MOST_BY_RULES = 10
_SEEN_OFTEN = 2
_BETWEEN_QUESTIONS_MS = 60 * 60 * 1000
FINDING = "finding"
# What only the history of reviews shows, and no model is told.
_BY_RULES_ALONE = (FINDING, "review")
_LEFT_TO_THE_MODEL = "left to the model, which was told of it"
_WAITS = "waits for the improvement that closes it, or for a second review that finds it"


class Mined(Value):
    """What the work at a task taught."""

    task: str
    learnings: tuple[str, ...] = ()
    """Learnings that are new."""
    repeated: tuple[str, ...] = ()
    """Learnings that were known already, and came again."""
    proposed: tuple[str, ...] = ()
    """Learnings that wait for a person: revisions by a model, and what was too particular until it came twice."""
    escalated: tuple[str, ...] = ()
    """Questions whether a learning should go."""
    skipped: tuple[str, ...] = ()
    """Why the rest became none."""


class Reading(Value):
    """What was read of the work at a task, before anything is made of it."""

    task: Task
    said: str = ""
    is_waiting: bool = False
    """Whether it is made of material that waits: somebody else may take it in first."""
    found: tuple[Discovery, ...] = ()
    """What rules see in it."""
    changes: ProposedChanges | None = None
    """What the model says about it; None where none is asked."""


class Mining(Asking):
    """What is learnt from what agents did."""

    def _read_task(self, id: str, deadline: float) -> Reading:
        """Return what the attempts at a task show."""
        task = tasks.get(self.store.database, id)
        material = mined.material_of(self.store.database, id)
        found = tuple(self._safe(one, task) for one in _within(self._observed(task, material), deadline))
        return Reading(task=task, said="\n\n".join(one.text for one in material), is_waiting=True, found=found)

    def _understood(self, reading: Reading, regeneration: str, limit_s: float) -> Reading:
        """Return a reading with what the model says about it, if one is named and there is something to say."""
        if not self.asks_a_model or not (reading.said.strip() or reading.found):
            return reading
        if reading.task.type == "session":
            with self.store.transaction():
                mined.note_read(self.store.database, _asking(reading.task), size=1, task="", at=self._clock())
        return reading.replace(changes=self._asked(reading, regeneration=regeneration, limit_s=limit_s))

    def _was_asked_lately(self, task: Task) -> bool:
        """Say whether the model was asked about a conversation so short a time ago that it is not asked by itself.

        Each turn adds to a conversation: asked after each of them, a model that fails would fail as often, and one that
        answers would be paid for the same words again and again.
        """
        if not self.asks_a_model or task.type != "session":
            return False
        return mined.read_at(self.store.database, _asking(task)) > self._clock() - _BETWEEN_QUESTIONS_MS

    def _take_in(self, database: Database, reading: Reading) -> Mined:
        """Within a transaction: keep what a reading teaches, and let the material go."""
        outcome = _Outcome()
        if not mined.drop_material(database, reading.task.id) and reading.is_waiting:
            return outcome.told(reading.task.id)  # on another machine, somebody was faster
        changes = reading.changes
        for discovery in reading.found:
            if changes is None or discovery.rule in _BY_RULES_ALONE:
                self._take_up(database, discovery, reading.task, outcome)
            else:
                mined.add(database, discovery, at=self._clock(), skipped=_LEFT_TO_THE_MODEL)
        if changes is not None:
            outcome.skipped.extend(changes.skipped)
            for change in changes.changes:
                self._take_change(database, change, reading.task, outcome)
        return outcome.told(reading.task.id)

    def _observed(self, task: Task, material: Sequence[Material]) -> Iterator[Discovery]:
        """Yield what rules find in the attempts at a task."""
        from learnt.debrief.sigils import remove_sigils
        from learnt.mine.lessons import observe_attempts, observe_words
        from learnt.mine.observe import observe_steps

        attempts = tasks.attempts(self.store.database, task.id)
        reports = tasks.failures(self.store.database, task.id)
        said = {one.attempt: remove_sigils(one.text) for one in material}
        commits = {one.attempt: one.commit for one in material}
        for attempt in reversed(attempts):
            if attempt.id in said and attempt.transcript:
                for seen in observe_steps(self._steps_of(attempt.transcript), folder=self.root):
                    yield seen.replace(attempt=attempt.id, commit=commits[attempt.id])
        if task.type == "session":
            for turn in material:
                for told in observe_words(said[turn.attempt]):
                    yield told.replace(attempt=turn.attempt, commit=turn.commit)
            return
        done = next((attempt for attempt in attempts if attempt.result == "done"), None)
        if done is None:
            return
        last = said.get(done.id, "")
        for attempt in attempts[1:]:
            if attempt.id in said and attempt.id in reports:
                lesson = observe_attempts(reports[attempt.id], summary=done.summary, said=last)
                if lesson is not None:
                    yield lesson.replace(attempt=attempt.id, commit=commits[attempt.id])
        for told in chain(observe_words(last), self._reviewed(task, last, done.summary)):
            yield told.replace(attempt=done.id, commit=commits.get(done.id, ""))

    def _reviewed(self, task: Task, said: str, summary: str) -> Iterator[Discovery]:
        """Yield what a review found, what recurs over reviews, and what an improvement closed."""
        from learnt.mine.reviews import find_recurring, observe_reviews, read_findings

        database = self.store.database
        if task.type == "review":
            found = read_findings(said)
            earlier = [read_findings(_listed(texts)) for texts in mined.found_elsewhere(database, FINDING, but=task.id)]
            told = {finding.text for finding in found}
            yield from (one for one in find_recurring([found, *earlier]) if one.excerpt in told)
            yield from (Discovery(type="pattern", text=finding.text, rule=FINDING) for finding in found)
        elif task.based_on:
            texts = [one.text for one in mined.findings_of(database, task.based_on, FINDING)]
            yield from observe_reviews(_listed(texts), f"{summary}\n{said}")

    def _steps_of(self, path: str) -> Iterator[Step]:
        """Yield the steps of a transcript; of one that is gone or no transcript, none."""
        from learnt.clients.kit.transcript import steps
        from learnt.store import session_database

        try:
            yield from steps(path, session_database)
        except LearntError:
            return

    def _safe(self, discovery: Discovery, task: Task) -> Discovery:
        """Return a discovery without secrets, with the task and the commit that it belongs to."""
        from learnt.text.redact import redact

        told = {
            name: redact(getattr(discovery, name))[0][:TEXT_LIMIT]
            for name in ("text", "failed", "error", "worked", "excerpt")
        }
        files = tuple(path for path in discovery.files if redact(path)[0] == path)
        commit = discovery.commit or (head_commit(self.root) if self.root else "")
        return discovery.replace(**told, files=files, task=task.id, commit=commit[:40])

    def _take_up(self, database: Database, discovery: Discovery, task: Task, outcome: _Outcome) -> None:
        """Within a transaction: make a learning of a discovery, or say why none."""
        from learnt.mine.extract import NoDraft, extract
        from learnt.mine.quality import find_flaw

        now = self._clock()
        drafted = extract(discovery, task_title=task.title, goal=task.goal)
        reason = drafted.reason if isinstance(drafted, NoDraft) else find_flaw(drafted)
        if discovery.rule == FINDING:
            mined.add(database, discovery, at=now, skipped=_WAITS)
            return
        if not reason and len(outcome.learnings) >= _MOST_BY_RULES:
            reason = f"one task teaches {_MOST_BY_RULES} learnings at most"
        known = self._known(database, discovery, "" if isinstance(drafted, NoDraft) else drafted.title)
        if known is not None:
            mined.add(database, discovery, at=now, learning=known.id)
            change = Change(what="recur", who=task.agent or "agent", at=now, reason=task.id)
            count_recurrence(database, known.id, change)
            outcome.repeated.append(known.id)
        elif reason:
            draft = None if isinstance(drafted, NoDraft) else drafted
            self._reject(database, draft, discovery, task=task, outcome=outcome, reason=reason)
        elif not isinstance(drafted, NoDraft):
            made = self._new(database, drafted, discovery, task)
            mined.add(database, discovery, at=now, learning=made.id)
            outcome.learnings.append(made.id)

    def _reject(
        self,
        database: Database,
        draft: LearningDraft | ProposedChange | None,
        discovery: Discovery,
        *,
        task: Task,
        outcome: _Outcome,
        reason: str,
        origin: str = "agent",
    ) -> None:
        """Within a transaction: keep what is no learning with the reason; once is an incident, twice is a sign."""
        now = self._clock()
        times = mined.add(database, discovery, at=now, skipped=reason)
        outcome.skipped.append(reason)
        if times >= _SEEN_OFTEN and draft is not None:
            why = f"found in {times} tasks, though {reason}"
            made = self._new(database, draft, discovery, task, origin=origin, status="proposed", reason=why)
            mined.add(database, discovery, at=now, learning=made.id, skipped=reason)
            outcome.proposed.append(made.id)

    def _known(self, database: Database, discovery: Discovery, title: str) -> Learning | None:
        """Return the learning that says this already."""
        id = mined.learning_of(database, discovery)
        found = learnings.find(database, id) if id else None
        return found if found or not title else learnings.same_as(database, title)

    def _new(
        self,
        database: Database,
        draft: LearningDraft | ProposedChange,
        discovery: Discovery,
        task: Task,
        *,
        origin: str = "agent",
        status: str = "active",
        revises: Learning | None = None,
        reason: str = "",
    ) -> Learning:
        """Within a transaction: keep a new learning; what a draft does not say stays as in the one that it revises."""
        now = self._clock()
        fields = {name: value for name, value in draft.as_dict().items() if name in _DRAFTED and value}
        if revises is not None:
            fields = {**{name: getattr(revises, name) for name in _DRAFTED}, **fields}
        learning = Learning(
            id=new_id("learn", now),
            **read_fields(self._record(fields)),
            origin=origin,
            goal=revises.goal if revises else task.goal,
            task="" if task.type == "commit" else task.id,
            discovery=discovery.type,
            commit=discovery.commit,
            confidence=confidence.start_of_discovery(discovery.type),
            status=status,
            replaces=(revises.id,) if revises else (),
            pinned=revises is not None and revises.pinned,
            created_at=now,
            updated_at=now,
        )
        who = task.agent or "agent" if origin == "agent" else PROGRAM
        change = Change(what="propose" if status == "proposed" else "add", who=who, at=now, reason=reason)
        learnings.add(database, learning, change)
        return learning

    def _asked(self, reading: Reading, *, regeneration: str, limit_s: float) -> ProposedChanges:
        from learnt.llm import ModelRequest
        from learnt.mine.ask import cut_material, make_request, read_changes
        from learnt.text.redact import redact

        if limit_s <= 0:
            raise TryAgain("no time is left to ask the model", hint="`learnt update` asks without hurry")
        task, found = reading.task, reading.found
        read = cut_material(redact(reading.said)[0], limit_chars=LONGEST_READ)
        query = "\n".join((task.title, task.text, *(one.text for one in found), read))[:_LONGEST_QUERY]
        near = search(self.context, SearchRequest(query=query, limit=4 * _NEAREST, min_confidence=0.0))
        nearest = [hit.learning for hit in near if hit.learning.scope == "project"][:_NEAREST]
        system, prompt, schema = make_request(
            task_title=task.title,
            task_text=task.text,
            task_type=task.type,
            result=task.status,
            material=read,
            findings=found,
            nearest=nearest,
            template=self._prompt("extract"),
        )
        request = ModelRequest(purpose="extract", system=system, prompt=prompt, schema=schema)
        answer = self._ask(request, task=task.id, regeneration=regeneration, limit_s=limit_s)
        return read_changes(answer.data, known_ids=[one.id for one in nearest])

    def _prompt(self, name: str) -> str:
        """Return a prompt: the project's own, or ours."""
        from learnt.mine.ask import TEMPLATES
        from learnt.text.templates import read_template

        return read_template(name, (os.path.join(self.store.place.folder, "prompts"), TEMPLATES))

    def _take_change(self, database: Database, change: ProposedChange, task: Task, outcome: _Outcome) -> None:
        """Within a transaction: do what the model says, as far as it may decide."""
        from learnt.mine.quality import find_flaw_in

        now = self._clock()
        known = learnings.find(database, change.id) if change.id else None
        if change.do == "KEEP" and known is not None:
            kept = Discovery(type="pattern", text=f"It still holds: {known.title}", rule="model", excerpt=change.reason)
            mined.add(database, self._safe(kept, task), at=now, learning=known.id)
            return
        if change.do != "ADD" and known is None:
            outcome.skipped.append(f"`{change.id}` is no more")
            return
        if change.do == "REMOVE" and known is not None:
            outcome.escalated.append(self._propose_removal(database, known, change, task))
            return
        change = _completed(change, known) if known else change
        discovery = self._safe(
            Discovery(type=change.type, text=change.observation or change.title, rule="model", excerpt=change.reason),
            task,
        )
        reason = find_flaw_in(title=change.title, observation=change.observation, action=change.action)
        if reason:
            self._reject(database, change, discovery, task=task, outcome=outcome, reason=reason, origin="model")
        elif change.do == "REVISE" and _is_proposed(database, change):
            outcome.skipped.append(f"the same revision of `{change.id}` waits already")
        elif change.do == "REVISE":
            made = self._new(database, change, discovery, task, origin="model", status="proposed", revises=known)
            mined.add(database, discovery, at=now, learning=made.id)
            outcome.proposed.append(made.id)
        else:
            known = self._known(database, discovery, change.title)
            if known is not None:
                again = Change(what="recur", who=PROGRAM, at=now, reason=task.id)
                count_recurrence(database, known.id, again)
                outcome.repeated.append(known.id)
            else:
                known = self._new(database, change, discovery, task, origin="model")
                outcome.learnings.append(known.id)
            mined.add(database, discovery, at=now, learning=known.id)

    def _propose_removal(self, database: Database, learning: Learning, change: ProposedChange, task: Task) -> str:
        why = self._line(change.reason, 500) or "it does not hold any more"
        escalation = Escalation(
            id=text_id("esc", f"remove {learning.id}"),  # whoever said once that it stays is not asked again
            subject=learning.id,
            question=f"Should `{learning.title}` go? {why}",
            detail={"task": task.id, "by": self.settings.model_name or self.settings.model_provider},
            created_at=self._clock(),
        )
        escalations.add(database, escalation)
        return escalation.id


_DRAFTED = (
    "title",
    "context",
    "observation",
    "implication",
    "action",
    "tags",
    "domain",
    "category",
    "kind",
    "polarity",
    "triggers",
)


class _Outcome:
    """What became of the discoveries so far."""

    def __init__(self) -> None:
        self.learnings: list[str] = []
        self.repeated: list[str] = []
        self.proposed: list[str] = []
        self.escalated: list[str] = []
        self.skipped: list[str] = []

    def told(self, task: str) -> Mined:
        """Return it as a value."""
        return Mined(
            task=task,
            learnings=tuple(self.learnings),
            repeated=tuple(dict.fromkeys(self.repeated)),
            proposed=tuple(self.proposed),
            escalated=tuple(self.escalated),
            skipped=tuple(self.skipped),
        )


def _asking(task: Task) -> str:
    return f"asked about {task.id}"


def _completed(change: ProposedChange, known: Learning) -> ProposedChange:
    """Return a revision with the type and the texts that it leaves as they are."""
    kept = {name: getattr(change, name) or getattr(known, name) for name in ("title", "observation", "action")}
    return change.replace(type=change.type or known.discovery or "pattern", **kept)


def _is_proposed(database: Database, change: ProposedChange) -> bool:
    """Say whether a person has a revision of this learning to decide on, or has refused this very one."""
    alike = [one for one in learnings.with_title(database, change.title) if one.replaces == (change.id,)]
    return bool(alike) or learnings.has_proposal(database, change.id)


def _listed(texts: Iterable[str]) -> str:
    return "".join(f"- {text}\n" for text in texts)


def _within(found: Iterable[Discovery], deadline: float) -> Iterator[Discovery]:
    """Yield discoveries as long as there is time."""
    for one in found:
        yield one
        if time.monotonic() > deadline:
            raise TryAgain("reading took too long", hint="`learnt update` reads without hurry")
