"""Read which tests failed, in the words of the common test runners, and what they say.

A run of tests is compared with a later one only when both are asked for the same tests: what one package says tells
nothing of another. Any text gives an answer, none an error; of a long one the beginning and the end are read.
"""

from __future__ import annotations

import re

from learnt.model import Value
from learnt.text.clean import clean, fold
from learnt.text.triggers import beginning_and_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from learnt.mine.shell import Part

_HALF = 20_000
_LONGEST = 160
_MOST = 20
_GO = re.compile(r"^--- FAIL: (\w+)", re.MULTILINE)
_GO_SAYS = re.compile(r"^\s+([\w.-]+_test\.go):\d+: *(.*)$")
_TESTIFY = re.compile(r"^\s+(?:Messages|Error):\s+(\S.*)$")
_PYTEST = re.compile(r"^(?:FAILED|ERROR) ([\w./-]+\.py)::([\w.:\[\]-]+)(?: - (.*))?$", re.MULTILINE)
_JEST = re.compile(r"^\s*(?:FAIL|❯|×)\s+([\w./-]+\.(?:test|spec)\.[cm]?[jt]sx?)(?: > (.+))?$", re.MULTILINE)
_CARGO = re.compile(r"^test ([\w:]+) \.\.\. FAILED$", re.MULTILINE)
_RUST_PANIC = re.compile(r"thread '([\w:]+)'[^\n]* panicked at ([\w./-]+\.rs):\d+:\d+:\n([^\n]*)")
_VERDICT = re.compile(r"\b(?:want|expected|should|must|got|failed|error|not)\b", re.IGNORECASE)
_SEPARATE = re.compile(r"^(?:=== |--- |ok\s|FAIL\b|PASS\b|\?\s)")
# What changes how much is said, and not what is asked for.
_MANNERS = re.compile(r"-v+|-race|-count=\d+|-q|--verbose|-failfast|-x|-timeout|\d+m?s|--tb=\w+")


class RedTest(Value):
    """A test that failed: where it stands and what it says, as far as the output tells."""

    name: str
    sign: str
    """By which words of its runner it is known to have failed."""
    file: str = ""
    says: str = ""


def red_tests(output: str) -> tuple[RedTest, ...]:
    """Return the tests that failed, each once."""
    text = clean(beginning_and_end(output, _HALF))
    found: dict[str, RedTest] = {}
    for test in (*_of_go(text), *_of_pytest(text), *_of_jest(text), *_of_cargo(text)):
        found.setdefault(test.name, test)
    return tuple(found.values())[:_MOST]


def asks_for(part: Part) -> frozenset[str]:
    """Return what a run of tests is asked for, without how much it should say."""
    return frozenset(word.strip("'\"") for word in part.words if not _MANNERS.fullmatch(word))


def _of_go(text: str) -> Iterator[RedTest]:
    lines = text.split("\n")
    for place, line in enumerate(lines):
        if name := _GO.match(line):
            file, says = _said_by_go(lines, place)
            yield RedTest(name=name[1], sign=name[0], file=file, says=says)


def _said_by_go(lines: list[str], place: int) -> tuple[str, str]:
    """Look below the verdict, and above it where every test is named when it starts."""
    below: list[str] = []
    above: list[str] = []
    for line in lines[place + 1 : place + 60]:
        if _SEPARATE.match(line):
            break
        below.append(line)
    for line in reversed(lines[max(place - 60, 0) : place]):
        if _SEPARATE.match(line):
            break
        above.insert(0, line)
    for some in (below, above):
        said = [(found[1], found[2]) for line in some if (found := _GO_SAYS.match(line))]
        if said:
            told = next((found[1] for line in some if (found := _TESTIFY.match(line))), "")
            file, last = said[-1]
            verdicts = [words for name, words in said if name == file and _VERDICT.search(words)]
            return file, fold((verdicts or [last])[-1] or told)[:_LONGEST]
    return "", ""


def _of_pytest(text: str) -> Iterator[RedTest]:
    for file, called, says in _PYTEST.findall(text):
        name = re.sub(r"\[.*", "", called)
        yield RedTest(name=name, sign=f"{file}::{name}", file=file, says=fold(says)[:_LONGEST])


def _of_jest(text: str) -> Iterator[RedTest]:
    for file, called in _JEST.findall(text):
        name = fold(called)[:_LONGEST] or file.rpartition("/")[2]
        yield RedTest(name=name, sign=f"FAIL {file}", file=file)


def _of_cargo(text: str) -> Iterator[RedTest]:
    said = {name: (file, says) for name, file, says in _RUST_PANIC.findall(text)}
    for name in _CARGO.findall(text):
        file, says = said.get(name, ("", ""))
        yield RedTest(name=name, sign=f"test {name} ... FAILED", file=file, says=fold(says)[:_LONGEST])


class Red(Value):
    """A run of tests in which some failed."""

    part: Part
    tests: tuple[RedTest, ...]
    output: str
    at: int

    def asks_as(self, part: Part) -> bool:
        """Say whether a part asks for the same tests."""
        return asks_for(part) == asks_for(self.part)
