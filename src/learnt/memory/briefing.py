"""Before a task: recall what matters, brief the agent, keep the receipt, and render it again on demand."""

from __future__ import annotations

from learnt.errors import LearntError, NotFound, WrongRequest
from learnt.memory.tasks import Tasks
from learnt.model import (
    TEXT_LIMIT,
    TITLE_LIMIT,
    Brief,
    Injection,
    Learning,
    Task,
    check_confidence,
    check_text,
    new_id,
)
from learnt.store import PATIENCE_MS, events, learnings
from learnt.store.learnings import Filter
from learnt.text.clean import clean, fold
from learnt.text.records import read_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from learnt.brief.render import Content, Loop, Past
    from learnt.brief.select import Choice, Rules
    from learnt.model import Hit
    from learnt.store import Store
    from learnt.text.patterns import Situation

STRATEGIES = ("hybrid", "words")  # by words alone, as long as there is no other way
_CONSIDERED = 15
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
    ) -> list[Hit]:
        """Return the learnings that fit a text, best first: those whose triggers hold, then those that share words."""
        from learnt.recall.rank import highlights
        from learnt.text.patterns import Situation

        if strategy not in STRATEGIES:
            raise WrongRequest(f"there is no strategy `{strategy}`", hint=f"choose one of: {', '.join(STRATEGIES)}")
        check_confidence(min_confidence)
        situation = Situation(text=clean(query), paths=tuple(map(clean, paths)))
        which = Filter(
            status=status,
            domain=None if domain is None else fold(domain),
            category=None if category is None else fold(category),
            exclude_goal=None if exclude_goal is None else fold(exclude_goal),
            min_confidence=min_confidence,
        )
        if limit < 0:
            raise WrongRequest("limit cannot be below 0", hint="leave it out for the first ten")
        hits = self._found_everywhere(situation, which, limit=limit)
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
        task_type: str = "",
        only_new: bool = False,
        model: str = "",
        model_reason: str = "",
        keep: bool = True,
    ) -> Brief:
        """Return what an agent should know before this task, and keep the receipt; the text may be empty.

        `only_new`: leave out what the task was given before, and keep no record of having nothing to say. `model` and
        `model_reason`: who will work, told in the loop's status. `keep=False`: only look, and leave no record.
        """
        from learnt.brief.render import fit
        from learnt.brief.select import choose
        from learnt.text.redact import redact

        now = self._clock()
        text, role = redact(clean(check_text("task_text", task_text)))[0], self._line(agent or "")
        if not text.strip():
            raise WrongRequest("the task says nothing", hint="say in a few words what is to be done")
        known = self._task_for(task, text, agent=role, goal=goal or "", task_type=task_type, now=now)
        seen = frozenset(self._injected(known.id)) if only_new else frozenset()
        hits = [] if known.skip_learnings else self._recalled(text, known, paths=paths, exclude_goal=exclude_goal)
        choices = choose(hits, self._rules(), seen=seen)
        budget = self.settings.brief_tokens if budget_tokens is None else budget_tokens
        if budget < 0:
            raise WrongRequest(f"a budget of {budget} tokens cannot be kept", hint="give a number from 0 on")
        told = self._content(known, choices, now=now)
        told = told.replace(
            loop=told.loop.replace(model=self._line(model), model_reason=self._line(model_reason, TEXT_LIMIT))
        )
        content, no_room = fit(told, budget)
        made = self._made(known, content, choices, query=text, agent=role, budget=budget, no_room=no_room)
        if keep and (made.text or not only_new):
            self._record_brief(known, made)
        return made

    def explain(self, id: str) -> Brief:
        """Return a brief with its receipt, rendered again from the history as far as that is still there."""
        from learnt.brief.receipt import read_receipt
        from learnt.brief.render import render
        from learnt.store import happened, tasks

        brief = happened.get_brief(self.store.database, id)
        reports = tasks.failures(self.store.database, brief.task)
        try:
            content = read_receipt(
                id, dict(brief.receipt), learning_at=self._learning_at, failure_of=lambda attempt: reports[attempt]
            )
        except NotFound:
            return brief  # something in it was purged: the receipt remains, the text cannot be had any more
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
        return _hash(brief.text) == brief.text_hash

    def _rules(self) -> Rules:
        from learnt.brief.select import Rules

        return Rules(
            max_learnings=self.settings.brief_learnings,
            min_confidence=self.settings.brief_confidence,
            min_relevance=self.settings.brief_relevance,
            trial_slots=self.settings.trial_slots,
        )

    def _content(self, task: Task, choices: Sequence[Choice], *, now: int) -> Content:
        """Return all that could be said before a task."""
        from learnt.brief.render import Content, Shown

        shown = [Shown(learning=one.hit.learning, on_trial=one.on_trial) for one in choices if not one.left_out]
        past, loop = self._past_of(task, now=now)
        return Content(
            id=new_id("brief", now),
            now_ms=now,
            learnings=tuple(shown),
            attempts=past,
            loop=loop,
            stuck=bool(loop.failures) and self.stuck(task) is not None,
        )

    def _made(
        self,
        task: Task,
        content: Content,
        choices: Sequence[Choice],
        *,
        query: str,
        agent: str,
        budget: int,
        no_room: Sequence[str],
    ) -> Brief:
        """Return the brief of a content, with the receipt that tells how it came about."""
        from learnt.brief.receipt import write_receipt
        from learnt.brief.render import render
        from learnt.text.tokens import estimate_tokens

        text = render(content)
        settings = {**self._rules().as_dict(), "budget_tokens": budget}
        return Brief(
            id=content.id,
            created_at=content.now_ms,
            task=task.id,
            agent=agent,
            tokens=estimate_tokens(text),
            text_hash=_hash(text),
            receipt=write_receipt(query=query, choices=choices, content=content, no_room=no_room, settings=settings),
            injections=tuple(
                Injection(learning=one.learning.id, task=task.id, brief=content.id, injected_at=content.now_ms)
                for one in content.learnings
            ),
            text=text,
        )

    def _found_everywhere(self, situation: Situation, which: Filter, *, limit: int) -> list[Hit]:
        from learnt.recall.find import find
        from learnt.recall.rank import best_first

        hits: dict[str, Hit] = {}
        for store in self.sound_stores():
            for hit in find(store.database, situation, which, limit=limit):
                learning = hit.learning.replace(scope=store.place.scope)
                hits.setdefault(learning.id, hit.replace(learning=learning))  # a copy elsewhere is the same learning
        return best_first(hits.values())[:limit]

    def _recalled(self, text: str, task: Task, *, paths: Sequence[str], exclude_goal: str | None) -> list[Hit]:
        """Return what could stand in a brief: a conversation is not given back what it taught itself."""
        from learnt.text.patterns import Situation

        situation = Situation(text=text, paths=tuple(map(clean, paths)), task_type=task.type)
        which = Filter(exclude_goal=None if exclude_goal is None else fold(exclude_goal))
        hits = self._found_everywhere(situation, which, limit=_CONSIDERED)
        return [hit for hit in hits if not (task.type == "session" and hit.learning.task == task.id)]

    def _task_for(self, id: str | None, text: str, *, agent: str, goal: str, task_type: str, now: int) -> Task:
        """Return the task of a brief: the known one, or a new one made of the text."""
        from learnt.store import tasks

        id = id or new_id("task", now)
        known = tasks.find(self.store.database, id)
        return known or Task(
            id=id,
            title=fold(text)[:TITLE_LIMIT] or "(no title)",
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
        from learnt.store import tasks

        attempts = tasks.attempts(self.store.database, task.id)
        if not attempts or task.type == "session":
            return (), Loop()
        reports = tasks.failures(self.store.database, task.id)
        past = [
            Past(number=attempt.number, result=attempt.result, model=attempt.model, failure=reports[attempt.id])
            for attempt in attempts
            if attempt.id in reports and not reports[attempt.id].archived_at
        ]
        failed = 0
        for attempt in attempts:
            if attempt.result == "done" or attempt.started_at < task.fresh_since:
                break
            failed += attempt.result != "interrupted"
        recent = tasks.results_since(self.store.database, now - _RECENT_MS)
        loop = Loop(attempts=len(attempts), failures=failed, recent=len(recent), recent_done=recent.count("done"))
        return tuple(past), loop

    def _record_brief(self, task: Task, brief: Brief) -> None:
        from learnt.store.happened import brief_body

        given_before = self._injected(task.id)
        self.store.record("brief", brief_body(task, brief))
        for store in self._stores[1:]:
            shown = [entry["id"] for entry in brief.receipt["shown"] if entry["scope"] == store.place.scope]
            fresh = [id for id in shown if id not in given_before]
            if fresh and not store.place.read_only:
                self._count_elsewhere(store, fresh, at=brief.created_at)

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

    def _injected(self, task: str) -> dict[str, bool]:
        from learnt.store.happened import injected

        return injected(self.store.database, task)

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


def _hash(text: str) -> str:
    # `hashlib` loads all of OpenSSL, which a brief would wait for; these are Python's own, under two names.
    try:
        from _sha2 import sha256  # type: ignore[import-not-found]
    except ImportError:
        from _sha256 import sha256  # type: ignore[import-not-found]

    return str(sha256(text.encode()).hexdigest())
