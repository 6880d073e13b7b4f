"""Whether an agent has said anything in a transcript, as far as a glance tells: a hook has no time to read it."""

from __future__ import annotations

# Who speaks, in the records of each client that keeps files.
_SPEAKERS = (b'"assistant"', b'"gemini"')
_BY_CLIENT = b'"isApiErrorMessage":true'  # Claude Code speaks for the agent when the service fails
_LONGEST_READ = 2_000_000


def has_words(path: str) -> bool:
    """Return whether a transcript holds words of an agent; of a very long one that goes without saying."""
    try:
        with open(path, "rb") as file:
            beginning = file.read(_LONGEST_READ)
        own = (line for line in beginning.split(b"\n") if _BY_CLIENT not in line)
        return len(beginning) == _LONGEST_READ or any(speaker in line for line in own for speaker in _SPEAKERS)
    except (OSError, ValueError):
        return False
