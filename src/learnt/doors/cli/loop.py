"""Commands around an agent's work: brief, debrief, feedback."""

from __future__ import annotations

import sys

from learnt.brief.receipt import GIVEN_TO, NO_ROOM
from learnt.doors.cli.arguments import add_situation, open_memory
from learnt.doors.cli.screen import note, say, show_json
from learnt.doors.deadline import Deadline
from learnt.model import RESULTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from learnt.model import Brief, Debrief


def brief_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TASK", nargs="+", help="what the agent is to do")
    parser.add_argument("--task", metavar="ID", help="the task; without it, a new one is made")
    parser.add_argument("--agent", metavar="NAME", help="the role that is briefed: engineer, tester, …")
    parser.add_argument("--goal", metavar="NAME", help="what a new task serves")
    parser.add_argument("--exclude-goal", metavar="NAME", help="none that were learnt for this goal")
    add_situation(parser)
    parser.add_argument("--budget-tokens", type=int, metavar="N", help="how long it may be (setting `brief_tokens`)")
    parser.add_argument(
        "--deadline-ms", type=int, default=0, metavar="N", help="fail with exit code 3 rather than take longer"
    )


def brief_run(arguments: argparse.Namespace) -> None:
    with open_memory(arguments, in_a_hurry=True) as memory, Deadline(max(0, arguments.deadline_ms)):
        brief = memory.brief(
            " ".join(arguments.text),
            agent=arguments.agent,
            task=arguments.task,
            goal=arguments.goal,
            exclude_goal=arguments.exclude_goal,
            task_type=arguments.type,
            paths=arguments.path,
            command=arguments.command,
            tools=arguments.tool,
            budget_tokens=arguments.budget_tokens,
            asked_by="person",
        )
    if arguments.json:
        show_json({**brief_record(brief), "text": brief.text})
    elif brief.text:
        sys.stdout.write(brief.text)
    else:
        note(f"{silence(brief)} `learnt explain {brief.id}` shows what was considered.")
    if not arguments.json and not arguments.task:
        note(f"The task is {brief.task}: `learnt debrief --task {brief.task}` reads what comes of it.")


def silence(brief: Brief) -> str:
    """Say why a brief says nothing."""
    reasons = [entry["left_out"] for entry in brief.receipt["considered"]]
    unfit = [reason for reason in reasons if reason == NO_ROOM]
    given = [reason for reason in reasons if reason.startswith(GIVEN_TO)]
    if not unfit and given:
        counts = {reason: given.count(reason) for reason in given}
        told = (f"{count} {'was' if count == 1 else 'were'} {reason}" for reason, count in counts.items())
        return f"Nothing that is new: {', '.join(told)} already."
    if not unfit:
        return "Nothing known matters for this task."
    budget = brief.receipt["settings"]["budget_tokens"]
    matter = "1 learning matters, but does" if len(unfit) == 1 else f"{len(unfit)} learnings matter, but do"
    return f"{matter} not fit in {budget} tokens."


def debrief_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", metavar="ID", help="the task that was worked on; without it, a new one is made")
    parser.add_argument(
        "--transcript", metavar="FILE", help="read what a client wrote down instead of an output on stdin"
    )
    parser.add_argument("--result", choices=RESULTS, help="how it ended; default: what the output says")
    parser.add_argument("--agent", default="", metavar="NAME", help="the role that worked")
    parser.add_argument("--model", default="", metavar="NAME", help="the model that worked")
    parser.add_argument("--duration-ms", type=int, metavar="N", help="how long it took")
    parser.add_argument("--cost-usd", type=float, metavar="N", help="what it cost")
    parser.add_argument("--tokens-in", type=int, metavar="N", help="how many tokens went in")
    parser.add_argument("--tokens-out", type=int, metavar="N", help="how many tokens came out")
    parser.add_argument("--verbose", action="store_true", help="also tell what was ignored, and why")


def debrief_run(arguments: argparse.Namespace) -> None:
    if arguments.transcript:
        _debrief_transcript(arguments)
        return
    output = sys.stdin.buffer.read().decode("utf-8", "replace")
    with open_memory(arguments) as memory:
        read = memory.debrief(
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
        show_json({"id": read.attempt, **_debrief_record(read)})
        return
    _tell_debrief(read, arguments)


def _debrief_transcript(arguments: argparse.Namespace) -> None:
    """Debrief the agent's own words in a transcript, and tell what its work teaches."""
    with open_memory(arguments) as memory:
        read, learnt = memory.transcripts.debrief(
            arguments.transcript,
            task=arguments.task or "",
            result=arguments.result,
            agent=arguments.agent,
            model=arguments.model,
        )
        titles = memory.titles([*learnt.learnings, *learnt.proposed])
    if arguments.json:
        show_json({"id": read.attempt, **_debrief_record(read), "mined": learnt.as_dict()})
        return
    _tell_debrief(read, arguments)
    for id in learnt.learnings:
        say(f"  learnt {id}: {titles[id]}")
    if learnt.repeated:
        say(f"  known already: {', '.join(learnt.repeated)}")
    for id in learnt.proposed:
        say(f"  proposed {id}: {titles[id]}")
    if arguments.verbose:
        for reason in learnt.skipped:
            say(f"  skipped: {reason}")


def _tell_debrief(read: Debrief, arguments: argparse.Namespace) -> None:
    for line in debriefed(read, asked_for=bool(arguments.task), verbose=arguments.verbose):
        say(line)


def debriefed(read: Debrief, *, asked_for: bool, verbose: bool) -> list[str]:
    """Return what became of an output; `asked_for`: somebody named the task, and may have misspelt it."""
    if read.spooled:
        return [f"Kept the output of {read.task}; the database takes it later"]
    lines = [f"Debriefed {read.task}{' (a new task)' if read.new_task and asked_for else ''}: {read.result}"]
    told = {
        "learnt": read.learnings,
        "known already": read.repeated,
        "helpful": read.helpful,
        "not helpful": read.not_helpful,
        "marks that do not count": [f"{id} ({reason})" for id, reason in read.refusals.items()],
    }
    lines += [f"  {name}: {', '.join(ids)}" for name, ids in told.items() if ids]
    lines += [f"  secrets redacted: {read.redactions}"] if read.redactions else []
    return [*lines, *(f"  ignored: {reason}" for reason in read.ignored if verbose)]


def feedback_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the learning's id")
    parser.add_argument("--task", metavar="ID", required=True, help="the task that was given it")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--helpful", action="store_true", help="it helped")
    which.add_argument("--not-helpful", dest="helpful", action="store_false", help="it did not")


def feedback_run(arguments: argparse.Namespace) -> None:
    from learnt.text.records import as_record

    with open_memory(arguments) as memory:
        learning = memory.mark(arguments.id, arguments.task, arguments.helpful)
    if arguments.json:
        show_json(as_record(learning))
    else:
        how = "helpful" if arguments.helpful else "not helpful"
        say(f"Marked {learning.id} as {how}: confidence {learning.confidence:.2f}")


def brief_record(brief: Brief) -> dict[str, Any]:
    """Return a brief as JSON tells it, without its text."""
    record = {name: value for name, value in brief.as_dict().items() if name not in ("injections", "text")}
    shown = [entry["id"] for entry in brief.receipt["shown"]]
    return {**record, "learning_ids": shown}


def _debrief_record(read: Debrief) -> dict[str, Any]:
    record = read.as_dict()
    return {**record, "failure": read.failure.as_dict() if read.failure else None}
