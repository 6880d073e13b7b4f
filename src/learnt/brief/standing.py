"""Choose standing learnings, which an agent is given independently of a task.

A few learnings are chosen from each category, in this order: pinned, proven, by impact (marks and recurrences), newest.
The store preselects a limited number of candidates. Learnings that nobody vouches for are left out, and learnings below
the confidence gate unless they are pinned. The categories take turns, so that no category crowds out another. If titles
have the same letters, only the first learning is shown, or the one that a person vouches for; other fields are not
compared, because such learnings can come from different categories and stores.
"""

from __future__ import annotations

from learnt.model import Learning, Value
from learnt.text.titles import letters_key
from learnt.weigh.confidence import is_persons, is_trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

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

    left_out: list[Considered] = []
    titles: set[str] = set()
    persons = {letters_key(learning.title) for group in groups.values() for learning in group if is_persons(learning)}
    queues = []
    for learnings in groups.values():
        queue: list[Learning] = []
        for learning in sorted(learnings, key=rank):
            if not is_trusted(learning, rules.min_confidence):
                continue
            if rules.proven_only and not (learning.pinned or is_proven(learning)):
                continue
            is_full = len(queue) >= rules.per_category
            is_copy = not is_persons(learning) and letters_key(learning.title) in persons
            reason = excluded.get(learning.id) or ("repeats another" if is_copy else "")
            reason = reason or _reason_against(learning, titles, is_full=is_full)
            if reason:
                left_out.append(Considered(learning=learning, left_out=reason))
            else:
                titles.add(_title_key(learning))
                queue.append(learning)
        queues.append(queue)
    chosen = [Considered(learning=learning) for learning in _in_turn(queues)]
    most = len(chosen) if rules.most is None else rules.most
    left_out += [considered.replace(left_out="enough others come first") for considered in chosen[most:]]
    return [*chosen[:most], *left_out[:_MAX_LEFT_OUT]]


def _reason_against(learning: Learning, titles: set[str], *, is_full: bool) -> str:
    if _title_key(learning) in titles:
        return "repeats another"
    return "enough others of its category come first" if is_full else ""


def _title_key(learning: Learning) -> str:
    """Return a key that is equal for learnings with the same polarity and the same letters in their titles."""
    return learning.polarity + letters_key(learning.title)


def _in_turn(queues: Sequence[Sequence[Learning]]) -> Iterable[Learning]:
    for position in range(max(map(len, queues), default=0)):
        yield from (queue[position] for queue in queues if position < len(queue))
