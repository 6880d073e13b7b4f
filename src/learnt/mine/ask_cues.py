"""Ask a model for cues: the request for a batch of learnings, and what is accepted of the answer.

Everything in the prompt is untrusted and fenced as data. The answer is untrusted, too: each learning's cues are checked
on their own, and every limit in the prompt is enforced here again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Template
from typing import Any

from learnt.mine.situations import list_useful
from learnt.model import CUE_LIMIT, TITLE_LIMIT, Learning, Value
from learnt.text.clean import fold
from learnt.text.fence import fenced, harmless
from learnt.text.redact import redact_line

TEMPLATE = "cues"
PER_CALL = 20
MIN_CUES, MAX_CUES = 3, CUE_LIMIT
MAX_WORDS = 14
_MIN_WORDS = 2
_TOKENS_EACH, _TOKENS_AROUND = 130, 200
_MAX_TEXT = 400
_MAX_ANSWERED = 500
_FENCE = "quoted"
_DIVIDER = "\n---\n"
_ENTRY: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "when": {"type": "array", "items": {"type": "string", "maxLength": TITLE_LIMIT}},
    },
}
# The reference is for the model only and is not checked, so that one malformed entry does not discard the answer.
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["cues"],
    "properties": {"cues": {"type": "array", "items": {"$ref": "#/$defs/entry"}}},
    "$defs": {"entry": _ENTRY},
}


class CueAnswer(Value):
    """The accepted cues by learning, and why some learnings get none."""

    accepted: Mapping[str, tuple[str, ...]]
    refused: Mapping[str, str]


def make_request(learnings: Sequence[Learning], *, template: str) -> tuple[str, str, Mapping[str, Any], int]:
    """Return the system text, the prompt, the schema and the most tokens of an answer for a batch of learnings."""
    parts = {
        "learnings": fenced(harmless("\n".join(map(_format, learnings))), "learnings", name=_FENCE),
        "least_cues": str(MIN_CUES),
        "most_cues": str(MAX_CUES),
        "most_words": str(MAX_WORDS),
    }
    above, divider, below = template.partition(_DIVIDER)
    system, prompt = (above, below) if divider else ("", above)
    texts = [Template(text).safe_substitute(parts).strip() for text in (system, prompt)]
    return texts[0], texts[1], SCHEMA, _TOKENS_AROUND + _TOKENS_EACH * len(learnings)


def read_answer(data: object, learnings: Sequence[Learning]) -> CueAnswer:
    """Return what is accepted of an answer; each learning is accepted or refused."""
    entries = data.get("cues") if isinstance(data, Mapping) else None
    answered: dict[str, Any] = {}
    for entry in entries[:_MAX_ANSWERED] if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("id"), str):
            answered.setdefault(entry["id"], entry.get("when"))
    accepted, refused = {}, {}
    for learning in learnings:
        cues = _accept(answered[learning.id], learning) if learning.id in answered else None
        if cues is None:
            refused[learning.id] = "the answer has no entry for it"
        elif len(cues) < MIN_CUES:
            refused[learning.id] = f"only {len(cues)} of its cues can be used; {MIN_CUES} are needed"
        else:
            accepted[learning.id] = cues
    return CueAnswer(accepted=accepted, refused=refused)


def _accept(value: object, learning: Learning) -> tuple[str, ...]:
    """Return the cues that are short, without secrets and markup, and neither the title nor repetitions."""
    stated = value if isinstance(value, list) else []
    cues = (fold(cue[: 2 * TITLE_LIMIT]).strip(" \"“”'`-•*") for cue in stated if isinstance(cue, str))
    return tuple(list_useful((cue for cue in cues if _is_usable(cue, learning)), learning)[:MAX_CUES])


def _is_usable(cue: str, learning: Learning) -> bool:
    is_short = len(cue) <= TITLE_LIMIT and _MIN_WORDS <= len(cue.split()) <= MAX_WORDS
    return is_short and not redact_line(cue, TITLE_LIMIT)[1] and "<" not in cue and learning.id not in cue


def _format(learning: Learning) -> str:
    """Return a learning on one line."""
    said = " ".join(filter(None, (learning.observation, learning.action)))
    text = f"{learning.advise(learning.title)}{f': {said}' if said else ''}"
    return f"- `{learning.id}` {fold(text[: 2 * _MAX_TEXT])[:_MAX_TEXT]}"
