"""Checks and reviews that rejected something: what each of them teaches, or that it teaches nothing.

`rejections.jsonl` has a line for each case. A check is a command, what it printed, and what happened until it passed:
messages, commands and edits. `must` are the words that a learning must contain, with `|` between alternatives; without
any, the case teaches nothing. A sentence is a rule in general, or a remark on one case.
"""

from __future__ import annotations

import json
from pathlib import Path

from learnt.model import Value

Happened = tuple[str, ...]  # (message,), ("$", command) or (path, before, after)


class CheckCase(Value):
    """A check that failed, and what happened until it passed."""

    command: str
    output: str
    happened: tuple[Happened, ...]
    must: tuple[str, ...] = ()


class ReviewCase(Value):
    """The text of a review, with what was done about it."""

    text: str
    must: tuple[str, ...] = ()


_LINES = [json.loads(line) for line in Path(__file__).with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()]
CHECKS = [
    CheckCase(
        command=line["check"],
        output=line["output"],
        happened=tuple(map(tuple, line["happened"])),
        must=tuple(line["must"]),
    )
    for line in _LINES
    if "check" in line
]
REVIEWS = [ReviewCase(text=line["review"], must=tuple(line["must"])) for line in _LINES if "review" in line]
SENTENCES = {line["sentence"]: bool(line["is_rule"]) for line in _LINES if "sentence" in line}
