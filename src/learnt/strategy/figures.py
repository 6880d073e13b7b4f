"""Statistics about past attempts by model: how often a task was done, what it cost and how long it took.

A share of few attempts says little, so every share has an interval. An interrupted attempt says nothing about its model
and is always left out.

A model is chosen with a `TrackRecord`. It stores sums instead of attempts, so that a choice takes the same time after a
hundred attempts and after a million. Existing sums, for example from a database, are added with `put`. First attempts
and attempts after a failure are counted separately, because a task at which one model has failed is hard, and other
models succeed at it far less often, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from learnt.errors import InvalidValue
from learnt.model import RESULTS, Value

# The half-width of a two-sided 90 % interval, in standard deviations.
_WIDTH = 1.645


class PastAttempt(Value):
    """The facts about an earlier attempt that matter for the choice of a model."""

    model: str
    task: str
    result: str
    type: str = ""
    difficulty: str = ""
    before: int = 0
    """How many attempts at the task had failed before this attempt."""
    cost_usd: float | None = None
    duration_ms: int | None = None
    at: int = 0
    error: str = ""
    """The normalised error."""
    error_text: str = ""
    """The error in its original wording."""
    attempt: str = ""
    likeness: float = 1.0
    """How similar its task is to the current task, from 0 to 1."""

    def check(self) -> None:
        if self.result not in RESULTS:
            raise InvalidValue(
                f"result `{self.result}` is unknown", hint=f"result must be one of: {', '.join(RESULTS)}"
            )
        if not 0 <= self.likeness <= 1:
            raise InvalidValue(f"likeness must be from 0 to 1, not {self.likeness}")

    @property
    def done(self) -> bool:
        """Whether the task was done."""
        return self.result == "done"

    @property
    def is_conclusive(self) -> bool:
        """Whether the result says something about the model."""
        return self.result != "interrupted"


class Share(Value):
    """How many attempts succeeded. Both numbers can be weighted."""

    done: float = 0
    attempts: float = 0

    @property
    def share(self) -> float:
        """The share of attempts that succeeded; 0 without attempts."""
        return self.done / self.attempts if self.attempts else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 90 % interval of the true share (Wilson); 0 to 1 without attempts."""
        if not self.attempts:
            return 0.0, 1.0
        square = _WIDTH * _WIDTH / self.attempts
        middle = (self.share + square / 2) / (1 + square)
        half = math.sqrt(self.share * (1 - self.share) * square + square * square / 4) / (1 + square)
        return max(0.0, middle - half), min(1.0, middle + half)


class Figure(Value):
    """One model's statistics, for all tasks or for one type of task."""

    model: str
    type: str = ""
    share: Share = Share()
    mean_cost_usd: float | None = None
    total_cost_usd: float = 0.0
    median_ms: float | None = None
    first: Share = Share()
    """First attempts at tasks; models are chosen by this and `later`, because a task at which one failed is hard."""
    later: Share = Share()
    """Attempts after a failure."""
    first_cost_usd: float | None = None
    later_cost_usd: float | None = None


def make_figures(outcomes: Iterable[PastAttempt], *, by_type: bool = False) -> list[Figure]:
    """Return the statistics for each model, or for each model and type, sorted by name."""
    groups: dict[tuple[str, str], list[PastAttempt]] = {}
    for outcome in outcomes:
        if outcome.is_conclusive:
            groups.setdefault((outcome.model, outcome.type if by_type else ""), []).append(outcome)
    return [_make_figure(model, type, group) for (model, type), group in sorted(groups.items())]


def _make_figure(model: str, type: str, group: list[PastAttempt]) -> Figure:
    costs = _list_costs(group)
    first = [outcome for outcome in group if not outcome.before]
    later = [outcome for outcome in group if outcome.before]
    times = sorted(outcome.duration_ms for outcome in group if outcome.duration_ms is not None)
    return Figure(
        model=model,
        type=type,
        share=_share(group),
        first=_share(first),
        later=_share(later),
        mean_cost_usd=_mean(costs),
        first_cost_usd=_mean(_list_costs(first)),
        later_cost_usd=_mean(_list_costs(later)),
        total_cost_usd=sum(costs),
        median_ms=(times[(len(times) - 1) // 2] + times[len(times) // 2]) / 2 if times else None,
    )


def _share(group: Sequence[PastAttempt]) -> Share:
    return Share(done=sum(outcome.done for outcome in group), attempts=len(group))


def _list_costs(group: Sequence[PastAttempt]) -> list[float]:
    return [outcome.cost_usd for outcome in group if outcome.cost_usd is not None]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


class Sums:
    """The numbers of all, successful and costed attempts (those with a known cost), and the sum of their costs."""

    attempts = done = costed = cost_usd = 0.0


class TrackRecord:
    """Sums over past attempts, by model, first attempt or attempt after a failure, type and difficulty."""

    def __init__(self, outcomes: Iterable[PastAttempt] = ()) -> None:
        self._sums: dict[tuple[str, bool, str, str], Sums] = {}
        self.total = Sums()
        for outcome in outcomes:
            self.add(outcome)

    def add(self, outcome: PastAttempt, *, weight: float = 1.0) -> None:
        """Count an attempt, or a fraction of an attempt."""
        if outcome.is_conclusive:
            self.put(
                outcome.model,
                after_failure=outcome.before > 0,
                type=outcome.type,
                difficulty=outcome.difficulty,
                attempts=weight,
                done=weight * outcome.done,
                costed=weight * (outcome.cost_usd is not None),
                cost_usd=weight * (outcome.cost_usd or 0.0),
            )

    def put(
        self,
        model: str,
        *,
        after_failure: bool,
        attempts: float,
        done: float,
        costed: float,
        cost_usd: float,
        type: str = "",
        difficulty: str = "",
    ) -> None:
        """Add sums over one model's attempts at tasks of one type and difficulty."""
        kinds = {("", ""), (type, ""), (type, difficulty)}
        own = (self._sums.setdefault((model, after_failure, *kind), Sums()) for kind in kinds)
        for sums in (self.total, *own):
            sums.attempts += attempts
            sums.done += done
            sums.costed += costed
            sums.cost_usd += cost_usd

    def of(self, model: str, *, after_failure: bool, type: str = "", difficulty: str = "") -> Sums:
        """Return one model's sums; without a type, its sums over all types."""
        return self._sums.get((model, after_failure, type, difficulty)) or Sums()
