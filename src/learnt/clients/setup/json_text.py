"""Change a JSON text piece by piece, and leave every other byte of it alone.

A piece that was put in can be cut out again, and the text is what it was. New text follows the old one's ways:
indentation, line ends, one line or many, commas after the last of a list where they are used. Comments and such commas
are passed over where the dialect allows them; a text that its own client would not read is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

Path = Sequence[str | int]

# What a client reads beside plain JSON.
PLAIN, WITH_COMMENTS, WITH_COMMENTS_AND_COMMAS = range(3)
_SPACE = " \t\r\n"
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.S)
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*+"|//[^\r\n]*+|/\*.*?\*/', re.S)
_STRING_OR_LAST_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+"|,(?=[ \t\r\n]*+[]}])', re.S)
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"|[][{}]', re.S)
_SCALAR = re.compile(r"[^\s,\]}]++")
_COMMENT_ON_THE_LINE = re.compile(r"[ \t]*+(?://[^\r\n]*+|/\*[^\r\n]*?\*/)")
_ENOUGH = 10_000  # of a text, to see how it is written
_INDENTED = re.compile(r"\n([ \t]+)\S")


class Unfit(Exception):
    """Why a text cannot be changed as it should be, and what to do where adding ours by hand is no way out."""

    def __init__(self, reason: str, *, remedy: str = "") -> None:
        super().__init__(reason)
        self.remedy = remedy


class _Item(NamedTuple):
    key: str | int
    start: int
    value: int
    end: int
    comma: int  # where the comma after it is; -1 for none


def parse(text: str, dialect: int = PLAIN) -> Any:
    """Return the value of a text, or raise Unfit."""
    bare = _without_comments(text) if dialect else text
    if dialect == WITH_COMMENTS_AND_COMMAS:
        bare = _STRING_OR_LAST_COMMA.sub(lambda found: " " if found[0] == "," else found[0], bare)
    try:
        return json.loads(bare, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        if dialect != WITH_COMMENTS_AND_COMMAS and _is_read(text):
            more = "commas after the last of a list" if dialect else "comments or commas after the last of a list"
            raise Unfit(f"it holds {more}, which its client does not read") from None
        raise Unfit(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise Unfit(str(error)) from None


def _is_read(text: str) -> bool:
    """Say whether the most generous of clients would read a text."""
    try:
        parse(text, WITH_COMMENTS_AND_COMMAS)
    except Unfit:
        return False
    return True


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number in JSON")


def look(value: Any, path: Path) -> Any:
    """Return what is at the path in a value; None when nothing is."""
    for key in path:
        if isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int):
            value = value[key] if key < len(value) else None
        else:
            return None
    return value


def piece(text: str, path: Path) -> str | None:
    """Return the text of the value at the path; None when nothing is there."""
    span = _span(_without_comments(text), path)
    return text[slice(*span)] if span else None


def swap(text: str, path: Path, new: str) -> str:
    """Return the text with another text for the value at the path."""
    span = _span(_without_comments(text), path)
    return text if span is None else text[: span[0]] + new + text[span[1] :]


def put(text: str, path: Path, value: Any) -> str:
    """Return the text with the value at the path, in the place of another or as the last of its object."""
    bare = _without_comments(text)
    span = _span(bare, path)
    if span:
        return text[: span[0]] + _written(text, value, _indentation(text, span[0])) + text[span[1] :]
    known = max(length for length in range(len(path)) if _span(bare, path[:length]))
    for key in reversed(path[known + 1 :]):
        value = {key: value}
    return _insert(text, path[:known], value, key=str(path[known]))


def append(text: str, path: Path, value: Any) -> str:
    """Return the text with the value as the last of the list at the path, which is made when there is none."""
    if _span(_without_comments(text), path) is None:
        return put(text, path, [value])
    return _insert(text, path, value)


def cut(text: str, path: Path) -> str:
    """Return the text without what is at the path."""
    bare = _without_comments(text)
    holder = _span(bare, path[:-1])
    items = _items(bare, holder[0]) if holder else []
    found = [position for position, item in enumerate(items) if item.key == path[-1]]
    if not found:
        return text
    position = found[-1]
    item = items[position]
    start = _before_space(text, item.start)
    if item.comma >= 0:
        between = text[item.end : item.comma]
        return text[:start] + (between if between.strip() else "") + text[item.comma + 1 :]
    before = text[:start]
    if position:
        comma = items[position - 1].comma
        before = text[:comma] + text[comma + 1 : start]
    return before + text[item.end :]


def _insert(text: str, path: Path, value: Any, key: str | None = None) -> str:
    bare = _without_comments(text)
    span = _span(bare, path)
    opening = "[" if key is None else "{"
    if span is None or text[span[0]] != opening:
        where = ".".join(map(str, path)) or "the whole"
        raise Unfit(f"`{where}` is no {'list' if key is None else 'object'}")
    items = _items(bare, span[0])
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}:"
    return _insert_first(text, span, name, value) if not items else _insert_last(text, items, name, value)


def _insert_first(text: str, span: tuple[int, int], name: str, value: Any) -> str:
    inner = text[span[0] + 1 : _before_space(text, span[1] - 1)]
    if "\n" not in text.strip(_SPACE) and text[: span[0]].strip(_SPACE):
        return text[: span[0] + 1] + inner + _named(text, name, _in_one_line(text, value)) + text[span[1] - 1 :]
    outer = _indentation(text, span[0])
    line = _line_end(text)
    written = _named(text, name, _written(text, value, outer + _unit(text), many_lines=True))
    return f"{text[: span[0] + 1]}{inner}{line}{outer}{_unit(text)}{written}{line}{outer}{text[span[1] - 1 :]}"


def _insert_last(text: str, items: list[_Item], name: str, value: Any) -> str:
    last = items[-1]
    lead = text[_before_space(text, last.start) : last.start]
    place = last.comma + 1 if last.comma >= 0 else last.end
    if "\n" in lead or _COMMENT_ON_THE_LINE.match(text, place):
        while comment := _COMMENT_ON_THE_LINE.match(text, place):
            place = comment.end()
        indentation = lead.rpartition("\n")[2] if "\n" in lead else _indentation(text, last.start) + _unit(text)
        written = _written(text, value, indentation, many_lines=True)
        new = _line_end(text) + indentation + _named(text, name, written)
    else:
        space = lead if len(items) > 1 else (" " if _is_airy(text) else "")
        new = space + _named(text, name, _in_one_line(text, value))
    if last.comma >= 0:
        return text[:place] + new + "," + text[place:]
    return text[: last.end] + "," + text[last.end : place] + new + text[place:]


def _named(text: str, name: str, written: str) -> str:
    return f"{name}{' ' if _is_airy(text) else ''}{written}" if name else written


def _written(text: str, value: Any, indentation: str, *, many_lines: bool = False) -> str:
    if not many_lines and "\n" not in text.strip(_SPACE):
        return _in_one_line(text, value)
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text)).split("\n")
    return (_line_end(text) + indentation).join(lines)


def _in_one_line(text: str, value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": ") if _is_airy(text) else (",", ":"))


def _is_airy(text: str) -> bool:
    """Say whether a blank stands after the colons of a text."""
    bare = re.sub(_STRING, '""', text[:_ENOUGH])
    return '":' not in bare or re.search(r'":\s', bare) is not None


def _unit(text: str) -> str:
    """Return by how much the text is indented for each level; two blanks where it has no level."""
    found = _INDENTED.search(_without_comments(text))
    return found[1] if found else "  "


def _line_end(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _indentation(text: str, position: int) -> str:
    """Return the blanks that the line of a position starts with."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


@lru_cache(maxsize=4)
def _comments(text: str) -> tuple[tuple[int, int], ...]:
    """Return where the comments of a text begin and end."""
    if "//" not in text and "/*" not in text:
        return ()
    return tuple(found.span() for found in _STRING_OR_COMMENT.finditer(text) if found[0][0] == "/")


def _without_comments(text: str) -> str:
    """Return the text with blanks for its comments: every position stays what it was."""
    pieces, position = [], 0
    for start, end in _comments(text):
        pieces += [text[position:start], re.sub(r"[^\r\n]", " ", text[start:end])]
        position = end
    return "".join([*pieces, text[position:]])


def _before_space(text: str, position: int) -> int:
    """Return where the blanks before a position begin; those of a comment are part of it."""
    start = len(text[:position].rstrip(_SPACE))
    return max([start, *(end for _, end in _comments(text) if end <= position)])


def _span(bare: str, path: Path) -> tuple[int, int] | None:
    start = len(bare) - len(bare.lstrip(_SPACE))
    end = _end(bare, start)
    for key in path:
        # Of several with one name, the last counts, as everywhere.
        found = [item for item in _items(bare, start) if item.key == key]
        if not found:
            return None
        start, end = found[-1].value, found[-1].end
    return start, end


def _items(bare: str, start: int) -> list[_Item]:
    """Return what is in the object or list that starts here; nothing for another value."""
    opening = bare[start : start + 1]
    if opening not in ("{", "["):
        return []
    items: list[_Item] = []
    position = _past_space(bare, start + 1)
    while bare[position] not in "]}":
        first, key = position, len(items)
        name: str | int = key
        if opening == "{":
            position = _end(bare, first)
            name = json.loads(bare[first:position], strict=False)
            position = _past_space(bare, _past_space(bare, position) + 1)
        end = _end(bare, position)
        after = _past_space(bare, end)
        comma = after if bare[after] == "," else -1
        items.append(_Item(name, first, position, end, comma))
        position = _past_space(bare, after + 1) if comma >= 0 else after
    return items


def _past_space(bare: str, position: int) -> int:
    while bare[position] in _SPACE:
        position += 1
    return position


def _end(bare: str, start: int) -> int:
    """Return where the value that starts here ends."""
    if bare[start] == '"':
        return _STRING.match(bare, start).end()  # type: ignore[union-attr]  # the text was read before
    if bare[start] not in "{[":
        return _SCALAR.match(bare, start).end()  # type: ignore[union-attr]
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(bare, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(found[0], 0)
        if depth == 0:
            return found.end()
    raise Unfit("a bracket is not closed")
