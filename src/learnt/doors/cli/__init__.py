"""The command line: finds the command, imports only its module, runs it, and prints errors.

Data goes to stdout, remarks to stderr. Exit codes: 0 done, 1 our failure, 2 wrong request, 3 try again.
Help pages and the command reference are generated from the list of commands.
"""

from __future__ import annotations

import io
import os
import sys

from learnt import __version__
from learnt.doors.cli.arguments import read_arguments
from learnt.doors.output import print_error
from learnt.errors import LearntError, WrongRequest
from learnt.model import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# For each group: a command's name, the module that implements it, and what it does.
_TABLE = {
    "Start": (
        ("init", "setup", "Make this folder a project that keeps learnings"),
        ("demo", "demo", "Show learnt at work in a temporary project"),
        ("trust", "trust", "Let a project that came from others take effect"),
        ("untrust", "trust", "Take trust in a project back"),
        ("install", "clients", "Set up an agent client to use learnt"),
        ("uninstall", "clients", "Remove learnt from a client's settings"),
        ("activity", "activity", "Show what learnt did inside clients"),
    ),
    "Around an agent's work": (
        ("brief", "agent_work", "Print what an agent should know before a task"),
        ("debrief", "agent_work", "Learn from an agent's output, on stdin"),
        ("feedback", "agent_work", "Say whether a learning helped with a task"),
        ("discover", "discoveries", "Keep a raw finding, and learn from it"),
        ("discoveries", "discoveries", "List raw findings, and what became of them"),
        ("explain", "explain", "Show why a brief says what it does, or what an attempt did"),
        ("hook", "clients", "Answer an agent client's event (on stdin) with a brief"),
        ("mcp", "clients", "Serve agent clients over the Model Context Protocol"),
    ),
    "Tasks": (
        ("task add", "tasks", "Queue a task for an agent"),
        ("task list", "tasks", "List open tasks"),
        ("task show", "tasks", "Show a task and its attempts"),
        ("task edit", "tasks", "Change a task or its dependencies"),
        ("task cancel", "tasks", "Cancel a task and stop its agent"),
        ("task retry", "tasks", "Queue a task again"),
        ("task split", "tasks", "Split a task into smaller ones"),
        ("task graph", "tasks", "Show the dependencies between tasks"),
        ("task prompt", "tasks", "Show the prompt an agent would get"),
    ),
    "Goals": (
        ("goal add", "goals", "Say what a set of tasks serves"),
        ("goal list", "goals", "List goals, and how far their tasks are"),
        ("goal show", "goals", "Show a goal and its tasks"),
        ("goal edit", "goals", "Change a goal's title or text"),
    ),
    "The loop": (
        ("work", "work", "Run agents on the queued tasks"),
        ("status", "work", "Show which agents work on which tasks"),
        ("stop", "work", "Stop the runs on this machine"),
        ("log", "work", "Show the log of an attempt"),
        ("strategy", "work", "Show the results of each model"),
        ("escalations", "tasks", "Show what needs a person's decision"),
        ("resolve", "tasks", "Answer an escalation"),
    ),
    "Learnings": (
        ("add", "learnings", "Add a learning"),
        ("list", "learnings", "List learnings, newest first"),
        ("show", "learnings", "Show learnings.md, or one learning in full"),
        ("search", "learnings", "Find learnings by words, meaning and triggers"),
        ("similar", "learnings", "Show the learnings that say much the same as one"),
        ("cues", "cues", "Say when learnings matter, or let a model say it"),
        ("learn", "learn", "Learn from past conversations and commits"),
        ("update", "files", "Learn from finished tasks, write learnings.md"),
        ("clear", "files", "Delete learnings.md; the learnings stay"),
        ("history", "learnings", "Show every change to a learning"),
        ("review", "review", "Decide on proposals, one key each"),
        ("stats", "stats", "Show how the learnings performed"),
    ),
    "Consolidation": (
        ("ages", "consolidation", "Show how old the entries of the staging file are"),
        ("handoff", "consolidate", "Append new learnings to the staging file, after a check"),
        ("consolidate", "consolidate", "Move what has aged into topic files, after showing the plan"),
        ("index", "topics", "Check or repair the index of the topic files"),
        ("merge-file", "consolidation", "Merge the staging file or learnings.md of two branches, for git"),
    ),
    "Change a learning": (
        ("edit", "learnings", "Change a learning's text or fields"),
        ("archive", "verbs", "Archive a learning"),
        ("restore", "verbs", "Make a learning active again"),
        ("hide", "verbs", "Keep a learning or a warning out of every brief"),
        ("like", "verbs", "Raise a learning's confidence"),
        ("pin", "verbs", "Show a learning before others"),
        ("supersede", "verbs", "Replace a learning with another"),
        ("undo", "verbs", "Undo a change"),
        ("purge", "verbs", "Delete a learning or a warning permanently"),
    ),
    "In and out": (
        ("export", "transfer", "Write all learnings as JSONL or Markdown"),
        ("import", "transfer", "Import learnings from a file"),
        ("backup", "transfer", "Back up the store, or restore it"),
    ),
    "Upkeep": (
        ("tidy", "setup", "Archive old learnings, doubt unused ones"),
        ("config", "setup", "Show every setting, its origin and its meaning"),
        ("usage", "stats", "Show the cost of model calls"),
        ("doctor", "doctor", "Check the store and suggest fixes"),
    ),
}
GROUPS = tuple(_TABLE)


class Command(Value):
    """One command, `learnt NAME`; a name with two words is a noun and a verb."""

    name: str
    group: str
    summary: str
    module: str

    def load(self, part: str) -> Any:
        """Return the command's `arguments` or `run` function; a command without arguments has only `run`."""
        # `importlib` is not used, because its import takes longer than the module's.
        module = __import__(f"learnt.doors.cli.{self.module}", fromlist=[self.module])
        return getattr(module, f"{self.name.replace(' ', '_').replace('-', '_')}_{part}", None)


COMMANDS = tuple(
    Command(name=name, group=group, summary=summary, module=module)
    for group, commands in _TABLE.items()
    for name, module, summary in commands
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
            print()  # a status bar must not show an error when its folder does not exist
            return 0
        print_error(error)
        return error.exit_code
    except BrokenPipeError:
        # The reader closed the pipe (`learnt list | head`), so keep Python from printing an error at its exit.
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
    """Return the page that `learnt --help` prints, or the page for all verbs of a noun."""
    lines = ["learnt remembers what coding agents learn.", "", f"usage: learnt {noun or 'COMMAND'} [options]"]
    start = f"{noun} " if noun else ""
    for group in GROUPS:
        commands = [command for command in COMMANDS if command.group == group and command.name.startswith(start)]
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
        raise _NoFolder(f"cannot change to {folder}: {error.strerror}", hint="-C must be an existing folder") from None


def _check_folder() -> None:
    try:
        os.getcwd()
    except FileNotFoundError:
        raise _NoFolder("the current folder no longer exists", hint="change to another folder: `cd ~`") from None
