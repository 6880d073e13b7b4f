"""Calls to the configured model. They are subject to a spending cap, and each call is recorded before it is made."""

from __future__ import annotations

import os
from typing import Any

from learnt.errors import SpendingCap
from learnt.flow.context import Context
from learnt.llm import Completion, ModelRequest, Provider, complete
from learnt.llm.calls import check_caps
from learnt.model import new_id
from learnt.project import user_data_folder, user_settings_file
from learnt.store import calls
from learnt.store.calls import ModelCall
from learnt.store.spending import user_spending
from learnt.text.redact import redact_line
from learnt.text.times import DAY_MS, DAY_S, MONTH_MS

LONG_LIMIT_S = float(DAY_S)


def asks_a_model(context: Context) -> bool:
    """Return whether a model is configured."""
    return context.settings.model_provider != "none"


def ask_model(context: Context, request: ModelRequest, *, task: str, regeneration: str, limit_s: float) -> Completion:
    """Return the model's answer; raise if no model is configured, the cap forbids the call, or no answer is usable."""
    ledger = CallRecorder(context, task=task, regeneration=regeneration)
    return complete(request, provider=get_provider(context, limit_s=limit_s), ledger=ledger)


def get_provider(context: Context, *, limit_s: float = LONG_LIMIT_S) -> Provider:
    """Return the configured model, with the time limit for a call to it."""
    settings = context.settings
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


class CallRecorder:
    """Records calls in the project's store, and their costs for all projects of the user."""

    def __init__(self, context: Context, *, task: str, regeneration: str) -> None:
        self._context = context
        self._store = context.store
        self._task = task
        self._regeneration = regeneration
        self._user_folder = user_data_folder(dict(os.environ))

    def begin(self, request: ModelRequest, provider: Provider, forecast_usd: float) -> str:
        """Record a call as failed at its full price, so that it is included in the costs even if this process dies."""
        now, settings = self._context.clock(), self._context.settings
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
            reason="it was begun and never ended",
        )
        with self._store.transaction():
            self._store.database.lock_spending()  # if two calls together exceed the cap, the second must see the first
            with user_spending(self._user_folder) as spending:
                day, month = (
                    max(calls.spent_since(self._store.database, now - period), spending.since(now - period))
                    for period in (DAY_MS, MONTH_MS)
                )
                caps = settings.model_daily_cap_usd, settings.model_monthly_cap_usd
                reason = check_caps(day, month, forecast_usd, *caps)
                if reason:
                    call = call.replace(result="refused", cost_usd=0.0, reason=reason)
                else:
                    spending.put(call.id, at=now, cost_usd=forecast_usd)
            calls.add(self._store.database, call)
        if reason:
            own_file = user_settings_file(dict(os.environ))
            raise SpendingCap(
                reason, hint=f"wait, or raise the caps under [model] in {own_file}; `learnt usage` shows more"
            )
        return call.id

    def end(self, call_id: str, **outcome: Any) -> None:
        """Record the outcome of a call."""
        with self._store.transaction():
            call = calls.get(self._store.database, call_id)
            outcome["reason"] = redact_line(outcome["reason"], 500)[0]
            calls.change(self._store.database, call.replace(**outcome))
        with user_spending(self._user_folder) as spending:
            spending.put(call_id, at=self._context.clock(), cost_usd=outcome["cost_usd"] or 0.0)
