"""Learnings that accumulate: mined from what agents did, and kept in a file that people and the program share.

Here is the way in; what is done stands in `mining`, `filing` and `looking_back`, which are loaded when they are needed.
"""

from __future__ import annotations

import os

from learnt.errors import LearntError, WrongRequest
from learnt.memory.by_hand import ByHand
from learnt.memory.debriefing import Debriefing
from learnt.model import Value
from learnt.project import STORE_FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from learnt.git import Commit
    from learnt.memory.filing import Update
    from learnt.memory.looking_back import Past
    from learnt.memory.mining import Mined
    from learnt.model import Debrief, Learning, Task
    from learnt.store.mined import Found
    from learnt.store.regenerations import Regeneration

FILE = "learnings.md"
FOLDER_OF_GOALS = "learnings"
LOCK = "update.lock"
KILLED = "it was killed"
_LOG = "update.log"
_INTERNAL = "LEARNT_INTERNAL"
_NO_HURRY_S = 24 * 3600.0


class State(Value):
    """How the learnings files stand."""

    running_since: int | None
    tasks_since: int
    every: int
    """After how many tasks they are made anew by themselves; 0 for never."""
    last: Regeneration | None

    @property
    def is_due(self) -> bool:
        """Whether enough tasks were done since."""
        return 0 < self.every <= self.tasks_since


class Accumulating(Debriefing, ByHand):
    """What is learnt over time, and shown in a file."""

    def update(
        self, *, window: int | None = None, dry_run: bool = False, cause: str = "person", limit_s: float = _NO_HURRY_S
    ) -> Update:
        """Mine what finished tasks left, take over what people did to the learnings files, and write them anew.

        `window`: how many recent tasks count. `dry_run`: only look; a model is then not asked. When a model fails,
        neither file nor learnings change, and the reason is kept.
        """
        from learnt.memory.filing import Filing

        self._refuse_without_project()
        return Filing(self).update(window=window, dry_run=dry_run, cause=cause, limit_s=limit_s)

    def clear(self) -> list[str]:
        """Delete the learnings files, after taking over what people did to them; return which there were.

        The learnings stay: the next update writes them again.
        """
        from learnt.memory.filing import Filing

        self._refuse_without_project()
        return Filing(self).clear()

    def learn(self, title: str, *, task: str = "", **fields: Any) -> tuple[Learning, bool]:
        """Keep what an agent found out while it works, and say whether it is new; the fields are those of `add`.

        What is known already recurs instead: once for each task but the one that taught it first.
        """
        from learnt.memory.debriefing import recurred
        from learnt.store import learnings, tasks

        now, database = self._clock(), self.store.database
        known_task = tasks.find(database, task) if task else None
        if known_task is not None and known_task.skip_learnings:
            raise WrongRequest(f"`{task}` is a task that leaves no learnings", hint="say it to a person instead")
        record = {"title": title, "task": task, "goal": known_task.goal if known_task else "", "origin": "agent"}
        learning = self._new_learning({**record, **fields}, created_at=now)
        with self.store.transaction():
            known = learnings.same_as(database, learning.observation or learning.title)
            if known is None:
                learnings.add(database, learning, self._change("add", at=now))
                return learning, True
            change = self._change("recur", at=now, reason=task)
            return learnings.change(database, known.id, recurred(database, task, now), change)[1], False

    def past(self, *, since_ms: int) -> Past:
        """Return the transcripts and commits since a moment that nobody has learnt from, and what that would cost."""
        from learnt.memory.looking_back import LookingBack

        self._refuse_without_project()
        return LookingBack(self).past(since_ms=since_ms)

    def debrief_transcript(
        self, path: str, *, task: str = "", result: str | None = None, agent: str = "", model: str = ""
    ) -> tuple[Debrief, Mined]:
        """Debrief the agent's own words in a transcript, and learn from what it did; each transcript is read once."""
        from learnt.memory.looking_back import LookingBack

        return LookingBack(self).debrief_transcript(path, task=task, result=result, agent=agent, model=model)

    def learn_from_commit(self, commit: Commit) -> Mined:
        """Learn from what a commit says."""
        from learnt.memory.looking_back import LookingBack

        return LookingBack(self).learn_from_commit(commit)

    def evidence(self, id: str) -> list[Found]:
        """Return what was seen that speaks for a learning, the oldest first."""
        from learnt.store.mined import evidence_for

        return evidence_for(self.store.database, id)

    def learnings_for_prompt(self, task: Task) -> tuple[str, tuple[str, ...]]:
        """Return the text of the learnings files that the prompt of a task carries, and the ids of what is in it."""
        if self.settings.learnings_injection_strategy == "none" or task.skip_learnings or not self.root:
            return "", ()
        from learnt.memory.filing import Filing

        return Filing(self).for_prompt(task)

    def learnings_path(self, goal: str = "") -> str:
        """Return where the file of the project, or of a goal, is: each worktree has its own."""
        folder = os.path.join(self.root, STORE_FOLDER)
        return os.path.join(folder, FOLDER_OF_GOALS, f"{goal}.md") if goal else os.path.join(folder, FILE)

    def learnings_file(self, goal: str = "") -> str | None:
        """Return the text of a learnings file; None when there is none."""
        self._refuse_without_project()
        content = read_file(self.learnings_path(goal))
        return None if content is None else content.decode("utf-8", "replace")

    def files_state(self) -> State:
        """Return how the learnings files stand: made when, how many tasks ago, or being made now."""
        from learnt.store import counters, regenerations

        latest = regenerations.latest(self.store.database, limit=1)
        last = self._as_it_is(latest[0]) if latest else None
        return State(
            running_since=last.started_at if last and last.result == "running" else None,
            tasks_since=counters.value(self.store.database, counters.TASKS_SINCE_UPDATE),
            every=self.settings.learnings_regenerate_every if self.settings.learnings_enabled else 0,
            last=last,
        )

    def regenerations(self, *, limit: int = 50) -> list[Regeneration]:
        """Return the latest makings of learnings files, the newest first."""
        from learnt.store import regenerations

        return [self._as_it_is(one) for one in regenerations.latest(self.store.database, limit=limit)]

    def _as_it_is(self, one: Regeneration) -> Regeneration:
        """Return a making as failed that says it runs while nobody is at it."""
        is_left = one.result == "running" and not self.is_updating()
        return one.replace(result="failed", reason=KILLED) if is_left else one

    def is_updating(self) -> bool:
        """Say whether somebody makes the learnings files at this moment.

        Whoever asks holds the lock for an instant: ask only when somebody says that they are at it.
        """
        from learnt.store.spool import Locked

        try:
            with Locked(os.path.join(self.store.place.folder, LOCK), wait=False) as alone:
                return not alone
        except OSError:
            return False

    def update_when_due(self) -> None:
        """Let the files be made anew in a process of its own, if enough tasks are done and nobody is at it."""
        if not self.root or os.environ.get(_INTERNAL):
            return
        try:
            state = self.files_state()
            if state.is_due and state.running_since is None:
                self._start_worker()
        except (LearntError, OSError):
            return  # whoever finished a task must not fail for it; the next one tries again

    def _start_worker(self) -> None:
        """Start a process that makes the files and outlives us; nobody waits for it."""
        import subprocess
        import sys

        log = os.open(os.path.join(self.store.place.folder, _LOG), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "learnt", "update"],
                cwd=self.root,
                env={**os.environ, _INTERNAL: "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=sys.platform != "win32",
            )
        finally:
            os.close(log)
        process.returncode = 0  # it is on its own: nobody is to be warned that it still runs

    def _refuse_without_project(self) -> None:
        if not self.root:
            raise WrongRequest("learnings.md belongs to a project", hint="go to one; `learnt init` makes a folder one")


def read_file(path: str) -> bytes | None:
    """Return what is in a file; None when there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LearntError(f"cannot read {path}: {error.strerror}", hint="check who may read the file") from None
