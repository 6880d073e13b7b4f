"""Convert a learning to a line of the file, and a line to a learning's fields.

The two conversions are inverse: `line_of(Learning(**fields_of(line), …))` is the folded line. The line for an agent's
learning is the learning's title; a person's line comes back in full.
"""

from __future__ import annotations

import re

from learnt.model import AVOID, TITLE_LIMIT, Learning
from learnt.text.clean import fold
from learnt.text.titles import cut_title, first_sentence, line_key

GENERAL = "General"
ON_TRIAL = "On trial"
"""The heading of the learnings that nobody vouches for; it is not a category."""
ID_COMMENT = re.compile(r"<!--\s*(learn_[A-Za-z0-9]+)\s*-->")
_WORD = re.compile(r"[\w']+")
_NEGATIONS = set("not never no don't doesn't isn't avoid without cannot can't stop removed".split())
_NAME = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")


def line_of(learning: Learning) -> str:
    """Return the text of the learning's bullet."""
    text = learning.observation if _is_whole(learning) else learning.title
    return learning.advise(text)


def fields_of(line: str) -> dict[str, str]:
    """Return a learning's fields from a person's bullet."""
    text = fold(line)
    title = _make_title(text)
    return {"title": title} if title == text else {"title": title, "observation": text, "origin": "person"}


def edit_fields(learning: Learning, line: str) -> dict[str, str]:
    """Return the fields to change so that the learning's bullet has this text.

    If a person only rewords the title, the agent's observation stays. A longer text replaces the observation, and the
    learning is then the person's.
    """
    text = fold(line)
    changes = {}
    if learning.polarity == "avoid" and text.startswith(AVOID):
        text = text.removeprefix(AVOID)
    elif learning.polarity == "avoid":
        changes["polarity"] = "do"
    changes |= fields_of(text)
    if "observation" not in changes and (_is_whole(learning) or _is_whole(learning.replace(**changes))):
        changes["observation"] = ""
    return {name: value for name, value in changes.items() if getattr(learning, name) != value}


def drop_ids(text: str) -> str:
    """Return a bullet's text without the comments that contain learnings' ids."""
    return fold(ID_COMMENT.sub(" ", text))


def bullet_key(text: str) -> str:
    """Return a bullet's text for comparisons: in lower case, on one line, without our comments."""
    return line_key(drop_ids(text))


def changes_meaning(before: str, after: str) -> bool:
    """Return whether a new text says something else or the opposite, so that the old advice no longer applies."""
    old, new = (set(_WORD.findall(text.lower())) for text in (before, after))
    is_negated = bool(old & _NEGATIONS) != bool(new & _NEGATIONS)
    return is_negated or 2 * len(old & new) < len(old)


def heading_of(category: str) -> str:
    """Return a category's heading, for example `Code structure` for `code_structure`."""
    if _NAME.fullmatch(category):
        return category.replace("_", " ").capitalize()
    return _fold_heading(category) or GENERAL


def category_of(heading: str) -> str:
    """Return the category for a heading: the name in snake case if its heading is this one, else the heading.

    For a category's heading, the result is that category or another category with the same heading. The section for
    learnings on trial has no category.
    """
    heading = _fold_heading(heading)
    name = heading.lower().replace(" ", "_")
    if heading in ("", GENERAL, ON_TRIAL):
        return ""
    return name if _NAME.fullmatch(name) and heading_of(name) == heading else heading


def section_of(heading: str) -> str:
    """Return a heading as a rendering spells it, so that two spellings of a category are one section."""
    if fold(heading).lower() == ON_TRIAL.lower():
        return ON_TRIAL
    return heading_of(category_of(heading))


def _fold_heading(heading: str) -> str:
    """Return a heading on one line, cut to the maximum length of a category."""
    return fold(fold(heading)[:TITLE_LIMIT])


def _is_whole(learning: Learning) -> bool:
    """Return whether the observation is the full text of a person's bullet, and the title is only its start."""
    text = learning.observation
    return learning.origin == "person" and bool(text) and fold(text) == text and _make_title(text) == learning.title


def _make_title(text: str) -> str:
    return cut_title(first_sentence(text))
