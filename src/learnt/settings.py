"""Every setting: its key, default, meaning and bounds.

`Settings` gives the names, types and defaults, `SETTINGS` the meanings and bounds. The documentation, `learnt config`
and the file that `init` writes are made from them; `config.py` reads files and variables into a `Settings`.
"""

from __future__ import annotations

from collections.abc import Mapping

from learnt.clients import registry
from learnt.errors import InvalidValue
from learnt.model import GENERAL, Value, is_figure

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
"""Which categories an agent sees, where no file says otherwise; the names as they are compared."""


class Model(Value):
    """A language model to choose, and what it costs in USD: one attempt, and a million tokens."""

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
                raise InvalidValue(f"{field} is {price!r}", hint=f"{field} is a number of USD from 0 on")


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

    `personal`: it counts only in the user's own file and variables, never in a project's file. `table`: the setting of
    which it is one entry. A plain class, because a hook creates all of them.
    """

    __slots__ = ("choices", "example", "key", "least", "meaning", "most", "personal", "table")

    def __init__(
        self,
        key: str,
        meaning: str,
        *,
        choices: tuple[str, ...] = (),
        example: str = "",
        least: int = 0,
        most: int = 1_000_000_000,
        personal: bool = False,
        table: str = "",
    ) -> None:
        self.key, self.meaning, self.table = key, meaning, table
        self.choices, self.example, self.personal = choices, example, personal
        self.least, self.most = least, most

    @property
    def field(self) -> str:
        """Its name in Settings; in a file, the part before the dot is the table."""
        return self.key.replace(".", "_")

    @property
    def default(self) -> Any:
        """The value when it is not set."""
        return Settings.defaults[self.field]

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return PREFIX + (self.table or self.field).upper()


SETTINGS = (
    Setting(
        "database",
        "Where learnings are kept: empty for SQLite in `.learnt/learnt.db`, or a PostgreSQL address for a "
        "team. A password belongs into LEARNT_DATABASE or `~/.pgpass`, not into a committed file.",
        example="postgresql://db.example.org/learnt",
    ),
    Setting(
        "project",
        "The project's name in a PostgreSQL database, which holds many projects. Empty: the name of the main "
        "folder. A SQLite file holds one project, whatever its name.",
        example="shop",
    ),
    Setting("person", "Who you are in the history of changes. Empty: your login name.", example="anna"),
    Setting(
        "sources",
        "Folders of other projects whose learnings are read along, never changed; relative to this file.",
        example="../design-system",
    ),
    Setting("user_store", "Whether your user-wide learnings are read along with the project's."),
    Setting(
        "wait_ms",
        "How long a change waits, in milliseconds, for others that are writing before it fails with exit code 3.",
    ),
    Setting("page_size", "How many learnings `learnt list` shows at most.", least=1),
    Setting(
        "color", "Colour on a terminal. `auto` also heeds the NO_COLOR variable.", choices=("auto", "always", "never")
    ),
    Setting("brief_learnings", "How many learnings a brief carries at most."),
    Setting(
        "brief_confidence",
        "How trusted a learning must be to stand in a brief. Pinned ones and those on trial need not be.",
        most=1,
    ),
    Setting(
        "brief_relevance",
        "How much of what a task is about, from 0 to 1, a learning must touch to stand in its brief, unless "
        "one of its triggers holds. Higher: quieter.",
        most=1,
    ),
    Setting(
        "brief_tokens", "How long a brief may be, in estimated tokens. A stuck warning of at most 120 stands beside it."
    ),
    Setting(
        "trial_slots", "How many of a brief's learnings may be below `brief_confidence`: how new ones get their chance."
    ),
    Setting(
        "brief_per_category",
        "How many learnings of each category an agent is given at most where no task says what matters: in a "
        "template, and at the start of a conversation.",
    ),
    Setting(
        "cache_ttl_s",
        "For how many seconds a process that lives on may go by the learnings that it read before. It notices "
        "every change of a learning at once, whoever made it; 0: it reads them each time.",
    ),
    Setting(
        "agents",
        "Which categories of learnings an agent sees, by its name; `*` for all. Every agent sees `general`: "
        "learnings without a category, or with one that is named for no agent. An agent without an entry sees all. An "
        "entry replaces that of the same agent only. Case does not matter, nor does `_` or a blank for `-`.",
    ),
    Setting(
        "hook_deadline_ms",
        "After how many milliseconds a hook gives up and says nothing, so that no client ever waits for it.",
        least=1,
    ),
    Setting(
        "before_tool",
        "What happens before a call that failed here the last time, where another one worked then: `tell` (a "
        "warning beside the call or its result), `stop_once` (the first such call of a conversation is refused with "
        "the reason, its repetition is not) or `off`.",
        choices=("tell", "stop_once", "off"),
    ),
    Setting(
        "summarise_above",
        "With more active learnings than this, tidying proposes to put those together that are alike; a person "
        "decides.",
    ),
    Setting(
        "stuck_after",
        "After how many failures at the strongest model, or with the same error, a task counts as stuck.",
        least=1,
    ),
    Setting(
        "strategy",
        "How `learnt work` chooses a model: `fixed` (always `work.model`), `escalate` (a stronger one after "
        "each failure), `cost-optimized` (the cheapest while all goes well) or `learned` (by the record of attempts).",
        choices=("learned", "escalate", "cost-optimized", "fixed"),
    ),
    Setting(
        "models",
        "The models to choose from, the weakest first, each with what one attempt costs about, in USD. Where a "
        "client tells tokens but no cost, the prices of a million tokens, `input_price` and `output_price`, give it.",
        example="haiku=0.05",
    ),
    Setting(
        "work.agent",
        "The client that works on tasks; `command` for a program of your own.",
        choices=registry.NAMES,
    ),
    Setting(
        "work.command",
        'With `agent = "command"`: the program. Its prompt comes on stdin, or in the file that stands for '
        "`{prompt_file}`; `{model}` stands for the chosen model. Its output is read from stdout.",
        example="my-agent --model {model}",
    ),
    Setting("work.arguments", "More arguments for the client, such as its permissions.", example="--verbose"),
    Setting(
        "work.model",
        "The model of the strategy `fixed`, and where no `models` are named; empty: the client's own default.",
    ),
    Setting(
        "work.verify",
        "A command that must succeed before a task counts as done, unless the task has one of its own.",
        example="make test",
    ),
    Setting(
        "work.isolation",
        "Where an agent works: in the project's folder (`none`), or in a git worktree for each task.",
        choices=("none", "worktree"),
    ),
    Setting("work.jobs", "How many tasks are worked on at once.", least=1, most=64),
    Setting("work.time_limit_s", "After how many seconds an agent is stopped.", least=1),
    Setting("work.output_limit_mb", "After how many megabytes of output an agent is stopped.", least=1),
    Setting(
        "work.lease_s",
        "For how many seconds a worker holds a task without a sign of life before another may take it up.",
        least=1,
    ),
    Setting("learnings.enabled", "Whether what agents do is mined for learnings, and learnings.md written, by itself."),
    Setting(
        "learnings.window_size",
        "From how many recent tasks learnings.md shows what is not proven yet, and how many are mined at most.",
        least=1,
    ),
    Setting("learnings.goal_window_size", "The same for the file of a goal; 0: all of its tasks."),
    Setting(
        "learnings.regenerate_every",
        "After how many finished tasks learnings.md is made anew by itself; 0: only by `learnt update`.",
    ),
    Setting(
        "learnings.max_tokens",
        "How long learnings.md may be, in estimated tokens, and all that a prompt carries of such files.",
        least=100,
    ),
    Setting(
        "learnings.injection_strategy",
        "Whether prompts of `learnt work` carry the text of learnings.md, counted as given like what a brief "
        "shows: `none`, `global_only` (that file), "
        "`task_group` (the file of the task's goal, or that file for a task without one) or `both`. With the last two "
        "each goal has a file in `.learnt/learnings/`.",
        choices=("none", "global_only", "task_group", "both"),
    ),
    Setting(
        "learnings.time_limit_s",
        "After how many seconds the making of learnings.md in the background is given up.",
        least=1,
    ),
    Setting(
        "learnings.ask", "Whether `learnt work` asks once, at the end of a run on a terminal, if the learnings helped."
    ),
    Setting(
        "model.provider",
        "Who reads what agents did, for better learnings: `none` (rules alone), `command` (a program of yours, "
        "such as your agent's client), `anthropic` or `openai` (also any service that speaks its protocol).",
        choices=("none", "command", "anthropic", "openai"),
        personal=True,
    ),
    Setting("model.name", "The model to ask; a small, cheap one will do.", example="haiku"),
    Setting(
        "model.command",
        'With `provider = "command"`: the program. The prompt comes on stdin, or in the file that stands for '
        "`{prompt_file}`; `{model}` stands for `model.name`. The answer is read from stdout.",
        example="claude -p --model {model}",
        personal=True,
    ),
    Setting(
        "model.base_url",
        "Another address for `anthropic` or `openai`, such as that of Ollama or vLLM.",
        example="http://localhost:11434/v1",
        personal=True,
    ),
    Setting("model.time_limit_s", "After how many seconds a call to the model is given up.", least=1),
    Setting("model.input_price", "What a million tokens that the model reads cost, in USD."),
    Setting("model.output_price", "What a million tokens that the model writes cost, in USD."),
    Setting(
        "model.call_price",
        "What one call is taken to cost, in USD, where its tokens or their prices are not known; 0 for a model "
        "of your own.",
    ),
    Setting(
        "model.daily_cap_usd",
        "What calls to the model may cost in 24 hours, in USD; a call that could pass it is not made.",
    ),
    Setting("model.monthly_cap_usd", "The same for 30 days."),
)
BY_KEY = {setting.key: setting for setting in SETTINGS}
BY_VARIABLE = {setting.variable: setting for setting in SETTINGS}
TABLES = {setting.key.partition(".")[0] for setting in SETTINGS if "." in setting.key}


def render_template() -> str:
    """Return the settings file of a project with every setting commented out that it may hold."""
    lines = ["# Settings of learnt for this project; `learnt config` shows what is in force and why.", ""]
    for setting in SETTINGS:
        if not setting.personal:
            lines += [f"# {line}" for line in _wrap(setting.meaning)]
            lines += [*(f"# {line}" for line in example_lines(setting)), ""]
    keys = [f"`{setting.key}`" for setting in SETTINGS if setting.personal]
    personal = (
        f"Each person sets {', '.join(keys[:-1])} and {keys[-1]} for themselves, in the user-wide settings file that "
        f"`learnt config {keys[0].strip('`')}` names, or in the environment: here they are refused."
    )
    lines += [*(f"# {line}" for line in _wrap(personal)), ""]
    return "\n".join(lines)


def example_lines(setting: Setting) -> list[str]:
    """Return how the setting is written in a file."""
    if setting.key == "agents":
        return [f"{agent_key(name)} = {as_toml(categories)}" for name, categories in AGENTS.items()]
    return [f"{setting.key} = {as_toml(example_value(setting))}"]


def agent_key(name: str) -> str:
    """Return the key under which a file sets the categories of an agent."""
    bare = name.isascii() and name.replace("-", "").isalnum()
    return f"agents.{name if bare else as_toml(name)}.categories"


def example_value(setting: Setting) -> Any:
    """Return a value that shows how the setting is written."""
    if not setting.example:
        return setting.default
    if setting.key == "models":
        return (model_from_text(setting.example),)
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


def model_from_text(text: str) -> Model:
    """Return the model that `name=price` means; the price may be missing."""
    name, _, price = text.partition("=")
    return Model(name=name.strip(), price=float(price) if price.strip().replace(".", "", 1).isdecimal() else 0.0)


def _wrap(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 100)
