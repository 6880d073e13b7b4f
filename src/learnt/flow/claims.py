"""Tasks for the loop: claim a task, choose its model, and end the attempt.

A worker's report is accepted only while the worker holds its claim. The claim, the attempt and the task's status change
in one transaction, so a task is done only once, however many workers die.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from learnt.errors import InvalidValue
from learnt.flow import money
from learnt.flow.context import Context
from learnt.flow.injections import injected
from learnt.flow.money import Budget, Refused
from learnt.flow.tasks import failed_attempts, next_number, normalise_failure, set_status, settle, waiting_or_ready
from learnt.model import TEXT_LIMIT, Attempt, Claim, Task, Value, new_id, text_id
from learnt.store import happened, reviews, tasks
from learnt.store.reviews import Escalation
from learnt.store.spending import spent_on_attempts
from learnt.strategy.choose_model import Facts, ModelChoice, choose, find_model
from learnt.strategy.figures import Figure, PastAttempt, Share, TrackRecord, make_figures
from learnt.strategy.stuck import Stuck, find_stuck_run
from learnt.text.words import words

# How many past attempts are considered when a model is chosen; older attempts say little about today's models.
_MAX_ATTEMPTS = 2_000
_RECENT_ATTEMPTS = 20
_MIN_LIKENESS = 0.2
_DRAWS = 40
_NO_BUDGET = Budget()


class ModelOverview(Value):
    """Each model's statistics, and the model that would be chosen now."""

    figures: tuple[Figure, ...]
    by_type: tuple[Figure, ...]
    choices: tuple[tuple[str, ModelChoice], ...]
    """The model with which most new tasks of each type would start."""
    draws: Mapping[str, Mapping[str, float]]
    """For each type, the share of new tasks that would start with each model."""


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

    def claim(
        self,
        *,
        worker: str,
        host: str,
        pid: int,
        only: Sequence[str] | None = None,
        without: Sequence[str] = (),
        budget: Budget = _NO_BUDGET,
    ) -> Claim | Refused | None:
        """Claim the task whose turn it is for one attempt, and reserve what the attempt may cost.

        Return None if no task is ready, or the task whose attempt would cost too much. `only` restricts the choice to
        these tasks; tasks in `without` are ignored.
        """
        while True:
            task = tasks.find_oldest_ready(
                self._store.database, only=only, without=without, breadth=self._settings.work_order == "breadth"
            )
            if task is None:
                return None
            choice = self._try_to_choose(task)
            now = self._now()
            claim = Claim(
                attempt=new_id("attempt", now),
                task=task.id,
                worker=worker,
                host=host,
                pid=pid,
                model=choice.model,
                model_reason=choice.reason,
                price_usd=money.price_of(self._context, choice.model),
                started_at=now,
                held_until=self._lease(now),
            )
            with self._store.transaction():
                refused = money.reserve(self._context, task, claim, budget)
                if refused is None and tasks.claim_ready(self._store.database, claim):
                    return claim
                if refused is not None and refused.only_task:
                    self._ask_person(tasks.get(self._store.database, task.id, for_update=True), refused.reason)
            if refused is not None:
                return refused
            money.record(claim, cost_usd=0.0)  # another worker was faster

    def _try_to_choose(self, task: Task) -> ModelChoice:
        """Return the model for the next attempt at a task; if none can be chosen, the attempt itself reports that."""
        try:
            return self.choose_model(task)
        except InvalidValue:
            return ModelChoice(model="", reason="")

    def _ask_person(self, task: Task, reason: str) -> None:
        """Within a transaction: escalate a ready task that costs too much."""
        if task.status == "ready":
            now = self._context.clock()
            set_status(self._context, task, "escalated")
            escalation = Escalation(
                id=new_id("esc", now), subject=task.id, question=reason[:TEXT_LIMIT], created_at=now
            )
            reviews.add_escalation(self._store.database, escalation)

    def now(self) -> int:
        """Return the time by the clock that all workers share, in milliseconds."""
        return self._now()

    def spent(self, since: int) -> float:
        """Return what the project's attempts since a moment have cost, or may still cost, by price."""
        return sum(spent_on_attempts(self._store.database, since=since).values())

    def record_cost(self, claim: Claim, *, cost_usd: float) -> None:
        """Record what an attempt has cost, for the daily cap of all projects of the user."""
        money.record(claim, cost_usd=cost_usd)

    def give_back(self, claim: Claim, *, escalation: Escalation | None = None) -> bool:
        """Release a task without an attempt, or escalate it; return False if the claim is lost."""
        with self._store.transaction():
            task = tasks.get(self._store.database, claim.task, for_update=True)
            if tasks.release_claim(self._store.database, task=task.id, attempt=claim.attempt) is None:
                return False
            if task.status == "running":
                status = "escalated" if escalation else waiting_or_ready(self._store.database, task.id)
                set_status(self._context, task, status)
                if escalation:
                    reviews.add_escalation(self._store.database, escalation)
        money.record(claim, cost_usd=0.0)
        return True

    def update(self, claim: Claim) -> Claim | None:
        """Renew a claim and store facts about its agent; return None if the claim is lost."""
        renewed = claim.replace(held_until=self._lease(self._now()))
        with self._store.transaction():
            return renewed if tasks.update_claim(self._store.database, renewed) else None

    def escalate(self, claim: Claim, reason: str, **detail: str) -> Escalation:
        """Release a task that cannot be started, and escalate it to a person; `detail` is stored with the question."""
        now = self._context.clock()
        remedy = f"`learnt task edit {claim.task}` changes the task, `learnt task retry {claim.task}` tries again."
        question = f"It cannot be begun: {reason}"[: TEXT_LIMIT - len(remedy) - 2].rstrip(".")
        escalation = Escalation(
            id=text_id("esc", claim.attempt),
            subject=claim.task,
            question=f"{question}. {remedy}",
            detail={"attempt": claim.attempt, **detail},
            created_at=now,
        )
        self.give_back(claim, escalation=escalation)
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
        """Record an interrupted attempt and release its task; return False if the claim is lost."""
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
                price_usd=released.price_usd if released.agent_pid else None,
            )
            tasks.add_attempt(self._store.database, attempt, None)
            if task.status == "running":
                settle(self._context, task, attempt, next_model="", at=self._context.clock(), claimed=True)
        if attempt.price_usd is None:
            money.record(claim, cost_usd=0.0)
        return True

    def choose_model(self, task: Task) -> ModelChoice:
        """Return the model for the next attempt at a task, and why; the client's default if none are configured."""
        if not self._settings.models:
            fixed = task.model or self._settings.work_model
            reason = f"{fixed} is named" if fixed else "no models are configured"
            return ModelChoice(model=fixed, reason=reason, last=True)
        return self._choose(task, *self._facts(task))

    def _choose(self, task: Task, record: TrackRecord, facts: Facts) -> ModelChoice:
        is_fixed = self._settings.strategy == "fixed"
        fixed = task.model or (self._settings.work_model if is_fixed else "")
        strategy = "fixed" if task.model else self._settings.strategy
        # The hint is ignored if a person chose a model, or if the hinted model has failed at this task.
        hint = "" if task.model or task.next_model in facts.failures else task.next_model
        return choose(strategy, self._settings.models, record, facts, hint=hint, fixed=fixed)

    def check_model(self, name: str) -> None:
        """Raise unless a task can be given this model: its name, or parts of it that only one model has."""
        if self._settings.models:
            find_model(name, self._settings.models)

    def model_overview(self, *, types: Sequence[str] = ()) -> ModelOverview:
        """Return each model's statistics, and the choice for a new task of each type."""
        outcomes = self._outcomes()
        kinds = list(types) or sorted({outcome.type for outcome in outcomes} | {"implement"})
        drawn = {kind: self._draw_choices(kind) for kind in kinds}
        counts = {kind: Counter(choice.model for choice in choices) for kind, choices in drawn.items()}
        usual = {kind: counts[kind].most_common(1)[0][0] for kind in kinds}
        return ModelOverview(
            figures=tuple(make_figures(outcomes)),
            by_type=tuple(make_figures(outcomes, by_type=True)),
            choices=tuple(
                (kind, next(choice for choice in choices if choice.model == usual[kind]))
                for kind, choices in drawn.items()
            ),
            draws={
                kind: {model: number / _DRAWS for model, number in count.most_common()}
                for kind, count in counts.items()
            },
        )

    def _draw_choices(self, kind: str) -> list[ModelChoice]:
        """Return the choices for new tasks of a type: to explore, `learned` does not always choose the same model."""
        fresh = Task(id="task_new", title="-", type=kind)
        if not self._settings.models:
            return [self.choose_model(fresh)] * _DRAWS
        record, facts = self._facts(fresh)
        return [self._choose(fresh, record, facts.replace(task=f"{kind} {draw}")) for draw in range(_DRAWS)]

    def stuck_run(self, attempts: Sequence[str]) -> Stuck | None:
        """Return why a run should stop, and the learnings that the failed tasks share; None if it should continue.

        A run should stop if several tasks had the same error.
        """
        wanted = set(attempts)
        outcomes = [outcome for outcome in reversed(self._outcomes()) if outcome.attempt in wanted]
        errors = [normalise_failure(outcome.error_text) for outcome in outcomes]
        outcomes = [
            outcome.replace(error=error, error_text=line)
            for outcome, (error, line) in zip(outcomes, errors, strict=True)
        ]
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
