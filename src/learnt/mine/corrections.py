"""Decide whether a command that worked corrects one that failed before it, and say what that teaches.

What differs between the two is the lesson: the program, a variable, the folder, an option, a name; or, if the same
command works later, what was run or written in between. The rules hold for any program. In case of doubt, nothing is
learnt: from unfinished code, from networks and locks, from searches, from typing errors and from names of one day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from learnt.mine.calls import (
    FailedCall,
    PastCall,
    Settlement,
    WorkingCall,
    fit_title,
    format_command,
    format_settings,
    name_command,
    show_command,
)
from learnt.mine.causes import find_cause
from learnt.mine.comparison import (
    NOT_THERE,
    Comparison,
    are_alike,
    are_options,
    compare_commands,
    is_one_time,
    is_typo,
    mentions,
)
from learnt.mine.complaint import (
    generalise,
    generalise_error,
    passes_by_itself,
    rejects_option,
    states_demand,
)
from learnt.mine.refusals import correct_tool_call, find_moved_file, shorten_paths
from learnt.mine.shell import Part, changes_state, folder_of, is_about_files, is_build, is_check, is_record
from learnt.model import TITLE_LIMIT, Discovery
from learnt.text.clean import fold
from learnt.text.shorten import shorten

_MAX_PIECE_LENGTH = 60
_MAX_FORM_LENGTH = 100
_MAX_SETTING_DIGITS = 5
_MAX_ACTIONS = 3
_MAX_CALLS_TO_ANOTHER_NAME = 8
_WRONG_FOLDER = re.compile(
    r"\bcd:(?:\d+:| line \d+:)? (?:no such file|\S+: No such file|can't cd)|: directory not found|no Go files in|"
    r"could not open directory|does not contain main module",
    re.IGNORECASE,
)
# Errors about how a program was called: what was changed need not be named in them.
_USAGE = re.compile(
    r"\busage:|no matches found|(?:parse|syntax) error|failed to parse|HTTP 4\d\d|too (?:many|few)|requires|required|"
    r"must |"
    r"missing|invalid|ambiguous|not supported|unsupported|not (?:provided|given|set|specified)|provided but|illegal|"
    r"unexpected|no upstream|specify|denied|forbidden|unauthori[sz]ed|not allowed|consider |use |expects? ",
    re.IGNORECASE,
)
# Errors about what runs or is installed on the machine: editing code does not remove them.
_ABOUT_MACHINE = re.compile(
    r"connection refused|ECONNREFUSED|could ?n[o']t connect|failed to connect|daemon|credential|expired|log ?in\b|"
    r"unauthori[sz]ed|executable (?:file )?(?:doesn't|does not|not)|command not found|not installed",
    re.IGNORECASE,
)
_TAKEN = re.compile(r"already (?:exists|in use|taken|used|been)|\bduplicate\b", re.IGNORECASE)
_SETTINGS_FILE = re.compile(
    r"(?:^|/)(?:\.[\w.-]+|[\w.-]+\.(?:toml|ya?ml|json|ini|cfg|conf|env|properties|tfvars|npmrc)|(?:Make|Docker|"
    r"Gem)file)$"
)
_NAME = re.compile(r"[A-Za-z][\w.-]{3,}")
_NO_RESOURCE = re.compile(r"HTTP 404|\"not found\"|^(?:\w+: )?not found\b", re.IGNORECASE | re.MULTILINE)
# Options that only choose which tests run.
_SELECTS = re.compile(r"--?(?:run|k|t|m|p|pl|filter|grep|only|match|name|tests?|package|spec|file)\b|--$")
# Options that change what a test expects.
_UPDATES = re.compile(r"-u|--(?:snapshot-)?update\S*|--bless|--accept")
_PLAIN_NAME = re.compile(r"[\w./:@~][\w./:@~-]*")
_PROSE = re.compile(r"[\"'][\w\s.,:()#/!&'-]+[\"']")
_SENDS = frozenset(("-f", "-F", "--method", "-X", "--field", "--raw-field", "-d", "--data", "--input"))


def find_correction(failure: FailedCall, success: WorkingCall) -> Settlement:
    """Return whether a working call settles a failure, and what the two calls teach."""
    if failure.call.does != "run":
        return correct_tool_call(failure, success)
    if success.call.does == "run":
        settled, discovery = _correct_command(failure, success)
        if settled:
            return settled, discovery
    return find_moved_file(failure, success)


def _correct_command(failure: FailedCall, success: WorkingCall) -> Settlement:
    """Return whether a working command settles a failed command, and what the two commands teach."""
    wrong = failure.wrong_part
    if wrong is None:
        return False, None
    for right in sorted(success.parts, key=lambda part: part.words != wrong.words):
        comparison = compare_commands(
            wrong,
            right,
            missing=failure.missing,
            error=failure.error,
            output=failure.output,
            printed=success.output,
        )
        if comparison is not None and _sends_alike(comparison):
            lesson = _Correction(failure, success, comparison)
            if lesson.is_worth_learning():
                return True, lesson.find()
            return not is_about_files(wrong), None  # a missing file may be found elsewhere
    return False, None


def _sends_alike(comparison: Comparison) -> bool:
    """Return whether both requests to a server read something, or both send something."""
    if comparison.wrong.program != "curl" and "api" not in comparison.wrong.intent:
        return True
    return bool(_SENDS & set(comparison.wrong.words)) == bool(_SENDS & set(comparison.right.words))


class _Correction:
    """What a command that failed and one that worked teach."""

    def __init__(self, failure: FailedCall, success: WorkingCall, comparison: Comparison) -> None:
        self._failure = failure
        self._success = success
        self._comparison = comparison
        self._folder = success.folder
        self._edits = [past.call for past in success.since if past.call.does == "edit"]

    def is_worth_learning(self) -> bool:
        """Return whether the failure was neither a matter of one moment nor of unfinished code."""
        failure, comparison = self._failure, self._comparison
        if is_typo(comparison):
            return False
        if is_about_files(comparison.wrong):
            is_lost = comparison.wrong.program == comparison.right.program  # with its folder: PATH was broken
            return (failure.is_missing_program and not is_lost) or rejects_option(failure.error)
        return not passes_by_itself(failure.error) or self._names_change(failure.error)

    def find(self) -> Discovery | None:
        """Return the lesson by what differs: the program, the setup, the folder, the words, or what came before."""
        comparison, failure = self._comparison, self._failure
        is_rewritten = failure.is_in_code and bool(self._edits or not self._keeps_targets())
        if self._find_requested() is not None:
            return self._describe_prerequisite()
        if comparison.has_other_start:
            # Another command that runs fewer tests is no remedy.
            is_other_check = failure.is_in_code and is_check(comparison.wrong) and is_check(comparison.right)
            return None if (is_rewritten or is_other_check) and not failure.missing else self._describe_program()
        if comparison.new_settings and not self._list_actions_before():
            return None if is_rewritten else self._describe_settings()
        if any(mentions(failure.error, setting.partition("=")[0]) for setting in comparison.dropped_settings):
            return self._describe_dropped_settings()
        if self._is_elsewhere():
            return self._describe_folder()
        if not comparison.removed and not comparison.added:
            return self._describe_prerequisite()
        return None if is_rewritten or not self._is_related() else self._describe_change()

    # What differs

    def _keeps_targets(self) -> bool:
        """Return whether the working command is about all that the failed one was about."""
        comparison = self._comparison
        return are_options(_join(comparison.removed), comparison.wrong)

    def _is_elsewhere(self) -> bool:
        """Return whether the same words were run in another folder, or in one that had to be found first."""
        failure, comparison = self._failure, self._comparison
        if _WRONG_FOLDER.search(failure.output):
            return True
        has_moved = comparison.wrong.folder != comparison.right.folder and bool(comparison.right.folder)
        is_missed = NOT_THERE.search(failure.output) is not None
        return has_moved and not comparison.removed and (is_missed or not comparison.added)

    def _unquoted(self) -> str:
        """Return the word that only had to be quoted; empty if there is none."""
        removed, added = (_join(runs) for runs in (self._comparison.removed, self._comparison.added))
        pairs = zip(removed, added, strict=False)
        return next((old for old, new in pairs if new != old and new.strip("'\"") == old), "")

    def _names_change(self, text: str) -> bool:
        """Return whether a text names a word that was changed."""
        comparison = self._comparison
        words = (*_join(comparison.removed), *_join(comparison.added))
        return any(mentions(text, word) and not is_one_time(word, comparison.wrong) for word in words)

    def _is_related(self) -> bool:
        """Return whether changed words explain the failure, and are more than the names of one day."""
        failure = self._failure
        removed, added = self._list_lasting_words()
        if not removed and not added:
            return self._shows_form()
        is_incident = "<id>" in failure.reason(self._folder)  # it is about one commit or object
        if (is_incident and not rejects_option(failure.error)) or self._changes_checks(added):
            return False
        if any("$" in word for word in removed) or (_NO_RESOURCE.search(failure.output) and not _nest(removed, added)):
            return False
        return self._explains_replacement(removed, added) if removed and added else self._explains_option(added)

    def _changes_checks(self, added: Sequence[str]) -> bool:
        """Return whether other tests were run, or the tests expect something else."""
        is_of_code = self._failure.is_in_code
        if (is_of_code or is_check(self._comparison.wrong)) and any(map(_UPDATES.fullmatch, added)):
            return True
        options = [self._name_option(word) for word in added[:1]]
        return is_of_code and any(not option or _SELECTS.match(option) for option in options)

    def _name_option(self, word: str) -> str:
        """Return a new word if it is an option, or the option that it stands behind; empty if it is an argument."""
        words = self._comparison.right.words
        before = words[words.index(word) - 1]
        return word if word[0] in "-+" else before if before[0] == "-" else ""

    def _explains_replacement(self, removed: Sequence[str], added: Sequence[str]) -> bool:
        """Return whether words that were replaced explain the failure."""
        output = self._failure.output
        is_named = any(mentions(output, word) for word in removed)
        if _TAKEN.search(output):
            return False
        comparison = self._comparison
        if are_options(removed, comparison.wrong) and are_options(added, comparison.right) and not self._edits:
            return True
        if all(_PLAIN_NAME.fullmatch(word) for word in (*removed, *added)):
            is_found = are_alike(removed[0], added[0]) and (NOT_THERE.search(output) or not self._edits)
            return bool(is_named or is_found) and len(self._success.since) <= _MAX_CALLS_TO_ANOTHER_NAME
        return is_named or _USAGE.search(output) is not None or self._names_change(output)

    def _explains_option(self, added: Sequence[str]) -> bool:
        """Return whether words that were only added or only left out explain the failure."""
        if self._names_change(self._failure.output):
            return True
        is_option = any(word.startswith(("-", "+")) for word in added)
        return not self._edits and (is_option or _USAGE.search(self._failure.error) is not None)

    def _list_lasting_words(self) -> tuple[list[str], list[str]]:
        """Return the words that only one of the commands has, without names of one day and what replaced them."""
        removed, added = (_join(runs) for runs in (self._comparison.removed, self._comparison.added))
        if len(removed) == len(added):
            pairs = [pair for pair in zip(removed, added, strict=True) if not any(map(self._is_one_time, pair))]
            return [old for old, _ in pairs], [new for _, new in pairs]
        lasting, new = ([word for word in words if not self._is_one_time(word)] for words in (removed, added))
        return lasting, new

    def _is_one_time(self, word: str) -> bool:
        """Return whether a word is the name or number of one day. The value of an option is none."""
        comparison = self._comparison
        part = comparison.right if word in comparison.right.words else comparison.wrong
        is_value = word.isdigit() and len(word) <= _MAX_SETTING_DIGITS and are_options([word], part)
        return not is_value and is_one_time(word, comparison.wrong)

    def _shows_form(self) -> bool:
        """Return whether only a text was changed, and the output says what form it must have."""
        texts = _join(self._comparison.removed), _join(self._comparison.added)
        is_prose = all(len(words) == 1 and _PROSE.fullmatch(words[0]) for words in texts)
        return is_prose and states_demand(self._failure.error) and not self._failure.is_in_code

    # What it teaches

    def _describe_program(self) -> Discovery | None:
        failure, comparison = self._failure, self._comparison
        before, after = map(" ".join, _drop_common_end(comparison.wrong_start, comparison.right_start))
        if failure.missing == comparison.wrong.program and before == comparison.wrong.words[0]:
            return self._make(
                f"Use `{after}` instead of `{before}`, which is not installed here", failed=before, worked=after
            )
        if passes_by_itself(failure.error):
            return None
        wrong, right = (format_command(part, self._folder) for part in (comparison.wrong, comparison.right))
        if before == after or max(len(wrong), len(right)) <= _MAX_PIECE_LENGTH // 2:
            before, after = wrong, right
        elif " " not in before + after:
            before, after = name_command(comparison.wrong), name_command(comparison.right)
        text = self._title(f"Use `{after}` instead of `{before}`")
        return self._make(text, failed=wrong, worked=right)

    def _describe_settings(self) -> Discovery:
        comparison = self._comparison
        settings = " ".join(format_settings(comparison.new_settings, self._folder))
        command = name_command(comparison.wrong)
        is_variable = "=" in comparison.new_settings[0] or settings == "sudo"
        head = f"Set `{settings}` for `{command}`" if is_variable else f"Run `{settings}` before `{command}`"
        head = f"Run `{command}` with `sudo`" if settings == "sudo" else head
        wrong, right = self._show(comparison.wrong), self._show(comparison.right)
        return self._make(self._title(head), failed=wrong, worked=right)

    def _describe_dropped_settings(self) -> Discovery:
        comparison = self._comparison
        settings = " ".join(format_settings(comparison.dropped_settings, self._folder))
        wrong, right = self._show(comparison.wrong), self._show(comparison.right)
        text = self._title(f"Run `{name_command(comparison.right)}` without `{settings}`")
        return self._make(text, failed=wrong, worked=right)

    def _describe_folder(self) -> Discovery | None:
        """Return the lesson that a command runs in a certain folder; None if only the shell was in another one."""
        failure, right = self._failure, self._comparison.right
        is_lost = _WRONG_FOLDER.search(failure.output) is not None
        command = name_command(self._comparison.wrong)
        target = generalise(right.folder, self._folder)
        if is_lost or not target or target.startswith(("/", "~", "<root>", "..")) or folder_of(failure.call.text):
            return None
        if self._edits and not NOT_THERE.search(failure.output):
            return None
        wrong, shown = self._show(self._comparison.wrong), f"cd {target} && {self._show(right)}"
        return self._make(self._title(f"Run `{command}` in `{target}`"), failed=wrong, worked=shown)

    def _describe_change(self) -> Discovery | None:
        failure, comparison = self._failure, self._comparison
        command = name_command(comparison.wrong)
        wrong, right = self._show(comparison.wrong), self._show(comparison.right)
        if self._shows_form():
            right = comparison.right.text[:_MAX_FORM_LENGTH].replace("`", "'")
        if wrong == right or "/tmp/…" in right:  # noqa: S108 - a placeholder
            return None
        head = self._say_change(command, wrong, right)
        text = head if rejects_option(failure.error) else self._title(head)
        if len(head) > TITLE_LIMIT:
            demand = self._title(f"`{command}`")
            text = demand if ": " in demand and states_demand(demand) else shorten(head)
        return self._make(text, failed=wrong, worked=right) if len(text) <= TITLE_LIMIT else None

    def _say_change(self, command: str, wrong: str, right: str) -> str:
        """Return what to write instead, as the beginning of a sentence."""
        comparison = self._comparison
        if self._shows_form():
            return f"Write the text of `{command}` like `{_join(comparison.added)[0][1:-1]}`"
        if quoted := self._unquoted():
            return f"Quote `{self._show_words([quoted])}` for `{command}`"
        if any(word in comparison.wrong.intent for word in _join(comparison.removed)):
            return f"Use `{_shorten(right, name_command(comparison.right))}` instead of `{_shorten(wrong, command)}`"
        less, more = map(self._show_words, self._list_lasting_words())
        if more.startswith(("-", "+")) and not comparison.removed:
            more = self._show_words(_join(comparison.added))
        if rejects_option(self._failure.error) and less.startswith("-"):
            is_option = more.startswith("-") and len(_join(comparison.added)) <= 2
            return f"`{command}` has no `{less.partition('=')[0]}`: " + (
                f"use `{more}`" if is_option else "leave it out"
            )
        if more and not less:
            return f"Pass `{more}` to `{self._name_target(command)}`"
        if less and not more:
            return f"Leave out `{less}` in `{command}`"
        if len(wrong) + len(right) <= _MAX_PIECE_LENGTH:
            return f"Use `{right}` instead of `{wrong}`"
        if len(command) + len(less) + len(more) > _MAX_PIECE_LENGTH and " " not in less + more:
            less, more = shorten_paths(less, more)
        return f"Run `{command}` with `{more}`, not `{less}`"

    def _name_target(self, command: str) -> str:
        """Return the command with the thing that the error is about, if the error names it."""
        words = [word for before, word in pairwise(self._comparison.wrong.words) if not before.startswith("-")]
        targets = [word for word in words if re.fullmatch(r"[\w./:@]+[\w./:@-]*", word) and word not in command.split()]
        named = [word for word in targets if any(mentions(self._failure.error, piece) for piece in word.split("/"))]
        return (
            f"{command} {named[0]}"
            if len(named) == 1 and not is_one_time(named[0], self._comparison.wrong)
            else command
        )

    def _show_words(self, words: Sequence[str]) -> str:
        return " ".join(dict.fromkeys(format_command(Part(words=(word,)), self._folder) for word in words))

    def _describe_prerequisite(self) -> Discovery | None:
        """Return what was run or written in between, so that the same command works now."""
        failure, success, wrong = self._failure, self._success, self._comparison.wrong
        action = self._find_action()
        if action is not None:
            is_of_object = wrong.program == "git" and "<id>" in failure.reason(self._folder)
            if is_of_object or "/tmp/" in action.text:  # noqa: S108 - a part of a path
                return None  # it is about one commit or one day
            return describe_prerequisite(
                wrong, action, failure.error, failure.output, self._folder, cause=self._find_cause(action.text)
            )
        change = None if failure.is_in_code else _find_setting(success.since, failure)
        if change is None:
            return None
        path, line = generalise(change[0], self._folder), change[1]
        command = name_command(wrong)
        text = self._title(f"`{command}` needs `{line}` in `{path}`")
        shown = self._show(wrong)
        return self._make(text, failed=shown, worked=f"{path}: {line}").replace(
            observed=fold(
                f"`{shown}` failed: {failure.general_error(self._folder)}. With `{line}` in `{path}` it worked."
            ),
            advice=f"Set `{line}` in `{path}` first.",
            files=(path,),
        )

    def _find_action(self) -> Part | None:
        """Return the command that was run in between and most likely made the difference; None if there is none."""
        failure, actions = self._failure, self._list_actions()
        if (requested := self._find_requested()) is not None:
            return requested
        edited_code = bool(self._edits) and not _ABOUT_MACHINE.search(failure.output)
        if edited_code or passes_by_itself(failure.error) or not 0 < len(actions) <= _MAX_ACTIONS:
            return None
        about = [part for part in actions if _is_about(part, failure.output)]
        return (about or actions)[-1]

    def _find_requested(self) -> Part | None:
        return find_requested_command(self._failure.output, self._list_actions())

    def _list_actions(self) -> list[Part]:
        """Return the commands since the failure that can have made a difference."""
        since = [part for part in self._success.parts_since if self._acts(part)]
        return [*since, *self._list_actions_before()]

    def _list_actions_before(self) -> list[Part]:
        """Return the commands that were run in the same line before the one that worked."""
        parts = self._success.parts
        return [part for part in parts[: parts.index(self._comparison.right)] if self._acts(part)]

    def _acts(self, part: Part) -> bool:
        known = [other.words for other in self._failure.parts]
        is_rebuilt = is_build(part) and bool(self._edits)
        return changes_state(part) and part.words not in known and not is_rebuilt

    # How it is said

    def _show(self, part: Part) -> str:
        comparison = self._comparison
        kept = {*_join(comparison.removed), *_join(comparison.added), *comparison.new_settings}
        return show_command(part, self._folder, kept)

    def _title(self, head: str) -> str:
        return fit_title(head, self._failure.reason(self._folder))

    def _find_cause(self, *texts: str) -> str:
        comparison = self._comparison
        words = (
            *_join(comparison.removed),
            *_join(comparison.added),
            *comparison.new_settings,
            *comparison.right_start,
        )
        return find_cause(self._success.said, (self._failure.error, *words, *texts))

    def _make(self, text: str, *, failed: str, worked: str) -> Discovery:
        failure = self._failure
        error = failure.general_error(self._folder)
        cause = self._find_cause()
        observed = f"`{failed}` failed: {error}. `{worked}` worked."
        discovery = failure.explain(text, failed=failed, worked=worked, folder=self._folder)
        return discovery.replace(observed=fold(f"{observed} {cause}"), advice=f"Use `{worked}`.")


def _nest(removed: Sequence[str], added: Sequence[str]) -> bool:
    """Return whether one of two addresses contains all the names of the other, so that they may mean the same."""
    addresses = [" ".join(words).strip("'\"").partition("?")[0] for words in (removed, added)]
    some, others = (set(re.findall(r"[A-Za-z_-]{2,}", address)) for address in addresses)
    is_same_kind = addresses[0][-1:].isdecimal() == addresses[1][-1:].isdecimal()  # one thing, or a list of things
    return is_same_kind and (some <= others or others <= some)


def find_requested_command(output: str, parts: Iterator[Part] | Sequence[Part]) -> Part | None:
    """Return a command that the output asked for and that was then run."""
    requested = (
        part
        for part in parts
        if (len(part.words) > 1 and " ".join(part.words[:3]) in output)
        or (len(part.intent) > 1 and " ".join(part.intent) in output)
    )
    return next((part for part in requested if not (is_check(part) or is_record(part))), None)


def describe_prerequisite(
    wrong: Part, remedy: Part, error: str, output: str, folder: str, *, cause: str = ""
) -> Discovery:
    """Return the discovery that another command must be run before a command."""
    general = generalise_error(error, folder)
    first = show_command(remedy, folder)
    shown = show_command(wrong, folder)
    return Discovery(
        type="blocker",
        rule="command",
        text=_title_prerequisite(wrong, remedy, general, output, folder),
        failed=shown,
        error=general,
        worked=first,
        excerpt=output[:1_000],
        observed=fold(f"`{shown}` failed: {general}. After `{first}` it worked. {cause}"),
        advice=f"Run `{first}` first, then `{shown}`.",
    )


def _title_prerequisite(wrong: Part, remedy: Part, error: str, output: str, folder: str) -> str:
    """Return a title: if the output asks for the remedy, whatever command it was, the output is the condition."""
    first = show_command(remedy, folder)
    if find_requested_command(output, [remedy]) is not None:
        title = fit_title(f"Run `{first}` when `{wrong.program}` says", error)
        if ": " in title:
            return title
    return fit_title(f"Run `{first}` before `{name_command(wrong)}`", error)


def _find_setting(since: Sequence[PastCall], failure: FailedCall) -> tuple[str, str] | None:
    """Return the file and the line of a settings file that was added and that the error is about."""
    for past in since:
        path = past.call.path
        if past.call.does != "edit" or not _SETTINGS_FILE.search(path):
            continue
        old = {line.strip() for line in past.call.before.split("\n")}
        for line in (line.strip() for line in past.call.text.split("\n")):
            name = _NAME.search(line)
            if (
                line not in old
                and name
                and name[0].lower() in failure.output.lower()
                and len(line) <= _MAX_PIECE_LENGTH
            ):
                return path, line
    return None


def _is_about(part: Part, output: str) -> bool:
    """Return whether an output names something that a command is about."""
    words = {piece for word in part.words[1:] for piece in re.findall(r"[a-z]{3,}", word.lower())}
    return bool(words & set(re.findall(r"[a-z]{3,}", output.lower())))


def _join(runs: Sequence[Sequence[str]]) -> list[str]:
    return [word for run in runs for word in run]


def _drop_common_end(first: Sequence[str], second: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return how a program is started twice, without the script that both start."""
    while len(first) > 1 and len(second) > 1 and first[-1] == second[-1]:
        first, second = first[:-1], second[:-1]
    return first, second


def _shorten(command: str, start: str) -> str:
    """Return a command, or only its start if it is long."""
    return command if len(command) <= _MAX_PIECE_LENGTH // 2 else start
