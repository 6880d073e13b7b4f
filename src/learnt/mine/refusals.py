"""Learn from calls of a client's own tools that were refused, and from files that were elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from learnt.mine.calls import FailedCall, Settlement, WorkingCall, format_command, name_command
from learnt.mine.comparison import NOT_THERE, is_misspelt
from learnt.mine.complaint import generalise
from learnt.mine.shell import Part, folder_of, is_formatter
from learnt.model import Discovery

# Errors from the clients' own tools, which differ only in the file, and the advice for each error.
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
        "Copy the text to replace from a fresh `Read` before `{tool}`: it must match to the letter",
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
# The agent says that it had changed the text itself.
_ADMITS = re.compile(r"\bI(?:'ve|'d| have| had)? already\b", re.IGNORECASE)
_TOO_LARGE = re.compile(r"exceeds? (?:the )?maximum|too large|larger than", re.IGNORECASE)
_DID_YOU_MEAN = re.compile(r"did you mean:? [`'\"]?([\w./-]+)", re.IGNORECASE)
_PATH = re.compile(r"(?:[\w.@~+-]*/)*[\w.@+-]+")
_PATHLIKE = re.compile(r"/|\.\w{1,6}$")


def correct_tool_call(failure: FailedCall, success: WorkingCall) -> Settlement:
    """Return whether a call settles a refused call of a client's tool, and what the two teach."""
    failed_call, call = failure.call, success.call
    same_file = call.path == failed_call.path and (call.tool == failed_call.tool or call.does == failed_call.does)
    if _TOO_LARGE.search(failure.error) and failed_call.path:
        return _settle_size_limit(failure, success, is_same_file=same_file)
    for pattern, advice in _REFUSALS:
        if re.search(pattern, failure.error, re.IGNORECASE):
            if not same_file and not (call.tool == failed_call.tool and not failed_call.path):
                return False, None
            is_own_doing = failure.is_own_doing and any(map(_ADMITS.search, success.said[:1]))
            return True, (None if is_own_doing else _explain_refusal(failure, success, advice))
    if NOT_THERE.search(failure.error) and failed_call.path and not same_file:
        return find_moved_file(failure, success)
    return same_file and bool(failed_call.path), None


def _explain_refusal(failure: FailedCall, success: WorkingCall, advice: str) -> Discovery:
    tool, error = failure.call.tool, failure.general_error(success.folder)
    advice = advice.format(tool=tool)
    rewriter = next((part for part in success.parts_since if is_formatter(part)), None)
    if "modified since" in error and rewriter:
        command = format_command(rewriter, success.folder)
        advice = f"`Read` a file again before `{tool}` when `{command}` has run: it rewrites files"
    elif "parameter" in error.lower() or "InputValidation" in error:
        detail = re.search(r"[^.\n]*(?:parameter|argument|property) [`'\"]?[\w-]+[`'\"]?[^.\n<]*", failure.output)
        advice = f"`{tool}`: {generalise(detail[0])}" if detail else advice
    rule = "edit" if failure.call.does == "edit" else "call"
    discovery = failure.explain(advice, rule=rule, failed=tool, worked=advice.partition(":")[0], folder=success.folder)
    return discovery.replace(error=re.split(r"\bString:|\. (?:To replace|Read it)", error)[0].strip())


def _settle_size_limit(failure: FailedCall, success: WorkingCall, *, is_same_file: bool) -> Settlement:
    """Return whether a call read a file that was too large in another way: in parts, or with a program."""
    path = generalise(failure.call.path, success.folder)
    readers = [(part, word) for part in success.parts for word in part.words[1:] if f"/{path}".endswith(f"/{word}")]
    if not is_same_file and not readers:
        return False, None
    path = readers[0][1] if readers else path
    if path.startswith(("~", "/")):
        return True, None  # not in the project
    tool = failure.call.tool
    remedy = f"`{readers[0][0].program}`" if readers else f"`{tool}` with offset and limit"
    text = f"`{path}` is too large for one `{tool}`: read it with {remedy}"
    return True, failure.explain(
        text, rule="call", failed=path, worked=remedy, folder=success.folder, files=(path,)
    ).replace(advice=f"Use {remedy} for `{path}`.")


def find_moved_file(failure: FailedCall, success: WorkingCall) -> Settlement:
    """Return whether a call found the missing file elsewhere, and what this teaches."""
    missing = _find_missing_path(failure)
    if not missing or not NOT_THERE.search(failure.error):
        return False, None
    suggestion = _DID_YOU_MEAN.search(failure.output)
    for path in (*filter(None, [success.call.path]), *_list_paths(success.parts)):
        if path == missing:
            return False, None
        if path.rpartition("/")[2] == missing.rpartition("/")[2] or (suggestion and path.endswith(suggestion[1])):
            return True, _explain_moved_file(failure, success, missing, path)
    return False, None


def _explain_moved_file(failure: FailedCall, success: WorkingCall, missing: str, path: str) -> Discovery | None:
    missing_path, found_path = generalise(missing, success.folder), generalise(path, success.folder)
    if _is_same_file(missing_path, found_path):
        return _explain_left_folder(failure, success, missing_path, found_path)
    if "…" in found_path or found_path.startswith("~"):
        return None  # not in the project
    if is_misspelt(*(path.rpartition("/")[2].partition(".")[0].lower() for path in (missing_path, found_path))):
        return None
    short_missing, short_found = shorten_paths(missing_path, found_path)
    folder, _, name = short_found.rpartition("/")
    location = f"in `{folder}`" if folder and short_missing.rpartition("/")[2] == name else f"`{short_found}`"
    text = f"`{short_missing}` does not exist: it is {location}"
    return failure.explain(
        text, rule="call", failed=missing_path, worked=found_path, folder=success.folder, files=(found_path,)
    )


def _explain_left_folder(failure: FailedCall, success: WorkingCall, missing: str, found: str) -> Discovery | None:
    """Return the discovery that a path was right, but the shell was in another folder."""
    commands = (format_command(part, success.folder) for part in failure.parts)
    failed = next((command for command in commands if missing in command), "")
    if not failed or failure.wrong_part is None or folder_of(failure.call.text).startswith("/") or "…" in found:
        return None
    return describe_left_folder(failure, failure.wrong_part, failed, failed.replace(missing, found), success.folder)


def describe_left_folder(failure: FailedCall, part: Part, failed: str, worked: str, folder: str) -> Discovery:
    """Return the discovery that a command failed because the shell had been left in another folder."""
    text = f"`{name_command(part)}` fails in the wrong folder: the shell stays where the last `cd` went"
    return failure.explain(text, failed=failed, worked=worked, folder=folder).replace(
        observed=f"`{failed}` failed: {failure.general_error(folder)}. `{worked}` worked.",
        advice=f"Give paths from where the shell is, or `cd` to the root first: `{worked}`.",
    )


def _is_same_file(missing_path: str, found_path: str) -> bool:
    """Return whether two paths lead to the same file, one of them from another folder."""
    is_longer = found_path.endswith("/" + missing_path.removeprefix("./"))
    return missing_path == found_path or is_longer or missing_path.endswith("/" + found_path)


def _find_missing_path(failure: FailedCall) -> str:
    if failure.call.does != "run":
        return failure.call.path
    return next((path for path in _list_paths(failure.parts) if path in failure.error), "")


def _list_paths(parts: Iterable[Part]) -> Iterator[str]:
    """Yield the words of commands that look like paths."""
    for part in parts:
        for word in part.words[1:]:
            path = word.strip("'\"")
            if _PATHLIKE.search(path) and _PATH.fullmatch(path):
                yield path


def shorten_paths(wrong: str, right: str) -> tuple[str, str]:
    """Return two paths without their common leading folders, except the last common folder."""
    wrong_parts, right_parts = wrong.split("/"), right.split("/")
    shared = next(
        (index for index, pair in enumerate(zip(wrong_parts, right_parts, strict=False)) if pair[0] != pair[1]), 0
    )
    return "/".join(wrong_parts[max(shared - 1, 0) :]), "/".join(right_parts[max(shared - 1, 0) :])
