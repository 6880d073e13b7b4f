"""Let a person change a text in their editor, without ever losing what they wrote."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile

from learnt.errors import LearntError, WrongRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Kept = TypeVar("Kept")


def edit_text(text: str, keep: Callable[[str], Kept]) -> Kept:
    """Return what `keep` makes of the edited text; if it cannot, the file stays and the error says where."""
    handle, path = tempfile.mkstemp(prefix="learnt-", suffix=".md")
    with open(handle, "w", encoding="utf-8") as file:
        file.write(text)
    _run_editor(path)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            edited = file.read()
    except FileNotFoundError:
        raise WrongRequest("the editor removed the file, so nothing was kept", hint="save the file instead") from None
    try:
        result = keep(edited)
    except LearntError as error:
        if edited == text:
            os.unlink(path)
        else:
            error.hint = f"{error.hint}{'; ' if error.hint else ''}your text is kept in {path}"
        raise
    os.unlink(path)
    return result


def _run_editor(path: str) -> None:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ("notepad" if sys.platform == "win32" else "vi")
    try:
        code = subprocess.run([*shlex.split(editor), path], check=False).returncode
    except (OSError, ValueError) as error:
        os.unlink(path)
        raise WrongRequest(f"cannot start the editor `{editor}`: {error}", hint="set $EDITOR to a program") from None
    if code:
        raise WrongRequest(f"the editor `{editor}` ended with code {code}", hint=f"your text is kept in {path}")
