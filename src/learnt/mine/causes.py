"""Find the sentence in which an agent says why a call failed, between the failure and what worked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from learnt.text.sentences import is_whole, read_sentences

_MAX_LENGTH = 240
_MIN_WORDS = 4
_PLAN = re.compile(
    r"(?:[,;:]|\s[–—-])\s+(?:(?:so|and|then|but|therefore)\s+)?(?:I|I'll|I'm|we|we'll|let|let's)\b", re.I
)
_NO_CAUSE = re.compile(
    r"(?:I|I'll|I've|I'm|we|we'll|let|let's|now|first|next|then|ok|okay|good|great|perfect|done|fixed|looks?|seems?|"
    r"try|trying|running|checking|once more|hmm|yes|no|all|both|as expected|sorry|my|that's)\b|"
    r".*\b(?:probably|maybe|perhaps|might|could|apparently|I think|unrelated|my changes?)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[a-z][a-z0-9_-]{2,}")


def find_cause(messages: Sequence[str], topics: Iterable[str]) -> str:
    """Return the first fact about one of the topics in the last message that states one; empty if there is none."""
    known = set(_WORD.findall(" ".join(topics).lower()))
    for message in reversed(messages):
        causes = [cause for cause in map(_cut_plan, _list_sentences(message)) if _is_cause(cause)]
        about = [cause for cause in causes if known & set(_WORD.findall(cause.lower()))]
        if about:
            return about[0]
    return ""


def _list_sentences(message: str) -> list[str]:
    return [sentence.text for sentence in read_sentences(message)]


def _cut_plan(sentence: str) -> str:
    """Return a sentence without the clause in which the agent says what it does next."""
    plan = _PLAN.search(sentence)
    return f"{sentence[: plan.start()].rstrip(' ,;:')}." if plan else sentence


def _is_cause(sentence: str) -> bool:
    return (
        len(sentence) <= _MAX_LENGTH
        and len(sentence.split()) >= _MIN_WORDS
        and sentence.endswith((".", "!"))
        and not _NO_CAUSE.match(sentence)
        and is_whole(sentence)
    )
