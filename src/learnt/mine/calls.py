"""Failed calls, the calls that worked afterwards, and how a learning quotes a command.

A command is quoted without long quoted strings and without details that are specific to one machine or one day.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

from learnt.clients.kit.transcript import Step
from learnt.mine.complaint import find_missing_program, generalise_error, generalise_paths, is_in_code, rate_clause
from learnt.mine.shell import Part, find_filter
from learnt.model import TITLE_LIMIT, Discovery, Value

# Whether a failure is settled, and the discovery that follows from it.
Settlement = tuple[bool, Discovery | None]

MAX_EXCERPT_LENGTH = 1_000
_MAX_COMMAND_LENGTH = 100
_MAX_SHOWN_LENGTH = 80
_MAX_WORD_LENGTH = 60
_MAX_PROSE_LENGTH = 30
_MAX_ERROR_LENGTH = 300
_MIN_REASON_LENGTH = 12
_ABOUT_BRANCHES = frozenset("checkout switch push pull merge rebase branch fetch worktree pr".split())
_NUMBER_IN_PATH = re.compile(r"(?<=/)\d+(?=[/?\s]|$)|(?<==)\d{6,}")
_BRANCH = re.compile(r"[\w-]+(?:/[\w-]+)+")
# What stands before the reason in an error: who reports it, and that it is one.
_ERROR_LABEL = re.compile(
    r"^(?:\S+\.\w{1,5} (?:- )?|make: \*\*\* |\W*\b(?:[\w./-]+:? )?(?:fatal|error|err|failed|failure|warning|"
    r"\w*(?:Error|Exception))\b(?: from \w+)?(?: [A-Z]+\d+)?(?: ?\([\w. ]{1,30}\))?[:!\]]+\s*)+",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"; |(?<!e\.g)(?<!i\.e)\. |, | - |: | (?=\()")
_MAX_CLAUSES = 12
_MIN_REASON_WORDS = 2
_CONJUNCTION = re.compile(r"^(?:but|and|or|so|because|while|which) ")


class Retry(Value):
    """A command line that failed, the command line that worked in its place, and the conversation's folder."""

    failed: str
    error: str
    failed_at: int
    worked: str
    worked_at: int
    folder: str


class FailedCall(Value):
    """A call that failed because of how it was made."""

    call: Step
    parts: tuple[Part, ...]
    error: str
    output: str
    at: int
    wrong_part: Part | None
    """The part of the command line that most likely failed."""
    missing: str
    """The program, subcommand or module that the output says does not exist."""
    is_in_code: bool
    """Whether a test failed, or a compiler or linter points at a line of code."""

    def general_error(self, folder: str) -> str:
        """Return the error in general terms."""
        return generalise_error(self.error, folder)[:_MAX_ERROR_LENGTH]

    def reason(self, folder: str) -> str:
        """Return the error in general terms, without the label that says that it is one."""
        return _ERROR_LABEL.sub("", self.general_error(folder)).strip() or self.general_error(folder)

    @property
    def is_missing_program(self) -> bool:
        """Whether a program that the command line starts is not installed."""
        return self.wrong_part is not None and self.missing == self.wrong_part.program

    def explain(
        self, text: str, *, failed: str, worked: str, folder: str, rule: str = "command", files: tuple[str, ...] = ()
    ) -> Discovery:
        """Return the discovery that this failure and its correction make."""
        return Discovery(
            type="blocker" if rule == "command" else "constraint",
            rule=rule,
            text=text,
            failed=failed,
            error=self.general_error(folder),
            worked=worked,
            excerpt=self.output[:MAX_EXCERPT_LENGTH],
            files=files,
        )


def make_failure(call: Step, parts: tuple[Part, ...], error: str, output: str, at: int) -> FailedCall:
    """Return a failed call, with what its output says about it."""
    missing = find_missing_program(output).rpartition("/")[2]
    return FailedCall(
        call=call,
        parts=parts,
        error=error,
        output=output,
        at=at,
        wrong_part=find_filter(call.text, missing) or _find_wrong_part(parts, error, missing),
        missing=missing,
        is_in_code=is_in_code(output),
    )


def _find_wrong_part(parts: Sequence[Part], error: str, missing: str) -> Part | None:
    """Return the part of a command line that the error mentions, or the last part if it mentions none."""
    error = error.lower()
    for part in parts:
        if part.program == missing or error.startswith((f"{part.program}:", f"{part.program} ")):
            return part
    for part in parts:
        if any(len(word) > 3 and word.strip("'\"").lower() in error for word in part.words[1:]):
            return part
    return parts[-1] if parts else None


class PastCall(Value):
    """An earlier call that worked."""

    call: Step
    parts: tuple[Part, ...]
    at: int


class WorkingCall(Value):
    """A call that worked, the calls that have worked since the failure, and the conversation's folder."""

    call: Step
    output: str
    parts: tuple[Part, ...]
    since: tuple[PastCall, ...]
    folder: str
    said: tuple[str, ...] = ()
    """What the agent has said since the failure."""

    @property
    def parts_since(self) -> Iterator[Part]:
        """All programs that have been started since the failure."""
        return (part for call in self.since for part in call.parts)


def name_command(part: Part) -> str:
    """Return a program as it was called, and its subcommands: `./gradlew test`."""
    program = part.words[0] if len(part.words[0]) <= _MAX_PROSE_LENGTH else part.program
    return " ".join((program, *part.intent[1:])).replace("`", "'")


def fit_title(head: str, reason: str) -> str:
    """Return a title with its reason, with the most telling clauses of the reason, or without: it is never cut."""
    room = TITLE_LIMIT - len(head) - 2
    fitting = [clause for clause in _list_clauses(reason) if len(clause) <= room]
    best = max(fitting, key=lambda clause: (clause == reason, rate_clause(clause), len(clause)), default="")
    return f"{head}: {best}" if best else head


def _list_clauses(reason: str) -> Iterator[str]:
    """Yield a reason, and the parts of it that still say what is wrong."""
    if len(reason) >= _MIN_REASON_LENGTH:
        yield reason
    marks = list(_CLAUSE_END.finditer(reason))[:_MAX_CLAUSES]
    starts = [0, *(mark.end() for mark in marks)]
    ends = [*(mark.start() for mark in marks if mark[0] != ": "), len(reason)]  # a label is no reason
    for start in starts:
        for end in ends:
            clause = _CONJUNCTION.sub("", reason[start:end])
            if len(clause.split()) >= _MIN_REASON_WORDS and _is_balanced(clause) and rate_clause(clause):
                yield clause


def _is_balanced(text: str) -> bool:
    is_paired = all(text.count(pair[0]) == text.count(pair[1]) for pair in ("()", "[]", "{}"))
    return is_paired and all(text.count(sign) % 2 == 0 for sign in '"`') and text[:1] not in "<)]}"


def show_command(part: Part, folder: str, kept: Collection[str] = ()) -> str:
    """Return a command, with the words that matter if it is long: its subcommands and what was changed."""
    text = " ".join((*_as_prefix(format_settings(part.settings, folder)), format_command(part, folder)))
    if len(text) <= _MAX_SHOWN_LENGTH:
        return text
    shown = [
        word
        for before, word in pairwise(part.words)
        if word in kept or (before in kept and before[0] == "-" and "=" not in before and word[0] != "-")
    ]
    changed = [format_command(Part(words=(word,)), folder) for word in shown]
    settings = _as_prefix(format_settings((word for word in part.settings if word in kept), folder))
    changed = changed or settings
    short = f"{' '.join((*settings, name_command(part)))} … {' '.join(changed if changed != settings else ())}".rstrip()
    return short if changed and len(short) < len(text) else text


def _as_prefix(settings: Iterable[str]) -> list[str]:
    return [f"{setting} &&" if " " in setting and "=" not in setting else setting for setting in settings]


def format_settings(settings: Iterable[str], folder: str) -> list[str]:
    """Return variables with short values, and what else a command line sets up."""
    return [
        generalise_paths(setting if len(setting) <= _MAX_WORD_LENGTH else _shorten_word(setting), folder).replace(
            "`", "'"
        )
        for setting in settings
    ]


def format_command(part: Part, folder: str) -> str:
    """Return a command without long quoted strings and without details that are specific to one machine or one day."""
    words = []
    for index, word in enumerate(part.words):
        if word.isdigit() and index and _is_number_of_day(part, index):
            words.append("<n>")
        elif _names_branches(part) and _BRANCH.fullmatch(word) and not word.startswith("origin/"):
            words.append("<branch>")
        elif len(word) > (_MAX_PROSE_LENGTH if _is_prose(word) else _MAX_WORD_LENGTH):
            words.append(_shorten_word(word))
        else:
            words.append(word)
    text = _NUMBER_IN_PATH.sub("<n>", generalise_paths(" ".join(words), folder)).replace("`", "'")
    text = f"{part.source} … | {text}" if part.source else text
    return text if len(text) <= _MAX_COMMAND_LENGTH else text[: _MAX_COMMAND_LENGTH - 1] + "…"


def _shorten_word(word: str) -> str:
    """Return the beginning of a long word, an assignment without its value, or a quoted string without its content."""
    name, equals, value = word.partition("=")
    if equals and name.isidentifier():
        return f"{name}={value[:1]}…{value[-1:]}" if value[:1] in "'\"" else f"{name}=…"
    return f"{word[0]}…{word[0]}" if word[0] in "'\"" and _is_prose(word) else word[: _MAX_WORD_LENGTH - 1] + "…"


def _is_number_of_day(part: Part, index: int) -> bool:
    """Return whether a number is that of a pull request, a process and so on."""
    return not part.words[index - 1].startswith("-") and (
        part.program in ("git", "gh", "glab") or len(part.words[index]) > 3
    )


def _names_branches(part: Part) -> bool:
    return part.program in ("git", "gh") and not _ABOUT_BRANCHES.isdisjoint(part.intent[1:])


def _is_prose(word: str) -> bool:
    return (" " in word or "\n" in word) and "$(" not in word[:3]
