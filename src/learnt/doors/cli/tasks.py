"""The command `learnt task`: tasks by hand."""

from __future__ import annotations

from learnt.doors.cli.arguments import open_memory, tell_redactions
from learnt.doors.cli.screen import moment, say, show_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def task_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=("add", "show"), help="what to do")
    parser.add_argument("what", metavar="TITLE|ID", help="the title of a new task, or the id of one to show")
    parser.add_argument("--text", default="", metavar="TEXT", help="what is to be done, in full")
    parser.add_argument("--type", default="implement", metavar="TYPE", help="implement, review, improve, plan, …")
    parser.add_argument("--goal", default="", metavar="NAME", help="what it serves")
    parser.add_argument("--agent", default="", metavar="NAME", help="the role that is to do it")


def task_run(arguments: argparse.Namespace) -> None:
    with open_memory(arguments) as memory:
        if arguments.verb == "add":
            task = memory.add_task(
                arguments.what,
                text=arguments.text,
                type=arguments.type,
                goal=arguments.goal,
                agent=arguments.agent,
            )
        else:
            task = memory.get_task(arguments.what)
        attempts = memory.attempts(task.id)
    tell_redactions(memory)
    if arguments.json:
        show_json({**task.as_dict(), "attempts": [attempt.as_dict() for attempt in attempts]})
        return
    if arguments.verb == "add":
        say(f"Added {task.id}: {task.title}")
        return
    say(f"{task.id}  {task.status}  {task.title}")
    if task.text:
        say(f"\n{task.text}\n")
    for attempt in attempts:
        say(f"  attempt {attempt.number}  {moment(attempt.started_at)}  {attempt.result}  {attempt.model}")
