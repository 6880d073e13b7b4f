"""Convert a learning to a line of the file, and a line to a learning's fields.

A line is a statement, and the action after an arrow: `Start Redis before the tests → Run make redis`. The statement of
an agent's learning is its title; a person's line comes back in full: `line_of(Learning(**fields_of(line), …))` is the
folded line. The action is shown if it is short and says more than the statement, and if there is room in the file. So
two lines are compared part by part: a person who did not see or did not change the action has not edited it.
"""

from __future__ import annotations

import re

from learnt.model import AVOID, TITLE_LIMIT, Learning
from learnt.text.clean import fold
from learnt.text.titles import cut_title, first_sentence, line_key
from learnt.text.words import words

GENERAL = "General"
ON_TRIAL = "On trial"
"""The heading of the learnings that nobody vouches for; it is not a category."""
ARROW = " → "
_MAX_ACTION_LENGTH = 160
ID_COMMENT = re.compile(r"<!--\s*(learn_[A-Za-z0-9]+)\s*-->")
_WORD = re.compile(r"[\w']+")
_NEGATIONS = set("not never no don't doesn't isn't avoid without cannot can't stop removed".split())
_NAME = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")


def line_of(learning: Learning) -> str:
    """Return the text of the learning's bullet, with its action."""
    statement, action = statement_of(learning), _show_action(learning)
    return f"{statement}{ARROW}{action}" if action else statement


def statement_of(learning: Learning) -> str:
    """Return the text of the learning's bullet without its action."""
    text = learning.observation if _is_whole(learning) else learning.title
    return learning.advise(text)


def split_line(line: str) -> tuple[str, str]:
    """Return the statement and the action of a line; the action is empty if there is no arrow."""
    statement, _, action = line.partition(ARROW)
    return statement, action


def fields_of_rendering(line: str) -> dict[str, str]:
    """Return a learning's fields from a bullet that another store's file shows, with its action."""
    text = fold(line)
    statement, action = split_line(text)
    fields = {**fields_of(statement), "action": action} if action else {}
    is_whole = bool(fields) and line_of(Learning(id="learn_1", **fields)) == text  # type: ignore[arg-type]
    return fields if is_whole else fields_of(text)


def fields_of(line: str) -> dict[str, str]:
    """Return a learning's fields from a person's bullet."""
    text = fold(line)
    title = _make_title(text)
    return {"title": title} if title == text else {"title": title, "observation": text, "origin": "person"}


def edit_fields(learning: Learning, line: str, *, seen: str | None = None) -> dict[str, str]:
    """Return the fields to change so that the learning's bullet has this text.

    `seen` is the text that the person edited: a part that is as it was seen is not changed, even if it is not the
    present one any more. If it is not known, a missing action is not an edit. If a person only rewords the title, the
    agent's observation stays. A longer text replaces the observation, and the learning is then the person's.
    """
    text, present = fold(line), drop_ids(line_of(learning))
    if text in (seen, present):
        return {}
    if ARROW not in (text if seen is None else seen) or (seen is None and not learning.action):
        return _edit_statement(learning, text)
    (statement, action), (old_statement, old_action) = split_line(text), split_line(seen or present)
    changes = _edit_statement(learning, statement) if statement != old_statement and statement else {}
    if action not in (old_action, learning.action):
        changes["action"] = action
    if seen in (None, present) and drop_ids(line_of(learning.replace(**changes))) != text:
        # The parts cannot be told apart any more, so the whole line becomes the statement.
        return {**_edit_statement(learning, text), "action": ""}
    return changes


def _edit_statement(learning: Learning, text: str) -> dict[str, str]:
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


def _show_action(learning: Learning) -> str:
    """Return the action, or its first sentence if it is long; empty if a line would not gain from it."""
    action = fold(learning.action)
    if len(action) > _MAX_ACTION_LENGTH:
        action = first_sentence(action)
    statement = statement_of(learning)
    is_clear = ARROW not in f"{statement} " and drop_ids(action) == action
    is_short = 0 < len(action) <= _MAX_ACTION_LENGTH
    return action if is_clear and is_short and not set(words(action)) <= set(words(statement)) else ""


def _is_whole(learning: Learning) -> bool:
    """Return whether the observation is the full text of a person's bullet, and the title is only its start."""
    text = learning.observation
    return learning.origin == "person" and bool(text) and fold(text) == text and _make_title(text) == learning.title


def _make_title(text: str) -> str:
    return cut_title(first_sentence(text))
