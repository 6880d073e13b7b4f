"""Examine a project's stores and say what is wrong and what to do about it.

Nothing here changes anything, and nothing that is broken stops the examination: each part is looked at on its own.
"""

from __future__ import annotations

import os
import platform
import stat
import sys

from learnt import __version__, config, memory, project
from learnt.errors import LearntError
from learnt.model import Value
from learnt.store import Place, Store, learnings, migrate
from learnt.store.learnings import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LITTLE_SPACE = 100 * 1024 * 1024


class Finding(Value):
    """One thing that was looked at."""

    subject: str
    fine: bool
    detail: str
    remedy: str = ""


def examine(start: str, *, clock: Callable[[], int]) -> Iterator[Finding]:
    """Yield what is found for the project around a folder and for the user-wide store."""
    yield _fine("versions", f"learnt {__version__}, Python {platform.python_version()}")
    environ = dict(os.environ)
    here = project.find_project(start)
    try:
        configuration = config.load(memory.settings_files(here.root if here else None), environ)
    except LearntError as error:
        yield _wrong("settings", error)
        return
    yield _fine("settings", "valid; `learnt config` shows them")
    settings = configuration.settings
    if here is None:
        yield Finding(subject="project", fine=False, detail="none around this folder", remedy="`learnt init` makes one")
    else:
        yield from _examine_store("store", memory.own_place(here, settings), clock)
    user = memory.user_place(settings)
    if user.exists():
        yield from _examine_store("user-wide store", user, clock)
    try:
        for place in memory.source_places(settings):
            yield from _examine_store(f"source {place.scope}", place, clock)
    except LearntError as error:
        yield _wrong("sources", error)


def _examine_store(subject: str, place: Place, clock: Callable[[], int]) -> Iterator[Finding]:
    try:
        store = Store(place.replace(read_only=True), version=__version__, clock=clock)
        try:
            yield from _examine_database(subject, store)
        finally:
            store.close()
    except LearntError as error:
        yield _wrong(subject, error)
    yield from _examine_spool(f"{subject}: spool", place)
    if os.path.exists(os.path.join(place.folder, "scrub.pending")):
        remedy = "repeat the `learnt purge ID` that was interrupted"
        yield Finding(subject=subject, fine=False, detail="a purge was not finished", remedy=remedy)
    yield from _examine_permissions(f"{subject}: permissions", place.folder)
    yield from _examine_space(f"{subject}: disk", place.folder)


def _examine_database(subject: str, store: Store) -> Iterator[Finding]:
    database = store.database
    count = learnings.count(database, Filter(statuses=None))
    versions = ", ".join(f"{name} {version}" for name, version in database.versions().items())
    schema = migrate.schema_number(database)
    yield _fine(subject, f"{database.path}: {count:,} learnings, schema {schema}, {versions}")
    found = store.check()
    if found:
        remedy = "keep a copy of the file, then put a backup in its place (`learnt backup` makes them)"
        yield Finding(subject=f"{subject}: integrity", fine=False, detail="; ".join(found[:3]), remedy=remedy)
    else:
        yield _fine(f"{subject}: integrity", "ok")


def _examine_spool(subject: str, place: Place) -> Iterator[Finding]:
    from learnt.store.spool import Spool

    spool = Spool(place.folder)
    waiting, refused = len(spool.waiting()), spool.refused()
    if refused:
        remedy = f"look at {os.path.join(place.folder, 'spool.refused.jsonl')}, and delete it when it is dealt with"
        yield Finding(subject=subject, fine=False, detail=f"{refused} records could not be applied", remedy=remedy)
    if waiting:
        remedy = "any other learnt command takes them up when the database can be written"
        yield Finding(subject=subject, fine=False, detail=f"{waiting} records wait", remedy=remedy)
    if not refused and not waiting:
        yield _fine(subject, "empty")


def _examine_permissions(subject: str, folder: str) -> Iterator[Finding]:
    if sys.platform == "win32" or not os.path.isdir(folder):
        return
    # Files for people (learnings.md) may be shared; the database, its log and the spool may not.
    private = [folder] + [
        os.path.join(folder, name) for name in os.listdir(folder) if name.startswith(("learnt.db", "spool", "backups"))
    ]
    open_ones = [path for path in private if stat.S_IMODE(os.stat(path).st_mode) & 0o077]
    if open_ones:
        yield Finding(
            subject=subject,
            fine=False,
            detail=f"others can read {', '.join(open_ones)}",
            remedy=f"`chmod -R go= {folder}`",
        )
    elif not os.access(folder, os.W_OK):
        yield Finding(subject=subject, fine=False, detail=f"{folder} is read-only", remedy="make it writable for you")
    else:
        yield _fine(subject, "only yours")


def _examine_space(subject: str, folder: str) -> Iterator[Finding]:
    import shutil

    if not os.path.isdir(folder):
        return
    free = shutil.disk_usage(folder).free
    if free < _LITTLE_SPACE:
        yield Finding(
            subject=subject, fine=False, detail=f"{free / 1e6:,.0f} MB are free", remedy="free some disk space"
        )


def _fine(subject: str, detail: str) -> Finding:
    return Finding(subject=subject, fine=True, detail=detail)


def _wrong(subject: str, error: LearntError) -> Finding:
    return Finding(subject=subject, fine=False, detail=error.message, remedy=error.hint)
