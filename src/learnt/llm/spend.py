"""What calls cost, before and after, and whether a cap allows the next one.

Prices come from the user's settings. None is built in, because prices change and a wrong one is worse than none. Where
no price is known, a call counts as the assumed price of one call. Where not even that is set it counts as free, and no
cap can hold it.
"""

from __future__ import annotations

from learnt.llm.shapes import ModelRequest, Provider
from learnt.text.clean import clean
from learnt.text.tokens import estimate_tokens

_MILLION = 1_000_000
# Sums of many small amounts must not miss a cap by a rounding error.
_ROUNDING_USD = 1e-9


def forecast_usd(request: ModelRequest, provider: Provider) -> float:
    """Return what the call will cost at most: everything that is sent, and the longest possible answer."""
    tokens_in = estimate_tokens(request.instructions) + estimate_tokens(clean(request.prompt))
    return cost_usd(provider, tokens_in, request.max_tokens) or 0.0


def cost_usd(provider: Provider, tokens_in: int | None, tokens_out: int | None) -> float | None:
    """Return what a call has cost; None when neither its tokens with their prices nor the price of a call is known."""
    priced = provider.input_price is not None or provider.output_price is not None
    counted = tokens_in is not None or tokens_out is not None
    if provider.name == "command" or not (priced and counted):
        return provider.call_price
    paid_in = (tokens_in or 0) * (provider.input_price or 0.0)
    return (paid_in + (tokens_out or 0) * (provider.output_price or 0.0)) / _MILLION


def refusal(
    spent_day: float, spent_month: float, forecast: float, cap_day: float | None, cap_month: float | None
) -> str:
    """Return why a call must not be made, or nothing. None means no cap; a free call is always allowed."""
    if forecast == 0:
        return ""
    for period, spent, cap in (("day", spent_day, cap_day), ("month", spent_month, cap_month)):
        # Compared this way round, NaN refuses.
        if cap is not None and not spent + forecast <= cap + _ROUNDING_USD:
            return (
                f"the cap of ${cap:.2f} a {period} does not allow a call of about ${forecast:.4f}: "
                f"${spent:.4f} are spent"
            )
    return ""
