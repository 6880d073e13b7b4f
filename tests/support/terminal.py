"""A real terminal, in which a person runs learnt commands."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """A terminal with a given width in a project."""

    def __init__(self, folder: Path, columns: int = 100) -> None:
        self.folder = folder
        self.columns = columns

    def run(self, *words: str, typed: str = "", **environ: str) -> tuple[int, str]:
        """Run a command as a person does; return its exit code and the screen, with `\\n` for line ends."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, self.columns, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-m", "learnt", *words],
            cwd=self.folder,
            env={**os.environ, "TERM": "xterm-256color", **environ},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        if typed:
            os.write(ours, typed.encode())
        screen = _until_the_end(ours)
        os.close(ours)
        return process.wait(), screen.decode().replace("\r\n", "\n")

    def text(self, *words: str, **environ: str) -> str:
        """Return the output, without colour, of a command that must succeed."""
        code, screen = self.run(*words, **environ)
        assert code == 0, screen
        return COLOUR.sub("", screen)


def _until_the_end(terminal: int) -> bytes:
    screen = b""
    while True:
        try:
            read = os.read(terminal, 65536)
        except OSError:  # Linux raises this when the other end is closed
            return screen
        if not read:
            return screen
        screen += read
