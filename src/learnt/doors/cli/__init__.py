"""The command line: finds the command, imports its module alone, runs it, and tells errors.

Data goes to stdout, talk about it to stderr. Exit codes: 0 done, 1 our failure, 2 wrong request, 3 try again.
"""

from __future__ import annotations

import io
import os
import sys

from learnt import __version__
from learnt.doors.cli.commands import COMMANDS, GROUPS, Command
from learnt.errors import LearntError, WrongRequest


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
            print()  # a status bar stays as it is while folders come and go
            return 0
        _tell(error)
        return error.exit_code
    except BrokenPipeError:
        # The reader has seen enough (`learnt list | head`); keep Python from complaining at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        message = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
        _tell(LearntError(message, hint="the result may not have been printed; `learnt list` shows what was kept"))
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    return code


def _prepare_streams() -> None:
    """Make sure that no stream is missing, and that no encoding can stop a command."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - as long as the process lives
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace", encoding=None if stream.isatty() else "utf-8")


def _run(words: list[str]) -> int:
    while words[:1] == ["-C"] and len(words) > 1:
        _go_to(words[1])
        words = words[2:]
    if not words or words[0] in ("-h", "--help", "help"):
        if words[1:] and words[0] == "help":
            return _run([*words[1:], "--help"])
        print(overview())
        return 0
    if words[0] in ("-V", "--version"):
        print(f"learnt {__version__}")
        return 0
    verbs = [command.name for command in COMMANDS if command.name.startswith(f"{words[0]} ")]
    if verbs and (not words[1:] or words[1] in ("-h", "--help")):
        print(overview(words[0]))
        return 0 if words[1:] else 2
    command = _find(" ".join(words[:2]) if verbs else words[0])
    from learnt.doors.cli.arguments import read_arguments

    arguments = read_arguments(command, words[2 if verbs else 1 :])
    if arguments.folder:
        _go_to(arguments.folder)
    _check_folder()
    return command.load("run")(arguments) or 0


def overview(noun: str = "") -> str:
    """Return the page that `learnt --help` prints, or the one on all verbs of a noun."""
    lines = ["learnt remembers what coding agents learn.", "", f"usage: learnt {noun or 'COMMAND'} [options]"]
    for group in GROUPS:
        shown = [one for one in COMMANDS if one.group == group and one.name.startswith(f"{noun} " if noun else "")]
        lines += ["", group] if shown else []
        lines += [f"  {command.name:<12} {command.summary}" for command in shown]
    lines += ["", "`learnt COMMAND --help` tells more about one of them."]
    return "\n".join(lines)


def _find(name: str) -> Command:
    for command in COMMANDS:
        if command.name == name:
            return command
    import difflib

    near = difflib.get_close_matches(name, [command.name for command in COMMANDS], n=1)
    hint = f"did you mean `learnt {near[0]}`?" if near else "`learnt --help` lists the commands"
    raise WrongRequest(f"there is no command `{name[:100]}`", hint=hint)


def _go_to(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise _NoFolder(f"cannot go to {folder}: {error.strerror}", hint="-C names an existing folder") from None


def _check_folder() -> None:
    try:
        os.getcwd()
    except FileNotFoundError:
        raise _NoFolder("the current folder no longer exists", hint="go to another folder: `cd ~`") from None


def _tell(error: LearntError) -> None:
    from learnt.doors.cli.screen import paint

    print(f"{paint('error:', 'red', sys.stderr)} {error.message}", file=sys.stderr)
    if error.hint:
        print(f"\n{paint('hint:', 'cyan', sys.stderr)} {error.hint}", file=sys.stderr)
