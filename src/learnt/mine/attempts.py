"""Find what closed a failed attempt: what a check demanded, and how a later attempt at the same task fulfilled it."""

from __future__ import annotations

import re

from learnt.mine.complaint import find_error, generalise
from learnt.mine.demands import find_whole_rule, is_test_run, read_demands, split_clauses
from learnt.mine.lessons import observe_words
from learnt.model import TITLE_LIMIT, Discovery, Failure
from learnt.text.clean import clean, fold
from learnt.text.sentences import read_sentences
from learnt.text.verbs import base_of, is_past

_MAX_TEXT_LENGTH = 100_000
_NAME = re.compile(
    r"`[^`\n]{2,60}`|\b[\w-]+/[\w./-]+|\b[\w-]+\.(?:py|go|ts|tsx|js|rs|java|rb|md|toml|yaml|yml|json|sh|sql|c|h)\b"
)
_QUOTED = re.compile(r"['\"][\w.-]{3,40}['\"]")
_DID = re.compile(r"^(?:i (?:have )?)?([a-z]+)\b", re.IGNORECASE)
_TALK = re.compile(r"\?|\b(?:let me|i'll|i will|shall i|want me to|would you)\b", re.IGNORECASE)


def observe_attempts(earlier: Failure, *, summary: str, said: str) -> Discovery | None:
    """Return what a check demanded and how it was fulfilled, after a later attempt at the same task has passed.

    None if neither a rule nor a fix is found: that a check failed and then passed teaches nothing.

    `summary` is the later attempt's summary, and `said` is its whole output.
    """
    demand = next(iter(read_demands(earlier.error)), None)
    complaint = demand.message if demand else find_error(earlier.error) or fold(earlier.reason)
    names = _list_names(complaint) or _list_names(" ".join(earlier.files))
    fix = _find_fix(summary, said, names)
    is_norm = demand is not None and (demand.is_rule or not is_test_run(earlier.error))
    rule = find_whole_rule(demand) if demand and is_norm else ""
    if not complaint or not (fix or rule):
        return None
    error = generalise(complaint)[:200].rstrip(" .")
    starts = (f"{fix.rstrip('.')}: otherwise the check says “{said}”" for said in (error, *split_clauses(error)[:1]))
    return Discovery(
        type="blocker",
        rule="verification",
        text=rule or next((text for text in starts if len(text) <= TITLE_LIMIT), fix),
        failed=fold(earlier.tried)[:200] or "the verification",
        error=error,
        worked=fix,
        excerpt=fold(summary or said)[:1_000],
        files=earlier.files,
        task=earlier.task,
        attempt=earlier.attempt,
    )


def _list_names(text: str) -> set[str]:
    """Return the files, commands and names that a text mentions."""
    return {name.strip("`'\"").rpartition("/")[2] for name in (*_NAME.findall(text), *_QUOTED.findall(text))}


def _find_fix(summary: str, said: str, names: set[str]) -> str:
    """Return the sentence that says how an error was fixed: a lesson, or a sentence that mentions one of the names."""
    texts = [clean(own) for own in (summary, said[-_MAX_TEXT_LENGTH:])]
    for text in texts:
        for lesson in observe_words(text):
            return lesson.text
    for sentence in (sentence.text for text in texts for sentence in read_sentences(text)):
        did = _DID.match(sentence)
        if did and is_past(did[1]) and not _TALK.search(sentence) and any(name in sentence for name in names):
            return generalise(base_of(did[1]).capitalize() + sentence[did.end() :])
    return ""
