"""Fill in a Jinja2 template that need not be trusted: it reaches nothing but what it is given, and it ends.

Jinja2's sandbox keeps a template away from Python's inner parts and bounds `range`. What it leaves open is bounded
here: how many steps a template takes (rounds of loops, calls, filters), how much text it makes on the way and in the
end, how long it takes, and the few operations that make much out of little at once. There is no loader: a template
includes no others.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import BuiltinMethodType, MethodType
from typing import Any

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from learnt.errors import WrongRequest

MOST_OUTPUT = 1_000_000
_MOST_MADE = 4 * MOST_OUTPUT
_MOST_STEPS = 100_000
_MOST_SECONDS = 5.0
_MOST_BITS = 10_000
_TEMPLATE = "<template>"
# What pads or repeats, and what formats with a width: a few letters would make gigabytes.
_NO_FILTERS = ("batch", "center", "format", "pprint", "slice", "urlize", "wordwrap", "xmlattr")
_NO_METHODS = ("center", "expandtabs", "format", "format_map", "ljust", "rjust", "to_bytes", "translate", "zfill")
# What a template can do wrong at a moment when only Python notices.
_MISTAKES = (
    TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


def fill_in(template: str, variables: Mapping[str, Any]) -> str:
    """Return the template with its variables filled in; raise WrongRequest, with the line, on what it may not do."""
    sandbox = _Sandbox()
    parts: list[str] = []
    length = 0
    try:
        for part in sandbox.from_string(template).generate(variables):
            length += len(part)
            if length > MOST_OUTPUT:
                raise _TooMuch(f"it makes more than {MOST_OUTPUT:,} characters")
            parts.append(part)
    except _MISTAKES as error:
        raise _told(error, variables) from None
    return "".join(parts)


class _TooMuch(TemplateError):
    """A limit is reached."""


class _Sandbox(ImmutableSandboxedEnvironment):
    """The environment of one rendering, which counts what that does."""

    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined, keep_trailing_newline=True, finalize=_finalized, cache_size=0)
        kept = {name: act for name, act in self.filters.items() if name not in _NO_FILTERS}
        self.filters = {name: self._bounded(act, name) for name, act in kept.items()}
        del self.globals["lipsum"]
        self._steps = self._made = 0
        self._until = time.monotonic() + _MOST_SECONDS

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree: nodes.Template = _Counting().visit(super()._parse(source, name, filename))
        return tree

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return not _makes_much(obj, attr) and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        if isinstance(value, MethodType | BuiltinMethodType) and _makes_much(value.__self__, value.__name__):
            raise SecurityError(f"`{value.__name__}` is not offered")
        return None

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        __self.step()
        if isinstance(__obj, BuiltinMethodType) and isinstance(__obj.__self__, str | bytes):
            __self.foresee(__obj.__name__, __obj.__self__, *args)
        return __self.made(super().call(__context, __obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        self.step()
        _refuse_growth(operator, left, right)
        return self.made(super().call_binop(context, operator, left, right))

    def step(self) -> None:
        """Count a step."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise _TooMuch(f"it takes more than {_MOST_STEPS:,} steps")
        if time.monotonic() > self._until:
            raise _TooMuch(f"it takes longer than {_MOST_SECONDS:g} seconds")

    def made(self, value: Any) -> Any:
        """Count what was made, as far as it is long; return it."""
        if isinstance(value, str | bytes | list | tuple):
            self._made += len(value)
            if self._made > _MOST_MADE:
                raise _TooMuch(f"it makes more than {_MOST_MADE:,} characters on its way")
        return value

    def foresee(self, name: str, value: Any, *args: Any) -> None:
        """Raise before an operation makes too much at once."""
        first = args[0] if args else ""
        if name == "replace" and isinstance(value, str) and len(args) > 1:
            _refuse_length(len(value) + value.count(str(first)) * len(str(args[1])))
        elif name == "join":
            items, sign = (first, value) if isinstance(value, str) else (value, first)
            _refuse_length(sum(len(one) + len(str(sign)) for one in items if isinstance(one, str)))
        elif name == "indent":
            width = len(first) if isinstance(first, str) else int(first)
            _refuse_length((str(value).count("\n") + 1) * width)
        elif name in ("tojson", "truncate", "round") and isinstance(first, int) and first > _MOST_BITS:
            raise _TooMuch(f"`{name}` is asked for {first:,}")

    def counted(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the rounds of a loop, counting them."""
        for item in items:
            self.step()
            yield item

    def joined(self, *parts: Any) -> str:
        """Return what `~` makes."""
        texts = [self.printed(part) for part in parts]
        _refuse_length(sum(map(len, texts)))
        return "".join(texts)

    def printed(self, value: Any) -> str:
        """Return a value as a text."""
        if isinstance(value, list | tuple | dict | set | frozenset):
            _refuse_size(value)
        return value if isinstance(value, str) else str(value)

    def _bounded(self, act: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Return a filter that counts what it does; how it is given its context stays as it was."""
        skipped = 1 if hasattr(act, "jinja_pass_arg") else 0

        @functools.wraps(act)
        def bounded(*args: Any, **kwargs: Any) -> Any:
            self.step()
            value, *rest = args[skipped:]
            if name == "join" and not isinstance(value, str | list | tuple | dict):
                value = [self.made(one) for one in value]
            if isinstance(value, list | tuple | dict | set | frozenset):
                _refuse_size(value)
            self.foresee(name, value, *rest, *kwargs.values())
            return self.made(act(*args[:skipped], value, *rest, **kwargs))

        return bounded


class _Counting(NodeTransformer):
    """Lets loops, `~` and plain text be counted, too."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802
        self.generic_visit(node)
        node.iter = _asked_of_sandbox("counted", [node.iter], node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Call:  # noqa: N802
        self.generic_visit(node)
        return _asked_of_sandbox("joined", node.nodes, node.lineno)

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Call:  # noqa: N802
        return _asked_of_sandbox("printed", [nodes.Const(node.data, lineno=node.lineno)], node.lineno)


def _asked_of_sandbox(name: str, args: list[Any], lineno: int) -> nodes.Call:
    return nodes.Call(nodes.EnvironmentAttribute(name, lineno=lineno), args, [], None, None, lineno=lineno)


@pass_context
def _finalized(context: Context, value: Any) -> str:
    sandbox = context.environment
    assert isinstance(sandbox, _Sandbox)  # noqa: S101 - it is the only one that has this
    return str(sandbox.made(sandbox.printed(value)))


def _makes_much(obj: Any, name: str) -> bool:
    return isinstance(obj, str | bytes | bytearray | int) and name in _NO_METHODS


def _refuse_growth(operator: str, left: Any, right: Any) -> None:
    numbers = isinstance(left, int) and isinstance(right, int)
    if operator == "%" and isinstance(left, str | bytes):
        raise SecurityError("`%` formats no texts here; `~` puts them together")
    if operator == "**" and numbers and left.bit_length() * abs(right) > _MOST_BITS:
        raise _TooMuch("a number gets too large")
    if operator == "*" and numbers and left.bit_length() + right.bit_length() > _MOST_BITS:
        raise _TooMuch("a number gets too large")
    if operator == "*" and not numbers:
        for many, times in ((left, right), (right, left)):
            if isinstance(many, str | bytes | list | tuple) and isinstance(times, int):
                _refuse_length(len(many) * times)
    if operator == "+" and isinstance(left, str | bytes | list | tuple) and isinstance(right, type(left)):
        _refuse_length(len(left) + len(right))


def _refuse_length(length: int) -> None:
    if length > MOST_OUTPUT:
        raise _TooMuch(f"it makes a text or a list of {length:,}")


def _refuse_size(value: Any) -> None:
    """Raise when a list holds too much, counting what it holds more than once each time."""
    left, waiting = _MOST_STEPS, [value]
    while waiting:
        one = waiting.pop()
        left -= 1
        if left < 0:
            raise _TooMuch(f"it handles a list of more than {_MOST_STEPS:,}")
        if isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list | tuple | set | frozenset):
            waiting.extend(one)


def _told(error: BaseException, variables: Mapping[str, Any]) -> WrongRequest:
    """Return a mistake of the template with its line, and what to do about it."""
    line = error.lineno if isinstance(error, TemplateSyntaxError) else _line_of(error)
    said = " ".join(str(error).split()) or type(error).__name__
    where = f"line {line} of the template" if line else "the template"
    if isinstance(error, _TooMuch | MemoryError | RecursionError | OverflowError):
        hint = "make it simpler: a prompt is read by a model, and has to be short"
    elif "no loader" in said:
        hint = "a template includes no others; give their text in `context`"
    elif isinstance(error, SecurityError):
        hint = "a template may only use what it is given"
    elif isinstance(error, TemplateSyntaxError):
        hint = "templates are written in Jinja2; mend that line"
    else:
        hint = f"it may use {', '.join(sorted(map(str, variables)))}; `default('')` stands in for what may be missing"
    return WrongRequest(f"{where}: {said}"[:500], hint=hint[:500])


def _line_of(error: BaseException) -> int:
    """Return the line of the template in which an error came up; 0 when it is not known."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _TEMPLATE:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
