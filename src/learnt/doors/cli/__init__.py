"""The command line: finds the command, imports its module only, runs it, and prints errors.

Data goes to stdout, remarks to stderr. Exit codes: 0 done, 1 our failure, 2 wrong request, 3 try again.
Help pages and the command reference are made from the list of commands.
"""

from __future__ import annotations

import io
import os
import sys

from learnt import __version__
from learnt.doors.cli.arguments import read_arguments
from learnt.doors.cli.screen import print_error
from learnt.errors import LearntError, WrongRequest
from learnt.model import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GROUPS = (
    "Start",
    "Around an agent's work",
    "Tasks",
    "The loop",
    "Learnings",
    "Change a learning",
    "In and out",
    "Upkeep",
)
_WORK = GROUPS[1]


class Command(Value):
    """One command: `learnt NAME`; a name of two words is a noun and a verb."""

    name: str
    group: str
    summary: str
    module: str

    def load(self, part: str) -> Any:
        """Return the command's `arguments` or `run` function."""
        # Not `importlib`: importing it costs more than the module does.
        module = __import__(f"learnt.doors.cli.{self.module}", fromlist=[self.module])
        return getattr(module, f"{self.name.replace(' ', '_')}_{part}")


COMMANDS = (
    Command(name="init", group="Start", summary="Make this folder a project that keeps learnings", module="setup"),
    Command(name="demo", group="Start", summary="Show learnt at work in a temporary project", module="demo"),
    Command(name="install", group="Start", summary="Set up an agent client to use learnt", module="install"),
    Command(name="uninstall", group="Start", summary="Remove learnt from a client's settings", module="install"),
    Command(name="activity", group="Start", summary="Show what learnt did inside clients", module="activity"),
    Command(name="brief", group=_WORK, summary="Print what an agent should know before a task", module="agent_work"),
    Command(name="debrief", group=_WORK, summary="Learn from an agent's output, on stdin", module="agent_work"),
    Command(name="feedback", group=_WORK, summary="Say whether a learning helped with a task", module="agent_work"),
    Command(
        name="explain",
        group=_WORK,
        summary="Show why a brief says what it does, or what an attempt did",
        module="explain",
    ),
    Command(name="hook", group=_WORK, summary="Answer an agent client's event (on stdin) with a brief", module="serve"),
    Command(name="mcp", group=_WORK, summary="Serve agent clients over the Model Context Protocol", module="serve"),
    Command(name="task add", group="Tasks", summary="Queue a task for an agent", module="tasks"),
    Command(name="task list", group="Tasks", summary="List open tasks", module="tasks"),
    Command(name="task show", group="Tasks", summary="Show a task and its attempts", module="tasks"),
    Command(name="task edit", group="Tasks", summary="Change a task or its dependencies", module="tasks"),
    Command(name="task cancel", group="Tasks", summary="Cancel a task and stop its agent", module="tasks"),
    Command(name="task retry", group="Tasks", summary="Queue a task again", module="tasks"),
    Command(name="task split", group="Tasks", summary="Split a task into smaller ones", module="tasks"),
    Command(name="task graph", group="Tasks", summary="Show the dependencies between tasks", module="tasks"),
    Command(name="task prompt", group="Tasks", summary="Show the prompt an agent would get", module="tasks"),
    Command(name="work", group="The loop", summary="Run agents on the queued tasks", module="work"),
    Command(name="status", group="The loop", summary="Show which agents work on which tasks", module="work"),
    Command(name="stop", group="The loop", summary="Stop the runs on this machine", module="work"),
    Command(name="log", group="The loop", summary="Show the log of an attempt", module="work"),
    Command(name="strategy", group="The loop", summary="Show the results of each model", module="work"),
    Command(name="escalations", group="The loop", summary="Show what needs a person's decision", module="tasks"),
    Command(name="resolve", group="The loop", summary="Answer an escalation", module="tasks"),
    Command(name="add", group="Learnings", summary="Add a learning", module="learnings"),
    Command(name="list", group="Learnings", summary="List learnings, newest first", module="learnings"),
    Command(name="show", group="Learnings", summary="Show learnings.md, or one learning in full", module="learnings"),
    Command(name="search", group="Learnings", summary="Find learnings by words and triggers", module="search"),
    Command(name="learn", group="Learnings", summary="Learn from past conversations and commits", module="learn"),
    Command(name="update", group="Learnings", summary="Learn from finished tasks, write learnings.md", module="files"),
    Command(name="clear", group="Learnings", summary="Delete learnings.md; the learnings stay", module="files"),
    Command(name="history", group="Learnings", summary="Show every change to a learning", module="learnings"),
    Command(name="review", group="Learnings", summary="Decide on proposals, one key each", module="review"),
    Command(name="stats", group="Learnings", summary="Show how the learnings performed", module="stats"),
    Command(name="edit", group="Change a learning", summary="Change a learning's text or fields", module="learnings"),
    Command(name="archive", group="Change a learning", summary="Archive a learning", module="verbs"),
    Command(name="restore", group="Change a learning", summary="Make a learning active again", module="verbs"),
    Command(
        name="hide",
        group="Change a learning",
        summary="Keep a learning or a warning out of every brief",
        module="verbs",
    ),
    Command(
        name="like",
        group="Change a learning",
        summary="Raise a learning's confidence",
        module="verbs",
    ),
    Command(name="pin", group="Change a learning", summary="Show a learning before others", module="verbs"),
    Command(name="supersede", group="Change a learning", summary="Replace a learning with another", module="verbs"),
    Command(name="undo", group="Change a learning", summary="Undo a change", module="verbs"),
    Command(
        name="purge",
        group="Change a learning",
        summary="Delete a learning or a warning permanently",
        module="verbs",
    ),
    Command(name="export", group="In and out", summary="Write all learnings as JSONL or Markdown", module="transfer"),
    Command(name="import", group="In and out", summary="Import learnings from a file", module="transfer"),
    Command(
        name="backup",
        group="In and out",
        summary="Back up the store, or restore it",
        module="transfer",
    ),
    Command(
        name="tidy",
        group="Upkeep",
        summary="Archive old learnings, doubt unused ones",
        module="upkeep",
    ),
    Command(name="config", group="Upkeep", summary="Show every setting, its origin and its meaning", module="setup"),
    Command(name="usage", group="Upkeep", summary="Show the cost of model calls", module="stats"),
    Command(name="doctor", group="Upkeep", summary="Check the store and suggest fixes", module="upkeep"),
)


class _NoFolder(WrongRequest):
    """There is no folder to work in."""


def run(words: list[str]) -> int:
    """Run one command line and return the exit code."""
    _prepare_streams()
    try:
        code = _run(words)
        sys.stdout.flush()
    except LearntError as error:
        if isinstance(error, _NoFolder) and "activity" in words and "--line" in words:
            print()  # a status bar must not show errors while folders come and go
            return 0
        print_error(error)
        return error.exit_code
    except BrokenPipeError:
        # The reader has seen enough (`learnt list | head`); keep Python from complaining at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        message = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
        print_error(LearntError(message, hint="the output may be incomplete; `learnt list` shows what was saved"))
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    return code


def _prepare_streams() -> None:
    """Replace missing streams, and keep encoding errors from stopping a command."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - as long as the process lives
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace", encoding=None if stream.isatty() else "utf-8")


def _run(words: list[str]) -> int:
    while words[:1] == ["-C"] and len(words) > 1:
        _change_to(words[1])
        words = words[2:]
    if not words or words[0] in ("-h", "--help", "help"):
        if words[1:] and words[0] == "help":
            return _run([*words[1:], "--help"])
        print(format_overview())
        return 0
    if words[0] in ("-V", "--version"):
        print(f"learnt {__version__}")
        return 0
    verbs = [command.name for command in COMMANDS if command.name.startswith(f"{words[0]} ")]
    if verbs and (not words[1:] or words[1] in ("-h", "--help")):
        print(format_overview(words[0]))
        return 0 if words[1:] else 2
    command = _find_command(" ".join(words[:2]) if verbs else words[0])
    arguments = read_arguments(command, words[2 if verbs else 1 :])
    if arguments.folder:
        _change_to(arguments.folder)
    _check_folder()
    return command.load("run")(arguments) or 0


def format_overview(noun: str = "") -> str:
    """Return the page that `learnt --help` prints, or the one for all verbs of a noun."""
    lines = ["learnt remembers what coding agents learn.", "", f"usage: learnt {noun or 'COMMAND'} [options]"]
    for group in GROUPS:
        commands = [
            command
            for command in COMMANDS
            if command.group == group and command.name.startswith(f"{noun} " if noun else "")
        ]
        lines += ["", group] if commands else []
        lines += [f"  {command.name:<12} {command.summary}" for command in commands]
    lines += ["", "`learnt COMMAND --help` shows the options of a command."]
    return "\n".join(lines)


def _find_command(name: str) -> Command:
    for command in COMMANDS:
        if command.name == name:
            return command
    import difflib

    near = difflib.get_close_matches(name, [command.name for command in COMMANDS], n=1)
    hint = f"did you mean `learnt {near[0]}`?" if near else "`learnt --help` lists the commands"
    raise WrongRequest(f"there is no command `{name[:100]}`", hint=hint)


def _change_to(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise _NoFolder(f"cannot change to {folder}: {error.strerror}", hint="give -C an existing folder") from None


def _check_folder() -> None:
    try:
        os.getcwd()
    except FileNotFoundError:
        raise _NoFolder("the current folder no longer exists", hint="change to another folder: `cd ~`") from None
