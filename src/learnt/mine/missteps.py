"""Recognise, during a hook's call, a command that failed before and a command that worked instead.

Two commands are the same if they run the same programs in the same folder, wherever their output goes and however it is
shortened. A command that makes the same request with the same wrong words repeats a mistake. In case of doubt, two
commands are different and neither replaces the other.
"""

from __future__ import annotations

import os
import re

from learnt.mine.comparison import compare_commands
from learnt.mine.complaint import find_missing_program, guess_error_line
from learnt.mine.shell import (
    Part,
    compare_words,
    folder_of,
    hides_failures,
    is_build,
    is_check,
    list_programs,
    provides,
    settings_of,
    split_command,
)
from learnt.model import digest

# Errors about how a program was called. These expressions are compiled when a command has failed.
_MISUSE = (
    r"(?i)(?:unknown|unrecogni[sz]ed|unexpected|invalid|illegal|no such|missing)[ -]"
    r"(?:flag|option|argument|shorthand|command|subcommand|switch|script|target|task)|flag provided but not defined"
)
_DIGITS = r"\d+"
_MAX_LENGTH = 4_000
_MIN_NAME_LIKENESS = 0.6
_MIN_WORD_LIKENESS = 0.8
_QUESTION_PROGRAMS = frozenset(
    "grep egrep fgrep rg ag ack diff cmp test [ [[ which type command pgrep false jq find nc lsof".split()
)
_QUESTION_WORDS = frozenset("--quiet -q --exit-code --verify is-active is-enabled -z".split())
_NO_TASK = r"(?i)No rule to make target|Missing script|does not contain recipe|task .* does not exist"
_MAX_WRONG_WORDS = 5
_MAX_PARTS = 10


def command_key(command: str, root: str, folder: str = "", *, with_variables: bool = True) -> str:
    """Return a digest that is equal for the same command in the same folder of a project; empty if there is no command.

    `folder` is where the command runs, by default the project's root. An inline script is part of the command.
    Variables that the command sets are part of it, too, except without `with_variables`.
    """
    parts = split_command(command)
    if not parts:
        return ""
    whole = "<<" in command or len(command) > _MAX_LENGTH
    settings = [word for word in settings_of(command) if with_variables or "=" not in word]
    words = (command,) if whole else (*settings, *(f"{part.source}|{part.text}" for part in parts))
    text = "\n".join((f"{_resolve_folder(command, root, folder)}/", *words))
    return digest(text.replace(root, ".") if root else text)[:24]


def list_signs(command: str) -> list[str]:
    """Return a digest of each program call in a command line, wherever it runs; searches and set-up are left out."""
    parts = [part for part in split_command(command) if part.program not in _QUESTION_PROGRAMS]
    return list(dict.fromkeys(digest(part.text)[:24] for part in parts[:_MAX_PARTS]))


def list_variables(command: str) -> set[str]:
    """Return the names of the variables that a command line sets for its programs."""
    return {word.partition("=")[0] for word in settings_of(command) if "=" in word}


def is_misstep(command: str, error: str) -> bool:
    """Return whether a failure is a mistake in the command.

    If a test, a linter or a build fails, the mistake is in the code, unless the check was called incorrectly.
    """
    parts = split_command(command)
    return bool(parts) and (is_misuse(command, error) or not any(map(is_check, parts)))


def is_misuse(command: str, error: str) -> bool:
    """Return whether a program is missing or was called incorrectly, whatever it was to do."""
    missing = find_missing_program(error).rpartition("/")[2]
    return bool(re.search(_MISUSE, error)) or missing in {part.program for part in split_command(command)}


def may_replace(command: str) -> bool:
    """Return whether a success shows that the command is right. The success of a test or linter does not."""
    parts = split_command(command)
    return bool(parts) and all(is_build(part) or not is_check(part) for part in parts)


def has_succeeded(command: str, output: str) -> bool:
    """Return whether a command line with exit code 0 succeeded. A pipe or `|| true` can hide a failure."""
    if not hides_failures(command):
        return True
    return bool(output.strip()) and not guess_error_line(output)


def is_question(command: str) -> bool:
    """Return whether failing without output can simply mean no, as for a search without a match."""
    asks = any(name in _QUESTION_PROGRAMS for name in list_programs(command))
    return asks or any(word in _QUESTION_WORDS for part in split_command(command) for word in part.words)


def replaces(failed_command: str, working_command: str, error: str) -> bool:
    """Return whether a working command was run instead of a failed one."""
    missing, is_no_task = find_missing_program(error), bool(re.search(_NO_TASK, error))
    return any(
        compare_commands(failed_part, working_part, missing=missing, error=error, output=error) is not None
        or _is_misspelt(failed_part, working_part)
        or (missing == failed_part.program and _are_alike(missing, working_part.program, _MIN_NAME_LIKENESS))
        or (is_no_task and failed_part.program == working_part.program)
        for failed_part in split_command(failed_command)
        for working_part in split_command(working_command)
    )


def _is_misspelt(failed_part: Part, working_part: Part) -> bool:
    """Return whether two parts differ only in the spelling of words. A different number is a different word."""
    if len(failed_part.words) != len(working_part.words):
        return False
    return all(
        first == second
        or (re.findall(_DIGITS, first) == re.findall(_DIGITS, second) and _are_alike(first, second, _MIN_WORD_LIKENESS))
        for first, second in zip(failed_part.words, working_part.words, strict=True)
    )


def _are_alike(first: str, second: str, min_ratio: float) -> bool:
    from difflib import SequenceMatcher

    return sorted(first) == sorted(second) or SequenceMatcher(None, first, second).ratio() >= min_ratio


def list_requests(command: str, root: str, folder: str = "") -> tuple[str, ...]:
    """Return the request to each program in a command line, such as `git show`, and the programs."""
    where, parts = _resolve_folder(command, root, folder), split_command(command)
    requests = (_describe_request(part, root, where) for part in parts)
    return tuple(dict.fromkeys((*requests, *(part.program for part in parts))))


def find_wrong_words(
    failed_command: str, working_command: str, error: str, root: str, folder: str = ""
) -> tuple[str, tuple[str, ...]]:
    """Return the request to a program, and its wrong words, which the error mentions and the working command lacks.

    A missing program is itself the wrong word, whatever it is asked for. If there are no wrong words, only the same
    command repeats the mistake.
    """
    where = _resolve_folder(failed_command, root, folder)
    missing = find_missing_program(error)
    for failed_part in split_command(failed_command):
        if missing and missing == failed_part.words[0]:
            return missing, (missing,)
        for working_part in split_command(working_command):
            # A script with the same name in another folder is a different script.
            is_same = "/" not in failed_part.words[0] or (failed_part.words[0], where) == (
                working_part.words[0],
                _resolve_folder(working_command, root, folder),
            )
            if failed_part.intent == working_part.intent and is_same:
                removed, _ = compare_words(failed_part, working_part)
                wrong_words = [word for word in removed if len(plain := word.strip("'\"")) > 2 and plain in error]
                if wrong_words:
                    return _describe_request(failed_part, root, where), tuple(wrong_words[:_MAX_WRONG_WORDS])
    return "", ()


def repeats(command: str, request: str, wrong_words: tuple[str, ...], root: str, folder: str = "") -> bool:
    """Return whether a command makes the same request with the same wrong words, or calls a missing program."""
    where, parts = _resolve_folder(command, root, folder), split_command(command)
    if wrong_words == (request,):
        return any(part.words[0] == request for part in parts)
    return any(
        _describe_request(part, root, where) == request and set(wrong_words) <= set(part.words) for part in parts
    )


def may_find(command: str, failed_command: str, program: str) -> bool:
    """Return whether a command may find a program that another one did not: as another user, or by its own remedy."""
    by_sudo, failed_by_sudo = ("sudo" in settings_of(one) for one in (command, failed_command))
    return by_sudo != failed_by_sudo or (provides(command, program) and not provides(failed_command, program))


def _resolve_folder(command: str, root: str, folder: str) -> str:
    """Return the folder in which a command is run."""
    return os.path.normpath(os.path.join(folder or root, folder_of(command)))


def _describe_request(part: Part, root: str, where: str) -> str:
    """Return the request to a program. The project's own programs are identified by their path."""
    path = os.path.normpath(os.path.join(where, part.words[0])) if "/" in part.words[0] else ""
    own = root and path.startswith(f"{root}/")
    return " ".join((os.path.relpath(path, root), *part.request[1:])) if own else " ".join(part.request)
