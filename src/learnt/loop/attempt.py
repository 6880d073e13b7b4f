"""One attempt at a claimed task: choose the model, brief the agent, let it work, verify, and debrief.

Every step is told to the one who watches and to the attempt's log, without secrets. The raw output of a client stays
on the disk only while the attempt runs; of a transcript that lies there, a copy without secrets is kept.
"""

from __future__ import annotations

import os
import shutil
import time

from learnt import clients
from learnt.clients.shapes import plain_text
from learnt.debrief.sigils import read_sigils
from learnt.errors import LearntError, WrongRequest
from learnt.loop import agents, folders, verify
from learnt.loop.prompt import OVERRIDES, Earlier, compose, read_spec
from learnt.model import Claim, Debrief, Failure, Task, Value
from learnt.text.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from learnt.clients import Answer
    from learnt.loop.agents import Run, Stop
    from learnt.memory import Memory
    from learnt.strategy.choose_model import Choice

LOGS = "logs"
_RUNNING = "running"
_TRANSCRIPTS = "transcripts"
_WORKTREES = "worktrees"
_LONGEST_CHAIN = 5
_LONGEST_LOG = 5_000_000


class CannotWork(LearntError):
    """No task can be worked on: the agent does not start."""


class Ended(Value):
    """What became of an attempt."""

    task: Task
    attempt: str
    result: str
    model: str = ""
    model_reason: str = ""
    cost_usd: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    duration_ms: int = 0
    debrief: Debrief | None = None
    reason: str = ""


class Log:
    """What happened in an attempt, line by line, for people."""

    def __init__(self, store_folder: str, attempt: str) -> None:
        self.path = os.path.join(store_folder, LOGS, f"{attempt}.log")
        self._room = _LONGEST_LOG

    def write(self, text: str) -> None:
        """Keep a line; what cannot be kept is lost, not the attempt."""
        line = f"{time.strftime('%H:%M:%S')} {redact(text)[0]}\n"
        self._room -= len(line)
        if self._room < 0:
            return
        try:
            _append(self.path, line)
        except OSError:
            return


class Work:
    """Makes one attempt at one task."""

    def __init__(
        self,
        memory: Memory,
        claim: Claim,
        *,
        root: str,
        environ: Mapping[str, str],
        stop: Stop,
        tell: Callable[[str], None],
    ) -> None:
        self._memory = memory
        self._settings = memory.settings
        self._root = root
        self._store = memory.store.place.folder
        self._environ = environ
        self._stop = stop
        self._tell = tell
        self.claim = claim
        self.task = memory.get_task(claim.task)
        self._scratch = os.path.join(self._store, _RUNNING, claim.attempt)
        self._log = Log(self._store, claim.attempt)

    def run(self) -> Ended:
        """Make the attempt; whatever happens, the claim is settled and nothing is left running."""
        began = time.monotonic()
        try:
            for name in (_RUNNING, _WORKTREES):
                os.makedirs(os.path.join(self._store, name), mode=0o700, exist_ok=True)
            return self._attempt(began)
        except CannotWork:
            self._memory.end_claim(self.claim)
            raise
        except (LearntError, OSError) as error:
            # Something in the way of this task alone: told like any other failure, so that the ladder has an end.
            reason = error.message if isinstance(error, LearntError) else str(error)
            failure = Failure(attempt=self.claim.attempt, task=self.task.id, reason=reason, category="unknown")
            return self._settled("", "failed", failure, began=began)
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _attempt(self, began: float) -> Ended:
        choice = self._memory.choose_model(self.task)
        needed = self._memory.needed_by(self.task.id)
        worktrees = os.path.join(self._store, _WORKTREES)
        folder = folders.prepare(self._root, worktrees, self.task, needed, isolation=self._settings.work_isolation)
        self._keep(model=choice.model, model_reason=choice.reason, folder=folder.path)
        self._say(f"model: {choice.model or 'the default of the client'} ({choice.reason})")
        call = clients.call(self._settings.work_agent, self._request(folder, choice))
        run = self._run(call, folder, "agent")
        if run.ending == "not started":
            self._memory.end_claim(self.claim)
            raise CannotWork(
                f"the agent `{self._settings.work_agent}` does not start: {run.error}",
                hint="install it, or set `agent` under [work] in learnt.toml; `learnt config work.agent` tells more",
            )
        answer = self._with_transcript(clients.read(run.output))
        if answer.denied:
            self._say(f"not allowed: {'; '.join(answer.denied)}; `arguments` under [work] can allow more")
        if run.ending == "interrupted":
            self._memory.end_claim(self.claim)
            self._log.write("interrupted")
            return self._ended("interrupted", choice, answer, began=began)
        result, failure = self._judged(run, answer, folder)
        if result == "done":
            self._commit(folder)  # first: whoever waits for this task starts from its branch
        ended = self._settled(answer.said or answer.text, result, failure, began=began, choice=choice, answer=answer)
        if ended.result == "done":
            folders.remove(self._root, folder)
        return ended

    def _request(self, folder: folders.Folder, choice: Choice) -> clients.Request:
        return clients.Request(
            prompt=prompt_of(self._memory, self.task, root=self._root, choice=choice, unmerged=folder.unmerged),
            folder=folder.path,
            scratch=self._scratch,
            model=choice.model,
            arguments=self._settings.work_arguments,
            command=self._settings.work_command if self._settings.work_agent == "command" else "",
        )

    def _run(self, call: clients.Call, folder: folders.Folder, name: str) -> Run:
        signs = {"LEARNT_TASK": self.task.id, "LEARNT_ATTEMPT": self.claim.attempt}
        return agents.run(
            call,
            folder=folder.path,
            environ={**self._environ, **signs},
            time_limit_s=self._settings.work_time_limit_s,
            output_limit_bytes=self._settings.work_output_limit_mb * 1_000_000,
            log_folder=os.path.join(self._scratch, name),
            on_progress=self._say,
            on_started=lambda pid, started: self._keep(agent_pid=pid, agent_started=started),
            stop=self._stop,
        )

    def _judged(self, run: Run, answer: Answer, folder: folders.Folder) -> tuple[str, Failure | None]:
        """Return how the attempt ended, and what was wrong with it if the agent itself did not say."""
        if run.ending != "exited":
            limit = self._settings.work_time_limit_s
            said = f"{limit} s" if run.ending == "time limit" else f"{self._settings.work_output_limit_mb} MB of output"
            category = "timeout" if run.ending == "time limit" else "unknown"
            return "failed", self._failure(f"the agent was stopped after {said}", category=category, error=answer.error)
        if run.exit_code or answer.error:
            how = f"the agent ended with exit code {run.exit_code}" if run.exit_code else "the agent reported an error"
            return "failed", self._failure(how, category=verify.classify(answer.error), error=answer.error)
        said = read_sigils(answer.said or answer.text).result
        if not said and answer.denied:
            reason = f"the agent was not allowed to use: {'; '.join(answer.denied)}"
            return "incomplete", self._failure(reason, category="unknown", error="")
        if said != "done":
            return said or "incomplete", None
        command = self.task.verify or self._settings.work_verify
        if not command:
            return "done", None
        self._say(f"verifying: {command}")
        verdict = verify.verdict_of(command, self._run(verify.call_of(command), folder, "verify"))
        if verdict.passed:
            return "done", None
        if verdict.ending.startswith("interrupted"):
            return "interrupted", None
        error = verdict.output or (f"{folder.path} is gone" if not os.path.isdir(folder.path) else "")
        return "failed", self._failure(verdict.reason, category=verdict.category, error=error)

    def _with_transcript(self, answer: Answer) -> Answer:
        """Keep a transcript that would go with the scratch folder, without secrets."""
        if not answer.transcript.startswith(self._scratch + os.sep):
            return answer
        ending = os.path.splitext(answer.transcript)[1]
        kept = os.path.join(self._store, _TRANSCRIPTS, self.claim.attempt + ending)
        try:
            _append(kept, redact(plain_text(answer.transcript))[0])
        except OSError:
            kept = ""  # what cannot be kept is lost, not the attempt
        return answer.replace(transcript=kept)

    def _failure(self, reason: str, *, category: str, error: str) -> Failure:
        return Failure(
            attempt=self.claim.attempt, task=self.task.id, reason=reason, category=category, error=error[-2_000:]
        )

    def _settled(
        self,
        said: str,
        result: str,
        failure: Failure | None,
        *,
        began: float,
        choice: Choice | None = None,
        answer: Answer | None = None,
    ) -> Ended:
        """Debrief the agent, which also gives the task back; return what became of it."""
        answer = answer or clients.Answer()
        if result == "interrupted":
            self._memory.end_claim(self.claim)
            return self._ended("interrupted", choice, answer, began=began)
        ended = self._ended(result, choice, answer, began=began, reason=failure.reason if failure else "")
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
        told = debrief.failure.reason if debrief.failure else ""
        self._log.write(f"{debrief.result}{f': {told}' if told else ''}")
        return ended.replace(
            result=debrief.result or result, debrief=debrief, task=self._memory.get_task(self.task.id), reason=told
        )

    def _ended(self, result: str, choice: Choice | None, answer: Answer, *, began: float, reason: str = "") -> Ended:
        chosen = choice.model if choice else ""
        return Ended(
            task=self.task,
            attempt=self.claim.attempt,
            result=result,
            model=chosen or answer.model,
            model_reason=choice.reason if choice else "",
            cost_usd=self._cost(chosen, answer),
            tokens_in=answer.tokens_in,
            tokens_out=answer.tokens_out,
            duration_ms=round((time.monotonic() - began) * 1000),
            reason=reason,
        )

    def _cost(self, chosen: str, answer: Answer) -> float | None:
        """Return what the client says that it cost, or what its tokens cost by the configured prices."""
        if answer.cost_usd is not None:
            return answer.cost_usd
        model = next((model for model in self._settings.models if model.name == (chosen or answer.model)), None)
        if model is None or not (model.input_price or model.output_price):
            return None
        tokens = (answer.tokens_in or 0) * model.input_price + (answer.tokens_out or 0) * model.output_price
        return tokens / 1_000_000

    def _commit(self, folder: folders.Folder) -> None:
        """Put what was done in a worktree onto its branch."""
        if folder.branch:
            folders.commit(folder, f"{self.task.title}\n\nlearnt-task: {self.task.id}")
            self._memory.note_branch(self.task.id, folder.branch)

    def _keep(self, **known: str | int) -> None:
        kept = self._memory.keep_claim(self.claim.replace(**known))
        if kept is None:
            self._stop.now()
        else:
            self.claim = kept

    def _say(self, text: str) -> None:
        self._log.write(text)
        self._tell(redact(text)[0])


def _append(path: str, text: str) -> None:
    """Write to the end of a file that is nobody else's to read."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "a", encoding="utf-8") as file:
        file.write(text)


def prompt_of(
    memory: Memory, task: Task, *, root: str, choice: Choice, unmerged: tuple[str, ...] = (), keep: bool = True
) -> str:
    """Return what an agent is sent for the next attempt at a task; `keep=False` leaves no record of it."""
    brief = memory.brief(
        f"{task.title}\n{task.text}".strip(),
        agent=task.agent or None,
        task=task.id,
        model=choice.model,
        model_reason=choice.reason,
        keep=keep,
    )
    done = [needed for needed in memory.needed_by(task.id) if needed.status == "done"]
    return compose(
        task,
        brief=brief.text,
        spec=read_spec(root, task.spec),
        prerequisites=[_earlier(memory, needed) for needed in done],
        chain=[_earlier(memory, earlier) for earlier in _chain(memory, task)],
        answers=[one for one in memory.escalations(status=None, subject=task.id) if one.status == "resolved"],
        unmerged=unmerged,
        overrides=os.path.join(memory.store.place.folder, OVERRIDES),
    )


def _chain(memory: Memory, task: Task) -> list[Task]:
    """Return what a task builds on, the farthest first."""
    found: list[Task] = []
    while task.based_on and len(found) < _LONGEST_CHAIN and task.based_on not in {one.id for one in found}:
        try:
            task = memory.get_task(task.based_on)
        except WrongRequest:
            break
        found.append(task)
    return found[::-1]


def _earlier(memory: Memory, task: Task) -> Earlier:
    latest = next(iter(memory.attempts(task.id)), None)
    return Earlier(task=task, summary=latest.summary if latest else "")
