"""Format learnings, briefs and errors as plain text for an agent; text from other sources is fenced as data."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from string import Template

from learnt.brief.render import explain_empty
from learnt.errors import LearntError
from learnt.flow.briefs import SHOWN_BEFORE
from learnt.flow.standing import CacheState
from learnt.model import PARAGRAPHS, Brief, Learning
from learnt.system.templates import read_template
from learnt.text.clean import clean
from learnt.text.fence import fenced, harmless, quoted, quoted_line

_PROMPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prompts")
# Clients cut long results in the middle, so results are shortened to this length here.
_MAX_RESULT_CHARS = 9_500
# Hints are written for the command line; for an agent, commands are replaced by tools and parameters.
_HINTS = (
    (re.compile(r"`learnt activity[^`]*` shows the ids"), "`brief` returns the id of each brief"),
    (re.compile(r"`learnt list[^`]*` shows the ids"), "`recall` returns the ids"),
    (
        re.compile(r"`learnt task list[^`]*` shows the ids; `learnt task add` adds a task"),
        "`brief` returns the id of a task",
    ),
    (re.compile(r": `learnt add [^`]*`"), ""),
    (re.compile(r"; `learnt undo [^`]*` undoes the last change"), ""),
)
_OPTION = re.compile(r"--([a-z]+)\b")


def prompt(name: str, **parts: str) -> str:
    """Return one of our prompts, filled in."""
    return Template(read_template(name, (_PROMPTS,)).strip()).substitute(parts)


def fence_lines(lines: Iterable[str], id: str) -> str:
    """Return lines that contain text from other sources, fenced as data."""
    return fenced("\n".join(harmless(clean(line).replace("\n", " ")) for line in lines), id)


def format_learnings(learnings: Sequence[Learning]) -> str:
    """Return learnings in full up to the length limit, then only their titles."""
    parts: list[str] = []
    room = _MAX_RESULT_CHARS
    for learning in learnings:
        full, title = format_learning(learning), f"- {learning.advise(quoted_line(learning.title))} ({learning.id})\n"
        parts.append(full if len(full) <= room else title)
        room -= len(parts[-1])
    return fenced("\n".join(parts), "recall")


def format_learning(learning: Learning) -> str:
    """Return a learning in full."""
    standing = [f"confidence: {learning.confidence:.2f}", f"helpful {learning.times_helpful}x"]
    standing += [learning.status] if learning.status != "active" else []
    standing += [f"from {quoted_line(learning.scope)}"] if learning.scope != "project" else []
    lines = [f"### {learning.advise(quoted_line(learning.title))} [{', '.join(standing)}]", ""]
    paragraphs = [(name, getattr(learning, name)) for name in PARAGRAPHS]
    lines += [f"**{name.capitalize()}**: {quoted(text)}" for name, text in paragraphs if text]
    if learning.tags:
        lines.append(f"**Tags**: {quoted_line(', '.join(learning.tags))}")
    if learning.cues:
        lines.append(f"**When**: {quoted_line('; '.join(learning.cues))}")
    return "\n".join([*lines, f"_ID: {learning.id}_", ""])


def format_brief(brief: Brief) -> str:
    """Return a brief or the reason why it is empty, what the conversation was given before, and the ids for later."""
    considered = brief.receipt["considered"]
    given = [entry["id"] for entry in considered if entry["left_out"] == SHOWN_BEFORE]
    before = f"This conversation has been given already what fits: {', '.join(given)}.\n" if given else ""
    text = brief.text or (f"Nothing new. {before}" if given else f"{explain_empty(brief)}\n")
    named = f"This brief is `{brief.id}`, its task" if brief.text or not given else "The task is"
    return f"{text}{before if brief.text else ''}{named} `{brief.task}`: give that to `mark` and `debrief`."


def format_cache(state: CacheState) -> str:
    """Return how often the cache was used."""
    if not state.ttl_s:
        return "No cache: `cache_ttl_s` is 0."
    return (
        f"Cache: {state.hits} hits, {state.misses} misses; {state.categories} categories with {state.learnings} in "
        f"all, the oldest read {state.age_s:.0f} s ago."
    )


def format_error(error: LearntError) -> str:
    """Return what went wrong and what to do, in terms of the tools an agent has."""
    hint = error.hint
    for command_line, tool in _HINTS:
        hint = command_line.sub(tool, hint)
    hint = f"for the user: {hint}" if "`learnt " in hint else _OPTION.sub(r"`\1`", hint)
    message = quoted(error.message)
    return f"{message}\n\nhint: {hint}" if hint else message
