"""What an attempt of each model is likely to bring and to cost, and the cheapest ladder of models that follows from it.

A ladder is the order in which models are tried until one gets the task done; it ends with the strongest. A weaker model
is worth a step when what it is likely to save is more than what it costs. So two chances matter for each model:
at a first attempt, and after another model has failed, which is far smaller, since the easy tasks are gone by then.

Both are beliefs: a mean, and how many attempts it is worth. Nothing known is one half, worth two attempts. From there
each narrower record (all tasks, the type, its difficulty, similar tasks) starts with the belief of the wider one, taken
for at most `_WIDER` attempts, and adds its own.

To find out what pays, a chance is drawn from each belief: the less is known, the more the draws differ, and a model
gets its try about as often as it may be the best. Only what is believed about all tasks is drawn: a kind of task is
too rare to be explored on its own account. The draws come from a seed, so that a choice can be repeated.
"""

from __future__ import annotations

import math
import random

from learnt.model import Value
from learnt.settings import Model
from learnt.strategy.figures import Outcome, Record, Sums

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# For how many attempts the belief of a wider record is taken: chances that differ by .15 between kinds are usual.
_WIDER = 8.0
# For how many attempts the configured price is taken, and the mean cost where first or later attempts are looked at.
_PRICE = 2.0


class Belief(Value):
    """A chance, and how many attempts the knowledge of it is worth."""

    mean: float = 0.5
    strength: float = 2.0

    def narrowed(self, sums: Sums) -> Belief:
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

    def drawn(self, chance: random.Random) -> Belief:
        """Return a belief that may well be the true one."""
        yes, no = self.mean * self.strength, (1 - self.mean) * self.strength
        return Belief(mean=chance.betavariate(max(yes, 1e-3), max(no, 1e-3)), strength=self.strength)


class Prospect(Value):
    """What is known about one model in one place, first or after a failure: at any task, and at those like this one."""

    belief: Belief
    narrower: tuple[Sums, ...]
    cost_usd: float
    tried: bool

    def chance(self, belief: Belief) -> float:
        """Return the chance at the task at hand, if this is what is believed about any task."""
        for sums in self.narrower:
            belief = belief.narrowed(sums)
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
        record: Record,
        *,
        type: str = "",
        difficulty: str = "",
        similar: Sequence[Outcome] = (),
    ) -> None:
        alike = Record()
        for outcome in similar:
            alike.add(outcome, weight=outcome.likeness)
        prices = _prices(models, record)

        def prospect(model: int, start: Belief, *, after_failure: bool) -> Prospect:
            name = models[model].name
            wide = record.of(name, after_failure=after_failure)
            narrower = [record.of(name, after_failure=after_failure, type=type)] if type else []
            if difficulty:
                narrower.append(record.of(name, after_failure=after_failure, type=type, difficulty=difficulty))
            return Prospect(
                belief=start.narrowed(wide),
                narrower=(*narrower, alike.of(name, after_failure=after_failure)),
                cost_usd=(_PRICE * prices[model] + wide.cost_usd) / (_PRICE + wide.costed),
                tried=wide.attempts > 0,
            )

        self.later = [prospect(model, Belief(), after_failure=True) for model in range(len(models))]
        self.first: list[Prospect] = []
        for model, later in enumerate(self.later):
            most = self._most([one.belief.mean for one in self.first], later.belief.mean)
            self.first.append(prospect(model, Belief(mean=0.5 if most is None else most), after_failure=False))

    def known(self, model: int) -> bool:
        """Say whether there is any attempt of a model."""
        return self.first[model].tried or self.later[model].tried

    def believed(self) -> Odds:
        """Return the odds as they are believed to be."""
        return self._odds([one.belief for one in self.first], [one.belief for one in self.later])

    def drawn(self, seed: str) -> Odds:
        """Return odds that may well be the true ones; the same for the same seed."""
        chance = random.Random(seed)
        first = [one.belief.drawn(chance) for one in self.first]
        return self._odds(first, [one.belief.drawn(chance) for one in self.later])

    def _odds(self, first: list[Belief], later: list[Belief]) -> Odds:
        afterwards = [one.chance(belief) for one, belief in zip(self.later, later, strict=True)]
        at_once: list[float] = []
        for own, belief, after in zip(self.first, first, afterwards, strict=True):
            chance, most = own.chance(belief), self._most(at_once, after)
            at_once.append(chance if most is None else min(chance, most) if own.tried else most)
        return Odds(
            first=at_once,
            later=afterwards,
            first_cost=[one.cost_usd for one in self.first],
            later_cost=[one.cost_usd for one in self.later],
        )

    def _most(self, weaker: Sequence[float], after: float) -> float | None:
        """Return the most that a model can do at a first attempt; None where no weaker one was tried.

        A model alone cannot do more than a weaker one and, where that fails, this one. So attempts after failures say
        what a start with a stronger model can bring at best, and nobody need pay to find out.
        """
        tried = [chance for chance, one in zip(weaker, self.first, strict=False) if one.tried]
        return 1 - (1 - min(tried)) * (1 - after) if tried else None


def totals(odds: Odds, steps: Sequence[int], *, attempts: int, first: bool) -> list[float]:
    """Return for each step what the task is likely to cost in all when it is tried next, and the best follows.

    The steps are models in their order, the strongest last; a ladder takes at most `attempts` of them.
    """
    last = len(steps) - 1
    chances, costs = [odds.later[step] for step in steps], [odds.later_cost[step] for step in steps]
    rest = [costs[last]] * len(steps)
    for _ in range(attempts - 2):
        total = _with_rest(chances, costs, rest)
        rest = [min(total[place + 1 :], default=0.0) for place in range(len(steps))]
    if first:
        chances, costs = [odds.first[step] for step in steps], [odds.first_cost[step] for step in steps]
    total = _with_rest(chances, costs, rest)
    return total if attempts > 1 else [math.inf] * last + total[last:]


def _with_rest(chances: Sequence[float], costs: Sequence[float], rest: Sequence[float]) -> list[float]:
    """Return what each step costs with what follows when it fails; nothing follows the last."""
    total = [cost + (1 - chance) * more for chance, cost, more in zip(chances, costs, rest, strict=True)]
    return [*total[:-1], costs[-1]]


def _prices(models: Sequence[Model], record: Record) -> list[float]:
    """Return about what an attempt of each model costs: its price and its mean cost, else what a neighbour costs."""
    known = [_known_price(model, record) for model in models]
    found: list[float] = []
    for place in range(len(models)):
        nearest = [*reversed(known[: place + 1]), *known[place:]]
        found.append(next((price for price in nearest if price is not None), 2.0**place))
    return found


def _known_price(model: Model, record: Record) -> float | None:
    sums = [record.of(model.name, after_failure=after_failure) for after_failure in (False, True)]
    weight = _PRICE if model.price else 0.0
    costed = weight + sum(one.costed for one in sums)
    return (weight * (model.price or 0.0) + sum(one.cost_usd for one in sums)) / costed if costed else None
