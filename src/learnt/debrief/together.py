"""Say which files change together, and which test holds a file, from checks that one edit broke and another mended.

    A was edited, a check complained in B that nobody had touched, B was edited, and the check passed
    A was edited, a test in B failed that nobody had touched, A was edited again, and the test passed

Both tell the next one who edits A something that A itself does not say. A test that was written in the same
conversation tells nothing: it was red because its code was not there yet. In doubt which file is A, nothing is said.
"""

from __future__ import annotations

import re

from learnt.debrief.complaint import general
from learnt.debrief.evidence import Happened, shown
from learnt.debrief.red import RedTest, asks_for, red_tests
from learnt.debrief.shell import Part
from learnt.model import Discovery, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


_CODE = re.compile(r"\.(?:go|py|rs|[cm]?[jt]sx?|java|kt|rb|php|cs|swift|scala|ex|exs|c|cc|cpp|h|hpp|sh)$")
_TEST = re.compile(r"_test\.|\.(?:test|spec)\.|(?:^|/)test_|(?:^|/)(?:tests?|__tests__|integration_test|e2e_test)/")
_WORD = re.compile(r"[A-Za-z_]\w{4,}|\"[^\"\n]{4,40}\"")
_MOST_TESTS = 3


class Red(Value):
    """A run of tests in which some failed."""

    part: Part
    tests: tuple[RedTest, ...]
    output: str
    at: int

    def asks_as(self, part: Part) -> bool:
        """Say whether a part asks for the same tests."""
        return asks_for(part) == asks_for(self.part)


class History(Value):
    """What worked lately, and when each file was first edited."""

    happened: tuple[Happened, ...]
    first_edits: dict[str, int]
    folder: str

    def untouched(self, file: str, at: int) -> bool:
        """Say whether nobody had edited a file until then."""
        return self.first_edits.get(file.rpartition("/")[2], at) >= at


def mended(red: Red, complaint: str, history: History) -> Iterator[Discovery]:
    """Yield what the edits teach after which tests passed again that nobody had touched."""
    still = {test.name for test in red_tests(complaint)}
    before, between = _edits(history.happened, red.at)
    told: set[tuple[str, str]] = set()
    for test in red.tests:
        if test.name in still or not test.file or not history.untouched(test.file, red.at):
            continue
        mending = _edits_of(test.file, between)
        cause = _cause(test, before, mending, between)
        if not _is_of_project(cause, history.folder) or (cause, test.file) in told or len(told) == _MOST_TESTS:
            continue
        told.add((cause, test.file))
        if mending and _stem(cause) == _stem(mending[-1].call.path):
            continue  # everybody looks there
        if mending:
            yield _changes_too(red, test, cause, mending[-1].call.path, history.folder)
        elif _edits_of(cause, between):
            yield _is_held(red, test, cause, history.folder)


def _changes_too(red: Red, test: RedTest, cause: str, mended: str, folder: str) -> Discovery:
    wrong, right = general(cause, folder), general(mended, folder)
    return Discovery(
        type="constraint",
        rule="together",
        text=f"Tests of `{_name(wrong)}` also stand in `{_short(right)}`: change and run them with it",
        failed=" ".join(red.part.intent),
        error=f"{test.name}: {general(test.says, folder)}".rstrip(" :"),
        worked=right,
        excerpt=f"{test.sign}\n{test.says}",
        files=(wrong,),
    )


def _is_held(red: Red, test: RedTest, cause: str, folder: str) -> Discovery:
    path = general(cause, folder)
    return Discovery(
        type="constraint",
        rule="together",
        text=f"Run `{test.name}` (`{_name(test.file)}`) after a change to `{_name(path)}`",
        failed=shown(red.part, folder),
        error=f"{test.name}: {general(test.says, folder)}".rstrip(" :"),
        excerpt=f"{test.sign}\n{test.says}",
        files=(path,),
    )


def _short(path: str) -> str:
    """Return a path's name with its folder's: that is enough to know it by, and fits a title."""
    return "/".join(path.split("/")[-2:])


def _is_of_project(path: str, folder: str) -> bool:
    return bool(path) and not general(path, folder).startswith(("/", "~", "…"))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _edits(happened: Iterable[Happened], at: int) -> tuple[list[Happened], list[Happened]]:
    edits = [one for one in happened if one.call.does == "edit" and _CODE.search(one.call.path)]
    return [one for one in edits if one.at < at], [one for one in edits if one.at > at]


def _edits_of(file: str, edits: Iterable[Happened]) -> list[Happened]:
    return [one for one in edits if _same(one.call.path, file)]


def _same(one: str, other: str) -> bool:
    """Say whether two paths mean one file; a check often tells the name only, or starts at another folder."""
    return one.rpartition("/")[2] == other.rpartition("/")[2]


def _cause(test: RedTest, before: Sequence[Happened], mending: Sequence[Happened], between: Sequence[Happened]) -> str:
    """Return the edited file that most likely broke a test: the only one, its namesake, or by shared words."""
    edits = [one for one in before if not _TEST.search(one.call.path)]
    paths = list(dict.fromkeys(one.call.path for one in edits))
    if not mending:
        paths = [path for path in paths if _edits_of(path, between)]
    if len(paths) <= 1:
        return paths[0] if paths else ""
    namesake = [path for path in paths if _stem(path) == _stem(test.file)]
    if len(namesake) == 1:
        return namesake[0]
    wanted = set(_WORD.findall(test.says))
    for one in mending:
        wanted |= _changed(one)
    scores = {path: len(wanted & set().union(*(_changed(one) for one in _edits_of(path, edits)))) for path in paths}
    best = max(scores.values())
    likely = [path for path, score in scores.items() if score == best]
    return likely[0] if best and len(likely) == 1 else ""


def _stem(path: str) -> str:
    """Return what the name of a file and that of its tests share."""
    return re.sub(r"_test$|\.(?:test|spec)$|^test_", "", _name(path).rpartition(".")[0])


def _changed(edit: Happened) -> set[str]:
    """Return the words that only one side of an edit has."""
    return set(_WORD.findall(edit.call.text)) ^ set(_WORD.findall(edit.call.before))
