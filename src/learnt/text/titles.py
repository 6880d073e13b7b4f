"""A title made of a text: its first sentence, cut to what a title holds.

The same rule for what an agent says and for what a person writes, so that both can be found again by it.
"""

from __future__ import annotations

import re

from learnt.model import TITLE_LIMIT, digest
from learnt.text.clean import fold

# A stop, then perhaps what closes a quotation, then the end or a word that could start a sentence.
_SENTENCE_END = re.compile(
    r"""(?<!\be\.g)(?<!\bi\.e)(?<!\bcf)(?<!\bvs)[.!?…]["')\]*_`]*(?=$| ["'(\[*_`]*([^\W\d_]))|[。！？]""",
    re.IGNORECASE,
)


def first_sentence(line: str) -> str:
    """Return the first sentence of a folded line, or the start of the line where none ends near."""
    # Nobody looks for the end of a sentence beyond where the title is cut.
    line = line[: 2 * TITLE_LIMIT]
    for end in _SENTENCE_END.finditer(line):
        if not end[1] or not end[1].islower():
            return line[: end.end()]
    return line


def cut_title(text: str) -> str:
    """Return at most as much as a title holds, up to the end of a word if one is near."""
    if len(text) <= TITLE_LIMIT:
        return text
    space = text.rfind(" ", TITLE_LIMIT // 2, TITLE_LIMIT + 1)
    return fold(text[: space if space > 0 else TITLE_LIMIT])


_NOISE = re.compile(r"[\W_]+")
# What differs between two runs of the same mistake: temporary files, addresses, ids, line numbers, times.
_PASSING = re.compile(
    r"/(?:tmp|private/tmp|var/folders|var/tmp)/[^\s'\":,;)\]]*|\b0x[0-9a-f]+|\b[0-9a-f-]*\d[0-9a-f-]*\b"
)
# Where a worktree lies, and names that we gave ourselves.
_OURS = re.compile(r"\S*/worktrees/task_\w+|\b(?:task|attempt|learn|brief|esc)_[a-z0-9]{8,}\b")
ENDED = "the agent "
_DIGITS = re.compile(r"\d+")


def normalised(text: str) -> str:
    """Return the text in lower case, words separated by single spaces."""
    return _NOISE.sub(" ", text.casefold()).strip()


def sameness(text: str) -> str:
    """Return a short sign, equal for texts that say the same, but for case, white space and punctuation."""
    return digest(normalised(text) or text.strip())[:24]


def normalised_error(text: str) -> str:
    """Return an error without what differs from run to run, so that the same mistake reads the same.

    How an agent ended says nothing about why: such a text gives none.
    """
    if text.startswith(ENDED):
        return ""
    return normalised(_DIGITS.sub(" ", _PASSING.sub(" ", _OURS.sub(" ", text.casefold()))))
