"""A command that failed and one that worked then, as far as a hook can tell at the moment itself.

The same command is the same in the same folder, whatever it prints to and however its output is shortened. So is one
that asks for the same thing with the very words that were wrong. In doubt two commands are different, and none replaces
the other.
"""

from __future__ import annotations

import os
import re

from learnt.mine.shell import (
    INTERPRETERS,
    changed_words,
    folder_of,
    hides_failures,
    is_build,
    is_check,
    likeness,
    parts,
    programs,
    settings_of,
)
from learnt.model import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.mine.shell import Part

_NO_PROGRAM = re.compile(r"not found|No module named|not installed|not recognized", re.IGNORECASE)
# A mistake in how a program was asked, whatever it was asked for.
_MISUSE = re.compile(
    r"(?:unknown|unrecogni[sz]ed|unexpected|invalid|illegal|no such|missing)[ -]"
    r"(?:flag|option|argument|shorthand|command|subcommand|switch|script|target|task)|flag provided but not defined",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+")
_LONGEST = 4_000
_ALIKE = 0.34
_ALIKE_NAMES = 0.6
_ALIKE_WORDS = 0.8
_ASKS = frozenset(
    "grep egrep fgrep rg ag ack diff cmp test [ [[ which type command pgrep false jq find nc lsof".split()
)
_ASK_WORDS = frozenset("--quiet -q --exit-code --verify is-active is-enabled -z".split())
_NO_TASK = re.compile(r"No rule to make target|Missing script|does not contain recipe|task .* does not exist", re.I)
# What is used in place of each other: programs, and words of one.
_WORDS = (frozenset(("install", "ci")), frozenset(("remove", "uninstall")), frozenset(("add", "install")))
_FAMILIES = (
    frozenset("npm pnpm yarn bun".split()),
    frozenset("pip pip3 uv poetry pipx conda mamba".split()),
    frozenset("docker podman".split()),
    frozenset("make just task".split()),
    frozenset("apt apt-get brew dnf yum apk".split()),
)
_MOST_WRONG = 5


def sign_of(command: str, root: str, folder: str = "") -> str:
    """Return a short sign, equal for the same command in the same folder of a project; nothing for no command.

    `folder` is where it is run, the project's root if nobody says. What a script holds that is written on the spot is
    part of the command.
    """
    ran = parts(command)
    if not ran:
        return ""
    whole = "<<" in command or len(command) > _LONGEST
    said = (command,) if whole else (*settings_of(command), *(f"{part.source}|{part.text}" for part in ran))
    told = "\n".join((f"{_where(command, root, folder)}/", *said))
    return digest(told.replace(root, ".") if root else told)[:24]


def counts(command: str, error: str) -> bool:
    """Say whether a failure tells of the command: that of a test or a linter tells of the code.

    So does that of a build, unless it was asked for in a wrong way.
    """
    return may_replace(command) and (bool(_MISUSE.search(error)) or not any(map(is_check, parts(command))))


def may_replace(command: str) -> bool:
    """Say whether a success tells of the command: that of a test or a linter tells of the code."""
    ran = parts(command)
    return bool(ran) and all(is_build(part) or not is_check(part) for part in ran)


def succeeded(command: str, output: str) -> bool:
    """Say whether a command line that ended well did: before a pipe or `|| true`, only what it printed tells."""
    if not hides_failures(command):
        return True
    from learnt.mine.complaint import complaint

    return bool(output.strip()) and not complaint(output)


def is_question(command: str) -> bool:
    """Say whether a command that fails without a word may only have answered no, like a search that finds nothing."""
    asks = any(name in _ASKS for name in programs(command))
    return asks or any(word in _ASK_WORDS for part in parts(command) for word in part.words)


def replaces(failed: str, worked: str, error: str) -> bool:
    """Say whether a command that worked was run in place of one that had failed."""
    is_missing, is_no_task = bool(_NO_PROGRAM.search(error)), bool(_NO_TASK.search(error))
    return any(
        _is_instead(one, other)
        or (is_missing and _is_instead_of_missing(one, other))
        or (is_no_task and one.program == other.program)
        for one in parts(failed)
        for other in parts(worked)
    )


def _is_instead(one: Part, other: Part) -> bool:
    """Say whether one program was likely run for what another one should have done."""
    if one.program != other.program:
        is_family = any({one.program, other.program} <= family for family in _FAMILIES)
        return (is_family and one.words[-1] == other.words[-1]) or _starts(one, other) or _starts(other, one)
    if one.program in INTERPRETERS:
        return _script(one) == _script(other) or _is_misspelt(one, other)
    if one.intent == other.intent or {*one.intent[1:2], *other.intent[1:2]} in _WORDS:
        return True
    return likeness(one, other) >= _ALIKE or _is_misspelt(one, other)


def _is_instead_of_missing(one: Part, other: Part) -> bool:
    """Say whether a program was likely run in place of one that is not there."""
    return bool(set(one.words[1:]) & set(other.words)) or _are_alike(one.program, other.program, _ALIKE_NAMES)


def _starts(one: Part, other: Part) -> bool:
    """Say whether a program only starts the other one: `bash run.sh`, and `./run.sh`."""
    started = [word.rpartition("/")[2] for word in one.words[1:2]]
    return one.program in INTERPRETERS and "/" in other.words[0] and other.program in started


def _script(part: Part) -> str:
    """Return what an interpreter runs."""
    words = part.words[1:]
    if "-m" in words[:-1]:
        return words[words.index("-m") + 1]
    return next((word for word in words if not word.startswith("-")), "") if "-c" not in words else "-c"


def _is_misspelt(one: Part, other: Part) -> bool:
    """Say whether two parts differ only in how their words are spelt; another number is another word."""
    if len(one.words) != len(other.words):
        return False
    pairs = [(mine, theirs) for mine, theirs in zip(one.words, other.words, strict=True) if mine != theirs]
    return all(
        _DIGITS.findall(mine) == _DIGITS.findall(theirs) and _are_alike(mine, theirs, _ALIKE_WORDS)
        for mine, theirs in pairs
    )


def _are_alike(one: str, other: str, least: float) -> bool:
    from difflib import SequenceMatcher

    return sorted(one) == sorted(other) or SequenceMatcher(None, one, other).ratio() >= least


def asked_by(command: str, root: str, folder: str = "") -> tuple[str, ...]:
    """Return what each program of a command line is asked to do, such as `git show`."""
    where = _where(command, root, folder)
    return tuple(dict.fromkeys(_asked(part, root, where) for part in parts(command)))


def wrong_words(failed: str, worked: str, error: str, root: str, folder: str = "") -> tuple[str, tuple[str, ...]]:
    """Return what was asked for, and the words that were wrong: named in the error, and left out in what worked.

    Without any, only the very same command repeats the mistake.
    """
    where = _where(failed, root, folder)
    for one in parts(failed):
        for other in parts(worked):
            # A script of another folder is another one.
            is_same = "/" not in one.words[0] or (one.words[0], where) == (other.words[0], _where(worked, root, folder))
            if one.intent == other.intent and is_same:
                removed, _ = changed_words(one, other)
                wrong = [word for word in removed if _is_named(word, error)]
                if wrong:
                    return _asked(one, root, where), tuple(wrong[:_MOST_WRONG])
    return "", ()


def repeats(command: str, asked: str, wrong: tuple[str, ...], root: str, folder: str = "") -> bool:
    """Say whether a command asks for the same with the same wrong words."""
    where = _where(command, root, folder)
    return any(_asked(part, root, where) == asked and set(wrong) <= set(part.words) for part in parts(command))


def _where(command: str, root: str, folder: str) -> str:
    """Return the folder in which a command is run."""
    return os.path.normpath(os.path.join(folder or root, folder_of(command)))


def _asked(part: Part, root: str, where: str) -> str:
    """Return what a program is asked to do; one of the project's own is named by its place: there may be two alike."""
    path = os.path.normpath(os.path.join(where, part.words[0])) if "/" in part.words[0] else ""
    own = root and path.startswith(f"{root}/")
    return " ".join((os.path.relpath(path, root), *part.intent[1:])) if own else " ".join(part.intent)


def _is_named(word: str, error: str) -> bool:
    plain = word.strip("'\"")
    return len(plain) > 2 and plain in error
