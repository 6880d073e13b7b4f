"""Choose the model for the next attempt at a task, and say why.

    fixed            the configured model
    cost-optimized   the cheapest while most attempts succeed, the strongest after two failures, or the middle one
    escalate         the cheapest first, one step up after each failure
    learned          the model that the record favours for a first attempt or after a failure

Models are configured in order, the cheapest and weakest first. A model that the agent requests overrides the strategy.
The same arguments always give the same choice: nothing here reads the database, the clock or the settings.

`learned` minimises the expected cost until a task is done (see `ladder`). If a task has enough attempts for all models,
each ladder goes up and ends with the last model. If there are more models than attempts, the strongest model is the one
with the best record after failures, with the benefit of the doubt, and any untried model can be a step towards it.
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
    """The models that have failed at the task since it was last done, oldest first."""
    similar: tuple[PastAttempt, ...] = ()
    """Attempts at similar tasks, with each task's similarity."""
    recent: Share | None = None
    """The results of recent attempts at any task; None means that the whole record is used."""


class ModelChoice(Value):
    """The chosen model, and the reason in one sentence."""

    model: str
    reason: str
    last: bool = False
    """Whether no other model is tried if this model fails."""


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
    """Return the model for the next attempt. At most `attempts` different models are tried for a task."""
    _check(strategy, models, attempts)
    requested, objection = _find_requested(hint, models)
    if requested:
        is_last = requested == models[-1].name
        return ModelChoice(model=requested, reason=f"the agent asked for {requested}", last=is_last)
    if strategy == "fixed":
        choice = _choose_fixed(models, fixed)
    elif strategy == "cost-optimized":
        choice = _choose_by_cost(models, record, facts)
    elif strategy == "escalate":
        choice = _choose_next_step(models, facts, attempts)
    else:
        choice = _choose_by_record(models, record, facts, attempts)
    return choice.replace(reason=f"{objection}; {choice.reason}") if objection else choice


def find_model(name: str, models: Sequence[Model]) -> str:
    """Return the configured model that a name means; raise if it means none, or more than one."""
    matching = _find_matching(name, models)
    if len(matching) != 1:
        names = ", ".join(model.name for model in models)
        raise InvalidValue(f"model `{name}` {_explain_mismatch(matching)}", hint=f"configured models: {names}")
    return matching[0]


def spread(models: Sequence[Model], attempts: int) -> list[Model]:
    """Return at most `attempts` models, spread evenly from the first to the last."""
    if len(models) <= attempts:
        return list(models)
    if attempts == 1:
        return [models[-1]]
    return [models[round(step * (len(models) - 1) / (attempts - 1))] for step in range(attempts)]


def _check(strategy: str, models: Sequence[Model], attempts: int) -> None:
    if strategy not in STRATEGIES:
        raise InvalidValue(
            f"strategy `{strategy}` is unknown", hint=f"the strategy must be one of: {', '.join(STRATEGIES)}"
        )
    if not models:
        raise InvalidValue("there is no model to choose from", hint="list the models, cheapest first, in learnt.toml")
    if len({model.name for model in models}) < len(models):
        raise InvalidValue("a model is configured twice", hint="list each model once, the cheapest first")
    if attempts < 1:
        raise InvalidValue(f"attempts must be at least 1, not {attempts}", hint="a task needs at least one attempt")


def _find_requested(hint: str, models: Sequence[Model]) -> tuple[str, str]:
    """Return the configured model that the agent requested, or an empty name and why the request is ignored."""
    if not hint.strip():
        return "", ""
    matching = _find_matching(hint, models)
    if len(matching) == 1:
        return matching[0], ""
    return "", f"`{hint.strip()}`, which the agent asked for, {_explain_mismatch(matching)}"


def _find_matching(word: str, models: Sequence[Model]) -> list[str]:
    """Return the models with this name, or otherwise the models whose names contain all its parts."""
    exact = [model.name for model in models if model.name.casefold() == word.strip().casefold()]
    parts = _split_name(word)
    return exact or [model.name for model in models if parts and parts <= _split_name(model.name)]


def _explain_mismatch(matching: Sequence[str]) -> str:
    return f"matches {' and '.join(matching)}" if matching else "is not configured"


def _split_name(name: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]+|\d+", name.casefold()))


def _choose_fixed(models: Sequence[Model], fixed: str) -> ModelChoice:
    if not fixed:
        return ModelChoice(model=models[-1].name, reason="no model is set, so the strongest is used", last=True)
    model = find_model(fixed, models)
    return ModelChoice(model=model, reason=f"{model} is set for this task", last=True)


def _choose_by_cost(models: Sequence[Model], record: TrackRecord, facts: Facts) -> ModelChoice:
    recent = facts.recent or Share(done=record.total.done, attempts=record.total.attempts)
    successes = f"{recent.done:.0f} of {recent.attempts:.0f} attempts succeeded"
    failures = len(facts.failures)
    if failures >= _TOO_MANY_FAILURES:
        index, reason = len(models) - 1, f"{failures} failures at this task, so the strongest model is used"
    elif recent.share > _GOING_WELL and not failures:
        index, reason = 0, f"{successes}, so the cheapest model is used"
    else:
        index = (len(models) - 1) // 2
        cause = "one failure at this task" if failures else successes if recent.attempts else "no attempts yet"
        reason = f"{cause}, so the middle model is used"
    return ModelChoice(model=models[index].name, reason=reason, last=index == len(models) - 1)


def _choose_next_step(models: Sequence[Model], facts: Facts, attempts: int) -> ModelChoice:
    steps = spread(models, attempts)
    names = [model.name for model in models]
    highest_failed = max((names.index(name) for name in facts.failures if name in names), default=0)
    lowest_step = next(number for number, step in enumerate(steps) if names.index(step.name) >= highest_failed)
    chosen = min(max(len(facts.failures), lowest_step), len(steps) - 1)
    is_last = chosen == len(steps) - 1
    if not facts.failures:
        reason = "the first attempt goes to the cheapest"
    else:
        failures = f"{len(facts.failures)} failure{'s' * (len(facts.failures) > 1)} at this task"
        reason = f"{failures}, so {'the strongest' if is_last else f'step {chosen + 1} of {len(steps)}'} works"
    return ModelChoice(model=steps[chosen].name, reason=reason, last=is_last)


def _choose_by_record(models: Sequence[Model], record: TrackRecord, facts: Facts, attempts: int) -> ModelChoice:
    names = [model.name for model in models]
    failed = [names.index(name) for name in dict.fromkeys(facts.failures) if name in names]
    has_surplus = len(models) > attempts
    highest_failed = max(failed, default=-1)
    remaining = attempts - len(failed)
    candidates = [
        index for index in range(len(models)) if index not in failed and (has_surplus or index > highest_failed)
    ]
    if not candidates or remaining < 1:
        highest = names[highest_failed]
        return ModelChoice(model=highest, reason=f"no model above {highest} is left to try", last=True)
    prospects = Prospects(models, record, type=facts.type, difficulty=facts.difficulty, similar=facts.similar)
    if not any(prospects.is_known(index) for index in candidates):
        evenly = [names.index(model.name) for model in spread(models, attempts)]
        above = [index for index in evenly if index in candidates and index > highest_failed]
        return _choose_without_record([models[index] for index in above or candidates], facts)
    strongest = candidates[-1]
    if has_surplus:
        strongest = max(candidates, key=lambda index: (prospects.later[index].belief.at_best, index))
    steps = [index for index in candidates if index <= strongest]
    first = not facts.failures
    sampled_costs = estimate_totals(prospects.draw(facts.task), steps, attempts=remaining, first=first)
    step = sampled_costs.index(min(sampled_costs))
    expected_costs = estimate_totals(prospects.expect(), steps, attempts=remaining, first=first)
    chosen = names[steps[step]]
    comparison = _compare_costs(step, expected_costs, [names[index] for index in steps], first=first)
    reason = _describe_record(chosen, record, facts) + comparison
    return ModelChoice(model=chosen, reason=reason, last=remaining == 1 if has_surplus else chosen == names[-1])


def _choose_without_record(steps: Sequence[Model], facts: Facts) -> ModelChoice:
    if facts.failures:
        reason = f"no attempts yet with {steps[0].name} or stronger models, so it is the next step up"
    else:
        reason = "no attempts yet, so the cheapest model starts"
    return ModelChoice(model=steps[0].name, reason=reason, last=len(steps) == 1)


def _describe_record(model: str, record: TrackRecord, facts: Facts) -> str:
    """Describe a model's record for a first or a later attempt, for the same type of task if there is such a record."""
    after_failure = bool(facts.failures)
    after = " after a failure" if after_failure else ""
    of_type = record.of(model, after_failure=after_failure, type=facts.type)
    kind = f"attempts at `{facts.type}` tasks" if facts.type and of_type.attempts else "attempts"
    sums = of_type if of_type.attempts else record.of(model, after_failure=after_failure)
    if not sums.attempts:
        return f"{model}: not tried{after or ' for a first attempt'} yet"
    cost = f" at {format_money(sums.cost_usd / sums.costed)}" if sums.costed else ""
    return f"{model}: {sums.done:.0f} of {sums.attempts:.0f} {kind} succeeded{after}{cost}"


def _compare_costs(chosen: int, totals: Sequence[float], names: Sequence[str], *, first: bool) -> str:
    """Describe the expected total cost of the task with the chosen model and with the best other model."""
    others = [other for other in range(len(names)) if other != chosen and totals[other] < math.inf]
    if not others or totals[chosen] == math.inf:
        return "; it is the last step"
    best = min(others, key=lambda other: totals[other])
    way = "starting" if first else "continuing"
    own, other = format_money(totals[chosen]), format_money(totals[best])
    costs = f"{way} with it costs about {own} in total, with {names[best]} {other}"
    return f"; {costs}" + ("; tried anyway, to learn more about it" if totals[best] < totals[chosen] else "")


def format_money(usd: float) -> str:
    """Return an amount with two digits that say something."""
    return f"${usd:.2f}" if usd >= 0.1 else f"${usd:.2g}"
