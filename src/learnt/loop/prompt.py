"""An attempt's prompt: task, specification, finished prerequisites, brief, earlier tasks, instructions.

The parts are inserted into templates, in which `$name` is replaced by the part with that name; a part can be empty. A
project overrides a template with a file of the same name in `.learnt/prompts/`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from string import Template

from learnt.errors import LearntError
from learnt.mine.ask import TEMPLATE, TEMPLATES
from learnt.model import Task, Value
from learnt.store.reviews import Escalation
from learnt.system.files import list_names
from learnt.system.templates import read_template
from learnt.text.fence import fenced, quoted_line, without_tags

_TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prompts")
_MAX_ENTRIES = 20
_MAX_ENTRY_CHARS = 500
_BLANK_LINES = re.compile(r"\n{3,}")
_BRIEF_PLACEHOLDER = "\0"  # never part of cleaned text


class Earlier(Value):
    """A task that this task builds on, and its agent's summary."""

    task: Task
    summary: str = ""


def compose(
    task: Task,
    *,
    brief: str,
    learnings: str = "",
    spec: str = "",
    prerequisites: Sequence[Earlier] = (),
    chain: Sequence[Earlier] = (),
    answers: Sequence[Escalation] = (),
    unmerged: Sequence[str] = (),
    overrides: str = "",
) -> str:
    """Return the prompt for the next attempt at a task."""
    parts = {
        "title": task.title,
        "text": task.text,
        "spec": f"\n## Specification ({task.spec})\n\n{spec}\n" if spec else "",
        "learnings": f"\n{fenced(without_tags(learnings), 'learnings')}" if learnings else "",
        "prerequisites": _prerequisites(prerequisites, unmerged),
        "brief": _BRIEF_PLACEHOLDER if brief else "",
        "chain": _section("What this builds on", [_format_earlier(earlier) for earlier in chain]),
        "answers": _section("What a person answered", [f"- {answer.question} — {answer.answer}" for answer in answers]),
        "instructions": _template(task.type, overrides) or _template("other", overrides),
        "sigils": _template("sigils", overrides),
    }
    text = Template(_template("task", overrides)).safe_substitute(parts)
    # The brief is inserted last, so that the agent gets it exactly as it was recorded.
    return _BLANK_LINES.sub("\n\n", text).replace(_BRIEF_PLACEHOLDER, brief.strip()).strip() + "\n"


def find_problems(overrides: str, types: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the problems in a project's own templates, and their remedies; `types` are the types of its tasks."""
    files = [name for folder in (_TEMPLATES, TEMPLATES) for name in os.listdir(folder)]
    ours = sorted(name.removesuffix(".md") for name in files if name.endswith(".md"))
    try:
        own = list_names(overrides)
    except OSError as error:
        yield f"cannot read {overrides}: {error.strerror}", "check the owner of the folder and its files"
        return
    for file in own:
        name, ending = os.path.splitext(file)
        if not file.startswith(".") and (ending != ".md" or name not in {*ours, *types}):
            names = ", ".join(f"{name}.md" for name in ours)
            yield (
                f"{os.path.join(overrides, file)} is not used for any task",
                f"name it after a type of task, or: {names}",
            )
    for name, parts, flaw in (
        ("task", {"title", "text"}, "has neither $title nor $text, so no agent sees its task"),
        (TEMPLATE, {"material"}, "has no $material, so the model does not see the agent's work"),
    ):
        try:
            used = set(Template(read_template(name, (_TEMPLATES, TEMPLATES), own=overrides)).get_identifiers())
        except LearntError as error:
            yield error.message, error.hint
            continue
        if not used & parts:
            yield f"{os.path.join(overrides, name)}.md {flaw}", "add it to the template"


def _template(name: str, overrides: str) -> str:
    return read_template(name, (_TEMPLATES,), own=overrides)


def _prerequisites(prerequisites: Sequence[Earlier], unmerged: Sequence[str]) -> str:
    section = _section("Completed prerequisites", [_format_earlier(earlier) for earlier in prerequisites])
    if not unmerged:
        return section
    names = ", ".join(f"`{branch}`" for branch in unmerged)
    return f"{section}\nTheir work on {names} conflicts with this folder and is not in it: merge it first.\n"


def _section(title: str, entries: Sequence[str]) -> str:
    more = [f"- … and {len(entries) - _MAX_ENTRIES} more"] if len(entries) > _MAX_ENTRIES else []
    return "\n".join(["", f"## {title}", "", *entries[:_MAX_ENTRIES], *more, ""]) if entries else ""


def _format_earlier(earlier: Earlier) -> str:
    summary = quoted_line(earlier.summary)[:_MAX_ENTRY_CHARS]
    branch = f" (branch `{earlier.task.branch}`)" if earlier.task.branch else ""
    return f"- {quoted_line(earlier.task.title)}{branch}{f': {summary}' if summary else ''}"
