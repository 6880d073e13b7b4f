"""The memory index: which topic file has which entries, and the words that call for them.

    # Memory index

    ## [testing.md](testing.md)

    - Start Redis before the queue tests — redis, `make redis`, tests/queue/ <!-- learn_0mfx… -->
    - Seed the database — seeds <!-- learnt -->

An agent reads it to find the file that matters; people may edit words, order lines otherwise than the file does, or
write below a heading. Checking compares it with the topic files and finds

    missing     there is a topic file with entries, and no index
    orphan      an entry of a topic file without a line
    dangling    a line of ours without an entry, or a heading without a file
    duplicate   a second line or heading for the same
    misplaced   a line below another file than the one with its entry
    order       files that are not in alphabetical order, or lines that are not in the order of the file
    pointer     a file that clients load, such as CLAUDE.md, does not name the index

A line of ours names its learning, or says `learnt`. A list item that does neither and has no entry is a person's, like
any other text. Repairing keeps every line that has an entry, with its words, and whatever is a person's. It changes the
index only: no file is made or deleted. A repaired index has no faults, and repairing it again changes nothing.

An entry without a learning is known by its title; several with one title in a file are one.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote, unquote

from learnt.consolidate.topics import Topic, TopicEntry, list_entries
from learnt.model import Learning, Value
from learnt.text.clean import clean, fold
from learnt.text.entries import find_id
from learnt.text.meaning import rarity
from learnt.text.outline import item_mark
from learnt.text.triggers import list_names
from learnt.text.words import spell_words

MISSING, ORPHAN, DANGLING, DUPLICATE, MISPLACED, ORDER, POINTER = FAULTS = (
    "missing",
    "orphan",
    "dangling",
    "duplicate",
    "misplaced",
    "order",
    "pointer",
)
_START = """# Memory index

What this project has learnt, by file. Each line is an entry, with the words that call for it: read the file before you
work on something that they name.
"""
_POINTER_START, _POINTER_END = "<!-- learnt-pointer -->", "<!-- /learnt-pointer -->"
_POINTER = re.compile(
    rf"(?:^[ \t]*\r?\n)?^{_POINTER_START}[ \t]*\r?\n(?:(?!<!--)[^\n]*\n){{0,9}}{_POINTER_END}[ \t]*(?:\r?\n|\Z)",
    re.MULTILINE,
)
_BEFORE_WORDS = " — "
_OWN = "learnt"
_OWN_AT_END = re.compile(rf"<!-- {_OWN} -->\s*$")
_COMMENT = re.compile(r"<!--[^\n]*?-->")
_HEADING, _ENDING = "## ", ".md"
_LINKED = re.compile(r"\]\(<?([^()<>\s]+)>?\)")
_SAFE_IN_LINKS = "/-._~!$&'*+,;=:@"
_MAX_WORDS, _MAX_WORD_LENGTH = 6, 40
_MIN_RARITY = 5.0  # `database` is as rare


class IndexLine(Value):
    """A line of the index, with everything that is indented below it."""

    number: int
    """From 1."""
    raw: str
    id: str = ""
    is_own: bool = False
    """Whether its comment says that we wrote it."""
    title: str
    """The text before the words, and before our comment."""
    words: tuple[str, ...] = ()


class IndexSection(Value):
    """The lines for one file."""

    number: int
    """The number of the heading's line, from 1."""
    heading: str
    path: str
    """The file's path in the project; empty if the heading names no file."""
    lines: tuple[IndexLine, ...] = ()
    prose: str = ""
    """Everything else below the heading."""


class MemoryIndex(Value):
    """A memory index as it was read."""

    above: str = ""
    sections: tuple[IndexSection, ...] = ()


class IndexFault(Value):
    """Something that is wrong with the index."""

    kind: str
    """One of `FAULTS`."""
    file: str
    """The topic file that it is about; empty if it is about the index as a whole."""
    line: int = 0
    """The number of the index's line, from 1; 0 if it has none."""
    title: str = ""
    id: str = ""
    message: str


Key = tuple[str, str]
ChooseWords = Callable[[TopicEntry], Sequence[str]]


def read_index(text: str, path: str) -> MemoryIndex:
    """Return what an index says; `path` is its own path in the project.

    Lines are read one by one: nothing in one section changes what another one says.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    starts = [number for number, line in enumerate(lines) if line.startswith(_HEADING)]
    files = [_find_file(lines[start], posixpath.dirname(path)) for start in starts]
    first = next((start for start, file in zip(starts, files, strict=True) if file), len(lines))
    sections = [
        _read_section(lines[start:end], start, file)
        for start, end, file in zip(starts, [*starts[1:], len(lines)], files, strict=False)
        if start >= first
    ]
    return MemoryIndex(above="\n".join(lines[:first]).strip("\n"), sections=tuple(sections))


def _find_file(heading: str, folder: str) -> str:
    """Return the path of the file that a heading names; empty if it names none."""
    linked = _LINKED.search(heading)
    target = clean(unquote(linked[1]) if linked else heading.removeprefix(_HEADING).strip(" `"))
    return posixpath.normpath(posixpath.join(folder, target)) if target.endswith(_ENDING) else ""


def _read_section(section: Sequence[str], start: int, file: str) -> IndexSection:
    """Return a section; one that is about no file is a person's, and has no lines."""
    lines: list[IndexLine] = []
    prose: list[str] = []
    number = 1
    while number < len(section):
        end = number + 1
        if file and item_mark(section[number]):
            while end < len(section) and section[end][:1].isspace() and section[end].strip():
                end += 1
            lines.append(_read_line(section[number:end], start + number + 1))
        else:
            prose.append(section[number])
        number = end
    heading, text = section[0], "\n".join(prose).strip("\n")
    return IndexSection(number=start + 1, heading=heading, path=file, lines=tuple(lines), prose=text)


def _read_line(raw: Sequence[str], number: int) -> IndexLine:
    text, id = raw[0][len(item_mark(raw[0])) :], find_id(raw[0])
    is_own = bool(id) or _OWN_AT_END.search(raw[0]) is not None
    said = fold(text.rpartition("<!--")[0] if is_own else text)
    title, _, words = said.rpartition(_BEFORE_WORDS)
    called = tuple(filter(None, (word.strip(" `") for word in words.split(",")))) if title else ()
    return IndexLine(number=number, raw="\n".join(raw), id=id, is_own=is_own, title=said, words=called)


def list_files(index: MemoryIndex) -> list[str]:
    """Return the paths of the files that an index names, in its order."""
    return [section.path for section in index.sections if section.path]


def list_words(index: MemoryIndex) -> dict[str, list[tuple[str, ...]]]:
    """Return the words that call for each file, line by line, by the file's path."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for section in index.sections:
        found.setdefault(section.path, []).extend(line.words for line in section.lines)
    return found


def check_index(text: str, path: str, topics: Sequence[Topic], *, others: Collection[str] = ()) -> list[IndexFault]:
    """Return what is wrong with an index; `others` are files in the project that are no topic files, but exist."""
    return _IndexCheck(text, path, topics, others).list_faults()


def repair_index(
    text: str, path: str, topics: Sequence[Topic], *, others: Collection[str] = (), choose_words: ChooseWords
) -> str:
    """Return the index without faults; as it is if it has none. `choose_words` gives the words for a new line."""
    comparison = _IndexCheck(text, path, topics, others)
    if not comparison.list_faults():
        return text
    repaired = comparison.render(choose_words)
    return repaired.replace("\n", "\r\n") if "\r\n" in text else repaired


class _IndexCheck:
    """An index beside the topic files."""

    def __init__(self, text: str, path: str, topics: Sequence[Topic], others: Collection[str]) -> None:
        self._text, self._path, self._others = text, path, frozenset(others)
        self._index = read_index(text, path)
        self._entries = {
            topic.path: entries
            for topic in sorted(topics, key=lambda topic: topic.path)
            if (entries := _list_indexed(topic)) or topic.path in list_files(self._index)
        }
        self._homes = {
            entry.id: (file, entry.id)
            for file, entries in reversed(self._entries.items())
            for entry in entries.values()
            if entry.id
        }
        self._titles = {file: _by_title(entries) for file, entries in self._entries.items()}
        self._kept: dict[Key, IndexLine] = {}
        self._persons: dict[int, list[str]] = {}
        """List items of a person in a section, by the number of its heading."""
        self._faults: list[IndexFault] = []
        self._match_lines()
        self._find_missing()
        self._check_order()

    def list_faults(self) -> list[IndexFault]:
        """Return the faults, those with a line first, in order."""
        return sorted(self._faults, key=lambda fault: (fault.line == 0, fault.line))

    def _match_lines(self) -> None:
        seen: set[str] = set()
        for section in self._index.sections:
            if self._is_left_alone(section):
                continue
            if section.path in seen:
                self._add(DUPLICATE, section.path, section.number, "a second heading for this file")
            seen.add(section.path)
            if section.path not in self._entries:
                self._add(DANGLING, section.path, section.number, "there is no such topic file")
            for line in section.lines:
                self._match_line(section, line)

    def _is_left_alone(self, section: IndexSection) -> bool:
        """Return whether a section is a person's own: about no file, or about one that is no topic file."""
        return not section.path or (section.path in self._others and section.path not in self._entries)

    def _match_line(self, section: IndexSection, line: IndexLine) -> None:
        file = section.path
        key = self._find_entry(file, line)
        if key is None and not line.is_own:
            self._persons.setdefault(section.number, []).append(line.raw)
        elif key is None:
            self._add_line(DANGLING, file, line, "no topic file has such an entry")
        elif key in self._kept:
            self._add_line(DUPLICATE, file, line, f"line {self._kept[key].number} is for the same entry")
        else:
            self._kept[key] = line
            if key[0] != file:
                self._add_line(MISPLACED, file, line, f"its entry is in {key[0]}")

    def _find_entry(self, file: str, line: IndexLine) -> Key | None:
        """Return the entry of a line: by its id, otherwise by its title, in its own file first."""
        if line.id in self._entries.get(file, {}):
            return file, line.id
        if line.id in self._homes:
            return self._homes[line.id]
        own = self._titles.get(file, {})
        for title in _list_titles(line):
            if title in own:
                return file, own[title]
        if line.id:
            return None
        titles = (
            (other, by_title[title])
            for title in _list_titles(line)
            for other, by_title in self._titles.items()
            if title in by_title
        )
        return next(titles, None)

    def _find_missing(self) -> None:
        if self._entries and not self._text.strip():
            self._add(MISSING, "", 0, "there are topic files, but no index")
            return
        for file, entries in self._entries.items():
            for key, entry in entries.items():
                if (file, key) not in self._kept:
                    message = f"line {entry.line} of the file has no line in the index"
                    fault = IndexFault(kind=ORPHAN, file=file, title=entry.title, id=entry.id, message=message)
                    self._faults.append(fault)

    def _check_order(self) -> None:
        files = [section.path for section in self._index.sections if section.path in self._entries]
        if files != sorted(files):
            late = next(file for file, wanted in zip(files, sorted(files), strict=True) if file != wanted)
            self._add(ORDER, late, self._number_of(late), "the files are not in alphabetical order")
        for file, entries in self._entries.items():
            numbers = [self._kept[file, key].number for key in entries if (file, key) in self._kept]
            if numbers != sorted(numbers):
                self._add(ORDER, file, self._number_of(file), "its lines are not in the order of the file")

    def _number_of(self, file: str) -> int:
        return next((section.number for section in self._index.sections if section.path == file), 0)

    def _add(self, kind: str, file: str, line: int, message: str) -> None:
        self._faults.append(IndexFault(kind=kind, file=file, line=line, message=message))

    def _add_line(self, kind: str, file: str, line: IndexLine, message: str) -> None:
        fault = IndexFault(kind=kind, file=file, line=line.number, title=line.title, id=line.id, message=message)
        self._faults.append(fault)

    def render(self, choose_words: ChooseWords) -> str:
        """Return the repaired index."""
        alone = [section for section in self._index.sections if self._is_left_alone(section)]
        stray = [
            self._render_persons(section)
            for section in self._index.sections
            if section not in alone and section.path not in self._entries
        ]
        pieces = [_join(self._index.above or _START.strip(), *stray)]
        for file, entries in self._entries.items():
            sections = [section for section in self._index.sections if section.path == file]
            heading = sections[0].heading if sections else _render_heading(file, self._path)
            lines = [
                kept.raw if (kept := self._kept.get((file, key))) else _render_line(entry, choose_words(entry))
                for key, entry in entries.items()
            ]
            pieces.append(_join(heading, *map(self._render_persons, sections), "\n".join(lines)))
        pieces += (
            _join(section.heading, section.prose, "\n".join(line.raw for line in section.lines)) for section in alone
        )
        return "\n\n".join(pieces) + "\n"

    def _render_persons(self, section: IndexSection) -> str:
        """Return what a person wrote below a heading."""
        return _join(section.prose, "\n".join(self._persons.get(section.number, ())))


def _join(*paragraphs: str) -> str:
    return "\n\n".join(filter(None, paragraphs))


def _list_indexed(topic: Topic) -> dict[str, TopicEntry]:
    """Return the entries of a file that belong into the index, by id or title.

    Of a file that a person named, only learnings do: the rest is known where the file is.
    """
    indexed: dict[str, TopicEntry] = {}
    for entry in list_entries(topic.text):
        key = entry.id or _key_of_title(entry.title)
        if key and (entry.id or not topic.is_named):
            indexed.setdefault(key, entry)
    return indexed


def _by_title(entries: Mapping[str, TopicEntry]) -> dict[str, str]:
    """Return the keys of entries by their titles; an entry without an id, which has no other key, comes first."""
    by_title: dict[str, str] = {}
    for key, entry in sorted(entries.items(), key=lambda item: bool(item[1].id)):
        by_title.setdefault(_key_of_title(entry.title), key)
    return by_title


def _key_of_title(title: str) -> str:
    """Return what a title is compared by, which can be no id."""
    plain = _without_comments(title).replace("\\", "").casefold()
    return f"“{plain}" if plain else ""


def _without_comments(text: str) -> str:
    """Return a text on one line that contains neither the beginning nor the end of a comment."""
    while "<!--" in text or "-->" in text:
        text = text.replace("<!--", " ").replace("-->", " ")
    return fold(text)


def _list_titles(line: IndexLine) -> Iterator[str]:
    """Yield the titles that a line may have: a title may contain what separates it from the words."""
    yield _key_of_title(line.title)
    title, _, _ = line.title.rpartition(_BEFORE_WORDS.rstrip())
    if title:
        yield _key_of_title(title)


def _render_heading(file: str, index: str) -> str:
    target = posixpath.relpath(file, posixpath.dirname(index) or ".")
    label = target.replace("[", "(").replace("]", ")")
    return f"## [{label}]({quote(target, safe=_SAFE_IN_LINKS)})"


def _render_line(entry: TopicEntry, words: Iterable[str]) -> str:
    called = ", ".join(words)
    return f"- {_without_comments(entry.title)}{_BEFORE_WORDS if called else ''}{called} <!-- {entry.id or _OWN} -->"


def choose_words(entry: TopicEntry, learning: Learning | None = None) -> list[str]:
    """Return the words that call for an entry: where its learning holds, its triggers and tags, then what it names.

    Without any of these, they are the rare words of its title.
    """
    found: list[str] = []
    if learning is not None:
        triggers = learning.triggers
        found += [
            learning.context,
            *triggers.commands,
            *triggers.files,
            *triggers.errors,
            *triggers.tools,
            *learning.tags,
        ]
    found += list_names(_COMMENT.sub(" ", entry.text))
    spelled = spell_words(entry.title)
    rare = [written for stem, written in spelled.items() if not stem.startswith("+") and rarity(stem) >= _MIN_RARITY]
    short = (_without_comments(word.replace(",", " ")) for word in (*found, *rare))
    fitting = (word for word in short if word and len(word) <= _MAX_WORD_LENGTH and _BEFORE_WORDS.strip() not in word)
    distinct = {word.casefold(): word for word in reversed(list(fitting))}
    return list(reversed(distinct.values()))[:_MAX_WORDS]


def add_pointer(text: str, target: str) -> str:
    """Return a file that clients load with a pointer to the index, `target`, at its end, unless it names the index."""
    if target in text:
        return text
    end = "\r\n" if "\r\n" in text else "\n"
    rest = remove_pointer(text)
    gap = "" if not rest else end if rest.endswith("\n") else end * 2
    pointer = (
        f"What earlier work taught is listed in [{target}]({quote(target, safe=_SAFE_IN_LINKS)}), with the words that "
        "call for each entry. Before you work on something that they name, read the file with the entry."
    )
    return rest + gap + "".join(line + end for line in (_POINTER_START, pointer, _POINTER_END))


def remove_pointer(text: str) -> str:
    """Return a file without our pointer to the index; what a person wrote stays."""
    return _POINTER.sub("", text) if _POINTER_START in text else text
