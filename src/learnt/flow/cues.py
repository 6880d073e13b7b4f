"""Cues for learnings that have none: the user's model is asked for them, in few calls and under the spending cap.

Nothing is asked unless a person says so, or `cues = "auto"` lets the worker do it. What a run stores can be undone as
one, and a person can remove each cue. Cues that came with a learning stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from learnt.errors import LearntError, NoModel, WrongRequest
from learnt.flow.context import Context, check_rows
from learnt.flow.learnings import alter, refuse_agent, revert
from learnt.flow.model_calls import LONG_LIMIT_S, ask_model, asks_a_model, get_provider
from learnt.llm.calls import ModelRequest, forecast_usd
from learnt.mine.ask import TEMPLATES
from learnt.mine.ask_cues import PER_CALL, TEMPLATE, make_request, read_answer
from learnt.mine.situations import find_best_cue
from learnt.model import PROGRAM, Learning, Value, new_id
from learnt.store import cues, learnings, mined
from learnt.store.learnings import Change
from learnt.system.templates import read_template
from learnt.text.times import HOUR_MS

ORIGINS = {"cues": "given", "model_cues": "model", "observed_cues": "observed"}
"""Where the cues of each field come from, as people read it."""
_WHAT = "cues"
_ASKED = "asked for cues"
_MAX_SCANNED = 1_000


class CuePlan(Value):
    """Learnings without cues, and what asking for them would cost at most."""

    learnings: tuple[Learning, ...]
    total: int
    """How many learnings have no cues, also beyond the limit."""
    calls: int = 0
    provider: str = ""
    forecast_usd: float | None = None
    """None if no price is known."""


class CueReport(Value):
    """What a run has stored."""

    batch: str = ""
    """The id by which it can be undone; empty if nothing was stored."""
    learnings: tuple[Learning, ...] = ()
    refused: Mapping[str, str] = {}
    """Why learnings got none, by id."""
    cost_usd: float = 0.0
    remarks: tuple[str, ...] = ()


class Cues:
    """The situations in which learnings matter."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    def plan(self, *, limit: int = 100) -> CuePlan:
        """Return the learnings without cues, and what asking the model about them would cost."""
        check_rows(limit=limit)
        database = self._store.database
        lacking = cues.list_without(database, limit=limit)
        total = cues.count_without(database)
        requests = [self._request(batch) for batch in _batches(lacking)] if asks_a_model(self._context) else []
        provider = get_provider(self._context)
        costs = [forecast_usd(request, provider) for request in requests]
        return CuePlan(
            learnings=tuple(learning.replace(scope=self._store.place.scope) for learning in lacking),
            total=total,
            calls=len(requests),
            provider=f"{provider.name} {provider.model}".strip() if requests else "",
            forecast_usd=sum(costs) if requests and all(costs) else None,
        )

    def ask(self, plan: CuePlan, *, limit_s: float = LONG_LIMIT_S) -> CueReport:
        """Ask the model for the cues of a plan's learnings and store what is usable; raise if the first call fails."""
        refuse_agent(self._context, "cues")
        if not asks_a_model(self._context):
            raise NoModel("no model is configured", hint="`learnt cues ID --add TEXT` adds a cue by hand")
        report = CueReport(batch=new_id("batch", self._context.clock()))
        for batch in _batches(plan.learnings):
            try:
                report = self._ask_about(batch, report, limit_s=limit_s)
            except LearntError as error:
                if not report.learnings and not report.refused:
                    raise
                return report.replace(remarks=(f"{error.message}; {error.hint}",))  # what was stored stays
        return report if report.learnings else report.replace(batch="")

    def ask_by_itself(self, *, limit_s: float) -> CueReport:
        """With `cues = "auto"`: ask about some learnings, at most once an hour, and about none of them twice."""
        database, now = self._store.database, self._context.clock()
        is_wanted = self._context.settings.cues == "auto" and asks_a_model(self._context)
        if not is_wanted or self._store.place.read_only or mined.read_at(database, _ASKED) > now - HOUR_MS:
            return CueReport()
        lacking = cues.list_without(database, limit=_MAX_SCANNED)
        asked = mined.sizes_read(database, [_name_question(learning) for learning in lacking])
        fresh = [learning for learning in lacking if asked.get(_name_question(learning), 0) < 1][:PER_CALL]
        if not fresh:
            return CueReport()
        with self._store.transaction():
            mined.note_read(database, _ASKED, size=1, task="", at=now)
        return self._ask_about(fresh, CueReport(batch=new_id("batch", now)), limit_s=limit_s)

    def undo(self, batch: str = "") -> tuple[str, list[Learning]]:
        """Remove the cues that a run stored, by default the last one; return its id and the changed learnings."""
        refuse_agent(self._context, "cues")
        database = self._store.database
        batch = batch or cues.latest_reason(database, _WHAT)
        events = cues.list_changes(database, _WHAT, batch) if batch else []
        current = learnings.get_all(database, [event.subject for event in events]) if events else {}
        undone = [
            alter(self._context, event.subject, "undo", partial(revert, event), undoes=event.id, reason=batch)
            for event in events
            if event.subject in current and list(current[event.subject].model_cues) == event.new["model_cues"]
        ]
        if not undone:
            raise WrongRequest(
                "there are no cues of a model to remove", hint="`learnt cues ID` shows a learning's cues"
            )
        return batch, undone

    def find_matching(self, query: str, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Return the cue of each learning that shares most words with a text, and where it comes from."""
        matching: dict[str, tuple[str, str]] = {}
        for store in self._context.sound_stores():
            for learning in learnings.get_all(store.database, ids).values() if ids else ():
                best = find_best_cue(query, learning)
                if best is not None:
                    matching.setdefault(learning.id, (best[1], ORIGINS[best[0]]))
        return matching

    def _ask_about(self, batch: Sequence[Learning], report: CueReport, *, limit_s: float) -> CueReport:
        """Make one call and store its usable answers in one transaction."""
        request = self._request(batch)
        answer = ask_model(self._context, request, task="", regeneration="", limit_s=limit_s)
        read = read_answer(answer.data, batch)
        now, stored = self._context.clock(), []
        change = Change(what=_WHAT, who=PROGRAM, at=now, reason=report.batch)
        with self._store.transaction():
            for learning in batch:
                mined.note_read(self._store.database, _name_question(learning), size=1, task="", at=now)
                after = self._store_cues(learning.id, read.accepted.get(learning.id, ()), change)
                stored += [after] if after else []
        return report.replace(
            learnings=(*report.learnings, *stored),
            refused={**report.refused, **read.refused},
            cost_usd=report.cost_usd + (answer.cost_usd or 0.0),
        )

    def _store_cues(self, id: str, accepted: Sequence[str], change: Change) -> Learning | None:
        """Within a transaction: store a model's cues, unless the learning is gone or got cues meanwhile."""

        def decide(learning: Learning) -> dict[str, Any]:
            return {} if learning.cues or learning.model_cues else {"model_cues": tuple(accepted)}

        if not accepted or learnings.find(self._store.database, id) is None:
            return None
        before, after = learnings.change(self._store.database, id, decide, change)
        return after.replace(scope=self._store.place.scope) if after.version > before.version else None

    def _request(self, batch: Sequence[Learning]) -> ModelRequest:
        template = read_template(TEMPLATE, (TEMPLATES,), own=self._context.prompts_folder)
        system, prompt, schema, max_tokens = make_request(batch, template=template)
        return ModelRequest(purpose=_WHAT, system=system, prompt=prompt, schema=schema, max_tokens=max_tokens)


def _batches(lacking: Sequence[Learning]) -> list[Sequence[Learning]]:
    return [lacking[start : start + PER_CALL] for start in range(0, len(lacking), PER_CALL)]


def _name_question(learning: Learning) -> str:
    """Return the name under which it is recorded that a model was asked about a learning."""
    return f"{cues.ASKED_ABOUT}{learning.id}"
