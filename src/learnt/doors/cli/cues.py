"""The command `cues`: show and edit the situations in which a learning matters, or let a model write them."""

from __future__ import annotations

import sys
from typing import Any

from learnt.doors.cli.arguments import Arguments, Parser, add_user, open_memory, refuse_agent, report_redactions
from learnt.doors.cli.terminal import confirm
from learnt.doors.output import format_count, is_terminal, note, paint, say, show_json
from learnt.errors import WrongRequest
from learnt.flow.cues import ORIGINS, CuePlan, CueReport
from learnt.memory import Memory
from learnt.model import Learning

_LIMIT = 100
_MAX_LISTED = 20
_BY_HAND = "`learnt cues ID --add TEXT` adds a cue by hand"


def cues_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", nargs="?", help="a learning; default: all learnings without cues")
    parser.add_argument("--add", action="append", metavar="TEXT", help="a situation to add to it; repeatable")
    parser.add_argument("--remove", action="append", metavar="TEXT", help="a situation to remove; repeatable")
    most = f"ask about at most N learnings; default: {_LIMIT}"
    parser.add_argument("--limit", type=int, default=_LIMIT, metavar="N", help=most)
    parser.add_argument("--dry-run", action="store_true", help="only show the learnings without cues, and the cost")
    parser.add_argument("--yes", action="store_true", help="do not ask before the model is called")
    parser.add_argument("--undo", action="store_true", help="remove what the model's last run has added")
    add_user(parser)


def cues_run(arguments: Arguments) -> None:
    if not arguments.id and (arguments.add or arguments.remove):
        raise WrongRequest("the learning's id is missing", hint="`learnt list` shows the ids")
    with open_memory(arguments) as memory:
        if arguments.id:
            _show(_edit(memory, arguments), arguments)
        elif arguments.undo:
            _undo(memory, arguments)
        else:
            _ask(memory, arguments)
        report_redactions(memory)


def _edit(memory: Memory, arguments: Arguments) -> Learning:
    """Return a learning, with the changes that are asked for."""
    before = memory.get(arguments.id)
    unknown = [cue for cue in arguments.remove or () if cue not in before.all_cues]
    if unknown:
        raise WrongRequest(f"{before.id} has no cue `{unknown[0][:100]}`", hint=f"`learnt cues {before.id}` shows them")
    if not arguments.add and not arguments.remove:
        return before
    return memory.edit(arguments.id, add_cues=arguments.add or (), drop_cues=arguments.remove or ())


def _show(learning: Learning, arguments: Arguments) -> None:
    cues = [{"cue": cue, "origin": origin} for field, origin in ORIGINS.items() for cue in getattr(learning, field)]
    if arguments.json:
        show_json({"id": learning.id, "title": learning.title, "cues": cues})
        return
    say(f"{paint(learning.id, 'yellow')}  {learning.title}")
    for entry in cues:
        say(f"  {entry['origin']:<9} {entry['cue']}")
    if not cues:
        note(f"It has no cues. `learnt cues {learning.id} --add TEXT` adds one.")


def _undo(memory: Memory, arguments: Arguments) -> None:
    refuse_agent("cues")
    batch, undone = memory.cues.undo()
    if arguments.json:
        show_json({"id": batch, "learnings": [learning.id for learning in undone]})
    else:
        say(f"Removed the model's cues of {format_count(len(undone), 'learning')} ({batch})")


def _ask(memory: Memory, arguments: Arguments) -> None:
    plan = memory.cues.plan(limit=arguments.limit)
    if arguments.dry_run or not plan.learnings:
        _show_plan(plan, arguments)
        return
    refuse_agent("cues")
    _confirm(plan, yes=arguments.yes)
    report = memory.cues.ask(plan)
    if arguments.json:
        show_json(_report_record(report))
    else:
        _print_report(report)


def _confirm(plan: CuePlan, *, yes: bool) -> None:
    """Raise unless the person agrees to ask the model."""
    question = f"{_describe(plan)}. {_describe_cost(plan)}."
    if yes or not plan.calls:  # without a model, asking says how to configure one
        return
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise WrongRequest(question, hint="--yes continues without asking; --dry-run shows the list")
    if not confirm(f"{question} Go on?"):
        raise WrongRequest("nothing was asked", hint=_BY_HAND)


def _show_plan(plan: CuePlan, arguments: Arguments) -> None:
    if arguments.json:
        listed = [{"id": learning.id, "title": learning.title} for learning in plan.learnings]
        fields = {"total": plan.total, "calls": plan.calls, "forecast_usd": plan.forecast_usd}
        show_json({"id": "cues", "learnings": listed, **fields, "provider": plan.provider})
        return
    if not plan.learnings:
        say("Every learning has cues.")
        return
    for learning in plan.learnings[:_MAX_LISTED]:
        say(f"{paint(learning.id, 'yellow')}  {learning.title}")
    if len(plan.learnings) > _MAX_LISTED:
        say(paint(f"… and {len(plan.learnings) - _MAX_LISTED:,} more", "dim"))
    say(f"{_describe(plan)}. {_describe_cost(plan)}.")


def _describe(plan: CuePlan) -> str:
    have = "has" if plan.total == 1 else "have"
    beyond = f"; the first {len(plan.learnings):,} are asked about" if plan.total > len(plan.learnings) else ""
    return f"{format_count(plan.total, 'learning')} {have} no cues{beyond}"


def _describe_cost(plan: CuePlan) -> str:
    if not plan.calls:
        return f"No model is configured (`learnt config model.provider`); {_BY_HAND}"
    cost = "at an unknown price" if plan.forecast_usd is None else f"at most ${plan.forecast_usd:.4f}"
    return f"Asking {plan.provider} takes {format_count(plan.calls, 'call')}, {cost}"


def _print_report(report: CueReport) -> None:
    for learning in report.learnings:
        say(f"{paint(learning.id, 'yellow')}  {learning.title}")
        for cue in learning.model_cues:
            say(f"  {cue}")
    for id, reason in report.refused.items():
        note(f"{id}: {reason}")
    for remark in report.remarks:
        note(remark)
    say(f"Wrote cues for {format_count(len(report.learnings), 'learning')}, ${report.cost_usd:.4f}.")
    if report.batch:
        say(f"`learnt cues --undo` removes all of them, `learnt cues ID --remove TEXT` one ({report.batch}).")


def _report_record(report: CueReport) -> dict[str, Any]:
    return {
        "id": report.batch or "cues",
        "learnings": [{"id": learning.id, "cues": list(learning.model_cues)} for learning in report.learnings],
        "refused": report.refused,
        "cost_usd": report.cost_usd,
        "remarks": report.remarks,
    }
