"""Tasks by hand: queue, show and change them, and answer escalations.

This is also the only place where an attempt's result changes its task's status.
"""

from __future__ import annotations

from learnt.errors import NotFound, WrongRequest
from learnt.flow.context import load_module
from learnt.flow.learnings import alter, refuse_agent
from learnt.flow.task_parts import read_spec
from learnt.mine.complaint import find_first_error
from learnt.model import LONG_TEXT_LIMIT, NO_REPORT, TEXT_LIMIT, TITLE_LIMIT, Task, is_id, new_id, text_id
from learnt.store import reviews, tasks
from learnt.store.reviews import Escalation
from learnt.strategy.figures import PastAttempt
from learnt.strategy.stuck import Stuck, find_stuck_task
from learnt.text.clean import fold
from learnt.text.redact import redact_text
from learnt.text.titles import AGENT_ENDED_PREFIX, REFUTED_PREFIX, normalised_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from learnt.flow.context import Context
    from learnt.model import Attempt, Failure
    from learnt.store.database import Database

ENDED = ("done", "failed", "cancelled")
# Nobody works on a task with one of these statuses until a person decides.
IDLE = ("failed", "cancelled", "escalated")
# The fields that `edit` may change, besides the prerequisites.
EDITABLE = (
    *("title", "text", "type", "goal", "agent", "spec", "verify", "acceptance", "model", "based_on", "skip_learnings"),
)


class Tasks:
    """What a person does with tasks."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    def __call__(self, **which: Any) -> list[Task]:
        """Return the matching tasks, like the former method `Memory.tasks()`; this is kept for one release."""
        return self.select(**which)

    def stuck(self, task: Task) -> Stuck | None:
        """Return why a task is stuck, or None."""
        return find_stuck(self._context, task)

    def new_id(self) -> str:
        """Return a new id for a task."""
        return new_id("task", self._context.clock())

    def add(
        self,
        title: str,
        *,
        text: str = "",
        type: str = "implement",
        goal: str = "",
        agent: str = "",
        spec: str = "",
        after: Sequence[str] = (),
        based_on: str = "",
        model: str = "",
        verify: str = "",
        acceptance: str = "",
        skip_learnings: bool = False,
        parent: str = "",
    ) -> Task:
        """Queue a piece of work for an agent; it is ready when the tasks in `after` are done."""
        fields = {"title": title, "text": text, "type": type, "goal": goal, "agent": agent, "spec": spec}
        fields |= {"based_on": based_on, "model": model, "verify": verify, "acceptance": acceptance}
        with self._store.transaction():
            return self._insert(after, parent=parent, skip_learnings=skip_learnings, **_read(self._context, fields))

    def read_spec(self, spec: str) -> str:
        """Return the text of a specification, which is a file in the project; empty if `spec` is empty."""
        return read_spec(self._context.root, spec)

    def get(self, id: str) -> Task:
        """Return a task."""
        return tasks.get(self._store.database, id)

    def select(
        self, *, statuses: Sequence[str] = (), goal: str = "", queued: bool = True, limit: int = 1_000_000
    ) -> list[Task]:
        """Return the tasks with one of these statuses, oldest first; by default, with any status.

        `queued=False` includes tasks outside the queue, which a brief or a debrief created.
        """
        return tasks.select(self._store.database, statuses=statuses, goal=fold(goal), queued=queued, limit=limit)

    def counts(self) -> dict[str, int]:
        """Return the number of queued tasks by status."""
        return tasks.counts(self._store.database)

    def needs(self) -> dict[str, list[str]]:
        """Return each task's prerequisites, done or not."""
        return tasks.needs(self._store.database)

    def prerequisites_of(self, task: str) -> list[Task]:
        """Return a task's prerequisites, done or not."""
        return tasks.prerequisites_of(self._store.database, task)

    def blocked(self) -> list[tuple[Task, list[Task]]]:
        """Return each failed, cancelled or escalated task that other tasks wait for, with the waiting tasks."""
        needs = tasks.needs(self._store.database)
        dependants: dict[str, list[Task]] = {}
        for task in self.select(statuses=["waiting"]):
            for needed in needs.get(task.id, ()):
                dependants.setdefault(needed, []).append(task)
        blocking = [tasks.get(self._store.database, id) for id in sorted(dependants)]
        return [(task, dependants[task.id]) for task in blocking if task.status in IDLE]

    def attempts(self, task: str) -> list[Attempt]:
        """Return the attempts at a task, latest first."""
        return tasks.attempts(self._store.database, task)

    def failures(self, task: str) -> dict[str, Failure]:
        """Return the reports on failed attempts at a task, by attempt."""
        return tasks.failures(self._store.database, task)

    def edit(self, id: str, *, after: Sequence[str] | None = None, **changes: Any) -> Task:
        """Change fields of a task; `after` replaces its prerequisites."""
        unknown = [name for name in changes if name not in EDITABLE]
        if unknown:
            raise WrongRequest(
                f"a task has no editable field `{unknown[0]}`", hint=f"the fields are: {', '.join(EDITABLE)}"
            )
        with self._store.transaction():
            self._store.database.lock_queue()  # so that two processes cannot create a circle together
            task = tasks.get(self._store.database, id, for_update=True)
            changed = task.replace(**_read(self._context, changes), updated_at=self._context.clock())
            if changed.based_on != task.based_on:
                self._check_base(changed)
            if after is not None:
                tasks.remove_needs(self._store.database, id)
                self._add_needs(id, after)
            if changed.status in ("waiting", "ready"):
                changed = changed.replace(status=waiting_or_ready(self._store.database, id))
            tasks.change(self._store.database, changed)
        return changed

    def cancel(self, id: str) -> Task:
        """Cancel a task. Its worker stops the agent and releases the task; if it has died, the next worker does."""
        with self._store.transaction():
            task = tasks.get(self._store.database, id, for_update=True)
            if task.status in ("done", "cancelled"):
                raise WrongRequest(f"`{id}` is already {task.status}", hint="there is nothing to cancel")
            self._answer_open(id, "cancel")
            return set_status(self._context, task, "cancelled")

    def retry(self, id: str) -> Task:
        """Make a task ready again, starting from the first step of the ladder."""
        with self._store.transaction():
            task = tasks.get(self._store.database, id, for_update=True)
            if task.status == "running":
                raise WrongRequest(f"`{id}` is being worked on", hint=f"`learnt task cancel {id}` stops the work")
            is_open = task.queued and task.status in ("waiting", "ready")
            if is_open and not failed_attempts(self._context, task):
                raise WrongRequest(f"`{id}` is already {task.status}", hint="there is no failure to retry")
            self._answer_open(id, "retry")
            status = waiting_or_ready(self._store.database, id)
            changed = set_status(self._context, task.replace(queued=True), status, fresh=True)
            # The loop ends no task as failed: the one who did it asked for this model, and nobody has tried it since.
            if task.status == "failed" and task.next_model:
                changed = changed.replace(next_model=task.next_model)
                tasks.change(self._store.database, changed)
            return changed

    def split(self, id: str, titles: Sequence[str], *, in_order: bool = False) -> list[Task]:
        """Split a task into parts that it waits for; with `in_order`, each part also waits for the previous part."""
        if not titles:
            raise WrongRequest("a task is split into named parts", hint='`learnt task split ID "First part" "Second"`')
        parts: list[Task] = []
        with self._store.transaction():
            self._store.database.lock_queue()
            task = tasks.get(self._store.database, id, for_update=True)
            if task.status in ("running", "done"):
                raise WrongRequest(f"`{id}` is {task.status}", hint="only a task that is not done yet can be split")
            if task.status in ENDED:
                raise WrongRequest(f"`{id}` is {task.status}", hint=f"make it ready first: `learnt task retry {id}`")
            before = [needed.id for needed in tasks.open_needs(self._store.database, id)]
            inherited = ("goal", "agent", "type", "spec", "model", "skip_learnings")
            fields = {"parent": id, **{name: getattr(task, name) for name in inherited}}
            for title in titles:
                after = [parts[-1].id] if in_order and parts else before
                parts.append(self._insert(after, **fields, **_read(self._context, {"title": title})))
                tasks.add_need(self._store.database, id, parts[-1].id)
            self._answer_open(id, "split")
            set_status(self._context, task.replace(queued=True), "waiting", fresh=True)
        return parts

    def escalations(self, *, status: str | None = "open", subject: str | None = None) -> list[Escalation]:
        """Return the open escalations; `status=None` includes answered escalations."""
        return reviews.escalations(self._store.database, status=status, subject=subject)

    def resolve(self, id: str, answer: str = "", *, cancel: bool = False, hide: bool = False) -> Escalation:
        """Answer an escalation, by its id or its task's id.

        The task continues with the answer in its prompt, or is cancelled. `hide` hides the learning in question.
        """
        refuse_agent(self._context, "resolve")
        answer = self._context.redact_line(answer, TEXT_LIMIT) or ("cancel" if cancel else "hide" if hide else "")
        with self._store.transaction():
            escalation = reviews.get_escalation(self._store.database, self._escalation_id(id), for_update=True)
            if escalation.status != "open":
                raise WrongRequest(
                    f"`{id}` has already been answered: {escalation.answer}", hint="`learnt escalations`"
                )
            if hide and not is_id("learn", escalation.subject):
                raise WrongRequest(f"`{id}` is not about a learning", hint="--hide is for a misleading learning")
            if not answer:
                either = "--hide hides the learning" if is_id("learn", escalation.subject) else "--cancel gives it up"
                raise WrongRequest(f"`{id}` needs an answer", hint=f'`learnt resolve {id} "what to do"`, or {either}')
            escalation = answer_escalation(self._context, escalation, answer)
            task = tasks.find(self._store.database, escalation.subject, for_update=True)
            if task is not None and task.status == "escalated":
                status = "cancelled" if cancel else waiting_or_ready(self._store.database, task.id)
                set_status(self._context, task, status, fresh=True)
        if hide:
            alter(self._context, escalation.subject, "hide", lambda _: {"status": "hidden"}, reason=escalation.question)
        return escalation

    def _escalation_id(self, id: str) -> str:
        """Return the id of an escalation; for a task's id, the id of its open escalation."""
        task = None if is_id("esc", id) else tasks.find(self._store.database, id)
        if task is None:
            return id
        escalations = reviews.escalations(self._store.database, subject=id)
        if not escalations:
            raise WrongRequest(
                f"`{id}` is {task.status} and has no open escalation", hint="`learnt escalations` shows all of them"
            )
        return escalations[-1].id

    def _answer_open(self, task: str, answer: str) -> None:
        """Within a transaction: answer a task's open escalations."""
        for escalation in reviews.escalations(self._store.database, subject=task):
            answer_escalation(self._context, escalation, answer)

    def _insert(self, after: Sequence[str], **fields: Any) -> Task:
        """Within a transaction: add a task to the queue, with its prerequisites."""
        now = self._context.clock()
        task = Task(id=new_id("task", now), queued=True, created_at=now, updated_at=now, **fields)
        self._check_base(task)
        tasks.ensure(self._store.database, task)
        self._add_needs(task.id, after)
        status = waiting_or_ready(self._store.database, task.id)
        if status != task.status:
            tasks.set_status(self._store.database, task.id, status, at=task.updated_at)
        return task.replace(status=status)

    def _check_base(self, task: Task) -> None:
        """Raise if a task is based on a task that does not exist, or on itself through other tasks."""
        way = [task.id]
        base = task.based_on
        while base and base not in way[1:]:
            way.append(base)
            if base == task.id:
                raise WrongRequest(
                    f"`{task.id}` would be based on itself: {' is based on '.join(way)}",
                    hint="choose another --based-on",
                )
            # Only the direct base must exist; indirect bases were checked when they were set.
            base_task = (
                tasks.get(self._store.database, base) if len(way) == 2 else tasks.find(self._store.database, base)
            )
            base = base_task.based_on if base_task else ""

    def _add_needs(self, task: str, after: Sequence[str]) -> None:
        """Within a transaction: add prerequisites to a task; raise if that would create a circle."""
        needs = tasks.needs(self._store.database)
        for needed in after:
            try:
                tasks.get(self._store.database, needed)
            except NotFound as error:
                raise NotFound(f"{error.message}, which `{task}` is to wait for", hint=error.hint) from None
            way = _find_way(needs, needed, task)
            if way:
                raise WrongRequest(
                    f"`{task}` would wait for itself: {' waits for '.join([task, *way])}",
                    hint="leave one of these out of --after",
                )
            tasks.add_need(self._store.database, task, needed)


def settle(
    context: Context, task: Task, attempt: Attempt, *, next_model: str, at: int, claimed: bool, by_agent: bool = False
) -> None:
    """Within a transaction: set a task's status after an attempt.

    `claimed` means that the loop made the attempt and continues with the task. `by_agent` means that an agent says
    itself how it ended: its word ends no task that a command checks, or that the loop is working on.
    """
    database = context.store.database
    if not claimed:
        needs_more = by_agent and (bool(task.verify) or task.status == "running")
        ends = attempt.result in ("done", "failed") and not needs_more
        if ends:
            tasks.set_status(database, task.id, attempt.result, at=at)
        if task.status != "running" and task.type != "session" and attempt.result != "interrupted":
            now = tasks.get(database, task.id)
            if now.next_model != next_model:
                tasks.change(database, now.replace(next_model=next_model))
        return
    stuck = None
    if task.status != "running":
        status = task.status  # cancelled meanwhile
    elif attempt.result == "done":
        status = "done"
    elif attempt.result == "interrupted":
        status, next_model = waiting_or_ready(database, task.id), task.next_model
    else:
        stuck = find_stuck(context, task, before_last=True)
        status = "escalated" if stuck else waiting_or_ready(database, task.id)
    tasks.change(database, task.replace(status=status, next_model=next_model, updated_at=at))
    if stuck:
        escalation = Escalation(
            id=text_id("esc", attempt.id),
            subject=task.id,
            question=f"“{task.title}” failed again after it was stuck: {stuck.reason}. What should be done?",
            detail={"attempt": attempt.id, "error": stuck.error[:2_000]},
            created_at=at,
        )
        reviews.add_escalation(database, escalation)


def next_number(database: Database, task: str) -> int:
    """Return the number of the next attempt at a task."""
    return max((earlier.number for earlier in tasks.attempts(database, task)), default=0) + 1


def find_stuck(context: Context, task: Task, *, before_last: bool = False) -> Stuck | None:
    """Return why a task is stuck, or None; with `before_last`, whether it was stuck before its last failure."""
    failed = failed_attempts(context, task)
    return find_stuck_task(failed[:-1] if before_last else failed, times=context.settings.stuck_after)


def failed_attempts(context: Context, task: Task) -> list[PastAttempt]:
    """Return the failed attempts at a task since its last success or restart, oldest first."""
    database = context.store.database
    reports = tasks.failures(database, task.id)
    failed = []
    for attempt in tasks.since_fresh(task, tasks.attempts(database, task.id)):
        if attempt.result != "interrupted":
            report = reports.get(attempt.id)
            error, line = normalise_failure(report.symptom if report else "")
            failed.append(
                PastAttempt(model=attempt.model, task=task.id, result=attempt.result, error=error, error_text=line)
            )
    return failed[::-1]


def normalise_failure(symptom: str) -> tuple[str, str]:
    """Return the first error in a failure's symptom, in the form in which errors are compared and as it was said.

    Both are empty if the symptom only says how an agent or a silent verification ended.
    """
    said = symptom.partition(NO_REPORT)[2].removeprefix(": ") if NO_REPORT in symptom else symptom
    if said.startswith((AGENT_ENDED_PREFIX, REFUTED_PREFIX)):
        return "", ""
    line = find_first_error(said) or fold(said)
    return normalised_error(line), line


def waiting_or_ready(database: Database, task: str) -> str:
    """Return `waiting` if one of the task's prerequisites is open, otherwise `ready`."""
    return "waiting" if tasks.open_needs(database, task) else "ready"


def set_status(context: Context, task: Task, status: str, *, fresh: bool = False) -> Task:
    """Within a transaction: change a task's status; with `fresh`, ignore its earlier failures from now on."""
    now = context.clock()
    changed = task.replace(status=status, updated_at=now)
    if fresh:
        changed = changed.replace(fresh_since=now, next_model="")
    tasks.change(context.store.database, changed)
    return changed


def answer_escalation(context: Context, escalation: Escalation, answer: str) -> Escalation:
    """Within a transaction: resolve an escalation with this person's answer."""
    answered = escalation.replace(
        status="resolved", answer=answer, resolved_at=context.clock(), resolved_by=context.person
    )
    reviews.resolve_escalation(context.store.database, answered)
    return answered


def _read(context: Context, fields: dict[str, Any]) -> dict[str, Any]:
    """Return a task's cleaned fields without secrets; a title that is too long becomes part of the text.

    An agent cannot choose the command that `learnt work` runs to check a task.
    """
    if fields.get("verify"):
        refuse_agent(context, "task --verify")
    model = str(fields.get("model", "")).strip()
    if model.startswith("-"):
        # It becomes an argument of the client, which would take it for an option.
        raise WrongRequest(f"`{model}` is not the name of a model", hint="a name does not start with a dash")
    if model:
        load_module("claims").Work(context).check_model(model)
    read: dict[str, Any] = {}
    for name, value in fields.items():
        if name in ("text", "verify", "acceptance"):
            text, count = redact_text(value, LONG_TEXT_LIMIT)
            context.redactions += count
            read[name] = text.strip()
        else:
            limit = TITLE_LIMIT if name in ("type", "goal", "agent", "model") else TEXT_LIMIT
            read[name] = value if isinstance(value, bool) else context.redact_line(value, limit)
    title = read.get("title", "")
    if len(title) > TITLE_LIMIT:
        read["title"] = title[: TITLE_LIMIT - 1].rstrip() + "…"
        read["text"] = "\n\n".join(part for part in (title, read.get("text", "")) if part)
    return read


def _find_way(needs: dict[str, list[str]], start: str, end: str) -> list[str]:
    """Return the chain of prerequisites from one task to another; empty if there is no chain."""
    ways, visited = [[start]], {start}
    while ways:
        way = ways.pop()
        if way[-1] == end:
            return way
        for needed in needs.get(way[-1], ()):
            if needed not in visited:
                visited.add(needed)
                ways.append([*way, needed])
    return []
