"""Find the rules in a file that people write for agents: CLAUDE.md, AGENTS.md, .cursor/rules, memories, learnings.md.

Each list item and each short paragraph that asks for something is a rule. The headings above it are its category and
its context. Text that only makes sense with what precedes it is joined with that: items below a line that ends with a
colon, steps, fragments, reasons, and code below a sentence. Descriptions of the project, tables, code, links and
license text are no rules; each is listed with the reason why it was left out. Comments are never read: people who read
the rendered file do not see them.

Any text can be read, in linear time. Nothing here follows a link or reads another file.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import accumulate, pairwise

from learnt.learnings_file.lines import ID_COMMENT, ON_TRIAL, category_of
from learnt.learnings_file.read import TITLE, UPDATED, drop_comments, split_lines, split_units
from learnt.mine.rule_text import (
    asks_for_something,
    describes_name,
    find_reason_against,
    introduces_steps,
    is_cut,
    is_label,
    is_lasting,
    is_link,
    is_self_standing,
    make_title,
    names_situation,
    needs_subject,
    plain_text,
    split_demands,
)
from learnt.model import AVOID, TAG_LIMIT, TITLE_LIMIT, TRIGGER_LIMIT, Value
from learnt.text.clean import clean, fold
from learnt.text.entries import find_fence
from learnt.text.sentences import CODE, HEADING, ITEM, PARAGRAPH, TABLE, Block, read_blocks
from learnt.text.shorten import shorten
from learnt.text.titles import key_of, text_key
from learnt.text.triggers import MAX_WILDCARDS, count_wildcards

MAX_RULES = 500
_MAX_PARAGRAPH_LENGTH = 600
_MAX_ITEM_LENGTH = 2_000
_MAX_WHOLE_LENGTH = 5_000
_MAX_FRAGMENTS_LENGTH = 300
_MAX_HEADING_WORDS = 6
_MAX_CODE_LENGTH = 1_500
_NESTED_INDENT = 2
_MAX_DEPTH = 20
_NO_HEADING = "Steps"
_BOLD_HEADING_LEVEL, _PLAIN_HEADING_LEVEL = 7, 8
_BULLET = re.compile(r"[ \t]*(?:[-*+•▪‣◦·]|(\d{1,3}[.)]|\(?[a-z]\)))[ \t]+")
_FENCE_IN_ITEM = re.compile(r"^([ \t]*)[-*+]([ \t]+)(?=`{3,}[^`]*$|~{3,})")
_QUOTE = re.compile(r"^([ \t]*)(?:> ?)+(?:\[!\w+\][ \t]*)?")
_TAG_LINE = re.compile(r"[ \t]*</?[A-Za-z][\w.:-]*(?:[ \t][^<>]*)?>[ \t]*")
_UNDERLINE = re.compile(r"[^\n]*\n {0,3}(?:={2,}|-{2,})[ \t]*(?:\n|$)")
_EXAMPLE = re.compile(r"[ \t]*<[\w-]*example", re.IGNORECASE)
_EXAMPLE_END = re.compile(r"[ \t]*</[\w-]*example", re.IGNORECASE)
_STEP = re.compile(
    r"^([ \t]*)(?:\*\*)?(?:step|schritt|étape|paso) (\d{1,2})[:.)](?:\*\*)?[ \t]+(?=\S)(?!.*\*\*[ \t]*$)", re.IGNORECASE
)
_FRONT_MATTER = re.compile(r"---[ \t]*\n(?:(?!---)[^\n]*\n)*---[ \t]*(?:\n|$)")
_FIELD = re.compile(r"([A-Za-z][\w-]*)[ \t]*:[ \t]*(.*)")
_GLOB_FIELDS = ("globs", "glob", "paths", "applyto")
_EVERY_FILE = ("*", "**", "**/*", "*.*", "**/*.*")
_NUMBERING = re.compile(r"^(?:\d+(?:\.\d+)*[.)]?|[A-Z][.)])[ \t]+")
_LEADING_SIGNS = re.compile(r"^[^\w`@/.(\"'«“]+")
_SIGNS = "-–—*#_:;,=~|<>•·→ "
_MAX_LINE_LENGTH = 5_000
# Headings that say nothing about what the rules below them are about.
_GENERIC = frozenset(
    "rules guidelines guidance instructions conventions notes important critical general memories memory preferences "
    "standards principles requirements tips do always general-rules project-rules coding-guidelines key-principles "
    "gemini-added-memories user-preferences important-notes core-principles best-practices key-conventions "
    "regeln richtlinien hinweise wichtig konventionen allgemein règles consignes reglas normas notas".split()
)
_RULES = ("rules", "guidelines", "conventions", "principles", "standards", "regeln", "richtlinien", "règles", "reglas")
# Below these headings, what is listed is not to be done.
_NEGATIVE = frozenset(
    "don't dont donts don'ts do-not never avoid forbidden prohibited anti-patterns antipatterns not-allowed bad "
    "what-not-to-do things-to-avoid never-do nicht verboten vermeiden niemals à-éviter éviter évitez interdit ne-pas "
    "evitar nunca prohibido no-hacer".split()
)
# Below these headings, only what asks for something is a rule.
_DESCRIBING = frozenset(
    "overview introduction about about-this-project background description purpose summary context stack tech-stack "
    "technology-stack technologies tools architecture architecture-overview high-level-architecture structure layout "
    "project-structure directory-structure folder-structure repository-structure repo-structure code-structure "
    "codebase-structure file-structure project-layout repository-layout project-organization key-files "
    "key-directories important-files main-components key-components components modules packages features "
    "table-of-contents contents toc links resources references documentation further-reading see-also glossary "
    "authors contributors credits acknowledgements acknowledgments changelog history roadmap status keywords "
    "project project-overview repository-overview codebase-overview dependencies environment-variables "
    "überblick übersicht einleitung projektstruktur verzeichnisstruktur aufbau struktur über-dieses-projekt "
    "technologien architektur projektübersicht présentation aperçu structure-du-projet introducción resumen "
    "descripción estructura estructura-del-proyecto arquitectura".split()
)
_LICENSE = frozenset("license licence licensing copyright lizenz licencia legal".split())


class Rule(Value):
    """A rule in a file, as the fields of a learning."""

    title: str
    text: str
    """The whole text, with what it belongs to."""
    context: str = ""
    category: str = ""
    polarity: str = "do"
    files: tuple[str, ...] = ()
    """The patterns of the files that it applies to."""
    on_trial: bool = False
    """Whether a learnings.md says that nobody vouches for it."""
    line: int = 0

    @property
    def key(self) -> str:
        """A digest that is the same for the same words."""
        return text_key(self.text)


class LeftOut(Value):
    """A text that is no rule, and why."""

    text: str
    reason: str
    line: int = 0


class RulesFile(Value):
    """The rules in a file, and what was left out."""

    rules: tuple[Rule, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def read_rules(text: str) -> RulesFile:
    """Return the rules in a file's text."""
    text = clean("\n".join(split_lines(text)))
    front_matter = _FRONT_MATTER.match(text)
    fields = _read_front_matter(front_matter[0]) if front_matter else {}
    if front_matter:
        text = "\n" * front_matter[0].count("\n") + text[front_matter.end() :]
    is_rendering = TITLE in text or ID_COMMENT.search(text) is not None
    # A client's memory is one note in a file of its own, with a name and a description.
    takes_all = is_rendering or ("name" in fields and "description" in fields)
    finder = _RuleFinder(takes_all=takes_all)
    finder.read("\n".join(_visible_lines(text)))
    files = _read_globs(fields)
    rules = [rule.replace(files=files) if files else rule for rule in finder.rules]
    return RulesFile(rules=tuple(rules[:MAX_RULES]), left_out=(*finder.left_out, *_leave_out_rest(rules)))


def _leave_out_rest(rules: Sequence[Rule]) -> Iterator[LeftOut]:
    reason = f"the file has more than {MAX_RULES} rules"
    return (LeftOut(text=rule.title, reason=reason, line=rule.line) for rule in rules[MAX_RULES:])


def _read_front_matter(text: str) -> dict[str, list[str]]:
    """Return the fields of simple YAML: texts and lists of texts; anything else is ignored."""
    fields: dict[str, list[str]] = {}
    name = ""
    for line in text.split("\n")[1:-1]:
        field = _FIELD.match(line)
        if field:
            name = field[1].lower()
            fields[name] = [field[2].strip()] if field[2].strip() else []
        elif name and line.lstrip().startswith("- "):
            fields[name].append(line.lstrip()[2:].strip())
    return fields


def _read_globs(fields: dict[str, list[str]]) -> tuple[str, ...]:
    """Return the patterns of the files that the front matter restricts a file to."""
    if fields.get("alwaysapply", [""])[:1] == ["true"]:
        return ()
    values = [value for name in _GLOB_FIELDS for value in fields.get(name, ())]
    globs = [glob.strip(" \t\"'") for value in values for glob in _split_commas(value.strip("[]"))]
    if any(glob in _EVERY_FILE for glob in globs):
        return ()
    usable = [glob for glob in globs if 0 < len(glob) <= TRIGGER_LIMIT and count_wildcards(glob) <= MAX_WILDCARDS]
    return tuple(dict.fromkeys(glob.removeprefix("./") for glob in usable))[:TAG_LIMIT]


def _split_commas(text: str) -> list[str]:
    """Return the parts between commas that are not in braces: `a.{js,ts}, b` has two."""
    depths = list(accumulate((letter == "{") - (letter == "}") for letter in text))
    return "".join(
        "\n" if letter == "," and depth <= 0 else letter for letter, depth in zip(text, depths, strict=True)
    ).split("\n")


def _visible_lines(text: str) -> Iterator[str]:
    """Yield the lines that a reader of the rendered file sees; the others are empty. Quotation marks are removed.

    Examples between tags are left out, too: many show what not to do.
    """
    lines = [_FENCE_IN_ITEM.sub(r"\1 \2", line[:_MAX_LINE_LENGTH]) for line in text.split("\n")]
    last_example = max((number for number, line in enumerate(lines) if _EXAMPLE_END.match(line)), default=-1)
    in_example = False
    for number, unit in split_units(lines):
        in_example = (in_example or _EXAMPLE.match(unit[0]) is not None) and number <= last_example
        if in_example or (len(unit) > 1 and not find_fence(unit[0])):
            yield from [""] * len(unit)
            in_example = in_example and not _EXAMPLE_END.match(unit[-1])
        elif len(unit) > 1:
            yield from unit
        else:
            line = _STEP.sub(r"\1\2. ", drop_comments(_QUOTE.sub(r"\1", unit[0])).expandtabs(4))
            yield "" if _TAG_LINE.fullmatch(line) or find_fence(line) else line


class _Node:
    """A paragraph or an item, with what belongs to it."""

    def __init__(self, block: Block, line: int, *, indent: int = -1, number: str = "") -> None:
        self.text = plain_text(block.text)
        self.is_link = is_link(block.text)
        self.line = line
        self.indent = indent
        """The indent of an item; -1 for a paragraph."""
        self.number = number
        """The number of a step; empty for other items."""
        self.children: list[_Node] = []
        self.more: list[str] = []
        """Further paragraphs: reasons and details."""
        self.code = ""

    def without_details(self) -> _Node:
        """Return the text alone."""
        alone = copy(self)
        alone.children, alone.more, alone.code = [], [], ""
        return alone

    @property
    def has_steps(self) -> bool:
        return any(child.number for child in self.children)

    @property
    def is_item(self) -> bool:
        return self.indent >= 0

    @property
    def introduces(self) -> bool:
        """Whether the text only makes sense with what follows."""
        return self.text.endswith((":", "：")) and bool(self.children or self.code)


class _RuleFinder:
    """Reads a file block by block, and collects its rules."""

    def __init__(self, *, takes_all: bool) -> None:
        self.rules: list[Rule] = []
        self.left_out: list[LeftOut] = []
        self._takes_all = takes_all
        self._keys: set[str] = set()
        self._headings: list[tuple[int, str]] = []
        self._nodes: list[_Node] = []
        self._items: list[_Node] = []  # the item that was read last, and those that it is nested in
        self._has_title = False
        self._title = ""

    def read(self, text: str) -> None:
        """Read a whole file."""
        starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        blocks = list(read_blocks(text))
        levels = [_heading_level(text, block) for block in blocks if block.kind == HEADING]
        self._has_title = levels[:1] == [1] and (levels.count(1) == 1 or levels[1] > 1)
        for block in blocks:
            line = bisect_right(starts, block.start)
            prefix = text[starts[line - 1] : block.start]
            self._read_block(block, line, prefix=prefix, level=_heading_level(text, block))
        self._end_section()

    def _read_block(self, block: Block, line: int, *, prefix: str, level: int) -> None:
        if block.kind == HEADING and not (level == _BOLD_HEADING_LEVEL and is_self_standing(plain_text(block.text))):
            self._end_section()
            if not self._headings and level == 1 and self._has_title and not self._title:
                self._title = _read_heading(block.text)
            self._headings = [(above, name) for above, name in self._headings if above < level]
            self._headings.append((level, _read_heading(block.text)))
        elif block.kind == ITEM:
            self._read_item(block, line, prefix)
        elif block.kind in (PARAGRAPH, HEADING):
            self._items = []
            self._nodes.append(_Node(block, line))
        elif block.kind == CODE:
            self._read_code(block, line)
        else:
            self._leave_out(block.text, "a table" if block.kind == TABLE else "a reference", line)

    def _read_item(self, block: Block, line: int, prefix: str) -> None:
        bullet = _BULLET.match(prefix)
        indent = len(prefix) - len(prefix.lstrip())
        if bullet is None and self._items:
            self._leave_items(indent)
            (self._items or self._nodes)[-1].more.append(plain_text(block.text))
            return
        self._leave_items(indent)
        del self._items[_MAX_DEPTH:]
        node = _Node(block, line, indent=indent, number=(bullet[1] or "") if bullet else "")
        (self._items[-1].children if self._items else self._nodes).append(node)
        self._items.append(node)

    def _leave_items(self, indent: int) -> None:
        """Leave the items that a line with this indent is not nested in; keep the outermost for text below it."""
        while self._items and indent < self._items[-1].indent + _NESTED_INDENT:
            self._items.pop()

    def _read_code(self, block: Block, line: int) -> None:
        lines = block.text.split("\n")
        is_fenced = bool(find_fence(lines[0]))
        indent = len(lines[0]) - len(lines[0].lstrip())
        self._leave_items(indent)
        node = self._items[-1] if self._items else self._nodes[-1] if self._nodes else None
        belongs = node is not None and (bool(self._items or node.number) or not node.is_item or node.text.endswith(":"))
        code = "\n".join(line[min(indent, len(line) - len(line.lstrip())) :] for line in lines)
        code = "\n".join(code.split("\n")[1:-1]) if is_fenced else code
        if node is None or not belongs or node.code or len(code) > _MAX_CODE_LENGTH or not code.strip():
            self._leave_out(code, "code without a rule", line)
        else:
            node.code = code.strip("\n")

    def _end_section(self) -> None:
        """Find the rules between two headings."""
        nodes, self._nodes, self._items = self._nodes, [], []
        if self._path() and key_of(self._path()[-1]) in _LICENSE:
            for node in nodes:
                self._leave_out(node.text, "license text", node.line)
            return
        for node in self._join_nodes(self._group_steps(nodes)):
            self._take(node, ())
        self._headings = [(level, name) for level, name in self._headings if level != _PLAIN_HEADING_LEVEL]

    def _group_steps(self, nodes: Sequence[_Node]) -> list[_Node]:
        """Put steps below the text that introduces them, or below their heading."""
        grouped: list[_Node] = []
        for run in _split_runs(nodes):
            above = grouped[-1] if grouped and not grouped[-1].is_item and not grouped[-1].children else None
            if above and not (_is_short(above.text) or above.text.endswith(":") or introduces_steps(above.text)):
                above = None
            if not _are_steps(run, above.text if above else self._heading()):
                grouped += run
            elif above:
                above.children += run
            else:
                heading = run[0].without_details()
                heading.text, heading.number, heading.indent, heading.children = self._heading(), "", -1, run
                grouped.append(heading)
        return grouped

    def _heading(self) -> str:
        """Return what steps without an introduction are about."""
        return next((name for name in (*self._path()[::-1], self._title) if name and ".md" not in name), _NO_HEADING)

    def _join_nodes(self, nodes: Iterable[_Node]) -> Iterator[_Node]:
        """Yield paragraphs and items, each joined with the list below it and with its reasons.

        A short line above a list is a heading that lacks its mark.
        """
        last: _Node | None = None
        for node in nodes:
            if last is not None and not node.is_item and is_label(node.text):
                last.more += filter(None, (node.text, _indent_code(node.code)))
                continue
            if last is not None and node.is_item and not last.has_steps and _introduces_list(last):
                last.children.append(node)
                continue
            if last is not None:
                yield from self._as_heading(last) if node.is_item else [last]
            last = node
        if last is not None:
            yield last

    def _as_heading(self, node: _Node) -> Iterator[_Node]:
        """Yield a node that precedes a list, or make it a heading."""
        is_heading = (
            not (node.is_item or node.code or node.children)
            and _is_short(node.text)
            and not asks_for_something(node.text)
        )
        if not is_heading:
            yield node
            return
        self._headings = [(level, name) for level, name in self._headings if level != _PLAIN_HEADING_LEVEL]
        self._headings.append((_PLAIN_HEADING_LEVEL, _read_heading(node.text)))

    def _take(self, node: _Node, intros: tuple[str, ...]) -> None:
        """Make rules of a node and of those below it."""
        if not node.text:
            return
        if not node.children:
            self._take_sentences(node, intros)
            return
        if node.has_steps:
            self._take_steps(node, intros)
            return
        if node.introduces:
            intro = node.text.rstrip(":：").rstrip()
            if _are_fragments(node.children) or is_cut(intro):
                self._add(node, f"{intro}: {', '.join(map(_flatten, node.children))}", intros)
                return
            for child in node.children:
                self._take(child, (*intros, intro))
            return
        fragments = [child for child in node.children if child.children or not is_self_standing(child.text)]
        details = "; ".join(_flatten(child) for child in fragments)
        self._add(node, f"{node.text.rstrip('.:')}: {details}" if details else node.text, intros)
        for child in node.children:
            if child not in fragments:
                self._take(child, (*intros, node.text.rstrip(".")))

    def _take_sentences(self, node: _Node, intros: tuple[str, ...]) -> None:
        """Make a rule of a text, or one of each sentence of a paragraph; code and reasons belong to the last one."""
        *others, last = split_demands(node.text) if not node.is_item and not intros else [node.text]
        for sentence in others:
            self._add(node.without_details(), sentence, intros)
        self._add(node, last, intros)

    def _take_steps(self, node: _Node, intros: tuple[str, ...]) -> None:
        """Make one rule of a text and its steps."""
        intro = node.text.rstrip(".:：")
        steps = "\n".join(f"{number}. {_flatten(child)}" for number, child in enumerate(node.children, 1))
        texts = [child.text.rstrip(".:") for child in node.children]
        title = f"{intro}: {' '.join(f'({number}) {text}' for number, text in enumerate(texts, 1))}"
        if len(title) > TITLE_LIMIT:
            count = f" ({len(texts)}{' steps' * ('step' not in intro.lower())})"
            title = make_title(f"{intro}:", room=len(count)) + count
            if " " not in intro and len(title) < TITLE_LIMIT // 2:
                title += f", first: {shorten(texts[0], TITLE_LIMIT - len(title) - len(', first: '))}"
        self._add(node, f"{intro}:\n{steps}", intros, title=title)

    def _add(self, node: _Node, text: str, intros: tuple[str, ...], *, title: str = "") -> None:
        """Add a rule, or note why the text is none."""
        polarity = "do"
        if self._takes_all and text.startswith(UPDATED):
            return
        if self._takes_all and text.startswith(AVOID):
            text, polarity = text.removeprefix(AVOID), "avoid"
        is_below_negative = any(key_of(name) in _NEGATIVE for _, name in self._headings[-1:]) and not title
        if is_below_negative and asks_for_something(text) != "not":
            polarity = "avoid"
        reason = self._reason_against(node, AVOID + text if polarity == "avoid" else text, intros)
        if reason:
            self._leave_out(text, reason, node.line)
            return
        path = self._path()
        is_topic = bool(path) and key_of(path[-1]) not in _GENERIC | _NEGATIVE
        if is_topic and not intros and not title and (needs_subject(text) or names_situation(path[-1])):
            intros = (path[-1].rstrip("."),)
        title = title or make_title(text, intros=intros, code=node.code)
        whole = "\n\n".join(filter(None, (": ".join((*intros, text)), *node.more, _indent_code(node.code))))
        rule = Rule(
            title=title,
            text=whole,
            context=self._context(path),
            category=self._category(path),
            polarity=polarity,
            on_trial=ON_TRIAL in path,
            line=node.line,
        )
        if rule.key in self._keys or len(whole) > _MAX_WHOLE_LENGTH:
            reason = "it is in the file twice" if rule.key in self._keys else "a long text"
            self._leave_out(text, reason, node.line)
            return
        self._keys.add(rule.key)
        self.rules.append(rule)

    def _reason_against(self, node: _Node, text: str, intros: tuple[str, ...]) -> str:
        limit = _MAX_ITEM_LENGTH if node.is_item or node.children else _MAX_PARAGRAPH_LENGTH
        if len(text) > limit:
            return "a long text"
        if node.is_link and not node.children:
            return "links"
        reason = find_reason_against(text, has_more=bool(node.code or node.more or intros))
        if reason or self._takes_all:
            return "" if self._takes_all and reason.startswith("describes") else reason
        is_describing = self._is_describing() or describes_name(text)
        parts = (*intros, text, *(child.text for child in node.children))
        if (is_describing or not (node.is_item or node.has_steps)) and not any(
            asks_for_something(part, strictly=is_describing) for part in parts
        ):
            return "describes the project"
        return ""

    def _is_describing(self) -> bool:
        return any(key_of(name) in _DESCRIBING for name in self._path())

    def _path(self) -> list[str]:
        """Return the headings above, without the file's title."""
        return [name for level, name in self._headings if name and not (level == 1 and name == self._title)]

    def _category(self, path: Sequence[str]) -> str:
        named = [
            name.replace("`", "") for name in path if key_of(name) not in _GENERIC | _NEGATIVE and name != ON_TRIAL
        ]
        if not named:
            return ""
        return category_of(named[0].capitalize() if named[0].istitle() or named[0].islower() else named[0])

    def _context(self, path: Sequence[str]) -> str:
        return fold(" › ".join(path)) if len(path) > 1 else ""

    def _leave_out(self, text: str, reason: str, line: int) -> None:
        if text.strip():
            self.left_out.append(LeftOut(text=fold(text)[:TITLE_LIMIT], reason=reason, line=line))


def _heading_level(text: str, block: Block) -> int:
    """Return the level of a heading: from its marks, or from the line below it."""
    start = text.rfind("\n", 0, block.start) + 1
    marks = text[start : block.start].strip()
    if marks.startswith("#"):
        return len(marks)
    underline = _UNDERLINE.match(text, block.end)
    return _BOLD_HEADING_LEVEL if underline is None else 1 if "=" in underline[0] else 2


def _read_heading(text: str) -> str:
    """Return a heading without numbers, symbols and marks, within the length of a category."""
    plain = _LEADING_SIGNS.sub("", plain_text(text.rstrip("# "))).rstrip(_SIGNS)
    return fold(_NUMBERING.sub("", plain, count=1)[:TITLE_LIMIT]).replace("’", "'")


def _is_short(text: str) -> bool:
    return len(text.split()) <= _MAX_HEADING_WORDS and not text.endswith((".", "!", "?", ";"))


def _introduces_list(node: _Node) -> bool:
    """Return whether the items below a paragraph only make sense with it; `Testing:` alone is a heading."""
    if node.is_item or not node.text.endswith((":", "：")):
        return False
    return not _is_short(node.text) or names_situation(node.text) or bool(asks_for_something(node.text))


def _split_runs(nodes: Sequence[_Node]) -> Iterator[list[_Node]]:
    """Yield the numbered lists, and each other node alone; where the numbers fall, another list starts."""
    run = list(nodes[:1])
    for before, node in pairwise(nodes):
        falls = (len(node.number), node.number) < (len(before.number), before.number)
        if falls or not before.number or not node.number:
            yield run
            run = []
        run.append(node)
    yield run


def _are_steps(run: Sequence[_Node], above: str) -> bool:
    """Return whether items are steps, rather than rules that hold at any time; if not, they lose their numbers."""
    for node in run:
        for below in _split_runs(node.children):
            _are_steps(below, node.text)
    lasting = sum(is_lasting(node.text) or bool(node.children and not asks_for_something(node.text)) for node in run)
    are_rules = key_of(above) in _GENERIC or key_of(above).endswith(_RULES) or 2 * lasting >= len(run)
    if len(run) > 1 and run[0].number and (introduces_steps(above) or not are_rules):
        return True
    for node in run:
        node.number = ""
    return False


def _are_fragments(nodes: Sequence[_Node]) -> bool:
    """Return whether items only make sense together: words, names and values rather than statements."""
    if any(node.children or node.code or node.more or is_self_standing(node.text) for node in nodes):
        return False
    return sum(len(node.text) for node in nodes) <= _MAX_FRAGMENTS_LENGTH


def _flatten(node: _Node) -> str:
    """Return an item with those below it on one line."""
    is_long = "\n" in node.code
    code = f"\n{_indent_code(node.code)}" if is_long else node.code and f" `{node.code}`"
    own = " ".join((node.text, *node.more)) + code
    below = "; ".join(map(_flatten, node.children))
    return f"{own.rstrip('.:')}: {below}" if below else own


def _indent_code(code: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in code.split("\n")) if code else ""
