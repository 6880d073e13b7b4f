"""Fold away what does not change what a text says: case, white space and punctuation, and numbers in errors."""

from __future__ import annotations

import re

from learnt.model import digest

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
