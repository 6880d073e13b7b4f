"""An attempt's prompt: the task and what it is for, how it will be judged, the brief, what is there, instructions.

The parts are inserted into templates, in which `$name` is replaced by the part with that name; a part can be empty. A
project overrides a template with a file of the same name in `.learnt/prompts/`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from string import Template

from learnt.errors import LearntError, NotFound, WrongRequest
from learnt.loop.baseline import Baseline
from learnt.loop.folders import KeptWork
from learnt.memory import Memory
from learnt.mine.ask import TEMPLATE, TEMPLATES
from learnt.model import Task, Value
from learnt.store.reviews import Escalation
from learnt.strategy.choose_model import ModelChoice
from learnt.system.files import list_names
from learnt.system.templates import read_template
from learnt.text.fence import fenced, quoted, quoted_line, without_tags
from learnt.text.titles import cut_text
from learnt.trust import is_agent

_TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prompts")
_MAX_ENTRIES = 20
_MAX_ENTRY_CHARS = 500
_MAX_PARENT_CHARS = 2_000
_MAX_TASKS = 10
_MAX_CHAIN = 5
_BLANK_LINES = re.compile(r"\n{3,}")
_BRIEF_PLACEHOLDER = "\0"  # never part of cleaned text


class Purpose(Value):
    """What a task is part of: the task that it was split from, and its goal, each with the other tasks in it."""

    parent: Task | None = None
    parts: tuple[Task, ...] = ()
    goal: str = ""
    wants: str = ""
    """What the goal wants: its title and its text."""
    others: tuple[Task, ...] = ()


class Earlier(Value):
    """A task that this task builds on, and its agent's summary."""

    task: Task
    summary: str = ""


_NO_PURPOSE, _NOTHING_KEPT = Purpose(), KeptWork()


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
    purpose: Purpose = _NO_PURPOSE,
    verify: str = "",
    baseline: Baseline | None = None,
    kept: KeptWork = _NOTHING_KEPT,
    overrides: str = "",
) -> str:
    """Return the prompt for the next attempt at a task."""
    parts = {
        "title": task.title,
        "text": task.text,
        "purpose": _section("What it is part of", _describe_purpose(purpose)),
        "judged": _section("How it will be judged", _describe_judgement(task, verify, baseline)),
        "here": _section("What is here already", _describe_kept(kept)),
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


def build_prompt(
    memory: Memory,
    task: Task,
    choice: ModelChoice,
    *,
    unmerged: tuple[str, ...] = (),
    baseline: Baseline | None = None,
    kept: KeptWork = _NOTHING_KEPT,
    keep: bool = True,
) -> str:
    """Return the prompt for the next attempt at a task; with `keep=False`, its brief is not recorded."""
    learnings, beside = memory.file.for_prompt(task)
    brief = memory.brief(
        f"{task.title}\n{task.text}".strip(),
        agent=task.agent or None,
        task=task.id,
        model=choice.model,
        model_reason=choice.reason,
        beside=beside,
        keep=keep,
        client=memory.settings.work_agent,
        pinned=True,
        # What an agent gets by starting `learnt work` itself, it has asked for.
        asked_by="tool" if is_agent(os.environ) else "prompt",
    )
    answers = memory.tasks.escalations(status=None, subject=task.id)
    done = [needed for needed in memory.tasks.prerequisites_of(task.id) if needed.status == "done"]
    return compose(
        task,
        brief=brief.text,
        learnings=learnings,
        spec=memory.tasks.read_spec(task.spec),
        prerequisites=[_summarize_earlier(memory, needed) for needed in done],
        chain=[_summarize_earlier(memory, earlier) for earlier in find_chain(memory, task)],
        answers=[answer for answer in answers if answer.status == "resolved"],
        unmerged=unmerged,
        purpose=_find_purpose(memory, task),
        verify=task.verify or memory.settings.work_verify,
        baseline=baseline,
        kept=kept,
        overrides=memory.context.prompts_folder,
    )


def _find_purpose(memory: Memory, task: Task) -> Purpose:
    """Return what a task is part of: its parent and its goal, with the other tasks of each."""
    parent = None
    if task.parent:
        with suppress(NotFound):
            parent = memory.tasks.get(task.parent)
    queued = [other for other in memory.tasks.select() if other.id != task.id] if parent or task.goal else []
    parts = [other for other in queued if parent and other.parent == parent.id]
    others = [other for other in queued if task.goal and other.goal == task.goal and other not in (parent, *parts)]
    wants = memory.goals.describe(task.goal)
    return Purpose(parent=parent, parts=tuple(parts), goal=task.goal, wants=wants, others=tuple(others))


def find_chain(memory: Memory, task: Task) -> list[Task]:
    """Return the tasks that a task builds on, oldest first."""
    chain: list[Task] = []
    while task.based_on and len(chain) < _MAX_CHAIN and task.based_on not in {link.id for link in chain}:
        try:
            task = memory.tasks.get(task.based_on)
        except WrongRequest:
            break
        chain.append(task)
    return chain[::-1]


def _summarize_earlier(memory: Memory, task: Task) -> Earlier:
    latest = next(iter(memory.tasks.attempts(task.id)), None)
    return Earlier(task=task, summary=latest.summary if latest else "")


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


def _describe_purpose(purpose: Purpose) -> list[str]:
    entries = []
    if purpose.parent is not None:
        parent = purpose.parent
        entries.append(f"- A part of “{quoted_line(parent.title)}”")
        entries += [f"  {quoted(cut_text(parent.text, _MAX_PARENT_CHARS))}"] if parent.text else []
        entries += [f"  It is accepted when: {quoted(parent.acceptance)}"] if parent.acceptance else []
    if purpose.parts:
        entries.append(f"- The other parts: {_list_tasks(purpose.parts)}")
    if purpose.goal:
        title, _, text = purpose.wants.partition("\n")
        others = f"; its other tasks: {_list_tasks(purpose.others)}" if purpose.others else ""
        named = f": {quoted_line(title)}" if title != purpose.goal else ""
        entries.append(f"- The goal `{purpose.goal}`{named}{others}")
        entries += [f"  {quoted(cut_text(text, _MAX_PARENT_CHARS))}"] if text else []
    return entries


def _list_tasks(tasks: Sequence[Task]) -> str:
    shown = [f"“{quoted_line(task.title)}” ({task.status})" for task in tasks[:_MAX_TASKS]]
    return ", ".join((*shown, f"and {len(tasks) - _MAX_TASKS} more") if len(tasks) > _MAX_TASKS else shown)


def _describe_judgement(task: Task, verify: str, baseline: Baseline | None) -> list[str]:
    entries = []
    if task.acceptance:
        entries.append(f"- It is accepted when: {quoted(task.acceptance)}")
    if verify:
        entries.append(
            f"- When you say that it is done, {_quote_command(verify)} is run here. The task is done only if that "
            "succeeds, so run it yourself first."
        )
    if baseline is not None and baseline.passes:
        entries.append(
            f"- It succeeds already on {baseline.place}, before any work: its success does not show that the task is "
            "done."
        )
    elif baseline is not None:
        entries.append(f"- On {baseline.place}, before any work, it fails: {quoted_line(baseline.error)}")
    return entries


def _quote_command(command: str) -> str:
    """Return a person's command as it is, so that an agent can run it: in the line, or as a block of its own."""
    if "\n" not in command and "`" not in command:
        return f"`{command}`"
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall("`+", command))])
    block = f"{fence}sh\n{command}\n{fence}".replace("\n", "\n  ")
    return f"this\n\n  {block}\n\n "


def _describe_kept(kept: KeptWork) -> list[str]:
    entries = [f"- Committed: {quoted_line(commit)}" for commit in kept.commits]
    if kept.changes:
        names = ", ".join(f"`{quoted_line(name)}`" for name in kept.changes[:_MAX_ENTRIES])
        more = f" and {len(kept.changes) - _MAX_ENTRIES} more" if len(kept.changes) > _MAX_ENTRIES else ""
        entries.append(f"- Not committed: {names}{more}")
    if not entries:
        return []
    return [
        "Earlier attempts at this task left work here that is not finished. Look at it before you build on it.",
        *entries,
    ]


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
