"""The prompt of an attempt: task, specification, finished prerequisites, brief, what it builds on, instructions.

The texts around these come from template files. A project overrides one with a file of the same name in
`.learnt/prompts/`; `$name` stands for a part, and a part that is empty leaves nothing behind.
"""

from __future__ import annotations

import os
import re
from string import Template

from learnt.errors import LearntError, WrongRequest
from learnt.model import Value
from learnt.text.clean import clean, fold
from learnt.text.fence import harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from learnt.model import Escalation, Task

OVERRIDES = "prompts"
_TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prompts")
_LONGEST_SPEC = 200_000
_MOST_ENTRIES = 20
_LONGEST_ENTRY = 500
_BLANK_LINES = re.compile(r"\n{3,}")
_PLACE_OF_BRIEF = "\0"  # no cleaned text holds it


class Earlier(Value):
    """A task whose work this one builds on, and what its agent said at the end."""

    task: Task
    summary: str = ""


def compose(
    task: Task,
    *,
    brief: str,
    spec: str = "",
    prerequisites: Sequence[Earlier] = (),
    chain: Sequence[Earlier] = (),
    answers: Sequence[Escalation] = (),
    unmerged: Sequence[str] = (),
    overrides: str = "",
) -> str:
    """Return the prompt of the next attempt at a task."""
    parts = {
        "title": task.title,
        "text": task.text,
        "spec": f"\n## Specification ({task.spec})\n\n{spec}\n" if spec else "",
        "prerequisites": _prerequisites(prerequisites, unmerged),
        "brief": _PLACE_OF_BRIEF if brief else "",
        "chain": _section("What this builds on", [_told(earlier) for earlier in chain]),
        "answers": _section("What a person answered", [_answered(answer) for answer in answers]),
        "instructions": _template(task.type, overrides) or _template("other", overrides),
        "sigils": _template("sigils", overrides),
    }
    text = Template(_template("task", overrides)).safe_substitute(parts)
    # The brief goes in last: it must reach the agent as it was recorded.
    return _BLANK_LINES.sub("\n\n", text).replace(_PLACE_OF_BRIEF, brief.strip()).strip() + "\n"


def read_spec(root: str, task: Task) -> str:
    """Return the text of a task's specification; empty when it has none."""
    if not task.spec:
        return ""
    path = os.path.join(root, task.spec)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(_LONGEST_SPEC + 1)
    except OSError as error:
        raise WrongRequest(
            f"the specification {path} of {task.id} cannot be read: {error.strerror}",
            hint=f"put the file there, or name another: `learnt task edit {task.id} --spec FILE`",
        ) from None
    if len(text) > _LONGEST_SPEC:
        raise WrongRequest(
            f"the specification {path} is longer than {_LONGEST_SPEC:,} characters",
            hint="split it, and the task with it",
        )
    return clean(text).strip()


def _template(name: str, overrides: str) -> str:
    """Return a template: the project's own, or ours; empty when there is none of this name."""
    if fold(name) != name or not re.fullmatch(r"[\w-]+", name):
        return ""
    for folder in (overrides, _TEMPLATES):
        path = os.path.join(folder, f"{name}.md")
        if folder and os.path.isfile(path):
            try:
                with open(path, encoding="utf-8") as file:
                    return file.read()
            except (OSError, UnicodeDecodeError) as error:
                raise LearntError(f"cannot read the template {path}: {error}", hint="mend or remove the file") from None
    return ""


def _prerequisites(prerequisites: Sequence[Earlier], unmerged: Sequence[str]) -> str:
    told = _section("Completed prerequisites", [_told(earlier) for earlier in prerequisites])
    if not unmerged:
        return told
    names = ", ".join(f"`{branch}`" for branch in unmerged)
    return f"{told}\nTheir work on {names} conflicts with this folder and is not in it: merge it first.\n"


def _section(title: str, entries: Sequence[str]) -> str:
    more = [f"- … and {len(entries) - _MOST_ENTRIES} more"] if len(entries) > _MOST_ENTRIES else []
    return "\n".join(["", f"## {title}", "", *entries[:_MOST_ENTRIES], *more, ""]) if entries else ""


def _told(earlier: Earlier) -> str:
    said = fold(earlier.summary)[:_LONGEST_ENTRY]
    branch = f" (branch `{earlier.task.branch}`)" if earlier.task.branch else ""
    return f"- {harmless(earlier.task.title)}{branch}{f': {harmless(said)}' if said else ''}"


def _answered(escalation: Escalation) -> str:
    return f"- {escalation.question} — {escalation.answer}"
