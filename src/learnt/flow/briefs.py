"""Before a task: recall what matters, brief the agent, keep the receipt, and render it again on demand."""

from __future__ import annotations

from time import perf_counter_ns

from learnt.errors import LearntError, NotFound, WrongRequest
from learnt.flow.context import check_rows
from learnt.flow.tasks import Tasks, since_fresh
from learnt.model import (
    TEXT_LIMIT,
    TITLE_LIMIT,
    Brief,
    Injection,
    Learning,
    Task,
    check_text,
    digest,
    new_id,
)
from learnt.store import PATIENCE_MS, events, learnings, tasks
from learnt.store.learnings import Filter
from learnt.text.clean import clean, fold
from learnt.text.records import read_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from typing import Any

    from learnt.brief.render import Content, Loop, Past
    from learnt.brief.select import Choice, Rules
    from learnt.flow.standing import CacheState
    from learnt.model import Failure, Hit
    from learnt.recall.find import Wanted
    from learnt.store import Store
    from learnt.text.triggers import Situation

STRATEGIES = ("hybrid", "words")  # by words alone, as long as there is no other way
_TRUSTED_CONSIDERED = 20
_DOUBTED_CONSIDERED = 10
_OWN_CONSIDERED = 10
_TRUSTED_SUFFICING = 10
_KNOWN_TOLD = 5
_RECENT_MS = 2 * 60 * 60 * 1000


class Briefing(Tasks):
    """What is done before a task."""

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        min_confidence: float = 0.5,
        strategy: str = "hybrid",
        status: str | None = "active",
        domain: str | None = None,
        category: str | None = None,
        exclude_goal: str | None = None,
        paths: Sequence[str] = (),
        command: str = "",
        tools: Sequence[str] = (),
        task_type: str = "",
        asked_by: str = "",
    ) -> list[Hit]:
        """Return the learnings that fit a text, best first: those whose triggers hold, then those that share words.

        `paths`, `command`, `tools` and `task_type` tell what is about to happen, as far as it is known. `asked_by`:
        count who searched, a `person` or an agent's `tool`, where the database has time for it.
        """
        from learnt.recall.find import Wanted
        from learnt.recall.rank import highlights

        if strategy not in STRATEGIES:
            raise WrongRequest(f"there is no strategy `{strategy}`", hint=f"choose one of: {', '.join(STRATEGIES)}")
        check_rows(limit=limit)
        situation = _situation(query, paths=paths, command=command, tools=tools, task_type=task_type)
        which = Filter(
            status=status,
            domain=None if domain is None else fold(domain),
            category=None if category is None else fold(category),
            exclude_goal=None if exclude_goal is None else fold(exclude_goal),
            min_confidence=min_confidence,
        )
        (hits,) = self._found_everywhere(situation, which, [Wanted(which=which, limit=limit)])
        if asked_by:
            from learnt.flow.activity import count_search

            count_search(self.store, asked_by, now=self._clock())
        return [hit.replace(highlights=highlights(hit)) for hit in hits]

    def brief(
        self,
        task_text: str,
        *,
        agent: str | None = None,
        task: str | None = None,
        goal: str | None = None,
        exclude_goal: str | None = None,
        budget_tokens: int | None = None,
        paths: Sequence[str] = (),
        command: str = "",
        tools: Sequence[str] = (),
        task_type: str = "",
        only_new: bool = False,
        beside: Sequence[str] = (),
        model: str = "",
        model_reason: str = "",
        keep: bool = True,
        max_chars: int | None = None,
        asked_by: str = "",
        occasion: str = "task",
        client: str = "",
        began_ns: int | None = None,
    ) -> Brief:
        """Return what an agent should know before this task, and keep the receipt; the text may be empty.

        `paths`, `command` and `tools` tell what is about to happen, as far as it is known. `only_new`: leave out what
        the task was given before, and keep no record of having nothing to say. `beside`: learnings that the prompt
        gives otherwise: left out here, and recorded as given. `model` and `model_reason`: who will work, told in the
        loop's status. `keep=False`: leave no record. `max_chars`: another limit beside the budget, for a client that
        takes no more. `asked_by`, `occasion`, `client`: who asked, what for (ASKERS, OCCASIONS), and in which program.
        `began_ns`: since when its making is timed, by `time.perf_counter_ns`; else since this call.
        """
        from learnt.brief.select import choose
        from learnt.weigh.impact import impact

        now = self._clock()
        text, said = _said(task_text, command)
        role = self._line(agent or "")
        known = self._task_for(task, text, agent=role, goal=goal or "", task_type=task_type, now=now)
        situation = _situation(text, paths=paths, command=said, tools=tools, task_type=known.type)
        seen = self._given(known if only_new else None, beside) | self._given_to_others(known.id, role)
        hits, left_aside = self._recalled(situation, known, seen, agent=role, exclude_goal=exclude_goal)
        choices = choose(hits, self._rules(), known=left_aside, impact=impact)
        budget = self._budget(budget_tokens)
        worker = {"model": self._line(model), "model_reason": self._line(model_reason, TEXT_LIMIT)}
        everything = self._content(known, choices, now=now, worker=worker)
        told = asked(situation, goal=known.goal, exclude_goal=fold(exclude_goal or ""), only_new=only_new)
        settings = {**self._rules().as_dict(), "budget_tokens": budget}
        content, receipt = fitted(everything, choices, text, told, beside, settings=settings, max_chars=max_chars)
        who = {"asked_by": asked_by or "prompt", "occasion": occasion, "client": self._line(client)}
        made = made_brief(known, content, receipt, agent=role).replace(**who)
        return self._recorded(known, made, began_ns) if keep and (made.text or not only_new) else made

    def render_agent(
        self,
        template: str | os.PathLike[str],
        *,
        agent: str = "",
        context: Mapping[str, Any] | None = None,
        inject_learnings: bool = True,
        task: str | None = None,
    ) -> str:
        """Return a Jinja2 template, a text or the path of one, filled in with `learnings` and what `context` holds.

        `learnings` is what the agent should always know, fenced like a brief, and empty when there is nothing; where
        the text carries it, that is kept as a brief of the task. `context` comes last, and may give another.
        """
        from learnt.flow.agent_templates import Rendering

        return Rendering(self).render_agent(
            template, agent=agent, context=context, inject_learnings=inject_learnings, task=task
        )

    def cache_state(self) -> CacheState:
        """Return how what this process remembers of its stores served it so far."""
        from learnt.flow.standing import cache_state

        return cache_state(self)

    def explain(self, id: str) -> Brief:
        """Return a brief with its receipt, rendered again from the history as far as that is still there."""
        from learnt.brief.receipt import read_receipt
        from learnt.brief.render import render
        from learnt.store import happened

        brief = happened.get_brief(self.store.database, id)
        reports = tasks.failures(self.store.database, brief.task)

        def failure_of(attempt: str) -> Failure:
            if attempt not in reports:
                raise NotFound(f"no report on `{attempt}`", hint="it is not in this store any more")
            return reports[attempt]

        try:
            content = read_receipt(id, dict(brief.receipt), learning_at=self._learning_at, failure_of=failure_of)
        except NotFound:
            return brief  # something in it is gone: the receipt remains, the text cannot be had any more
        return brief.replace(text=render(content))

    def titles(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the present titles of learnings, as far as they are still there."""
        found: dict[str, str] = {}
        for store in self.sound_stores():
            for id, learning in learnings.get_all(store.database, ids).items():
                found.setdefault(id, learning.title)
        return found

    def is_as_said(self, brief: Brief) -> bool:
        """Say whether the text of a brief is, byte for byte, what the agent was given."""
        return digest(brief.text) == brief.text_hash

    def is_of_another_version(self, brief: Brief) -> bool:
        """Say whether a brief was put into words by another version, which need not say the same in the same way."""
        from learnt.brief.render import RENDERER

        return bool(brief.receipt.get("render", 1) != RENDERER)

    def _budget(self, tokens: int | None) -> int:
        budget = self.settings.brief_tokens if tokens is None else tokens
        if budget < 0:
            raise WrongRequest(f"a budget of {budget} tokens cannot be kept", hint="give a number from 0 on")
        return budget

    def _rules(self) -> Rules:
        from learnt.brief.select import Rules

        return Rules(
            max_learnings=self.settings.brief_learnings,
            min_confidence=self.settings.brief_confidence,
            min_relevance=self.settings.brief_relevance,
            trial_slots=self.settings.trial_slots,
        )

    def _content(self, task: Task, choices: Sequence[Choice], *, now: int, worker: dict[str, str]) -> Content:
        """Return all that could be said before a task."""
        from learnt.brief.render import Content, Shown

        shown = [Shown(learning=one.hit.learning, on_trial=one.on_trial) for one in choices if not one.left_out]
        past, loop = self._past_of(task, now=now)
        return Content(
            id=new_id("brief", now),
            now_ms=now,
            learnings=tuple(shown),
            attempts=past,
            loop=loop.replace(**worker),
            stuck=bool(loop.failures) and self.stuck(task) is not None,
        )

    def _found_everywhere(self, situation: Situation, which: Filter, parts: Sequence[Wanted]) -> list[list[Hit]]:
        """Return the best hits of all stores, for each part of what is looked for."""
        from learnt.recall.find import find_each
        from learnt.recall.rank import best_first

        seen: set[str] = set()
        found: list[list[Hit]] = [[] for _ in parts]
        for store in self.sound_stores():
            for hits, here in zip(found, find_each(store.database, situation, which, parts), strict=True):
                fresh = [hit for hit in here if hit.learning.id not in seen]  # a copy elsewhere is the same learning
                hits += [_of_scope(hit, store.place.scope) for hit in fresh]
            seen = {hit.learning.id for hits in found for hit in hits}
        return [best_first(hits)[: part.limit] for hits, part in zip(found, parts, strict=True)]

    def _recalled(
        self, situation: Situation, task: Task, seen: dict[str, str], *, agent: str, exclude_goal: str | None
    ) -> tuple[list[Hit], dict[str, str]]:
        """Return what could stand in a brief, and of what the agent need not be told the reason.

        Trusted and doubtful learnings are looked for apart, so that neither can crowd out the other, and neither can
        what other agents see. A conversation is not given back what it taught itself; a retry is given what the earlier
        attempts taught, and what fits the way in which the last one failed.
        """
        from learnt.recall.find import Wanted

        if task.skip_learnings:
            return [], {}
        which = Filter(exclude_goal=None if exclude_goal is None else fold(exclude_goal))
        told = which.replace(exclude_task=task.id if task.type == "session" else None, exclude_ids=tuple(sorted(seen)))
        gate, hidden = self.settings.brief_confidence, self._hidden_from(agent)
        mine = told.replace(not_in_categories=hidden) if hidden else told
        trusted = Wanted(which=mine.replace(trusted_from=gate), limit=_TRUSTED_CONSIDERED, least=_TRUSTED_SUFFICING)
        doubted = Wanted(which=mine.replace(doubted_below=gate), limit=_DOUBTED_CONSIDERED, least=1)
        aside = Wanted(which=told.replace(only_excluded=True), limit=_KNOWN_TOLD)
        of_others = [Wanted(which=told.replace(in_categories=hidden), limit=_KNOWN_TOLD)] if hidden else []
        *fresh, known = self._found_everywhere(situation, which, [*of_others, trusted, doubted, aside])
        others = fresh.pop(0) if hidden else []
        found = {hit.learning.id: hit for hits in fresh for hit in hits}
        for hit in self._taught_by_failures(task, told, [trusted, doubted]):
            better = found.get(hit.learning.id)
            if better is None or (not better.trigger and (hit.trigger or hit.relevance > better.relevance)):
                found[hit.learning.id] = hit
        reasons = {hit.learning.id: seen.get(hit.learning.id, "learnt in this very conversation") for hit in known}
        others = [hit for hit in others if hit.learning.id not in found]
        reasons.update((hit.learning.id, f"not in the categories of {agent}") for hit in others)
        return [*found.values(), *known, *others], reasons

    def _taught_by_failures(self, task: Task, which: Filter, parts: Sequence[Wanted]) -> list[Hit]:
        """Return what earlier attempts at a task taught, and what fits the way in which the last one failed."""
        from learnt.model import Hit

        failed = tasks.attempts(self.store.database, task.id) if task.type != "session" else []
        report = tasks.failures(self.store.database, task.id).get(failed[0].id) if failed else None
        if report is None or report.archived_at:
            return []
        own = learnings.page(self.store.database, which.replace(task=task.id), limit=_OWN_CONSIDERED)
        hits = [Hit(learning=one, score=0.0, relevance=1.0, trigger="an earlier attempt at this task") for one in own]
        told = "\n".join((report.reason, report.error))
        situation = _situation(told, paths=report.files, command="", tools=(), task_type=task.type)
        return [*hits, *(hit for found in self._found_everywhere(situation, which, parts) for hit in found)]

    def _task_for(self, id: str | None, text: str, *, agent: str, goal: str, task_type: str, now: int) -> Task:
        """Return the task of a brief: the known one, or a new one made of the text."""
        id = id or new_id("task", now)
        known = tasks.find(self.store.database, id)
        title = fold(text)[:TITLE_LIMIT]
        if known and known.title == known.id and title:
            return known.replace(title=title, text=text[:TEXT_LIMIT])
        return known or Task(
            id=id,
            title=title or "(no title)",
            text=text[:TEXT_LIMIT],
            type=self._line(task_type) or "implement",
            goal=self._line(goal),
            agent=agent,
            created_at=now,
            updated_at=now,
        )

    def _past_of(self, task: Task, *, now: int) -> tuple[tuple[Past, ...], Loop]:
        """Return the failed attempts at a task, newest first, and how its loop goes; a conversation has neither."""
        from learnt.brief.render import Loop, Past

        attempts = tasks.attempts(self.store.database, task.id)
        if not attempts or task.type == "session":
            return (), Loop()
        reports = tasks.failures(self.store.database, task.id)
        past = [
            Past(number=attempt.number, result=attempt.result, model=attempt.model, failure=reports[attempt.id])
            for attempt in attempts
            if attempt.id in reports and not reports[attempt.id].archived_at
        ]
        counting = since_fresh(task, attempts)
        before = attempts[len(counting) :]
        recent = tasks.results_since(self.store.database, now - _RECENT_MS)
        loop = Loop(
            attempts=len(attempts),
            failures=sum(attempt.result != "interrupted" for attempt in counting),
            anew=bool(before) and before[0].result != "done",
            recent=len(recent),
            recent_done=recent.count("done"),
        )
        return tuple(past), loop

    def _recorded(
        self, task: Task, brief: Brief, began_ns: int | None, *, warning: dict[str, Any] | None = None
    ) -> Brief:
        """Keep a brief, what it gives and how long it took to make, and the warning that it is, if any; return it."""
        from learnt.store.happened import brief_body

        given_before = self._injected(task.id)
        spent = self._clock() - brief.created_at if began_ns is None else (perf_counter_ns() - began_ns) // 1_000_000
        age_s = self.store.age_s()
        receipt = brief.receipt if age_s is None else {**brief.receipt, "mirror_age_s": age_s}
        brief = brief.replace(duration_ms=max(0, spent), receipt=receipt)
        given = brief_body(task, brief)
        if warning is None:
            self.store.record("brief", given)
        else:
            self.store.record("warning", {"given": given, "warning": warning})
        for store in self._stores[1:]:
            shown = [entry["id"] for entry in brief.receipt["shown"] if entry["scope"] == store.place.scope]
            fresh = [id for id in shown if id not in given_before]
            if fresh and not store.place.read_only:
                self._count_elsewhere(store, fresh, at=brief.created_at)
        return brief

    def _count_elsewhere(self, store: Store, ids: Sequence[str], *, at: int) -> None:
        """Count uses in another store of ours; a brief does not wait for it, nor fail with it."""
        from learnt.store.happened import count_use

        wait_ms = store.database.wait_at_most(PATIENCE_MS)
        try:
            with store.transaction():
                for id in ids:
                    count_use(store.database, id, at=at)
        except LearntError as error:
            self.remarks.append(f"not counted in {store.place.folder}: {error.message}")
        finally:
            store.database.wait_at_most(wait_ms)

    def _given(self, task: Task | None, beside: Sequence[str]) -> dict[str, str]:
        """Return what an agent need not be told, each with the reason."""
        seen = self._injected(task.id, since=task.fresh_since) if task else ()
        given = dict.fromkeys(seen, "shown before in this conversation")
        return given | dict.fromkeys(beside, "stands in the learnings file of the prompt")

    def _given_to_others(self, task: str, agent: str) -> dict[str, str]:
        """Return what other agents were given for the same task; a brief for no agent in particular counts for none."""
        if not agent:
            return {}
        from learnt.brief.receipt import GIVEN_TO
        from learnt.store.happened import given_to
        from learnt.text.names import key_of

        given = given_to(self.store.database, task)
        return {
            id: f"{GIVEN_TO}{other} for this task"
            for id, other in given.items()
            if other and key_of(other) != key_of(agent)
        }

    def _hidden_from(self, agent: str) -> tuple[str, ...]:
        """Return the categories, as learnings spell them, that an agent does not see."""
        if not agent:
            return ()
        from learnt.brief.categories import hidden_from, is_restricted

        agents = self.settings.agents
        if not is_restricted(agent, agents):
            return ()
        spelt = {one for store in self.sound_stores() for one in learnings.categories(store.database)}
        return hidden_from(agent, agents, sorted(spelt))

    def _injected(self, task: str, *, since: int = 0) -> dict[str, bool]:
        from learnt.store.happened import injected

        # First what waits: it may be brought into the database at this very moment.
        waiting = self.store.waiting(task) if task else ()
        given = injected(self.store.database, task, since=since)
        for record in waiting:
            brief = record.body.get("given", record.body)["brief"]
            given |= {one["learning"]: one["held_out"] for one in brief["injections"] if one["injected_at"] >= since}
        return given

    def _learning_at(self, id: str, version: int, scope: str) -> Learning:
        """Return a learning as it was at one of its versions, in the store that it was read from."""
        fields: dict[str, Any] = {}
        stores = [store for store in self.sound_stores() if store.place.scope == scope]
        history = [event for store in stores for event in events.of(store.database, id)]
        if not history:
            raise NotFound(f"no history of `{id}`", hint="it was purged, or its store is not read along any more")
        for event in history:
            if event.version <= version:
                fields.update(event.new)
        return Learning(id=id, version=version, **read_fields(fields, allowed=Learning.fields))


def _of_scope(hit: Hit, scope: str) -> Hit:
    learning = hit.learning
    return hit if learning.scope == scope else hit.replace(learning=learning.replace(scope=scope))


def _said(task_text: str, command: str) -> tuple[str, str]:
    """Return what is to be done and which command is about to run, without secrets."""
    from learnt.text.redact import redact

    text = redact(clean(check_text("task_text", task_text)))[0]
    if not text.strip():
        raise WrongRequest("the task says nothing", hint="say in a few words what is to be done")
    return text, redact(clean(command))[0]


def _situation(text: str, *, paths: Sequence[str], command: str, tools: Sequence[str], task_type: str) -> Situation:
    from learnt.text.triggers import Situation

    return Situation(
        text=clean(text),
        paths=tuple(map(clean, paths)),
        command=clean(command),
        tools=tuple(map(fold, tools)),
        task_type=fold(task_type),
    )


def asked(situation: Situation, **also: Any) -> dict[str, Any]:
    """Return what a brief was asked for beside the text, for its receipt: without secrets."""
    return {
        **also,
        "paths": [_safe_path(path) for path in situation.paths],
        "command": situation.command,
        "tools": list(situation.tools),
        "task_type": situation.task_type,
    }


def _safe_path(path: str) -> str:
    from learnt.text.redact import redact

    return redact(clean(path))[0]


def fitted(
    everything: Content,
    choices: Sequence[Choice],
    query: str,
    asked: dict[str, Any],
    beside: Sequence[str],
    *,
    settings: dict[str, Any],
    max_chars: int | None,
) -> tuple[Content, dict[str, Any]]:
    """Return what there is room for, and the receipt."""
    from learnt.brief.receipt import write_receipt
    from learnt.brief.render import fit

    content, no_room = fit(everything, settings["budget_tokens"], max_chars=max_chars)
    receipt = write_receipt(
        query=query,
        asked=asked,
        choices=choices,
        content=content,
        beside=beside,
        no_room=no_room,
        attempts=everything.attempts,
        settings=settings,
    )
    return content, receipt


def made_brief(task: Task, content: Content, receipt: dict[str, Any], *, agent: str) -> Brief:
    """Return the brief of a content."""
    from learnt.brief.render import render
    from learnt.text.tokens import estimate_tokens

    text = render(content)
    return Brief(
        id=content.id,
        created_at=content.now_ms,
        task=task.id,
        agent=agent,
        tokens=estimate_tokens(text),
        text_hash=digest(text),
        receipt=receipt,
        injections=tuple(
            Injection(learning=id, task=task.id, brief=content.id, injected_at=content.now_ms)
            for id in (*(one.learning.id for one in content.learnings), *receipt["beside"])
        ),
        text=text,
    )
