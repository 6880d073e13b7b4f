"""Find the first bracket or quote in a YAML text that is not closed, or closed twice.

This is no reader of YAML. It follows lists in brackets, objects in braces and texts in quotes, also over several lines,
and passes over comments, plain texts and blocks of text, in which brackets and quotes mean nothing. It does not see a
wrong indentation, a key without its colon, an unknown anchor, or whatever else a client may find fault with.
"""

from __future__ import annotations

import re

_DASHES = re.compile(r" *(?:-[ \t]+)*")
_KEY = re.compile(r"(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'|[^\s#\"'\[\]{},|>][^#]*?)[ \t]*:(?:[ \t]+|$)")
_MARKS = re.compile(r"(?:[&!]\S*(?:[ \t]+|$))*")
_QUOTED = {'"': re.compile(r'"(?:[^"\\]|\\.)*"', re.S), "'": re.compile(r"'(?:[^']|'')*'", re.S)}
_CLOSES = {"[": "]", "{": "}"}


def fault(text: str) -> str:
    """Return what is not balanced and in which line; nothing when all is, as far as can be seen."""
    at = 0
    while at < len(text):
        end = _line_end(text, at)
        line = text[at:end].rstrip("\r")
        dashes = _DASHES.match(line)
        start = dashes.end() if dashes else 0
        key = _KEY.match(line, start)
        marks = _MARKS.match(line, key.end() if key else start)
        start = marks.end() if marks else start
        first = line[start : start + 1]
        if first in ("", "#"):
            at = end + 1
        elif first in ("[", "{", '"', "'"):
            closed, wrong = _closed(text, at + start)
            if wrong:
                return f"{wrong[0]} in line {text.count(chr(10), 0, wrong[1]) + 1} {wrong[2]}"
            at = _line_end(text, closed) + 1
        else:
            # Deeper lines belong to the same text. Below a dash alone that is deeper than the dash.
            column = (dashes.end() if dashes else 0) if key else len(line) - len(line.lstrip(" "))
            at = _past_deeper(text, end + 1, column)
    return ""


def _closed(text: str, start: int) -> tuple[int, tuple[str, int, str] | None]:
    """Return where what begins here ends, or what is wrong, where, and how."""
    at, opened = start, [start] if text[start] in _CLOSES else []
    if not opened:
        quoted = _QUOTED[text[start]].match(text, start)
        if not quoted:
            return start, (f"the {text[start]}", start, "is not closed")
        return _rest(text, quoted.end())
    while opened:
        at += 1
        if at >= len(text):
            return at, (f"the {text[opened[-1]]}", opened[-1], "is not closed")
        sign = text[at]
        if sign in _CLOSES:
            opened.append(at)
        elif sign in _CLOSES.values():
            if _CLOSES[text[opened.pop()]] != sign:
                return at, (f"the {sign}", at, "closes what was not opened")
        elif sign == "#" and text[at - 1].isspace():
            at = _line_end(text, at) - 1
        elif sign in _QUOTED and text[start:at].rstrip()[-1:] in ("[", "{", ",", ":"):
            quoted = _QUOTED[sign].match(text, at)
            if not quoted:
                return at, (f"the {sign}", at, "is not closed")
            at = quoted.end() - 1
    return _rest(text, at + 1)


def _rest(text: str, at: int) -> tuple[int, tuple[str, int, str] | None]:
    """Return the place, or that something stands behind what was closed."""
    rest = text[at : _line_end(text, at)].strip()
    if rest and rest[0] not in "#:":
        return at, (f"`{rest[:20]}`", at, "stands behind what was closed")
    return at, None


def _past_deeper(text: str, at: int, column: int) -> int:
    while at < len(text):
        line = text[at : _line_end(text, at)]
        if line.strip() and len(line) - len(line.lstrip(" ")) <= column:
            return at
        at = _line_end(text, at) + 1
    return at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
