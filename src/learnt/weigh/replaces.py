"""Decide whether a newer learning replaces an older one: it has the same subject, and tells of a change.

Which of two learnings on one subject is right cannot be told from their words. But what says that something is no
longer so, or is done differently now, was written by somebody who knew the older state.
"""

from __future__ import annotations

from learnt.model import PARAGRAPHS
from learnt.text.meaning import embed, likeness, rarity
from learnt.text.statements import speaks_of_change
from learnt.text.words import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.model import Learning

_MIN_ALIKE = 1.2


class Subject:
    """What a learning is about, for comparisons."""

    def __init__(self, learning: Learning) -> None:
        paragraphs = " ".join(str(getattr(learning, field)) for field in PARAGRAPHS)
        text = f"{learning.title} {paragraphs}"
        self._named = frozenset(words(f"{learning.title} {' '.join(learning.tags)}"))
        self._title, self._all = embed(words(learning.title)), embed(words(text))
        self.tells_of_change = speaks_of_change(text)

    def is_same(self, other: Subject) -> bool:
        """Return whether two learnings have the same subject: by title, by everything, and by the words they share."""
        if None in (self._title, self._all, other._title, other._all):
            return False
        alike = likeness(self._title, other._title) + likeness(self._all, other._all)  # type: ignore[arg-type]
        return alike + self._share(other) >= _MIN_ALIKE

    def _share(self, other: Subject) -> float:
        """Return how much of the shorter one's words the other one has, too; rare words count more."""
        least = min(_weigh(self._named), _weigh(other._named))
        return _weigh(self._named & other._named) / least if least else 0.0


def _weigh(stems: frozenset[str]) -> float:
    return sum(map(rarity, stems))


def replaces(newer: Subject, older: Subject) -> bool:
    """Return whether a newer learning replaces an older one."""
    return newer.tells_of_change and newer.is_same(older)
