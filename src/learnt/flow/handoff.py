"""Hand learnings over at the end of a piece of work: they are checked, stored, and appended to the staging file.

Every learning passes the gate, whoever wrote it: a principle and not an incident, complete, with a title that says when
it applies. What is known already is not written twice. What contradicts a learning in force waits for a person. What is
rejected is kept as a discovery, with the reason and a count of how often it came back. Nothing is consolidated here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from learnt.consolidate.ages import day_of
from learnt.consolidate.due import DueDecision
from learnt.consolidate.overlap import compare_by_table
from learnt.consolidate.questions import ask_which_holds
from learnt.consolidate.staging import find_occasion_flaw, read_handed_over
from learnt.errors import InvalidValue, LearntError, WrongRequest
from learnt.flow.consolidation import Consolidation
from learnt.flow.context import Context
from learnt.flow.decisions import propose
from learnt.flow.folding import Similar, add_or_repeat, find_similar, refuse
from learnt.flow.learnings import fit_title, new_learning
from learnt.flow.staging_file import stage, staging_path
from learnt.mine.classify import find_category
from learnt.mine.quality import find_flaw_in
from learnt.model import TEXT_LIMIT, Discovery, Learning, Value, is_id
from learnt.store import learnings, mined, tasks
from learnt.store.index import Filter
from learnt.store.learnings import Change
from learnt.text.clean import clean, fold
from learnt.weigh.compare import CONTRADICTS

_MAX_OF_TASK = 200


class RejectedLearning(Value):
    """What was handed over and not taken, and why."""

    title: str
    reason: str
    times: int = 1
    """On how many occasions it was handed over."""
    id: str = ""
    """The learning that waits for a person's decision because of it; empty if none does."""
    escalation: str = ""


class HandoffReport(Value):
    """What became of the learnings that were handed over."""

    path: str
    """The staging file."""
    staged: tuple[Learning, ...] = ()
    known: tuple[Learning, ...] = ()
    """Learnings that stood in the staging file or in a topic file before, or that a person has retired."""
    unstaged: tuple[Learning, ...] = ()
    """Learnings that are in the store only, because the staging file could not be written."""
    rejected: tuple[RejectedLearning, ...] = ()
    due: DueDecision | None = None
    """Whether consolidation is due; None if that could not be found out."""
    problems: tuple[str, ...] = ()
    """What went wrong; the learnings themselves are in the store."""


class Handoffs:
    """Handing learnings over to the staging file."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    def handoff(self, text: str = "", *, task: str = "") -> HandoffReport:
        """Check the learnings in a text and those that a task taught, and append them to the staging file."""
        if not self._context.root:
            raise WrongRequest("the user-wide store has no staging file", hint="go to a project")
        taken: list[Learning] = []
        rejected: list[RejectedLearning] = []
        for outcome in (*self._take_text(clean(text), task), *self._take_task(task)):
            if isinstance(outcome, RejectedLearning):
                rejected.append(outcome)
            else:
                taken.append(outcome)
        is_unknown = bool(task) and tasks.find(self._store.database, task) is None
        problems = [f"there is no task `{fold(task[:100])}`: `learnt task list` shows them"] if is_unknown else []
        has_failed = False
        staged: tuple[Learning, ...] = ()
        due = None
        try:
            staged = stage(self._context, list({learning.id: learning for learning in taken}.values()))
            due = Consolidation(self._context).ages().decision
        except LearntError as error:
            again = "" if staged else ", then hand the same over again to stage it"
            problems.append(f"{error.message}; {error.hint}{again}")
            has_failed = True
        ids = {learning.id for learning in staged}
        others = {learning.id: learning for learning in taken if learning.id not in ids}
        return HandoffReport(
            path=staging_path(self._context.root, self._context.settings),
            staged=staged,
            known=() if has_failed else tuple(others.values()),
            unstaged=tuple(others.values()) if has_failed and not staged else (),
            rejected=tuple(rejected),
            due=due,
            problems=tuple(problems),
        )

    def _take_text(self, text: str, task: str) -> Iterator[Learning | RejectedLearning]:
        for record in read_handed_over(text):
            if isinstance(record, InvalidValue):
                yield RejectedLearning(title="", reason=record.message)
                continue
            try:
                yield self._take(record, task)
            except InvalidValue as error:
                yield RejectedLearning(title=str(record.get("title", ""))[:200], reason=error.message)

    def _take_task(self, task: str) -> Iterator[Learning | RejectedLearning]:
        """Yield what a task taught, as far as it is in force; its debrief has applied the gate before."""
        which = Filter(task=task)
        for learning in learnings.page(self._store.database, which, limit=_MAX_OF_TASK) if task else ():
            reason = find_occasion_flaw(learning)
            if not reason:
                yield learning
                continue
            with self._store.transaction():
                rejected = self._refuse(learning, reason)
            yield rejected

    def _take(self, record: dict[str, Any], task: str) -> Learning | RejectedLearning:
        """Store a learning that was handed over, or say why it is not taken."""
        id = record.pop("id", "")
        known = learnings.find(self._store.database, id) if is_id("learn", id) else None
        if known is not None:
            return known
        now, database = self._context.clock(), self._store.database
        learning = new_learning(self._context, fit_title({**record, "task": task}), created_at=now)
        learning = learning.replace(category=learning.category or find_category(learning.title, learning.action))
        with self._store.transaction():
            same = learnings.find_same(database, learning.observation or learning.title)
            reason = "" if same else _find_flaw(learning)
            if reason:
                return self._refuse(learning, reason)
            opposed = None if same else self._find_opposed(learning)
            if opposed is not None:
                return self._leave_to_person(learning, opposed.learning, opposed.verdict.reason)
            how: dict[str, Any] = {"who": self._context.person, "at": now, "talk": self._context.talk}
            return add_or_repeat(self._context, same, lambda: learning, task=task, **how)[0]

    def _refuse(self, learning: Learning, reason: str) -> RejectedLearning:
        """Within a transaction: keep what is no learning as a discovery, and count how often it came back."""
        now = self._context.clock()
        occasion = learning.task or self._context.talk.id or f"handoff {day_of(now)}"
        text = (learning.observation or learning.title)[:TEXT_LIMIT]
        discovery = Discovery(type="pattern", text=text, rule="words", task=occasion)
        proposal = refuse(self._context, lambda: learning, discovery, reason, who=self._context.person, at=now)
        times = mined.count_tasks(self._store.database, discovery)
        return RejectedLearning(title=learning.title, reason=reason, times=times, id=proposal)

    def _find_opposed(self, learning: Learning) -> Similar | None:
        """Return a learning in force that a new one contradicts."""
        similar = find_similar(self._store.database, learning, measure=compare_by_table)
        return next((one for one in similar if one.verdict == CONTRADICTS and one.learning.status == "active"), None)

    def _leave_to_person(self, learning: Learning, opposed: Learning, reason: str) -> RejectedLearning:
        """Within a transaction: store a learning as a proposal, and ask which of the two holds."""
        now = self._context.clock()
        learning = learning.replace(status="proposed")
        change = Change(what="propose", who=self._context.person, at=now, reason=f"contradicts {opposed.id}")
        learnings.add(self._store.database, learning, change)
        question = ask_which_holds(learning, opposed, reason)
        escalation = propose(self._context, question, at=now)
        return RejectedLearning(
            title=learning.title,
            reason=f"it contradicts {opposed.id}: {opposed.title}",
            id=learning.id,
            escalation=escalation.id if escalation else "",
        )


def _find_flaw(learning: Learning) -> str:
    """Return why a learning may not enter the staging file; empty if it may."""
    judged = {name: getattr(learning, name) for name in ("title", "observation", "action")}
    return find_flaw_in(**judged) or find_occasion_flaw(learning)
