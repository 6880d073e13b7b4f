"""What a person types at a terminal: yes or no, and single keys without Enter.

The terminal's settings are restored afterwards.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Self

if sys.platform == "win32":
    import msvcrt
else:
    import select
    import termios
    import tty

_ESCAPE = b"\x1b"


def is_at_keyboard() -> bool:
    """Return whether a person can press keys: the shell would stop a background job that reads them."""
    if sys.platform != "win32" and sys.stdin.isatty():
        try:
            return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
        except OSError:
            return True  # not our controlling terminal
    return sys.stdin.isatty()


class Keys:
    """Single keys from the terminal while the context lasts; Ctrl-C still interrupts."""

    def __init__(self) -> None:
        self._original_mode: list[Any] = []

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(self, *_error: object) -> None:
        self.give_back()

    def take(self) -> None:
        """Deliver keys at once, without Enter."""
        if sys.platform != "win32":
            self._original_mode = termios.tcgetattr(sys.stdin)
            # Without a flush, so that keys typed ahead count.
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
    """Skip the rest of the escape sequence of an arrow or function key."""
    if sys.platform != "win32":
        last = b"["
        while last and last in b"[O0123456789;" and select.select([keyboard], [], [], 0)[0]:
            last = os.read(keyboard, 1)


def confirm(question: str) -> bool:
    """Ask a yes-or-no question on stderr; anything but yes means no."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
