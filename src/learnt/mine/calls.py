"""Failed calls, the calls that worked afterwards, and how a learning quotes a command.

A command is quoted without long quoted strings and without details that are specific to one machine or one day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from learnt.clients.kit.transcript import Step
from learnt.mine.complaint import generalise, generalise_error
from learnt.mine.shell import Part
from learnt.model import Discovery, Value

MAX_EXCERPT_LENGTH = 1_000
_MAX_COMMAND_LENGTH = 100
_MAX_WORD_LENGTH = 60
_MAX_PROSE_LENGTH = 30
_MAX_ERROR_LENGTH = 300
_ABOUT_BRANCHES = frozenset("checkout switch push pull merge rebase branch fetch worktree pr".split())
_BRANCH = re.compile(r"[\w-]+(?:/[\w-]+)+")


class FailedCall(Value):
    """A call that failed because of how it was made."""

    call: Step
    parts: tuple[Part, ...]
    error: str
    output: str
    at: int

    def general_error(self, folder: str) -> str:
        """Return the error in general terms."""
        return generalise_error(self.error, folder)[:_MAX_ERROR_LENGTH]

    def explain(
        self, text: str, *, failed: str, worked: str, folder: str, rule: str = "command", files: tuple[str, ...] = ()
    ) -> Discovery:
        """Return the discovery that this failure and its correction make."""
        return Discovery(
            type="blocker" if rule == "command" else "constraint",
            rule=rule,
            text=text,
            failed=failed,
            error=self.general_error(folder),
            worked=worked,
            excerpt=self.output[:MAX_EXCERPT_LENGTH],
            files=files,
        )


class PastCall(Value):
    """An earlier call that worked."""

    call: Step
    parts: tuple[Part, ...]
    at: int


class WorkingCall(Value):
    """A call that worked, the calls that have worked since the failure, and the conversation's folder."""

    call: Step
    parts: tuple[Part, ...]
    since: tuple[PastCall, ...]
    folder: str

    @property
    def parts_since(self) -> Iterator[Part]:
        """All programs that have been started since the failure."""
        return (part for call in self.since for part in call.parts)


def format_command(part: Part, folder: str) -> str:
    """Return a command without long quoted strings and without details that are specific to one machine or one day."""
    words = []
    for index, word in enumerate(part.words):
        if word.isdigit() and index and not part.words[index - 1].startswith("-"):
            words.append("<n>")
        elif _names_branches(part) and _BRANCH.fullmatch(word) and not word.startswith("origin/"):
            words.append("<branch>")
        elif len(word) > (_MAX_PROSE_LENGTH if _is_prose(word) else _MAX_WORD_LENGTH):
            words.append(_shorten_word(word))
        else:
            words.append(word)
    text = generalise(" ".join(words), folder).replace("`", "'")
    text = f"{part.source} … | {text}" if part.source else text
    return text if len(text) <= _MAX_COMMAND_LENGTH else text[: _MAX_COMMAND_LENGTH - 1] + "…"


def _shorten_word(word: str) -> str:
    """Return the beginning of a long word, an assignment without its value, or a quoted string without its content."""
    name, equals, value = word.partition("=")
    if equals and name.isidentifier():
        return f"{name}={value[:1]}…{value[-1:]}" if value[:1] in "'\"" else f"{name}=…"
    return f"{word[0]}…{word[0]}" if word[0] in "'\"" and _is_prose(word) else word[: _MAX_WORD_LENGTH - 1] + "…"


def _names_branches(part: Part) -> bool:
    return part.program in ("git", "gh") and not _ABOUT_BRANCHES.isdisjoint(part.intent[1:])


def _is_prose(word: str) -> bool:
    return (" " in word or "\n" in word) and "$(" not in word[:3]
