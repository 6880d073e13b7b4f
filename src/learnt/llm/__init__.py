"""Call a language model through the configured provider.

A call is made only if a provider is configured and the spending caps allow it, and is recorded before it is made. It
has a time limit and is retried once if a retry might succeed. The answer is checked: a `Completion` can be used as it
is, and an unusable answer raises `ModelFailed` with the reason.

A call that ends without reporting its tokens is charged at its forecast if a model might have worked on it, so that a
cap works even if every call times out.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from learnt.errors import ModelFailed, NoModel
from learnt.llm import calls, command, services
from learnt.llm.calls import DONE, FAILED, CallLedger, Completion, ModelAnswer, ModelRequest, Provider
from learnt.llm.schema import find_value
from learnt.text.clean import clean
from learnt.text.redact import redact
from learnt.text.templates import split_command_line

__all__ = ["CallLedger", "Completion", "ModelRequest", "Provider", "complete"]

_MAX_PAUSE_S = 1.0
_HINT = "try again later, or choose another model: `learnt config model.name`; `learnt usage` lists all calls"
_IN_SETTINGS = "under [model] in your user-wide settings file, which `learnt config model.command` names"
_EXAMPLE = f'`provider = "command"` and `command = "claude -p --model haiku"` {_IN_SETTINGS}'


def complete(
    request: ModelRequest, *, provider: Provider, ledger: CallLedger, sleep: Callable[[float], object] = time.sleep
) -> Completion:
    """Return the model's answer, after a retry if necessary.

    Raise NoModel if no provider is configured, SpendingCap if the ledger rejects the call, and ModelFailed if there is
    no usable answer.
    """
    ask = _find_provider(provider)
    answer, completion = _try(request, provider, ledger, ask)
    if answer.can_retry:
        sleep(answer.retry_after_s if answer.retry_after_s is not None else random.uniform(0.1, _MAX_PAUSE_S))
        answer, completion = _try(request, provider, ledger, ask)
    if completion is None:
        name = f"{provider.name} {provider.model}".strip()
        raise ModelFailed(
            f"{name}: {answer.reason}",
            result=answer.result,
            hint=answer.hint or _HINT,
            is_temporary=answer.can_retry and not answer.is_unusable,
        )
    return completion


def _find_provider(provider: Provider) -> Callable[[ModelRequest, Provider], ModelAnswer]:
    """Return the function that asks this provider."""
    if provider.name == "none":
        raise NoModel("no model is configured", hint=f"set {_EXAMPLE}")
    if provider.name == "command":
        words = split_command_line(provider.command, setting=f"`command` {_IN_SETTINGS}")
        if not words:
            raise NoModel("the model's provider is `command`, but no command is set", hint=f"set {_EXAMPLE}")
        return partial(command.ask, words)
    if not provider.model:
        hint = 'set `name = "…"` under [model] in learnt.toml'
        raise NoModel(f"the provider `{provider.name}` needs the name of a model", hint=hint)
    return services.ask


def _try(
    request: ModelRequest, provider: Provider, ledger: CallLedger, ask: Callable[[ModelRequest, Provider], ModelAnswer]
) -> tuple[ModelAnswer, Completion | None]:
    """Make one call, and record it before and after. There is no completion if the call failed."""
    forecast = calls.forecast_usd(request, provider)
    call_id = ledger.begin(request, provider, forecast)
    began = time.monotonic()
    # If the call is interrupted, this answer is recorded.
    answer, data = ModelAnswer(result=FAILED, reason="the call was interrupted"), None
    try:
        answer, data = _check(ask(request, provider), request, provider)
    finally:
        figures = _figures(answer, provider, forecast, began)
        ledger.end(call_id, result=answer.result, reason=answer.reason, **figures)
    return answer, Completion(text=answer.text, data=data, **figures) if answer.result == DONE else None


def _check(answer: ModelAnswer, request: ModelRequest, provider: Provider) -> tuple[ModelAnswer, Any]:
    """Return the answer, marked as failed if it is unusable, and the value of the JSON in it."""
    if answer.result != DONE:
        # A service might quote the key that it rejects, and a program its input, so both are removed from the reason.
        reason = answer.reason.replace(provider.api_key, "…") if provider.api_key else answer.reason
        return answer.replace(reason=redact(reason)[0]), None
    answer = answer.replace(text=clean(answer.text).strip())
    if not answer.text:
        return answer.replace(result=FAILED, reason="the answer is empty", can_retry=True, is_unusable=True), None
    if not request.schema:
        return answer, None
    data, flaw = find_value(answer.text, request.schema)
    if flaw:
        answer = answer.replace(result=FAILED, reason=flaw, can_retry=True, is_unusable=True)
    return answer, data


def _figures(answer: ModelAnswer, provider: Provider, forecast: float, began: float) -> dict[str, Any]:
    cost = calls.cost_usd(provider, answer.tokens_in, answer.tokens_out)
    if not answer.may_have_cost:
        cost = 0.0
    elif answer.tokens_in is None and answer.tokens_out is None and forecast:
        cost = forecast
    return {
        "tokens_in": answer.tokens_in,
        "tokens_out": answer.tokens_out,
        "cost_usd": cost,
        "duration_ms": round((time.monotonic() - began) * 1000),
        "model": answer.model or provider.model,
    }
