"""The command `index`, which checks and repairs the index of the topic files."""

from __future__ import annotations

import os

from learnt.consolidate.memory_index import IndexFault
from learnt.doors.cli.arguments import Arguments, Parser, open_memory
from learnt.doors.output import format_count, note, say, show_json
from learnt.errors import NoStore
from learnt.flow.documents import IndexReport, TopicFiles


def index_arguments(parser: Parser) -> None:
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--check", action="store_true", help="say what is wrong, and exit with 1 if anything is (default)")
    way.add_argument("--fix", action="store_true", help="repair the index; topic files are not changed")


def index_run(arguments: Arguments) -> int:
    report = _fix(arguments) if arguments.fix else _check(arguments)
    if arguments.json:
        faults = [fault.as_dict() for fault in report.faults]
        record = {"id": report.path, "topic_files": report.topic_files, "faults": faults, "changed": report.changed}
        show_json({**record, "remarks": report.remarks})
    else:
        for remark in report.remarks:
            note(remark)
        _show(report, is_fixed=arguments.fix)
    return 1 if report.faults and not arguments.fix else 0


def _check(arguments: Arguments) -> IndexReport:
    try:
        with open_memory(arguments) as memory:
            return memory.topics.check_index()
    except NoStore:
        return TopicFiles.check_without_store(os.getcwd())


def _fix(arguments: Arguments) -> IndexReport:
    try:
        with open_memory(arguments) as memory:
            return memory.topics.fix_index()
    except NoStore:
        return TopicFiles.fix_without_store(os.getcwd())


def _show(report: IndexReport, *, is_fixed: bool) -> None:
    if not report.faults:
        files = format_count(report.topic_files, "topic file")
        say(f"{report.path}: no faults, {files}" if report.topic_files else "There are no topic files yet.")
        return
    say(f"{report.path}: {format_count(len(report.faults), 'fault')}{', repaired' if is_fixed else ''}")
    for fault in report.faults:
        say(f"- {_format(fault)}")
    if is_fixed:
        note(f"changed {', '.join(report.changed)}")
    else:
        note("`learnt index --fix` repairs it")


def _format(fault: IndexFault) -> str:
    place = f"line {fault.line}, {fault.kind}" if fault.line else fault.kind
    what = ": ".join(text for text in (fault.file, fault.title) if text)
    return f"{place}: {what} ({fault.message})" if what else f"{place}: {fault.message}"
