"""Choose the lines of the index: the vouched learnings that a conversation is told of at its start, one line each.

While all of them fit, all are listed: the pinned ones first, then people's, then the others, the most valuable of each
first. If they do not fit, the pinned ones are listed, and the most valuable of each area; the areas take turns. An area
is a category or, if a learning has none, its first tag. What several learnings say in much the same words is listed
once: as a person says it, or else as the newest one does.
"""

from __future__ import annotations

from learnt.brief.render import Index, index_line, render_index
from learnt.brief.select import LearningWords, without_copies
from learnt.text.fence import fenced
from learnt.text.titles import key_of
from learnt.text.words import estimate_tokens
from learnt.weigh.confidence import is_persons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from learnt.model import Learning

MIN_LINE_TOKENS = 10
"""No line of the index has fewer tokens."""
_FENCE_TOKENS = estimate_tokens(fenced("-", "brief_" + "a1" * 7))  # an id never has more tokens


def choose_index(
    learnings: Sequence[Learning],
    *,
    total: int,
    max_tokens: int,
    impact: Callable[[Learning], float],
    is_proven: Callable[[Learning], bool],
) -> Index:
    """Return the index of these learnings, within its tags, and how many of the `total` it does not list."""

    def rank(learning: Learning) -> tuple[object, ...]:
        worth = (not is_proven(learning), -impact(learning), -learning.created_at, learning.id)
        return (not learning.pinned, not is_persons(learning), *worth)

    distinct = _without_repetitions(learnings)
    total -= len(learnings) - len(distinct)
    ranked = sorted(distinct, key=rank)
    whole = Index(learnings=tuple(ranked), more=total - len(ranked))
    if not whole.more and _size(whole) <= max_tokens:
        return whole
    fitting = _fill(_by_turns(ranked), total, max_tokens)
    return Index(learnings=tuple(sorted(fitting, key=rank)), more=total - len(fitting)) if fitting else Index()


def _without_repetitions(learnings: Sequence[Learning]) -> list[Learning]:
    kept: list[LearningWords] = []
    distinct: list[Learning] = []
    for learning in sorted(without_copies(learnings), key=lambda one: (not is_persons(one), -one.created_at, one.id)):
        its_words = LearningWords(learning)
        if not any(its_words.repeats(other) for other in kept):
            kept.append(its_words)
            distinct.append(learning)
    return distinct


def _by_turns(ranked: Iterable[Learning]) -> list[Learning]:
    """Return the pinned learnings, then the first of each area, then the second of each, and so on."""
    pinned: list[Learning] = []
    areas: dict[str, list[Learning]] = {}
    for learning in ranked:
        area = pinned if learning.pinned else areas.setdefault(_area_of(learning), [])
        area.append(learning)
    longest = max(map(len, areas.values()), default=0)
    return pinned + [area[turn] for turn in range(longest) for area in areas.values() if turn < len(area)]


def _area_of(learning: Learning) -> str:
    return key_of(learning.category or next(iter(learning.tags), ""))


def _fill(ordered: Iterable[Learning], total: int, max_tokens: int) -> list[Learning]:
    """Return the first learnings that fit together; a line that is too long does not keep shorter ones out."""
    fitting: list[Learning] = []
    room = max_tokens - _size(Index(more=total))
    for learning in ordered:
        tokens = estimate_tokens(index_line(learning))
        if tokens <= room:
            fitting.append(learning)
            room -= tokens
    return fitting


def _size(index: Index) -> int:
    return _FENCE_TOKENS + estimate_tokens(render_index(index))
