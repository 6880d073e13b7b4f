"""What a call of a tool is about: the command line that it runs, the files that it touches, whatever the client is."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PATHS = ("file_path", "filePath", "absolute_path", "notebook_path", "path")
COMMANDS = ("command", "cmd")
PATCHES = ("input", "patch", "patchText")
FOLDERS = ("workdir", "dir_path")
_TO_A_SHELL = ("-c", "-lc", "-Command", "/c")
_IN_PATCH = ("*** Update File: ", "*** Add File: ", "*** Delete File: ")


def first(given: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """Return what is given under the first of these keys that says something."""
    return next((given[key] for key in keys if given.get(key)), None)


def command_line(command: object) -> str:
    """Return a command line that came as a text, as words, or as words of which the last is a text for a shell."""
    if not isinstance(command, list):
        return command if isinstance(command, str) else ""
    words = [word for word in command if isinstance(word, str)]
    return words[2] if len(words) == 3 and words[1] in _TO_A_SHELL else " ".join(words)


def patched_by(command: str) -> tuple[str, ...]:
    """Return the files that a command line edits with a patch; it may print a patch, or write one down, as well."""
    before, begins, patch = command.partition("*** Begin Patch")
    return patched(patch) if begins and "apply_patch" in before else ()


def patched(patch: str) -> tuple[str, ...]:
    """Return the files that a patch of Codex's names."""
    lines = (line.strip() for line in patch.split("\n"))
    return tuple(line.partition(": ")[2].strip() for line in lines if line.startswith(_IN_PATCH))
