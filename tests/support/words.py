"""Check a message's facts, whatever its wording: ids, numbers, names and remedies."""

from __future__ import annotations

import re


def tells(text: str, *facts: object) -> bool:
    """Return whether one line contains all these facts as whole words, in upper or lower case."""
    patterns = [re.compile(rf"(?<!\w){re.escape(str(fact))}(?!\w)", re.IGNORECASE) for fact in facts]
    return any(all(pattern.search(line) for pattern in patterns) for line in text.splitlines())
