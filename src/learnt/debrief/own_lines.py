"""Decide for each line of an agent's output whether what it states there is the agent's own.

`own_words` blanks what is marked as quoted. That is not enough: an agent that repeats a file, a log or a web page often
marks it in some other way, or not at all. So a statement (a sigil or a mark) counts only where an agent gives one: at
the start of a line, after at most three blanks, a bullet (`- `, `* `, `• `) and emphasis, and with nothing behind it on
its last line but further sigils; the reason may follow a mark. Statements with nothing but blank lines between them are
a run. A run counts as a whole or not at all. It counts when nothing around it says that it is repeated:

- **Enclosures.** No element that is not a sigil is open around it, no quotation mark, no comment, no bracket in its
  paragraph, and it does not stand between two rulers.
- **Introductions.** What ends with a colon, a comma or another sign that something follows makes the next block a
  quotation. If it also reports ("the README says:", "The README, shortened."), or is a prompt of a shell or a header of
  a message, a commit or a diff, the quotation goes on until a paragraph starts with "I" or "We", or a quotation that is
  marked as one ends. A label such as `What I learned:` introduces the agent's own statements.
- **Neighbours.** The nearest lines above and below are prose, a heading, a finished quotation, table or list, and their
  wording leaves the statement the agent's own (see `wording`). Between two paragraphs, the one above must be about the
  agent's own work: agents state things at the end, and what they repeat they mostly comment on.
- **Lists.** A list with statements holds nothing else.

An element that is not closed, or that holds another of its name, states nothing. When in doubt a statement does not
count: a lost learning costs less than a planted one. The time is linear in the length of the output.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice

from learnt.debrief.own_words import ATTRIBUTES, END_OF_NAME, own_words
from learnt.debrief.wording import (
    BULLET,
    OWN_VOICE,
    POINTS_ON,
    SHOWS_TEXT,
    ends_with_presentation,
    fits_above,
    fits_below,
    introduces_foreign,
    is_label,
    is_own_work,
    names_source,
    reports,
)

SIGIL_NAMES = "learning|failure-report|difficulty-estimate|retry-suggestion|task-done|task-failed|next-model"
_FLAGS = re.IGNORECASE | re.ASCII
SIGIL_TAG = re.compile(
    rf"(?<!\\)<(?:/(?P<closed>{SIGIL_NAMES})\s*+>|(?P<opened>{SIGIL_NAMES}){END_OF_NAME}"
    rf"(?P<whole>(?P<attributes>{ATTRIBUTES})(?P<empty>/)?+>)?+)",
    _FLAGS,
)
# Before a statement: up to three columns, a bullet, emphasis.
LEAD = r"[ ]{0,3}(?:[-*•][ \t]{1,3})?(?:\*{1,3}|_{1,3})?"

NOT_AT_START = "is not at the start of a line"
REPEATED = "may be repeated from elsewhere"

_BLANK, _QUOTED, _STATEMENT, _PROSE = range(4)

_LEAD = re.compile(LEAD)
_ID = r"learn_[a-zA-Z0-9]++"
_IDS = (
    rf"(?:\s|[,;&*_]|\band\b|{_ID}|`{_ID}`|<{_ID}>|\[{_ID}\]|\({_ID}\)|"
    r"LEARNING_(?:NOT_)?HELPFUL[*_]*+[ \t]*+:)*+"
)
_MARK = re.compile(
    rf"{LEAD}`?LEARNING_(?:NOT_)?HELPFUL[*_]*+[ \t]*+:[*_]*+"
    rf"(?P<ids>{_IDS})(?P<remark>.*)",
    re.ASCII | re.DOTALL,
)
_IDS_ONLY = re.compile(r"[ \t]{0,3}(?:[-*•][ \t]+)?[*_`]*learn_[a-zA-Z0-9]+[*_`]*[ \t,;.]*", re.ASCII)
_REMARK = re.compile(r"[-–—(:]\s*\w|[.!]\s+[A-Z]|[✓✔]|because\b|since\b|as it\b")
_BLANKS = re.compile(r"\s*+")
_CODE_SPANS = re.compile(r"\s*(?:`[^`]+`\s*)+")
_BEHIND = re.compile(r"[*_]*+[.!]?+[*_]*+\s*+")

_ELEMENT = re.compile(rf"<(?P<end>/)?+(?P<name>[A-Za-z_][\w:.-]*+)(?:{ATTRIBUTES}(?P<empty>/)?+>|[^<>\n]*+>)")
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_SECTION = re.compile(r"<!\[CDATA\[|<\?|<%|/\*|\(\*|\{#|\{-|\"\"\"|'''")
_END_OF_SECTION = {
    "<![CDATA[": "]]>",
    "<?": "?>",
    "<%": "%>",
    "/*": "*/",
    "(*": "*)",
    "{#": "#}",
    "{-": "-}",
    '"""': '"""',
    "'''": "'''",
}

_DOUBLE, _SINGLE, _CORNERS = '"“”„‟«»', "'‘’‚‛‹›", {"「": "」", "『": "』", "《": "》", "〈": "〉", "〝": "〞"}
_QUOTATION_MARK = re.compile(f"[{_DOUBLE}{_SINGLE}{''.join(_CORNERS)}{''.join(_CORNERS.values())}]")
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_BRACKET = re.compile(r"[()\[\]{}]")

_RULER = re.compile(r"\s*(?:([-=*_~#+.])[ \t]?)(?:\1[ \t]?){2,}\s*|\s*[─━═—–]{2,}\s*")
_NAMED_RULER = re.compile(r"\s*(?:[-=~+<>─━═—–]{2,}|[*_#]{5,})[ \t]*+\S.*?(?:[-=~+<>─━═—–]{2,}|[*_#]{5,})\s*")
_END_OF_NAMED = re.compile(r"\b(?:end|eof|eot|done|stop)\b", re.IGNORECASE)

_MAX_END_LENGTH = 400
_MAX_PARAGRAPH_LINES = 20
_MAX_RUNS = 1_000
_MAX_PARAGRAPH_LENGTH = 2_000


def own_lines(text: str) -> list[bool]:
    """Return for each line of a cleaned text whether a statement that starts on it is the agent's own."""
    return _Lines(text).judge()


class OwnStatements:
    """Tells whether the statement at a position is the agent's own."""

    def __init__(self, text: str) -> None:
        self._lines = own_lines(text)
        self._starts = _line_starts(text)

    def has(self, position: int) -> bool:
        """Return whether a statement here is on a line where it counts."""
        return self._lines[bisect_right(self._starts, position) - 1]


def starts_line(text: str, position: int) -> bool:
    """Return whether nothing but a bullet and emphasis stands before this position on its line."""
    return _LEAD.fullmatch(text, text.rfind("\n", 0, position) + 1, position) is not None


def _shorten(line: str) -> str:
    """Return a line; of a very long one its beginning and end, which say what it is."""
    return line if len(line) <= 2 * _MAX_END_LENGTH else f"{line[:_MAX_END_LENGTH]} {line[-_MAX_END_LENGTH:]}"


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]


class _Lines:
    """The lines of an output, and what each of them is."""

    def __init__(self, text: str) -> None:
        self._text, self._own = text, own_words(text)
        self._lines = text.split("\n")
        self._short = [_shorten(line) for line in self._lines]
        self._starts = _line_starts(text)
        self._kinds = [
            _BLANK if not line.strip() else _PROSE if own.strip() else _QUOTED
            for line, own in zip(self._lines, self._own.split("\n"), strict=True)
        ]
        self._enclosed: list[tuple[int, int]] = []
        self._paragraph_ends = self._find_paragraph_ends()
        self._find_statements()

    def judge(self) -> list[bool]:
        """Return for each line whether a statement that starts on it is the agent's own."""
        own = [False] * len(self._lines)
        if _STATEMENT not in self._kinds:
            return own
        self._find_quotation_marks()
        introduced = self._follow_introductions()
        covered = _Covered(self._enclosed)
        for run in islice(self._runs(), _MAX_RUNS):
            if not any(introduced[line] or covered.has(self._starts[line]) for line in run) and self._stands_alone(run):
                for line in run:
                    own[line] = True
        return own

    def _line_of(self, position: int) -> int:
        return bisect_right(self._starts, position) - 1

    def _line_end(self, position: int) -> int:
        line = self._line_of(position)
        return self._starts[line] + len(self._lines[line])

    def _is_at_start(self, position: int) -> bool:
        return _LEAD.fullmatch(self._text, self._starts[self._line_of(position)], position) is not None

    # ── statements and elements ──

    def _find_statements(self) -> None:
        """Tell statements and foreign elements apart, from left to right: what opens first holds the rest."""
        ends = _pair_sigils(self._own)
        closings = {**_pair_elements(self._own), **_pair_sections(self._own)}
        tags = {match.start() for match in SIGIL_TAG.finditer(self._own) if match["opened"]}
        unclosed = {match.start() for match in _ELEMENT.finditer(self._own) if self._opens_to_the_end(match)}
        position = 0
        for start in sorted({*tags, *closings, *unclosed}):
            if start < position:
                continue
            if start in tags:
                position = self._take_sigils(start, ends)
            else:
                position = self._enclose(start, closings.get(start, len(self._text)))
        self._find_marks()

    def _take_sigils(self, start: int, ends: dict[int, int]) -> int:
        """Note the sigils from here to the end of a line as one statement, if they are one; return where they end."""
        end = place = start
        while place in ends:
            end = ends[place]
            place = _skip_blanks(self._own, end)
        if end > start and self._is_at_start(start) and _BEHIND.fullmatch(self._text, end, self._line_end(end)):
            self._note(start, end)
        return max(end, start + 1)

    def _note(self, start: int, end: int) -> None:
        for line in range(self._line_of(start), self._line_of(max(start, end - 1)) + 1):
            self._kinds[line] = _STATEMENT

    def _enclose(self, start: int, end: int) -> int:
        """Note a foreign element: its lines are a quotation."""
        self._enclosed.append((start, end))
        for line in range(self._line_of(start), self._line_of(max(start, end - 1)) + 1):
            if self._kinds[line] == _PROSE and not self._has_words_outside(line, start, end):
                self._kinds[line] = _QUOTED
        return end

    def _has_words_outside(self, line: int, start: int, end: int) -> bool:
        first, last = self._starts[line], self._starts[line] + len(self._lines[line])
        return self._has_words(first, max(first, start)) or self._has_words(min(last, end), last)

    def _has_words(self, start: int, end: int) -> bool:
        # Without a copy: a line may be the whole output, and hold very many elements.
        return _BLANKS.fullmatch(self._text, start, end) is None

    def _opens_to_the_end(self, tag: re.Match[str]) -> bool:
        """Return whether a start tag stands on a line of its own: without an end tag its element goes on to the end."""
        if tag["end"] or tag["empty"] or tag["name"].lower() in _VOID:
            return False
        return not self._has_words_outside(self._line_of(tag.start()), *tag.span())

    def _find_marks(self) -> None:
        after_mark = False
        for number, line in enumerate(self._lines):
            if self._kinds[number] not in (_PROSE, _QUOTED):
                after_mark = after_mark and self._kinds[number] == _BLANK
                continue
            mark = _MARK.match(line)
            if mark and (self._kinds[number] == _PROSE or line.strip("-*•_ \t.,;")[:1] == "`"):
                is_statement = _is_remark(mark["remark"], in_code=line.strip("-*•_ \t")[:1] == "`")
                after_mark = is_statement and "learn_" not in mark["ids"]
            else:
                is_statement = after_mark and _IDS_ONLY.fullmatch(line) is not None
                after_mark = is_statement
            if is_statement:
                self._kinds[number] = _STATEMENT

    # ── quotation marks and brackets ──

    def _find_quotation_marks(self) -> None:
        """Note what is between quotation marks: of double ones also over several paragraphs, if they are closed."""
        opened: dict[str, int] = {}
        for number, kind in enumerate(self._kinds):
            if kind == _BLANK:
                opened.pop("'", None)
            elif kind == _PROSE:
                self._read_quotation_marks(number, opened)
                self._read_brackets(number)

    def _read_quotation_marks(self, number: int, opened: dict[str, int]) -> None:
        own = self._own[self._starts[number] : self._starts[number] + len(self._lines[number])]
        for mark in _QUOTATION_MARK.finditer(own):
            letter, place = mark[0], self._starts[number] + mark.start()
            before, after = own[max(0, mark.start() - 1) : mark.start()], own[mark.end() : mark.end() + 1]
            family = _family(letter)
            if family in opened and _closes(letter, before, after):
                self._enclosed.append((opened.pop(family), place))
            elif _opens(letter, before, after):
                opened[family] = place
                self._enclosed.append((place, self._paragraph_ends[number]))

    def _find_paragraph_ends(self) -> list[int]:
        """Return for each line where its paragraph ends."""
        ends, end = [], len(self._text)
        for number in reversed(range(len(self._lines))):
            end = self._starts[number] if self._kinds[number] == _BLANK else end
            ends.append(end)
        return ends[::-1]

    def _read_brackets(self, number: int) -> None:
        """Note a bracket that this line leaves open."""
        opened: list[tuple[str, int]] = []
        own = self._own[self._starts[number] : self._starts[number] + len(self._lines[number])]
        for match in _BRACKET.finditer(own):
            if match[0] not in _BRACKETS:
                opened.append((match[0], match.start()))
            elif opened and opened[-1][0] == _BRACKETS[match[0]]:
                opened.pop()
        if opened:
            self._enclosed.append((self._starts[number] + opened[0][1], self._paragraph_ends[number]))

    # ── introductions ──

    def _follow_introductions(self) -> list[bool]:
        """Return for each line whether it belongs to a quotation that something above introduces."""
        reading = _Introductions()
        starts, introduced = True, []
        for number, (kind, line) in enumerate(zip(self._kinds, self._short, strict=True)):
            ends = self._kinds[number + 1 : number + 2] in ([], [_BLANK])
            introduced.append(reading.take(kind, line, starts_paragraph=starts, ends_paragraph=ends))
            starts = kind in (_BLANK, _QUOTED)
        return introduced

    # ── neighbours ──

    def _runs(self) -> Iterator[list[int]]:
        """Yield the lines of each run of statements."""
        run: list[int] = []
        for number, kind in enumerate(self._kinds):
            if kind == _STATEMENT:
                run.append(number)
            elif kind != _BLANK and run and not self._is_ruler(number):
                yield run
                run = []
        if run:
            yield run

    def _stands_alone(self, run: list[int]) -> bool:
        above, below = self._neighbour(run[0], -1), self._neighbour(run[-1], 1)
        if above is not None and below is not None and self._is_ruler(above) and self._is_ruler(below):
            return False
        if not self._is_fine(above, run[0], -1) or not self._is_fine(below, run[-1], 1):
            return False
        if above is None or below is None or not (self._is_plain(above) and self._is_plain(below)):
            return True
        return is_own_work(self._paragraph_around(above, -1))

    def _is_plain(self, number: int) -> bool:
        """Return whether a line is one of a paragraph, not of a list, a label or anything that sets text apart."""
        line = self._short[number]
        return self._kinds[number] == _PROSE and not (
            self._is_ruler(number)
            or is_label(line)
            or re.match(BULLET, line)
            or line.lstrip().startswith(("#", "|", "**"))
        )

    def _neighbour(self, number: int, step: int) -> int | None:
        number += step
        while 0 <= number < len(self._lines) and self._kinds[number] == _BLANK:
            number += step
        return number if 0 <= number < len(self._lines) else None

    def _is_ruler(self, number: int) -> bool:
        return _RULER.fullmatch(self._short[number]) is not None

    def _is_fine(self, neighbour: int | None, edge: int, step: int) -> bool:
        """Return whether the line above (-1) or below (1) a run leaves it the agent's own."""
        while neighbour is not None and self._is_ruler(neighbour):
            edge, neighbour = neighbour - step, self._neighbour(neighbour, step)
        if neighbour is None:
            return True
        line, is_adjacent = self._short[neighbour], abs(neighbour - edge) == 1
        if self._kinds[neighbour] == _QUOTED and not _CODE_SPANS.fullmatch(line):
            return _ends_quotation(line, step, is_adjacent=is_adjacent)
        if re.match(BULLET, line) and re.match(BULLET, self._lines[edge]):
            return False
        paragraph = self._paragraph_around(neighbour, step)
        fits = fits_above if step < 0 else fits_below
        return fits(line, paragraph, is_adjacent=is_adjacent)

    def _paragraph_around(self, number: int, step: int) -> str:
        """Return the text of a paragraph from one of its ends."""
        lines: list[str] = []
        while 0 <= number < len(self._lines) and self._kinds[number] == _PROSE and len(lines) < _MAX_PARAGRAPH_LINES:
            lines.append(self._short[number])
            if re.match(BULLET, self._lines[number]) or self._lines[number].lstrip().startswith("#"):
                break
            number += step
        text = "\n".join(lines[::-1] if step < 0 else lines)
        return text[-_MAX_PARAGRAPH_LENGTH:] if step < 0 else text[:_MAX_PARAGRAPH_LENGTH]


class _Introductions:
    """Follows from line to line which quotation is going on."""

    def __init__(self) -> None:
        self._goes_on = False
        """Until the agent speaks again."""
        self._next_block = False
        self._in_block = False

    def take(self, kind: int, line: str, *, starts_paragraph: bool, ends_paragraph: bool) -> bool:
        """Return whether this line is quoted, and note what it introduces."""
        if kind == _BLANK:
            if self._in_block:
                self._next_block = self._in_block = False
            return self._goes_on
        if kind == _QUOTED:
            if not self._in_block:
                self._goes_on = self._next_block = False
            return False
        if kind == _STATEMENT:
            return self._goes_on or self._next_block
        if self._goes_on and starts_paragraph and re.match(OWN_VOICE, line) and not reports(line):
            self._goes_on = False
        if _NAMED_RULER.fullmatch(line):
            self._goes_on = not _END_OF_NAMED.search(line)
            return True
        quoted = self._goes_on or self._next_block
        self._in_block = self._next_block
        self._read_introduction(line, ends_paragraph=ends_paragraph)
        return quoted

    def _read_introduction(self, line: str, *, ends_paragraph: bool) -> None:
        if re.match(SHOWS_TEXT, line) or (ends_paragraph and ends_with_presentation(line)):
            self._goes_on = True
        elif re.search(POINTS_ON, line) and not (
            is_label(line) or line.lstrip().startswith("|") or _RULER.fullmatch(line)
        ):
            if introduces_foreign(line):
                self._goes_on = True
            else:
                self._next_block, self._in_block = True, False


class _Covered:
    """Tells whether a position is within one of many spans."""

    def __init__(self, spans: list[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(spans):
            self._starts.append(start)
            self._ends.append(max(end, self._ends[-1] if self._ends else 0))

    def has(self, position: int) -> bool:
        """Return whether a span that starts before this position ends behind it."""
        place = bisect_right(self._starts, position) - 1
        return place >= 0 and self._ends[place] > position


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t*_":
        position += 1
    return position


def _pair_sigils(own: str) -> dict[int, int]:
    """Return where each outermost sigil ends, by its start; none that is not closed, or holds another of its name."""
    tags = list(SIGIL_TAG.finditer(own))
    last_end = {tag["closed"].lower(): tag.start() for tag in tags if tag["closed"]}
    ends: dict[int, int] = {}
    opened: list[re.Match[str]] = []
    spoilt = False
    for tag in tags:
        if tag["closed"]:
            if opened and opened[0]["opened"].lower() == tag["closed"].lower():
                if not spoilt:
                    ends[opened[0].start()] = tag.end()
                opened, spoilt = [], False
        elif tag["empty"]:
            if not opened:
                ends[tag.start()] = tag.end()
        elif opened and tag["opened"].lower() == opened[0]["opened"].lower():
            spoilt = True
        elif tag["whole"] and not opened and last_end.get(tag["opened"].lower(), -1) > tag.start():
            opened = [tag]
    return ends


def _pair_elements(own: str) -> dict[int, int]:
    """Return where each element that is not a sigil and is closed ends, by its start."""
    ends: dict[int, int] = {}
    waiting: dict[str, list[int]] = {}
    for tag in _ELEMENT.finditer(own):
        if tag["empty"]:
            continue
        if not tag["end"]:
            waiting.setdefault(tag["name"].lower(), []).append(tag.start())
        elif starts := waiting.get(tag["name"].lower()):
            ends[starts.pop()] = tag.end()
    return ends


def _pair_sections(own: str) -> dict[int, int]:
    """Return where each comment or section of another language ends, by its start."""
    ends: dict[int, int] = {}
    position, missing = 0, set()
    while opening := _SECTION.search(own, position):
        sign = _END_OF_SECTION[opening[0]]
        end = -1 if sign in missing else own.find(sign, opening.end())
        if end < 0:
            missing.add(sign)
            position = opening.end()
        else:
            position = ends[opening.start()] = end + len(sign)
    return ends


def _is_remark(text: str, *, in_code: bool) -> bool:
    """Return whether what follows a mark is nothing, or the agent's reason for it."""
    text = text.strip(" \t\r\n*_")
    if in_code:
        return text.strip(" .,;*_") == "`"
    return text in ("", ".", ",", ";", "!") or (
        _REMARK.match(text) is not None and not reports(text) and not names_source(text)
    )


def _family(letter: str) -> str:
    if letter in _DOUBLE:
        return '"'
    if letter in _SINGLE:
        return "'"
    return next(opening for opening, closing in _CORNERS.items() if letter in (opening, closing))


def _opens(letter: str, before: str, after: str) -> bool:
    if letter in _CORNERS:
        return True
    if letter in _CORNERS.values() or (letter in "'’" and (before.isalnum() or not after)):
        return False
    return (not before or not before.isalnum()) and bool(after) and not after.isspace()


def _closes(letter: str, before: str, after: str) -> bool:
    if letter in _CORNERS:
        return False
    return letter in _CORNERS.values() or not (after.isalnum() and before.isalnum())


def _ends_quotation(line: str, step: int, *, is_adjacent: bool) -> bool:
    """Return whether a quoted line ends a quotation above a statement (-1), or starts one below it (1)."""
    text = line.strip()
    if text.startswith(">"):
        return step > 0  # above, it may be the prompt of a shell, and the statement what was printed
    return not is_adjacent or text.startswith(("```", "~~~")) or (text.startswith("<") and text.endswith(">"))
