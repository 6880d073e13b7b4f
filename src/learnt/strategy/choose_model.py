"""Choose the model for the next attempt at a task, and say why.

    fixed            the one that is named
    cost-optimized   the cheapest while all goes well, the strongest after two failures, else the middle one
    escalate         the cheapest first, one step up with every failure
    learned          where the record says that it pays to start, and to go on after a failure

Models are configured in their order, the cheapest and weakest first. What the agent asks for goes before every
strategy. The same arguments always give the same choice: nothing here reads the database, the clock or the settings.

`learned` minimises what a task costs until it is done (see `ladder`). With no more models than attempts, every ladder
only goes up and ends with the last model, so that what the last one can do gets done. A longer list cannot be walked:
there the strongest is the one that did most after failures, with the benefit of the doubt, and every untried model
may be a step towards it.
"""

from __future__ import annotations

import math
import re

from learnt.errors import InvalidValue
from learnt.model import Value
from learnt.settings import Model
from learnt.strategy.figures import Outcome, Record, Share
from learnt.strategy.ladder import Prospects, totals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

STRATEGIES = ("fixed", "cost-optimized", "escalate", "learned")
ATTEMPTS = 4
_GOING_WELL = 0.8
_TOO_MANY_FAILURES = 2


class Facts(Value):
    """What is known about the task at hand."""

    task: str
    type: str = ""
    difficulty: str = ""
    failures: tuple[str, ...] = ()
    """The models of its failed attempts since it was last done, oldest first."""
    similar: tuple[Outcome, ...] = ()
    """Attempts at similar tasks, each with its likeness."""
    recent: Share | None = None
    """How recent attempts at any task ended; without it, all of the record counts."""


class Choice(Value):
    """A model, and the reason in one sentence."""

    model: str
    reason: str
    last: bool = False
    """Whether no other model follows when this one fails."""


def choose(
    strategy: str,
    models: Sequence[Model],
    record: Record,
    facts: Facts,
    *,
    hint: str = "",
    fixed: str = "",
    attempts: int = ATTEMPTS,
) -> Choice:
    """Return the model for the next attempt; `attempts` is how many different models a task may see."""
    _check(strategy, models, attempts)
    wanted, ignored = _asked_for(hint, models)
    if wanted:
        return Choice(model=wanted, reason=f"the agent asked for {wanted}", last=wanted == models[-1].name)
    if strategy == "fixed":
        choice = _fixed(models, fixed)
    elif strategy == "cost-optimized":
        choice = _cost_optimized(models, record, facts)
    elif strategy == "escalate":
        choice = _escalate(models, facts, attempts)
    else:
        choice = _learned(models, record, facts, attempts)
    return choice.replace(reason=f"{ignored}; {choice.reason}") if ignored else choice


def spread(models: Sequence[Model], attempts: int) -> list[Model]:
    """Return at most so many models, evenly from the first to the last."""
    if len(models) <= attempts:
        return list(models)
    if attempts == 1:
        return [models[-1]]
    return [models[round(step * (len(models) - 1) / (attempts - 1))] for step in range(attempts)]


def _check(strategy: str, models: Sequence[Model], attempts: int) -> None:
    if strategy not in STRATEGIES:
        raise InvalidValue(f"strategy `{strategy}` is unknown", hint=f"strategy is one of: {', '.join(STRATEGIES)}")
    if not models:
        raise InvalidValue("there is no model to choose from", hint="name the models, cheapest first, in learnt.toml")
    if len({model.name for model in models}) < len(models):
        raise InvalidValue("a model is configured twice", hint="name each model once, the cheapest first")
    if attempts < 1:
        raise InvalidValue(f"attempts is {attempts}", hint="a task needs at least one attempt")


def _asked_for(hint: str, models: Sequence[Model]) -> tuple[str, str]:
    """Return the configured model that a word of the agent means; else nothing, and why."""
    if not hint.strip():
        return "", ""
    found = _matching(hint, models)
    if len(found) == 1:
        return found[0], ""
    return "", f"`{hint.strip()}`, which the agent asked for, {_mismatch(found)}"


def _matching(word: str, models: Sequence[Model]) -> list[str]:
    """Return the models that have this name; else those whose name has these parts."""
    same = [model.name for model in models if model.name.casefold() == word.strip().casefold()]
    parts = _parts(word)
    return same or [model.name for model in models if parts and parts <= _parts(model.name)]


def _mismatch(found: Sequence[str]) -> str:
    return f"fits {' and '.join(found)}" if found else "is not configured"


def _parts(name: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]+|\d+", name.casefold()))


def _fixed(models: Sequence[Model], fixed: str) -> Choice:
    if not fixed:
        return Choice(model=models[-1].name, reason="no model is named, so the strongest works", last=True)
    found = _matching(fixed, models)
    if len(found) != 1:
        names = ", ".join(model.name for model in models)
        raise InvalidValue(f"model `{fixed}` {_mismatch(found)}", hint=f"configured are: {names}")
    return Choice(model=found[0], reason=f"{found[0]} is named for this task", last=True)


def _cost_optimized(models: Sequence[Model], record: Record, facts: Facts) -> Choice:
    recent = facts.recent or Share(done=record.total.done, attempts=record.total.attempts)
    count = f"{recent.done:.0f} of {recent.attempts:.0f} attempts got their task done"
    failures = len(facts.failures)
    if failures >= _TOO_MANY_FAILURES:
        place, why = len(models) - 1, f"{failures} failures at this task, so the strongest works"
    elif recent.share > _GOING_WELL and not failures:
        place, why = 0, f"{count}, so the cheapest works"
    else:
        place = (len(models) - 1) // 2
        why = "a failure at this task" if failures else count if recent.attempts else "nothing is known yet"
        why += ", so the middle one works"
    return Choice(model=models[place].name, reason=why, last=place == len(models) - 1)


def _escalate(models: Sequence[Model], facts: Facts, attempts: int) -> Choice:
    steps = spread(models, attempts)
    names = [model.name for model in models]
    highest = max((names.index(name) for name in facts.failures if name in names), default=0)
    not_below = next(place for place, step in enumerate(steps) if names.index(step.name) >= highest)
    place = min(max(len(facts.failures), not_below), len(steps) - 1)
    last = place == len(steps) - 1
    if not facts.failures:
        why = "the first attempt goes to the cheapest"
    else:
        count = f"{len(facts.failures)} failure{'s' * (len(facts.failures) > 1)} at this task"
        why = f"{count}, so the strongest works" if last else f"{count}, so step {place + 1} of {len(steps)} works"
    return Choice(model=steps[place].name, reason=why, last=last)


def _learned(models: Sequence[Model], record: Record, facts: Facts, attempts: int) -> Choice:
    names = [model.name for model in models]
    failed = [names.index(name) for name in dict.fromkeys(facts.failures) if name in names]
    long = len(models) > attempts
    left = attempts - len(failed)
    open = [place for place in range(len(models)) if place not in failed and (long or place > max(failed, default=-1))]
    if not open or left < 1:
        highest = names[max(failed)]
        return Choice(model=highest, reason=f"nothing is left to try above {highest}", last=True)
    found = Prospects(models, record, type=facts.type, difficulty=facts.difficulty, similar=facts.similar)
    if not any(found.known(place) for place in open):
        evenly = [names.index(model.name) for model in spread(models, attempts)]
        above = [place for place in evenly if place in open and place > max(failed, default=-1)]
        return _unknown([models[place] for place in above or open], facts)
    last = max(open, key=lambda place: (found.later[place].belief.at_best, place)) if long else open[-1]
    steps = [place for place in open if place <= last]
    first = not facts.failures
    tried = totals(found.drawn(facts.task), steps, attempts=left, first=first)
    place = tried.index(min(tried))
    likely = totals(found.believed(), steps, attempts=left, first=first)
    chosen = names[steps[place]]
    why = _said(chosen, record, facts) + _compared(place, likely, [names[step] for step in steps], first=first)
    return Choice(model=chosen, reason=why, last=left == 1 if long else chosen == names[-1])


def _unknown(steps: Sequence[Model], facts: Facts) -> Choice:
    if facts.failures:
        why = f"nothing is known yet about {steps[0].name} and those above, so it goes one step up"
    else:
        why = "nothing is known yet, so the cheapest starts"
    return Choice(model=steps[0].name, reason=why, last=len(steps) == 1)


def _said(model: str, record: Record, facts: Facts) -> str:
    """Return what the record says about a model in this place, of the same type of task if there is any."""
    after_failure = bool(facts.failures)
    after = " after a failure" if after_failure else ""
    own = record.of(model, after_failure=after_failure, type=facts.type)
    kind = f"attempts at `{facts.type}` tasks" if facts.type and own.attempts else "attempts"
    sums = own if own.attempts else record.of(model, after_failure=after_failure)
    if not sums.attempts:
        return f"{model}: not tried{after or ' first'} yet"
    cost = f" at {_money(sums.cost_usd / sums.costed)}" if sums.costed else ""
    return f"{model}: {sums.done:.0f} of {sums.attempts:.0f} {kind} succeeded{after}{cost}"


def _compared(place: int, likely: Sequence[float], names: Sequence[str], *, first: bool) -> str:
    """Return what the task is likely to cost in all, this way and with the best other model."""
    others = [other for other in range(len(names)) if other != place and likely[other] < math.inf]
    if not others or likely[place] == math.inf:
        return "; it is the last step"
    best = min(others, key=lambda other: likely[other])
    way = "starting" if first else "going on"
    costs = f"{way} with it costs about {_money(likely[place])} in all, with {names[best]} {_money(likely[best])}"
    return f"; {costs}" + ("; tried all the same, to be more certain" if likely[best] < likely[place] else "")


def _money(usd: float) -> str:
    return f"${usd:.2f}" if usd >= 0.1 else f"${usd:.2g}"
