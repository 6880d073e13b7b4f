"""Read the file after people have edited it. Any text can be read; text other than bullets is kept unchanged.

A bullet is a list item with everything that is indented below it, joined into one line. The last `<!-- learn_… -->` in
it contains its learning's id. Other text (paragraphs, tables, code) is loose: it belongs to its section and is written
back verbatim. Nothing inside a code fence or a comment of several lines is a bullet. But an unclosed fence, or a fence
around one of our bullets, is ignored, so that a stray fence cannot make learnings disappear.

The rendering is known only if all trailers agree. Different trailers are the result of merging two files, and neither
trailer says what the authors of both sides saw. Then no bullet is considered removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from learnt.learnings_file.lines import ID_COMMENT, drop_ids, section_of
from learnt.model import TEXT_LIMIT, Value, is_id
from learnt.text.clean import fold
from learnt.text.entries import FENCE, find_fence, find_fence_end

TITLE = "# Project Learnings"
GOAL_TITLE = "# Learnings: "
UPDATED = "Last updated:"

# This matches an id comment that has lost a character.
_DAMAGED_ID = re.compile(r"(?:<!-*\s*learn_?\w*\s*-*>?|<?!?-*\s*\blearn_\w*\s*-+>)$")
_MAX_COMMENT_LENGTH = 200
_TRAILER = re.compile(r"\s*<!--\s*learnt:([^<>]*)-->")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])(?:[ \t]+(.*))?$")
_BREAK = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_MARKER = re.compile(r"<{7}(?: .*)?$|={7}$|>{7}(?: .*)?$|\|{7}(?: .*)?$")
_CODE_OR_COMMENT = re.compile(r"(`++)[^`](?:.*?[^`])??\1(?!`)|<!--.*?-->")
_NO_PARAGRAPH = ("|", ">", "<!--")


class Bullet(Value):
    """A list item: its text, its learning and its section."""

    id: str = ""
    """The learning's id; empty if a person wrote the bullet."""
    text: str
    section: str = ""
    """The heading above it."""


class LooseText(Value):
    """Text other than bullets, verbatim."""

    section: str = ""
    text: str
    below: bool = False
    """Whether the text comes below the bullets of its section."""


class ParsedFile(Value):
    """The content of a file."""

    rendering: str = ""
    bullets: tuple[Bullet, ...] = ()
    loose: tuple[LooseText, ...] = ()
    sections: tuple[str, ...] = ()
    """The distinct headings, in order."""
    conflict: bool = False
    """Whether the file contains git's conflict markers."""


def parse(text: str) -> ParsedFile:
    """Return the content of a file."""
    return _read(split_lines(text))[0]


def bullets_by_line(lines: Sequence[str]) -> list[tuple[tuple[int, ...], Bullet]]:
    """Return the bullets of a file, each with its line numbers."""
    parsed, numbers = _read(lines)
    return list(zip(numbers, parsed.bullets, strict=True))


def _read(lines: Sequence[str]) -> tuple[ParsedFile, list[tuple[int, ...]]]:
    """Return the content of a file, and the line numbers of each bullet."""
    units = split_units(lines)
    reader = _FileReader()
    conflict = _has_conflict(lines, units)
    for number, unit in units:
        reader.number = number
        if len(unit) > 1:
            reader.read_block(unit)
        elif not (conflict and _MARKER.match(unit[0])):
            reader.read_line(unit[0])
    return reader.parsed(conflict=conflict), reader.bullet_numbers


def lines_for_prompt(text: str, is_given: Callable[[Bullet], bool | None]) -> list[tuple[str, str]]:
    """Return the lines of the file for a prompt, each with its learning's id, if any.

    `is_given` is called for every bullet with an id. If it returns True, the line ends with the id, so that an agent
    can mark the learning. If it returns False, the bullet is left out. If it returns None, only the bullet's text
    stays. Comments are left out, except in code.
    """
    lines = split_lines(text)
    bullet_lines: dict[int, tuple[tuple[str, str], ...]] = {}
    for numbers, bullet in bullets_by_line(lines):
        with_id = is_given(bullet) if bullet.id else None
        if with_id is not None:
            line = ((f"- {drop_comments(bullet.text)} ({bullet.id})", bullet.id),) if with_id else ()
            bullet_lines |= dict.fromkeys(numbers, ()) | {numbers[0]: line}
    kept: list[tuple[str, str]] = []
    for number, unit in split_units(lines):
        kept += bullet_lines[number] if number in bullet_lines else [(line, "") for line in _strip_comments(unit)]
    return kept


def _strip_comments(unit: Sequence[str]) -> list[str]:
    """Return a single line, or a block of several lines, without comments."""
    if len(unit) > 1 and find_fence(unit[0]):
        return list(unit)
    line = unit[-1].partition("-->")[2] if len(unit) > 1 else drop_comments(unit[0])
    return [line] if line.strip() or not unit[0].strip() else []


def close_blocks(text: str) -> str:
    """Return loose text with unclosed code and comments closed."""
    lines = split_lines(text)
    for number, unit in split_units(lines):
        end = find_fence(unit[0]) or "-->"
        if len(unit) == 1 and _find_block_end([*lines, end], number, {}) is not None:
            return f"{text}\n{end}"
    return text


def split_lines(text: str) -> list[str]:
    """Return a file's lines, whichever line endings it has."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def is_heading(line: str) -> bool:
    """Return whether a line, outside code and comments, begins a section."""
    return _HEADING.match(line) is not None


def is_trailer(line: str) -> bool:
    """Return whether a line names a rendering."""
    return _TRAILER.match(line) is not None


class _FileReader:
    """Reads a file line by line."""

    def __init__(self) -> None:
        self.number = 0
        """The number of the current line."""
        self.bullet_numbers: list[tuple[int, ...]] = []
        """The line numbers of each bullet."""
        self._section = ""
        self._sections: dict[str, None] = {}
        self._bullets: list[Bullet] = []
        self._with_bullets: set[str] = set()
        self._loose: dict[tuple[str, bool], list[str]] = {}
        self._trailers: set[str] = set()
        self._titled = False
        self._dated = False
        self._item: list[str] = []  # the lines of the current bullet
        self._item_numbers: list[int] = []
        self._depth = 0
        self._paragraph: list[str] = []
        self._after_blank = False

    def read_line(self, line: str) -> None:
        """Read one line."""
        trailer = _TRAILER.match(line)
        heading = _HEADING.match(line)
        if trailer:
            self._read_trailer(trailer, line[trailer.end() :])
        elif not line.strip():
            self._after_blank = True
            self._paragraph += [line] if self._paragraph else []
        elif heading and not self._continues(line):
            self._read_heading(heading)
        elif self._is_generated(line):
            self._dated = True
        else:
            self._read_text(line)

    def read_block(self, lines: Sequence[str]) -> None:
        """Read code or a comment of several lines as loose text."""
        self._end_item()
        self._paragraph += lines
        self._after_blank = False

    def parsed(self, *, conflict: bool) -> ParsedFile:
        """Return everything that was read."""
        self._end_section()
        loose = [
            LooseText(section=section, text="\n\n".join(dict.fromkeys(texts)), below=below)
            for (section, below), texts in self._loose.items()
        ]
        return ParsedFile(
            rendering=next(iter(self._trailers)) if len(self._trailers) == 1 else "",
            bullets=tuple(self._bullets),
            loose=tuple(loose),
            sections=tuple(self._sections),
            conflict=conflict,
        )

    def _read_trailer(self, trailer: re.Match[str], rest: str) -> None:
        # Text that was appended below the trailer does not belong to any section.
        self._end_section()
        self._section = ""
        if is_id("r", trailer[1].strip()):
            self._trailers.add(trailer[1].strip())
        if rest.strip():
            self.read_line(rest)

    def _read_heading(self, heading: re.Match[str]) -> None:
        self._end_section()
        line = heading[0].strip()
        is_title = len(heading[1]) == 1 and not (self._titled or self._sections or self._bullets)
        self._section = section_of(heading[2]) if (heading[2] or "").strip() else ""
        if is_title or line == TITLE or line.startswith(GOAL_TITLE):
            self._titled, self._section = True, ""
        elif self._section:
            self._sections[self._section] = None

    def _read_text(self, line: str) -> None:
        item = None if _BREAK.match(line) else _ITEM.match(line)
        if self._continues(line):
            self._item.append(line)
            self._item_numbers.append(self.number)
        elif item:
            self._end_item()
            self._end_paragraph()
            self._item, self._depth = [line], _depth(line)
            self._item_numbers = [self.number]
        else:
            self._end_item()
            self._paragraph.append(line)
        self._after_blank = False

    def _continues(self, line: str) -> bool:
        """Return whether a line belongs to the bullet above it."""
        if not self._item:
            return False
        if _depth(line) > self._depth + 1:
            return True
        is_paragraph = not (self._after_blank or _ITEM.match(line) or _HEADING.match(line) or _BREAK.match(line))
        return is_paragraph and not line.lstrip().startswith(_NO_PARAGRAPH)

    def _is_generated(self, line: str) -> bool:
        """Return whether a line is the file's date; if a person has changed the line, it must be the first text."""
        started = self._dated or self._bullets or self._item or self._sections or self._paragraph or self._loose
        return line.startswith(UPDATED) and (not started or line.rstrip().endswith(" recent tasks)"))

    def _end_section(self) -> None:
        self._end_item()
        self._end_paragraph()
        self._after_blank = False

    def _end_item(self) -> None:
        lines, self._item = self._item, []
        if not lines:
            return
        item = _ITEM.match(lines[0])
        raw = fold("\n".join([(item and item[2]) or "", *lines[1:]]))
        ids = ID_COMMENT.findall(raw)
        end = raw[-_MAX_COMMENT_LENGTH:]
        text = drop_ids(raw) if ids else fold(raw.removesuffix(end) + _DAMAGED_ID.sub("", end))
        if len(text) > TEXT_LIMIT:
            self._paragraph += lines  # too long for a learning, but it is still a person's text
        elif text:
            id = ids[-1] if ids and is_id("learn", ids[-1]) else ""
            self._bullets.append(Bullet(id=id, text=text, section=self._section))
            self._with_bullets.add(self._section)
            self.bullet_numbers.append(tuple(self._item_numbers))

    def _end_paragraph(self) -> None:
        text = "\n".join(self._paragraph).strip("\n")
        self._paragraph = []
        if text.strip():
            # An indented line is placed above the bullets, because below a bullet it would belong to that bullet.
            below = self._section in self._with_bullets and (_depth(text) < 2 or FENCE.match(text) is not None)
            # Unclosed code or comments are closed here, or they would swallow the text that comes next.
            self._loose.setdefault((self._section, below), []).append(close_blocks(text))


def _depth(line: str) -> int:
    indented = line.expandtabs(4)
    return len(indented) - len(indented.lstrip())


def split_units(lines: Sequence[str]) -> list[tuple[int, Sequence[str]]]:
    """Return the single lines and the blocks of code or comments, each with the number of its first line."""
    units: list[tuple[int, Sequence[str]]] = []
    unclosed: dict[str, int] = {}
    number = 0
    while number < len(lines):
        end = _find_block_end(lines, number, unclosed) or number
        units.append((number, lines[number : end + 1]))
        number = end + 1
    return units


def _find_block_end(lines: Sequence[str], start: int, unclosed: dict[str, int]) -> int | None:
    """Return the number of the last line of the block that starts here, or None if no block starts here."""
    if find_fence(lines[start]):
        return find_fence_end(lines, start, unclosed, _is_ours)
    return _find_comment_end(lines, start)


def _find_comment_end(lines: Sequence[str], start: int) -> int | None:
    if not lines[start].lstrip().startswith("<!--") or "-->" in lines[start]:
        return None
    for number in range(start + 1, len(lines)):
        before, end, _ = lines[number].partition("-->")
        if "<!--" in before or _is_ours(lines[number]):
            return None
        if end:
            return number
    return None


def _is_ours(line: str) -> bool:
    return "<!--" in line and (ID_COMMENT.search(line) or _TRAILER.match(line)) is not None


def _has_conflict(lines: Sequence[str], units: Sequence[tuple[int, Sequence[str]]]) -> bool:
    """Return whether the file has conflict markers in the right order, and not all within one block of code."""
    expected, first = iter("<=>"), 0
    character = next(expected)
    for number, line in enumerate(lines):
        if line.startswith(character * 7) and _MARKER.match(line):
            first = number if character == "<" else first
            character = next(expected, "")
        if not character:
            return not any(start < first and number < start + len(unit) - 1 for start, unit in units)
    return False


def drop_comments(line: str) -> str:
    """Return a line without comments; code stays as it is."""
    if "-->" not in line:
        return line
    # After the last `-->` no comment can be closed, so the rest of the line stays.
    stop = line.rfind("-->") + 3
    kept = _CODE_OR_COMMENT.sub(lambda match: match[0] if match[1] else "", ID_COMMENT.sub("", line[:stop]))
    return (kept.rstrip() if kept != line[:stop] else kept) + line[stop:]
