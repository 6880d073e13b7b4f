"""Check what an agent says it has done: run the project's own command, and report the result."""

from __future__ import annotations

import re
import sys

from learnt.clients.kit.run import Call, plain_text
from learnt.loop.agents import AgentRun
from learnt.model import Value
from learnt.system.run import EXITED, TIME_LIMIT

_LONGEST_ENDING = 1_500
# In this order: a missing module also fails a test, a failed test also shows a type error.
_SIGNS = (
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
_EXPRESSIONS = [(category, re.compile(pattern, re.MULTILINE)) for category, pattern in _SIGNS]


class Verdict(Value):
    """The result of a verification."""

    passed: bool
    command: str
    exit_code: int | None = None
    ending: str = ""
    """How it ended, when not by itself."""
    output: str = ""

    @property
    def category(self) -> str:
        """What sort of failure it is."""
        return "timeout" if self.ending == TIME_LIMIT else classify(self.output)

    @property
    def reason(self) -> str:
        """Why it did not pass, in one sentence."""
        how = f"was ended: {self.ending}" if self.ending else f"ended with exit code {self.exit_code}"
        return f"the verification `{self.command}` {how}"


def call_of(command: str) -> Call:
    """Return how a verification is started: by a shell, as a person would do it."""
    shell = ("cmd", "/c", command) if sys.platform == "win32" else ("sh", "-c", command)
    return Call(client="command", argv=shell)


def verdict_of(command: str, run: AgentRun) -> Verdict:
    """Return the verdict of a finished verification."""
    output = "\n".join(part for part in (plain_text(run.output.stdout), plain_text(run.output.stderr)) if part)
    ending = "" if run.ending == EXITED else f"{run.ending} {run.error}".strip()
    return Verdict(
        passed=run.ending == EXITED and run.exit_code == 0,
        command=command,
        exit_code=run.exit_code,
        ending=ending,
        output=output.strip()[-_LONGEST_ENDING:],
    )


def classify(output: str) -> str:
    """Return the category of a failure, from the end of its output."""
    return next((category for category, sign in _EXPRESSIONS if sign.search(output)), "unknown")
