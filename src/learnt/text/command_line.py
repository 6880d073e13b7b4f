"""The words of a command line that stands in a settings file."""

from __future__ import annotations

import os

from learnt.errors import WrongRequest


def split(command: str, *, setting: str) -> tuple[str, ...]:
    """Return the words as a shell would see them; `setting` says where the person finds what cannot be read."""
    import shlex

    try:
        # On Windows a backslash parts folders.
        words = shlex.split(command, posix=os.name != "nt")
    except ValueError as mistake:
        raise WrongRequest(
            f"the command line `{command}` cannot be read: {mistake}",
            hint=f"check its quotes: {setting}",
        ) from None
    return tuple(word.strip("\"'") for word in words) if os.name == "nt" else tuple(words)
