"""Write and read learnings as Markdown entries: in exports, for editors, and in the staging file.

    ## Run `make lint` before each commit
    <!-- learnt: {"id": "learn_0mfx…", "tags": ["git"], "confidence": 0.7, …} -->

    **Context**: …
    **Observation**: …
    **Implication**: …
    **Action**: …

People edit the title and the four paragraphs; everything else is in the comment. A form for an editor ends with the
situations in which the learning matters, `**When**: …`, one on each line. Any learning reads back as the same
record, because a line that could be read as structure is escaped with a backslash. An entry without a comment is a new
learning. A heading inside a code block begins no entry; but a block that is not closed, or that contains one of our
comments, is no code block, so that a stray fence cannot make entries disappear.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from learnt.errors import InvalidValue
from learnt.model import PARAGRAPHS, Learning, Value
from learnt.text.records import PLACE, as_record

_LABELS = {f"**{name.capitalize()}**:": name for name in PARAGRAPHS}
_READ_AS_LABELS = {**_LABELS, **{f"**{name.capitalize()}:**": name for name in PARAGRAPHS}}
_WHEN = "**When**:"
_READ_AS_LABELS |= {_WHEN: "cues", "**When:**": "cues"}
_COMMENT, _COMMENT_END = "<!-- learnt: ", " -->"
_HEADING = "## "
_ID = re.compile(r'^<!--\s*(?:learnt:\s*\{[^\n]*?"id":\s*")?(learn_[A-Za-z0-9]+)\b', re.MULTILINE)
_ID_AT_END = re.compile(r"<!-- (learn_[A-Za-z0-9]+) -->\s*$")
FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)$")


class EntryText(Value):
    """An entry as it stands in a file."""

    title: str
    id: str = ""
    """The id of its learning; empty if it is not known."""
    line: int
    """The number of its heading's line, from 1."""
    text: str
    """All of its lines, from the heading to the next one."""

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return self.text.count("\n") + (not self.text.endswith("\n"))


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


def split_entries(text: str) -> tuple[str, list[EntryText]]:
    """Return the text above the first entry, and the entries; joined again, they are the whole text."""
    lines = text.split("\n")
    starts = _find_headings(lines)
    if not starts:
        return text, []
    above = "".join(f"{line}\n" for line in lines[: starts[0]])
    entries = []
    for start, end in pairwise([*starts, len(lines)]):
        content = "\n".join(lines[start:end]) + ("\n" if end < len(lines) else "")
        title = lines[start].lstrip("\ufeff").removeprefix(_HEADING).strip()
        id = _ID.search(content)
        entries.append(EntryText(title=title, id=id[1] if id else "", line=start + 1, text=content))
    return above, entries


def _find_headings(lines: Sequence[str]) -> list[int]:
    """Return the places of the lines that begin an entry."""
    headings, number = [], 0
    unclosed: dict[str, int] = {}
    while number < len(lines):
        line = lines[number].lstrip("\ufeff") if not number else lines[number]
        if line.startswith(_HEADING):
            headings.append(number)
        number = (find_fence_end(lines, number, unclosed) or number) + 1
    return headings


def find_id(line: str) -> str:
    """Return the id of the learning that a comment at the beginning or the end of a line names; empty if none does."""
    match = _ID.match(line) or _ID_AT_END.search(line)
    return match[1] if match else ""


def find_fence(line: str) -> str:
    """Return the characters of the code fence that a line opens; empty if the line does not open a fence."""
    fence = FENCE.match(line)
    return fence[1] if fence and (fence[1][0] == "~" or "`" not in fence[2]) else ""


def find_fence_end(
    lines: Sequence[str], start: int, unclosed: dict[str, int], is_ours: Callable[[str], object] = find_id
) -> int | None:
    """Return the place of the line that closes the code block that begins here; None if none begins here.

    A block does not extend over a line that `is_ours`. `unclosed` maps a fence to the place up to which nothing closes
    it, so that these lines are not searched again.
    """
    opening = find_fence(lines[start])
    if not opening or start < unclosed.get(opening, 0):
        return None
    number = start
    for number in range(start + 1, len(lines)):
        fence = FENCE.match(lines[number])
        if fence and not fence[2].strip() and fence[1].startswith(opening):
            return number
        if is_ours(lines[number]):
            break
    unclosed[opening] = number
    return None


def read_entries(text: str) -> Iterator[dict[str, Any]]:
    """Yield the record of each entry; the text above the first heading is ignored."""
    for entry in split_entries(text)[1]:
        yield _read_entry(entry.title, *entry.text.removesuffix("\n").split("\n")[1:])


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
