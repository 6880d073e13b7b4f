"""Commands for consolidation: `ages`, and `merge-file`, which git calls.

`ages` says how old the entries of the staging file are, and whether their consolidation is due.
"""

from __future__ import annotations

import os
from typing import Any

from learnt.consolidate.ages import AgedEntry
from learnt.doors.cli.arguments import Arguments, Parser, open_memory
from learnt.doors.output import format_count, note, print_error, say, show_json
from learnt.errors import LearntError, NoStore, WrongRequest
from learnt.flow.consolidation import AgesReport, Consolidation
from learnt.flow.merge_file import FileMerge

_NOT_MERGED = 2  # to git, 1 means that there are conflicts, which are marked in the file


def ages_arguments(parser: Parser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="a file with `## ` entries; default: the staging file")
    parser.add_argument("--summary", action="store_true", help="leave out the entries")
    parser.add_argument(
        "--store", action="store_true", help="the learnings that are only in the store, instead of those in a file"
    )


def ages_run(arguments: Arguments) -> None:
    if arguments.store:
        _show_stored(arguments)
        return
    report = _find_ages(arguments)
    for remark in report.remarks:
        note(remark)
    if arguments.json:
        show_json(_record(report, with_entries=not arguments.summary))
        return
    say(f"# Ages: {os.path.relpath(report.path)}")
    say()
    for line in _summarize(report):
        say(f"- {line}")
    if report.entries and not arguments.summary:
        say("\n## Entries\n")
        for entry in report.entries:
            say(_format(entry))


def _find_ages(arguments: Arguments) -> AgesReport:
    try:
        with open_memory(arguments) as memory:
            return memory.consolidation.ages(arguments.file)
    except NoStore:
        return Consolidation.ages_without_store(os.getcwd(), arguments.file)


def _show_stored(arguments: Arguments) -> None:
    if arguments.file:
        raise WrongRequest("--store cannot be combined with a file", hint="leave one of them out")
    with open_memory(arguments) as memory:
        ages = memory.consolidation.ages_in_store()
    for remark in ages.remarks:
        note(remark)
    if arguments.json:
        show_json({"entries": [_entry_record(entry) for entry in ages.entries], "remarks": list(ages.remarks)})
        return
    say(f"# Ages: {format_count(len(ages.entries), 'learning')} only in the store")
    if ages.entries and not arguments.summary:
        say()
        for entry in ages.entries:
            say(_format(entry))


def merge_file_arguments(parser: Parser) -> None:
    parser.add_argument("base", metavar="BASE", help="the version that both are based on")
    parser.add_argument("ours", metavar="OURS", help="the version that is replaced by the merged one")
    parser.add_argument("theirs", metavar="THEIRS", help="the other version")
    parser.add_argument("path", nargs="?", default="", metavar="PATH", help="the file's path in the project")


def merge_file_run(arguments: Arguments) -> int:
    merge = FileMerge.open(os.getcwd())
    try:
        conflicts = merge.merge(arguments.base, arguments.ours, arguments.theirs, arguments.path)
    except LearntError as error:
        print_error(error)
        return max(error.exit_code, _NOT_MERGED)
    finally:
        merge.close()
    if arguments.json:
        show_json({"id": arguments.path or arguments.ours, "conflicts": conflicts})
    elif conflicts:
        note(f"{arguments.path or arguments.ours}: {format_count(conflicts, 'conflict')}, marked in the file")
    return 1 if conflicts else 0


def _summarize(report: AgesReport) -> list[str]:
    """Return the facts about a file, each on one line."""
    last = report.last_consolidation or "none so far: counted from the oldest entry"
    decision = report.decision
    verdict = "Consolidation is due" if decision.is_due else "Consolidation is not due"
    if decision.needs_person:
        verdict = "A person has to shorten the file"
    return [
        f"Lines: {report.lines}",
        f"Entries: {len(report.entries)}, old enough: {len(report.aged)}",
        f"Active days since the last consolidation: {report.since_consolidation} ({last})",
        f"{verdict}: {decision.reason}",
    ]


def _format(entry: AgedEntry) -> str:
    return f"- {entry.title}: {format_count(entry.active_days, 'active day')} ({entry.day or 'not committed yet'})"


def _record(report: AgesReport, *, with_entries: bool) -> dict[str, Any]:
    decision = report.decision
    record: dict[str, Any] = {
        "file": report.path,
        "lines": report.lines,
        "entry_count": len(report.entries),
        "old_enough": len(report.aged),
        "last_consolidation": report.last_consolidation,
        "since_consolidation": report.since_consolidation,
        "due": decision.is_due,
        "needs_person": decision.needs_person,
        "cause": decision.cause,
        "reason": decision.reason,
        "batch": [entry.title for entry in decision.batch],
        "remarks": list(report.remarks),
    }
    return {**record, "entries": [_entry_record(entry) for entry in report.entries]} if with_entries else record


def _entry_record(entry: AgedEntry) -> dict[str, Any]:
    return {name: value for name, value in entry.as_dict().items() if name != "lines" or value}
