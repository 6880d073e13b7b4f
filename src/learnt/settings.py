"""Every setting, with its key, default, meaning and bounds.

`Settings` defines the names, types and defaults; `SETTINGS` defines the meanings and bounds. The documentation,
`learnt config` and the file that `init` writes are generated from them (`settings_text.py`); `config.py` reads files
and variables into a `Settings`.
"""

from __future__ import annotations

from collections.abc import Mapping

from learnt.clients import registry
from learnt.errors import InvalidValue
from learnt.model import GENERAL, Value, is_figure
from learnt.project import SETTINGS_FILE, STORE_FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PREFIX = "LEARNT_"
AGENTS: dict[str, tuple[str, ...]] = {
    "engineer": ("azure-devops", "git", "pytest", GENERAL),
    "tester": ("pytest", "testing", GENERAL),
    "architect": ("architecture", "infrastructure", GENERAL),
    "security-specialist": ("security", "vulnerabilities", GENERAL),
    **registry.SUB_AGENTS,
}
"""The default categories of each agent; the names are normalised."""


class Model(Value):
    """A language model, and its prices in USD for one attempt and for a million tokens."""

    name: str
    price: float = 0.0
    input_price: float = 0.0
    output_price: float = 0.0

    def check(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidValue("a model needs a name")
        for field in ("price", "input_price", "output_price"):
            price = getattr(self, field)
            if not is_figure(price):
                raise InvalidValue(f"{field} must be 0 or more, not {price!r}", hint=f"set {field} to an amount in USD")

    def is_priced(self, reported: str) -> bool:
        """Return whether an attempt's cost is known or assumed, if its client reports `cost`, `tokens` or nothing."""
        by_tokens = reported == "tokens" and (self.input_price or self.output_price)
        return reported == "cost" or bool(self.price or by_tokens)


class Settings(Value):
    """Every setting with its default; each is described in SETTINGS."""

    database: str = ""
    project: str = ""
    person: str = ""
    sources: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()
    user_store: bool = True
    wait_ms: int = 10_000
    page_size: int = 50
    color: str = "auto"
    brief_learnings: int = 5
    brief_confidence: float = 0.6
    brief_relevance: float = 0.34
    brief_tokens: int = 1_000
    index_tokens: int = 600
    trial_slots: int = 1
    brief_per_category: int = 5
    cache_ttl_s: int = 300
    agents: Mapping[str, tuple[str, ...]] = AGENTS
    stuck_after: int = 3
    summarise_above: int = 200
    search_strategy: str = "hybrid"
    search_semantic_weight: float = 0.65
    search_encoder: str = "embedded"
    search_encoder_weight: float = 0.7
    search_encoder_key: str = ""
    search_encoder_deadline_ms: int = 3_000
    search_encoder_price: float = 0.0
    strategy: str = "learned"
    models: tuple[Model, ...] = ()
    work_agent: str = "claude"
    work_command: str = ""
    work_arguments: tuple[str, ...] = ()
    work_model: str = ""
    work_verify: str = ""
    work_isolation: str = "none"
    work_jobs: int = 1
    work_order: str = "breadth"
    work_time_limit_s: int = 3_600
    work_output_limit_mb: int = 100
    work_lease_s: int = 60
    work_task_cap_usd: float = 0.0
    work_daily_cap_usd: float = 0.0
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
    before_tool: str = "auto"
    ask_agent: str = "when_worth"
    cues: str = "manual"
    consolidate_staging_file: str = "learnings-staging.md"
    consolidate_size_lines: int = 150
    consolidate_staleness_days: int = 14
    consolidate_freshness_days: int = 7
    consolidate_batch_entries: int = 3
    consolidate_topics_folder: str = "docs/learnings"
    consolidate_index_file: str = "docs/learnings/memory-index.md"
    consolidate_topic_files: tuple[str, ...] = ()
    consolidate_topic_lines: int = 400
    consolidate_pointer: bool = True

    def check(self) -> None:
        _check_path("consolidate.topics_folder", self.consolidate_topics_folder, "a folder", "`docs/learnings`")
        _check_path("consolidate.staging_file", self.consolidate_staging_file, "a file", "`learnings-staging.md`")
        for name, path in (
            ("consolidate.index_file", self.consolidate_index_file),
            *(("consolidate.topic_files", path) for path in self.consolidate_topic_files),
        ):
            _check_path(name, path, "a Markdown file", "`docs/testing.md`", ending=".md")
        if self.consolidate_staleness_days <= self.consolidate_freshness_days:
            raise InvalidValue(
                f"`consolidate.staleness_days` is {self.consolidate_staleness_days}, which is not more than "
                f"`consolidate.freshness_days`, {self.consolidate_freshness_days}",
                hint="raise the first or lower the second: otherwise a consolidation would be due right after another",
            )


def _check_path(name: str, path: str, what: str, example: str, *, ending: str = "") -> None:
    """Raise unless a setting is a path in the project."""
    parts = path.replace("\\", "/").split("/")
    is_outside = not path.strip("./ ") or ".." in parts or path.startswith(("/", "~")) or ":" in parts[0]
    is_taken = not {".git", STORE_FOLDER, SETTINGS_FILE}.isdisjoint(map(str.casefold, parts))
    if not path.isprintable() or is_outside or is_taken or not path.endswith(ending):
        raise InvalidValue(
            f"`{name}` is {path!r}",
            hint=f"set it to the path of {what} in the project, not of git or learnt, such as {example}",
        )


# Who may set a setting. Values of a project's file that it may not set take effect once the user has accepted them,
# with `learnt trust`; those of kind `user` never do.
BY = {
    "anybody": "anybody",
    "lower": "you; a project may only lower it, unless you accept its value",
    "higher": "you; a project may only raise it, unless you accept its value",
    "person": "you; a project's value has no effect until you accept it",
    "user": "you alone, never a project",
}

CONSENT = {
    "lower": " Raised here, it has no effect until `learnt trust`.",
    "higher": " Lowered here, it has no effect until `learnt trust`.",
    "person": " Set here, it has no effect until `learnt trust`.",
}


class Setting:
    """The meaning of a setting and its allowed values.

    `by`: who may set it, see BY. `table`: for one entry of a setting that is a table, the key of that setting. A plain
    class, because every hook creates all of them.
    """

    __slots__ = ("by", "choices", "example", "key", "least", "meaning", "most", "table")

    def __init__(
        self,
        key: str,
        meaning: str,
        *,
        choices: tuple[str, ...] = (),
        example: str = "",
        least: int = 0,
        most: int = 1_000_000_000,
        by: str = "anybody",
        table: str = "",
    ) -> None:
        self.key, self.meaning, self.table = key, meaning, table
        self.choices, self.example, self.by = choices, example, by
        self.least, self.most = least, most

    @property
    def field(self) -> str:
        """The setting's field name in Settings."""
        return self.key.replace(".", "_")

    @property
    def default(self) -> Any:
        """The default value."""
        return Settings.defaults[self.field]

    @property
    def variable(self) -> str:
        """The environment variable for this setting."""
        return PREFIX + (self.table or self.field).upper()


SETTINGS = (
    Setting(
        "database",
        "Where learnings are stored: empty for SQLite in `.learnt/learnt.db`, or a PostgreSQL address for a "
        "team. Put a password into LEARNT_DATABASE or `~/.pgpass`, not into a committed file.",
        example="postgresql://db.example.org/learnt",
        by="person",
    ),
    Setting(
        "project",
        "The project's name in a PostgreSQL database, which may hold many projects. Empty: the name of the main "
        "folder. Not needed for SQLite, where each project has its own file.",
        example="shop",
        by="person",
    ),
    Setting("person", "Your name in the history of changes. Empty: your login name.", example="anna", by="person"),
    Setting(
        "trusted",
        "Folders whose projects are trusted, with everything that came with them. A project's file cannot set it.",
        example="~/work",
        by="user",
    ),
    Setting(
        "sources",
        "Folders of other projects whose learnings are also used here, but never changed; relative to this file.",
        example="../design-system",
        by="person",
    ),
    Setting("user_store", "Whether your user-wide learnings are used together with the project's.", by="person"),
    Setting(
        "wait_ms",
        "How many milliseconds a change waits for other writers before it fails with exit code 3.",
        by="lower",
    ),
    Setting("page_size", "The maximum number of learnings that `learnt list` shows.", least=1),
    Setting(
        "color",
        "Colour on a terminal. `auto` also respects the NO_COLOR variable.",
        choices=("auto", "always", "never"),
    ),
    Setting("brief_learnings", "The maximum number of learnings in a brief.", by="lower"),
    Setting(
        "brief_confidence",
        "The minimum confidence of a learning in a brief. It does not apply to pinned learnings and those on trial.",
        most=1,
        by="higher",
    ),
    Setting(
        "brief_relevance",
        "The minimum relevance, from 0 to 1, of a learning to the task of a brief, unless one of its triggers "
        "matches. A higher value gives fewer learnings.",
        most=1,
        by="higher",
    ),
    Setting(
        "brief_tokens",
        "The maximum length of a brief, in estimated tokens. A stuck warning adds at most 120, the line that asks the "
        "agent to write down what it finds out (`ask_agent`) at most 60.",
        by="lower",
    ),
    Setting(
        "index_tokens",
        "The maximum length of the index at the start of a conversation, in estimated tokens: a line for each learning "
        "that somebody vouches for or, if they do not fit, for the most important ones. `brief_tokens` limits it, too. "
        "0: no index; pinned and proven learnings are then given in full.",
        by="lower",
    ),
    Setting(
        "trial_slots",
        "How many of a brief's learnings may be below `brief_confidence`, so that new ones are tried.",
        by="lower",
    ),
    Setting(
        "brief_per_category",
        "The maximum number of learnings of each category that an agent gets without a task: in a template, and "
        "at the start of a conversation.",
        by="lower",
    ),
    Setting(
        "cache_ttl_s",
        "How many seconds a long-running process may use learnings that it has read before. Changes of a learning, "
        "also by other processes, take effect at once. 0: no cache.",
    ),
    Setting(
        "agents",
        "The categories of learnings that each agent sees; `*` for all. Every agent sees `general`: learnings without "
        "a category, or with one that no agent lists. An agent without an entry sees all. An entry replaces only the "
        "default of the same agent. Names ignore case, and `_` and blanks count as `-`.",
    ),
    Setting(
        "hook_deadline_ms",
        "After how many milliseconds a hook gives up without an answer, so that the client can continue.",
        least=1,
        by="lower",
    ),
    Setting(
        "before_tool",
        "What happens before a tool call that failed here the last time, if another call worked instead: `tell` (a "
        "warning with the call or its result), `stop_once` (the first such call of a conversation is refused with the "
        "reason, its repetition is allowed), `off`, or `auto` (`stop_once` in every client that shows a warning only "
        "after the call has run, which all known ones do; else `tell`).",
        choices=("auto", "tell", "stop_once", "off"),
        by="person",
    ),
    Setting(
        "ask_agent",
        "Whether agents are asked to write down what they find out: `when_worth` (a line at the start of a "
        "conversation says how; after an error was overcome or you corrected the agent, and nothing was written, the "
        "next prompt asks for it, once in a conversation), `never`, or `insist` (the end of the turn asks for it "
        "already, which takes another turn, where the client can).",
        choices=("when_worth", "never", "insist"),
        by="person",
    ),
    Setting(
        "cues",
        "Whether your model (`model.provider`) writes cues for learnings that have none: `manual` (only when you run "
        "`learnt cues`) or `auto` (by the worker, in at most one call an hour, under the spending cap).",
        choices=("manual", "auto"),
        by="person",
    ),
    Setting(
        "search.strategy",
        "How `learnt search`, `Memory.search` and the tool `recall` find learnings: `hybrid` (by words and meaning), "
        "`bm25` (by words only) or `semantic` (by meaning only).",
        choices=("hybrid", "bm25", "semantic"),
    ),
    Setting(
        "search.semantic_weight",
        "How much meaning counts in a hybrid search, from 0 to 1; words count for the rest. Briefs do not use it.",
        most=1,
    ),
    Setting(
        "search.encoder",
        "What a search compares meanings with: `embedded` (the table that comes with learnt), `onnx:FOLDER` (a "
        "sentence model in a folder), `openai:MODEL@ADDRESS` (any service with OpenAI's embeddings) or "
        "`ollama:MODEL@ADDRESS`. A service is sent the text of all learnings and searches, without secrets. Briefs and "
        "hooks always use the embedded table.",
        example="ollama:nomic-embed-text@http://localhost:11434",
        by="person",
    ),
    Setting(
        "search.encoder_weight",
        "How much meaning counts in a hybrid search with an `encoder`, from 0 to 1.",
        most=1,
    ),
    Setting(
        "search.encoder_key",
        "The name of the environment variable with the service's key. Empty: OPENAI_API_KEY for OpenAI's own service, "
        "no key for any other.",
        example="MY_SERVICE_KEY",
        by="person",
    ),
    Setting(
        "search.encoder_deadline_ms",
        "After how many milliseconds a search stops waiting for the encoder and uses the embedded table.",
        least=1,
        by="lower",
    ),
    Setting(
        "search.encoder_price",
        "The price of a million tokens of the encoder, in USD. Above 0, each call is recorded, and the caps of "
        "`model.daily_cap_usd` and `model.monthly_cap_usd` apply.",
        by="person",
    ),
    Setting(
        "summarise_above",
        "With more active learnings than this, tidying proposes to merge similar ones; a person decides.",
    ),
    Setting(
        "stuck_after",
        "After how many failures in a row, whichever models made them, a task counts as stuck, and after as many tasks "
        "with the same error a run.",
        least=1,
        by="lower",
    ),
    Setting(
        "strategy",
        "How `learnt work` chooses a model: `fixed` (always `work.model`), `escalate` (a stronger one after "
        "each failure), `cost-optimized` (the cheapest, as long as it succeeds) or `learned` (from earlier attempts).",
        choices=("learned", "escalate", "cost-optimized", "fixed"),
        by="person",
    ),
    Setting(
        "models",
        "The models to choose from, weakest first, each with the approximate `price` of one attempt in USD. For a "
        "client that reports tokens but no cost, set the prices of a million tokens: `input_price`, `output_price`.",
        example="haiku=0.05",
        by="person",
    ),
    Setting(
        "work.agent",
        "The client that works on tasks; `command` for your own program.",
        choices=registry.NAMES,
        by="person",
    ),
    Setting(
        "work.command",
        'With `agent = "command"`: the program. It gets the prompt on stdin, or as the file `{prompt_file}`; '
        "`{model}` is replaced by the chosen model. Its output is read from stdout.",
        example="my-agent --model {model}",
        by="person",
    ),
    Setting(
        "work.arguments", "Additional arguments for the client, such as permissions.", example="--verbose", by="person"
    ),
    Setting(
        "work.model",
        "The model for the strategy `fixed`, or if `models` is empty. Empty: the client's own default.",
        by="person",
    ),
    Setting(
        "work.verify",
        "A command that must succeed before a task counts as done. A task may set its own.",
        example="make test",
        by="person",
    ),
    Setting(
        "work.isolation",
        "Where an agent works: in the project's folder (`none`), or in a git worktree for each task.",
        choices=("none", "worktree"),
        by="person",
    ),
    Setting("work.jobs", "How many agents work at the same time.", least=1, most=64, by="lower"),
    Setting(
        "work.order",
        "Which ready task is next: the one with the fewest attempts (`breadth`), so that every task is tried once "
        "before any is tried again, or the oldest one until it is done (`depth`).",
        choices=("breadth", "depth"),
    ),
    Setting("work.time_limit_s", "After how many seconds an agent is stopped.", least=1, by="lower"),
    Setting("work.output_limit_mb", "After how many megabytes of output an agent is stopped.", least=1, by="lower"),
    Setting(
        "work.lease_s",
        "After how many seconds without a sign of life from its worker a task may be claimed by another one.",
        least=1,
    ),
    Setting(
        "work.task_cap_usd",
        "How much the attempts at one task may cost, in USD, since it was added or a person made it ready again; "
        "before more is spent, a person is asked. 0: no cap.",
        by="person",
    ),
    Setting(
        "work.daily_cap_usd",
        "How much attempts may cost in 24 hours in all your projects, in USD. An attempt whose model's price is above "
        "what is left is not started. 0: no cap.",
        by="person",
    ),
    Setting(
        "learnings.enabled",
        "Whether agents' work is mined for learnings and learnings.md is updated automatically.",
        by="lower",
    ),
    Setting(
        "learnings.window_size",
        "How many recent tasks are mined at most; learnings.md shows unproven learnings of these tasks only.",
        least=1,
    ),
    Setting("learnings.goal_window_size", "The same for the learnings file of a goal; 0: all of its tasks."),
    Setting(
        "learnings.regenerate_every",
        "After how many finished tasks learnings.md is updated automatically; 0: only by `learnt update`.",
    ),
    Setting(
        "learnings.max_tokens",
        "The maximum length of learnings.md, in estimated tokens, and of all learnings files in a prompt together.",
        least=100,
        by="lower",
    ),
    Setting(
        "learnings.injection_strategy",
        "Which learnings files the prompts of `learnt work` contain: `none`, `global_only` (learnings.md), "
        "`task_group` (the file of the task's goal; learnings.md for a task without a goal) or `both`. Their learnings "
        "count as given, like those of a brief. With the last two, each goal has a file in `.learnt/learnings/`.",
        choices=("none", "global_only", "task_group", "both"),
    ),
    Setting(
        "learnings.time_limit_s",
        "After how many seconds a background update of learnings.md is cancelled.",
        least=1,
        by="lower",
    ),
    Setting("learnings.ask", "Whether `learnt work` asks at the end of a run on a terminal if the learnings helped."),
    Setting(
        "model.provider",
        "The model that finds learnings in agents' work: `none` (only rules), `command` (your own program, such as "
        "your agent's client), `anthropic` or `openai` (also any service with the same API).",
        choices=("none", "command", "anthropic", "openai"),
        by="person",
    ),
    Setting("model.name", "The name of the model; a small, cheap one is enough.", example="haiku", by="person"),
    Setting(
        "model.command",
        'With `provider = "command"`: the program. It gets the prompt on stdin, or as the file `{prompt_file}`; '
        "`{model}` is replaced by `model.name`. The answer is read from stdout.",
        example="claude -p --model {model}",
        by="person",
    ),
    Setting(
        "model.base_url",
        "A different address for `anthropic` or `openai`, such as that of Ollama or vLLM.",
        example="http://localhost:11434/v1",
        by="person",
    ),
    Setting("model.time_limit_s", "After how many seconds a call to the model is cancelled.", least=1, by="person"),
    Setting("model.input_price", "The price of a million input tokens, in USD.", by="person"),
    Setting("model.output_price", "The price of a million output tokens, in USD.", by="person"),
    Setting(
        "model.call_price",
        "The assumed cost of a call, in USD, if its tokens or their prices are unknown; 0 for a model that you host.",
        by="person",
    ),
    Setting(
        "model.daily_cap_usd",
        "The maximum cost of model calls in 24 hours, in USD; a call that could exceed it is not made.",
        by="lower",
    ),
    Setting("model.monthly_cap_usd", "The same for 30 days.", by="lower"),
    Setting(
        "consolidate.staging_file",
        "The file in which new learnings wait until they are consolidated; a path in the project.",
    ),
    Setting("consolidate.size_lines", "From how many lines on the staging file is too long.", least=1),
    Setting(
        "consolidate.staleness_days",
        "After how many active days (days with commits) consolidation is due again; more than "
        "`consolidate.freshness_days`.",
        least=1,
    ),
    Setting("consolidate.freshness_days", "From how many active days on an entry is old enough to be consolidated."),
    Setting("consolidate.batch_entries", "How many entries must be old enough before it is worth it.", least=1),
    Setting("consolidate.topics_folder", "The folder of the topic files; a path in the project."),
    Setting("consolidate.index_file", "The index of the topic files; a path in the project."),
    Setting(
        "consolidate.topic_files",
        "Further topic files, such as `docs/testing.md` or `CLAUDE.md`; paths in the project. A file that clients load "
        "by themselves gets only learnings that somebody vouches for.",
        example="docs/testing.md",
        by="person",
    ),
    Setting("consolidate.topic_lines", "From how many lines on a topic file is split.", least=50),
    Setting("consolidate.pointer", "Whether CLAUDE.md and AGENTS.md name the index, if they exist."),
)
BY_KEY = {setting.key: setting for setting in SETTINGS}
BY_VARIABLE = {setting.variable: setting for setting in SETTINGS}
TABLES = {setting.key.partition(".")[0] for setting in SETTINGS if "." in setting.key}


def agent_key(name: str) -> str:
    """Return the key for an agent's categories in a settings file."""
    bare = name.isascii() and name.replace("-", "").isalnum()
    return f"agents.{name if bare else as_toml(name)}.categories"


def example_value(setting: Setting) -> Any:
    """Return a setting's example value, or else its default."""
    if not setting.example:
        return setting.default
    if setting.key == "models":
        return (model_from_text(setting.example),)
    return (setting.example,) if isinstance(setting.default, tuple) else setting.example


def as_toml(value: Any) -> str:
    """Return a value in TOML."""
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


def model_from_text(text: str) -> Model:
    """Return the model for a text `name=price` or `name`."""
    name, _, price = text.partition("=")
    return Model(name=name.strip(), price=float(price) if price.strip().replace(".", "", 1).isdecimal() else 0.0)
