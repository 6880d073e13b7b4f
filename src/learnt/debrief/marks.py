"""Read the marks in an agent's output: which learnings of its brief helped it, and which did not.

    LEARNING_HELPFUL: learn_0k3v2c
    - **LEARNING_NOT_HELPFUL:** learn_0k3v2d, learn_0k3v2e and `learn_0k3v2f`

A mark counts where the agent sets it: in its own words, at the start of a line (behind list markers, headings,
emphasis and table bars), behind the end of a sentence, or behind another mark. So `I would not say LEARNING_HELPFUL: …`
and `e.g. LEARNING_HELPFUL: …` are no marks. One colon serves several ids: on the same line with spaces, commas, `;`,
`&` or `and` between them, or below it as the items of a list. The word of the mark must be the agent's own; only an
id may be set as code.

A learning that is marked both ways is marked neither way: it is named as contradicting. Whether it was in the brief
at all is for the caller to know.
"""

from __future__ import annotations

import re

from learnt.debrief.own_words import own_words
from learnt.model import Value, is_id
from learnt.text.clean import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MARK = re.compile(r"(?<![A-Za-z0-9\\])LEARNING_(NOT_)?HELPFUL[*_~]*+[ \t]*+:[*_~]*+", re.ASCII)
_ID = r"""[*_~<\[("']*+(?:`(?P<code>learn_[a-zA-Z0-9]++)`|(?P<plain>learn_[a-zA-Z0-9]++)(?!_*+[^\W_]))[*_~>\])"']*+"""
_FIRST_ID = re.compile(rf"\s*+(?:[-*+•][ \t]++)?{_ID}")
_NEXT_ID = re.compile(rf"(?:[ \t,;&]|\band\b)*+{_ID}")
_NEXT_ITEM = re.compile(rf"[ \t,;]*+\n[ \t]*+[-*+•][ \t]++{_ID}")
_LINE_START = re.compile(r"(?:\s|[-*+•–—#|~_]|\d{1,9}[.)]|\[[ xX]?\])*+")
_SENTENCE_END = re.compile(r"""(?<!\be\.g)(?<!\bi\.e)[.!?…。！？]["')\]*_`]*\s+[*_~(]*\Z""", re.IGNORECASE)
_BETWEEN = re.compile(r"(?:[\s,;.&|*_~()–—-]|\band\b)*+")
_WINDOW = 200


class Marks(Value):
    """The learnings that an output marks, each once and in its order."""

    helpful: tuple[str, ...] = ()
    not_helpful: tuple[str, ...] = ()
    contradicting: tuple[str, ...] = ()


def read_marks(output: str) -> Marks:
    """Return the marks of an output."""
    marked: dict[str, set[bool]] = {}
    for learning, helpful, _, _ in _found(clean(output)):
        marked.setdefault(learning, set()).add(helpful)
    return Marks(
        helpful=tuple(learning for learning, ways in marked.items() if ways == {True}),
        not_helpful=tuple(learning for learning, ways in marked.items() if ways == {False}),
        contradicting=tuple(learning for learning, ways in marked.items() if len(ways) > 1),
    )


def without_marks(output: str) -> str:
    """Return what an output says beside its marks."""
    rest, position = "", 0
    for _, _, start, end in _found(output):
        rest += output[position : max(start, position)]
        position = end
    return rest + output[position:]


def _found(text: str) -> Iterator[tuple[str, bool, int, int]]:
    """Yield each marked learning, whether it helped, and where its mark starts and ends."""
    own = own_words(text)
    last_end = -1
    for mark in _MARK.finditer(own):
        behind_mark = last_end >= 0 and _BETWEEN.fullmatch(own, last_end, mark.start())
        if not (behind_mark or _stands_alone(own, mark.start())):
            continue
        for learning, end in _ids(text, own, mark.end()):
            last_end = end
            if is_id("learn", learning):
                yield learning, not mark[1], mark.start(), end


def _stands_alone(own: str, start: int) -> bool:
    """Say whether a line or a sentence starts here."""
    before = own[max(0, start - _WINDOW) : start]
    line = before.rpartition("\n")[2]
    if _LINE_START.fullmatch(line) and (line != before or start <= _WINDOW):
        return True
    return _SENTENCE_END.search(line) is not None


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
