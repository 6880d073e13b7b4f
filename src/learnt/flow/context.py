"""The context of every part of the flow: the open stores, the settings, the clock and the person.

Reads search the project's store, then the user-wide one, then other projects that are configured as sources. A change
is written to the store that contains the learning; sources are never changed.
"""

from __future__ import annotations

import os
import sys
import time
from functools import cached_property, partial

from learnt import __version__
from learnt.config import Configuration, load, load_last_valid, write_compiled
from learnt.errors import LearntError, NoStore, NotFound, NotTrusted, WrongRequest
from learnt.model import TEXT_LIMIT, TITLE_LIMIT, Value, digest, is_id
from learnt.project import (
    SETTINGS_FILE,
    STORE_FOLDER,
    Project,
    find_project,
    new_project,
    user_data_folder,
    user_settings_file,
)
from learnt.store import PATIENCE_MS, Place, Store, learnings, make_folder, tasks
from learnt.store.learnings import Change
from learnt.store.sqlite import SqliteDatabase
from learnt.store.tasks import conversation_of
from learnt.system.files import check_file, list_names, make_folders, touch_private
from learnt.text.clean import fold
from learnt.text.records import without_secrets
from learnt.text.redact import redact_line
from learnt.text.times import DAY_MS
from learnt.trust import (
    ACCEPTS_ALL,
    PROMPTS,
    Standing,
    adopt_store,
    digest_prompts,
    examine_store,
    is_accepted,
    is_agent,
    is_below,
    read_id,
    require_trust,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from learnt.model import Learning
    from learnt.settings import Settings
    from learnt.store.database import Database

_COMPILED_SETTINGS = "settings.json"
_TIDIED = "tidied"
LEARNINGS_FILE = "learnings.md"
GOALS_FOLDER = "learnings"
GOAL_FILES = ("task_group", "both")
"""The strategies with which each goal has a learnings file."""
SEEN_FOLDER = "seen"
_DUE_FOLDER = "due"
_BEGUN_FOLDER = "consolidating"
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


class Talk(Value):
    """The conversation that an agent takes part in, as far as the door knows it; otherwise each task is one."""

    id: str = ""
    since: int = 0
    """If it might also be known by another id: when it began, so that only learnings from before are others'."""

    def of(self, context: Context, task: str) -> str:
        """Return the conversation in which the agent of a task speaks."""
        return self.id or (conversation_of(context.store.database, task) if task else "")


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
        self.by = "person"
        """Who speaks: the `person`, or an `agent`. The doors decide."""
        self.talk = Talk()
        """The conversation that an agent takes part in."""
        self.redactions = 0
        """How many secrets have been redacted from input and from names."""
        self.report: Callable[[str], None] | None = None
        """Called with a message about additional work, such as tidying."""
        self.settings_files: Sequence[str] = ()
        self.standing = Standing(trusted=True, settings=ACCEPTS_ALL, prompts=ACCEPTS_ALL)
        """How far the project is trusted."""
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
        appliers = {"debrief": partial(self._apply, "debriefs"), "prompt": partial(self._apply, "people")}
        return kind(place, version=__version__, clock=self.clock, appliers=appliers)

    def _apply(self, module: str, database: Database, body: dict[str, Any]) -> object:
        """Within a transaction: apply a record with the module that knows its kind, which is rarely needed."""
        return load_module(module).apply(self, database, body)

    @property
    def store(self) -> Store:
        """The project's own store, which receives new data."""
        return self.stores[0]

    @property
    def prompts_folder(self) -> str:
        """The folder of the project's own prompts; empty if the user has not accepted them."""
        folder = self.store.place.folder
        wanted, accepted = digest_prompts(folder), self.standing.prompts
        if not is_accepted(wanted, accepted) and not is_below(self.root, self.settings.trusted):
            path = os.path.join(folder, PROMPTS)
            self.remarks.append(f"{path} has no effect: `learnt trust` shows the prompts in it and asks")
            return ""
        return os.path.join(folder, PROMPTS)

    def close(self, *, completed: bool = False) -> None:
        """Close all connections; if the work is `completed`, save the settings in compiled form."""
        folder = self.store.place.folder
        if completed and self.settings_files and not self.mistake and os.path.isdir(folder):
            write_compiled(list(self.settings_files), os.path.join(folder, _COMPILED_SETTINGS))
        for store in self.stores:
            count = store.unreadable()
            if count and self.report:
                many = "1 row that cannot be read was" if count == 1 else f"{count} rows that cannot be read were"
                self.report(f"{many} left out; `learnt doctor` shows which")
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

    def find_user_store(self) -> Store:
        """Return the user-wide store, which is created if need be; the project's own if the user wants none."""
        if not self.settings.user_store:
            return self.store
        store = next((store for store in self.stores if store.place.scope == "user"), None)
        if store is None:
            store = self._open_store(user_place(self.settings).replace(create=True), mirrored=False)
            self.stores = (self.store, store, *self.stores[1:])
        return store

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
    environ = persons_environ()
    standing = examine_trust(project, environ)
    require_trust(standing)
    files = settings_files(project.root)
    configuration, mistake = load_accepted(project, standing, environ, for_hook=mirrored)
    if not is_address:
        _require_database(project, configuration)
    if standing.has_moved and not mirrored:
        adopt_store(project, environ)
    if not standing.id and standing.settings != ACCEPTS_ALL and (create or standing.is_older):
        standing = _give_id(project, standing, configuration, environ)
    settings = configuration.settings
    address = start if is_address else settings.database
    own_store = own_place(project, settings).replace(address=address, create=create, id=standing.id)
    if standing.is_older:
        bind_to_id(own_store)
    others, remarks = _other_places(settings)
    places = [own_store, *(place for place in others if place.folder != own_store.folder)]
    if wait_ms is not None:
        # Writes to a mirror cannot be spooled instead, so they may wait until the hook's deadline.
        patience = {True: settings.hook_deadline_ms if mirrored else settings.wait_ms, False: wait_ms}
        places = [place.replace(wait_ms=patience[bool(place.address)], is_hurried=mirrored) for place in places]
    context = Context(places, configuration=configuration, clock=clock, mirrored=mirrored, root=project.root)
    context.remarks = [*_describe_ignored(configuration, files[-1]), *remarks]
    context.mistake = mistake
    context.settings_files = files
    context.standing = standing
    if not mirrored and os.path.lexists(journal_note(context)):
        load_module("consolidation_record").recover(context)
    return context


def persons_environ() -> dict[str, str]:
    """Return the environment without what a person alone may set, if this is an agent's shell."""
    return {name: text for name, text in os.environ.items() if name != "LEARNT_TRUSTED" or not is_agent(os.environ)}


def examine_trust(here: Project, environ: dict[str, str]) -> Standing:
    """Return how far a project is trusted, also by the user's setting `trusted`."""
    standing = examine_store(here, environ)
    if standing.trusted:
        return standing
    try:
        folders = load(settings_files(None), environ).settings.trusted
    except LearntError:
        return standing
    if os.path.islink(here.folder) or not is_below(here.root, folders):
        return standing
    id = read_id(here.folder)
    return Standing(trusted=True, id=id, settings=ACCEPTS_ALL, prompts=ACCEPTS_ALL)


def load_accepted(
    here: Project, standing: Standing, environ: dict[str, str], *, for_hook: bool = False
) -> tuple[Configuration, str]:
    """Return the settings as far as the user has accepted them; for a hook also the mistake in them."""
    compiled = os.path.join(here.folder, _COMPILED_SETTINGS)
    files = settings_files(here.root)
    read = load_last_valid if for_hook else _load_valid
    try:
        configuration, mistake = read(files, environ, compiled=compiled, accepted=standing.settings)
        if configuration.ignored and is_below(here.root, configuration.settings.trusted):
            return read(files, environ, compiled=compiled, accepted=ACCEPTS_ALL)
        return configuration, mistake
    except LearntError:
        own = load(files[:1], environ).settings  # raises if the mistake is the user's own
        if standing.id or standing.is_older or is_below(here.root, own.trusted):
            raise
    # What a stranger wrote is not quoted.
    raise NotTrusted(f"{files[-1]} has a mistake", hint="it came with the project: `learnt trust` shows the mistake")


def _load_valid(
    files: Sequence[str], environ: dict[str, str], *, compiled: str, accepted: str
) -> tuple[Configuration, str]:
    return load(files, environ, compiled=compiled, accepted=accepted), ""


def _give_id(here: Project, standing: Standing, configuration: Configuration, environ: dict[str, str]) -> Standing:
    """Give a new store, or one of an earlier version, its id; what an earlier version obeyed stays accepted."""
    make_folder(here.folder)
    accepted = {}
    if standing.is_older:
        accepted = {"settings": configuration.wanted, "prompts": digest_prompts(here.folder)}
    return standing.replace(id=adopt_store(here, environ, **accepted), **accepted)


def bind_to_id(place: Place) -> None:
    """Mark the files of an earlier version as those of a store with an id."""
    place.spool_without_id().rename_to(place.spool())
    if os.path.exists(place.local_path):
        database = SqliteDatabase(place.local_path, wait_ms=place.wait_ms)
        try:
            database.stamp(place.stamp)
        finally:
            database.close()


def load_module(module: str) -> Any:
    """Return a module of the flow that is rarely needed."""
    from importlib import import_module

    return import_module(f"learnt.flow.{module}")


def _require_database(here: Project, configuration: Configuration) -> None:
    """Raise if the project's file asks for a database that the user has not accepted: another one would be wrong."""
    if "database" in configuration.ignored and not configuration.settings.database:
        raise NotTrusted(
            f"{os.path.join(here.root, SETTINGS_FILE)} sets `database`, which you have not accepted",
            hint="`learnt trust` shows the address and asks",
        )


def _describe_ignored(configuration: Configuration, path: str) -> list[str]:
    keys = ", ".join(f"`{key}`" for key in configuration.ignored)
    return [f"{path} sets {keys} without effect: `learnt trust` shows the values and asks"] if keys else []


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
    """Return the settings for a folder, which need not be in a project."""
    here, environ = find_project(start), dict(os.environ)
    if here is None:
        return load(settings_files(None), environ)
    standing = examine_trust(here, environ)
    return load_accepted(here, standing, environ)[0] if standing.trusted else load(settings_files(None), environ)


def is_upkeep_due(context: Context) -> bool:
    """Return whether the last upkeep was at least a day ago, and claim the next one, so that only one process does it.

    If a store has had no upkeep yet, the first day starts now.
    """
    now = context.clock()
    try:
        place = context.store.place
        if not os.path.isdir(place.folder) or context.store.database.read_only:
            return False
        note = os.path.join(place.folder, _TIDIED)
        noted = check_file(note)
        # A note from the future was left by a clock that was wrong.
        if noted is not None and now - DAY_MS < noted.st_mtime * 1000 <= now + DAY_MS:
            return False
        touch_private(note, at_s=now / 1000)
    except (LearntError, OSError):
        return False  # a command must not fail because of its upkeep
    return noted is not None


def learnings_path(root: str) -> str:
    """Return the path of a project's learnings.md; each worktree has its own."""
    return os.path.join(root, STORE_FOLDER, LEARNINGS_FILE)


def has_edited_files(context: Context) -> bool:
    """Return whether learnings.md, or the file of a goal, may have been edited since it was last read or written.

    Each file costs a look at its status, and another one whether that status has been noted.
    """
    if not context.root:
        return False
    paths = [learnings_path(context.root)]
    if context.settings.learnings_injection_strategy in GOAL_FILES:
        folder = os.path.join(context.root, STORE_FOLDER, GOALS_FOLDER)
        paths += [os.path.join(folder, name) for name in list_names(folder) if name.endswith(".md")]
    notes = [name_seen_note(context.store.place.folder, path) for path in paths]
    return any(note and not os.path.lexists(note) for note in notes)


def name_seen_note(folder: str, path: str) -> str:
    """Return the path of the empty file that says that a file has been read as it is now; empty without the file."""
    try:
        status = os.lstat(path)
    except OSError:
        return ""
    return os.path.join(folder, SEEN_FOLDER, f"{digest(path)[:16]}-{status.st_size}-{status.st_mtime_ns}")


def due_note(context: Context) -> str:
    """Return the path of the file in which the worker says whether consolidation is due in this worktree."""
    return os.path.join(context.store.place.folder, _DUE_FOLDER, digest(context.root)[:16])


def journal_note(context: Context) -> str:
    """Return the path of the file that says that a consolidation was begun in this worktree, and not ended."""
    return os.path.join(context.store.place.folder, _BEGUN_FOLDER, digest(context.root)[:16])


def note_try(context: Context) -> bool:
    """Note that a hook tries to apply the edits to learnings.md; return False if one has tried, or it has no edits."""
    seen = name_seen_note(context.store.place.folder, learnings_path(context.root))
    note = f"{seen}-tried"
    if not seen or os.path.lexists(note):
        return False
    try:
        make_folders(os.path.dirname(note))
        touch_private(note)
    except OSError:
        return False
    return True


def apply_file_edits(context: Context) -> None:
    """Apply what a person changed in the learnings files; raise if that is not possible now.

    While an agent of `learnt work` works in the project's folder, the edits may be the agent's: the loop applies them.
    """
    if context.store.place.read_only or context.store.database.read_only:
        return
    now = context.clock()
    claims = [claim for claim in tasks.claims(context.store.database) if claim.agent_pid and claim.held_until > now]
    if any(claim.folder == context.root for claim in claims):
        return
    load_module("learnings_file").LearningsFile(context).apply_edits()


def take_over_edits(context: Context) -> None:
    """Apply what a person changed in the learnings files since they were last read; add a remark if that fails."""
    try:
        if has_edited_files(context):
            apply_file_edits(context)
    except LearntError as error:
        context.remarks.append(f"not taken over: {error.message}; {error.hint}")


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
    environ = persons_environ()
    standing = examine_trust(source, environ)
    require_trust(standing)
    folders = load(settings_files(None), environ).settings.trusted
    accepted = ACCEPTS_ALL if is_below(source.root, folders) else standing.settings
    settings = load(settings_files(source.root), {}, accepted=accepted).settings
    place = own_place(source, settings).replace(scope=source.name, read_only=True, id=standing.id)
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
