"""Learn from checks (linters, compilers, tests) that failed and passed after an edit or a command.

The discoveries are: a linter's rule with an example that the linter accepts, the real name of something in the project,
where a name is imported from, what a value must be, and which command has to run before a check. Nothing is learnt from
code that was unused, misspelt or not written yet, or from a failed test that passes later.

Test runs are compared only if they run the same tests. Any output can be read. Only the beginning and the end of a long
output are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from learnt.mine.calls import MAX_EXCERPT_LENGTH, PastCall
from learnt.mine.complaint import Diagnostic, generalise
from learnt.mine.corrections import describe_prerequisite, find_requested_command
from learnt.mine.demands import is_demand, is_put_in_words
from learnt.mine.shell import Part, is_formatter
from learnt.model import Discovery, Value
from learnt.text.clean import clean
from learnt.text.triggers import beginning_and_end
from learnt.text.verbs import is_present

# The rejected line, and the accepted line.
_LineChange = tuple[str, str]

_MAX_LINE_LENGTH = 160
_TEACHES_NOTHING = re.compile(
    r"not used|unused|never used|declared and|expected |missing return|no new variables|imported but|undefined name|"
    r"could not import|redeclared|unreachable|cannot find package|is not in std|trailing|whitespace|blank line|"
    r"not (?:properly )?formatted|line (?:is )?too long",
    re.IGNORECASE,
)
_NO_RULES = tuple("typecheck unused deadcode compiler cached no-unused-vars F401 F841 F821 I001 E501".split())
_FORMAT_RULES = ("gofmt", "goimports", "gci", "gofumpt", "prettier", "format", "whitespace")
_NAME = re.compile(r"\b[A-Za-z_][\w.]*\w")
_SUPPRESSED = re.compile(r"nolint|noqa|eslint-disable|type: ignore|#\[allow|@SuppressWarnings|ts-expect-error")
_API = re.compile(
    r"undefined: (?P<a>[\w.]+)|(?P<b>[\w.]+) undefined \(|(?:not enough|too many) arguments in call to (?P<c>[\w.]+)|"
    r"(?P<d>[\w.]+)(?:\([^)]*\))? returns \d+ values?|argument to (?P<e>[\w.]+)|has no attribute [\"'](?P<f>\w+)|"
    r"unexpected keyword argument [\"'](?P<g>\w+)|Property '(?P<h>\w+)' does not exist|"
    r"no (?:method|function) named `(?P<i>\w+)|cannot find (?:function|value|type) `(?P<j>\w+)"
)
_MESSAGE_START = re.compile(r"^(?:[\d<>n-]+ (?=lines)|[\w.*()]+ - |\w*[a-z][A-Z]\w* (?=returns |is |has ))")
_MESSAGE_END = re.compile(r" (?:of type|in) [\w.*()]+$| \([\w./-]+\)$")
_DETAILS_OF_ONE_PLACE = re.compile(
    r"(?<=used as )\S+(?= by)|(?<=consider calling this )\S+|(?<=has )\d+(?= occurrences)|(?<=result )\d+(?= \()|"
    r"(?<=Function name: )\w+"
)
_IN_BRACKETS = re.compile(r" \(.*\)$")
# A quoted name. A quotation with spaces is not replaced, because it is a reason.
_QUOTED = re.compile(r"`[^`]*`|\"[^\"\s]*\"|'[^'\s]*'")
_HALF_OUTPUT_LENGTH = 20_000
_FAILED_TESTS = (
    re.compile(r"^--- FAIL: \w+", re.MULTILINE),  # go
    re.compile(r"^(?:FAILED|ERROR) [\w./-]+\.py::[\w.:\[\]-]+(?: - .*)?$", re.MULTILINE),  # pytest
    re.compile(r"^\s*(?:FAIL|❯|×)\s+[\w./-]+\.(?:test|spec)\.[cm]?[jt]sx?(?: > .+)?$", re.MULTILINE),  # jest, vitest
    re.compile(r"^test [\w:]+ \.\.\. FAILED$", re.MULTILINE),  # cargo
)
# Options that change only the output, and not which tests run.
_OUTPUT_OPTION = re.compile(r"-v+|-race|-count=\d+|-q|--verbose|-failfast|-x|-timeout|\d+m?s|--tb=\w+")
_MAX_LINES = 400
_TEMPORARY = re.compile(r"\b(?:temporar\w+|todo|fixme|for now|will be|later)\b", re.IGNORECASE)
_INVALID = re.compile(r"^invalid ([\w -]+): must\b")
_REJECTED_VALUE = re.compile(
    r"^(?:\s*[\w./-]+:\d+: )?.*?(?:panic: |panicked at .*|Error: |Exception: |[Ff]ailed to |[Ii]nvalid |cannot ).*$",
    re.MULTILINE,
)
_DEMANDS = re.compile(
    r"\bmust (?:be|have|not|start|end|contain|match)\b|\bshould (?:be|have)\b|\bexpected one of\b|\ballowed\b",
    re.IGNORECASE,
)
_QUOTED_VALUE = re.compile(r"\"([^\"\n]{3,60})\"|'([^'\n]{3,60})'|`([^`\n]{3,60})`")
_COMMENT = re.compile(r"\s*(?://|#|\*|/\*)")
_RECOVERED = re.compile(r" \[recovered.*\]$|^(?:[\w./-]+:\d+: )?(?:panic: |Error: |[A-Z]\w+(?:Error|Exception): )")


class FailedCheck(Value):
    """A check that failed, and its diagnostics."""

    part: Part
    diagnostics: tuple[Diagnostic, ...]
    output: str
    at: int


class FailedTestRun(Value):
    """A test run in which some tests failed."""

    part: Part
    output: str
    at: int

    def runs_same_tests(self, part: Part) -> bool:
        """Return whether a command runs the same tests, ignoring options that change only the output."""
        ours, theirs = (
            {word.strip("'\"") for word in words if not _OUTPUT_OPTION.fullmatch(word)}
            for words in (self.part.words, part.words)
        )
        return ours == theirs


def learn_from_edits(
    check: FailedCheck,
    fixed: Sequence[Diagnostic],
    before: Sequence[PastCall],
    between: Sequence[PastCall],
    folder: str,
) -> Iterator[Discovery]:
    """Yield what edits that fixed diagnostics teach, once for each rule or name."""
    topics = set()
    for diagnostic in fixed:
        name = _first_group(_API, diagnostic.message)
        topic = diagnostic.rule or name
        if not topic or topic in topics or topic in _NO_RULES or _TEACHES_NOTHING.search(diagnostic.message):
            continue
        if is_demand(diagnostic.message) and is_put_in_words(diagnostic.message):
            continue  # `rejections` learns it, in the check's own words
        change = _find_change(diagnostic, name, between)
        is_edited = not diagnostic.from_type_checker and bool(_filter_edits(diagnostic.file, between))
        if diagnostic.rule and (change is not None or is_edited):
            topics.add(topic)
            yield _describe_rule(check, diagnostic, change, folder)
        elif change is not None and not _is_just_written(name, before):
            discovery = _describe_name(check, diagnostic, name, change[1], folder)
            if discovery is not None:
                topics.add(topic)
                yield discovery


def learn_from_repair(
    check: FailedCheck, complaint: str, between: Sequence[PastCall], folder: str
) -> Iterator[Discovery]:
    """Yield the command that a check asked for, if it was run and the check no longer asks for it."""
    remedy = find_requested_command(check.output, (part for call in between for part in call.parts))
    if remedy is not None and " ".join(remedy.words[:3]) not in complaint:
        line = next((line for line in check.output.split("\n") if remedy.words[0] in line and ":" in line), "")
        yield describe_prerequisite(check.part, remedy, line or check.output[:80], check.output, folder)


def learn_from_formatter(check: FailedCheck, between: Sequence[PastCall], folder: str) -> Iterator[Discovery]:
    """Yield the formatter that fixed a diagnostic about formatting."""
    complaint = next((diagnostic for diagnostic in check.diagnostics if diagnostic.rule in _FORMAT_RULES), None)
    formatter = next((part for call in between for part in call.parts if is_formatter(part)), None)
    if complaint is not None and formatter is not None and formatter.intent != check.part.intent:
        error = f"{complaint.message} ({complaint.rule})"
        yield describe_prerequisite(check.part, formatter, error, check.output, folder)


def _is_just_written(name: str, before: Iterable[PastCall]) -> bool:
    """Return whether the agent has just written or changed this name, so that there is nothing to learn."""
    defined = re.compile(
        rf"\b(?:func|def|fn|type|class|function|const|var|let)\b[^\n]*\b{re.escape(name.rpartition('.')[2])}\b"
    )
    return any(past.call.does == "edit" and defined.search(past.call.text + past.call.before) for past in before)


def _describe_rule(check: FailedCheck, diagnostic: Diagnostic, change: _LineChange | None, folder: str) -> Discovery:
    message = _generalise_message(generalise(diagnostic.message, folder))
    # The same linter rejects it, whatever command starts it.
    is_named = diagnostic.rule.replace("-", "").isalpha()
    name = f"`{diagnostic.rule}`" if is_named else f"`{' '.join(check.part.intent)}` ({diagnostic.rule})"
    lacks_subject = is_present(message.partition(" ")[0])  # its subject was a name of one place
    text = f"{name} rejects code that {message}" if lacks_subject else f"{name} rejects: {message}"
    error, worked = f"{message} ({diagnostic.rule})", _show_change(change, diagnostic.rule)
    file = generalise(diagnostic.file, folder)
    return _make_discovery(check.part, text, error=error, worked=worked, excerpt=check.output, file=file)


def _describe_name(check: FailedCheck, diagnostic: Diagnostic, name: str, line: str, folder: str) -> Discovery | None:
    """Return the discovery of the real name, which has the same prefix and is in the line that passed."""
    prefix, dot, _ = name.rpartition(".")
    other = next((word for word in _NAME.findall(line) if dot and word.startswith(f"{prefix}.") and word != name), "")
    if not other or "undefined" not in diagnostic.message:
        return None
    text = f"`{name}` does not exist: it is called `{other}`"
    error, file = _IN_BRACKETS.sub("", generalise(diagnostic.message, folder)), generalise(diagnostic.file, folder)
    return _make_discovery(check.part, text, error=error, worked=f"`{other}`", excerpt=check.output, file=file)


def _generalise_message(message: str) -> str:
    """Return a message without details that are specific to one place: quoted names, line numbers, further clauses."""
    message = _DETAILS_OF_ONE_PLACE.sub("…", _MESSAGE_START.sub("", _QUOTED.sub("`…`", message)))
    colon = message.find(": ", 30)
    return _MESSAGE_END.sub("", message[:colon] if colon > 0 else message)


def _show_change(change: _LineChange | None, rule: str) -> str:
    if change is None:
        return ""
    before, after = change
    if match := _SUPPRESSED.search(after):
        if rule not in after or _TEMPORARY.search(after):
            return ""  # it suppresses another rule, or is no example for others
        start = max(after.rfind(marker, 0, match.start()) for marker in ("//", "#", "/*", "@", "#["))
        return f"`{after[max(start, 0) :]}`"
    return f"`{after}` instead of `{before}`" if before else f"`{after}`"


def _find_change(diagnostic: Diagnostic, name: str, between: Iterable[PastCall]) -> _LineChange | None:
    """Return the rejected line and its replacement."""
    for past in _filter_edits(diagnostic.file, between):
        removed, added = compare_lines(past.call.before, past.call.text) if past.call.before else ([], [])
        if diagnostic.rule:
            change = _find_change_by_rule(diagnostic, removed, added)
        else:
            change = _find_change_by_name(name, removed, added)
        if change is not None:
            return change
    return None


def _find_change_by_rule(diagnostic: Diagnostic, removed: list[str], added: list[str]) -> _LineChange | None:
    for line in added:
        if _SUPPRESSED.search(line) and diagnostic.rule in line:
            return find_nearest(line, removed), line
    for line in removed:
        if line == diagnostic.source:
            after = find_nearest(line, added)
            return (line, _append_next_lines(after, added)) if after else None
    return None


def _append_next_lines(line: str, added: list[str]) -> str:
    """Return a line with the next added lines, as far as they fit, because a fix often needs several lines."""
    index = added.index(line)
    for following in added[index + 1 : index + 3]:
        if len(line) + len(following) < _MAX_LINE_LENGTH:
            line = f"{line} {following}"
    return line


def _find_change_by_name(name: str, removed: list[str], added: list[str]) -> _LineChange | None:
    for line in removed:
        if re.search(rf"\b{re.escape(name)}\b", line):
            after = find_nearest(line, added)
            if after and SequenceMatcher(None, line, after).ratio() > 0.4:
                return line, after
    return None


def find_nearest(line: str, others: list[str]) -> str:
    best = max(others, key=lambda other: SequenceMatcher(None, line, other).ratio(), default="")
    return best if best and SequenceMatcher(None, line, best).ratio() > 0.3 else ""


def compare_lines(before: str, after: str, *, with_comments: bool = False) -> tuple[list[str], list[str]]:
    """Return the removed lines and the added lines, without their indentation."""
    old = [line.strip() for line in before.split("\n")]
    new = [line.strip() for line in after.split("\n")]
    removed = [line for line in old if line and line not in new and (with_comments or _is_code(line))]
    added = [line for line in new if line and line not in old and (with_comments or _is_code(line))]
    return removed[:20], added[:20]


def _is_code(line: str) -> bool:
    if line.startswith(("//", "#", "*", "/*")) and not _SUPPRESSED.search(line):
        return False
    return len(line) <= _MAX_LINE_LENGTH and sum(map(str.isalnum, line)) >= 4


def learn_from_rejected_values(
    part: Part, output: str, complaint: str, edits: Sequence[PastCall], folder: str
) -> Iterator[Discovery]:
    """Yield what a value must be, if the code rejected a value and an edit replaced it."""
    for match in list(_REJECTED_VALUE.finditer(output))[:_MAX_LINES]:
        error = _RECOVERED.sub("", _RECOVERED.sub("", match[0].strip()))[:300]
        if not _DEMANDS.search(error) or error in complaint:
            continue
        for value in map("".join, _QUOTED_VALUE.findall(error)):
            change = _find_replacement(value, edits)
            if change is not None:
                file, before, after = change
                demand = generalise(_QUOTED_VALUE.sub("`…`", error, count=1), folder)
                said = _INVALID.sub(r"the \1 must", demand.replace(" `…`", ""))
                yield _make_discovery(
                    part,
                    f"{_name_callee(before, value)}{said}: write `{after}`",
                    error=generalise(demand, folder),
                    worked=f"`{after}` instead of `{before}`",
                    excerpt=demand,
                    file=generalise(file, folder),
                )
                return


def _make_discovery(part: Part, text: str, *, error: str, worked: str, excerpt: str, file: str) -> Discovery:
    return Discovery(
        type="constraint",
        rule="verification",
        text=text,
        failed=" ".join(part.intent),
        error=error,
        worked=worked,
        excerpt=excerpt[:MAX_EXCERPT_LENGTH],
        files=(file,),
    )


def _first_group(pattern: re.Pattern[str], message: str) -> str:
    match = pattern.search(message)
    return next((name for name in match.groups() if name), "") if match else ""


def _filter_edits(file: str, edits: Iterable[PastCall]) -> list[PastCall]:
    name = file.rpartition("/")[2]
    return [past for past in edits if past.call.does == "edit" and past.call.path.rpartition("/")[2] == name]


def _name_callee(line: str, value: str) -> str:
    """Return the function that a value was passed to, as the beginning of a sentence; empty if it is unknown."""
    match = re.search(rf"([\w.:]*\w)!?\([^()]*{re.escape(value)}", line)
    return f"`{match[1]}`: " if match else ""


def _find_replacement(value: str, edits: Iterable[PastCall]) -> tuple[str, str, str] | None:
    """Return the file, the line that contained a value, and the line that replaced it."""
    for past in edits:
        if past.call.does != "edit" or value not in past.call.before:
            continue
        old, new = past.call.before.split("\n"), past.call.text.split("\n")
        if len(old) != len(new):
            continue
        for before, after in zip(old, new, strict=True):
            if value in before and value not in after and after.strip() and not _COMMENT.match(before):
                return past.call.path, before.strip()[:120], after.strip()[:120]
    return None


def has_failed_tests(output: str) -> bool:
    """Return whether an output reports failed tests in a common test runner's format."""
    text = clean(beginning_and_end(output, _HALF_OUTPUT_LENGTH))
    return any(pattern.search(text) for pattern in _FAILED_TESTS)
