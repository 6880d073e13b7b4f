"""The commands that fill the staging file and empty it: `handoff` and `consolidate`."""

from __future__ import annotations

import os
import sys
from typing import Any

from learnt.doors.cli.arguments import Arguments, Parser, open_memory, print_result, report_redactions
from learnt.doors.output import format_count, is_terminal, note, say, show_json
from learnt.errors import LearntError, WrongRequest
from learnt.flow.consolidation_run import ConsolidationReport
from learnt.flow.handoff import HandoffReport, RejectedLearning
from learnt.memory import Memory
from learnt.model import is_id
from learnt.system.files import read_regular

_MAX_BYTES = 5_000_000


def handoff_arguments(parser: Parser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="a file with learnings, or - for stdin (the default)")
    parser.add_argument("--task", metavar="ID", help="also what this task taught; default: the current task of `work`")


def handoff_run(arguments: Arguments) -> int:
    try:
        text = _read_text(arguments.file)
        task = arguments.task or _current_task()
        with open_memory(arguments) as memory:
            report = memory.handoff(text, task=task)
            report_redactions(memory)
    except LearntError as error:
        # Whoever hands over is about to end its work, and must not fail because of it.
        note(f"nothing was handed over: {error.message}; {error.hint}")
        if arguments.json:
            show_json(_record_of(HandoffReport(path="", problems=(error.message,))))
        return 0
    if arguments.json:
        show_json(_record_of(report))
    else:
        _print_handoff(report, task)
    return 0


def _read_text(file: str | None) -> str:
    if file not in (None, "-"):
        try:
            content = read_regular(file or "", max_bytes=_MAX_BYTES)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise WrongRequest(f"cannot read {file}: {reason}", hint="name a text file with learnings") from None
    else:
        content = b"" if is_terminal(sys.stdin) else sys.stdin.buffer.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise WrongRequest(f"stdin has more than {_MAX_BYTES:,} bytes", hint="hand less over at a time")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        what = "stdin" if file in (None, "-") else file
        raise WrongRequest(
            f"{what} is not UTF-8 text: {error.reason} at byte {error.start}", hint="convert it to UTF-8 first"
        ) from None


def _current_task() -> str:
    task = os.environ.get("LEARNT_TASK", "")
    return task if is_id("task", task) else ""


def _print_handoff(report: HandoffReport, task: str) -> None:
    for learning in report.staged:
        say(f"Staged {learning.id}: {learning.title}")
    for learning in report.known:
        where = learning.topic_file or ("the staging file" if learning.status == "active" else learning.status)
        say(f"Known  {learning.id}: {learning.title} ({where})")
    for rejected in report.rejected:
        say(f"Rejected: {rejected.title or 'an entry'}")
        say(f"    {_explain_rejection(rejected)}")
    for learning in report.unstaged:
        say(f"Stored {learning.id}, not staged: {learning.title}")
    if not (report.staged or report.known or report.rejected or report.unstaged):
        taught = f"{task} taught nothing that is in force; " if task else ""
        say(f"Nothing was handed over: {taught}give learnings on stdin or in a file{'' if task else ', or --task ID'}.")
    for problem in report.problems:
        note(problem)
    if report.due is not None and report.due.is_due:
        say(f"Consolidation is due: {report.due.reason} (`learnt consolidate`)")
    elif report.due is not None and report.due.needs_person:
        say(f"The staging file is too long: {report.due.reason}")


def _explain_rejection(rejected: RejectedLearning) -> str:
    times = f" ({format_count(rejected.times, 'time')})" if rejected.times > 1 else ""
    if rejected.escalation:
        return f"{rejected.reason}; a person decides: `learnt escalations`"
    proposed = f"; proposed as {rejected.id}, for `learnt review`" if rejected.id else ""
    return f"{rejected.reason}{times}{proposed}"


def _record_of(report: HandoffReport) -> dict[str, Any]:
    due = report.due
    return {
        "id": report.path,
        "file": report.path,
        "staged": [{"id": learning.id, "title": learning.title} for learning in report.staged],
        "known": [
            {"id": learning.id, "title": learning.title, "topic_file": learning.topic_file} for learning in report.known
        ],
        "unstaged": [{"id": learning.id, "title": learning.title} for learning in report.unstaged],
        "rejected": [rejected.as_dict() for rejected in report.rejected],
        "due": bool(due and due.is_due),
        "due_reason": due.reason if due else "",
        "problems": list(report.problems),
    }


def consolidate_arguments(parser: Parser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only show the plan")
    parser.add_argument("--force", action="store_true", help="also if it is not due; young entries are never taken")
    parser.add_argument("--yes", action="store_true", help="apply the plan without asking")
    parser.add_argument("--undo", action="store_true", help="undo the last consolidation")


def consolidate_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        if arguments.undo:
            if arguments.dry_run or arguments.force:
                raise WrongRequest(
                    "--undo cannot be combined with --dry-run or --force", hint="`learnt consolidate --undo` alone"
                )
            _undo(memory, arguments)
            return
        runs = memory.consolidations
        report, intent = runs.plan(force=arguments.force, asks=not arguments.dry_run)
        if intent is not None and not report.needs_consent:
            if not arguments.dry_run:
                runs.apply(report, intent)  # only what was judged is remembered
            intent = None
        if intent is not None and not arguments.dry_run and (arguments.yes or _confirm(report, arguments)):
            report = runs.apply(report, intent)
        remarks = [*report.remarks, *memory.remarks]
    for remark in dict.fromkeys(remarks):
        note(remark)
    if arguments.json:
        show_json(_describe_run(report))
        return
    is_shown = not arguments.yes and not arguments.dry_run and intent is not None and is_terminal(sys.stdin)
    if not is_shown:
        _print_plan(report, is_forced=arguments.force)
    if report.is_applied:
        say(f"Consolidated: {report.id}" + (f", report: {os.path.relpath(report.path)}" if report.path else ""))
        say("`learnt consolidate --undo` restores the files; commit them otherwise.")
    elif intent is not None:
        options = " --force --yes" if arguments.force else " --yes"
        say(f"Nothing was changed: `learnt consolidate{options}` applies the plan.")


def _undo(memory: Memory, arguments: Arguments) -> None:
    run = memory.consolidations.undo()
    for remark in memory.remarks:
        note(remark)
    print_result(arguments, {"id": run.id, "undone_at": run.undone_at}, f"Undone: {run.id}")


def _confirm(report: ConsolidationReport, arguments: Arguments) -> bool:
    """Show the plan and ask, if a person is there to answer."""
    if arguments.json or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return False
    _print_plan(report, is_forced=arguments.force)
    print("Apply it? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _print_plan(report: ConsolidationReport, *, is_forced: bool) -> None:
    if not report.decision.is_due:
        what = "No entry is old enough" if is_forced else "Consolidation is not due"
        say(f"{what}: {report.decision.reason}")
    if report.plan.entries or report.asked:
        say(report.text.rstrip())


def _describe_run(report: ConsolidationReport) -> dict[str, Any]:
    entries = [
        {
            "id": entry.id,
            "title": entry.staged.learning.title,
            "active_days": entry.staged.entry.active_days,
            "verdict": entry.verdict,
            "reason": entry.reason,
            "target": entry.target,
            "other": entry.other,
            "escalation": entry.waits_for,
        }
        for entry in report.plan.entries
    ]
    return {
        "id": report.id,
        "applied": report.is_applied,
        "due": report.decision.is_due,
        "reason": report.decision.reason,
        "entries": entries,
        "refused": [refused.as_dict() for refused in report.plan.refused],
        "files": sorted(report.plan.files),
        "split": list(report.plan.split),
        "escalations": list(report.asked),
        "waiting": report.waiting,
        "replay": report.replay.as_dict(),
        "report": report.path,
    }
