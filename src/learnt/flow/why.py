"""After a brief: what it contained and why, and why another learning was not in it.

A receipt says what was considered, with the figures that decided (`recall/relevance.py`). For what was not considered,
and for receipts from before figures were stored, the search is made again; the answer then says so. What a learning was
at the time of the brief comes from its history.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from learnt.brief.render import LOADED_FROM, NO_ROOM, RENDERER, read_receipt, render
from learnt.brief.select import (
    CONFLICTS,
    ENOUGH_OTHERS,
    HAS_ORIGINAL,
    MIN_TRIAL_RELEVANCE,
    NO_SUPPORT,
    NO_TRIAL_SLOT,
    NOT_RELEVANT,
    NOT_RELEVANT_FOR_TRIAL,
    REPEATS,
    TRIED_ENOUGH,
    hidden_categories,
)
from learnt.clients.registry import loaded_files
from learnt.errors import NotFound
from learnt.flow.briefs import SHOWN_BEFORE, SearchRequest, search
from learnt.flow.context import Context
from learnt.flow.past_attempts import tell_from_receipt
from learnt.flow.task_parts import INHERITED, list_parts, split_part, weaken
from learnt.mine.situations import find_situation
from learnt.model import Brief, Hit, Learning, Value, digest
from learnt.recall.find import Source, measure, weigh_cue
from learnt.recall.reasons import Reason, estimate_with_cue, estimate_without_rival, list_reasons
from learnt.store import deliveries, happened, learnings, tasks
from learnt.store.index import Filter
from learnt.text.clean import clean, fold
from learnt.text.records import read_fields
from learnt.text.triggers import Situation
from learnt.weigh.confidence import is_trusted

GIVEN, LISTED, LEFT_OUT, NOT_CONSIDERED = "given", "listed", "left out", "not considered"
FOUND, NOT_FOUND = "found", "not found"
NOTHING_IN_COMMON = "it has no word, no meaning and no trigger in common with the text"
OTHERS_FIT = "not relevant enough to be considered: others fit better"
CHANGED_SINCE = "today it would be considered: it, or what else is known, has changed since"
_LIKE = "a person who vouches for it"
_PIN = "a pin, which puts it before all others"
_SAY_ELSE = "words that tell it apart from the other one"
# What helps against being left out for a reason other than its relevance, and the command for it.
_REMEDIES = {
    NOT_RELEVANT_FOR_TRIAL: (_LIKE, "learnt like {id}"),
    NO_TRIAL_SLOT: (_LIKE, "learnt like {id}"),
    TRIED_ENOUGH: (_LIKE, "learnt like {id}"),
    NO_SUPPORT: (_LIKE, "learnt like {id}"),
    ENOUGH_OTHERS: (_PIN, "learnt pin {id}"),
    NO_ROOM: ("more room: the setting `brief_tokens`", ""),
    REPEATS: (_SAY_ELSE, "learnt similar {id}"),
    HAS_ORIGINAL: (_SAY_ELSE, "learnt similar {id}"),
    CONFLICTS: (_SAY_ELSE, "learnt similar {id}"),
}


class Remedy(Value):
    """What would have brought a learning into a brief."""

    what: str
    command: str = ""
    relevance: float | None = None
    """The probability that it would then have, at least; None if that does not matter."""


class WhyNot(Value):
    """Why a learning is in a brief or among the results of a search, or is not."""

    learning: Learning
    verdict: str
    reason: str = ""
    relevance: float | None = None
    bar: float = 0.0
    trigger: str = ""
    part: str = ""
    """The part of the task that it fits best; empty for the text that was asked for."""
    figures: Mapping[str, float] = {}
    reasons: tuple[Reason, ...] = ()
    rival: str = ""
    """The other learning that fits best."""
    rival_relevance: float = 0.0
    is_measured_now: bool = False
    """Whether the figures were determined now, because the receipt does not contain them."""
    remedies: tuple[Remedy, ...] = ()

    @property
    def is_of_search(self) -> bool:
        """Whether the answer is about a search, not about a brief."""
        return self.verdict in (FOUND, NOT_FOUND)

    def as_record(self) -> dict[str, Any]:
        """Return the answer for JSON."""
        record = {name: value for name, value in self.as_dict().items() if name != "learning"}
        lists = {"reasons": [reason.as_dict() for reason in self.reasons]}
        lists["remedies"] = [remedy.as_dict() for remedy in self.remedies]
        return {"id": self.learning.id, "title": self.learning.title, **record, "figures": dict(self.figures), **lists}


class Why:
    """Explains briefs and searches."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def explain(self, id: str) -> Brief:
        """Return a brief with its receipt; its text is rendered again if everything in it still exists."""
        context = self._context
        brief = happened.get_brief(context.store.database, id)
        reports = tasks.failures(context.store.database, brief.task)

        def learning_at(id: str, version: int, scope: str) -> Learning:
            return _learning_at(context, id, version, scope)

        try:
            tell = tell_from_receipt(reports)
            content = read_receipt(id, dict(brief.receipt), learning_at=learning_at, tell_attempts=tell)
        except NotFound:
            return brief  # something in it was deleted: the receipt remains, but the text cannot be rendered
        return brief.replace(text=render(content))

    @staticmethod
    def is_as_sent(brief: Brief) -> bool:
        """Return whether a brief's text is byte for byte the text that the agent was given."""
        return digest(brief.text) == brief.text_hash

    @staticmethod
    def is_of_another_version(brief: Brief) -> bool:
        """Return whether a brief was rendered by another version, whose wording may differ."""
        return bool(brief.receipt.get("render", 1) != RENDERER)

    def not_in_brief(self, brief: Brief, id: str) -> WhyNot:
        """Return why a learning is in a brief, or is not."""
        learning, receipt = self._context.get(id), brief.receipt
        bar = receipt["settings"].get("min_relevance", self._context.settings.brief_relevance)
        answer = WhyNot(learning=learning, verdict=NOT_CONSIDERED, bar=bar)
        entry = next((entry for entry in receipt["considered"] if entry["id"] == id), None)
        if entry is not None:
            return self._answer_from(entry, brief, answer)
        if id in receipt.get("beside", ()):
            return answer.replace(verdict=GIVEN, reason="it stands in the learnings file of the prompt")
        if any(listed["id"] == id for listed in receipt.get("index", ())):
            reason = "its title stands in the index; its text comes with a prompt that it fits"
            return answer.replace(verdict=LISTED, reason=reason)
        excluded = self._why_excluded(brief, learning)
        if excluded or not receipt["query"]:
            nothing_asked = "this brief was not about any text, and gives only what stands at the start"
            return answer.replace(reason=excluded or nothing_asked, remedies=_list_remedies_for_status(learning))
        answer = self._measure(brief, answer)
        return answer.replace(reason=_compare_with_bar(answer))

    def not_in_search(self, request: SearchRequest, id: str) -> WhyNot:
        """Return why a learning is among the results of a search, or is not; and how a brief would weigh it."""
        context, learning = self._context, self._context.get(id)
        found = [hit.learning.id for hit in search(context, request.replace(asked_by=""))]
        place = found.index(id) + 1 if id in found else 0
        situation = Situation(
            text=clean(request.query),
            paths=tuple(map(clean, request.paths)),
            command=clean(request.command),
            tools=tuple(map(fold, request.tools)),
            task_type=fold(request.task_type),
        )
        answer = WhyNot(learning=learning, verdict=FOUND if place else NOT_FOUND, bar=context.settings.brief_relevance)
        answer = self._add_best(answer, [(situation, "")], request.query)
        missed = "others match better" if len(found) >= request.limit else NOTHING_IN_COMMON
        reason = f"in place {place}" if place else _why_not_searched(request, learning) or missed
        return answer.replace(reason=reason, is_measured_now=False)

    def _answer_from(self, entry: Mapping[str, Any], brief: Brief, answer: WhyNot) -> WhyNot:
        """Return the answer for a learning that was considered."""
        left_out = entry["left_out"]
        is_on_trial = not is_trusted(answer.learning, brief.receipt["settings"].get("min_confidence", 0.0))
        bar = max(answer.bar, MIN_TRIAL_RELEVANCE) if is_on_trial else answer.bar
        others = [other for other in brief.receipt["considered"] if other["id"] != entry["id"]]
        rival = max(others, key=lambda other: float(other["relevance"]), default=None)
        answer = answer.replace(
            verdict=LEFT_OUT if left_out else GIVEN,
            reason=left_out or (f"trigger {entry['trigger']}" if entry["trigger"] else ""),
            relevance=entry["relevance"] if brief.receipt["query"] else None,
            bar=bar,
            trigger=entry["trigger"],
            part=entry.get("part", ""),
            figures=entry.get("features", {}),
            rival=rival["id"] if rival else "",
            rival_relevance=rival["relevance"] if rival else 0.0,
        )
        if not answer.figures and brief.receipt["query"] and not answer.trigger:
            measured = self._measure(brief, answer)
            answer = answer.replace(figures=measured.figures, is_measured_now=bool(measured.figures))
        return self._with_reasons(answer, brief.receipt["query"])

    def _why_excluded(self, brief: Brief, learning: Learning) -> str:
        """Return the reason for which a brief does not even consider a learning; empty if there is none."""
        then, receipt = self._learning_before(learning, brief.created_at), brief.receipt
        task = tasks.find(self._context.store.database, brief.task)
        if then is None:
            return "it did not exist yet"
        if then.status != "active":
            return f"it was {then.status}"
        if task and task.skip_learnings:
            return "the task takes no learnings"
        if receipt.get("exclude_goal") and then.goal == receipt["exclude_goal"]:
            return f"learnings of the goal {then.goal} were excluded"
        if Filter(exclude_loaded=loaded_files(brief.client)).leaves_out_file(then.loaded_from):
            return f"{LOADED_FROM}{then.loaded_from}"
        if task and task.type == "session" and then.task == task.id:
            return "learnt in this very conversation"
        return self._why_hidden_from(brief, then)

    def _why_hidden_from(self, brief: Brief, learning: Learning) -> str:
        """Return why the agent of a brief does not get a learning: its role, or it has got it already."""
        if brief.agent and hidden_categories(brief.agent, self._context.settings.agents, [learning.category]):
            return f"not in the categories of {brief.agent}"
        if brief.receipt.get("only_new"):
            database = self._context.store.database
            earlier = deliveries.find_brief_that_gave(database, brief.task, learning.id, before=brief.created_at)
            return f"{SHOWN_BEFORE}, by {earlier}" if earlier else ""
        return ""

    def _learning_before(self, learning: Learning, at: int) -> Learning | None:
        """Return a learning as it was at a time; None if it did not exist."""
        store, _ = self._context.locate(learning.id)
        versions = [event.version for event in learnings.history(store.database, learning.id) if event.at <= at]
        if not versions:
            return None if learning.created_at > at else learning
        return _learning_at(self._context, learning.id, max(versions), learning.scope)

    def _measure(self, brief: Brief, answer: WhyNot) -> WhyNot:
        """Return the answer with the present figures for the text and the parts of a brief's task."""
        receipt = brief.receipt
        fields = {name: receipt.get(name, "") for name in ("command", "task_type")}
        fields |= {name: tuple(receipt.get(name, ())) for name in ("paths", "tools")}
        situations = [(Situation(text=receipt["query"], **fields), "")]
        task = tasks.find(self._context.store.database, brief.task) if receipt.get("parts") else None
        for part in list_parts(self._context, task, receipt["query"]) if task else ():
            situations += [(Situation(text=clean(piece)), part.name) for piece in split_part(part)]
        return self._add_best(answer, situations, receipt["query"]).replace(is_measured_now=True)

    def _add_best(self, answer: WhyNot, situations: list[tuple[Situation, str]], query: str) -> WhyNot:
        """Return the answer with the figures for the situation that the learning fits best."""
        sources = self._sources()
        measured: list[tuple[Hit, Hit | None]] = []
        for situation, part in situations:
            hit, rival = measure(sources, situation, Filter(), answer.learning.id)
            if hit is not None:
                hit = hit.replace(part=part)
                measured.append((weaken(hit) if part in INHERITED else hit, rival))
        if not measured:
            return answer
        hit, rival = max(measured, key=lambda pair: (bool(pair[0].trigger), pair[0].relevance))
        answer = answer.replace(
            relevance=hit.relevance,
            trigger=hit.trigger,
            part=hit.part,
            figures=hit.features,
            rival=rival.learning.id if rival else "",
            rival_relevance=rival.relevance if rival else 0.0,
        )
        return self._with_reasons(answer, query)

    def _with_reasons(self, answer: WhyNot, query: str) -> WhyNot:
        """Return the answer with what its figures add, and what would have changed it."""
        reasons = tuple(list_reasons(answer.figures)) if answer.figures else ()
        return answer.replace(reasons=reasons, remedies=tuple(self._list_remedies(answer, query)))

    def _list_remedies(self, answer: WhyNot, query: str) -> list[Remedy]:
        remedies = []
        if answer.reason in _REMEDIES:
            what, command = _REMEDIES[answer.reason]
            remedies.append(Remedy(what=what, command=command.format(id=answer.learning.id)))
        is_too_low = answer.relevance is not None and answer.relevance < answer.bar and not answer.trigger
        if answer.verdict != GIVEN and is_too_low and answer.reason in ("", NOT_RELEVANT, NOT_RELEVANT_FOR_TRIAL):
            remedies += self._list_remedies_for_relevance(answer, query)
        return remedies

    def _list_remedies_for_relevance(self, answer: WhyNot, query: str) -> list[Remedy]:
        id, figures = answer.learning.id, answer.figures
        cue = find_situation(query, answer.learning)
        with_cue = None
        if cue and figures and not answer.part:
            with_cue = estimate_with_cue(figures, weigh_cue(self._sources(), cue))
        remedies = [
            Remedy(
                what="a cue in the words of the task",
                command=f"learnt cues {id} --add {shlex.quote(cue or '…')}",
                relevance=with_cue,
            ),
            Remedy(
                what="a trigger: a file or a command that the task names", command=f"learnt edit {id} --on-file GLOB"
            ),
        ]
        without_rival = estimate_without_rival(figures) if figures.get("margin", 0.0) < 0 else 0.0
        if answer.rival and without_rival >= answer.bar:
            remedies.append(Remedy(what=f"if {answer.rival} did not fit better", relevance=without_rival))
        return remedies

    def _sources(self) -> list[Source]:
        return [Source(database=one.database, scope=one.place.scope) for one in self._context.sound_stores()]


def _list_remedies_for_status(learning: Learning) -> tuple[Remedy, ...]:
    commands = {"proposed": "learnt review", "hidden": "learnt restore {id}", "archived": "learnt restore {id}"}
    command = commands.get(learning.status, "")
    return (Remedy(what="to make it active", command=command.format(id=learning.id)),) if command else ()


def _compare_with_bar(answer: WhyNot) -> str:
    if answer.relevance is None or not any(answer.figures.get(name) for name in ("words", "meaning", "trigger")):
        return NOTHING_IN_COMMON
    return OTHERS_FIT if answer.relevance < answer.bar and not answer.trigger else CHANGED_SINCE


def _why_not_searched(request: SearchRequest, learning: Learning) -> str:
    """Return which option of a search leaves out a learning; empty if none does."""
    if request.status is not None and learning.status != request.status:
        return f"it is {learning.status}: `--status {learning.status}` finds it"
    if learning.confidence < request.min_confidence:
        return f"its confidence is {learning.confidence:.2f}: `--min-confidence 0` finds it"
    for name in ("domain", "category"):
        wanted = getattr(request, name)
        if wanted is not None and getattr(learning, name) != fold(wanted):
            return f"its {name} is {getattr(learning, name) or 'empty'}, not {wanted}"
    if request.exclude_goal is not None and learning.goal == fold(request.exclude_goal):
        return f"learnings of the goal {learning.goal} are excluded"
    return ""


def _learning_at(context: Context, id: str, version: int, scope: str) -> Learning:
    """Return an earlier version of a learning from the store with this scope."""
    fields: dict[str, Any] = {}
    stores = [store for store in context.sound_stores() if store.place.scope == scope]
    history = [event for store in stores for event in learnings.history(store.database, id)]
    if not history:
        raise NotFound(f"no history of `{id}`", hint="it was purged, or its store is no longer configured")
    for event in history:
        if event.version <= version:
            fields.update(event.new)
    return Learning(id=id, version=version, **read_fields(fields, allowed=Learning.fields))
