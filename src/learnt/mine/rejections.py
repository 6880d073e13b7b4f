"""Say what the edit teaches that a check accepted, after it had rejected what stood there before.

A complaint is general when a linter's rule stands behind it, or when it tells how something of the project is called.
That something was unused, misspelt or not written yet teaches nothing, and a red test that turned green no more.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from learnt.mine.commands import asked_for, needs_first
from learnt.mine.complaint import Diagnostic, general
from learnt.mine.shell import Part, is_formatter
from learnt.model import Discovery, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from learnt.mine.evidence import Happened

    _Change = tuple[str, str]  # the line that was rejected, and the one that was accepted

_LONGEST_LINE = 160
_TEACHES_NOTHING = re.compile(
    r"not used|unused|never used|declared and|expected |missing return|no new variables|imported but|undefined name|"
    r"could not import|redeclared|unreachable|cannot find package|is not in std|trailing|whitespace|blank line|"
    r"not (?:properly )?formatted|line (?:is )?too long",
    re.IGNORECASE,
)
_NO_RULES = (
    "typecheck",
    "unused",
    "deadcode",
    "compiler",
    "cached",
    "no-unused-vars",
    "F401",
    "F841",
    "F821",
    "I001",
    "E501",
)
_FORMAT_RULES = ("gofmt", "goimports", "gci", "gofumpt", "prettier", "format", "whitespace")
_NAME = re.compile(r"\b[A-Za-z_][\w.]*\w")
_SUPPRESSED = re.compile(r"nolint|noqa|eslint-disable|type: ignore|#\[allow|@SuppressWarnings|ts-expect-error")
_API = re.compile(
    r"undefined: (?P<a>[\w.]+)|(?P<b>[\w.]+) undefined \(|(?:not enough|too many) arguments in call to (?P<c>[\w.]+)|"
    r"(?P<d>[\w.]+)(?:\([^)]*\))? returns \d+ values?|argument to (?P<e>[\w.]+)|has no attribute [\"'](?P<f>\w+)|"
    r"unexpected keyword argument [\"'](?P<g>\w+)|Property '(?P<h>\w+)' does not exist|no (?:method|"
    r"function) named `(?P<i>\w+)|"
    r"cannot find (?:function|value|type) `(?P<j>\w+)"
)
_AT_ITS_START = re.compile(r"^(?:[\d<>n-]+ (?=lines)|[\w.*()]+ - |\w*[a-z][A-Z]\w* (?=returns |is |has ))")
_AT_ITS_END = re.compile(r" (?:of type|in) [\w.*()]+$| \([\w./-]+\)$")
_OF_ONE_PLACE = re.compile(
    r"(?<=used as )\S+(?= by)|(?<=consider calling this )\S+|(?<=has )\d+(?= occurrences)|(?<=result )\d+(?= \()|"
    r"(?<=Function name: )\w+"
)
_IN_BRACKETS = re.compile(r" \(.*\)$")
# A name; what is quoted with spaces is a reason, and stays.
_QUOTED = re.compile(r"`[^`\s]*`|\"[^\"\s]*\"|'[^'\s]*'")


class Rejected(Value):
    """A check that complained."""

    part: Part
    diagnostics: tuple[Diagnostic, ...]
    output: str
    at: int


def accepted_by_edit(
    rejected: Rejected,
    gone: Sequence[Diagnostic],
    before: Sequence[Happened],
    between: Sequence[Happened],
    folder: str,
) -> Iterator[Discovery]:
    """Yield what the edits teach after which complaints were gone, one for each rule or name."""
    told = set()
    for diagnostic in gone:
        name = api_name(diagnostic)
        sign = diagnostic.rule or name
        if not sign or sign in told or sign in _NO_RULES or _TEACHES_NOTHING.search(diagnostic.message):
            continue
        change = _change(diagnostic, name, between)
        edited = not diagnostic.of_types and _edited(diagnostic.file, between)
        if diagnostic.rule and (change is not None or edited):
            told.add(sign)
            yield _by_rule(rejected, diagnostic, change, folder)
        elif change is not None and not _is_its_own(name, before):
            found = _by_name(rejected, diagnostic, name, change[1], folder)
            if found is not None:
                told.add(sign)
                yield found


def repaired(rejected: Rejected, complaint: str, between: Sequence[Happened], folder: str) -> Iterator[Discovery]:
    """Yield the command that a check had asked for, and that it asks for no more."""
    remedy = asked_for(rejected.output, (part for happened in between for part in happened.ran))
    if remedy is not None and " ".join(remedy.words[:3]) not in complaint:
        line = next((line for line in rejected.output.split("\n") if remedy.words[0] in line and ":" in line), "")
        yield needs_first(rejected.part, remedy, line or rejected.output[:80], rejected.output, folder)


def formatted(rejected: Rejected, between: Sequence[Happened], folder: str) -> Iterator[Discovery]:
    """Yield the formatter after which a complaint about the form was gone."""
    complaint = next((one for one in rejected.diagnostics if one.rule in _FORMAT_RULES), None)
    formatter = next((part for happened in between for part in happened.ran if is_formatter(part)), None)
    if complaint is not None and formatter is not None and formatter.intent != rejected.part.intent:
        error = f"{complaint.message} ({complaint.rule})"
        yield needs_first(rejected.part, formatter, error, rejected.output, folder)


def _edited(file: str, between: Iterable[Happened]) -> bool:
    name = file.rpartition("/")[2]
    return any(one.call.does == "edit" and one.call.path.rpartition("/")[2] == name for one in between)


def _is_its_own(name: str, before: Iterable[Happened]) -> bool:
    """Say whether the agent itself has just written or changed what has this name: then others know it already."""
    defined = re.compile(
        rf"\b(?:func|def|fn|type|class|function|const|var|let)\b[^\n]*\b{re.escape(name.rpartition('.')[2])}\b"
    )
    return any(one.call.does == "edit" and defined.search(one.call.text + one.call.before) for one in before)


def _by_rule(rejected: Rejected, diagnostic: Diagnostic, change: _Change | None, folder: str) -> Discovery:
    command = " ".join(rejected.part.intent)
    message = _principle(general(diagnostic.message, folder))
    return Discovery(
        type="constraint",
        rule="verification",
        text=f"`{command}` rejects ({diagnostic.rule}): {message}",
        failed=command,
        error=f"{message} ({diagnostic.rule})",
        worked=_told(change, diagnostic.rule),
        excerpt=rejected.output[:1_000],
        files=(general(diagnostic.file, folder),),
    )


def _by_name(rejected: Rejected, diagnostic: Diagnostic, name: str, line: str, folder: str) -> Discovery | None:
    """Return how a name that does not exist is really called: another of the same place, in the line that passed."""
    place, dot, _ = name.rpartition(".")
    other = next(
        (found for found in _NAME.findall(line) if dot and found.startswith(f"{place}.") and found != name), ""
    )
    if not other or "undefined" not in diagnostic.message:
        return None
    return Discovery(
        type="constraint",
        rule="verification",
        text=f"`{name}` does not exist: it is called `{other}`",
        failed=" ".join(rejected.part.intent),
        error=_IN_BRACKETS.sub("", general(diagnostic.message, folder)),
        worked=f"`{other}`",
        excerpt=rejected.output[:1_000],
        files=(general(diagnostic.file, folder),),
    )


def _principle(message: str) -> str:
    """Return a message without what it says of one place only: quoted names, numbers of lines, further clauses."""
    message = _OF_ONE_PLACE.sub("…", _AT_ITS_START.sub("", _QUOTED.sub("`…`", message)))
    place = message.find(": ", 30)
    return _AT_ITS_END.sub("", message[:place] if place > 0 else message)


def _told(change: _Change | None, rule: str) -> str:
    if change is None:
        return ""
    before, after = change
    if found := _SUPPRESSED.search(after):
        if rule not in after:
            return ""  # it answers another complaint
        start = max(after.rfind(sign, 0, found.start()) for sign in ("//", "#", "/*", "@", "#["))
        return f"`{after[max(start, 0) :]}`"
    return f"`{after}` instead of `{before}`" if before else f"`{after}`"


def api_name(diagnostic: Diagnostic) -> str:
    """Return the name of what a compiler says is unknown or called in the wrong way, or nothing."""
    found = _API.search(diagnostic.message)
    return next((name for name in found.groups() if name), "") if found else ""


def _change(diagnostic: Diagnostic, name: str, between: Iterable[Happened]) -> _Change | None:
    """Return the line that was rejected and the one that took its place."""
    file = diagnostic.file.rpartition("/")[2]
    for happened in between:
        edit = happened.call
        if edit.does != "edit" or not edit.before or edit.path.rpartition("/")[2] != file:
            continue
        removed, added = _changed_lines(edit.before, edit.text)
        if diagnostic.rule:
            change = _change_by_rule(diagnostic, removed, added)
        else:
            change = _change_by_name(name, removed, added)
        if change is not None:
            return change
    return None


def _change_by_rule(diagnostic: Diagnostic, removed: list[str], added: list[str]) -> _Change | None:
    for line in added:
        if _SUPPRESSED.search(line) and diagnostic.rule in line:
            return _nearest(line, removed), line
    for line in removed:
        if line == diagnostic.source:
            after = _nearest(line, added)
            return (line, _with_next(after, added)) if after else None
    return None


def _with_next(line: str, added: list[str]) -> str:
    """Return a line with those that were added below it, as far as they fit: a fix often takes more than one."""
    place = added.index(line)
    for following in added[place + 1 : place + 3]:
        if len(line) + len(following) < _LONGEST_LINE:
            line = f"{line} {following}"
    return line


def _change_by_name(name: str, removed: list[str], added: list[str]) -> _Change | None:
    for line in removed:
        if re.search(rf"\b{re.escape(name)}\b", line):
            after = _nearest(line, added)
            if after and SequenceMatcher(None, line, after).ratio() > 0.4:
                return line, after
    return None


def _nearest(line: str, others: list[str]) -> str:
    best = max(others, key=lambda other: SequenceMatcher(None, line, other).ratio(), default="")
    return best if best and SequenceMatcher(None, line, best).ratio() > 0.3 else ""


def _changed_lines(before: str, after: str) -> tuple[list[str], list[str]]:
    """Return the lines that only the one text has, and those that only the other has, without their indentation."""
    old = [line.strip() for line in before.split("\n")]
    new = [line.strip() for line in after.split("\n")]
    removed = [line for line in old if line and line not in new and _says_something(line)]
    added = [line for line in new if line and line not in old and _says_something(line)]
    return removed[:20], added[:20]


def _says_something(line: str) -> bool:
    if line.startswith(("//", "#", "*", "/*")) and not _SUPPRESSED.search(line):
        return False
    return len(line) <= _LONGEST_LINE and sum(map(str.isalnum, line)) >= 4
