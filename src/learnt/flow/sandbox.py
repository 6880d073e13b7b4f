"""Fill in a Jinja2 template that need not be trusted: it reaches nothing but what it is given, and it ends.

Jinja2's sandbox keeps a template away from Python's inner parts and bounds `range`. What it leaves open is bounded
here: how many steps a template takes (rounds of loops, calls, filters, tests), how large a value gets, how much is made
on the way and in the end, and how long it takes. The clock is looked at between steps, and no step is long, because
values are small and only what `offered` names can be done with them. There is no loader: a template includes no others.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import BuiltinMethodType, MethodType
from typing import Any

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, Undefined, UndefinedError, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer
from markupsafe import Markup

from learnt.errors import WrongRequest
from learnt.flow.offered import (
    BOUNDED,
    FILTERS,
    MOST_OUTPUT,
    MOST_STEPS,
    TooMuch,
    call_text,
    is_offered,
    refuse_growth,
    refuse_length,
    refuse_size,
    text_of,
)

_MOST_MADE = 4 * MOST_OUTPUT
# How much of that an entry of a list counts as: it takes more room than a character.
_ENTRY = 4
_MOST_PARTS = 20_000
_MOST_SECONDS = 5.0
_TEMPLATE = "<template>"
_JINJAS_OWN = ("_loop_vars", "_block_vars")
# What a template can do wrong at a moment when only Python notices.
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


def fill_in(template: str, variables: Mapping[str, Any]) -> str:
    """Return the template with its variables filled in; raise WrongRequest, with the line, on what it may not do."""
    sandbox = _Sandbox()
    parts: list[str] = []
    length = 0
    try:
        for part in sandbox.from_string(template).generate(variables):
            length += len(part)
            if length > MOST_OUTPUT:
                raise TooMuch(f"it makes more than {MOST_OUTPUT:,} characters")
            parts.append(part)
    except _MISTAKES as error:
        raise _told(error, variables) from None
    return "".join(parts)


class _Sandbox(ImmutableSandboxedEnvironment):
    """The environment of one rendering, which counts what that does."""

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "**", "%"))

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined, keep_trailing_newline=True, finalize=_finalized, cache_size=0)
        self.filters = {name: self._bounded(BOUNDED.get(name) or self.filters[name]) for name in FILTERS}
        self.tests = {name: self._bounded(test) for name, test in dict[str, Any](self.tests).items()}
        del self.globals["lipsum"]
        self._steps = self._made = 0
        self._until = time.monotonic() + _MOST_SECONDS

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree: nodes.Template = _Counting().visit(super()._parse(source, name, filename))
        return tree

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return is_offered(obj, attr) and super().is_safe_attribute(obj, attr, value)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        if is_offered(obj, attribute):
            return super().unsafe_undefined(obj, attribute)
        return self.undefined(f"`{attribute}` is not offered", name=attribute, exc=SecurityError)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        return None  # it is not offered

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        __self.step()
        its = getattr(__obj, "__self__", None) if isinstance(__obj, MethodType | BuiltinMethodType) else None
        if its is not __self:
            given = [value for name, value in kwargs.items() if name not in _JINJAS_OWN]
            refuse_size((args, given))  # a macro is given them as one value
        if isinstance(its, str):
            __obj = functools.partial(call_text, __obj, its)
        return __self.made(super().call(__context, __obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        self.step()
        for one in (left, right):
            refuse_size(one)
        refuse_growth(operator, left, right)
        return self.made(super().call_binop(context, operator, left, right))

    def step(self) -> None:
        """Count a step."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise TooMuch(f"it takes more than {MOST_STEPS:,} steps")
        if time.monotonic() > self._until:
            raise TooMuch(f"it takes longer than {_MOST_SECONDS:g} seconds")

    def made(self, value: Any) -> Any:
        """Count what was made, as far as it is long; return it."""
        if isinstance(value, str | bytes | list | tuple | dict):
            self._made += len(value) * (1 if isinstance(value, str | bytes) else _ENTRY)
            if self._made > _MOST_MADE:
                raise TooMuch(f"it makes more than {_MOST_MADE:,} characters on its way")
        if not isinstance(value, Namespace):
            refuse_size(value)
        return str(value) if isinstance(value, Markup) else value  # its own methods are not bounded

    def counted(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the rounds of a loop, counting them."""
        for item in items:
            self.step()
            yield item

    def joined(self, *parts: Any) -> str:
        """Return what `~` makes."""
        texts = [text_of(part) for part in parts]
        refuse_length(sum(map(len, texts)))
        return str(self.made("".join(texts)))

    def printed(self, value: Any) -> str:
        """Return a value as a text."""
        return str(self.made(text_of(value)))

    def _bounded(self, act: Callable[..., Any]) -> Callable[..., Any]:
        """Return a filter or a test that counts what it does; how it is given its context stays as it was."""

        @functools.wraps(act)
        def bounded(*args: Any, **kwargs: Any) -> Any:
            self.step()
            refuse_size((args, kwargs))
            result = act(*args, **kwargs)
            return self.counted(result) if isinstance(result, Iterator) else self.made(result)

        return bounded


class _Counting(NodeTransformer):
    """Lets the sandbox count loops, `~` and plain text, and measure what is made without a call."""

    def __init__(self) -> None:
        self._parts = 0

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise TooMuch(f"it has more than {_MOST_PARTS:,} parts")
        return super().visit(node, *args, **kwargs)

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802
        self.generic_visit(node)
        node.iter = _asked_of_sandbox("counted", [node.iter], node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Call:  # noqa: N802
        self.generic_visit(node)
        return _asked_of_sandbox("joined", node.nodes, node.lineno)

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Call:  # noqa: N802
        return _asked_of_sandbox("printed", [nodes.Const(node.data, lineno=node.lineno)], node.lineno)

    def visit_List(self, node: nodes.List) -> nodes.Call:  # noqa: N802
        self.generic_visit(node)
        return _asked_of_sandbox("made", [node], node.lineno)

    def visit_Dict(self, node: nodes.Dict) -> nodes.Call:  # noqa: N802
        self.generic_visit(node)
        return _asked_of_sandbox("made", [node], node.lineno)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Expr:  # noqa: N802
        self.generic_visit(node)
        return node if node.ctx == "store" else _asked_of_sandbox("made", [node], node.lineno)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:  # noqa: N802
        self.generic_visit(node)
        return _asked_of_sandbox("made", [node], node.lineno) if isinstance(node.arg, nodes.Slice) else node


def _asked_of_sandbox(name: str, args: list[Any], lineno: int) -> nodes.Call:
    return nodes.Call(nodes.EnvironmentAttribute(name, lineno=lineno), args, [], None, None, lineno=lineno)


@pass_context
def _finalized(context: Context, value: Any) -> str:
    sandbox = context.environment
    assert isinstance(sandbox, _Sandbox)  # noqa: S101 - it is the only one that has this
    sandbox.step()
    return sandbox.printed(value)


def _told(error: BaseException, variables: Mapping[str, Any]) -> WrongRequest:
    """Return a mistake of the template with its line, and what to do about it."""
    line = error.lineno if isinstance(error, TemplateSyntaxError) else _line_of(error)
    said = " ".join(str(error).split()) or type(error).__name__
    where = f"line {line} of the template" if line else "the template"
    if isinstance(error, TooMuch | MemoryError | RecursionError | OverflowError):
        hint = "make it simpler: a prompt is read by a model, and has to be short"
    elif "No filter named" in said:
        hint = f"these are offered: {', '.join(FILTERS)}"
    elif "no loader" in said:
        hint = "a template includes no others; give their text in `context`"
    elif isinstance(error, SecurityError):
        hint = "a template may only use what it is given"
    elif isinstance(error, TemplateSyntaxError):
        hint = "templates are written in Jinja2; mend that line"
    elif not isinstance(error, UndefinedError):
        hint = "mend what it does with its values"
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
