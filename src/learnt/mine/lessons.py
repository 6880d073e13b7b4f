"""Find lessons in an agent's own words: what holds beyond the task, in natural language.

Each paragraph and list item states one lesson at most (`passages`), and a text three: the best ones. Quotations, and
what a line such as `The README says:` introduces, are not the agent's own words and teach nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from learnt.debrief.own_words import own_words
from learnt.debrief.wording import introduces_foreign
from learnt.mine.passages import MIN_ODDS, Lesson, Passage, announces_lessons, find_lesson, is_discussion, read_passages
from learnt.mine.rating import names_something
from learnt.mine.references import strip_announcement
from learnt.mine.sentence_model import FINALS, rate
from learnt.model import Discovery
from learnt.text.clean import clean

_MAX_TEXT_LENGTH = 100_000
_MAX_LESSONS = 3
_DISCUSSION = 2.0  # what a text that reports no work explains is mostly about the work at hand
_HOME = re.compile(r"(?:/Users|/home)/[^/\s'\"`:]+(?=/)")


def observe_words(text: str) -> Iterator[Discovery]:
    """Yield the lessons that an agent states in its own words, in their order; of many, the best."""
    text = clean(text[:_MAX_TEXT_LENGTH])
    own = [passage for passage in read_passages(text, own_words(text)) if not _is_foreign(passage.intro)]
    least = MIN_ODDS + _DISCUSSION * is_discussion(own)
    found = (find_lesson(passage, least=least) for passage in _add_odds(own))
    named = [lesson for lesson in found if lesson and names_something(lesson.observation)]
    distinct = list({lesson.title.casefold(): lesson for lesson in reversed(named)}.values())[::-1]
    worst = sorted((lesson.rating for lesson in distinct), reverse=True)[:_MAX_LESSONS][-1:]
    best = [lesson for lesson in distinct if lesson.rating >= worst[0]]
    yield from map(_as_discovery, best[:_MAX_LESSONS])


def _add_odds(passages: Sequence[Passage]) -> Iterator[Passage]:
    """Yield the passages with the odds of their sentences, which also depend on the sentences around them."""
    sentences = ["", *(sentence for passage in passages for sentence in passage.sentences), ""]
    odds = [
        max(rate(FINALS, text, before=before, after=after) for text in {sentence, strip_announcement(sentence)[0]})
        for before, sentence, after in zip(sentences, sentences[1:], sentences[2:], strict=False)
    ]
    first = 0
    for passage in passages:
        last = first + len(passage.sentences)
        yield passage.replace(odds=tuple(odds[first:last]))
        first = last


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
