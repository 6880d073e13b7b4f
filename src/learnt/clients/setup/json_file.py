"""Put hooks, servers and permissions into a client's JSON settings, and take them out again.

Only what is ours is touched: a hook by its command, a server by its name and command, a word by itself. What is ours
and has changed is brought up to date in its place, because clients know a hook by its position, too; what somebody
added to it stays. Objects and lists that become empty go, unless they were there before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from learnt.clients.setup import json_text
from learnt.clients.setup.json_text import PLAIN, Path, look
from learnt.clients.setup.shapes import NAME, Unfit, as_json, decoded, is_our_hook, is_our_server
from learnt.model import Value

_HOOKS = "hooks"


class JsonFile(Value):
    """What is ours in one file: `hooks` by event, a `server` below the key `servers`, and `words` in lists by path.

    `fresh` is what a new file begins with.
    """

    hooks: Mapping[str, Mapping[str, Any]] = {}
    servers: str = ""
    server: Mapping[str, Any] = {}
    words: Mapping[tuple[str, ...], str] = {}
    fresh: Mapping[str, Any] = {}
    dialect: int = PLAIN

    def add(self, content: bytes | None) -> bytes:
        """Return the file with what is ours in it; None stands for no file."""
        mark, text = decoded(content or b"")
        if not text.strip():
            # Nothing in it: as good as no file.
            text = as_json(self.fresh) + "\n"
        root = json_text.parse(text, self.dialect)
        if not isinstance(root, dict):
            raise Unfit("it holds no JSON object")
        changed = text
        if self.hooks:
            changed = self._with_hooks(changed)
        if self.servers:
            changed = self._with_server(changed)
        for path, word in self.words.items():
            found = look(json_text.parse(changed, self.dialect), path)
            if not isinstance(found, list) or word not in found:
                changed = json_text.append(changed, path, word)
        json_text.parse(changed, self.dialect)
        return (mark + changed).encode()

    def remove(self, content: bytes, before: bytes | None) -> bytes | None:
        """Return the file without what is ours, None when nothing is left; `before` is what it was without it."""
        mark, text = decoded(content)
        if not text.strip():
            return content
        was = decoded(before)[1] if before is not None else ""
        known = json_text.parse(was, self.dialect) if was.strip() else {}
        for event, group, position in reversed(list(self._our_hooks(text))):
            alone = len(look(self._value(text), (_HOOKS, event, group, _HOOKS))) == 1
            text = json_text.cut(text, (_HOOKS, event, group) if alone else (_HOOKS, event, group, _HOOKS, position))
            text = self._tidied(text, (_HOOKS, event), was, known)
        if self.servers and is_our_server(look(self._value(text), (self.servers, NAME))):
            text = json_text.cut(text, (self.servers, NAME))
            text = self._tidied(text, (self.servers,), was, known)
        for path, word in self.words.items():
            found = look(self._value(text), path)
            if isinstance(found, list) and word in found and word not in (look(known, path) or []):
                text = self._tidied(json_text.cut(text, (*path, found.index(word))), path, was, known)
        if before is None and self._value(text) in ({}, dict(self.fresh)):
            return None
        if not self._value(text) and known == {} and was.strip():
            text = was
        return (mark + text).encode()

    def holds(self, content: bytes) -> bool:
        """Say whether anything of ours is in the file."""
        text = decoded(content)[1]
        if not text.strip():
            return False
        found = look(self._value(text), (self.servers, NAME)) if self.servers else None
        return is_our_server(found) or next(self._our_hooks(text), None) is not None

    def by_hand(self, _content: bytes | None, /) -> str:
        """Return what a person can add to the file as it is."""
        added = self._value(decoded(self.replace(dialect=PLAIN, fresh={}).add(None))[1])
        parts = []
        for key, inner in added.items():  # a line for each, so that it can be seen at a glance
            lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(value)}" for name, value in inner.items())
            parts.append(f"  {json.dumps(key)}: {{\n{lines}\n  }}")
        return "{\n" + ",\n".join(parts) + "\n}"

    def _value(self, text: str) -> Any:
        return json_text.parse(text, self.dialect)

    def _our_hooks(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Yield the event, the group and the position of each hook of ours."""
        events = look(self._value(text), (_HOOKS,))
        for event, groups in events.items() if isinstance(events, dict) and self.hooks else ():
            for number, group in enumerate(groups if isinstance(groups, list) else ()):
                handlers = look(group, (_HOOKS,))
                for position, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                    if is_our_hook(handler):
                        yield event, number, position

    def _with_hooks(self, text: str) -> str:
        kept: set[str] = set()
        surplus = []
        for event, group, position in self._our_hooks(text):
            if event in self.hooks and event not in kept:
                kept.add(event)
                text = self._updated(text, (_HOOKS, event, group, _HOOKS, position), self.hooks[event])
            else:
                surplus.append((event, group, position))
        for event, group, position in reversed(surplus):
            alone = len(look(self._value(text), (_HOOKS, event, group, _HOOKS))) == 1
            text = json_text.cut(text, (_HOOKS, event, group) if alone else (_HOOKS, event, group, _HOOKS, position))
            text = self._tidied(text, (_HOOKS, event), "", {})
        for event, handler in self.hooks.items():
            if event not in kept:
                text = json_text.append(text, (_HOOKS, event), {_HOOKS: [dict(handler)]})
        return text

    def _with_server(self, text: str) -> str:
        path = (self.servers, NAME)
        found = look(self._value(text), path)
        if found is None:
            return json_text.put(text, path, dict(self.server))
        if not is_our_server(found):
            raise Unfit(f"another server is called `{NAME}` in `{self.servers}`", remedy="give that one another name")
        return self._updated(text, path, self.server)

    def _updated(self, text: str, path: Path, wanted: Mapping[str, Any]) -> str:
        found = look(self._value(text), path)
        for key, value in wanted.items():
            if found.get(key) != value:
                text = json_text.put(text, (*path, key), value)
        return text

    def _tidied(self, text: str, path: Path, was: str, known: Any) -> str:
        """Return the text without the holders that have become empty, or with them as they were."""
        while path and look(self._value(text), path) in ({}, []):
            if look(known, path) is None:
                text = json_text.cut(text, path)
            elif look(known, path) in ({}, []):
                text = json_text.swap(text, path, json_text.piece(was, path) or "")
            path = path[:-1]
        return text
