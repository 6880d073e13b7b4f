"""Read the findings of reviews, and learn from those that an improvement closed or that come again and again.

A finding is an item of a list that names a file or code, or that says how grave it is. Two findings are the same when
they say the same but for names of files, numbers and quoted code: one that stands in two reviews is a pattern.
"""

from __future__ import annotations

import re

from learnt.mine.complaint import general
from learnt.model import Discovery, Value
from learnt.text.clean import clean, fold
from learnt.text.words import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LONGEST_REVIEW = 200_000
_MOST_FINDINGS = 100
_LONGEST = 600
_SHORTEST = 20
_ITEM = re.compile(
    r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(?P<text>.+(?:\n(?![ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]|\s*\n|#).+)*)",
    re.MULTILINE,
)
_FILE = re.compile(
    r"`?\b((?:[\w.-]+/)*[\w-]+\.(?:py|go|tsx?|jsx?|rs|java|rb|kt|cs|c|h|cpp|sql|sh|ya?ml|toml|json|"
    r"md))\b`?(?::\d+(?:-\d+)?)?"
)
_GRAVE = re.compile(
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
_SAME = 0.6
_CLOSED = 0.5


class Finding(Value):
    """One thing that a review wants changed."""

    text: str
    file: str = ""
    severity: str = ""


def findings(review: str) -> tuple[Finding, ...]:
    """Return the findings of a review, in their order."""
    found = []
    for item in _ITEM.finditer(clean(review[:_LONGEST_REVIEW])):
        finding = _finding(fold(item["text"].replace("**", "")))
        if finding is not None:
            found.append(finding)
        if len(found) >= _MOST_FINDINGS:
            break
    return tuple(found)


def observe_reviews(review: str, improvement: str) -> Iterator[Discovery]:
    """Yield the findings of a review that the improvement says it has closed, with what closed them."""
    lines = [fold(line) for line in clean(improvement[:_LONGEST_REVIEW]).split("\n") if len(fold(line)) >= _SHORTEST]
    for finding in findings(review):
        sign = _sign(finding.text)
        closing = max(lines, key=lambda line: _overlap(sign, line), default="")
        if sign and _overlap(sign, closing) >= _CLOSED:
            yield _discovery(finding, "constraint", worked=general(closing)[:_LONGEST])


def recurring(findings_by_review: Sequence[Sequence[Finding]]) -> Iterator[Discovery]:
    """Yield the findings that at least two reviews have, each once."""
    told: list[frozenset[str]] = []
    for place, review in enumerate(findings_by_review):
        for finding in review:
            sign = _sign(finding.text)
            if not sign or any(_alike(sign, known) for known in told):
                continue
            again = sum(
                any(_alike(sign, _sign(other.text)) for other in later) for later in findings_by_review[place + 1 :]
            )
            if again:
                told.append(sign)
                yield _discovery(finding, "pattern", error=f"found in {again + 1} reviews")


def _finding(text: str) -> Finding | None:
    file, grave = _FILE.search(text), _GRAVE.search(text[:60])
    if len(text) < _SHORTEST or _NO_FINDING.match(text) or not (file or grave):
        return None
    severity = next((name for name, sign in _SEVERITY if grave and re.search(sign, grave[0], re.IGNORECASE)), "")
    return Finding(text=text[:_LONGEST], file=file[1] if file else "", severity=severity)


def _discovery(finding: Finding, type: str, *, worked: str = "", error: str = "") -> Discovery:
    text = general(_LABEL.sub("", finding.text)).strip(" -–—:")
    return Discovery(
        type=type,
        rule="review",
        text=text[:1].upper() + text[1:],
        error=error,
        worked=worked,
        excerpt=finding.text,
        files=(finding.file,) if finding.file else (),
    )


def _sign(text: str) -> frozenset[str]:
    """Return the words that say what a finding is about, without the names of the place."""
    return frozenset(words(_DETAILS.sub(" ", _LABEL.sub("", text))))


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= max(_SAME * len(one | other), 3)


def _overlap(sign: frozenset[str], line: str) -> float:
    """Return how much of a finding a line speaks of."""
    return len(sign & set(words(line))) / max(len(sign), 1)
