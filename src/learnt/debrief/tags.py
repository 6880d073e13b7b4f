"""Find what a text is about in passing: files, kinds of errors and tools, as tags to find a learning by."""

from __future__ import annotations

import re

_FILE = re.compile(r"(?<![\w/.-])(?!(?:e\.g|i\.e)\b)(?:[\w.-]+/)*([\w-]+\.[A-Za-z][A-Za-z0-9]{0,4})(?![\w/-])")
_ERROR = re.compile(r"\b(?:[A-Z]\w*(?:Error|Exception|Warning)|E\d{3,5}|ERR_[A-Z_]+|SIG[A-Z]{3,6})\b")
_TOOL = re.compile(
    r"\b(?:git|npm|pnpm|yarn|pip|uv|poetry|pytest|ruff|mypy|docker|kubectl|terraform|cargo|go|make|cmake|gradle|maven|"
    r"eslint|tsc|jest|vitest|playwright|psql|sqlite3|redis|aws|az|gcloud|curl|ssh)\b"
)
_MOST = 5


def tags_in(text: str) -> tuple[str, ...]:
    """Return a few tags for what the text mentions, in the order of their kinds."""
    found = [*_FILE.findall(text), *_ERROR.findall(text), *_TOOL.findall(text)]
    return tuple(dict.fromkeys(word.lower() for word in found))[:_MOST]
