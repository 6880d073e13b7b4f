"""The commands for raw findings: discover, discoveries."""

from __future__ import annotations

from typing import Any

from learnt.doors.cli.arguments import Arguments, Parser, open_memory, print_result, report_redactions
from learnt.doors.output import describe_discovery, format_time, say, show_json, show_table
from learnt.model import DISCOVERIES
from learnt.store.mined import StoredDiscovery


def discover_arguments(parser: Parser) -> None:
    parser.add_argument("text", metavar="TEXT", help="what was found, in one sentence")
    parser.add_argument("--type", required=True, choices=DISCOVERIES, help="what kind of finding it is")
    parser.add_argument("--task", default="", metavar="ID", help="the task in which it was found")
    parser.add_argument("--failed", default="", metavar="TEXT", help="the command or file that failed")
    parser.add_argument("--error", default="", metavar="TEXT", help="the error that told so")
    parser.add_argument("--worked", default="", metavar="TEXT", help="what worked instead")
    parser.add_argument("--why", default="", metavar="TEXT", help="the words or facts that it rests on")
    parser.add_argument("--file", action="append", metavar="FILE", help="a file that it is about; repeatable")


def discover_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        stored = memory.discover(
            arguments.text,
            type=arguments.type,
            task=arguments.task,
            failed=arguments.failed,
            error=arguments.error,
            worked=arguments.worked,
            excerpt=arguments.why,
            files=arguments.file or (),
        )
        titles = memory.titles([stored.learning])
    report_redactions(memory)
    print_result(arguments, stored.as_record(), describe_discovery(stored, titles))


def discoveries_arguments(parser: Parser) -> None:
    parser.add_argument("--type", default="", choices=DISCOVERIES, help="only findings of this kind")
    parser.add_argument("--task", default="", metavar="ID", help="only findings in this task")
    parser.add_argument("--learning", default="", metavar="ID", help="only findings that this learning rests on")
    parser.add_argument("--limit", type=int, metavar="N", help="how many (setting `page_size`)")


def discoveries_run(arguments: Arguments) -> None:
    which: dict[str, Any] = {name: getattr(arguments, name) for name in ("type", "task", "learning", "limit")}
    with open_memory(arguments) as memory:
        found = memory.discoveries.select(**which)
    if arguments.json:
        show_json([stored.as_record() for stored in found])
    elif found:
        show_table(("id", "found", "type", "finding"), [*map(_row, found)], wide=3)
    else:
        say("No discoveries match: `learnt discover` keeps one.")


def _row(stored: StoredDiscovery) -> tuple[str, ...]:
    outcome = f"→ {stored.learning}" if stored.learning else f"({stored.skipped})" if stored.skipped else ""
    found = stored.discovery
    return stored.id, format_time(stored.created_at), found.type, f"{found.text}  {outcome}".rstrip()
