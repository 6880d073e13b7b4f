"""Read the marks in an agent's output: which learnings of its brief helped it, and which did not.

    LEARNING_HELPFUL: learn_0k3v2c
    - **LEARNING_NOT_HELPFUL:** learn_0k3v2d, learn_0k3v2e and `learn_0k3v2f`

A mark counts where the agent sets it: in its own words, at the start of a line or sentence (see `position`), or
behind another mark. So `I would not say LEARNING_HELPFUL: …`
and `e.g. LEARNING_HELPFUL: …` are no marks. One colon serves several ids: on the same line with spaces, commas, `;`,
`&` or `and` between them, or below it as the items of a list. The word of the mark must be the agent's own; only an
id may be set as code, or the whole of a line, as the brief shows it.

A learning that is marked both ways is marked neither way: it is named as contradicting. What looks like a mark and is
none is named in `ignored`. Whether a learning was in the brief at all is for the caller to know.
"""

from __future__ import annotations

import re

from learnt.debrief.own_words import IN_THE_MIDST, LEAD, own_words, starts_line_or_sentence
from learnt.model import Value, is_id
from learnt.text.clean import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """The learnings that an output marks, each once and in its order."""

    helpful: tuple[str, ...] = ()
    not_helpful: tuple[str, ...] = ()
    contradicting: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """What looks like a mark and is none, each with the reason."""


def read_marks(output: str) -> Marks:
    """Return the marks of an output."""
    text = clean(output)
    own = _own_words(text)
    found = list(_found(text, own))
    marked: dict[str, set[bool]] = {}
    for learning, helpful, _, _ in found:
        marked.setdefault(learning, set()).add(helpful)
    return Marks(
        helpful=tuple(learning for learning, ways in marked.items() if ways == {True}),
        not_helpful=tuple(learning for learning, ways in marked.items() if ways == {False}),
        contradicting=tuple(learning for learning, ways in marked.items() if len(ways) > 1),
        ignored=_ignored(text, own, {start for _, _, start, _ in found}),
    )


def without_marks(output: str) -> str:
    """Return what an output says beside its marks."""
    rest, position = "", 0
    for _, _, start, end in _found(output, _own_words(output)):
        in_backticks = output[start - 1 : start] == output[end : end + 1] == "`"
        rest += output[position : max(start - in_backticks, position)]
        position = end + in_backticks
    return rest + output[position:]


def _own_words(text: str) -> str:
    """Return the own words of a text, and with them the marks whose whole line is set as code and quoted by nothing."""
    own = own_words(text)
    wrapped = [found.span(1) for found in _IN_BACKTICKS.finditer(text)]
    if not wrapped:
        return own
    bare = list(text)
    for start, end in wrapped:
        bare[start - 1] = bare[end] = " "
    kept, without_backticks = list(own), own_words("".join(bare))
    for start, end in wrapped:
        kept[start:end] = without_backticks[start:end]
    return "".join(kept)


def _found(text: str, own: str) -> Iterator[tuple[str, bool, int, int]]:
    """Yield each marked learning, whether it helped, and where its mark starts and ends."""
    last_end = -1
    for mark in _MARK.finditer(own):
        behind_mark = last_end >= 0 and _BETWEEN.fullmatch(own, last_end, mark.start())
        if not (behind_mark or starts_line_or_sentence(own, mark.start())):
            continue
        for learning, end in _ids(text, own, mark.end()):
            last_end = end
            if is_id("learn", learning):
                yield learning, not mark[1], mark.start(), end


def _ignored(text: str, own: str, read: set[int]) -> tuple[str, ...]:
    """Say of everything that looks like a mark, and was not read as one, why."""
    reasons: dict[str, int] = {}
    for word in _WORD.finditer(text):
        if word.start() not in read:
            reason = f"{word[0]} {_flaw(own, word.start())}"
            reasons[reason] = reasons.get(reason, 0) + 1
    return tuple(reason + (f" ({count} times)" if count > 1 else "") for reason, count in reasons.items())


def _flaw(own: str, start: int) -> str:
    if own[start].isspace():
        return "is quoted"
    mark = _MARK.match(own, start)
    if mark is None:
        return "has no colon"
    return "names no learning by its id" if starts_line_or_sentence(own, start) else IN_THE_MIDST


def _ids(text: str, own: str, position: int) -> Iterator[tuple[str, int]]:
    """Yield the ids behind a colon, and where each ends."""
    found = _FIRST_ID.match(text, position)
    following = _NEXT_ITEM if found and "\n" in text[position : found.start(found.lastgroup or 0)] else _NEXT_ID
    while found:
        # Up to the backtick of an id that is set as code, all must be own words: no fence, no quotation between.
        own_end = found.end("plain") if found["plain"] else found.start("code") - 1
        if own[position:own_end] != text[position:own_end]:
            return
        yield found["plain"] or found["code"], found.end()
        position = found.end()
        found = following.match(text, position)
