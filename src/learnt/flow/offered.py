"""What a template is offered: filters, and methods of plain values, each with a bound on what it makes and takes.

What is not named here is refused: what pads, formats with a width or takes ever longer on some texts. What is named
looks at sizes before it makes anything. That holds because no value gets large (`refuse_size`): whatever a template
makes is measured as if it were written out, so that a list that holds another one twice counts it twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jinja2 import Environment, TemplateError, pass_environment
from jinja2 import filters as theirs
from jinja2.exceptions import SecurityError
from jinja2.utils import Namespace
from markupsafe import Markup

MOST_OUTPUT = 1_000_000
MOST_STEPS = 100_000
MOST_BITS = 10_000
_DEEPEST = 100
_LONGEST_ARGUMENT = 1_000
_LONGEST_WRAPPED = 20_000
_MOST_DIGITS = 20
_MOST_INDENT = 1_000
FILTERS = tuple(
    "abs attr capitalize count d default dictsort e escape first float forceescape groupby indent int items join last "
    "length list lower map max min reject rejectattr replace reverse round safe select selectattr sort string title "
    "tojson trim truncate unique upper wordcount wordwrap".split()
)
_OF_TEXTS = (
    "capitalize casefold count endswith find index isalnum isalpha isascii isdecimal isdigit islower isnumeric isspace "
    "istitle isupper join lower lstrip partition removeprefix removesuffix replace rfind rindex rpartition rsplit "
    "rstrip split splitlines startswith strip swapcase title upper".split()
)
_METHODS: dict[type, Sequence[str]] = {
    Markup: _OF_TEXTS,
    str: _OF_TEXTS,
    bytes: (),
    bytearray: (),
    int: (),
    float: (),
    list: ("copy", "count", "index"),
    tuple: ("count", "index"),
    dict: ("copy", "get", "items", "keys", "values"),
}


class TooMuch(TemplateError):
    """A limit is reached."""


def is_offered(value: Any, name: str) -> bool:
    """Say whether a template may use this attribute of a plain value; what others have is not decided here."""
    for kind, names in _METHODS.items():
        if isinstance(value, kind) and hasattr(kind, name):
            return name in names
    return True


def refuse_length(length: int) -> None:
    """Raise when a text or a list would get too long."""
    if length > MOST_OUTPUT:
        raise TooMuch(f"it makes a text or a list of {length:,}")


def refuse_size(value: Any) -> None:
    """Raise when a value holds too much, counting what it holds more than once each time, or too deep within."""
    items, letters, level = 0, 0, [value]
    for _ in range(_DEEPEST):
        below: list[Any] = []
        for one in level:
            if isinstance(one, str | bytes):
                letters += len(one)
            elif isinstance(one, dict):
                below += (*one, *one.values())
            elif isinstance(one, list | tuple | set | frozenset):
                below += one
            elif isinstance(one, Namespace):
                raise SecurityError("a namespace is no value; use what it holds")
            elif isinstance(one, int) and one.bit_length() > MOST_BITS:
                raise TooMuch("a number gets too large")
            if items + len(below) > MOST_STEPS or letters > MOST_OUTPUT:
                raise TooMuch(
                    f"it handles a list of more than {MOST_STEPS:,}, or texts of more than {MOST_OUTPUT:,} characters"
                )
        if not below:
            return
        items += len(below)
        level = below
    raise TooMuch(f"lists are nested more than {_DEEPEST} deep")


def refuse_growth(operator: str, left: Any, right: Any) -> None:
    """Raise before an operator makes too much out of two values."""
    numbers = isinstance(left, int) and isinstance(right, int)
    if operator == "%" and isinstance(left, str | bytes):
        raise SecurityError("`%` formats no texts here; `~` puts them together")
    if operator == "**" and numbers and left.bit_length() * abs(right) > MOST_BITS:
        raise TooMuch("a number gets too large")
    if operator == "*" and numbers and left.bit_length() + right.bit_length() > MOST_BITS:
        raise TooMuch("a number gets too large")
    if operator == "*" and not numbers:
        for many, times in ((left, right), (right, left)):
            if isinstance(many, str | bytes | list | tuple) and isinstance(times, int):
                refuse_length(len(many) * times)
    if operator == "+" and isinstance(left, str | bytes | list | tuple) and isinstance(right, type(left)):
        refuse_length(len(left) + len(right))


def text_of(value: Any) -> str:
    """Return a value as a text."""
    refuse_size(value)
    return value if isinstance(value, str) else str(value)


def call_text(method: Callable[..., Any], text: str, *args: Any, **kwargs: Any) -> Any:
    """Return what a method of a text makes."""
    if method.__name__ == "join":
        return _join_texts(text, *args, **kwargs)
    if method.__name__ == "replace":
        return _replace(text, *args, **kwargs)
    for one in (*args, *kwargs.values()):
        _refuse_long(one)
    return method(*args, **kwargs)


def _join_texts(sign: str, items: Iterable[Any]) -> str:
    texts, length = [], 0
    for item in items:
        texts.append(text_of(item))
        length += len(texts[-1])
    refuse_length(length + len(texts) * len(sign))
    return sign.join(texts)


@pass_environment
def _join(environment: Environment, value: Iterable[Any], d: str = "", attribute: Any = None) -> str:
    items = value if attribute is None else map(theirs.make_attrgetter(environment, attribute), value)
    return _join_texts(text_of(d), items)


def _replace(value: Any, old: Any, new: Any, count: int | None = None) -> str:
    text, before, after = map(text_of, (value, old, new))
    times = text.count(before) if count is None or count < 0 else min(count, text.count(before))
    refuse_length(len(text) + times * len(after))
    return text.replace(before, after, -1 if count is None else count)


def _indent(value: Any, width: Any = 4, first: bool = False, blank: bool = False) -> str:
    text = text_of(value)
    refuse_length(max(1, len(text.splitlines())) * (len(width) if isinstance(width, str) else int(width)))
    return theirs.do_indent(text, width, first, blank)


def _int(value: Any, default: int = 0, base: int = 10) -> int:
    _refuse_long(value)
    return theirs.do_int(value, default, base)


def _list(value: Any) -> list[Any]:
    if isinstance(value, str) and len(value) > MOST_STEPS:
        raise TooMuch(f"it makes a list of {len(value):,}")
    return list(value)


def _round(value: Any, precision: int = 0, method: Any = "common") -> float:
    if abs(precision) > _MOST_DIGITS:
        raise TooMuch(f"`round` is asked for {precision:,} digits")
    return theirs.do_round(value, precision, method)


def _tojson(value: Any, indent: int | None = None) -> str:
    if indent is not None and int(indent) > _MOST_INDENT:
        raise TooMuch(f"`tojson` is asked for {indent:,} blanks")
    parts, length = [], 0
    for part in json.JSONEncoder(sort_keys=True, indent=indent).iterencode(value):
        parts.append(part)
        length += len(part)
        refuse_length(length)
    made = "".join(parts)
    for letter in "<>&'":
        made = made.replace(letter, f"\\u{ord(letter):04x}")
    return made


def _trim(value: Any, chars: str | None = None) -> str:
    _refuse_long(chars)
    return text_of(value).strip(chars)


@pass_environment
def _wordwrap(environment: Environment, value: Any, width: int = 79, *how: Any, **named: Any) -> str:
    text = text_of(value)
    if len(text) > _LONGEST_WRAPPED:
        raise TooMuch(f"`wordwrap` is given {len(text):,} characters; it takes {_LONGEST_WRAPPED:,}")
    for one in (*how, *named.values()):
        refuse_length(len(text) * len(one) if isinstance(one, str) else 0)
    return theirs.do_wordwrap(environment, text, width, *how, **named)


def _refuse_long(argument: Any) -> None:
    """Raise when a text to look for, to cut off or to read as a number is so long that this could take long."""
    for one in argument if isinstance(argument, tuple) else (argument,):
        if isinstance(one, str) and len(one) > _LONGEST_ARGUMENT:
            raise TooMuch(f"an argument has {len(one):,} characters; {_LONGEST_ARGUMENT:,} are enough")


BOUNDED: dict[str, Callable[..., Any]] = {
    "indent": _indent,
    "int": _int,
    "join": _join,
    "list": _list,
    "replace": _replace,
    "round": _round,
    "tojson": _tojson,
    "trim": _trim,
    "wordwrap": _wordwrap,
}
