"""What every provider shares: what is asked, of whom, and what comes back.

An answer is foreign. A provider's module returns an `Answer` whatever happens: what went wrong is told in it, with
what a person needs to know, and never raised.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from learnt.errors import InvalidValue
from learnt.model import Value
from learnt.text.clean import clean

PROVIDERS = ("none", "command", "anthropic", "openai")
# As the store keeps them.
DONE, FAILED, TIMEOUT, REFUSED = "done", "failed", "timeout", "refused"


class Request(Value):
    """What is asked of a model, and for what; with a schema the answer is JSON, without one plain text."""

    purpose: str
    prompt: str
    system: str = ""
    schema: Mapping[str, Any] = {}
    max_tokens: int = 2_000

    @property
    def instructions(self) -> str:
        """What the model is told beside the prompt: the request's own words, and the form of the answer."""
        if not self.schema:
            return clean(self.system)
        form = json.dumps(self.schema, ensure_ascii=False)
        asked = f"Answer with one JSON value and nothing else. It must fit this JSON schema:\n{form}"
        return f"{clean(self.system)}\n\n{asked}".strip()


class Provider(Value):
    """Who is asked, how, and at what price: prices are USD for a million tokens, or for a call that tells none."""

    name: str = "none"
    model: str = ""
    command: str = ""
    folder: str = ""
    """Where the command runs; empty for a folder of its own, in which there is nothing to be talked into."""
    base_url: str = ""
    api_key: str = ""
    """Empty: the way in which the service's own package finds one."""
    time_limit_s: float = 60.0
    input_price: float | None = None
    output_price: float | None = None
    call_price: float | None = None
    environment: Mapping[str, str] = {}

    def check(self) -> None:
        if self.name not in PROVIDERS:
            raise InvalidValue(f"provider `{self.name}` is unknown", hint=f"it is one of: {', '.join(PROVIDERS)}")
        if not 0 < self.time_limit_s < 86_400:
            raise InvalidValue(f"time_limit_s is {self.time_limit_s}", hint="give a number of seconds above 0")
        for field in ("input_price", "output_price", "call_price"):
            price = getattr(self, field)
            if price is not None and not 0 <= price < 1e9:
                raise InvalidValue(f"{field} is {price}", hint=f"{field} is a number of USD from 0 on")

    def __repr__(self) -> str:
        # Neither the key nor what may be in the environment belongs into a log.
        return f"Provider(name={self.name!r}, model={self.model!r})"


class Answer(Value):
    """What became of one call."""

    result: str = DONE
    text: str = ""
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    reason: str = ""
    """Why it is not done, in words for a person."""
    hint: str = ""
    again: bool = False
    """Whether the same call may go better a second time."""
    wait_s: float | None = None
    """How long the service asks to be left alone."""
    reached: bool = True
    """Whether a model may have worked on it, so that it may have a price."""


class Completion(Value):
    """An answer that can be used; `data` is what its JSON says, checked, where a schema was given."""

    text: str
    data: Any = None
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    duration_ms: int = 0


class Ledger(Protocol):
    """Keeps the account of the calls: each is written down before it is made."""

    def begin(self, request: Request, provider: Provider, forecast_usd: float) -> str:
        """Record a call that is about to be made and return its id; raise SpendingCap when it must not be made."""

    def end(
        self,
        call_id: str,
        *,
        result: str,
        reason: str,
        tokens_in: int | None,
        tokens_out: int | None,
        cost_usd: float | None,
        duration_ms: int,
        model: str,
    ) -> None:
        """Record how a call ended; `result` is `done`, `failed`, `timeout` or `refused`."""
