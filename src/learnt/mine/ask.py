"""Build the request that asks a model for the learnings from a task, and read its answer.

The caller makes the call. Everything in the prompt is untrusted and fenced as data. A long output is reduced to its
beginning, its end and the lines around errors. The answer is untrusted, too: each change is read separately, so that a
malformed change does not affect the others, and every limit in the prompt is enforced here again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, takewhile
from string import Template
from typing import Any

from learnt.llm.schema import check
from learnt.model import DISCOVERIES, PARAGRAPHS, TITLE_LIMIT, Discovery, Learning, Value
from learnt.text.clean import clean, fold
from learnt.text.fence import fenced, harmless
from learnt.text.titles import cut_title, text_key

TEMPLATE = "extract"
TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prompts")
ADD, REVISE, KEEP, REMOVE = "ADD", "REVISE", "KEEP", "REMOVE"
MAX_ADDED = 3
MAX_WORDS = 20
MAX_TAGS = 5
MAX_CUES = 4

_FENCE = "quoted"
_MAX_LINE_LENGTH = 300
_MAX_TASK_LENGTH = 4_000
_MAX_FINDING_LENGTH = 400
_MAX_FINDINGS = 12
_MAX_NEAREST = 20
_MAX_CHANGES = 50
# The maximum number of sentences in each field.
_MAX_SENTENCES = {"title": 1, "context": 2, "observation": 3, "implication": 2, "action": 2, "reason": 2}
_SINGLE_WORDS = ("domain", "category")
_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[\"'(`\[]?[^\Wa-z])")
_BLANK_LINES = re.compile(r"\n{3,}")
_DIVIDER = re.compile(r"^---[ \t]*$", re.MULTILINE)

_CHANGE_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["do"],
    "properties": {
        "do": {"type": "string", "enum": [ADD, REVISE, KEEP, REMOVE]},
        "id": {"type": "string", "description": "of a known learning; not for ADD"},
        "type": {"type": "string", "enum": list(DISCOVERIES)},
        "title": {"type": "string", "maxLength": TITLE_LIMIT},
        **{field: {"type": "string", "maxLength": _MAX_LINE_LENGTH} for field in PARAGRAPHS},
        "tags": {"type": "array", "maxItems": MAX_TAGS, "items": {"type": "string", "maxLength": TITLE_LIMIT}},
        **{field: {"type": "string", "maxLength": TITLE_LIMIT} for field in _SINGLE_WORDS},
        "when": {"type": "array", "maxItems": MAX_CUES, "items": {"type": "string", "maxLength": TITLE_LIMIT}},
        "reason": {"type": "string", "maxLength": _MAX_LINE_LENGTH},
    },
}
# The reference is for the model only and is not checked, so that one malformed change does not discard the answer.
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["changes"],
    "properties": {"changes": {"type": "array", "items": {"$ref": "#/$defs/change"}}},
    "$defs": {"change": _CHANGE_SCHEMA},
}
# The shares of the limit for the beginning and the end. The rest is for errors.
_BEGINNING_SHARE = 0.25
_END_SHARE = 0.45
_LINES_AROUND_ERROR = 2
_MIN_LINES = 10  # so many lines must fit, so a longer line is shortened
_GAP_NOTE_LENGTH = 40
_ERROR = re.compile(
    r"\b(?:error|exception|traceback|fatal|panic(?:ked)?|fail(?:ed|ure|s)?|cannot|can't|not found|denied|undefined)\b"
    r"|[a-z](?:Error|Exception)\b|^E  |--- FAIL|\bexit (?:code|status) [1-9]",
    re.IGNORECASE,
)
_NO_ERROR = re.compile(r"\b(?:0|no) (?:errors?|fail(?:ed|ures?))\b", re.IGNORECASE)
_TOOLS_RULES = ("command", "edit", "call")
_DIGITS = re.compile(r"\d+")


class ProposedChange(Value):
    """A change that a model proposes. Empty fields in a revision leave the learning unchanged."""

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
    cues: tuple[str, ...] = ()
    """Situations in which it matters; the answer calls them `when`."""
    reason: str = ""


class ProposedChanges(Value):
    """The changes that an answer proposes, and why some were skipped."""

    changes: tuple[ProposedChange, ...] = ()
    skipped: tuple[str, ...] = ()


def make_request(
    *,
    task_title: str,
    task_text: str,
    task_type: str,
    result: str,
    material: str,
    findings: Sequence[Discovery],
    nearest: Sequence[Learning],
    template: str,
    goal: str = "",
) -> tuple[str, str, Mapping[str, Any]]:
    """Return the system text, the prompt and the schema of a request.

    The part of the template above the first line `---` is the system text. Without such a line, it is empty.
    """
    parts = {
        "task": _fence_off("task", f"{fold(task_title)}\n\n{clean(task_text)}".strip()[:_MAX_TASK_LENGTH]),
        "goal": f"What it serves:\n\n{_fence_off('goal', clean(goal)[:_MAX_TASK_LENGTH])}" if goal.strip() else "",
        "type": _plain_word(task_type),
        "result": _plain_word(result),
        "material": _fence_off("material", clean(material)),
        "findings": _list_entries(
            "What rules found in it, as hints",
            "findings",
            [_format_hint(hint) for hint in sorted(findings, key=_rank_hint)[:_MAX_FINDINGS]],
        ),
        "nearest": _list_entries(
            "Learnings that are known already",
            "known",
            [_format_learning(learning) for learning in nearest[:_MAX_NEAREST]],
        ),
        "most_added": str(MAX_ADDED),
        "most_words": str(MAX_WORDS),
        "most_cues": str(MAX_CUES),
    }
    above, *below = _DIVIDER.split(template, maxsplit=1)
    system, prompt = (above, below[0]) if below else ("", above)
    return _fill(system, parts), _fill(prompt, parts), SCHEMA


def read_changes(data: object, *, known_ids: Collection[str]) -> ProposedChanges:
    """Return the accepted changes in an answer, and why the others were skipped."""
    entries = data.get("changes") if isinstance(data, Mapping) else None
    if not isinstance(entries, list):
        return ProposedChanges(skipped=("the answer has no list of changes",))
    accepted: list[ProposedChange] = []
    skipped: list[str] = []
    for index, entry in enumerate(entries[:_MAX_CHANGES]):
        change = _read_change(entry, f"changes[{index}]")
        flaw = change if isinstance(change, str) else _find_objection(change, accepted, known_ids)
        if isinstance(change, str) or flaw:
            skipped.append(f"change {index + 1}: {flaw}")
        else:
            accepted.append(change)
    if len(entries) > _MAX_CHANGES:
        skipped.append(f"{len(entries) - _MAX_CHANGES} more changes were not read")
    return ProposedChanges(changes=tuple(accepted), skipped=tuple(skipped))


def _read_change(entry: object, path: str) -> ProposedChange | str:
    """Return a change with its texts truncated to the limits, or what is wrong with the change."""
    if not isinstance(entry, Mapping):
        return "it is not an object"
    fields = {name: _trim(name, value) for name, value in entry.items() if value is not None}
    known = _CHANGE_SCHEMA["properties"]
    fields = {name: value for name, value in fields.items() if name in known and value not in ("", [])}
    flaw = check(fields, _CHANGE_SCHEMA, path)
    if flaw:
        return f"it is malformed: {flaw}"
    cues = tuple(fields.pop("when", ()))
    return ProposedChange(**{**fields, "tags": tuple(fields.get("tags", ())), "cues": cues})


def _trim(name: str, value: Any) -> Any:
    if name == "when" and isinstance(value, list) and all(isinstance(cue, str) for cue in value):
        cues = (cut_title(fold(cue[:_MAX_LINE_LENGTH])) for cue in value)
        return list(dict.fromkeys(cue for cue in cues if cue))[:MAX_CUES]
    if name == "tags" and isinstance(value, list) and all(isinstance(tag, str) for tag in value):
        tags = (fold(tag[:_MAX_LINE_LENGTH]).lower().removeprefix("#")[:TITLE_LIMIT] for tag in value)
        return list(dict.fromkeys(tag for tag in tags if tag))[:MAX_TAGS]
    if not isinstance(value, str):
        return value
    if name in _MAX_SENTENCES:
        return _fit_sentences(value, _MAX_SENTENCES[name], TITLE_LIMIT if name == "title" else _MAX_LINE_LENGTH)
    text = fold(value[: 10 * TITLE_LIMIT])[:TITLE_LIMIT]
    return {"do": text.upper(), "type": text.lower()}.get(name, text)


def _find_objection(change: ProposedChange, accepted: Sequence[ProposedChange], known_ids: Collection[str]) -> str:
    """Return why a well-formed change is not accepted; empty if it is accepted."""
    if change.do != ADD:
        if change.id not in known_ids:
            return f"{change.do} does not specify a known learning" + (f": `{change.id}`" if change.id else "")
        if any(change.id == other.id for other in accepted):
            return f"`{change.id}` has a change already"
        is_empty = not any(change.replace(do="", id="", reason="").as_dict().values())
        return "the revision changes nothing" if change.do == REVISE and is_empty else ""
    if change.type == "dependency":
        return "a dependency belongs to its task and is not a learning"
    if not change.title or not change.type:
        return f"a new learning needs a {'type' if change.title else 'title'}"
    added = [other for other in accepted if other.do == ADD]
    if any(text_key(change.title) == text_key(other.title) for other in added):
        return "it is added already"
    return f"more than {MAX_ADDED} learnings for one task" if len(added) == MAX_ADDED else ""


def _fit_sentences(text: str, sentences: int, limit: int) -> str:
    """Return the first sentences that fit into a line. The first sentence is truncated if necessary."""
    first, *others = _SENTENCE_END.split(fold(text[: 10 * _MAX_LINE_LENGTH]))[:sentences]
    for sentence in others:
        longer = f"{first} {sentence}"
        if len(longer.split()) > MAX_WORDS or len(longer) > limit:
            break
        first = longer
    words = first.split()
    if len(words) <= MAX_WORDS and len(first) <= limit:
        return first
    cut = " ".join(words[:MAX_WORDS])[: limit - 1]
    whole_words = cut.rpartition(" ")[0] if len(cut) == limit - 1 else cut
    return f"{(whole_words or cut).rstrip(' ,;:')}…"


def _fill(template: str, parts: Mapping[str, str]) -> str:
    return _BLANK_LINES.sub("\n\n", Template(template).safe_substitute(parts)).strip()


def _list_entries(title: str, name: str, entries: Sequence[str]) -> str:
    return f"## {title}\n\n{_fence_off(name, chr(10).join(entries))}" if entries else ""


def _fence_off(name: str, text: str) -> str:
    return fenced(harmless(text), name, name=_FENCE)


def _rank_hint(discovery: Discovery) -> bool:
    """Sort what a tool's output says behind what people, reviewers and agents say."""
    return discovery.rule in _TOOLS_RULES


def _format_hint(discovery: Discovery) -> str:
    parts = {"failed": discovery.failed, "error": discovery.error, "then worked": discovery.worked}
    details = "".join(f"; {name}: {text}" for name, text in parts.items() if text)
    return f"- {discovery.type}: {_shorten(f'{discovery.text}{details}')}"


def _format_learning(learning: Learning) -> str:
    action = f": {learning.action}" if learning.action else ""
    return f"- `{learning.id}` {_shorten(f'{learning.title}{action}')}"


def _shorten(text: str) -> str:
    return fold(text[: 2 * _MAX_FINDING_LENGTH])[:_MAX_FINDING_LENGTH]


def _plain_word(text: str) -> str:
    """Return text that is safe to put in backticks."""
    return harmless(fold(text)[:TITLE_LIMIT].replace("`", ""))


def cut_material(text: str, *, limit_chars: int) -> str:
    """Return the text, or its most important lines within the limit. Each gap shows how many lines are left out."""
    if len(text) <= limit_chars:
        return text
    lines = [_shorten_line(line, max(20, limit_chars // _MIN_LINES)) for line in text.splitlines()]
    first = _count_fitting(lines, int(limit_chars * _BEGINNING_SHARE))
    last = _count_fitting(reversed(lines[first:]), int(limit_chars * _END_SHARE))
    kept = {*range(first), *range(len(lines) - last, len(lines))}
    room = limit_chars - _measure(lines, kept) - _GAP_NOTE_LENGTH
    for block in _find_errors(lines, range(first, len(lines) - last)):
        added = [number for number in block if number not in kept]
        cost = _measure(lines, added) + _GAP_NOTE_LENGTH
        if cost <= room:
            kept.update(added)
            room -= cost
    return _join_with_gaps(lines, sorted(kept))[:limit_chars]


def _count_fitting(lines: Iterable[str], room: int) -> int:
    """Return how many lines fit into the room, counted from the first."""
    sizes = accumulate(len(line) + 1 for line in lines)
    return sum(1 for _ in takewhile(lambda size: size <= room, sizes))


def _find_errors(lines: Sequence[str], numbers: range) -> Iterator[range]:
    """Yield the numbers of the lines around each error. A repeated error is skipped."""
    keys = set()
    for number in numbers:
        key = _DIGITS.sub("", lines[number]).strip()
        if key not in keys and _ERROR.search(lines[number]) and not _NO_ERROR.search(lines[number]):
            keys.add(key)
            first, last = number - _LINES_AROUND_ERROR, number + _LINES_AROUND_ERROR
            yield range(max(numbers.start, first), min(numbers.stop, last + 1))


def _join_with_gaps(lines: Sequence[str], kept: Sequence[int]) -> str:
    parts, expected = [], 0
    for number in (*kept, len(lines)):
        if number > expected:
            parts.append(f"[… {number - expected:,} lines left out …]")
        parts += lines[number : number + 1]
        expected = number + 1
    return "\n".join(parts)


def _shorten_line(line: str, width: int) -> str:
    """Return a line, or its beginning and end if it is very long."""
    half = width // 2 - 3
    return line if len(line) <= width else f"{line[:half]} […] {line[-half:]}"


def _measure(lines: Sequence[str], numbers: Iterable[int]) -> int:
    return sum(len(lines[number]) + 1 for number in numbers)
