"""After a task: read the agent's output, and keep its learnings, its report, its marks and its figures."""

from __future__ import annotations

from learnt.errors import LearntError, WrongRequest
from learnt.flow.briefs import Briefing
from learnt.model import (
    PROGRAM,
    TAG_LIMIT,
    TEXT_LIMIT,
    Attempt,
    Debrief,
    Learning,
    Mark,
    Task,
    check_text,
    new_id,
    text_id,
)
from learnt.project import head_branch
from learnt.store import events, learnings, tasks
from learnt.store.learnings import Change
from learnt.text.clean import clean, ends_of
from learnt.text.records import read_fields
from learnt.weigh import confidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from learnt.debrief.marks import Marks
    from learnt.debrief.sigils import LearningSigil
    from learnt.model import Claim, Event, Failure
    from learnt.store import Store
    from learnt.store.database import Database


_LONGEST_SUMMARY = 2_000
_LONGEST_MATERIAL = 40_000


class Debriefing(Briefing):
    """What is done after a task."""

    def debrief(
        self,
        task: str,
        output: str,
        *,
        result: str | None = None,
        model: str = "",
        duration_ms: int | None = None,
        cost_usd: float | None = None,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        tokens: int | None = None,
        agent: str = "",
        task_type: str = "implement",
        model_reason: str = "",
        transcript: str = "",
        failure: Failure | None = None,
        claim: Claim | None = None,
        ended_at: int | None = None,
    ) -> Debrief:
        """Read an agent's output: keep its learnings, its failure report, its marks and its figures.

        `tokens`: all of them, where nobody tells those that were read from those that were written. `failure`: what
        somebody else than the agent found wrong, such as a verification. `claim`: the output of an attempt that the
        loop made; it counts only while the claim is held, and the loop goes on from it. `ended_at`: when the agent was
        done, if that is some time ago.
        """
        from learnt.text.redact import redact

        now = self._clock()
        text, redactions = redact(clean(check_text("output", output)))
        attempt = Attempt(
            id=claim.attempt if claim else new_id("attempt", now),
            task=task,
            number=1,
            result=result or "incomplete",
            model=self._line(model),
            model_reason=self._line(model_reason, TEXT_LIMIT),
            transcript=redact(clean(transcript))[0],
            started_at=now,
            duration_ms=duration_ms,
            cost_usd=cost_usd,
            tokens_in=tokens if tokens_in is None else tokens_in,
            tokens_out=tokens_out,
        )
        began_at = max(0, (now if ended_at is None else ended_at) - (duration_ms or 0))
        branch = head_branch(self.root) if self.root else ""
        attempt = attempt.replace(started_at=claim.started_at if claim else began_at, branch=self._line(branch))
        made = Task(id=task, title=task, agent=self._line(agent), type=self._line(task_type) or "implement")
        body = debrief_body(made, attempt, text, result=result, at=now)
        body |= {"claim": claim is not None, "failure": failure and _redacted(failure)}
        return self._debriefed_now(body).replace(redactions=redactions)

    def end_turn(
        self,
        task: str,
        said: str,
        *,
        agent: str = "",
        client: str = "",
        transcript: str = "",
        branch: str = "",
        result: str | None = None,
        parent: str = "",
    ) -> str:
        """Keep the agent's last words in a turn of a conversation, and let a process of its own make of it what it can.

        Nobody waits for that. `transcript`: where the client writes the conversation down, which is read then.
        `parent`: the conversation that a sub-agent works for. Each turn replaces the debrief of the conversation.
        Return the id of its attempt.
        """
        from learnt.flow.turns import end_turn

        told = {"agent": agent, "client": client, "transcript": transcript, "branch": branch, "parent": parent}
        return end_turn(self, task, said, result=result, **told)

    def ready_for_hook(self) -> None:
        """Raise NoStore when a hook can read nothing yet beside a server, and let the worker make the mirror."""
        if self.store.place.address:
            from learnt.flow.background import mirror_or_none

            mirror_or_none(self)

    def start_worker(self) -> None:
        """Start the process that makes of the spool what it can, unless one is at it; best effort."""
        from learnt.flow.background import start_worker

        start_worker(self)

    def _debriefed_now(self, body: dict[str, Any]) -> Debrief:
        """Put a debrief on the disk, let it take effect if it can, and return what became of it."""
        attempt = Attempt(**body["attempt"])
        op = self.store.record_first("debrief", body)
        read = self._debriefed.pop(attempt.id, None) or self._debriefed_elsewhere(op, attempt, body)
        if not read.spooled:
            self.update_when_due()
        return read

    def update_when_due(self) -> None:
        """Let the learnings files be made anew in the background, if enough tasks are done; here, nothing."""

    def _debriefed_elsewhere(self, op: str, attempt: Attempt, body: dict[str, Any]) -> Debrief:
        """Return what is known of a debrief that this process did not apply itself."""
        if any(record.op == op for record in self.store.spool.waiting()):
            return Debrief(task=attempt.task, attempt=attempt.id, spooled=True)
        applied = [one for one in self.attempts(attempt.task) if one.id == attempt.id]  # by another process's replay
        if not applied:
            raise LearntError(
                "the output was kept, but nothing could be made of it", hint="`learnt doctor` says where it is"
            )
        database = self.store.database
        said = _Said(body)
        task = tasks.get(database, attempt.task)
        added, repeated = self._learnt_then(database, said.sigils.learnings, task, at=body["at"])
        return said.debrief(
            applied[0],
            failure=tasks.failures(database, task.id).get(attempt.id),
            learnings=added,
            repeated=repeated,
            refusals=self._refused_then(said.marks, task.id, at=body["at"]),
            is_new=task.created_at == body["at"],
        )

    def mark(self, learning: str, task: str, helpful: bool) -> Learning:
        """Say whether a learning helped with a task that was given it; counts once for each pair."""
        store, _ = self._holder(learning, writable=True)
        with self.store.transaction():
            if self._injected(task).get(learning) is not False:
                raise WrongRequest(
                    f"`{learning}` was not given to `{task}`", hint="only what stood in a brief of a task can be marked"
                )
            done = self._add_mark(learning, task, helpful=helpful, at=self._clock(), who=self.person)
        if not done:
            raise WrongRequest(
                f"`{learning}` is marked for `{task}` already",
                hint=f"a mark counts once; `learnt undo {learning}` takes the last change back",
            )
        return learnings.get(store.database, learning).replace(scope=store.place.scope)

    def _apply_debrief(self, database: Database, body: dict[str, Any]) -> None:
        """Make of an agent's output what can be made of it; runs inside one transaction of the store's."""
        from learnt.debrief.reports import report_of
        from learnt.store import claims

        at, output = body["at"], body["output"]
        attempt = Attempt(**body["attempt"])
        said = _Said(body)
        known = tasks.find(database, attempt.task)
        task = known or Task(id=attempt.task, title=attempt.task, created_at=at, updated_at=at, **body["task"])
        tasks.ensure(database, task)
        task = tasks.get(database, task.id, for_update=True)  # attempts are counted one after the other
        if body.get("claim") and claims.give_back(database, task=task.id, attempt=attempt.id) is None:
            # Held too long: whoever took the task back has told how this attempt ended. What it learnt counts.
            tasks.fill_figures(database, attempt)
            added, repeated = self._learn(database, said.sigils.learnings, task, at=at)
            refusals = self._take_marks(said.marks, task.id, at=at, who=task.agent or "agent")
            told = said.debrief(
                attempt, failure=None, learnings=added, repeated=repeated, refusals=refusals, is_new=False
            )
            self._debriefed[attempt.id] = told.replace(result="interrupted")
            return
        turn = body.get("turn")
        earlier = None if turn is None else tasks.find_attempt(database, attempt.id)
        if earlier is not None and self._told_nothing(database, body, earlier):
            return
        attempt = attempt.replace(
            number=earlier.number if earlier else self._next_number(database, task.id),
            result=said.result,
            difficulty=said.sigils.difficulty,
            summary=said.sigils.note[:_LONGEST_SUMMARY],
        )
        failure = report_of(said.sigils, output, attempt=attempt.id, task=task.id, result=said.result, at=at)
        if failure is not None and body.get("failure"):
            found = {**body["failure"], "files": tuple(body["failure"]["files"])}
            failure = failure.replace(**{name: value for name, value in found.items() if value})
        if task.type == "session" and said.sigils.failure is None and said.result != "failed":
            failure = None  # a turn of a conversation is no failed attempt
        (tasks.replace_attempt if earlier else tasks.add_attempt)(database, attempt, failure)
        if body.get("claim"):
            self._settle(database, task, attempt, next_model=said.sigils.next_model, at=at)
        elif said.result in ("done", "failed"):
            tasks.set_status(database, task.id, said.result, at=at)
        once = turn is not None
        added, repeated = self._learn(database, said.sigils.learnings, task, at=at, once=once)
        refusals = self._take_marks(said.marks, task.id, at=at, who=task.agent or "agent", once=once)
        self._keep_material(database, task, attempt, output, turn=turn, is_new=earlier is None)
        self._debriefed[attempt.id] = said.debrief(
            attempt, failure=failure, learnings=added, repeated=repeated, refusals=refusals, is_new=known is None
        )

    def _told_nothing(self, database: Database, body: dict[str, Any], earlier: Attempt) -> bool:
        """Say whether a turn leaves its conversation as it was told before."""
        from learnt.flow.turns import keep_transcript, tells_nothing

        if not tells_nothing(body):
            return False
        keep_transcript(database, earlier, body["attempt"]["transcript"])
        return True

    def _keep_material(
        self,
        database: Database,
        before: Task,
        attempt: Attempt,
        output: str,
        *,
        turn: dict[str, Any] | None,
        is_new: bool,
    ) -> None:
        """Within a transaction: keep what can be mined for learnings, and count the tasks that were finished."""
        from learnt.project import head_commit
        from learnt.store import counters, mined

        if turn is not None:
            from learnt.flow.turns import settle

            output = settle(database, before, attempt, output, turn)
        if before.skip_learnings or not self.settings.learnings_enabled:
            return
        text = ends_of(output, _LONGEST_MATERIAL)
        commit = head_commit(self.root) if self.root else ""
        material = mined.Material(
            attempt=attempt.id, task=before.id, text=text, commit=commit[:40], created_at=attempt.started_at
        )
        mined.add_material(database, material)
        is_finished = before.status != "done" and tasks.get(database, before.id).status == "done"
        if (is_new and attempt.number == 1) if before.type == "session" else is_finished:
            counters.add(database, counters.TASKS_SINCE_UPDATE)

    def _next_number(self, database: Database, task: str) -> int:
        return max((earlier.number for earlier in tasks.attempts(database, task)), default=0) + 1

    def _learn(
        self, database: Database, sigils: Sequence[LearningSigil], task: Task, *, at: int, once: bool = False
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Keep what an agent says it learnt; what is known already recurs instead. Return new and known ids.

        `once`: what the same task has said before was taken then, whatever people made of it since.
        """
        from learnt.debrief.sigils import discovery_of, kind_of
        from learnt.debrief.tags import files_in, tags_in
        from learnt.model import Triggers
        from learnt.text.titles import sameness

        added, repeated = [], []
        for sigil in () if task.skip_learnings else sigils:
            known = learnings.same_as(database, sigil.text)
            if once and not self.store.is_first(text_id("op", f"learn {task.id} {sameness(sigil.text)}")):
                repeated += [known.id] if known is not None else []
                continue
            if known is not None:
                change = Change(what="recur", who=task.agent or "agent", at=at, reason=task.id)
                learnings.change(database, known.id, recurred(database, task.id, at), change)
                repeated.append(known.id)
                continue
            discovery = discovery_of(sigil.category)
            kind = sigil.kind or kind_of(discovery)
            # A trap is told of where it lies: at the files that it names first.
            files = files_in(" ".join((*sigil.tags, sigil.title))) if kind == "gotcha" else ()
            learning = Learning(
                id=new_id("learn", at),
                title=sigil.title,
                observation=sigil.text,
                tags=_tags(sigil.tags, tags_in(f"{task.title} {task.text} {sigil.text}")),
                domain=sigil.domain,
                category=sigil.category,
                kind=kind,
                triggers=Triggers(files=files),
                origin="agent",
                goal=task.goal,
                task=task.id,
                discovery=discovery,
                confidence=confidence.start_of_discovery(discovery),
                created_at=at,
                updated_at=at,
            )
            learnings.add(database, learning, Change(what="add", who=task.agent or "agent", at=at))
            added.append(learning.id)
        return tuple(added), tuple(dict.fromkeys(repeated))

    def _learnt_then(
        self, database: Database, sigils: Sequence[LearningSigil], task: Task, *, at: int
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return what `_learn` did at a moment: the new and the known ids."""
        added: list[str] = []
        repeated: list[str] = []
        for sigil in sigils:
            kept = learnings.same_as(database, sigil.text)
            if kept is not None:
                is_new = (kept.task, kept.created_at) == (task.id, at) and kept.id not in added
                (added if is_new else repeated).append(kept.id)
        return tuple(added), tuple(dict.fromkeys(repeated))

    def _take_marks(self, marks: Marks, task: str, *, at: int, who: str, once: bool = False) -> dict[str, str]:
        """Count the marks on what the task was given, once each; return those that do not count, and why.

        `once`: what the same task has said before does not count again, even if a person took it back.
        """
        refusals = dict.fromkeys(marks.contradicting, "marked both ways")
        for helpful, ids in ((True, marks.helpful), (False, marks.not_helpful)):
            for id in ids:
                reason = self._reason_against_mark(id, task)
                if not reason and once and not self.store.is_first(text_id("op", f"said mark {task} {id}")):
                    reason = "marked for this task already"
                if not reason and not self._add_mark(id, task, helpful=helpful, at=at, who=who):
                    reason = "marked for this task already"
                if reason:
                    refusals[id] = reason
        return refusals

    def _refused_then(self, marks: Marks, task: str, *, at: int) -> dict[str, str]:
        """Return what `_take_marks` returned at a moment."""
        from learnt.store.happened import marked_at

        counted = marked_at(self.store.database, task, at)
        refusals = dict.fromkeys(marks.contradicting, "marked both ways")
        for id in (*marks.helpful, *marks.not_helpful):
            if id not in counted:
                refusals[id] = self._reason_against_mark(id, task) or "marked for this task already"
        return refusals

    def _reason_against_mark(self, id: str, task: str) -> str:
        """Say why no mark of this task on this learning can count, if that is so."""
        holding = [store for store in self.sound_stores() if learnings.find(store.database, id)]
        held_out = self._injected(task).get(id)
        checks = {
            "no such learning": not holding,
            "not in a brief of this task": held_out is None,
            "held out of the brief": held_out,
            "belongs to a source, which is only read": all(store.place.read_only for store in holding),
        }
        return next((reason for reason, holds in checks.items() if holds), "")

    def _add_mark(self, id: str, task: str, *, helpful: bool, at: int, who: str) -> bool:
        """Within a transaction of the own store: record a mark and let it move the learning's confidence."""
        from learnt.store.happened import add_mark

        if not add_mark(self.store.database, Mark(learning=id, task=task, helpful=helpful, at=at, who=who)):
            return False
        change = Change(what="mark", who=who, at=at, reason=task)
        if learnings.find(self.store.database, id):
            learnings.change(self.store.database, id, _marked(helpful, at), change)
            return True
        op = self._mark_op(id, task)
        for store in self.sound_stores()[1:]:
            if not store.place.read_only and learnings.find(store.database, id):
                store.apply_once(op, lambda database: learnings.change(database, id, _marked(helpful, at), change))
        return True

    def _mark_op(self, id: str, task: str) -> str:
        """Return the id under which a mark of this project takes effect in another store of ours."""
        place = self.store.place
        return text_id("op", f"mark {place.folder} {place.address} {place.project} {id} {task}")

    def _undo_mark(self, store: Store, event: Event) -> None:
        """Free the pair of learning and task for another mark; if an undoing is undone, take it again."""
        from learnt.store.happened import add_mark, remove_mark

        taken_back = True
        while event.undoes:
            event, taken_back = self._find_event(event.undoes), not taken_back
        if event.what != "mark":
            return
        mark = Mark(
            learning=event.subject, task=event.reason, helpful="times_helpful" in event.new, at=event.at, who=event.who
        )
        act = remove_mark if taken_back else add_mark
        if store is self.store:
            act(store.database, mark)
            return
        with self.store.transaction():
            act(self.store.database, mark)
        if taken_back:
            store.forget_operation(self._mark_op(mark.learning, mark.task))


class _Said:
    """What an agent's output says, before anything is made of it."""

    def __init__(self, body: dict[str, Any]) -> None:
        from learnt.debrief.marks import read_marks
        from learnt.debrief.sigils import read_sigils

        self.sigils = read_sigils(body["output"])
        self.marks = read_marks(body["output"])
        self.result: str = body["result"] or self.sigils.result or "incomplete"

    def debrief(
        self,
        attempt: Attempt,
        *,
        failure: Failure | None,
        learnings: tuple[str, ...],
        repeated: tuple[str, ...],
        refusals: dict[str, str],
        is_new: bool,
    ) -> Debrief:
        """Return what is told of it, together with what became of it."""
        said = self.sigils.result
        overruled = () if said in ("", self.result) else (f"<task-{said}>, as the result was given: {self.result}",)
        return Debrief(
            task=attempt.task,
            attempt=attempt.id,
            result=self.result,
            learnings=learnings,
            repeated=repeated,
            failure=failure,
            helpful=tuple(id for id in self.marks.helpful if id not in refusals),
            not_helpful=tuple(id for id in self.marks.not_helpful if id not in refusals),
            refused_marks=tuple(refusals),
            refusals=refusals,
            next_model=self.sigils.next_model,
            ignored=(*overruled, *self.sigils.ignored, *self.marks.ignored),
            new_task=is_new,
        )


def debrief_body(task: Task, attempt: Attempt, output: str, *, result: str | None, at: int) -> dict[str, Any]:
    """Return an agent's output, without secrets, as the object that is applied or spooled."""
    fresh = {"agent": task.agent, "type": task.type, "client": task.client, "parent": task.parent}
    return {"attempt": attempt.as_dict(), "result": result or "", "output": output, "task": fresh, "at": at}


def _redacted(failure: Failure) -> dict[str, Any]:
    """Return what a verification found, without secrets; what it did not say is left out."""
    from learnt.text.redact import redact

    told = {name: getattr(failure, name) for name in ("tried", "reason", "error", "avoid", "suggestion")}
    read = {name: redact(clean(text))[0] for name, text in told.items()}
    return {**read, "category": failure.category, "files": list(failure.files)}


def _tags(own: Sequence[str], found: Sequence[str]) -> tuple[str, ...]:
    """Return the agent's own tags, written as all tags are, and, as far as there is room, those found in passing."""
    own = [tag for tag in read_fields({"tags": own})["tags"] if tag]
    return tuple(sorted(list(dict.fromkeys((*own, *found)))[:TAG_LIMIT]))


def recurred(database: Database, task: str, at: int) -> Callable[[Learning], dict[str, Any]]:
    """Count that a task taught something again: once, and not if it taught it first.

    What the program itself put away comes back, with a month before time counts again; what a person put away does not.
    """

    def decide(learning: Learning) -> dict[str, Any]:
        history = events.of(database, learning.id)
        counted = learning.task == task or any((one.what, one.reason) == ("recur", task) for one in history)
        changes: dict[str, Any] = {} if counted else {"recurrences": learning.recurrences + 1}
        put_away_by = next((one.who for one in reversed(history) if "status" in one.new), "")
        if learning.status == "archived" and put_away_by == PROGRAM:
            changes |= {"status": "active", "last_decayed_at": at}
        return changes

    return decide


def _marked(helpful: bool, at: int) -> Callable[[Learning], dict[str, Any]]:
    def decide(learning: Learning) -> dict[str, Any]:
        changes: dict[str, Any] = {"confidence": confidence.marked(learning.confidence, helpful=helpful)}
        if helpful:
            return {**changes, "times_helpful": learning.times_helpful + 1, "last_helpful_at": at}
        return {**changes, "times_not_helpful": learning.times_not_helpful + 1}

    return decide
