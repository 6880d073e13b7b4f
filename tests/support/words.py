"""What a message tells, whatever its wording: ids, numbers, names and remedies."""

from __future__ import annotations

import re


def tells(text: str, *facts: object) -> bool:
    """Say whether one line holds all these facts, each as whole words; letters may be small or capital."""
    patterns = [re.compile(rf"(?<!\w){re.escape(str(fact))}(?!\w)", re.IGNORECASE) for fact in facts]
    return any(all(pattern.search(line) for pattern in patterns) for line in text.splitlines())
