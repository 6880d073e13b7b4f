"""What every provider shares: the request, the provider's settings, and the answer.

An answer is foreign. A provider's module returns a `ModelAnswer` whatever happens: an error is described in it, with
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


class ModelRequest(Value):
    """What a model is asked, and for what purpose; with a schema the answer is JSON, without one plain text."""

    purpose: str
    prompt: str
    system: str = ""
    schema: Mapping[str, Any] = {}
    max_tokens: int = 2_000

    @property
    def instructions(self) -> str:
        """What the model is told besides the prompt: the request's own words, and the form of the answer."""
        if not self.schema:
            return clean(self.system)
        form = json.dumps(self.schema, ensure_ascii=False)
        order = f"Answer with one JSON value and nothing else. It must fit this JSON schema:\n{form}"
        return f"{clean(self.system)}\n\n{order}".strip()


class Provider(Value):
    """Which model is asked, how, and at what price: USD per million tokens, or per call that reports no tokens."""

    name: str = "none"
    model: str = ""
    command: str = ""
    folder: str = ""
    """Where the command runs; empty for a new folder, which holds nothing that could mislead the model."""
    base_url: str = ""
    api_key: str = ""
    """Empty: the service's own package looks for one."""
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
    """Why it is not done, in words for a person."""
    hint: str = ""
    again: bool = False
    """Whether the same call may succeed the second time."""
    wait_s: float | None = None
    """How long the service asks us to wait."""
    reached: bool = True
    """Whether a model may have worked on it, so that it may have cost something."""


class Completion(Value):
    """An answer that can be used; with a schema, `data` is the checked value of its JSON."""

    text: str
    data: Any = None
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    duration_ms: int = 0


class CallLedger(Protocol):
    """Keeps the account of the calls: each is recorded before it is made."""

    def begin(self, request: ModelRequest, provider: Provider, forecast_usd: float) -> str:
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
