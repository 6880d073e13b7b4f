"""Rate how much a sentence reads like a lesson, and how much like a report of finished work.

A lesson holds beyond the task in which it was found: it is in the present, about a thing in general, and says what must
be, what does not work, under which condition, and why. A report is in the past or about `now`, says `I`, counts and
measures; plans, offers and questions speak of the future and to one person. Each of these `features` has a weight, and
so have the mood of the sentence and the names in it. The rating is their sum.
"""

from __future__ import annotations

import re
from functools import lru_cache

from learnt.mine.features import FEATURES
from learnt.model import Value
from learnt.text.verbs import is_auxiliary, is_base_form, is_foreign, is_past, is_present, list_words

CODE = "§"  # stands for code and names, so that their letters are not read as words
_MAX_LENGTH = 1_000
_CODE_SPAN = re.compile(r"(?<!`)(`++)[^`]++\1(?!`)")
# Names in plain text: paths, files, options, identifiers, constants, calls.
_NAME = re.compile(
    r"(?<![\w/])(?:[\w@.-]+/[\w@./*{}-]*\w/?|/[\w{}-]+(?:/[\w{}-]*)*|--?[a-zA-Z][\w-]+|\w+_\w+|[a-z]+[A-Z]\w*|"
    r"[A-Z][a-z]+[A-Z]\w*|[A-Z]{3,}[\w-]*|\w+\(\)|\.?\w[\w-]*\.[a-z]{1,5}(?![\w.])|@\w+)"
)
_PROPER_NOUN = re.compile(r"(?<=[\w,;)§] )[A-Z][a-z]+|\b[A-Z]{2}\b|\b[a-z]+\d[\w.]*|\bport \d+|\bversion \d")


_RULES = frozenset("demand advice prohibition limit choice order announcement".split())
_REPORTS = frozenset(
    "first person,now,perfect,plan,address,question,answer,example,dismissal,about the "
    "work,completion,past,result".split(",")
)
_DONE = frozenset("now perfect completion result".split())
REPORT_LABEL = re.compile(
    r"^(?:(?:the |quick )?fix|nothing to \w+|(?:short )?answer|(?:new|current|old) behaviou?r|to be clear|options?|"
    r"approach|bottom line|tl;dr|pr|feedback|package|plan|changed|changes|files?|tests?|summary|results?|status|done|"
    r"open|added|removed|fixed|suite|size|image|coverage|next|verified|runtime|screenshots?|also|geändert|modifié|"
    r"cambios)\b[^.]{0,20}[:.]",
    re.IGNORECASE,
)
_OPENING = (
    r"(?:(?:so|then|and|but|also|therefore|hence|thus|always|please|just|simply|instead|first|next time|"
    r"in (?:the )?future|from now on),? )*"
)
_ORDER = re.compile(
    rf"^{_OPENING}(?:(?:when|if|after|before|in|on|for|to|with|whenever|while|once|inside|under|as|at|until)\b"
    r"(?:[^,]*, |[^,]*? (?=(?:always|never|please) )))?"
    rf"{_OPENING}(?P<verb>[a-z]+)\b(?! (?:of|is|are|was|that|which|has|must|should)\b)",
    re.IGNORECASE,
)
_NEVER = re.compile(rf"^{_OPENING}(?:never (?!\w+s\b)|do not|don['’]t|avoid)\b", re.IGNORECASE)
_CONJUNCTIONS = frozenset("but so because which while when since as if that until before after".split())
_PAST_AUXILIARIES = frozenset(
    "was were had did didn't wasn't weren't couldn't wurde wurden hatte hatten war waren fue".split()
)


class Rating(Value):
    """How much a sentence reads like a lesson, and why."""

    total: float
    features: tuple[str, ...]

    @property
    def is_rule(self) -> bool:
        """Whether it says what to do, what must be, or what does not work."""
        return any(name in _RULES for name in self.features)

    @property
    def is_order(self) -> bool:
        """Whether it tells the reader what to do."""
        return any(name in ("order", "prohibition", "demand", "advice") for name in self.features)

    @property
    def is_done(self) -> bool:
        """Whether it tells what was done."""
        return any(name in _DONE for name in self.features) or {"first person", "past"} <= set(self.features)

    @property
    def is_report(self) -> bool:
        """Whether it tells what was done, or speaks to one person."""
        return any(name in _REPORTS for name in self.features)


def hide_code(sentence: str) -> str:
    """Return a sentence with a sign in place of code and names."""
    return _NAME.sub(CODE, _CODE_SPAN.sub(CODE, sentence[:_MAX_LENGTH]))


@lru_cache(maxsize=2_000)
def rate(sentence: str) -> Rating:
    """Return how much a sentence reads like a lesson; of a very long one, its beginning."""
    prose = hide_code(sentence)
    found = [(feature.name, feature.weight) for feature in FEATURES if feature.pattern.search(prose)]
    found += _rate_mood(prose)
    found += _rate_names(prose)
    return Rating(total=sum(weight for _, weight in found), features=tuple(name for name, _ in found))


def _rate_mood(prose: str) -> list[tuple[str, float]]:
    """Return the features of a sentence's verbs: an order, the present, the past."""
    if REPORT_LABEL.match(prose):
        return [("result", -3.0)]
    words, tense = list_words(prose), find_tense(prose)
    if words and is_past(words[0]) and not is_base_form(words[0]) and tense != "present":
        return [("result", -4.0)]
    if is_order(prose):
        return [("order", 2.0)]
    return [(tense, 0.5 if tense == "present" else -2.0)] if tense else []


def is_order(prose: str) -> bool:
    """Return whether a sentence, without its code, tells the reader to do something."""
    if _NEVER.match(prose):
        return True
    order = _ORDER.match(prose)
    return order is not None and is_base_form(order["verb"])


def find_tense(prose: str) -> str:
    """Return whether the first predicate of a sentence is in the `present` or in the `past`; empty if there is none.

    In “a flag shared between threads must be volatile” the first form of the past is no predicate, because another
    predicate follows in the same clause.
    """
    past = False
    for word in re.findall(r"[,;:]|\band (?:it|that|this|they|we|i|then)\b|[^\W\d_]+(?:['’][^\W\d_]+)?", prose.lower()):
        if past and (word in ",;:" or word in _CONJUNCTIONS or word.startswith("and ")):
            return "past"
        if word in _PAST_AUXILIARIES:
            return "past"
        if is_auxiliary(word) or is_present(word):
            return "present"
        past = past or is_past(word)
    return "past" if past else "present" if is_foreign(list_words(prose)) else ""


def names_something(text: str) -> bool:
    """Return whether a text names a thing: code, a file, an identifier, a product."""
    return _rate_names(hide_code(text))[0][1] > 0


def _rate_names(prose: str) -> list[tuple[str, float]]:
    """Return whether a sentence names something."""
    if CODE in prose:
        return [("name", 1.0)]
    return [("proper noun", 0.5)] if _PROPER_NOUN.search(prose) else [("no name", -1.0)]
