"""Read the file as people leave it. No text is an error; what is no bullet is kept as it stands.

A bullet is a list item with all that is indented below it, on one line. Its last `<!-- learn_… -->` names its learning,
wherever it stands in the item. Text beside bullets (paragraphs, tables, code) is loose: it belongs to its section and
is written back verbatim. Inside a code fence or a comment of several lines nothing is a bullet; but a fence that nobody
closes, and one with a bullet of ours inside, is none, so that a stray one cannot make learnings disappear.

The rendering is named only if all trailers agree. Two that differ come from a merge of texts, and neither tells what
the people who wrote the two sides had before them: then nothing may be taken for removed.
"""

from __future__ import annotations

import re

from learnt.learnings_file.lines import ID_COMMENT, category_of, heading_of, without_ids
from learnt.model import TEXT_LIMIT, Value, is_id
from learnt.text.clean import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TITLE = "# Project Learnings"
GOAL_TITLE = "# Learnings: "
UPDATED = "Last updated:"

# What is left of such a comment when a sign of it was lost.
_DAMAGED_ID = re.compile(r"(?:<!-*\s*learn_?\w*\s*-*>?|<?!?-*\s*\blearn_\w*\s*-+>)$")
_LONGEST_COMMENT = 200
_TRAILER = re.compile(r"\s*<!--\s*learnt:([^<>]*)-->")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])(?:[ \t]+(.*))?$")
_BREAK = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)$")
_MARKER = re.compile(r"<{7}(?: .*)?$|={7}$|>{7}(?: .*)?$|\|{7}(?: .*)?$")
_CODE_OR_COMMENT = re.compile(r"(`++)[^`](?:.*?[^`])??\1(?!`)|<!--.*?-->")
_NO_PARAGRAPH = ("|", ">", "<!--")


class Bullet(Value):
    """A list item: what it says, whose it is, and where it stands."""

    id: str = ""
    """The learning that it shows; empty where a person wrote it."""
    text: str
    section: str = ""
    """The heading above it."""


class Loose(Value):
    """Text of people that is no bullet, verbatim."""

    section: str = ""
    text: str
    below: bool = False
    """Whether it stands below bullets of its section."""


class Parsed(Value):
    """What a file says."""

    rendering: str = ""
    bullets: tuple[Bullet, ...] = ()
    loose: tuple[Loose, ...] = ()
    sections: tuple[str, ...] = ()
    """The headings, each once, in their order."""
    conflict: bool = False
    """Whether git left its markers in it."""


def parse(text: str) -> Parsed:
    """Return what a file says."""
    reading, conflict = _read(split_lines(text))
    return reading.parsed(conflict=conflict)


def bullets_by_line(lines: Sequence[str]) -> list[tuple[tuple[int, ...], Bullet]]:
    """Return the bullets of a file, each with the places of its lines."""
    reading, conflict = _read(lines)
    bullets = reading.parsed(conflict=conflict).bullets  # ends the last one
    return list(zip(reading.places, bullets, strict=True))


def _read(lines: Sequence[str]) -> tuple[_Reading, bool]:
    """Return what was read of all lines, and whether git left its markers in them."""
    blocks = _blocks(lines)
    reading = _Reading()
    conflict = _has_conflict(lines, blocks)
    place = 0
    while place < len(lines):
        end = blocks.get(place)
        reading.place = place
        if end is not None:
            reading.take_block(lines[place : end + 1])
        elif not (conflict and _MARKER.match(lines[place])):
            reading.take(lines[place])
        place = place + 1 if end is None else end + 1
    return reading, conflict


def for_prompt(text: str, is_given: Callable[[Bullet], bool | None]) -> list[tuple[str, str]]:
    """Return the lines of the file that a prompt carries, each with the id of the learning that it gives, if it does.

    `is_given` is asked of every bullet with an id: one that is given ends with its id, so that an agent can say whether
    it helped; one that is not (False) is left out; of None the text alone stays. Comments are left out, but for those
    in code, which are none.
    """
    lines = split_lines(text)
    blocks = _blocks(lines)
    of_bullets: dict[int, tuple[tuple[str, str], ...]] = {}
    for places, bullet in bullets_by_line(lines):
        given = is_given(bullet) if bullet.id else None
        if given is not None:
            said = ((f"- {_without_comments(bullet.text)} ({bullet.id})", bullet.id),) if given else ()
            of_bullets |= dict.fromkeys(places, ()) | {places[0]: said}
    kept: list[tuple[str, str]] = []
    place = 0
    while place < len(lines):
        end = blocks.get(place, place)
        if place in of_bullets:
            kept += of_bullets[place]
        else:
            kept += [(line, "") for line in _without_comment(lines[place : end + 1], is_block=place in blocks)]
        place = end + 1
    return kept


def _without_comment(lines: Sequence[str], *, is_block: bool) -> list[str]:
    """Return what is left of a line, or of a block of several, without comments."""
    if is_block and _fence_at(lines[0]):
        return list(lines)
    line = lines[-1].partition("-->")[2] if is_block else _without_comments(lines[0])
    return [line] if line.strip() or not lines[0].strip() else []


def closed(text: str) -> str:
    """Return loose text with the code or comment closed that nobody closed: it must not swallow what comes below."""
    lines = split_lines(text)
    blocks = _blocks(lines)
    place = 0
    while place < len(lines):
        end = _fence_at(lines[place]) or "-->"
        if place not in blocks and _block_end([*lines, end], place, {}) is not None:
            return f"{text}\n{end}"
        place = blocks.get(place, place) + 1
    return text


def split_lines(text: str) -> list[str]:
    """Return the lines of a file from any system."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")


class _Reading:
    """What was read so far."""

    def __init__(self) -> None:
        self.place = 0
        """The line that is being read."""
        self.places: list[tuple[int, ...]] = []
        """The lines of each bullet."""
        self._section = ""
        self._sections: dict[str, None] = {}
        self._bullets: list[Bullet] = []
        self._with_bullets: set[str] = set()
        self._loose: dict[tuple[str, bool], list[str]] = {}
        self._trailers: set[str] = set()
        self._titled = False
        self._dated = False
        self._item: list[str] = []  # the lines of the bullet that is being read
        self._item_places: list[int] = []
        self._depth = 0
        self._paragraph: list[str] = []
        self._after_blank = False

    def take(self, line: str) -> None:
        """Read one line."""
        trailer = _TRAILER.match(line)
        heading = _HEADING.match(line)
        if trailer:
            self._take_trailer(trailer, line[trailer.end() :])
        elif not line.strip():
            self._after_blank = True
            self._paragraph += [line] if self._paragraph else []
        elif heading and not self._continues(line):
            self._take_heading(heading)
        elif self._is_generated(line):
            self._dated = True
        else:
            self._take_text(line)

    def take_block(self, lines: Sequence[str]) -> None:
        """Read code or a comment of several lines: loose text, whatever it holds."""
        self._end_item()
        self._paragraph += lines
        self._after_blank = False

    def parsed(self, *, conflict: bool) -> Parsed:
        """Return all that was read."""
        self._end_section()
        loose = [
            Loose(section=section, text="\n\n".join(dict.fromkeys(texts)), below=below)
            for (section, below), texts in self._loose.items()
        ]
        return Parsed(
            rendering=next(iter(self._trailers)) if len(self._trailers) == 1 else "",
            bullets=tuple(self._bullets),
            loose=tuple(loose),
            sections=tuple(self._sections),
            conflict=conflict,
        )

    def _take_trailer(self, trailer: re.Match[str], rest: str) -> None:
        # What somebody appended below the last line belongs to no section.
        self._end_section()
        self._section = ""
        if is_id("r", trailer[1].strip()):
            self._trailers.add(trailer[1].strip())
        if rest.strip():
            self.take(rest)

    def _take_heading(self, heading: re.Match[str]) -> None:
        self._end_section()
        line = heading[0].strip()
        first = len(heading[1]) == 1 and not (self._titled or self._sections or self._bullets)
        self._section = _section(heading[2] or "")
        if first or line == TITLE or line.startswith(GOAL_TITLE):
            self._titled, self._section = True, ""
        elif self._section:
            self._sections[self._section] = None

    def _take_text(self, line: str) -> None:
        item = None if _BREAK.match(line) else _ITEM.match(line)
        if self._continues(line):
            self._item.append(line)
            self._item_places.append(self.place)
        elif item:
            self._end_item()
            self._end_paragraph()
            self._item, self._depth = [line], _depth(line)
            self._item_places = [self.place]
        else:
            self._end_item()
            self._paragraph.append(line)
        self._after_blank = False

    def _continues(self, line: str) -> bool:
        """Say whether a line belongs to the bullet above it."""
        if not self._item:
            return False
        if _depth(line) > self._depth + 1:
            return True
        lazy = not (self._after_blank or _ITEM.match(line) or _HEADING.match(line) or _BREAK.match(line))
        return lazy and not line.lstrip().startswith(_NO_PARAGRAPH)

    def _is_generated(self, line: str) -> bool:
        """Say whether a line is the date of the file, also one that a person changed: then it stands first."""
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
        found = _ITEM.match(lines[0])
        raw = fold("\n".join([(found and found[2]) or "", *lines[1:]]))
        ids = ID_COMMENT.findall(raw)
        text = without_ids(raw) if ids else _without_damaged_id(raw)
        if len(text) > TEXT_LIMIT:
            self._paragraph += lines  # too long for a learning, but still a person's text
        elif text:
            id = ids[-1] if ids and is_id("learn", ids[-1]) else ""
            self._bullets.append(Bullet(id=id, text=text, section=self._section))
            self._with_bullets.add(self._section)
            self.places.append(tuple(self._item_places))

    def _end_paragraph(self) -> None:
        text = "\n".join(self._paragraph).strip("\n")
        self._paragraph = []
        if text.strip():
            # Written below a bullet, an indented line would belong to it.
            below = self._section in self._with_bullets and (_depth(text) < 2 or _FENCE.match(text) is not None)
            self._loose.setdefault((self._section, below), []).append(text)


def _section(heading: str) -> str:
    """Return a heading as it will be written: two ways to write the same category are one section."""
    return heading_of(category_of(heading)) if heading.strip() else ""


def _without_damaged_id(text: str) -> str:
    return fold(text[:-_LONGEST_COMMENT] + _DAMAGED_ID.sub("", text[-_LONGEST_COMMENT:]))


def _depth(line: str) -> int:
    indented = line.expandtabs(4)
    return len(indented) - len(indented.lstrip())


def _blocks(lines: Sequence[str]) -> dict[int, int]:
    """Return where code and comments of several lines start, each with its last line."""
    found: dict[int, int] = {}
    unclosed: dict[str, tuple[int, int]] = {}
    place = 0
    while place < len(lines):
        end = _block_end(lines, place, unclosed)
        if end is not None:
            found[place] = end
        place = (place if end is None else end) + 1
    return found


def _fence_at(line: str) -> str:
    """Return the signs of the code fence that a line opens, if it opens one."""
    fence = _FENCE.match(line)
    return fence[1] if fence and (fence[1][0] == "~" or "`" not in fence[2]) else ""


def _block_end(lines: Sequence[str], start: int, unclosed: dict[str, tuple[int, int]]) -> int | None:
    """Return the last line of the block that starts here.

    `unclosed` remembers by sign up to which line fences of at least how many signs are never closed.
    """
    signs = _fence_at(lines[start])
    if not signs:
        return _comment_end(lines, start)
    until, least = unclosed.get(signs[0], (0, 0))
    if start < until and len(signs) >= least:
        return None
    place = start
    for place in range(start + 1, len(lines)):
        fence = _FENCE.match(lines[place])
        if fence and not fence[2].strip() and fence[1].startswith(signs):
            return place
        if _is_ours(lines[place]):
            break
    unclosed[signs[0]] = (place, len(signs))
    return None


def _comment_end(lines: Sequence[str], start: int) -> int | None:
    if not lines[start].lstrip().startswith("<!--") or "-->" in lines[start]:
        return None
    for place in range(start + 1, len(lines)):
        before, end, _ = lines[place].partition("-->")
        if "<!--" in before or _is_ours(lines[place]):
            return None
        if end:
            return place
    return None


def _is_ours(line: str) -> bool:
    return "<!--" in line and (ID_COMMENT.search(line) or _TRAILER.match(line)) is not None


def _has_conflict(lines: Sequence[str], blocks: dict[int, int]) -> bool:
    """Say whether the markers of a conflict stand in the file in their order, and not all in one block of code."""
    wanted, first = iter("<=>"), 0
    sign = next(wanted)
    for place, line in enumerate(lines):
        if line.startswith(sign * 7) and _MARKER.match(line):
            first = place if sign == "<" else first
            sign = next(wanted, "")
        if not sign:
            return not any(start < first and place < end for start, end in blocks.items())
    return False


def _without_comments(line: str) -> str:
    if "-->" not in line:
        return line
    # Behind the last end of a comment no other is looked for: it could not end.
    stop = line.rfind("-->") + 3
    kept = _CODE_OR_COMMENT.sub(lambda found: found[0] if found[1] else "", ID_COMMENT.sub("", line[:stop]))
    return (kept.rstrip() if kept != line[:stop] else kept) + line[stop:]
