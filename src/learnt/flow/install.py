"""Add learnt to clients' settings, and remove it again.

The original of each changed file is in `backups/clients` in the store's folder, with a note about what was written and
which folders were created. A file that has not been changed since is restored byte for byte; from any other file, only
our entries are removed. A client's files change together or not at all, and only one process at a time changes them.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from hashlib import sha256
from typing import Any, Self

from learnt import project, trust
from learnt.clients import registry
from learnt.clients.kit import setup
from learnt.clients.kit.examine import ClientState, examine, find_shared, put_on_path
from learnt.clients.kit.setup import Disk, Location, Target, Unfit
from learnt.errors import LearntError, NoStore, TryAgain, WrongRequest, cannot_write, make_writable
from learnt.flow import context
from learnt.flow.client_questions import Trials, ask_client
from learnt.learnings_file.write import diff
from learnt.model import Value
from learnt.store import BACKUPS_FOLDER, IGNORE, fired, make_folder
from learnt.system.files import Locked, list_names, make_folders, remove_file, remove_tree, write_private
from learnt.system.installation import own_program, own_script
from learnt.system.replacements import (
    Replacement,
    content_of,
    missing_folders,
    remove_folder_if_empty,
    remove_unfinished,
    replace_all,
    resolve,
)

Planner = Callable[[Target, "_SavedFiles"], "_Planned"]
CLIENTS = registry.setup_names()
_FOLDER = "clients"
_LEVELS_BELOW_STORE = 2
_OUTSIDE = "turn this folder into a project with `learnt init`, or use --user for all projects"


class FileChange(Value):
    """A file's old and new content; None means that there is no file."""

    path: str
    before: bytes | None
    after: bytes | None
    done: bool = False

    @property
    def kind(self) -> str:
        """What happens to the file: `made`, `changed`, `removed` or `unchanged`."""
        if self.before == self.after:
            return "unchanged"
        return "made" if self.before is None else "removed" if self.after is None else "changed"

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        then, now = (
            None if content is None else content.decode("utf-8", "replace").removesuffix("\n")
            for content in (self.before, self.after)
        )
        return diff(then, now, name=self.path, applied=self.done)


class SetupOutcome(Value):
    """The result for one client: its files, what the user has to do, or why nothing was changed."""

    client: str
    user: bool
    changes: tuple[FileChange, ...] = ()
    wants: tuple[str, ...] = ()
    error: LearntError | None = None

    def changes_something(self) -> bool:
        """Return whether any file changes."""
        return any(change.kind != "unchanged" for change in self.changes)


class _Planned(Value):
    """A change, the file without our entries, and the folders that were created for it."""

    change: FileChange
    original: bytes | None = None
    folders: tuple[str, ...] = ()
    forget: bool = False


class _Note(Value):
    """A note about a changed file: whether it existed, the digest of its new content, folders created for it."""

    path: str
    existed: bool
    digest: str
    folders: tuple[str, ...] = ()


class _CreatedPlace(Value):
    """What was created to store the originals: how many folders, and whether a .gitignore."""

    folders: int = 0
    ignore: bool = False


class ClientSetup:
    """Sets clients up in the project that contains a folder, or for the user."""

    def __init__(self, start: str = ".") -> None:
        self._start = start

    def install(self, clients: Sequence[str], *, user: bool, dry_run: bool = False) -> list[SetupOutcome]:
        """Add learnt to clients' settings."""
        _refuse_outside(self._start, user, hint=_OUTSIDE)
        location, folder = _location(self._start, user=user)
        outcomes = _change(clients, location, folder, _plan_install, dry_run=dry_run)
        return [outcome if outcome.error else self._with_next_steps(outcome, location) for outcome in outcomes]

    def uninstall(self, clients: Sequence[str], *, user: bool, dry_run: bool = False) -> list[SetupOutcome]:
        """Remove learnt from clients' settings, and remove our backups when no client needs them any more."""
        hint = "go to the project, or use --user to remove what was set up for all projects"
        _refuse_outside(self._start, user, hint=hint)
        location, folder = _location(self._start, user=user)
        return _change(clients, location, folder, _plan_uninstall, dry_run=dry_run)

    def states(self, clients: Sequence[str] = CLIENTS, *, ask: bool = False) -> Iterator[ClientState]:
        """Yield the state of each of the clients that is set up here or for the user.

        `ask` allows starting programs: a client, and our hooks and our server as the client starts them.
        """
        places = []
        for user in (False, True):
            try:
                if user or project.find_project(self._start) is not None:
                    places.append(_location(self._start, user=user))
            except LearntError:
                continue
        locations = [location for location, _ in places]
        closed = _closed_folder(locations[0]) if locations else ""
        saved = [_SavedFiles.below(folder, closed) for _, folder in places]
        disk = _disk(closed).replace(wrote=lambda path: any(files.note(path) for files in saved))
        if not ask:
            disk = _keep_read(disk)
            yield from filter(None, (examine(locations, disk, client) for client in clients))
            return
        trials = Trials()
        disk = disk.replace(ask_client=ask_client, try_hook=trials.try_hook, try_server=trials.try_server)
        with ThreadPoolExecutor(len(clients)) as pool:
            yield from filter(None, pool.map(lambda client: examine(locations, disk, client), clients))

    def list_clients(self, *, user: bool) -> list[str]:
        """Return the clients that are set up in the project, or for the user."""
        location = _location(self._start, user=user)[0]
        disk = _keep_read(_disk(_closed_folder(location)))
        return [client for client in CLIENTS if examine([location], disk, client)]

    def find_clients(self, *, user: bool) -> dict[str, str]:
        """Return the clients that are used on this machine and could be set up, each with what shows it."""
        _refuse_outside(self._start, user, hint=_OUTSIDE)
        location = _location(self._start, user=False)[0]
        disk = _disk(_closed_folder(location))
        traces = {client: setup.find_trace(client, location, disk) for client in CLIENTS}
        return {client: trace for client, trace in traces.items() if trace}

    def _with_next_steps(self, outcome: SetupOutcome, location: Location) -> SetupOutcome:
        twice = [state.twice for state in self.states([outcome.client]) if state.twice]
        steps = [*_next_steps(outcome, location, self._start), *(f"{fault.detail}: {fault.remedy}" for fault in twice)]
        return outcome.replace(wants=tuple(steps))


def _refuse_outside(start: str, user: bool, *, hint: str) -> None:
    if not user and project.find_project(start) is None:
        raise NoStore(f"{os.path.abspath(start)} is not inside a project", hint=hint)


def _disk(closed: str) -> Disk:
    return Disk(read=lambda path: _read(path, closed), has_program=_is_on_path, names=_names)


def _keep_read(disk: Disk) -> Disk:
    """Return a disk from which each file is read once: examining a client asks for the same files again and again."""
    return disk.replace(read=cache(disk.read))


def _closed_folder(location: Location) -> str:
    """Return the folder below which no link is followed: the project's, unless it is a repository of the whole home."""
    home = os.path.join(os.path.realpath(os.path.expanduser("~")), "")
    return "" if home.startswith(os.path.join(location.root, "")) else location.root


def _is_on_path(program: str) -> bool:
    return shutil.which(program) is not None


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _location(start: str, *, user: bool) -> tuple[Location, str]:
    """Return where clients are set up, and the store's folder, which contains the backups."""
    environ = dict(os.environ)
    here = project.find_project(start) or project.new_project(start)
    location = Location(
        root=here.root,
        user=user,
        start=os.path.realpath(start),
        variables={name: environ[name] for name in registry.FOLDER_VARIABLES if environ.get(name)},
        own_program=own_script(),
        windows=sys.platform == "win32",
    )
    if not user:
        return location, here.folder
    return location.replace(program=own_program()), project.user_data_folder(environ)


def _change(
    clients: Sequence[str], location: Location, folder: str, plan: Planner, *, dry_run: bool
) -> list[SetupOutcome]:
    originals = _SavedFiles.below(folder, _closed_folder(location))
    apply = partial(_apply, location=location, originals=originals, plan=plan, leaving=clients)
    outcomes = [apply(client, write=False) for client in clients]
    to_do = any(outcome.changes_something() for outcome in outcomes)
    if dry_run or not (to_do or (plan is _plan_uninstall and os.path.lexists(originals.folder))):
        return outcomes
    created = _CreatedPlace()
    while True:
        created = originals.create(folder, created)
        lock = Locked(originals.lock)
        try:
            with lock:
                if lock.is_lost():
                    continue
                originals.note_created(created)
                outcomes = [apply(client, write=True) for client in clients]
                _remove_place(folder, originals)
                return outcomes
        except OSError as error:
            raise cannot_write(originals.folder, error, hint=make_writable(folder)) from None


def _remove_place(folder: str, originals: _SavedFiles) -> None:
    """Remove the files and folders that were created for the originals, if there are no originals left."""
    if set(list_names(originals.folder)) - {os.path.basename(path) for path in (originals.lock, originals.receipt)}:
        return
    created = originals.created()
    for path in (originals.receipt, originals.lock):
        remove_file(path)
    ours = [originals.folder]
    while len(ours) < created.folders and ours[-1] != os.path.dirname(ours[-1]):
        ours.append(os.path.dirname(ours[-1]))
    for empty in ours[:_LEVELS_BELOW_STORE]:
        remove_folder_if_empty(empty)
    ignored = os.path.join(folder, ".gitignore")
    # Other files mean that a store has been created since, so the folder stays. What the user trusts is no store.
    if (
        created.ignore
        and set(_names(folder)) <= {".gitignore", fired.FOLDER, trust.RECORDS}
        and originals.read(ignored) == IGNORE.encode()
    ):
        remove_tree(os.path.join(folder, fired.FOLDER))
        remove_file(ignored)
    for empty in ours[_LEVELS_BELOW_STORE:]:
        remove_folder_if_empty(empty)


def _apply(
    client: str, *, location: Location, originals: _SavedFiles, plan: Planner, leaving: Sequence[str], write: bool
) -> SetupOutcome:
    try:
        files, disk = setup.targets(client, location), _disk(originals.closed)
        if plan is _plan_uninstall:
            shared = find_shared(client, location, disk, leaving)
            files = [target for target in files if target.path not in shared]
        planned = _plan_all(files, originals, plan)
        if write:
            for file in planned:
                remove_unfinished(file.change.path, originals.closed)
            _carry_out(planned, originals, mode=0o600 if location.user else 0o666)
    except LearntError as error:
        return SetupOutcome(client=client, user=location.user, error=error)
    return SetupOutcome(
        client=client, user=location.user, changes=tuple(file.change.replace(done=write) for file in planned)
    )


def _plan_all(targets: Sequence[Target], originals: _SavedFiles, plan: Planner) -> list[_Planned]:
    planned = []
    for target in targets:
        try:
            planned.append(plan(target, originals))
        except Unfit as reason:
            others = [other for other in targets if other is not target]
            refusal = _refuse_removal if plan is _plan_uninstall else _refuse_addition
            raise refusal(target, reason, others, originals.closed) from None
    return planned


def _plan_install(target: Target, originals: _SavedFiles) -> _Planned:
    content = _read(target.path, originals.closed)
    note, original = originals.note(target.path), originals.original(target.path)
    change = FileChange(path=target.path, before=content, after=target.edit.add(content))
    if change.kind != "unchanged" and (note is None or content is None or note.digest != _digest(content)):
        # If a file has been changed since, or came with the repository, its original is the file without our entries.
        ours = content is not None and target.edit.has_settings(content)
        original = target.edit.remove(content, original) if content is not None and ours else content
    folders = missing_folders(target.path, originals.closed)
    return _Planned(change=change, original=original, folders=(*(note.folders if note else ()), *folders))


def _plan_uninstall(target: Target, originals: _SavedFiles) -> _Planned:
    content = _read(target.path, originals.closed)
    note, original = originals.note(target.path), originals.original(target.path)
    if content is None or (note is None and b"learnt" not in content):
        after = content
    elif note is not None and note.digest == _digest(content):
        after = original
    else:
        after = target.edit.remove(content, original)
    change = FileChange(path=target.path, before=content, after=after)
    return _Planned(change=change, folders=note.folders if note else (), forget=True)


def _carry_out(planned: Sequence[_Planned], originals: _SavedFiles, *, mode: int) -> None:
    replacements: list[Replacement] = []
    for file in planned:
        change = file.change
        written = Replacement(
            path=change.path, before=change.before, after=change.after, mode=mode, closed=originals.closed
        )
        if file.forget:
            replacements += [written, *originals.forget(change.path)]
        elif change.kind != "unchanged":
            # The original is written first, so that a crash in between loses nothing.
            replacements += [*originals.remember(file), written]
    replace_all([replacement for replacement in replacements if replacement.before != replacement.after])
    for file in planned:
        for folder in sorted(file.folders, reverse=True) if file.forget else ():
            if file.change.path.startswith(os.path.join(folder, "")):
                remove_folder_if_empty(folder)


def _closest_folder(path: str) -> str:
    """Return the folder of a file or, if it does not exist, the closest one above that does."""
    return next(folder for folder in setup.folders_up(os.path.dirname(path)) if os.path.isdir(folder))


def _next_steps(outcome: SetupOutcome, location: Location, start: str) -> Iterator[str]:
    """Yield what the user has to do; steps that cannot be checked are yielded only after a change."""
    for folder in dict.fromkeys(_closest_folder(change.path) for change in outcome.changes if not change.done):
        if outcome.changes_something() and not os.access(folder, os.W_OK):
            yield f"{folder} is read-only, so that nothing could be written: {make_writable(folder)}"
    client, disk = outcome.client, _disk(_closed_folder(location))
    state = examine([location], disk, client)
    if outcome.changes_something() or (state and state.trusted is False):
        yield setup.module_of(client).next_step(location)
    switch = setup.find_switch(client, location, disk.read)
    for fault in (*filter(None, [switch]), *setup.find_faults(client, location, disk)):
        yield f"{fault.detail}; {fault.remedy}"
    program = location.program[0]
    if setup.has_hooks(client) and not _is_on_path(program):
        yield f"`{program}` is not on PATH: the hooks stay silent until it is; {put_on_path(location)}"
    here = project.find_project(start)
    try:
        loaded = context.load_configuration(start).settings
        has_store = here is not None and context.own_place(here, loaded).exists()
    except LearntError:
        has_store = True  # `learnt doctor` reports what is wrong with the settings
    if not has_store and not location.user:
        yield "no learnings are stored here yet: `learnt init`"


def _refuse_addition(target: Target, reason: Unfit, others: Sequence[Target], closed: str) -> WrongRequest:
    """Return why nothing was written, with the entries that a person can add instead."""
    message = f"{target.path} was not changed: {reason}"
    if reason.remedy:
        return WrongRequest(message, hint=f"{reason.remedy}, and try again")
    lacking = [target, *(other for other in others if _lacks(other, closed))]
    missing = {file.path: file.edit.by_hand(_read(file.path, closed)) for file in lacking}
    if not all(missing.values()):
        return WrongRequest(message, hint="fix it and try again")
    hint = "fix it and try again, or add this by hand"
    if len(missing) == 1:
        return WrongRequest(message, hint=f"{hint}:\n\n{missing[target.path]}")
    return WrongRequest(message, hint=hint + "".join(f"\n\nin {path}:\n\n{text}" for path, text in missing.items()))


def _lacks(target: Target, closed: str) -> bool:
    content = _read(target.path, closed)
    try:
        return target.edit.add(content) != content
    except Unfit:
        return True


def _refuse_removal(target: Target, reason: Unfit, others: Sequence[Target], closed: str) -> WrongRequest:
    others_too = [other.path for other in others if b"learnt" in (_read(other.path, closed) or b"")]
    elsewhere = f", there and in {', '.join(others_too)}" if others_too else ""
    hint = f"fix it and try again, or remove learnt's entries by hand{elsewhere}"
    return WrongRequest(f"{target.path} was not changed: {reason}", hint=hint)


def _read(path: str, closed: str) -> bytes | None:
    place = resolve(path, closed)
    if os.path.exists(place) and not os.path.isfile(place):
        raise WrongRequest(f"{path} is not a file", hint="move it elsewhere")
    above = os.path.dirname(path)
    if os.path.isfile(above):
        raise WrongRequest(f"{above} is a file, but must be a folder for {path}", hint="move it elsewhere")
    return content_of(path, closed)


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


class _SavedFiles:
    """The folder with notes and originals; it has two files for each changed file."""

    def __init__(self, folder: str, store: str, closed: str) -> None:
        self.folder = folder
        self._store = os.path.dirname(store)
        self._is_brought = bool(trust.find_brought(store, (BACKUPS_FOLDER,)))
        self.closed = closed
        """The folder below which no link is followed to a client's settings."""
        self.lock = os.path.join(folder, "lock")
        self.receipt = os.path.join(folder, "made")

    @classmethod
    def below(cls, store: str, closed: str) -> Self:
        """Return the files that are saved in a store's folder."""
        return cls(os.path.join(store, BACKUPS_FOLDER, _FOLDER), store, closed)

    def create(self, store: str, before: _CreatedPlace) -> _CreatedPlace:
        """Create the folder; return what has been created so far. It is private, since settings may contain secrets."""
        folders = len(missing_folders(self.lock, self._store))
        ignored = os.path.lexists(os.path.join(store, ".gitignore"))
        try:
            make_folder(store)
            for folder in (os.path.dirname(self.folder), self.folder):
                make_folders(folder)
        except OSError as error:
            raise cannot_write(self.folder, error, hint=make_writable(store)) from None
        except TryAgain:
            raise
        except LearntError as error:
            raise LearntError(error.message, hint=make_writable(store)) from None
        return _CreatedPlace(folders=max(folders, before.folders), ignore=before.ignore or not ignored)

    def note_created(self, created: _CreatedPlace) -> None:
        """Record what was created, together with what earlier processes created."""
        recorded = self.created()
        combined = _CreatedPlace(
            folders=max(created.folders, recorded.folders), ignore=created.ignore or recorded.ignore
        )
        if combined != recorded:
            write_private(self.receipt, json.dumps(combined.as_dict()))

    def read(self, path: str) -> bytes | None:
        """Return the content of a file in the store's folder; None if it does not exist."""
        return content_of(path, self._store)

    def created(self) -> _CreatedPlace:
        """Return what was created, as far as it is recorded."""
        try:
            record: Any = json.loads(self.read(self.receipt) or b"")
            return _CreatedPlace(folders=int(record["folders"]), ignore=bool(record["ignore"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            return _CreatedPlace()

    def note(self, path: str) -> _Note | None:
        """Return the note about a file; None if there is none, or if git has brought the notes."""
        if self._is_brought:
            return None
        try:
            record: Any = json.loads(self.read(self._paths(path)[0]) or b"")
            note = _Note(**{**record, "folders": tuple(record["folders"])})
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        # Without the original, the note is useless.
        lost = note.existed and not os.path.lexists(self._paths(path)[1])
        return note if note.path == path and not lost else None

    def original(self, path: str) -> bytes | None:
        """Return the original of a file; None if the file is new or there is no note."""
        note = self.note(path)
        return self.read(self._paths(path)[1]) if note and note.existed else None

    def remember(self, planned: _Planned) -> list[Replacement]:
        """Return the note and the original to write for a change."""
        change = planned.change
        note = _Note(
            path=change.path,
            existed=planned.original is not None,
            digest=_digest(change.after or b""),
            folders=planned.folders,
        )
        text = json.dumps(note.as_dict(), indent=2).encode() + b"\n"
        return self._replacements(change.path, text, planned.original)

    def forget(self, path: str) -> list[Replacement]:
        """Return the note and the original to delete for a file."""
        return self._replacements(path, None, None)

    def _replacements(self, path: str, note: bytes | None, original: bytes | None) -> list[Replacement]:
        # The note refers to the original, so it is written after it and deleted before it.
        pairs = list(zip(self._paths(path), (note, original), strict=True))
        pairs = pairs if note is None else pairs[::-1]
        return [
            Replacement(path=file, before=self.read(file), after=after, mode=0o600, closed=self._store)
            for file, after in pairs
        ]

    def _paths(self, path: str) -> tuple[str, str]:
        name = _digest(path.encode("utf-8", "surrogateescape"))[:12]
        stem = os.path.join(self.folder, name)
        return f"{stem}.json", f"{stem}-{os.path.basename(path).lstrip('.')}"
