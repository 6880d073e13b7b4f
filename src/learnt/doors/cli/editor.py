"""Let a person change a learning in their editor. What they write is never lost."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from learnt.errors import LearntError, WrongRequest
from learnt.model import PARAGRAPHS, Learning
from learnt.text.entries import read_entries, render_form

Result = TypeVar("Result")


def select_editable(learning: Learning) -> dict[str, Any]:
    """Return the fields that the editor shows."""
    return {name: getattr(learning, name) for name in ("title", *PARAGRAPHS)}


def find_changes(before: Learning, edited: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that the person changed; others may have changed the rest meanwhile."""
    return {name: value for name, value in edited.items() if getattr(before, name) != value}


def edit_learning(fields: dict[str, Any], save: Callable[[dict[str, Any]], Result]) -> Result:
    """Let the person edit the title and the paragraphs, and save the result; other fields stay."""

    def read_and_save(text: str) -> Result:
        entries = list(read_entries(text))
        if not entries or not entries[0]["title"]:
            raise WrongRequest("there is no title, so nothing was saved", hint="write the title after the `##`")
        if len(entries) > 1:
            raise WrongRequest(f"the text holds {len(entries)} entries", hint="edit one learning at a time")
        # A paragraph that was emptied is removed.
        return save({**fields, **dict.fromkeys(PARAGRAPHS, ""), **entries[0]})

    form = render_form(fields["title"], {name: fields.get(name, "") for name in PARAGRAPHS})
    return _edit_text(form, read_and_save)


def _edit_text(text: str, save: Callable[[str], Result]) -> Result:
    """Let the person edit a text, and save it; if that fails, the error names the file that keeps it."""
    import tempfile

    handle, path = tempfile.mkstemp(prefix="learnt-", suffix=".md")
    with open(handle, "w", encoding="utf-8") as file:
        file.write(text)
    _run_editor(path)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            edited = file.read()
    except FileNotFoundError:
        raise WrongRequest("the editor removed the file, so nothing was saved", hint="save the file instead") from None
    try:
        result = save(edited)
    except LearntError as error:
        if edited == text:
            os.unlink(path)
        else:
            error.hint = f"{error.hint}{'; ' if error.hint else ''}your text is in {path}"
        raise
    os.unlink(path)
    return result


def _run_editor(path: str) -> None:
    import shlex
    import subprocess

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ("notepad" if sys.platform == "win32" else "vi")
    try:
        code = subprocess.run([*shlex.split(editor), path], check=False).returncode
    except (OSError, ValueError) as error:
        os.unlink(path)
        raise WrongRequest(
            f"cannot start the editor `{editor}`: {error}", hint="set $EDITOR to an installed program"
        ) from None
    if code:
        raise WrongRequest(f"the editor `{editor}` exited with code {code}", hint=f"your text is in {path}")
