"""Read from git's index which files git tracks in a folder, without starting git.

Entries are in the order of their paths, so reading ends soon for a name that starts with a full stop. An index that is
damaged, or of an unknown kind, raises ValueError.
"""

from __future__ import annotations

from learnt.system.files import read_regular

_MAX_BYTES = 500_000_000
_HEADER_BYTES = 12
_FIXED_BYTES = 40  # before the hash
_FLAG_BYTES = 2
_EXTENDED = 0x4000
_PADDING = 8


def tracked_below(index: str, name: str, *, hash_bytes: int = 20) -> set[str]:
    """Return the tracked paths below a folder at the top of the worktree, relative to it; `.` for the folder itself."""
    try:
        content = read_regular(index, max_bytes=_MAX_BYTES)
    except FileNotFoundError:
        return set()
    folder, found = name.encode(), set()
    for path in _Entries(content, hash_bytes):
        if path == folder:
            found.add(".")
        elif path.startswith(folder + b"/"):
            found.add(path[len(folder) + 1 :].decode("utf-8", "replace"))
        elif path > folder + b"0":  # the character after the slash
            break
    return found


class _Entries:
    """The paths in an index, in its order."""

    def __init__(self, content: bytes, hash_bytes: int) -> None:
        self._content = content
        self._version = int.from_bytes(content[4:8], "big")
        if content[:4] != b"DIRC" or self._version not in (2, 3, 4):
            raise ValueError("not an index that learnt can read")
        self._left = int.from_bytes(content[8:_HEADER_BYTES], "big")
        self._place = _HEADER_BYTES
        self._fixed = _FIXED_BYTES + hash_bytes
        self._path = b""

    def __iter__(self) -> _Entries:
        return self

    def __next__(self) -> bytes:
        if not self._left:
            raise StopIteration
        self._left -= 1
        began, start = self._place, self._place + self._fixed + _FLAG_BYTES
        if int.from_bytes(self._content[start - _FLAG_BYTES : start], "big") & _EXTENDED:
            start += _FLAG_BYTES
        kept = b""
        if self._version == 4:
            cut, start = self._read_number(start)
            kept = self._path[: len(self._path) - cut]
        end = self._content.index(b"\0", start)
        self._path = kept + self._content[start:end]
        self._place = end + 1 if self._version == 4 else began + ((end - began) // _PADDING + 1) * _PADDING
        return self._path

    def _read_number(self, place: int) -> tuple[int, int]:
        """Return a number of variable length, and the place after it."""
        try:
            byte = self._content[place]
            number = byte & 127
            while byte & 128:
                place += 1
                byte = self._content[place]
                number = (number + 1 << 7) | byte & 127
        except IndexError:
            raise ValueError("the index ends too early") from None
        return number, place + 1
