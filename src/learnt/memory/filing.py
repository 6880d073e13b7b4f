"""learnings.md: what the project has learnt, in a file that people and the program share.

An update mines what finished tasks left, takes over what people did to the files, and writes them anew. All that it
changes in the store is one transaction; a file is written after it, whole or not at all, and never over something that
it has not read. Killed at any point, the next update finds the same file, or the new one, and repeats nothing.

In the background the same happens in a process of its own: detached, one at a time, with a time limit.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from learnt.brief.learnings_file import (
    AVOID,
    Bullet,
    Delta,
    Edits,
    Loose,
    Parsed,
    Rendering,
    category_of,
    churn,
    diff,
    edited,
    fields_of,
    for_prompt,
    line_of,
    merge,
    parse,
    render,
    same_text,
    select,
)
from learnt.errors import LearntError, TryAgain, WrongRequest, cannot_write
from learnt.memory.mining import Mined, Mining, Reading
from learnt.model import Value, new_id
from learnt.project import STORE_FOLDER
from learnt.store import calls, counters, learnings, mined, regenerations
from learnt.store.regenerations import Regeneration
from learnt.store.spool import Locked
from learnt.text.tokens import estimate_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from learnt.model import Learning, Task
    from learnt.store.database import Database

FILE = "learnings.md"
_FOLDER_OF_GOALS = "learnings"
_LOCK = "update.lock"
_LOG = "update.log"
_HURRIES = 5
_NO_HURRY_S = 24 * 3600.0
_ALL_TASKS = 1_000_000
_INTERNAL = "LEARNT_INTERNAL"


class File(Value):
    """One learnings file: as it was found, and as it is now."""

    goal: str
    path: str
    before: str
    after: str
    delta: Delta = Delta()
    left_out: tuple[str, ...] = ()
    """Learnings for which there was no room."""

    @property
    def diff(self) -> str:
        """What changed, as a unified diff."""
        return diff(self.before, self.after, name=os.path.basename(self.path))


class Update(Value):
    """What an update did, or would do."""

    id: str
    files: tuple[File, ...] = ()
    mined: tuple[Mined, ...] = ()
    edits: int = 0
    """How many edits of people were taken over from the files."""
    waiting: int = 0
    """How many tasks a model would read; only told by a preview."""
    cost_usd: float | None = None
    remarks: tuple[str, ...] = ()


class State(Value):
    """How the learnings files stand."""

    running_since: int | None
    tasks_since: int
    every: int
    last: Regeneration | None


class _Preview(Exception):
    """Ends the transaction of a preview, so that nothing of it stays."""

    def __init__(self, update: Update) -> None:
        super().__init__()
        self.update = update


class _Merged:
    """A file that was read, and what people did to it."""

    def __init__(self, goal: str, path: str, before: bytes | None) -> None:
        self.goal = goal
        self.path = path
        self.before = before
        self.text = (before or b"").decode("utf-8", "replace")
        self.parsed: Parsed = parse(self.text)
        self.base: Rendering | None = None
        self.edits = Edits()


class Filing(Mining):
    """What is done with learnings files."""

    def update(
        self, *, window: int | None = None, dry_run: bool = False, cause: str = "person", limit_s: float = _NO_HURRY_S
    ) -> Update:
        """Mine what finished tasks left, take over what people did to the files, and write them anew.

        `window`: how many recent tasks count. `dry_run`: only look; a model is then not asked. When a model fails,
        neither file nor learnings change, and the reason is kept.
        """
        self._refuse_without_project()
        if window is not None and window < 1:
            raise WrongRequest(f"a window of {window} tasks shows nothing", hint="give a number from 1 on")
        deadline = time.monotonic() + limit_s
        self.store.make_folder()
        with Locked(os.path.join(self.store.place.folder, _LOCK), wait=False) as alone:
            if not alone:
                raise TryAgain("the learnings files are being made already", hint="`learnt status` shows it; wait a bit")
            if dry_run:
                return self._previewed(window, deadline)
            return self._updated(window, cause, deadline)

    def update_when_due(self) -> None:
        """Let the files be made anew in a process of its own, if enough tasks are done and nobody is at it."""
        every = self.settings.learnings_regenerate_every
        if not (self.settings.learnings_enabled and every and self.root) or os.environ.get(_INTERNAL):
            return
        try:
            if counters.value(self.store.database, counters.TASKS_SINCE_UPDATE) >= every and not self._is_running():
                self._start_worker()
        except (LearntError, OSError):
            return  # whoever finished a task must not fail for it; the next one tries again

    def files_state(self) -> State:
        """Return how the learnings files stand: made when, how many tasks ago, or being made now."""
        latest = regenerations.latest(self.store.database, limit=1)
        last = latest[0] if latest else None
        running = last is not None and last.result == "running" and self._is_running()
        return State(
            running_since=last.started_at if running and last else None,
            tasks_since=counters.value(self.store.database, counters.TASKS_SINCE_UPDATE),
            every=self.settings.learnings_regenerate_every if self.settings.learnings_enabled else 0,
            last=last,
        )

    def regenerations(self, *, limit: int = 50) -> list[Regeneration]:
        """Return the latest makings of learnings files, the newest first."""
        return regenerations.latest(self.store.database, limit=limit)

    def learnings_path(self, goal: str = "") -> str:
        """Return where the file of the project, or of a goal, is: each worktree has its own."""
        folder = os.path.join(self.root, STORE_FOLDER)
        return os.path.join(folder, _FOLDER_OF_GOALS, f"{goal}.md") if goal else os.path.join(folder, FILE)

    def learnings_file(self, goal: str = "") -> str | None:
        """Return the text of a learnings file; None when there is none."""
        self._refuse_without_project()
        content = _read(self.learnings_path(goal))
        return None if content is None else content.decode("utf-8", "replace")

    def clear(self) -> list[str]:
        """Delete the learnings files, after taking over what people did to them; return which there were.

        The learnings stay: the next update writes them again.
        """
        self._refuse_without_project()
        files = [file for file in self._files() if file.before is not None]
        with self.store.transaction():
            self._take_over(self.store.database, files)
        for file in files:
            os.unlink(file.path)
        return [file.path for file in files]

    def learnings_for_prompt(self, task: Task) -> tuple[str, tuple[str, ...]]:
        """Return the text of the learnings files that the prompt of a task carries, and the ids of what is in it."""
        strategy = self.settings.learnings_injection_strategy
        if strategy == "none" or task.skip_learnings or not self.root:
            return "", ()
        goals = {"global_only": [""], "task_group": [task.goal], "both": ["", task.goal]}[strategy]
        texts, ids = [], []
        for goal in dict.fromkeys(goals):
            text = self.learnings_file(goal)
            if text is not None:
                shown = _within(for_prompt(text).strip(), self.settings.learnings_max_tokens)
                texts.append(shown)
                ids += [bullet.id for bullet in parse(text).bullets if bullet.id and bullet.text in shown]
        return "\n\n".join(texts), tuple(ids)

    def _refuse_without_project(self) -> None:
        if not self.root:
            raise WrongRequest("learnings.md belongs to a project", hint="go to one; `learnt init` makes a folder one")

    def _previewed(self, window: int | None, deadline: float) -> Update:
        waiting = self._waiting(window)
        readings = [] if self.asks_a_model else [self._read_task(id, deadline) for id in waiting]
        files = self._files()
        try:
            with self.store.transaction():
                update, _, _ = self._made(self.store.database, files, readings, _begun("person", self._clock()), window)
                raise _Preview(update)
        except _Preview as preview:
            return preview.update.replace(waiting=len(waiting) if self.asks_a_model else 0)

    def _updated(self, window: int | None, cause: str, deadline: float) -> Update:
        begun = _begun(cause, self._clock())
        with self.store.transaction():
            regenerations.end_running(self.store.database, at=begun.started_at, reason="it was killed")
            regenerations.put(self.store.database, begun)
            counted = counters.value(self.store.database, counters.TASKS_SINCE_UPDATE)
        readings, failure = self._readings(self._waiting(window), begun.id, deadline)
        try:
            if failure is not None:
                raise failure
            return self._written(readings, begun, window, counted)
        except LearntError as error:
            self._keep_failure(begun, readings if failure else (), error, counted)
            raise

    def _readings(
        self, waiting: Sequence[str], regeneration: str, deadline: float
    ) -> tuple[list[Reading], LearntError | None]:
        """Return what the waiting tasks teach, and the failure that ended it, if one did."""
        readings: list[Reading] = []
        try:
            for id in waiting:
                reading = self._read_task(id, deadline)
                readings.append(self._understood(reading, regeneration, deadline - time.monotonic()))
        except LearntError as error:
            return readings, error
        return readings, None

    def _keep_failure(self, begun: Regeneration, paid: Iterable[Reading], error: LearntError, counted: int) -> None:
        """Keep why an update failed, and what the model had answered before; it is tried again after as many tasks."""
        try:
            with self.store.transaction():
                for reading in paid:
                    self._take_in(self.store.database, reading)
                failed = begun.replace(
                    result="failed",
                    reason=self._line(error.message, 500),
                    cost_usd=calls.spent_on(self.store.database, begun.id),
                    finished_at=self._clock(),
                )
                regenerations.put(self.store.database, failed)
                counters.add(self.store.database, counters.TASKS_SINCE_UPDATE, -counted)
        except LearntError:
            return  # the first error tells the story

    def _written(self, readings: Sequence[Reading], begun: Regeneration, window: int | None, counted: int) -> Update:
        """Change the store and write the files; begin again when somebody changes a file meanwhile."""
        for _ in range(_HURRIES):
            files = self._files()
            with self.store.transaction():
                update, made, written = self._made(self.store.database, files, readings, begun, window)
                for regeneration in made:
                    regenerations.put(self.store.database, regeneration)
                counters.add(self.store.database, counters.TASKS_SINCE_UPDATE, -counted)
            readings, counted = (), 0  # they are in the store now
            if all(_replace(path, before, text) for path, before, text in written):
                return update
        raise TryAgain("somebody keeps changing the learnings files", hint="save them, then `learnt update`")

    def _made(
        self,
        database: Database,
        files: Sequence[_Merged],
        readings: Sequence[Reading],
        begun: Regeneration,
        window: int | None,
    ) -> tuple[Update, list[Regeneration], list[tuple[str, bytes | None, str]]]:
        """Within a transaction: take everything in; return what it is, what to record, and which files to write."""
        taught = tuple(self._take_in(database, reading) for reading in readings)
        mined.drop_older_material(database, self._window(database, window, None))
        remarks = self._take_over(database, files)
        shown: list[File] = []
        made: list[Regeneration] = []
        writes: list[tuple[str, bytes | None, str]] = []
        for file in self._with_new_goals(database, files):
            rendering, tasks = self._rendered(database, file, begun, window)
            known = parse(rendering.text)
            same = file.before is not None and file.base is not None and known.replace(rendering="") == (
                file.parsed.replace(rendering="")
            )
            after = file.text if same else rendering.text
            delta = churn(file.base, rendering)
            shown.append(
                File(
                    goal=file.goal,
                    path=file.path,
                    before=file.text,
                    after=after,
                    delta=delta,
                    left_out=rendering.left_out,
                )
            )
            if not same:
                writes.append((file.path, file.before, after))
            if not same or not file.goal:
                made.append(_kept(begun, rendering, delta, tasks=tasks, same=same, at=self._clock()))
            if rendering.crowded:
                remarks.append(f"{file.path} holds more text of its own than {self.settings.learnings_max_tokens} tokens")
        cost = calls.spent_on(database, begun.id)
        made = [one.replace(cost_usd=cost if one.id == begun.id else None) for one in made]
        edits = sum(_number(file.edits) for file in files)
        update = Update(
            id=begun.id, files=tuple(shown), mined=taught, edits=edits, cost_usd=cost, remarks=tuple(remarks)
        )
        return update, made, writes

    def _rendered(
        self, database: Database, file: _Merged, begun: Regeneration, window: int | None
    ) -> tuple[Rendering, int]:
        """Within a transaction: return a file as it should be, and from how many tasks."""
        from learnt.weigh.impact import impact
        from learnt.weigh.stage import stage

        goal = file.goal if self._has_goal_files() else None
        tasks = self._window(database, window, goal)
        since = mined.began(database, tasks)
        chosen = select(
            learnings.for_file(database, tasks=tasks, since=since, goal=goal),
            window_tasks=frozenset(tasks),
            since_ms=since,
            stage=stage,
            impact=impact,
        )
        rendering = render(
            chosen,
            id=new_id("r", self._clock()) if file.goal else begun.id,
            goal=file.goal,
            today=time.strftime("%Y-%m-%d", time.gmtime(self._clock() / 1000)),
            tasks=len(tasks),
            max_tokens=self.settings.learnings_max_tokens,
            sections=file.parsed.sections,
            loose=file.parsed.loose,
        )
        return rendering, len(tasks)

    def _waiting(self, window: int | None) -> list[str]:
        """Return the recent tasks that nobody has mined yet, the oldest first."""
        database = self.store.database
        recent = self._window(database, window, None)
        return [id for id in reversed(recent) if mined.material_of(database, id)]

    def _window(self, database: Database, window: int | None, goal: str | None) -> list[str]:
        """Return the recent tasks that count; `goal`: for the file of a goal, or with an empty one, of none."""
        settings = self.settings
        size = window or (settings.learnings_goal_window_size or _ALL_TASKS if goal else settings.learnings_window_size)
        return mined.recent_tasks(database, limit=size, goal=goal)

    def _has_goal_files(self) -> bool:
        return self.settings.learnings_injection_strategy in ("task_group", "both")

    def _files(self) -> list[_Merged]:
        """Return the files that are there, and the project's own in any case, as people left them."""
        goals = [""]
        folder = os.path.join(self.root, STORE_FOLDER, _FOLDER_OF_GOALS)
        if os.path.isdir(folder):
            goals += sorted(name.removesuffix(".md") for name in os.listdir(folder) if name.endswith(".md"))
        files = []
        for goal in goals:
            path = self.learnings_path(goal)
            file = _Merged(goal, path, _read(path))
            if file.parsed.conflict:
                raise WrongRequest(f"{path} holds the markers of a merge conflict", hint="resolve it, then try again")
            _refuse_open(path)
            files.append(file)
        return files

    def _with_new_goals(self, database: Database, files: Sequence[_Merged]) -> list[_Merged]:
        """Within a transaction: return the files, with one for each goal that has learnings and none yet."""
        if not self._has_goal_files():
            return [file for file in files if not file.goal]
        known = {file.goal for file in files}
        new = [goal for goal in learnings.goals(database) if goal and goal not in known]
        return [*files, *(_Merged(goal, self.learnings_path(goal), None) for goal in new)]

    def _take_over(self, database: Database, files: Sequence[_Merged]) -> list[str]:
        """Within a transaction: do to the learnings what people did to the files; return what they should know."""
        remarks: list[str] = []
        standing = {bullet.id: file.goal for file in files for bullet in file.parsed.bullets if bullet.id}
        for file in files:
            found = regenerations.find(database, file.parsed.rendering) if file.parsed.rendering else None
            file.base = _rendering(found) if found else None
            ids = {bullet.id for bullet in (*file.parsed.bullets, *(file.base.bullets if file.base else ()))}
            file.edits = merge(
                file.parsed,
                file.base,
                store=learnings.get_all(database, sorted(ids - {""})),
                known_text=lambda id, text: regenerations.was_shown(database, id, text),
                find=lambda text: _same_line(database, text),
            )
            self._apply(database, file, standing)
            remarks += file.edits.remarks
        return remarks

    def _apply(self, database: Database, file: _Merged, standing: dict[str, str]) -> None:
        now = self._clock()
        reason = os.path.basename(file.path)
        for section, text in file.edits.added:
            record = {**fields_of(text), "category": category_of(section), "goal": file.goal}
            learnings.add(
                database, self._new_learning(record, created_at=now), self._change("add", at=now, reason=reason)
            )
        for id, text in file.edits.changed:
            change = self._change("edit", at=now, reason=reason)
            safe = self._line(text, 20_000)
            learnings.change(database, id, lambda one, text=safe: edited(one, text), change)  # type: ignore[misc]
        for id, category in file.edits.moved:
            change = self._change("edit", at=now, reason=reason)
            learnings.change(database, id, lambda _, category=category: {"category": category}, change)  # type: ignore[misc]
        for id in file.edits.removed:
            if id in standing:  # a person moved it to another file
                change = self._change("edit", at=now, reason=reason)
                goal = standing[id]
                learnings.change(database, id, lambda _, goal=goal: {"goal": goal}, change)  # type: ignore[misc]
            else:
                change = self._change("hide", at=now, reason=f"removed from {reason}")
                learnings.change(database, id, lambda _: {"status": "hidden"}, change)

    def _is_running(self) -> bool:
        """Say whether somebody makes the files at this moment."""
        try:
            with Locked(os.path.join(self.store.place.folder, _LOCK), wait=False) as alone:
                return not alone
        except OSError:
            return False

    def _start_worker(self) -> None:
        """Start a process that makes the files and outlives us; nobody waits for it."""
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


def _begun(cause: str, now: int) -> Regeneration:
    return Regeneration(id=new_id("r", now), cause=cause, started_at=now)


def _kept(
    begun: Regeneration, rendering: Rendering, delta: Delta, *, tasks: int, same: bool, at: int
) -> Regeneration:
    """Return a rendering as it is recorded."""
    return begun.replace(
        id=rendering.id,
        goal=rendering.goal,
        result="unchanged" if same else "done",
        text=rendering.text,
        bullets=[(bullet.id, bullet.text, bullet.section) for bullet in rendering.bullets],
        loose=[(loose.section, loose.text, loose.below) for loose in rendering.loose],
        tasks=tasks,
        added=len(delta.added),
        removed=len(delta.removed),
        kept=len(delta.kept),
        churn=delta.churn,
        finished_at=at,
    )


def _rendering(regeneration: Regeneration) -> Rendering:
    """Return a rendering as it was recorded."""
    return Rendering(
        id=regeneration.id,
        goal=regeneration.goal,
        bullets=tuple(Bullet(id=id, text=text, section=section) for id, text, section in regeneration.bullets),
        loose=tuple(Loose(section=section, text=text, below=below) for section, text, below in regeneration.loose),
        text=regeneration.text,
    )


def _same_line(database: Database, text: str) -> Learning | None:
    """Return a learning whose line in a file is this text, an active one first."""
    wanted = same_text(text)
    titles = dict.fromkeys(fields_of(line)["title"] for line in (text, text.removeprefix(AVOID)) if line.strip())
    found = [one for title in titles for one in learnings.with_title(database, title)]
    found = [one for one in found if same_text(line_of(one)) == wanted]
    return min(found, key=lambda one: one.status != "active", default=None)


def _number(edits: Edits) -> int:
    return len(edits.added) + len(edits.changed) + len(edits.removed) + len(edits.moved)


def _within(text: str, max_tokens: int) -> str:
    """Return as many of the first lines as the bound allows."""
    lines = text.split("\n")
    while lines and estimate_tokens("\n".join(lines)) > max_tokens:
        lines.pop()
    return "\n".join(lines)


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LearntError(f"cannot read {path}: {error.strerror}", hint="check who may read the file") from None


def _refuse_open(path: str) -> None:
    """Raise when an editor has a file open with changes that are not saved, as far as editors leave a sign of it."""
    folder, name = os.path.split(path)
    for sign in (f".{name}.swp", f".#{name}"):
        if os.path.lexists(os.path.join(folder, sign)):
            raise TryAgain(f"{path} is open in an editor", hint=f"save and close it, or remove {sign} if nobody has it")


def _replace(path: str, before: bytes | None, text: str) -> bool:
    """Write a file whole; False, and nothing is written, when it is not any more what it was."""
    path = os.path.realpath(path)
    unfinished = f"{path}.{os.getpid()}.new"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        mode = os.stat(path).st_mode & 0o777 if before is not None and os.path.exists(path) else 0o644
        with open(os.open(unfinished, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, mode), "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        if _read(path) != before:
            os.unlink(unfinished)
            return False
        os.replace(unfinished, path)
    except OSError as error:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
        raise cannot_write(path, error, hint="check who owns the folder and its files") from None
    return True
