"""Estimate the chance and the cost of an attempt of each model, and find the cheapest ladder of models.

A ladder is the order in which models are tried until one gets the task done; it ends with the strongest. A weaker model
is worth a step when it is likely to save more than it costs. So two chances matter for each model: at a first attempt,
and after another model has failed, which is far smaller, because the easy tasks are done by then.

Both are beliefs: a mean, and how many attempts it is worth. Without a record the mean is one half, worth two attempts.
Each narrower record (all tasks, the type, its difficulty, similar tasks) starts with the belief of the wider one, worth
at most `_WIDER` attempts, and adds its own attempts.

To explore, a chance is drawn from each belief: the less is known, the more the draws vary, and a model is tried about
as often as it may be the best. Only the belief about all tasks is drawn: a single kind of task is too rare to be
explored on its own. The draws come from a seed, so that a choice can be repeated.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from learnt.model import Value
from learnt.settings import Model
from learnt.strategy.figures import PastAttempt, Sums, TrackRecord

# How many attempts the belief of a wider record is worth: chances often differ by 0.15 between kinds of tasks.
_WIDER = 8.0
# How many attempts the configured price is worth, and the mean cost for first or later attempts.
_PRICE = 2.0


class Belief(Value):
    """An estimated chance, and how many attempts the estimate is worth."""

    mean: float = 0.5
    strength: float = 2.0

    def narrow(self, sums: Sums) -> Belief:
        """Return the belief about a narrower kind of task, given its own record."""
        if not sums.attempts:
            return self
        strength = min(self.strength, _WIDER)
        total = strength + sums.attempts
        return Belief(mean=(strength * self.mean + sums.done) / total, strength=total)

    @property
    def at_best(self) -> float:
        """The chance with the benefit of the doubt: one standard deviation above the mean."""
        return self.mean + math.sqrt(self.mean * (1 - self.mean) / (self.strength + 1))

    def draw(self, chance: random.Random) -> Belief:
        """Return a random belief that may well be the true one."""
        yes, no = self.mean * self.strength, (1 - self.mean) * self.strength
        return Belief(mean=chance.betavariate(max(yes, 1e-3), max(no, 1e-3)), strength=self.strength)


class Prospect(Value):
    """What is known about one model at a first or a later attempt: at any task, and at tasks like this one."""

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
    """The chance and the cost of each model at a first attempt and at a later one, in the order of the models."""

    first: Sequence[float]
    later: Sequence[float]
    first_cost: Sequence[float]
    later_cost: Sequence[float]


class Prospects:
    """What the record and similar tasks say about each model, for a task of this type and difficulty."""

    def __init__(
        self,
        models: Sequence[Model],
        record: TrackRecord,
        *,
        type: str = "",
        difficulty: str = "",
        similar: Sequence[PastAttempt] = (),
    ) -> None:
        alike = TrackRecord()
        for outcome in similar:
            alike.add(outcome, weight=outcome.likeness)
        prices = _estimate_prices(models, record)

        def estimate(model: int, start: Belief, *, after_failure: bool) -> Prospect:
            name = models[model].name
            wide = record.of(name, after_failure=after_failure)
            narrower = [record.of(name, after_failure=after_failure, type=type)] if type else []
            if difficulty:
                narrower.append(record.of(name, after_failure=after_failure, type=type, difficulty=difficulty))
            return Prospect(
                belief=start.narrow(wide),
                narrower=(*narrower, alike.of(name, after_failure=after_failure)),
                cost_usd=(_PRICE * prices[model] + wide.cost_usd) / (_PRICE + wide.costed),
                tried=wide.attempts > 0,
            )

        self.later = [estimate(model, Belief(), after_failure=True) for model in range(len(models))]
        self.first: list[Prospect] = []
        for model, later in enumerate(self.later):
            most = self._bound_first_chance([prospect.belief.mean for prospect in self.first], later.belief.mean)
            self.first.append(estimate(model, Belief(mean=0.5 if most is None else most), after_failure=False))

    def is_known(self, model: int) -> bool:
        """Say whether a model has any attempt."""
        return self.first[model].tried or self.later[model].tried

    def expect(self) -> Odds:
        """Return the most likely odds."""
        return self._odds([prospect.belief for prospect in self.first], [prospect.belief for prospect in self.later])

    def draw(self, seed: str) -> Odds:
        """Return random odds that may well be the true ones; the same for the same seed."""
        chance = random.Random(seed)
        first = [prospect.belief.draw(chance) for prospect in self.first]
        return self._odds(first, [prospect.belief.draw(chance) for prospect in self.later])

    def _odds(self, first: list[Belief], later: list[Belief]) -> Odds:
        afterwards = [prospect.chance(belief) for prospect, belief in zip(self.later, later, strict=True)]
        at_once: list[float] = []
        for own, belief, after in zip(self.first, first, afterwards, strict=True):
            chance, most = own.chance(belief), self._bound_first_chance(at_once, after)
            at_once.append(chance if most is None else min(chance, most) if own.tried else most)
        return Odds(
            first=at_once,
            later=afterwards,
            first_cost=[prospect.cost_usd for prospect in self.first],
            later_cost=[prospect.cost_usd for prospect in self.later],
        )

    def _bound_first_chance(self, weaker: Sequence[float], after: float) -> float | None:
        """Return the highest chance that a model can have at a first attempt; None if no weaker one was tried.

        A model alone cannot do more than a weaker one followed, where that fails, by this one. So attempts after
        failures bound what starting with a stronger model can bring, without paying for such a start.
        """
        tried = [chance for chance, prospect in zip(weaker, self.first, strict=False) if prospect.tried]
        return 1 - (1 - min(tried)) * (1 - after) if tried else None


def estimate_totals(odds: Odds, steps: Sequence[int], *, attempts: int, first: bool) -> list[float]:
    """Return for each step what the task is likely to cost in all if it is tried next and the best steps follow.

    The steps are models in their order, the strongest last; a ladder takes at most `attempts` of them.
    """
    last = len(steps) - 1
    chances, costs = [odds.later[step] for step in steps], [odds.later_cost[step] for step in steps]
    rest = [costs[last]] * len(steps)
    for _ in range(attempts - 2):
        total = _add_rest(chances, costs, rest)
        rest = [min(total[place + 1 :], default=0.0) for place in range(len(steps))]
    if first:
        chances, costs = [odds.first[step] for step in steps], [odds.first_cost[step] for step in steps]
    total = _add_rest(chances, costs, rest)
    return total if attempts > 1 else [math.inf] * last + total[last:]


def _add_rest(chances: Sequence[float], costs: Sequence[float], rest: Sequence[float]) -> list[float]:
    """Return what each step costs together with what follows if it fails; nothing follows the last."""
    total = [cost + (1 - chance) * more for chance, cost, more in zip(chances, costs, rest, strict=True)]
    return [*total[:-1], costs[-1]]


def _estimate_prices(models: Sequence[Model], record: TrackRecord) -> list[float]:
    """Return the approximate cost of an attempt of each model: from its price and mean cost, else from a neighbour."""
    prices = [_find_price(model, record) for model in models]
    estimates: list[float] = []
    for place in range(len(models)):
        nearest = [*reversed(prices[: place + 1]), *prices[place:]]
        estimates.append(next((price for price in nearest if price is not None), 2.0**place))
    return estimates


def _find_price(model: Model, record: TrackRecord) -> float | None:
    sums = [record.of(model.name, after_failure=after_failure) for after_failure in (False, True)]
    weight = _PRICE if model.price else 0.0
    costed = weight + sum(own.costed for own in sums)
    return (weight * (model.price or 0.0) + sum(own.cost_usd for own in sums)) / costed if costed else None
