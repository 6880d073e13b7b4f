"""Fill in command lines from the settings.

`{prompt_file}` is replaced with the path of the prompt's file, and `{model}` with the model's name.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from learnt.errors import WrongRequest

_PROMPT_FILE = "{prompt_file}"
_MODEL = "{model}"


def split_command_line(command: str, *, setting: str) -> tuple[str, ...]:
    """Return the words of a command line as a shell would split them; `setting` is where it is configured."""
    try:
        # On Windows a backslash separates folders.
        words = shlex.split(command, posix=os.name != "nt")
    except ValueError as error:
        message = f"the command line `{command}` cannot be read: {error}"
        raise WrongRequest(message, hint=f"check its quotes: {setting}") from None
    return tuple(word.strip("\"'") for word in words) if os.name == "nt" else tuple(words)


def takes_prompt_file(words: Sequence[str]) -> bool:
    """Return whether the program reads the prompt from a file instead of stdin."""
    return any(_PROMPT_FILE in word for word in words)


def fill_in(words: Sequence[str], *, prompt_file: str, model: str) -> tuple[str, ...]:
    """Return the words with the path of the prompt's file and the model's name filled in."""
    return tuple(word.replace(_PROMPT_FILE, prompt_file).replace(_MODEL, model) for word in words)
