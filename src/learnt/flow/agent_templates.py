"""Fill in an agent's prompt template with its standing learnings, and record them as a brief.

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
from learnt.flow.briefs import BriefRequest, Draft, assemble, task_for
from learnt.flow.context import Context, take_over_edits
from learnt.flow.injections import list_given_to_others, record
from learnt.flow.standing import CacheState, StandingChoice, cache_state, choose_standing, standing
from learnt.model import LONG_TEXT_LIMIT, Brief, Hit, Learning, Task, new_id

LEARNINGS = "learnings"
_MAX_PATH_CHARS = 4_096
_MAX_OUTPUT_CHARS = 1_000_000
_TEMPLATE_NAME = "<template>"
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
    """Fills in agents' prompt templates."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def cache_state(self) -> CacheState:
        """Return the statistics of this process's cache of learnings."""
        return cache_state(self._context)

    def standing(self, agent: str) -> list[Learning]:
        """Return an agent's standing learnings, from the cache if it is fresh."""
        return standing(self._context, agent=agent, cached=True)

    def remarks(self) -> list[Remark]:
        """Return remarks on the categories that the settings assign to agents."""
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
        template_variables = _check_variables(variables)
        if not inject_learnings or LEARNINGS in template_variables:
            return fill_template(text, {LEARNINGS: "", **template_variables})
        briefed_task, brief = self._brief(self._context.redact_line(agent), task)
        filled = fill_template(text, {LEARNINGS: brief.text, **template_variables})
        # Filters may change the text, but most of them keep the brief's id, so the id shows that the text is used.
        if brief.text and brief.id in filled.casefold():
            record(self._context, briefed_task, brief, began_ns=began_ns)
        return filled

    def _brief(self, agent: str, task: str | None) -> tuple[Task, Brief]:
        """Return the task and the standing brief of an agent; the brief is not recorded yet."""
        context = self._context
        take_over_edits(context)
        now = context.clock()
        # Several agents may share a task, so its title is its id until a brief sets another title.
        title = task or (f"Prompt of {agent}" if agent else "Prompt")
        briefed_task = task_for(context, BriefRequest(text=title, task=task, agent=agent), now=now)
        choice = self._choose(briefed_task, agent)
        shown = tuple(Shown(learning=learning) for learning in choice.chosen)
        brief = assemble(
            Draft(
                task=briefed_task,
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
                asked={"goal": briefed_task.goal, "exclude_goal": "", "only_new": False},
                agent=agent,
                occasion="template",
            )
        )
        cache = {"hits": choice.hits, "misses": choice.misses, "age_s": round(choice.age_s, 1)}
        return briefed_task, brief.replace(receipt={**brief.receipt, "cache": cache})

    def _choose(self, task: Task, agent: str) -> StandingChoice:
        if task.skip_learnings:
            return StandingChoice(considered=())
        return choose_standing(
            self._context,
            agent=agent,
            known=list_given_to_others(self._context, task.id, agent),
            taught_in=task.id if task.type == "session" else "",
            cached=True,
        )


def _read_template(template: str | os.PathLike[str]) -> str:
    """Return a template's text; for a path object, return the file's text.

    A string is never treated as a path, because it may come from an untrusted source.
    """
    if isinstance(template, str):
        text = template
        if len(text) <= _MAX_PATH_CHARS and os.path.isfile(text):
            raise WrongRequest(
                f"the template must be its text, not the path {text}", hint="pass pathlib.Path(…) to fill in the file"
            )
    elif isinstance(template, os.PathLike):
        path = os.fspath(template)
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read(LONG_TEXT_LIMIT + 1)
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise LearntError(
                f"cannot read the template {path}: {why}", hint="pass the path of a readable text file"
            ) from None
    else:
        raise WrongRequest(
            f"the template must be a string or a path, not {type(template).__name__}",
            hint="pass its text, or the pathlib.Path of its file",
        )
    if len(text) > LONG_TEXT_LIMIT:
        raise WrongRequest(
            f"the template has more than {LONG_TEXT_LIMIT:,} characters",
            hint="shorten it: a prompt must be shorter than that",
        )
    return text


def _check_variables(variables: Mapping[str, Any] | None) -> dict[str, Any]:
    if variables is None:
        return {}
    hint = 'pass the variables by name: `context={"task": "Add password reset"}`'
    if not isinstance(variables, Mapping):
        raise WrongRequest(f"the context must be a mapping, not {type(variables).__name__}", hint=hint)
    invalid_name = next((name for name in variables if not isinstance(name, str)), None)
    if invalid_name is not None:
        raise WrongRequest(f"each name in the context must be a string, not {type(invalid_name).__name__}", hint=hint)
    return dict(variables)


class _OutputTooLong(TemplateError):
    """The output exceeds its limit."""


def fill_template(template: str, variables: Mapping[str, Any]) -> str:
    """Return the template with its variables filled in; raise WrongRequest if it contains a mistake."""
    try:
        environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True, cache_size=0)
        return _join_within_limit(environment.from_string(template).generate(variables))
    except (TemplateError, *_ERRORS) as error:
        raise _make_error(error, variables) from None


def _join_within_limit(pieces: Iterable[str]) -> str:
    joined: list[str] = []
    length = 0
    for piece in pieces:
        length += len(piece)
        if length > _MAX_OUTPUT_CHARS:
            raise _OutputTooLong(f"the output is longer than {_MAX_OUTPUT_CHARS:,} characters")
        joined.append(piece)
    return "".join(joined)


def _make_error(error: BaseException, variables: Mapping[str, Any]) -> WrongRequest:
    """Return the WrongRequest for a mistake in a template, with its line and a hint."""
    line = error.lineno if isinstance(error, TemplateSyntaxError) else _find_line(error)
    place = f"line {line} of the template" if line else "the template"
    message = " ".join(str(error).split()) or type(error).__name__
    return WrongRequest(f"{place}: {message}"[:500], hint=_choose_hint(error, message, variables)[:500])


def _choose_hint(error: BaseException, message: str, variables: Mapping[str, Any]) -> str:
    if isinstance(error, _OutputTooLong | MemoryError | RecursionError | OverflowError):
        return "make it simpler: a prompt has to be short"
    if "no loader" in message:
        return "a template cannot include other templates; pass their text in `context`"
    if isinstance(error, SecurityError):
        return "a template can only read its variables"
    if isinstance(error, TemplateSyntaxError):
        return "templates are written in Jinja2; correct that line"
    if isinstance(error, UndefinedError):
        names = ", ".join(sorted(map(str, variables)))
        return f"the template can use {names}; add `default('')` to variables that might be missing"
    return "correct how the template uses its values"


def _find_line(error: BaseException) -> int:
    """Return the line of the template that raised an error; 0 if the line is unknown."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _TEMPLATE_NAME:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
