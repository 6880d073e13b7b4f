"""The parts of a model call: request, provider, answer, cost and spending caps.

An answer is untrusted text. A provider's module never raises an error: it returns a `ModelAnswer`, which describes the
error for a person.

Prices come from the user's settings. No prices are built in, because they change and a wrong price is worse than none.
Without token prices, a call costs the configured price per call. Without that price, too, the call is treated as free
and no cap can stop it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from learnt.errors import InvalidValue
from learnt.model import Value
from learnt.text.clean import clean
from learnt.text.times import DAY_S
from learnt.text.words import estimate_tokens

PROVIDERS = ("none", "command", "anthropic", "openai")
# The stored results.
DONE, FAILED, TIMEOUT, REFUSED = "done", "failed", "timeout", "refused"
_MILLION = 1_000_000
# A call that fits exactly under a cap must not be rejected because of a rounding error in the sum.
_ROUNDING_USD = 1e-9


class ModelRequest(Value):
    """A prompt and its purpose. With a schema, the answer is JSON; without one, it is plain text."""

    purpose: str
    prompt: str
    system: str = ""
    schema: Mapping[str, Any] = {}
    max_tokens: int = 2_000

    @property
    def instructions(self) -> str:
        """The system prompt, with the format of the answer."""
        if not self.schema:
            return clean(self.system)
        form = json.dumps(self.schema, ensure_ascii=False)
        order = f"Answer with one JSON value and nothing else. It must fit this JSON schema:\n{form}"
        return f"{clean(self.system)}\n\n{order}".strip()


class Provider(Value):
    """Which model is called, how, and at what price, in USD per million tokens or per call without known tokens."""

    name: str = "none"
    model: str = ""
    command: str = ""
    base_url: str = ""
    api_key: str = ""
    """If it is empty, the service's package looks for a key."""
    time_limit_s: float = 60.0
    input_price: float | None = None
    output_price: float | None = None
    call_price: float | None = None
    environment: Mapping[str, str] = {}

    def check(self) -> None:
        if self.name not in PROVIDERS:
            raise InvalidValue(
                f"provider `{self.name}` is unknown", hint=f"the provider must be one of: {', '.join(PROVIDERS)}"
            )
        if not 0 < self.time_limit_s < DAY_S:
            raise InvalidValue(
                f"time_limit_s must be above 0 and less than a day, not {self.time_limit_s}",
                hint="set a number of seconds",
            )
        for field in ("input_price", "output_price", "call_price"):
            price = getattr(self, field)
            if price is not None and not 0 <= price < 1e9:
                raise InvalidValue(f"{field} must be 0 or more, not {price}", hint=f"set {field} to an amount in USD")

    def __repr__(self) -> str:
        # Neither the key nor the environment belongs in a log.
        return f"Provider(name={self.name!r}, model={self.model!r})"


class ModelAnswer(Value):
    """The result of one call."""

    result: str = DONE
    text: str = ""
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    reason: str = ""
    """Why the call failed, for a person to read."""
    hint: str = ""
    can_retry: bool = False
    """Whether a retry might succeed."""
    retry_after_s: float | None = None
    """How long to wait before a retry, as requested by the service."""
    may_have_cost: bool = True
    """Whether a model might have worked on the request."""
    is_unusable: bool = False
    """Whether the model answered, but not as it was asked to; it would probably do so again later."""


class Completion(Value):
    """A usable answer. With a schema, `data` is the checked value of the JSON in the answer."""

    text: str
    data: Any = None
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    duration_ms: int = 0


class CallLedger(Protocol):
    """Records each call before it is made."""

    def begin(self, request: ModelRequest, provider: Provider, forecast_usd: float) -> str:
        """Record a call that is about to be made and return its id; raise SpendingCap if it must not be made."""

    def end(self, call_id: str, **outcome: Any) -> None:
        """Record how a call ended, with `result`, `reason`, `model`, its tokens, `cost_usd` and `duration_ms`."""


def forecast_usd(request: ModelRequest, provider: Provider) -> float:
    """Return the highest possible cost of a call, for everything that is sent and the longest answer."""
    tokens_in = estimate_tokens(request.instructions) + estimate_tokens(clean(request.prompt))
    return cost_usd(provider, tokens_in, request.max_tokens) or 0.0


def cost_usd(provider: Provider, tokens_in: int | None, tokens_out: int | None) -> float | None:
    """Return the cost of a call; None if there is no price per call and its tokens or their prices are unknown."""
    priced = provider.input_price is not None or provider.output_price is not None
    counted = tokens_in is not None or tokens_out is not None
    if provider.name == "command" or not (priced and counted):
        return provider.call_price
    paid_in = (tokens_in or 0) * (provider.input_price or 0.0)
    return (paid_in + (tokens_out or 0) * (provider.output_price or 0.0)) / _MILLION


def check_caps(
    spent_day: float, spent_month: float, forecast: float, cap_day: float | None, cap_month: float | None
) -> str:
    """Return why a call must not be made; empty if it can be. None means no cap, and a free call is always allowed."""
    if forecast == 0:
        return ""
    for period, spent, cap in (("day", spent_day, cap_day), ("month", spent_month, cap_month)):
        # Written so that a comparison with NaN rejects the call.
        if cap is not None and not spent + forecast <= cap + _ROUNDING_USD:
            return (
                f"the cap of ${cap:.2f} a {period} does not allow a call of about ${forecast:.4f}: "
                f"${spent:.4f} are spent"
            )
    return ""
