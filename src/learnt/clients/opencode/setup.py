"""Set up opencode: a plugin that sends events to `learnt hook`, and the server in opencode.json (with comments)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from learnt.clients.kit import setup as kit
from learnt.clients.kit.json_file import WITH_COMMENTS_AND_COMMAS, JsonFile, read_json, value_at

_TITLE = "opencode"
_TOOLS = f"{kit.NAME}_*"
_TEMPLATE = os.path.join(os.path.dirname(__file__), "plugin.js")
_COMMAND = re.compile(r"^const COMMAND = (\[.*\])$", re.M)
_NAMES = ("opencode.json", "opencode.jsonc")
_SCHEMA = "https://opencode.ai/config.json"


def targets(location: kit.Location) -> list[kit.Target]:
    """Return the files that opencode reads and the change to each."""
    folder = user_folder(location) if location.user else location.root
    plugins = os.path.join(folder, "plugin") if location.user else os.path.join(folder, ".opencode", "plugin")
    edit = JsonFile(
        servers="mcp",
        server={"type": "local", "command": [*location.program, "mcp"]},
        fresh={"$schema": _SCHEMA},
        dialect=WITH_COMMENTS_AND_COMMAS,
    )
    names = [os.path.join(folder, name) for name in _NAMES]
    settings = next((path for path in names if os.path.exists(path)), names[0])
    return [
        kit.Target(
            path=os.path.join(plugins, "learnt.js"),
            edit=kit.WholeFile(text=plugin(location), find_commands=_find_command),
        ),
        kit.Target(path=settings, edit=edit),
    ]


def user_folder(location: kit.Location) -> str:
    """Return the folder with the user's own settings."""
    return os.path.join(location.home("XDG_CONFIG_HOME", ".config"), "opencode")


def other_settings(location: kit.Location) -> list[kit.Target]:
    """Return the other files that decide whether opencode uses our settings."""
    edit = JsonFile(dialect=WITH_COMMENTS_AND_COMMAS)
    folders = (location.root, os.path.join(location.root, ".opencode"), user_folder(location))
    return [kit.Target(path=os.path.join(folder, name), edit=edit) for folder in folders for name in _NAMES]


def find_faults(location: kit.Location, disk: kit.Disk) -> Iterator[kit.Fault]:
    """Yield the settings that keep opencode from starting our server, or its agents from using the server's tools."""
    for path in (target.path for target in other_settings(location)):
        settings = read_json(path, disk.read, WITH_COMMENTS_AND_COMMAS)
        if value_at(settings, ("mcp", kit.NAME, "enabled")) is False:
            switch = f"`enabled` is false for `{kit.NAME}`"
            yield kit.server_off(_TITLE, switch, path, remedy=f"set `enabled` to true in {path}")
        for key, off in (("tools", False), ("permission", "deny")):
            if patterns := _find_denials(value_at(settings, (key,)), off):
                named = ", ".join(f"`{pattern}`" for pattern in patterns)
                detail = f"{_TITLE} does not let agents use our tools ({named} under `{key}` in {path})"
                yield kit.Fault(detail=detail, remedy=f"take {named} out of `{key}` in {path}")


def _find_denials(rules: object, off: object) -> list[str]:
    """Return the patterns that exclude tools of ours; of two rules that match, the later one decides."""
    denials: list[str] = []
    for pattern, rule in rules.items() if isinstance(rules, dict) else ():
        covers_all = fnmatchcase(_TOOLS, pattern)
        if not covers_all and not pattern.startswith(_TOOLS.rstrip("*")):
            continue
        denials = [] if covers_all else [one for one in denials if one != pattern]
        denials += [pattern] if rule == off else []
    return denials


def plugin(location: kit.Location) -> str:
    """Return the plugin's text."""
    with open(_TEMPLATE, encoding="utf-8") as file:
        text = file.read()
    words = json.dumps([*location.program, "hook", "--client", "opencode"], ensure_ascii=False)
    return text.replace("__COMMAND__", words).replace("__TIMEOUT_MS__", str(kit.TIMEOUT_S * 1000))


def _find_command(content: bytes) -> kit.Commands:
    """Return the command line that a plugin of ours starts for each event."""
    line = _COMMAND.search(content.decode("utf-8", "replace"))
    try:
        words = json.loads(line[1]) if line else []
    except ValueError:
        words = []
    return kit.Commands(hooks=(tuple(map(str, words)),) if words else ())


def next_step(location: kit.Location) -> str:
    """Return the next step for the user after the files are written."""
    return "restart opencode; on its first start with a plugin it fetches a package, and without a network waits for it"


def find_switch(location: kit.Location, read: kit.Read) -> kit.Fault | None:
    """Return None: no setting prevents opencode from loading a plugin."""
    return None


def find_trust(location: kit.Location, targets: Sequence[kit.Target], disk: kit.Disk) -> kit.Trust:
    """Return an unknown trust: opencode loads every plugin without asking."""
    return kit.Trust()
