"""Say what a command that worked corrects in one that failed before, if it corrects anything.

In doubt nothing: two commands are a mistake and its correction only when they ask for the same thing, the error is
about how it was asked, and what differs is more than names of the day.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from learnt.mine.complaint import general, reason
from learnt.mine.evidence import LONGEST_EXCERPT, shown
from learnt.mine.shell import Part, changed_words, folder_of, is_check, likeness
from learnt.model import Discovery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from learnt.mine.evidence import Failed, Worked

    Answer = tuple[bool, Discovery | None]  # whether the failure is settled, and what it teaches

_SHORT = 80  # of two commands that are told in full
NOT_THERE = re.compile(
    r"no such file|does not exist|not found|cannot access|did not match|cannot find|can't open|no Go files|ENOENT|"
    r"unknown revision or path|not a directory|cannot stat|couldn't find",
    re.IGNORECASE,
)
_NO_PROGRAM = re.compile(
    r"command not found|No module named|not installed|not found in|is not recognized", re.IGNORECASE
)
# Errors about how something was asked, whatever was asked for; others must name what was changed.
_USAGE = re.compile(
    r"unknown (?:flag|option|command|argument|shorthand|switch|subcommand)|unrecogni[sz]ed|no matches found|"
    r"parse error|"
    r"syntax error|failed to parse|command not found|usage:|HTTP 4\d\d|Not Found|too (?:many|few)|requires|must |"
    r"missing|"
    r"invalid|ambiguous|not supported|unsupported|ignored by|already |No module named|not a valid|is required|"
    r"provided but not|not provided|blank|illegal|unexpected|outside|weren't supplied|not given|no upstream|"
    r"non-fast-forward",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(r"unknown (?:flag|option|argument|shorthand|switch)|unrecogni[sz]ed|not defined", re.IGNORECASE)
_UNPARSED = re.compile(
    r"failed to parse jq|jq: error: syntax|jq: \d+ compile error|unterminated|unexpected token", re.IGNORECASE
)
_TOKEN = re.compile(r"unexpected (?:token )?[\"']?([^\s\"',]+)")
_LONGEST_PIECE = 60
_SENDS = frozenset(("-f", "-F", "--method", "-X", "--field", "--raw-field", "-d", "--data", "--input"))
_ABOUT_THE_CALL = re.compile(
    r"unknown (?:flag|option|command|argument|shorthand|switch|subcommand|revision)|unrecogni[sz]ed|no such |not found|"
    r"no matches found|not a git repo|does not exist|did not match|No module named|cannot find|parse error|"
    r"syntax error|"
    r"permission denied|already |invalid|is required|requires|must |unexpected|unable to|cannot |can't |could not|"
    r"couldn't|not allowed|denied|ignored by|rejected|usage:|HTTP 4\d\d|too (?:many|few)|missing|ambiguous|no tests|"
    r"no Go files|outside|not provided|provided but|bad |not supported|unsupported|deprecated|timed? ?out|"
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


def is_about_the_call(failed: Failed) -> bool:
    """Say whether an error is about how something was asked for, and not about the code that it was asked of."""
    if failed.call.does != "run":
        return True
    if _WRONG_FOLDER.search(failed.output):
        return True
    if any(map(is_check, failed.ran)) and _ABOUT_THE_CODE.search(failed.output):
        return False
    return _ABOUT_THE_CALL.search(failed.error) is not None


def correction_of_command(failed: Failed, worked: Worked) -> Answer:
    """Return whether a command that worked settles a failed one, and what is learnt from the two."""
    wrong = _wrong_part(failed)
    if wrong is None or (wrong.program in _FILE_TOOLS and NOT_THERE.search(failed.error)):
        return False, None  # of a missing file it only matters where it is
    for right in worked.ran:
        if right.words == wrong.words:
            return True, _same_again(failed, wrong, right, worked)
        if _asks_the_same(wrong, right, failed.error):
            return True, _changed(failed, wrong, right, worked)
    return False, None


def _wrong_part(failed: Failed) -> Part | None:
    """Return the part of a command line that the error is about: the one it names, or the last."""
    error = failed.error.lower()
    for part in failed.ran:
        if error.startswith((f"{part.program}:", f"{part.program} ")) or f"/{part.program}:" in error:
            return part
    for part in failed.ran:
        if any(len(word) > 3 and word.strip("'\"").lower() in error for word in part.words[1:]):
            return part
    return failed.ran[-1] if failed.ran else None


def _asks_the_same(wrong: Part, right: Part, error: str) -> bool:
    shared = {word for word in wrong.words[1:] if word in right.words and not word.startswith("-")}
    if wrong.intent == right.intent:
        if bool(_SENDS & set(wrong.words)) != bool(_SENDS & set(right.words)):
            return False
        return len(wrong.intent) > 1 or (
            bool(shared) if wrong.program in _FILE_TOOLS else likeness(wrong, right) >= 0.2
        )
    if _NO_PROGRAM.search(error):
        asked = [word for word in shared if len(word) > 2 and word[0].isalnum()]
        return bool(asked) and (likeness(wrong, right) >= 0.34 or wrong.words[-1] in right.words)
    return False


def _same_again(failed: Failed, wrong: Part, right: Part, worked: Worked) -> Discovery | None:
    """The same command works now: another folder, or a command that the error asked for, made the difference."""
    if folder_of(worked.call.text) != folder_of(failed.call.text) and NOT_THERE.search(failed.output):
        return wrong_folder(failed, worked)
    ahead = [part for part in worked.ran[: worked.ran.index(right)] if part not in failed.ran and not is_check(part)]
    remedy = ahead[0] if len(ahead) == 1 else asked_for(failed.output, worked.ran_since)
    return needs_first(wrong, remedy, failed.error, failed.output, worked.folder) if remedy else None


def asked_for(output: str, ran: Iterable[Part]) -> Part | None:
    """Return a command that was run, and that the output had asked for."""
    for part in ran:
        named = " ".join(part.words[:3])
        if len(part.words) > 1 and named in output and not is_check(part):
            return part
    return None


def needs_first(wrong: Part, remedy: Part, error: str, output: str, folder: str) -> Discovery:
    """Return that a command needs another before it."""
    command, first = shown(wrong, folder), shown(remedy, folder)
    return Discovery(
        type="blocker",
        rule="command",
        text=f"When `{' '.join(wrong.intent)}` says “{reason(error, folder)}”: run `{first}` first",
        failed=command,
        error=reason(error, folder),
        worked=first,
        excerpt=output[:LONGEST_EXCERPT],
    )


def wrong_folder(failed: Failed, worked: Worked, right: str = "") -> Discovery | None:
    """Return that a command was run in the wrong folder, and the form that was right, if it is known."""
    wrong = _wrong_part(failed)
    if wrong is None:
        return None
    folder = worked.folder
    went, command = folder_of(failed.call.text), shown(wrong, folder)
    if went.startswith("/") or "…" in right:
        return None  # it was not where the shell stood
    target = general(folder_of(worked.call.text), folder)
    return Discovery(
        type="blocker",
        rule="command",
        text=f"`{' '.join(wrong.intent)}` fails in the wrong folder: the shell stays where the last `cd` went",
        failed=f"cd {general(went, folder)} && {command}" if went else command,
        error=failed.told(folder),
        worked=right or (f"cd {target} && {command}" if target else command),
        excerpt=failed.excerpt,
    )


def _changed(failed: Failed, wrong: Part, right: Part, worked: Worked) -> Discovery | None:
    folder = worked.folder
    before, after = shown(wrong, folder), shown(right, folder)
    if _WRONG_FOLDER.search(failed.output):
        return wrong_folder(failed, worked, "" if folder_of(worked.call.text) else after)
    removed, added = changed_words(wrong, right)
    if _UNPARSED.search(failed.output) and (pieces := _pieces(removed, added, failed.output)):
        return _rewritten(failed, wrong, *pieces, folder)
    if before == after or "/tmp/…" in after or not _explains(removed, added, failed.error, likeness(wrong, right)):  # noqa: S108
        return None
    text = f"Run `{after}`, not `{before}`: {failed.told(folder)}"
    if option := _refused_option(removed, failed.error):
        remedy = f"use `{after}`" if len(added) == 1 else "leave it out"
        text = f"`{' '.join(wrong.intent)}` has no `{option}`: {remedy}"
    elif len(before) + len(after) > _SHORT and (removed or added):
        text = f"{_difference(wrong, removed, added, folder)}: {failed.told(folder)}"
    return Discovery(
        type="blocker",
        rule="command",
        text=text,
        failed=before,
        error=failed.told(folder),
        worked=after,
        excerpt=failed.excerpt,
    )


def _pieces(removed: Sequence[str], added: Sequence[str], output: str) -> tuple[str, str] | None:
    """Return the piece of a long expression that could not be read, and the one that took its place."""
    if len(removed) != 1 or len(added) != 1:
        return None
    old, new = removed[0].strip("'\"").split(), added[0].strip("'\"").split()
    token = _TOKEN.search(output)
    changes = [
        (" ".join(old[start:end]), " ".join(new[first:last]))
        for what, start, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if what == "replace"
    ]
    told = [pair for pair in changes if all(0 < len(piece) <= _LONGEST_PIECE for piece in pair)]
    named = [pair for pair in told if token and token[1] in pair[0]]
    return next(iter(named or told), None)


def _rewritten(failed: Failed, wrong: Part, old: str, new: str, folder: str) -> Discovery:
    command = " ".join(wrong.intent)
    return Discovery(
        type="blocker",
        rule="command",
        text=f"Within `{command}` write `{new}`, not `{old}`: {failed.told(folder)}",
        failed=f"{command} … {old}".replace("`", "'"),
        error=failed.told(folder),
        worked=f"{command} … {new}".replace("`", "'"),
        excerpt=failed.excerpt,
    )


def _refused_option(removed: Sequence[str], error: str) -> str:
    """Return the option that the error says is unknown."""
    options = (word.partition("=")[0] for word in removed if word.startswith("-"))
    return next((option for option in options if _UNKNOWN.search(error) and option.strip("-") in error), "")


def _difference(wrong: Part, removed: Sequence[str], added: Sequence[str], folder: str) -> str:
    """Return only what differs between two commands that are too long to be told in full."""
    command = " ".join(wrong.intent)
    fewer, further = ([shown(Part(words=(word,)), folder) for word in words] for words in (removed, added))
    less, more = ([word for word in fewer if word not in further], [word for word in further if word not in fewer])
    if len(less) == len(more) == 1:
        if more[0].strip("'\"") == less[0]:
            return f"Quote `{less[0]}` for `{command}`"
        less[0], more[0] = apart(less[0], more[0])
    return _told_apart(command, " ".join(less), " ".join(more))


def _told_apart(command: str, less: str, more: str) -> str:
    if not more:
        return f"`{command}` without `{less}`"
    return f"`{command}` with `{more}`, not `{less}`" if less else f"`{command}` with `{more}`"


def apart(wrong: str, right: str) -> tuple[str, str]:
    """Return two paths without the folders that they share, but for the last of these."""
    one, other = wrong.split("/"), right.split("/")
    shared = next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)
    return "/".join(one[max(shared - 1, 0) :]), "/".join(other[max(shared - 1, 0) :])


def _explains(removed: Sequence[str], added: Sequence[str], error: str, alike: float) -> bool:
    """Say whether what was changed has to do with the error, and is more than another name."""
    named = [word for word in removed if len(word.strip("'\"")) > 1 and word.strip("'\"")[:60] in error]
    if named:
        return True
    if len(removed) <= 1 and len(added) <= 1 and alike >= 0.5 and not _STATE.search(error):
        return True
    names_only = all(re.fullmatch(r"[\w./:@~-]+", word) and not word.startswith("-") for word in (*removed, *added))
    return _USAGE.search(error) is not None and not (removed and added and names_only)
