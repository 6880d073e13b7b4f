"""Decide whether a call that worked corrects one that failed before it, and what that teaches.

A correction says how a command must be written, what a tool requires, or where a file is. In doubt there is none: two
commands are a mistake and its correction only if they ask for the same thing, the error is about how it was asked, and
they differ in more than names that change from day to day.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from learnt.mine.calls import MAX_EXCERPT_LENGTH, FailedCall, WorkingCall, show_command
from learnt.mine.complaint import generalise, generalise_error
from learnt.mine.shell import Part, compare_words, folder_of, is_check, is_formatter, measure_likeness
from learnt.model import Discovery

# Whether a failure is settled, and the discovery that it makes.
Settlement = tuple[bool, Discovery | None]

# Errors of the clients' own tools, which differ only in the file, and the advice for each.
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
_MAX_LENGTH_OF_BOTH = 80  # two commands that are together no longer than this are shown in full
_NOT_THERE = re.compile(
    r"no such file|does not exist|not found|cannot access|did not match|cannot find|can't open|no Go files|ENOENT|"
    r"unknown revision or path|not a directory|cannot stat|couldn't find",
    re.IGNORECASE,
)
_NO_PROGRAM = re.compile(
    r"command not found|No module named|not installed|not found in|is not recognized", re.IGNORECASE
)
# Errors about how a program was called; other errors must mention what was changed.
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


def find_correction(failed: FailedCall, worked: WorkingCall) -> Settlement:
    """Return whether a working call settles a failure, and the discovery that the two make."""
    if failed.call.does != "run":
        return _correct_tool_call(failed, worked)
    if worked.call.does == "run":
        settled, discovery = _correct_command(failed, worked)
        if settled:
            return settled, discovery
    return _find_moved_file(failed, worked)


def _correct_tool_call(failed: FailedCall, worked: WorkingCall) -> Settlement:
    failed_call, call = failed.call, worked.call
    same_file = call.path == failed_call.path and (call.tool == failed_call.tool or call.does == failed_call.does)
    if _TOO_LARGE.search(failed.error) and failed_call.path:
        return (True, _explain_size_limit(failed, worked.folder)) if same_file else (False, None)
    for pattern, advice in _REFUSALS:
        if re.search(pattern, failed.error, re.IGNORECASE):
            if not same_file and not (call.tool == failed_call.tool and not failed_call.path):
                return False, None
            return True, _explain_refusal(failed, worked, advice.format(tool=failed_call.tool))
    if _NOT_THERE.search(failed.error) and failed_call.path and not same_file:
        return _find_moved_file(failed, worked)
    return same_file and bool(failed_call.path), None


def _explain_refusal(failed: FailedCall, worked: WorkingCall, advice: str) -> Discovery:
    tool, error = failed.call.tool, failed.general_error(worked.folder)
    rewriter = next((part for part in worked.ran_since if is_formatter(part)), None)
    if "modified since" in error and rewriter:
        command = show_command(rewriter, worked.folder)
        advice = f"`Read` a file again before `{tool}` when `{command}` has run: it rewrites files"
    elif "parameter" in error.lower() or "InputValidation" in error:
        detail = re.search(r"[^.\n]*(?:parameter|argument|property) [`'\"]?[\w-]+[`'\"]?[^.\n<]*", failed.output)
        advice = f"`{tool}`: {generalise(detail[0])}" if detail else advice
    rule = "edit" if failed.call.does == "edit" else "call"
    discovery = failed.explain(advice, rule=rule, failed=tool, worked=advice.partition(":")[0], folder=worked.folder)
    return discovery.replace(error=re.split(r"\bString:|\. (?:To replace|Read it)", error)[0].strip())


def _explain_size_limit(failed: FailedCall, folder: str) -> Discovery | None:
    path = generalise(failed.call.path, folder)
    if path.startswith(("~", "/")):
        return None  # not a file of the project
    tool = failed.call.tool
    text = f"`{path}` is too large for one `{tool}`: search in it, and read parts with offset and limit"
    remedy = f"`{tool}` with offset and limit"
    return failed.explain(text, rule="call", failed=path, worked=remedy, folder=folder, files=(path,))


def _find_moved_file(failed: FailedCall, worked: WorkingCall) -> Settlement:
    """Return whether a call found the missing file elsewhere, and the discovery that this makes."""
    missing = _find_missing_path(failed)
    if not missing or not _NOT_THERE.search(failed.error):
        return False, None
    meant = _DID_YOU_MEAN.search(failed.output)
    for path in (*filter(None, [worked.call.path]), *_list_paths(worked.ran)):
        if path == missing:
            return False, None
        if path.rpartition("/")[2] == missing.rpartition("/")[2] or (meant and path.endswith(meant[1])):
            return True, _explain_moved_file(failed, worked, missing, path)
    return False, None


def _explain_moved_file(failed: FailedCall, worked: WorkingCall, missing: str, path: str) -> Discovery | None:
    wrong, right = generalise(missing, worked.folder), generalise(path, worked.folder)
    if wrong == right or right.endswith("/" + wrong.removeprefix("./")) or wrong.endswith("/" + right):
        parts = [show_command(part, worked.folder) for part in failed.ran]
        command = next((part.replace(wrong, right) for part in parts if wrong in part), right)
        return _describe_wrong_folder(failed, worked, command) if failed.call.does == "run" else None
    if "…" in right or right.startswith("~"):
        return None  # not a file of the project
    wrong_path, right_path = _shorten_paths(wrong, right)
    folder, _, name = right_path.rpartition("/")
    location = f"in `{folder}`" if folder and wrong_path.rpartition("/")[2] == name else f"`{right_path}`"
    text = f"`{wrong_path}` does not exist: it is {location}"
    return failed.explain(text, rule="call", failed=wrong, worked=right, folder=worked.folder, files=(right,))


def _find_missing_path(failed: FailedCall) -> str:
    if failed.call.does != "run":
        return failed.call.path
    return next((path for path in _list_paths(failed.ran) if path in failed.error), "")


def _list_paths(ran: Iterable[Part]) -> Iterator[str]:
    """Yield the words of commands that look like paths."""
    for part in ran:
        for word in part.words[1:]:
            path = word.strip("'\"")
            if _PATHLIKE.search(path) and _PATH.fullmatch(path):
                yield path


def is_about_the_call(failed: FailedCall) -> bool:
    """Return whether an error is about how a program was called, not about the code that it worked on."""
    if failed.call.does != "run" or _WRONG_FOLDER.search(failed.output):
        return True
    if any(map(is_check, failed.ran)) and _ABOUT_THE_CODE.search(failed.output):
        return False
    return _ABOUT_THE_CALL.search(failed.error) is not None


def _correct_command(failed: FailedCall, worked: WorkingCall) -> Settlement:
    """Return whether a working command settles a failed one, and the discovery that the two make."""
    wrong = _find_wrong_part(failed)
    if wrong is None or (wrong.program in _FILE_TOOLS and _NOT_THERE.search(failed.error)):
        return False, None  # for a missing file, only its location matters
    for right in worked.ran:
        if right.words == wrong.words:
            return True, _explain_later_success(failed, wrong, right, worked)
        if _has_same_purpose(wrong, right, failed.error):
            return True, _describe_change(failed, wrong, right, worked)
    return False, None


def _find_wrong_part(failed: FailedCall) -> Part | None:
    """Return the part of a command line that the error is about: the one it names, or the last."""
    error = failed.error.lower()
    for part in failed.ran:
        if error.startswith((f"{part.program}:", f"{part.program} ")) or f"/{part.program}:" in error:
            return part
    for part in failed.ran:
        if any(len(word) > 3 and word.strip("'\"").lower() in error for word in part.words[1:]):
            return part
    return failed.ran[-1] if failed.ran else None


def _has_same_purpose(wrong: Part, right: Part, error: str) -> bool:
    shared = {word for word in wrong.words[1:] if word in right.words and not word.startswith("-")}
    if wrong.intent == right.intent:
        if bool(_SENDS & set(wrong.words)) != bool(_SENDS & set(right.words)):
            return False
        return len(wrong.intent) > 1 or (
            bool(shared) if wrong.program in _FILE_TOOLS else measure_likeness(wrong, right) >= 0.2
        )
    if _NO_PROGRAM.search(error):
        arguments = [word for word in shared if len(word) > 2 and word[0].isalnum()]
        return bool(arguments) and (measure_likeness(wrong, right) >= 0.34 or wrong.words[-1] in right.words)
    return False


def _explain_later_success(failed: FailedCall, wrong: Part, right: Part, worked: WorkingCall) -> Discovery | None:
    """Return why the same command works now: in another folder, or after a command that the error requested."""
    if folder_of(worked.call.text) != folder_of(failed.call.text) and _NOT_THERE.search(failed.output):
        return _describe_wrong_folder(failed, worked)
    ahead = [part for part in worked.ran[: worked.ran.index(right)] if part not in failed.ran and not is_check(part)]
    remedy = ahead[0] if len(ahead) == 1 else find_requested_command(failed.output, worked.ran_since)
    return describe_prerequisite(wrong, remedy, failed.error, failed.output, worked.folder) if remedy else None


def find_requested_command(output: str, ran: Iterable[Part]) -> Part | None:
    """Return a command that the output requested and that was then run."""
    requested = (part for part in ran if len(part.words) > 1 and " ".join(part.words[:3]) in output)
    return next((part for part in requested if not is_check(part)), None)


def describe_prerequisite(wrong: Part, remedy: Part, error: str, output: str, folder: str) -> Discovery:
    """Return the discovery that a command needs another one before it."""
    error, first = generalise_error(error, folder), show_command(remedy, folder)
    return Discovery(
        type="blocker",
        rule="command",
        text=f"When `{' '.join(wrong.intent)}` says “{error}”: run `{first}` first",
        failed=show_command(wrong, folder),
        error=error,
        worked=first,
        excerpt=output[:MAX_EXCERPT_LENGTH],
    )


def _describe_wrong_folder(failed: FailedCall, worked: WorkingCall, right: str = "") -> Discovery | None:
    """Return the discovery that a command ran in the wrong folder, with the correct command if it is known."""
    wrong = _find_wrong_part(failed)
    if wrong is None:
        return None
    folder = worked.folder
    wrong_folder, command = folder_of(failed.call.text), show_command(wrong, folder)
    if wrong_folder.startswith("/") or "…" in right:
        return None  # the shell's current folder was not the reason
    target = generalise(folder_of(worked.call.text), folder)
    return failed.explain(
        f"`{' '.join(wrong.intent)}` fails in the wrong folder: the shell stays where the last `cd` went",
        failed=f"cd {generalise(wrong_folder, folder)} && {command}" if wrong_folder else command,
        worked=right or (f"cd {target} && {command}" if target else command),
        folder=folder,
    )


def _describe_change(failed: FailedCall, wrong: Part, right: Part, worked: WorkingCall) -> Discovery | None:
    folder = worked.folder
    before, after = show_command(wrong, folder), show_command(right, folder)
    if _WRONG_FOLDER.search(failed.output):
        return _describe_wrong_folder(failed, worked, "" if folder_of(worked.call.text) else after)
    removed, added = compare_words(wrong, right)
    if _UNPARSED.search(failed.output) and (pieces := _find_changed_piece(removed, added, failed.output)):
        return _describe_rewriting(failed, wrong, *pieces, folder)
    if before == after or "/tmp/…" in after:  # noqa: S108 - a placeholder
        return None
    if not _is_related(removed, added, failed.error, measure_likeness(wrong, right)):
        return None
    text = f"Run `{after}`, not `{before}`: {failed.general_error(folder)}"
    if option := _find_unknown_option(removed, failed.error):
        remedy = f"use `{after}`" if len(added) == 1 else "leave it out"
        text = f"`{' '.join(wrong.intent)}` has no `{option}`: {remedy}"
    elif len(before) + len(after) > _MAX_LENGTH_OF_BOTH and (removed or added):
        text = f"{_describe_difference(wrong, removed, added, folder)}: {failed.general_error(folder)}"
    return failed.explain(text, failed=before, worked=after, folder=folder)


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
    short = [pair for pair in changes if all(0 < len(piece) <= _MAX_PIECE_LENGTH for piece in pair)]
    with_token = [pair for pair in short if token and token[1] in pair[0]]
    return next(iter(with_token or short), None)


def _describe_rewriting(failed: FailedCall, wrong: Part, old: str, new: str, folder: str) -> Discovery:
    command = " ".join(wrong.intent)
    text = f"Within `{command}` write `{new}`, not `{old}`: {failed.general_error(folder)}"
    before, after = (f"{command} … {piece}".replace("`", "'") for piece in (old, new))
    return failed.explain(text, failed=before, worked=after, folder=folder)


def _find_unknown_option(removed: Sequence[str], error: str) -> str:
    """Return the option that the error says is unknown."""
    options = (word.partition("=")[0] for word in removed if word.startswith("-"))
    return next((option for option in options if _UNKNOWN.search(error) and option.strip("-") in error), "")


def _describe_difference(wrong: Part, removed: Sequence[str], added: Sequence[str], folder: str) -> str:
    """Describe only the difference between two commands that are too long to show in full."""
    command = " ".join(wrong.intent)
    fewer, further = ([show_command(Part(words=(word,)), folder) for word in words] for words in (removed, added))
    less, more = ([word for word in fewer if word not in further], [word for word in further if word not in fewer])
    if len(less) == len(more) == 1:
        if more[0].strip("'\"") == less[0]:
            return f"Quote `{less[0]}` for `{command}`"
        less[0], more[0] = _shorten_paths(less[0], more[0])
    if not more:
        return f"`{command}` without `{' '.join(less)}`"
    return f"`{command}` with `{' '.join(more)}`" + (f", not `{' '.join(less)}`" if less else "")


def _shorten_paths(wrong: str, right: str) -> tuple[str, str]:
    """Return two paths without the folders that they share, except the last one."""
    wrong_parts, right_parts = wrong.split("/"), right.split("/")
    shared = next(
        (index for index, pair in enumerate(zip(wrong_parts, right_parts, strict=False)) if pair[0] != pair[1]), 0
    )
    return "/".join(wrong_parts[max(shared - 1, 0) :]), "/".join(right_parts[max(shared - 1, 0) :])


def _is_related(removed: Sequence[str], added: Sequence[str], error: str, likeness: float) -> bool:
    """Return whether the change is related to the error and is more than another name."""
    if any(len(word.strip("'\"")) > 1 and word.strip("'\"")[:60] in error for word in removed):
        return True
    if len(removed) <= 1 and len(added) <= 1 and likeness >= 0.5 and not _STATE.search(error):
        return True
    names_only = all(re.fullmatch(r"[\w./:@~-]+", word) and not word.startswith("-") for word in (*removed, *added))
    return _USAGE.search(error) is not None and not (removed and added and names_only)
