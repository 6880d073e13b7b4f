"""Write and read learnings as Markdown entries, for `export --format markdown` and for editors.

    ## Run `make lint` before each commit
    <!-- learnt: {"id": "learn_0mfx…", "tags": ["git"], "confidence": 0.7, …} -->

    **Context**: …
    **Observation**: …
    **Implication**: …
    **Action**: …

People edit the title and the four paragraphs; everything else is in the comment. A form for an editor ends with the
situations in which the learning matters, `**When**: …`, one on each line. Any learning reads back as the same
record, because a line that could be read as structure is escaped with a backslash. An entry without a comment is a new
learning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from learnt.errors import InvalidValue
from learnt.model import PARAGRAPHS, Learning
from learnt.text.records import PLACE, as_record

_LABELS = {f"**{name.capitalize()}**:": name for name in PARAGRAPHS}
_READ_AS_LABELS = {**_LABELS, **{f"**{name.capitalize()}:**": name for name in PARAGRAPHS}}
_WHEN = "**When**:"
_READ_AS_LABELS |= {_WHEN: "cues", "**When:**": "cues"}
_COMMENT, _COMMENT_END = "<!-- learnt: ", " -->"


def render_entries(learnings: Iterable[Learning]) -> Iterator[str]:
    """Yield a whole Markdown file, piece by piece."""
    yield "# Learnings\n"
    for learning in learnings:
        yield "\n" + _render_entry(learning)


def _render_entry(learning: Learning) -> str:
    record = {name: value for name, value in as_record(learning).items() if name not in PLACE}
    title = record.pop("title")
    paragraphs = {name: record.pop(name) for name in PARAGRAPHS}
    # `--` is not allowed inside an HTML comment, and `>` could end it.
    details = json.dumps(record, ensure_ascii=False).replace("--", "-\\u002d").replace(">", "\\u003e")
    return render_form(title, paragraphs, comment=f"{_COMMENT}{details}{_COMMENT_END}\n")


def render_form(title: str, paragraphs: dict[str, str], comment: str = "") -> str:
    """Return an entry to be filled in: a heading and the four paragraphs."""
    lines = [f"## {title}\n{comment}"]
    lines += [f"{label} {_escape(paragraphs.get(name, ''))}".rstrip() for label, name in _LABELS.items()]
    return "\n".join(lines) + "\n"


def render_cues(cues: Sequence[str]) -> str:
    """Return the situations of a learning, one on each line, for the end of a form."""
    return f"{_WHEN} {_escape(chr(10).join(cues))}".rstrip() + "\n"


def read_entries(text: str) -> Iterator[dict[str, Any]]:
    """Yield the record of each entry; the text above the first heading is ignored."""
    for block in f"\n{text}".split("\n## ")[1:]:
        yield _read_entry(*block.split("\n"))


def _read_entry(title: str, *lines: str) -> dict[str, Any]:
    record: dict[str, Any] = {"title": title.strip()}
    paragraphs: dict[str, list[str]] = {}
    name = "observation"  # text without a label
    for line in lines:
        if line.startswith(_COMMENT) and line.rstrip().endswith(_COMMENT_END):
            record.update(_read_comment(line, record["title"]))
            continue
        label = next((label for label in _READ_AS_LABELS if line.startswith(label)), None)
        if label:
            name, line = _READ_AS_LABELS[label], line.removeprefix(label)  # noqa: PLW2901 - the rest of the line is its text
        paragraphs.setdefault(name, []).append(line[1:] if line[:1] == "\\" and _is_structure(line[1:]) else line)
    cues = [line.strip() for line in paragraphs.pop("cues", ())]
    record.update({name: "\n".join(lines).strip() for name, lines in paragraphs.items() if any(lines)})
    if any(cues):
        record["cues"] = [cue for cue in cues if cue]
    return record


def _read_comment(line: str, title: str) -> dict[str, Any]:
    hint = "restore the comment, or delete it to make the entry a new learning"
    try:
        details = json.loads(line.rstrip().removeprefix(_COMMENT).removesuffix(_COMMENT_END))
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"the comment below `{title}` is not JSON: {error}", hint=hint) from None
    if not isinstance(details, dict):
        raise InvalidValue(f"the comment below `{title}` is not a JSON object", hint=hint)
    return details


def _escape(text: str) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *(("\\" + line if _is_structure(line) else line) for line in rest)])


def _is_structure(line: str) -> bool:
    return line.lstrip("\\").startswith(("## ", _COMMENT, *_READ_AS_LABELS))
