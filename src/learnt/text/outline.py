"""Find the headings and the list items of a Markdown text.

What is in a code block, in a comment of several lines or in the front matter is neither. But a block or a comment that
is not closed, or that contains one of our comments, is none, so that a stray mark cannot hide the rest of a file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from learnt.model import Value
from learnt.text.clean import fold
from learnt.text.entries import find_fence_end, find_id

_HEADING = re.compile(r"(#{1,6})(?=[ \t]+\S)")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
# A line that does not continue the paragraph above it although it is not indented.
_BEGINS_ANEW = re.compile(rf"{_ITEM.pattern}|#|<!--|```|~~~|---|\*\*\*|>|\|")
_FRONT_MATTER = "---"
_COMMENT, _COMMENT_END = "<!--", "-->"
_INLINE_CODE = re.compile(r"`[^`]*`")


class Heading(Value):
    """A heading, with the number of its line, from 0."""

    level: int
    title: str
    line: int


class Outline:
    """The structure of a text; all numbers of lines count from 0."""

    def __init__(self, text: str) -> None:
        self.lines: Sequence[str] = text.split("\n")
        """The lines, without their line feeds; a carriage return belongs to its line."""
        self.hidden = _find_hidden(self.lines)
        """The numbers of the lines that are code, front matter or part of a longer comment."""
        self.headings: Sequence[Heading] = tuple(
            heading
            for number, line in enumerate(self.lines)
            if line[:1] in ("#", "\ufeff") and number not in self.hidden and (heading := _read_heading(line, number))
        )
        highest = [heading for heading in self.headings if heading.level == 1]
        self.title = highest[0] if len(highest) == 1 else None
        """The heading of the whole text: the only one of the highest level."""

    def find_items(self, start: int, end: int) -> list[int]:
        """Return the numbers of the lines from `start` to `end` that begin an item which is not indented."""
        return [number for number in range(start, end) if number not in self.hidden and _ITEM.match(self.lines[number])]

    def find_end(self, start: int, end: int) -> int:
        """Return the number of the line after the item that begins at `start`, and not after `end`."""
        last = start
        for number in range(start + 1, end):
            line = self.lines[number]
            if not line.strip():
                continue
            is_continued = line[0].isspace() or (last == number - 1 and not _BEGINS_ANEW.match(line))
            if not is_continued:
                break
            last = number
        return last + 1

    def skip_blank_lines(self, end: int) -> int:
        """Return the number of the line after the last one before `end` that is not blank."""
        while end > 0 and not self.lines[end - 1].strip():
            end -= 1
        return end


def item_mark(line: str) -> str:
    """Return what stands before the text of a list item, such as `- `; empty if the line begins none."""
    match = _ITEM.match(line)
    return match[0] if match else ""


def _read_heading(line: str, number: int) -> Heading | None:
    line = line.removeprefix("\ufeff") if not number else line
    marks = _HEADING.match(line)
    if marks is None:
        return None
    title = line[marks.end() :].strip()
    without_marks = title.rstrip("#")
    is_closed = without_marks != title and without_marks[-1:].isspace()
    return Heading(level=marks.end(), title=fold(without_marks if is_closed else title), line=number)


def _find_hidden(lines: Sequence[str]) -> frozenset[int]:
    number = _skip_front_matter(lines)
    hidden = [*range(number)]
    unclosed: dict[str, int] = {}
    while number < len(lines):
        end = find_fence_end(lines, number, unclosed) or _find_comment_end(lines, number, unclosed)
        if end is not None:
            hidden += range(number, end + 1)
        number = (end or number) + 1
    return frozenset(hidden)


def _skip_front_matter(lines: Sequence[str]) -> int:
    if lines[0].removeprefix("\ufeff").rstrip() != _FRONT_MATTER:
        return 0
    ends = (number for number in range(1, len(lines)) if lines[number].rstrip() == _FRONT_MATTER)
    return next(ends, -1) + 1


def _find_comment_end(lines: Sequence[str], start: int, unclosed: dict[str, int]) -> int | None:
    """Return the line in which a comment of several lines ends that begins here; None if none begins here."""
    opened = _INLINE_CODE.sub("", lines[start]).rpartition(_COMMENT)
    if not opened[1] or _COMMENT_END in opened[2] or start < unclosed.get(_COMMENT, 0):
        return None
    number = start
    for number in range(start + 1, len(lines)):
        if find_id(lines[number]):
            break
        if _COMMENT_END in lines[number]:
            return number
    unclosed[_COMMENT] = number
    return None
