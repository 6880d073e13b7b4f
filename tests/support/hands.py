"""Random edits to a learnings file: anything that an editor, a merge or a mistake can do to text.

Every typed text contains a unique word, so that a test can find it wherever it was moved.
"""

from __future__ import annotations

import itertools
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

WORD = re.compile(r"\bzz\d+z\b")
_ID = re.compile(r"<!-- learn_\w+ -->")
_COMMENT = re.compile(r"<!-- (?:learn_|learnt: r_)\w+ -->")
_HEADINGS = ("Testing", "Git workflow", "Code structure", "API & Co", "General", "testing", "Überblick")


class Hands:
    """A person who edits the file; `chance` chooses the edit."""

    def __init__(self, chance: random.Random, words: itertools.count[int]) -> None:
        self._chance = chance
        self._words = words

    def word(self) -> str:
        """Return a word that has not been typed before."""
        return f"zz{next(self._words)}z"

    def edited(self, text: str) -> str:
        """Return a file after one edit."""
        edit = self._chance.choice(EDITS)
        ends = "\r\n" if "\r\n" in text else "\n"
        lines = text.replace("\r\n", "\n").split("\n")
        edit(self, lines)
        return ends.join(lines)

    def add(self, lines: list[str]) -> None:
        word = self.word()
        sign = self._chance.choice(("-", "-", "*", "+", "1.", "  -"))
        bullet = [f"{sign} Typed {word} by hand"]
        if self._chance.random() < 0.2:
            bullet = [f"{sign} Use {word} here. It is better than `{self.word()}`", f"  because of {self.word()}"]
        self._insert(lines, bullet)

    def append(self, lines: list[str]) -> None:
        lines += [f"- Below the last line {self.word()}", ""]

    def add_twice(self, lines: list[str]) -> None:
        bullet = f"- Typed {self.word()} twice"
        self._insert(lines, [bullet])
        self._insert(lines, [bullet])

    def reword(self, lines: list[str]) -> None:
        for place in self._some(lines, _is_bullet):
            comment = _ID.search(lines[place])
            lines[place] = f"- Reworded {self.word()} {comment[0] if comment else ''}".rstrip()

    def lengthen(self, lines: list[str]) -> None:
        for place in self._some(lines, _is_bullet):
            sign, _, rest = lines[place].strip().partition(" ")
            lines[place] = f"{sign} Also {self.word()}, and {rest}"

    def delete(self, lines: list[str]) -> None:
        for place in self._some(lines, _is_bullet):
            del lines[place]

    def delete_many(self, lines: list[str]) -> None:
        kept = [line for line in lines if not _is_bullet(line) or self._chance.random() < 0.5]
        lines[:] = kept

    def move(self, lines: list[str]) -> None:
        for place in self._some(lines, _is_bullet):
            bullet = lines.pop(place)
            if not any(map(_is_heading, lines)):
                self.add_heading(lines)
            lines.insert(self._some(lines, _is_heading)[0] + 1, bullet)

    def shuffle(self, lines: list[str]) -> None:
        places = [place for place, line in enumerate(lines) if _is_bullet(line)]
        bullets = [lines[place] for place in places]
        self._chance.shuffle(bullets)
        for place, bullet in zip(places, bullets, strict=True):
            lines[place] = bullet

    def double(self, lines: list[str]) -> None:
        for place in self._some(lines, _is_bullet):
            lines.insert(place, lines[place])

    def double_and_reword(self, lines: list[str]) -> None:
        for place in self._some(lines, _is_bullet):
            comment = _ID.search(lines[place])
            lines.insert(place, f"- Said otherwise {self.word()} {comment[0] if comment else ''}".rstrip())

    def strip_one_comment(self, lines: list[str]) -> None:
        for place in self._some(lines, lambda line: "<!--" in line):
            lines[place] = _COMMENT.sub("", lines[place]).rstrip()

    def strip_comments(self, lines: list[str]) -> None:
        lines[:] = [_COMMENT.sub("", line).rstrip() for line in lines]

    def damage(self, lines: list[str]) -> None:
        for place in self._some(lines, lambda line: _COMMENT.search(line) is not None):
            found = _COMMENT.search(lines[place])
            assert found is not None
            lost = self._chance.randrange(*found.span())
            lines[place] = lines[place][:lost] + lines[place][lost + 1 :]

    def swap_comments(self, lines: list[str]) -> None:
        places = [place for place, line in enumerate(lines) if _ID.search(line)]
        if len(places) > 1:
            one, other = self._chance.sample(places, 2)
            ids = [_ID.findall(lines[place])[-1] for place in (one, other)]
            lines[one] = lines[one].replace(*ids)
            lines[other] = lines[other].replace(*reversed(ids))

    def change_line_ends(self, lines: list[str]) -> None:
        ends = "" if any(line.endswith("\r") for line in lines) else "\r"
        lines[:] = [line.removesuffix("\r") + ends for line in lines]

    def rename_heading(self, lines: list[str]) -> None:
        for place in self._some(lines, _is_heading):
            lines[place] = f"## {self._chance.choice(_HEADINGS)}"

    def add_heading(self, lines: list[str]) -> None:
        self._insert(lines, ["", f"## {self._chance.choice(_HEADINGS)}"])

    def delete_heading(self, lines: list[str]) -> None:
        for place in self._some(lines, _is_heading):
            del lines[place]

    def add_paragraph(self, lines: list[str]) -> None:
        self._insert(lines, ["", f"A paragraph with {self.word()}", f"of two lines: {self.word()}", ""])

    def add_line(self, lines: list[str]) -> None:
        self._insert(lines, [f"Squeezed in: {self.word()}"])

    def add_table(self, lines: list[str]) -> None:
        self._insert(lines, [f"| a | {self.word()} |", "|---|---|", f"| - no bullet | {self.word()} |"])

    def add_code(self, lines: list[str]) -> None:
        self._insert(lines, ["```sh", f"- no bullet: {self.word()}", "## no heading", "```"])

    def open_code(self, lines: list[str]) -> None:
        self._insert(lines, ["```", f"nobody closes this {self.word()}"])

    def add_comment(self, lines: list[str]) -> None:
        self._insert(lines, ["<!-- a person's own", f"- not now: {self.word()}", "-->"])

    def date(self, lines: list[str]) -> None:
        lines[:] = [line.replace("2023", "1999") for line in lines]

    def empty(self, lines: list[str]) -> None:
        if self._chance.random() < 0.2:
            lines[:] = [""]

    def _insert(self, lines: list[str], new: list[str]) -> None:
        place = self._chance.randrange(len(lines) + 1)
        lines[place:place] = new

    def _some(self, lines: list[str], wanted: Callable[[str], bool]) -> list[int]:
        """Return the index of one such line in a list; the list is empty if there is none."""
        places = [place for place, line in enumerate(lines) if wanted(line)]
        return [self._chance.choice(places)] if places else []


EDITS: tuple[Callable[[Hands, list[str]], None], ...] = (
    Hands.add, Hands.add, Hands.append, Hands.add_twice, Hands.reword, Hands.reword, Hands.lengthen, Hands.delete,
    Hands.delete, Hands.delete_many, Hands.move, Hands.move, Hands.shuffle, Hands.double, Hands.double_and_reword,
    Hands.strip_one_comment, Hands.strip_comments, Hands.damage, Hands.damage, Hands.swap_comments,
    Hands.change_line_ends, Hands.rename_heading, Hands.add_heading, Hands.delete_heading, Hands.add_paragraph,
    Hands.add_line, Hands.add_table, Hands.add_code, Hands.open_code, Hands.add_comment, Hands.date, Hands.empty,
)  # fmt: skip


def merged(ours: bytes, base: bytes, theirs: bytes, *, folder: Path, union: bool) -> tuple[bytes, bool]:
    """Return git's merge of two versions of a file, and whether they conflict."""
    paths = [folder / name for name in ("ours", "base", "theirs")]
    for path, content in zip(paths, (ours, base, theirs), strict=True):
        path.write_bytes(content)
    words = ["git", "merge-file", "-p", *(["--union"] if union else []), *map(str, paths)]
    done = subprocess.run(words, capture_output=True, check=False)
    assert 0 <= done.returncode < 128, done.stderr
    return done.stdout, done.returncode > 0


def resolved(text: str, chance: random.Random) -> str:
    """Return a file after a person has resolved its conflicts, each with one side or with both."""

    def choose(found: re.Match[str]) -> str:
        return chance.choice((found[1], found[2], found[1] + found[2]))

    return re.sub(r"(?ms)^<{7} .*?\n(.*?)^={7}\r?\n(.*?)^>{7} .*?(?:\n|\Z)", choose, text)


def _is_bullet(line: str) -> bool:
    return re.match(r"\s*(?:[-*+]|\d+[.)]) ", line) is not None


def _is_heading(line: str) -> bool:
    return line.startswith("## ")
