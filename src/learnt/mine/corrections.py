"""Decide whether a call that worked corrects one that failed before it, and what that teaches.

A correction says how a command must be written, what a tool requires, or where a file is. In case of doubt, there is no
correction: two commands are a mistake and its correction only if they have the same purpose, the error is about how the
first one was written, and they differ in more than names that change from day to day.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from learnt.mine.calls import MAX_EXCERPT_LENGTH, FailedCall, WorkingCall, format_command
from learnt.mine.complaint import generalise, generalise_error
from learnt.mine.shell import Part, compare_words, folder_of, is_check, is_formatter, measure_likeness
from learnt.model import Discovery

# Whether a failure is settled, and the discovery that follows from it.
Settlement = tuple[bool, Discovery | None]

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
_MAX_LENGTH_OF_BOTH = 80  # two commands are shown in full if their total length is at most this
_NOT_THERE = re.compile(
    r"no such file|does not exist|not found|cannot access|did not match|cannot find|can't open|no Go files|ENOENT|"
    r"unknown revision or path|not a directory|cannot stat|couldn't find",
    re.IGNORECASE,
)
_NO_PROGRAM = re.compile(
    r"command not found|No module named|not installed|not found in|is not recognized", re.IGNORECASE
)
# Errors about how a program was called. Any other error must mention the words that were changed.
_USAGE = re.compile(
    r"unknown (?:flag|option|command|argument|shorthand|switch|subcommand)|unrecogni[sz]ed|no matches found|"
    r"parse error|syntax error|failed to parse|command not found|usage:|HTTP 4\d\d|Not Found|too (?:many|few)|"
    r"requires|must |missing|invalid|ambiguous|not supported|unsupported|ignored by|already |No module named|"
    r"not a valid|is required|provided but not|not provided|blank|illegal|unexpected|outside|weren't supplied|"
    r"not given|no upstream|non-fast-forward",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(r"unknown (?:flag|option|argument|shorthand|switch)|unrecogni[sz]ed|not defined", re.IGNORECASE)
_UNPARSED = re.compile(
    r"failed to parse jq|jq: error: syntax|jq: \d+ compile error|unterminated|unexpected token", re.IGNORECASE
)
_TOKEN = re.compile(r"unexpected (?:token )?[\"']?([^\s\"',]+)")
_MAX_PIECE_LENGTH = 60
_SENDS = frozenset(("-f", "-F", "--method", "-X", "--field", "--raw-field", "-d", "--data", "--input"))
_ABOUT_THE_CALL = re.compile(
    r"unknown (?:flag|option|command|argument|shorthand|switch|subcommand|revision)|unrecogni[sz]ed|no such |not found|"
    r"no matches found|not a git repo|does not exist|did not match|No module named|cannot find|parse error|"
    r"syntax error|permission denied|already |invalid|is required|requires|must |unexpected|unable to|cannot |can't |"
    r"could not|couldn't|not allowed|denied|ignored by|rejected|usage:|HTTP 4\d\d|too (?:many|few)|missing|ambiguous|"
    r"no tests|no Go files|outside|not provided|provided but|bad |not supported|unsupported|deprecated|timed? ?out|"
    r"not a (?:directory|file|valid)|is a directory|blank|updates to go\.mod",
    re.IGNORECASE,
)
_ABOUT_THE_CODE = re.compile(
    r"\.\w{1,5}:\d+(?::\d+)?:|--- FAIL|^FAIL\b|AssertionError|assert |\bpanic:|✗|✘|\b\d+ (?:failed|failing)\b",
    re.MULTILINE,
)
_WRONG_FOLDER = re.compile(
    r"\bcd:(?:\d+:| line \d+:)? (?:no such file|\S+: No such file|can't cd)|: directory not found|no Go files in|"
    r"cannot find main module|could not open directory|does not contain main module|no pyproject\.toml|"
    r"Could not read package\.json|could not find `Cargo\.toml`",
    re.IGNORECASE,
)
_STATE = re.compile(
    r"unable to|lock|time[d ]?\s?out|denied|not found|no such|resolve|connect|network|reset|unavailable|busy|already",
    re.IGNORECASE,
)
_FILE_TOOLS = frozenset("ls cat head tail wc grep rg find sed awk stat file cp mv rm mkdir touch less diff".split())


def find_correction(failure: FailedCall, success: WorkingCall) -> Settlement:
    """Return whether a working call settles a failure, and what the two calls teach."""
    if failure.call.does != "run":
        return _correct_tool_call(failure, success)
    if success.call.does == "run":
        settled, discovery = _correct_command(failure, success)
        if settled:
            return settled, discovery
    return _find_moved_file(failure, success)


def _correct_tool_call(failure: FailedCall, success: WorkingCall) -> Settlement:
    failed_call, call = failure.call, success.call
    same_file = call.path == failed_call.path and (call.tool == failed_call.tool or call.does == failed_call.does)
    if _TOO_LARGE.search(failure.error) and failed_call.path:
        return (True, _explain_size_limit(failure, success.folder)) if same_file else (False, None)
    for pattern, advice in _REFUSALS:
        if re.search(pattern, failure.error, re.IGNORECASE):
            if not same_file and not (call.tool == failed_call.tool and not failed_call.path):
                return False, None
            return True, _explain_refusal(failure, success, advice.format(tool=failed_call.tool))
    if _NOT_THERE.search(failure.error) and failed_call.path and not same_file:
        return _find_moved_file(failure, success)
    return same_file and bool(failed_call.path), None


def _explain_refusal(failure: FailedCall, success: WorkingCall, advice: str) -> Discovery:
    tool, error = failure.call.tool, failure.general_error(success.folder)
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


def _explain_size_limit(failure: FailedCall, folder: str) -> Discovery | None:
    path = generalise(failure.call.path, folder)
    if path.startswith(("~", "/")):
        return None  # not in the project
    tool = failure.call.tool
    text = f"`{path}` is too large for one `{tool}`: search in it, and read parts with offset and limit"
    remedy = f"`{tool}` with offset and limit"
    return failure.explain(text, rule="call", failed=path, worked=remedy, folder=folder, files=(path,))


def _find_moved_file(failure: FailedCall, success: WorkingCall) -> Settlement:
    """Return whether a call found the missing file elsewhere, and what this teaches."""
    missing = _find_missing_path(failure)
    if not missing or not _NOT_THERE.search(failure.error):
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
    if (
        missing_path == found_path
        or found_path.endswith("/" + missing_path.removeprefix("./"))
        or missing_path.endswith("/" + found_path)
    ):
        parts = [format_command(part, success.folder) for part in failure.parts]
        command = next((part.replace(missing_path, found_path) for part in parts if missing_path in part), found_path)
        return _describe_wrong_folder(failure, success, command) if failure.call.does == "run" else None
    if "…" in found_path or found_path.startswith("~"):
        return None  # not in the project
    short_missing, short_found = _shorten_paths(missing_path, found_path)
    folder, _, name = short_found.rpartition("/")
    location = f"in `{folder}`" if folder and short_missing.rpartition("/")[2] == name else f"`{short_found}`"
    text = f"`{short_missing}` does not exist: it is {location}"
    return failure.explain(
        text, rule="call", failed=missing_path, worked=found_path, folder=success.folder, files=(found_path,)
    )


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


def is_about_the_call(failure: FailedCall) -> bool:
    """Return whether an error is about how a program was called, not about the code that the program worked on."""
    if failure.call.does != "run" or _WRONG_FOLDER.search(failure.output):
        return True
    if any(map(is_check, failure.parts)) and _ABOUT_THE_CODE.search(failure.output):
        return False
    return _ABOUT_THE_CALL.search(failure.error) is not None


def _correct_command(failure: FailedCall, success: WorkingCall) -> Settlement:
    """Return whether a working command settles a failed command, and what the two commands teach."""
    wrong_part = _find_wrong_part(failure)
    if wrong_part is None or (wrong_part.program in _FILE_TOOLS and _NOT_THERE.search(failure.error)):
        return False, None  # only the location of a missing file is worth learning
    for right_part in success.parts:
        if right_part.words == wrong_part.words:
            return True, _explain_later_success(failure, wrong_part, right_part, success)
        if _has_same_purpose(wrong_part, right_part, failure.error):
            return True, _describe_change(failure, wrong_part, right_part, success)
    return False, None


def _find_wrong_part(failure: FailedCall) -> Part | None:
    """Return the part of a command line that the error mentions, or the last part if it mentions none."""
    error = failure.error.lower()
    for part in failure.parts:
        if error.startswith((f"{part.program}:", f"{part.program} ")) or f"/{part.program}:" in error:
            return part
    for part in failure.parts:
        if any(len(word) > 3 and word.strip("'\"").lower() in error for word in part.words[1:]):
            return part
    return failure.parts[-1] if failure.parts else None


def _has_same_purpose(wrong_part: Part, right_part: Part, error: str) -> bool:
    shared = {word for word in wrong_part.words[1:] if word in right_part.words and not word.startswith("-")}
    if wrong_part.intent == right_part.intent:
        if bool(_SENDS & set(wrong_part.words)) != bool(_SENDS & set(right_part.words)):
            return False
        return len(wrong_part.intent) > 1 or (
            bool(shared) if wrong_part.program in _FILE_TOOLS else measure_likeness(wrong_part, right_part) >= 0.2
        )
    if _NO_PROGRAM.search(error):
        arguments = [word for word in shared if len(word) > 2 and word[0].isalnum()]
        return bool(arguments) and (
            measure_likeness(wrong_part, right_part) >= 0.34 or wrong_part.words[-1] in right_part.words
        )
    return False


def _explain_later_success(
    failure: FailedCall, wrong_part: Part, right_part: Part, success: WorkingCall
) -> Discovery | None:
    """Return why the same command works now: it ran in another folder, or after a command that the error asked for."""
    if folder_of(success.call.text) != folder_of(failure.call.text) and _NOT_THERE.search(failure.output):
        return _describe_wrong_folder(failure, success)
    earlier_parts = [
        part
        for part in success.parts[: success.parts.index(right_part)]
        if part not in failure.parts and not is_check(part)
    ]
    remedy = (
        earlier_parts[0] if len(earlier_parts) == 1 else find_requested_command(failure.output, success.parts_since)
    )
    return describe_prerequisite(wrong_part, remedy, failure.error, failure.output, success.folder) if remedy else None


def find_requested_command(output: str, parts: Iterable[Part]) -> Part | None:
    """Return a command that the output asked for and that was then run."""
    requested = (part for part in parts if len(part.words) > 1 and " ".join(part.words[:3]) in output)
    return next((part for part in requested if not is_check(part)), None)


def describe_prerequisite(wrong_part: Part, remedy: Part, error: str, output: str, folder: str) -> Discovery:
    """Return the discovery that another command must be run before a command."""
    error, first = generalise_error(error, folder), format_command(remedy, folder)
    return Discovery(
        type="blocker",
        rule="command",
        text=f"When `{' '.join(wrong_part.intent)}` says “{error}”: run `{first}` first",
        failed=format_command(wrong_part, folder),
        error=error,
        worked=first,
        excerpt=output[:MAX_EXCERPT_LENGTH],
    )


def _describe_wrong_folder(failure: FailedCall, success: WorkingCall, right_command: str = "") -> Discovery | None:
    """Return the discovery that a command ran in the wrong folder. `right_command` is the correct one, if known."""
    wrong_part = _find_wrong_part(failure)
    if wrong_part is None:
        return None
    folder = success.folder
    wrong_folder, command = folder_of(failure.call.text), format_command(wrong_part, folder)
    if wrong_folder.startswith("/") or "…" in right_command:
        return None  # the shell's current folder was not the reason
    target = generalise(folder_of(success.call.text), folder)
    return failure.explain(
        f"`{' '.join(wrong_part.intent)}` fails in the wrong folder: the shell stays where the last `cd` went",
        failed=f"cd {generalise(wrong_folder, folder)} && {command}" if wrong_folder else command,
        worked=right_command or (f"cd {target} && {command}" if target else command),
        folder=folder,
    )


def _describe_change(failure: FailedCall, wrong_part: Part, right_part: Part, success: WorkingCall) -> Discovery | None:
    folder = success.folder
    before, after = format_command(wrong_part, folder), format_command(right_part, folder)
    if _WRONG_FOLDER.search(failure.output):
        return _describe_wrong_folder(failure, success, "" if folder_of(success.call.text) else after)
    removed, added = compare_words(wrong_part, right_part)
    if _UNPARSED.search(failure.output) and (pieces := _find_changed_piece(removed, added, failure.output)):
        return _describe_rewriting(failure, wrong_part, *pieces, folder)
    if before == after or "/tmp/…" in after:  # noqa: S108 - a placeholder
        return None
    if not _is_related(removed, added, failure.error, measure_likeness(wrong_part, right_part)):
        return None
    text = f"Run `{after}`, not `{before}`: {failure.general_error(folder)}"
    if option := _find_unknown_option(removed, failure.error):
        remedy = f"use `{after}`" if len(added) == 1 else "leave it out"
        text = f"`{' '.join(wrong_part.intent)}` has no `{option}`: {remedy}"
    elif len(before) + len(after) > _MAX_LENGTH_OF_BOTH and (removed or added):
        text = f"{_describe_difference(wrong_part, removed, added, folder)}: {failure.general_error(folder)}"
    return failure.explain(text, failed=before, worked=after, folder=folder)


def _find_changed_piece(removed: Sequence[str], added: Sequence[str], output: str) -> tuple[str, str] | None:
    """Return the piece of a long expression that could not be parsed, and its replacement."""
    if len(removed) != 1 or len(added) != 1:
        return None
    old, new = removed[0].strip("'\"").split(), added[0].strip("'\"").split()
    token = _TOKEN.search(output)
    changes = [
        (" ".join(old[start:end]), " ".join(new[first:last]))
        for kind, start, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if kind == "replace"
    ]
    short_changes = [pair for pair in changes if all(0 < len(piece) <= _MAX_PIECE_LENGTH for piece in pair)]
    with_token = [pair for pair in short_changes if token and token[1] in pair[0]]
    return next(iter(with_token or short_changes), None)


def _describe_rewriting(failure: FailedCall, wrong_part: Part, old: str, new: str, folder: str) -> Discovery:
    command = " ".join(wrong_part.intent)
    text = f"Within `{command}` write `{new}`, not `{old}`: {failure.general_error(folder)}"
    before, after = (f"{command} … {piece}".replace("`", "'") for piece in (old, new))
    return failure.explain(text, failed=before, worked=after, folder=folder)


def _find_unknown_option(removed: Sequence[str], error: str) -> str:
    """Return the option that the error calls unknown; empty if there is none."""
    options = (word.partition("=")[0] for word in removed if word.startswith("-"))
    return next((option for option in options if _UNKNOWN.search(error) and option.strip("-") in error), "")


def _describe_difference(wrong_part: Part, removed: Sequence[str], added: Sequence[str], folder: str) -> str:
    """Describe only the difference between two commands that are too long to show in full."""
    command = " ".join(wrong_part.intent)
    fewer, further = ([format_command(Part(words=(word,)), folder) for word in words] for words in (removed, added))
    less, more = ([word for word in fewer if word not in further], [word for word in further if word not in fewer])
    if len(less) == len(more) == 1:
        if more[0].strip("'\"") == less[0]:
            return f"Quote `{less[0]}` for `{command}`"
        less[0], more[0] = _shorten_paths(less[0], more[0])
    if not more:
        return f"`{command}` without `{' '.join(less)}`"
    return f"`{command}` with `{' '.join(more)}`" + (f", not `{' '.join(less)}`" if less else "")


def _shorten_paths(wrong: str, right: str) -> tuple[str, str]:
    """Return two paths without their common leading folders, except the last common folder."""
    wrong_parts, right_parts = wrong.split("/"), right.split("/")
    shared = next(
        (index for index, pair in enumerate(zip(wrong_parts, right_parts, strict=False)) if pair[0] != pair[1]), 0
    )
    return "/".join(wrong_parts[max(shared - 1, 0) :]), "/".join(right_parts[max(shared - 1, 0) :])


def _is_related(removed: Sequence[str], added: Sequence[str], error: str, likeness: float) -> bool:
    """Return whether a change is related to the error and is more than a different name."""
    if any(len(word.strip("'\"")) > 1 and word.strip("'\"")[:60] in error for word in removed):
        return True
    if len(removed) <= 1 and len(added) <= 1 and likeness >= 0.5 and not _STATE.search(error):
        return True
    names_only = all(re.fullmatch(r"[\w./:@~-]+", word) and not word.startswith("-") for word in (*removed, *added))
    return _USAGE.search(error) is not None and not (removed and added and names_only)
