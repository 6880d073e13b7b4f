"""Merge `learnings.md` of two branches, bullet by bullet, without a conflict.

A bullet is the same on both sides if it names the same learning or, without a learning, has the same text. A bullet
that one side has removed does not come back from a side that has not changed it. Where both sides have changed a
bullet, the text that a rendering wrote gives way to a person's; if neither is known, both stay, and the next update
decides. Other text is merged line by line, and where both sides have changed the same place, the lines of both stay.

If both branches have rendered the file, both renderings are named at its end: what the people of both sides saw is then
not known, and no missing bullet is taken for one that somebody removed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import count

from learnt.learnings_file.lines import bullet_key, drop_ids, split_line
from learnt.learnings_file.read import (
    UPDATED,
    Bullet,
    bullets_by_line,
    is_heading,
    is_trailer,
    split_lines,
    split_units,
)
from learnt.model import Value
from learnt.text.three_way import MergedText, merge_items

Key = tuple[str, int]
"""A learning's id, a bullet's text or a heading, and its number among equal ones."""
Item = str | Key
"""A line or block of loose text, or the key of a bullet."""
IsRendered = Callable[[str, str], bool]
_UPDATED = ("updated", -1)
_BELOW = " "  # in the place of a heading: below the line that names the rendering


class _Branch(Value):
    """One version of the file."""

    sections: Mapping[Key, list[Item]]
    """What stands below each heading, in order."""
    bullets: Mapping[Key, tuple[Bullet, str]]
    """Each bullet with its lines."""
    updated: str = ""
    trailers: tuple[str, ...] = ()


def merge_branches(base: str, ours: str, theirs: str, *, is_rendered: IsRendered) -> MergedText:
    """Return the merged file; `is_rendered` returns whether a rendering has shown a learning with a text."""
    before, own, other = (_read_branch(text) for text in (base, ours, theirs))
    texts = {
        key: _merge_bullet(before.bullets.get(key), own.bullets.get(key), other.bullets.get(key), is_rendered)
        for key in {**own.bullets, **other.bullets}
    }
    sections = list(_merge_sections(before, own, other, texts))
    texts[_UPDATED] = [max(own.updated, other.updated)]
    lines: list[str] = []
    below: list[str] = []
    placed: set[Key] = set()
    for heading, items in sections:
        content = list(_write(items, texts, placed))
        while content and not content[-1].strip():
            content.pop()
        if content or (heading[0] and heading in own.sections and heading in other.sections):
            part = below if heading[0] == _BELOW else lines
            part += [*filter(None, [heading[0].strip()]), *content, ""]
    trailers = _choose_trailers(before.trailers, own.trailers, other.trailers)
    return MergedText(text="".join(f"{line}\n" for line in [*lines, *trailers, *below]))


def _read_branch(text: str) -> _Branch:
    lines = split_lines(text)
    bullets, places = _read_bullets(lines)
    sections: dict[Key, list[Item]] = {("", 0): []}
    trailers: dict[str, None] = {}
    updated = ""
    for number, unit in split_units(lines):
        items, line = sections[next(reversed(sections))], unit[0]
        if number in places:
            items += [key for key in (places[number],) if key]
        elif len(unit) == 1 and is_heading(line):
            sections[_count_up(line.strip(), sections)] = []
        elif len(unit) == 1 and is_trailer(line):
            trailers[line] = None
            sections[_BELOW, 0] = [*sections.pop((_BELOW, 0), []), ""]  # what follows belongs to no heading
        elif line.startswith(UPDATED) and not updated:
            updated = line
            items.append(_UPDATED)
        else:
            items.append("\n".join(unit))
    return _Branch(sections=sections, bullets=bullets, updated=updated, trailers=tuple(trailers))


def _read_bullets(lines: Sequence[str]) -> tuple[dict[Key, tuple[Bullet, str]], dict[int, Key | None]]:
    """Return the bullets with their lines, and the bullet that begins at each of these lines."""
    bullets: dict[Key, tuple[Bullet, str]] = {}
    places: dict[int, Key | None] = {}
    for numbers, bullet in bullets_by_line(lines):
        key = _count_up(bullet.id or bullet_key(bullet.text), bullets)
        bullets[key] = bullet, "\n".join(lines[number] for number in numbers)
        places |= dict.fromkeys(numbers, None) | {numbers[0]: key}
    return bullets, places


def _count_up(name: str, known: Container[Key]) -> Key:
    return next((name, number) for number in count() if (name, number) not in known)


def _merge_sections(
    before: _Branch, own: _Branch, other: _Branch, texts: Mapping[Key, list[str]]
) -> Iterator[tuple[Key, list[Item]]]:
    """Yield the headings of both sides, each with what stands below it."""
    # What one side has removed and the other has edited counts as new there, so that it stays in its section.
    kept = {key for key, lines in texts.items() if lines and not (key in own.bullets and key in other.bullets)}
    common = [heading for heading in before.sections if heading in own.sections and heading in other.sections]
    for heading in merge_items(common, list(own.sections), list(other.sections)):
        items = [item for item in before.sections.get(heading, ()) if item not in kept]
        yield heading, merge_items(items, own.sections.get(heading, ()), other.sections.get(heading, ()))


def _write(items: Sequence[Item], texts: Mapping[Key, list[str]], placed: set[Key]) -> Iterator[str]:
    """Yield the lines of a section, and each bullet only once in the file: both sides may have moved it."""
    for item in items:
        if isinstance(item, str):
            yield item
        elif item not in placed:
            placed.add(item)
            yield from texts.get(item, ())


def _choose_trailers(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> list[str]:
    if base in (ours, theirs):
        return list(theirs if ours == base else ours)
    return list(dict.fromkeys([*ours, *theirs]))


def _merge_bullet(
    base: tuple[Bullet, str] | None,
    ours: tuple[Bullet, str] | None,
    theirs: tuple[Bullet, str] | None,
    is_rendered: IsRendered,
) -> list[str]:
    """Return the lines of a bullet: none if it is gone, and those of both sides if nobody knows which are right."""
    if ours is None or theirs is None:
        bullet, lines = ours or theirs or (Bullet(text=""), "")
        is_gone = base is not None and (bullet.text == base[0].text or is_rendered(bullet.id, bullet.text))
        return [] if is_gone else [lines]
    own, other = (drop_ids(side[0].text) for side in (ours, theirs))
    if own == other or (base is not None and other == drop_ids(base[0].text)):
        return [ours[1]]
    if base is not None and own == drop_ids(base[0].text):
        return [theirs[1]]
    if split_line(own)[0] == split_line(other)[0] and not (split_line(own)[1] and split_line(other)[1]):
        return [max(ours[1], theirs[1], key=len)]  # only one of them had room for the action
    if is_rendered(theirs[0].id, theirs[0].text):
        return [ours[1]]
    return [theirs[1]] if is_rendered(ours[0].id, ours[0].text) else [ours[1], theirs[1]]
