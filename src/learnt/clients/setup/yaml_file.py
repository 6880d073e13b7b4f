"""Put a file into a list of .aider.conf.yml, and take it out again, line by line.

This is no reader of YAML: it knows the ways in which such a list is written (one text, `[a, b]`, or a line with a dash
for each) and refuses all others, so that comments, order and every other byte stay.
"""

from __future__ import annotations

import re

from learnt.clients.setup import yaml_balance
from learnt.clients.setup.shapes import Unfit, decoded
from learnt.model import Value

# What a line without indentation may be: a key, a comment, a dash of the list above, the beginning of the document.
_TOP = re.compile(r"(?:\"[^\"]*\"|'[^']*'|[A-Za-z_][\w.-]*)[ \t]*:(?=\s|$)|#|-(?=\s)|---[ \t]*$|%YAML")
_WORD = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'|[^\s,\[\]{}#&*!|>%@`\"'-][^,\[\]{}#]*|-[^\s,\[\]{}#][^,\[\]{}#]*"
)
_COMMENT = r"(?P<comment>[ \t]+#.*)?"


class YamlFile(Value):
    """One word in the list of a key."""

    key: str
    word: str

    def add(self, content: bytes | None) -> bytes:
        """Return the file with what is ours in it; None stands for no file."""
        mark, text = decoded(content or b"")
        wrong = yaml_balance.fault(text)
        if wrong:
            raise Unfit(f"it is not valid: {wrong}", remedy="mend it")
        lines = _lines(text)
        if self._is_in(lines):
            return content or b""
        line_end = "\r\n" if "\r\n" in text else "\n"
        at = self._place(lines)
        if at is None:
            gap = line_end if lines and not lines[-1].endswith("\n") else ""
            return (f"{mark}{text}{gap}{self._new()}{line_end}").encode()
        last, items = self._block(lines, at)
        if items:
            lines[last : last + 1] = _after(lines[last], f"{items[-1]}- {self.word}", line_end)
        else:
            lines[at] = self._grown(lines[at])
        return (mark + "".join(lines)).encode()

    def remove(self, content: bytes, before: bytes | None) -> bytes | None:
        """Return the file without what is ours, None when nothing is left; `before` is what it was without it."""
        mark, text = decoded(content)
        lines = _lines(text)
        at = self._place(lines)
        if at is None or not self._is_in(lines):
            return content
        last, items = self._block(lines, at)
        if items:
            ours = next(number for number in range(at + 1, last + 1) if _item(lines[number]) == self.word)
            # The key alone would be left.
            gone = {at, ours} if len(items) == 1 else {ours}
        else:
            left_of_it = self._left_of(lines[at], _lines(decoded(before or b"")[1]))
            gone = set() if left_of_it else {at}
            lines[at] = left_of_it
        left = "".join(line for number, line in enumerate(lines) if number not in gone)
        if before is None and not left.strip():
            return None
        if before and not before.endswith(b"\n") and len(lines) - 1 in gone:
            left = left.removesuffix("\n").removesuffix("\r")
        return (mark + left).encode()

    def holds(self, content: bytes) -> bool:
        """Say whether anything of ours is in the file."""
        return self._is_in(_lines(decoded(content)[1]))

    def by_hand(self, content: bytes | None, /) -> str:
        """Return what a person can add to the file as it is."""
        text = (content or b"").decode("utf-8-sig", "replace")
        if re.search(rf"(?:^|[\s{{,\"']){re.escape(self.key)}[\"']?[ \t]*:", text):
            return f"# one more of the list that `{self.key}` holds; no second `{self.key}:`\n{self.word}"
        if text.lstrip().startswith("{"):
            return f"# within the braces\n{self._new()}"
        return self._new()

    def _new(self) -> str:
        return f"{self.key}: [{self.word}]"

    def _place(self, lines: list[str]) -> int | None:
        """Return the line of the key; raise Unfit for a file that is not one plain set of keys."""
        found = []
        for number, line in enumerate(lines):
            bare = line.rstrip("\r\n")
            if bare.startswith("\t"):
                raise Unfit(f"line {number + 1} is indented by a tab", remedy="mend it")
            if bare.strip() and not bare.startswith(" ") and not _TOP.match(bare):
                raise Unfit(f"line {number + 1} is not a key with its value")
            if bare.startswith("---") and any(one.strip() and one[0] not in "#%" for one in lines[:number]):
                raise Unfit("it holds more than one document")
            if re.match(rf"[\"']?{re.escape(self.key)}[\"']?[ \t]*:(?:\s|$)", bare):
                found.append(number)
        if len(found) > 1:
            raise Unfit(f"`{self.key}` is there more than once", remedy="leave one of them")
        return found[0] if found else None

    def _is_in(self, lines: list[str]) -> bool:
        at = self._place(lines)
        if at is None:
            return False
        try:
            last, items = self._block(lines, at)
            return self.word in ([_item(line) for line in lines[at + 1 : last + 1]] if items else _words(lines[at]))
        except Unfit:
            # It cannot be changed, but a person may have put it there.
            if self._stands_below(lines, at):
                return True
            raise

    def _stands_below(self, lines: list[str], at: int) -> bool:
        """Say whether the word stands by itself in the value of the key, however that is written."""
        value = [lines[at].partition(":")[2]]
        for line in lines[at + 1 :]:
            if line.strip() and not line.startswith((" ", "-", "#", "]")):
                break
            value.append(line)
        words = [word for line in value for word in re.split(r"[\s,\[\]\"']+", re.sub(r"(?:^|\s)#.*", "", line))]
        return self.word in words

    def _block(self, lines: list[str], at: int) -> tuple[int, list[str]]:
        """Return the last line of a list with dashes below the key, and the indentation of each of its items."""
        value = _value(lines[at])
        items: list[str] = []
        last = at
        for number in range(at + 1, len(lines)):
            line = lines[number]
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            dash = re.match(r"( *)-[ \t]+\S", line)
            if not dash and not line.startswith(" "):
                break
            if value or not dash or _item(line) is None or (items and dash[1] != items[0]):
                raise Unfit(f"`{self.key}` is written in a way that cannot be changed safely")
            items.append(dash[1])
            last = number
        return last, items

    def _grown(self, line: str) -> str:
        words, value = _words(line), _value(line)
        if value.startswith("[") and words:
            inner = value[:-1].rstrip()
            comma = "" if inner.endswith(",") else ","
            return _with_value(line, f"{inner}{comma} {self.word}{value[len(inner) :]}")
        one = words and not value.startswith("[")
        return _with_value(line, f"[{value}, {self.word}]" if one else f"[{self.word}]")

    def _left_of(self, line: str, was: list[str]) -> str:
        """Return the line without our word, its value written as it was before if it says the same."""
        words = [word for word in _words(line) if word != self.word]
        then = self._place(was)
        if then is not None and _words(was[then]) == words:
            old = _value(was[then])
            return _with_value(line, old) if old else was[then].rstrip("\r\n") + line[len(line.rstrip("\r\n")) :]
        ours = rf"[\"']?{re.escape(self.word)}[\"']?"
        left = re.sub(rf",[ \t]*{ours}(?=[ \t]*[],])|(?<=\[)[ \t]*{ours}[ \t]*,?", "", _value(line), count=1)
        return _with_value(line, left) if words else ""


def _lines(text: str) -> list[str]:
    # Not `splitlines`, which also cuts where YAML does not.
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _value(line: str) -> str:
    """Return what stands after the key, without its comment."""
    rest = line.partition(":")[2].rstrip("\r\n")
    return re.sub(r"(?:^|[ \t])#.*", "", rest).strip() if "'" not in rest and '"' not in rest else _quoted(rest)


def _quoted(rest: str) -> str:
    found = re.match(r"[ \t]*((?:\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'|[^\"'#]|(?<=\S)#)*)", rest)
    return found[1].strip() if found else ""


def _with_value(line: str, new: str) -> str:
    """Return a key's line with another value."""
    head, colon, rest = line.partition(":")
    old = _value(line)
    return f"{head}{colon}{rest.replace(old, new, 1)}" if old else f"{head}{colon} {new}{rest}"


def _words(line: str) -> list[str]:
    """Return the words of a value in its line: of a list in brackets, or the only one."""
    value = _value(line)
    if not value or value in ("~", "null"):
        return []
    many = value.startswith("[")
    if many and not value.endswith("]"):
        raise Unfit("a list goes over several lines")
    words, rest = [], value[1:-1].strip() if many else value
    while rest:
        found = _WORD.match(rest)
        if not found or (not many and found.end() != len(rest)):
            raise Unfit("a value is written in a way that cannot be changed safely")
        words.append(found[0].strip().strip("\"'"))
        rest = rest[found.end() :].lstrip()
        if rest and not rest.startswith(","):
            raise Unfit("a value is written in a way that cannot be changed safely")
        rest = rest[1:].lstrip()
    return words


def _item(line: str) -> str | None:
    """Return the word after a dash; None when it is more than a word."""
    found = re.match(rf"[ ]*-[ \t]+(?P<word>{_WORD.pattern}){_COMMENT}[ \t]*\r?\n?$", line)
    return found["word"].strip().strip("\"'") if found else None


def _after(line: str, new: str, line_end: str) -> list[str]:
    """Return a line and one after it; the last of a file may have no end."""
    return [line, new + line_end] if line.endswith("\n") else [line + line_end, new]
