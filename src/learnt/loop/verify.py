"""Verify an agent's work with a command, and classify failures by their output."""

from __future__ import annotations

import re
import sys

from learnt.clients.kit.run import Call, plain_text
from learnt.loop.agents import AgentRun
from learnt.system.run import EXITED, TIME_LIMIT

_MAX_OUTPUT_CHARS = 1_500
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


def build_call(command: str) -> Call:
    """Return the call that runs a verification in a shell."""
    shell = ("cmd", "/c", command) if sys.platform == "win32" else ("sh", "-c", command)
    return Call(client="command", argv=shell)


def describe_failure(command: str, run: AgentRun) -> tuple[str, str, str]:
    """Return why a verification failed: the reason as a sentence, its category, and the end of the output."""
    printed = (plain_text(run.output.stdout), plain_text(run.output.stderr))
    output = "\n".join(filter(None, printed)).strip()[-_MAX_OUTPUT_CHARS:]
    exit = run.exit
    if exit.ending == EXITED:
        how = f"ended with exit code {exit.exit_code}"
    else:
        how = f"was ended: {exit.ending} {exit.error}".strip()
    category = "timeout" if exit.ending == TIME_LIMIT else classify(output)
    return f"the verification `{command}` {how}", category, output


def classify(output: str) -> str:
    """Return a failure's category, which is derived from the end of its output."""
    return next((category for category, expression in _EXPRESSIONS if expression.search(output)), "unknown")
