"""After a task: read the agent's output, and keep its learnings, its report, its marks and its figures."""

from __future__ import annotations

from learnt.errors import LearntError, WrongRequest
from learnt.memory.briefing import Briefing
from learnt.model import TAG_LIMIT, TEXT_LIMIT, Attempt, Debrief, Learning, Mark, Task, new_id, text_id
from learnt.store import learnings, tasks
from learnt.store.learnings import Change, Filter
from learnt.text.clean import clean
from learnt.text.records import read_fields
from learnt.weigh import confidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from learnt.debrief.marks import Marks
    from learnt.debrief.sigils import LearningSigil
    from learnt.model import Claim, Failure
    from learnt.store.database import Database


_LONGEST_SUMMARY = 2_000


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
        agent: str = "",
        task_type: str = "implement",
        model_reason: str = "",
        transcript: str = "",
        failure: Failure | None = None,
        claim: Claim | None = None,
    ) -> Debrief:
        """Read an agent's output: keep its learnings, its failure report, its marks and its figures.

        `failure`: what somebody else than the agent found wrong, such as a verification. `claim`: the output of an
        attempt that the loop made; it counts only while the claim is held, and the loop goes on from it.
        """
        from learnt.text.redact import redact

        now = self._clock()
        text, redactions = redact(clean(output))
        started_at = now - (duration_ms or 0)
        attempt = Attempt(
            id=claim.attempt if claim else new_id("attempt", now),
            task=task,
            number=1,
            result=result or "incomplete",
            model=self._line(model),
            model_reason=self._line(model_reason, TEXT_LIMIT),
            transcript=self._line(transcript, TEXT_LIMIT),
            started_at=claim.started_at if claim else max(0, started_at),
            duration_ms=duration_ms,
            cost_usd=cost_usd,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
        )
        made = Task(id=task, title=task, agent=self._line(agent), type=self._line(task_type) or "implement")
        fresh = {"agent": made.agent, "type": made.type}
        body = {"attempt": attempt.as_dict(), "result": result or "", "output": text, "task": fresh, "at": now}
        body |= {"claim": claim is not None, "failure": failure and _redacted(failure)}
        op = self.store.record_first("debrief", body)
        read = self._debriefed.pop(attempt.id, None) or self._debriefed_elsewhere(op, attempt)
        return read.replace(redactions=redactions)

    def _debriefed_elsewhere(self, op: str, attempt: Attempt) -> Debrief:
        """Return what is known of a debrief that this process did not apply itself."""
        if any(record.op == op for record in self.store.spool.waiting()):
            return Debrief(task=attempt.task, attempt=attempt.id, spooled=True)
        applied = [one for one in self.attempts(attempt.task) if one.id == attempt.id]  # by another process's replay
        if not applied:
            raise LearntError(
                "the output was kept, but nothing could be made of it", hint="`learnt doctor` says where it is"
            )
        return Debrief(task=attempt.task, attempt=attempt.id, result=applied[0].result)

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
            raise WrongRequest(f"`{learning}` is marked for `{task}` already", hint="a mark counts once")
        return learnings.get(store.database, learning).replace(scope=store.place.scope)

    def _apply_debrief(self, database: Database, body: dict[str, Any]) -> None:
        """Make of an agent's output what can be made of it; runs inside one transaction of the store's."""
        from learnt.debrief.marks import read_marks
        from learnt.debrief.reports import report_of
        from learnt.debrief.sigils import read_sigils
        from learnt.store import claims

        at, output = body["at"], body["output"]
        attempt = Attempt(**body["attempt"])
        sigils, marks = read_sigils(output), read_marks(output)
        result = body["result"] or sigils.result or "incomplete"
        task = tasks.find(database, attempt.task) or Task(
            id=attempt.task, title=attempt.task, created_at=at, updated_at=at, **body["task"]
        )
        tasks.ensure(database, task)
        task = tasks.get(database, task.id, for_update=True)  # attempts are counted one after the other
        if body.get("claim") and claims.give_back(database, task=task.id, attempt=attempt.id) is None:
            # Held too long, or cancelled: whoever took the task back has told how this attempt ended.
            self._debriefed[attempt.id] = Debrief(task=task.id, attempt=attempt.id, result="interrupted")
            return
        attempt = attempt.replace(
            number=self._next_number(database, task.id),
            result=result,
            difficulty=sigils.difficulty,
            summary=sigils.note[:_LONGEST_SUMMARY],
        )
        failure = report_of(sigils, output, attempt=attempt.id, task=task.id, result=result, at=at)
        if failure is not None and body.get("failure"):
            found = {**body["failure"], "files": tuple(body["failure"]["files"])}
            failure = failure.replace(**{name: value for name, value in found.items() if value})
        if task.type == "session" and sigils.failure is None:
            failure = None  # a turn of a conversation is no failed attempt
        tasks.add_attempt(database, attempt, failure)
        if body.get("claim"):
            self._settle(database, task, attempt, next_model=sigils.next_model, at=at)
        elif result in ("done", "failed"):
            tasks.set_status(database, task.id, result, at=at)
        added, repeated = self._learn(database, sigils.learnings, task, at=at)
        taken, refused = self._take_marks(marks, task.id, at=at, who=task.agent or "agent")
        self._debriefed[attempt.id] = Debrief(
            task=task.id,
            attempt=attempt.id,
            result=result,
            learnings=added,
            repeated=repeated,
            failure=failure,
            helpful=tuple(id for id in marks.helpful if id in taken),
            not_helpful=tuple(id for id in marks.not_helpful if id in taken),
            refused_marks=refused,
            next_model=sigils.next_model,
            ignored=sigils.ignored,
        )

    def _settle(self, database: Database, task: Task, attempt: Attempt, *, next_model: str, at: int) -> None:
        """Give a task the status that follows from an attempt of the loop's."""
        raise NotImplementedError

    def _next_number(self, database: Database, task: str) -> int:
        return max((earlier.number for earlier in tasks.attempts(database, task)), default=0) + 1

    def _learn(
        self, database: Database, sigils: Sequence[LearningSigil], task: Task, *, at: int
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Keep what an agent says it learnt; what is known already is counted instead. Return new and known ids."""
        from learnt.debrief.sigils import discovery_of, kind_of
        from learnt.debrief.tags import tags_in

        added, repeated = [], []
        for sigil in sigils:
            known = self._same_as(database, sigil.text)
            if known is not None:
                change = Change(what="recur", who=task.agent or "agent", at=at, reason=task.id)
                learnings.change(database, known.id, lambda one: {"recurrences": one.recurrences + 1}, change)
                repeated.append(known.id)
                continue
            discovery = discovery_of(sigil.category)
            learning = Learning(
                id=new_id("learn", at),
                title=sigil.title,
                observation=sigil.text,
                tags=_tags(sigil.tags, tags_in(f"{task.title} {task.text} {sigil.text}")),
                domain=sigil.domain,
                category=sigil.category,
                kind=sigil.kind or kind_of(discovery),
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
        return tuple(added), tuple(repeated)

    def _same_as(self, database: Database, text: str) -> Learning | None:
        """Return the learning that says exactly this, but for case, white space and punctuation."""
        from learnt.recall.find import find
        from learnt.text.normalise import normalised
        from learnt.text.patterns import Situation

        wanted = normalised(text)
        for hit in find(database, Situation(text=text), Filter(status=None), limit=10):
            told = hit.learning.observation or hit.learning.title
            if normalised(told) == wanted or normalised(hit.learning.title) == wanted:
                return hit.learning
        return None

    def _take_marks(self, marks: Marks, task: str, *, at: int, who: str) -> tuple[set[str], tuple[str, ...]]:
        """Count the marks on what the task was given, once each; return those, and those that do not count."""
        given = self._injected(task)
        taken: set[str] = set()
        refused = list(marks.contradicting)
        for helpful, ids in ((True, marks.helpful), (False, marks.not_helpful)):
            for id in ids:
                if given.get(id) is False and self._add_mark(id, task, helpful=helpful, at=at, who=who):
                    taken.add(id)
                else:
                    refused.append(id)
        return taken, tuple(refused)

    def _add_mark(self, id: str, task: str, *, helpful: bool, at: int, who: str) -> bool:
        """Within a transaction of the own store: record a mark and let it move the learning's confidence."""
        from learnt.store.happened import add_mark

        if not add_mark(self.store.database, Mark(learning=id, task=task, helpful=helpful, at=at, who=who)):
            return False
        change = Change(what="mark", who=who, at=at, reason=task)
        if learnings.find(self.store.database, id):
            learnings.change(self.store.database, id, _marked(helpful, at), change)
            return True
        place = self.store.place
        op = text_id("op", f"mark {place.folder} {place.address} {place.project} {id} {task}")
        for store in self.sound_stores()[1:]:
            if not store.place.read_only and learnings.find(store.database, id):
                store.apply_once(op, lambda database: learnings.change(database, id, _marked(helpful, at), change))
        return True


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


def _marked(helpful: bool, at: int) -> Callable[[Learning], dict[str, Any]]:
    def decide(learning: Learning) -> dict[str, Any]:
        changes: dict[str, Any] = {"confidence": confidence.marked(learning.confidence, helpful=helpful)}
        if helpful:
            return {**changes, "times_helpful": learning.times_helpful + 1, "last_helpful_at": at}
        return {**changes, "times_not_helpful": learning.times_not_helpful + 1}

    return decide
