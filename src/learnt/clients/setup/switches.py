"""Find what a client's settings say that keeps it from running any hook of ours, in a project and for the user.

A switch counts as the client itself reads it: of two settings that name it the nearer one does, and a list counts from
all of them. What an administrator prescribes for the whole machine and what a command line says is not looked at.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

from learnt.clients.setup import json_text
from learnt.clients.setup.json_text import PLAIN, WITH_COMMENTS, look
from learnt.clients.setup.shapes import NAME, Setting, Unfit, decoded
from learnt.errors import LearntError
from learnt.model import Value

Read = Callable[[str], bytes | None]


class SwitchedOff(Value):
    """What keeps hooks from running, and what to do about it."""

    detail: str
    remedy: str


def switched_off(client: str, setting: Setting, read: Read) -> SwitchedOff | None:
    """Return by what a client's hooks are switched off where it works; None when nothing is known to do so."""
    found = {"claude-code": _claude, "codex": _codex, "gemini": _gemini}.get(client)
    try:
        return found(setting, read) if found else None
    except LearntError:
        return None  # nobody knows the user's home


def _claude(setting: Setting, read: Read) -> SwitchedOff | None:
    here = os.path.join(setting.root, ".claude")
    user = os.path.join(setting.home("CLAUDE_CONFIG_DIR", ".claude"), "settings.json")
    paths = [os.path.join(here, "settings.local.json"), os.path.join(here, "settings.json"), user]
    told = _nearest(paths, lambda path: look(_json(path, read, PLAIN), ("disableAllHooks",)))
    if told is None or not told[1]:
        return None
    return _off("Claude Code", "`disableAllHooks` is true", told[0], remedy="set `disableAllHooks` to false")


def _gemini(setting: Setting, read: Read) -> SwitchedOff | None:
    user = setting.places.get("GEMINI_CLI_HOME") or setting.home("HOME")
    paths = [os.path.join(folder, ".gemini", "settings.json") for folder in (setting.root, user)]
    switches = {path: look(_json(path, read, WITH_COMMENTS), ("hooksConfig",)) for path in paths}
    told = _nearest(paths, lambda path: look(switches[path], ("enabled",)))
    if told and not told[1]:
        remedy = "set `hooksConfig.enabled` to true"
        return _off("Gemini CLI", "`hooksConfig.enabled` is false", told[0], remedy=remedy)
    for path in paths:
        names = look(switches[path], ("disabled",))
        if isinstance(names, list) and NAME in names:
            remedy = f"take `{NAME}` out of `hooksConfig.disabled`"
            return _off("Gemini CLI", f"`hooksConfig.disabled` names `{NAME}`", path, remedy=remedy)
    return None


def _codex(setting: Setting, read: Read) -> SwitchedOff | None:
    folders = [os.path.join(setting.root, ".codex"), setting.home("CODEX_HOME", ".codex")]
    names: dict[str, str] = {}

    def feature(path: str) -> object:
        # The second is the name that the first had before; it still counts.
        for name in ("hooks", "codex_hooks"):
            found = look(_toml(path, read), ("features", name))
            if isinstance(found, bool):
                names[path] = name
                return found
        return None

    told = _nearest([os.path.join(folder, "config.toml") for folder in folders], feature)
    if told is None or told[1]:
        return None
    name = names[told[0]]
    return _off("Codex", f"`{name}` is false under [features]", told[0], remedy=f"set `{name}` to true")


def _nearest(paths: list[str], switch: Callable[[str], object]) -> tuple[str, bool] | None:
    """Return the first file that says yes or no, and what it says."""
    told: Iterator[tuple[str, Any]] = ((path, switch(path)) for path in paths)
    return next(((path, found) for path, found in told if isinstance(found, bool)), None)


def _off(client: str, switch: str, path: str, *, remedy: str) -> SwitchedOff:
    return SwitchedOff(detail=f"{client} runs no hook of ours here ({switch} in {path})", remedy=remedy)


def _json(path: str, read: Read, dialect: int) -> object:
    try:
        text = decoded(read(path) or b"")[1]
        return json_text.parse(text, dialect) if text.strip() else None
    except (Unfit, LearntError):
        return None


def _toml(path: str, read: Read) -> object:
    try:
        return tomllib.loads((read(path) or b"").decode("utf-8-sig", "replace"))
    except (tomllib.TOMLDecodeError, LearntError):
        return None
