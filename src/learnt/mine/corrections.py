"""Say what a call that worked corrects in one that failed before: which tool wants what, which file is where.

Commands have a module of their own.
"""

from __future__ import annotations

import re

from learnt.mine.commands import NOT_THERE, apart, correction_of_command, wrong_folder
from learnt.mine.complaint import general
from learnt.mine.evidence import shown
from learnt.mine.shell import is_formatter
from learnt.model import Discovery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from learnt.mine.commands import Answer
    from learnt.mine.evidence import Failed, Worked

# How the clients' own tools refuse a call, and what is to be done. They differ in nothing but the file.
_REFUSALS = (
    (
        "has not been read yet",
        "`Read` the file before `{tool}`: a file that was not read in this conversation is refused",
    ),
    ("modified since read", "`Read` a file again before `{tool}` once a command or a person has changed it"),
    (
        "same as the file on disk|strings? (?:are|is) (?:exactly )?the same",
        "`{tool}` only with a new text that differs",
    ),
    (
        r"string to replace (?:was )?not found|no (?:exact )?match(?:es)? found for|could not find the string|"
        r"failed to find expected lines|old_string (?:was )?not found|0 occurrences found",
        "Copy the text to replace from a fresh `Read` before `{tool}`: it must match to the letter, indentation "
        "included",
    ),
    (
        r"found \d+ (?:matches|occurrences)|multiple matches|more than one (?:match|occurrence)|not unique",
        "Give `{tool}` enough lines around to make the text unique, or `replace_all`",
    ),
    (r"EISDIR|is a directory", "`{tool}` takes a file, not a folder: list a folder with `ls` or a glob"),
    (
        r"unexpected parameter|InputValidationError|invalid (?:arguments|parameters|input)|required parameter|"
        r"missing required|must have required propert",
        "Call `{tool}` with its own parameters",
    ),
)
_TOO_LARGE = re.compile(r"exceeds? (?:the )?maximum|too large|larger than", re.IGNORECASE)
_DID_YOU_MEAN = re.compile(r"did you mean:? [`'\"]?([\w./-]+)", re.IGNORECASE)
_PATH = re.compile(r"(?:[\w.@~+-]*/)*[\w.@+-]+")
_PATHLIKE = re.compile(r"/|\.\w{1,6}$")


def correction(failed: Failed, worked: Worked) -> Answer:
    """Return whether a call that worked settles a failure, and what is learnt from the two."""
    if failed.call.does != "run":
        return _tool_call(failed, worked)
    if worked.call.does == "run":
        settled, discovery = correction_of_command(failed, worked)
        if settled:
            return settled, discovery
    return _found_elsewhere(failed, worked)


def _tool_call(failed: Failed, worked: Worked) -> Answer:
    refused, call = failed.call, worked.call
    same_file = call.path == refused.path and (call.tool == refused.tool or call.does == refused.does)
    if _TOO_LARGE.search(failed.error) and refused.path:
        return (True, _too_large(failed, worked.folder)) if same_file else (False, None)
    for sign, advice in _REFUSALS:
        if re.search(sign, failed.error, re.IGNORECASE):
            if not same_file and not (call.tool == refused.tool and not refused.path):
                return False, None
            return True, _refused(failed, worked, advice.format(tool=refused.tool))
    if NOT_THERE.search(failed.error) and refused.path and not same_file:
        return _found_elsewhere(failed, worked)
    return same_file and bool(refused.path), None


def _refused(failed: Failed, worked: Worked, advice: str) -> Discovery:
    tool, error = failed.call.tool, failed.told(worked.folder)
    rewriter = next((part for part in worked.ran_since if is_formatter(part)), None)
    if "modified since" in error and rewriter:
        advice = (
            f"`Read` a file again before `{tool}` when `{shown(rewriter, worked.folder)}` has run: it rewrites files"
        )
    elif "parameter" in error.lower() or "InputValidation" in error:
        detail = re.search(r"[^.\n]*(?:parameter|argument|property) [`'\"]?[\w-]+[`'\"]?[^.\n<]*", failed.output)
        advice = f"`{tool}`: {general(detail[0])}" if detail else advice
    return Discovery(
        type="constraint",
        rule="edit" if failed.call.does == "edit" else "call",
        text=advice,
        failed=tool,
        error=re.split(r"\bString:|\. (?:To replace|Read it)", error)[0].strip(),
        worked=advice.partition(":")[0],
        excerpt=failed.excerpt,
    )


def _too_large(failed: Failed, folder: str) -> Discovery | None:
    path = general(failed.call.path, folder)
    if path.startswith(("~", "/")):
        return None  # no file of the project
    return Discovery(
        type="constraint",
        rule="call",
        text=f"`{path}` is too large for one `{failed.call.tool}`: search in it, and read parts with offset and limit",
        failed=path,
        error=failed.told(folder),
        worked=f"`{failed.call.tool}` with offset and limit",
        excerpt=failed.excerpt,
        files=(path,),
    )


def _found_elsewhere(failed: Failed, worked: Worked) -> Answer:
    """Look whether a call has found, at another place, the file that was missing."""
    missing = _missing_path(failed)
    if not missing or not NOT_THERE.search(failed.error):
        return False, None
    meant = _DID_YOU_MEAN.search(failed.output)
    for path in _paths_of(worked):
        if path == missing:
            return False, None
        if path.rpartition("/")[2] == missing.rpartition("/")[2] or (meant and path.endswith(meant[1])):
            return True, _elsewhere(failed, worked, missing, path)
    return False, None


def _elsewhere(failed: Failed, worked: Worked, missing: str, path: str) -> Discovery | None:
    wrong, right = general(missing, worked.folder), general(path, worked.folder)
    if wrong == right or right.endswith("/" + wrong.removeprefix("./")) or wrong.endswith("/" + right):
        parts = [shown(part, worked.folder) for part in failed.ran]
        told = next((part.replace(wrong, right) for part in parts if wrong in part), right)
        return wrong_folder(failed, worked, told) if failed.call.does == "run" else None
    if "…" in right or right.startswith("~"):
        return None  # no file of the project
    return Discovery(
        type="constraint",
        rule="call",
        text=_where(wrong, right),
        failed=wrong,
        error=failed.told(worked.folder),
        worked=right,
        excerpt=failed.excerpt,
        files=(right,),
    )


def _where(wrong: str, right: str) -> str:
    one, other = apart(wrong, right)
    folder, _, name = other.rpartition("/")
    if folder and one.rpartition("/")[2] == name:
        return f"`{one}` does not exist: it is in `{folder}`"
    return f"`{one}` does not exist: it is `{other}`"


def _missing_path(failed: Failed) -> str:
    if failed.call.does != "run":
        return failed.call.path
    words = [word.strip("'\"") for part in failed.ran for word in part.words[1:]]
    named = [word for word in words if _PATHLIKE.search(word) and _PATH.fullmatch(word) and word in failed.error]
    return named[0] if named else ""


def _paths_of(worked: Worked) -> Iterator[str]:
    if worked.call.path:
        yield worked.call.path
    for part in worked.ran:
        for word in part.words[1:]:
            path = word.strip("'\"")
            if _PATHLIKE.search(path) and _PATH.fullmatch(path):
                yield path
