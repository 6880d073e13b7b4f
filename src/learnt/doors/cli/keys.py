"""Single key presses at a terminal, without Enter; the terminal is left as it was found."""

from __future__ import annotations

import os
import sys

if sys.platform == "win32":
    import msvcrt
else:
    import select
    import termios
    import tty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

_ESCAPE = b"\x1b"


def is_at_keyboard() -> bool:
    """Say whether a person can press a key for us: a job in a shell's background would be stopped by asking."""
    if sys.platform != "win32" and sys.stdin.isatty():
        try:
            return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
        except OSError:
            return True  # a terminal that controls nobody
    return sys.stdin.isatty()


class Keys:
    """The keyboard, key by key, while the context lasts; Ctrl-C still interrupts."""

    def __init__(self) -> None:
        self._as_found: list[Any] = []

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give_back()

    def take(self) -> None:
        """Hear every key from now on."""
        if sys.platform != "win32":
            self._as_found = termios.tcgetattr(sys.stdin)
            # Not with a flush: what is typed ahead counts.
            tty.setcbreak(sys.stdin, termios.TCSADRAIN)

    def give_back(self) -> None:
        """Leave the terminal as it was, for an editor or the shell."""
        if sys.platform != "win32" and self._as_found:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._as_found)

    def read(self) -> str:
        """Return the next key in lower case; empty when nobody is there any more."""
        if sys.platform == "win32":
            key = msvcrt.getwch()
            if key == "\x03":
                raise KeyboardInterrupt
        else:
            keyboard = sys.stdin.fileno()
            pressed = os.read(keyboard, 1)
            if pressed == _ESCAPE:
                _pass_over_sequence(keyboard)
            key = pressed.decode("latin-1")
        return key.lower()

    def forget_typed_ahead(self) -> None:
        """Let go of what was typed before anybody asked."""
        if sys.platform == "win32":
            while msvcrt.kbhit():
                msvcrt.getwch()
        else:
            termios.tcflush(sys.stdin, termios.TCIFLUSH)


def _pass_over_sequence(keyboard: int) -> None:
    """Read the rest of an arrow or a function key: several signs, none of them meant as a key."""
    if sys.platform != "win32":
        follows = b"["
        while follows and follows in b"[O0123456789;" and select.select([keyboard], [], [], 0)[0]:
            follows = os.read(keyboard, 1)
