"""Find the line in an output that says what is wrong and what kind of error it is, and generalise it.

Details that are specific to one machine or one day are removed. A check's output is also split into diagnostics with a
file, a message and a rule. Any text can be read. Only the beginning and the end of a long text are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import dropwhile, pairwise

from learnt.model import Value
from learnt.text.clean import clean, fold
from learnt.text.patterns import lazy_pattern
from learnt.text.triggers import beginning_and_end

MAX_MESSAGE_LENGTH = 200
_HALF_OUTPUT_LENGTH = 10_000
_MAX_LINES = 400
_FEW_LINES = 12
_MAX_LINE_LENGTH = 1_000
_MAX_TEXT_LENGTH = 4_000
_MARKUP = lazy_pattern(r"</?(?:tool_use_error|error|stderr|stdout|output)>")
_PREAMBLE = lazy_pattern(
    r"^(?:(?:Error: )?Exit code \d+|Command failed.*|\[[\w:.-]+\] (?:\$ .*|ERROR task failed|Finished .*)|"
    r"=== (?:RUN|CONT|PAUSE|NAME) .*|--- (?:PASS|SKIP): .*|ok\s.*|\?\s.*|PASS)$"
)
_ERROR_PREFIX = lazy_pattern(
    r"^E\s{2,}|^\(eval\):(?:cd:)?(?:\d+:)?\s*|^(?:fatal|error|Error): (?=\S+ \S)|"
    r"^(?:/bin/)?(?:ba|z)?sh: (?:line \d+: |\d+: )?"
)
_TRACEBACK_END = lazy_pattern(r"^(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|NotFound)\b.*")
_KNOWN_ERROR = lazy_pattern(
    r"unknown (?:flag|option|command|argument|shorthand)|unrecogni[sz]ed|no such file|command not found|"
    r"no matches found|not a git repo|does not exist|did not match|No module named|cannot find|could(?: not|n't) find|"
    r"not found|parse error|syntax error|permission denied|already (?:exists|used)|invalid|must be|is required|"
    r"requires|unexpected|unable to|could not|cannot|can't|not allowed|denied|ignored by|rejected|refus|no Go files|"
    r"illegal|unsupported|forbidden|expired",
    re.IGNORECASE,
)
_ERROR_LABEL = lazy_pattern(r"^\W*(?:\w[\w./-]*: )?(?:fatal|error|err!?|panic|failed|failure|FAIL)\b", re.IGNORECASE)
_ABOUT_FAILURE = lazy_pattern(r"\b(?:error|fail|failed|fatal|exception)\b", re.IGNORECASE)
# A report of an error without such a word says what is not, or is no longer.
_NEGATION = lazy_pattern(
    r"\b(?:not|no|never|without|unable|missing|expired?|refused|forbidden|unsupported|unauthori[sz]ed|incompatible|"
    r"mismatch|unresolved|out of|already|rejected|aborted|only|must|need(?:s|ed)?|\w+n't)\b",
    re.IGNORECASE,
)
# Lines that only say that something failed, while another line says why.
_SAYS_NOTHING = lazy_pattern(
    r"^(?:npm (?:ERR!|error) (?:code|errno|syscall|path|command|A complete log|Lifecycle|at )|"
    r"make(?:\[\d+\])?: \*\*\* \[|"
    r"\W*(?:error:? )?(?:build|command|process|task|script|job|run)\b.{0,30}\b(?:failed|exited|completed)\b.{0,40}$|"
    r".{0,12}\bELIFECYCLE\b|FAILURE: Build failed|\* What went wrong|exit(?:ed)? (?:status|code)|error: Recipe)",
    re.IGNORECASE,
)
# The client marks no error, or a pipe hides it, but the output begins or ends with one.
_PLAIN_FAILURE = lazy_pattern(
    r"^(?:[\w./ -]{1,30}: )?(?:fatal|(?:\w+ ?)?error|err!|panic|traceback \(most recent call last\)|"
    r"failure)(?:[:!(\[]| -)|"
    r"\bcommand not found\b|^make(?:\[\d+\])?: \*\*\*|^npm (?:ERR!|error) |\berror [A-Z]{2,}\d+: ",
    re.IGNORECASE,
)
_NO_ERRORS = lazy_pattern(r"\b(?:0|no) (?:errors?|failures?|problems?)\b|\berrors?: 0\b", re.IGNORECASE)
# Errors that go away by themselves: a network, another process, a service that is busy or starting.
_PASSING = lazy_pattern(
    r"timed? ?-?out\b|ETIMEDOUT|ECONNRESET|EAI_AGAIN|\bENOTFOUND\b|temporary failure|temporarily unavailable|"
    r"could not resolve (?:host|proxy)|name resolution|no such host|network (?:is unreachable|error)|connection reset|"
    r"connection (?:was )?closed|remote end hung up|TLS handshake|unexpected EOF|early EOF|rate limit|"
    r"too many requests|"
    r"(?:status|HTTP|error|code|returned)\D{0,20}\b(?:429|50[0234])\b|\b50[234] (?:service|bad|gateway)|"
    r"service unavailable|"
    r"bad gateway|index\.lock|state lock|could not get lock|lock(?:ed)? by|waiting for file lock|"
    r"resource (?:is )?busy|try again later|non-fast-forward|fetch first|behind its remote|"
    r"no space left",
    re.IGNORECASE,
)
_NO_PROGRAM = lazy_pattern(
    r"(?:^|[\s:])[`'\"]?(?P<a>[\w./@+-]*\w)[`'\"]?: (?:(?:command )?not found|(?:Kommando|Befehl) nicht gefunden|"
    r"commande introuvable|orden no encontrada)(?:$|[\s.])|"
    r"command not found: [`'\"]?(?P<b>[\w./@+-]*\w)|"
    r"'(?P<c>[\w./@+-]+)' is not recognized|[Ff]ailed to spawn: `(?P<d>[\w./@+-]+)|"
    r"no such (?:sub)?command: [`'\"](?P<e>[\w-]+)|"
    r"\"(?P<f>[\w./@+-]+)\": executable file not found|spawn (?P<g>[\w./@+-]+) ENOENT|No module named '?(?P<h>[\w.]+)"
)
_INTRODUCTION = lazy_pattern(r"; [^;:]*:\s*$")  # of what follows in the next line
# Every system has these: if a shell does not find one, only its path is broken.
_ALWAYS_THERE = frozenset(
    "awk basename cat chmod cp cut date dirname echo env find git grep head ls mkdir mv rm sed sh sleep sort tail tee "
    "test touch tr uniq wc which xargs".split()
)
# Failed tests, and compilers and linters that point at a line of code.
_IN_CODE = lazy_pattern(
    r"\.[A-Za-z]\w{0,4}:\d+(?::\d+)?(?:[:\s]|$)|\.\w{1,5}\(\d+,\d+\)|^[ \t]+\d+:\d+[ \t]+error\b|--- FAIL|"
    r"^FAIL(?:ED)?\b|"
    r"AssertionError|\bassert\w*\b|"
    r"\bpanic(?:ked)?\b|✗|✘|(?:^|[,:=(]) *[1-9]\d{0,3} (?:failed|failing|failures?|errors?)\b",
    re.MULTILINE,
)
_DEMAND = lazy_pattern(
    r"\b(?:must|may not|should|required?|missing|expected|invalid|does not match|doesn't match|at least|too (?:long|"
    r"short)|"
    r"not allowed|malformed)\b",
    re.IGNORECASE,
)
_BAD_OPTION = lazy_pattern(
    r"(?:unknown|unrecogni[sz]ed|invalid|illegal|unexpected|unsupported|no such|undefined) (?:flag|option|argument|"
    r"shorthand|"
    r"switch|parameter)|(?:flag|option|argument)\b.{0,40}\b(?:not defined|does not exist|not recognized|unknown)",
    re.IGNORECASE,
)
_EXCEPTION = lazy_pattern(r"\b\w*(?:Error|Exception): \S")
_AT_PLACE = lazy_pattern(r"^[\w./@+-]+\.\w{1,6}[:(]\d")
# The message of a failed test stands in the line below its name.
_TEST_HEADING = lazy_pattern(r"^(?:--- FAIL: |FAIL(?:ED)?:? |● |not ok \d+|thread .* panicked at )")
_TEST_MESSAGE = lazy_pattern(r"^E\s{2,}(?=\S)")
_MIN_FIRST_RATING = 3  # fewer signs are no error, but may be what an error is about
_AT_LINE = lazy_pattern(r"^[\w./@+-]+\.\w{1,6}(?::\d+(?::\d+)?:|\(\d+(?:,\d+)?\):) (?!.{0,20}\b(?:warning|note)\b)\S")
_ONLY_ENDED = lazy_pattern(r"^npm (?:ERR!|error) (?:Exit status|Test failed)|, to rerun pass `", re.IGNORECASE)
_ABORTED = lazy_pattern(
    r"sibling tool call errored|request interrupted|interrupted by (?:the )?user|cancel+ed|tool use was rejected|"
    r"user doesn't want|operation was aborted|command timed out after",
    re.IGNORECASE,
)
# A conflict is a merge's result, not a mistake in the command.
_CONFLICT = lazy_pattern(
    r"\bCONFLICT \(|could not apply [0-9a-f]{7}|Automatic merge failed|fix conflicts", re.IGNORECASE
)

_HOME = lazy_pattern(r"(?:/Users|/home)/[^/\s'\"`:]+|/root(?=/)|[A-Z]:\\Users\\[^\\\s]+")
_WORKTREE = lazy_pattern(r"[^\s'\"`=:(]*/\.?worktrees/[^/\s'\"`]+/")
_TEMPORARY_PATH = lazy_pattern(r"(?:/private)?/(?:tmp|var/folders|var/tmp)/[^\s'\"`:,;)]+")
_ID = lazy_pattern(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|"
    r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b|\b[0-9a-f]{40}\b"
)
_TIME = lazy_pattern(r"\b\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?\b")
_POSITION = lazy_pattern(r"(?<=[\w)]):\d+(?::\d+)?(?=[:,\s)`]|$)|\(\d+,\d+\)")
_LINE_NUMBER = lazy_pattern(r"\b(line|column) \d+")
_JSON_MESSAGE = lazy_pattern(r"\{\s*\"(?:message|error)\"\s*:\s*\"([^\"\\]{5,})")
_NUMBER = lazy_pattern(r"(?<!HTTP )(?<!code )(?<!port )(?<!:)(?<![\w.=-])(?![45]\d\d\b)[1-9]\d{2,}(?![\w.-])")
_VARYING_PART = lazy_pattern(
    r"[()]|<\w+>|(?:~|[\w.-]+)?/[^\s'\"`]+|[\"'`“”‘’][^\"'`“”‘’]*[\"'`“”‘’]|[\w./-]+\.\w{1,5}\b|\d+|…"
)

_DIAGNOSTIC = lazy_pattern(
    r"^(?P<file>(?:[\w.@+-]+/)*[\w.@+-]+\.\w{1,6})(?::\d+(?::\d+)?|\(\d+,\d+\)):?\s+(?:- )?(?P<message>\S.*)$"
)
_OPEN_QUOTATION = lazy_pattern(r"[^\s`]+\.\w{1,6}:\d+[^`]*(?:`[^`]*`[^`]*)*`[^`]*$")
_MAX_QUOTED_LINES = 6
_RUST_MESSAGE = lazy_pattern(r"^error(?:\[E\d+\])?: (.+)$")
_RUST_POSITION = lazy_pattern(r"^\s*--> ([\w./-]+\.rs:\d+:\d+)$")
_TYPE_CHECKER_MESSAGE = lazy_pattern(r"^error: .*\]$|^error TS\d|^TS\d")
_TOO_COMMON = ("no such file or directory", "file does not exist", "command not found", "permission denied")
_TASK_PREFIX = lazy_pattern(r"^\[[\w:.-]+\] ?")  # the task that printed the line, if several tasks are running
_RULE_FORMATS = (
    lazy_pattern(r"^(?P<message>.+?)\s+\((?P<rule>[a-z][a-z0-9-]{2,30})\)$"),  # golangci-lint
    lazy_pattern(r"^(?:error|warning|note): (?P<message>.+?)\s+\[(?P<rule>[a-z][\w-]{2,40})\]$"),  # mypy
    lazy_pattern(r"^(?:error )?(?P<rule>[A-Z]{1,4}\d{3,5}):? (?P<message>.+)$"),  # ruff, tsc
    lazy_pattern(r"^(?:error|warning)\s+(?P<message>.+?)\s{2,}(?P<rule>@?[a-z][\w/-]{2,40})$"),  # eslint
)


class Diagnostic(Value):
    """A check's message about a file."""

    file: str
    message: str
    rule: str = ""
    source: str = ""
    """The line of code that the output quotes."""
    from_type_checker: bool = False
    """Whether a type checker reported it. Its rules are the same everywhere, so only an example is worth learning."""

    @property
    def key(self) -> tuple[str, str, str]:
        """A key that is equal for equal messages about the same file."""
        return (self.file.rpartition("/")[2], self.rule, self.message)


def find_first_line(text: str) -> str:
    """Return the first non-empty line. The clients' own tools describe the error there."""
    return next(iter(_list_lines(text)), "")


def find_error(text: str) -> str:
    """Return the line that says why a call failed; empty if there is none."""
    lines = _list_lines(text)
    telling = [line for line in lines if not _SAYS_NOTHING.search(line)] or lines
    found = _find_exception(telling)
    rates = [] if found else [_rate(line) for line in telling]
    if any(rates):
        return telling[rates.index(max(rates))]
    return found or next(iter(telling[:1] if len(telling) < _FEW_LINES else telling[-1:]), "")


def find_first_error(text: str) -> str:
    """Return the first line of an output that says what went wrong, on which the others may depend.

    It is empty if there is no output, or only that something failed (`make: *** [all] Error 1`).
    """
    lines = [line for line in _list_lines(text) if not (_SAYS_NOTHING.search(line) or _ONLY_ENDED.search(line))]
    messages = (line[match.end() :] for line in lines if (match := _TEST_MESSAGE.match(line)))
    others = [line for line in lines if not _TEST_HEADING.match(line)]
    telling = (line for line in others if _rate(line) >= _MIN_FIRST_RATING or _AT_LINE.match(line))
    below_heading = dropwhile(lambda line: not _TEST_HEADING.match(line), lines)
    failed = (line for line in below_heading if not _TEST_HEADING.match(line))
    found = next(messages, "") or _find_first_exception(lines) or next(telling, "") or next(failed, "")
    return found or (find_error("\n".join(lines)) if lines else "")


def _find_first_exception(lines: list[str]) -> str:
    """Return the line with the exception of the first traceback, which caused those after it; empty without one."""
    inside = dropwhile(lambda line: not line.startswith("Traceback (most recent call last)"), lines)
    return next(filter(_TRACEBACK_END.match, inside), "")


def _rate(line: str) -> int:
    """Return how likely a line is to say why something failed."""
    known = 4 if _KNOWN_ERROR.search(line) else 0
    others = sum(sign.search(line) is not None for sign in (_ERROR_LABEL, _NEGATION, _AT_PLACE, _EXCEPTION))
    return known + 2 * others + (_ABOUT_FAILURE.search(line) is not None)


def guess_error_line(text: str) -> str:
    """Return the line that most likely reports an error, without knowing whether a call failed; empty if none does."""
    lines = _list_lines(text)
    patterns = (_KNOWN_ERROR, _ERROR_LABEL, _ABOUT_FAILURE)
    found = (line for pattern in patterns for line in lines if pattern.search(line))
    return _find_exception(lines) or next(found, "")


def _find_exception(lines: list[str]) -> str:
    """Return the line with the exception behind a traceback; empty if there is none."""
    if not any(line.startswith("Traceback (most recent call last)") for line in lines):
        return ""
    return next(filter(_TRACEBACK_END.match, reversed(lines)), "")


def rate_clause(text: str) -> int:
    """Return how well a part of an error still says what is wrong; 0 if it does not."""
    if _KNOWN_ERROR.search(text):
        return 2
    return int(bool(_NEGATION.search(text) or _ABOUT_FAILURE.search(text)))


def reports_failure(text: str) -> bool:
    """Return whether an output is plainly that of a program that failed, although its exit code is not known."""
    lines = _list_lines(text)
    ends = lines if len(lines) <= 2 * _FEW_LINES else [*lines[:1], *lines[-_FEW_LINES:]]
    return any(_PLAIN_FAILURE.search(line) and not _NO_ERRORS.search(line) for line in ends)


def passes_by_itself(error: str) -> bool:
    """Return whether an error is likely to be gone at the next call: a network, a lock, a busy service."""
    return _PASSING.search(error) is not None


def find_missing_program(output: str) -> str:
    """Return the program, subcommand or module that an output says does not exist; empty if there is none."""
    match = _NO_PROGRAM.search(output)
    name = next((name for name in match.groups() if name), "") if match else ""
    return "" if name in _ALWAYS_THERE else name


def is_in_code(output: str) -> bool:
    """Return whether a test failed, or a compiler or linter points at a line of code."""
    return _IN_CODE.search(output) is not None


def states_demand(error: str) -> bool:
    """Return whether an error says what is required."""
    return _DEMAND.search(error) is not None


def rejects_option(error: str) -> bool:
    """Return whether a program does not know an option."""
    return _BAD_OPTION.search(error) is not None


def was_aborted(text: str) -> bool:
    """Return whether a call failed only because it was stopped or because another call failed."""
    return _ABORTED.search(text[:300]) is not None


def is_conflict(text: str) -> bool:
    """Return whether a merge found conflicts."""
    return _CONFLICT.search(text) is not None


def generalise(text: str, folder: str = "") -> str:
    """Return a text without home and temporary folders, ids, times and line numbers, and with relative paths."""
    text = _POSITION.sub("", generalise_paths(text, folder))
    return fold(_NUMBER.sub("<n>", _LINE_NUMBER.sub(r"\1 <n>", text)))


def generalise_paths(text: str, folder: str = "") -> str:
    """Return a text without home and temporary folders, ids and times, and with relative paths; numbers stay."""
    text = text[:_MAX_TEXT_LENGTH]
    if len(folder) > 1:
        root = re.escape(folder.rstrip("/"))
        text = re.sub(rf"{root}(?![\w.-])", "<root>", re.sub(rf"{root}/(?=[\w.])", "", text))
    text = _WORKTREE.sub("", text)
    text = _TEMPORARY_PATH.sub("/tmp/…", text)  # noqa: S108 - a placeholder, not a folder that is written to
    text = _HOME.sub("~", text)
    return fold(_TIME.sub("<time>", _ID.sub("<id>", text)))


def generalise_error(text: str, folder: str = "") -> str:
    """Return an error in general terms, without the prefix that a shell or a program adds."""
    match = _JSON_MESSAGE.match(text)
    error = generalise(_ERROR_PREFIX.sub("", match[1] if match else text), folder)
    return _INTRODUCTION.sub("", error).rstrip(" .:;")


def find_stable_part(text: str) -> str:
    """Return the longest part of an error that is the same each time; empty if there is none."""
    pieces = [fold(piece).strip(" :,.;()[]{}-") for piece in _VARYING_PART.split(text)]
    best = max(pieces, key=len, default="")
    return best if len(best) >= 10 and " " in best and best.lower() not in _TOO_COMMON else ""


def read_diagnostics(text: str) -> Iterator[Diagnostic]:
    """Yield the diagnostics in a check's output, without duplicates."""
    keys = set()
    lines = _MARKUP.sub("", clean(beginning_and_end(text, _HALF_OUTPUT_LENGTH))).split("\n")
    for line, below in pairwise([*_join_lines(lines), ""]):
        match = _DIAGNOSTIC.match(_TASK_PREFIX.sub("", line.rstrip()[:_MAX_LINE_LENGTH]))
        if match is None:
            continue
        message, rule = match["message"].removesuffix(" (typecheck)"), ""
        if message.startswith(": #"):
            continue  # this line only says that a package does not compile; the reason is in a later line
        rule_match = next(filter(None, (pattern.match(message) for pattern in _RULE_FORMATS)), None)
        if rule_match:
            message, rule = rule_match["message"], rule_match["rule"]
        diagnostic = Diagnostic(
            file=match["file"],
            message=fold(message)[:MAX_MESSAGE_LENGTH],
            rule=rule,
            source=_TASK_PREFIX.sub("", below).strip()[:MAX_MESSAGE_LENGTH],
            from_type_checker=bool(rule) and _TYPE_CHECKER_MESSAGE.search(match["message"]) is not None,
        )
        if diagnostic.key not in keys:
            keys.add(diagnostic.key)
            yield diagnostic


def _join_lines(lines: list[str]) -> Iterator[str]:
    """Yield the lines, with a quotation over several lines joined, and a Rust message joined with its location."""
    message = ""
    position = 0
    while position < len(lines):
        line = lines[position]
        position += 1
        if _OPEN_QUOTATION.match(line):
            rest = lines[position : position + _MAX_QUOTED_LINES]
            end = next((number for number, quoted in enumerate(rest, 1) if quoted.count("`") % 2), 0)
            line = " ".join((line, *rest[:end]))
            position += end
        if rust := _RUST_MESSAGE.match(line):
            message = rust[1]
        elif message and (position_match := _RUST_POSITION.match(line)):
            line, message = f"{position_match[1]}: {message}", ""
        yield line


def _list_lines(text: str) -> list[str]:
    plain = _MARKUP.sub("", clean(beginning_and_end(text, _HALF_OUTPUT_LENGTH)))
    stripped = (line.strip()[:_MAX_LINE_LENGTH] for line in plain.split("\n"))
    lines = [line for line in stripped if line and not _PREAMBLE.match(line)]
    return lines if len(lines) <= _MAX_LINES else lines[: _MAX_LINES // 2] + lines[-_MAX_LINES // 2 :]
