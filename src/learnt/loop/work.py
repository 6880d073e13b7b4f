"""Work through the queue: claim a task, attempt it, settle it, and repeat, in several jobs at the same time.

Each job is a thread with its own `Memory`. Another thread renews the claims and stops an agent whose claim has been
lost. After a worker has died, the next worker waits until the dead worker's lease has expired, ends the processes that
it started, and claims the task again.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from learnt.errors import LearntError, NotFound
from learnt.flow.money import Budget, Refused
from learnt.loop import baseline, folders, quota
from learnt.loop.attempt import RUNNING, WORKTREES, AttemptResult, TaskAttempt, check_agent, wip_message, write_log
from learnt.memory import Memory
from learnt.model import Claim, Task, Value, new_id
from learnt.system import family
from learnt.system.files import list_names, remove_tree
from learnt.text.times import DAY_S, MONTH_MS

_MAX_WAIT_S = 5.0
_POLL_S = 1.0
# Weekly quotas are the longest ones.
_MAX_PAUSES_S = 8 * DAY_S


class Plan(Value):
    """A run's limits; 0 means no limit."""

    tasks: int = 1
    jobs: int = 1
    attempts: int = 0
    budget_usd: float = 0.0


class Notice(Value):
    """An event in a run, for display."""

    what: str
    """One of `started`, `progress`, `ended`, `given back` (it was no attempt), `waiting`, `paused` and `stopped`."""
    task: str = ""
    title: str = ""
    attempt: int = 0
    model: str = ""
    model_reason: str = ""
    price_usd: float = 0.0
    """What an attempt that starts may cost, by the price of its model."""
    text: str = ""
    ended: AttemptResult | None = None


class Summary(Value):
    """A run's result."""

    ended: tuple[AttemptResult, ...] = ()
    done: int = 0
    escalated: int = 0
    cost_usd: float = 0.0
    spent_usd: float = 0.0
    """The cost, and the price of attempts whose cost is unknown."""
    over_usd: float = 0.0
    """By how much the budget was exceeded, because an attempt cost more than the price of its model."""
    duration_ms: int = 0
    stopped: str = ""
    """Why the run ended early; empty if it did not end early."""


class LoopRun:
    """One run of the loop."""

    def __init__(self, root: str, plan: Plan, *, report: Callable[[Notice], None]) -> None:
        self._root = root
        self._plan = plan
        self._report = report
        self._changed = threading.Condition()
        self._working: dict[str, TaskAttempt] = {}
        self._started: set[str] = set()
        self._waited_for: set[str] = set()
        self._claimed = 0
        self._budget = Budget(usd=plan.budget_usd)
        self._refused: dict[str, tuple[frozenset[str], str]] = {}
        """Tasks whose next attempt would cost too much: which attempts were running then, and why."""
        self._has_spent = False
        """Whether an attempt has ended since these tasks were refused, so that the figures in the reasons are old."""
        self._escalated = 0
        self._paused_until = 0.0
        self._pauses = 0
        self._paused_since = 0.0
        self._ended: list[AttemptResult] = []
        self._stopped = ""
        self._error: BaseException | None = None
        self._over = False
        self._name = new_id("worker", time.time_ns() // 1_000_000)

    def run(self) -> Summary:
        """Work until no task is ready, one of the plan's limits is reached, or the run is stopped."""
        began = time.monotonic()
        with self._open_memory() as memory:
            folders.check(self._root, memory.settings.work_isolation)
            check_agent(memory)
            self._sweep(memory)
            self._budget = self._budget.replace(since=memory.work.now())
            lease_s = memory.settings.work_lease_s
        renewal = threading.Thread(target=self._renew_claims, args=(lease_s,), daemon=True)
        renewal.start()
        jobs = [threading.Thread(target=self._job, daemon=True) for _ in range(self._plan.jobs)]
        for job in jobs:
            job.start()
        for job in jobs:
            while job.is_alive():
                job.join(0.2)  # with a timeout, because signals are handled only between two calls
        with self._changed:
            self._over = True
            self._changed.notify_all()
        renewal.join()
        if self._error is not None:
            raise self._error
        with self._open_memory() as memory:
            if memory.settings.work_isolation == "worktree":
                self._retire_folders(memory)
            if not self._stopped:
                self._stopped = self._find_limit(memory)
            spent = memory.work.spent(self._budget.since) if self._budget.usd else 0.0
        return self._summary(round((time.monotonic() - began) * 1000), spent)

    def _find_limit(self, memory: Memory) -> str:
        """Return the limit because of which ready tasks were not worked on; empty if none was reached."""
        ready = {task.id for task in memory.tasks.select(statuses=["ready"])}
        if 0 < self._plan.tasks <= len(self._started):
            ready &= self._started
        if self._has_reached_attempt_limit() and ready:
            made = "1 attempt was" if self._claimed == 1 else f"{self._claimed} attempts were"
            return f"{made} made, which is the limit"
        return next((reason for task, (_, reason) in self._refused.items() if task in ready), "")

    def stop(self, reason: str) -> None:
        """Start no more attempts, and end the running agents. This can be called from a signal handler."""
        self._stopped = self._stopped or reason
        for attempt in list(self._working.values()):
            attempt.stop.now()
        with self._changed:
            self._changed.notify_all()

    def _open_memory(self) -> Memory:
        return Memory.open(self._root, create=False)

    def _job(self) -> None:
        try:
            with self._open_memory() as memory:
                while self._next(memory):
                    pass
        except BaseException as error:  # whatever it is, the other jobs must not wait for this one; `run` raises it
            self._error = self._error or error
            self.stop(str(error))
        finally:
            with self._changed:
                self._changed.notify_all()

    def _sweep(self, memory: Memory) -> None:
        """Remove the files that dead workers left."""
        claims = memory.work.claims()
        claimed_attempts = {claim.attempt for claim in claims}
        running = os.path.join(memory.folder, RUNNING)
        for name in list_names(running):
            if name not in claimed_attempts:
                remove_tree(os.path.join(running, name))
        baseline.forget_old(os.path.join(memory.folder, baseline.FOLDER), before_s=time.time() - MONTH_MS / 1000)
        if memory.settings.work_isolation == "worktree":
            self._retire_folders(memory)

    def _retire_folders(self, memory: Memory) -> None:
        """Remove the worktrees of tasks that nobody works on any more; what is in them stays on their branches."""
        worktrees = os.path.join(memory.folder, WORKTREES)
        for id in folders.list_tasks(worktrees):
            task = self._find_unneeded(memory, id)
            if task is None:
                continue
            is_needed = partial(self._needs_folder, memory, id)
            branch = folders.retire(self._root, folders.folder_of(worktrees, id), wip_message(task), unless=is_needed)
            if branch is not None and task.queued:
                memory.work.note_branch(id, branch)

    def _needs_folder(self, memory: Memory, id: str) -> bool:
        return self._find_unneeded(memory, id) is None

    def _find_unneeded(self, memory: Memory, id: str) -> Task | None:
        """Return a task that needs no worktree any more, also one that is not in the store; None if it needs one."""
        if any(claim.task == id for claim in memory.work.claims()):
            return None
        try:
            task = memory.tasks.get(id)
        except NotFound:
            return Task(id=id, title="a task that is not in the store")
        return task if task.status in ("done", "cancelled") else None

    def _next(self, memory: Memory) -> bool:
        """Make one attempt, or wait until one might be possible; return False if this job is finished."""
        self._release_lapsed(memory)
        with self._changed:
            self._wait_out_pause()
            if self._stopped or self._has_reached_attempt_limit():
                return False
            only = sorted(self._started) if 0 < self._plan.tasks <= len(self._started) else None
            held = [claim for claim in memory.work.claims() if only is None or claim.task in only]
            running = frozenset(claim.attempt for claim in held)
            claim = memory.work.claim(
                worker=self._name,
                host=socket.gethostname(),
                pid=os.getpid(),
                only=only,
                # What an attempt leaves of its reservation when it ends may be enough for a task that was refused.
                without=[task for task, (before, _) in self._refused.items() if before <= running],
                budget=self._budget,
            )
            if claim is None and not held and self._has_spent:
                self._refused, self._has_spent = {}, False
                return True
            if claim is None:
                return self._wait(held)
            if isinstance(claim, Refused):
                self._refuse(claim, running)
                return True
            self._claimed += 1
            self._started.add(claim.task)
            attempt = TaskAttempt(
                memory, claim, report=lambda text: self._report(Notice(what="progress", task=claim.task, text=text))
            )
            self._working[claim.attempt] = attempt
        if self._stopped:
            attempt.stop.now()
        self._attempt(memory, attempt)
        return True

    def _refuse(self, refused: Refused, running: frozenset[str]) -> None:
        """Remember that a task's next attempt would cost too much."""
        if refused.only_task:
            self._escalated += 1
            self._report(Notice(what="progress", task=refused.task.id, text=f"it needs a person: {refused.reason}"))
        else:
            self._refused[refused.task.id] = running, refused.reason

    def _wait_out_pause(self) -> None:
        """Wait until a client whose quota was exhausted may answer again."""
        while not self._stopped and (remaining_s := self._paused_until - time.monotonic()) > 0:
            self._changed.wait(min(remaining_s, _MAX_WAIT_S))

    def _pause(self, pause_s: float) -> None:
        """Start no attempts for a while; without a stated time, for longer and longer."""
        now = time.monotonic()
        if now < self._paused_until and not pause_s:
            return  # other attempts that were running met the same end of the quota
        self._pauses += 1
        if self._pauses == 1:
            self._paused_since = now
        pause_s = pause_s or min(quota.FIRST_PAUSE_S * 2 ** min(self._pauses - 1, 10), quota.LONGEST_PAUSE_S)
        if max(pause_s, now - self._paused_since) > _MAX_PAUSES_S:
            self._stopped = self._stopped or "the client's quota is exhausted for more than eight days"
            return
        self._paused_until = max(self._paused_until, now + pause_s)
        pause_s = self._paused_until - now
        form = "%H:%M:%S" if pause_s < DAY_S else "%Y-%m-%d %H:%M"
        until = time.strftime(form, time.localtime(time.time() + pause_s))
        self._report(Notice(what="paused", text=f"the client's quota is exhausted; the run continues at {until}"))

    def _has_reached_attempt_limit(self) -> bool:
        return 0 < self._plan.attempts <= self._claimed

    def _wait(self, claims: list[Claim]) -> bool:
        """Wait until a task might have become ready; return False if no task can become ready.

        `claims` were read before the last attempt to claim a task: a claim that another thread has released since then
        leaves a task that is ready now.
        """
        if not claims:
            return False
        now = time.time_ns() // 1_000_000
        first = claims[0]
        has_own = any(claim.attempt in self._working for claim in claims)
        if not has_own and first.attempt not in self._waited_for:
            self._waited_for.add(first.attempt)
            held = f"held by {first.host}, process {first.pid}"
            lapse = f"if that has died, it goes on in {max(1, (first.held_until - now) // 1000)} s"
            self._report(Notice(what="waiting", task=first.task, text=f"{held}; {lapse}"))
        lapse_s = max(0.05, (min(claim.held_until for claim in claims) - now) / 1000)
        self._changed.wait(min(lapse_s, _MAX_WAIT_S))
        return True

    def _attempt(self, memory: Memory, attempt: TaskAttempt) -> None:
        task = attempt.task
        number = len(memory.tasks.attempts(task.id)) + 1
        claim = attempt.claim
        plans: dict[str, Any] = {name: getattr(claim, name) for name in ("model", "model_reason", "price_usd")}
        self._report(Notice(what="started", task=task.id, title=task.title, attempt=number, **plans))
        try:
            ended = attempt.run()
        finally:
            with self._changed:
                self._working.pop(attempt.claim.attempt, None)
                self._changed.notify_all()
        with self._changed:
            if ended.pause_s is not None or ended.debrief is None:
                self._claimed -= 1
            if ended.pause_s is not None:
                self._pause(ended.pause_s)
                if ended.debrief is None:
                    self._report(Notice(what="given back", task=task.id))
                    return
            elif ended.result != "interrupted":
                self._pauses = 0
            self._ended.append(ended)
            self._has_spent = bool(self._refused)
            if ended.obstacle and not self._stopped:
                self._stopped = ended.obstacle
        self._report(Notice(what="ended", task=task.id, title=task.title, attempt=number, ended=ended))
        if ended.result in ("failed", "incomplete"):
            self._stop_if_stuck(memory)

    def _stop_if_stuck(self, memory: Memory) -> None:
        """Stop if several tasks fail for the same reason; propose to quarantine the learnings that all of them got."""
        stuck = memory.work.stuck_run([ended.attempt for ended in self._ended])
        if stuck is None or self._stopped:
            return
        self._stopped = stuck.reason
        for learning in stuck.learnings:
            memory.work.propose_quarantine(learning, error=stuck.error, task_ids=stuck.tasks)
        shared = f"; all were given {', '.join(stuck.learnings)}: `learnt escalations`" if stuck.learnings else ""
        self._report(Notice(what="stopped", text=f"{stuck.reason}{shared}"))

    def _release_lapsed(self, memory: Memory) -> None:
        """End the remaining processes of dead workers on this machine, and release their tasks."""
        try:
            lapsed = memory.work.lapsed()
        except LearntError:
            return  # the next poll tries again
        for claim in lapsed:
            if claim.attempt in self._working:
                continue
            is_here = claim.host == socket.gethostname()
            if is_here:
                family.end_orphans(claim.agent_pid, claim.agent_started, mark=claim.attempt)
            if memory.work.release_interrupted(claim, only_if_lapsed=True) and is_here:
                write_log(memory.folder, claim.attempt, f"interrupted: its worker, process {claim.pid}, has died")
            if is_here:
                remove_tree(os.path.join(memory.folder, RUNNING, claim.attempt))  # whoever follows the log waits for it

    def _renew_claims(self, lease_s: int) -> None:
        """Renew running attempts' claims, stop attempts that lost their claim, and release dead workers' claims."""
        renewed_at: dict[str, float] = {}
        with self._open_memory() as memory:
            while True:
                with self._changed:
                    if self._over:
                        return
                    self._changed.wait(min(_POLL_S, lease_s / 3))
                    working = dict(self._working)
                renewed_at = {id: renewed_at.get(id, time.monotonic()) for id in working}
                for id, attempt in working.items():
                    since_s = time.monotonic() - renewed_at[id]
                    if self._renew(memory, attempt, since_s=since_s, lease_s=lease_s):
                        renewed_at[id] = time.monotonic()
                    elif time.monotonic() - renewed_at[id] > lease_s:
                        attempt.stop.now()  # the claim has expired, so another worker may have the task
                if not self._stopped:
                    self._release_lapsed(memory)

    def _renew(self, memory: Memory, attempt: TaskAttempt, *, since_s: float, lease_s: int) -> bool:
        """Renew a claim if it is due; return whether it was renewed. If the claim has been lost, stop its agent."""
        try:
            status = memory.tasks.get(attempt.task.id).status
            if since_s < lease_s / 3 and status == "running":
                return False
            if status != "running" or memory.work.renew(attempt.claim) is None:
                attempt.stop.now()
                return False
        except LearntError:
            return False  # the database may be available again before the lease expires
        return True

    def _summary(self, duration_ms: int, spent_usd: float) -> Summary:
        last = {ended.task.id: ended for ended in self._ended}
        return Summary(
            ended=tuple(self._ended),
            done=sum(ended.result == "done" for ended in last.values()),
            escalated=sum(ended.task.status == "escalated" for ended in last.values()) + self._escalated,
            cost_usd=sum(ended.cost_usd or 0.0 for ended in self._ended),
            spent_usd=sum(ended.assumed_usd for ended in self._ended),
            over_usd=max(0.0, spent_usd - self._budget.usd) if self._budget.usd else 0.0,
            duration_ms=duration_ms,
            stopped=self._stopped,
        )
