"""Find lessons in an agent's own words: what holds beyond the task, in natural language.

Each paragraph and list item states one lesson at most (`passages`), and a text three: the best ones. Quotations, and
what a line such as `The README says:` introduces, are not the agent's own words and teach nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from learnt.debrief.own_words import own_words
from learnt.debrief.wording import introduces_foreign
from learnt.mine.passages import Lesson, add_odds, announces_lessons, find_lesson, is_discussion, read_passages
from learnt.mine.rating import names_something
from learnt.mine.sentence_model import FINALS
from learnt.model import Discovery
from learnt.text.clean import clean

_MAX_TEXT_LENGTH = 100_000
_MAX_LESSONS = 3
# Rules and model together must be this sure, and the rules alone: what a text that reports no work explains is mostly
# about the work at hand, which the model cannot know.
_MIN_RATING, _MIN_BY_RULES, _MIN_IN_DISCUSSION = 3.5, 2.0, 5.5
_HOME = re.compile(r"(?:/Users|/home)/[^/\s'\"`:]+(?=/)")


def observe_words(text: str) -> Iterator[Discovery]:
    """Yield the lessons that an agent states in its own words, in their order; of many, the best."""
    text = clean(text[:_MAX_TEXT_LENGTH])
    own = [passage for passage in read_passages(text, own_words(text)) if not _is_foreign(passage.intro)]
    by_rules = _MIN_IN_DISCUSSION if is_discussion(own) else _MIN_BY_RULES
    found = (find_lesson(passage, least=_MIN_RATING, by_rules=by_rules) for passage in add_odds(own, FINALS))
    named = [lesson for lesson in found if lesson and names_something(lesson.observation)]
    distinct = list({lesson.title.casefold(): lesson for lesson in reversed(named)}.values())[::-1]
    worst = sorted((lesson.rating for lesson in distinct), reverse=True)[:_MAX_LESSONS][-1:]
    best = [lesson for lesson in distinct if lesson.rating >= worst[0]]
    yield from map(_as_discovery, best[:_MAX_LESSONS])


def _is_foreign(intro: str) -> bool:
    return introduces_foreign(intro) and not announces_lessons(intro)


def _as_discovery(lesson: Lesson) -> Discovery:
    return Discovery(
        type="pattern" if lesson.is_order else "constraint",
        rule="words",
        text=_hide_home(lesson.title),
        worked=_hide_home(lesson.action),
        excerpt=_hide_home(lesson.observation),
    )


def _hide_home(text: str) -> str:
    """Return a text without the names of home folders, which differ from person to person."""
    return _HOME.sub("~", text)
