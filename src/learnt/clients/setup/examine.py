"""Look at what is set up in the clients: whether it is whole, can be started, and is trusted. Changes nothing."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence

from learnt.clients import setup
from learnt.clients.setup import codex, json_text
from learnt.clients.setup.json_file import JsonFile
from learnt.clients.setup.shapes import NAME, Setting, Target, Unfit, decoded, is_our_hook
from learnt.errors import LearntError
from learnt.model import Value


class Disk(Value):
    """How files are read, and whether a program is there."""

    read: Callable[[str], bytes | None]
    is_there: Callable[[str], bool]


class Found(Value):
    """What was found of a client in one place."""

    client: str
    fine: bool
    detail: str
    remedy: str = ""
    twice: bool = False
    """Whether it is about a client that is set up in two places."""


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
            detail = f"set up in {' and in '.join(paths)}, so that everything is served twice"
            remedy = f"`learnt uninstall {client}`, or the same with --user"
            yield Found(client=client, fine=False, detail=detail, remedy=remedy, twice=True)


def _examined(client: str, setting: Setting, held: list[Target], disk: Disk) -> Found:
    again = f"`learnt install {client}{' --user' if setting.user else ''}`"
    where = ", ".join(target.path for target in held)
    program = next(filter(None, (_program(target, disk) for target in held)), setting.program[0])
    # aider is only told which file to read.
    if client != "aider" and not disk.is_there(program):
        missing = "is not on PATH" if program == NAME else "is not there"
        remedy = "put it on PATH" if program == NAME else again
        return Found(client=client, fine=False, detail=f"in {where}, but {program} {missing}", remedy=remedy)
    there = setting.replace(program=(program, *setting.program[1:]))
    if any(_is_stale(target, disk) for target in setup.targets(client, there)):
        return Found(client=client, fine=False, detail=f"in {where}, but not all of it, or an older one", remedy=again)
    reason = _distrust(setting, held, disk) if client == "codex" else ""
    if reason:
        return Found(client=client, fine=False, detail=reason, remedy=setup.wants(client, setting))
    return Found(client=client, fine=True, detail=f"in {where}")


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


def _distrust(setting: Setting, held: list[Target], disk: Disk) -> str:
    """Return why Codex would not run our hooks; nothing when it would, as far as its files tell."""
    config = disk.read(os.path.join(setting.home("CODEX_HOME", ".codex"), "config.toml")) or b""
    hooks = next((target for target in held if isinstance(target.edit, JsonFile)), None)
    if not setting.user and not codex.trusts_project(setting.root, config):
        return f"Codex does not trust {setting.root} yet, and runs no hooks of it"
    missing = codex.untrusted(hooks.path, disk.read(hooks.path) or b"", config) if hooks else []
    return f"Codex does not trust these hooks yet, and does not run them: {', '.join(missing)}" if missing else ""
