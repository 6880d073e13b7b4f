"""Split a topic file that has grown too long into several, by its headings, without losing anything.

Every line of the file is in exactly one of the new files, in the same order, and the file itself stays, with a link to
each part. Large sections become files of their own, named after their headings. Of many small ones, those whose titles
share a word go together; the word gives the name. Links to a section that has moved lead to its new file, and a part
gets its own copy of the link definitions that it uses. A file that was split stays as it is if it is split again.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote, unquote

from learnt.consolidate.topics import MARK, is_own, make_name
from learnt.model import Value
from learnt.text.meaning import rarity
from learnt.text.outline import Heading, Outline
from learnt.text.words import spell_words, words

LIMIT_LINES = 400
_LARGE_SECTION = 30
_MIN_SHARING = 3
_ENDING = ".md"
_LINK = re.compile(r"(\]\()([^()\s#]*)#([^()\s]+)(?=[)\s])")
_DEFINITION = re.compile(r" {0,3}\[([^\[\]]+)\]:")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")  # git ends a line nowhere else
_USE = re.compile(r"\[([^\[\]]+)\]")
_NO_ANCHOR = re.compile(r"[^\w\- ]")
_SAFE_IN_LINKS = "/-._~!$&'*+,;=:@"


class _CutSection(Value):
    """A heading with everything up to the next one of its level."""

    heading: Heading
    start: int
    end: int

    @property
    def lines(self) -> int:
        return self.end - self.start


class _NewFile(Value):
    """Sections that become a file of their own."""

    name: str
    title: str
    sections: tuple[_CutSection, ...]


def count_lines(text: str) -> int:
    """Return how many lines a file has, as `wc -l` counts them."""
    return text.count("\n")


def split(
    path: str,
    text: str,
    *,
    limit: int = LIMIT_LINES,
    others: Mapping[str, str] | None = None,
    reserved: Collection[str] = (),
) -> dict[str, str]:
    """Return the texts of the files that a topic file becomes, and of the other files whose links to it change.

    It is returned as it is if it is short enough, or if it has no headings to split it by. `others` are the other topic
    files; their names are not used again, nor are those of further files, `reserved`.
    """
    others = others or {}
    files = _split(path, text, limit, taken={other.casefold() for other in (path, *others, *reserved)})
    if len(files) == 1:
        return {path: text}
    homes = _find_homes(path, files)
    redirected = {name: _redirect(name, content, path, homes) for name, content in {**files, **others}.items()}
    return {name: content for name, content in redirected.items() if content != others.get(name)}


def render_patch(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return the change from some files to others as a patch that `git apply` takes."""
    pieces: list[str] = []
    for path in sorted(after):
        old = before.get(path)
        changes = difflib.unified_diff(
            _LINES.findall(old or ""),
            _LINES.findall(after[path]),
            "/dev/null" if old is None else f"a/{path}",
            f"b/{path}",
        )
        pieces += (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in changes)
    return "".join(pieces)


def _split(path: str, text: str, limit: int, taken: set[str]) -> dict[str, str]:
    """Return the files that a file becomes; only the file itself if it cannot or need not be split."""
    outline = Outline(text)
    sections = _cut(outline)
    if count_lines(text) < limit or not sections:
        return {path: text}
    title, has_mark = _title_of(outline, path), is_own(text)
    parts = _choose_parts(outline, sections, limit, own=frozenset(words(title)))
    files: dict[str, str] = {}
    links = []
    for part in parts:
        new_path = _find_free(posixpath.join(posixpath.dirname(path), f"{_name_of(path)}-{part.name}"), taken)
        links.append(f"See also: [{_label(part.title)}]({_as_target(posixpath.basename(new_path))})")
        new_text = _render_part(outline, part, f"{title}: {part.title}", has_mark=has_mark)
        files |= _split(new_path, new_text, limit, taken)
    rest = _render_rest(outline, sections, parts, links)
    return {**_split(path, rest, limit, taken), **files}


def _cut(outline: Outline) -> list[_CutSection]:
    """Return the sections at the highest level that has several, without the title of the file."""
    levels = [heading.level for heading in outline.headings]
    several = [level for level in range(1, 7) if levels.count(level) > 1]
    if not several:
        return []
    first = next(heading.line for heading in outline.headings if heading.level == several[0])
    borders = [heading for heading in outline.headings if heading.level <= several[0] and heading.line >= first]
    ends = [*(heading.line for heading in borders[1:]), outline.skip_blank_lines(len(outline.lines))]
    return [
        _CutSection(heading=heading, start=heading.line, end=end) for heading, end in zip(borders, ends, strict=True)
    ]


def _choose_parts(outline: Outline, sections: Sequence[_CutSection], limit: int, own: frozenset[str]) -> list[_NewFile]:
    """Return the parts that leave half of the limit for the file itself, if possible."""
    total = sum(section.lines for section in sections)
    if total >= _LARGE_SECTION * len(sections):
        candidates = _list_large(sections)
    else:
        candidates = _list_sharing(sections, limit, own)
    rest, parts = list(sections), []
    left = len(outline.lines)
    for part in candidates:
        if left < limit // 2 or len(rest) == 1:
            break
        parts.append(part)
        rest = [section for section in rest if section not in part.sections]
        left -= sum(section.lines for section in part.sections)
    return parts + (_cut_tail(rest, left, limit) if left >= limit else [])


def _list_large(sections: Sequence[_CutSection]) -> Iterator[_NewFile]:
    for section in sorted(sections, key=lambda section: (-section.lines, section.start)):
        yield _NewFile(
            name=make_name(section.heading.title) or "more", title=section.heading.title, sections=(section,)
        )


def _list_sharing(sections: Sequence[_CutSection], limit: int, own: frozenset[str]) -> Iterator[_NewFile]:
    """Yield parts of sections whose titles share a word that is not in the file's own title."""
    rest = list(sections)
    while True:
        by_word: dict[str, list[_CutSection]] = {}
        for section in rest:
            for word in sorted(frozenset(words(section.heading.title)) - own):
                by_word.setdefault(word, []).append(section)
        fitting = {
            word: sharing
            for word, sharing in by_word.items()
            if len(sharing) >= _MIN_SHARING and sum(section.lines for section in sharing) < limit // 2
        }
        if not fitting:
            return
        word = min(fitting, key=lambda word: (-len(fitting[word]) * rarity(word), word))
        sharing = fitting[word]
        spelled = next(filter(None, (spell_words(section.heading.title).get(word) for section in sharing)), word)
        yield _NewFile(name=make_name(spelled) or make_name(word) or "more", title=spelled, sections=tuple(sharing))
        rest = [section for section in rest if section not in sharing]


def _cut_tail(sections: Sequence[_CutSection], left: int, limit: int) -> list[_NewFile]:
    """Return parts of neighbouring sections, from the end, until the rest is short enough."""
    parts: list[_NewFile] = []
    bundle: list[_CutSection] = []
    for section in reversed(sections[1:]):
        if left < limit // 2:
            break
        if bundle and sum(other.lines for other in bundle) + section.lines >= limit // 2:
            parts.append(_bundle(bundle))
            bundle = []
        bundle.insert(0, section)
        left -= section.lines
    return [*parts, *([_bundle(bundle)] if bundle else [])]


def _bundle(sections: Sequence[_CutSection]) -> _NewFile:
    first = sections[0].heading.title
    return _NewFile(name=make_name(first) or "more", title=first, sections=tuple(sections))


def _render_part(outline: Outline, part: _NewFile, title: str, *, has_mark: bool) -> str:
    end = _line_end(outline)
    has_title = part.sections[0].heading.level == 1
    head = [*([] if has_title else [f"# {_label(title)}", ""]), *([MARK, ""] if has_mark else [])]
    body = _take_lines(outline, part.sections)
    return "\n".join((*(line + end for line in head), *body, *_find_definitions(outline, body), ""))


def _line_end(outline: Outline) -> str:
    return "\r" if outline.lines[0].endswith("\r") else ""


def _find_definitions(outline: Outline, body: Sequence[str]) -> list[str]:
    """Return copies of the definitions of links that some lines of the file use and do not contain."""
    used = {name.casefold() for line in body for name in _USE.findall(line)}
    own = {match[1].casefold() for line in body if (match := _DEFINITION.match(line))}
    definitions = [
        line
        for number, line in enumerate(outline.lines)
        if number not in outline.hidden and (match := _DEFINITION.match(line)) and match[1].casefold() in used - own
    ]
    end = _line_end(outline)
    return [end, *(line.rstrip("\r") + end for line in definitions)] if definitions else []


def _take_lines(outline: Outline, sections: Iterable[_CutSection]) -> list[str]:
    """Return the lines of sections; the last one of the file may lack the blank line that stood between two."""
    lines: list[str] = []
    for section in sorted(sections, key=lambda section: section.start):
        if lines and lines[-1].strip():
            lines.append("\r" if lines[-1].endswith("\r") else "")
        lines += outline.lines[section.start : section.end]
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _render_rest(
    outline: Outline, sections: Sequence[_CutSection], parts: Sequence[_NewFile], links: Sequence[str]
) -> str:
    """Return the file without the parts, with links to them above its first section."""
    moved = {section.start for part in parts for section in part.sections}
    end = _line_end(outline)
    above = list(outline.lines[: outline.skip_blank_lines(sections[0].start)])
    head = [*above, *([end] if above else []), *(line + end for link in links for line in (link, ""))]
    kept = [*head, *_take_lines(outline, (section for section in sections if section.start not in moved))]
    return "\n".join((*kept, *_find_definitions(outline, kept), *outline.lines[sections[-1].end :]))


def _title_of(outline: Outline, path: str) -> str:
    """Return the title of a file: its first heading, if that is one of the highest level."""
    first = next(iter(outline.headings), None)
    return first.title if first is not None and first.level == 1 else _name_of(path).capitalize()


def _name_of(path: str) -> str:
    return posixpath.basename(path).removesuffix(_ENDING)


def _find_free(stem: str, taken: set[str]) -> str:
    """Return a path that no other file has."""
    path, number = f"{stem}{_ENDING}", 1
    while path.casefold() in taken:
        number += 1
        path = f"{stem}-{number}{_ENDING}"
    taken.add(path.casefold())
    return path


def _label(title: str) -> str:
    """Return a title as the text of a link or heading."""
    return title.replace("[", "(").replace("]", ")").replace("<!--", r"\<!--")


def _as_target(path: str) -> str:
    """Return a path as the target of a link."""
    return quote(path, safe=_SAFE_IN_LINKS)


def _find_homes(path: str, files: Mapping[str, str]) -> dict[str, str]:
    """Return the new file of each anchor that is not in the file itself any more."""
    homes = {
        anchor_of(heading.title): name
        for name, content in reversed(list(files.items()))
        for heading in Outline(content).headings
    }
    return {anchor: name for anchor, name in homes.items() if name != path}


def anchor_of(title: str) -> str:
    """Return the anchor by which a link reaches a heading, as forges make it."""
    return _NO_ANCHOR.sub("", title.lower()).replace(" ", "-")


def _redirect(name: str, text: str, old: str, homes: Mapping[str, str]) -> str:
    """Return a file with its links to sections of the file that was split."""
    if "#" not in text or "](" not in text:
        return text
    outline, folder = Outline(text), posixpath.dirname(name)
    own = {anchor_of(heading.title) for heading in outline.headings}
    was_part = name == old or name in homes.values()

    def find_target(match: re.Match[str]) -> str:
        opening, target, anchor = match.groups()
        place = posixpath.normpath(posixpath.join(folder, unquote(target))) if target else old if was_part else name
        home = homes.get(anchor)
        if place != old or (home is None and (not was_part or target or anchor in own)):
            return match[0]
        if anchor in own and was_part:
            return f"{opening}#{anchor}"
        new = posixpath.relpath(home or old, folder or ".")
        return f"{opening}{_as_target(new)}#{anchor}"

    return "\n".join(
        line if number in outline.hidden or "](" not in line else _LINK.sub(find_target, line)
        for number, line in enumerate(outline.lines)
    )
