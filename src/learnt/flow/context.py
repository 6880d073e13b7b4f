"""The context of every part of the flow: the open stores, the settings, the clock and the person.

Reads search the project's store, then the user-wide one, then other projects that are configured as sources. A change
is written to the store that contains the learning; sources are never changed.
"""

from __future__ import annotations

import os
import sys
import time
from functools import cached_property

from learnt import __version__
from learnt.config import Configuration, load, load_last_valid, write_compiled
from learnt.errors import LearntError, NoStore, NotFound, WrongRequest
from learnt.model import TEXT_LIMIT, TITLE_LIMIT, is_id
from learnt.project import (
    SETTINGS_FILE,
    Project,
    find_project,
    new_project,
    user_data_folder,
    user_settings_file,
)
from learnt.store import PATIENCE_MS, Place, Store, learnings
from learnt.store.learnings import Change
from learnt.system.files import touch_private
from learnt.text.clean import fold
from learnt.text.records import without_secrets
from learnt.text.redact import redact_line
from learnt.text.times import DAY_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from learnt.model import Learning
    from learnt.settings import Settings
    from learnt.store.database import Database

_COMPILED_SETTINGS = "settings.json"
_TIDIED = "tidied"
_MAX_ROWS = 1_000_000_000


def now_ms() -> int:
    """Return the time in UTC milliseconds."""
    return time.time_ns() // 1_000_000


def check_rows(*, limit: int, offset: int = 0) -> None:
    """Raise unless limit and offset are valid."""
    if not (0 <= limit <= _MAX_ROWS and 0 <= offset <= _MAX_ROWS):
        raise WrongRequest(
            f"limit and offset must be from 0 to {_MAX_ROWS:,}", hint="leave them out for the first page"
        )


class Context:
    """The open stores, the settings, the clock, the person and the project's folder."""

    def __init__(
        self,
        places: Sequence[Place],
        *,
        configuration: Configuration,
        clock: Callable[[], int] | None = None,
        mirrored: bool = False,
        root: str = "",
    ) -> None:
        """If `mirrored` is set, use a server's mirror instead of the server, as hooks do."""
        self.clock = clock or now_ms
        self.configuration = configuration
        self.settings = configuration.settings
        self.root = root
        """The project's folder; it is empty for the user-wide store."""
        self.remarks: list[str] = []
        """Notes for a person, for example about a missing source."""
        self.mistake = ""
        """The fault in the settings, if the last valid ones are used instead."""
        self.redactions = 0
        """How many secrets have been redacted from input and from names."""
        self.report: Callable[[str], None] | None = None
        """Called with a message about additional work, such as tidying."""
        self.settings_files: Sequence[str] = ()
        self.stores: tuple[Store, ...] = tuple(self._open_store(place, mirrored=mirrored) for place in places)
        if not self.store.place.exists():
            _ = self.store.database

    @cached_property
    def person(self) -> str:
        """The name of the person who uses this context."""
        return self.clean_person(self.settings.person.strip() or _login_name())

    def clean_person(self, name: str) -> str:
        """Return a person's name on one line, without secrets."""
        return redact_line(name, TITLE_LIMIT)[0]

    def _open_store(self, place: Place, *, mirrored: bool) -> Store:
        kind = Store
        if mirrored and place.address:
            from learnt.store.mirror import Mirror

            kind = Mirror
        return kind(place, version=__version__, clock=self.clock, appliers={"debrief": self._apply_debrief})

    def _apply_debrief(self, database: Database, body: dict[str, Any]) -> object:
        """Within a transaction: apply a debrief."""
        from learnt.flow.debriefs import apply  # rarely needed

        return apply(self, database, body)

    @property
    def store(self) -> Store:
        """The project's own store, which receives new data."""
        return self.stores[0]

    def close(self, *, completed: bool = False) -> None:
        """Close all connections; if the work is `completed`, save the settings in compiled form."""
        folder = self.store.place.folder
        if completed and self.settings_files and not self.mistake and os.path.isdir(folder):
            write_compiled(list(self.settings_files), os.path.join(folder, _COMPILED_SETTINGS))
        for store in self.stores:
            store.close()

    def sound_stores(self) -> tuple[Store, ...]:
        """Return the project's store and the other readable stores; add a remark for each unreadable store."""
        for store in self.stores[1:]:
            try:
                _ = store.database
            except LearntError as error:
                self.stores = tuple(other for other in self.stores if other is not store)
                self.remarks.append(f"left out: {error.message}; {error.hint}")
        return self.stores

    def get(self, id: str) -> Learning:
        """Return a learning from the first store that has it."""
        return self.locate(id)[1]

    def locate(self, id: str, *, writable: bool = False) -> tuple[Store, Learning]:
        """Return the store that contains a learning, and the learning."""
        for store in self.sound_stores() if is_id("learn", id) else ():
            learning = learnings.find(store.database, id)
            if learning is None:
                continue
            if writable and store.place.read_only:
                raise WrongRequest(
                    f"`{id}` belongs to the project `{store.place.scope}`, which is read-only here",
                    hint=f"change it there: `cd {os.path.dirname(store.place.folder)}`",
                )
            return store, learning.replace(scope=store.place.scope)
        raise NotFound(
            f"no learning `{fold(id[:100])}` in this project", hint="`learnt list --status all` shows the ids"
        )

    def titles(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the current titles of learnings that still exist, by id."""
        titles: dict[str, str] = {}
        for store in self.sound_stores():
            for id, learning in learnings.get_all(store.database, ids).items():
                titles.setdefault(id, learning.title)
        return titles

    def change(self, what: str, *, at: int, reason: str = "", undoes: str = "") -> Change:
        """Return a change by this person."""
        return Change(what=what, who=self.person, at=at, reason=self.redact_line(reason, TEXT_LIMIT), undoes=undoes)

    def redact_line(self, text: str, limit: int = TITLE_LIMIT) -> str:
        """Return input text on one line, cleaned and without secrets."""
        if not text:
            return ""
        line, count = redact_line(text, limit)
        self.redactions += count
        return line

    def redact_record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return a learning's input fields without secrets."""
        safe, count = without_secrets(record)
        self.redactions += count
        return safe


def open_project(
    start: str,
    *,
    create: bool,
    clock: Callable[[], int] | None = None,
    wait_ms: int | None = None,
    mirrored: bool = False,
) -> Context:
    """Open the stores of the project that contains a folder, or the store at a PostgreSQL address.

    `wait_ms` is how long to wait for other writers; by default, the settings determine it.
    """
    is_address = start.startswith(("postgresql://", "postgres://"))
    project = _find_project("." if is_address else start, create=create or is_address)
    compiled = os.path.join(project.folder, _COMPILED_SETTINGS)
    files, mistake = settings_files(project.root), ""
    if mirrored:
        configuration, mistake = load_last_valid(files, dict(os.environ), compiled=compiled)
    else:
        configuration = load(files, dict(os.environ), compiled=compiled)
    settings = configuration.settings
    own_store = own_place(project, settings).replace(address=start if is_address else settings.database, create=create)
    others, remarks = _other_places(settings)
    places = [own_store, *(place for place in others if place.folder != own_store.folder)]
    if wait_ms is not None:
        # Writes to a mirror cannot be spooled instead, so they may wait until the hook's deadline.
        patience = {True: settings.hook_deadline_ms if mirrored else settings.wait_ms, False: wait_ms}
        places = [place.replace(wait_ms=patience[bool(place.address)], skip_long_spool=mirrored) for place in places]
    context = Context(places, configuration=configuration, clock=clock, mirrored=mirrored, root=project.root)
    context.remarks = remarks
    context.mistake = mistake
    context.settings_files = files
    return context


def open_for_hook(start: str, *, clock: Callable[[], int] | None = None) -> Context:
    """Open a project's stores for a hook: with the server's mirror, and with a short wait before spooling."""
    return open_project(start, create=False, clock=clock, wait_ms=PATIENCE_MS, mirrored=True)


def open_user(*, create: bool, clock: Callable[[], int] | None = None) -> Context:
    """Open the user-wide store alone."""
    configuration = load(settings_files(None), dict(os.environ))
    place = user_place(configuration.settings).replace(create=create, read_only=False)
    if not place.exists() and not create:
        raise NoStore("there is no user-wide store yet", hint="`learnt init --user` creates it")
    return Context([place], configuration=configuration, clock=clock)


def load_configuration(start: str) -> Configuration:
    """Return the settings for a folder, which does not have to be in a project."""
    here = find_project(start)
    return load(settings_files(here.root if here else None), dict(os.environ))


def is_upkeep_due(context: Context) -> bool:
    """Return whether the last upkeep was at least a day ago, and claim the next one, so that only one process does it.

    If a store has had no upkeep yet, the first day starts now.
    """
    place = context.store.place
    if not os.path.isdir(place.folder) or context.store.database.read_only:
        return False
    note = os.path.join(place.folder, _TIDIED)
    now = context.clock()
    is_noted = os.path.exists(note)
    if is_noted and os.stat(note).st_mtime * 1000 > now - DAY_MS:
        return False
    touch_private(note)
    os.utime(note, (now / 1000, now / 1000))
    return is_noted


def settings_files(root: str | None) -> list[str]:
    """Return a project's settings files; later files override earlier files."""
    files = [user_settings_file(dict(os.environ))]
    return files if root is None else [*files, os.path.join(root, SETTINGS_FILE)]


def _find_project(start: str, *, create: bool) -> Project:
    if not os.path.exists(start):
        raise WrongRequest(f"there is no folder {start}", hint="specify an existing folder; the store is created in it")
    here = find_project(start)
    if here is None and not create:
        raise NoStore(
            f"{os.path.abspath(start)} is not inside a project",
            hint="go to a project, or make this folder one with `learnt init`",
        )
    return here or new_project(start)


def own_place(here: Project, settings: Settings) -> Place:
    """Return the place of a project's own store."""
    return Place(
        folder=here.folder,
        address=settings.database,
        project=settings.project or here.name,
        wait_ms=settings.wait_ms,
    )


def user_place(settings: Settings) -> Place:
    """Return the place of the user-wide store."""
    folder = user_data_folder(dict(os.environ))
    return Place(folder=folder, scope="user", wait_ms=settings.wait_ms)


def _other_places(settings: Settings) -> tuple[list[Place], list[str]]:
    """Return the places of the additional stores, the user-wide store first, and remarks on unreadable sources."""
    user = user_place(settings)
    places = [user] if settings.user_store and user.exists() else []
    remarks = []
    for path in settings.sources:
        try:
            places.append(source_place(path))
        except LearntError as error:
            remarks.append(f"left out: {error.message}; {error.hint}")
    return places, remarks


def source_place(path: str) -> Place:
    """Return the place of another project's store that is listed in `sources`."""
    source = find_project(path) if os.path.isdir(path) else None
    if source is None:
        raise WrongRequest(
            f"`sources` lists {path}, which is not in a project",
            hint="correct the setting, or check that project out there",
        )
    settings = load(settings_files(source.root), {}).settings
    place = own_place(source, settings).replace(scope=source.name, read_only=True)
    if not place.exists():
        raise WrongRequest(
            f"`sources` lists {path}, which has no readable store",
            hint=f"examine it with `learnt -C {path} doctor`",
        )
    return place


def _login_name() -> str:
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        if os.environ.get(variable):
            return fold(os.environ[variable])
    if sys.platform != "win32":
        import pwd

        try:
            return pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            pass  # a container's user may have no name
    return "somebody"
