"""The façade: everything that learnt can do, and the only file that knows the order of the flow.

    memory = Memory.open(".")
    learning = memory.add("Run `make lint` before each commit")
    memory.edit(learning.id, action="make lint")
    memory.undo(learning.id)

Doors parse, call one method and render. Text is cleaned here, where it comes in, so that every store holds the
same. Reading looks into the project's store, then the user-wide one, then other projects that are named as sources;
a change goes to the store that holds the learning, and sources are never changed.
"""

from __future__ import annotations

import os
import sys
import time

from learnt import __version__, config, project
from learnt.errors import InvalidValue, LearntError, NoStore, NotFound, WrongRequest
from learnt.model import PARAGRAPHS, TITLE_LIMIT, Learning, Value, is_id, new_id, text_id
from learnt.store import BACKUPS_FOLDER, Place, Store, events, learnings
from learnt.store.learnings import Change, Filter
from learnt.text.clean import clean, fold
from learnt.text.records import PLACE, as_record, read_fields
from learnt.weigh import confidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import Any, Self

    from learnt.model import Event, Hit, Triggers

STRATEGIES = ("hybrid", "words")  # by words alone, as long as there is no other way
COMPILED_SETTINGS = "settings.json"
MOST_ROWS = 1_000_000_000
_IMPORTED_AT_ONCE = 500


class Page(Value):
    """Some learnings of a longer list, and how many there are in all."""

    learnings: tuple[Learning, ...]
    total: int


class Imported(Value):
    """What became of the learnings of a file."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    kept: int = 0
    """Changed here after the file was written, so the file's version was not taken."""


class Memory:
    """What a project has learnt."""

    def __init__(
        self, stores: Sequence[Store], *, configuration: config.Configuration, clock: Callable[[], int]
    ) -> None:
        self._stores = tuple(stores)
        self._clock = clock
        self.configuration = configuration
        self.settings = configuration.settings
        self.person = fold(self.settings.person) or _login_name()
        self.remarks: list[str] = []
        """What a person should know, though nothing failed: a source that is missing, for example."""
        self._settings_files: list[str] = []

    @classmethod
    def open(
        cls, path_or_url: str | os.PathLike[str] = ".", *, create: bool = True, clock: Callable[[], int] | None = None
    ) -> Self:
        """Open the store of the project around a folder, or at a PostgreSQL address; create a missing one."""
        start = os.fspath(path_or_url)
        is_address = start.startswith(("postgresql://", "postgres://"))
        found = project.find_project("." if is_address else start)
        if found is None and not (create or is_address):
            raise NoStore(
                f"{os.path.abspath(start)} is not inside a project",
                hint="go to a project, or make this folder one with `learnt init`",
            )
        here = found or project.new_project("." if is_address else start)
        compiled = os.path.join(here.folder, COMPILED_SETTINGS)
        configuration = config.load(settings_files(here.root), dict(os.environ), compiled=compiled)
        settings = configuration.settings
        address = start if is_address else settings.database
        own = own_place(here, settings).replace(address=address, create=create)
        along, remarks = _read_along(settings)
        memory = cls._opened([own, *(place for place in along if place.folder != own.folder)], configuration, clock)
        memory.remarks = remarks
        memory._settings_files = settings_files(here.root)
        return memory

    @classmethod
    def open_user(cls, *, create: bool = True, clock: Callable[[], int] | None = None) -> Self:
        """Open the user-wide store alone: what is true across all projects."""
        configuration = config.load(settings_files(None), dict(os.environ))
        place = user_place(configuration.settings).replace(create=create, read_only=False)
        if not place.exists() and not create:
            raise NoStore("there is no user-wide store yet", hint="`learnt init --user` creates it")
        return cls._opened([place], configuration, clock)

    @classmethod
    def _opened(cls, places: list[Place], configuration: config.Configuration, clock: Callable[[], int] | None) -> Self:
        clock = clock or now_ms
        stores = [Store(place, version=__version__, clock=clock) for place in places]
        memory = cls(stores, configuration=configuration, clock=clock)
        own = stores[0]
        if not own.place.exists():
            _ = own.database
        return memory

    def close(self) -> None:
        """Let go of all connections."""
        for store in self._stores:
            store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._settings_files and os.path.isdir(self.store.place.folder):
            config.keep_compiled(self._settings_files, os.path.join(self.store.place.folder, COMPILED_SETTINGS))
        self.close()

    @property
    def store(self) -> Store:
        """The project's own store, which takes what is new."""
        return self._stores[0]

    def add(
        self,
        title: str,
        *,
        context: str = "",
        observation: str = "",
        implication: str = "",
        action: str = "",
        tags: Sequence[str] = (),
        domain: str = "",
        category: str = "",
        kind: str = "solution",
        polarity: str = "do",
        triggers: Triggers | dict[str, list[str]] | None = None,
        origin: str = "person",
        goal: str = "",
        task: str = "",
        discovery: str = "",
        commit: str = "",
        confidence: float | None = None,
        pinned: bool = False,
        created_at: int | None = None,
    ) -> Learning:
        """Keep a new learning. Only the title is needed; equal learnings are not merged."""
        return self.add_all(
            [
                {
                    "title": title,
                    "context": context,
                    "observation": observation,
                    "implication": implication,
                    "action": action,
                    "tags": tags,
                    "domain": domain,
                    "category": category,
                    "kind": kind,
                    "polarity": polarity,
                    "triggers": triggers or {},
                    "origin": origin,
                    "goal": goal,
                    "task": task,
                    "discovery": discovery,
                    "commit": commit,
                    "pinned": pinned,
                    **({} if confidence is None else {"confidence": confidence}),
                }
            ],
            created_at=created_at,
        )[0]

    def add_all(self, records: Sequence[dict[str, Any]], *, created_at: int | None = None) -> list[Learning]:
        """Keep several new learnings, all or none; each record holds the fields of `add`."""
        now = self._clock()
        added = [self._new_learning(record, created_at=now if created_at is None else created_at) for record in records]
        with self.store.transaction():
            for learning in added:
                learnings.add(self.store.database, learning, self._change("add", at=now))
        return added

    def get(self, id: str) -> Learning:
        """Return a learning from wherever it is kept."""
        return self._holder(id)[1]

    def learnings(
        self,
        *,
        status: str | None = "active",
        domain: str | None = None,
        category: str | None = None,
        tag: str | None = None,
        kind: str | None = None,
        goal: str | None = None,
        min_confidence: float | None = None,
        scope: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> Page:
        """Return the fitting learnings, newest first; `status=None` means any."""
        which = Filter(
            status=status,
            domain=None if domain is None else fold(domain),
            category=None if category is None else fold(category),
            tag=None if tag is None else fold(tag[: 2 * TITLE_LIMIT]).removeprefix("#"),
            kind=kind,
            goal=None if goal is None else fold(goal),
            min_confidence=min_confidence,
        )
        limit = self.settings.page_size if limit is None else limit
        if min_confidence is not None and not 0.0 <= min_confidence <= 1.0:
            raise WrongRequest(f"a confidence of {min_confidence} does not exist", hint="it goes from 0.1 to 1.0")
        if not (0 <= limit <= MOST_ROWS and 0 <= offset <= MOST_ROWS):
            raise WrongRequest(f"limit and offset go from 0 to {MOST_ROWS:,}", hint="leave them out for the first page")
        stores = [store for store in self._stores if scope in (None, store.place.scope)]
        if not stores:
            known = ", ".join(store.place.scope for store in self._stores)
            raise WrongRequest(f"no store is named `{scope}` here", hint=f"there are: {known}")
        total = sum(learnings.count(store.database, which) for store in stores)
        return Page(learnings=_merged_page(stores, which, limit=limit, offset=offset), total=total)

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        min_confidence: float = 0.5,
        strategy: str = "hybrid",
        status: str | None = "active",
        domain: str | None = None,
        category: str | None = None,
        exclude_goal: str | None = None,
        paths: Sequence[str] = (),
    ) -> list[Hit]:
        """Return the learnings that fit a text, best first: those whose triggers hold, then those that share words."""
        from learnt.recall.find import find
        from learnt.recall.rank import best_first, highlights
        from learnt.text.patterns import Situation

        if strategy not in STRATEGIES:
            raise WrongRequest(f"there is no strategy `{strategy}`", hint=f"choose one of: {', '.join(STRATEGIES)}")
        situation = Situation(text=clean(query), paths=tuple(map(clean, paths)))
        which = Filter(
            status=status,
            domain=domain,
            category=category,
            exclude_goal=exclude_goal,
            min_confidence=min_confidence,
        )
        hits: list[Hit] = []
        for store in self._stores:
            for hit in find(store.database, situation, which, limit=limit):
                hits.append(hit.replace(learning=hit.learning.replace(scope=store.place.scope)))
        return [hit.replace(highlights=highlights(hit)) for hit in best_first(hits)[:limit]]

    def edit(
        self, id: str, *, reason: str = "", add_tags: Sequence[str] = (), drop_tags: Sequence[str] = (), **changes: Any
    ) -> Learning:
        """Change fields of a learning; the fields are those of `add`."""
        fields = read_fields(changes)
        more, fewer = (set(read_fields({"tags": tags})["tags"]) for tags in (add_tags, drop_tags))

        def decide(learning: Learning) -> dict[str, Any]:
            tags = set(fields.get("tags", learning.tags))
            return {**fields, "tags": tuple(sorted((tags | more) - fewer))}

        return self._alter(id, "edit", decide, reason=reason)

    def archive(self, id: str, *, reason: str = "") -> Learning:
        """Put a learning away: it leaves lists and briefs, and can be restored."""
        return self._alter(id, "archive", _to_status("archived"), reason=reason)

    def hide(self, id: str, *, reason: str = "") -> Learning:
        """Keep a learning out of every brief."""
        return self._alter(id, "hide", _to_status("hidden"), reason=reason)

    def restore(self, id: str, *, reason: str = "") -> Learning:
        """Make an archived, hidden, proposed or superseded learning active again."""
        return self._alter(id, "restore", _to_status("active"), reason=reason)

    def pin(self, id: str, *, pinned: bool = True, reason: str = "") -> Learning:
        """Let a learning come first where it is relevant, whatever its confidence."""
        return self._alter(id, "pin" if pinned else "unpin", lambda _: {"pinned": pinned}, reason=reason)

    def like(self, id: str, *, reason: str = "") -> Learning:
        """Say that a learning is good: a little more confidence, once per person."""
        store, _ = self._holder(id)

        def decide(learning: Learning) -> dict[str, Any]:
            history = _standing(events.of(store.database, id))
            if any(event.what == "like" and event.who == self.person for event in history):
                return {}
            return {"confidence": confidence.liked(learning.confidence)}

        return self._alter(id, "like", decide, reason=reason)

    def supersede(self, old: str, new: str, *, reason: str = "") -> Learning:
        """Replace a learning by a better one; return the replaced one."""
        self.get(new)
        return self._alter(old, "supersede", lambda _: {"status": "superseded", "superseded_by": new}, reason=reason)

    def _refuse_circle(self, id: str, successor: str) -> None:
        """Raise when a learning would come to supersede itself, however far around."""
        seen = {id}
        while successor:
            if successor in seen:
                raise WrongRequest(
                    f"`{id}` would supersede itself, by way of `{successor}`",
                    hint="`learnt supersede OLD NEW`: the old one first, and not one that replaced the other",
                )
            seen.add(successor)
            try:
                successor = self.get(successor).superseded_by
            except NotFound:
                return  # purged, or not imported yet

    def supersedes(self, id: str) -> list[str]:
        """Return the ids of the learnings that this one replaced."""
        return learnings.superseded_by(self._holder(id)[0].database, id)

    def history(self, id: str) -> list[Event]:
        """Return every change to a learning, oldest first."""
        return events.of(self._holder(id)[0].database, id)

    def undo(self, id: str, *, reason: str = "") -> Learning:
        """Take back the last change of a learning, or the change with this event id."""
        event = self._find_event(id) if is_id("event", id) else _last_undoable(self.history(id))
        before = self.get(event.subject)
        after = self._alter(
            event.subject, "undo", lambda learning: _taking_back(event, learning), reason=reason, undoes=event.id
        )
        if after.version == before.version:
            raise WrongRequest(f"there is nothing left of {event.id} to undo", hint=f"see `learnt history {after.id}`")
        return after

    def export(self, *, status: str | None = None) -> Iterator[Learning]:
        """Yield the learnings of the own store, oldest first."""
        which = Filter(status=status)
        for learning in learnings.each(self.store.database, which):
            yield learning.replace(scope=self.store.place.scope)

    def import_all(
        self, records: Iterable[dict[str, Any]], *, progress: Callable[[int], None] = lambda _: None
    ) -> Imported:
        """Take in exported learnings: same ids, no duplicates, and nothing newer overwritten."""
        counts = dict.fromkeys(Imported.fields, 0)
        everything = list(records)
        for number, record in enumerate(everything, 1):
            self._check_import(record, number)
        for start in range(0, len(everything), _IMPORTED_AT_ONCE):
            self._import_batch(everything[start : start + _IMPORTED_AT_ONCE], counts)
            progress(start)
        return Imported(**counts)

    def purge(self, id: str) -> int:
        """Really delete a learning: rows, history, spool, backups and log. Return how many backups held it.

        Interrupted, it can be repeated: the traces are looked for even when the learning itself is gone.
        """
        from learnt.store.backup import purge_from_backups

        own = [store for store in self._stores if not store.place.read_only]
        holding = [store for store in own if is_id("learn", id) and learnings.find(store.database, id)]
        holding = holding or [store for store in own if is_id("learn", id) and store.may_hold_traces()]
        if not holding:
            self._holder(id, writable=True)  # says what is wrong
        backups = 0
        for store in holding:
            with store.scrubbing():
                with store.transaction():
                    learnings.delete(store.database, id)
                store.spool.forget(id)
                backups += purge_from_backups(os.path.join(store.place.folder, BACKUPS_FOLDER), id)
        return backups

    def backup(self, path: str | None = None) -> str:
        """Write a copy of the store into a SQLite file and return its path."""
        from learnt.store.backup import back_up

        if path is None:
            moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._clock() / 1000))
            name = f"{moment}-{new_id('backup', self._clock())[-6:]}.db"
            self.store.make_folder()
            path = os.path.join(self.store.place.folder, BACKUPS_FOLDER, name)
        back_up(self.store.database, path, version=__version__, now_ms=self._clock())
        return path

    def restore_backup(self, path: str) -> str:
        """Put a backup in the store's place, after a backup of what is there; return that one's path."""
        from learnt.store.backup import restore

        before = self.backup()
        restore(self.store.database, path)
        return before

    def _new_learning(self, record: dict[str, Any], *, created_at: int) -> Learning:
        fields = read_fields(record)
        fields.setdefault("confidence", confidence.start(fields.get("origin", "person")))
        times = read_fields({"created_at": created_at, "updated_at": created_at}, allowed=("created_at", "updated_at"))
        return Learning(id=new_id("learn", self._clock()), **times, **{"title": "", **fields})

    def _check_import(self, record: dict[str, Any], number: int) -> None:
        """Refuse the whole file for one bad entry, before anything is written."""
        try:
            self._imported(record, now=0)
        except InvalidValue as error:
            raise InvalidValue(f"entry {number}: {error.message}", hint=error.hint or "correct the entry") from None

    def _import_batch(self, records: list[dict[str, Any]], counts: dict[str, int]) -> None:
        now = self._clock()
        # Without a time of its own, an entry is as new as its place in the file says.
        read = [(record, self._imported(record, now=now + place)) for place, record in enumerate(records)]
        with self.store.transaction():
            self.store.database.lock_words()  # of two that import the same, the second must see what the first added
            for record, learning in read:
                counts[self._take_in(record, learning, now=now)] += 1

    def _imported(self, record: dict[str, Any], *, now: int) -> Learning:
        known = {name: value for name, value in record.items() if name not in PLACE}
        fields = read_fields(known, allowed=tuple(name for name in Learning.fields if name not in PLACE))
        if "id" not in fields:
            fields["id"] = _id_of_text(fields)
        fields.setdefault("origin", "import")
        fields.setdefault("confidence", confidence.start(fields["origin"]))
        fields.setdefault("created_at", now)
        fields.setdefault("updated_at", fields["created_at"])
        return Learning(**{"title": "", **fields})

    def _take_in(self, record: dict[str, Any], learning: Learning, *, now: int) -> str:
        """Add or update one learning; what the record does not state stays as it is here."""
        database = self.store.database
        change = self._change("import", at=now)
        self._refuse_circle(learning.id, learning.superseded_by)
        present = learnings.find(database, learning.id, for_update=True)
        if present is None:
            learnings.add(database, learning, change)
            return "added"
        stated = [name for name in record if name not in ("updated_at", *PLACE)]
        theirs = {name: getattr(learning, name) for name in stated}
        if all(getattr(present, name) == value for name, value in theirs.items()):
            return "unchanged"
        last = events.of(database, learning.id)[-1]
        if present.updated_at > record.get("updated_at", 0) and last.what != "import":
            return "kept"  # changed here meanwhile, and not by an earlier version of the same file
        learnings.change(database, learning.id, lambda _: theirs, change)
        return "updated"

    def _alter(
        self,
        id: str,
        what: str,
        decide: Callable[[Learning], dict[str, Any]],
        *,
        reason: str = "",
        undoes: str = "",
    ) -> Learning:
        store, _ = self._holder(id, writable=True)

        def decide_without_circles(learning: Learning) -> dict[str, Any]:
            changes = decide(learning)
            self._refuse_circle(id, changes.get("superseded_by", ""))
            return changes

        with store.transaction():
            change = self._change(what, at=self._clock(), reason=reason, undoes=undoes)
            _, after = learnings.change(store.database, id, decide_without_circles, change)
        return after.replace(scope=store.place.scope)

    def _change(self, what: str, *, at: int, reason: str = "", undoes: str = "") -> Change:
        return Change(what=what, who=self.person, at=at, reason=fold(reason), undoes=undoes)

    def _holder(self, id: str, *, writable: bool = False) -> tuple[Store, Learning]:
        """Return the store that holds a learning, and the learning."""
        for store in self._stores if is_id("learn", id) else ():
            learning = learnings.find(store.database, id)
            if learning is None:
                continue
            if writable and store.place.read_only:
                raise WrongRequest(
                    f"`{id}` belongs to the project `{store.place.scope}`, which is only read from here",
                    hint=f"change it there: `cd {os.path.dirname(store.place.folder)}`",
                )
            return store, learning.replace(scope=store.place.scope)
        raise NotFound(
            f"no learning `{fold(id[:100])}` in this project", hint="`learnt list --status all` shows the ids"
        )

    def _find_event(self, id: str) -> Event:
        missing = NotFound(f"no event `{id}`")
        for store in self._stores:
            try:
                return events.get(store.database, id)
            except NotFound as error:
                missing = error
        raise missing


def now_ms() -> int:
    """Return the time in UTC milliseconds."""
    return time.time_ns() // 1_000_000


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


def _merged_page(stores: Sequence[Store], which: Filter, *, limit: int, offset: int) -> tuple[Learning, ...]:
    """Return a page of the learnings of several stores as if they were one, newest first."""
    if len(stores) == 1:
        pages = [(stores[0], learnings.page(stores[0].database, which, limit=limit, offset=offset))]
        offset = 0
    else:
        pages = [(store, learnings.page(store.database, which, limit=limit + offset)) for store in stores]
    found = [learning.replace(scope=store.place.scope) for store, page in pages for learning in page]
    found.sort(key=lambda learning: (learning.created_at, learning.id), reverse=True)
    return tuple(found[offset : offset + limit])


def settings_files(root: str | None) -> list[str]:
    """Return the files that hold settings for a project, in rising rank."""
    files = [project.user_settings_file(dict(os.environ))]
    return files if root is None else [*files, os.path.join(root, project.SETTINGS_FILE)]


def own_place(here: project.Project, settings: config.Settings) -> Place:
    """Return where a project's own store is."""
    return Place(
        folder=here.folder,
        address=settings.database,
        project=settings.project or here.name,
        wait_ms=settings.wait_ms,
    )


def user_place(settings: config.Settings) -> Place:
    """Return where the user-wide store is."""
    folder = project.user_data_folder(dict(os.environ))
    return Place(folder=folder, scope="user", wait_ms=settings.wait_ms)


def _read_along(settings: config.Settings) -> tuple[list[Place], list[str]]:
    """Return the stores that are read along with the project's, the user's first, and why others cannot be."""
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
    """Return where the store of another project is that is read along."""
    found = project.find_project(path) if os.path.isdir(path) else None
    if found is None:
        raise WrongRequest(
            f"`sources` names {path}, where there is no project", hint="correct the setting, or get that project"
        )
    settings = config.load(settings_files(found.root), {}).settings
    place = own_place(found, settings).replace(scope=found.name, read_only=True)
    if not place.exists():
        raise WrongRequest(
            f"`sources` names {path}, which has no store that can be read",
            hint=f"look there with `learnt -C {path} doctor`",
        )
    return place


def _to_status(status: str) -> Callable[[Learning], dict[str, Any]]:
    return lambda _: {"status": status, "superseded_by": ""}


def _standing(history: list[Event]) -> list[Event]:
    """Return the changes that still hold: without those that were undone, and without the undoings."""
    undone: set[str] = set()
    standing = []
    for event in reversed(history):
        if event.id in undone:
            continue  # an undoing that was itself undone lets its event stand again
        if event.undoes:
            undone.add(event.undoes)
        else:
            standing.append(event)
    return standing[::-1]


def _last_undoable(history: list[Event]) -> Event:
    """Return the latest change that still holds: repeated undos walk back."""
    standing = _standing(history)
    if standing:
        return standing[-1]
    raise WrongRequest("every change of this learning is undone already", hint="`learnt history ID` shows them")


def _taking_back(event: Event, learning: Learning) -> dict[str, Any]:
    if not event.old:
        return {"status": "archived", "superseded_by": ""}  # what was added is put away: nothing is deleted
    present = as_record(learning)
    changed = [name for name, value in event.new.items() if present[name] != value]
    if changed:
        raise WrongRequest(
            f"{changed[0]} of {learning.id} was changed again after {event.id}",
            hint=f"undo the later change first: `learnt history {learning.id}`",
        )
    return read_fields(event.old, allowed=Learning.fields)


def _id_of_text(fields: dict[str, Any]) -> str:
    """Return an id that depends on the text alone, so that a second import of the same file adds nothing."""
    parts = [str(fields.get(name, "")) for name in ("title", *PARAGRAPHS)]
    return text_id("learn", "\0".join(parts))
