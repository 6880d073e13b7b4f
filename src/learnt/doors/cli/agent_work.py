"""Commands before and after an agent's work: brief, debrief, feedback."""

from __future__ import annotations

import os
import sys

from learnt.brief.render import explain_empty
from learnt.doors.cli.arguments import Arguments, Parser, add_situation, open_memory, print_result, read_situation
from learnt.doors.output import describe_debrief, describe_mark, note, say, show_json
from learnt.errors import WrongRequest
from learnt.model import RESULTS
from learnt.store.happened import UNKNOWN
from learnt.system.files import Deadline
from learnt.text.records import as_record
from learnt.trust import is_agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from learnt.memory import Memory
    from learnt.model import Brief, Debrief


def brief_arguments(parser: Parser) -> None:
    parser.add_argument("text", metavar="TASK", nargs="*", help="what the agent is to do; a stored task says it itself")
    parser.add_argument("--task", metavar="ID", help="the task; default: a new one")
    parser.add_argument("--agent", metavar="NAME", help="the agent's role: engineer, tester, …")
    parser.add_argument("--goal", metavar="NAME", help="the goal, if the task is new")
    add_situation(parser)
    parser.add_argument("--budget-tokens", type=int, metavar="N", help="the length limit (setting `brief_tokens`)")
    parser.add_argument("--deadline-ms", type=int, metavar="N", help="fail with exit code 3 after this time")


def brief_run(arguments: Arguments) -> None:
    if arguments.deadline_ms is not None and arguments.deadline_ms < 1:
        hint = "pass the milliseconds after which to give up, or leave the option out"
        raise WrongRequest(f"--deadline-ms is {arguments.deadline_ms}", hint=hint)
    with open_memory(arguments, tidies=False) as memory:
        if arguments.deadline_ms:
            with Deadline(arguments.deadline_ms):
                brief = _brief(memory, arguments)
        else:
            brief = _brief(memory, arguments)
    if arguments.json:
        show_json({**brief_record(brief), "text": brief.text})
    elif brief.text:
        sys.stdout.write(brief.text)
    else:
        note(f"{explain_empty(brief)} `learnt explain {brief.id}` shows what was considered.")
    if not arguments.json and not arguments.task:
        note(f"The task is {brief.task}: afterwards, pipe the agent's output to `learnt debrief --task {brief.task}`.")


def _brief(memory: Memory, arguments: Arguments) -> Brief:
    return memory.brief(
        " ".join(arguments.text),
        agent=arguments.agent,
        task=arguments.task,
        goal=arguments.goal,
        budget_tokens=arguments.budget_tokens,
        asked_by="tool" if is_agent(os.environ) else "person",
        **read_situation(arguments),
    )


def debrief_arguments(parser: Parser) -> None:
    parser.add_argument("--task", metavar="ID", help="the task that was worked on; default: a new one")
    parser.add_argument("--transcript", metavar="FILE", help="read a client's transcript instead of stdin")
    parser.add_argument("--result", choices=RESULTS, help="the result; default: read from the output")
    parser.add_argument("--agent", default="", metavar="NAME", help="the agent's role")
    parser.add_argument("--model", default="", metavar="NAME", help="the model that was used")
    parser.add_argument("--duration-ms", type=int, metavar="N", help="how long it took")
    parser.add_argument("--cost-usd", type=float, metavar="N", help="what it cost")
    parser.add_argument("--tokens-in", type=int, metavar="N", help="the number of input tokens")
    parser.add_argument("--tokens-out", type=int, metavar="N", help="the number of output tokens")
    parser.add_argument("--verbose", action="store_true", help="also show what was ignored, and why")


def debrief_run(arguments: Arguments) -> None:
    if arguments.transcript:
        _debrief_transcript(arguments)
        return
    output = sys.stdin.buffer.read().decode("utf-8", "replace")
    with open_memory(arguments) as memory:
        debrief = memory.debrief(
            arguments.task or memory.tasks.new_id(),
            output,
            result=arguments.result,
            agent=arguments.agent,
            model=arguments.model,
            duration_ms=arguments.duration_ms,
            cost_usd=arguments.cost_usd,
            tokens_in=arguments.tokens_in,
            tokens_out=arguments.tokens_out,
        )
    if arguments.json:
        show_json(_debrief_record(debrief))
    else:
        _print_debrief(debrief, arguments)


def _debrief_transcript(arguments: Arguments) -> None:
    """Debrief the agent from its words in a transcript, and learn from its actions."""
    with open_memory(arguments) as memory:
        debrief, learnt = memory.transcripts.debrief(
            arguments.transcript,
            task=arguments.task or "",
            result=arguments.result,
            agent=arguments.agent,
            model=arguments.model,
        )
        titles = memory.titles([*learnt.learnings, *learnt.proposed])
    if arguments.json:
        show_json({**_debrief_record(debrief), "mined": learnt.as_dict()})
        return
    _print_debrief(debrief, arguments)
    for id in learnt.learnings:
        say(f"  learnt {id}: {titles[id]}")
    if learnt.repeated:
        say(f"  known already: {', '.join(learnt.repeated)}")
    for id in learnt.proposed:
        say(f"  proposed {id}: {titles[id]}")
    if arguments.verbose:
        for reason in learnt.skipped:
            say(f"  skipped: {reason}")


def _print_debrief(debrief: Debrief, arguments: Arguments) -> None:
    for line in describe_debrief(debrief, has_given_task=bool(arguments.task), verbose=arguments.verbose):
        say(line)


def feedback_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="the learning's id")
    parser.add_argument("--task", metavar="ID", required=True, help="the task whose brief contained it")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--helpful", action="store_true", help="it helped")
    which.add_argument("--not-helpful", dest="helpful", action="store_false", help="it did not")


def feedback_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        learning = memory.mark(arguments.id, arguments.task, arguments.helpful)
    print_result(arguments, as_record(learning), describe_mark(learning, helpful=arguments.helpful))


def brief_record(brief: Brief) -> dict[str, Any]:
    """Return a brief for JSON, without its text."""
    record = {name: value for name, value in brief.as_dict().items() if name not in ("injections", "text")}
    shown = [entry["id"] for entry in brief.receipt["shown"]]
    return {**record, "delivery": brief.delivery or UNKNOWN, "learning_ids": shown}


def _debrief_record(debrief: Debrief) -> dict[str, Any]:
    failure = debrief.failure.as_dict() if debrief.failure else None
    return {"id": debrief.attempt, **debrief.as_dict(), "failure": failure}
