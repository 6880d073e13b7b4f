"""Choose standing learnings, which an agent is given independently of a task.

A few learnings are chosen from each category, in this order: pinned, proven, by impact (marks and recurrences), newest.
The store preselects a limited number of candidates. Learnings that nobody vouches for are left out, and learnings below
the confidence gate unless they are pinned. The categories take turns, so that no category crowds out another. If titles
have the same letters, only the first learning is shown; other fields are not compared, because such learnings can come
from different categories and stores. A learning that a person vouches for takes the place of others with much the same
words (`brief.originals`).
"""

from __future__ import annotations

from learnt.brief.select import HAS_ORIGINAL, Originals
from learnt.model import Learning, Value
from learnt.text.titles import letters_key
from learnt.weigh.confidence import is_trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import TypeVar

    T = TypeVar("T")

_MAX_LEFT_OUT = 20


class StandingRules(Value):
    """The limits for standing learnings."""

    per_category: int = 5
    min_confidence: float = 0.6
    most: int | None = None
    proven_only: bool = False
    """Whether to choose only pinned or proven learnings."""


class Considered(Value):
    """A learning that was chosen, or left out for a reason."""

    learning: Learning
    left_out: str = ""


def choose(
    groups: Mapping[str, Sequence[Learning]],
    rules: StandingRules,
    *,
    excluded: Mapping[str, str],
    impact: Callable[[Learning], float],
    is_proven: Callable[[Learning], bool],
) -> list[Considered]:
    """Return the chosen learnings in order, then the first few learnings that are left out.

    `groups` contains the learnings in each category, in the order of the categories. `excluded` maps the ids of
    learnings that must be left out to the reasons.
    """

    def rank(learning: Learning) -> tuple[object, ...]:
        return (not learning.pinned, not is_proven(learning), -impact(learning), -learning.created_at, learning.id)

    def is_eligible(learning: Learning) -> bool:
        is_wanted = not rules.proven_only or learning.pinned or is_proven(learning)
        return is_wanted and is_trusted(learning, rules.min_confidence)

    left_out: list[Considered] = []
    titles: set[str] = set()
    originals = Originals(learning for group in groups.values() for learning in group)
    placed: set[str] = set()
    queues = []
    for learnings in groups.values():
        queue: list[Learning] = []
        for learning in _with_originals(filter(is_eligible, sorted(learnings, key=rank)), originals, placed):
            is_full = len(queue) >= rules.per_category
            reason = excluded.get(learning.id) or (HAS_ORIGINAL if originals.of(learning) else "")
            reason = reason or _reason_against(learning, titles, is_full=is_full)
            if reason:
                left_out.append(Considered(learning=learning, left_out=reason))
            else:
                titles.add(_title_key(learning))
                queue.append(learning)
        queues.append(queue)
    chosen = [Considered(learning=learning) for learning in take_turns(queues)]
    most = len(chosen) if rules.most is None else rules.most
    left_out += [considered.replace(left_out="enough others come first") for considered in chosen[most:]]
    return [*chosen[:most], *left_out[:_MAX_LEFT_OUT]]


def _with_originals(ranked: Iterable[Learning], originals: Originals, placed: set[str]) -> Iterable[Learning]:
    """Yield the learnings that are not in `placed` yet, each after the people's learnings that it copies."""
    for learning in ranked:
        for one in (*originals.of(learning), learning):
            if one.id not in placed:
                placed.add(one.id)
                yield one


def _reason_against(learning: Learning, titles: set[str], *, is_full: bool) -> str:
    if _title_key(learning) in titles:
        return "repeats another"
    return "enough others of its category come first" if is_full else ""


def _title_key(learning: Learning) -> str:
    """Return a key that is equal for learnings with the same polarity and the same letters in their titles."""
    return learning.polarity + letters_key(learning.title)


def take_turns(queues: Collection[Sequence[T]]) -> Iterable[T]:
    """Yield the first item of each queue, then the second of each, and so on."""
    for position in range(max(map(len, queues), default=0)):
        yield from (queue[position] for queue in queues if position < len(queue))
