"""What the commands' parsers share: the parser itself, and the options that several commands have."""

from __future__ import annotations

import os

from learnt.doors.cli.screen import note, use_color
from learnt.errors import WrongRequest
from learnt.model import KINDS, ORIGINS, PARAGRAPHS, Triggers

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any, NoReturn

    from learnt.doors.cli.commands import Command
    from learnt.doors.cli.options import PlainParser
    from learnt.memory import Memory

_MEANINGS = {
    "context": "what one was working on",
    "observation": "what one noticed",
    "implication": "how it should change future work",
    "action": "the specific change to make",
}
_TRIGGERS = {
    "files": ("--on-file", "GLOB", "files that it is about, as a pattern"),
    "commands": ("--on-command", "COMMAND", "a command that it is about"),
    "errors": ("--on-error", "TEXT", "an error text that it answers"),
    "tools": ("--on-tool", "TOOL", "a tool that it is about"),
    "task_types": ("--on-task-type", "TYPE", "a type of task that it is about"),
}


def read_arguments(command: Command, words: list[str]) -> argparse.Namespace:
    """Return what a command line says; raise WrongRequest when it says nothing that can be done."""
    from learnt.doors.cli.options import PlainParser, Unclear

    plain = PlainParser()
    _describe(command, plain)
    try:
        return plain.read(words)  # type: ignore[return-value] # the same attributes
    except Unclear:
        return full_parser(command).parse_args(words)


def full_parser(command: Command) -> argparse.ArgumentParser:
    """Return the parser that knows the help page and the words for every mistake."""
    import argparse

    class Parser(argparse.ArgumentParser):
        """Raises our error instead of leaving the process."""

        def error(self, message: str) -> NoReturn:
            raise WrongRequest(message, hint=f"`{self.prog} --help` shows what it takes")

    def formatter(prog: str) -> argparse.HelpFormatter:
        return argparse.HelpFormatter(prog, width=_width())

    parser = Parser(
        prog=f"learnt {command.name}", description=f"{command.summary}.", allow_abbrev=False, formatter_class=formatter
    )
    _describe(command, parser)
    return parser


def _describe(command: Command, parser: argparse.ArgumentParser | PlainParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("-C", dest="folder", metavar="FOLDER", help="work as if started in this folder")
    command.load("arguments")(parser)


def _width() -> int:
    try:
        return max(40, os.get_terminal_size().columns - 2)
    except OSError:
        return 100


def add_id(parser: argparse.ArgumentParser, help: str = "the learning's id") -> None:
    """Let a command take one id."""
    parser.add_argument("id", metavar="ID", help=help)


def add_user(parser: argparse.ArgumentParser, help: str = "use the user-wide store alone") -> None:
    """Let a command work on the user-wide store."""
    parser.add_argument("--user", action="store_true", help=help)


def add_reason(parser: argparse.ArgumentParser) -> None:
    """Let a change say why."""
    parser.add_argument("--reason", default="", metavar="TEXT", help="why; kept in the history")


def add_fields(parser: argparse.ArgumentParser) -> None:
    """Let a command set the fields of a learning; an option that is not given is None."""
    for name in PARAGRAPHS:
        parser.add_argument(f"--{name}", metavar="TEXT", help=_MEANINGS[name])
    parser.add_argument("--tag", action="append", dest="tags", metavar="TAG", help="a tag; repeatable")
    parser.add_argument("--domain", metavar="NAME", help="the field of work: database, ui, …")
    parser.add_argument("--category", metavar="NAME", help="the section that it stands in")
    parser.add_argument("--kind", choices=KINDS, help="what sort of learning it is")
    polarity = parser.add_mutually_exclusive_group()
    polarity.add_argument("--do", dest="polarity", action="store_const", const="do", help="something to do")
    polarity.add_argument("--avoid", dest="polarity", action="store_const", const="avoid", help="something to avoid")
    for field, (option, metavar, meaning) in _TRIGGERS.items():
        parser.add_argument(option, action="append", dest=f"on_{field}", metavar=metavar, help=f"{meaning}; repeatable")
    parser.add_argument("--origin", choices=ORIGINS, help="who it comes from; a new one: person")
    parser.add_argument("--goal", metavar="NAME", help="the goal that it was learnt for")
    parser.add_argument("--task", metavar="ID", help="the task that it was learnt in")
    parser.add_argument("--commit", metavar="HASH", help="the commit that it belongs to")
    parser.add_argument("--confidence", type=float, metavar="N", help="from 0.1 to 1.0")


def add_situation(parser: argparse.ArgumentParser | PlainParser) -> None:
    """Add what is known of what is about to happen: triggers are looked for in it."""
    parser.add_argument(
        "--path", action="append", default=[], metavar="PATH", help="a file that is worked on; repeatable"
    )
    parser.add_argument("--command", default="", metavar="COMMAND", help="a command that is about to run")
    parser.add_argument(
        "--tool", action="append", default=[], metavar="TOOL", help="a tool that is about to be used; repeatable"
    )
    parser.add_argument("--type", default="", metavar="TYPE", help="the type of the task: implement, review, …")


def given_fields(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the fields that were given on the command line."""
    names = (*PARAGRAPHS, "tags", "domain", "category", "kind", "polarity", "origin", "goal", "task", "commit")
    fields = {name: getattr(arguments, name) for name in (*names, "confidence")}
    fields["triggers"] = given_triggers(arguments) or None
    return {name: value for name, value in fields.items() if value is not None}


def given_triggers(arguments: argparse.Namespace) -> dict[str, list[str]]:
    """Return the triggers that were given on the command line."""
    words = {field: getattr(arguments, f"on_{field}") for field in Triggers.fields}
    return {field: given for field, given in words.items() if given}


def tell_redactions(memory: Memory) -> None:
    """Say how many secrets were taken out of what the person gave."""
    count = memory.redactions
    if count:
        note("1 secret was redacted" if count == 1 else f"{count:,} secrets were redacted")


def open_memory(arguments: argparse.Namespace, *, in_a_hurry: bool = False) -> Memory:
    """Open the store that the arguments mean; never create one. Unless somebody waits, do the day's tidying."""
    from learnt.memory import Memory

    memory = Memory.open_user(create=False) if getattr(arguments, "user", False) else Memory.open(".", create=False)
    use_color(memory.settings.color)
    for remark in memory.remarks:
        note(remark)
    memory.tidies_when_done = not in_a_hurry
    memory.context.report = note
    return memory
