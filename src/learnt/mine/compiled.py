"""Say what a compiler's error teaches once an edit has closed it.

    where a name is imported from, when it was unknown and an import made it known
    what a value must be, when the code under test refused one and another was accepted

A misspelt word, a brace too many and code that was not written yet teach nothing.
"""

from __future__ import annotations

import re

from learnt.mine.complaint import general
from learnt.model import Discovery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from learnt.mine.complaint import Diagnostic
    from learnt.mine.evidence import Happened
    from learnt.mine.shell import Part

_MOST_LINES = 400


_UNKNOWN = re.compile(
    r"undefined: (?P<a>\w+)$|[Uu]ndefined name [`'\"](?P<b>\w+)|Cannot find name '(?P<c>\w+)'|"
    r"Name \"(?P<d>\w+)\" is not defined|name '(?P<e>\w+)' is not defined|"
    r"use of (?:undeclared|unresolved) (?:type|crate or module|module or unlinked crate|item) `(?P<f>\w+)`|"
    r"cannot find (?:type|struct, variant or union type|macro|trait|function|value) `(?P<g>\w+)`"
)
_IMPORT = re.compile(
    r"^(?:import\b.*|from \S+ import .*|use [\w:{}, *]+;|(?:const|let) .*\brequire\(.*|(?:[\w.]+ )?\"[\w./~-]+\")$"
)
_GO_IMPORT = re.compile(r"^(?:import )?(?:[\w.]+ )?\"([\w./~-]+)\"$")
_STANDARD = re.compile(r"[a-z0-9]+(?:/[a-z0-9]+)*")
_REFUSED = re.compile(
    r"^(?:\s*[\w./-]+:\d+: )?.*?(?:panic: |panicked at .*|Error: |Exception: |[Ff]ailed to |[Ii]nvalid |cannot ).*$",
    re.MULTILINE,
)
_DEMANDS = re.compile(
    r"\bmust (?:be|have|not|start|end|contain|match)\b|\bshould (?:be|have)\b|\bexpected one of\b|\ballowed\b",
    re.IGNORECASE,
)
_GIVEN = re.compile(r"\"([^\"\n]{3,60})\"|'([^'\n]{3,60})'|`([^`\n]{3,60})`")
_COMMENT = re.compile(r"\s*(?://|#|\*|/\*)")
_RECOVERED = re.compile(r" \[recovered.*\]$|^(?:[\w./-]+:\d+: )?(?:panic: |Error: |[A-Z]\w+(?:Error|Exception): )")


def imported(part: Part, gone: Iterable[Diagnostic], edited: Sequence[Happened], folder: str) -> Iterator[Discovery]:
    """Yield where a name that was unknown is imported from, unless it comes with the language."""
    told = set()
    for diagnostic in gone:
        name = _named(_UNKNOWN, diagnostic.message)
        line = _import_of(name, _edits_of(diagnostic.file, edited)) if name and name not in told else ""
        package = _GO_IMPORT.match(line)
        if not line or (package and _STANDARD.fullmatch(package[1])):
            continue
        told.add(name)
        text = f"Import `{name}` with `{line}`"
        yield _discovery(part, text, diagnostic.message, f"the import `{line}`", diagnostic.file, folder)


def refused(part: Part, output: str, complaint: str, edited: Sequence[Happened], folder: str) -> Iterator[Discovery]:
    """Yield what a value must be, when code refused one that an edit then replaced."""
    for found in list(_REFUSED.finditer(output))[:_MOST_LINES]:
        error = _RECOVERED.sub("", _RECOVERED.sub("", found[0].strip()))[:300]
        if not _DEMANDS.search(error) or error in complaint:
            continue
        for given in map("".join, _GIVEN.findall(error)):
            change = _replaced(given, edited)
            if change is not None:
                file, before, after = change
                told = general(_GIVEN.sub("`…`", error, count=1), folder)
                text = f"{_called(before, given)}{told.replace(' `…`', '')}: write `{after}`"
                yield _discovery(part, text, told, f"`{after}` instead of `{before}`", file, folder)
                return


def _discovery(part: Part, text: str, error: str, worked: str, file: str, folder: str) -> Discovery:  # noqa: PLR0917
    return Discovery(
        type="constraint",
        rule="verification",
        text=text,
        failed=" ".join(part.intent),
        error=general(error, folder),
        worked=worked,
        excerpt=error,
        files=(general(file, folder),),
    )


def _named(form: re.Pattern[str], message: str) -> str:
    found = form.search(message)
    return next((name for name in found.groups() if name), "") if found else ""


def _edits_of(file: str, edited: Iterable[Happened]) -> list[Happened]:
    name = file.rpartition("/")[2]
    return [one for one in edited if one.call.does == "edit" and one.call.path.rpartition("/")[2] == name]


def _import_of(name: str, edits: Iterable[Happened]) -> str:
    """Return the line by which an edit imports a name."""
    for one in edits:
        old = {line.strip() for line in one.call.before.split("\n")}
        for line in map(str.strip, one.call.text.split("\n")):
            if line not in old and len(line) <= 120 and _IMPORT.match(line) and _brings(line, name):
                return line
    return ""


def _brings(line: str, name: str) -> bool:
    path = _GO_IMPORT.match(line)
    if path:
        return path[1].rpartition("/")[2] == name or line.startswith((f"{name} ", f"import {name} "))
    return re.search(rf"\b{re.escape(name)}\b", line) is not None


def _called(line: str, value: str) -> str:
    """Return what a value was given to, as the beginning of a sentence."""
    found = re.search(rf"([\w.:]*\w)!?\([^()]*{re.escape(value)}", line)
    return f"`{found[1]}`: " if found else ""


def _replaced(value: str, edits: Iterable[Happened]) -> tuple[str, str, str] | None:
    """Return the file, the line that held a value, and the one that took its place."""
    for one in edits:
        if one.call.does != "edit" or value not in one.call.before:
            continue
        old, new = one.call.before.split("\n"), one.call.text.split("\n")
        if len(old) != len(new):
            continue
        for before, after in zip(old, new, strict=True):
            if value in before and value not in after and after.strip() and not _COMMENT.match(before):
                return one.call.path, before.strip()[:120], after.strip()[:120]
    return None
