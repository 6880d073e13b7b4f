"""Ask a model how pairs of learnings relate: the request, and what is accepted of the answer.

Everything in the prompt is untrusted and fenced as data, and so is the answer: each verdict is checked on its own and
passes the checks of `overlap`. A verdict of a model is an estimate. What is missing or invalid changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from string import Template
from typing import Any

from learnt.consolidate.overlap import LearningContent, may_be_related, may_repeat
from learnt.model import PARAGRAPHS, Learning, Value
from learnt.text.clean import fold
from learnt.text.fence import fenced, harmless
from learnt.text.redact import redact_line
from learnt.weigh.compare import CONTRADICTS, RELATIONS, REPEATS, SUPERSEDES, UNSURE, Verdict

TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prompts")
TEMPLATE = "overlap"
PER_CALL = 20
MAX_WORDS = 20
_TOKENS_EACH, _TOKENS_AROUND = 60, 200
_MAX_TEXT = 800
_MAX_REASON = 200
_FENCE = "quoted"
_DIVIDER = "\n---\n"
_ENTRY: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "pair": {"type": "integer"},
        "relation": {"type": "string", "enum": list(RELATIONS)},
        "reason": {"type": "string", "maxLength": _MAX_REASON},
    },
}
# The reference is for the model only and is not checked, so that one malformed entry does not discard the answer.
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["verdicts"],
    "properties": {"verdicts": {"type": "array", "items": {"$ref": "#/$defs/entry"}}},
    "$defs": {"entry": _ENTRY},
}


class JudgedPair(Value):
    """Two learnings, and how the newer one relates to the older one as far as is known without a model."""

    older: LearningContent
    newer: LearningContent
    verdict: Verdict

    @property
    def is_open(self) -> bool:
        """Whether a model may decide it: what words prove is not asked."""
        return self.verdict.is_estimate or self.verdict == UNSURE


def make_request(pairs: Sequence[JudgedPair], *, template: str) -> tuple[str, str, Mapping[str, Any], int]:
    """Return the system text, the prompt, the schema and the most tokens of an answer for some pairs."""
    lines = "\n".join(_format(number, pair) for number, pair in enumerate(pairs, start=1))
    parts = {"pairs": fenced(harmless(lines), "pairs", name=_FENCE), "most_words": str(MAX_WORDS)}
    above, divider, below = template.partition(_DIVIDER)
    system, prompt = (above, below) if divider else ("", above)
    texts = [Template(text).safe_substitute(parts).strip() for text in (system, prompt)]
    return texts[0], texts[1], SCHEMA, _TOKENS_AROUND + _TOKENS_EACH * len(pairs)


def read_answer(data: object, pairs: Sequence[JudgedPair]) -> list[Verdict]:
    """Return the verdict on each pair: the model's where it is valid and passes the checks, otherwise the known one."""
    entries = data.get("verdicts") if isinstance(data, Mapping) else None
    answered: dict[int, Mapping[str, Any]] = {}
    for entry in entries[: 2 * PER_CALL] if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and type(entry.get("pair")) is int:
            answered.setdefault(entry["pair"], entry)
    return [_accept(answered.get(number, {}), pair) for number, pair in enumerate(pairs, start=1)]


def _accept(entry: Mapping[str, Any], pair: JudgedPair) -> Verdict:
    relation, reason = entry.get("relation"), entry.get("reason")
    if not pair.is_open or relation not in RELATIONS:
        return pair.verdict
    if relation == REPEATS and not may_repeat(pair.older, pair.newer):
        return pair.verdict.estimate(
            UNSURE, "a model takes them for the same, but they differ in a specific or deny it"
        )
    if relation in (REPEATS, SUPERSEDES, CONTRADICTS) and not may_be_related(pair.older, pair.newer):
        return pair.verdict
    said = redact_line(reason, _MAX_REASON)[0] if isinstance(reason, str) else ""
    return pair.verdict.estimate(str(relation), f"a model: {said}" if said else "a model says so")


def _format(number: int, pair: JudgedPair) -> str:
    return f"{number}. older: {_read_out(pair.older.learning)}\n   newer: {_read_out(pair.newer.learning)}"


def _read_out(learning: Learning) -> str:
    """Return a learning on one line."""
    said = " ".join(filter(None, (getattr(learning, name) for name in PARAGRAPHS)))
    text = f"{learning.advise(learning.title)}{f': {said}' if said else ''}"
    return fold(text[: 2 * _MAX_TEXT])[:_MAX_TEXT]
