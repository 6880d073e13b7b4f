"""Learnings that accumulate: mined from what agents did, kept in a file that people and the program share, reviewed.

Here is the way in, and every process loads it; what is done stands in `mining`, `filing`, `looking_back`, `background`,
`curating`, `reporting` and `watching`, which are loaded when they are needed.
"""

from __future__ import annotations

import os

from learnt.errors import LearntError, WrongRequest
from learnt.flow.context import check_rows
from learnt.flow.debriefs import Debriefing
from learnt.flow.learnings import ByHand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from learnt.flow.activity import Attempted, Watched
    from learnt.flow.background import State
    from learnt.flow.history import Past
    from learnt.flow.learnings_file import Update
    from learnt.flow.mining import Mined
    from learnt.flow.review import Decided, ReviewItem
    from learnt.flow.statistics import Stats, Usage
    from learnt.flow.worker import CaughtUp
    from learnt.model import Debrief, Learning, Task
    from learnt.store.activity import Today
    from learnt.store.calls import ModelCall
    from learnt.store.mined import Found
    from learnt.store.regenerations import Regeneration
    from learnt.system.git import Commit

_NO_HURRY_S = 24 * 3600.0


class Accumulating(Debriefing, ByHand):
    """What is learnt over time, shown in a file, reviewed and counted."""

    def update(
        self, *, window: int | None = None, dry_run: bool = False, cause: str = "person", limit_s: float = _NO_HURRY_S
    ) -> Update:
        """Mine what finished tasks left, take over what people did to the learnings files, and write them anew.

        `window`: how many recent tasks count. `dry_run`: only look; a model is then not asked. When a model fails,
        the file and what is known stay as they are, the reason is kept, and what it said of other tasks before as well.
        """
        from learnt.flow.learnings_file import Filing

        self._refuse_without_project()
        return Filing(self).update(window=window, dry_run=dry_run, cause=cause, limit_s=limit_s)

    def take_over(self, *, agent: str = "") -> Update | None:
        """Take over what was done to the learnings files since they were written; None when nothing was.

        `agent`: who did it, where it was no person. What an agent adds is on trial; what it changes or removes is put
        back.
        """
        from learnt.flow import disk

        if not self.root or not any(os.path.lexists(path) for path in disk.paths(self.root)):
            return None
        from learnt.flow.learnings_file import Filing

        return Filing(self).take_over(agent=agent)

    def clear(self) -> list[str]:
        """Delete the learnings files, after taking over what people did to them; return which there were.

        The learnings stay: the next update writes them again.
        """
        from learnt.flow.learnings_file import Filing

        self._refuse_without_project()
        return Filing(self).clear()

    def learn(self, title: str, *, task: str = "", **fields: Any) -> tuple[Learning, bool]:
        """Keep what an agent found out while it works, and say whether it is new; the fields are those of `add`.

        What is known already recurs instead: once for each task but the one that taught it first.
        """
        from learnt.flow.debriefs import recurred
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
        from learnt.flow.history import LookingBack

        self._refuse_without_project()
        return LookingBack(self).past(since_ms=since_ms)

    def debrief_transcript(
        self, path: str, *, task: str = "", result: str | None = None, agent: str = "", model: str = ""
    ) -> tuple[Debrief, Mined]:
        """Debrief the agent's own words in a transcript, and learn from what it did; each transcript is read once."""
        from learnt.flow.history import LookingBack

        return LookingBack(self).debrief_transcript(path, task=task, result=result, agent=agent, model=model)

    def catch_up(self, *, limit_s: float = _NO_HURRY_S) -> CaughtUp:
        """Take up what waits, read what was said in conversations since, and make the learnings files when due.

        Beside a server, the mirror for the hooks is refreshed, too. One does it at a time.
        """
        from learnt.flow.worker import CatchingUp

        return CatchingUp(self).catch_up(limit_s=limit_s)

    def learn_from_commit(self, commit: Commit) -> Mined:
        """Learn from what a commit says."""
        from learnt.flow.history import LookingBack

        return LookingBack(self).learn_from_commit(commit)

    def evidence(self, id: str) -> list[Found]:
        """Return what was seen that speaks for a learning, the oldest first."""
        from learnt.store.mined import evidence_for

        return evidence_for(self.store.database, id)

    def learnings_for_prompt(self, task: Task) -> tuple[str, tuple[str, ...]]:
        """Return the text of the learnings files that the prompt of a task carries, and the ids of what it gives."""
        if self.settings.learnings_injection_strategy == "none" or task.skip_learnings or not self.root:
            return "", ()
        from learnt.flow.learnings_file import Filing

        return Filing(self).for_prompt(task)

    def learnings_path(self, goal: str = "") -> str:
        """Return where the file of the project, or of a goal, is: each worktree has its own."""
        from learnt.flow import disk

        return disk.path_of(self.root, goal)

    def learnings_file(self, goal: str = "") -> str | None:
        """Return the text of a learnings file; None when there is none."""
        from learnt.flow import disk

        self._refuse_without_project()
        content = disk.read(disk.path_of(self.root, goal), self.root)
        return None if content is None else content.decode("utf-8")

    def files_state(self) -> State:
        """Return how the learnings files stand: made when, how many tasks ago, or being made now."""
        from learnt.flow import background

        return background.state(self.store, self.settings)

    def regenerations(self, *, limit: int = 50) -> list[Regeneration]:
        """Return the latest makings of learnings files, the newest first."""
        from learnt.flow import background

        return background.latest(self.store, limit=limit)

    def is_updating(self) -> bool:
        """Say whether somebody makes the learnings files at this moment.

        Whoever asks holds the lock for an instant: ask only when somebody says that they are at it.
        """
        from learnt.flow import background

        return background.is_updating(self.store)

    def update_when_due(self) -> None:
        """Let the files be made anew in a process of its own, if enough tasks are done and nobody is at it."""
        from learnt.flow import background

        if not self.root or os.environ.get(background.INTERNAL):
            return
        try:
            background.start_when_due(self.store, self.settings, root=self.root, now=self._clock())
        except (LearntError, OSError):
            return  # whoever finished a task must not fail for it; the next one tries again

    def review_items(self, *, limit: int = 100, kinds: Sequence[str] = ()) -> list[ReviewItem]:
        """Return what waits for a person, in the order in which it is best looked at; `kinds`: only these."""
        from learnt.flow.review import Curating

        return Curating(self).items(limit=limit, kinds=kinds)

    def review_item(self, id: str) -> ReviewItem:
        """Return one thing that waits."""
        from learnt.flow.review import Curating

        return Curating(self).item(id)

    def review_counts(self) -> dict[str, int]:
        """Return how much waits of each kind; of new ones, at most `MOST_COUNTED` are counted."""
        from learnt.flow.review import Curating

        return Curating(self).counts()

    def decide(
        self,
        item_id: str,
        decision: str,
        *,
        changes: Mapping[str, Any] | None = None,
        version: int | None = None,
    ) -> Decided:
        """Accept or reject something that waits, or accept it with other words: `edit`, with the changed fields.

        `version` is that of the learning which the person saw: if its text was changed since, they are told instead.
        """
        from learnt.flow.review import Curating

        return Curating(self).decide(item_id, decision, changes=changes, version=version)

    def take_back(self, decided: Decided) -> ReviewItem:
        """Undo a decision; return what waits again."""
        from learnt.flow.review import Curating

        return Curating(self).take_back(decided)

    def tell_opinion(self, answer: str) -> None:
        """Keep what a person says to whether the learnings helped."""
        from learnt.flow.review import Curating

        Curating(self).tell_opinion(answer)

    def were_given_learnings(self, tasks: Sequence[str], *, since: int) -> bool:
        """Say whether a brief of one of these tasks carried a learning since a moment."""
        from learnt.store.happened import any_injected

        return any_injected(self.store.database, tasks, since=since)

    def usage(self) -> Usage:
        """Return what model calls cost, by purpose and model."""
        from learnt.flow.statistics import Reporting

        return Reporting(self.store, settings=self.settings, clock=self._clock).usage()

    def model_calls(self, *, limit: int) -> list[ModelCall]:
        """Return the latest calls to models, the newest first."""
        from learnt.store import calls

        check_rows(limit=limit)
        return calls.latest(self.store.database, limit=limit)

    def stats(self, *, limit: int = 5, weeks: int = 12) -> Stats:
        """Return what the learnings did: the leading ones, and how prompts, errors and attempts went over time."""
        from learnt.flow.statistics import Reporting

        return Reporting(self.store, settings=self.settings, clock=self._clock).stats(limit=limit, weeks=weeks)

    def activity(self, *, limit: int = 20, what: str = "", client: str = "", agent: str = "") -> Watched:
        """Return what was done last inside clients, the newest first, and what it comes to.

        `what`: only `brief`, `warning` or `debrief`; `client` and `agent`: only theirs.
        """
        from learnt.flow import activity

        return activity.watch(self, limit=limit, what=what, client=client, agent=agent)

    def attempted(self, attempt: str) -> Attempted:
        """Return what came of an attempt: its result, what it taught, which learnings it marked, and its report."""
        from learnt.flow import activity

        return activity.attempted(self, attempt)

    def latest_brief(self, *, task: str = "") -> str:
        """Return the id of the latest brief, of a task if one is named; raise NotFound, with the reason, for none."""
        from learnt.flow import activity

        return activity.latest_brief(self, task)

    def today(self) -> Today:
        """Return how much was done today, and how much waits for a person."""
        from learnt.flow import activity

        return activity.today(self)

    def prevented(self, *, since: int | None = None) -> dict[str, int]:
        """Return how many errors were not repeated after a warning, by the agent that was warned."""
        from learnt.store.missteps import prevented

        return prevented(self.store.database, since)

    def _refuse_without_project(self) -> None:
        if not self.root:
            raise WrongRequest("learnings.md belongs to a project", hint="go to one; `learnt init` makes a folder one")
