"""Tell what an agent gives from what it only talks about, by the place where it stands.

`<task-done/>` on a line of its own is given; in `I cannot write <task-done/> yet` it is talked about. Given is what
stands

- at the start of a line, behind nothing but list markers, headings, emphasis and table bars,
- at the start of a sentence, behind the end of another one (that of `e.g.` is none), or, if it is a sigil,
- at the end of its line, where no full stop makes it a part of the sentence.

The reason to leave out what is only talked about is `IN_THE_MIDST`.
"""

from __future__ import annotations

import re

IN_THE_MIDST = "stands in the midst of a sentence"
LEAD = r"(?:[^\S\n]|[-*+•–—#|~_]|\d{1,9}[.)]|\[[ xX]?\])*+"

_LEAD = re.compile(LEAD)
_SENTENCE_END = re.compile(r"""(?<!\be\.g)(?<!\bi\.e)[.!?…。！？]["')\]*_`]*\s+[*_~(]*\Z""", re.IGNORECASE)
_LINE_END = re.compile(r"(?:[^\S\n]|[*_~|])*+(?:\n|\Z)")
_WINDOW = 200


def starts_line_or_sentence(text: str, start: int) -> bool:
    """Say whether a line or a sentence starts here."""
    before = text[max(0, start - _WINDOW) : start]
    line = before.rpartition("\n")[2]
    if _LEAD.fullmatch(line) and (line != before or start <= _WINDOW):
        return True
    return _SENTENCE_END.search(line) is not None


def ends_line(text: str, end: int) -> bool:
    """Say whether nothing more is said on the line."""
    return _LINE_END.match(text, end) is not None
