"""Fill in the template of an agent's prompt with its standing learnings, and record them as a brief.

Templates run in Jinja2's immutable sandbox: they cannot reach Python's internals, change their variables or include
files. The length of the output is limited. The run time is not, because templates come from the caller's own code.
Every mistake raises a WrongRequest with the line and a hint.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from typing import Any

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, UndefinedError
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from learnt.brief.render import Content, Shown
from learnt.brief.select import Choice
from learnt.errors import LearntError, WrongRequest
from learnt.flow.agent_categories import Remark, check_categories
from learnt.flow.briefs import BriefRequest, Draft, assemble, given_to_others, record, task_for
from learnt.flow.context import Context
from learnt.flow.standing import CacheState, StandingChoice, cache_state, choose_standing, standing
from learnt.model import LONG_TEXT_LIMIT, Brief, Hit, Learning, Task, new_id

LEARNINGS = "learnings"
_LONGEST_PATH = 4_096
_LONGEST_OUTPUT = 1_000_000
_TEMPLATE = "<template>"
# Errors that Python raises for mistakes in a template.
_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
)


class AgentTemplates:
    """Fills in the templates of agents' prompts."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def cache_state(self) -> CacheState:
        """Return the figures of this process's cache of learnings."""
        return cache_state(self._context)

    def standing(self, agent: str) -> list[Learning]:
        """Return the standing learnings of an agent, from the cache if it is fresh."""
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
        """Return the filled-in template; if it shows the learnings, they are recorded first."""
        began_ns = time.perf_counter_ns()
        text = _read_template(template)
        given = _check_variables(variables)
        if not inject_learnings or LEARNINGS in given:
            return fill_template(text, {LEARNINGS: "", **given})
        known, brief = self._brief(self._context.redact_line(agent), task)
        filled = fill_template(text, {LEARNINGS: brief.text, **given})
        # Filters may change the text, but most of them keep the id of the brief.
        if brief.text and brief.id in filled.casefold():
            record(self._context, known, brief, began_ns=began_ns)
        return filled

    def _brief(self, agent: str, task: str | None) -> tuple[Task, Brief]:
        """Return the standing brief of an agent, not recorded yet, and its task."""
        context = self._context
        now = context.clock()
        # Several agents may share a task; its id is its title until a brief gives another.
        title = task or (f"Prompt of {agent}" if agent else "Prompt")
        known = task_for(context, BriefRequest(text=title, task=task, agent=agent), now=now)
        choice = self._choose(known, agent)
        shown = tuple(Shown(learning=learning) for learning in choice.chosen)
        brief = assemble(
            Draft(
                task=known,
                content=Content(id=new_id("brief", now), now_ms=now, learnings=shown),
                choices=[
                    Choice(hit=Hit(learning=entry.learning, score=0.0), left_out=entry.left_out)
                    for entry in choice.considered
                ],
                settings={
                    "min_confidence": context.settings.brief_confidence,
                    "per_category": context.settings.brief_per_category,
                    "budget_tokens": context.settings.brief_tokens,
                },
                asked={"goal": known.goal, "exclude_goal": "", "only_new": False},
                agent=agent,
                occasion="template",
            )
        )
        cache = {"hits": choice.hits, "misses": choice.misses, "age_s": round(choice.age_s, 1)}
        return known, brief.replace(receipt={**brief.receipt, "cache": cache})

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


def _read_template(template: str | os.PathLike[str]) -> str:
    """Return the text of a template, or of the file at a path object.

    A text that is a path is never read as a file, because it may come from an untrusted source.
    """
    if isinstance(template, str):
        text = template
        if len(text) <= _LONGEST_PATH and os.path.isfile(text):
            raise WrongRequest(
                f"the template is the name of a file, {text}", hint="pass pathlib.Path(…) to fill in the file"
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


class _OutputTooLong(TemplateError):
    """The output exceeds its limit."""


def fill_template(template: str, variables: Mapping[str, Any]) -> str:
    """Return the template with its variables filled in; raise WrongRequest for a mistake in it."""
    try:
        environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True, cache_size=0)
        return _join_within_limit(environment.from_string(template).generate(variables))
    except (TemplateError, *_ERRORS) as error:
        raise _explain(error, variables) from None


def _join_within_limit(pieces: Iterable[str]) -> str:
    kept: list[str] = []
    length = 0
    for piece in pieces:
        length += len(piece)
        if length > _LONGEST_OUTPUT:
            raise _OutputTooLong(f"it makes more than {_LONGEST_OUTPUT:,} characters")
        kept.append(piece)
    return "".join(kept)


def _explain(error: BaseException, variables: Mapping[str, Any]) -> WrongRequest:
    """Return the error for a mistake, with its line and a hint."""
    line = error.lineno if isinstance(error, TemplateSyntaxError) else _find_line(error)
    place = f"line {line} of the template" if line else "the template"
    message = " ".join(str(error).split()) or type(error).__name__
    return WrongRequest(f"{place}: {message}"[:500], hint=_choose_hint(error, message, variables)[:500])


def _choose_hint(error: BaseException, message: str, variables: Mapping[str, Any]) -> str:
    if isinstance(error, _OutputTooLong | MemoryError | RecursionError | OverflowError):
        return "make it simpler: a prompt has to be short"
    if "no loader" in message:
        return "a template cannot include others; give their text in `context`"
    if isinstance(error, SecurityError):
        return "a template may only read its variables"
    if isinstance(error, TemplateSyntaxError):
        return "templates are written in Jinja2; correct that line"
    if isinstance(error, UndefinedError):
        names = ", ".join(sorted(map(str, variables)))
        return f"it may use {names}; `default('')` covers what may be missing"
    return "correct what it does with its values"


def _find_line(error: BaseException) -> int:
    """Return the line of the template that raised an error; 0 if it is unknown."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _TEMPLATE:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
