"""Titles made of texts, and when two texts say the same.

A title is the first sentence of a text, cut to what a title holds: the same rule for what an agent says and for what a
person writes, so that both can be found again by it.

There are six ways to compare texts, each for its purpose: `text_key` (the same words in the same order; what is stored
and looked up), `letters_key` (the same letters; titles beside each other), `line_key` (the same but for case and
white space; lines that people edit), `key_of` (names of agents and categories), `share_most_words` (about the same
words; learnings in one brief) and `normalised_error` (the same error in two runs).
"""

from __future__ import annotations

import re
from collections.abc import Set

from learnt.model import TITLE_LIMIT, digest
from learnt.text.clean import fold

# The expressions are compiled when first needed: a brief loads this module and needs none of them.
# A stop, then perhaps what closes a quotation, then the end or a word that could start a sentence.
_SENTENCE_END = (
    r"""(?i)(?<!\be\.g)(?<!\bi\.e)(?<!\bcf)(?<!\bvs)[.!?…]["')\]*_`]*(?=$| ["'(\[*_`]*([^\W\d_]))|[。！？]"""
)
# What differs between two runs of the same mistake: temporary files, addresses, ids, line numbers, times.
_VARYING = r"/(?:tmp|private/tmp|var/folders|var/tmp)/[^\s'\":,;)\]]*|\b0x[0-9a-f]+|\b[0-9a-f-]*\d[0-9a-f-]*\b"
# Where a worktree lies, and names that we gave ourselves.
_OUR_NAMES = r"\S*/worktrees/task_\w+|\b(?:task|attempt|learn|brief|esc)_[a-z0-9]{8,}\b"
_MIN_SHARED_WORDS = 0.8
ENDED = "the agent "


def first_sentence(line: str) -> str:
    """Return the first sentence of a folded line, or the start of the line where none ends near."""
    line = line[: 2 * TITLE_LIMIT]  # a title is cut before that
    for end in re.finditer(_SENTENCE_END, line):
        if not end[1] or not end[1].islower():
            return line[: end.end()]
    return line


def cut_title(text: str) -> str:
    """Return at most as much as a title holds, up to the end of a word if one is near."""
    if len(text) <= TITLE_LIMIT:
        return text
    space = text.rfind(" ", TITLE_LIMIT // 2, TITLE_LIMIT + 1)
    return fold(text[: space if space > 0 else TITLE_LIMIT])


def text_key(text: str) -> str:
    """Return a short sign, equal for texts that say the same, but for case, white space and punctuation."""
    return digest(_normalise(text) or text.strip())[:24]


def letters_key(text: str) -> str:
    """Return the letters and digits of a text, equal for texts that differ in case, blanks and punctuation only."""
    return _normalise(text).replace(" ", "")


def line_key(text: str) -> str:
    """Return a text on one line and in lower case, equal for texts that differ in case and white space only."""
    return fold(text).lower()


def key_of(name: str) -> str:
    """Return what a name is compared by: without case, and with `-` for underscores and blanks."""
    return "-".join(name.casefold().replace("_", " ").replace("-", " ").split())


def share_most_words(ours: Set[str], theirs: Set[str]) -> bool:
    """Say whether two texts have nearly all of their words in common."""
    return len(ours & theirs) > _MIN_SHARED_WORDS * max(len(ours), len(theirs))


def normalised_error(text: str) -> str:
    """Return an error without what differs from run to run, so that the same mistake reads the same.

    Empty for a text that only says how an agent ended: it does not say why.
    """
    if text.startswith(ENDED):
        return ""
    plain = re.sub(_VARYING, " ", re.sub(_OUR_NAMES, " ", text.casefold()))
    return _normalise(re.sub(r"\d+", " ", plain))


def _normalise(text: str) -> str:
    """Return the text in lower case, words separated by single spaces."""
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()
