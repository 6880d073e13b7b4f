"""The nouns of learnt as frozen, self-checking values.

A value that exists is valid and needs no further checks. Values compare by content, cannot be subclassed and change
only by `replace`, which checks again. Times are UTC milliseconds; strings are never None.

The values are plain slotted classes: importing `dataclasses` alone costs more than starting Python, and a hook starts
with every prompt. To a type checker they look like keyword-only frozen dataclasses.
"""

from __future__ import annotations

import _thread
import os
import sys

from learnt.errors import InvalidValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Self, dataclass_transform
else:

    def dataclass_transform(**_options):
        return lambda decorated: decorated


# A learning's texts besides its title, in the order in which they are shown.
PARAGRAPHS = ("context", "observation", "implication", "action")
COUNTERS = ("times_injected", "times_helpful", "times_not_helpful", "recurrences")
TITLE_LIMIT, TEXT_LIMIT, LONG_TEXT_LIMIT = 100, 20_000, 200_000  # a task may contain a whole specification
TRIGGER_LIMIT, TAG_LIMIT, CUE_LIMIT, OBSERVED_LIMIT = 500, 50, 8, 3
CUE_FIELDS = {"cues": CUE_LIMIT, "model_cues": CUE_LIMIT, "observed_cues": OBSERVED_LIMIT}
LARGEST_NUMBER, LEAST_CONFIDENCE = 2**53, 0.1
GENERAL, EVERYTHING = "general", "*"  # the category that every agent sees; all categories
NO_REPORT, PROGRAM = ", without a report", "learnt"  # ends an unexplained failure's reason; the program as an author
OCCASIONS = ("task", "session", "prompt", "agent", "tool", "failure", "compaction", "template")
DELIVERED, MISSED = "delivered", "not delivered"  # whether the agent was given a brief; empty if it is not known
KINDS, POLARITIES, AVOID = ("solution", "gotcha", "best-practice", "constraint"), ("do", "avoid"), "Avoid: "
# A text with one of these words says itself that something is to be avoided.
_AVOIDING = frozenset(
    "never not no don't dont avoid stop instead forbidden prohibited off-limits mustn't shouldn't nobody nie niemals "
    "nicht kein keine keinen vermeide vermeiden vermeidet verboten ne pas jamais évite éviter évitez interdit nunca "
    "jamás evita evitar evite eviten deja prohibido".split()
)
ORIGINS, VOUCHERS = ("person", "agent", "model", "import"), ("", "person", "evidence")
STATUSES = ("proposed", "active", "hidden", "archived", "superseded")
_NAMES = ("domain", "category", "discovery", "commit", "task", "author", "visibility")
_LENGTHS = {**dict.fromkeys(PARAGRAPHS, TEXT_LIMIT), **dict.fromkeys(_NAMES, TITLE_LIMIT)}
_LENGTHS |= dict.fromkeys(("loaded_from", "topic_file"), TRIGGER_LIMIT)
# The lists of words of a learning: what one of them is called, and how many there may be.
_WORDS = {"tags": ("tag", TAG_LIMIT), "replaces": ("replaced learning", TAG_LIMIT)}
_WORDS |= {field: (field.replace("_", " ").removesuffix("s"), most) for field, most in CUE_FIELDS.items()}
_CHOICES = {"kind": KINDS, "polarity": POLARITIES, "origin": ORIGINS, "vouched": VOUCHERS, "status": STATUSES}
TASK_STATUSES = ("waiting", "ready", "running", "done", "failed", "escalated", "cancelled")
RESULTS, ASKERS = ("done", "failed", "incomplete", "interrupted"), ("", "hook", "prompt", "tool", "person")
DISCOVERIES = ("blocker", "constraint", "pattern", "decision", "dependency")
FAILURE_CATEGORIES = ("test", "build", "missing-file", "logic", "type", "dependency", "timeout", "unknown")
# Ordinals are stored as their rank, because sorted as text, "hard" would come before "trivial".
DIFFICULTIES = ("trivial", "easy", "moderate", "hard", "blocked")


@dataclass_transform(kw_only_default=True, frozen_default=True)
class _ValueType(type):
    """Turns the annotated fields of a class into its fields, with their defaults."""

    fields: tuple[str, ...]
    defaults: dict[str, Any]

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _ValueType:
        if any(base.__base__ is not object for base in bases):
            raise TypeError(f"{name} is derived from a value; values cannot be subclassed")
        fields = tuple(namespace.get("__annotations__", ()))
        namespace["defaults"] = {field: namespace.pop(field) for field in fields if field in namespace}
        namespace["fields"] = fields
        return super().__new__(mcs, name, bases, namespace)


class Value(metaclass=_ValueType):
    """A frozen record with named fields; `check` raises if a field is invalid."""

    def __init__(self, **fields: Any) -> None:
        kind = type(self)
        values = {**kind.defaults, **fields}
        if len(values) != len(kind.fields) or not all(map(values.__contains__, kind.fields)):
            missing = [field for field in kind.fields if field not in values]
            if missing:
                raise TypeError(f"{kind.__name__} needs `{missing[0]}`")
            unknown = next(field for field in fields if field not in kind.fields)
            raise TypeError(f"{kind.__name__} has no field `{unknown}`")
        object.__setattr__(self, "__dict__", values)  # all at once: a brief creates some hundred values
        self.check()

    def check(self) -> None:
        """Raise InvalidValue if a field is invalid or contradicts another."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields in order; their values are shared, not copied."""
        values = self.__dict__
        return {field: values[field] for field in type(self).fields}

    @classmethod
    def from_row(cls, row: Mapping[str, Any], **changes: Any) -> Self:
        """Return the value for a row, which may have additional columns; `changes` override its columns."""
        return cls(**{field: row[field] for field in cls.fields if field not in changes}, **changes)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed, which is checked again; the value itself if nothing changes."""
        values = {**self.__dict__, **changes}
        return self if values == self.__dict__ else type(self)(**values)

    def __setattr__(self, field: str, value: object = None) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    __delattr__ = __setattr__

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *map(str, self.as_dict().values())))

    def __repr__(self) -> str:
        fields = ", ".join(f"{field}={value!r}" for field, value in self.as_dict().items())
        return f"{type(self).__name__}({fields})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.as_dict()))


def _rebuild(kind: type[Value], fields: dict[str, Any]) -> Value:
    return kind(**fields)


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_ids_lock = _thread.allocate_lock()
_last_id = (0, 0, 0)


def new_id(prefix: str, now_ms: int) -> str:
    """Return a new id, which is sortable by time and has only letters and digits after the underscore.

    The first eight digits are the milliseconds; the other six are random. Within a process, ids never repeat and
    always grow.
    """
    global _last_id  # noqa: PLW0603 - the last id must be remembered
    with _ids_lock:
        process, last_ms, last_chance = _last_id
        if now_ms > last_ms or process != os.getpid():  # a fork must not continue its parent's sequence
            _last_id = (os.getpid(), max(now_ms, last_ms), int.from_bytes(os.urandom(4), "big") % (36**6 // 2))
        else:
            _last_id = (process, last_ms, last_chance + 1)
        return f"{prefix}_{_base36(_last_id[1], 8)}{_base36(_last_id[2], 6)}"


def text_id(prefix: str, text: str) -> str:
    """Return the id for a text; the same text always has the same id."""
    return f"{prefix}_{_base36(int(digest(text)[:18], 16), 14)}"


def digest(text: str) -> str:
    """Return a text's SHA-256 digest in 64 hexadecimal digits."""
    # `hashlib` loads OpenSSL, which is slow; this module is built into Python, and its name depends on the version.
    if sys.version_info >= (3, 12):
        from _sha2 import sha256
    else:
        from _sha256 import sha256  # type: ignore[import-not-found]

    return str(sha256(text.encode("utf-8", "replace")).hexdigest())


def _base36(number: int, width: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits.rjust(width, "0")


def is_id(prefix: str, text: str) -> bool:
    """Return whether a text has the form of an id of this kind."""
    head, _, tail = text.partition("_")
    return head == prefix and tail.isascii() and tail.isalnum() and len(text) <= TITLE_LIMIT


def check_goal(name: str) -> None:
    """Raise unless the name is empty or can be a goal's name, which is also a file name."""
    _check_length("goal", name, TITLE_LIMIT)
    if name and not (name[0].isalnum() and all(letter.isalnum() or letter in "._-" for letter in name)):
        unfit = f"goal `{name}` must contain only letters, digits, dots, dashes and underscores"
        raise InvalidValue(unfit, hint="choose a name that can be a file name, such as `password-reset`")


def check_id(prefix: str, text: str) -> None:
    """Raise unless a text is an id of this kind."""
    check_text(f"the {prefix}'s id", text)
    if not is_id(prefix, text):
        letters = "".join(letter for letter in text.removeprefix(prefix) if letter.isascii() and letter.isalnum())
        raise InvalidValue(
            f"`{text[:TITLE_LIMIT]}` is not an id of the form {prefix}_…",
            hint=f"after the underscore, an id must contain only letters and digits: `{prefix}_{letters[:20] or 1}`",
        )


def check_text(name: str, text: object) -> str:
    """Return the text; raise if it is not a string."""
    if not isinstance(text, str):
        raise InvalidValue(f"{name} must be a string, not {type(text).__name__}", hint="pass a str; decode bytes first")
    return text


def _check_length(name: str, text: str, limit: int) -> None:
    if len(text) > limit:
        length = f"{name} has {len(text):,} characters; at most {limit:,} are allowed"
        raise InvalidValue(length, hint=f"shorten {name}: a learning is a statement, not an archive")


def _check_words(name: str, words: tuple[str, ...], limit: int, most: int = TAG_LIMIT) -> None:
    if len(words) > most:
        raise InvalidValue(f"{len(words)} entries for {name}", hint=f"at most {most} are allowed")
    for word in words:
        if not word.strip():
            raise InvalidValue(f"a {name} must not be empty", hint=f"leave the {name} out")
        _check_length(name, word, limit)


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise unless a value is one of the choices."""
    if value not in choices:
        raise InvalidValue(f"{name} `{value}` is unknown", hint=f"{name} must be one of: {', '.join(choices)}")


def is_figure(value: object) -> bool:
    """Return whether a value is a number that is not negative and fits into every database."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < LARGEST_NUMBER


class Triggers(Value):
    """Exact conditions for showing a learning; they are checked before any similarity."""

    files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    task_types: tuple[str, ...] = ()

    def check(self) -> None:
        for field in type(self).fields:
            _check_words(f"trigger {field}", getattr(self, field), TRIGGER_LIMIT)

    def __bool__(self) -> bool:
        return any(self.as_dict().values())


class Learning(Value):
    """A statement learnt from work: what to do or avoid, where it applies, and its evidence."""

    id: str
    title: str
    context: str = ""
    observation: str = ""
    implication: str = ""
    action: str = ""
    tags: tuple[str, ...] = ()
    cues: tuple[str, ...] = ()  # situations in which it matters, in the words in which a user would put them
    domain: str = ""
    category: str = ""
    kind: str = "solution"
    polarity: str = "do"
    triggers: Triggers = Triggers()
    origin: str = "person"
    goal: str = ""
    task: str = ""
    discovery: str = ""
    commit: str = ""
    confidence: float = 0.5
    times_injected: int = 0
    times_helpful: int = 0
    times_not_helpful: int = 0
    recurrences: int = 0
    created_at: int = 0
    updated_at: int = 0
    last_injected_at: int | None = None
    last_helpful_at: int | None = None
    last_decayed_at: int | None = None
    status: str = "active"
    superseded_by: str = ""
    replaces: tuple[str, ...] = ()  # the learnings that a proposal supersedes when it is accepted
    pinned: bool = False
    vouched: str = ""  # who vouches for it: a `person`, independent `evidence`, or nobody
    author: str = ""  # a person, an agent, or the kind of text that it was copied from
    visibility: str = "project"
    loaded_from: str = ""  # the file with it that clients load by themselves, such as CLAUDE.md
    topic_file: str = ""  # the permanent document that consolidation moved it into, by its path in the project
    model_cues: tuple[str, ...] = ()  # cues that the user's model wrote for it
    observed_cues: tuple[str, ...] = ()  # from people's prompts of tasks in which it helped, newest first
    version: int = 1
    scope: str = "project"  # not stored: "project", "user", or the name of another project

    @property
    def paragraphs(self) -> str:
        """All its texts besides the title."""
        return " ".join((self.context, self.observation, self.implication, self.action))

    @property
    def all_cues(self) -> tuple[str, ...]:
        """The cues from all sources: those that came with it, the model's, then the observed ones."""
        return (*self.cues, *self.model_cues, *self.observed_cues)

    def advise(self, text: str) -> str:
        """Return one of the learning's texts, with `Avoid: ` before it if it does not say so itself."""
        words = (word.strip(',.;:!()"`') for word in text.lower().replace("’", "'").split())
        return AVOID + text if self.polarity == "avoid" and _AVOIDING.isdisjoint(words) else text

    def check(self) -> None:
        check_id("learn", self.id)
        if not self.title or self.title != " ".join(self.title.split()):
            missing = "a learning needs a title of one line without surplus white space"
            raise InvalidValue(missing, hint='write one sentence: `learnt add "Run make lint before each commit"`')
        if len(self.title) > TITLE_LIMIT:
            length = f"the title has {len(self.title):,} characters; at most {TITLE_LIMIT} are allowed"
            raise InvalidValue(length, hint="shorten the title and put the rest into --observation or --action")
        values = self.__dict__
        for field, limit in _LENGTHS.items():
            _check_length(field, values[field], limit)
        for field, (name, most) in _WORDS.items():
            if values[field]:
                _check_words(name, values[field], TITLE_LIMIT, most)
        check_goal(self.goal)
        for field, choices in _CHOICES.items():
            check_choice(field, values[field], choices)
        if not LEAST_CONFIDENCE <= self.confidence <= 1.0:
            outside = f"confidence {self.confidence} is outside {LEAST_CONFIDENCE} to 1.0"
            raise InvalidValue(outside, hint=f"choose a number from {LEAST_CONFIDENCE} to 1.0")
        for field in (*COUNTERS, "created_at", "updated_at"):
            if values[field] < 0:
                negative = f"{field} must be 0 or more, not {values[field]}"
                raise InvalidValue(negative, hint=f"leave {field} out, or correct it")
        if (self.status == "superseded") != bool(self.superseded_by) or self.superseded_by == self.id:
            alone = "a learning must be superseded if and only if another learning supersedes it"
            raise InvalidValue(alone, hint="set both `status` and `superseded_by`, or neither")


# The fields with a learning's content, as opposed to its counters, in order. No other list defines them.
CONTENT = Learning.fields[Learning.fields.index("title") : Learning.fields.index("confidence")]


class Hit(Value):
    """A learning that was found, and why; higher scores are better."""

    learning: Learning
    score: float
    matched_fields: tuple[str, ...] = ()
    relevance: float = 0.0  # the probability that it is wanted, from 0 to 1
    words: Mapping[str, float] = {}  # the score of each matching word
    trigger: str = ""  # the trigger that matches, if any; it ranks before any similarity
    highlights: Mapping[str, str] = {}  # the matching fields, with the matching words in `<mark>`
    features: Mapping[str, float] = {}  # the figures from which `relevance` is estimated
    part: str = ""  # the part of a task that it fits, such as `spec`, if not the text that was asked for


class Event(Value):
    """A change to a learning: who did what and when, with the old and new values."""

    id: str
    subject: str
    version: int
    at: int
    who: str
    what: str
    old: Mapping[str, Any]
    new: Mapping[str, Any]
    reason: str = ""
    undoes: str = ""
    role: str = ""  # that has logged in to the server; `who` is the person whom the client claims

    def check(self) -> None:
        check_id("event", self.id)
        _check_length("reason", self.reason, TEXT_LIMIT)


class Task(Value):
    """A piece of work for an agent."""

    id: str
    title: str
    text: str = ""
    type: str = "implement"
    status: str = "ready"
    goal: str = ""
    agent: str = ""
    skip_learnings: bool = False
    spec: str = ""
    verify: str = ""
    acceptance: str = ""  # what must be true when it is done, in words
    model: str = ""
    next_model: str = ""
    based_on: str = ""
    parent: str = ""
    branch: str = ""
    fresh_since: int = 0
    client: str = ""  # in which a conversation takes place
    queued: bool = False  # whether `learnt work` may claim it; a task that a brief or a debrief created is its caller's
    created_at: int = 0
    updated_at: int = 0

    def check(self) -> None:
        check_id("task", self.id)
        if not self.title:
            raise InvalidValue("a task needs a title", hint="describe in a few words what is to be done")
        check_choice("status", self.status, TASK_STATUSES)
        _check_length("text", self.text, LONG_TEXT_LIMIT)
        _check_length("acceptance", self.acceptance, LONG_TEXT_LIMIT)
        for field in ("type", "agent", "model", "next_model"):
            _check_length(field, getattr(self, field), TITLE_LIMIT)
        for field in ("title", "spec", "verify", "branch"):
            _check_length(field, getattr(self, field), TEXT_LIMIT)
        for task in filter(None, (self.based_on, self.parent)):
            check_id("task", task)
        check_goal(self.goal)


class Claim(Value):
    """A worker's claim on a task, for one attempt."""

    attempt: str
    worker: str
    host: str
    pid: int
    started_at: int
    held_until: int
    task: str = ""
    agent_pid: int = 0
    agent_started: str = ""
    model: str = ""
    model_reason: str = ""
    folder: str = ""
    price_usd: float = 0.0  # what the attempt may cost, by the price of its model

    def check(self) -> None:
        check_id("attempt", self.attempt)


class Attempt(Value):
    """An agent's run on a task, with its statistics."""

    id: str
    task: str
    number: int
    result: str
    model: str = ""
    model_reason: str = ""
    started_at: int = 0
    duration_ms: int | None = None
    cost_usd: float | None = None
    price_usd: float | None = None  # what it counts for while its cost is unknown; None if no agent was started
    tokens_in: int | None = None
    tokens_out: int | None = None
    difficulty: str = ""
    summary: str = ""
    transcript: str = ""
    branch: str = ""  # that was checked out when the attempt ended
    ignored: str = ""  # what was ignored in its output, and why, on a line each

    def check(self) -> None:
        check_id("attempt", self.id)
        check_id("task", self.task)
        _check_length("summary", self.summary, TEXT_LIMIT)
        check_choice("result", self.result, RESULTS)
        _check_length("model", self.model, TITLE_LIMIT)
        for field in ("number", "started_at", "duration_ms", "cost_usd", "price_usd", "tokens_in", "tokens_out"):
            if (figure := getattr(self, field)) is not None and not is_figure(figure):
                wrong = f"{field} must be a number from 0 to {LARGEST_NUMBER - 1:,}, not {figure!r}"
                raise InvalidValue(wrong, hint=f"leave {field} out if it is unknown")
        if self.difficulty:
            check_choice("difficulty", self.difficulty, DIFFICULTIES)


class Failure(Value):
    """The report on a failed attempt, for the next one."""

    attempt: str
    task: str
    tried: str = ""
    reason: str = ""
    category: str = "unknown"
    files: tuple[str, ...] = ()
    error: str = ""
    avoid: str = ""
    suggestion: str = ""
    created_at: int = 0
    archived_at: int | None = None

    @property
    def symptom(self) -> str:
        """The error, or the reason if the error is unknown; failures are compared by their symptom."""
        return self.error or self.reason

    def check(self) -> None:
        check_id("attempt", self.attempt)
        check_choice("category", self.category, FAILURE_CATEGORIES)


class Injection(Value):
    """The record that a task's brief contained a learning, or held it out."""

    learning: str
    task: str
    brief: str
    injected_at: int
    held_out: bool = False

    def check(self) -> None:
        for prefix, id in (("learn", self.learning), ("task", self.task), ("brief", self.brief)):
            check_id(prefix, id)


class Discovery(Value):
    """A raw finding in what an agent did or said, with its evidence."""

    type: str
    text: str
    rule: str = ""
    """How it was found: by `command`, `edit`, `call`, `verification`, `finding`, `review`, `words`, `person`, …"""
    failed: str = ""  # the command or the file that failed
    error: str = ""  # the line with the reason
    worked: str = ""  # the command that worked instead
    excerpt: str = ""  # from the source that supports the discovery
    files: tuple[str, ...] = ()
    task: str = ""
    attempt: str = ""
    commit: str = ""
    observed: str = ""  # what happened, in sentences; it becomes the learning's observation, and is not stored
    advice: str = ""  # what to do, in a sentence; it becomes the learning's action, and is not stored

    def as_evidence(self) -> dict[str, Any]:
        """Return the fields that are stored."""
        return {name: value for name, value in self.as_dict().items() if name not in ("observed", "advice")}

    def check(self) -> None:
        check_choice("type", self.type, DISCOVERIES)
        for field in ("text", "failed", "error", "worked", "excerpt", "observed", "advice"):
            _check_length(field, getattr(self, field), TEXT_LIMIT)


class Brief(Value):
    """The brief that an agent was given. The receipt is stored, not the text."""

    id: str
    created_at: int
    task: str = ""
    agent: str = ""
    tokens: int = 0
    text_hash: str = ""
    client: str = ""
    occasion: str = "task"  # see OCCASIONS
    asked_by: str = ""  # who asked for it; see ASKERS
    duration_ms: int | None = None
    delivery: str = ""  # whether the agent was given it; see DELIVERED
    receipt: Mapping[str, Any] = {}
    injections: tuple[Injection, ...] = ()
    text: str = ""  # not stored: rendered again from the receipt

    @property
    def learning_ids(self) -> tuple[str, ...]:
        """The learnings in the brief's text, in order, without learnings that the prompt contains elsewhere."""
        if not self.injections:  # the brief was read from the database, so the ids are in the receipt
            return tuple(shown["id"] for shown in self.receipt.get("shown", ()))
        beside = self.receipt.get("beside", ())
        shown = [injection.learning for injection in self.injections if not injection.held_out]
        return tuple(learning for learning in shown if learning not in beside)

    def check(self) -> None:
        check_id("brief", self.id)
        check_choice("occasion", self.occasion, OCCASIONS)
        check_choice("asked_by", self.asked_by, ASKERS)
        check_choice("delivery", self.delivery, ("", DELIVERED, MISSED))
        if any(injection.brief != self.id for injection in self.injections):
            raise InvalidValue(f"an injection in {self.id} belongs to another brief")


class Debrief(Value):
    """The outcome of reading an agent's output."""

    task: str
    attempt: str
    result: str = ""
    learnings: tuple[str, ...] = ()  # new learnings
    repeated: tuple[str, ...] = ()  # known learnings that recurred
    failure: Failure | None = None
    helpful: tuple[str, ...] = ()
    not_helpful: tuple[str, ...] = ()
    refused_marks: tuple[str, ...] = ()
    """Rejected marks: marks on learnings that the task was not given, and repeated or contradictory marks."""
    refusals: Mapping[str, str] = {}  # the reason for each rejected mark
    next_model: str = ""
    ignored: tuple[str, ...] = ()  # statements that look like sigils but are ignored, each with the reason
    redactions: int = 0
    spooled: bool = False  # whether the database was not available, so that the output is applied later
    new_task: bool = False  # whether the task is new
