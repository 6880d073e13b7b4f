"""Recognise a command that failed before and a command that worked instead, at the time of a hook's call.

Two commands are the same if they run the same programs in the same folder, wherever their output goes and however it is
shortened. A command that asks for the same thing with the wrong words repeats a mistake. In doubt, two commands are
different and neither replaces the other.
"""

from __future__ import annotations

import os
import re

from learnt.mine.complaint import find_complaint
from learnt.mine.shell import (
    INTERPRETERS,
    Part,
    compare_words,
    folder_of,
    hides_failures,
    is_build,
    is_check,
    list_programs,
    measure_likeness,
    settings_of,
    split_command,
)
from learnt.model import digest

_NO_PROGRAM = re.compile(r"not found|No module named|not installed|not recognized", re.IGNORECASE)
# Errors about how a program was called.
_MISUSE = re.compile(
    r"(?:unknown|unrecogni[sz]ed|unexpected|invalid|illegal|no such|missing)[ -]"
    r"(?:flag|option|argument|shorthand|command|subcommand|switch|script|target|task)|flag provided but not defined",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+")
_MAX_LENGTH = 4_000
_MIN_LIKENESS = 0.34
_MIN_NAME_LIKENESS = 0.6
_MIN_WORD_LIKENESS = 0.8
_QUESTION_PROGRAMS = frozenset(
    "grep egrep fgrep rg ag ack diff cmp test [ [[ which type command pgrep false jq find nc lsof".split()
)
_QUESTION_WORDS = frozenset("--quiet -q --exit-code --verify is-active is-enabled -z".split())
_NO_TASK = re.compile(r"No rule to make target|Missing script|does not contain recipe|task .* does not exist", re.I)
# Subcommands, and programs, that are used instead of each other.
_SYNONYMS = (frozenset(("install", "ci")), frozenset(("remove", "uninstall")), frozenset(("add", "install")))
_FAMILIES = (
    frozenset("npm pnpm yarn bun".split()),
    frozenset("pip pip3 uv poetry pipx conda mamba".split()),
    frozenset("docker podman".split()),
    frozenset("make just task".split()),
    frozenset("apt apt-get brew dnf yum apk".split()),
)
_MAX_WRONG_WORDS = 5


def command_key(command: str, root: str, folder: str = "") -> str:
    """Return a digest that is equal for the same command in the same folder of a project; empty without a command.

    `folder` is where it runs, by default the project's root. The text of an inline script is part of the command.
    """
    ran = split_command(command)
    if not ran:
        return ""
    whole = "<<" in command or len(command) > _MAX_LENGTH
    words = (command,) if whole else (*settings_of(command), *(f"{part.source}|{part.text}" for part in ran))
    text = "\n".join((f"{_resolve_folder(command, root, folder)}/", *words))
    return digest(text.replace(root, ".") if root else text)[:24]


def is_misstep(command: str, error: str) -> bool:
    """Return whether a failure is a mistake in the command.

    The failure of a test, a linter or a build is about the code, unless it was called incorrectly.
    """
    return may_replace(command) and (bool(_MISUSE.search(error)) or not any(map(is_check, split_command(command))))


def may_replace(command: str) -> bool:
    """Return whether a success says something about the command; that of a test or a linter is about the code."""
    ran = split_command(command)
    return bool(ran) and all(is_build(part) or not is_check(part) for part in ran)


def has_succeeded(command: str, output: str) -> bool:
    """Return whether a command line with exit code 0 succeeded; a pipe or `|| true` may hide a failure."""
    if not hides_failures(command):
        return True
    return bool(output.strip()) and not find_complaint(output)


def is_question(command: str) -> bool:
    """Return whether a command that fails without output may only have answered no, like a search without a match."""
    asks = any(name in _QUESTION_PROGRAMS for name in list_programs(command))
    return asks or any(word in _QUESTION_WORDS for part in split_command(command) for word in part.words)


def replaces(failed: str, worked: str, error: str) -> bool:
    """Return whether a working command was run instead of a failed one."""
    is_missing, is_no_task = bool(_NO_PROGRAM.search(error)), bool(_NO_TASK.search(error))
    return any(
        _is_instead(failed_part, working_part)
        or (is_missing and _is_instead_of_missing(failed_part, working_part))
        or (is_no_task and failed_part.program == working_part.program)
        for failed_part in split_command(failed)
        for working_part in split_command(worked)
    )


def _is_instead(failed: Part, worked: Part) -> bool:
    """Return whether a program was likely run for the same purpose as a failed one."""
    if failed.program != worked.program:
        is_family = any({failed.program, worked.program} <= family for family in _FAMILIES)
        is_same = is_family and failed.words[-1] == worked.words[-1]
        return is_same or _starts(failed, worked) or _starts(worked, failed)
    if failed.program in INTERPRETERS:
        return _find_script(failed) == _find_script(worked) or _is_misspelt(failed, worked)
    if failed.intent == worked.intent or {*failed.intent[1:2], *worked.intent[1:2]} in _SYNONYMS:
        return True
    return measure_likeness(failed, worked) >= _MIN_LIKENESS or _is_misspelt(failed, worked)


def _is_instead_of_missing(failed: Part, worked: Part) -> bool:
    """Return whether a program was likely run instead of a missing one."""
    return bool(set(failed.words[1:]) & set(worked.words)) or _are_alike(
        failed.program, worked.program, _MIN_NAME_LIKENESS
    )


def _starts(starter: Part, started: Part) -> bool:
    """Return whether a program only starts the other one: `bash run.sh`, and `./run.sh`."""
    names = [word.rpartition("/")[2] for word in starter.words[1:2]]
    return starter.program in INTERPRETERS and "/" in started.words[0] and started.program in names


def _find_script(part: Part) -> str:
    """Return the script or module that an interpreter runs."""
    words = part.words[1:]
    if "-m" in words[:-1]:
        return words[words.index("-m") + 1]
    return next((word for word in words if not word.startswith("-")), "") if "-c" not in words else "-c"


def _is_misspelt(failed: Part, worked: Part) -> bool:
    """Return whether two parts differ only in the spelling of words; another number is another word."""
    if len(failed.words) != len(worked.words):
        return False
    return all(
        wrong == right
        or (_DIGITS.findall(wrong) == _DIGITS.findall(right) and _are_alike(wrong, right, _MIN_WORD_LIKENESS))
        for wrong, right in zip(failed.words, worked.words, strict=True)
    )


def _are_alike(first: str, second: str, min_ratio: float) -> bool:
    from difflib import SequenceMatcher

    return sorted(first) == sorted(second) or SequenceMatcher(None, first, second).ratio() >= min_ratio


def list_requests(command: str, root: str, folder: str = "") -> tuple[str, ...]:
    """Return the request to each program of a command line, such as `git show`."""
    where = _resolve_folder(command, root, folder)
    return tuple(dict.fromkeys(_describe_request(part, root, where) for part in split_command(command)))


def find_wrong_words(failed: str, worked: str, error: str, root: str, folder: str = "") -> tuple[str, tuple[str, ...]]:
    """Return the request to a program, and its wrong words: those in the error that the working command lacks.

    If there are none, only the same command repeats the mistake.
    """
    where = _resolve_folder(failed, root, folder)
    for failed_part in split_command(failed):
        for working_part in split_command(worked):
            # The same name in another folder is another script.
            is_same = "/" not in failed_part.words[0] or (failed_part.words[0], where) == (
                working_part.words[0],
                _resolve_folder(worked, root, folder),
            )
            if failed_part.intent == working_part.intent and is_same:
                removed, _ = compare_words(failed_part, working_part)
                wrong = [word for word in removed if len(plain := word.strip("'\"")) > 2 and plain in error]
                if wrong:
                    return _describe_request(failed_part, root, where), tuple(wrong[:_MAX_WRONG_WORDS])
    return "", ()


def repeats(command: str, request: str, wrong: tuple[str, ...], root: str, folder: str = "") -> bool:
    """Return whether a command makes the same request with the same wrong words."""
    where = _resolve_folder(command, root, folder)
    return any(
        _describe_request(part, root, where) == request and set(wrong) <= set(part.words)
        for part in split_command(command)
    )


def _resolve_folder(command: str, root: str, folder: str) -> str:
    """Return the folder in which a command is run."""
    return os.path.normpath(os.path.join(folder or root, folder_of(command)))


def _describe_request(part: Part, root: str, where: str) -> str:
    """Return the request to a program; the project's own programs are identified by their path."""
    path = os.path.normpath(os.path.join(where, part.words[0])) if "/" in part.words[0] else ""
    own = root and path.startswith(f"{root}/")
    return " ".join((os.path.relpath(path, root), *part.intent[1:])) if own else " ".join(part.intent)
