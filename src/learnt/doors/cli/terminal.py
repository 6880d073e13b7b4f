"""Input from a person at a terminal: yes or no, single keys without Enter, and a learning in their editor.

The terminal's settings are restored afterwards, and text that a person wrote is never lost.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Self, TypeVar

from learnt.doors.output import printable
from learnt.errors import LearntError, WrongRequest
from learnt.model import PARAGRAPHS, Learning
from learnt.text.entries import read_entries, render_cues, render_form

if sys.platform == "win32":
    import msvcrt
else:
    import select
    import termios
    import tty

_ESCAPE = b"\x1b"


def is_at_keyboard() -> bool:
    """Return whether a person can press keys. In a background job they cannot: the shell would stop it."""
    if sys.platform != "win32" and sys.stdin.isatty():
        try:
            return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
        except OSError:
            return True  # not our controlling terminal
    return sys.stdin.isatty()


class Keys:
    """Reads single keys from the terminal inside its `with` block; Ctrl-C still interrupts."""

    def __init__(self) -> None:
        self._original_mode: list[Any] = []

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(self, *_error: object) -> None:
        self.give_back()

    def take(self) -> None:
        """Deliver keys immediately, without Enter."""
        if sys.platform != "win32":
            self._original_mode = termios.tcgetattr(sys.stdin)
            # Input is not flushed, so that keys typed ahead are used.
            tty.setcbreak(sys.stdin, termios.TCSADRAIN)

    def give_back(self) -> None:
        """Restore the terminal, for an editor or the shell."""
        if sys.platform != "win32" and self._original_mode:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._original_mode)

    def read(self) -> str:
        """Return the next key in lower case; empty at the end of input."""
        if sys.platform == "win32":
            key = msvcrt.getwch()
            if key == "\x03":
                raise KeyboardInterrupt
        else:
            keyboard = sys.stdin.fileno()
            pressed = os.read(keyboard, 1)
            if pressed == _ESCAPE:
                _skip_sequence(keyboard)
            key = pressed.decode("latin-1")
        return key.lower()

    def discard_input(self) -> None:
        """Discard keys that were typed before the question."""
        if sys.platform == "win32":
            while msvcrt.kbhit():
                msvcrt.getwch()
        else:
            termios.tcflush(sys.stdin, termios.TCIFLUSH)


def _skip_sequence(keyboard: int) -> None:
    """Skip the rest of an arrow or function key's escape sequence."""
    if sys.platform != "win32":
        last = b"["
        while last and last in b"[O0123456789;" and select.select([keyboard], [], [], 0)[0]:
            last = os.read(keyboard, 1)


def confirm(question: str, *, default: bool = False) -> bool:
    """Ask a yes-or-no question on stderr until it is answered, and return the answer.

    An empty line means the default, the end of input means no, and `q` raises WrongRequest.
    """
    while True:
        shown = f"{printable(question, sys.stderr)} [{'Y/n' if default else 'y/N'}] "
        print(shown, end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        answer = line.strip().lower()
        if answer in ("q", "quit"):
            raise WrongRequest("ended at the question: nothing was changed")
        if not answer:
            return default and bool(line)
        if answer in _ANSWERS:
            return _ANSWERS[answer]
        print("Answer y or n, or q to end.", file=sys.stderr)


_ANSWERS = {"y": True, "yes": True, "n": False, "no": False}
Result = TypeVar("Result")


def select_editable(learning: Learning) -> dict[str, Any]:
    """Return the fields that the editor shows."""
    return {name: getattr(learning, name) for name in ("title", *PARAGRAPHS, "cues")}


def find_changes(before: Learning, edited: dict[str, Any]) -> dict[str, Any]:
    """Return only the fields that the person changed, because other people may have changed the rest meanwhile."""
    return {name: value for name, value in edited.items() if getattr(before, name) != value}


def edit_learning(fields: dict[str, Any], save: Callable[[dict[str, Any]], Result]) -> Result:
    """Let the person edit the title, the paragraphs and the cues, and save them; other fields stay unchanged."""

    def read_and_save(text: str) -> Result:
        entries = list(read_entries(text))
        if not entries or not entries[0]["title"]:
            raise WrongRequest("there is no title, so nothing was saved", hint="write the title after the `##`")
        if len(entries) > 1:
            raise WrongRequest(f"the text contains {len(entries)} entries", hint="edit one learning at a time")
        # A paragraph that was emptied is removed.
        edited = {**fields, **dict.fromkeys(PARAGRAPHS, ""), **entries[0]}
        return save({**edited, "cues": tuple(entries[0].get("cues", ()))})

    form = render_form(fields["title"], {name: fields.get(name, "") for name in PARAGRAPHS})
    return _edit_text(form + render_cues(fields.get("cues", ())), read_and_save)


def _edit_text(text: str, save: Callable[[str], Result]) -> Result:
    """Let the person edit the text, and save it; if saving fails, the error says which file contains the text."""
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
