"""What is known of a call that failed and of one that worked then, and how a command is told.

A command is told without what is true of one machine or one day only, and without long quotations.
"""

from __future__ import annotations

import re

from learnt.mine.complaint import general, reason
from learnt.mine.shell import Part
from learnt.model import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from learnt.clients.kit.steps import Step

LONGEST_EXCERPT = 1_000
_LONGEST_SHOWN = 100
_LONGEST_WORD = 60
_LONGEST_PROSE = 30
_LONGEST_ERROR = 300
_ABOUT_BRANCHES = frozenset("checkout switch push pull merge rebase branch fetch worktree pr".split())
_BRANCH = re.compile(r"[\w-]+(?:/[\w-]+)+")


class Failed(Value):
    """A call that failed because of how it was made."""

    call: Step
    ran: tuple[Part, ...]
    error: str
    output: str
    at: int

    @property
    def excerpt(self) -> str:
        """The words of the tool on which a discovery rests."""
        return self.output[:LONGEST_EXCERPT]

    def told(self, folder: str) -> str:
        """Return the error in general terms."""
        return reason(self.error, folder)[:_LONGEST_ERROR]


class Happened(Value):
    """A call that worked."""

    call: Step
    ran: tuple[Part, ...]
    at: int


class Worked(Value):
    """The call that works now, what worked since the failure, and the folder where all took place."""

    call: Step
    ran: tuple[Part, ...]
    since: tuple[Happened, ...]
    folder: str

    @property
    def ran_since(self) -> Iterator[Part]:
        """All that was started since the failure."""
        return (part for happened in self.since for part in happened.ran)


def shown(part: Part, folder: str) -> str:
    """Return a command as it is told: without long quotations and what is true of one machine or day only."""
    words = []
    for place, word in enumerate(part.words):
        if word.isdigit() and place and not part.words[place - 1].startswith("-"):
            words.append("<n>")
        elif _names_branches(part) and _BRANCH.fullmatch(word) and not word.startswith("origin/"):
            words.append("<branch>")
        elif len(word) > (_LONGEST_PROSE if _is_prose(word) else _LONGEST_WORD):
            words.append(_shortened(word))
        else:
            words.append(word)
    shown = general(" ".join(words), folder).replace("`", "'")
    shown = f"{part.source} … | {shown}" if part.source else shown
    return shown if len(shown) <= _LONGEST_SHOWN else shown[: _LONGEST_SHOWN - 1] + "…"


def _shortened(word: str) -> str:
    """Return a long word as its beginning; of an assignment the name, of a quotation that it is one."""
    name, equals, value = word.partition("=")
    if equals and name.isidentifier():
        return f"{name}={value[:1]}…{value[-1:]}" if value[:1] in "'\"" else f"{name}=…"
    return f"{word[0]}…{word[0]}" if word[0] in "'\"" and _is_prose(word) else word[: _LONGEST_WORD - 1] + "…"


def _names_branches(part: Part) -> bool:
    return part.program in ("git", "gh") and not _ABOUT_BRANCHES.isdisjoint(part.intent[1:])


def _is_prose(word: str) -> bool:
    return (" " in word or "\n" in word) and "$(" not in word[:3]
