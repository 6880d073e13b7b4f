"""Set up aider, which has neither hooks nor MCP, to read learnings.md with every prompt.

The file is added to the list `read` in .aider.conf.yml. This is not a YAML parser: a missing list is appended, a list
with a dash for each file gets one more entry, and any other form is rejected with the text to add by hand. All other
bytes stay the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from learnt.clients.kit import setup as kit
from learnt.errors import WrongRequest
from learnt.model import Value

_FILE = ".learnt/learnings.md"
_KEY = "read"
# A line without indentation is a key, a comment, an item in the list above, or the beginning of the document.
_TOP = re.compile(r"(?:\"[^\"]*\"|'[^']*'|[A-Za-z_][\w.-]*)[ \t]*:(?=\s|$)|#|-(?=\s)|---[ \t]*$|%YAML")
_KEY_LINE = re.compile(rf"[\"']?{_KEY}[\"']?[ \t]*:(?=\s|$)")
_NO_VALUE = re.compile(r":[ \t]*(?:[ \t]#.*)?\r?\n?$")
_ITEM = re.compile(
    r"(?P<indent> *)-[ \t]+(?P<quote>[\"']?)(?P<word>[^\s\"'#\[\]{},&*!|>%@`][^\"'#:]*?)(?P=quote)[ \t]*(?:[ \t]#.*)?$"
)
_OURS = rf"[\"']?{re.escape(_FILE)}[\"']?"
# Earlier versions added our file to a list in brackets.
_IN_BRACKETS = re.compile(rf",[ \t]*{_OURS}(?=[ \t]*[],])|(?<=\[)[ \t]*{_OURS}[ \t]*,?[ \t]*")


def targets(location: kit.Location) -> list[kit.Target]:
    """Return aider's settings file and the change to it."""
    if location.user:
        raise WrongRequest("aider can only be set up in a project", hint="use `learnt install aider` in the project")
    return [kit.Target(path=os.path.join(location.root, ".aider.conf.yml"), edit=ReadList())]


def next_step(location: kit.Location) -> str:
    """Return the next step for the user after the files are written."""
    return f"start aider in {location.root}; `learnt update` writes {_FILE}"


def find_switch(location: kit.Location, read: kit.Read) -> kit.Fault | None:
    """Return None: aider has no hooks that a setting could disable."""
    return None


def find_trust(location: kit.Location, targets: Sequence[kit.Target], disk: kit.Disk) -> kit.Trust:
    """Return an unknown trust: aider has no hooks."""
    return kit.Trust()


class ReadList(Value):
    """Adds our file to the list `read` in .aider.conf.yml, and removes it."""

    def add(self, content: bytes | None) -> bytes:
        mark, text = kit.decode(content or b"")
        if _is_listed(text):
            return content or b""
        lines = _lines(text)
        line_end = "\r\n" if "\r\n" in text else "\n"
        key = _find_key(lines)
        if key is None:
            gap = line_end if lines and not lines[-1].endswith("\n") else ""
            return f"{mark}{text}{gap}{_KEY}: [{_FILE}]{line_end}".encode()
        last, indent = _last_item(lines, key)
        item, whole = f"{indent}- {_FILE}", lines[last].endswith("\n")
        lines[last : last + 1] = [lines[last], item + line_end] if whole else [lines[last] + line_end, item]
        return (mark + "".join(lines)).encode()

    def remove(self, content: bytes, before: bytes | None) -> bytes | None:
        mark, text = kit.decode(content)
        lines = _lines(text)
        key = _find_key(lines)
        if key is None or not _is_listed(text):
            return content
        items = _items(lines, key)
        ours = [number for number in items if _word(lines[number]) == _FILE]
        if ours:
            # The key is removed with its last item, so that it is not left without a value.
            removed = {key, *ours} if len(items) == len(ours) else set(ours)
        else:
            lines[key] = _IN_BRACKETS.sub("", lines[key], count=1)
            removed = {key} if re.search(r":[ \t]*\[[ \t]*\]", lines[key]) else set()
        remaining = "".join(line for number, line in enumerate(lines) if number not in removed)
        if _is_listed(remaining):
            raise kit.Unfit(f"`{_KEY}` is written in a way that cannot be changed safely")
        if before is None and not remaining.strip():
            return None
        if before and not before.endswith(b"\n") and len(lines) - 1 in removed:
            remaining = remaining.removesuffix("\n").removesuffix("\r")
        return (mark + remaining).encode()

    def has_settings(self, content: bytes) -> bool:
        return _is_listed(kit.decode(content)[1])

    def by_hand(self, content: bytes | None, /) -> str:
        text = (content or b"").decode("utf-8-sig", "replace")
        if re.search(rf"(?:^|[\s{{,\"']){_KEY}[\"']?[ \t]*:", text):
            return f"# one more of the list that `{_KEY}` holds; no second `{_KEY}:`\n{_FILE}"
        if text.lstrip().startswith("{"):
            return f"# within the braces\n{_KEY}: [{_FILE}]"
        return f"{_KEY}: [{_FILE}]"

    def commands(self, _content: bytes, /) -> kit.Commands:
        """Return no command lines: aider starts neither hooks nor servers."""
        return kit.Commands()


def _lines(text: str) -> list[str]:
    # Not `splitlines`, which also splits at characters that do not end a line in YAML.
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _find_key(lines: list[str]) -> int | None:
    """Return the key's line number, None if it is missing. Raise Unfit if the file is not a plain mapping."""
    keys = []
    for number, line in enumerate(lines):
        bare = line.rstrip("\r\n")
        if bare.startswith("\t"):
            raise kit.Unfit(f"line {number + 1} is indented by a tab", remedy="fix it")
        if bare.strip() and not bare.startswith(" ") and not _TOP.match(bare):
            raise kit.Unfit(f"line {number + 1} is not a key with its value")
        if bare.startswith("---") and any(above.strip() and above[0] not in "#%" for above in lines[:number]):
            raise kit.Unfit("it contains more than one document")
        if _KEY_LINE.match(bare):
            keys.append(number)
    if len(keys) > 1:
        raise kit.Unfit(f"`{_KEY}` is there more than once", remedy="leave one of them")
    return keys[0] if keys else None


def _items(lines: list[str], key: int) -> list[int]:
    """Return the line numbers of the list items below the key, without comments and blank lines."""
    numbers = []
    for number in range(key + 1, len(lines)):
        line = lines[number]
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not line.startswith((" ", "- ", "-\t")):
            break
        numbers.append(number)
    return numbers


def _last_item(lines: list[str], key: int) -> tuple[int, str]:
    """Return the line number and the indentation of the last item in a list with dashes, or raise Unfit."""
    numbers = _items(lines, key)
    items = [_ITEM.match(lines[number].rstrip("\r\n")) for number in numbers]
    indents = {item["indent"] if item else None for item in items}
    indent = indents.pop() if len(indents) == 1 else None
    if indent is None or not _NO_VALUE.search(lines[key]):
        raise kit.Unfit(f"`{_KEY}` is not a list with a dash for each file")
    return numbers[-1], indent


def _word(line: str) -> str:
    item = _ITEM.match(line.rstrip("\r\n"))
    return item["word"] if item else ""


def _is_listed(text: str) -> bool:
    """Return whether our file is in the key's list, however the list is written."""
    lines = _lines(text)
    key = _find_key(lines)
    if key is None:
        return False
    value = [lines[key].partition(":")[2], *(lines[number] for number in _items(lines, key))]
    return any(_FILE in re.split(r"[\s,\[\]\"']+", re.sub(r"(?:^|\s)#.*", "", line)) for line in value)
