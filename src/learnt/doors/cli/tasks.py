"""The commands `learnt task …`, and the commands for escalations, which only a person can decide."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from learnt.consolidate.questions import CHOICES
from learnt.doors.cli.arguments import Arguments, Parser, open_memory, print_result, report_redactions
from learnt.doors.output import format_count, format_time, note, paint, say, show_json, show_table
from learnt.errors import WrongRequest
from learnt.flow.decisions import Side
from learnt.flow.tasks import ENDED, IDLE
from learnt.loop.attempt import WORKTREES
from learnt.loop.folders import KeptWork, find_kept
from learnt.loop.prompt import build_prompt
from learnt.memory import Memory
from learnt.model import TASK_STATUSES, Attempt, Failure, Task, is_id
from learnt.store.goals import Goal
from learnt.store.reviews import Escalation

_COLORS = {"done": "green", "running": "cyan"} | dict.fromkeys(("failed", "escalated"), "red")
_MAX_FILES_SHOWN = 5
_COLORS |= dict.fromkeys(("waiting", "cancelled"), "dim")


def _add_id(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="the task's id")


task_cancel_arguments = task_retry_arguments = task_prompt_arguments = _add_id


def _add_fields(parser: Parser, *, after: Parser) -> None:
    parser.add_argument("--text", metavar="TEXT", help="the full description")
    parser.add_argument("--type", metavar="TYPE", help="implement, review, improve, plan, explore, …")
    parser.add_argument("--spec", metavar="FILE", help="a specification file, relative to the project's root")
    parser.add_argument("--goal", metavar="NAME", help="the goal it belongs to")
    after.add_argument("--after", action="append", metavar="ID", help="wait until this task is done; repeatable")
    parser.add_argument("--based-on", metavar="ID", help="continue this task's work")
    parser.add_argument("--agent", metavar="NAME", help="the agent's role")
    parser.add_argument("--model", metavar="NAME", help="the only model to use")
    parser.add_argument("--verify", metavar="COMMAND", help="a command that must succeed before the task is done")
    parser.add_argument("--acceptance", metavar="TEXT", help="what must be true when the task is done, in words")
    parser.add_argument(
        "--no-learnings",
        action="store_const",
        const=True,
        dest="skip_learnings",
        help="do not show the agent any learnings",
    )


def _read_fields(arguments: Arguments) -> dict[str, Any]:
    names = ("text", "type", "spec", "goal", "after", "based_on", "agent", "model", "verify", "acceptance")
    given = {name: getattr(arguments, name) for name in (*names, "skip_learnings")}
    return {name: value for name, value in given.items() if value is not None}


def _check_spec(memory: Memory, fields: dict[str, Any]) -> None:
    """Raise if the specification cannot be read; make its path relative to the project's root."""
    spec = fields.get("spec")
    if not spec:
        return
    if os.path.isfile(spec):
        folder = os.path.realpath(os.path.dirname(os.path.abspath(spec)))
        spec = os.path.relpath(os.path.join(folder, os.path.basename(spec)), os.path.realpath(memory.root))
    memory.tasks.read_spec(spec)
    fields["spec"] = spec


def task_add_arguments(parser: Parser) -> None:
    parser.add_argument("title", metavar="TITLE", help="the task in one sentence")
    _add_fields(parser, after=parser)


def task_add_run(arguments: Arguments) -> None:
    fields = _read_fields(arguments)
    with open_memory(arguments) as memory:
        _check_spec(memory, fields)
        task = memory.tasks.add(arguments.title, **fields)
    report_redactions(memory)
    print_result(arguments, _record(task), _describe_added(task))


def task_list_arguments(parser: Parser) -> None:
    parser.add_argument("--status", choices=TASK_STATUSES, help="only tasks with this status")
    parser.add_argument("--goal", default="", metavar="NAME", help="only tasks with this goal")
    parser.add_argument("--all", action="store_true", help="also ended tasks, and tasks outside the queue")


def task_list_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        open_statuses = [status for status in TASK_STATUSES if status not in ENDED]
        statuses = [arguments.status] if arguments.status else [] if arguments.all else open_statuses
        tasks = memory.tasks.select(statuses=statuses, goal=arguments.goal, queued=not arguments.all)
        needs = memory.tasks.needs()
        counts = memory.tasks.counts()
    if arguments.json:
        show_json([_record(task, needs.get(task.id, [])) for task in tasks])
        return
    if tasks:
        rows = [(task.id, task.status, task.type, _describe_task(task, needs)) for task in tasks]
        show_table(("id", "status", "type", "task"), rows, wide=3)
        return
    others = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    say(f"No tasks match{f'; there are {others} (--all)' if others else ': `learnt task add` adds one'}.")


def _describe_task(task: Task, needs: Mapping[str, Sequence[str]]) -> str:
    after = f"  [after {', '.join(needs[task.id])}]" if task.status == "waiting" and task.id in needs else ""
    return f"{task.title}{f'  [{task.goal}]' if task.goal else ''}{after}"


def task_show_arguments(parser: Parser) -> None:
    _add_id(parser)
    parser.add_argument("--all", action="store_true", help="also archived failure reports")


def task_show_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        task = memory.tasks.get(arguments.id)
        attempts = memory.tasks.attempts(task.id)
        reports = memory.tasks.failures(task.id)
        needed = memory.tasks.prerequisites_of(task.id)
        escalations = memory.tasks.escalations(status=None, subject=task.id)
        claim = next((claim for claim in memory.work.claims() if claim.task == task.id), None)
        goal = memory.goals.get(task.goal) if task.goal else None
        discoveries = memory.discoveries.select(task=task.id)
        kept = _find_kept(memory, task)
    if not arguments.all:
        reports = {id: report for id, report in reports.items() if not report.archived_at}
    if arguments.json:
        failures = {id: report.as_dict() for id, report in reports.items()}
        record = _record(task, [other.id for other in needed])
        record["attempts"] = [{**attempt.as_dict(), "failure": failures.get(attempt.id)} for attempt in attempts]
        record["escalations"] = [escalation.as_dict() for escalation in escalations]
        record["claim"] = claim.as_dict() if claim else None
        record["discoveries"] = [stored.as_record() for stored in discoveries]
        record["kept"] = kept.as_dict()
        show_json(record)
        return
    say(f"{paint(task.title, 'bold')}\n{task.id} · {_paint_status(task.status)} · {task.type}")
    if task.text and task.text != task.title:
        say(f"\n{task.text}\n")
    for name, value in _list_details(task, needed, goal).items():
        if value:
            say(f"  {name}: {value}")
    for attempt in reversed(attempts):
        _show_attempt(attempt, reports.get(attempt.id))
    if claim:
        figures = [f"since {format_time(claim.started_at)}", claim.model, f"{claim.host}:{claim.pid}"]
        say(f"  attempt {len(attempts) + 1}: {_paint_status('running')}  {'  '.join(filter(None, figures))}")
    for stored in discoveries:
        outcome = f" → {stored.learning}" if stored.learning else ""
        say(f"  {stored.id}: {stored.discovery.type}: {stored.discovery.text}{outcome}")
    for escalation in escalations:
        answer = f"— {escalation.answer}" if escalation.answer else "(open)"
        say(f"  {escalation.id}: {escalation.question} {answer}")
    for line in _describe_kept(task, kept):
        say(f"  {line}")


def _find_kept(memory: Memory, task: Task) -> KeptWork:
    return find_kept(memory.root, os.path.join(memory.folder, WORKTREES), task)


def _describe_kept(task: Task, kept: KeptWork) -> Iterator[str]:
    """Yield where the work on a task is, and how to take it up."""
    if kept.commits:
        yield f"work on {kept.branch}: {format_count(len(kept.commits), 'commit')}, the last: {kept.commits[0]}"
    if kept.changes:
        names = ", ".join(kept.changes[:_MAX_FILES_SHOWN]) + (", …" if len(kept.changes) > _MAX_FILES_SHOWN else "")
        yield f"uncommitted work in {kept.folder}: {names}"
    for folder in kept.aside:
        yield f"work in what was a worktree until an agent damaged it: {folder}"
    if kept.commits:
        yield f"`git merge {kept.branch}` takes over what is committed"
    if task.status in IDLE and (kept.commits or kept.changes):
        answer, again = f'learnt resolve {task.id} "what to do"', f"learnt task retry {task.id}"
        yield f"`{answer if task.status == 'escalated' else again}` lets an agent go on with it"


def _list_details(task: Task, needed: Sequence[Task], goal: Goal | None) -> dict[str, str]:
    return {
        "goal": f"{task.goal}: {goal.title}" if goal and goal.title else task.goal,
        "agent": task.agent,
        "model": task.model,
        "specification": task.spec,
        "verified by": task.verify,
        "accepted when": task.acceptance,
        "after": ", ".join(f"{other.id} ({other.status})" for other in needed),
        "based on": task.based_on,
        "part of": task.parent,
        "branch": task.branch,
        "learnings": "not given to the agent" if task.skip_learnings else "",
        "added": format_time(task.created_at),
    }


def _show_attempt(attempt: Attempt, report: Failure | None) -> None:
    figures = [format_time(attempt.started_at), attempt.model]
    figures += [f"{attempt.duration_ms / 1000:.0f} s"] if attempt.duration_ms else []
    figures += [f"${attempt.cost_usd:.2f}"] if attempt.cost_usd else []
    figures += [attempt.difficulty]
    say(f"  attempt {attempt.number}: {_paint_status(attempt.result)}  {'  '.join(filter(None, figures))}")
    if attempt.model_reason:
        say(paint(f"    {attempt.model_reason}", "dim"))
    if attempt.summary:
        say(f"    {attempt.summary}")
    if report is not None:
        say(f"    {report.category}: {report.reason}")


def task_edit_arguments(parser: Parser) -> None:
    _add_id(parser)
    parser.add_argument("--title", metavar="TEXT", help="the task in one sentence")
    after = parser.add_mutually_exclusive_group()
    _add_fields(parser, after=after)
    after.add_argument("--no-after", action="store_true", help="remove all dependencies")
    parser.add_argument(
        "--learnings", action="store_const", const=False, dest="skip_learnings", help="show the agent learnings again"
    )


def task_edit_run(arguments: Arguments) -> None:
    fields = _read_fields(arguments)
    if arguments.title is not None:
        fields["title"] = arguments.title
    if arguments.no_after:
        fields["after"] = []
    if not fields:
        raise WrongRequest("nothing to change", hint="set a field, as in `--title TEXT`")
    with open_memory(arguments) as memory:
        _check_spec(memory, fields)
        task = memory.tasks.edit(arguments.id, **fields)
    report_redactions(memory)
    print_result(arguments, _record(task), f"Edited {task.id}: {task.title}")
    if task.status == "running" and not arguments.json:
        say("An agent is working on it: the change applies from the next attempt on.")


def task_cancel_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        task = memory.tasks.cancel(arguments.id)
        blocked = memory.tasks.blocked()
    print_result(arguments, _record(task), f"Cancelled {task.id}: {task.title}")
    if not arguments.json:
        report_blocked(blocked, by=task)


def task_retry_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        task = memory.tasks.retry(arguments.id)
    print_result(arguments, _record(task), f"{task.status.capitalize()} again: {task.id}: {task.title}")


def task_split_arguments(parser: Parser) -> None:
    _add_id(parser)
    parser.add_argument("parts", metavar="TITLE", nargs="+", help="each part in one sentence")
    parser.add_argument("--in-order", action="store_true", help="each part waits for the previous one")


def task_split_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        parts = memory.tasks.split(arguments.id, arguments.parts, in_order=arguments.in_order)
    if arguments.json:
        show_json([_record(part) for part in parts])
        return
    for part in parts:
        say(_describe_added(part))
    say(f"{arguments.id} waits for {'it' if len(parts) == 1 else 'them'}.")


def task_graph_arguments(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help="also finished tasks that no open task waits for")


def task_graph_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        tasks = {task.id: task for task in memory.tasks.select()}
        needs = memory.tasks.needs()
    if arguments.json:
        edges = [{"task": task, "needs": needed} for task, all_needed in needs.items() for needed in all_needed]
        show_json({"id": "graph", "tasks": [_record(task) for task in tasks.values()], "edges": edges})
        return
    needed = {id for task, all_needed in needs.items() for id in all_needed if task in tasks}
    tops = [task for task in tasks.values() if task.id not in needed]
    tops = tops if arguments.all else [task for task in tops if task.status not in ENDED]
    drawn: set[str] = set()
    for task in tops:
        _draw(task, tasks, needs, drawn=drawn)
    if not tops:
        say("No open tasks. (--all shows finished ones.)")


def _draw(
    task: Task,
    tasks: Mapping[str, Task],
    needs: Mapping[str, Sequence[str]],
    *,
    drawn: set[str],
    first: str = "",
    rest: str = "",
) -> None:
    """Show a task and, below it, the tasks it depends on."""
    again = task.id in drawn and needs.get(task.id)
    say(f"{first}{task.id}  {_paint_status(task.status)}  {task.title}{'  (see above)' if again else ''}")
    if again:
        return
    drawn.add(task.id)
    below = [tasks[id] for id in needs.get(task.id, ()) if id in tasks]
    for place, needed in enumerate(below):
        here, on = ("└─ ", "   ") if place == len(below) - 1 else ("├─ ", "│  ")
        _draw(needed, tasks, needs, drawn=drawn, first=rest + here, rest=rest + on)


def task_prompt_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        task = memory.tasks.get(arguments.id)
        choice = memory.work.choose_model(task)
        prompt = build_prompt(memory, task, choice, kept=_find_kept(memory, task), keep=False)
    record = {"id": task.id, "model": choice.model, "model_reason": choice.reason, "prompt": prompt}
    print_result(arguments, record, prompt.rstrip())


def escalations_arguments(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help="also answered escalations")


def escalations_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        escalations = memory.decisions.pending(status=None if arguments.all else "open")
        sides = {escalation.id: memory.decisions.sides(escalation) for escalation in escalations}
    if arguments.json:
        show_json([_describe_escalation(escalation, sides[escalation.id]) for escalation in escalations])
        return
    for escalation in escalations:
        say(f"{paint(escalation.id, 'yellow')}  {format_time(escalation.created_at)}  {escalation.subject}")
        say(f"    {escalation.question}")
        for side in sides[escalation.id]:
            _print_side(side)
        if escalation.status == "resolved":
            say(f"    {escalation.resolved_by}: {escalation.answer}")
        elif escalation.detail.get("expires_at"):
            say(f"    until {format_time(escalation.detail['expires_at'])}: `learnt resolve {escalation.id} --keep …`")
    if not escalations:
        say("Nothing to decide.")
    elif not arguments.all:
        if any(not escalation.is_about_consolidation for escalation in escalations):
            say('\n`learnt resolve ID "what to do"` continues the task with your answer; --cancel cancels it.')
        if any(escalation.is_about_consolidation for escalation in escalations):
            say("\nOf two sides, --keep old, new, both (with --scope, where the new one holds) or neither.")


def _print_side(side: Side) -> None:
    where = " ".join(filter(None, (side.id, f"({side.file})" if side.file else "")))
    say(f"    {side.name}: {where}")
    for line in (*side.text.split("\n"), *([f"[{side.evidence}]"] if side.evidence else [])):
        say(f"        {line}".rstrip())


def _describe_escalation(escalation: Escalation, sides: Sequence[Side]) -> dict[str, Any]:
    record = escalation.as_dict()
    return {**record, "sides": [side.as_dict() for side in sides]} if escalation.is_about_consolidation else record


def resolve_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="the escalation's id, or its task's")
    parser.add_argument("answer", metavar="ANSWER", nargs="?", default="", help="what the agent should know or do")
    parser.add_argument("--cancel", action="store_true", help="cancel the task")
    parser.add_argument("--hide", action="store_true", help="hide the learning it is about")
    parser.add_argument("--keep", choices=CHOICES, default="", help="which side of a question of consolidation holds")
    parser.add_argument("--scope", default="", metavar="TEXT", help="with --keep both: where the newer one holds")


def resolve_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        printed = len(memory.remarks)
        escalation = memory.decisions.resolve(
            arguments.id,
            arguments.answer,
            keep=arguments.keep,
            scope=arguments.scope,
            cancel=arguments.cancel,
            hide=arguments.hide,
        )
        is_of_task = not is_id("learn", escalation.subject) and not escalation.is_about_consolidation
        task = memory.tasks.get(escalation.subject) if is_of_task else None
        then = memory.decisions.describe_next(escalation)
        blocked = memory.tasks.blocked()
        for remark in memory.remarks[printed:]:
            note(remark)
    if arguments.json:
        show_json(escalation.as_dict())
    else:
        say(f"Resolved {escalation.id}: {escalation.answer}")
        if then:
            say(then)
        if task is not None:
            ended = " already" if task.status in ENDED and not arguments.cancel else ""
            say(f"{task.id} is {task.status}{ended}.")
            report_blocked(blocked, by=task)


def report_blocked(blocked: Sequence[tuple[Task, Sequence[Task]]], *, by: Task | None = None) -> None:
    """Print which tasks cannot start, why, and what to do; with `by`, print only tasks that depend on that task."""
    for needed, waiting in blocked:
        if by is not None and needed.id != by.id:
            continue
        count = f"{waiting[0].id} waits" if len(waiting) == 1 else f"{len(waiting)} wait"
        id = waiting[0].id if len(waiting) == 1 else "ID"
        answer = f'learnt resolve {needed.id} "what to do"'
        way = answer if needed.status == "escalated" else f"learnt task retry {needed.id}"
        also = "" if len(waiting) == 1 else f" ({', '.join(task.id for task in waiting)})"
        free = f"`learnt task edit {id} --no-after`"
        say(f"{count} for {needed.id}, which is {needed.status}{also}: `{way}` or {free}")


def _record(task: Task, needs: Sequence[str] = ()) -> dict[str, Any]:
    return {**task.as_dict(), "after": list(needs)}


def _describe_added(task: Task) -> str:
    return f"Added {task.id}: {task.title}{' (waiting)' if task.status == 'waiting' else ''}"


def _paint_status(status: str) -> str:
    return paint(status, _COLORS[status]) if status in _COLORS else status
