"""The commands `learnt goal …`: what sets of tasks serve."""

from __future__ import annotations

from collections.abc import Mapping

from learnt.doors.cli.arguments import Arguments, Parser, open_memory, print_result, report_redactions
from learnt.doors.output import format_time, paint, say, show_json, show_table
from learnt.errors import WrongRequest


def _add_name(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the goal's name, as in `task add --goal NAME`")


def _add_texts(parser: Parser) -> None:
    parser.add_argument("--title", metavar="TEXT", help="the goal in one sentence")
    parser.add_argument("--text", metavar="TEXT", help="what it wants, in full")


def goal_add_arguments(parser: Parser) -> None:
    _add_name(parser)
    _add_texts(parser)


def goal_add_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        goal = memory.goals.add(arguments.name, title=arguments.title or "", text=arguments.text or "")
    report_redactions(memory)
    print_result(arguments, {"id": goal.name, **goal.as_dict()}, f"Added goal {goal.name}: {goal.describe()}")


def goal_list_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        states = memory.goals.states()
    if arguments.json:
        show_json([state.as_record() for state in states])
    elif states:
        rows = [(state.goal.name, _format_counts(state.tasks), state.goal.title) for state in states]
        show_table(("goal", "tasks", "title"), rows, wide=2)
    else:
        say("No goals: `learnt goal add` adds one, or `learnt task add --goal NAME` names one.")


goal_show_arguments = _add_name


def goal_show_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        goal = memory.goals.get(arguments.name)
        state = next(state for state in memory.goals.states() if state.goal.name == goal.name)
        tasks = memory.goals.tasks_of(goal.name)
        learnt = memory.learnings(goal=goal.name, limit=0).total
    if arguments.json:
        parts = [{"id": task.id, "title": task.title, "status": task.status} for task in tasks]
        show_json({**state.as_record(), "parts": parts, "learnings": learnt})
        return
    say(f"{paint(goal.title or goal.name, 'bold')}\n{goal.name} · since {format_time(goal.created_at)}")
    if goal.text:
        say(f"\n{goal.text}\n")
    cost = f" · ${state.cost_usd:.2f}" if state.cost_usd else ""
    say(f"  tasks: {_format_counts(state.tasks) or 'none'}{cost} · learnings: {learnt}")
    for task in tasks:
        say(f"  {task.id}  {task.status:<9}  {task.title}")


def goal_edit_arguments(parser: Parser) -> None:
    _add_name(parser)
    _add_texts(parser)


def goal_edit_run(arguments: Arguments) -> None:
    if arguments.title is None and arguments.text is None:
        raise WrongRequest("nothing to change", hint="set a field, as in `--title TEXT`")
    with open_memory(arguments) as memory:
        goal = memory.goals.edit(arguments.name, title=arguments.title, text=arguments.text)
    report_redactions(memory)
    print_result(arguments, {"id": goal.name, **goal.as_dict()}, f"Edited goal {goal.name}: {goal.describe()}")


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in counts.items())
