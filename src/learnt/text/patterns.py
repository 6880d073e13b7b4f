"""Exact signs that a learning matters: how a trigger's pattern is written, found and matched.

Each pattern has an anchor, a word that everything it matches must contain: the database finds the few patterns whose
anchor occurs, and only those are tried. Matching never raises, whatever a pattern holds.
"""

from __future__ import annotations

import re

from learnt.model import Value

ANY = "*"  # the anchor of a pattern that could match everything

_TOKEN = re.compile(r"[^\s\"'`,;()<>\[\]{}|]+")
_WORD = re.compile(r"\w+")
_LONGEST_TEXT = 50_000
_globs: dict[str, re.Pattern[str]] = {}


class Situation(Value):
    """What an agent is about to do, as far as it is known."""

    text: str = ""
    paths: tuple[str, ...] = ()
    command: str = ""
    tools: tuple[str, ...] = ()
    task_type: str = ""

    def anchors(self) -> dict[str, set[str]]:
        """Return, for each kind of trigger, the anchors that could match here."""
        paths = self.all_paths()
        names = {path.rpartition("/")[2].lower() for path in paths}
        endings = {"." + name.rpartition(".")[2] for name in names if "." in name}
        return {
            "files": {ANY, *names, *endings} if paths else set(),
            "commands": set(self.command_words()),
            "errors": {ANY, *_WORD.findall(self.text[:_LONGEST_TEXT].lower())} if self.text else set(),
            "tools": {tool.lower() for tool in self.tools},
            "task_types": {self.task_type.lower()} if self.task_type else set(),
        }

    def all_paths(self) -> list[str]:
        """Return the paths that are given and those that the text and the command mention."""
        tokens = _TOKEN.findall(f"{self.text[:_LONGEST_TEXT]} {self.command}")
        mentioned = [token.strip(".:") for token in tokens if "/" in token or "." in token.strip(".:")]
        return list(dict.fromkeys(path.replace("\\", "/") for path in (*self.paths, *mentioned) if path))

    def command_words(self) -> list[str]:
        """Return the words in which commands are looked for, in their order."""
        return [token.lower().strip(".:") for token in _TOKEN.findall(f"{self.command}\n{self.text[:_LONGEST_TEXT]}")]


def anchor_of(kind: str, pattern: str) -> str:
    """Return a word that whatever the pattern matches must contain."""
    pattern = pattern.lower()
    if kind == "files":
        name = pattern.replace("\\", "/").rpartition("/")[2]
        if not any(sign in name for sign in "*?["):
            return name
        ending = "." + name.rpartition(".")[2]
        return ending if "." in name and not any(sign in ending for sign in "*?[") else ANY
    if kind == "commands":
        return next(iter(_TOKEN.findall(pattern)), ANY).strip(".:")
    if kind == "errors":
        return max(_WORD.findall(pattern), key=len, default=ANY)
    return pattern


def fits(kind: str, pattern: str, situation: Situation) -> bool:
    """Say whether a trigger's pattern holds in a situation."""
    if kind == "files":
        return any(_matches_path(pattern, path) for path in situation.all_paths())
    if kind == "commands":
        wanted = [token.lower().strip(".:") for token in _TOKEN.findall(pattern)]
        return _contains_run(situation.command_words(), wanted)
    if kind == "errors":
        return " ".join(pattern.lower().split()) in " ".join(situation.text.lower().split())
    if kind == "tools":
        return pattern.lower() in {tool.lower() for tool in situation.tools}
    return pattern.lower() == situation.task_type.lower()


def _contains_run(words: list[str], wanted: list[str]) -> bool:
    length = len(wanted)
    return bool(wanted) and any(
        words[start : start + length] == wanted for start, word in enumerate(words) if word == wanted[0]
    )


def _matches_path(pattern: str, path: str) -> bool:
    """Match like git's ignore files: without a slash a pattern is about names, with one about the path's end."""
    pattern = pattern.replace("\\", "/").removeprefix("./")
    path = path.removeprefix("./")
    if "/" not in pattern:
        path = path.rpartition("/")[2]
    return _glob(pattern).fullmatch(path) is not None


def _glob(pattern: str) -> re.Pattern[str]:
    compiled = _globs.get(pattern)
    if compiled is None:
        if len(_globs) > 10_000:
            _globs.clear()
        compiled = _globs[pattern] = re.compile(_as_expression(pattern), re.IGNORECASE | re.DOTALL)
    return compiled


def _as_expression(pattern: str) -> str:
    expression = "" if pattern.startswith("/") else "(?:.*/)?"
    position = 0
    while position < len(pattern):
        if pattern.startswith("**/", position):
            expression, position = expression + "(?:.*/)?", position + 3
        elif pattern.startswith("**", position):
            expression, position = expression + ".*", position + 2
        else:
            signs = {"*": "[^/]*", "?": "[^/]"}
            expression += signs.get(pattern[position], re.escape(pattern[position]))
            position += 1
    return expression
