"""Read command lines, plain ones directly and others with argparse, and describe options that several commands share.

A command describes its arguments once, to any object with `add_argument`. `Parser` reads plain lines, which have only
known options with valid values and positional arguments. It leaves other lines, and help, to `argparse`, whose import
takes as long as starting Python.
"""

from __future__ import annotations

import os

from learnt.clients.registry import conversation_of_shell
from learnt.doors.output import format_count, note, say, show_json, use_color
from learnt.errors import LearntError, WrongRequest
from learnt.memory import Memory
from learnt.model import CONTENT, KINDS, ORIGINS, PARAGRAPHS, Triggers, is_id, text_id
from learnt.store.tasks import UNKNOWN_CONVERSATION
from learnt.trust import is_agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any, NoReturn

    from learnt.doors.cli import Command

_MEANINGS = {
    "context": "what was being worked on",
    "observation": "what was noticed",
    "implication": "how it should change future work",
    "action": "the specific change to make",
}
TRIGGERS = {
    "files": ("--on-file", "GLOB", "a pattern for the files it is about"),
    "commands": ("--on-command", "COMMAND", "a command it is about"),
    "errors": ("--on-error", "TEXT", "an error message it helps with"),
    "tools": ("--on-tool", "TOOL", "a tool it is about"),
    "task_types": ("--on-task-type", "TYPE", "a type of task it is about"),
}


class Unclear(Exception):
    """The line is not plain, so argparse must read it."""


class Arguments:
    """A command line's arguments, as attributes."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class _Argument:
    """One described argument."""

    def __init__(self, names: tuple[str, ...], options: dict[str, Any]) -> None:
        self.names = names
        self.is_option = names[0].startswith("-")
        self.dest = options.get("dest") or names[-1].lstrip("-").replace("-", "_")
        self.action = options.get("action", "store")
        self.nargs = options.get("nargs")
        self.type = options.get("type", str)
        self.choices = options.get("choices")
        self.const = options.get("const", True)
        self.required = bool(options.get("required"))
        self.default = options.get("default", {"store_true": False, "store_false": True}.get(self.action))

    def convert(self, text: str) -> Any:
        try:
            value = self.type(text)
        except ValueError:
            raise Unclear from None
        if self.choices and value not in self.choices:
            raise Unclear
        return value


class Parser:
    """Accepts the argument descriptions of argparse that our commands use, and reads plain lines."""

    def __init__(self) -> None:
        self._arguments: list[_Argument] = []
        self._groups: list[Parser] = []

    def add_argument(self, *names: str, **options: Any) -> None:
        """Describe an argument."""
        self._arguments.append(_Argument(names, options))

    def add_mutually_exclusive_group(self, **_options: Any) -> Parser:
        """Describe exclusive options; a line that uses them is left to argparse."""
        self._groups.append(Parser())
        return self._groups[-1]

    def read(self, words: list[str]) -> Arguments:
        """Return a plain line's arguments, or raise Unclear."""
        options = {name: argument for argument in self._arguments if argument.is_option for name in argument.names}
        everything = [*self._arguments, *(argument for group in self._groups for argument in group._arguments)]
        values = {argument.dest: argument.default for argument in reversed(everything)}
        positionals: list[str] = []
        in_a_row = False
        remaining = list(words)
        while remaining:
            word = remaining.pop(0)
            if not word.startswith("-") or word == "-":
                if positionals and not in_a_row and self._takes_many():
                    raise Unclear  # argparse would not join these
                positionals.append(word)
                in_a_row = True
                continue
            in_a_row = False
            name, equals, text = word.partition("=")
            if name not in options:
                raise Unclear
            _read_option(options[name], text if equals else None, remaining, values)
        self._take_positionals(values, positionals)
        # Only exclusive options store False. One of them is required, so argparse must check the line.
        if any(
            argument.action == "store_false" or (argument.required and values[argument.dest] is None)
            for argument in everything
        ):
            raise Unclear
        arguments = Arguments()
        vars(arguments).update(values)
        return arguments

    def _takes_many(self) -> bool:
        positional = [argument for argument in self._arguments if not argument.is_option]
        return any(
            argument.nargs in ("+", "*") or (argument.nargs and argument is not positional[0])
            for argument in positional
        )

    def _take_positionals(self, values: dict[str, Any], words: list[str]) -> None:
        for argument in self._arguments:
            if argument.is_option:
                continue
            if argument.nargs in ("+", "*"):
                if not words and argument.nargs == "+":
                    raise Unclear
                values[argument.dest] = [argument.convert(word) for word in words]
                words = []
            elif words:
                values[argument.dest] = argument.convert(words.pop(0))
            elif argument.nargs != "?":
                raise Unclear
        if words:
            raise Unclear


def _read_option(option: _Argument, text: str | None, remaining: list[str], values: dict[str, Any]) -> None:
    """Store an option's value, which is its constant, the text after `=`, or the next word."""
    if option.action in ("store_true", "store_const"):
        if text is not None:
            raise Unclear
        values[option.dest] = option.const
        return
    if text is None:
        if not remaining or remaining[0].startswith("-"):
            raise Unclear
        text = remaining.pop(0)
    value = option.convert(text)
    values[option.dest] = [*(values[option.dest] or []), value] if option.action == "append" else value


def read_arguments(command: Command, words: list[str]) -> Arguments:
    """Return a command line's arguments; raise WrongRequest if they are not valid."""
    plain = Parser()
    describe_arguments(command, plain)
    try:
        return plain.read(words)
    except Unclear:
        return full_parser(command).parse_args(words, Arguments())


def full_parser(command: Command) -> argparse.ArgumentParser:
    """Return the parser that prints the help page and explains mistakes."""
    import argparse

    class FullParser(argparse.ArgumentParser):
        """Raises our error instead of ending the process."""

        def error(self, message: str) -> NoReturn:
            raise WrongRequest(message, hint=f"`{self.prog} --help` shows the arguments")

    def formatter(prog: str) -> argparse.HelpFormatter:
        return argparse.HelpFormatter(prog, width=_width())

    parser = FullParser(
        prog=f"learnt {command.name}", description=f"{command.summary}.", allow_abbrev=False, formatter_class=formatter
    )
    describe_arguments(command, parser)
    return parser


def describe_arguments(command: Command, parser: argparse.ArgumentParser | Parser) -> None:
    """Describe a command's arguments to a parser."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("-C", dest="folder", metavar="FOLDER", help="run as if started in this folder")
    describe = command.load("arguments")
    if describe is not None:
        describe(parser)


def _width() -> int:
    try:
        return max(40, os.get_terminal_size().columns - 2)
    except OSError:
        return 100


def add_id(parser: Parser, help: str = "the learning's id") -> None:
    """Add an id as the positional argument."""
    parser.add_argument("id", metavar="ID", help=help)


def add_user(parser: Parser, help: str = "use only the user-wide store") -> None:
    """Add the option for the user-wide store."""
    parser.add_argument("--user", action="store_true", help=help)


def add_reason(parser: Parser) -> None:
    """Add the reason for a change."""
    parser.add_argument("--reason", default="", metavar="TEXT", help="the reason, for the history")


def add_fields(parser: Parser) -> None:
    """Add options for a learning's fields; an option that is not set is None."""
    for name in PARAGRAPHS:
        parser.add_argument(f"--{name}", metavar="TEXT", help=_MEANINGS[name])
    parser.add_argument("--tag", action="append", dest="tags", metavar="TAG", help="a tag; repeatable")
    when = "a situation in which it will matter, in the words in which a user would put it; repeatable"
    parser.add_argument("--when", action="append", dest="cues", metavar="TEXT", help=when)
    parser.add_argument("--domain", metavar="NAME", help="the field of work: database, ui, …")
    parser.add_argument("--category", metavar="NAME", help="the section it belongs to")
    parser.add_argument("--kind", choices=KINDS, help="the kind of learning")
    polarity = parser.add_mutually_exclusive_group()
    polarity.add_argument("--do", dest="polarity", action="store_const", const="do", help="something to do")
    polarity.add_argument("--avoid", dest="polarity", action="store_const", const="avoid", help="something to avoid")
    for field, (option, metavar, meaning) in TRIGGERS.items():
        parser.add_argument(option, action="append", dest=f"on_{field}", metavar=metavar, help=f"{meaning}; repeatable")
    parser.add_argument("--origin", choices=ORIGINS, help="who it comes from; default: person")
    parser.add_argument("--goal", metavar="NAME", help="the goal it was learnt for")
    parser.add_argument("--task", metavar="ID", help="the task it was learnt in")
    parser.add_argument("--commit", metavar="HASH", help="the commit it belongs to")
    parser.add_argument("--confidence", type=float, metavar="N", help="from 0.1 to 1.0")


def add_situation(parser: Parser) -> None:
    """Add options that describe the situation, against which triggers are matched."""
    repeatable: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument("--exclude-goal", metavar="NAME", help="leave out learnings with this goal")
    parser.add_argument("--path", **repeatable, metavar="PATH", help="a file being worked on; repeatable")
    parser.add_argument("--command", default="", metavar="COMMAND", help="a command about to be run")
    parser.add_argument("--tool", **repeatable, metavar="TOOL", help="a tool about to be used; repeatable")
    parser.add_argument("--type", default="", metavar="TYPE", help="the task's type: implement, review, …")


def read_situation(arguments: Arguments) -> dict[str, Any]:
    """Return the situation for a brief or a search."""
    return {
        "paths": arguments.path,
        "command": arguments.command,
        "tools": arguments.tool,
        "task_type": arguments.type,
        "exclude_goal": arguments.exclude_goal,
    }


def read_fields(arguments: Arguments) -> dict[str, Any]:
    """Return the learning's fields that the command line sets."""
    names = [name for name in CONTENT if name not in ("title", "triggers", "discovery")]
    fields = {name: getattr(arguments, name) for name in (*names, "confidence")}
    triggers = {field: getattr(arguments, f"on_{field}") for field in Triggers.fields}
    for field, given in triggers.items():
        if not all(word.strip() for word in given or ()):
            raise WrongRequest(f"{TRIGGERS[field][0]} is empty", hint="leave it out")
    fields["triggers"] = {field: words for field, words in triggers.items() if words} or None
    return {name: value for name, value in fields.items() if value is not None}


def print_result(arguments: Arguments, record: object, line: str) -> None:
    """Print a result, as JSON for a program or as a line for a person."""
    if arguments.json:
        show_json(record)
    else:
        say(line)


def report_redactions(memory: Memory) -> None:
    """Print how many secrets were redacted from the input."""
    count = memory.redactions
    if count:
        note(f"{format_count(count, 'secret')} {'was' if count == 1 else 'were'} redacted")


def refuse_agent(what: str) -> None:
    """Raise in an agent's shell, for a command that is only for people."""
    if is_agent(os.environ):
        raise WrongRequest(
            f"`learnt {what}` is for people, and this is an agent's shell",
            hint="ask the user to run it in a terminal of their own",
        )


def _find_conversation(environ: Mapping[str, str]) -> str:
    """Return the conversation of the agent whose shell this is, as hooks know it."""
    task, conversation = environ.get("LEARNT_TASK", ""), conversation_of_shell(environ)
    if is_id("task", task):
        return task
    return text_id("task", conversation) if conversation else UNKNOWN_CONVERSATION


def let_agent_speak(memory: Memory) -> None:
    """In an agent's shell, let the agent speak and not the person."""
    if is_agent(os.environ):
        memory.speak_as_agent("agent", conversation=_find_conversation(os.environ))


def watch_calls(memory: Memory | None = None) -> None:
    """Let the hooks of this project end early before calls that concern nothing; if that fails, the worker does it."""
    try:
        if memory is not None:
            memory.calls.update()
            return
        with Memory.open(".", create=False) as opened:
            opened.calls.update()
    except (LearntError, OSError):
        return


def open_memory(arguments: Arguments, *, tidies: bool = True) -> Memory:
    """Open the store that the arguments select, without creating it. With `tidies`, tidy it afterwards if due."""
    memory = Memory.open_user(create=False) if getattr(arguments, "user", False) else Memory.open(".", create=False)
    use_color(memory.settings.color)
    let_agent_speak(memory)
    for remark in memory.remarks:
        note(remark)
    memory.tidies_when_done = tidies
    memory.report = note
    return memory
