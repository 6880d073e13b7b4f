"""Examine whether a client's setup works: its files, what its other settings say, and our hooks and our server.

Nothing here writes, starts a process, or reads the environment: the `Disk` does what the caller allows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from learnt.clients import registry
from learnt.clients.kit.setup import (
    NAME,
    Commands,
    Disk,
    Fault,
    Location,
    Target,
    Trial,
    Unfit,
    find_faults,
    find_switch,
    find_trace,
    has_hooks,
    module_of,
    other_settings,
    program_of,
    targets,
)
from learnt.errors import LearntError
from learnt.model import Value


class ClientState(Value):
    """The state of a client that is set up in a project, for the user, or both."""

    client: str
    files: tuple[str, ...] = ()
    """The files with our settings."""
    faults: tuple[Fault, ...] = ()
    twice: Fault | None = None
    """The fault that the client is set up both here and for the user."""
    distrust: Fault | None = None
    """The fault that the client does not trust our hooks."""
    trusted: bool | None = None
    """Whether the client trusts our hooks; None if this cannot be determined."""
    answers: Mapping[str, bool] = {}
    """Whether our `hooks` and our `server` answered when they were started as the client starts them."""
    is_used: bool = True
    """Whether the client is used on this machine. A project can have settings for clients that are not used here."""
    next_step: str = ""
    """What the user has to do before the client runs our hooks."""

    def list_faults(self) -> list[Fault]:
        """Return all faults, each once."""
        return list(dict.fromkeys(filter(None, (self.twice, *self.faults, self.distrust))))


def examine(locations: Sequence[Location], disk: Disk, client: str) -> ClientState | None:
    """Return the state of a client; None if it is set up in none of the locations. Nothing is changed."""
    own = {path for location in locations if location.user for path in _paths(client, location)}
    # In the home folder, a client's file for a project can be its file for the user.
    places = [location for location in locations if location.user or not own & _paths(client, location)]
    states = [state for location in places if (state := _examine_one(client, location, disk))]
    if len(states) <= 1:
        return states[0] if states else None
    here, user = states
    return here.replace(
        files=(*here.files, *user.files),
        faults=(*here.faults, *user.faults),
        twice=Fault(
            detail=f"set up in {here.files[0]} and in {user.files[0]}, so that every hook runs twice",
            remedy=f"`learnt uninstall {client}`, or `learnt uninstall {client} --user`",
        ),
        distrust=here.distrust or user.distrust,
        answers={name: all(one.answers.get(name, True) for one in states) for name in (*here.answers, *user.answers)},
    )


def find_shared(client: str, location: Location, disk: Disk, leaving: Sequence[str]) -> set[str]:
    """Return the files that clients other than this one need, unless they are leaving, too."""
    others = (other for other in registry.setup_names() if other not in (client, *leaving))
    return {path for other in others if _is_set_up(other, location, disk) for path in _paths(other, location)}


def _is_set_up(client: str, location: Location, disk: Disk) -> bool:
    """Return whether a client is set up in a location. A file that it shares with another client does not show it."""
    shared = _shared_paths(client, location)
    files = targets(client, location) if _paths(client, location) else []
    return any(target.path not in shared and _has_settings(target, disk) for target in files)


def _shared_paths(client: str, location: Location) -> set[str]:
    others = (other for other in registry.setup_names() if other != client)
    return {path for other in others for path in _paths(other, location)}


def _paths(client: str, location: Location) -> set[str]:
    try:
        return {target.path for target in targets(client, location)}
    except LearntError:
        return set()  # it cannot be set up there


def _is_half_set_up(client: str, files: Sequence[Target], location: Location, disk: Disk) -> bool:
    """Return whether only a file that the client shares with others has our settings, and is not there for them."""
    shared = [target for target in files if _has_settings(target, disk)]
    if not shared:
        return False
    if any(disk.wrote(target.path) for target in files if target not in shared):
        return True
    sharing = [other for other in registry.setup_names() if _paths(other, location) & {shared[0].path}]
    return sharing[0] == client and not any(_is_set_up(other, location, disk) for other in sharing)


def _examine_one(client: str, location: Location, disk: Disk) -> ClientState | None:
    """Return the state of a client in a location; None if it is not set up there."""
    try:
        files = targets(client, location)
    except LearntError:
        return None
    is_whole = _is_set_up(client, location, disk)
    unreadable = [target for target in files if _find_damage(target, disk)]
    is_damaged = any(disk.wrote(target.path) or _mentions_us(target, disk) for target in unreadable)
    if not is_whole and not is_damaged and not _is_half_set_up(client, files, location, disk):
        return None
    ours = [target for target in files if _has_settings(target, disk)]
    damage = list(_list_damage(client, location, files, disk))
    gap = None if unreadable else _find_gap(client, location, ours, disk, is_whole=is_whole)
    trials = _try_commands(location, ours, disk) if gap is None and not unreadable else {}
    faults = (
        *damage,
        *filter(None, [find_switch(client, location, disk.read), gap]),
        *find_faults(client, location, disk),
        *_list_failures(client, location, trials),
    )
    trust = module_of(client).find_trust(location, ours, disk)
    next_step = module_of(client).next_step(location)
    distrusted = bool(is_whole and trust.reason and trust.matters)
    in_doubt = trust.runs_none and not trust.refused
    read_from = tuple(filter(None, (*(target.path for target in ours), trust.record))) if in_doubt else ()
    return ClientState(
        client=client,
        files=tuple(target.path for target in ours or unreadable),
        faults=faults,
        distrust=Fault(detail=trust.reason, remedy=next_step, files=read_from) if distrusted else None,
        trusted=trust.trusted,
        answers={name: not trial.fault for name, trial in trials.items()},
        is_used=bool(find_trace(client, location, disk)),
        next_step=next_step,
    )


def _list_damage(client: str, location: Location, files: Sequence[Target], disk: Disk) -> Iterator[Fault]:
    """Yield the settings files that cannot be read, by the client neither."""
    again = f", then `{_install(client, location)}`"
    others = [target for target in other_settings(client, location) if target.path not in {file.path for file in files}]
    for target, then in (*((file, again) for file in files), *((other, "") for other in others)):
        if damage := _find_damage(target, disk):
            yield damage.replace(remedy=f"{damage.remedy}{then}")


def _find_damage(target: Target, disk: Disk) -> Fault | None:
    """Return why a settings file cannot be read; None if it can, or does not exist."""
    try:
        content = disk.read(target.path)
        if content:
            target.edit.has_settings(content)
    except Unfit as reason:
        return Fault(detail=f"{target.path} cannot be read: {reason}", remedy=f"fix {target.path}")
    except LearntError as error:
        return Fault(detail=error.message, remedy=error.hint)
    return None


def _mentions_us(target: Target, disk: Disk) -> bool:
    try:
        return NAME.encode() in (disk.read(target.path) or b"")
    except LearntError:
        return False


def _list_failures(client: str, location: Location, trials: Mapping[str, Trial]) -> Iterator[Fault]:
    for trial in trials.values():
        if trial.wrong_program:
            yield Fault(detail=trial.fault, remedy=_start_another(client, location, trial.wrong_program))
        elif trial.fault:
            yield Fault(detail=trial.fault, remedy=trial.remedy)


def _start_another(client: str, location: Location, wrong: str) -> str:
    """Return how a client is made to start the learnt that runs now."""
    if not location.own_program:
        return f"remove {wrong}, or change which `{NAME}` is first on PATH"
    if location.user:
        return f"`{location.own_program} install {client} --user`"
    return f"{put_on_path(location)}, or remove {wrong}"


def put_on_path(location: Location) -> str:
    """Return how the learnt that runs now is found. Installing for the user, too, would run every hook twice."""
    if not location.own_program:
        return f"put {NAME} on PATH"
    return f'`export PATH="{os.path.dirname(location.own_program)}:$PATH"` where the client is started'


def find_commands(files: Iterable[Target], disk: Disk) -> Commands:
    """Return the command lines of ours in a client's files."""
    found = [target.edit.commands(disk.read(target.path) or b"") for target in files]
    hooks = dict.fromkeys(words for commands in found for words in commands.hooks)
    return Commands(hooks=tuple(hooks), server=next((one.server for one in found if one.server), ()))


def _try_commands(location: Location, ours: Sequence[Target], disk: Disk) -> dict[str, Trial]:
    """Return what came of starting our hooks and our server, as far as the client has them.

    If a hook starts the wrong program, or one that hangs, the server would say no more, and is not waited for.
    """
    commands = find_commands(ours, disk)
    trials: dict[str, Trial] = {}
    hooks = Trial()
    for words in commands.hooks:
        if disk.try_hook and not hooks.fault:
            trials["hooks"] = hooks = disk.try_hook(words, location.root)
    if disk.try_server and commands.server and not hooks.wrong_program:
        trials["server"] = disk.try_server(commands.server, location.root)
    return trials


def _find_gap(client: str, location: Location, ours: Sequence[Target], disk: Disk, *, is_whole: bool) -> Fault | None:
    """Return what is missing in a client's setup; None if it is complete and learnt can be started."""
    again = f"`{_install(client, location)}`"
    program = next(filter(None, map(program_of, find_commands(ours, disk).hooks)), location.program[0])
    if has_hooks(client) and not disk.has_program(program):
        if program != NAME:
            return Fault(detail=f"{program} does not exist", remedy=again)
        return Fault(detail=f"{program} is not on PATH", remedy=put_on_path(location))
    as_written = location.replace(program=(program, *location.program[1:]))
    stale = [target for target in targets(client, as_written) if _is_stale(target, disk)]
    if not stale:
        return None
    if obstacle := next(filter(None, (_find_obstacle(target, disk) for target in stale)), None):
        return obstacle.replace(remedy=f"{obstacle.remedy}, then {again}")
    detail = f"the setup is incomplete, or from an older version: {', '.join(target.path for target in stale)}"
    leave = f"`learnt uninstall {client}{' --user' if location.user else ''}`"
    return Fault(detail=detail, remedy=again if is_whole else f"{again}, or {leave}")


def _find_obstacle(target: Target, disk: Disk) -> Fault | None:
    """Return what a person has to change before a file can be written; None if there is nothing."""
    try:
        target.edit.add(disk.read(target.path))
    except Unfit as reason:
        return Fault(detail=f"{target.path}: {reason}", remedy=reason.remedy) if reason.remedy else None
    except LearntError:
        return None
    return None


def _install(client: str, location: Location) -> str:
    return f"learnt install {client}{' --user' if location.user else ''}"


def _has_settings(target: Target, disk: Disk) -> bool:
    try:
        content = disk.read(target.path)
        return content is not None and target.edit.has_settings(content)
    except (Unfit, LearntError):
        return False


def _is_stale(target: Target, disk: Disk) -> bool:
    try:
        content = disk.read(target.path)
        return content is None or target.edit.add(content) != content
    except (Unfit, LearntError):
        return True
