"""Put the newer of two learnings first if it states another value for what a text asks about.

Likeness cannot tell which of two statements still holds: "45 sources" and "52 sources" fit a question about sources
alike. So among the first hits of a search, a newer one moves above an older one that is much like it, if it gives
another number for something that the text names: a count, a share, a date or a time. If the text gives
a number itself, such as "port 5432", what gives the same one comes first.
"""

from __future__ import annotations

import re
from functools import cached_property

from learnt.text.meaning import likeness
from learnt.text.words import has_digit, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from learnt.model import Learning

_MIN_LIKENESS = 0.65
_MAX_LETTERS = 600  # a longer text says further things, with numbers of their own
_NUMBER = r"(?:([^\W\d_]+)\W{1,3})?\bv?(\d+(?:[.,:]\d+)*)\s?(%|[^\W\d_]+)?"
# What texts call a number with such a sign, or next to such a word.
_CALLED = {
    "%": "percent percentage rate share",
    **dict.fromkeys(("am", "pm"), "time"),
    **dict.fromkeys(
        "january february march april may june july august september october november december".split(),
        "date deadline due",
    ),
}


class StatedValues:
    """A learning, with what is needed to compare it with another one."""

    def __init__(self, learning: Learning, vector: bytes | None) -> None:
        self.learning = learning
        self.vector = vector

    @cached_property
    def values(self) -> dict[str, set[str]]:
        """The values that it states; most state none."""
        text = f"{self.learning.title}. {self.learning.observation}"
        return list_values(text) if has_digit(text) else {}

    def precedes(self, other: StatedValues, asked: Collection[str], given: Mapping[str, set[str]]) -> bool:
        """Return whether this one has the number that a text gives, or a newer one for what it asks about."""
        is_newer = self.learning.created_at > other.learning.created_at
        if not (is_newer or given) or not self.values or self.vector is None or other.vector is None:
            return False
        if likeness(self.vector, other.vector) < _MIN_LIKENESS:
            return False
        differing = {
            name for name, numbers in self.values.items() if numbers.isdisjoint(other.values.get(name, numbers))
        }
        has_given = any(
            not given[name].isdisjoint(self.values[name]) and given[name].isdisjoint(other.values[name])
            for name in differing & given.keys()
        )
        return has_given or (is_newer and not differing.isdisjoint(set(asked) - given.keys()))


def list_values(text: str) -> dict[str, set[str]]:
    """Return the numbers in a text by the stems of the words before and after them."""
    values: dict[str, set[str]] = {}
    for before, number, after in re.findall(_NUMBER, text[:_MAX_LETTERS]):
        for name in filter(None, (before, after)):
            for stem in words(f"{name} {_CALLED.get(name.lower(), '')}"):
                values.setdefault(stem, set()).add(number)
    return values


def _list_given(text: str) -> dict[str, set[str]]:
    """Return the numbers that a text gives to what it names right before them: `port 5432`, `node 8`."""
    given: dict[str, set[str]] = {}
    if not has_digit(text):
        return given
    for name, number, _ in re.findall(_NUMBER, text[:_MAX_LETTERS]):
        for stem in words(name):
            given.setdefault(stem, set()).add(number)
    return given


def put_newest_first(statements: Sequence[StatedValues], text: str, asked: Collection[str]) -> list[int]:
    """Return the places of statements in their new order, for a text and its words."""
    given = _list_given(text)
    places: list[int] = []
    for number, statement in enumerate(statements):
        below = (place for place, above in enumerate(places) if statement.precedes(statements[above], asked, given))
        places.insert(next(below, len(places)), number)
    return places
