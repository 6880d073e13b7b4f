"""Read `learnt.toml`, the user-wide file and `LEARNT_*` variables into Settings, check them and record their origin.

The environment overrides the project's file, which overrides the user's file, which overrides the default. An unknown
key or a wrong type is an error with file, key and remedy, so that a misspelt setting is noticed. A cloned project must
not choose programs to run, or where to send data: such values of its file have no effect until the user accepts them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from learnt.errors import InvalidValue, LearntError, WrongRequest
from learnt.model import Value, digest
from learnt.settings import (
    AGENTS,
    BY_KEY,
    BY_VARIABLE,
    PREFIX,
    TABLES,
    Model,
    Setting,
    Settings,
    agent_key,
    as_toml,
    example_value,
    model_from_text,
)
from learnt.system.files import REFUSED, read_own, remove_file, remove_unfinished, replace_file
from learnt.text.redact import redact, without_password
from learnt.text.titles import key_of
from learnt.trust import ACCEPTS_ALL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Variables that are not settings: flags between our own processes, and a secret that must not be in a file.
NOT_SETTINGS = ("LEARNT_INTERNAL", "LEARNT_TASK", "LEARNT_ATTEMPT", "LEARNT_MCP_TOKEN", "LEARNT_BENCH_DATA")
_AGENTS_IN_FILE = (
    'list the categories of each agent: `[agents.engineer]`, and below it `categories = ["git", "pytest"]`'
)
_AGENTS_IN_VARIABLE = 'list the categories of each agent: `LEARNT_AGENTS="engineer=git,pytest;tester=pytest"`'
_MAX_MESSAGE_CHARS = 300
_MAX_FILE_BYTES = 1_000_000
_MAX_COPY_BYTES = 10 * _MAX_FILE_BYTES  # of all files, with every letter escaped
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", tuple: "a list of strings", str: "a string"}


class Origin(Value):
    """A setting's effective value, and where the value comes from."""

    setting: Setting
    value: Any
    origin: str


class Configuration(Value):
    """All effective settings with their origins."""

    settings: Settings
    origin_of: Mapping[str, str]
    """Where the value of each setting comes from, by its key."""
    ignored: tuple[str, ...] = ()
    """The keys of the project's file that have no effect until the user accepts them."""
    wanted: str = ""
    """The digests of what the project's file sets and not everybody may set, with spaces between them."""
    agents_from: Mapping[str, str] = {}
    """Where the agents' entries come from, without the defaults."""

    def unaccepted(self, prefix: str) -> list[str]:
        """Return the keys that the project's file alone sets, and that only the user may set."""
        keys = (key for key in self.ignored if key.startswith(prefix) and BY_KEY[key].by == "person")
        return [key for key in keys if key not in self.origin_of]

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Every setting with its value and its origin; `agents` has one entry for each agent."""
        origins: list[Origin] = []
        for key, setting in BY_KEY.items():
            value = getattr(self.settings, setting.field)
            if key == "agents":
                for name, categories in value.items():
                    own = Setting(agent_key(name), setting.meaning, table=key)
                    origins.append(Origin(setting=own, value=categories, origin=self.agents_from.get(name, "default")))
            else:
                origins.append(Origin(setting=setting, value=value, origin=self.origin_of.get(key, "default")))
        return tuple(origins)


def load(
    files: Sequence[str], environ: dict[str, str], *, compiled: str = "", accepted: str = ACCEPTS_ALL
) -> Configuration:
    """Return the effective settings.

    Later `files` override earlier files; the first is the user's own file, and missing files are skipped. `compiled` is
    the path of the copy that `write_compiled` wrote; the copy is read instead of the files if it is up to date.
    """
    contents = _read_compiled(compiled, files) or _read_files(files)
    return _combine(files, contents, environ, accepted)


def load_last_valid(
    files: Sequence[str], environ: dict[str, str], *, compiled: str, accepted: str = ACCEPTS_ALL
) -> tuple[Configuration, str]:
    """Return the settings for a hook, and the mistake in them, if any: a hook must not fail because of one.

    If there is a mistake, return the last valid settings, or else the defaults. The copy is inside the project, so the
    only content trusted in it is that of the project's file.
    """
    try:
        return load(files, environ, compiled=compiled, accepted=accepted), ""
    except LearntError as error:
        mistake, (own, *others) = error.message, files
    try:
        copied = json.loads(read_own(compiled, max_bytes=_MAX_COPY_BYTES))["contents"]
        kept = {path: copied[path] for path in others}
        return _combine(files, {**_read_files([own]), **kept}, environ, accepted), mistake
    except (LearntError, OSError, ValueError, LookupError, TypeError, AttributeError):
        return _combine(files, {path: {} for path in files}, {}, accepted), mistake


def _combine(
    files: Sequence[str], contents: Mapping[str, dict[str, Any]], environ: dict[str, str], accepted: str
) -> Configuration:
    values: dict[str, Any] = {}
    origin_of: dict[str, str] = {}
    agents_from: dict[str, str] = {}

    def put(key: str, value: Any, where: str) -> None:
        if key == "agents":
            agents_from.update(dict.fromkeys(value, where))
            value = {**values.get(key, AGENTS), **value}
        values[key], origin_of[key] = value, where

    ignored, wanted = [], ""
    for path in files:
        checked = {
            key: _resolve_folders(path, key, _check(key, value, path))
            for key, value in _flatten(contents[path]).items()
        }
        if path != files[0]:
            digests = {key: _digest(key, value) for key, value in _flatten(contents[path]).items()}
            wanted = " ".join(sorted(filter(None, digests.values())))
            known = digests.values() if accepted == ACCEPTS_ALL else accepted.split()
            ignored = [key for key in checked if _is_refused(key, checked, values, is_accepted=digests[key] in known)]
        for key, value in checked.items():
            if path == files[0] or key not in ignored:
                put(key, value, path)
    for name, text in environ.items():
        if not text or not name.startswith(PREFIX) or name in NOT_SETTINGS:
            continue  # an empty variable is treated as unset
        if name not in BY_VARIABLE:
            key = name.removeprefix(PREFIX).lower()
            raise WrongRequest(f"the environment variable {name} is not a setting", hint=_suggest_key(key))
        key = BY_VARIABLE[name].key
        put(key, _check(key, _parse_text(key, text), name), name)
    settings = Settings(**{BY_KEY[key].field: value for key, value in values.items()})
    return Configuration(
        settings=settings, origin_of=origin_of, agents_from=agents_from, ignored=tuple(ignored), wanted=wanted
    )


def write_compiled(files: Sequence[str], compiled: str) -> None:
    """Write a parsed copy of the settings files unless it is up to date; ignore errors, since the copy is optional.

    A secret is never copied: if a file contains one, no copy is written.
    """
    if _read_compiled(compiled, files) is not None:
        return
    try:
        stamps, contents = _stamps(files), _read_files(files)
    except LearntError:
        return  # a file has become invalid meanwhile; the next reader reports it
    try:
        remove_unfinished(compiled, locked=False, is_former=str.isdecimal)
        if any(_holds_password(content) for content in contents.values()):
            remove_file(compiled)  # outdated
            return
        content = json.dumps({"stamps": stamps, "contents": contents}).encode()
        replace_file(compiled, content, durable=False)
    except OSError:
        return


def _read_compiled(compiled: str, files: Sequence[str]) -> dict[str, dict[str, Any]] | None:
    """Return the parsed files from their copy; None if it is missing, outdated or damaged."""
    try:
        copy = json.loads(read_own(compiled, max_bytes=_MAX_COPY_BYTES))
        stamps = _stamps(files)
        if copy["stamps"] != stamps:
            return None
        # The stamp of a missing file can be forged by a cloned project, so its content in the copy is ignored.
        return {str(path): copy["contents"][path] if seen else {} for path, *seen in stamps}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _holds_password(content: dict[str, Any]) -> bool:
    address = str(content.get("database", ""))
    return (bool(address) and without_password(address) != address) or redact(json.dumps(content))[1] > 0


def _stamps(files: Sequence[str]) -> list[list[str | int]]:
    """Return stamps that change whenever one of the files changes."""
    stamps: list[list[str | int]] = []
    for path in files:
        try:
            status = os.stat(path)
            stamps.append([path, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino])
        except OSError:
            stamps.append([path])
    return stamps


def _read_files(files: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the parsed files. The first is the user's own, who may link it; the others came with a project."""
    return {path: _read_file(path, may_be_link=path == files[0]) for path in files}


def _read_file(path: str, *, may_be_link: bool) -> dict[str, Any]:
    try:
        content = read_own(os.path.realpath(path) if may_be_link else path, max_bytes=_MAX_FILE_BYTES)
    except FileNotFoundError:
        return {}
    except OSError as error:
        if error.errno in REFUSED:
            hint = "put a text file with settings in its place, or remove it; docs/configuration.md lists the settings"
            raise WrongRequest(f"{path} cannot hold settings: {error.strerror}", hint=hint) from None
        raise LearntError(f"cannot read {path}: {error.strerror}", hint="check the file's permissions") from None
    import tomllib  # not needed without a settings file

    try:
        return tomllib.loads(content.decode())
    except RecursionError:
        raise WrongRequest(f"{path} is nested too deep", hint="docs/configuration.md lists the settings") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        hint = "fix that line; docs/configuration.md lists the settings"
        raise WrongRequest(f"{path} is not valid TOML: {error}", hint=hint) from None


def _flatten(content: dict[str, Any]) -> dict[str, Any]:
    """Return a file's settings by key; the key of a setting in a table is `table.name`."""
    flat: dict[str, Any] = {}
    for key, value in content.items():
        if key in TABLES and isinstance(value, dict):
            flat.update({f"{key}.{name}": inner for name, inner in value.items()})
        else:
            flat[key] = value
    return flat


def _digest(key: str, value: Any) -> str:
    """Return the digest of what a project's file sets; empty if anybody may set it."""
    return digest(f"{key} = {json.dumps(value, sort_keys=True, default=str)}") if BY_KEY[key].by != "anybody" else ""


def _is_refused(key: str, theirs: Mapping[str, Any], values: Mapping[str, Any], *, is_accepted: bool) -> bool:
    """Return whether a project may not set its value; `values`: the user's own, `is_accepted`: by the user."""
    setting, value = BY_KEY[key], theirs[key]
    if is_accepted or setting.by == "anybody":
        return setting.by == "user"
    if setting.by in ("lower", "higher"):
        own = values.get(key, setting.default)
        return bool(value > own if setting.by == "lower" else value < own)
    return True


def _check(key: str, value: Any, where: str) -> Any:
    setting = BY_KEY.get(key)
    if setting is None:
        raise WrongRequest(f"{where} sets `{key}`, which is not a setting", hint=_suggest_key(key))
    if key == "models":
        return _check_models(value, where)
    if key == "agents":
        return _check_agents(value, where)
    if isinstance(setting.default, tuple) and isinstance(value, list):
        value = tuple(value)
    if isinstance(setting.default, float) and type(value) is int:
        value = float(value)
    if type(value) is not type(setting.default) or not all(
        isinstance(item, str) for item in (value if isinstance(value, tuple) else ())
    ):
        shown = "a value of another type" if key == "database" else repr(value)[:80]  # the value may contain a password
        raise WrongRequest(
            f"{where} sets `{key}` to {shown}",
            hint=f"it must be {_KINDS[type(setting.default)]}, for example `{key} = {as_toml(example_value(setting))}`",
        )
    if setting.choices and value not in setting.choices:
        raise WrongRequest(f"{where} sets `{key}` to {value!r}", hint=f"choose one of: {', '.join(setting.choices)}")
    if isinstance(value, int | float) and not setting.least <= value <= setting.most:
        hint = f"`{key}` must be from {setting.least} to {setting.most:,}"
        raise WrongRequest(f"{where} sets `{key}` to {value}", hint=hint)
    if key == "database" and value:
        check_address(value, where)
    return value


def _check_models(value: Any, where: str) -> tuple[Model, ...]:
    models = []
    for entry in value if isinstance(value, list) else [value]:
        try:
            models.append(Model(**({"name": entry} if isinstance(entry, str) else entry)))
        except (TypeError, InvalidValue) as error:
            raise WrongRequest(
                f"{where} sets a model to {entry!r}: {error}"[:_MAX_MESSAGE_CHARS],
                hint='write a model as `{name = "haiku", price = 0.05}`, with the rough price of one attempt in USD',
            ) from None
    names = [model.name for model in models]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise WrongRequest(f"{where} lists the model `{twice}` twice", hint="list each model once, the weakest first")
    return tuple(models)


def _parse_agents(text: str) -> Any:
    """Return the agents in a text like `engineer=git,pytest;tester=pytest`; any other text is returned unchanged."""
    agents: dict[str, dict[str, list[str]]] = {}
    for part in filter(str.strip, text.split(";")):
        name, sign, categories = part.partition("=")
        if not sign or name.strip() in agents:
            return text
        agents[name.strip()] = {"categories": [word for word in map(str.strip, categories.split(",")) if word]}
    return agents


def _check_agents(value: Any, where: str) -> dict[str, tuple[str, ...]]:
    """Return each agent's categories."""
    hint = _AGENTS_IN_VARIABLE if where.startswith(PREFIX) else _AGENTS_IN_FILE
    if not isinstance(value, dict):
        raise WrongRequest(f"{where} sets `agents` to {value!r}"[:_MAX_MESSAGE_CHARS], hint=hint)
    agents: dict[str, tuple[str, ...]] = {}
    for name, entry in value.items():
        key = key_of(name)
        if not key:
            raise WrongRequest(f"{where} lists categories for an agent without a name", hint=hint)
        if key in agents:
            message = f"{where} lists the agent `{name}` twice"
            raise WrongRequest(
                message[:_MAX_MESSAGE_CHARS], hint="names ignore case, and `_` and blanks are treated as `-`"
            )
        agents[key] = _check_categories(entry, f"agents.{name}", where)
    return agents


def _check_categories(entry: Any, key: str, where: str) -> tuple[str, ...]:
    message, hint = "", _AGENTS_IN_FILE
    if not isinstance(entry, dict) or "categories" not in entry:
        message = f"{where} sets `{key}` without `categories`"
    elif len(entry) > 1:
        message = (
            f"{where} sets `{key}.{next(field for field in entry if field != 'categories')}`, which is not a setting"
        )
    elif not isinstance(entry["categories"], list) or not all(
        isinstance(name, str) and key_of(name) for name in entry["categories"]
    ):
        message = f"{where} sets `{key}.categories` to {entry['categories']!r}"
        hint = f'`{key}.categories` must be a list of strings, for example `["git", "pytest"]`'
    if message:
        raise WrongRequest(message[:_MAX_MESSAGE_CHARS], hint=hint)
    return tuple(dict.fromkeys(map(key_of, entry["categories"])))


def check_address(address: str, where: str) -> None:
    """Raise unless this looks like the address of a PostgreSQL database."""
    if not address.startswith(("postgresql://", "postgres://")):
        raise WrongRequest(
            f"{where} sets `database` to {without_password(address)!r}",
            hint="leave it empty for SQLite, or set it to an address like postgresql://host/name",
        )


def _parse_text(key: str, text: str) -> Any:
    default = BY_KEY[key].default
    if isinstance(default, bool):
        words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
        return words.get(text.lower(), text)
    if isinstance(default, int):
        return int(text) if len(text) < 20 and text.removeprefix("-").isdecimal() else text
    if isinstance(default, float):
        return float(text) if len(text) < 20 and text.replace(".", "", 1).isdecimal() else text
    if key == "agents":
        return _parse_agents(text)
    if key == "models":
        return [model_from_text(part).as_dict() for part in text.split(",") if part.strip()]
    if isinstance(default, tuple):
        return [part for part in text.split(os.pathsep) if part]
    return text


def _resolve_folders(path: str, key: str, value: Any) -> Any:
    """Return the folders in `sources` as absolute paths; in a file, folders are relative to that file."""
    if key != "sources":
        return value
    return tuple(os.path.normpath(os.path.join(os.path.dirname(path), os.path.expanduser(item))) for item in value)


def _suggest_key(key: str) -> str:
    import difflib

    near = difflib.get_close_matches(key, BY_KEY, n=1)
    return f"did you mean `{near[0]}`?" if near else f"the settings are: {', '.join(BY_KEY)}"
