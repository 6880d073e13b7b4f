"""Split a command line into the programs that it starts and their words, and say what kind of program each one is.

This is not a shell parser: quoted strings stay as they are, and a command substitution is part of a word. Any text can
be split. An unclosed quotation extends to the end.

Subcommands are recognised by their form, for any program: they are the plain words behind it, up to the first verb.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import lru_cache

from learnt.model import Value

_MAX_COMMAND_LENGTH = 4_000
_HEREDOC = r"(?ms)<<-?\s*(['\"]?)(\w+)\1.*?(?:^\s*\2\b|\Z)"  # compiled when a command has one
_REDIRECTED = re.compile(
    r"(?<!\s)\s*+(?:\d?>>?\s*&\d|[\d&]?>>?\s*/dev/null|&>>?\s*[^\s;|&'\"]+)|\\\n|^[ \t]*+#[^\n]*$", re.MULTILINE
)
_INTO_FILE = re.compile(r"\d?>{1,2}\|?")
_SHELL_OF = re.compile(r"\s*(?:\S*/)?(?:ba|z|da)?sh\s+-[a-z]*c\s+(['\"])(.*)\1\s*\Z", re.DOTALL)
_PIECE = re.compile(
    r"""\$\((?:[^()]|\([^()]*\))*+\)?|'[^']*+'?|"(?:\\.|[^"\\])*+"?|\\.|&&|\|\||[;|\n&]|[^\S\n]++|[^\s'"\\;|&$]++|.""",
    re.DOTALL,
)
_OPERATORS = ("&&", "||", ";", "|", "&", "\n")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_WRAPPERS = tuple("sudo time timeout env nohup exec command { ( ! then do".split())
# A subcommand is a plain word. The first verb ends a chain of subcommands (`gh pr create`, `az aks get-credentials`);
# what follows it are arguments.
_PLAIN_WORD = re.compile(r"[a-z][a-z0-9]*(?:[:_-][a-z0-9]+)*")
_VERBS = frozenset(
    "add analyze apply attach audit build cat check checkout ci clean clone commit compile convert copy cp create "
    "debug delete deploy describe destroy develop diff disable down drop dump edit enable eval export fetch fix fmt "
    "format generate get import info init inspect install invoke kill lint list lock log login logout logs ls merge "
    "migrate mount move open pack plan prune ps publish pull push rebase reload remove render replace reset resolve "
    "restart restore resume rm rollback rollout scale search seed select send serve set show sign start stat status "
    "stop submit switch sync tag tail template test tidy top uninstall unlock up update upgrade upload use validate "
    "verify version vet view wait watch".split()
)
# Words behind which another program or script is named, and programs that only start others.
STARTING_WORDS = frozenset("run exec dlx".split())
_STARTERS = frozenset("npx bunx uvx pipx fvm corepack dotenv direnv xvfb-run".split())
_MAX_SUBCOMMANDS = 4
# Programs that test or check code, anywhere in a command ...
_CHECKERS = frozenset(
    "ava bandit bats biome black clippy commitlint coverage ctest cypress detekt eslint flake8 gofmt "
    "golangci-lint gotestsum hadolint isort jest karma ktlint markdownlint mocha mypy nextest nose2 nosetests "
    "nox nyc oxlint pest phpstan phpunit playwright pre-commit prettier pylint pyright pytest rspec rubocop ruff "
    "shellcheck staticcheck stylelint swiftlint tox tsc ty unittest vitest yamllint".split()
)
# ... and subcommands that do so.
_CHECKS = frozenset(
    "analyze bench benchmark build check checks ci compile e2e fmt format lint precommit t test tests typecheck types "
    "validate verify vet".split()
)
_BUILDS = frozenset(("build", "compile"))
_CHECK_OPTIONS = frozenset(("--check", "--test", "--lint"))
_TEST_FILE = r"(?:^|/)(?:tests?/|tests?\.\w+$|test_[^/]*$|[^/]*[_.]test\.\w+$)"
# Programs that run other programs or scripts.
INTERPRETERS = frozenset("python python3 py node deno ruby perl php bash sh zsh java go npx uvx bunx".split())
_RUN_SCRIPTS = INTERPRETERS - {"go", "npx", "uvx", "bunx"}
# Subcommands that prepare something, whatever else their names say: `install`, `start:test`, `login:ci`.
_PREPARES = frozenset(
    "add dev generate i init install login prepare remove seed serve setup start stop uninstall up update "
    "upgrade".split()
)
_INSTALL_WORDS = frozenset("add i install sync".split())
_INSTALLS_EXACTLY = (("npm", "ci"), ("pnpm", "ci"), ("bun", "ci"))
_FORMATTERS = frozenset("fmt format gofmt goimports prettier black gofumpt rustfmt fix autofix".split())
_SETUP_PROGRAMS = frozenset("cd echo export printf true false sleep pwd set source . wait exit".split())
_FILTERS = frozenset("head tail grep sed awk sort uniq wc cut tr cat less tee xargs jq".split())
# Programs whose arguments are files and text: those that only look, and those that change files.
_LOOKING = _FILTERS | frozenset(
    "ls egrep fgrep rg ag ack fd find stat file more tree which type diff cmp du df echo printf yq test [ [[ ps pgrep "
    "lsof netstat ss env printenv whoami id uname date hostname curl wget ping nc dig host man strings xxd od readlink "
    "realpath basename dirname command pwd kill pkill history wait-on".split()
)
_FILE_CHANGERS = frozenset("cp mv rm rmdir mkdir touch ln chmod chown tar zip unzip".split())
# Subcommands that change nothing, and subcommands of git that only keep records of the work.
_LOOKS = frozenset(
    "cat describe diff events exists get help history info inspect is-active is-enabled list log logs ls output plan "
    "ps search show stat status tail top tree version versions view whoami which why".split()
)
_LOOKING_PREFIXES = ("describe-", "list-", "show-")
_LOOKING_OPTIONS = frozenset(("--version", "--help", "-V", "--dry-run"))
_GET_PACKAGES = frozenset("go flutter dart mix".split())
_RECORDS = frozenset(
    "add am apply bisect blame branch checkout cherry-pick clean commit merge mv push rebase reset restore revert rm "
    "stash switch tag worktree".split()
)
_GIT_LOOKS = frozenset("blame cat-file diff grep log ls-files rev-parse show".split())
_WORD_PARTS = re.compile(r"[:_./-]+")


class Part(Value):
    """One program that a command line starts."""

    words: tuple[str, ...]
    source: str = ""
    """The program whose output this program reads through a pipe; empty if there is none."""
    settings: tuple[str, ...] = ()
    """What the command line sets up for it: variables, `sudo`, a sourced file."""
    folder: str = ""
    """The folder that the command line changes to before; empty if there is none."""

    @property
    def program(self) -> str:
        """The program's name without its folder."""
        return self.words[0].rpartition("/")[2] or self.words[0]

    @property
    def intent(self) -> tuple[str, ...]:
        """The program and its subcommands, such as `gh pr diff`, `go test` or `grep`."""
        return (self.program, *_read_subcommands(self.words))

    @property
    def request(self) -> tuple[str, ...]:
        """The program and those subcommands that are surely no arguments: up to a verb or a started program."""
        words = self.intent
        known = [number for number, word in enumerate(words) if number and (is_verb(word) or word in STARTING_WORDS)]
        return words if known[-1:] == [len(words) - 2] else words[: max(known, default=0) + 1]

    @property
    def text(self) -> str:
        """The words as they were written."""
        return " ".join(self.words)


def split_command(command: str) -> tuple[Part, ...]:
    """Return the programs that a command line starts, without programs that only set something up or filter output."""
    started = [part for part, _ in _split(_simplify(command)) if part.words]
    kept = [part for part in started if not (part.source and part.program in _FILTERS)]
    return tuple(part for part in kept if part.program not in _SETUP_PROGRAMS) or tuple(kept[:1])


def find_filter(command: str, program: str) -> Part | None:
    """Return the filter of this name that a command line pipes something into; None if there is none."""
    parts = (part for part, _ in _split(_simplify(command)) if part.words)
    return next((part for part in parts if part.source and part.program == program), None)


def folder_of(command: str) -> str:
    """Return the folder in a `cd` at the start of a command line; empty if there is none."""
    for part, _ in _split(_simplify(command)):
        if part.words:
            return _target_of(part) if part.program == "cd" else ""
    return ""


def hides_failures(command: str) -> bool:
    """Return whether a command line can succeed although a part before `|`, `||`, `;` or `&` failed."""
    started = [(part, operator) for part, operator in _split(_simplify(command)) if part.words]
    hidden = any(operator != "&&" and part.program not in _SETUP_PROGRAMS for part, operator in started[:-1])
    return hidden or any(operator == "&" for _, operator in started[-1:])


def settings_of(command: str) -> tuple[str, ...]:
    """Return the variables that a command line sets for its programs, and `sudo` if it is used."""
    words = [word for line in _split_words(_simplify(command)) for word in line[0][: _count_prefix(line[0])]]
    return tuple(word for word in words if _is_setting(word))


def provides(command: str, program: str) -> bool:
    """Return whether a command line deals with a program that may be missing, before it calls it or after it failed.

    It sets the path, sources a file, installs something, tests for the program, or calls another one behind `||`.
    """
    lines = list(_split_words(_simplify(command)))
    named = re.compile(rf"(?<![\w.-]){re.escape(program)}(?![\w-]|\.\w)")
    for index, (words, _) in enumerate(lines):
        count = _count_prefix(words)
        if any(word.startswith("PATH=") for word in words):
            return True
        if words[count : count + 1] == [program]:
            return _has_alternative(lines[index:])
        if words and (words[0] in ("source", ".") or _installs(tuple(words[count:]))):
            return True
        if words and words[0] != "cd" and named.search(" ".join(words)):
            return True
    return False


def _has_alternative(lines: list[tuple[list[str], str]]) -> bool:
    """Return whether another program is called if the first line fails."""
    for (_, operator), (following, _) in itertools.pairwise(lines):
        if operator == "||":
            return bool(following) and following[0] not in _SETUP_PROGRAMS | {":", "return"}
        if operator not in ("|", "&&"):
            return False
    return False


def _installs(words: tuple[str, ...]) -> bool:
    if not words or words[0] in _LOOKING | _SETUP_PROGRAMS | {"git"}:
        return False
    return words[:2] in _INSTALLS_EXACTLY or not _INSTALL_WORDS.isdisjoint(words[1:])


def list_programs(command: str) -> tuple[str, ...]:
    """Return the names of all programs that a command line starts, including filters and wrappers."""
    lines = [words for words, _ in _split_words(_simplify(command))]
    return tuple(_name_program(words[index]) for words in lines for index in {0, _count_prefix(words)} if words[index:])


def is_check(part: Part) -> bool:
    """Return whether a part runs tests, a linter or a build, which fail because of the code."""
    return bool(_find_check_words(part.words))


def is_build(part: Part) -> bool:
    """Return whether a part only builds."""
    checks = _find_check_words(part.words)
    return bool(checks) and checks <= _BUILDS


@lru_cache(maxsize=2_000)
def _find_check_words(words: tuple[str, ...]) -> set[str]:
    """Return the words that show that a part runs a check."""
    part = Part(words=words)
    plain = [word for word in part.words[1:] if not word.startswith("-")]
    prepares = _WORD_PARTS.split(part.intent[-1])[0] in _PREPARES or part.words[:2] in _INSTALLS_EXACTLY
    if prepares or part.program == "git" or part.program in _LOOKING | _FILE_CHANGERS | _SETUP_PROGRAMS:
        return set()
    request_words = tuple(word for word in part.intent[1:] or plain[:1] if not set("/.") & set(word))
    request_words = request_words if part.program == "gh" else (part.program, *request_words)
    checks = {piece for word in request_words for piece in _WORD_PARTS.split(word.lower())} & _CHECKS
    checks |= {"build"} if part.words == ("make",) else set()
    checks |= {word for word in map(_name_program, part.words) if word in _CHECKERS or word.endswith("lint")}
    checks |= _CHECK_OPTIONS & set(part.words)
    scripts = plain[:1] if part.program in INTERPRETERS else []
    return checks | {word for word in (part.words[0], *scripts) if re.search(_TEST_FILE, word)}


def is_formatter(part: Part) -> bool:
    """Return whether a part can rewrite files."""
    request_words = {piece for word in part.intent for piece in _WORD_PARTS.split(word.lower())}
    in_place = part.program in ("sed", "perl") and any(word.startswith("-i") for word in part.words)
    return bool(request_words & _FORMATTERS) or "--fix" in part.words or in_place


def is_about_files(part: Part) -> bool:
    """Return whether a part looks for something, or copies, moves or deletes files: what it names is needed once."""
    if part.program == "git":
        return not _GIT_LOOKS.isdisjoint(part.intent[1:2])
    return part.program in _LOOKING | _FILE_CHANGERS and not is_formatter(part)


def is_record(part: Part) -> bool:
    """Return whether a part only keeps records of the work in git."""
    return part.program == "git" and (len(part.intent) < 2 or part.intent[1] in _RECORDS)


def changes_state(part: Part) -> bool:
    """Return whether a part can make later commands work: it neither looks, nor checks, nor records work in git."""
    if part.program in _LOOKING | _SETUP_PROGRAMS or not _LOOKING_OPTIONS.isdisjoint(part.words):
        return False
    is_inline = part.program in _RUN_SCRIPTS and bool({"-c", "-e"} & set(part.words))
    request = part.intent[1:]
    if is_inline or is_record(part):
        return False
    last = request[-1] if request else ""
    looks = last in _LOOKS | _LOOKING or last.startswith(_LOOKING_PREFIXES)
    return (not looks or part.program in _GET_PACKAGES) and (is_build(part) or not is_check(part))


def compare_words(failed: Part, worked: Part) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words that only the failed part has, and the words that only the working part has."""
    return (
        tuple(word for word in dict.fromkeys(failed.words) if word not in worked.words),
        tuple(word for word in dict.fromkeys(worked.words) if word not in failed.words),
    )


def _simplify(command: str) -> str:
    """Return a command line without a shell around it, redirections, comments and here-documents."""
    text = command[:_MAX_COMMAND_LENGTH]
    if "<<" in text:
        text = re.sub(_HEREDOC, "<<…", text)
    inner = _SHELL_OF.match(text)
    text = _REDIRECTED.sub(" ", inner[2] if inner else text).strip()
    return text[1:-1] if text[:1] == "(" and text[-1:] == ")" and ")" not in text[1:-1] else text


def _split(text: str) -> Iterator[tuple[Part, str]]:
    """Yield each part of a command line and the operator after it."""
    source, folder = "", ""
    exported: tuple[str, ...] = ()
    for words, operator in _split_words(text):
        count = _count_prefix(words)
        settings = (*exported, *filter(_is_setting, words[:count]))
        part = Part(words=tuple(words[count:]), source=source, settings=settings, folder=folder)
        yield part, operator
        if part.words and part.program == "cd":
            folder = _target_of(part)
        elif part.words and part.program in ("export", "source", "."):
            exported += tuple(filter(_is_setting, words)) if part.program == "export" else (part.text,)
        source = part.program if operator == "|" and part.words else ""


def _split_words(text: str) -> Iterator[tuple[list[str], str]]:
    words: list[str] = []
    word = ""
    for piece in (*_PIECE.findall(text), "\n"):
        is_operator = piece in _OPERATORS
        if not is_operator and not piece.isspace():
            word += piece
            continue
        if word:
            words.append(word)
            word = ""
        if is_operator:
            yield _drop_redirections(words), piece
            words = []


def _drop_redirections(words: list[str]) -> list[str]:
    """Return the words without redirections into files."""
    kept: list[str] = []
    is_target = False
    for word in words:
        into = _INTO_FILE.match(word)
        if not is_target and not into:
            kept.append(word)
        is_target = bool(into and into.end() == len(word))
    return kept


def _count_prefix(words: list[str]) -> int:
    """Return the number of words at the start that only set variables or wrap another program."""
    count = 0
    while count < len(words) and (words[count] in _WRAPPERS or _ASSIGNMENT.match(words[count])):
        count += 2 if words[count] == "timeout" else 1
    return count


def _is_setting(word: str) -> bool:
    return word == "sudo" or _ASSIGNMENT.match(word) is not None


def _target_of(part: Part) -> str:
    return part.words[1].strip("'\"") if len(part.words) > 1 else ""


def _name_program(word: str) -> str:
    return word.strip("'\"").rpartition("/")[2].lower()


@lru_cache(maxsize=2_000)
def _read_subcommands(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_list_subcommands(words))


def _list_subcommands(words: tuple[str, ...]) -> Iterator[str]:
    """Yield the subcommands: plain words up to the first verb, and the program or script that a starter starts."""
    program = _name_program(words[0])
    if program in _LOOKING | _FILE_CHANGERS | _SETUP_PROGRAMS:
        return
    is_started = program in _STARTERS or program in _RUN_SCRIPTS  # whether the next word may be any program or script
    only_verbs = program in _CHECKERS
    index, count = 1, 0
    while index < len(words) and count < _MAX_SUBCOMMANDS:
        word = words[index]
        if word == "-m" and is_started:
            yield word
        elif word.startswith(("-", "+")):
            index += int(_takes_value(words, index))
        elif not _is_request(word, is_started=is_started, only_verbs=only_verbs):
            return
        else:
            yield word
            count += 1
            if (not is_started and is_verb(word)) or (only_verbs and word in STARTING_WORDS):
                return
            only_verbs = is_started and (_name_program(word) in _CHECKERS or program not in _RUN_SCRIPTS | _STARTERS)
            is_started = word in STARTING_WORDS
        index += 1


def _is_request(word: str, *, is_started: bool, only_verbs: bool) -> bool:
    """Return whether a word can be a subcommand: a plain word, or the script that is started."""
    if only_verbs and word not in STARTING_WORDS and not is_verb(word):
        return False
    return _PLAIN_WORD.fullmatch(word) is not None or (is_started and _is_script(word))


def is_verb(word: str) -> bool:
    """Return whether a subcommand is a verb, so that no further subcommand follows: `get-pods`, `db:migrate`."""
    pieces = _WORD_PARTS.split(word)
    return pieces[0] in _VERBS or pieces[-1] in _VERBS


def _is_script(word: str) -> bool:
    return len(word) <= 40 and " " not in word and word[0] not in "'\"$"


def _takes_value(words: tuple[str, ...], index: int) -> bool:
    """Return whether the word behind an option is its value: it does not look like a subcommand, or one follows."""
    option, value = words[index], words[index + 1] if index + 1 < len(words) else "-"
    if value.startswith("-") or "=" in option or option.startswith(("--no-", "+")) or option == "--":
        return False
    if not _PLAIN_WORD.fullmatch(value):
        return True
    is_followed = any(_PLAIN_WORD.fullmatch(word) for word in words[index + 2 :])
    return is_followed and not is_verb(value) and value not in STARTING_WORDS
