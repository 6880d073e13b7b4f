"""Set clients up, and take everything out again.

What a file was before lies in `backups/clients` of the store's folder, with a note of what was made of it and of the
folders that were made for it. Whoever has not changed the file since gets it back byte for byte; from a file that was
changed only what is ours is taken out. All files of a client change together or not at all, and one process at a time
changes any.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from hashlib import sha256

from learnt import config, project
from learnt.clients import setup
from learnt.clients.setup import Setting, Target, Unfit
from learnt.clients.setup.examine import Disk, Found, examine
from learnt.clients.setup.switches import switched_off
from learnt.errors import LearntError, NoStore, TryAgain, WrongRequest, cannot_write
from learnt.flow import context
from learnt.learnings_file import diff
from learnt.model import Value
from learnt.store import BACKUPS_FOLDER, IGNORE, fired, make_folder
from learnt.system.files import write_private
from learnt.system.locks import Locked
from learnt.system.replacements import (
    Replacement,
    content_of,
    missing_folders,
    remove_empty,
    remove_unfinished,
    replace_all,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    Planner = Callable[[Target, "_Kept"], "_Planned"]

CLIENTS = tuple(setup.CLIENTS)
_FOLDER = "clients"
_BELOW_THE_STORE = 2
_PERMISSIONS = "mend the permissions: folder and files must be yours"


class Change(Value):
    """What a file was and what it becomes; None stands for no file."""

    path: str
    before: bytes | None
    after: bytes | None
    done: bool = False

    @property
    def kind(self) -> str:
        """What is done to the file, in a word."""
        if self.before == self.after:
            return "unchanged"
        return "made" if self.before is None else "removed" if self.after is None else "changed"

    @property
    def diff(self) -> str:
        """What changes, as a unified diff."""
        then, now = (
            None if content is None else content.decode("utf-8", "replace").removesuffix("\n")
            for content in (self.before, self.after)
        )
        return diff(then, now, name=self.path, done=self.done)


class Outcome(Value):
    """What happened to one client: its files, what it still wants, or why nothing was changed."""

    client: str
    user: bool
    changes: tuple[Change, ...] = ()
    wants: tuple[str, ...] = ()
    error: LearntError | None = None


class _Planned(Value):
    """A change, what the file is without ours, and which folders were made for it."""

    change: Change
    original: bytes | None = None
    folders: tuple[str, ...] = ()
    forget: bool = False


class _Note(Value):
    """What was made of a file: whether it was there before, the digest of what was written, folders made for it."""

    path: str
    existed: bool
    digest: str
    folders: tuple[str, ...] = ()


class _Made(Value):
    """What was made so that there is a place for the originals: how many folders, the innermost first, a .gitignore."""

    folders: int = 0
    ignore: bool = False


def install(clients: Sequence[str], *, user: bool, dry_run: bool = False, start: str = ".") -> list[Outcome]:
    """Set clients up in the project around a folder, or for the user."""
    if not user:
        _refuse_outside(start, hint="make this folder one with `learnt init`, or use --user for all projects")
    setting, folder = _setting(start, user=user)
    done = _change(clients, setting, folder, _plan_install, dry_run=dry_run)
    return [one if one.error else one.replace(wants=tuple(_wants(one, setting, start))) for one in done]


def uninstall(clients: Sequence[str], *, user: bool, dry_run: bool = False, start: str = ".") -> list[Outcome]:
    """Take out of clients' settings all that is ours, and with the last of it what we kept for that."""
    if not user:
        _refuse_outside(start, hint="go into the project, or use --user for what was set up for all projects")
    setting, folder = _setting(start, user=user)
    return _change(clients, setting, folder, _plan_uninstall, dry_run=dry_run)


def installed(start: str, *, ask: bool = False) -> Iterator[Found]:
    """Yield what is found of each client that is set up here or for the user; `ask`: a client may be asked, too."""
    settings = []
    for user in (False, True):
        try:
            settings.append(_setting(start, user=user)[0])
        except LearntError:
            continue
    yield from examine(settings, _disk(ask_codex=_ask_codex if ask else None))


def _refuse_outside(start: str, *, hint: str) -> None:
    if project.find_project(start) is None:
        raise NoStore(f"{os.path.abspath(start)} is not inside a project", hint=hint)


def _disk(ask_codex: Callable[[str], dict[str, str] | None] | None = None) -> Disk:
    return Disk(read=_read, is_there=_is_there, names=_names, ask_codex=ask_codex)


def _is_there(program: str) -> bool:
    return shutil.which(program) is not None


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _ask_codex(folder: str) -> dict[str, str] | None:
    from learnt.flow.codex_trust import trust

    return trust(folder)


def _setting(start: str, *, user: bool) -> tuple[Setting, str]:
    """Return where clients are set up, and the store's folder beside which the backups lie."""
    environ = dict(os.environ)
    here = project.find_project(start) or project.new_project(start)
    setting = Setting(
        root=here.root,
        user=user,
        places={name: environ[name] for name in setup.PLACES if environ.get(name)},
        windows=sys.platform == "win32",
    )
    if not user:
        return setting, here.folder
    return setting.replace(program=_own_program()), project.user_data_folder(environ)


def _own_program() -> tuple[str, ...]:
    """Return the words that start this very learnt, wherever PATH leads."""
    name = "learnt.exe" if sys.platform == "win32" else "learnt"
    beside = os.path.join(os.path.dirname(sys.executable), name)
    return (beside,) if os.path.isfile(beside) else (sys.executable, "-m", "learnt")


def _change(clients: Sequence[str], setting: Setting, folder: str, plan: Planner, *, dry_run: bool) -> list[Outcome]:
    kept = _Kept(os.path.join(folder, BACKUPS_FOLDER, _FOLDER))
    removes = plan is _plan_uninstall
    outcomes = [_outcome(client, setting, kept, plan, write=False) for client in clients]
    to_do = any(change.kind != "unchanged" for outcome in outcomes for change in outcome.changes)
    if dry_run or not (to_do or (removes and os.path.isdir(kept.folder))):
        return outcomes
    made = _Made()
    while True:
        made = kept.make(folder, made)
        lock = Locked(kept.lock)
        try:
            with lock:
                if lock.is_lost():
                    continue
                kept.remember_made(made)
                outcomes = [_outcome(client, setting, kept, plan, write=True) for client in clients]
                _take_away(folder, kept)
                return outcomes
        except OSError as error:
            raise cannot_write(kept.folder, error, hint=_PERMISSIONS) from None


def _take_away(folder: str, kept: _Kept) -> None:
    """Remove what was made for the originals once there are none; what was there before stays, also when empty."""
    if set(os.listdir(kept.folder)) - {os.path.basename(path) for path in (kept.lock, kept.receipt)}:
        return
    made = kept.made()
    for path in (kept.receipt, kept.lock):
        if os.path.exists(path):
            os.unlink(path)
    ours = [os.path.realpath(kept.folder)]
    while len(ours) < made.folders and ours[-1] != os.path.dirname(ours[-1]):
        ours.append(os.path.dirname(ours[-1]))
    for empty in ours[:_BELOW_THE_STORE]:
        remove_empty(empty)
    ignored = os.path.join(folder, ".gitignore")
    # Where more is left, a store came after us.
    if made.ignore and set(_names(folder)) <= {".gitignore", fired.FOLDER} and content_of(ignored) == IGNORE.encode():
        shutil.rmtree(os.path.join(folder, fired.FOLDER), ignore_errors=True)
        os.unlink(ignored)
    for empty in ours[_BELOW_THE_STORE:]:
        remove_empty(empty)


def _outcome(client: str, setting: Setting, kept: _Kept, plan: Planner, *, write: bool) -> Outcome:
    try:
        planned = _plans(setup.targets(client, setting), kept, plan)
        for path in (one.change.path for one in planned if write):
            remove_unfinished(path)
        if write:
            _carry_out(planned, kept, mode=0o600 if setting.user else 0o666)
    except LearntError as error:
        return Outcome(client=client, user=setting.user, error=error)
    return Outcome(client=client, user=setting.user, changes=tuple(one.change.replace(done=write) for one in planned))


def _plans(targets: Sequence[Target], kept: _Kept, plan: Planner) -> list[_Planned]:
    planned = []
    for target in targets:
        try:
            planned.append(plan(target, kept))
        except Unfit as reason:
            others = [one for one in targets if one is not target]
            refused = _not_removed if plan is _plan_uninstall else _not_added
            raise refused(target, reason, others) from None
    return planned


def _plan_install(target: Target, kept: _Kept) -> _Planned:
    content = _read(target.path)
    note, original = kept.note(target.path), kept.original(target.path)
    change = Change(path=target.path, before=content, after=target.edit.add(content))
    if change.kind != "unchanged" and (note is None or content is None or note.digest != _digest(content)):
        # What was changed since, or came with the repository, is the original but for what is ours in it.
        ours = content is not None and target.edit.holds(content)
        original = target.edit.remove(content, original) if content is not None and ours else content
    folders = missing_folders(target.path)
    return _Planned(change=change, original=original, folders=(*(note.folders if note else ()), *folders))


def _plan_uninstall(target: Target, kept: _Kept) -> _Planned:
    content = _read(target.path)
    note, original = kept.note(target.path), kept.original(target.path)
    if content is None or (note is None and b"learnt" not in content):
        after = content
    elif note is not None and note.digest == _digest(content):
        after = original
    else:
        after = target.edit.remove(content, original)
    change = Change(path=target.path, before=content, after=after)
    return _Planned(change=change, folders=note.folders if note else (), forget=True)


def _carry_out(planned: Sequence[_Planned], kept: _Kept, *, mode: int) -> None:
    replacements: list[Replacement] = []
    for one in planned:
        change = one.change
        written = Replacement(path=change.path, before=change.before, after=change.after, mode=mode)
        if one.forget:
            replacements += [written, *kept.forgotten(change.path)]
        elif change.kind != "unchanged":
            # First what it was: killed in between, nothing is lost.
            replacements += [*kept.remembered(one), written]
    replace_all([one for one in replacements if one.before != one.after])
    for one in planned:
        for folder in sorted(one.folders, reverse=True) if one.forget else ():
            remove_empty(folder)


def _wants(outcome: Outcome, setting: Setting, start: str) -> Iterator[str]:
    """Yield what a client wants from the user: what cannot be checked only when something changed, the rest always."""
    client = outcome.client
    found = next((one for one in examine([setting], _disk()) if one.client == client), None)
    if any(change.kind != "unchanged" for change in outcome.changes) or (found and found.trusted is False):
        yield setup.wants(client, setting)
    off = switched_off(client, setting, _read)
    if off:
        yield f"{off.detail}; {off.remedy}"
    program = setting.program[0]
    # aider is only told which file to read.
    if client != "aider" and not _is_there(program):
        yield f"`{program}` is not on PATH: the hooks stay silent until it is; --user writes the absolute path"
    here = project.find_project(start)
    try:
        loaded = config.load(context.settings_files(here.root if here else None), dict(os.environ)).settings
        known = here is not None and context.own_place(here, loaded).exists()
    except LearntError:
        known = True  # what is wrong with the settings is told elsewhere
    if not known and not setting.user:
        yield "no learnings are kept here yet: `learnt init`"
    for twice in (one for one in installed(start) if one.client == client and one.twice):
        yield f"{twice.detail}: {twice.remedy}"


def _not_added(target: Target, reason: Unfit, others: Sequence[Target]) -> WrongRequest:
    """Return why nothing was written, with all that a person can write instead."""
    message = f"{target.path} was not changed: {reason}"
    if reason.remedy:
        return WrongRequest(message, hint=f"{reason.remedy}, and try again")
    missing = {one.path: one.edit.by_hand(_read(one.path)) for one in (target, *filter(_lacks, others))}
    if not all(missing.values()):
        return WrongRequest(message, hint="mend it and try again")
    hint = "mend it and try again, or add this by hand"
    if len(missing) == 1:
        return WrongRequest(message, hint=f"{hint}:\n\n{missing[target.path]}")
    return WrongRequest(message, hint=hint + "".join(f"\n\nin {path}:\n\n{text}" for path, text in missing.items()))


def _lacks(target: Target) -> bool:
    content = _read(target.path)
    try:
        return target.edit.add(content) != content
    except Unfit:
        return True


def _not_removed(target: Target, reason: Unfit, others: Sequence[Target]) -> WrongRequest:
    too = [one.path for one in others if b"learnt" in (_read(one.path) or b"")]
    there = f", there and in {', '.join(too)}" if too else ""
    hint = f"mend it and try again, or take out by hand what names learnt{there}"
    return WrongRequest(f"{target.path} was not changed: {reason}", hint=hint)


def _read(path: str) -> bytes | None:
    if os.path.exists(path) and not os.path.isfile(path):
        raise WrongRequest(f"{path} is no file", hint="move it away")
    above = os.path.dirname(path)
    if os.path.isfile(above):
        raise WrongRequest(f"{above} is a file, and should be a folder: {path} belongs there", hint="move it away")
    return content_of(path)


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


class _Kept:
    """The notes and the originals in a folder of their own, two files for each file that was changed."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.lock = os.path.join(folder, "lock")
        self.receipt = os.path.join(folder, "made")

    def make(self, store: str, before: _Made) -> _Made:
        """Make the folder in a store's, for its owner only (settings may hold secrets); return what was made so far."""
        folders, ignored = len(missing_folders(self.lock)), os.path.exists(os.path.join(store, ".gitignore"))
        try:
            make_folder(store)
            for folder in (os.path.dirname(self.folder), self.folder):
                os.makedirs(folder, mode=0o700, exist_ok=True)
        except OSError as error:
            raise cannot_write(self.folder, error, hint=_PERMISSIONS) from None
        except TryAgain:
            raise
        except LearntError as error:
            raise LearntError(error.message, hint=_PERMISSIONS) from None
        return _Made(folders=max(folders, before.folders), ignore=before.ignore or not ignored)

    def remember_made(self, made: _Made) -> None:
        """Write down what was made; what an earlier one made still counts."""
        known = self.made()
        both = _Made(folders=max(made.folders, known.folders), ignore=made.ignore or known.ignore)
        if both != known:
            write_private(self.receipt, json.dumps(both.as_dict()))

    def made(self) -> _Made:
        """Return what was made; nothing when nothing is known."""
        try:
            found: Any = json.loads(content_of(self.receipt) or b"")
            return _Made(folders=int(found["folders"]), ignore=bool(found["ignore"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            return _Made()

    def note(self, path: str) -> _Note | None:
        """Return what was made of a file; None when nothing is known."""
        try:
            found: Any = json.loads(content_of(self._paths(path)[0]) or b"")
            note = _Note(**{**found, "folders": tuple(found["folders"])})
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        # Without the original, what is known is worth nothing.
        lost = note.existed and not os.path.exists(self._paths(path)[1])
        return note if note.path == path and not lost else None

    def original(self, path: str) -> bytes | None:
        """Return what a file was; None when there was none, or nothing is known."""
        note = self.note(path)
        return content_of(self._paths(path)[1]) if note and note.existed else None

    def remembered(self, planned: _Planned) -> list[Replacement]:
        """Return what is to be written about a change."""
        change = planned.change
        note = _Note(
            path=change.path,
            existed=planned.original is not None,
            digest=_digest(change.after or b""),
            folders=planned.folders,
        )
        text = json.dumps(note.as_dict(), indent=2).encode() + b"\n"
        return self._replacements(change.path, text, planned.original)

    def forgotten(self, path: str) -> list[Replacement]:
        """Return what is to be deleted about a file."""
        return self._replacements(path, None, None)

    def _replacements(self, path: str, note: bytes | None, original: bytes | None) -> list[Replacement]:
        # The note says that the original is there, and so is written after it, and forgotten before it.
        pairs = list(zip(self._paths(path), (note, original), strict=True))
        pairs = pairs if note is None else pairs[::-1]
        return [Replacement(path=one, before=content_of(one), after=after, mode=0o600) for one, after in pairs]

    def _paths(self, path: str) -> tuple[str, str]:
        name = _digest(path.encode("utf-8", "surrogateescape"))[:12]
        stem = os.path.join(self.folder, name)
        return f"{stem}.json", f"{stem}-{os.path.basename(path).lstrip('.')}"
