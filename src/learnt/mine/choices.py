"""Find what an agent decided and what its work depended on.

    a decision     a choice that the agent made, named and with its reason           rule `choice`
    a dependency   what has to be there first: a program or module that an attempt   rule `need`
                   lacked, or other work that the agent says it waits for

A choice without a reason says nothing to who was not there. A dependency holds for its task only: it is kept as a
finding, and never becomes a learning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from learnt.debrief.own_words import own_words
from learnt.debrief.wording import introduces_foreign
from learnt.mine.complaint import find_error, find_missing_program, generalise
from learnt.mine.passages import read_passages
from learnt.mine.rating import names_something
from learnt.model import TEXT_LIMIT, Discovery, Failure
from learnt.text.clean import clean, fold

_MAX_TEXT_LENGTH = 100_000
_MAX_FOUND = 3
_REASON = (
    r"\b(?:because|since|so that|as (?:it|the|we|they|this|that)|due to|to avoid|which (?:avoids|keeps|lets|allows))\b"
)
_DECIDED = re.compile(
    r"^(?:(?:i|we)(?:['’]ve| have)? (?:also |therefore |finally )?)?"
    r"(?:decided|chose|opted|agreed|settled|preferred|picked|went)\b(?P<rest>.+)$",
    re.IGNORECASE,
)
_TO = re.compile(r"^ (?:to|on using|for using) (?P<what>.+)$", re.IGNORECASE)
_FOR = re.compile(r"^ (?:for|on|with) (?P<what>.+)$", re.IGNORECASE)
_WAITS = re.compile(
    r"\b(?:depends on|is blocked (?:by|until|on)|(?:must|has to|have to|needs to|can only) (?:wait|be done|start|run) "
    r"(?:for|until|after|once)|waits for|(?:needs|requires) .{3,80} (?:first|to be (?:merged|deployed|released|"
    r"finished|done|published)))\b",
    re.IGNORECASE,
)
_WORK = re.compile(
    r"\btask_[0-9a-z]+\b|\b(?:task|ticket|issue|branch|pull request|pr|migration|release|deployment|service|access|"
    r"credentials?|token|key|review|approval|upgrade|package|library|version)\b",
    re.IGNORECASE,
)


def observe_choices(text: str) -> Iterator[Discovery]:
    """Yield the choices that an agent reports in its own words, and the other work that it says it waits for."""
    text = clean(text[:_MAX_TEXT_LENGTH])
    found = []
    for passage in read_passages(text, own_words(text)):
        if not introduces_foreign(passage.intro):
            found += [discovery for sentence in passage.sentences if (discovery := _read_sentence(sentence))]
    yield from found[:_MAX_FOUND]


def observe_need(earlier: Failure) -> Discovery | None:
    """Return the program or module that a failed attempt lacked, after a later one had what it needed; or None."""
    name = find_missing_program(earlier.error) or find_missing_program(earlier.reason)
    if not name:
        return None
    error = generalise(find_error(earlier.error) or fold(earlier.reason))[:200]
    text = f"The task needs `{name}`"
    return Discovery(type="dependency", rule="need", text=text, failed=name, error=error, attempt=earlier.attempt)


def _read_sentence(sentence: str) -> Discovery | None:
    decided = _DECIDED.match(sentence)
    if decided and re.search(_REASON, sentence, re.IGNORECASE) and names_something(sentence):
        return Discovery(type="decision", rule="choice", text=_say_choice(decided), excerpt=sentence[:TEXT_LIMIT])
    if _WAITS.search(sentence) and _WORK.search(sentence) and not sentence.endswith("?"):
        return Discovery(type="dependency", rule="need", text=sentence[:TEXT_LIMIT], excerpt=sentence[:TEXT_LIMIT])
    return None


def _say_choice(decided: re.Match[str]) -> str:
    """Return a choice as what to do: `Use X because …` for `I decided to use X because …`."""
    rest = decided["rest"]
    match = _TO.match(rest)
    if match:
        what = match["what"]
        return what[:1].upper() + what[1:]
    match = _FOR.match(rest)
    return f"Use {match['what']}" if match else f"Use{rest}"
