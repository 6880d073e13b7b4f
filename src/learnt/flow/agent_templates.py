"""Fill in the template of an agent's prompt with what that agent should always know, and keep that as a brief."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from learnt.brief.render import Content, Shown
from learnt.brief.select import Choice
from learnt.errors import LearntError, WrongRequest
from learnt.flow.agent_categories import Remark, check_categories
from learnt.flow.briefs import BriefRequest, Draft, assemble, given_to_others, record, task_for
from learnt.flow.context import Context
from learnt.flow.fill_template import fill_template
from learnt.flow.standing import CacheState, StandingChoice, cache_state, choose_standing, standing
from learnt.model import LONG_TEXT_LIMIT, Brief, Hit, Learning, Task, new_id

LEARNINGS = "learnings"
_LONGEST_PATH = 4_096


class AgentTemplates:
    """Fills in the templates of agents' prompts."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def cache_state(self) -> CacheState:
        """Return the figures of this process's cache of learnings."""
        return cache_state(self._context)

    def standing(self, agent: str) -> list[Learning]:
        """Return what an agent should always know, from the cache if it is fresh."""
        return standing(self._context, agent=agent, cached=True)

    def remarks(self) -> list[Remark]:
        """Return remarks on the categories that the settings give to agents."""
        return list(check_categories(self._context.store.database, self._context.configuration))

    def render(
        self,
        template: str | os.PathLike[str],
        *,
        agent: str = "",
        variables: Mapping[str, Any] | None = None,
        inject_learnings: bool = True,
        task: str | None = None,
    ) -> str:
        """Return the template filled in; what it shows of the learnings is recorded before it is returned."""
        began_ns = time.perf_counter_ns()
        text = _read_template(template)
        given = _check_variables(variables)
        if not inject_learnings or LEARNINGS in given:
            return fill_template(text, {LEARNINGS: "", **given})
        known, brief = self._brief(self._context.redact_line(agent), task)
        filled = fill_template(text, {LEARNINGS: brief.text, **given})
        # A filter may change how it is written; what names the brief survives most of them.
        if brief.text and brief.id in filled.casefold():
            record(self._context, known, brief, began_ns=began_ns)
        return filled

    def _brief(self, agent: str, task: str | None) -> tuple[Task, Brief]:
        """Return the standing brief of an agent, not recorded yet, and its task."""
        context = self._context
        now = context.clock()
        # Several agents may share a task: until a brief says what it is about, its id is its title.
        title = task or (f"Prompt of {agent}" if agent else "Prompt")
        known = task_for(context, BriefRequest(text=title, task=task, agent=agent), now=now)
        choice = self._choose(known, agent)
        everything = Content(
            id=new_id("brief", now), now_ms=now, learnings=tuple(Shown(learning=learning) for learning in choice.chosen)
        )
        draft = Draft(
            task=known,
            content=everything,
            choices=[_as_choice(entry.learning, entry.left_out) for entry in choice.considered],
            settings=self._settings(),
            asked={"goal": known.goal, "exclude_goal": "", "only_new": False},
            agent=agent,
            occasion="template",
        )
        brief = assemble(draft)
        return known, brief.replace(receipt={**brief.receipt, "cache": _describe_cache(choice)})

    def _choose(self, task: Task, agent: str) -> StandingChoice:
        if task.skip_learnings:
            return StandingChoice(considered=())
        return choose_standing(
            self._context,
            agent=agent,
            known=given_to_others(self._context, task.id, agent),
            taught_in=task.id if task.type == "session" else "",
            cached=True,
        )

    def _settings(self) -> dict[str, Any]:
        settings = self._context.settings
        return {
            "min_confidence": settings.brief_confidence,
            "per_category": settings.brief_per_category,
            "budget_tokens": settings.brief_tokens,
        }


def _read_template(template: str | os.PathLike[str]) -> str:
    """Return the text of a template, or of the file that a path names.

    A file that a text names is never read: the text may come from elsewhere.
    """
    if isinstance(template, str):
        text = template
        if len(text) <= _LONGEST_PATH and os.path.isfile(text):
            raise WrongRequest(
                f"the template is the name of a file, {text}", hint="pass pathlib.Path(…) to have the file filled in"
            )
    elif isinstance(template, os.PathLike):
        path = os.fspath(template)
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read(LONG_TEXT_LIMIT + 1)
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise LearntError(f"cannot read the template {path}: {why}", hint="name a readable text file") from None
    else:
        raise WrongRequest(
            f"a template is {type(template).__name__}", hint="give its text, or a pathlib.Path that names its file"
        )
    if len(text) > LONG_TEXT_LIMIT:
        raise WrongRequest(
            f"the template has more than {LONG_TEXT_LIMIT:,} characters", hint="a prompt has to be shorter"
        )
    return text


def _check_variables(context: Mapping[str, Any] | None) -> dict[str, Any]:
    if context is None:
        return {}
    hint = 'give variables by their names: `context={"task": "Add password reset"}`'
    if not isinstance(context, Mapping):
        raise WrongRequest(f"the context is {type(context).__name__}", hint=hint)
    wrong = next((name for name in context if not isinstance(name, str)), None)
    if wrong is not None:
        raise WrongRequest(f"a name in the context is {type(wrong).__name__}", hint=hint)
    return dict(context)


def _as_choice(learning: Learning, left_out: str) -> Choice:
    return Choice(hit=Hit(learning=learning, score=0.0), left_out=left_out)


def _describe_cache(choice: StandingChoice) -> dict[str, Any]:
    return {"hits": choice.hits, "misses": choice.misses, "age_s": round(choice.age_s, 1)}
