"""What a task says besides the text that a brief is asked for: stored text, specification, parent, goal.

Each part is searched for by itself, so that a long specification does not drown a short task, and so that the receipt
can say which part a learning fits. What a task inherits, the text of its parent and what its goal wants, describes
more than the task itself: it counts less (`INHERITED_WEIGHT`), its triggers decide nothing, and at most one learning is
given only because of it.

Conversations have no parts: there, only the prompt counts.
"""

from __future__ import annotations

import os

from learnt.errors import WrongRequest
from learnt.model import Value
from learnt.store import goals, tasks
from learnt.text.clean import clean, fold
from learnt.text.triggers import list_mentioned_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from learnt.flow.context import Context
    from learnt.model import Hit, Task

INHERITED = ("parent", "goal")
INHERITED_WEIGHT = 0.7
MAX_SPEC_CHARS = 200_000
_PIECE_CHARS = 3_000  # so much text is read sentence by sentence without leaving any out
_MAX_PIECES = 12
_MAX_PATHS = 50


class TaskPart(Value):
    """A text that says what a task is about."""

    name: str
    text: str
    source: str = ""
    """The file or the task that the text comes from."""

    @property
    def is_inherited(self) -> bool:
        """Whether the text is not the task's own."""
        return self.name in INHERITED

    def as_entry(self) -> dict[str, str | int]:
        """Return the part for a receipt, without its text."""
        return {"part": self.name, "source": self.source, "length": len(self.text)}


def list_parts(context: Context, task: Task, text: str) -> list[TaskPart]:
    """Return the parts of a task that a text does not contain already."""
    parent = tasks.find(context.store.database, task.parent) if task.parent else None
    parts = [
        TaskPart(name="task", text=_say(task) if task.queued else ""),
        TaskPart(name="spec", text=_read_existing_spec(context.root, task.spec), source=task.spec),
        TaskPart(name="parent", text=_say(parent) if parent and parent.type != "session" else "", source=task.parent),
        TaskPart(name="goal", text=_read_goal(context, task.goal), source=task.goal),
    ]
    said = fold(text).lower()
    return [part for part in parts if part.text and fold(part.text).lower() not in said]


def split_part(part: TaskPart) -> list[str]:
    """Return the text of a part in pieces that can be searched for; of a very long one, the first and the last."""
    pieces = [""]
    for line in part.text.splitlines(keepends=True):
        if pieces[-1] and len(pieces[-1]) + len(line) > _PIECE_CHARS:
            pieces.append("")
        pieces[-1] += line
    half = _MAX_PIECES // 2
    return pieces if len(pieces) <= _MAX_PIECES else [*pieces[:half], *pieces[-half:]]


def list_own_paths(root: str, texts: Sequence[str]) -> list[str]:
    """Return the files of the project that texts name."""
    named = (path for text in texts for path in list_mentioned_paths(text))
    own = (path for path in dict.fromkeys(named) if not os.path.isabs(path) and ".." not in path.split("/"))
    return [path for path in own if root and os.path.isfile(os.path.join(root, path))][:_MAX_PATHS]


def choose_inherited(inherited: Sequence[Hit], hits: dict[str, Hit], bar: float) -> list[Hit]:
    """Return the best hit that only an inherited part gives, or none."""
    own = {id for id, hit in hits.items() if hit.trigger or hit.relevance >= bar}
    fresh = [hit for hit in inherited if hit.learning.id not in own]
    return sorted(fresh, key=lambda hit: (-hit.relevance, hit.learning.id))[:1]


def weaken(hit: Hit) -> Hit:
    """Return a hit of an inherited part, which counts less, and whose trigger does not decide."""
    return hit.replace(relevance=hit.relevance * INHERITED_WEIGHT, trigger="")


def read_spec(root: str, spec: str) -> str:
    """Return the text of a specification, which is a file in the project; empty if `spec` is empty."""
    if not spec:
        return ""
    path = os.path.realpath(os.path.join(root, spec))
    if not path.startswith(os.path.join(os.path.realpath(root), "")):
        raise WrongRequest(f"the specification {spec} is outside the project", hint=f"choose a file below {root}")
    if not os.path.isfile(path):
        raise WrongRequest(f"there is no file {spec}", hint="--spec must be a file in the project")
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(MAX_SPEC_CHARS + 1)
    except OSError as error:
        raise WrongRequest(
            f"the specification {spec} cannot be read: {error.strerror}", hint="check the file's permissions"
        ) from None
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise WrongRequest(f"the specification {spec} is not UTF-8 text", hint="write it as plain text or Markdown")
    if len(text) > MAX_SPEC_CHARS:
        raise WrongRequest(
            f"the specification {spec} is longer than {MAX_SPEC_CHARS:,} characters",
            hint="split the task and its specification",
        )
    return clean(text).strip()


def _read_existing_spec(root: str, spec: str) -> str:
    """Return the text of a specification; empty if it cannot be read, which whoever works on the task reports."""
    try:
        return read_spec(root, spec) if root else ""
    except WrongRequest:
        return ""


def _read_goal(context: Context, name: str) -> str:
    """Return what a goal wants, with the words of its name; empty without a goal."""
    goal = goals.find(context.store.database, name) if name else None
    words = " ".join(name.replace("-", " ").replace("_", " ").split())
    return f"{words}\n{goal.describe()}" if goal and (goal.title or goal.text) else words


def _say(task: Task) -> str:
    return f"{task.title}\n{task.text}".strip()
