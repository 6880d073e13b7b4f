"""The rule that what a person says is neither hidden nor outranked by what anybody else says in much the same words.

Few other words can turn a learning into its opposite, so a near copy of a person's learning is never shown beside it or
instead of it, not even if the person's learning was shown before: the person decides in the review. The rule is the
same for briefs, for standing learnings and for warnings.
"""

from __future__ import annotations

from learnt.model import Value
from learnt.text.words import words
from learnt.weigh.confidence import is_persons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from learnt.model import Learning

HAS_ORIGINAL = "a person's learning has much the same words"
_MIN_SHARE = 0.6
_MIN_SHARE_WITH_CODE = 0.5
# A longer title that repeats this part of the person's title, and at least as many words, is a near copy, too.
_MIN_REPEATED = 0.75
_MIN_REPEATED_WORDS = 3


class Originals:
    """The learnings among others that people vouch for."""

    def __init__(self, learnings: Iterable[Learning]) -> None:
        self._originals = [(learning, _read_title(learning)) for learning in learnings if is_persons(learning)]

    def of(self, learning: Learning) -> list[Learning]:
        """Return the people's learnings of which somebody else's learning is a near copy."""
        if not self._originals or is_persons(learning):
            return []
        title = _read_title(learning)
        return [original for original, theirs in self._originals if _is_near_copy(title, theirs)]


def without_copies(learnings: Collection[Learning]) -> list[Learning]:
    """Return the learnings without near copies of those among them that people vouch for."""
    originals = Originals(learnings)
    return [learning for learning in learnings if not originals.of(learning)]


class _Title(Value):
    """The words of a title, and those of them that are code."""

    words: frozenset[str]
    code: frozenset[str]


def _read_title(learning: Learning) -> _Title:
    code = " ".join(learning.title.split("`")[1::2])
    return _Title(words=frozenset(words(learning.title)), code=frozenset(words(code)))


def _is_near_copy(title: _Title, original: _Title) -> bool:
    shared, both = len(title.words & original.words), len(title.words | original.words)
    if not shared or not original.code <= title.words:
        return bool(shared) and shared >= _MIN_SHARE * both
    least = _MIN_SHARE_WITH_CODE if original.code else _MIN_SHARE
    repeats = shared >= max(_MIN_REPEATED_WORDS, _MIN_REPEATED * len(original.words))
    return shared >= least * both or repeats
