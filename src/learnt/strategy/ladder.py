"""Estimate each model's chance of success and cost per attempt, and find the cheapest ladder of models.

A ladder is the order in which models are tried until one of them does the task; it ends with the strongest model. A
weaker model is worth a step if it is likely to save more than it costs. Two chances matter for each model: the chance
at a first attempt, and the chance after another model has failed. The second chance is far smaller, because the easy
tasks have already been done.

Both chances are beliefs, with a mean and a number of attempts that the mean is worth. Without a record, the mean is one
half and worth two attempts. Each narrower record (all tasks, the type, its difficulty, similar tasks) starts with the
belief from the wider record, worth at most `_MAX_WIDER_WEIGHT` attempts, and adds its own attempts.

To explore, a chance is drawn from each belief: the less is known, the more the draws vary, so a model is tried about as
often as it might be the best. Only the belief about all tasks is drawn, because a single type of task is too rare to
explore separately. The draws come from a seed, so a choice can be repeated.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from learnt.model import Value
from learnt.settings import Model
from learnt.strategy.figures import PastAttempt, Sums, TrackRecord

# How many attempts the belief from a wider record is worth. It is low, because chances often differ by 0.15 by type.
_MAX_WIDER_WEIGHT = 8.0
# How many attempts the configured price is worth, and also the mean cost over first and later attempts.
_PRICE_WEIGHT = 2.0


class Belief(Value):
    """An estimated chance, and how many attempts the estimate is worth."""

    mean: float = 0.5
    strength: float = 2.0

    def narrow(self, sums: Sums) -> Belief:
        """Return the belief about a narrower set of tasks, given the record for these tasks."""
        if not sums.attempts:
            return self
        strength = min(self.strength, _MAX_WIDER_WEIGHT)
        total = strength + sums.attempts
        return Belief(mean=(strength * self.mean + sums.done) / total, strength=total)

    @property
    def at_best(self) -> float:
        """The chance with the benefit of the doubt: one standard deviation above the mean."""
        return self.mean + math.sqrt(self.mean * (1 - self.mean) / (self.strength + 1))

    def draw(self, generator: random.Random) -> Belief:
        """Return a plausible belief, drawn at random."""
        done, failed = self.mean * self.strength, (1 - self.mean) * self.strength
        mean = generator.betavariate(max(done, 1e-3), max(failed, 1e-3))
        return Belief(mean=mean, strength=self.strength)


class Prospect(Value):
    """The belief about one model at a first or a later attempt, and the model's sums for tasks like the current one."""

    belief: Belief
    narrower: tuple[Sums, ...]
    cost_usd: float
    tried: bool

    def chance(self, belief: Belief) -> float:
        """Return the chance at the current task, given the belief about any task."""
        for sums in self.narrower:
            belief = belief.narrow(sums)
        return belief.mean


class Odds(Value):
    """Each model's chance and cost at a first and at a later attempt, in the order of the models."""

    first: Sequence[float]
    later: Sequence[float]
    first_cost: Sequence[float]
    later_cost: Sequence[float]


class Prospects:
    """Each model's prospects for a task of this type and difficulty, from the record and similar tasks."""

    def __init__(
        self,
        models: Sequence[Model],
        record: TrackRecord,
        *,
        type: str = "",
        difficulty: str = "",
        similar: Sequence[PastAttempt] = (),
    ) -> None:
        similar_record = TrackRecord()
        for outcome in similar:
            similar_record.add(outcome, weight=outcome.likeness)
        prices = _estimate_prices(models, record)

        def estimate(model: int, start: Belief, *, after_failure: bool) -> Prospect:
            name = models[model].name
            wide = record.of(name, after_failure=after_failure)
            narrower = [record.of(name, after_failure=after_failure, type=type)] if type else []
            if difficulty:
                narrower.append(record.of(name, after_failure=after_failure, type=type, difficulty=difficulty))
            return Prospect(
                belief=start.narrow(wide),
                narrower=(*narrower, similar_record.of(name, after_failure=after_failure)),
                cost_usd=(_PRICE_WEIGHT * prices[model] + wide.cost_usd) / (_PRICE_WEIGHT + wide.costed),
                tried=wide.attempts > 0,
            )

        self.later = [estimate(model, Belief(), after_failure=True) for model in range(len(models))]
        self.first: list[Prospect] = []
        for model, later in enumerate(self.later):
            limit = self._bound_first_chance([prospect.belief.mean for prospect in self.first], later.belief.mean)
            self.first.append(estimate(model, Belief(mean=0.5 if limit is None else limit), after_failure=False))

    def is_known(self, model: int) -> bool:
        """Return whether a model has made any attempt."""
        return self.first[model].tried or self.later[model].tried

    def expect(self) -> Odds:
        """Return the most likely odds."""
        return self._odds([prospect.belief for prospect in self.first], [prospect.belief for prospect in self.later])

    def draw(self, seed: str) -> Odds:
        """Return plausible odds, drawn at random. The same seed gives the same odds."""
        generator = random.Random(seed)
        first = [prospect.belief.draw(generator) for prospect in self.first]
        return self._odds(first, [prospect.belief.draw(generator) for prospect in self.later])

    def _odds(self, first: list[Belief], later: list[Belief]) -> Odds:
        later_chances = [prospect.chance(belief) for prospect, belief in zip(self.later, later, strict=True)]
        first_chances: list[float] = []
        for prospect, belief, later_chance in zip(self.first, first, later_chances, strict=True):
            chance, limit = prospect.chance(belief), self._bound_first_chance(first_chances, later_chance)
            first_chances.append(chance if limit is None else min(chance, limit) if prospect.tried else limit)
        return Odds(
            first=first_chances,
            later=later_chances,
            first_cost=[prospect.cost_usd for prospect in self.first],
            later_cost=[prospect.cost_usd for prospect in self.later],
        )

    def _bound_first_chance(self, weaker: Sequence[float], later_chance: float) -> float | None:
        """Return the highest chance that a model can have at a first attempt; None if no weaker model has been tried.

        A model alone cannot do more tasks than a weaker model followed by this model. So attempts after failures limit
        the chance of a first attempt with a stronger model, without paying for such an attempt.
        """
        tried = [chance for chance, prospect in zip(weaker, self.first, strict=False) if prospect.tried]
        return 1 - (1 - min(tried)) * (1 - later_chance) if tried else None


def estimate_totals(odds: Odds, steps: Sequence[int], *, attempts: int, first: bool) -> list[float]:
    """Return the expected total cost of the task for each step that could be next, followed by the best steps.

    The steps are models in order, the strongest last. A ladder has at most `attempts` steps.
    """
    last = len(steps) - 1
    chances, costs = [odds.later[step] for step in steps], [odds.later_cost[step] for step in steps]
    rest = [costs[last]] * len(steps)
    for _ in range(attempts - 2):
        total = _add_rest(chances, costs, rest)
        rest = [min(total[step + 1 :], default=0.0) for step in range(len(steps))]
    if first:
        chances, costs = [odds.first[step] for step in steps], [odds.first_cost[step] for step in steps]
    total = _add_rest(chances, costs, rest)
    return total if attempts > 1 else [math.inf] * last + total[last:]


def _add_rest(chances: Sequence[float], costs: Sequence[float], rest: Sequence[float]) -> list[float]:
    """Return each step's cost, plus the cost of the rest if the step fails. Nothing follows the last step."""
    total = [cost + (1 - chance) * more for chance, cost, more in zip(chances, costs, rest, strict=True)]
    return [*total[:-1], costs[-1]]


def _estimate_prices(models: Sequence[Model], record: TrackRecord) -> list[float]:
    """Return each model's approximate cost per attempt, from its price and mean cost or from a neighbouring model."""
    prices = [_find_price(model, record) for model in models]
    estimates: list[float] = []
    for index in range(len(models)):
        nearest = [*reversed(prices[: index + 1]), *prices[index:]]
        estimates.append(next((price for price in nearest if price is not None), 2.0**index))
    return estimates


def _find_price(model: Model, record: TrackRecord) -> float | None:
    sums = [record.of(model.name, after_failure=after_failure) for after_failure in (False, True)]
    weight = _PRICE_WEIGHT if model.price else 0.0
    costed = weight + sum(own.costed for own in sums)
    return (weight * (model.price or 0.0) + sum(own.cost_usd for own in sums)) / costed if costed else None
