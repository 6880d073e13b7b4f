"""A file that is ours from its first line, which says so, to its last."""

from __future__ import annotations

from learnt.clients.setup.shapes import Unfit
from learnt.model import Value


class WholeFile(Value):
    """The file's text; its first line is how it is known again."""

    text: str

    def add(self, content: bytes | None) -> bytes:
        """Return the file with what is ours in it; None stands for no file."""
        if content and content.strip() and not self.holds(content):
            raise Unfit("it is there already, and not ours", remedy="give that one another name")
        return self.text.encode()

    def remove(self, content: bytes, before: bytes | None) -> bytes | None:
        """Return the file without what is ours, None when nothing is left; `before` is what it was without it."""
        return before if self.holds(content) else content

    def holds(self, content: bytes) -> bool:
        """Say whether anything of ours is in the file."""
        return content.decode("utf-8", "replace").partition("\n")[0].rstrip() == self.text.partition("\n")[0]

    def by_hand(self, _content: bytes | None, /) -> str:
        """Return nothing: nobody writes a whole file by hand."""
        return ""
