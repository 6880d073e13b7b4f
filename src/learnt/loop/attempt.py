"""One attempt at a claimed task: choose the model, brief the agent, run it, verify its work, and debrief it.

Every step is reported to the caller and to the attempt's log, without secrets. A client's raw output is on disk only
while the attempt is running; if it includes a transcript, a copy without secrets is kept.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from learnt.clients.kit import run as programs
from learnt.clients.kit.run import RunReport, plain_text, shorten
from learnt.debrief.sigils import read_sigils
from learnt.errors import LearntError, NotTrusted, TryAgain
from learnt.loop import agents, folders, quota, verify
from learnt.loop.agents import AgentRun
from learnt.loop.baseline import FOLDER as BASELINES
from learnt.loop.baseline import Baseline, measure
from learnt.loop.prompt import build_prompt, find_chain
from learnt.memory import Memory
from learnt.model import Claim, Debrief, Failure, Task, Value
from learnt.settings import Model, Settings
from learnt.strategy.choose_model import ModelChoice
from learnt.system.family import ATTEMPT_VARIABLE
from learnt.system.files import append_private, make_folders, remove_tree
from learnt.system.run import EXITED, INTERRUPTED, NOT_STARTED, TIME_LIMIT, Stop
from learnt.text.clean import fold
from learnt.text.redact import redact
from learnt.text.titles import AGENT_ENDED_PREFIX, REFUTED_PREFIX

LOGS = "logs"
RUNNING = "running"
_TRANSCRIPTS = "transcripts"
WORKTREES = "worktrees"
_MAX_LOGGED_LINES = 20
_MAX_COMPLAINT_CHARS = 300
_SPOOL_POLL_S = 0.2
# The price of a cached input token, as a share of the price of an uncached one.
_CACHED_SHARE = 0.1
_MAX_LOG_CHARS = 5_000_000
_NO_REPORT = RunReport()


class CannotWork(LearntError):
    """No task can be worked on, for example because the agent cannot be started."""


class AttemptResult(Value):
    """How an attempt ended, and what it cost."""

    task: Task
    attempt: str
    result: str
    model: str = ""
    model_reason: str = ""
    cost_usd: float | None = None
    assumed_usd: float = 0.0
    """The cost or, if it is unknown, the model's configured price."""
    obstacle: str = ""
    """Set if no task can be worked on until a person has decided: why."""
    pause_s: float | None = None
    """Set if the client's quota is exhausted, so that this was no attempt: how long it says so, or 0 if it does not."""
    tokens_in: int | None = None
    tokens_out: int | None = None
    duration_ms: int = 0
    debrief: Debrief | None = None
    """None if the agent was not started, so that this was no attempt."""
    reason: str = ""


class TaskAttempt:
    """One attempt at one claimed task."""

    def __init__(self, memory: Memory, claim: Claim, *, report: Callable[[str], None]) -> None:
        self._memory = memory
        self._settings = memory.settings
        self._root = memory.root
        self._store_folder = memory.folder
        self.stop = Stop()
        self._report = report
        self.claim = claim
        self.task = memory.tasks.get(claim.task)
        self._worktrees = os.path.join(self._store_folder, WORKTREES)
        self._scratch = os.path.join(self._store_folder, RUNNING, claim.attempt)
        self._remaining_log_chars = _MAX_LOG_CHARS
        self._began = time.monotonic()
        self._obstacle = ""
        self._choice = ModelChoice(model=claim.model, reason=claim.model_reason)

    def run(self) -> AttemptResult:
        """Make the attempt. However it ends, settle the claim and leave no process running."""
        try:
            for name in (RUNNING, WORKTREES):
                make_folders(os.path.join(self._store_folder, name))
            begun = self._begin()
            return self._work(*begun) if begun else self._result("interrupted")
        except CannotWork:
            self._memory.work.give_back(self.claim)
            raise
        except TryAgain:
            self._memory.work.release_interrupted(self.claim)
            raise
        except (LearntError, OSError) as error:
            # Only this task is affected. The attempt is recorded as failed, so that the task is not retried forever.
            failure = self._failure(str(error), category="unknown", error="")
            return self._settle("", "failed", failure)
        finally:
            remove_tree(self._scratch)

    def _begin(self) -> tuple[folders.Folder, programs.Call] | None:
        """Return the folder and the call; None if we were stopped, or if a person must check the task first."""
        try:
            if not self._choice.reason:
                self._choice = self._memory.work.choose_model(self.task)
            folder = self._prepare_folder()
            kept = folders.KeptWork()
            if folder.branch and not folder.is_new:
                kept = folders.find_kept(self._root, self._worktrees, self.task)
            baseline = self._measure_baseline(folder, kept)
            if self.stop.is_requested:
                self._memory.work.release_interrupted(self.claim)
                return None
            if baseline is not None and baseline.obstacle and not self._can_go_on(baseline, folder):
                self._ask_about(baseline)
                return None
            model = self._choice.model or "the client's default"
            self._say(f"model: {model} ({self._choice.reason})")
            stuck = self._memory.tasks.stuck(self.task)
            if stuck:
                self._say(f"stuck: {stuck.reason}; the agent is warned, and if it fails, a person is asked")
            unmerged = folder.unmerged
            prompt = build_prompt(
                self._memory, self.task, self._choice, unmerged=unmerged, baseline=baseline, kept=kept
            )
            return folder, _build_call(self._settings, prompt, self._choice, folder=folder.path, scratch=self._scratch)
        except TryAgain:
            raise
        except (LearntError, OSError) as error:
            if self.stop.is_requested:
                self._memory.work.release_interrupted(self.claim)
                return None
            self._say(self._memory.work.escalate(self.claim, str(error)).question)
            self.task = self._memory.tasks.get(self.task.id)
            return None

    def _prepare_folder(self) -> folders.Folder:
        earlier = [*self._memory.tasks.prerequisites_of(self.task.id), *find_chain(self._memory, self.task)[-1:]]
        files = [self._memory.file.path(goal) for goal in dict.fromkeys(("", self.task.goal))]
        isolation = self._settings.work_isolation
        folder = folders.prepare(self._root, self._worktrees, self.task, earlier, isolation=isolation, files=files)
        self._update_claim(folder=folder.path)
        return folder

    def _measure_baseline(self, folder: folders.Folder, kept: folders.KeptWork) -> Baseline | None:
        """Return how the verification ends before the task's first attempt; None if there is none, or work is here."""
        command = self.task.verify or self._settings.work_verify
        attempts = self._memory.tasks.attempts(self.task.id)
        has_begun = kept.commits or kept.changes or any(attempt.result != "interrupted" for attempt in attempts)
        if not command or has_begun:
            return None
        tree, commit = folders.identify(folder)
        in_worktree = bool(folder.branch and tree)
        baseline = measure(
            os.path.join(self._store_folder, BASELINES),
            command,
            place=f"commit {commit[:10]}" if in_worktree else "the files as this run found them",
            state=tree if in_worktree else f"{tree} {self.claim.worker}",
            worker=self.claim.worker,
            run=lambda: self._run_baseline(command, folder),
        )
        self._update_claim(agent_pid=0, agent_started="")
        if baseline is not None:
            how = "succeeds already" if baseline.passes else f"fails: {baseline.error}"
            self._say(f"before any work, `{command}` {how}")
        return baseline

    def _run_baseline(self, command: str, folder: folders.Folder) -> AgentRun:
        self._say(f"verifying before any work: {command}")
        run = self._run(verify.build_call(command), folder, "baseline")
        folders.restore(folder)
        return run

    def _can_go_on(self, baseline: Baseline, folder: folders.Folder) -> bool:
        """Return whether the task is attempted in spite of this obstacle: it mends it itself, or a person says so."""
        wanted = f"{self.task.title}\n{self.task.text}\n{self.task.acceptance}"
        if baseline.missing and all(
            verify.is_to_be_written(name, folder=folder.path, wanted=wanted) for name in baseline.missing
        ):
            return True
        answers = self._memory.tasks.escalations(status="resolved")
        return any(
            answer.detail.get("verify") == baseline.command
            and (answer.subject == self.task.id or answer.detail.get("place") == baseline.place)
            for answer in answers
        )

    def _ask_about(self, baseline: Baseline) -> None:
        """Ask a person about a verification that no attempt can make succeed; if all tasks need it, end the run."""
        failing = f"before any work, the verification `{baseline.command}` fails"
        reason = f"{failing} for a reason that no attempt can mend: {baseline.obstacle}"
        is_asked = any(asked.detail.get("verify") == baseline.command for asked in self._memory.tasks.escalations())
        if self.task.verify or not is_asked:
            self._memory.work.escalate(self.claim, reason, verify=baseline.command, place=baseline.place)
        else:
            self._memory.work.give_back(self.claim)
        self._say(reason)
        self._obstacle = "" if self.task.verify else reason
        self.task = self._memory.tasks.get(self.task.id)

    def _work(self, folder: folders.Folder, call: programs.Call) -> AttemptResult:
        self._import_file_edits()
        run = self._run(call, folder, "agent")
        self._import_agents_edits(folder)
        if run.exit.ending == NOT_STARTED:
            error = self._explain_not_started(call.argv[0], run.exit.error, folder)
            if folder.is_new:
                folders.retire(self._root, folder)  # the next one has what is committed until then
            raise error
        answer = self._save_transcript(programs.read_report(run.output))
        if answer.denied:
            self._say(f"the client denied: {'; '.join(answer.denied)}; `arguments` under [work] can allow more")
        if run.exit.survivors:
            self._say(f"processes that could not be ended: {', '.join(map(str, run.exit.survivors))}")
        if _is_out_of_quota(run, answer):
            return self._pause(answer)
        try:
            result, failure = self._judge(run, answer, folder)
            if result == "done" and not self._commit(folder):
                result = "interrupted"
        except TryAgain:
            raise
        except (LearntError, OSError) as error:
            # What the agent said and cost is known, whatever became of its work.
            result, failure = "failed", self._failure(str(error), category="unknown", error="")
        ended = self._settle(answer.said or answer.text, result, failure, answer)
        if ended.result == "done" and ended.debrief is not None and not ended.debrief.spooled:
            return self._remove_folder(folder, ended)
        return ended

    def _explain_not_started(self, program: str, error: str, folder: folders.Folder) -> CannotWork:
        is_missing = os.sep in program and not os.path.lexists(os.path.join(folder.path, program))
        if is_missing and os.path.lexists(os.path.join(self._root, program)):
            return CannotWork(
                f"the agent cannot be started: `{program}` is not committed, so the task's worktree does not have it",
                hint="commit it, or name it with its full path in `command` under [work]",
            )
        return _cannot_start(self._settings, error)

    def _remove_folder(self, folder: folders.Folder, ended: AttemptResult) -> AttemptResult:
        """Remove the worktree of a task that is done, and its branch if nothing was committed."""
        if folders.retire(self._root, folder) != "":
            return ended
        self._memory.work.note_branch(self.task.id, "")
        return ended.replace(task=self._memory.tasks.get(self.task.id))

    def _import_file_edits(self, *, agent: str = "") -> None:
        """Import edits to learnings.md: a person's before the agent works, and the agent's afterwards."""
        try:
            update = self._memory.file.apply_edits(agent=agent)
        except LearntError as error:
            self._write_log(error.message)  # the next update tries again
            return
        for remark in update.remarks if update else ():
            self._say(remark)

    def _import_agents_edits(self, folder: folders.Folder) -> None:
        """Import what an agent wrote into learnings.md, unless git brings it along with its branch."""
        if folder.path == self._root:
            self._import_file_edits(agent=self.task.agent or "agent")
        elif folders.has_copies(folder):
            with suppress(LearntError), Memory.open(folder.path, create=False) as memory:
                memory.file.apply_edits(agent=self.task.agent or "agent")

    def _run(self, call: programs.Call, folder: folders.Folder, name: str) -> AgentRun:
        variables = {"LEARNT_TASK": self.task.id, ATTEMPT_VARIABLE: self.claim.attempt}
        return agents.run(
            call,
            folder=folder.path,
            environ={**os.environ, **folders.environment(folder), **variables},
            time_limit_s=self._settings.work_time_limit_s,
            output_limit_bytes=self._settings.work_output_limit_mb * 1_000_000,
            log_folder=os.path.join(self._scratch, name),
            on_progress=self._say,
            on_started=lambda pid, started: self._update_claim(agent_pid=pid, agent_started=started),
            stop=self.stop,
        )

    def _pause(self, answer: RunReport) -> AttemptResult:
        """End without an attempt, because the client's quota is exhausted; what it cost all the same is recorded."""
        self._say(f"the client's quota or rate limit is exhausted: {shorten(fold(answer.error), _MAX_COMPLAINT_CHARS)}")
        pause_s = quota.find_pause_s(answer.error, now=datetime.now()) or 0.0
        if answer.cost_usd or answer.tokens_out:
            return self._settle(answer.said or answer.text, "interrupted", None, answer).replace(pause_s=pause_s)
        self._memory.work.give_back(self.claim)
        return AttemptResult(task=self.task, attempt=self.claim.attempt, result="interrupted", pause_s=pause_s)

    def _judge(self, run: AgentRun, answer: RunReport, folder: folders.Folder) -> tuple[str, Failure | None]:
        """Return the attempt's result, and the failure unless the agent reported it itself."""
        exit = run.exit
        if exit.ending == INTERRUPTED:
            return "interrupted", None
        # The exit code alone would make different failures look the same.
        ending = f"exit code {exit.exit_code}"
        error = "" if answer.error == ending else answer.error.removeprefix(f"{ending}: ")
        if exit.ending != EXITED:
            timed_out = exit.ending == TIME_LIMIT
            settings, category = self._settings, "timeout" if timed_out else "unknown"
            limit = f"{settings.work_time_limit_s} s" if timed_out else f"{settings.work_output_limit_mb} MB of output"
            reason = f"{AGENT_ENDED_PREFIX}was stopped after {limit}"
            return "failed", self._failure(reason, category=category, error=error)
        if exit.exit_code or answer.error:
            how = f"ended with exit code {exit.exit_code}" if exit.exit_code else "reported an error"
            return "failed", self._failure(AGENT_ENDED_PREFIX + how, category=verify.classify(error), error=error)
        result = read_sigils(answer.said or answer.text).result
        if not result and answer.denied:
            reason = f"{AGENT_ENDED_PREFIX}was not allowed to use: {'; '.join(answer.denied)}"
            return "incomplete", self._failure(reason, category="unknown", error="")
        return self._verify(folder) if result == "done" else (result or "incomplete", None)

    def _verify(self, folder: folders.Folder) -> tuple[str, Failure | None]:
        """Return the result of an attempt whose agent reported that the task is done."""
        if not os.path.isdir(folder.path):
            return "failed", self._failure(f"{folder.path} no longer exists", category="missing-file", error="")
        command = self.task.verify or self._settings.work_verify
        if not command:
            return "done", None
        self._say(f"verifying: {command}")
        run = self._run(verify.build_call(command), folder, "verify")
        if run.exit.ending == INTERRUPTED:
            return "interrupted", None
        if run.exit.ending == EXITED and run.exit.exit_code == 0:
            return "done", None
        reason, category, output = verify.describe_failure(command, run)
        return "failed", self._failure(REFUTED_PREFIX + reason, category=category, error=output)

    def _save_transcript(self, answer: RunReport) -> RunReport:
        """Copy a transcript, without its secrets, out of the scratch folder, which will be deleted."""
        if not answer.transcript.startswith(self._scratch + os.sep):
            return answer
        ending = os.path.splitext(answer.transcript)[1]
        copy = os.path.join(self._store_folder, _TRANSCRIPTS, self.claim.attempt + ending)
        try:
            _append(copy, redact(plain_text(answer.transcript))[0])
        except OSError:
            copy = ""  # the attempt is valid without its transcript
        return answer.replace(transcript=copy)

    def _failure(self, reason: str, *, category: str, error: str) -> Failure:
        """Return a failure, with its first error in the reason; `error` is everything that was printed."""
        for line in [line for line in error.splitlines() if line.strip()][-_MAX_LOGGED_LINES:]:
            self._write_log(f"| {line}")
        first, quoted = verify.read_error(error)
        return Failure(
            attempt=self.claim.attempt,
            task=self.task.id,
            reason=f"{reason}: {first}" if first else reason,
            category=category,
            error=quoted,
        )

    def _settle(self, said: str, result: str, failure: Failure | None, answer: RunReport = _NO_REPORT) -> AttemptResult:
        """Debrief the agent, which also releases the task; return the result."""
        if not self._memory.work.has_store():
            raise CannotWork(
                f"{self._store_folder} no longer exists",
                hint="perhaps the agent deleted it; `learnt init` creates a new one",
            )
        ended = self._result(result, answer)
        debrief = self._memory.debrief(
            self.task.id,
            said,
            result=result,
            model=ended.model,
            model_reason=ended.model_reason,
            duration_ms=ended.duration_ms,
            cost_usd=ended.cost_usd,
            tokens_in=ended.tokens_in,
            tokens_out=ended.tokens_out,
            agent=self.task.agent,
            transcript=answer.transcript,
            failure=failure,
            claim=self.claim,
        )
        for remark in debrief.ignored:
            self._say(f"ignored: {remark}")
        debrief = self._await_spool(debrief)
        self._memory.work.record_cost(self.claim, cost_usd=ended.assumed_usd)
        reason = debrief.failure.reason if debrief.failure else ""
        self._write_log(f"{debrief.result}{f': {reason}' if reason else ''}")
        return ended.replace(
            result=debrief.result or result, debrief=debrief, task=self._memory.tasks.get(self.task.id), reason=reason
        )

    def _await_spool(self, debrief: Debrief) -> Debrief:
        """Wait until the spooled debrief is in the database; the claim is kept until then."""
        while debrief.spooled and not self.stop.is_requested:
            with suppress(LearntError):
                self._memory.work.replay_spool()
                for attempt in self._memory.tasks.attempts(self.task.id):
                    if attempt.id == self.claim.attempt:
                        return debrief.replace(spooled=False, result=attempt.result)
            time.sleep(_SPOOL_POLL_S)
        return debrief

    def _result(self, result: str, answer: RunReport = _NO_REPORT) -> AttemptResult:
        name = self._choice.model or answer.model
        model = next((model for model in self._settings.models if model.name == name), None)
        cost_usd = _cost(model, answer)
        price = self.claim.price_usd if self.claim.agent_pid else 0.0
        return AttemptResult(
            task=self.task,
            attempt=self.claim.attempt,
            result=result,
            model=name,
            model_reason=self._choice.reason,
            cost_usd=cost_usd,
            assumed_usd=price if cost_usd is None else cost_usd,
            tokens_in=answer.tokens_in,
            tokens_out=answer.tokens_out,
            duration_ms=round((time.monotonic() - self._began) * 1000),
            obstacle=self._obstacle,
        )

    def _commit(self, folder: folders.Folder) -> bool:
        """Commit the changes in a worktree to its branch; return False if the claim has been lost.

        The commit is made before the debrief, because dependent tasks start from this branch.
        """
        self._update_claim()
        if self.stop.is_requested:
            return False
        if folder.branch:
            folders.commit(folder, f"{self.task.title}\n\nlearnt-task: {self.task.id}")
            self._memory.work.note_branch(self.task.id, folder.branch)
        return True

    def _update_claim(self, **fields: str | int) -> None:
        claim = self._memory.work.update(self.claim.replace(**fields))
        if claim is None:
            self.stop.now()
        else:
            self.claim = claim

    def _say(self, text: str) -> None:
        self._write_log(text)
        self._report(redact(text)[0])

    def _write_log(self, text: str) -> None:
        """Add a line to the attempt's log, unless that is full."""
        self._remaining_log_chars -= len(text)
        if self._remaining_log_chars >= 0:
            write_log(self._store_folder, self.claim.attempt, text)


def write_log(store_folder: str, attempt: str, text: str) -> None:
    """Add a line to an attempt's log, without secrets; if that fails, the work goes on."""
    with suppress(OSError):
        line = f"{time.strftime('%H:%M:%S')} {redact(text)[0]}\n"
        _append(os.path.join(store_folder, LOGS, f"{attempt}.log"), line)


def _is_out_of_quota(run: AgentRun, answer: RunReport) -> bool:
    """Return whether a client ended because its quota or rate limit is exhausted."""
    has_failed = run.exit.ending == EXITED and bool(run.exit.exit_code or answer.error)
    return has_failed and quota.is_exhausted(answer.error) and not read_sigils(answer.said or answer.text).result


def _cost(model: Model | None, answer: RunReport) -> float | None:
    """Return the reported cost, or the cost of the tokens at the configured prices."""
    if answer.cost_usd is not None or model is None or not (model.input_price or model.output_price):
        return answer.cost_usd
    cached = answer.tokens_cached or 0
    read = (answer.tokens_in or 0) - cached + cached * _CACHED_SHARE
    return (read * model.input_price + (answer.tokens_out or 0) * model.output_price) / 1_000_000


def wip_message(task: Task) -> str:
    """Return the message of a commit that keeps what a task's agents left uncommitted."""
    return f"wip: {task.title}\n\nlearnt-task: {task.id}"


def _append(path: str, text: str) -> None:
    make_folders(os.path.dirname(path))
    append_private(path, text)


def check_agent(memory: Memory) -> None:
    """Raise unless the agent can be started and a model can be chosen; do not start the agent."""
    settings, root = memory.settings, memory.root
    unaccepted = memory.context.configuration.unaccepted("work.")
    if unaccepted:
        # Without the project's own check, say, a task would count as done that is not.
        raise NotTrusted(
            f"the project's learnt.toml sets `{unaccepted[0]}`, which you have not accepted",
            hint="`learnt trust` shows the value and asks; your own learnt.toml may set another one",
        )
    choice = memory.work.choose_model(Task(id=memory.tasks.new_id(), title="-"))
    program = _build_call(settings, "-", choice, folder=root, scratch=root).argv[0]
    if shutil.which(os.path.join(root, program) if os.sep in program else program) is None:
        raise _cannot_start(settings, f"there is no program `{program}`")


def _build_call(settings: Settings, prompt: str, choice: ModelChoice, *, folder: str, scratch: str) -> programs.Call:
    request = programs.RunRequest(
        prompt=prompt,
        folder=folder,
        scratch=scratch,
        model=choice.model,
        arguments=settings.work_arguments,
        command=settings.work_command if settings.work_agent == "command" else "",
    )
    return programs.build_call(settings.work_agent, request)


def _cannot_start(settings: Settings, why: str) -> CannotWork:
    return CannotWork(
        f"the agent `{settings.work_agent}` cannot be started: {why}",
        hint="install it, or set `agent` under [work] in learnt.toml; `learnt config work.agent` shows it",
    )
