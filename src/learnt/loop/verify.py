"""Verify an agent's work with a command, and say why something failed by what it printed.

The reason is the first error, because later ones often follow from it, and the last line says only that something
failed. What our own programs print inside an attempt is nobody's error.
"""

from __future__ import annotations

import os
import re
import sys

from learnt.clients.kit.run import Call, plain_text
from learnt.loop.agents import AgentRun
from learnt.mine.complaint import find_first_error
from learnt.system.run import EXITED, TIME_LIMIT
from learnt.text.clean import clean
from learnt.text.titles import OWN_LINE, cut_text, cut_words

_MAX_ENDING_CHARS = 1_500
_MAX_ERROR_CHARS = 2_000
_MAX_REASON_CHARS = 300
# The order matters, because a missing module also fails tests, and a failed test may print a type error.
_PATTERNS = (
    ("timeout", r"timed? ?out|deadline exceeded|TimeoutError|TimeoutExpired"),
    (
        "dependency",
        r"ModuleNotFoundError|ImportError|No module named|Cannot find module|unresolved import|"
        r"No matching distribution|could not resolve dependenc|package \S+ (?:is )?not found|ERESOLVE",
    ),
    (
        "test",
        r"\d+ (?:tests? )?fail(?:ed|ures?|ing)|^FAILED\b|--- FAIL|^FAIL\b|AssertionError|assertion (?:`|failed)|"
        r"Tests?:? .*fail|test result: FAILED|^not ok \d",
    ),
    ("type", r"\bTypeError\b|error TS\d+|\[E0308\]|mismatched types|[Ii]ncompatible type|error: Argument \d+ to"),
    (
        "missing-file",
        r"FileNotFoundError|No such file or directory|ENOENT|cannot (?:find|open) (?:the )?file|is missing\b",
    ),
    (
        "build",
        r"SyntaxError|IndentationError|compilation (?:failed|error)|error\[E\d+\]|undefined reference|"
        r"cannot find symbol|BUILD FAILED|fatal error:|ld returned \d|command not found",
    ),
    ("logic", r"Traceback \(most recent call last\)|\bpanicked at\b|Exception\b|\w+Error: "),
    ("build", r"make: \*\*\*"),
)
_EXPRESSIONS = [(category, re.compile(pattern, re.MULTILINE)) for category, pattern in _PATTERNS]


# No change to the files mends these: the shell or `make` cannot start a program, or the tests cannot be collected.
_NO_TOOL = re.compile(
    r"^.*(?:\bcommand not found|sh: (?:line )?(?:\d+: )?[^:\n]+: not found"
    r"|is not recognized as an internal or external).*$"
    r"|^make(?:\[\d+\])?: [\w.+/-]+: (?:No such file or directory|Command not found|Permission denied)$"
    r"|^(?:/usr/bin/)?env: .+: No such file or directory$"
    r"|^\S*python[\d.]*(?:\.exe)?: No module named \S+$",
    re.MULTILINE,
)
_NO_COLLECTION = re.compile(
    r"^.*\berrors? during collection\b.*$|^ERROR collecting .*$|^ImportError while loading conftest.*$"
    r"|^INTERNALERROR> .*$|^.*\bTest suite failed to run\b.*$|^FAIL\s.*\[setup failed\]$",
    re.MULTILINE,
)
_NO_PROGRAM = (126, 127)
# What tests cannot be collected without: a module, or a name in a module.
_MISSING = re.compile(
    r"ModuleNotFoundError: No module named '(?P<module>[\w.]+)'"
    r"|ImportError: cannot import name '\w+' from (?:partially initialized module )?'(?P<source>[\w.]+)'"
    r"|Cannot find module '(?P<path>[^']+)'"
)
_SOURCES = ("", "src", "lib")


def find_obstacle(output: str, exit_code: int | None) -> str:
    """Return why no attempt can make a verification succeed that failed before any work; empty if one can."""
    output = _without_own_lines(output)
    match = _NO_TOOL.search(output) or _NO_COLLECTION.search(output)
    if match is None and exit_code in _NO_PROGRAM:
        return read_error(output)[0] or f"exit code {exit_code}: a program is missing, or cannot be started"
    return cut_words(match[0].strip(" =!_"), _MAX_REASON_CHARS) if match else ""


def find_missing(output: str) -> tuple[str, ...]:
    """Return what tests cannot be collected without; `shop.` for a name that the module `shop` lacks."""
    output = _without_own_lines(output)
    found = () if _NO_TOOL.search(output) else _MISSING.finditer(output)
    names = (match["module"] or match["path"] or f"{match['source']}." for match in found)
    return tuple(dict.fromkeys(names))


def is_to_be_written(missing: str, *, folder: str, wanted: str) -> bool:
    """Return whether what tests lack is for the task to write, and no dependency that somebody must install.

    Tests may come before what they test. `wanted` is what the task says.
    """
    if missing.startswith("."):
        return True
    top, dot, _ = missing.partition(".")
    places = (os.path.join(folder, source, top) for source in _SOURCES)
    is_here = any(os.path.lexists(place) or os.path.lexists(f"{place}.py") for place in places)
    # A module that is here and yet not found is not installed.
    return is_here if dot else not is_here and re.search(rf"\b{re.escape(top)}\b", wanted) is not None


def build_call(command: str) -> Call:
    """Return the call that runs a verification in a shell."""
    shell = ("cmd", "/c", command) if sys.platform == "win32" else ("sh", "-c", command)
    return Call(client="command", argv=shell)


def describe_failure(command: str, run: AgentRun) -> tuple[str, str, str]:
    """Return why a verification failed: how it ended, its category, and what it printed."""
    output = "\n".join(filter(None, (plain_text(run.output.stdout), plain_text(run.output.stderr))))
    exit = run.exit
    if exit.ending == EXITED:
        how = f"ended with exit code {exit.exit_code}"
    else:
        how = f"was ended: {exit.ending} {exit.error}".strip()
    category = "timeout" if exit.ending == TIME_LIMIT else classify(output)
    return f"the verification `{command}` {how}", category, output


def classify(output: str) -> str:
    """Return a failure's category, by its first error or, if that says too little, by the end of the output."""
    output = _without_own_lines(output)
    texts = (find_first_error(output), output.rstrip()[-_MAX_ENDING_CHARS:])
    found = (category for text in texts for category, expression in _EXPRESSIONS if expression.search(text))
    return next(found, "unknown")


def read_error(output: str) -> tuple[str, str]:
    """Return the first error in an output, for the reason of a failure, and the output from there on.

    Without an error, the output's end says most.
    """
    output = _without_own_lines(output).strip()
    first = find_first_error(output)
    start = output.find(first) if first else -1
    if start < 0:
        return "", output[-_MAX_ERROR_CHARS:]
    return cut_words(first, _MAX_REASON_CHARS), cut_text(output[start:], _MAX_ERROR_CHARS)


def _without_own_lines(output: str) -> str:
    lines = clean(output).splitlines()
    return "\n".join(line for line in lines if not line.startswith(OWN_LINE))
