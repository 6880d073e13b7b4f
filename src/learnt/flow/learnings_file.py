"""learnings.md: the project's learnings in a file that people and the program share.

An update mines each finished task in its own transaction. Then one more transaction applies people's edits to the
files. After that, the files are replaced atomically, but never if they have changed since they were read. If an update
is killed, the next update finds either the old or the new file and repeats nothing.

A background update runs in a detached process, one at a time, with a time limit.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from itertools import accumulate

from learnt.brief.render import EVIDENCE, MARKS
from learnt.clients.registry import LOADED_FILES
from learnt.errors import LearntError, TryAgain, WrongRequest
from learnt.flow import background, disk
from learnt.flow.context import Context, take_over_edits
from learnt.flow.file_edits import FileEdit, FileOnDisk, apply_edits, has_goal_files, read_files
from learnt.flow.mining import MiningReport, ModelReader, learn_from, read_task, was_asked_recently
from learnt.flow.model_calls import LONG_LIMIT_S, asks_a_model
from learnt.learnings_file.lines import ID_COMMENT
from learnt.learnings_file.read import Bullet, lines_for_prompt, parse
from learnt.learnings_file.write import Delta, Rendering, compare_renderings, diff, render, select
from learnt.model import Task, Value, new_id
from learnt.store import calls, learnings, learnings_in_files, mined, regenerations
from learnt.store.index import Filter
from learnt.store.regenerations import Regeneration
from learnt.system.files import remove_file
from learnt.system.git_lines import find_owners
from learnt.text.redact import redact
from learnt.text.times import MONTH_MS
from learnt.text.words import estimate_tokens
from learnt.weigh.confidence import impact, stage

_TRIES_TO_WRITE = 5
_ALL_TASKS = 1_000_000
# Material that could not be mined is kept for this many tasks, but for at most a month.
_MAX_UNMINED_TASKS = 100
# How long after its time limit an update on another machine is still considered running.
_LEASE_S = 120
_NO_ROOM = "{} contains so much text besides its bullets that there is no room for bullets"


class FileUpdate(Value):
    """A learnings file as it was read and as it should be."""

    goal: str
    path: str
    content: bytes | None
    """The old content; None if there was no file."""
    before: str
    after: str
    delta: Delta = Delta()
    left_out: tuple[str, ...] = ()
    """Learnings for which there was no room."""
    crowded: bool = False
    """Whether the text written by people alone exceeds the limit."""

    @property
    def is_new(self) -> bool:
        """Whether the file has to be written."""
        return self.after != self.before

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        return diff(self.before, self.after, name=os.path.basename(self.path))


class Update(Value):
    """What an update did, or would do."""

    id: str
    files: tuple[FileUpdate, ...] = ()
    mined: tuple[MiningReport, ...] = ()
    taken: tuple[FileEdit, ...] = ()
    """People's edits to the files that were applied to the learnings."""
    waiting: int = 0
    """How many tasks a model would read; this is only set in a preview."""
    cost_usd: float | None = None
    remarks: tuple[str, ...] = ()


class _Preview(Exception):
    """Rolls back the transaction of a preview."""


class LearningsFile:
    """A project's learnings.md, and its goals' learnings files."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._settings = context.settings
        self._root = context.root

    def path(self, goal: str = "") -> str:
        """Return the path of the project's or a goal's file in this worktree."""
        return disk.path_of(self._root, goal)

    def read(self, goal: str = "") -> str | None:
        """Return a learnings file's text; None if the file does not exist."""
        background.refuse_without_project(self._context)
        content = disk.read(disk.path_of(self._root, goal))
        return None if content is None else content.decode("utf-8")

    def state(self) -> background.State:
        """Return the age of the learnings files, and whether an update is due or running."""
        return background.state(self._store, self._settings)

    def regenerations(self, *, limit: int = 50) -> list[Regeneration]:
        """Return the latest updates of learnings files, newest first."""
        return background.latest(self._store, limit=limit)

    def is_updating(self) -> bool:
        """Return whether an update is running.

        The check takes the lock for an instant, so call it only if the state says that an update is running.
        """
        return background.is_updating(self._store)

    def update_when_due(self) -> None:
        """Start an update in the background if enough tasks are done and no update is running."""
        background.update_when_due(self._context)

    def update(
        self, *, window: int | None = None, dry_run: bool = False, cause: str = "person", limit_s: float = LONG_LIMIT_S
    ) -> Update:
        """Mine finished tasks, apply people's edits to the files, and write the files.

        `window` is the number of recent tasks to consider. With `dry_run`, nothing is changed and no model is asked. If
        a model fails, the rules serve the task or it waits for the next update; the files are written in any case.
        """
        background.refuse_without_project(self._context)
        if window is not None and not 1 <= window <= _ALL_TASKS:
            raise WrongRequest(f"the window cannot be {window} tasks", hint=f"choose a number from 1 to {_ALL_TASKS:,}")
        deadline = time.monotonic() + limit_s
        with disk.locked(self._store):
            return self._preview(window, deadline) if dry_run else self._update(window, cause, deadline)

    def apply_edits(self, *, agent: str = "") -> Update | None:
        """Apply the edits made to the files since they were written; return None if there are no edits.

        `agent` is the agent that made the edits, if any. Its additions are on trial; its other edits are reverted.
        """
        if not self._root or not any(os.path.lexists(path) for path in disk.paths(self._root)):
            return None
        files = read_files(self._context)
        if all(file.content is None or file.is_as_written(self._store.database) for file in files):
            for file in files:
                disk.note_seen(self._store, file.path, file.content or b"")
            return None
        with disk.locked(self._store):
            return self._write(self._begin("edit"), agent=agent)

    def clear(self) -> list[str]:
        """Delete the learnings files after applying people's edits; return the deleted paths.

        The learnings stay: the next update writes them again.
        """
        background.refuse_without_project(self._context)
        with disk.locked(self._store):
            deleted: list[str] = []
            while files := [file for file in read_files(self._context) if file.content is not None]:
                with self._store.transaction():
                    apply_edits(self._context, files)
                for file in files:
                    # If the file was saved meanwhile, its new content is read in the next round.
                    if disk.read(file.path) == file.content:
                        remove_file(file.path)
                        deleted.append(file.path)
        return deleted

    def for_prompt(self, task: Task) -> tuple[str, tuple[str, ...]]:
        """Return the learnings files' text for a task's prompt, and the ids of the learnings in that text.

        Learnings that are no longer active or that nobody vouches for are left out, even if a file still shows them,
        and so is what somebody else committed. All files share one limit.
        """
        strategy = self._settings.learnings_injection_strategy
        if strategy == "none" or task.skip_learnings or not self._root:
            return "", ()
        take_over_edits(self._context)
        goals = {"global_only": [""], "task_group": [task.goal], "both": [task.goal, ""]}[strategy]
        texts = [redact(self._own_text(goal))[0] for goal in dict.fromkeys(goals)]
        parsed = {text: parse(text) for text in texts}
        ids = {bullet.id for file in parsed.values() for bullet in file.bullets if bullet.id}
        stored = learnings.get_all(self._store.database, sorted(ids))

        def should_show(bullet: Bullet) -> bool | None:
            if bullet.id in stored:
                return stored[bullet.id].status == "active" and bool(stored[bullet.id].vouched)
            # The learning was purged, or it comes from another store and has not been applied yet.
            return False if regenerations.was_shown(self._store.database, bullet.id, bullet.text) else None

        texts = [text for text in texts if parsed[text].bullets or parsed[text].loose]  # more than a heading
        files = [lines_for_prompt(text, should_show) for text in texts]
        files = _cut_to_limit(files, self._settings.learnings_max_tokens)
        parts = ["\n".join(line for line, _ in lines).strip() for lines in reversed(files)]
        text = "\n\n".join(part for part in parts if part)
        given_ids = dict.fromkeys(id for lines in files for _, id in lines if id)
        return f"{EVIDENCE} {MARKS}\n\n{text}" if text else "", tuple(given_ids)

    def _own_text(self, goal: str) -> str:
        """Return a file's text without the lines that somebody else committed, except for known learnings' bullets."""
        text = self.read(goal) or ""
        if not text.strip():
            return ""
        owners = find_owners(self._root, disk.path_of(self._root, goal), os.environ)
        known = learnings.get_all(self._store.database, sorted({*ID_COMMENT.findall(text)}))
        return "\n".join(
            line
            for number, line in enumerate(text.split("\n"))
            if owners.are_own((number,)) or any(id in known for id in ID_COMMENT.findall(line))
        )

    def _preview(self, window: int | None, deadline: float) -> Update:
        """Return what an update would do, by running it in a transaction that is rolled back."""
        context, asks = self._context, asks_a_model(self._context)
        unmined = self._unmined_tasks(window)
        files = read_files(context)
        try:
            with self._store.transaction():
                reports = [learn_from(context, read_task(context, id, deadline=deadline)) for id in unmined if not asks]
                update, _ = self._make_update(files, _new_regeneration("person", context.clock()), window)
                raise _Preview
        except _Preview:
            return update.replace(mined=tuple(reports), waiting=len(unmined) if asks else 0)

    def _update(self, window: int | None, cause: str, deadline: float) -> Update:
        begun = self._begin(cause)
        counted = self._store.database.counter(regenerations.TASKS_SINCE_UPDATE)
        try:
            read_files(self._context)  # fail before a model call costs money if the files cannot be updated
            reports, remarks = self._mine(window, begun, deadline)
            cost = calls.spent_on(self._store.database, begun.id)
            begun = begun.replace(cost_usd=cost, skipped=sum(len(report.skipped) for report in reports))
            begun = begun.replace(reason=self._context.redact_line("; ".join(remarks), 500))
            update = self._write(begun, window, counted)
            return update.replace(mined=tuple(reports), remarks=(*remarks, *update.remarks))
        except LearntError as error:
            self._record_failure(begun, error, counted)
            raise

    def _mine(
        self, window: int | None, begun: Regeneration, deadline: float
    ) -> tuple[list[MiningReport], tuple[str, ...]]:
        """Mine the pending tasks one after the other, so that each task sees the learnings from the tasks before it.

        Return the reports, and remarks on a model that failed and on time that ran out.
        """
        context = self._context
        model = ModelReader(context, regeneration=begun.id)
        reports = []
        try:
            for id in self._unmined_tasks(window):
                reading = read_task(context, id, deadline=deadline)
                if begun.cause == "count" and was_asked_recently(context, reading.task):
                    continue
                answered = model.read(reading, limit_s=deadline - time.monotonic())
                if answered is not None:
                    with self._store.transaction():
                        reports.append(learn_from(context, answered))
        except TryAgain as error:
            return reports, (*model.remarks, f"{error.message}; {error.hint}")
        return reports, tuple(model.remarks)

    def _begin(self, cause: str) -> Regeneration:
        """Record that an update is running; raise if another machine is running an update."""
        begun = _new_regeneration(cause, self._context.clock())
        database = self._store.database
        with self._store.transaction():
            if self._store.place.address:
                database.lock_spending()
                since = begun.started_at - (self._settings.learnings_time_limit_s + _LEASE_S) * 1000
                if regenerations.is_running_elsewhere(database, host=platform.node(), since=since):
                    raise TryAgain(
                        "the learnings files are being updated on another machine", hint="wait, then try again"
                    )
            regenerations.end_running(database, at=begun.started_at, reason=background.KILLED)
            regenerations.put(database, begun.replace(reason=platform.node()))
        return begun

    def _record_failure(self, begun: Regeneration, error: LearntError, counted: int) -> None:
        """Record why an update failed; it is retried after the usual number of tasks."""
        try:
            with self._store.transaction():
                # Keep a stored record, because a file that was written before the failure refers to it.
                reached = regenerations.find(self._store.database, begun.id) or begun
                failed = reached.replace(
                    result="failed",
                    reason=self._context.redact_line(error.message, 500),
                    cost_usd=calls.spent_on(self._store.database, begun.id),
                    finished_at=self._context.clock(),
                )
                regenerations.put(self._store.database, failed)
                if reached.result == "running":
                    self._count_down(counted)
        except LearntError:
            return  # only the first error is reported

    def _count_down(self, counted: int) -> None:
        """Within a transaction: reset the count of finished tasks, except for tasks that finished meanwhile."""
        self._store.database.count(regenerations.TASKS_SINCE_UPDATE, -counted)
        regenerations.release_update(self._store.database)

    def _write(self, begun: Regeneration, window: int | None = None, counted: int = 0, *, agent: str = "") -> Update:
        """Change the store and write the files; retry if a file changes meanwhile."""
        for _ in range(_TRIES_TO_WRITE):
            files = read_files(self._context)
            with self._store.transaction():
                update, records = self._make_update(files, begun, window, agent=agent)
                for record in records:
                    regenerations.put(self._store.database, record)
                self._count_down(counted)
            counted = 0
            new = [file for file in update.files if file.is_new]
            if all(disk.replace(file.path, file.content, file.after) for file in new):
                for file in update.files:
                    disk.note_seen(self._store, file.path, file.after.encode())
                return update
        raise TryAgain("the learnings files keep changing", hint="save them, then run `learnt update`")

    def _make_update(
        self, files: Sequence[FileOnDisk], begun: Regeneration, window: int | None, *, agent: str = ""
    ) -> tuple[Update, list[Regeneration]]:
        """Within a transaction: apply the edits to the files; return the new files, and the records to store."""
        database, settings = self._store.database, self._settings
        max_tasks = max(_MAX_UNMINED_TASKS, settings.learnings_window_size, settings.learnings_goal_window_size)
        mined.drop_older_material(database, keep=max_tasks, before=begun.started_at - MONTH_MS)
        remarks = apply_edits(self._context, files, agent=agent)
        results = [self._make_file(file, begun, window) for file in self._add_goal_files(files)]
        update = Update(
            id=begun.id,
            files=tuple(file for file, _ in results),
            taken=tuple(edit for file in files for edit in file.taken),
            cost_usd=begun.cost_usd,
            remarks=(*remarks, *(_NO_ROOM.format(file.path) for file, _ in results if file.crowded)),
        )
        return update, [record for file, record in results if file.is_new or not file.goal]

    def _make_file(self, file: FileOnDisk, begun: Regeneration, window: int | None) -> tuple[FileUpdate, Regeneration]:
        """Within a transaction: return the new state of a file, and its record."""
        rendering, tasks = self._render(file, begun, window)
        is_new = self._is_new(file, rendering)
        delta = compare_renderings(file.base, rendering)
        update = FileUpdate(
            goal=file.goal,
            path=file.path,
            content=file.content,
            before=file.text,
            after=rendering.text if is_new else file.text,
            delta=delta,
            left_out=rendering.left_out,
            crowded=rendering.over_limit,
        )
        record = begun.replace(
            id=rendering.id,
            goal=rendering.goal,
            result="done" if is_new else "unchanged",
            text=rendering.text,
            bullets=[(bullet.id, bullet.text, bullet.section) for bullet in rendering.bullets],
            loose=[(loose.section, loose.text, loose.below) for loose in rendering.loose],
            tasks=tasks,
            added=len(delta.added),
            removed=len(delta.removed),
            kept=len(delta.kept),
            churn=delta.churn,
            finished_at=self._context.clock(),
        )
        # The cost of the update and its skipped discoveries are recorded once, with the project's file.
        return update, record.replace(cost_usd=None, skipped=0, reason="") if file.goal else record

    def _is_new(self, file: FileOnDisk, rendering: Rendering) -> bool:
        """Return whether a file has to be written."""
        if file.content is None and not rendering.bullets:
            return False  # there is nothing to show yet
        # A file must refer to its own rendering: with an older rendering, the same removals would be applied again.
        if file.base is None or file.base.bullets != rendering.bullets or file.safe != file.text:
            return True
        if parse(rendering.text).replace(rendering="") != file.parsed.replace(rendering=""):
            return True
        return not rendering.over_limit and estimate_tokens(file.text) > self._settings.learnings_max_tokens

    def _render(self, file: FileOnDisk, begun: Regeneration, window: int | None) -> tuple[Rendering, int]:
        """Within a transaction: return a file's new rendering, and the number of tasks that it is based on."""
        database = self._store.database
        goal = file.goal if has_goal_files(self._context) else None
        tasks = self._recent_tasks(window, goal)
        since = mined.first_attempt_at(database, tasks)
        cared_for = learnings_in_files.cared_for(database)
        candidates = learnings_in_files.for_file(database, tasks=tasks, since=since, goal=goal, cared_for=cared_for)
        # What stands in CLAUDE.md or the like would only crowd out the rest.
        is_in_other_file = Filter(exclude_loaded=LOADED_FILES).leaves_out_file
        chosen = select(
            [learning for learning in candidates if not is_in_other_file(learning.loaded_from)],
            window_tasks=frozenset(tasks),
            since_ms=since,
            cared_for=cared_for,
            stage=stage,
            impact=impact,
        )
        rendering = render(
            chosen,
            id=new_id("r", self._context.clock()) if file.goal else begun.id,
            goal=file.goal,
            today=time.strftime("%Y-%m-%d", time.gmtime(self._context.clock() / 1000)),
            task_count=len(tasks),
            max_tokens=self._settings.learnings_max_tokens,
            sections=file.parsed.sections,
            loose=file.parsed.loose,
        )
        return rendering, len(tasks)

    def _unmined_tasks(self, window: int | None) -> list[str]:
        """Return the recent tasks that have not been mined yet, oldest first."""
        database = self._store.database
        recent = self._recent_tasks(window, None)
        if has_goal_files(self._context):
            recent += [id for goal in mined.goals(database) for id in self._recent_tasks(window, goal)]
        return [id for id in reversed(dict.fromkeys(recent)) if mined.material_of(database, id)]

    def _recent_tasks(self, window: int | None, goal: str | None) -> list[str]:
        """Return the recent tasks to consider; `goal` selects this goal's tasks, or if empty, tasks without a goal."""
        settings = self._settings
        size = window or (settings.learnings_goal_window_size or _ALL_TASKS if goal else settings.learnings_window_size)
        return mined.recent_tasks(self._store.database, limit=size, goal=goal)

    def _add_goal_files(self, files: Sequence[FileOnDisk]) -> list[FileOnDisk]:
        """Within a transaction: return the files, plus a new file for each goal that has learnings but no file."""
        if not has_goal_files(self._context):
            return [file for file in files if not file.goal]
        goals_with_file = {file.goal for file in files}
        new = [goal for goal in learnings_in_files.goals(self._store.database) if goal and goal not in goals_with_file]
        return [*files, *(FileOnDisk(goal, disk.path_of(self._root, goal), None) for goal in new)]


def _new_regeneration(cause: str, now: int) -> Regeneration:
    return Regeneration(id=new_id("r", now), cause=cause, started_at=now)


def _cut_to_limit(files: Sequence[list[tuple[str, str]]], max_tokens: int) -> list[list[tuple[str, str]]]:
    """Return the first lines of each file within the common limit; each gets an equal share, plus unused room."""
    costs = [[estimate_tokens(f"{line}\n") for line, _ in lines] for lines in files]
    room, kept = max_tokens - len(files), []  # an empty line separates the files
    for place, lines in enumerate(files):
        others = sum(map(sum, costs[place + 1 :]))
        share = max(room // (len(files) - place), room - others)
        fitting = sum(total <= share for total in accumulate(costs[place]))
        kept.append(lines[:fitting])
        room -= sum(costs[place][:fitting])
    return kept
