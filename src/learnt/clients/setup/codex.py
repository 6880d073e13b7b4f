"""Codex: hooks in hooks.json, the server in config.toml. What nobody has trusted is not run, and nobody is told."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator

from learnt.clients.setup import json_text
from learnt.clients.setup.events import codex_hooks
from learnt.clients.setup.json_file import JsonFile
from learnt.clients.setup.shapes import Setting, Target, decoded, is_our_hook, server
from learnt.clients.setup.toml_file import TomlFile


def targets(setting: Setting) -> list[Target]:
    """Return the files that Codex reads."""
    folder = setting.home("CODEX_HOME", ".codex") if setting.user else os.path.join(setting.root, ".codex")
    # Without this, a run without a person could not use the tools that write.
    allowed = {**server(setting), "default_tools_approval_mode": "approve"}
    return [
        Target(path=os.path.join(folder, "hooks.json"), edit=JsonFile(hooks=codex_hooks(setting))),
        Target(path=os.path.join(folder, "config.toml"), edit=TomlFile(server=allowed)),
    ]


def wants(setting: Setting) -> str:
    """Return what the client still wants from the user."""
    project = "" if setting.user else "trust the project when Codex asks, and "
    return f"{project}approve the hooks under `/hooks` in Codex: until then it runs none of them, and does not say so"


def untrusted(hooks_path: str, hooks: bytes, config: bytes) -> list[str]:
    """Return the events for which Codex's user configuration trusts no hook of ours.

    Whether a trusted hook is still the one that was trusted, only Codex can tell.
    """
    state = json_text.look(_toml(config), ("hooks", "state"))
    known = state if isinstance(state, dict) else {}
    return [event for key, event in keys(hooks_path, hooks).items() if not json_text.look(known, (key, "trusted_hash"))]


def keys(hooks_path: str, hooks: bytes) -> dict[str, str]:
    """Return the keys by which Codex knows the hooks of ours in a file, each with its event."""
    return {f"{hooks_path}:{_snake(event)}:{group}:{place}": event for event, group, place in _places(hooks)}


def trusts_project(root: str, config: bytes) -> bool:
    """Say whether Codex's user configuration trusts a project."""
    return bool(json_text.look(_toml(config), ("projects", root, "trust_level")) == "trusted")


def _places(hooks: bytes) -> Iterator[tuple[str, int, int]]:
    events = json_text.look(json_text.parse(decoded(hooks)[1]), ("hooks",))
    for event, groups in (events if isinstance(events, dict) else {}).items():
        for number, group in enumerate(groups if isinstance(groups, list) else ()):
            handlers = json_text.look(group, ("hooks",))
            for position, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                if is_our_hook(handler):
                    yield event, number, position


def _snake(event: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()


def _toml(config: bytes) -> object:
    try:
        return tomllib.loads(config.decode("utf-8-sig", "replace"))
    except tomllib.TOMLDecodeError:
        return {}
