"""Fill in a Jinja2 template with the variables that it is given.

Templates run in Jinja2's own immutable sandbox: they cannot reach Python's internals, change what they are given or
include other files. The length of the output is limited; how long a template runs is not, because templates come from
the caller's own code. Every mistake is a WrongRequest that names the line and says what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, UndefinedError
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from learnt.errors import WrongRequest

MOST_OUTPUT = 1_000_000
_TEMPLATE = "<template>"
# What Python raises for mistakes that Jinja2 itself does not notice.
_MISTAKES = (
    TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
)


class _OutputTooLong(TemplateError):
    """The output exceeds its limit."""


def fill_template(template: str, variables: Mapping[str, Any]) -> str:
    """Return the template with its variables filled in; raise WrongRequest for a mistake in it."""
    try:
        environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True, cache_size=0)
        return _join_within_limit(environment.from_string(template).generate(variables))
    except _MISTAKES as error:
        raise _explain(error, variables) from None


def _join_within_limit(pieces: Iterable[str]) -> str:
    kept: list[str] = []
    length = 0
    for piece in pieces:
        length += len(piece)
        if length > MOST_OUTPUT:
            raise _OutputTooLong(f"it makes more than {MOST_OUTPUT:,} characters")
        kept.append(piece)
    return "".join(kept)


def _explain(error: BaseException, variables: Mapping[str, Any]) -> WrongRequest:
    """Return the error that names the line of a mistake and says what to do about it."""
    line = error.lineno if isinstance(error, TemplateSyntaxError) else _find_line(error)
    place = f"line {line} of the template" if line else "the template"
    message = " ".join(str(error).split()) or type(error).__name__
    return WrongRequest(f"{place}: {message}"[:500], hint=_choose_hint(error, message, variables)[:500])


def _choose_hint(error: BaseException, message: str, variables: Mapping[str, Any]) -> str:
    if isinstance(error, _OutputTooLong | MemoryError | RecursionError | OverflowError):
        return "make it simpler: a prompt is read by a model, and has to be short"
    if "no loader" in message:
        return "a template includes no others; give their text in `context`"
    if isinstance(error, SecurityError):
        return "a template may only read what it is given"
    if isinstance(error, TemplateSyntaxError):
        return "templates are written in Jinja2; correct that line"
    if isinstance(error, UndefinedError):
        names = ", ".join(sorted(map(str, variables)))
        return f"it may use {names}; `default('')` covers what may be missing"
    return "correct what it does with its values"


def _find_line(error: BaseException) -> int:
    """Return the line of the template in which an error was raised; 0 when it is not known."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _TEMPLATE:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
