"""Trust in a project: show what would take effect, record the user's decision, and take it back.

Only this room looks at a project that is not trusted, and it only reads. What it returns came from a stranger; the
doors clean it before they print it.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from typing import Self

from learnt import __version__, trust
from learnt.config import Configuration, load
from learnt.errors import LearntError, NoStore, WrongRequest
from learnt.flow.context import bind_to_id, examine_trust, now_ms, own_place, persons_environ, settings_files
from learnt.model import Value
from learnt.project import STORE_FOLDER, Project, find_project
from learnt.settings import BY_KEY
from learnt.store import Place, Store, learnings, make_folder, migrate, missteps, tasks
from learnt.store.index import Filter
from learnt.store.sqlite import LOGGED, SqliteDatabase
from learnt.system import files
from learnt.system.files import Deadline
from learnt.text.redact import without_password

_MAX_TITLES = 10
_MAX_FILES = 10_000
_TRACKED = "git tracks the store: whoever can push to the repository can change it"
_LOOK_MS = 20_000  # an older schema is brought up to date first


class TrustPreview(Value):
    """What takes effect if a project is trusted."""

    project: Project
    trusted: bool
    """Whether everything that is listed here has an effect already."""
    store_trusted: bool
    """Whether at least the store is trusted."""
    settings: tuple[tuple[str, str], ...] = ()
    """The keys and values of the project's file that only the user may set."""
    learnings: int = 0
    pinned: tuple[str, ...] = ()
    """The titles of some pinned learnings."""
    pending: int = 0
    """The number of records in its spool."""
    prompts: tuple[str, ...] = ()
    """The files that replace learnt's own prompts."""
    tasks: int = 0
    checks: tuple[str, ...] = ()
    """The commands that check its tasks."""
    missteps: int = 0
    """The number of failed commands, of which agents are warned."""
    problems: tuple[str, ...] = ()
    """What must be mended before it can be trusted, such as links."""
    remarks: tuple[str, ...] = ()
    accepts_settings: str = trust.NOTHING
    """The digest of the project's settings as they are shown."""
    accepts_prompts: str = trust.NOTHING
    """The digest of the project's prompts as they are shown."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that needs trust."""
        store = self.learnings or self.pending or self.tasks or self.missteps
        return not (store or self.settings or self.prompts or self.problems or self.remarks)


class ProjectTrust:
    """The trust of the user in the project around a folder."""

    def __init__(self, here: Project) -> None:
        self._here = here
        self._environ = persons_environ()

    @classmethod
    def of_folder(cls, start: str) -> Self:
        """Return the trust in the project that contains a folder."""
        here = find_project(start)
        if here is None:
            raise NoStore(f"{os.path.abspath(start)} is not inside a project", hint="go to the project to trust")
        return cls(here)

    @classmethod
    def below(cls, folder: str) -> Iterator[Self]:
        """Yield the trust in each project below a folder, each project once; links are not followed."""
        if not os.path.isdir(folder):
            raise WrongRequest(f"there is no folder {folder}", hint="pass the folder that contains the projects")
        known: set[str] = set()
        for place, names, _ in os.walk(os.path.realpath(folder)):
            if STORE_FOLDER in names or os.path.exists(os.path.join(place, "learnt.toml")):
                here = find_project(place)
                if here is not None and here.root not in known:
                    known.add(here.root)
                    yield cls(here)
            names[:] = sorted(name for name in names if not name.startswith("."))

    @property
    def root(self) -> str:
        """The project's folder."""
        return self._here.root

    @property
    def folder(self) -> str:
        """The folder of the project's store."""
        return self._here.folder

    def is_trusted(self) -> bool:
        """Return whether the store is trusted."""
        return examine_trust(self._here, self._environ).trusted

    def preview(self) -> TrustPreview:
        """Return what would take effect; nothing is changed."""
        standing = examine_trust(self._here, self._environ)
        configuration = self._load(trust.NOTHING)
        problems = tuple(_find_foreign_files(self._here.folder))
        preview = TrustPreview(
            project=self._here,
            trusted=standing.trusted and self._accepts(standing, configuration),
            store_trusted=standing.trusted,
            settings=tuple(self._list_settings(configuration)),
            prompts=tuple(_list_prompts(self._here.folder)),
            problems=problems,
            remarks=(_TRACKED,) if trust.is_tracked(self._here.folder) else (),
            accepts_settings=configuration.wanted,
            accepts_prompts=trust.digest_prompts(self._here.folder),
        )
        return preview if problems else self._with_store(preview, configuration)

    def grant(self, preview: TrustPreview) -> None:
        """Trust the project with everything that its `preview` shows. Raise if it has problems."""
        self.refuse_agent("trust")
        problems = (*preview.problems, *_find_foreign_files(self._here.folder))
        if problems:
            raise WrongRequest(f"the project cannot be trusted: {problems[0]}", hint="remove it, then try again")
        make_folder(self._here.folder)
        accepted = {"settings": preview.accepts_settings, "prompts": preview.accepts_prompts}
        id = trust.adopt_store(self._here, self._environ, **accepted)
        bind_to_id(own_place(self._here, self._load(trust.NOTHING).settings).replace(id=id))

    def accept_settings(self) -> None:
        """Accept the settings in the project's file, which learnt has just written."""
        trust.adopt_store(self._here, self._environ, settings=self._load(trust.NOTHING).wanted)

    def revoke(self) -> bool:
        """Take trust back; return whether the project was trusted by a decision of this kind."""
        self.refuse_agent("untrust")
        return trust.revoke(self._here, self._environ)

    def refuse_agent(self, what: str) -> None:
        """Raise if an agent asks for what only a person may decide."""
        if trust.is_agent(self._environ):
            raise WrongRequest(f"an agent cannot {what} a project", hint=f"run `learnt {what}` in your own terminal")

    def _accepts(self, standing: trust.Standing, configuration: Configuration) -> bool:
        """Return whether the project's settings and prompts are accepted as they are."""
        prompts = trust.digest_prompts(self._here.folder)
        return trust.is_accepted(configuration.wanted, standing.settings) and trust.is_accepted(
            prompts, standing.prompts
        )

    def _load(self, accepted: str) -> Configuration:
        return load(settings_files(self._here.root), self._environ, accepted=accepted)

    def _with_store(self, preview: TrustPreview, configuration: Configuration) -> TrustPreview:
        place = own_place(self._here, configuration.settings.replace(database="")).replace(read_only=True)
        spools = {place.spool(), place.replace(id=trust.read_id(self._here.folder)).spool()}
        preview = preview.replace(pending=sum(len(spool.pending()) for spool in spools))
        if not place.exists():
            return preview
        # A look at the file itself would change it: it may have a log, or an older schema.
        with tempfile.TemporaryDirectory() as folder:
            copy = place.replace(folder=os.path.realpath(folder), read_only=False)
            try:
                _copy(place, copy)
                with Deadline(_LOOK_MS):
                    return _with_content(preview, copy)
            except (LearntError, OSError) as error:
                reason = error.strerror if isinstance(error, OSError) else error.message
                unread = f"the store cannot be read: {str(reason).replace(copy.folder, place.folder)}"
                if not preview.store_trusted:
                    return preview.replace(problems=(unread,))
                return preview.replace(remarks=(*preview.remarks, unread))

    def _list_settings(self, configuration: Configuration) -> Iterator[tuple[str, str]]:
        """Yield what the project's file sets and only the user may set, as it stands there."""
        theirs = load(settings_files(self._here.root), {}, accepted=trust.ACCEPTS_ALL).settings
        for key in configuration.ignored:
            value = getattr(theirs, BY_KEY[key].field)
            yield key, without_password(value) if key == "database" else str(value)


def _copy(place: Place, copy: Place) -> None:
    for ending in LOGGED:
        if files.exists(place.path + ending):
            with (
                open(place.path + ending, "rb", opener=files.open_private) as source,
                open(copy.path + ending, "xb", opener=files.open_private) as target,
            ):
                shutil.copyfileobj(source, target)


def _with_content(preview: TrustPreview, copy: Place) -> TrustPreview:
    foreign = _find_foreign_schema(copy)
    if foreign:
        strange = [f"the database contains `{name}`, which learnt did not make" for name in foreign]
        return preview.replace(problems=tuple(strange[:_MAX_TITLES]))
    store = Store(copy, version=__version__, clock=now_ms)
    try:
        database = store.database
        return preview.replace(
            learnings=learnings.count(database, Filter(status=None)),
            pinned=tuple(learnings.pinned_titles(database, limit=_MAX_TITLES)),
            tasks=sum(tasks.counts(database).values()),
            checks=tuple(tasks.checks(database)),
            missteps=missteps.count(database),
        )
    finally:
        store.close()


def _find_foreign_schema(copy: Place) -> list[str]:
    database = SqliteDatabase(copy.path, wait_ms=copy.wait_ms)
    try:
        return migrate.find_foreign(database)
    finally:
        database.close()


def _list_prompts(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(os.path.join(folder, trust.PROMPTS)))
    except OSError:
        return []


def _find_foreign_files(folder: str) -> Iterator[str]:
    """Yield what a store of this user never contains: links, special files, files of other users."""
    try:
        top = os.lstat(folder)
    except OSError:
        return
    if not stat.S_ISDIR(top.st_mode):
        yield f"{folder} is not a folder"
        return
    count = 0
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = os.path.join(place, name)
            status = os.lstat(path)
            count += 1
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                yield f"{path} is {'a link' if stat.S_ISLNK(status.st_mode) else 'not a plain file'}"
            elif status.st_uid != top.st_uid:
                yield f"{path} belongs to another user"
            if count > _MAX_FILES:
                yield f"{folder} contains more than {_MAX_FILES:,} files"
                return
