"""Fold away what does not change what a text says: case, white space and punctuation."""

from __future__ import annotations

import re

_NOISE = re.compile(r"[\W_]+")


def normalised(text: str) -> str:
    """Return the text in lower case, words separated by single spaces."""
    return _NOISE.sub(" ", text.casefold()).strip()
