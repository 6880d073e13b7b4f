"""Tasks for the loop: claim a task, choose its model, and end the attempt.

A worker's report is accepted only while the worker holds its claim. The claim, the attempt and the task's status change
in one transaction, so a task is done only once, however many workers die.
"""

from __future__ import annotations

from collections.abc import Sequence

from learnt.flow.context import Context
from learnt.flow.injections import injected
from learnt.flow.tasks import failed_attempts, next_number, set_status, settle
from learnt.model import TEXT_LIMIT, Attempt, Claim, Task, Value, new_id, text_id
from learnt.store import happened, reviews, tasks
from learnt.store.reviews import Escalation
from learnt.strategy.choose_model import Facts, ModelChoice, choose
from learnt.strategy.figures import Figure, PastAttempt, Share, TrackRecord, make_figures
from learnt.strategy.stuck import Stuck, find_stuck_run
from learnt.text.titles import normalised_error
from learnt.text.words import words

# How many past attempts are considered when a model is chosen; older attempts say little about today's models.
_MAX_ATTEMPTS = 2_000
_RECENT_ATTEMPTS = 20
_MIN_LIKENESS = 0.2


class ModelOverview(Value):
    """Each model's statistics, and the model that would be chosen now."""

    figures: tuple[Figure, ...]
    by_type: tuple[Figure, ...]
    choices: tuple[tuple[str, ModelChoice], ...]


class Work:
    """What one of the loop's workers does with tasks."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._settings = context.settings

    def claims(self) -> list[Claim]:
        """Return the current claims."""
        return tasks.claims(self._store.database)

    def has_store(self) -> bool:
        """Return whether the store still exists; an agent might have deleted it."""
        return self._store.place.exists()

    def replay_spool(self) -> None:
        """Apply spooled records, if the database is available."""
        self._store.replay_spool(wait=True)

    def were_given_learnings(self, tasks: Sequence[str], *, since: int) -> bool:
        """Return whether a brief for any of these tasks has contained a learning since the given time."""
        return happened.any_injected(self._store.database, tasks, since=since)

    def claim(self, *, worker: str, host: str, pid: int, only: Sequence[str] | None = None) -> Claim | None:
        """Claim the task that has been ready longest for one attempt; return None if no task is ready.

        `only` restricts the choice to these tasks.
        """
        now = self._now()
        claim = Claim(
            attempt=new_id("attempt", now),
            worker=worker,
            host=host,
            pid=pid,
            started_at=now,
            held_until=self._lease(now),
        )
        with self._store.transaction():
            return tasks.claim_oldest_ready(self._store.database, claim, only=only)

    def update(self, claim: Claim) -> Claim | None:
        """Renew a claim and store facts about its agent; return None if the claim is lost."""
        renewed = claim.replace(held_until=self._lease(self._now()))
        with self._store.transaction():
            return renewed if tasks.update_claim(self._store.database, renewed) else None

    def escalate(self, claim: Claim, reason: str) -> Escalation:
        """Release a task that cannot be started, and escalate it to a person."""
        now = self._context.clock()
        escalation = Escalation(
            id=text_id("esc", claim.attempt),
            subject=claim.task,
            question=f"It cannot be begun: {reason}"[:TEXT_LIMIT],
            detail={"attempt": claim.attempt},
            created_at=now,
        )
        if self.release_interrupted(claim):
            with self._store.transaction():
                task = tasks.get(self._store.database, claim.task, for_update=True)
                set_status(self._context, task, "escalated")
                reviews.add_escalation(self._store.database, escalation)
        return escalation

    def renew(self, claim: Claim) -> Claim | None:
        """Renew a claim; return None if the claim is lost."""
        renewed = claim.replace(held_until=self._lease(self._now()))
        with self._store.transaction():
            return renewed if tasks.renew_claim(self._store.database, renewed) else None

    def note_branch(self, task: str, branch: str) -> None:
        """Store the branch on which a task is worked on."""
        with self._store.transaction():
            stored = tasks.get(self._store.database, task, for_update=True)
            tasks.change(self._store.database, stored.replace(branch=branch))

    def lapsed(self) -> list[Claim]:
        """Return the claims that have not been renewed for a whole lease."""
        now = self._now()
        return [claim for claim in self.claims() if claim.held_until < now]

    def release_interrupted(self, claim: Claim, *, only_if_lapsed: bool = False) -> bool:
        """Record an interrupted attempt and release its task; return False if the claim is no longer held."""
        now = self._now()
        with self._store.transaction():
            task = tasks.get(self._store.database, claim.task, for_update=True)
            lapsed_at = now if only_if_lapsed else None
            released = tasks.release_claim(
                self._store.database, task=task.id, attempt=claim.attempt, lapsed_at=lapsed_at
            )
            if released is None:
                return False
            attempt = Attempt(
                id=claim.attempt,
                task=claim.task,
                number=next_number(self._store.database, claim.task),
                result="interrupted",
                model=released.model,
                model_reason=released.model_reason,
                started_at=claim.started_at,
                duration_ms=max(0, now - claim.started_at),
            )
            tasks.add_attempt(self._store.database, attempt, None)
            if task.status == "running":
                settle(self._context, task, attempt, next_model="", at=self._context.clock(), claimed=True)
        return True

    def choose_model(self, task: Task) -> ModelChoice:
        """Return the model for the next attempt at a task, and why; the client's default if none are configured."""
        is_fixed = self._settings.strategy == "fixed" or not self._settings.models
        fixed = task.model or (self._settings.work_model if is_fixed else "")
        if not self._settings.models:
            reason = f"{fixed} is named" if fixed else "no models are configured"
            return ModelChoice(model=fixed, reason=reason, last=True)
        record, facts = self._facts(task)
        strategy = "fixed" if task.model else self._settings.strategy
        # The hint is ignored if a person chose a model, or if the hinted model has failed at this task.
        hint = "" if task.model or task.next_model in facts.failures else task.next_model
        return choose(strategy, self._settings.models, record, facts, hint=hint, fixed=fixed)

    def model_overview(self, *, types: Sequence[str] = ()) -> ModelOverview:
        """Return each model's statistics, and the choice for a new task of each type."""
        outcomes = self._outcomes()
        kinds = list(types) or sorted({outcome.type for outcome in outcomes} | {"implement"})
        fresh = [Task(id=new_id("task", self._context.clock()), title="-", type=kind) for kind in kinds]
        return ModelOverview(
            figures=tuple(make_figures(outcomes)),
            by_type=tuple(make_figures(outcomes, by_type=True)),
            choices=tuple((task.type, self.choose_model(task)) for task in fresh),
        )

    def stuck_run(self, attempts: Sequence[str]) -> Stuck | None:
        """Return why a run should stop, and the learnings that the failed tasks share; None if it should continue.

        A run should stop if several tasks had the same error.
        """
        wanted = set(attempts)
        outcomes = [outcome for outcome in reversed(self._outcomes()) if outcome.attempt in wanted]
        outcomes = [outcome.replace(error=normalised_error(outcome.error_text)) for outcome in outcomes]
        learnings_by_task = {
            task: [id for id, held_out in injected(self._context, task).items() if not held_out]
            for task in {outcome.task for outcome in outcomes}
        }
        return find_stuck_run(outcomes, learnings_by_task, times=self._settings.stuck_after)

    def propose_quarantine(self, learning: str, *, error: str, task_ids: Sequence[str]) -> Escalation:
        """Ask a person whether to hide a learning that failing tasks share."""
        title = self._context.get(learning).title
        escalation = Escalation(
            id=text_id("esc", f"{learning} {error} {' '.join(sorted(task_ids))}"),
            subject=learning,
            question=f"{len(task_ids)} tasks failed with the same error, and all were given `{title}`. Hide it?",
            detail={"error": error[:2_000], "tasks": list(task_ids)},
            created_at=self._context.clock(),
        )
        with self._store.transaction():
            reviews.add_escalation(self._store.database, escalation)
        return escalation

    def _lease(self, now: int) -> int:
        return now + self._settings.work_lease_s * 1_000

    def _now(self) -> int:
        """Return the time by the clock that all workers share."""
        return self._store.database.now_ms(self._context.clock())

    def _facts(self, task: Task) -> tuple[TrackRecord, Facts]:
        """Return the record of past attempts, and the facts about this task."""
        outcomes = self._outcomes(like=task)
        own = [outcome for outcome in outcomes if outcome.task == task.id]
        recent = outcomes[:_RECENT_ATTEMPTS]
        facts = Facts(
            task=task.id,
            type=task.type,
            difficulty=next((outcome.difficulty for outcome in own if outcome.difficulty), ""),
            failures=tuple(failure.model for failure in failed_attempts(self._context, task)),
            similar=tuple(other for other in outcomes if other.task != task.id and other.likeness >= _MIN_LIKENESS),
            recent=Share(done=sum(outcome.done for outcome in recent), attempts=len(recent)) if recent else None,
        )
        return TrackRecord(outcomes), facts

    def _outcomes(self, *, like: Task | None = None) -> list[PastAttempt]:
        """Return past attempts, newest first, each with the similarity between its task and `like`."""
        record = tasks.latest_attempts(self._store.database, limit=_MAX_ATTEMPTS)
        own_words = set(words(f"{like.title} {like.goal}")) if like else set()
        failed: dict[str, int] = {}
        outcomes = []
        for entry in reversed(record):
            attempt = entry.attempt
            other_words = set(words(f"{entry.title} {entry.goal}")) if like else set()
            outcomes.append(
                PastAttempt(
                    model=attempt.model,
                    task=attempt.task,
                    result=attempt.result,
                    type=entry.type,
                    difficulty=attempt.difficulty,
                    before=failed.get(attempt.task, 0),
                    cost_usd=attempt.cost_usd,
                    duration_ms=attempt.duration_ms,
                    at=attempt.started_at,
                    attempt=attempt.id,
                    error_text=entry.symptom,
                    likeness=len(own_words & other_words) / len(own_words | other_words)
                    if own_words and other_words
                    else 0.0,
                )
            )
            failed[attempt.task] = 0 if attempt.result == "done" else failed.get(attempt.task, 0) + 1
        return outcomes[::-1]
