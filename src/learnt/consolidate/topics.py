"""Topic files: the permanent Markdown documents that learnings are moved into.

A learning goes to the file that bears the name of its category or domain, otherwise to the one whose lines in the
memory index call for it, otherwise to the one with an entry very much like it; if there is none, to a new file. It is
written as the other entries of the file are: as a section or as a list item, at the same level, with the same line
ends. Writing only adds lines, and an entry that the file has is not written again.

An entry names its learning in a comment, so that it is found wherever a person moves it. A file that learnt made says
so in a comment, too: only such a file is split without asking.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from learnt.model import GENERAL, PARAGRAPHS, Learning, Value
from learnt.text.clean import clean, fold
from learnt.text.entries import FENCE, find_fence_end, find_id
from learnt.text.meaning import embed, likenesses, rarity
from learnt.text.outline import Heading, Outline, item_mark
from learnt.text.titles import key_of
from learnt.text.words import words

MARK = "<!-- learnt-topic -->"
"""The line that says that learnt made a file."""
_ENDING = ".md"
_MAX_NAME_LENGTH = 50
_DEFAULT_LEVEL = 2
_MIN_ITEMS = 2
# An index line calls for a learning if the learning has so much of its words, weighted by their rarity.
_MIN_CALLED, _MIN_CALLING_WORDS = 0.5, 2
_MIN_LIKENESS = 0.7
_NO_NAME = re.compile(r"[^\w]+")
# Windows reserves these names, and people give the last three to files of another kind.
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|memory-index|index|readme)")
_UNDERLINE = re.compile(r"(?:=+|-{2,})\s*")
_HTML_COMMENT = re.compile(r"\\?<!--")
_CONTENT = re.compile(r"\w")
CallingWords = Mapping[str, Sequence[Sequence[str]]]
"""The trigger words of each line of the memory index, by the path of the line's file."""


class Topic(Value):
    """A topic file."""

    path: str
    """Its path in the project, with `/`."""
    text: str
    is_named: bool = False
    """Whether a person named it as a topic file, and it is not in the folder of the topic files."""
    is_loaded: bool = False
    """Whether clients load it by themselves: only learnings that somebody vouches for go there."""


class TopicEntry(Value):
    """An entry of a topic file: a section or a list item."""

    id: str = ""
    """The id of its learning; empty if a person wrote it."""
    title: str
    line: int
    """The number of its first line, from 1."""
    text: str
    """All its lines; for a section, up to the next heading."""


class _EntryStyle(Value):
    """How the entries of a file are written."""

    is_list: bool = False
    mark: str = "- "
    level: int = _DEFAULT_LEVEL
    """The level of the headings of entries or, in a list, of the headings above lists."""
    is_loose: bool = False
    """Whether there are blank lines between the items of a list."""


def is_own(text: str) -> bool:
    """Return whether learnt made a topic file."""
    outline = Outline(text)
    return any(line.strip() == MARK for number, line in enumerate(outline.lines) if number not in outline.hidden)


def list_entries(text: str) -> list[TopicEntry]:
    """Return the entries of a topic file in order: what has an id, and the other sections with a text of their own."""
    return list(_read_entries(text))


# While entries are routed and written one by one, the same texts are read again and again.
@lru_cache(maxsize=64)
def _read_entries(text: str) -> tuple[TopicEntry, ...]:
    outline = _read_outline(text)
    starts = [0, *(heading.line for heading in outline.headings if heading.line), len(outline.lines)]
    by_line = {heading.line: heading for heading in outline.headings}
    return tuple(
        entry for start, end in pairwise(starts) for entry in _list_section(outline, by_line.get(start), start, end)
    )


@lru_cache(maxsize=64)
def _read_outline(text: str) -> Outline:
    return Outline(text)


@lru_cache(maxsize=5_000)
def _embed_text(text: str) -> bytes | None:
    return embed(words(text))


def _list_section(outline: Outline, heading: Heading | None, start: int, end: int) -> Iterator[TopicEntry]:
    """Yield the entries between two headings."""
    own = _find_own_id(outline, start, end) if heading else ""
    if heading and own:
        yield _make_entry(outline, heading.title, own, start, end)
        return
    items = list(_list_items(outline, start, end))
    yield from items
    body = outline.lines[start + 1 : end]
    if heading and heading != outline.title and not items and any(_CONTENT.search(line) for line in body):
        yield _make_entry(outline, heading.title, "", start, end)


def _find_own_id(outline: Outline, start: int, end: int) -> str:
    """Return the id in a comment right below a heading."""
    below = (number for number in range(start + 1, end) if outline.lines[number].strip())
    first = next(below, None)
    if first is None or first in outline.hidden or not outline.lines[first].startswith("<!--"):
        return ""
    return find_id(outline.lines[first])


def _list_items(outline: Outline, start: int, end: int) -> Iterator[TopicEntry]:
    """Yield the list items that name their learnings."""
    for first in outline.find_items(start, end):
        item_end = outline.find_end(first, end)
        visible = (outline.lines[number] for number in range(first, item_end) if number not in outline.hidden)
        id = next(filter(None, map(find_id, visible)), "")
        if id:
            title = fold(outline.lines[first][len(item_mark(outline.lines[first])) :].partition("<!--")[0])
            yield _make_entry(outline, title, id, first, item_end)


def _make_entry(outline: Outline, title: str, id: str, start: int, end: int) -> TopicEntry:
    return TopicEntry(id=id, title=title, line=start + 1, text="\n".join(outline.lines[start:end]))


def find_topic_files(topics: Iterable[Topic]) -> dict[str, str]:
    """Return the path of the topic file of each learning that stands in one, by its id."""
    found: dict[str, str] = {}
    for topic in topics:
        for entry in list_entries(topic.text):
            if entry.id:
                found.setdefault(entry.id, topic.path)
    return found


def route(
    learning: Learning, topics: Sequence[Topic], calling: CallingWords, *, folder: str, reserved: Collection[str] = ()
) -> str:
    """Return the path of the topic file for a learning; if there is no such file, it is one to be made in `folder`.

    `calling` is what `memory_index.list_words` returns; `reserved` are the paths of files that are no topic files.
    """
    topics = sorted(topics, key=lambda topic: topic.path)
    here = find_topic_files(topics).get(learning.id)
    if here:
        return here
    open_topics = [topic for topic in topics if learning.vouched or not topic.is_loaded]
    for name in filter(None, map(make_name, _list_labels(learning))):
        named = _find_named(name, open_topics)
        if named:
            return _choose(learning, named, calling) or named[0].path
    return _choose(learning, open_topics, calling) or _make_path(learning, topics, folder, reserved)


def _list_labels(learning: Learning) -> list[str]:
    """Return the category and the domain of a learning."""
    return [label for label in (learning.category, learning.domain) if label and label != GENERAL]


def make_name(label: str) -> str:
    """Return a label as the name of a file, without an ending."""
    return _NO_NAME.sub("-", key_of(clean(label))).strip("-_")[:_MAX_NAME_LENGTH].strip("-_")


def _find_named(name: str, topics: Sequence[Topic]) -> list[Topic]:
    """Return the topics that bear a name: the file, then those that were split off it; otherwise by their headings."""
    own = [topic for topic in topics if _name_of(topic.path) == name]
    parts = [topic for topic in topics if _name_of(topic.path).startswith(f"{name}-") and not topic.is_named]
    if own:
        return own + parts
    for lowest in (1, _DEFAULT_LEVEL):
        by_heading = [topic for topic in topics if name in _list_heading_names(topic.text, lowest)]
        if by_heading:
            return by_heading
    return parts


def _name_of(path: str) -> str:
    return make_name(posixpath.basename(path).removesuffix(_ENDING))


def _list_heading_names(text: str, lowest: int) -> set[str]:
    return {make_name(heading.title) for heading in Outline(text).headings if heading.level <= lowest}


def _choose(learning: Learning, topics: Sequence[Topic], calling: CallingWords) -> str:
    """Return the path of the topic that the index or likeness calls for; empty if nothing does."""
    said = frozenset(words(_join_texts(learning)))
    called = {topic.path: _find_call(said, calling.get(topic.path, ())) for topic in topics}
    best = max(called, key=called.__getitem__, default="")
    if best and called[best] >= _MIN_CALLED:
        return best
    alike = {topic.path: _find_likeness(said, topic.text) for topic in topics}
    best = max(alike, key=alike.__getitem__, default="")
    return best if best and alike[best] >= _MIN_LIKENESS else ""


def _join_texts(learning: Learning) -> str:
    triggers = (pattern for patterns in learning.triggers.as_dict().values() for pattern in patterns)
    paragraphs = (getattr(learning, name) for name in PARAGRAPHS)
    return "\n".join((learning.title, *paragraphs, *learning.tags, *triggers))


def _find_call(said: frozenset[str], lines: Iterable[Sequence[str]]) -> float:
    """Return how much a topic's index calls for a learning: the largest share of a line's words that it has."""
    return max((_share(said, frozenset(words(" ".join(line)))) for line in lines), default=0.0)


def _share(said: frozenset[str], calling: frozenset[str]) -> float:
    common = said & calling
    if len(common) < _MIN_CALLING_WORDS:
        return 0.0
    return sum(map(rarity, common)) / sum(map(rarity, calling))


def _find_likeness(said: frozenset[str], text: str) -> float:
    """Return how alike a learning and the entry of a file are that is most like it."""
    own = embed(sorted(said))
    others = [vector for entry in list_entries(text) if (vector := _embed_text(entry.text))]
    return max(likenesses(own, others), default=0.0) if own and others else 0.0


def _make_path(learning: Learning, topics: Sequence[Topic], folder: str, reserved: Collection[str]) -> str:
    """Return the path of a new topic file, named after the category or domain."""
    name = next(filter(None, map(make_name, _list_labels(learning))), GENERAL)
    # Folded, because a file system may not tell capitals from small letters.
    taken = {path.casefold() for path in reserved}
    known = {topic.path.casefold(): topic.path for topic in topics}
    names = (name, f"{name}-notes", *(f"{name}-notes-{number}" for number in range(2, len(taken) + 3)))
    paths = (posixpath.join(folder, f"{name}{_ENDING}") for name in names if not _RESERVED.fullmatch(name))
    path = next(path for path in paths if path.casefold() not in taken)
    return known.get(path.casefold(), path)


def write_entries(text: str, learnings: Sequence[Learning]) -> str:
    """Return a topic file with these learnings, each in the file's own style; those that it has are not written again.

    An empty text becomes a new file.
    """
    for learning in learnings:
        if learning.id not in {entry.id for entry in list_entries(text)}:
            text = _write_entry(text or _begin_file(learning), learning)
    return text


def _begin_file(learning: Learning) -> str:
    label = fold(next(iter(_list_labels(learning)), GENERAL)).replace("<!--", r"\<!--")
    return f"# {label[:1].upper()}{label[1:]}\n\n{MARK}\n"


def _write_entry(text: str, learning: Learning) -> str:
    outline, style = _read_outline(text), read_style(text)
    start, end, new_group = _find_place(outline, style, learning)
    lines = _render_item(learning, style) if style.is_list else _render_section(learning, style)
    if new_group:
        lines = [f"{'#' * new_group[0]} {new_group[1]}", "", *lines]
    items = outline.find_items(start, end) if style.is_list and not new_group else []
    if items:
        at = outline.find_end(items[-1], end)
        return _insert(outline, at, [*([""] if style.is_loose else []), *lines])
    return _insert(outline, outline.skip_blank_lines(end), ["", *lines])


def render_like(first_line: str, learning: Learning) -> list[str]:
    """Return the lines of a learning in the form of the entry that begins with this line."""
    mark = item_mark(first_line)
    if mark:
        return _render_item(learning, _EntryStyle(is_list=True, mark=mark))
    level = len(first_line) - len(first_line.lstrip("#"))
    return _render_section(learning, _EntryStyle(level=level or _DEFAULT_LEVEL))


def read_style(text: str) -> _EntryStyle:
    """Return how the entries of a file are written; those of learnings show it best."""
    outline = _read_outline(text)
    items = outline.find_items(0, len(outline.lines))
    entries = [entry for entry in list_entries(text) if entry.id]
    item_lines = set(items)
    in_lists = sum(entry.line - 1 in item_lines for entry in entries)
    is_list = 2 * in_lists > len(entries) if entries else _is_mostly_list(outline, items)
    own_lines = {entry.line - 1 for entry in entries}
    own_items = [number for number in items if number in own_lines] or items
    return _EntryStyle(
        is_list=is_list,
        mark=_choose_mark(outline, own_items) if is_list else "- ",
        level=_choose_level(outline, own_lines if not is_list else set()),
        is_loose=is_list and _is_loose(outline, items),
    )


def _is_mostly_list(outline: Outline, items: Sequence[int]) -> bool:
    if len(items) < _MIN_ITEMS:
        return False
    headings = {heading.line for heading in outline.headings}
    content = [
        number
        for number, line in enumerate(outline.lines)
        if number not in headings and _CONTENT.search(line) and not line.startswith("<!--")
    ]
    ends = {first: outline.find_end(first, len(outline.lines)) for first in items}
    in_items = {number for first, end in ends.items() for number in range(first, end)}
    return 2 * sum(number in in_items for number in content) >= len(content)


def _choose_mark(outline: Outline, items: Sequence[int]) -> str:
    marks = Counter(mark for number in items if not (mark := item_mark(outline.lines[number]))[0].isdigit())
    return marks.most_common(1)[0][0] if marks else "- "


def _choose_level(outline: Outline, own_lines: set[int]) -> int:
    """Return the level of the headings of entries: that of our own, otherwise the most common one, the deeper first."""
    own = [heading for heading in outline.headings if heading.line in own_lines]
    others = [heading for heading in outline.headings if heading != outline.title]
    levels = Counter(heading.level for heading in own or others)
    return max(levels, key=lambda level: (levels[level], level), default=_DEFAULT_LEVEL)


def _is_loose(outline: Outline, items: Sequence[int]) -> bool:
    """Return whether most items that follow another do so after a blank line."""
    ends = [outline.find_end(first, len(outline.lines)) for first in items[:-1]]
    gaps = [following - end for end, following in zip(ends, items[1:], strict=True)]
    close = [gap for gap in gaps if gap <= 1]
    return bool(close) and 2 * sum(close) > len(close)


def _find_place(outline: Outline, style: _EntryStyle, learning: Learning) -> tuple[int, int, tuple[int, str] | None]:
    """Return the lines between which an entry belongs, and the heading to be added, if it needs one of its own."""
    whole = 0, len(outline.lines)
    groups = [heading for heading in outline.headings if _is_group(heading, style, outline)]
    if not groups:
        return *whole, None
    group = _choose_group(groups, learning)
    if group is None:
        label = fold(next(iter(_list_labels(learning)), GENERAL)).replace("<!--", r"\<!--")
        return *whole, (groups[0].level, label[:1].upper() + label[1:])
    following = (heading.line for heading in outline.headings if heading.line > group.line)
    if not style.is_list:
        following = (
            heading.line for heading in outline.headings if heading.line > group.line and heading.level <= group.level
        )
    return group.line, next(following, len(outline.lines)), None


def _is_group(heading: Heading, style: _EntryStyle, outline: Outline) -> bool:
    """Return whether entries stand below a heading, rather than being headings themselves."""
    return heading != outline.title and (heading.level <= style.level if style.is_list else heading.level < style.level)


def _choose_group(groups: Sequence[Heading], learning: Learning) -> Heading | None:
    """Return the heading that a learning belongs below: its category or domain, or the one with most of its words."""
    by_name = {make_name(group.title): group for group in reversed(groups)}
    for label in _list_labels(learning):
        if make_name(label) in by_name:
            return by_name[make_name(label)]
    wanted = frozenset(words(" ".join((*_list_labels(learning), *learning.tags))))
    scores = [len(wanted & frozenset(words(group.title))) for group in groups]
    best = max(scores)
    return groups[scores.index(best)] if best else None


def _render_section(learning: Learning, style: _EntryStyle) -> list[str]:
    lines = [f"{'#' * style.level} {_escape_comments(_state(learning))}", f"<!-- {learning.id} -->"]
    for paragraph in _list_paragraphs(learning):
        lines += ["", *_escape_structure(paragraph)]
    return lines


def _render_item(learning: Learning, style: _EntryStyle) -> list[str]:
    indent = " " * len(style.mark)
    lines = [f"{style.mark}{_escape_comments(_state(learning))} <!-- {learning.id} -->"]
    for paragraph in _list_paragraphs(learning):
        lines += [f"{indent}{line}" if line.strip() else "" for line in _escape_structure(paragraph)]
    return lines


def _state(learning: Learning) -> str:
    return fold(learning.advise(learning.title))


def _list_paragraphs(learning: Learning) -> Iterator[str]:
    """Yield the texts of a learning that say more than its title; what was observed needs no label at the start."""
    for number, name in enumerate(PARAGRAPHS):
        text = clean(getattr(learning, name)).strip("\n")
        if not text.strip() or fold(text) == learning.title:
            continue
        is_first = not any(getattr(learning, other).strip() for other in PARAGRAPHS[:number])
        yield text if name == "observation" and is_first else f"**{name.capitalize()}**: {text}"


def _escape_structure(text: str) -> list[str]:
    """Return the lines of a text, of which none can be taken for a heading, for our comment or for the start of code.

    A code block that is closed stays as it is.
    """
    lines = [_escape_comments(line) for line in text.split("\n")]
    unclosed: dict[str, int] = {}
    number = 0
    while number < len(lines):
        end = find_fence_end(lines, number, unclosed)
        if end is None and (
            lines[number].startswith("#") or _opens(lines[number]) or _UNDERLINE.fullmatch(lines[number])
        ):
            lines[number] = f"\\{lines[number]}"
        number = (end or number) + 1
    return lines


def _opens(line: str) -> bool:
    return FENCE.match(line) is not None


def _escape_comments(text: str) -> str:
    return _HTML_COMMENT.sub(r"\\<!--", text)


def _insert(outline: Outline, at: int, lines: Sequence[str]) -> str:
    """Return the text with lines inserted before the line `at`, with the line ends of the text."""
    before, after = list(outline.lines[:at]), list(outline.lines[at:])
    is_crlf = sum(line.endswith("\r") for line in outline.lines) * 2 > len(outline.lines) - 1
    end = "\r" if is_crlf else ""
    if not after:
        after = [""]
        before[-1:] = [line if line.endswith("\r") else line + end for line in before[-1:]]
    if lines[:1] == [""] and (not before or not before[-1].strip()):
        lines = lines[1:]
    gap = [end] if after[0].strip() and not (item_mark(after[0]) and item_mark(lines[0])) else []
    return "\n".join((*before, *(line + end for line in lines), *gap, *after))
