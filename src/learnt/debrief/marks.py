"""Read the marks in an agent's output: which learnings of its brief helped it, and which did not.

    LEARNING_HELPFUL: learn_0k3v2c
    - **LEARNING_NOT_HELPFUL:** learn_0k3v2d, learn_0k3v2e and `learn_0k3v2f`

A mark counts at the start of a line of the agent's own (see `own_lines`), or after another mark. So `I would not say
LEARNING_HELPFUL: …` and `e.g. LEARNING_HELPFUL: …` are not marks. One colon may be followed by several ids: on the same
line with spaces, commas, `;`, `&` or `and` between them, or below it as list items. The reason for the mark may follow,
after a dash, in brackets or with `because`. The word of the mark must not be quoted; an id may be in backticks, and so
may a whole line, as the brief shows it.

A learning that is marked both ways counts as neither: it is listed as contradicting. Text that looks like a mark and is
not one is listed in `ignored`. The caller checks whether a learning was in the brief at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from learnt.debrief.own_lines import LEAD, NOT_AT_START, REPEATED, OwnStatements, starts_line
from learnt.debrief.own_words import own_words
from learnt.model import Value, is_id
from learnt.text.clean import clean

_WORD = re.compile(r"(?<![A-Za-z0-9_\\])LEARNING_(?:NOT_)?HELPFUL(?![A-Za-z0-9])", re.ASCII)
_MARK = re.compile(r"(?<![A-Za-z0-9\\])LEARNING_(NOT_)?HELPFUL[*_~]*+[ \t]*+:[*_~]*+", re.ASCII)
_IN_BACKTICKS = re.compile(
    rf"^{LEAD}`(LEARNING_(?:NOT_)?HELPFUL[ \t]*+:[^`\n]*+)`[ \t*_~|.,;]*+$", re.ASCII | re.MULTILINE
)
_ID = r"""[*_~<\[("']*+(?:`(?P<code>learn_[a-zA-Z0-9]++)`|(?P<plain>learn_[a-zA-Z0-9]++)(?!_*+[^\W_]))[*_~>\])"']*+"""
_FIRST_ID = re.compile(rf"\s*+(?:[-*+•][ \t]++)?{_ID}")
_NEXT_ID = re.compile(rf"(?:[ \t,;&]|\band\b)*+{_ID}")
_NEXT_ITEM = re.compile(rf"[ \t,;]*+\n[ \t]*+[-*+•][ \t]++{_ID}")
_BETWEEN = re.compile(r"(?:[\s,;.&|*_~()–—-]|\band\b)*+")


class Marks(Value):
    """The learnings that an output marks, each once and in order."""

    helpful: tuple[str, ...] = ()
    not_helpful: tuple[str, ...] = ()
    contradicting: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """Reasons why texts that look like marks are not."""


def read_marks(output: str) -> Marks:
    """Return the marks of an output."""
    text = clean(output)
    own = _read_own_words(text)
    marks = list(_find_marks(text, own))
    verdicts: dict[str, set[bool]] = {}
    for learning, helpful, _, _ in marks:
        verdicts.setdefault(learning, set()).add(helpful)
    return Marks(
        helpful=tuple(learning for learning, marked in verdicts.items() if marked == {True}),
        not_helpful=tuple(learning for learning, marked in verdicts.items() if marked == {False}),
        contradicting=tuple(learning for learning, marked in verdicts.items() if len(marked) > 1),
        ignored=_explain_ignored(text, own, {start for _, _, start, _ in marks}),
    )


def remove_marks(output: str) -> str:
    """Return an output without its marks."""
    rest, position = "", 0
    for _, _, start, end in _find_marks(output, _read_own_words(output)):
        in_backticks = output[start - 1 : start] == output[end : end + 1] == "`"
        rest += output[position : max(start - in_backticks, position)]
        position = end + in_backticks
    return rest + output[position:]


def _read_own_words(text: str) -> str:
    """Return the own words of a text, including marks whose whole line is in backticks and not quoted otherwise."""
    own = own_words(text)
    wrapped = [match.span(1) for match in _IN_BACKTICKS.finditer(text)]
    if not wrapped:
        return own
    bare = list(text)
    for start, end in wrapped:
        bare[start - 1] = bare[end] = " "
    merged, without_backticks = list(own), own_words("".join(bare))
    for start, end in wrapped:
        merged[start:end] = without_backticks[start:end]
    return "".join(merged)


def _find_marks(text: str, own: str) -> Iterator[tuple[str, bool, int, int]]:
    """Yield each marked learning, whether it helped, and where its mark starts and ends."""
    statements = OwnStatements(text)
    last_end = -1
    for mark in _MARK.finditer(own):
        behind_mark = last_end >= 0 and _BETWEEN.fullmatch(own, last_end, mark.start())
        if not statements.has(mark.start()) or not (behind_mark or _starts_line(text, mark.start())):
            continue
        for learning, end in _find_ids(text, own, mark.end()):
            last_end = end
            if is_id("learn", learning):
                yield learning, not mark[1], mark.start(), end


def _explain_ignored(text: str, own: str, read: set[int]) -> tuple[str, ...]:
    """Return why each text that looks like a mark was not read as one."""
    reasons: dict[str, int] = {}
    for word in _WORD.finditer(text):
        if word.start() not in read:
            reason = f"{word[0]} {_find_flaw(text, own, word.start())}"
            reasons[reason] = reasons.get(reason, 0) + 1
    return tuple(reason + (f" ({count} times)" if count > 1 else "") for reason, count in reasons.items())


def _find_flaw(text: str, own: str, start: int) -> str:
    if own[start].isspace():
        return "is quoted"
    mark = _MARK.match(own, start)
    if mark is None:
        return "has no colon"
    if not _starts_line(text, start):
        return NOT_AT_START
    return REPEATED if _FIRST_ID.match(text, mark.end()) else "names no learning by its id"


def _starts_line(text: str, position: int) -> bool:
    return starts_line(text, position - (text[position - 1 : position] == "`"))


def _find_ids(text: str, own: str, position: int) -> Iterator[tuple[str, int]]:
    """Yield the ids after a colon, and where each ends."""
    match = _FIRST_ID.match(text, position)
    following = _NEXT_ITEM if match and "\n" in text[position : match.start(match.lastgroup or 0)] else _NEXT_ID
    while match:
        # Everything before an id must be own words: no fence, no quotation between.
        own_end = match.end("plain") if match["plain"] else match.start("code") - 1
        if own[position:own_end] != text[position:own_end]:
            return
        yield match["plain"] or match["code"], match.end()
        position = match.end()
        match = following.match(text, position)
