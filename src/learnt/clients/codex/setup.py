"""Set up Codex: hooks in hooks.json, the server in config.toml. Codex silently skips untrusted hooks.

The server has a separate table with a comment directly above it, so that both stay together when Codex rewrites the
file. The edited file is parsed again, and rejected if its value is not the intended one. At the end of a session, Codex
stops hooks after three seconds, whatever the timeout is.

A server that is `required` has its tools in the first request, because Codex waits for it. But without that server
Codex does not start at all, so a project's settings, which colleagues without learnt read too, do not require it.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from learnt import __version__
from learnt.clients import registry
from learnt.clients.kit import setup as kit
from learnt.clients.kit.json_file import JsonFile, read_json, value_at
from learnt.errors import LearntError
from learnt.model import Value

_SESSION_END_S = 3
# Codex runs hooks with these statuses. The other statuses are explained to the user.
_RUN = ("trusted", "managed")
# What an administrator prescribes; tests look elsewhere.
MANAGED = "/etc/codex/requirements.toml"
_START_LIMIT_S = 60
_MEANINGS = {"untrusted": "not approved yet", "modified": "changed since it was approved"}
_MAX_EVENTS_LISTED = 3
_HOOKS, _CONFIG = "hooks.json", "config.toml"
_HOLDER = "mcp_servers"
_REMARK = "# Written by `learnt install codex`; `learnt uninstall codex` takes it out."
_TABLE = re.compile(
    rf"(?:^[ \t]*\r?\n)?(?:^{re.escape(_REMARK)}\r?\n)?^\[{_HOLDER}\.{kit.NAME}\][ \t]*(?:#[^\r\n]*)?"
    r"(?:\r?\n[ \t]*[\w-]+[ \t]*=[^\r\n]*)*(?:\r?\n|\Z)",
    re.M,
)


def hooks(location: kit.Location) -> Mapping[str, Mapping[str, Any]]:
    """Return the hooks by event."""
    command = kit.hook_command(location, "codex", cmd_on_windows=True)
    events = registry.get("codex", "setup").events
    # Codex lists a hook under its status message, or as "Unnamed hook".
    named = {"statusMessage": kit.NAME}
    return {
        event: kit.hook(command, _SESSION_END_S if event == "SessionEnd" else kit.TIMEOUT_S) | named for event in events
    }


def targets(location: kit.Location) -> list[kit.Target]:
    """Return Codex's settings files and the change to each."""
    folder = _user_folder(location) if location.user else os.path.join(location.root, ".codex")
    # Without this setting, an unattended run could not use the tools that write.
    allowed = {**kit.server(location), "default_tools_approval_mode": "approve"}
    if location.user:
        allowed |= {"required": True, "startup_timeout_sec": _START_LIMIT_S}
    return [
        kit.Target(path=os.path.join(folder, _HOOKS), edit=JsonFile(hooks=hooks(location))),
        kit.Target(path=os.path.join(folder, _CONFIG), edit=ServerTable(server=allowed)),
    ]


def _user_folder(location: kit.Location) -> str:
    return location.home("CODEX_HOME", ".codex")


def other_settings(location: kit.Location) -> list[kit.Target]:
    """Return the other files that decide whether Codex uses our settings."""
    path = os.path.join(_user_folder(location), _CONFIG)
    return [kit.Target(path=path, edit=ServerTable(server={}))]


def next_step(location: kit.Location) -> str:
    """Return the next step for the user after the files are written."""
    project = "" if location.user else "trust the project when Codex asks, and "
    return f"{project}approve the hooks under `/hooks` in Codex: until then it runs none of them, and does not say so"


def find_switch(location: kit.Location, read: kit.Read) -> kit.Fault | None:
    """Return the setting that prevents Codex from running our hooks; None if there is none."""
    for folder in (os.path.join(location.root, ".codex"), _user_folder(location)):
        path = os.path.join(folder, _CONFIG)
        config = _read_toml(path, read)
        for name in ("hooks", "codex_hooks"):  # the second is the old name of the first, and Codex still reads it
            enabled = value_at(config, ("features", name))
            if enabled is True:
                return None
            if enabled is False:
                remedy = f"set `{name}` to true"
                return kit.switched_off("Codex", f"`{name}` is false under [features]", path, remedy=remedy)
    return None


def find_faults(location: kit.Location, disk: kit.Disk) -> Iterator[kit.Fault]:
    """Yield settings that keep Codex from starting our server, or from running hooks that a person has written."""
    for folder in (os.path.join(location.root, ".codex"), _user_folder(location)):
        path = os.path.join(folder, _CONFIG)
        server = _our_server(_read_toml(path, disk.read) or {})
        if kit.is_our_server(server) and server.get("enabled") is False:
            switch = f"`enabled` is false under [{_HOLDER}.{kit.NAME}]"
            yield kit.server_off("Codex", switch, path, remedy="set `enabled` to true")
    if value_at(_read_toml(MANAGED, disk.read), ("allow_managed_hooks_only",)) is True:
        remedy = "ask your administrator to allow the hooks; the server works without them"
        yield kit.switched_off("Codex", "`allow_managed_hooks_only` is true", MANAGED, remedy=remedy)


def find_trust(location: kit.Location, targets: Sequence[kit.Target], disk: kit.Disk) -> kit.Trust:
    """Return whether Codex trusts our hooks.

    A project has settings for everyone who works in it, so untrusted hooks do not matter on a machine without Codex.
    Codex might be in use without being on PATH, if an editor starts it by its path. Its folder then has other files.
    """
    reason, runs_none = _find_distrust(location, targets, disk)
    if not reason:
        return kit.Trust(trusted=True)
    is_used = bool(kit.find_trace("codex", location, disk))
    if not disk.has_program("codex"):
        reason = f"{reason}; codex is not on PATH, so only its files could be checked"
    refused = not location.user and _read_trust_level(location, disk.read) == "untrusted"
    record = os.path.join(_user_folder(location), _CONFIG)
    return kit.Trust(trusted=False, reason=reason, runs_none=runs_none, record=record, refused=refused, matters=is_used)


def _find_distrust(location: kit.Location, targets: Sequence[kit.Target], disk: kit.Disk) -> tuple[str, bool]:
    """Return why Codex would not run our hooks (empty if it would), and whether it would run none of them.

    Only Codex knows whether a hook is still the one that was approved, so Codex is asked if possible. Otherwise its
    files are read, which do not show whether a hook has changed since it was approved.
    """
    path = next((target.path for target in targets if isinstance(target.edit, JsonFile)), "")
    ours = _hook_keys(path, disk.read) if path else {}
    statuses = _ask_statuses(location, disk) if ours else None
    if statuses and any(key in statuses for key in ours):
        return _describe_distrust({event: statuses.get(key, "not seen by Codex") for key, event in ours.items()})
    if not location.user and _read_trust_level(location, disk.read) != "trusted":
        return f"Codex does not trust {location.root} yet, and does not run its hooks", True
    config = _read_toml(os.path.join(_user_folder(location), _CONFIG), disk.read)
    trusted = {event: bool(value_at(config, ("hooks", "state", key, "trusted_hash"))) for key, event in ours.items()}
    if all(trusted.values()) and statuses is not None and ours and find_switch(location, disk.read) is None:
        return "Codex does not see these hooks, and does not run them", True
    return _describe_distrust({event: "trusted" if trusts else "untrusted" for event, trusts in trusted.items()})


def _read_trust_level(location: kit.Location, read: kit.Read) -> object:
    """Return what the user has said about the project; None if nothing."""
    config = _read_toml(os.path.join(_user_folder(location), _CONFIG), read)
    return value_at(config, ("projects", location.root, "trust_level"))


def _ask_statuses(location: kit.Location, disk: kit.Disk) -> dict[str, str] | None:
    """Return the status of each hook that Codex finds for a folder, by the hook's key; None if Codex does not answer.

    A hook is `trusted`, `untrusted`, `modified` since it was trusted, `managed`, or `disabled`.
    """
    if disk.ask_client is None:
        return None
    about_us = {"name": kit.NAME, "version": __version__}
    messages: tuple[dict[str, Any], ...] = (
        {"id": 1, "method": "initialize", "params": {"clientInfo": about_us}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [location.root]}},
    )
    home = _user_folder(location)
    try:
        files = {name: disk.read(os.path.join(home, name)) or b"" for name in (_HOOKS, _CONFIG)}
    except LearntError:
        return None
    question = kit.Question(
        words=("codex", "app-server"),
        folder=location.root,
        messages=messages,
        reply_id=2,
        home_variable="CODEX_HOME",
        home=home,
        files=files,
    )
    reply = disk.ask_client(question)
    try:
        hooks = [hook for entry in (reply or {})["result"]["data"] for hook in entry["hooks"]]
        return {
            str(hook["key"]): str(hook["trustStatus"]) if hook.get("enabled", True) else "disabled" for hook in hooks
        }
    except (KeyError, TypeError, AttributeError):
        return None  # no answer, or a version with another answer format


def _hook_keys(path: str, read: kit.Read) -> dict[str, str]:
    """Return the event of each of our hooks in a file, by the key that Codex uses for the hook."""
    positions = kit.find_hooks(read_json(path, read))
    return {f"{path}:{_to_snake_case(event)}:{group}:{position}": event for event, group, position in positions}


def _to_snake_case(event: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()


def _describe_distrust(statuses: Mapping[str, str]) -> tuple[str, bool]:
    """Return why Codex would not run some hooks (empty if it would run them all), and whether it would run none."""
    events_of: dict[str, list[str]] = {}
    for event, status in statuses.items():
        if status not in _RUN:
            events_of.setdefault(_MEANINGS.get(status, status), []).append(event)
    if not events_of:
        return "", False
    reasons = []
    for meaning, events in events_of.items():
        hooks = ", ".join(events) if len(events) <= _MAX_EVENTS_LISTED else f"{len(events)} hooks"
        reasons.append(f"{hooks} ({meaning})")
    runs_none = sum(map(len, events_of.values())) == len(statuses)
    return f"Codex does not trust these hooks, and does not run them: {', '.join(reasons)}", runs_none


def _read_toml(path: str, read: kit.Read) -> dict[str, Any] | None:
    try:
        return _parse((read(path) or b"").decode("utf-8-sig", "replace"))
    except LearntError:
        return None


def _parse(text: str) -> dict[str, Any] | None:
    """Return the value of TOML text; None if the text is not TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


class ServerTable(Value):
    """Adds our server's table to config.toml, and removes it."""

    server: Mapping[str, Any]

    def add(self, content: bytes | None) -> bytes:
        mark, text = kit.decode(content or b"")
        value = _read(text)
        if not isinstance(value.get(_HOLDER, {}), dict):
            raise kit.Unfit(f"`{_HOLDER}` is not a table", remedy="make it one")
        current = _our_server(value)
        if current is not None:
            if not kit.is_our_server(current):
                raise kit.Unfit(f"another server is called `{kit.NAME}` in `{_HOLDER}`", remedy="rename that server")
            if self.server.items() <= current.items():
                return content or b""
            text = _cut(text, value)[0]
        line = "\r\n" if "\r\n" in text else "\n"
        added = line.join([_REMARK, f"[{_HOLDER}.{kit.NAME}]", *self._lines(current or {}), ""])
        gap = (line if text and not text.endswith("\n") else "") + (line if text else "")
        ours = {kit.NAME: {**(current or {}), **self.server}}
        if not _has_value(text + gap + added, {**value, _HOLDER: {**_servers(value), **ours}}):
            raise _unsafe(text)
        return (mark + text + gap + added).encode()

    def remove(self, content: bytes, before: bytes | None) -> bytes | None:
        mark, text = kit.decode(content)
        value = _read(text)
        if not kit.is_our_server(_our_server(value)):
            return content
        remaining, was_last = _cut(text, value)
        if before is None and not remaining.strip():
            return None
        if before and not before.endswith(b"\n") and was_last:
            remaining = remaining.removesuffix("\n").removesuffix("\r")
        return (mark + remaining).encode()

    def has_settings(self, content: bytes) -> bool:
        return kit.is_our_server(_our_server(_read(kit.decode(content)[1])))

    def by_hand(self, content: bytes | None, /) -> str:
        lines = self._lines({})
        if _our_server(_parse((content or b"").decode("utf-8-sig", "replace")) or {}) is not None:
            return "\n".join([f"# so that the table `{_HOLDER}.{kit.NAME}`, which is there, says", *lines])
        return "\n".join([f"[{_HOLDER}.{kit.NAME}]", *lines])

    def commands(self, content: bytes, /) -> kit.Commands:
        server = _our_server(_read(kit.decode(content)[1]))
        return kit.Commands(server=kit.server_words(server) if kit.is_our_server(server) else ())

    def _lines(self, current: Mapping[str, Any]) -> list[str]:
        # JSON and TOML use the same syntax for strings and lists of strings.
        return [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in {**current, **self.server}.items()]


def _read(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise kit.Unfit(str(error)) from None


def _servers(value: Mapping[str, Any]) -> dict[str, Any]:
    servers = value.get(_HOLDER, {})
    return servers if isinstance(servers, dict) else {}


def _our_server(value: Mapping[str, Any]) -> Any:
    return _servers(value).get(kit.NAME)


def _cut(text: str, value: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the text without our table, and whether our table was at the end."""
    wanted = {**value, _HOLDER: {name: entry for name, entry in _servers(value).items() if name != kit.NAME}}
    for table in _TABLE.finditer(text):  # a multi-line string can also contain text like our table
        remaining = text[: table.start()] + text[table.end() :]
        if _has_value(remaining, wanted):
            return remaining, table.end() == len(text)
    raise _unsafe(text)


def _has_value(text: str, wanted: dict[str, Any]) -> bool:
    value = _parse(text)
    return value is not None and {_HOLDER: {}, **value} == {_HOLDER: {}, **wanted}


def _unsafe(text: str) -> kit.Unfit:
    if re.search(rf"^[ \t]*{_HOLDER}[ \t]*=", text, re.M):
        return kit.Unfit(
            f"`{_HOLDER}` is an inline table", remedy=f"write it as tables, `[{_HOLDER}.<name>]` for each server"
        )
    return kit.Unfit(f"the table `{_HOLDER}` is written in a way that cannot be changed safely")
