"""A command line from a settings file: its words, and what is put in for `{prompt_file}` and `{model}`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from learnt.errors import WrongRequest

_PROMPT_FILE = "{prompt_file}"
_MODEL = "{model}"


def split(command: str, *, setting: str) -> tuple[str, ...]:
    """Return the words as a shell would see them; `setting` says where to mend a line that cannot be read."""
    try:
        # On Windows a backslash separates folders.
        words = shlex.split(command, posix=os.name != "nt")
    except ValueError as error:
        raise WrongRequest(
            f"the command line `{command}` cannot be read: {error}",
            hint=f"check its quotes: {setting}",
        ) from None
    return tuple(word.strip("\"'") for word in words) if os.name == "nt" else tuple(words)


def takes_prompt_file(words: Sequence[str]) -> bool:
    """Say whether the program wants the prompt as a file, not on stdin."""
    return any(_PROMPT_FILE in word for word in words)


def fill_in(words: Sequence[str], *, prompt_file: str, model: str) -> tuple[str, ...]:
    """Return the words with the path of the prompt and the model's name put in."""
    return tuple(word.replace(_PROMPT_FILE, prompt_file).replace(_MODEL, model) for word in words)
