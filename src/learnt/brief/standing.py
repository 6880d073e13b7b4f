"""Choose the learnings that an agent is given where no task says what matters: the standing ones.

Of each category a few, in this order: pinned, proven, then by impact (marks, and how often the same was learnt again),
the newest first. This is the rule; the store only offers a bounded number of candidates. Below the confidence gate none
is taken that is not pinned. The categories are served in turn, so that none starves another, and nothing is said twice.
"""

from __future__ import annotations

from learnt.model import Learning, Value
from learnt.text.titles import letters_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_MOST_LEFT_OUT = 20


class StandingRules(Value):
    """What may stand there."""

    per_category: int = 5
    min_confidence: float = 0.6
    most: int | None = None
    proven_only: bool = False
    """Only what is pinned or proven."""


class Considered(Value):
    """A learning that was chosen, or left out for a reason."""

    learning: Learning
    left_out: str = ""


def choose(
    groups: Mapping[str, Sequence[Learning]],
    rules: StandingRules,
    *,
    known: Mapping[str, str],
    impact: Callable[[Learning], float],
    is_proven: Callable[[Learning], bool],
) -> list[Considered]:
    """Return the chosen learnings in the order in which they are given, then the foremost of those that are left out.

    `groups` holds the learnings of each category, the categories in the order in which they are served; `known` gives a
    reason against those that the agent need not be told.
    """

    def rank(learning: Learning) -> tuple[object, ...]:
        return (not learning.pinned, not is_proven(learning), -impact(learning), -learning.created_at, learning.id)

    left_out: list[Considered] = []
    told: set[str] = set()
    queues = []
    for learnings in groups.values():
        queue: list[Learning] = []
        for learning in sorted(learnings, key=rank):
            if not learning.pinned and learning.confidence < rules.min_confidence:
                continue
            if rules.proven_only and not (learning.pinned or is_proven(learning)):
                continue
            reason = known.get(learning.id) or _reason_against(learning, told, full=len(queue) >= rules.per_category)
            if reason:
                left_out.append(Considered(learning=learning, left_out=reason))
            else:
                told.add(_title_key(learning))
                queue.append(learning)
        queues.append(queue)
    chosen = [Considered(learning=learning) for learning in _in_turn(queues)]
    most = len(chosen) if rules.most is None else rules.most
    left_out += [considered.replace(left_out="enough others come first") for considered in chosen[most:]]
    return [*chosen[:most], *left_out[:_MOST_LEFT_OUT]]


def _reason_against(learning: Learning, told: set[str], *, full: bool) -> str:
    if _title_key(learning) in told:
        return "repeats another"
    return "enough others of its category come first" if full else ""


def _title_key(learning: Learning) -> str:
    """Return what two learnings are compared by: a title of the same letters, and the same polarity."""
    return learning.polarity + letters_key(learning.title)


def _in_turn(queues: Sequence[Sequence[Learning]]) -> Iterable[Learning]:
    for place in range(max(map(len, queues), default=0)):
        yield from (queue[place] for queue in queues if place < len(queue))
