"""Insert hooks, servers and permissions into a client's JSON settings, and remove them again.

Only our entries are changed. A hook is recognised by its command, a server by its name and command, and a word by its
text. An outdated entry is updated in place, because clients also identify a hook by its position, and anything that a
person added to it stays. Objects and lists that become empty are removed, unless the original file had them.

All other bytes stay the same, and removing an inserted entry restores the original text. New text follows the file's
style: its indentation, line endings, line breaks and trailing commas. Comments and trailing commas are skipped if the
dialect allows them. Text that the client itself could not read is rejected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from learnt.clients.kit.setup import (
    NAME,
    Commands,
    Read,
    Unfit,
    decode,
    find_hooks,
    hook_words,
    is_our_server,
    server_words,
)
from learnt.errors import LearntError
from learnt.model import Value

Path = Sequence[str | int]

# The JSON extensions that a client reads.
PLAIN, WITH_COMMENTS, WITH_COMMENTS_AND_COMMAS = range(3)
_HOOKS, _ARGUMENTS = "hooks", "args"
_NAMED = "statusMessage"  # what a person calls a hook stays
_SPACE = " \t\r\n"
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.S)
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*+"|//[^\r\n]*+|/\*.*?\*/', re.S)
_STRING_OR_LAST_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+"|,(?=[ \t\r\n]*+[]}])', re.S)
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"|[][{}]', re.S)
_SCALAR = re.compile(r"[^\s,\]}]++")
_COMMENT_ON_LINE = re.compile(r"[ \t]*+(?://[^\r\n]*+|/\*[^\r\n]*?\*/)")
_STYLE_SAMPLE = 10_000  # the characters from which the style is guessed
_INDENTED = re.compile(r"\n([ \t]+)\S")


class JsonFile(Value):
    """Our entries in one file: `hooks` by event, a `server` below the key in `servers`, and `words` by the list's path.

    `outdated` are words of earlier versions. `fresh` is the initial content of a new file.
    """

    hooks: Mapping[str, Mapping[str, Any]] = {}
    servers: str = ""
    server: Mapping[str, Any] = {}
    words: Mapping[tuple[str, ...], str] = {}
    outdated: Mapping[tuple[str, ...], str] = {}
    fresh: Mapping[str, Any] = {}
    dialect: int = PLAIN

    def add(self, content: bytes | None) -> bytes:
        mark, text = decode(content or b"")
        if not text.strip():
            text = json.dumps(self.fresh, ensure_ascii=False, indent=2) + "\n"
        if not isinstance(self._value(text), dict):
            raise Unfit("it does not contain a JSON object")
        changed = text
        if self.hooks:
            changed = self._add_hooks(changed)
        if self.servers:
            changed = self._add_server(changed)
        for path, word in self.words.items():
            words = value_at(self._value(changed), path)
            if not isinstance(words, list) or word not in words:
                changed = append(changed, path, word)
        for path, word in self.outdated.items():
            changed = self._cut_word(changed, path, word, "", {})
        self._value(changed)  # raises if the result cannot be read
        return (mark + changed).encode()

    def remove(self, content: bytes, before: bytes | None) -> bytes | None:
        mark, text = decode(content)
        if not text.strip():
            return content
        original_text = decode(before)[1] if before is not None else ""
        original = self._value(original_text) if original_text.strip() else {}
        for hook in reversed(list(self._our_hooks(text))):
            text = self._cut_hook(text, hook, original_text, original)
        if self.servers and is_our_server(value_at(self._value(text), (self.servers, NAME))):
            text = cut(text, (self.servers, NAME))
            text = self._drop_empty(text, (self.servers,), original_text, original)
        for path, word in (*self.words.items(), *self.outdated.items()):
            if word not in (value_at(original, path) or []):
                text = self._cut_word(text, path, word, original_text, original)
        if before is None and self._value(text) in ({}, dict(self.fresh)):
            return None
        if not self._value(text) and original == {} and original_text.strip():
            text = original_text
        return (mark + text).encode()

    def has_settings(self, content: bytes) -> bool:
        text = decode(content)[1]
        if not text.strip():
            return False
        value = self._value(text)
        server = value_at(value, (self.servers, NAME)) if self.servers else None
        return is_our_server(server) or next(self._our_hooks(text), None) is not None

    def by_hand(self, _content: bytes | None, /) -> str:
        added = self._value(decode(self.replace(dialect=PLAIN, fresh={}).add(None))[1])
        parts = []
        for key, inner in added.items():  # one line per entry is easier to read
            lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(value)}" for name, value in inner.items())
            parts.append(f"  {json.dumps(key)}: {{\n{lines}\n  }}")
        return "{\n" + ",\n".join(parts) + "\n}"

    def commands(self, content: bytes, /) -> Commands:
        text = decode(content)[1]
        value = self._value(text) if text.strip() else {}
        places = find_hooks(value) if self.hooks else ()
        hooks = [value_at(value, (_HOOKS, event, group, _HOOKS, position)) for event, group, position in places]
        server = value_at(value, (self.servers, NAME)) if self.servers else None
        return Commands(
            hooks=tuple(dict.fromkeys(map(hook_words, hooks))),
            server=server_words(server) if is_our_server(server) else (),
        )

    def _value(self, text: str) -> Any:
        return parse(text, self.dialect)

    def _our_hooks(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Yield the event, the group and the position of each of our hooks."""
        return find_hooks(self._value(text)) if self.hooks else iter(())

    def _add_hooks(self, text: str) -> str:
        updated_events: set[str] = set()
        surplus = []
        for event, group, position in self._our_hooks(text):
            if event in self.hooks and event not in updated_events:
                updated_events.add(event)
                text = self._update_hook(text, (_HOOKS, event, group, _HOOKS, position), self.hooks[event])
            else:
                surplus.append((event, group, position))
        for hook in reversed(surplus):
            text = self._cut_hook(text, hook, "", {})
        for event, handler in self.hooks.items():
            if event not in updated_events:
                text = append(text, (_HOOKS, event), {_HOOKS: [dict(handler)]})
        return text

    def _update_hook(self, text: str, path: Path, wanted: Mapping[str, Any]) -> str:
        """Return the text with our hook as it should be; without `args`, the command is a line for a shell."""
        text = self._update(text, path, wanted)
        return text if _ARGUMENTS in wanted else cut(text, (*path, _ARGUMENTS))

    def _cut_hook(self, text: str, hook: tuple[str, int, int], original_text: str, original: Any) -> str:
        """Return the text without a hook, and without the hook's group if nothing else is in it."""
        event, group, position = hook
        alone = len(value_at(self._value(text), (_HOOKS, event, group, _HOOKS))) == 1
        text = cut(text, (_HOOKS, event, group) if alone else (_HOOKS, event, group, _HOOKS, position))
        return self._drop_empty(text, (_HOOKS, event), original_text, original)

    def _cut_word(self, text: str, path: Path, word: str, original_text: str, original: Any) -> str:
        words = value_at(self._value(text), path)
        if not isinstance(words, list) or word not in words:
            return text
        return self._drop_empty(cut(text, (*path, words.index(word))), path, original_text, original)

    def _add_server(self, text: str) -> str:
        path = (self.servers, NAME)
        server = value_at(self._value(text), path)
        if server is None:
            return put(text, path, dict(self.server))
        if not is_our_server(server):
            raise Unfit(f"another server is called `{NAME}` in `{self.servers}`", remedy="rename that server")
        return self._update(text, path, self.server)

    def _update(self, text: str, path: Path, wanted: Mapping[str, Any]) -> str:
        current = value_at(self._value(text), path)
        for key, value in wanted.items():
            if current.get(key) != value and not (key == _NAMED and key in current):
                text = put(text, (*path, key), value)
        return text

    def _drop_empty(self, text: str, path: Path, original_text: str, original: Any) -> str:
        """Return the text without newly empty containers; a container that was empty before gets its original text."""
        while path and value_at(self._value(text), path) in ({}, []):
            if value_at(original, path) is None:
                text = cut(text, path)
            elif value_at(original, path) in ({}, []):
                text = restore(text, path, original_text)
            path = path[:-1]
        return text


class _Item(NamedTuple):
    key: str | int
    start: int
    value: int
    end: int
    comma: int  # the position of the comma after the item; -1 if there is none


def parse(text: str, dialect: int = PLAIN) -> Any:
    """Return the value of JSON text, or raise Unfit."""
    bare = _without_comments(text) if dialect else text
    if dialect == WITH_COMMENTS_AND_COMMAS:
        bare = _STRING_OR_LAST_COMMA.sub(lambda match: " " if match[0] == "," else match[0], bare)
    try:
        return json.loads(bare, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        if dialect != WITH_COMMENTS_AND_COMMAS and _can_any_read(text):
            more = "trailing commas" if dialect else "comments or trailing commas"
            raise Unfit(f"it has {more}, which its client does not read") from None
        raise Unfit(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise Unfit(str(error)) from None


def read_json(path: str, read: Read, dialect: int = PLAIN) -> Any:
    """Return the value of a settings file; None if it is missing or cannot be read."""
    try:
        text = decode(read(path) or b"")[1]
        return parse(text, dialect) if text.strip() else None
    except (Unfit, LearntError):
        return None


def _can_any_read(text: str) -> bool:
    """Return whether the most lenient client could read the text."""
    try:
        parse(text, WITH_COMMENTS_AND_COMMAS)
    except Unfit:
        return False
    return True


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a number in JSON")


def value_at(value: Any, path: Path) -> Any:
    """Return the part of a value at a path; None if the path does not exist."""
    for key in path:
        if isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int):
            value = value[key] if key < len(value) else None
        else:
            return None
    return value


def restore(text: str, path: Path, source: str) -> str:
    """Return the text with the value at the path replaced by the value in another text, byte for byte."""
    new, old = (_span(_without_comments(whole), path) for whole in (source, text))
    return text[: old[0]] + source[slice(*new)] + text[old[1] :] if new and old else text


def put(text: str, path: Path, value: Any) -> str:
    """Return the text with the value at the path. It replaces an old value or becomes the last entry of its object."""
    bare = _without_comments(text)
    span = _span(bare, path)
    if span:
        return text[: span[0]] + _write(text, value, _indentation(text, span[0])) + text[span[1] :]
    existing = max(length for length in range(len(path)) if _span(bare, path[:length]))
    for key in reversed(path[existing + 1 :]):
        value = {key: value}
    return _insert(text, path[:existing], value, key=str(path[existing]))


def append(text: str, path: Path, value: Any) -> str:
    """Return the text with the value as the last item in the list at the path. A missing list is created."""
    if _span(_without_comments(text), path) is None:
        return put(text, path, [value])
    return _insert(text, path, value)


def cut(text: str, path: Path) -> str:
    """Return the text without the entry at the path."""
    bare = _without_comments(text)
    holder = _span(bare, path[:-1])
    items = _items(bare, holder[0]) if holder else []
    positions = [position for position, item in enumerate(items) if item.key == path[-1]]
    if not positions:
        return text
    position = positions[-1]
    item = items[position]
    start = _before_space(text, item.start)
    if item.comma >= 0:
        between = text[item.end : item.comma]
        return text[:start] + (between if between.strip() else "") + text[item.comma + 1 :]
    before = text[:start]
    if position:
        comma = items[position - 1].comma
        before = text[:comma] + text[comma + 1 : start]
    return before + text[item.end :]


def _insert(text: str, path: Path, value: Any, key: str | None = None) -> str:
    bare = _without_comments(text)
    span = _span(bare, path)
    opening = "[" if key is None else "{"
    if span is None or text[span[0]] != opening:
        where = ".".join(map(str, path)) or "the file"
        raise Unfit(f"`{where}` is not {'a list' if key is None else 'an object'}")
    items = _items(bare, span[0])
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}:"
    return _insert_first(text, span, name, value) if not items else _insert_last(text, items, name, value)


def _insert_first(text: str, span: tuple[int, int], name: str, value: Any) -> str:
    inner = text[span[0] + 1 : _before_space(text, span[1] - 1)]
    if "\n" not in text.strip(_SPACE) and text[: span[0]].strip(_SPACE):
        return (
            text[: span[0] + 1] + inner + _with_name(text, name, _write_in_one_line(text, value)) + text[span[1] - 1 :]
        )
    outer = _indentation(text, span[0])
    line = _line_end(text)
    written = _with_name(text, name, _write(text, value, outer + _unit(text), many_lines=True))
    return f"{text[: span[0] + 1]}{inner}{line}{outer}{_unit(text)}{written}{line}{outer}{text[span[1] - 1 :]}"


def _insert_last(text: str, items: list[_Item], name: str, value: Any) -> str:
    last = items[-1]
    lead = text[_before_space(text, last.start) : last.start]
    position = last.comma + 1 if last.comma >= 0 else last.end
    if "\n" in lead or _COMMENT_ON_LINE.match(text, position):
        while comment := _COMMENT_ON_LINE.match(text, position):
            position = comment.end()
        indentation = lead.rpartition("\n")[2] if "\n" in lead else _indentation(text, last.start) + _unit(text)
        written = _write(text, value, indentation, many_lines=True)
        new = _line_end(text) + indentation + _with_name(text, name, written)
    else:
        space = lead if len(items) > 1 else (" " if _has_spaces(text) else "")
        new = space + _with_name(text, name, _write_in_one_line(text, value))
    if last.comma >= 0:
        return text[:position] + new + "," + text[position:]
    return text[: last.end] + "," + text[last.end : position] + new + text[position:]


def _with_name(text: str, name: str, written: str) -> str:
    return f"{name}{' ' if _has_spaces(text) else ''}{written}" if name else written


def _write(text: str, value: Any, indentation: str, *, many_lines: bool = False) -> str:
    if not many_lines and "\n" not in text.strip(_SPACE):
        return _write_in_one_line(text, value)
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text)).split("\n")
    return (_line_end(text) + indentation).join(lines)


def _write_in_one_line(text: str, value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": ") if _has_spaces(text) else (",", ":"))


def _has_spaces(text: str) -> bool:
    """Return whether the text has spaces after colons."""
    bare = re.sub(_STRING, '""', text[:_STYLE_SAMPLE])
    return '":' not in bare or re.search(r'":\s', bare) is not None


def _unit(text: str) -> str:
    """Return the indentation of one level; two spaces if the text is not indented."""
    indented = _INDENTED.search(_without_comments(text))
    return indented[1] if indented else "  "


def _line_end(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _indentation(text: str, position: int) -> str:
    """Return the white space at the start of the line that contains a position."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


@lru_cache(maxsize=4)
def _comments(text: str) -> tuple[tuple[int, int], ...]:
    """Return where the comments in a text begin and end."""
    if "//" not in text and "/*" not in text:
        return ()
    return tuple(match.span() for match in _STRING_OR_COMMENT.finditer(text) if match[0][0] == "/")


def _without_comments(text: str) -> str:
    """Return the text with its comments replaced by spaces, so that positions stay the same."""
    pieces, position = [], 0
    for start, end in _comments(text):
        pieces += [text[position:start], re.sub(r"[^\r\n]", " ", text[start:end])]
        position = end
    return "".join([*pieces, text[position:]])


def _before_space(text: str, position: int) -> int:
    """Return where the white space before a position begins, without white space inside a comment."""
    start = len(text[:position].rstrip(_SPACE))
    return max([start, *(end for _, end in _comments(text) if end <= position)])


def _span(bare: str, path: Path) -> tuple[int, int] | None:
    start = len(bare) - len(bare.lstrip(_SPACE))
    end = _end(bare, start)
    for key in path:
        # If several entries have the same key, the last one is used, as in most parsers.
        items = [item for item in _items(bare, start) if item.key == key]
        if not items:
            return None
        start, end = items[-1].value, items[-1].end
    return start, end


def _items(bare: str, start: int) -> list[_Item]:
    """Return the entries of the object or list that starts at a position; empty for other values."""
    opening = bare[start : start + 1]
    if opening not in ("{", "["):
        return []
    items: list[_Item] = []
    position = _past_space(bare, start + 1)
    while bare[position] not in "]}":
        first, key = position, len(items)
        name: str | int = key
        if opening == "{":
            position = _end(bare, first)
            name = json.loads(bare[first:position], strict=False)
            position = _past_space(bare, _past_space(bare, position) + 1)
        end = _end(bare, position)
        after = _past_space(bare, end)
        comma = after if bare[after] == "," else -1
        items.append(_Item(name, first, position, end, comma))
        position = _past_space(bare, after + 1) if comma >= 0 else after
    return items


def _past_space(bare: str, position: int) -> int:
    while bare[position] in _SPACE:
        position += 1
    return position


def _end(bare: str, start: int) -> int:
    """Return the end of the value that starts at a position."""
    if bare[start] == '"':
        return _STRING.match(bare, start).end()  # type: ignore[union-attr]  # the text was parsed before
    if bare[start] not in "{[":
        return _SCALAR.match(bare, start).end()  # type: ignore[union-attr]
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(bare, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    raise Unfit("a bracket is not closed")
