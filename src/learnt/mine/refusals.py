"""Learn from calls of a client's own tools: files that are elsewhere or too large, and commands that rewrite files.

How these tools are called is nothing that a project teaches, so other refusals teach nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from learnt.mine.calls import FailedCall, Settlement, WorkingCall, format_command
from learnt.mine.comparison import NOT_THERE, is_misspelt
from learnt.mine.complaint import generalise
from learnt.mine.shell import Part, is_formatter
from learnt.model import Discovery

# Errors of the clients' own tools.
_REFUSED = re.compile(
    r"has not been read yet|modified since read|same as the file on disk|strings? (?:are|is) (?:exactly )?the same|"
    r"string to replace (?:was )?not found|no (?:exact )?match(?:es)? found for|could not find the string|failed to "
    r"find expected lines|old_string (?:was )?not found|0 occurrences found|found \d+ (?:matches|occurrences)|multiple "
    r"matches|more than one (?:match|occurrence)|not unique|EISDIR|is a directory|unexpected parameter|"
    r"InputValidationError|invalid (?:arguments|parameters|input)|required parameter|missing required|must have "
    r"required propert",
    re.IGNORECASE,
)
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
    if _REFUSED.search(failure.error):
        is_settled = same_file or (call.tool == failed_call.tool and not failed_call.path)
        return is_settled, _explain_rewriting(failure, success) if is_settled else None
    if NOT_THERE.search(failure.error) and failed_call.path and not same_file:
        return find_moved_file(failure, success)
    return same_file and bool(failed_call.path), None


def _explain_rewriting(failure: FailedCall, success: WorkingCall) -> Discovery | None:
    """Return the discovery that a command of the project rewrites files, so that they must be read again."""
    rewriter = next((part for part in success.parts_since if is_formatter(part)), None)
    if rewriter is None or "modified since" not in failure.error:
        return None
    tool, command = failure.call.tool, format_command(rewriter, success.folder)
    advice = f"`Read` a file again before `{tool}` when `{command}` has run: it rewrites files"
    return failure.explain(advice, rule="edit", failed=tool, worked=advice.partition(":")[0], folder=success.folder)


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
        name, wanted = path.rpartition("/")[2], missing.rpartition("/")[2]
        is_suggested = suggestion is not None and path.endswith(suggestion[1]) and not wanted.startswith(f"{name}.")
        if name == wanted or is_suggested:
            return True, _explain_moved_file(failure, success, missing, path)
    return False, None


def _explain_moved_file(failure: FailedCall, success: WorkingCall, missing: str, path: str) -> Discovery | None:
    missing_path, found_path = generalise(missing, success.folder), generalise(path, success.folder)
    if _is_same_file(missing_path, found_path):
        return None  # only the shell was in another folder
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
