"""Split a command line into the programs that it starts and their words, to compare commands.

This is not a shell parser: quoted strings stay as they are, and a command substitution is part of a word. Any text can
be split. An unclosed quotation extends to the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from learnt.model import Value

_MAX_COMMAND_LENGTH = 4_000
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1.*?(?:^\s*\2\b|\Z)", re.DOTALL | re.MULTILINE)
_REDIRECTED = re.compile(
    r"\s*(?:\d?>>?\s*&\d|[\d&]?>>?\s*/dev/null|&>>?\s*[^\s;|&'\"]+)|\\\n|^\s*#[^\n]*$", re.MULTILINE
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
# The number of words after the program that are subcommands.
_SUBCOMMANDS = {
    "gh": 2, "mise": 2, "uv": 2, "docker": 1, "git": 1, "go": 1, "npm": 2, "pnpm": 2, "yarn": 2, "bun": 2, "cargo": 1,
    "kubectl": 1, "pip": 1, "pip3": 1, "poetry": 2, "make": 1, "just": 1, "task": 1, "terraform": 1, "aws": 2, "az": 2,
    "gcloud": 2, "dotnet": 1, "mvn": 1, "gradle": 1, "bundle": 2, "brew": 1, "npx": 1, "deno": 1, "systemctl": 1,
    "apt": 1, "apt-get": 1, "golangci-lint": 1, "composer": 1, "mix": 1, "rake": 1, "tox": 0, "pre-commit": 1,
}  # fmt: skip
_TAKES_VALUE = ("-C", "-c", "--cwd", "--git-dir", "--work-tree", "--directory", "--manifest-path", "-R", "--repo")
# Programs that test or check code, anywhere in a command ...
_CHECKERS = frozenset(
    "ava bandit bats biome black clippy commitlint coverage ctest cypress detekt eslint flake8 gofmt golangci-lint "
    "gotestsum hadolint isort jest karma ktlint markdownlint mocha mypy nose2 nosetests nox nyc oxlint pest phpstan "
    "phpunit playwright pre-commit prettier pylint pyright pytest rspec rubocop ruff shellcheck staticcheck stylelint "
    "swiftlint tox tsc ty unittest vitest yamllint".split()
)
# ... and subcommands that do so.
_CHECKS = frozenset(
    "analyze bench benchmark build check checks ci compile e2e fmt format lint precommit t test tests typecheck types "
    "validate verify vet".split()
)
_BUILDS = frozenset(("build", "compile"))
_CHECK_OPTIONS = frozenset(("--check", "--test", "--lint"))
_TEST_FILE = re.compile(r"(?:^|/)(?:tests?/|tests?\.\w+$|test_[^/]*$|[^/]*[_.]test\.\w+$)")
# Programs that run other programs or scripts.
INTERPRETERS = frozenset("python python3 py node deno ruby perl php bash sh zsh java go npx uvx bunx".split())
_INSTALLERS = frozenset(
    "npm pnpm yarn bun pip pip3 pipx python python3 uv poetry conda apt apt-get brew cargo go gem bundle".split()
)
_INSTALLS = frozenset("add i install remove uninstall upgrade update".split())
# The arguments of these programs are files and text, even if they look like subcommands.
_FILE_PROGRAMS = frozenset("cp diff file find git ln ls mkdir mv rg rm rmdir stat touch tree which".split())
_FORMATTERS = frozenset("fmt format gofmt goimports prettier black gofumpt rustfmt fix autofix".split())
_SETUP_PROGRAMS = frozenset("cd echo export printf true false sleep pwd set source wait exit".split())
_FILTERS = frozenset("head tail grep sed awk sort uniq wc cut tr cat less tee xargs jq".split())
_WORD_PARTS = re.compile(r"[:_./-]+")


class Part(Value):
    """One program that a command line starts."""

    words: tuple[str, ...]
    source: str = ""
    """The program whose output this program reads through a pipe; empty if there is none."""

    @property
    def program(self) -> str:
        """The program's name without its folder."""
        return self.words[0].rpartition("/")[2] or self.words[0]

    @property
    def intent(self) -> tuple[str, ...]:
        """The program and its subcommands, such as `gh pr diff`, `go test` or `grep`."""
        return (self.program, *_list_subcommands(self.program, self.words))

    @property
    def text(self) -> str:
        """The words as they were written."""
        return " ".join(self.words)


def split_command(command: str) -> tuple[Part, ...]:
    """Return the programs that a command line starts, without programs that only set something up or filter output."""
    started = [part for part, _ in _split(_simplify(command)) if part.words]
    kept = [part for part in started if not (part.source and part.program in _FILTERS)]
    return tuple(part for part in kept if part.program not in _SETUP_PROGRAMS) or tuple(kept[:1])


def folder_of(command: str) -> str:
    """Return the folder in a `cd` at the start of a command line; empty if there is none."""
    for part, _ in _split(_simplify(command)):
        if part.words:
            return part.words[1].strip("'\"") if part.program == "cd" and len(part.words) > 1 else ""
    return ""


def hides_failures(command: str) -> bool:
    """Return whether a command line can succeed although a part before `|`, `||`, `;` or `&` failed."""
    started = [(part, operator) for part, operator in _split(_simplify(command)) if part.words]
    hidden = any(operator != "&&" and part.program not in _SETUP_PROGRAMS for part, operator in started[:-1])
    return hidden or any(operator == "&" for _, operator in started[-1:])


def settings_of(command: str) -> tuple[str, ...]:
    """Return the variables that a command line sets for its programs, and `sudo` if it is used."""
    words = [word for line in _split_words(_simplify(command)) for word in line[0][: _count_prefix(line[0])]]
    return tuple(word for word in words if word == "sudo" or _ASSIGNMENT.match(word))


def list_programs(command: str) -> tuple[str, ...]:
    """Return the names of all programs that a command line starts, including filters and wrappers."""
    lines = [words for words, _ in _split_words(_simplify(command))]
    return tuple(_name_program(words[index]) for words in lines for index in {0, _count_prefix(words)} if words[index:])


def is_check(part: Part) -> bool:
    """Return whether a part runs tests, a linter or a build, which fail because of the code."""
    return bool(_find_check_words(part))


def is_build(part: Part) -> bool:
    """Return whether a part only builds."""
    checks = _find_check_words(part)
    return bool(checks) and checks <= _BUILDS


def _find_check_words(part: Part) -> set[str]:
    """Return the words that show that a part runs a check."""
    plain = [word for word in part.words[1:] if not word.startswith("-")]
    installs = part.program in _INSTALLERS and (_INSTALLS & set(plain[:2]) or plain[:1] == ["ci"])
    if installs or part.program in _FILE_PROGRAMS | _FILTERS | _SETUP_PROGRAMS:
        return set()
    request_words = part.intent[1:] or tuple(word for word in plain[:1] if not set("/.") & set(word))
    request_words = (*request_words, *plain[1:2]) if plain[:1] == ["compose"] else request_words
    request_words = request_words if part.program == "gh" else (part.program, *request_words)
    checks = {piece for word in request_words for piece in _WORD_PARTS.split(word.lower())} & _CHECKS
    checks |= {"build"} if part.words == ("make",) else set()
    checks |= {word for word in map(_name_program, part.words) if word in _CHECKERS or word.endswith("lint")}
    checks |= _CHECK_OPTIONS & set(part.words)
    scripts = plain[:1] if part.program in INTERPRETERS else []
    return checks | {word for word in (part.words[0], *scripts) if _TEST_FILE.search(word)}


def is_formatter(part: Part) -> bool:
    """Return whether a part can rewrite files."""
    request_words = {piece for word in part.intent for piece in _WORD_PARTS.split(word.lower())}
    in_place = part.program in ("sed", "perl") and any(word.startswith("-i") for word in part.words)
    return bool(request_words & _FORMATTERS) or "--fix" in part.words or in_place


def compare_words(failed: Part, worked: Part) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words that only the failed part has, and the words that only the working part has."""
    return (
        tuple(word for word in dict.fromkeys(failed.words) if word not in worked.words),
        tuple(word for word in dict.fromkeys(worked.words) if word not in failed.words),
    )


def measure_likeness(first: Part, second: Part) -> float:
    """Return the share of words that two parts have in common, from 0 to 1."""
    first_words, second_words = set(first.words), set(second.words)
    return len(first_words & second_words) / max(len(first_words | second_words), 1)


def _simplify(command: str) -> str:
    """Return a command line without a shell around it, redirections, comments and here-documents."""
    text = _HEREDOC.sub("<<…", command[:_MAX_COMMAND_LENGTH])
    inner = _SHELL_OF.match(text)
    text = _REDIRECTED.sub(" ", inner[2] if inner else text).strip()
    return text[1:-1] if text[:1] == "(" and text[-1:] == ")" and ")" not in text[1:-1] else text


def _split(text: str) -> Iterator[tuple[Part, str]]:
    """Yield each part of a command line and the operator after it."""
    source = ""
    for words, operator in _split_words(text):
        part = Part(words=tuple(words[_count_prefix(words) :]), source=source)
        yield part, operator
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


def _name_program(word: str) -> str:
    return word.strip("'\"").rpartition("/")[2].lower()


def _list_subcommands(program: str, words: tuple[str, ...]) -> Iterator[str]:
    remaining = _SUBCOMMANDS.get(program, 0)
    index = 1
    while remaining and index < len(words):
        word = words[index]
        if word in _TAKES_VALUE:
            index += 1
        elif not word.startswith("-"):
            if not word.replace("-", "").replace(":", "").replace("_", "").isalnum():
                return
            yield word
            remaining -= 1
        index += 1
