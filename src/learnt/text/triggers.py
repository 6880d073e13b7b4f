"""Match trigger patterns against a situation: files, commands, errors, tools and task types.

Each pattern has an anchor, a word that every match must contain. The database finds the few patterns whose anchor
occurs, and only those are tried. A situation is analysed once for all patterns. Matching never raises, whatever the
pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from learnt.model import Value
from learnt.text.clean import first_words, last_words

ANY = "*"  # the anchor of a pattern without a fixed word

_SEPARATORS = str.maketrans(dict.fromkeys("\"'`,;()<>[]{}|", " "))  # a regular expression takes longer to compile
_WORD = re.compile(r"\w+")
# The other expressions are compiled when first needed: compiling takes longer than most searches.
# Text after a mentioned path: `app.py:42:7`, `app.py#L10`, `test_app.py::test_login`.
_AFTER_PATH = r"(?s)(?:::.*|(?::\d+(?:-\d+)?)+|#L?\d+\S*)$"
_WILDCARD = r"\*\*/|\*\*|\*|\?|\[!?[^\]/]+\]|\{[^{}]*\}"
# Commands in prose: in backticks, after a prompt, in a code block.
_IN_BACKTICKS = r"(?<!`)`([^`\n]+)`(?!`)"
_AFTER_PROMPT = r"(?m)(?:^|[ \t])\$ (.+)"
_CODE_BLOCK = r"(?ms)^[ \t]*(?:```|~~~)[^\n]*\n(.*?)(?:^[ \t]*(?:```|~~~)|\Z)"
_NEXT_COMMAND = r"&&|\|\|?|;|\n"
_PUNCTUATION = ".:!?"
_HALF_TEXT_LENGTH = 100_000
_MAX_PATH_LENGTH = 500


class Situation(Value):
    """What is known about the work that an agent is about to do."""

    text: str = ""
    paths: tuple[str, ...] = ()
    command: str = ""
    tools: tuple[str, ...] = ()
    task_type: str = ""


class SituationMatcher:
    """Matches patterns against one situation."""

    def __init__(self, situation: Situation) -> None:
        text = beginning_and_end(situation.text, _HALF_TEXT_LENGTH)
        tokens = _split_tokens(f"{text} {situation.command}")
        self._paths = _list_paths(situation.paths, tokens)
        self._bare_names = {name for name in map(_trim_path, tokens) if _is_name(name)}
        self._all_paths = "\n".join([*self._paths, *(name.lower() for name in self._bare_names)])
        given, mentioned = _list_command_words(situation.command), _list_command_words(text)
        self._words = {*given, *mentioned}
        self._in_sequence = f" {' '.join(given)} \n {' '.join(mentioned)} "
        self._started = {*given, *started_commands(text)}
        self._text = " ".join(text.lower().split())
        self._tools = {tool.lower() for tool in situation.tools}
        self._task_type = situation.task_type.lower()
        self._results: dict[tuple[str, str], bool] = {}

    def anchors(self) -> dict[str, set[str]]:
        """Return the anchors that occur in the situation, by kind of trigger."""
        names = {path.rpartition("/")[2] for path in self._paths}
        endings = {"." + name.rpartition(".")[2] for name in names if "." in name}
        files = {*names, *endings, *(name.lower() for name in self._bare_names)}
        return {
            "files": {ANY, *files} if files else set(),
            "commands": self._words | self._started,
            "errors": {ANY, *_WORD.findall(self._text)} if self._text else set(),
            "tools": set(self._tools),
            "task_types": {self._task_type} if self._task_type else set(),
        }

    def matches(self, kind: str, pattern: str) -> bool:
        """Return whether a trigger's pattern matches."""
        if (kind, pattern) not in self._results:
            self._results[kind, pattern] = self._match(kind, pattern)
        return self._results[kind, pattern]

    def _match(self, kind: str, pattern: str) -> bool:
        if kind == "files":
            return self._match_file(pattern)
        if kind == "commands":
            wanted = _list_command_words(pattern)
            if len(wanted) > 1:
                return f" {' '.join(wanted)} " in self._in_sequence
            # A single word such as `make` may be prose: it must be used as a command.
            return bool(wanted) and wanted[0] in self._started
        if kind == "errors":
            return " ".join(pattern.lower().split()) in self._text
        if kind == "tools":
            return pattern.lower() in self._tools
        return pattern.lower() == self._task_type

    def _match_file(self, pattern: str) -> bool:
        pattern = pattern.replace("\\", "/").removeprefix("./")
        name = pattern.rpartition("/")[2]
        pattern = pattern.lower()
        # Substring searches rule out nearly all patterns and paths before an expression is compiled.
        literals = [piece.strip("/") for piece in re.split(_WILDCARD, pattern)]
        if not all(literal in self._all_paths for literal in literals):
            return False
        if name in self._bare_names and _matches_path(pattern, name.lower()):
            return True
        longest = max(literals, key=len)
        return any(longest in path and _matches_path(pattern, path) for path in self._paths)


def _split_tokens(text: str) -> list[str]:
    return text.translate(_SEPARATORS).split()


def anchor_of(kind: str, pattern: str) -> str:
    """Return a word that every match of the pattern contains."""
    pattern = pattern.lower()
    if kind == "files":
        name = pattern.replace("\\", "/").removeprefix("./").rpartition("/")[2]
        if name and not any(character in name for character in "*?[]{}"):
            return name
        ending = "." + name.rpartition(".")[2]
        return ending if "." in name and not any(character in ending for character in "*?[]{}") else ANY
    if kind == "commands":
        return next(iter(_list_command_words(pattern)), ANY)
    if kind == "errors":
        return max(_WORD.findall(pattern), key=len, default=ANY)
    return pattern


def beginning_and_end(text: str, half: int) -> str:
    """Return a text, or the beginning and the end of a very long one."""
    return text if len(text) <= 2 * half else f"{first_words(text, half)}\n{last_words(text, half)}"


def _list_paths(given: Iterable[str], tokens: Iterable[str]) -> list[str]:
    """Return the given paths and those that the tokens mention, in lower case."""
    paths = dict.fromkeys(path.replace("\\", "/").lower().removeprefix("./") for path in given if path)
    for token in dict.fromkeys(tokens):
        if ("/" in token or "." in token or "\\" in token) and len(token) <= _MAX_PATH_LENGTH:
            path = _trim_path(token)
            if "/" in path or "." in path:
                paths[path.lower()] = None
    return list(paths)


def _trim_path(token: str) -> str:
    """Return a mentioned path without the text around it: `@a.py`, `--file=a.py`, `**a.py**`, `a.py:42`."""
    path = token.rpartition("=")[2] or token
    path = path.lstrip("@*").rstrip(_PUNCTUATION + "*")
    if ":" in path or "#" in path:
        path = re.sub(_AFTER_PATH, "", path)
    return path.replace("\\", "/").removeprefix("./")


def _is_name(token: str) -> bool:
    """Return whether a word without a dot or slash can be the name of a file: `Makefile`, `LICENSE`, `justfile`."""
    return token.isidentifier() and (token != token.lower() or token.endswith("file"))


def _list_command_words(text: str) -> list[str]:
    stripped = (token.lower().strip(_PUNCTUATION) for token in _split_tokens(text))
    return [word for word in stripped if word]


def started_commands(text: str) -> Iterator[str]:
    """Yield the first word of each command that a text shows."""
    markers = {"`": _IN_BACKTICKS, "$ ": _AFTER_PROMPT, "```": _CODE_BLOCK, "~~~": _CODE_BLOCK}
    expressions = dict.fromkeys(expression for marker, expression in markers.items() if marker in text)
    for snippet in (snippet for expression in expressions for snippet in re.findall(expression, text)):
        for line in re.split(_NEXT_COMMAND, snippet):
            words = [word for word in _list_command_words(line.strip().removeprefix("$ ")) if word != "sudo"]
            yield from words[:1]


def _matches_path(pattern: str, path: str) -> bool:
    """Match like .gitignore: a pattern without a slash matches names, one with a slash the end of the path.

    A pattern that ends with a slash matches everything in that folder.
    """
    if "/" not in pattern:
        path = path.rpartition("/")[2]
    return _compile_glob(pattern).fullmatch(path) is not None


@lru_cache(maxsize=10_000)
def _compile_glob(pattern: str) -> re.Pattern[str]:
    start = "" if pattern.startswith("/") else "(?:.*/)?"
    end = ".*" if pattern.endswith("/") else ""
    return re.compile(start + _translate_glob(pattern) + end, re.DOTALL)


def _translate_glob(pattern: str) -> str:
    expression, position = "", 0
    for wildcard in re.finditer(_WILDCARD, pattern):
        expression += re.escape(pattern[position : wildcard.start()]) + _translate_wildcard(wildcard[0])
        position = wildcard.end()
    return expression + re.escape(pattern[position:])


def _translate_wildcard(wildcard: str) -> str:
    if wildcard[0] == "[":
        negated = wildcard[1] == "!" and len(wildcard) > 3
        return f"(?!/)[{'^' if negated else ''}{_translate_set(wildcard[2 if negated else 1 : -1])}]"
    if wildcard[0] == "{":
        return f"(?:{'|'.join(map(_translate_glob, wildcard[1:-1].split(',')))})"
    return {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}[wildcard]


def _translate_set(letters: str) -> str:
    """Translate the content of square brackets, such as `a-z_`."""
    members, position = "", 0
    while position < len(letters):
        first, last = letters[position], letters[position + 2 : position + 3]
        if letters[position + 1 : position + 2] == "-" and last and first <= last:
            members, position = f"{members}{re.escape(first)}-{re.escape(last)}", position + 3
        else:
            members, position = members + re.escape(first), position + 1
    return members
