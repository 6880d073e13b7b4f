"""Learn with a model, one call for a task: what it is asked, and what is taken from its answer.

Pure: the caller makes the call. Everything that goes into the prompt is foreign and stands fenced, as data. Of the
answer nothing is believed: each change is read by itself, so that a malformed one costs no other, and every limit that
the prompt asks for is held here again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from string import Template
from typing import Any

from learnt.llm.schema import check
from learnt.model import DISCOVERIES, PARAGRAPHS, TITLE_LIMIT, Discovery, Learning, Value
from learnt.text.clean import clean, fold
from learnt.text.fence import fenced, harmless
from learnt.text.titles import sameness

TEMPLATE = "extract"
TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prompts")
ADD, REVISE, KEEP, REMOVE = "ADD", "REVISE", "KEEP", "REMOVE"
MOST_ADDED = 3
MOST_WORDS = 20
MOST_TAGS = 5

_FENCE = "quoted"
_LONGEST_LINE = 300
_LONGEST_TASK = 4_000
_LONGEST_FINDING = 400
_MOST_FINDINGS = 10
_MOST_NEAREST = 20
_MOST_CHANGES = 50
# How many sentences each text may have at most.
_SENTENCES = {"title": 1, "context": 2, "observation": 3, "implication": 2, "action": 2, "reason": 2}
_WORDS = ("domain", "category")
_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[\"'(`\[]?[^\Wa-z])")
_BLANK_LINES = re.compile(r"\n{3,}")
_DIVIDER = re.compile(r"^---[ \t]*$", re.MULTILINE)

_CHANGE: Mapping[str, Any] = {
    "type": "object",
    "required": ["do"],
    "properties": {
        "do": {"type": "string", "enum": [ADD, REVISE, KEEP, REMOVE]},
        "id": {"type": "string", "description": "of a known learning; not for ADD"},
        "type": {"type": "string", "enum": list(DISCOVERIES)},
        "title": {"type": "string", "maxLength": TITLE_LIMIT},
        **{field: {"type": "string", "maxLength": _LONGEST_LINE} for field in PARAGRAPHS},
        "tags": {"type": "array", "maxItems": MOST_TAGS, "items": {"type": "string", "maxLength": TITLE_LIMIT}},
        **{field: {"type": "string", "maxLength": TITLE_LIMIT} for field in _WORDS},
        "reason": {"type": "string", "maxLength": _LONGEST_LINE},
    },
}
# The reference speaks to the model alone: checked with the whole, one malformed change would discard all others.
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["changes"],
    "properties": {"changes": {"type": "array", "items": {"$ref": "#/$defs/change"}}},
    "$defs": {"change": _CHANGE},
}


class Proposed(Value):
    """A change that a model proposes; of a revision, empty fields stay as they are."""

    do: str
    id: str = ""
    type: str = ""
    title: str = ""
    context: str = ""
    observation: str = ""
    implication: str = ""
    action: str = ""
    tags: tuple[str, ...] = ()
    domain: str = ""
    category: str = ""
    reason: str = ""


class Changes(Value):
    """What an answer proposes, and why parts of it are not taken."""

    changes: tuple[Proposed, ...] = ()
    skipped: tuple[str, ...] = ()


def extraction_request(
    *,
    task_title: str,
    task_text: str,
    task_type: str,
    result: str,
    material: str,
    findings: Sequence[Discovery],
    nearest: Sequence[Learning],
    template: str,
) -> tuple[str, str, Mapping[str, Any]]:
    """Return the system text, the prompt and the schema that ask for what a task taught.

    The template's part above the first line `---` is the system text; without such a line there is none.
    """
    parts = {
        "task": _fenced("task", f"{fold(task_title)}\n\n{clean(task_text)}".strip()[:_LONGEST_TASK]),
        "type": _word(task_type),
        "result": _word(result),
        "material": _fenced("material", clean(material)),
        "findings": _listed("What rules found in it, as hints", "findings", [_hint(found) for found in findings]),
        "nearest": _listed("Learnings that are known already", "known", [_known(learning) for learning in nearest]),
        "most_added": str(MOST_ADDED),
        "most_words": str(MOST_WORDS),
    }
    above, divider, below = _divided(template)
    system, prompt = (above, below) if divider else ("", above)
    return _filled(system, parts), _filled(prompt, parts), SCHEMA


def read_changes(data: object, *, known_ids: Collection[str]) -> Changes:
    """Return the changes that can be taken from an answer; each of the others is named with its reason."""
    entries = data.get("changes") if isinstance(data, Mapping) else None
    if not isinstance(entries, list):
        return Changes(skipped=("the answer has no list of changes",))
    taken: list[Proposed] = []
    skipped: list[str] = []
    for place, entry in enumerate(entries[:_MOST_CHANGES]):
        change = _read(entry, f"changes[{place}]")
        flaw = change if isinstance(change, str) else _refused(change, taken, known_ids)
        if isinstance(change, str) or flaw:
            skipped.append(f"change {place + 1}: {flaw}")
        else:
            taken.append(change)
    if len(entries) > _MOST_CHANGES:
        skipped.append(f"{len(entries) - _MOST_CHANGES} more changes were not read")
    return Changes(changes=tuple(taken), skipped=tuple(skipped))


def _read(entry: object, path: str) -> Proposed | str:
    """Return a change with its texts cut to what is allowed, or what is malformed in it."""
    if not isinstance(entry, Mapping):
        return "it is no object"
    fields = {name: _trimmed(name, value) for name, value in entry.items() if value is not None}
    fields = {name: value for name, value in fields.items() if name in Proposed.fields and value not in ("", [])}
    flaw = check(fields, _CHANGE, path)
    return f"it is malformed: {flaw}" if flaw else Proposed(**{**fields, "tags": tuple(fields.get("tags", ()))})


def _trimmed(name: str, value: Any) -> Any:
    if name == "tags" and isinstance(value, list) and all(isinstance(tag, str) for tag in value):
        tags = (fold(tag[:_LONGEST_LINE]).lower().removeprefix("#")[:TITLE_LIMIT] for tag in value)
        return list(dict.fromkeys(tag for tag in tags if tag))[:MOST_TAGS]
    if not isinstance(value, str):
        return value
    if name in _SENTENCES:
        return _line(value, _SENTENCES[name], TITLE_LIMIT if name == "title" else _LONGEST_LINE)
    text = fold(value[: 10 * TITLE_LIMIT])[:TITLE_LIMIT]
    return {"do": text.upper(), "type": text.lower()}.get(name, text)


def _refused(change: Proposed, taken: Sequence[Proposed], known_ids: Collection[str]) -> str:
    """Return why a change that can be read is not taken; nothing when it is."""
    if change.do != ADD:
        if change.id not in known_ids:
            return f"{change.do} names no known learning" + (f": `{change.id}`" if change.id else "")
        if any(change.id == other.id for other in taken):
            return f"`{change.id}` has a change already"
        says_nothing = not any(change.replace(do="", id="", reason="").as_dict().values())
        return "the revision changes nothing" if change.do == REVISE and says_nothing else ""
    if change.type == "dependency":
        return "a dependency belongs to its task and is no learning"
    if not change.title or not change.type:
        return f"a new learning needs a {'type' if change.title else 'title'}"
    added = [other for other in taken if other.do == ADD]
    if any(sameness(change.title) == sameness(other.title) for other in added):
        return "it is added already"
    return f"more than {MOST_ADDED} learnings for one task" if len(added) == MOST_ADDED else ""


def _line(text: str, sentences: int, limit: int) -> str:
    """Return the first sentences that fit into a line together; a first one that does not is cut."""
    first, *others = _SENTENCE_END.split(fold(text[: 10 * _LONGEST_LINE]))[:sentences]
    for sentence in others:
        longer = f"{first} {sentence}"
        if len(longer.split()) > MOST_WORDS or len(longer) > limit:
            break
        first = longer
    words = first.split()
    if len(words) <= MOST_WORDS and len(first) <= limit:
        return first
    kept = " ".join(words[:MOST_WORDS])[: limit - 1]
    whole_words = kept.rpartition(" ")[0] if len(kept) == limit - 1 else kept
    return f"{(whole_words or kept).rstrip(' ,;:')}…"


def _divided(template: str) -> tuple[str, bool, str]:
    divider = _DIVIDER.search(template)
    return (template[: divider.start()], True, template[divider.end() :]) if divider else (template, False, "")


def _filled(template: str, parts: Mapping[str, str]) -> str:
    return _BLANK_LINES.sub("\n\n", Template(template).safe_substitute(parts)).strip()


def _listed(title: str, name: str, entries: Sequence[str]) -> str:
    most = _MOST_NEAREST if name == "known" else _MOST_FINDINGS
    return f"## {title}\n\n{_fenced(name, chr(10).join(entries[:most]))}" if entries else ""


def _fenced(name: str, text: str) -> str:
    return fenced(harmless(text), name, name=_FENCE)


def _hint(found: Discovery) -> str:
    told = {"failed": found.failed, "error": found.error, "then worked": found.worked}
    more = "".join(f"; {name}: {text}" for name, text in told.items() if text)
    return f"- {found.type}: {_short(f'{found.text}{more}')}"


def _known(learning: Learning) -> str:
    action = f": {learning.action}" if learning.action else ""
    return f"- `{learning.id}` {_short(f'{learning.title}{action}')}"


def _short(text: str) -> str:
    return fold(text[: 2 * _LONGEST_FINDING])[:_LONGEST_FINDING]


def _word(text: str) -> str:
    """Return a word for use in backticks."""
    return harmless(fold(text)[:TITLE_LIMIT].replace("`", ""))
