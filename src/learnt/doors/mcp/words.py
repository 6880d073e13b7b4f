"""How learnings, briefs and errors are told to an agent: plain text, in which foreign text stays data."""

from __future__ import annotations

import os
import re
from string import Template
from typing import TYPE_CHECKING

from learnt.errors import LearntError
from learnt.model import PARAGRAPHS
from learnt.text.fence import fenced, harmless
from learnt.text.templates import read_template

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from learnt.flow.standing import CacheState
    from learnt.model import Brief, Learning

_PROMPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prompts")
# Clients cut long results in the middle, each elsewhere: what is longer is told in fewer words instead.
_LONGEST_CHARS = 9_500
# Hints are written for the command line; to an agent they name tools and parameters.
_HINTS = (
    (re.compile(r"`learnt activity[^`]*` shows the ids"), "`brief` tells the id of each brief"),
    (re.compile(r"`learnt list[^`]*` shows the ids"), "`recall` tells the ids"),
    (
        re.compile(r"`learnt task list[^`]*` shows the ids; `learnt task add` makes one"),
        "`brief` tells the id of a task",
    ),
    (re.compile(r": `learnt add [^`]*`"), ""),
    (re.compile(r"; `learnt undo [^`]*` takes the last change back"), ""),
)
_OPTION = re.compile(r"--([a-z]+)\b")


def prompt(name: str, **parts: str) -> str:
    """Return a text of ours, filled in."""
    return Template(read_template(name, (_PROMPTS,)).strip()).substitute(parts)


def as_data(lines: Iterable[str], id: str) -> str:
    """Return lines with foreign text in them as an agent may be given them."""
    return fenced(harmless("\n".join(lines)), id)


def told_learnings(learnings: Sequence[Learning]) -> str:
    """Return learnings one after the other: in full as long as there is room, then by their titles."""
    told: list[str] = []
    left = _LONGEST_CHARS
    for learning in learnings:
        full, title = told_learning(learning), f"- {harmless(_title(learning))} ({learning.id})\n"
        told.append(full if len(full) <= left else title)
        left -= len(told[-1])
    return fenced("\n".join(told), "recall")


def told_learning(learning: Learning) -> str:
    """Return a learning in full."""
    standing = [f"confidence: {learning.confidence:.2f}", f"helpful {learning.times_helpful}x"]
    standing += [learning.status] if learning.status != "active" else []
    standing += [f"from {learning.scope}"] if learning.scope != "project" else []
    lines = [f"### {harmless(_title(learning))} [{', '.join(standing)}]", ""]
    told = [(name, getattr(learning, name)) for name in PARAGRAPHS]
    lines += [f"**{name.capitalize()}**: {harmless(text)}" for name, text in told if text]
    if learning.tags:
        lines.append(f"**Tags**: {harmless(', '.join(learning.tags))}")
    return "\n".join([*lines, f"_ID: {learning.id}_", ""])


def told_brief(brief: Brief, silence: str) -> str:
    """Return a brief, or why it says nothing, and how to come back to it."""
    ids = f"This brief is `{brief.id}`, its task `{brief.task}`: give that to `mark` and `debrief`."
    return f"{brief.text or silence}\n{ids}"


def told_cache(state: CacheState) -> str:
    """Return how what the server remembers served it."""
    if not state.ttl_s:
        return "Read anew each time: `cache_ttl_s` is 0."
    return (
        f"Cache: {state.hits} hits, {state.misses} misses; {state.categories} categories with {state.learnings} in "
        f"all, the oldest read {state.age_s:.0f} s ago."
    )


def told_error(error: LearntError) -> str:
    """Return what went wrong, and what to do, by means that an agent has."""
    hint = error.hint
    for of_the_command_line, of_a_tool in _HINTS:
        hint = of_the_command_line.sub(of_a_tool, hint)
    hint = f"for the user: {hint}" if "`learnt " in hint else _OPTION.sub(r"`\1`", hint)
    return f"{error.message}\n\nhint: {hint}" if hint else error.message


def _title(learning: Learning) -> str:
    return learning.advise(learning.title)
