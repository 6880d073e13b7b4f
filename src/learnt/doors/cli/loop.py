"""Commands around an agent's work: brief, debrief, feedback, explain."""

from __future__ import annotations

import sys

from learnt.brief.receipt import GIVEN_TO, NO_ROOM
from learnt.doors.cli.arguments import add_situation, open_memory
from learnt.doors.cli.screen import note, paint, say, show_json
from learnt.doors.deadline import Deadline
from learnt.errors import LearntError, NotFound, WrongRequest
from learnt.model import RESULTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from learnt.memory import Memory
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
        show_json({**_brief_record(brief), "text": brief.text})
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
            arguments.task or memory.new_task_id(),
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
        read, learnt = memory.debrief_transcript(
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


def explain_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="BRIEF", nargs="?", help="the brief's id; without it, the latest")
    parser.add_argument(
        "--replay", action="store_true", help="render its text again, and check it against what was said"
    )


def explain_run(arguments: argparse.Namespace) -> None:
    with open_memory(arguments) as memory:
        brief = memory.explain(arguments.id or _latest(memory))
        as_said = memory.is_as_said(brief)
        other_version = memory.is_of_another_version(brief)
        given = brief.receipt.get("beside", [])
        titles = memory.titles([*(entry["id"] for entry in brief.receipt["considered"]), *given])
    if arguments.replay and not as_said:
        _refuse_replay(brief, titles, other_version=other_version)
    if arguments.json:
        show_json({**_brief_record(brief), "as_said": as_said, **({"text": brief.text} if arguments.replay else {})})
    elif arguments.replay:
        sys.stdout.write(brief.text)
    else:
        for line in explained(brief, titles):
            say(line)


def _latest(memory: Memory) -> str:
    """Return the id of the latest brief."""
    given = [entry for what in ("brief", "warning") for entry in memory.activity(limit=1, what=what).entries]
    if not any(entry.id for entry in given):
        raise NotFound("there is no brief yet", hint='`learnt brief "what is to be done"` gives one')
    return max(given, key=lambda entry: (bool(entry.id), entry.at)).id


def _refuse_replay(brief: Brief, titles: dict[str, str], *, other_version: bool) -> None:
    if other_version and brief.text:
        raise LearntError(
            f"{brief.id} was rendered by another version of learnt, which put it differently",
            hint="`learnt explain` without --replay shows what stood in it",
        )
    gone = [entry["id"] for entry in brief.receipt["shown"] if entry["id"] not in titles]
    told = f"{brief.id} cannot be rendered as it was said"
    if gone:
        raise WrongRequest(f"{told}: {', '.join(gone)} was purged", hint="`learnt explain` still shows its receipt")
    raise LearntError(told, hint="a purge changed a report in it, perhaps; `learnt explain` still shows its receipt")


def explained(brief: Brief, titles: dict[str, str]) -> list[str]:
    """Return the receipt of a brief in words."""
    receipt = brief.receipt
    warning = ", a stuck warning beside the budget included" if receipt["stuck"] else ""
    budget = receipt["settings"]["budget_tokens"]
    lines = [f"{paint(brief.id, 'bold')} for {brief.task}: {brief.tokens} tokens of {budget}{warning}"]
    cut = receipt.get("query_length", 0) - len(receipt["query"])
    if receipt["query"]:
        lines.append(f"query: {receipt['query']}{f' … and {cut:,} more characters' if cut > 0 else ''}")
    for name in ("paths", "command", "tools", "task_type", "goal", "exclude_goal"):
        value = receipt.get(name)
        if value:
            lines.append(f"{name.replace('_', ' ')}: {', '.join(value) if isinstance(value, list) else value}")
    if "mirror_age_s" in receipt:
        lines.append(f"from the mirror of the server, {receipt['mirror_age_s']:,} s old")
    lines += _told_beside_learnings(receipt)
    if receipt.get("attempts_left_out"):
        lines.append(f"attempts left out: {', '.join(map(str, receipt['attempts_left_out']))}")
    for entry in receipt["considered"]:
        verdict = f"left out: {entry['left_out']}" if entry["left_out"] else paint("chosen", "green")
        trigger = f"; trigger {entry['trigger']}" if entry["trigger"] else ""
        figures = (
            f"relevance {entry['relevance']:.2f}, score {entry['score']:.2f}, confidence {entry['confidence']:.2f}"
        )
        title = titles.get(entry["id"], "(purged)")
        lines += [f"{entry['id']}  {verdict}", f"    {figures}{trigger}: {title}"]
    for id in receipt.get("beside", ()):
        given = paint("given by the learnings file of the prompt", "green")
        lines.append(f"{id}  {given}: {titles.get(id, '(purged)')}")
    if receipt["query"] and not receipt["considered"]:
        lines.append("no learning shares a word or a trigger with it")
    return lines


def _told_beside_learnings(receipt: Mapping[str, Any]) -> list[str]:
    """Return what a brief in a conversation says beside learnings: what failed before, what is unfinished, notes."""
    lines = []
    for one in receipt.get("failed", ()):
        lines.append(f"failed before: {one['command']}" + (f": {one['error']}" if one["error"] else ""))
        if one["worked"]:
            lines.append(f"    then worked: {one['worked']}")
    for one in receipt.get("unfinished", ()):
        lines.append(f"unfinished: {one['task']}: {one['title']}")
        lines += [f"    {told}" for told in (one["reason"], one["suggestion"]) if told]
    lines += [f"note: {note}" for note in receipt.get("notes", ())]
    return [line.rstrip().replace("\n", " ") for line in lines]


def _brief_record(brief: Brief) -> dict[str, Any]:
    record = {name: value for name, value in brief.as_dict().items() if name not in ("injections", "text")}
    shown = [entry["id"] for entry in brief.receipt["shown"]]
    return {**record, "learning_ids": shown}


def _debrief_record(read: Debrief) -> dict[str, Any]:
    record = read.as_dict()
    return {**record, "failure": read.failure.as_dict() if read.failure else None}
