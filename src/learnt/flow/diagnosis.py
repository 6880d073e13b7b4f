"""Examine stores: the database, what waits beside it, who may read it, and what hooks and the worker logged.

Nothing here changes anything, and nothing that is broken stops the examination: each part is examined on its own.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from learnt import __version__
from learnt.config import Configuration
from learnt.errors import LearntError
from learnt.flow import agent_categories, background
from learnt.model import Task, Value
from learnt.project import HOOK_LOG
from learnt.store import Place, Store, activity, fired, learnings, tasks, unfinished_purge
from learnt.store.activity import Entry
from learnt.store.index import Filter
from learnt.store.mirror import Mirror

Clock = Callable[[], int]
_LITTLE_SPACE = 100 * 1024 * 1024
# Files for people (learnings.md) may be shared; these may not.
_PRIVATE = ("learnt.db", "mirror", "spool", "backups", "settings", "hook", "fired", "worker")
# What it means when reading what a client sent fails.
_UNREADABLE_EVENTS = {
    "JSONDecodeError": "a client sent what is no JSON",
    "RecursionError": "a client sent JSON that is nested far too deeply",
    "ValueError": "a client sent a number that cannot be read",
}


class Diagnosis(Value):
    """What was found about one thing."""

    subject: str
    fine: bool
    detail: str
    remedy: str = ""
    facts: Mapping[str, Any] = {}
    """Of a client: what is known about it, for programs."""


def fine(subject: str, detail: str) -> Diagnosis:
    """Return that nothing is wrong."""
    return Diagnosis(subject=subject, fine=True, detail=detail)


def wrong(subject: str, detail: str, remedy: str) -> Diagnosis:
    """Return what is wrong, and what to do about it."""
    return Diagnosis(subject=subject, fine=False, detail=detail, remedy=remedy)


def failed(subject: str, error: LearntError) -> Diagnosis:
    """Return what an error says, and its remedy."""
    return wrong(subject, error.message, error.hint)


@contextmanager
def _reading(place: Place, clock: Clock) -> Iterator[Store]:
    store = Store(place.replace(read_only=True), version=__version__, clock=clock)
    try:
        yield store
    finally:
        store.close()


def examine_store(subject: str, place: Place, clock: Clock) -> Iterator[Diagnosis]:
    """Yield what is found about a store and its folder."""
    try:
        with _reading(place, clock) as store:
            yield from _examine_database(subject, store)
    except LearntError as error:
        yield failed(subject, error)
        if not place.exists():
            return
    try:
        yield from _examine_folder(subject, place, clock)
    except OSError as error:
        detail = f"cannot look into {error.filename}: {error.strerror}"
        yield wrong(subject, detail, "check who owns the folder and its files")


def queued_tasks(place: Place, clock: Clock) -> list[Task]:
    """Return the tasks in the queue; none where they cannot be read, which `examine_store` reports."""
    try:
        with _reading(place, clock) as store:
            return tasks.select(store.database)
    except LearntError:
        return []


def last_brief(place: Place, client: str, clock: Clock) -> Entry | None:
    """Return the last brief that was given in a client, as far as the store says."""
    try:
        with _reading(place, clock) as store:
            return next(iter(activity.latest(store.database, limit=1, what="brief", client=client)), None)
    except LearntError:
        return None


def can_note_hooks(folder: str) -> bool:
    """Return whether a hook could leave a note in a store's folder; without a folder, none is missed."""
    notes = os.path.join(folder, fired.FOLDER)
    return os.access(notes if os.path.isdir(notes) else folder, os.W_OK) or not os.path.isdir(folder)


def examine_agents(configuration: Configuration, place: Place, clock: Clock) -> Iterator[Diagnosis]:
    """Yield whether the categories of agents fit the learnings and the agents that exist."""
    try:
        with _reading(place, clock) as store:
            for remark in agent_categories.check_categories(store.database, configuration):
                yield Diagnosis(subject="agents", fine=remark.fine, detail=remark.detail, remedy=remark.remedy)
    except LearntError:
        return  # why the store cannot be read, `examine_store` reports


def _examine_folder(subject: str, place: Place, clock: Clock) -> Iterator[Diagnosis]:
    if not os.path.isdir(place.folder):
        return  # on a server, until something has to wait here
    yield from _examine_spool(f"{subject}: spool", place)
    if unfinished_purge(place.folder):
        yield wrong(subject, "a purge was not finished", "repeat the `learnt purge ID` that was interrupted")
    yield from _examine_permissions(f"{subject}: permissions", place)
    yield from _examine_hook_log(f"{subject}: hook", place.folder)
    yield from _examine_worker(f"{subject}: worker", place.folder)
    if place.address and not place.read_only:
        yield _examine_mirror(f"{subject}: mirror", place, clock)
    yield from _examine_space(f"{subject}: disk", place.folder)


def _examine_database(subject: str, store: Store) -> Iterator[Diagnosis]:
    database = store.database
    count = learnings.count(database, Filter(status=None))
    versions = ", ".join(f"{name} {version}" for name, version in database.versions().items())
    schema = database.schema_number()
    yield fine(subject, f"{database.path}: {count:,} learning{'' if count == 1 else 's'}, schema {schema}, {versions}")
    damage = store.check()
    if damage:
        remedy = "put a backup in its place: `learnt backup --restore FILE` keeps the damaged file aside"
        yield wrong(f"{subject}: integrity", "; ".join(damage[:3]), remedy)
    else:
        yield fine(f"{subject}: integrity", "ok")


def _examine_spool(subject: str, place: Place) -> Iterator[Diagnosis]:
    spool = place.spool()
    waiting, refused, elsewhere = len(spool.pending()), spool.refused(), spool.pending_for_others()
    if refused:
        remedy = f"look at {spool.refused_path}, and delete it when it is dealt with"
        yield wrong(subject, f"{_records(refused)} could not be applied", remedy)
    if waiting:
        remedy = "any other learnt command takes them up when the database can be written"
        yield wrong(subject, f"{_records(waiting)} {'waits' if waiting == 1 else 'wait'}", remedy)
    if elsewhere:
        detail = f"kept for another database than the present one: {_records(elsewhere)}"
        remedy = f"name that database once more, and they are taken up; or delete them in {place.folder}"
        yield wrong(subject, detail, remedy)
    if not refused and not waiting and not elsewhere:
        yield fine(subject, "empty")


def _records(count: int) -> str:
    return f"{count} record{'' if count == 1 else 's'}"


def _examine_permissions(subject: str, place: Place) -> Iterator[Diagnosis]:
    folder = place.folder
    if not os.path.exists(os.path.join(folder, ".gitignore")):
        yield wrong(subject, f"{folder} has lost its .gitignore", "`learnt init` writes it again")
    if sys.platform == "win32":
        return
    with os.scandir(folder) as entries:
        modes = {entry.path: entry.stat().st_mode for entry in entries if entry.name.startswith(_PRIVATE)}
    exposed = sorted(path for path, mode in modes.items() if stat.S_IMODE(mode) & 0o077)
    if os.stat(folder).st_mode & 0o022:
        exposed.append(folder)  # its owner may let others list it; each private file has its own mode
    if exposed:
        yield wrong(subject, f"others can read or change {', '.join(exposed)}", f"`chmod -R go= {folder}`")
    elif not all(os.access(path, os.W_OK) for path in (folder, place.path) if os.path.exists(path)):
        yield wrong(subject, f"{folder} is read-only", "make it writable for you")
    else:
        yield fine(subject, "only yours")


def _examine_hook_log(subject: str, folder: str) -> Iterator[Diagnosis]:
    path = os.path.join(folder, HOOK_LOG)
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = file.readlines()
    if not lines:
        yield fine(subject, "nothing in the log")
        return
    entries = f"{len(lines)} {'entry' if len(lines) == 1 else 'entries'}"
    detail = f"{entries} in the log, the last: {_describe_log_entry(lines[-1].strip())}"
    yield wrong(subject, detail, f"delete {path} when it is dealt with")


def _describe_log_entry(line: str) -> str:
    """Return an entry of the hooks' log, with what the name of an error means."""
    moment, _, remark = line.partition(" ")
    name, _, place = remark.partition(": ")
    if not place.startswith("at "):
        return line  # it is in words already
    sent = _UNREADABLE_EVENTS.get(name) if place.startswith("at doors/hook.py") else None
    return f"{moment} {sent or f'a mistake of learnt itself, {name}'} ({place})"


def _examine_worker(subject: str, folder: str) -> Iterator[Diagnosis]:
    """Yield when the worker failed last, and whether it has done its work since."""
    path = os.path.join(folder, background.WORKER_LOG)
    if not os.path.exists(path) or not os.path.getsize(path):
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        last = file.readlines()[-1].strip()
    state, since = background.worker_state(folder)
    if state == "done" and since >= os.stat(path).st_mtime:
        yield fine(subject, f"it failed once, and has done its work since; the last time: {last}")
        return
    remedy = f"fix what it says; the next turn of a conversation starts it again, and {path} says more"
    yield wrong(subject, f"it failed last: {last}", remedy)


def _examine_mirror(subject: str, place: Place, clock: Clock) -> Diagnosis:
    """Return how old the copy is that hooks read; a missing one is no fault as long as no hook has asked for it."""
    mirror = Mirror(place.replace(read_only=True), version=__version__, clock=clock)
    try:
        return fine(subject, f"refreshed {mirror.age_s():,} s ago")
    except LearntError:
        return fine(subject, "none that can be read; the worker makes one as soon as a hook asks for it")
    finally:
        mirror.close()


def _examine_space(subject: str, folder: str) -> Iterator[Diagnosis]:
    free = shutil.disk_usage(folder).free
    if free < _LITTLE_SPACE:
        yield wrong(subject, f"{free / 1e6:,.0f} MB are free", "free some disk space")
