"""Choose the lines of the index: the vouched learnings that a conversation is told of at its start, one line each.

While all of them fit, all are listed: the pinned ones first, then people's, then the others, the most valuable of each
first. If they do not fit, the pinned ones are listed, and the most valuable of each area; the areas take turns. An area
is a category or, if a learning has none, its first tag. What several learnings say in much the same words is listed
once: as a person says it, or else as the most valuable or newest one does. Of two that conflict, one is listed.
"""

from __future__ import annotations

from learnt.brief.render import Index, index_line, render_index
from learnt.brief.select import Conflicts, LearningWords, without_copies
from learnt.brief.standing import take_turns
from learnt.text.fence import fenced
from learnt.text.titles import key_of
from learnt.text.words import estimate_tokens
from learnt.weigh.confidence import is_persons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from learnt.brief.select import BothHold
    from learnt.model import Learning

MIN_LINE_TOKENS = 15
"""Hardly any line of the index has fewer tokens."""
_FENCE_TOKENS = estimate_tokens(fenced("-", "brief_" + "a1" * 7))  # an id never has more tokens


def choose_index(
    learnings: Sequence[Learning],
    *,
    total: int,
    max_tokens: int,
    impact: Callable[[Learning], float],
    is_proven: Callable[[Learning], bool],
    both_hold: BothHold = tuple,
) -> Index:
    """Return the index of these learnings, within its tags, and how many of the `total` it does not list."""

    def rank(learning: Learning) -> tuple[object, ...]:
        worth = (not is_proven(learning), -impact(learning), -learning.created_at, learning.id)
        return (not learning.pinned, not is_persons(learning), *worth)

    originals = sorted(without_copies(learnings), key=rank)
    listed, repeated = _fill(_by_turns(originals), max_tokens - _size(Index(more=1)))
    more = total - (len(learnings) - len(originals)) - repeated - len(listed)
    if not listed:
        return Index()
    return Index(learnings=tuple(sorted(_without_conflicts(listed, both_hold), key=rank)), more=more)


def _without_conflicts(listed: Sequence[Learning], both_hold: BothHold) -> list[Learning]:
    """Return the listed learnings without those that another one contradicts or replaces."""
    conflicts = Conflicts(listed, both_hold)
    return [learning for learning in listed if learning.pinned or not conflicts.find_winner(learning)]


def _by_turns(ranked: Iterable[Learning]) -> list[Learning]:
    """Return the pinned learnings, then the first of each area, then the second of each, and so on."""
    pinned: list[Learning] = []
    areas: dict[str, list[Learning]] = {}
    for learning in ranked:
        area = pinned if learning.pinned else areas.setdefault(area_of(learning.category, learning.tags), [])
        area.append(learning)
    return pinned + list(take_turns(areas.values()))


def area_of(category: str, tags: Sequence[str]) -> str:
    """Return the area of a learning with this category and these tags."""
    return key_of(category or next(iter(tags), ""))


def _fill(ordered: Iterable[Learning], room: int) -> tuple[list[Learning], int]:
    """Return the first learnings that fit together and do not repeat each other, and how many were repetitions.

    A line that is too long does not keep shorter ones out.
    """
    listed: list[Learning] = []
    said: list[LearningWords] = []
    repeated = 0
    for learning in ordered:
        tokens = estimate_tokens(index_line(learning))
        if tokens > room:
            continue
        its_words = LearningWords(learning)
        if any(its_words.repeats(other) for other in said):
            repeated += 1
            continue
        listed.append(learning)
        said.append(its_words)
        room -= tokens
    return listed, repeated


def _size(index: Index) -> int:
    return _FENCE_TOKENS + estimate_tokens(render_index(index))
