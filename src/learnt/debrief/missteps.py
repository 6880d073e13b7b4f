"""A command that failed and one that worked then, as far as a hook can tell at the moment itself.

The same command is the same in the same folder, whatever it prints to and however its output is shortened. So is one
that asks for the same thing with the very words that were wrong. In doubt two commands are different, and none replaces
the other.
"""

from __future__ import annotations

import os
import re

from learnt.debrief.shell import changed_words, folder_of, hides_failures, is_check, likeness, parts
from learnt.model import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.debrief.shell import Part

_NO_PROGRAM = re.compile(r"not found|No module named|not installed|not recognized", re.IGNORECASE)
_LONGEST = 4_000
_ALIKE = 0.34
_ASKS = frozenset("grep egrep fgrep rg ag ack diff cmp test [ [[ which command pgrep false jq find".split())
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
    said = (command,) if whole else tuple(f"{part.source}|{part.text}" for part in ran)
    told = "\n".join((f"{_where(command, root, folder)}/", *said))
    return digest(told.replace(root, ".") if root else told)[:24]


def counts(command: str) -> bool:
    """Say whether a failure tells of the command: that of a test, a linter or a build tells of the code."""
    ran = parts(command)
    return bool(ran) and not any(map(is_check, ran))


def succeeded(command: str, output: str) -> bool:
    """Say whether a command line that ended well did: behind a pipe or `|| true`, only what it printed tells."""
    if not hides_failures(command):
        return True
    from learnt.debrief.complaint import complaint

    return bool(output.strip()) and not complaint(output)


def is_question(command: str) -> bool:
    """Say whether a command that fails without a word may only have answered no, like a search that finds nothing."""
    return any(part.program in _ASKS for part in parts(command)) or " --quiet" in command


def replaces(failed: str, worked: str, error: str) -> bool:
    """Say whether a command that worked was run in place of one that had failed."""
    before, after = parts(failed), parts(worked)
    if any(one.intent == other.intent for one in before for other in after):
        return True
    if _NO_PROGRAM.search(error):
        return any(set(one.words[1:]) & set(other.words) or likeness(one, other) for one in before for other in after)
    return any(one.program == other.program and likeness(one, other) >= _ALIKE for one in before for other in after)


def asked_by(command: str, root: str, folder: str = "") -> tuple[str, ...]:
    """Return what each program of a command line is asked to do, such as `git show`."""
    where = _where(command, root, folder)
    return tuple(dict.fromkeys(_asked(part, root, where) for part in parts(command)))


def wrong_words(failed: str, worked: str, error: str, root: str, folder: str = "") -> tuple[str, tuple[str, ...]]:
    """Return what was asked for, and the words that were wrong: named in the error, and left out in what worked.

    Without any, only the very same command repeats the mistake.
    """
    for one in parts(failed):
        for other in parts(worked):
            if one.intent == other.intent:
                removed, _ = changed_words(one, other)
                wrong = [word for word in removed if _is_named(word, error)]
                if wrong:
                    return _asked(one, root, _where(failed, root, folder)), tuple(wrong[:_MOST_WRONG])
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
