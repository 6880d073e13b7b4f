"""Look at what is set up in the clients: whether it is whole, can be started, and is trusted. Changes nothing."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence

from learnt.clients import setup
from learnt.clients.setup import codex, json_text
from learnt.clients.setup.json_file import JsonFile
from learnt.clients.setup.shapes import NAME, Setting, Target, Unfit, decoded, is_our_hook
from learnt.clients.setup.switches import switched_off
from learnt.errors import LearntError
from learnt.model import Value

# With which words Codex tells that it runs a hook, and what its others mean.
_RUN = ("trusted", "managed")
_FEW = 3
_MEANINGS = {"untrusted": "not approved yet", "modified": "changed since it was approved"}


class Disk(Value):
    """How files are read, whether a program is there, and what Codex itself says of the hooks that it would run."""

    read: Callable[[str], bytes | None]
    is_there: Callable[[str], bool]
    names: Callable[[str], Sequence[str]]
    """What lies in a folder."""
    ask_codex: Callable[[str], Mapping[str, str] | None] | None = None
    """Given a folder; None where nobody asks it."""


class Found(Value):
    """What was found of a client in one place."""

    client: str
    fine: bool
    detail: str
    remedy: str = ""
    twice: bool = False
    """Whether it is about a client that is set up in two places."""
    wants: str = ""
    """What the client wants from the user before it runs our hooks."""
    trusted: bool | None = None
    """Whether the client trusts them; None where that cannot be known."""
    unheard: tuple[str, ...] = ()
    """The files of which it would run no hook at all, by what is known; a hook that fired since tells otherwise."""


def examine(settings: Sequence[Setting], disk: Disk) -> Iterator[Found]:
    """Yield what is found of each client that is set up in any of the places."""
    for client in setup.CLIENTS:
        paths: dict[str, Setting] = {}
        for setting in settings:
            try:
                targets = setup.targets(client, setting)
            except LearntError:
                continue
            held = [target for target in targets if _holds(target, disk)]
            if held and held[0].path not in paths:
                paths[held[0].path] = setting
                yield _examined(client, setting, held, disk)
        if len(paths) > 1:
            detail = f"set up in {' and in '.join(paths)}, so that every hook runs twice"
            remedy = f"`learnt uninstall {client}`, or the same with --user"
            yield Found(client=client, fine=False, detail=detail, remedy=remedy, twice=True)


def _examined(client: str, setting: Setting, held: list[Target], disk: Disk) -> Found:
    where = ", ".join(target.path for target in held)
    wants = setup.wants(client, setting)
    off = switched_off(client, setting, disk.read)
    faults = [fault for fault in (off and (off.detail, off.remedy), _unready(client, setting, held, disk)) if fault]
    if faults:
        detail = f"in {where}, but {', and '.join(told for told, _ in faults)}"
        remedy = "; ".join(remedy for _, remedy in faults)
        return Found(client=client, fine=False, detail=detail, remedy=remedy, wants=wants)
    trusted, reason, whole = _trust(client, setting, held, disk)
    if reason:
        # A project carries settings for all who work in it: where Codex was never used, nobody lacks its hooks. Where
        # it left traces they do lack them, also when it is not on this PATH: an editor starts it by its path.
        fine = client == "codex" and not _is_used(setting, disk)
        if fine:
            reason = f"{reason}; but Codex is not on this machine: it is not on PATH and has left nothing behind"
        elif client == "codex" and not disk.is_there(client):
            reason = f"{reason}; {client} is not on PATH, so that only its files could tell"
        unheard = tuple(target.path for target in held) if whole else ()
        told = Found(client=client, fine=fine, detail=reason, remedy=wants, wants=wants, trusted=False)
        return told.replace(unheard=unheard)
    detail = f"in {where}{', and trusted' if trusted else ''}"
    return Found(client=client, fine=True, detail=detail, wants=wants, trusted=trusted)


def _unready(client: str, setting: Setting, held: list[Target], disk: Disk) -> tuple[str, str] | None:
    """Return what is missing of a client's setup and what to do about it; None when all is there and can start."""
    again = f"`learnt install {client}{' --user' if setting.user else ''}`"
    program = next(filter(None, (_program(target, disk) for target in held)), setting.program[0])
    # aider is only told which file to read.
    if client != "aider" and not disk.is_there(program):
        on_path = program == NAME
        return f"{program} is not {'on PATH' if on_path else 'there'}", f"put {NAME} on PATH" if on_path else again
    there = setting.replace(program=(program, *setting.program[1:]))
    if any(_is_stale(target, disk) for target in setup.targets(client, there)):
        return "what is there is incomplete, or of an older version", again
    return None


def _holds(target: Target, disk: Disk) -> bool:
    try:
        content = disk.read(target.path)
        return content is not None and target.edit.holds(content)
    except (Unfit, LearntError):
        return False


def _is_stale(target: Target, disk: Disk) -> bool:
    try:
        content = disk.read(target.path)
        return content is None or target.edit.add(content) != content
    except (Unfit, LearntError):
        return True


def _program(target: Target, disk: Disk) -> str:
    """Return the program that the hooks of a file start, as far as it can be read off."""
    if not isinstance(target.edit, JsonFile) or not target.edit.hooks:
        return ""
    root = json_text.parse(decoded(disk.read(target.path) or b"")[1], target.edit.dialect)
    events = json_text.look(root, ("hooks",))
    groups = [group for found in (events if isinstance(events, dict) else {}).values() for group in _list(found)]
    for handler in (one for group in groups for one in _list(json_text.look(group, ("hooks",)))):
        if is_our_hook(handler):
            return _first_word(str(json_text.look(handler, ("command",))))
    return ""


def _list(found: object) -> list[object]:
    return found if isinstance(found, list) else []


def _first_word(command: str) -> str:
    try:
        words = shlex.split(command)
        return shlex.split(words[2])[0] if words[:2] == ["sh", "-c"] else words[0]
    except (ValueError, IndexError):
        return ""


def _trust(client: str, setting: Setting, held: list[Target], disk: Disk) -> tuple[bool | None, str, bool]:
    """Return whether a client trusts our hooks, why it would not run them, and whether that is so of all of them.

    None: that cannot be known.
    """
    if client == "codex":
        reason, whole = _distrust(setting, held, disk)
        return not reason, reason, whole
    if client == "gemini" and not setting.user:
        home = setting.places.get("GEMINI_CLI_HOME") or setting.home("HOME")
        trusted = _covered(setting.root, _json(disk, os.path.join(home, ".gemini", "trustedFolders.json")))
        reason = f"Gemini CLI does not trust {setting.root}, and runs no hooks of it" if trusted is False else ""
        return trusted, reason, True
    if client == "claude-code" and not setting.user:
        _, state = setup.targets(client, setting.replace(user=True))
        asked = ("projects", setting.root, "hasTrustDialogAccepted")
        return (json_text.look(_json(disk, state.path), asked) is True) or None, "", False
    return None, "", False


def _covered(root: str, levels: object) -> bool | None:
    """Return what Gemini CLI was told of a folder, or else of the nearest one above it; None when of neither."""
    told: dict[str, bool] = {}
    for path, level in levels.items() if isinstance(levels, dict) else ():
        told[os.path.dirname(path) if level == "TRUST_PARENT" else path] = level != "DO_NOT_TRUST"
    while root not in told:
        above = os.path.dirname(root)
        if above == root:
            return None
        root = above
    return told[root]


def _json(disk: Disk, path: str) -> object:
    try:
        return json.loads(disk.read(path) or b"null")
    except (ValueError, RecursionError, LearntError):
        return None


def _distrust(setting: Setting, held: list[Target], disk: Disk) -> tuple[str, bool]:
    """Return why Codex would not run our hooks, nothing when it would, and whether that is so of all of them.

    Codex is asked where that is possible; else its files tell, but not whether a hook was changed since.
    """
    hooks = next((target for target in held if isinstance(target.edit, JsonFile)), None)
    ours = codex.keys(hooks.path, disk.read(hooks.path) or b"") if hooks else {}
    told = disk.ask_codex(setting.root) if disk.ask_codex and ours else None
    if told and any(key in told for key in ours):
        return _doubts({event: told.get(key, "not seen by Codex") for key, event in ours.items()})
    config = disk.read(os.path.join(setting.home("CODEX_HOME", ".codex"), "config.toml")) or b""
    if not setting.user and not codex.trusts_project(setting.root, config):
        return f"Codex does not trust {setting.root} yet, and runs no hooks of it", True
    missing = codex.untrusted(hooks.path, disk.read(hooks.path) or b"", config) if hooks else []
    if not missing and told is not None and ours:
        return "Codex does not see these hooks, and does not run them", True
    return _doubts({event: "untrusted" if event in missing else "trusted" for event in ours.values()})


def _is_used(setting: Setting, disk: Disk) -> bool:
    """Say whether Codex is on PATH, or its folder holds more than what we write into it."""
    if disk.is_there("codex"):
        return True
    hooks, config = setup.targets("codex", setting.replace(user=True))
    if set(disk.names(os.path.dirname(config.path))) - {os.path.basename(one.path) for one in (hooks, config)}:
        return True
    try:
        content = disk.read(config.path)
        return content is not None and bool(config.edit.remove(content, None))
    except (Unfit, LearntError):
        return True  # somebody wrote it


def _doubts(statuses: Mapping[str, str]) -> tuple[str, bool]:
    """Return what Codex holds against hooks, by event, nothing when it would run them all; and whether it is of all."""
    found: dict[str, list[str]] = {}
    for event, status in statuses.items():
        if status not in _RUN:
            found.setdefault(_MEANINGS.get(status, status), []).append(event)
    if not found:
        return "", False
    told = ", ".join(f"{_listed(events)} ({meaning})" for meaning, events in found.items())
    whole = sum(map(len, found.values())) == len(statuses)
    return f"Codex does not trust these hooks, and does not run them: {told}", whole


def _listed(events: list[str]) -> str:
    return ", ".join(events) if len(events) <= _FEW else f"{len(events)} hooks"
