"""Read `learnt.toml`, the user-wide file and `LEARNT_*` into Settings, checked and with their origin.

The environment wins over the project's file, which wins over the user's file, which wins over the default. An unknown
key or a wrong type is an error that names file, key and remedy: a misspelt setting must not be ignored. So is a
personal setting in a project's file: cloning a project must not make anybody run its programs or send it their keys.
"""

from __future__ import annotations

import json
import os

from learnt.errors import InvalidValue, LearntError, WrongRequest
from learnt.model import Value
from learnt.settings import (
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
from learnt.system.files import replace_file
from learnt.text.redact import without_password

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# Not settings: signs between our own processes, and a secret that belongs into no file.
SIGNS = ("LEARNT_INTERNAL", "LEARNT_TASK", "LEARNT_ATTEMPT", "LEARNT_MCP_TOKEN")


class Origin(Value):
    """The effective value of a setting and where it comes from."""

    setting: Setting
    value: Any
    origin: str


class Configuration(Value):
    """All effective settings with their origins."""

    settings: Settings
    found: Mapping[str, tuple[Any, str]]
    """The value of each setting by its key, and where it comes from."""
    agents_from: Mapping[str, str] = {}
    """Where the entries of agents come from that are not the default."""

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Every setting with its value and where it comes from; each agent has a line of its own."""
        return tuple(
            Origin(setting=one, value=value, origin=origin)
            for key, setting in BY_KEY.items()
            for one, value, origin in (self._agents(setting) if key == "agents" else [(setting, *self.found[key])])
        )

    def _agents(self, setting: Setting) -> list[tuple[Setting, Any, str]]:
        return [
            (Setting(key=agent_key(name), meaning=setting.meaning, table=setting.key), categories, origin)
            for name, categories in self.settings.agents.items()
            for origin in [self.agents_from.get(name, "default")]
        ]


def load(files: Sequence[str], environ: dict[str, str], *, compiled: str = "") -> Configuration:
    """Return the effective settings; `files` in rising rank, the user's own first, missing ones are skipped.

    `compiled` names a copy that `keep_compiled` wrote: while it is fresh, the files need not be parsed.
    """
    contents = _read_compiled(compiled, files) or {path: _read_file(path) for path in files}
    return _combine(files, contents, environ)


def load_last_valid(files: Sequence[str], environ: dict[str, str], *, compiled: str) -> tuple[Configuration, str]:
    """Return the settings for a hook, which must not fail for a mistake in them, and the mistake, if there is one.

    They are as they were before it was made.

    Where even that cannot be told, all have their defaults. Of the copy, which lies in the project, only what it says
    of the project's file counts.
    """
    try:
        return load(files, environ, compiled=compiled), ""
    except LearntError as error:
        mistake, (own, *others) = error.message, files
    try:
        with open(compiled, encoding="utf-8") as file:
            copied = json.load(file)["contents"]
        kept = {path: copied[path] for path in others}
        return _combine(files, {own: _read_file(own), **kept}, environ), mistake
    except (LearntError, OSError, ValueError, LookupError, TypeError, AttributeError):
        return _combine(files, {path: {} for path in files}, {}), mistake


def _combine(files: Sequence[str], contents: Mapping[str, dict[str, Any]], environ: dict[str, str]) -> Configuration:
    found: dict[str, tuple[Any, str]] = {key: (setting.default, "default") for key, setting in BY_KEY.items()}
    agents_from: dict[str, str] = {}
    for path in files:
        for key, value in _flat(contents[path]).items():
            if path != files[0]:
                _refuse_personal(key, path, own=files[0])
            checked = _beside(path, key, _check(key, value, path))
            found[key] = _with_agents(found, checked, path, agents_from) if key == "agents" else (checked, path)
    for name, text in _variables(environ).items():
        if name not in BY_VARIABLE:
            key = name.removeprefix(PREFIX).lower()
            raise WrongRequest(f"environment variable {name} sets no known setting", hint=_did_you_mean(key))
        key = BY_VARIABLE[name].key
        checked = _check(key, _from_text(key, text), name)
        found[key] = _with_agents(found, checked, name, agents_from) if key == "agents" else (checked, name)
    return Configuration(
        settings=Settings(**{BY_KEY[key].field: value for key, (value, _) in found.items()}),
        found=found,
        agents_from=agents_from,
    )


def _with_agents(
    found: Mapping[str, tuple[Any, str]], theirs: dict[str, tuple[str, ...]], where: str, agents_from: dict[str, str]
) -> tuple[Any, str]:
    """Return the agents with the entries of one more place, and note in `agents_from` that they are its."""
    agents_from.update(dict.fromkeys(theirs, where))
    return {**found["agents"][0], **theirs}, where


def keep_compiled(files: Sequence[str], compiled: str) -> None:
    """Write a parsed copy of the settings files, if there is none that is fresh; a failure costs only time.

    A password is not copied: files that hold one are parsed each time.
    """
    if _read_compiled(compiled, files) is not None:
        return
    try:
        stamps, contents = _stamps(files), {path: _read_file(path) for path in files}
    except LearntError:
        return  # a file has become invalid meanwhile; the next reader is told
    try:
        if any(_holds_password(content) for content in contents.values()):
            if os.path.exists(compiled):
                os.unlink(compiled)  # it is stale
            return
        content = json.dumps({"stamps": stamps, "contents": contents}).encode()
        replace_file(compiled, content, unfinished=f"{compiled}.{os.getpid()}", durable=False)
    except OSError:
        return


def _read_compiled(compiled: str, files: Sequence[str]) -> dict[str, dict[str, Any]] | None:
    """Return the parsed files from their copy, or None when it is missing, stale or damaged."""
    try:
        with open(compiled, encoding="utf-8") as file:
            copy = json.load(file)
        stamps = _stamps(files)
        if copy["stamps"] != stamps:
            return None
        # The stamp of a missing file can be guessed: what a copy says of it may come with a cloned project.
        return {str(path): copy["contents"][path] if seen else {} for path, *seen in stamps}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _holds_password(content: dict[str, Any]) -> bool:
    address = str(content.get("database", ""))
    return bool(address) and without_password(address) != address


def _stamps(files: Sequence[str]) -> list[list[str | int]]:
    """Return what changes whenever one of the files does."""
    stamps: list[list[str | int]] = []
    for path in files:
        try:
            status = os.stat(path)
            stamps.append([path, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino])
        except OSError:
            stamps.append([path])
    return stamps


def _read_file(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise LearntError(f"cannot read {path}: {error.strerror}", hint="check the file's permissions") from None
    # Imported here: without a settings file the parser is not needed.
    import tomllib

    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WrongRequest(
            f"{path} is not valid TOML: {error}", hint="mend that line; docs/configuration.md lists the settings"
        ) from None


def _variables(environ: dict[str, str]) -> dict[str, str]:
    """Return what is set; an empty variable counts as unset."""
    return {name: text for name, text in environ.items() if text and name.startswith(PREFIX) and name not in SIGNS}


def _flat(content: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a file, those of a table under `table.name`."""
    flat: dict[str, Any] = {}
    for key, value in content.items():
        if key in TABLES and isinstance(value, dict):
            flat.update({f"{key}.{name}": inner for name, inner in value.items()})
        else:
            flat[key] = value
    return flat


def _refuse_personal(key: str, path: str, *, own: str) -> None:
    setting = BY_KEY.get(key)
    if setting is not None and setting.personal:
        raise WrongRequest(
            f"{path} sets `{key}`, which each person sets for themselves",
            hint=f"move it to {own}, or set {setting.variable}",
        )


def _check(key: str, value: Any, where: str) -> Any:
    setting = BY_KEY.get(key)
    if setting is None:
        raise WrongRequest(f"{where} sets `{key}`, which is no setting", hint=_did_you_mean(key))
    if key == "models":
        return _check_models(value, where)
    if key == "agents":
        from learnt.text.names import read_agents  # most projects set none

        return read_agents(value, where)
    if isinstance(setting.default, tuple) and isinstance(value, list):
        value = tuple(value)
    if isinstance(setting.default, float) and type(value) is int:
        value = float(value)
    fits = type(value) is type(setting.default) and (
        not isinstance(value, tuple) or all(isinstance(item, str) for item in value)
    )
    if not fits:
        shown = "a value of another type" if key == "database" else repr(value)[:80]  # it may hold a password
        raise WrongRequest(
            f"{where} sets `{key}` to {shown}",
            hint=f"`{key}` is {_kind(setting.default)}, for example `{key} = {as_toml(example_value(setting))}`",
        )
    if setting.choices and value not in setting.choices:
        raise WrongRequest(f"{where} sets `{key}` to {value!r}", hint=f"choose one of: {', '.join(setting.choices)}")
    if isinstance(value, int | float) and not setting.least <= value <= setting.most:
        raise WrongRequest(
            f"{where} sets `{key}` to {value}", hint=f"`{key}` goes from {setting.least} to {setting.most:,}"
        )
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
                f"{where} sets a model to {entry!r}: {error}"[:300],
                hint='a model is written `{name = "haiku", price = 0.05}`, with the price of about one attempt in USD',
            ) from None
    names = [model.name for model in models]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise WrongRequest(f"{where} names the model `{twice}` twice", hint="name each model once, the weakest first")
    return tuple(models)


def check_address(address: str, where: str) -> None:
    """Raise unless this can be the address of a PostgreSQL database."""
    if not address.startswith(("postgresql://", "postgres://")):
        raise WrongRequest(
            f"{where} sets `database` to {without_password(address)!r}",
            hint="leave it empty for SQLite, or give an address like postgresql://host/name",
        )


def _from_text(key: str, text: str) -> Any:
    default = BY_KEY[key].default
    if isinstance(default, bool):
        words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
        return words.get(text.lower(), text)
    if isinstance(default, int):
        return int(text) if len(text) < 20 and text.removeprefix("-").isdecimal() else text
    if isinstance(default, float):
        return float(text) if len(text) < 20 and text.replace(".", "", 1).isdecimal() else text
    if key == "models":
        return [model_from_text(part).as_dict() for part in text.split(",") if part.strip()]
    if isinstance(default, tuple):
        return [part for part in text.split(os.pathsep) if part]
    return text


def _beside(path: str, key: str, value: Any) -> Any:
    """Return folders named in a file as seen from that file."""
    if key != "sources":
        return value
    return tuple(os.path.normpath(os.path.join(os.path.dirname(path), os.path.expanduser(item))) for item in value)


def _kind(default: Any) -> str:
    kinds = {bool: "true or false", int: "a whole number", float: "a number", tuple: "a list of texts", str: "a text"}
    return kinds[type(default)]


def _did_you_mean(key: str) -> str:
    import difflib

    near = difflib.get_close_matches(key, BY_KEY, n=1)
    return f"did you mean `{near[0]}`?" if near else f"the settings are: {', '.join(BY_KEY)}"
