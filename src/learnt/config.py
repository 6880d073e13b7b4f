"""Settings: `learnt.toml`, the user-wide file and `LEARNT_*`, checked and with their origin.

The environment wins over the project's file, which wins over the user's file, which wins over the default. An unknown
key or a wrong type is an error that names file, key and remedy: a misspelt setting must not be ignored. A personal
setting in a project's file is one, too: whoever clones a project must not be made to run its programs or to send it
their keys. This module is the only reader of files and variables, and `SETTINGS` the only list: the documentation,
`learnt config` and the file that `init` writes come from it.
"""

from __future__ import annotations

import json
import os

from learnt.clients import registry
from learnt.errors import InvalidValue, LearntError, WrongRequest
from learnt.model import EVERYTHING, GENERAL, Model, Value
from learnt.system.files import replace_file
from learnt.text.redact import without_password

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

PREFIX = "LEARNT_"
_READER = ("architecture", "infrastructure", GENERAL)
_PLANNER = ("architecture", "infrastructure", "security", "testing", GENERAL)
AGENTS: dict[str, tuple[str, ...]] = {
    "engineer": ("azure-devops", "git", "pytest", GENERAL),
    "tester": ("pytest", "testing", GENERAL),
    "architect": ("architecture", "infrastructure", GENERAL),
    "security-specialist": ("security", "vulnerabilities", GENERAL),
    # Claude Code's own, some of which opencode has by the same names
    "general-purpose": (EVERYTHING,),
    "explore": _READER,
    "plan": _PLANNER,
    "statusline-setup": (GENERAL,),
    "claude-code-guide": (GENERAL,),
    # Codex
    "default": (EVERYTHING,),
    "worker": (EVERYTHING,),
    "explorer": _READER,
    # opencode
    "build": (EVERYTHING,),
    "general": (EVERYTHING,),
    "scout": _READER,
    # Gemini CLI
    "generalist": (EVERYTHING,),
    "codebase-investigator": _READER,
    "cli-help": (GENERAL,),
    "browser-agent": ("testing", GENERAL),
}
"""Which categories an agent sees, where no file says otherwise; the names as they are compared."""
# Not settings: signs between our own processes, and a secret that belongs into no file.
SIGNS = ("LEARNT_INTERNAL", "LEARNT_TASK", "LEARNT_ATTEMPT", "LEARNT_MCP_TOKEN")


class Settings(Value):
    """Every setting with its default; each is described in SETTINGS."""

    database: str = ""
    project: str = ""
    person: str = ""
    sources: tuple[str, ...] = ()
    user_store: bool = True
    wait_ms: int = 10_000
    page_size: int = 50
    color: str = "auto"
    brief_learnings: int = 5
    brief_confidence: float = 0.6
    brief_relevance: float = 0.35
    brief_tokens: int = 1_000
    trial_slots: int = 1
    brief_per_category: int = 5
    cache_ttl_s: int = 300
    agents: Mapping[str, tuple[str, ...]] = AGENTS
    stuck_after: int = 3
    summarise_above: int = 200
    strategy: str = "learned"
    models: tuple[Model, ...] = ()
    work_agent: str = "claude"
    work_command: str = ""
    work_arguments: tuple[str, ...] = ()
    work_model: str = ""
    work_verify: str = ""
    work_isolation: str = "none"
    work_jobs: int = 1
    work_time_limit_s: int = 3_600
    work_output_limit_mb: int = 100
    work_lease_s: int = 60
    learnings_enabled: bool = True
    learnings_window_size: int = 15
    learnings_goal_window_size: int = 50
    learnings_regenerate_every: int = 5
    learnings_max_tokens: int = 2_000
    learnings_injection_strategy: str = "none"
    learnings_time_limit_s: int = 600
    learnings_ask: bool = True
    model_provider: str = "none"
    model_name: str = ""
    model_command: str = ""
    model_base_url: str = ""
    model_time_limit_s: int = 30
    model_input_price: float = 0.0
    model_output_price: float = 0.0
    model_call_price: float = 0.01
    model_daily_cap_usd: float = 1.0
    model_monthly_cap_usd: float = 10.0
    hook_deadline_ms: int = 400
    before_tool: str = "tell"


class Setting:
    """What a setting means, and what it may be.

    `personal`: it counts only from the user's own file and variables, never from a project's file. `table`: the setting
    of which it is one entry. A plain class: there are many, and a hook makes them all.
    """

    __slots__ = ("choices", "example", "key", "least", "meaning", "most", "personal", "table")

    def __init__(
        self,
        *,
        key: str,
        meaning: str,
        choices: tuple[str, ...] = (),
        example: str = "",
        least: int = 0,
        most: int = 1_000_000_000,
        personal: bool = False,
        table: str = "",
    ) -> None:
        self.key = key
        self.table = table
        self.meaning = meaning
        self.choices = choices
        self.example = example
        self.least = least
        self.most = most
        self.personal = personal

    @property
    def field(self) -> str:
        """Its name among the Settings; in a file, what stands before the dot is the table."""
        return self.key.replace(".", "_")

    @property
    def default(self) -> Any:
        """The value when nobody sets it."""
        return Settings.defaults[self.field]

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return PREFIX + (self.table or self.field).upper()


SETTINGS = (
    Setting(
        key="database",
        meaning="Where learnings are kept: empty for SQLite in `.learnt/learnt.db`, or a PostgreSQL address for a "
        "team. A password belongs into LEARNT_DATABASE or `~/.pgpass`, not into a committed file.",
        example="postgresql://db.example.org/learnt",
    ),
    Setting(
        key="project",
        meaning="The project's name in a PostgreSQL database, which holds many projects. Empty: the name of the main "
        "folder. A SQLite file holds one project, whatever its name.",
        example="shop",
    ),
    Setting(
        key="person",
        meaning="Who you are in the history of changes. Empty: your login name.",
        example="anna",
    ),
    Setting(
        key="sources",
        meaning="Folders of other projects whose learnings are read along, never changed; relative to this file.",
        example="../design-system",
    ),
    Setting(key="user_store", meaning="Whether your user-wide learnings are read along with the project's."),
    Setting(
        key="wait_ms",
        meaning="How long a change waits, in milliseconds, for others that are writing before it fails with exit "
        "code 3.",
    ),
    Setting(key="page_size", meaning="How many learnings `learnt list` shows at most.", least=1),
    Setting(
        key="color",
        meaning="Colour on a terminal. `auto` also heeds the NO_COLOR variable.",
        choices=("auto", "always", "never"),
    ),
    Setting(key="brief_learnings", meaning="How many learnings a brief carries at most."),
    Setting(
        key="brief_confidence",
        meaning="How trusted a learning must be to stand in a brief. Pinned ones and those on trial need not be.",
        most=1,
    ),
    Setting(
        key="brief_relevance",
        meaning="How much of what a task is about, from 0 to 1, a learning must touch to stand in its brief, unless "
        "one of its triggers holds. Higher: quieter.",
        most=1,
    ),
    Setting(
        key="brief_tokens",
        meaning="How long a brief may be, in estimated tokens. A stuck warning of at most 120 stands beside it.",
    ),
    Setting(
        key="trial_slots",
        meaning="How many of a brief's learnings may be below `brief_confidence`: how new ones get their chance.",
    ),
    Setting(
        key="brief_per_category",
        meaning="How many learnings of each category an agent is given at most where no task says what matters: in a "
        "template, and at the start of a conversation.",
    ),
    Setting(
        key="cache_ttl_s",
        meaning="For how many seconds a process that lives on may go by the learnings that it read before. It notices "
        "every change of a learning at once, whoever made it; 0: it reads them each time.",
    ),
    Setting(
        key="agents",
        meaning="Which categories of learnings an agent sees, by its name; `*` for all. Every agent sees `general`: "
        "learnings without a category, or with one that is named for no agent. An agent without an entry sees all. An "
        "entry replaces that of the same agent only. Case does not matter, nor does `_` or a blank for `-`.",
    ),
    Setting(
        key="hook_deadline_ms",
        meaning="After how many milliseconds a hook gives up and says nothing, so that no client ever waits for it.",
        least=1,
    ),
    Setting(
        key="before_tool",
        meaning="What happens before a call that failed here the last time, where another one worked then: `tell` (a "
        "warning beside the call or its result), `stop_once` (the first such call of a conversation is refused with "
        "the reason, its repetition is not) or `off`.",
        choices=("tell", "stop_once", "off"),
    ),
    Setting(
        key="summarise_above",
        meaning="With more active learnings than this, tidying proposes to put those together that are alike; a person "
        "decides.",
    ),
    Setting(
        key="stuck_after",
        meaning="After how many failures at the strongest model, or with the same error, a task counts as stuck.",
        least=1,
    ),
    Setting(
        key="strategy",
        meaning="How `learnt work` chooses a model: `fixed` (always `work.model`), `escalate` (a stronger one after "
        "each failure), `cost-optimized` (the cheapest while all goes well) or `learned` (by the record of attempts).",
        choices=("learned", "escalate", "cost-optimized", "fixed"),
    ),
    Setting(
        key="models",
        meaning="The models to choose from, the weakest first, each with what one attempt costs about, in USD. Where a "
        "client tells tokens but no cost, the prices of a million tokens, `input_price` and `output_price`, give it.",
        example="haiku=0.05",
    ),
    Setting(
        key="work.agent",
        meaning="The client that works on tasks; `command` for a program of your own.",
        choices=tuple(client.name for client in registry.that_offer("run")),
    ),
    Setting(
        key="work.command",
        meaning='With `agent = "command"`: the program. Its prompt comes on stdin, or in the file that stands for '
        "`{prompt_file}`; `{model}` stands for the chosen model. Its output is read from stdout.",
        example="my-agent --model {model}",
    ),
    Setting(
        key="work.arguments", meaning="More arguments for the client, such as its permissions.", example="--verbose"
    ),
    Setting(
        key="work.model",
        meaning="The model of the strategy `fixed`, and where no `models` are named; empty: the client's own default.",
    ),
    Setting(
        key="work.verify",
        meaning="A command that must succeed before a task counts as done, unless the task has one of its own.",
        example="make test",
    ),
    Setting(
        key="work.isolation",
        meaning="Where an agent works: in the project's folder (`none`), or in a git worktree for each task.",
        choices=("none", "worktree"),
    ),
    Setting(key="work.jobs", meaning="How many tasks are worked on at once.", least=1, most=64),
    Setting(key="work.time_limit_s", meaning="After how many seconds an agent is stopped.", least=1),
    Setting(key="work.output_limit_mb", meaning="After how many megabytes of output an agent is stopped.", least=1),
    Setting(
        key="work.lease_s",
        meaning="For how many seconds a worker holds a task without a sign of life before another may take it up.",
        least=1,
    ),
    Setting(
        key="learnings.enabled",
        meaning="Whether what agents do is mined for learnings, and learnings.md written, by itself.",
    ),
    Setting(
        key="learnings.window_size",
        meaning="From how many recent tasks learnings.md shows what is not proven yet, and how many are mined at most.",
        least=1,
    ),
    Setting(
        key="learnings.goal_window_size",
        meaning="The same for the file of a goal; 0: all of its tasks.",
    ),
    Setting(
        key="learnings.regenerate_every",
        meaning="After how many finished tasks learnings.md is made anew by itself; 0: only by `learnt update`.",
    ),
    Setting(
        key="learnings.max_tokens",
        meaning="How long learnings.md may be, in estimated tokens, and all that a prompt carries of such files.",
        least=100,
    ),
    Setting(
        key="learnings.injection_strategy",
        meaning="Whether prompts of `learnt work` carry the text of learnings.md, counted as given like what a brief "
        "shows: `none`, `global_only` (that file), "
        "`task_group` (the file of the task's goal, or that file for a task without one) or `both`. With the last two "
        "each goal has a file in `.learnt/learnings/`.",
        choices=("none", "global_only", "task_group", "both"),
    ),
    Setting(
        key="learnings.time_limit_s",
        meaning="After how many seconds the making of learnings.md in the background is given up.",
        least=1,
    ),
    Setting(
        key="learnings.ask",
        meaning="Whether `learnt work` asks once, at the end of a run on a terminal, if the learnings helped.",
    ),
    Setting(
        key="model.provider",
        meaning="Who reads what agents did, for better learnings: `none` (rules alone), `command` (a program of yours, "
        "such as your agent's client), `anthropic` or `openai` (also any service that speaks its protocol).",
        choices=("none", "command", "anthropic", "openai"),
        personal=True,
    ),
    Setting(key="model.name", meaning="The model to ask; a small, cheap one will do.", example="haiku"),
    Setting(
        key="model.command",
        meaning='With `provider = "command"`: the program. The prompt comes on stdin, or in the file that stands for '
        "`{prompt_file}`; `{model}` stands for `model.name`. The answer is read from stdout.",
        example="claude -p --model {model}",
        personal=True,
    ),
    Setting(
        key="model.base_url",
        meaning="Another address for `anthropic` or `openai`, such as that of Ollama or vLLM.",
        example="http://localhost:11434/v1",
        personal=True,
    ),
    Setting(key="model.time_limit_s", meaning="After how many seconds a call to the model is given up.", least=1),
    Setting(key="model.input_price", meaning="What a million tokens that the model reads cost, in USD."),
    Setting(key="model.output_price", meaning="What a million tokens that the model writes cost, in USD."),
    Setting(
        key="model.call_price",
        meaning="What one call is taken to cost, in USD, where its tokens or their prices are not known; 0 for a model "
        "of your own.",
    ),
    Setting(
        key="model.daily_cap_usd",
        meaning="What calls to the model may cost in 24 hours, in USD; a call that could pass it is not made.",
    ),
    Setting(key="model.monthly_cap_usd", meaning="The same for 30 days."),
)
_BY_KEY = {setting.key: setting for setting in SETTINGS}
_BY_VARIABLE = {setting.variable: setting for setting in SETTINGS}
_TABLES = {setting.key.partition(".")[0] for setting in SETTINGS if "." in setting.key}


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
            for key, setting in _BY_KEY.items()
            for one, value, origin in (self._agents(setting) if key == "agents" else [(setting, *self.found[key])])
        )

    def _agents(self, setting: Setting) -> list[tuple[Setting, Any, str]]:
        return [
            (Setting(key=_agent_key(name), meaning=setting.meaning, table=setting.key), categories, origin)
            for name, categories in self.settings.agents.items()
            for origin in [self.agents_from.get(name, "default")]
        ]


def load(files: Sequence[str], environ: dict[str, str], *, compiled: str = "") -> Configuration:
    """Return the effective settings; `files` in rising rank, the user's own first, missing ones are skipped.

    `compiled` names a copy that `keep_compiled` wrote: while it is fresh, the files need not be parsed.
    """
    contents = _read_compiled(compiled, files) or {path: _read_file(path) for path in files}
    return _loaded(files, contents, environ)


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
        return _loaded(files, {own: _read_file(own), **kept}, environ), mistake
    except (LearntError, OSError, ValueError, LookupError, TypeError, AttributeError):
        return _loaded(files, {path: {} for path in files}, {}), mistake


def _loaded(files: Sequence[str], contents: Mapping[str, dict[str, Any]], environ: dict[str, str]) -> Configuration:
    found: dict[str, tuple[Any, str]] = {key: (setting.default, "default") for key, setting in _BY_KEY.items()}
    agents_from: dict[str, str] = {}
    for path in files:
        for key, value in _flat(contents[path]).items():
            if path != files[0]:
                _refuse_personal(key, path, own=files[0])
            checked = _beside(path, key, _checked(key, value, path))
            found[key] = _with_agents(found, checked, path, agents_from) if key == "agents" else (checked, path)
    for name, text in _variables(environ).items():
        if name not in _BY_VARIABLE:
            key = name.removeprefix(PREFIX).lower()
            raise WrongRequest(f"environment variable {name} sets no known setting", hint=_did_you_mean(key))
        key = _BY_VARIABLE[name].key
        checked = _checked(key, _from_text(key, text), name)
        found[key] = _with_agents(found, checked, name, agents_from) if key == "agents" else (checked, name)
    return Configuration(
        settings=Settings(**{_BY_KEY[key].field: value for key, (value, _) in found.items()}),
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
        return  # a file has become invalid meanwhile; whoever reads it next is told
    try:
        if any(_holds_password(content) for content in contents.values()):
            if os.path.exists(compiled):
                os.unlink(compiled)  # it is stale
            return
        content = json.dumps({"stamps": stamps, "contents": contents}).encode()
        replace_file(compiled, content, unfinished=f"{compiled}.{os.getpid()}", durable=False)
    except OSError:
        return


def template() -> str:
    """Return the settings file of a project with every setting commented out that it may hold."""
    lines = ["# Settings of learnt for this project; `learnt config` shows what is in force and why.", ""]
    for setting in SETTINGS:
        if not setting.personal:
            lines += [f"# {line}" for line in _wrapped(setting.meaning)]
            lines += [*(f"# {line}" for line in example_lines(setting)), ""]
    keys = [f"`{setting.key}`" for setting in SETTINGS if setting.personal]
    told = (
        f"Each person sets {', '.join(keys[:-1])} and {keys[-1]} for themselves, in the user-wide settings file that "
        f"`learnt config {keys[0].strip('`')}` names, or in the environment: here they are refused."
    )
    lines += [*(f"# {line}" for line in _wrapped(told)), ""]
    return "\n".join(lines)


def example_lines(setting: Setting) -> list[str]:
    """Return how the setting is written in a file."""
    if setting.key == "agents":
        return [f"{_agent_key(name)} = {as_toml(categories)}" for name, categories in AGENTS.items()]
    return [f"{setting.key} = {as_toml(example_value(setting))}"]


def _agent_key(name: str) -> str:
    bare = name.isascii() and name.replace("-", "").isalnum()
    return f"agents.{name if bare else as_toml(name)}.categories"


def example_value(setting: Setting) -> Any:
    """Return a value that shows how the setting is written."""
    if not setting.example:
        return setting.default
    if setting.key == "models":
        return (_model_from_text(setting.example),)
    return (setting.example,) if isinstance(setting.default, tuple) else setting.example


def as_toml(value: Any) -> str:
    """Return a setting's value as it stands in a settings file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(as_toml(item) for item in value) + "]"
    if isinstance(value, Model):
        stated = {name: figure for name, figure in value.as_dict().items() if figure}
        return "{" + ", ".join(f"{name} = {as_toml(figure)}" for name, figure in stated.items()) + "}"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


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
    # Imported here: without a settings file nobody pays for the parser.
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
        if key in _TABLES and isinstance(value, dict):
            flat.update({f"{key}.{name}": inner for name, inner in value.items()})
        else:
            flat[key] = value
    return flat


def _refuse_personal(key: str, path: str, *, own: str) -> None:
    setting = _BY_KEY.get(key)
    if setting is not None and setting.personal:
        raise WrongRequest(
            f"{path} sets `{key}`, which each person sets for themselves",
            hint=f"move it to {own}, or set {setting.variable}",
        )


def _checked(key: str, value: Any, where: str) -> Any:
    setting = _BY_KEY.get(key)
    if setting is None:
        raise WrongRequest(f"{where} sets `{key}`, which is no setting", hint=_did_you_mean(key))
    if key == "models":
        return _checked_models(value, where)
    if key == "agents":
        from learnt.text.names import read_agents

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


def _checked_models(value: Any, where: str) -> tuple[Model, ...]:
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


def _model_from_text(text: str) -> Model:
    name, _, price = text.partition("=")
    return Model(name=name.strip(), price=float(price) if price.strip().replace(".", "", 1).isdecimal() else 0.0)


def check_address(address: str, where: str) -> None:
    """Raise unless this can be the address of a PostgreSQL database."""
    if not address.startswith(("postgresql://", "postgres://")):
        raise WrongRequest(
            f"{where} sets `database` to {without_password(address)!r}",
            hint="leave it empty for SQLite, or give an address like postgresql://host/name",
        )


def _from_text(key: str, text: str) -> Any:
    default = _BY_KEY[key].default
    if isinstance(default, bool):
        words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
        return words.get(text.lower(), text)
    if isinstance(default, int):
        return int(text) if len(text) < 20 and text.removeprefix("-").isdecimal() else text
    if isinstance(default, float):
        return float(text) if len(text) < 20 and text.replace(".", "", 1).isdecimal() else text
    if key == "agents":
        from learnt.text.names import agents_in

        return agents_in(text)
    if key == "models":
        return [_model_from_text(part).as_dict() for part in text.split(",") if part.strip()]
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

    near = difflib.get_close_matches(key, _BY_KEY, n=1)
    return f"did you mean `{near[0]}`?" if near else f"the settings are: {', '.join(_BY_KEY)}"


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 100)
