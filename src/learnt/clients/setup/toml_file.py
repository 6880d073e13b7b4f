"""Put the MCP server into Codex's config.toml, and take it out again, without touching another byte.

The table is one of its own, with a remark right above it that goes where it goes: Codex writes into this file, too.
What comes out is read once more; a text that would then say anything else than it should is refused.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from learnt.clients.setup.shapes import NAME, Unfit, decoded, is_our_server
from learnt.model import Value

_HOLDER = "mcp_servers"
_REMARK = "# Written by `learnt install codex`; `learnt uninstall codex` takes it out."
_TABLE = re.compile(
    rf"(?:^[ \t]*\r?\n)?(?:^{re.escape(_REMARK)}\r?\n)?^\[{_HOLDER}\.{NAME}\][ \t]*(?:#[^\r\n]*)?"
    r"(?:\r?\n[ \t]*[\w-]+[ \t]*=[^\r\n]*)*(?:\r?\n|\Z)",
    re.M,
)
# The entry that somebody wrote by hand into the braces of `mcp_servers = {…}`.
_INLINE = re.compile(
    rf"(?P<before>[ \t]*,[ \t]*)?(?P<entry>(?P<quote>[\"']?){NAME}(?P=quote)[ \t]*=[ \t]*\{{[^{{}}\n]*\}})"
    r"(?P<after>[ \t]*,[ \t]*)?"
)


class TomlFile(Value):
    """The table of our server."""

    server: Mapping[str, Any]

    def add(self, content: bytes | None) -> bytes:
        """Return the file with what is ours in it; None stands for no file."""
        mark, text = decoded(content or b"")
        value = _read(text)
        if not isinstance(value.get(_HOLDER, {}), dict):
            raise Unfit(f"`{_HOLDER}` is no table", remedy="make it one")
        found = _found(value)
        if found is not None:
            if not is_our_server(found):
                raise Unfit(f"another server is called `{NAME}` in `{_HOLDER}`", remedy="give that one another name")
            if self.server.items() <= found.items():
                return content or b""
            text = _cut(text, value)[0]
        line = "\r\n" if "\r\n" in text else "\n"
        added = line.join([_REMARK, f"[{_HOLDER}.{NAME}]", *self._lines(found or {}), ""])
        gap = (line if text and not text.endswith("\n") else "") + (line if text else "")
        ours = {NAME: {**(found or {}), **self.server}}
        if not _says(text + gap + added, {**value, _HOLDER: {**_servers(value), **ours}}):
            raise _unsafe()
        return (mark + text + gap + added).encode()

    def remove(self, content: bytes, before: bytes | None) -> bytes | None:
        """Return the file without what is ours, None when nothing is left; `before` is what it was without it."""
        mark, text = decoded(content)
        value = _read(text)
        if not is_our_server(_found(value)):
            return content
        left, was_last = _cut(text, value)
        if before is None and not left.strip():
            return None
        if before and not before.endswith(b"\n") and was_last:
            left = left.removesuffix("\n").removesuffix("\r")
        return (mark + left).encode()

    def holds(self, content: bytes) -> bool:
        """Say whether anything of ours is in the file."""
        return is_our_server(_found(_read(decoded(content)[1])))

    def by_hand(self, content: bytes | None, /) -> str:
        """Return what a person can add to the file as it is."""
        lines = self._lines({})
        text = (content or b"").decode("utf-8-sig", "replace")
        if not _is_toml(text):
            text = ""  # once it is mended
        if _found(tomllib.loads(text)) is not None:
            return "\n".join([f"# so that the table `{_HOLDER}.{NAME}`, which is there, says", *lines])
        table = "\n".join([f"[{_HOLDER}.{NAME}]", *lines])
        if _is_toml(f"{text}\n{table}"):
            return table
        return f"# within the braces of `{_HOLDER} = {{…}}`, after a comma\n{NAME} = {{ {', '.join(lines)} }}"

    def _lines(self, found: Mapping[str, Any]) -> list[str]:
        # JSON's texts and lists of texts are TOML's.
        return [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in {**found, **self.server}.items()]


def _read(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Unfit(str(error)) from None


def _servers(value: Mapping[str, Any]) -> dict[str, Any]:
    servers = value.get(_HOLDER, {})
    return servers if isinstance(servers, dict) else {}


def _found(value: Mapping[str, Any]) -> Any:
    return _servers(value).get(NAME)


def _cut(text: str, value: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the text without our table, and whether that was the last of it."""
    wanted = {**value, _HOLDER: {key: one for key, one in _servers(value).items() if key != NAME}}
    for table in _TABLE.finditer(text):  # one of them may stand in a text
        left = text[: table.start()] + text[table.end() :]
        if _says(left, wanted):
            return left, table.end() == len(text)
    for entry in _INLINE.finditer(text):
        # With the comma before it, or else with the one after it.
        start, end = (entry.start(), entry.end("entry")) if entry["before"] else (entry.start("entry"), entry.end())
        if _says(text[:start] + text[end:], wanted):
            return text[:start] + text[end:], False
    raise _unsafe()


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _says(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return {_HOLDER: {}, **tomllib.loads(text)} == {_HOLDER: {}, **wanted}
    except tomllib.TOMLDecodeError:
        return False


def _unsafe() -> Unfit:
    return Unfit(f"the table `{_HOLDER}` is written in a way that cannot be changed safely")
