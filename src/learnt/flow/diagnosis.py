"""Examine a store: its database, pending records, permissions, learnings file, and the hooks' and worker's logs.

Nothing is changed. Each part is examined separately, so a broken part does not stop the examination.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Self

from learnt import __version__, trust
from learnt.config import Configuration
from learnt.errors import LearntError, TryAgain, make_writable
from learnt.flow import agent_categories, background, disk
from learnt.flow.context import examine_trust, own_place, source_place, user_place
from learnt.flow.vectors import measure_progress
from learnt.learnings_file.read import parse
from learnt.model import Task, Value
from learnt.project import HOOK_LOG, Project
from learnt.settings import Settings
from learnt.store import Place, Store, activity, deliveries, fired, has_unfinished_purge, learnings, tasks
from learnt.store.activity import ActivityEntry
from learnt.store.deliveries import Deliveries
from learnt.store.fired import Fired
from learnt.store.index import Filter
from learnt.store.mirror import Mirror
from learnt.store.sqlite import SqliteDatabase
from learnt.system.files import check_file, exists, read_end
from learnt.text.times import DAY_MS, MONTH_MS

Clock = Callable[[], int]
_MAX_LOG_BYTES = 1_000_000
_DATABASE = "database"  # in the message of a worker that could not use it
_LOCK_PATIENCE_MS = 1_000
_OWN_ERROR = "an error in learnt itself"
_MIN_FREE_BYTES = 100 * 1024 * 1024
# The prefixes of private files' names. Files for people, such as learnings.md, may be readable by other users.
_PRIVATE = ("learnt.db", "mirror", "spool", "backups", "settings", "hook", "fired", "errands", "worker")
# The meaning of each error that can be raised while an event is parsed.
_UNREADABLE_EVENTS = {
    "JSONDecodeError": "a client sent something that is not JSON",
    "RecursionError": "a client sent JSON that is nested too deeply",
    "ValueError": "a client sent a number that cannot be read",
}


class Diagnosis(Value):
    """The result of one check."""

    subject: str
    fine: bool
    detail: str
    remedy: str = ""
    facts: Mapping[str, Any] = {}
    """A client's state as JSON fields; only set for a client."""

    @classmethod
    def healthy(cls, subject: str, detail: str) -> Self:
        """Return a diagnosis without a problem."""
        return cls(subject=subject, fine=True, detail=detail)

    @classmethod
    def problem(cls, subject: str, detail: str, remedy: str) -> Self:
        """Return a diagnosis of what is wrong and what to do about it."""
        return cls(subject=subject, fine=False, detail=detail, remedy=remedy)

    @classmethod
    def from_error(cls, subject: str, error: LearntError) -> Self:
        """Return a diagnosis with an error's message and remedy."""
        return cls.problem(subject, error.message, error.hint)


class StoreCheck:
    """Examines one store, which may be missing or damaged."""

    def __init__(self, place: Place, clock: Clock) -> None:
        self._place = place
        self._clock = clock

    @classmethod
    def of_project(cls, here: Project, settings: Settings, clock: Clock) -> Self:
        """Return a check of a project's own store; raise if the project is not trusted."""
        standing = examine_trust(here, dict(os.environ))
        trust.require_trust(standing)
        return cls(own_place(here, settings).replace(id=standing.id), clock)

    @classmethod
    def of_user(cls, settings: Settings, clock: Clock) -> Self:
        """Return a check of the user-wide store."""
        return cls(user_place(settings), clock)

    @classmethod
    def of_source(cls, path: str, clock: Clock) -> Self:
        """Return a check of another project's store that is listed in `sources`; raise if it cannot be read."""
        return cls(source_place(path), clock)

    @property
    def folder(self) -> str:
        """The store's folder."""
        return self._place.folder

    @property
    def scope(self) -> str:
        """The store's name among the stores that a project reads."""
        return self._place.scope

    def exists(self) -> bool:
        """Return whether the store exists."""
        return self._place.exists()

    def examine(self, subject: str, *, hooks_answer: bool = False) -> Iterator[Diagnosis]:
        """Yield what is found about the database and the folder. `hooks_answer`: a hook that was tried has answered."""
        try:
            with self._open() as store:
                yield from _examine_database(subject, store)
        except LearntError as error:
            yield Diagnosis.from_error(subject, error)
            if not self.exists():
                return
        try:
            yield from _examine_folder(subject, self._place, self._clock, hooks_answer=hooks_answer)
        except OSError as error:
            detail = f"cannot read {error.filename}: {error.strerror}"
            yield Diagnosis.problem(subject, detail, make_writable(self.folder))

    def examine_agents(self, configuration: Configuration) -> Iterator[Diagnosis]:
        """Yield mismatches between the agents' categories and the existing learnings and agents."""
        try:
            with self._open() as store:
                for remark in agent_categories.check_categories(store.database, configuration):
                    yield Diagnosis(subject="agents", fine=remark.fine, detail=remark.detail, remedy=remark.remedy)
        except LearntError:
            return  # `examine` reports why the store cannot be read

    def examine_encoder(self, settings: Settings) -> Iterator[Diagnosis]:
        """Yield how many learnings have vectors of the configured encoder, or why it cannot be used."""
        try:
            with self._open() as store:
                progress = measure_progress(store, settings)
        except LearntError as error:
            yield Diagnosis.from_error("encoder", error)
            return
        if progress is not None:
            rest = "" if progress.done >= progress.total else "; the worker makes the others"
            detail = f"{progress.done:,} of {progress.total:,} learnings have vectors of {progress.model}{rest}"
            yield Diagnosis.healthy("encoder", detail)

    @staticmethod
    def examine_learnings_file(root: str) -> Iterator[Diagnosis]:
        """Yield a problem if the project's learnings.md has a merge conflict or cannot be read."""
        path = disk.path_of(root)
        try:
            content = disk.read(path)
        except LearntError as error:
            yield Diagnosis.from_error(disk.FILE, error)
            return
        if content is not None and parse(content.decode("utf-8")).conflict:
            detail = f"{path} has the markers of a merge conflict"
            yield Diagnosis.problem(disk.FILE, detail, "resolve the conflict, then run `learnt update`")

    def queued_tasks(self) -> list[Task]:
        """Return the tasks in the queue; an empty list if the store cannot be read, which `examine` reports."""
        try:
            with self._open() as store:
                return tasks.select(store.database)
        except LearntError:
            return []

    def last_brief(self, client: str) -> ActivityEntry | None:
        """Return the last brief that was given in a client; None if there is none or the store cannot be read."""
        try:
            with self._open() as store:
                return next(iter(activity.latest(store.database, limit=1, what="brief", client=client)), None)
        except LearntError:
            return None

    def latest_deliveries(self) -> list[Deliveries]:
        """Return for each client how many briefs of its latest conversation reached the agent; none if unreadable."""
        try:
            with self._open() as store:
                return deliveries.count_latest(store.database, since=self._clock() - MONTH_MS)
        except LearntError:
            return []

    def last_events(self) -> dict[str, Fired]:
        """Return the last event of each client whose hooks were called here."""
        return fired.read(self.folder)

    def can_record_events(self) -> bool:
        """Return whether hooks can record their calls in the store's folder, or need not because it is missing."""
        events = os.path.join(self.folder, fired.FOLDER)
        writable = os.access(events if os.path.isdir(events) else self.folder, os.W_OK)
        return writable or not os.path.isdir(self.folder)

    @contextmanager
    def _open(self) -> Iterator[Store]:
        store = Store(self._place.replace(read_only=True), version=__version__, clock=self._clock)
        try:
            yield store
        finally:
            store.close()


def _examine_folder(subject: str, place: Place, clock: Clock, *, hooks_answer: bool) -> Iterator[Diagnosis]:
    if not os.path.isdir(place.folder):
        return  # with a database server, the folder is created when the first record is spooled
    yield from _report_unusable(f"{subject}: lock", _examine_lock, place)
    yield from _report_unusable(f"{subject}: spool", _examine_spool, place)
    yield from _report_unusable(subject, _examine_purges, place)
    yield from _report_unusable(f"{subject}: permissions", _examine_permissions, place)
    examine_hooks = partial(_examine_hook_log, clock=clock, hooks_answer=hooks_answer)
    yield from _report_unusable(f"{subject}: hook", examine_hooks, place)
    yield from _report_unusable(f"{subject}: worker", _examine_worker, place)
    if place.address and not place.read_only:
        yield _examine_mirror(f"{subject}: mirror", place, clock)
    yield from _examine_space(f"{subject}: disk", place.folder)


def _report_unusable(
    subject: str, examine: Callable[[str, Place], Iterator[Diagnosis]], place: Place
) -> Iterator[Diagnosis]:
    """Yield the findings of an examination, or that a file which it needs cannot be used."""
    try:
        yield from examine(subject, place)
    except OSError as error:
        remedy = "look at it, then remove it or put a file of your own in its place"
        yield Diagnosis.problem(subject, f"cannot use {error.filename or place.folder}: {error.strerror}", remedy)


def _examine_purges(subject: str, place: Place) -> Iterator[Diagnosis]:
    if has_unfinished_purge(place.folder):
        remedy = "repeat the `learnt purge ID` that was interrupted"
        yield Diagnosis.problem(subject, "a purge was not finished", remedy)


def _examine_database(subject: str, store: Store) -> Iterator[Diagnosis]:
    database = store.database
    count = learnings.count(database, Filter(status=None))
    versions = ", ".join(f"{name} {version}" for name, version in database.versions().items())
    learnings_and_schema = f"{count:,} learning{'' if count == 1 else 's'}, schema {database.schema_number()}"
    yield Diagnosis.healthy(subject, f"{database.path}: {learnings_and_schema}, {versions}")
    damage = store.check()
    if damage:
        remedy = "restore a backup: `learnt backup --restore FILE` keeps a copy of the damaged file"
        yield Diagnosis.problem(f"{subject}: integrity", "; ".join(damage[:3]), remedy)
    else:
        yield Diagnosis.healthy(f"{subject}: integrity", "ok")


def _examine_lock(subject: str, place: Place) -> Iterator[Diagnosis]:
    """Yield a problem if another process does not let anybody write."""
    if _can_write(place) is False:
        detail = f"another process keeps {place.local_path} locked, so that hooks cannot record anything"
        yield Diagnosis.problem(
            subject, detail, f"`fuser {place.local_path}` names the process; wait for it, or end it"
        )


def _can_write(place: Place) -> bool | None:
    """Return whether the database can be written to now; None if it cannot be tried."""
    if check_file(place.local_path) is None or not os.access(place.local_path, os.W_OK):
        return None
    try:
        database = SqliteDatabase(place.local_path, wait_ms=_LOCK_PATIENCE_MS)
    except LearntError:
        return None  # `examine` reports why the database cannot be opened
    try:
        with database.transaction():
            return True  # nothing is written
    except TryAgain:
        return False
    except LearntError:
        return None
    finally:
        database.close()


def _examine_spool(subject: str, place: Place) -> Iterator[Diagnosis]:
    spool = place.spool()
    pending, refused, elsewhere = len(spool.pending()), spool.refused(), spool.pending_for_others()
    if refused:
        detail = f"{_format_records(refused)} could not be applied"
        yield Diagnosis.problem(subject, detail, f"check {spool.refused_path}, then delete it")
    if pending:
        detail = f"{_format_records(pending)} pending"
        remedy = "`learnt list` applies them, once the database can be written"
        yield Diagnosis.problem(subject, detail, remedy)
    if elsewhere:
        detail = f"{_format_records(elsewhere)} pending for a database that is not the configured one"
        remedy = f"configure that database again to apply them, or delete them in {place.folder}"
        yield Diagnosis.problem(subject, detail, remedy)
    if not refused and not pending and not elsewhere:
        yield Diagnosis.healthy(subject, "empty")


def _format_records(count: int) -> str:
    return f"{count} record{'' if count == 1 else 's'}"


def _examine_permissions(subject: str, place: Place) -> Iterator[Diagnosis]:
    folder = place.folder
    if not exists(os.path.join(folder, ".gitignore")):
        yield Diagnosis.problem(subject, f"{folder} has no .gitignore", "`learnt init` writes it again")
    if sys.platform == "win32":
        return
    with os.scandir(folder) as entries:
        modes = {
            entry.path: entry.stat(follow_symlinks=False).st_mode
            for entry in entries
            if entry.name.startswith(_PRIVATE)
        }
    readable = sorted(path for path, mode in modes.items() if stat.S_IMODE(mode) & 0o077)
    # Others may list the folder, because each private file has its own mode, but must not write to it.
    changeable = sorted(path for path, mode in {**modes, folder: os.stat(folder).st_mode}.items() if mode & 0o022)
    is_closed = not all(os.access(path, os.W_OK) for path in (folder, place.path) if os.path.exists(path))
    if is_closed:
        detail = f"{folder} is read-only, so that hooks say nothing and record nothing"
        yield Diagnosis.problem(subject, detail, make_writable(folder))
    if readable or changeable:
        verb = "change" if changeable else "read"
        exposed = f"others can {verb} {', '.join(changeable or readable)}"
        yield Diagnosis.problem(subject, exposed, f"`chmod -R go= {folder}`")
    elif not is_closed:
        yield Diagnosis.healthy(subject, "private")


def _examine_hook_log(subject: str, place: Place, clock: Clock, *, hooks_answer: bool) -> Iterator[Diagnosis]:
    """Yield the last failure of a hook; it is over if it is old, or a hook has answered since.

    A hook that is only tried does not serve its event, so that it does not disprove an error in learnt itself.
    """
    path = os.path.join(place.folder, HOOK_LOG)
    if not exists(path):
        return
    lines = _read_log(path)
    if not lines:
        yield Diagnosis.healthy(subject, "the log is empty")
        return
    last = lines[-1].strip()
    entries = f"{len(lines)} {'entry' if len(lines) == 1 else 'entries'}"
    detail = f"{entries} in the log, the last: {_describe_log_entry(last)}"
    answered = max((event.at for event in fired.read(place.folder).values()), default=0)
    at = _read_moment(last)
    if at < answered or (hooks_answer and not _is_own_error(last)):
        yield Diagnosis.healthy(subject, f"{detail}; hooks have answered since")
    elif at < clock() - DAY_MS:
        yield Diagnosis.healthy(subject, detail)
    else:
        yield Diagnosis.problem(
            subject, detail, f"fix the cause; the next hook that answers ends this alarm; see {path}"
        )


def _read_moment(line: str) -> int:
    """Return when an entry was written, in ms since 1970; 0 if this is unknown."""
    try:
        return int(datetime.fromisoformat(line.partition(" ")[0]).replace(tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        return 0


def _read_log(path: str) -> list[str]:
    return read_end(path, max_bytes=_MAX_LOG_BYTES).decode("utf-8", "replace").splitlines()


def _is_own_error(line: str) -> bool:
    return _OWN_ERROR in _describe_log_entry(line)


def _describe_log_entry(line: str) -> str:
    """Return an entry from the hooks' log, with an error's name replaced by its meaning."""
    moment, _, remark = line.partition(" ")
    name, _, place = remark.partition(": ")
    if not place.startswith("at "):
        return f"{moment} {place}" if name.isidentifier() and place else line  # a sentence, after an error's name
    cause = _UNREADABLE_EVENTS.get(name) if place.startswith("at doors/hook.py") else None
    return f"{moment} {cause or f'{_OWN_ERROR}, {name}'} ({place})"


def _examine_worker(subject: str, place: Place) -> Iterator[Diagnosis]:
    """Yield the worker's last failure, and whether the worker has succeeded since."""
    path = os.path.join(place.folder, background.WORKER_LOG)
    status = check_file(path)
    if status is None or not status.st_size:
        return
    failure = _read_log(path)[-1].strip()
    state, since = background.worker_state(place.folder)
    if state == "done" and since >= status.st_mtime:
        yield Diagnosis.healthy(subject, f"the last run succeeded; the last failed run: {failure}")
        return
    if _DATABASE in failure and not place.spool().pending() and _can_write(place):
        detail = f"the last run failed: {failure}; now it can be written to, and nothing is pending"
        yield Diagnosis.healthy(subject, detail)
        return
    remedy = f"fix the cause; the next turn of a conversation starts the worker again; details are in {path}"
    yield Diagnosis.problem(subject, f"the last run failed: {failure}", remedy)


def _examine_mirror(subject: str, place: Place, clock: Clock) -> Diagnosis:
    """Return the age of the mirror that hooks read; it may be missing if no hook has needed it yet."""
    mirror = Mirror(place.replace(read_only=True), version=__version__, clock=clock)
    try:
        return Diagnosis.healthy(subject, f"refreshed {mirror.age_s():,} s ago")
    except LearntError:
        return Diagnosis.healthy(subject, "no readable mirror yet; the worker creates one when a hook needs it")
    finally:
        mirror.close()


def _examine_space(subject: str, folder: str) -> Iterator[Diagnosis]:
    free = shutil.disk_usage(folder).free
    if free < _MIN_FREE_BYTES:
        yield Diagnosis.problem(subject, f"only {free / 1e6:,.0f} MB are free", "free some disk space")
