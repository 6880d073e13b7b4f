"""learnings.md: what the project has learnt, in a file that people and the program share.

An update mines what finished tasks left, each in a transaction of its own; then, in one more, it takes over what people
did to the files. They are written after that, whole or not at all, and never over something that was not read. Killed
at any point, the next update finds the same file, or the new one, and repeats nothing.

In the background the same happens in a process of its own: detached, one at a time, with a time limit.
"""

from __future__ import annotations

import os
import platform
import time
from functools import partial
from itertools import accumulate

from learnt.brief.render import EVIDENCE
from learnt.errors import LearntError, TryAgain, WrongRequest
from learnt.flow import disk
from learnt.flow.background import (
    KILLED,
    State,
    is_updating,
    latest,
    refuse_without_project,
    state,
    update_when_due,
)
from learnt.flow.learnings import new_learning
from learnt.flow.mining import NO_HURRY_S, Mined, Mining
from learnt.learnings_file import (
    Bullet,
    Delta,
    Edits,
    LooseText,
    ParsedFile,
    Rendering,
    category_of,
    compare_renderings,
    diff,
    edit_fields,
    fields_of,
    line_of,
    lines_for_prompt,
    merge,
    parse,
    render,
    same_text,
    says_otherwise,
    select,
)
from learnt.model import AVOID, TEXT_LIMIT, Value, new_id
from learnt.store import calls, counters, learnings, mined, regenerations
from learnt.store.regenerations import Regeneration
from learnt.text.redact import redact
from learnt.text.tokens import estimate_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from learnt.model import Learning, Task
    from learnt.store.database import Database

_HURRIES = 5
_ALL_TASKS = 1_000_000
# What was not mined, for want of a model or of time, is kept for so many tasks, and so long.
_KEPT_TASKS = 100
_KEPT_MS = 30 * 24 * 3600 * 1000
# How much longer than its limit an update on another machine may be believed to run.
_LEASE_S = 120


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


class Taken(Value):
    """An edit that was taken over from a file: a bullet was `added`, `changed`, `moved` or `hidden`."""

    what: str
    id: str
    text: str


class Update(Value):
    """What an update did, or would do."""

    id: str
    files: tuple[File, ...] = ()
    mined: tuple[Mined, ...] = ()
    taken: tuple[Taken, ...] = ()
    """The edits of people that were taken over from the files."""
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
        self.text = (before or b"").decode("utf-8")
        # What is stored has no secrets: only without them are texts the same.
        self.safe, self.redactions = redact(self.text)
        self.parsed: ParsedFile = parse(self.safe)
        self.base: Rendering | None = None
        self.edits = Edits()
        self.taken: list[Taken] = []


class LearningsFile(Mining):
    """learnings.md of a project, and those of its goals."""

    def path(self, goal: str = "") -> str:
        """Return where the file of the project, or of a goal, is: each worktree has its own."""
        return disk.path_of(self.root, goal)

    def read(self, goal: str = "") -> str | None:
        """Return the text of a learnings file; None when there is none."""
        refuse_without_project(self.context)
        content = disk.read(disk.path_of(self.root, goal), self.root)
        return None if content is None else content.decode("utf-8")

    def state(self) -> State:
        """Return how old the learnings files are, and whether an update is due or running."""
        return state(self.store, self.settings)

    def regenerations(self, *, limit: int = 50) -> list[Regeneration]:
        """Return the latest updates of learnings files, the newest first."""
        return latest(self.store, limit=limit)

    def is_updating(self) -> bool:
        """Say whether an update runs at this moment.

        This takes the update lock for an instant: ask only if the state says that one is running.
        """
        return is_updating(self.store)

    def update_when_due(self) -> None:
        """Start an update in the background if enough tasks are done and none is running."""
        update_when_due(self.context)

    def update(
        self, *, window: int | None = None, dry_run: bool = False, cause: str = "person", limit_s: float = NO_HURRY_S
    ) -> Update:
        """Mine what finished tasks left, take over what people did to the files, and write them anew.

        `window`: how many recent tasks count. `dry_run`: only look; a model is then not asked. When a model fails,
        the file and what is known stay as they are, the reason is kept, and what it said of other tasks before as well.
        """
        refuse_without_project(self.context)
        if window is not None and not 1 <= window <= _ALL_TASKS:
            raise WrongRequest(f"there is no window of {window} tasks", hint=f"give a number from 1 to {_ALL_TASKS:,}")
        deadline = time.monotonic() + limit_s
        with disk.alone(self.store):
            if dry_run:
                return self._previewed(window, deadline)
            return self._updated(window, cause, deadline)

    def take_over(self, *, agent: str = "") -> Update | None:
        """Take over what was done to the files since they were written; None when nothing was.

        `agent`: who did it, where it was no person. What an agent adds is on trial; what it changes or removes is put
        back.
        """
        if not self.root or not any(os.path.lexists(path) for path in disk.paths(self.root)):
            return None
        files = self._files()
        if all(file.before is None or self._is_as_written(file) for file in files):
            return None
        with disk.alone(self.store):
            begun = _begun("edit", self._clock())
            with self.store.transaction():
                self._begin(begun)
            return self._written((), begun, None, 0, agent=agent)

    def _is_as_written(self, file: _Merged) -> bool:
        made = regenerations.find(self.store.database, file.parsed.rendering) if file.parsed.rendering else None
        return made is not None and made.text == file.text

    def clear(self) -> list[str]:
        """Delete the learnings files, after taking over what people did to them; return which there were.

        The learnings stay: the next update writes them again.
        """
        refuse_without_project(self.context)
        with disk.alone(self.store):
            gone: list[str] = []
            while files := [file for file in self._files() if file.before is not None]:
                with self.store.transaction():
                    self._take_over(self.store.database, files)
                for file in files:
                    if disk.read(file.path, self.root) == file.before:  # else somebody has just saved it: once more
                        os.unlink(file.path)
                        gone.append(file.path)
        return gone

    def for_prompt(self, task: Task) -> tuple[str, tuple[str, ...]]:
        """Return the text of the learnings files that the prompt of a task carries, and the ids of what it gives.

        What is not active any more is left out, also while a file still shows it. Two files share the bound.
        """
        strategy = self.settings.learnings_injection_strategy
        if strategy == "none" or task.skip_learnings or not self.root:
            return "", ()
        goals = {"global_only": [""], "task_group": [task.goal], "both": [task.goal, ""]}[strategy]
        texts = [redact(self.read(goal) or "")[0] for goal in dict.fromkeys(goals)]
        ids = {bullet.id for text in texts for bullet in parse(text).bullets if bullet.id}
        known = learnings.get_all(self.store.database, sorted(ids))

        def is_given(bullet: Bullet) -> bool | None:
            if bullet.id in known:
                return known[bullet.id].status == "active"
            # Else it was purged, or it is of another store, and nobody has taken it over yet.
            return False if regenerations.was_shown(self.store.database, bullet.id, bullet.text) else None

        files = [lines_for_prompt(text, is_given) for text in texts if text.strip()]
        files = _within(files, self.settings.learnings_max_tokens)
        shown = ["\n".join(line for line, _ in lines).strip() for lines in reversed(files)]
        text = "\n\n".join(part for part in shown if part)
        given = dict.fromkeys(id for lines in files for _, id in lines if id)
        return f"{EVIDENCE}\n\n{text}" if text else "", tuple(given)

    def _previewed(self, window: int | None, deadline: float) -> Update:
        waiting = self._waiting(window)
        files = self._files()
        try:
            with self.store.transaction():
                rules = () if self.asks_a_model else waiting
                database = self.store.database
                taught = [self._take_in(database, self._read_task(id, deadline)) for id in rules]
                begun = _begun("person", self._clock())
                raise _Preview(self._made(database, files, taught, begun, window)[0])
        except _Preview as preview:
            return preview.update.replace(waiting=len(waiting) if self.asks_a_model else 0)

    def _updated(self, window: int | None, cause: str, deadline: float) -> Update:
        begun = _begun(cause, self._clock())
        with self.store.transaction():
            self._begin(begun)
            counted = counters.value(self.store.database, counters.TASKS_SINCE_UPDATE)
        taught: list[Mined] = []
        try:
            self._files()  # what is in the way of writing them must not cost a call to a model
            for id in self._waiting(window):
                # One after the other: each is known to the next.
                reading = self._read_task(id, deadline)
                if cause == "count" and self._was_asked_lately(reading.task):
                    continue
                reading = self._understood(reading, begun.id, deadline - time.monotonic())
                with self.store.transaction():
                    taught.append(self._take_in(self.store.database, reading))
            return self._written(taught, begun, window, counted)
        except LearntError as error:
            self._keep_failure(begun, error, counted)
            raise

    def _begin(self, begun: Regeneration) -> None:
        """Within a transaction: write down that an update runs. Raise when one runs on another machine."""
        database = self.store.database
        if self.store.place.address:
            database.lock_spending()
            lease_ms = (self.settings.learnings_time_limit_s + _LEASE_S) * 1000
            if regenerations.is_running_elsewhere(database, host=platform.node(), since=begun.started_at - lease_ms):
                raise TryAgain("the learnings files are being made on another machine", hint="wait, then try again")
        regenerations.end_running(database, at=begun.started_at, reason=KILLED)
        regenerations.put(database, begun.replace(reason=platform.node()))

    def _keep_failure(self, begun: Regeneration, error: LearntError, counted: int) -> None:
        """Keep why an update failed; it is tried again after as many tasks."""
        try:
            with self.store.transaction():
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
                    self._count_down(counted)
        except LearntError:
            return  # the first error tells the story

    def _count_down(self, counted: int) -> None:
        """Within a transaction: let the tasks count anew from now, but for those that were finished meanwhile."""
        counters.add(self.store.database, counters.TASKS_SINCE_UPDATE, -counted)
        counters.reset(self.store.database, counters.UPDATE_STARTED_AT)

    def _written(
        self,
        taught: Sequence[Mined],
        begun: Regeneration,
        window: int | None,
        counted: int,
        *,
        agent: str = "",
    ) -> Update:
        """Change the store and write the files; begin again when somebody changes a file meanwhile."""
        for _ in range(_HURRIES):
            files = self._files()
            with self.store.transaction():
                update, made = self._made(self.store.database, files, taught, begun, window, agent=agent)
                for regeneration in made:
                    regenerations.put(self.store.database, regeneration)
                self._count_down(counted)
            counted = 0
            if all(disk.replace(file.path, self.root, file.found, file.after) for file in update.files if file.is_new):
                return update
        raise TryAgain("somebody keeps changing the learnings files", hint="save them, then `learnt update`")

    def _made(
        self,
        database: Database,
        files: Sequence[_Merged],
        taught: Sequence[Mined],
        begun: Regeneration,
        window: int | None,
        *,
        agent: str = "",
    ) -> tuple[Update, list[Regeneration]]:
        """Within a transaction: take over what was done to the files; return them anew, and what is to be recorded."""
        longest = max(_KEPT_TASKS, self.settings.learnings_window_size, self.settings.learnings_goal_window_size)
        kept = mined.recent_tasks(database, limit=longest)
        mined.drop_older_material(database, kept, before=begun.started_at - _KEPT_MS)
        remarks = self._take_over(database, files, agent=agent)
        made = [self._filed(database, file, begun, window) for file in self._with_new_goals(database, files)]
        cost = calls.spent_on(database, begun.id)
        skipped = sum(len(one.skipped) for one in taught)
        update = Update(
            id=begun.id,
            files=tuple(file for file, _ in made),
            mined=tuple(taught),
            taken=tuple(one for file in files for one in file.taken),
            cost_usd=cost,
            remarks=(*remarks, *(_no_room(file) for file, _ in made if file.crowded)),
        )
        return update, [
            record.replace(cost_usd=cost, skipped=skipped) if record.id == begun.id else record
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
        delta = compare_renderings(file.base, rendering)
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
        from learnt.weigh.confidence import impact, stage

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
        if self._has_goal_files():
            recent += [id for goal in mined.goals(database) for id in self._window(database, window, goal)]
        return [id for id in reversed(dict.fromkeys(recent)) if mined.material_of(database, id)]

    def _window(self, database: Database, window: int | None, goal: str | None) -> list[str]:
        """Return the recent tasks that count; `goal`: for the file of a goal, or with an empty one, of none."""
        settings = self.settings
        size = window or (settings.learnings_goal_window_size or _ALL_TASKS if goal else settings.learnings_window_size)
        return mined.recent_tasks(database, limit=size, goal=goal)

    def _has_goal_files(self) -> bool:
        return self.settings.learnings_injection_strategy in ("task_group", "both")

    def _files(self) -> list[_Merged]:
        """Return the files that are there, and the project's own in any case, as people left them."""
        files = []
        for goal in ("", *disk.goals(self.root)):
            path = disk.path_of(self.root, goal)
            file = _Merged(goal, path, disk.read(path, self.root))
            if file.parsed.conflict:
                raise WrongRequest(
                    f"{path} holds the markers of a merge conflict", hint="resolve it, keeping either of two last lines"
                )
            disk.refuse_open(path)
            files.append(file)
        return files

    def _with_new_goals(self, database: Database, files: Sequence[_Merged]) -> list[_Merged]:
        """Within a transaction: return the files, with one for each goal that has learnings and none yet."""
        if not self._has_goal_files():
            return [file for file in files if not file.goal]
        known = {file.goal for file in files}
        new = [goal for goal in learnings.goals(database) if goal and goal not in known]
        return [*files, *(_Merged(goal, disk.path_of(self.root, goal), None) for goal in new)]

    def _take_over(self, database: Database, files: Sequence[_Merged], *, agent: str = "") -> list[str]:
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
            self._apply(database, file, standing, agent=agent)
            remarks += file.edits.remarks
            if agent and (file.edits.changed or file.edits.moved or file.edits.removed):
                remarks.append(f"what an agent changed or removed in {file.path} was put back")
        return remarks

    def _apply(self, database: Database, file: _Merged, standing: dict[str, str], *, agent: str = "") -> None:
        """Within a transaction: do what was done to one file; `standing`: in which file each learning now is."""
        now = self._clock()
        name = os.path.basename(file.path)
        self.context.redactions += file.redactions
        for section, text, id in file.edits.added:
            record = {**fields_of(text), "category": category_of(section), "goal": file.goal}
            record |= {"origin": "agent"} if agent else {"origin": "import"} if id else {}
            added = new_learning(self.context, record, created_at=now)
            added = added.replace(id=id) if id else added
            learnings.add(database, added, self.context.change("add", at=now, reason=name))
            file.taken.append(Taken(what="added", id=added.id, text=text))
        if agent:
            return
        edits = [("changed", id, _reworded(self._line(text, TEXT_LIMIT))) for id, text in file.edits.changed]
        edits += [("moved", id, _set(category=category)) for id, category in file.edits.moved]
        edits += [("moved", id, _set(goal=standing[id])) for id in file.edits.removed if id in standing]
        edits += [("hidden", id, _set(status="hidden")) for id in file.edits.removed if id not in standing]
        for what, id, decide in edits:
            base = file.base.id if file.base else ""
            verb, reason = ("hide", f"removed from {name} ({base})") if what == "hidden" else ("edit", name)
            if what == "hidden" and any(event.reason == reason for event in learnings.history(database, id)):
                continue  # taken over before the file could be written, and somebody brought it back since
            change = self.context.change(verb, at=now, reason=reason)
            before, after = learnings.change(database, id, decide, change)
            if after.version != before.version:
                file.taken.append(Taken(what=what, id=id, text=line_of(after)))


def _set(**fields: str) -> Callable[[Learning], dict[str, Any]]:
    return lambda _: fields


def _reworded(text: str) -> Callable[[Learning], dict[str, Any]]:
    """Let a bullet say this; advice that belonged to another statement goes."""

    def decide(learning: Learning) -> dict[str, Any]:
        changes: dict[str, Any] = dict(edit_fields(learning, text))
        if changes and says_otherwise(line_of(learning), text):
            changes |= {"implication": "", "action": ""}
        return changes

    return decide


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
        loose=tuple(LooseText(section=section, text=text, below=below) for section, text, below in regeneration.loose),
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


def _within(files: Sequence[list[tuple[str, str]]], max_tokens: int) -> list[list[tuple[str, str]]]:
    """Return as many of the first lines of each file as the bound for all allows: an equal share, or what is left."""
    costs = [[estimate_tokens(f"{line}\n") for line, _ in lines] for lines in files]
    room, kept = max_tokens - len(files), []  # the files are parted by an empty line
    for place, lines in enumerate(files):
        others = sum(map(sum, costs[place + 1 :]))
        share = max(room // (len(files) - place), room - others)
        fitting = sum(total <= share for total in accumulate(costs[place]))
        kept.append(lines[:fitting])
        room -= sum(costs[place][:fitting])
    return kept
