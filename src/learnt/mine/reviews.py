"""Read the findings in reviews, and learn from findings that were fixed or that recur.

A finding is a list item that mentions a file or states a severity. Two findings are the same if they differ only in
file names, numbers and quoted code. A finding that is in two reviews is a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from learnt.mine.complaint import generalise
from learnt.model import Discovery, Value
from learnt.text.clean import clean, fold
from learnt.text.words import words

_MAX_REVIEW_LENGTH = 200_000
_MAX_FINDINGS = 100
_MAX_FINDING_LENGTH = 600
_MIN_FINDING_LENGTH = 20
_ITEM = re.compile(
    r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(?P<text>.+(?:\n(?![ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]|\s*\n|#).+)*)",
    re.MULTILINE,
)
_FILE = re.compile(
    r"`?\b((?:[\w.-]+/)*[\w-]+\.(?:py|go|tsx?|jsx?|rs|java|rb|kt|cs|c|h|cpp|sql|sh|ya?ml|toml|json|"
    r"md))\b`?(?::\d+(?:-\d+)?)?"
)
_SEVERITY_WORD = re.compile(
    r"\b(must[- ]fix|blocker|blocking|critical|high|major|medium|moderate|minor|low|nit|severity|bug|security)\b",
    re.IGNORECASE,
)
_SEVERITY = (
    ("must-fix", "must fix|must-fix|blocker|blocking|critical|security"),
    ("high", "high|major|bug"),
    ("low", "minor|low|nit"),
)
_NO_FINDING = re.compile(
    r"^(?:no (?:issues|findings|problems)|looks good|lgtm|approved?|all good|none\b|✅|verified|confirmed|\[x\])",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"^(?:\W*+(?:must[- ]fix|blocker|blocking|critical|high|major|medium|moderate|minor|low|nit|bug|security|"
    r"severity)\b[^\w`]*+)++",
    re.IGNORECASE,
)
_DETAILS = re.compile(r"`[^`]*`|\"[^\"]*\"|\b[\w./-]+\.\w{1,5}\b(?::\d+)*|\d+")
_MIN_SHARED_WORDS = 0.6
_MIN_OVERLAP = 0.5


class ReviewFinding(Value):
    """Something that a review wants changed."""

    text: str
    file: str = ""
    severity: str = ""


def read_findings(review: str) -> tuple[ReviewFinding, ...]:
    """Return the findings in a review, in order."""
    items = _ITEM.finditer(clean(review[:_MAX_REVIEW_LENGTH]))
    findings = (_read_finding(fold(item["text"].replace("**", ""))) for item in items)
    return tuple(islice(filter(None, findings), _MAX_FINDINGS))


def observe_reviews(review: str, improvement: str) -> Iterator[Discovery]:
    """Yield the findings in a review that the improvement reports as fixed, with the fix."""
    lines = [
        fold(line)
        for line in clean(improvement[:_MAX_REVIEW_LENGTH]).split("\n")
        if len(fold(line)) >= _MIN_FINDING_LENGTH
    ]
    for finding in read_findings(review):
        finding_words = _list_words(finding.text)
        closing = max(lines, key=lambda line: _measure_overlap(finding_words, line), default="")
        if finding_words and _measure_overlap(finding_words, closing) >= _MIN_OVERLAP:
            yield _make_discovery(finding, "constraint", worked=generalise(closing)[:_MAX_FINDING_LENGTH])


def find_recurring(findings_by_review: Sequence[Sequence[ReviewFinding]]) -> Iterator[Discovery]:
    """Yield the findings that are in at least two reviews, without duplicates."""
    yielded: list[frozenset[str]] = []
    for index, review in enumerate(findings_by_review):
        for finding in review:
            finding_words = _list_words(finding.text)
            if not finding_words or any(_are_alike(finding_words, earlier) for earlier in yielded):
                continue
            times = sum(
                any(_are_alike(finding_words, _list_words(other.text)) for other in later)
                for later in findings_by_review[index + 1 :]
            )
            if times:
                yielded.append(finding_words)
                yield _make_discovery(finding, "pattern", error=f"found in {times + 1} reviews")


def _read_finding(text: str) -> ReviewFinding | None:
    file, severity_word = _FILE.search(text), _SEVERITY_WORD.search(text[:60])
    if len(text) < _MIN_FINDING_LENGTH or _NO_FINDING.match(text) or not (file or severity_word):
        return None
    severity = next(
        (name for name, pattern in _SEVERITY if severity_word and re.search(pattern, severity_word[0], re.IGNORECASE)),
        "",
    )
    return ReviewFinding(text=text[:_MAX_FINDING_LENGTH], file=file[1] if file else "", severity=severity)


def _make_discovery(finding: ReviewFinding, type: str, *, worked: str = "", error: str = "") -> Discovery:
    text = generalise(_LABEL.sub("", finding.text)).strip(" -–—:")
    return Discovery(
        type=type,
        rule="review",
        text=text[:1].upper() + text[1:],
        error=error,
        worked=worked,
        excerpt=finding.text,
        files=(finding.file,) if finding.file else (),
    )


def _list_words(text: str) -> frozenset[str]:
    """Return the words in a finding, without files, numbers and code."""
    return frozenset(words(_DETAILS.sub(" ", _LABEL.sub("", text))))


def _are_alike(first: frozenset[str], second: frozenset[str]) -> bool:
    return len(first & second) >= max(_MIN_SHARED_WORDS * len(first | second), 3)


def _measure_overlap(finding_words: frozenset[str], line: str) -> float:
    """Return the share of a finding's words that are in a line."""
    return len(finding_words & set(words(line))) / max(len(finding_words), 1)
