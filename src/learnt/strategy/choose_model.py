"""Choose the model for the next attempt at a task, and say why.

    fixed            the one that is named
    cost-optimized   the cheapest while all goes well, the strongest after two failures, else the middle one
    escalate         the cheapest first, one step up with every failure
    learned          the one with which, by the record, it pays to start or to go on after a failure

Models are configured in order, the cheapest and weakest first. A model that the agent asks for goes before every
strategy. The same arguments always give the same choice: nothing here reads the database, the clock or the settings.

`learned` minimises what a task costs until it is done (see `ladder`). With no more models than attempts, every ladder
goes up and ends with the last model, so that whatever that model can do gets done. A longer list cannot be tried in
full: there the strongest model is the one with the best record after failures, with the benefit of the doubt, and every
untried model may be a step towards it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from learnt.errors import InvalidValue
from learnt.model import Value
from learnt.settings import Model
from learnt.strategy.figures import PastAttempt, Share, TrackRecord
from learnt.strategy.ladder import Prospects, estimate_totals

STRATEGIES = ("fixed", "cost-optimized", "escalate", "learned")
ATTEMPTS = 4
_GOING_WELL = 0.8
_TOO_MANY_FAILURES = 2


class Facts(Value):
    """What is known about the current task."""

    task: str
    type: str = ""
    difficulty: str = ""
    failures: tuple[str, ...] = ()
    """The models of its failed attempts since it was last done, oldest first."""
    similar: tuple[PastAttempt, ...] = ()
    """Attempts at similar tasks, each with its likeness."""
    recent: Share | None = None
    """How recent attempts at any task ended; without it, the whole record counts."""


class ModelChoice(Value):
    """A model, and the reason in one sentence."""

    model: str
    reason: str
    last: bool = False
    """Whether no other model follows when this one fails."""


def choose(
    strategy: str,
    models: Sequence[Model],
    record: TrackRecord,
    facts: Facts,
    *,
    hint: str = "",
    fixed: str = "",
    attempts: int = ATTEMPTS,
) -> ModelChoice:
    """Return the model for the next attempt; `attempts` is how many different models a task may see."""
    _check(strategy, models, attempts)
    wanted, ignored = _find_requested(hint, models)
    if wanted:
        return ModelChoice(model=wanted, reason=f"the agent asked for {wanted}", last=wanted == models[-1].name)
    if strategy == "fixed":
        choice = _choose_fixed(models, fixed)
    elif strategy == "cost-optimized":
        choice = _choose_by_cost(models, record, facts)
    elif strategy == "escalate":
        choice = _choose_next_step(models, facts, attempts)
    else:
        choice = _choose_by_record(models, record, facts, attempts)
    return choice.replace(reason=f"{ignored}; {choice.reason}") if ignored else choice


def spread(models: Sequence[Model], attempts: int) -> list[Model]:
    """Return at most `attempts` models, spread evenly from the first to the last."""
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


def _find_requested(hint: str, models: Sequence[Model]) -> tuple[str, str]:
    """Return the configured model that the agent asks for; else an empty name, and why it was ignored."""
    if not hint.strip():
        return "", ""
    matching = _find_matching(hint, models)
    if len(matching) == 1:
        return matching[0], ""
    return "", f"`{hint.strip()}`, which the agent asked for, {_explain_mismatch(matching)}"


def _find_matching(word: str, models: Sequence[Model]) -> list[str]:
    """Return the models with this name; else those whose name contains all its parts."""
    same = [model.name for model in models if model.name.casefold() == word.strip().casefold()]
    parts = _split_name(word)
    return same or [model.name for model in models if parts and parts <= _split_name(model.name)]


def _explain_mismatch(matching: Sequence[str]) -> str:
    return f"fits {' and '.join(matching)}" if matching else "is not configured"


def _split_name(name: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]+|\d+", name.casefold()))


def _choose_fixed(models: Sequence[Model], fixed: str) -> ModelChoice:
    if not fixed:
        return ModelChoice(model=models[-1].name, reason="no model is named, so the strongest works", last=True)
    matching = _find_matching(fixed, models)
    if len(matching) != 1:
        names = ", ".join(model.name for model in models)
        raise InvalidValue(f"model `{fixed}` {_explain_mismatch(matching)}", hint=f"configured are: {names}")
    return ModelChoice(model=matching[0], reason=f"{matching[0]} is named for this task", last=True)


def _choose_by_cost(models: Sequence[Model], record: TrackRecord, facts: Facts) -> ModelChoice:
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
    return ModelChoice(model=models[place].name, reason=why, last=place == len(models) - 1)


def _choose_next_step(models: Sequence[Model], facts: Facts, attempts: int) -> ModelChoice:
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
    return ModelChoice(model=steps[place].name, reason=why, last=last)


def _choose_by_record(models: Sequence[Model], record: TrackRecord, facts: Facts, attempts: int) -> ModelChoice:
    names = [model.name for model in models]
    failed = [names.index(name) for name in dict.fromkeys(facts.failures) if name in names]
    is_long = len(models) > attempts
    remaining = attempts - len(failed)
    candidates = [
        place for place in range(len(models)) if place not in failed and (is_long or place > max(failed, default=-1))
    ]
    if not candidates or remaining < 1:
        highest = names[max(failed)]
        return ModelChoice(model=highest, reason=f"nothing is left to try above {highest}", last=True)
    prospects = Prospects(models, record, type=facts.type, difficulty=facts.difficulty, similar=facts.similar)
    if not any(prospects.is_known(place) for place in candidates):
        evenly = [names.index(model.name) for model in spread(models, attempts)]
        above = [place for place in evenly if place in candidates and place > max(failed, default=-1)]
        return _choose_without_record([models[place] for place in above or candidates], facts)
    last = (
        max(candidates, key=lambda place: (prospects.later[place].belief.at_best, place)) if is_long else candidates[-1]
    )
    steps = [place for place in candidates if place <= last]
    first = not facts.failures
    tried = estimate_totals(prospects.draw(facts.task), steps, attempts=remaining, first=first)
    place = tried.index(min(tried))
    likely = estimate_totals(prospects.expect(), steps, attempts=remaining, first=first)
    chosen = names[steps[place]]
    why = _describe_record(chosen, record, facts) + _compare_costs(
        place, likely, [names[step] for step in steps], first=first
    )
    return ModelChoice(model=chosen, reason=why, last=remaining == 1 if is_long else chosen == names[-1])


def _choose_without_record(steps: Sequence[Model], facts: Facts) -> ModelChoice:
    if facts.failures:
        why = f"nothing is known yet about {steps[0].name} and those above, so it goes one step up"
    else:
        why = "nothing is known yet, so the cheapest starts"
    return ModelChoice(model=steps[0].name, reason=why, last=len(steps) == 1)


def _describe_record(model: str, record: TrackRecord, facts: Facts) -> str:
    """Describe the record of a model for a first or a later attempt, at the same type of task if there is any."""
    after_failure = bool(facts.failures)
    after = " after a failure" if after_failure else ""
    own = record.of(model, after_failure=after_failure, type=facts.type)
    kind = f"attempts at `{facts.type}` tasks" if facts.type and own.attempts else "attempts"
    sums = own if own.attempts else record.of(model, after_failure=after_failure)
    if not sums.attempts:
        return f"{model}: not tried{after or ' first'} yet"
    cost = f" at {_format_money(sums.cost_usd / sums.costed)}" if sums.costed else ""
    return f"{model}: {sums.done:.0f} of {sums.attempts:.0f} {kind} succeeded{after}{cost}"


def _compare_costs(place: int, likely: Sequence[float], names: Sequence[str], *, first: bool) -> str:
    """Describe what the task is likely to cost in all with this model and with the best other one."""
    others = [other for other in range(len(names)) if other != place and likely[other] < math.inf]
    if not others or likely[place] == math.inf:
        return "; it is the last step"
    best = min(others, key=lambda other: likely[other])
    way = "starting" if first else "going on"
    own, other = _format_money(likely[place]), _format_money(likely[best])
    costs = f"{way} with it costs about {own} in all, with {names[best]} {other}"
    return f"; {costs}" + ("; tried all the same, to be more certain" if likely[best] < likely[place] else "")


def _format_money(usd: float) -> str:
    return f"${usd:.2f}" if usd >= 0.1 else f"${usd:.2g}"
