"""learnings.md: what the project has learnt, in a file that people and the program share.

An update mines what finished tasks left, takes over what people did to the files, and writes them anew. All that it
changes in the store is one transaction; a file is written after it, whole or not at all, and never over something that
it has not read. Killed at any point, the next update finds the same file, or the new one, and repeats nothing.

In the background the same happens in a process of its own: detached, one at a time, with a time limit.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from functools import partial

from learnt.brief.learnings_file import (
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
from learnt.brief.learnings_file.lines import AVOID
from learnt.errors import LearntError, TryAgain, WrongRequest, cannot_write
from learnt.memory.accumulating import FOLDER_OF_GOALS, read_file
from learnt.memory.background import KILLED, LOCK
from learnt.memory.mining import Mined, Mining, Reading
from learnt.model import TEXT_LIMIT, Value, new_id
from learnt.project import STORE_FOLDER
from learnt.store import calls, counters, learnings, mined, regenerations
from learnt.store.regenerations import Regeneration
from learnt.store.spool import Locked
from learnt.text.redact import redact
from learnt.text.tokens import estimate_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from learnt.model import Learning, Task
    from learnt.store.database import Database

_HURRIES = 5
_NO_HURRY_S = 24 * 3600.0
_ALL_TASKS = 1_000_000


class File(Value):
    """One learnings file: as it was found, and as it is now."""

    goal: str
    path: str
    found: bytes | None
    """What was read; None where there was no file."""
    before: str
    after: str
    delta: Delta = Delta()
    left_out: tuple[str, ...] = ()
    """Learnings for which there was no room."""
    crowded: bool = False
    """Whether text of people alone is more than there is room for."""

    @property
    def is_new(self) -> bool:
        """Whether it is to be written."""
        return self.after != self.before

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
        # What is stored has no secrets: only without them are texts the same.
        self.safe = redact(self.text)[0]
        self.parsed: Parsed = parse(self.safe)
        self.base: Rendering | None = None
        self.edits = Edits()


class Filing(Mining):
    """What is done with learnings files."""

    def update(
        self, *, window: int | None = None, dry_run: bool = False, cause: str = "person", limit_s: float = _NO_HURRY_S
    ) -> Update:
        """Mine what finished tasks left, take over what people did to the files, and write them anew.

        `window`: how many recent tasks count. `dry_run`: only look; a model is then not asked. When a model fails,
        the file and what is known stay as they are, the reason is kept, and what it said of other tasks before as well.
        """
        if window is not None and window < 1:
            raise WrongRequest(f"a window of {window} tasks shows nothing", hint="give a number from 1 on")
        deadline = time.monotonic() + limit_s
        with self._alone():
            if dry_run:
                return self._previewed(window, deadline)
            return self._updated(window, cause, deadline)

    def clear(self) -> list[str]:
        """Delete the learnings files, after taking over what people did to them; return which there were.

        The learnings stay: the next update writes them again.
        """
        with self._alone():
            files = [file for file in self._files() if file.before is not None]
            with self.store.transaction():
                self._take_over(self.store.database, files)
            for file in files:
                os.unlink(file.path)
        return [file.path for file in files]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Have the files to oneself, or raise."""
        self.store.make_folder()
        with Locked(os.path.join(self.store.place.folder, LOCK), wait=False) as alone:
            if not alone:
                raise TryAgain(
                    "the learnings files are being made already", hint="`learnt status` shows it; wait a bit"
                )
            yield

    def for_prompt(self, task: Task) -> tuple[str, tuple[str, ...]]:
        """Return the text of the learnings files that the prompt of a task carries, and the ids of what is in it."""
        strategy = self.settings.learnings_injection_strategy
        goals = {"global_only": [""], "task_group": [task.goal], "both": ["", task.goal]}[strategy]
        texts, ids = [], []
        for goal in dict.fromkeys(goals):
            text = self.memory.learnings_file(goal)
            if text is not None:
                shown = _within(for_prompt(text).strip(), self.settings.learnings_max_tokens)
                texts.append(shown)
                ids += [bullet.id for bullet in parse(text).bullets if bullet.id and bullet.text in shown]
        return "\n\n".join(texts), tuple(ids)

    def _previewed(self, window: int | None, deadline: float) -> Update:
        waiting = self._waiting(window)
        readings = [] if self.asks_a_model else [self._read_task(id, deadline) for id in waiting]
        files = self._files()
        try:
            with self.store.transaction():
                begun = _begun("person", self._clock())
                raise _Preview(self._made(self.store.database, files, readings, begun, window)[0])
        except _Preview as preview:
            return preview.update.replace(waiting=len(waiting) if self.asks_a_model else 0)

    def _updated(self, window: int | None, cause: str, deadline: float) -> Update:
        begun = _begun(cause, self._clock())
        with self.store.transaction():
            regenerations.end_running(self.store.database, at=begun.started_at, reason=KILLED)
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
                # What is in the store already stays known: a file that was written before the failure names it.
                reached = regenerations.find(self.store.database, begun.id) or begun
                failed = reached.replace(
                    result="failed",
                    reason=self._line(error.message, 500),
                    cost_usd=calls.spent_on(self.store.database, begun.id),
                    finished_at=self._clock(),
                )
                regenerations.put(self.store.database, failed)
                if reached.result == "running":
                    counters.add(self.store.database, counters.TASKS_SINCE_UPDATE, -counted)
        except LearntError:
            return  # the first error tells the story

    def _written(self, readings: Sequence[Reading], begun: Regeneration, window: int | None, counted: int) -> Update:
        """Change the store and write the files; begin again when somebody changes a file meanwhile."""
        for _ in range(_HURRIES):
            files = self._files()
            with self.store.transaction():
                update, made = self._made(self.store.database, files, readings, begun, window)
                for regeneration in made:
                    regenerations.put(self.store.database, regeneration)
                counters.add(self.store.database, counters.TASKS_SINCE_UPDATE, -counted)
            readings, counted = (), 0  # they are in the store now
            if all(_replace(file.path, file.found, file.after) for file in update.files if file.is_new):
                return update
        raise TryAgain("somebody keeps changing the learnings files", hint="save them, then `learnt update`")

    def _made(
        self,
        database: Database,
        files: Sequence[_Merged],
        readings: Sequence[Reading],
        begun: Regeneration,
        window: int | None,
    ) -> tuple[Update, list[Regeneration]]:
        """Within a transaction: take everything in; return what comes of it, and what is to be recorded."""
        taught = tuple(self._take_in(database, reading) for reading in readings)
        mined.drop_older_material(database, self._window(database, window, None))
        remarks = self._take_over(database, files)
        made = [self._filed(database, file, begun, window) for file in self._with_new_goals(database, files)]
        cost = calls.spent_on(database, begun.id)
        update = Update(
            id=begun.id,
            files=tuple(file for file, _ in made),
            mined=taught,
            edits=sum(_number(file.edits) for file in files),
            cost_usd=cost,
            remarks=(*remarks, *(_no_room(file) for file, _ in made if file.crowded)),
        )
        return update, [
            record.replace(cost_usd=cost if record.id == begun.id else None)
            for file, record in made
            if file.is_new or not file.goal
        ]

    def _filed(
        self, database: Database, file: _Merged, begun: Regeneration, window: int | None
    ) -> tuple[File, Regeneration]:
        """Within a transaction: return a file as it should be, and what is to be recorded of it."""
        rendering, tasks = self._rendered(database, file, begun, window)
        says = file.parsed.replace(rendering="")
        # A file must name what it shows: beside an older rendering, what was removed once would be so again and again.
        is_new = file.base is None or file.base.bullets != rendering.bullets or file.safe != file.text
        is_new = is_new or parse(rendering.text).replace(rendering="") != says
        is_new = is_new or (not rendering.crowded and estimate_tokens(file.text) > self.settings.learnings_max_tokens)
        if file.before is None and not rendering.bullets:
            is_new = False  # there is nothing to show yet
        delta = churn(file.base, rendering)
        made = File(
            goal=file.goal,
            path=file.path,
            found=file.before,
            before=file.text,
            after=rendering.text if is_new else file.text,
            delta=delta,
            left_out=rendering.left_out,
            crowded=rendering.crowded,
        )
        return made, _kept(begun, rendering, delta, tasks=tasks, same=not is_new, at=self._clock())

    def _rendered(
        self, database: Database, file: _Merged, begun: Regeneration, window: int | None
    ) -> tuple[Rendering, int]:
        """Within a transaction: return a file as it should be, and from how many tasks."""
        from learnt.weigh.impact import impact
        from learnt.weigh.stage import stage

        goal = file.goal if self._has_goal_files() else None
        tasks = self._window(database, window, goal)
        since = mined.began(database, tasks)
        cared_for = learnings.cared_for(database)
        chosen = select(
            learnings.for_file(database, tasks=tasks, since=since, goal=goal, cared_for=cared_for),
            window_tasks=frozenset(tasks),
            since_ms=since,
            cared_for=cared_for,
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
        folder = os.path.join(self.root, STORE_FOLDER, FOLDER_OF_GOALS)
        if os.path.isdir(folder):
            goals += sorted(name.removesuffix(".md") for name in os.listdir(folder) if name.endswith(".md"))
        files = []
        for goal in goals:
            path = self.memory.learnings_path(goal)
            file = _Merged(goal, path, read_file(path))
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
        return [*files, *(_Merged(goal, self.memory.learnings_path(goal), None) for goal in new)]

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
                known_text=partial(regenerations.was_shown, database),
                find=partial(_same_line, database),
            )
            self._apply(database, file, standing)
            remarks += file.edits.remarks
        return remarks

    def _apply(self, database: Database, file: _Merged, standing: dict[str, str]) -> None:
        """Within a transaction: do what was done to one file; `standing`: in which file each learning now is."""
        now = self._clock()
        name = os.path.basename(file.path)
        for section, text in file.edits.added:
            record = {**fields_of(text), "category": category_of(section), "goal": file.goal}
            added = self.memory._new_learning(record, created_at=now)
            learnings.add(database, added, self.memory._change("add", at=now, reason=name))
        decided = [(id, _reworded(self._line(text, TEXT_LIMIT))) for id, text in file.edits.changed]
        decided += [(id, _set(category=category)) for id, category in file.edits.moved]
        decided += [(id, _set(goal=standing[id])) for id in file.edits.removed if id in standing]
        for id, decide in decided:
            learnings.change(database, id, decide, self.memory._change("edit", at=now, reason=name))
        for id in file.edits.removed:
            if id not in standing:
                change = self.memory._change("hide", at=now, reason=f"removed from {name}")
                learnings.change(database, id, _set(status="hidden"), change)


def _set(**fields: str) -> Callable[[Learning], dict[str, Any]]:
    return lambda _: fields


def _reworded(text: str) -> Callable[[Learning], dict[str, Any]]:
    return lambda learning: dict(edited(learning, text))


def _begun(cause: str, now: int) -> Regeneration:
    return Regeneration(id=new_id("r", now), cause=cause, started_at=now)


def _kept(begun: Regeneration, rendering: Rendering, delta: Delta, *, tasks: int, same: bool, at: int) -> Regeneration:
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


def _no_room(file: File) -> str:
    return f"{file.path} holds so much text beside its bullets that there is no room for any"


def _number(edits: Edits) -> int:
    return len(edits.added) + len(edits.changed) + len(edits.removed) + len(edits.moved)


def _within(text: str, max_tokens: int) -> str:
    """Return as many of the first lines as the bound allows."""
    lines = text.split("\n")
    while lines and estimate_tokens("\n".join(lines)) > max_tokens:
        lines.pop()
    return "\n".join(lines)


def _refuse_open(path: str) -> None:
    """Raise when an editor has a file open with changes that are not saved, as far as editors leave a sign of it."""
    folder, name = os.path.split(path)
    for sign in (f".{name}.swp", f".#{name}"):
        if os.path.lexists(os.path.join(folder, sign)):
            raise TryAgain(f"{path} is open in an editor", hint=f"save and close it, or remove {sign} if nobody has it")


def _replace(path: str, before: bytes | None, text: str) -> bool:
    """Write a file whole; False, and nothing is written, when it is not any more what it was."""
    path = os.path.realpath(path)
    unfinished = f"{path}.new"  # one name, so that what a killed update left goes with the next
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        mode = os.stat(path).st_mode & 0o777 if before is not None and os.path.exists(path) else 0o644
        with open(os.open(unfinished, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, mode), "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        if read_file(path) != before:
            os.unlink(unfinished)
            return False
        os.replace(unfinished, path)
    except OSError as error:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
        raise cannot_write(path, error, hint="check who owns the folder and its files") from None
    return True
