"""Asking the model that the user named: under a spending cap, every call written down before it is made."""

from __future__ import annotations

import os

from learnt.model import new_id
from learnt.store import calls
from learnt.store.calls import ModelCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from learnt.flow.context import Context
    from learnt.llm import Completion, ModelRequest, Provider
    from learnt.store import Store

_BEGUN = "it was begun and never ended"


class Asking:
    """What a model is asked on behalf of a project."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.store = context.store
        self.settings = context.settings
        self.root = context.root
        self._clock = context.clock
        self._line = context.redact_line
        self._record = context.redact_record

    @property
    def asks_a_model(self) -> bool:
        """Whether the user named a model."""
        return self.settings.model_provider != "none"

    def _ask(self, request: ModelRequest, *, task: str, regeneration: str, limit_s: float) -> Completion:
        """Return the model's answer, or raise: nobody named one, the cap forbids it, or no answer can be used."""
        from learnt.llm import complete

        ledger = _Ledger(self.store, self._clock, self.caps_usd(), task=task, regeneration=regeneration)
        return complete(request, provider=self._provider(limit_s), ledger=ledger)

    def caps_usd(self) -> tuple[float, float]:
        """Return what calls may cost in 24 hours and in 30 days."""
        return self.settings.model_daily_cap_usd, self.settings.model_monthly_cap_usd

    def _provider(self, limit_s: float) -> Provider:
        from learnt.llm import Provider

        settings = self.settings
        return Provider(
            name=settings.model_provider,
            model=settings.model_name,
            command=settings.model_command,
            base_url=settings.model_base_url,
            time_limit_s=max(0.1, min(settings.model_time_limit_s, limit_s)),
            input_price=settings.model_input_price or None,
            output_price=settings.model_output_price or None,
            call_price=settings.model_call_price,
            environment=dict(os.environ),
        )


class _Ledger:
    """Writes calls into the project's store."""

    def __init__(
        self, store: Store, clock: Callable[[], int], caps: tuple[float, float], *, task: str, regeneration: str
    ) -> None:
        self._store = store
        self._clock = clock
        self._caps = caps
        self._task = task
        self._regeneration = regeneration

    def begin(self, request: ModelRequest, provider: Provider, forecast_usd: float) -> str:
        """Write a call down as if it had failed at its full price, so that whoever dies in it is counted."""
        from learnt.errors import SpendingCap
        from learnt.llm.spend import refusal
        from learnt.text.times import DAY_MS, MONTH_MS

        now = self._clock()
        call = ModelCall(
            id=new_id("call", now),
            purpose=request.purpose,
            provider=provider.name,
            model=provider.model,
            result="failed",
            at=now,
            task=self._task,
            regeneration=self._regeneration,
            cost_usd=forecast_usd,
            reason=_BEGUN,
        )
        with self._store.transaction():
            self._store.database.lock_spending()  # of two that would pass the cap, the second must see the first
            day = calls.spent_since(self._store.database, now - DAY_MS)
            month = calls.spent_since(self._store.database, now - MONTH_MS)
            why = refusal(day, month, forecast_usd, *self._caps)
            if why:
                call = call.replace(result="refused", cost_usd=0.0, reason=why)
            calls.add(self._store.database, call)
        if why:
            raise SpendingCap(
                why, hint="wait, or raise the caps under [model] in learnt.toml; `learnt usage` tells more"
            )
        return call.id

    def end(self, call_id: str, **ended: Any) -> None:
        """Say what came of a call."""
        from learnt.text.redact import redact_line

        with self._store.transaction():
            call = calls.get(self._store.database, call_id)
            ended["reason"] = redact_line(ended["reason"], 500)[0]
            calls.change(self._store.database, call.replace(**ended))
