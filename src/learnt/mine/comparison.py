"""Decide whether two commands have the same goal, and what differs between them.

Two commands have the same goal if they run the same program, or one that does its job, for the same request and the
same things. How they were started, their options, their folder and their variables may differ. In case of doubt, they
have different goals.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from learnt.mine.shell import INTERPRETERS, STARTING_WORDS, Part, is_about_files
from learnt.model import Value
from learnt.text.patterns import lazy_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# Programs that do the same job.
FAMILIES = (
    frozenset("npm pnpm yarn bun".split()),
    frozenset("pip pip3 uv poetry pipx pdm conda mamba".split()),
    frozenset("docker podman nerdctl".split()),
    frozenset("make just task".split()),
    frozenset("mvn gradle".split()),
    frozenset("terraform tofu".split()),
    frozenset("apt apt-get brew dnf yum apk".split()),
)
_SYNONYMS = (frozenset(("install", "ci")), frozenset(("remove", "uninstall")), frozenset(("add", "install")))
# What a wrapper or another version of a program adds to its name: `mvnw`, `python3.12`, `bazelisk`.
_NAME_ENDING = lazy_pattern(r"w|isk|[\d.]+|-[a-z]+")
_SCRIPT_ENDING = lazy_pattern(r"\.(?:py|[cm]?[jt]s|rb|sh|php|pl)$")
_MODULE = lazy_pattern(r"[a-z_]\w*(?:\.[a-z_]\w*)+")
_MAX_WRAPPER_WORDS = 8
_MAX_PRINTED = 2_000
_OUTPUT_OPTION = lazy_pattern(
    r"-v+|-q|--(?:verbose|quiet|silent|short|oneline|no-pager|stacktrace|debug|progress|no-color|color|tail|limit|"
    r"lines|since)(?:=.*)?"
)
# Names that are of use only once: ids, numbers, versions, addresses, texts.
_ONE_TIME = lazy_pattern(
    r"(?=[\w-]*\d)(?=[\w-]*[a-z])[0-9a-f]{6,40}|[\d.,:]+|\S*(?:==|@)v?\d[\w.]*|\w+://\S+|[\w-]+-(?=\w*\d[a-z])\w{4,}(?:-\w+)*|/tmp/\S*"
)
_BRANCH = lazy_pattern(r"[\w.-]+(?:/[\w.-]+)+")
_ABOUT_BRANCHES = frozenset("checkout switch push pull merge rebase branch fetch worktree cherry-pick pr mr".split())
DEFAULT_BRANCHES = frozenset("main master trunk develop".split())
NOT_THERE = lazy_pattern(
    r"no such file|does(?: not|n't) exist|not found|cannot (?:access|find|stat)|did not match|can't open|no Go files|"
    r"ENOENT|unknown revision or path|not a directory|could(?:n't| not) (?:find|locate)",
    re.IGNORECASE,
)
_UNKNOWN = lazy_pattern(
    r"unknown|unrecogni[sz]ed|no such|not found|missing script|no rule|does(?: not|n't) exist|did not match|"
    r"not a \w+ ?command|cannot locate|invalid|not defined|not running|no target",
    re.IGNORECASE,
)
_TOKEN = lazy_pattern(r"[a-z0-9]+")


class Comparison(Value):
    """A command that failed, a command with the same goal that worked, and what differs."""

    wrong: Part
    right: Part
    wrong_start: tuple[str, ...]
    """How the program was started: the words up to its name."""
    right_start: tuple[str, ...]
    removed: tuple[tuple[str, ...], ...] = ()
    """Runs of words behind the program that only the failed command has, without those that change nothing."""
    added: tuple[tuple[str, ...], ...] = ()

    @property
    def has_other_start(self) -> bool:
        """Whether another program was started, or the same one in another way."""
        return self.wrong_start != self.right_start or (bool(self.right.source) and not self.wrong.source)

    @property
    def dropped_settings(self) -> tuple[str, ...]:
        """What only the failed command's line sets up."""
        return tuple(setting for setting in self.wrong.settings if setting not in self.right.settings)

    @property
    def new_settings(self) -> tuple[str, ...]:
        """What only the working command's line sets up."""
        return tuple(setting for setting in self.right.settings if setting not in self.wrong.settings)


def compare_commands(
    wrong: Part, right: Part, *, missing: str, error: str, output: str, printed: str = ""
) -> Comparison | None:
    """Return what differs between two commands with the same goal; None if the second has another goal.

    `missing` is the program that the output of the first says does not exist; `printed` is the output of the second.
    """
    if is_about_files(right) and not is_about_files(wrong):
        return None  # to look at something is another goal
    places = _align(wrong, right)
    if places is None:
        if is_about_files(wrong) and not is_about_files(right) and missing != wrong.program:
            return None
        is_instead = _does_same_job(wrong, right) or (missing == wrong.program and _shares_request(wrong, right))
        is_instead = is_instead or _prints_command(right, printed, wrong) or _has_same_words(wrong, right)
        return _make_comparison(wrong, right, 0, _find_script(right)) if is_instead else None
    comparison = _make_comparison(wrong, right, *places)
    asked, done = (part.replace(words=part.words[place:]) for part, place in zip((wrong, right), places, strict=True))
    if not _is_same_request(asked, done, error, output) or not _has_same_targets(asked, done, comparison, output):
        return None
    return comparison


def is_typo(comparison: Comparison) -> bool:
    """Return whether two commands differ in the spelling of one word."""
    old, new = ([word for run in runs for word in run] for runs in (comparison.removed, comparison.added))
    programs = comparison.wrong.program, comparison.right.program
    if comparison.has_other_start:
        starts = zip(comparison.wrong_start, comparison.right_start, strict=False)
        is_related = programs[0] != programs[1] and (_is_same_program(*programs) or _are_family(*programs))
        is_other = old or new or is_related or len(comparison.wrong_start) != len(comparison.right_start)
        names = [tuple(map(_name_program, pair)) for pair in starts if pair[0] != pair[1]]
        return not is_other and len(names) == 1 and is_misspelt(*names[0])
    return len(old) == len(new) == 1 and is_misspelt(*map(_name_program, (old[0], new[0])))


def is_one_time(word: str, part: Part) -> bool:
    """Return whether a word is a name, a number or a text of one day."""
    plain = word.strip("'\"")
    if word.startswith(("-", "+")):
        return False
    is_branch = not _ABOUT_BRANCHES.isdisjoint(part.intent) and plain not in DEFAULT_BRANCHES
    return bool(_ONE_TIME.fullmatch(plain)) or " " in plain or (is_branch and bool(_BRANCH.fullmatch(plain)))


def are_options(words: Iterable[str], part: Part) -> bool:
    """Return whether words of a command are options or stand behind one."""
    places = (part.words.index(word) for word in words)
    return all(part.words[place][0] in "-+" or part.words[place - 1][0] == "-" for place in places)


def are_alike(first: str, second: str) -> bool:
    """Return whether two names share a part: `api` and `api-server`, `prod` and `production`."""
    ours, theirs = (set(_TOKEN.findall(name.lower())) for name in (first, second))
    shared = [a for a in ours if any(a.startswith(b) or b.startswith(a) for b in theirs if min(len(a), len(b)) > 2)]
    return bool(shared) and 2 * len(shared) >= min(len(ours), len(theirs))


def mentions(text: str, word: str) -> bool:
    """Return whether a text mentions a word of a command, or the name at the end of a path, or an option's name."""
    plain = word.strip("'\"").partition("=")[0] if word.startswith("-") else word.strip("'\"")
    names = {plain, plain.strip("-:"), plain.rpartition("/")[2]}
    return any(len(name) > 1 and _holds(text, name[:80]) for name in names)


def _holds(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def _find_script(part: Part) -> int:
    """Return where the script or module stands that an interpreter runs; 0 if there is none."""
    places = list(_list_program_places(part)) if part.program in INTERPRETERS else [0]
    return places[-1]


def _align(wrong: Part, right: Part) -> tuple[int, int] | None:
    """Return where in each command the program stands that both run, perhaps started by another one."""
    if len(right.words) > 1 and wrong.program == f"{right.program}-{right.words[1]}":  # docker-compose
        return 0, 1
    for first in reversed(list(_list_program_places(wrong))):
        for second in reversed(list(_list_program_places(right))):
            if _is_same_program(wrong.words[first], right.words[second]):
                return first, second
    for number, word in enumerate(right.words[1:_MAX_WRAPPER_WORDS], 1):
        if _is_same_program(wrong.words[0], word):
            return 0, number
    for number, word in enumerate(wrong.words[1:_MAX_WRAPPER_WORDS], 1):
        if _is_same_program(right.words[0], word):
            return number, 0
    return None


def _list_program_places(part: Part) -> Iterator[int]:
    """Yield where a program is named: at the beginning, and behind a word that starts another."""
    yield 0
    for number, word in enumerate(part.words[:_MAX_WRAPPER_WORDS]):
        is_starter = word in STARTING_WORDS or word == "-m" or (not number and part.program in INTERPRETERS)
        if is_starter and number + 1 < len(part.words) and not part.words[number + 1].startswith("-"):
            yield number + 1


@lru_cache(maxsize=10_000)
def _is_same_program(first: str, second: str) -> bool:
    if first[:1] == "-" or second[:1] == "-":
        return False
    names = sorted((_name_program(word) for word in (first, second)), key=len)
    ending = names[1].removeprefix(names[0])
    return len(names[0]) > 1 and (not ending or (ending != names[1] and _NAME_ENDING.fullmatch(ending) is not None))


def _name_program(word: str) -> str:
    """Return the name of a program, a script or a module: `seed` for `app/seed.py` and `app.seed`."""
    folder, _, name = word.strip("'\"").rpartition("/")
    name = _SCRIPT_ENDING.sub("", name)
    return name.rpartition(".")[2] if not folder and _MODULE.fullmatch(name) else name


def _does_same_job(wrong: Part, right: Part) -> bool:
    """Return whether a program of the same family was asked for the same."""
    if not _are_family(wrong.program, right.program):
        return False
    asked, done = wrong.intent[1:], right.intent[1:]
    return bool(asked) and bool(done) and (asked[-1] == done[-1] or {asked[-1], done[-1]} in _SYNONYMS)


def _has_same_words(wrong: Part, right: Part) -> bool:
    """Return whether another program was called with the same words, among them an argument."""
    return len(wrong.words) > 2 and wrong.words[1:] == right.words[1:]


def _prints_command(right: Part, output: str, wrong: Part) -> bool:
    """Return whether an output shows that the same command was run, as `make` and `npm run` print it."""
    if len(wrong.intent) < 2 or is_about_files(right):
        return False
    return _prints(output, " ".join(wrong.intent))


def _prints(output: str, command: str) -> bool:
    wanted = re.compile(rf"^[\s$>+]*(?:\S*/)?{re.escape(command)}(?:\s|$)", re.MULTILINE)
    return wanted.search(output[:_MAX_PRINTED]) is not None


def _are_family(first: str, second: str) -> bool:
    return any({first, second} <= family for family in FAMILIES)


def _shares_request(wrong: Part, right: Part) -> bool:
    """Return whether two different programs were asked for the same: with a common subcommand or argument."""
    words = {word for word in wrong.words[1:] if len(word) > 2 and not word.startswith("-")}
    return bool(words & set(right.words[1:])) or (bool(wrong.source) and wrong.source == right.source)


def _is_same_request(asked: Part, done: Part, error: str, output: str) -> bool:
    """Return whether two calls of a program have the same subcommands, or the error says that one does not exist.

    A script that prints the program that it starts can be replaced by that program.
    """
    first, second = asked.intent[1:], done.intent[1:]
    common = min(len(first), len(second))
    is_prefix = first[:common] == second[:common] and (common or not first)
    if is_prefix or {*first, *second} in _SYNONYMS or (not second and {*_list_targets(asked)} & {*_list_targets(done)}):
        return True
    wrong_words = [word for word in first if word not in second]
    is_unknown = bool(wrong_words) and mentions(error, wrong_words[0]) and bool(_UNKNOWN.search(error))
    return bool(second) and (is_unknown or _prints(output, second[0]))


def _has_same_targets(asked: Part, done: Part, comparison: Comparison, output: str) -> bool:
    """Return whether two calls are about the same things, or the second has the right name for one of them."""
    ours, theirs = (set(_list_targets(part)) for part in (asked, done))
    if not ours or not theirs or ours & theirs:
        return True
    if len(ours) == len(theirs) == 1 and all(" " in text for text in (*ours, *theirs)):
        return are_alike(*ours, *theirs)
    removed, added = ([word for run in runs for word in run] for runs in (comparison.removed, comparison.added))
    wrong_names = [word for word in removed if mentions(output, word)]
    if not wrong_names and NOT_THERE.search(output):
        wrong_names = removed
    if not wrong_names:
        return False
    is_subcommand = any(word in asked.intent for word in wrong_names)
    defaults = {*ours, *theirs} <= DEFAULT_BRANCHES
    return is_subcommand or defaults or any(are_alike(old, new) for old in wrong_names for new in added)


def _list_targets(part: Part) -> Iterator[str]:
    """Yield the words behind the subcommands that are no options."""
    request = set(part.intent[1:])
    for word in part.words[1:]:
        if not word.startswith("-") and word not in request:
            yield word.strip("'\"")


def _make_comparison(wrong: Part, right: Part, first: int, second: int) -> Comparison:
    before, after = wrong.words[first + 1 :], right.words[second + 1 :]
    return Comparison(
        wrong=wrong,
        right=right,
        wrong_start=wrong.words[: first + 1],
        right_start=right.words[: second + 1],
        removed=tuple(_list_runs(before, after)),
        added=tuple(_list_runs(after, before)),
    )


def _list_runs(words: Sequence[str], others: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield the runs of words that the others lack, without options that only change the output."""
    known = set(others)
    run: list[str] = []
    for before, word in pairwise(("", *words, "")):
        is_of_output = _OUTPUT_OPTION.fullmatch(word) or (word.isdigit() and _OUTPUT_OPTION.fullmatch(before))
        if word and word not in known and not is_of_output:
            run.append(word)
        elif run:
            yield tuple(run)
            run = []


def is_misspelt(first: str, second: str) -> bool:
    """Return whether one letter was wrong, missing or in the wrong place."""
    if not (first.isalpha() and second.isalpha()) or abs(len(first) - len(second)) > 1:
        return False
    if len(first) == len(second):
        places = [place for place, pair in enumerate(zip(first, second, strict=True)) if pair[0] != pair[1]]
        is_swapped = len(places) == 2 and sorted(first) == sorted(second)
        return len(places) == 1 or (is_swapped and places[1] - places[0] == 1)
    shorter, longer = sorted((first, second), key=len)
    return any(longer[:place] + longer[place + 1 :] == shorter for place in range(len(longer)))
