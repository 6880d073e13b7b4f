"""Goals: their titles and texts, the tasks that serve them, and what those have cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from learnt.errors import WrongRequest
from learnt.flow.context import Context
from learnt.model import LONG_TEXT_LIMIT, TITLE_LIMIT, Task, Value
from learnt.store import goals, tasks
from learnt.store.goals import Goal
from learnt.text.clean import fold
from learnt.text.redact import redact_text


class GoalState(Value):
    """A goal, and how far its tasks are."""

    goal: Goal
    tasks: Mapping[str, int] = {}
    """The number of its tasks by status."""
    cost_usd: float = 0.0

    def as_record(self) -> dict[str, Any]:
        """Return the state for JSON."""
        named = {"id": self.goal.name, **self.goal.as_dict()}
        return {**named, "tasks": dict(self.tasks), "cost_usd": self.cost_usd}


class Goals:
    """What a set of tasks serves."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    def add(self, name: str, *, title: str = "", text: str = "") -> Goal:
        """Add a goal, or give a title and a text to one that so far is only named by tasks."""
        name = fold(name)
        if not name:
            raise WrongRequest("a goal needs a name", hint="such as `accounts`: letters, digits, dashes")
        now = self._context.clock()
        stored = goals.find(self._store.database, name)
        if stored is not None and (stored.title or stored.text):
            raise WrongRequest(f"there is a goal `{name}` already", hint=f"`learnt goal edit {name}` changes it")
        return self._put(Goal(name=name, created_at=stored.created_at if stored else now), title=title, text=text)

    def edit(self, name: str, *, title: str | None = None, text: str | None = None) -> Goal:
        """Change a goal's title or its text."""
        return self._put(goals.get(self._store.database, fold(name)), title=title, text=text)

    def get(self, name: str) -> Goal:
        """Return a goal."""
        return goals.get(self._store.database, fold(name))

    def states(self) -> list[GoalState]:
        """Return all goals, oldest first, each with how far its tasks are."""
        counts = goals.count_tasks(self._store.database)
        found = goals.select(self._store.database)
        costs = goals.cost(self._store.database, [goal.name for goal in found])
        return [
            GoalState(goal=goal, tasks=counts.get(goal.name, {}), cost_usd=costs.get(goal.name, 0.0)) for goal in found
        ]

    def tasks_of(self, name: str) -> list[Task]:
        """Return a goal's tasks, oldest first."""
        return tasks.select(self._store.database, goal=fold(name), queued=False)

    def describe(self, name: str) -> str:
        """Return what a goal wants, for a prompt; empty without a goal."""
        return goals.describe(self._store.database, fold(name))

    def _put(self, goal: Goal, *, title: str | None, text: str | None) -> Goal:
        changes: dict[str, Any] = {"updated_at": self._context.clock()}
        if title is not None:
            changes["title"] = self._context.redact_line(title, TITLE_LIMIT)
        if text is not None:
            changes["text"], count = redact_text(text, LONG_TEXT_LIMIT)
            self._context.redactions += count
        changed = goal.replace(**changes)
        with self._store.transaction():
            goals.put(self._store.database, changed)
        return changed
