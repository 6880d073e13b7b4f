"""Discoveries by hand: whoever has a raw finding can write it, and what it teaches beyond its task becomes a learning.

A person vouches for what becomes of his finding; an agent's is on trial. A finding that is no learning is kept with the
reason, and a second task that reports the same may heal it (`folding.refuse`).
"""

from __future__ import annotations

from collections.abc import Sequence

from learnt.errors import NotFound, WrongRequest
from learnt.flow.context import Context, check_rows
from learnt.flow.mining import Intake, redact_discovery
from learnt.model import DISCOVERIES, TEXT_LIMIT, Discovery, Task
from learnt.store import mined, tasks
from learnt.store.mined import STATED, StoredDiscovery
from learnt.text.clean import fold
from learnt.weigh.confidence import PERSON

_NO_TASK = Task(id="task_none", title="-", type="")


class Discoveries:
    """Raw findings."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    def add(
        self,
        text: str,
        *,
        type: str,
        task: str = "",
        failed: str = "",
        error: str = "",
        worked: str = "",
        excerpt: str = "",
        files: Sequence[str] = (),
    ) -> StoredDiscovery:
        """Keep a finding, and learn from it; its `learning` is what it became, or `skipped` says why it is none."""
        if type not in DISCOVERIES:
            raise WrongRequest(
                f"`{type}` is no type of discovery", hint=f"the type is one of: {', '.join(DISCOVERIES)}"
            )
        if not fold(text):
            raise WrongRequest("a discovery needs a text", hint="say in a sentence what was found")
        texts = {"text": text, "failed": failed, "error": error, "worked": worked, "excerpt": excerpt}
        found_in = self._find_task(task)
        discovery = Discovery(
            type=type,
            rule=STATED,
            files=tuple(map(fold, files)),
            **{name: fold(value)[:TEXT_LIMIT] for name, value in texts.items()},
        )
        discovery = redact_discovery(self._context, discovery, found_in).replace(task=task)
        with self._store.transaction():
            intake = Intake(self._context, found_in)
            if self._context.by == PERSON:
                intake.learn_from_person(discovery)
            else:
                intake.learn_from_discovery(discovery)
            return mined.get(self._store.database, discovery)

    def select(
        self, *, type: str = "", task: str = "", learning: str = "", limit: int | None = None
    ) -> list[StoredDiscovery]:
        """Return the matching discoveries, latest first."""
        limit = self._context.settings.page_size if limit is None else limit
        check_rows(limit=limit)
        return mined.select(self._store.database, type=type, task=task, learning=learning, limit=limit)

    def _find_task(self, id: str) -> Task:
        if not id:
            return _NO_TASK
        task = tasks.find(self._store.database, id)
        if task is None:
            raise NotFound(
                f"no task `{id[:100]}`", hint="leave the task out, or `learnt task list --all` shows the ids"
            )
        if task.skip_learnings:
            raise WrongRequest(f"`{id}` is a task that leaves no learnings", hint="leave the task out")
        return task
