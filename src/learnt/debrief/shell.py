"""Take a command line apart as far as comparing commands needs it: which programs it starts, with which words.

This is no shell: quotations stay as they are, and what stands between `$(` and `)` is just words. Any text gives an
answer; a torn quotation runs to the end.
"""

from __future__ import annotations

import re

from learnt.model import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_COMMAND = 4_000
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1.*?(?:^\s*\2\b|\Z)", re.DOTALL | re.MULTILINE)
_REDIRECTED = re.compile(r"\s*(?:\d?>>?\s*&\d|[\d&]?>>?\s*/dev/null)|\\\n|^\s*#[^\n]*$", re.MULTILINE)
_PIECE = re.compile(
    r"""\$\((?:[^()]|\([^()]*\))*+\)?|'[^']*+'?|"(?:\\.|[^"\\])*+"?|\\.|&&|\|\||[;|\n&]|[^\S\n]++|[^\s'"\\;|&$]++|.""",
    re.DOTALL,
)
_JOINTS = ("&&", "||", ";", "|", "&", "\n")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_WRAPPERS = ("sudo", "time", "env", "nohup", "exec", "command")
# How many of the words behind the program say what it is asked to do.
_SUBCOMMANDS = {
    "gh": 2, "mise": 2, "uv": 2, "docker": 1, "git": 1, "go": 1, "npm": 2, "pnpm": 2, "yarn": 2, "bun": 2, "cargo": 1,
    "kubectl": 1, "pip": 1, "pip3": 1, "poetry": 2, "make": 1, "just": 1, "task": 1, "terraform": 1, "aws": 2, "az": 2,
    "gcloud": 2, "dotnet": 1, "mvn": 1, "gradle": 1, "bundle": 2, "brew": 1, "npx": 1, "deno": 1, "systemctl": 1,
    "apt": 1, "apt-get": 1, "golangci-lint": 1, "composer": 1, "mix": 1, "rake": 1, "tox": 0, "pre-commit": 1,
}  # fmt: skip
_TAKES_VALUE = ("-C", "-c", "--cwd", "--git-dir", "--work-tree", "--directory", "--manifest-path", "-R", "--repo")
_CHECKS = frozenset(
    "bench benchmark build check checks ci clippy compile ctest e2e eslint fmt format gofmt jest lint mocha mypy nox "
    "phpunit precommit pyright pytest rspec rubocop ruff shellcheck staticcheck test tests tox tsc typecheck types "
    "verify vet vitest".split()
)
_FORMATTERS = frozenset("fmt format gofmt goimports prettier black gofumpt rustfmt fix autofix".split())
_TRIFLES = frozenset("cd echo export printf true false sleep pwd set source wait exit".split())
_FILTERS = frozenset("head tail grep sed awk sort uniq wc cut tr cat less tee xargs jq".split())
_WORD_PARTS = re.compile(r"[:_./-]+")


class Part(Value):
    """One program that a command line starts."""

    words: tuple[str, ...]
    source: str = ""
    """The program whose output it reads, if it reads one's."""
    joint: str = ""
    """What stands behind it: `&&`, `|` and the like."""

    @property
    def program(self) -> str:
        """The program's name without its folder."""
        return self.words[0].rpartition("/")[2] or self.words[0]

    @property
    def intent(self) -> tuple[str, ...]:
        """The program and what it is asked to do: `gh pr diff`, `go test`, `grep`."""
        return (self.program, *_subcommands(self.program, self.words))

    @property
    def text(self) -> str:
        """The words as they were written."""
        return " ".join(self.words)


def parts(command: str) -> tuple[Part, ...]:
    """Return what a command line starts, without what only sets up, redirects or shortens output."""
    text = _REDIRECTED.sub(" ", _HEREDOC.sub("<<…", command[:_LONGEST_COMMAND]))
    found = [part for part in _split(text) if part.words]
    kept = [part for part in found if not (part.source and part.program in _FILTERS)]
    return tuple(part for part in kept if part.program not in _TRIFLES) or tuple(kept[:1])


def folder_of(command: str) -> str:
    """Return where a command line goes with `cd` before anything else, or nothing."""
    for part in _split(_REDIRECTED.sub(" ", command[:_LONGEST_COMMAND])):
        if part.words:
            return part.words[1].strip("'\"") if part.program == "cd" and len(part.words) > 1 else ""
    return ""


def hides_failures(command: str) -> bool:
    """Say whether a command line may end well although something in it failed: behind `|`, `||`, `;` or `&`."""
    text = _REDIRECTED.sub(" ", _HEREDOC.sub("<<…", command[:_LONGEST_COMMAND])).strip()
    *found, last = [part for part in _split(text) if part.words] or [Part(words=("",))]
    return last.joint == "&" or any(part.joint != "&&" and part.program not in _TRIFLES for part in found)


def is_check(part: Part) -> bool:
    """Say whether a part runs tests, a linter, a build or the like, whose failure tells of the code."""
    asked = part.intent if part.program != "gh" else part.intent[1:]
    if part.program.startswith("python") and "-m" in part.words[:3]:
        asked = part.words[2:4]
    return any(word in _CHECKS for asked_word in asked for word in _WORD_PARTS.split(asked_word.lower()))


def is_formatter(part: Part) -> bool:
    """Say whether a part may rewrite files by itself."""
    asked = {word for given in part.intent for word in _WORD_PARTS.split(given.lower())}
    in_place = part.program in ("sed", "perl") and any(word.startswith("-i") for word in part.words)
    return bool(asked & _FORMATTERS) or "--fix" in part.words or in_place


def changed_words(failed: Part, worked: Part) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words that only the failed part has, and those that only the one that worked has."""
    return (
        tuple(word for word in dict.fromkeys(failed.words) if word not in worked.words),
        tuple(word for word in dict.fromkeys(worked.words) if word not in failed.words),
    )


def likeness(one: Part, other: Part) -> float:
    """Return from 0 to 1 how many words two parts share."""
    first, second = set(one.words), set(other.words)
    return len(first & second) / max(len(first | second), 1)


def _split(text: str) -> Iterator[Part]:
    words: list[str] = []
    word, source = "", ""
    for piece in (*_PIECE.findall(text), "\n"):
        joint = piece in _JOINTS
        if not joint and not piece.isspace():
            word += piece
            continue
        if word:
            words.append(word)
            word = ""
        if joint:
            part = Part(words=_without_preparation(words), source=source, joint=piece)
            yield part
            words, source = [], part.program if piece == "|" and part.words else ""


def _without_preparation(words: list[str]) -> tuple[str, ...]:
    """Drop variables that are set for one command, and programs that only start another."""
    place = 0
    while place < len(words):
        if (
            _ASSIGNMENT.match(words[place])
            or words[place] in _WRAPPERS
            or words[place] in ("{", "(", "!", "then", "do")
        ):
            place += 1
        elif words[place] == "timeout":
            place += 2
        else:
            break
    return tuple(words[place:])


def _subcommands(program: str, words: tuple[str, ...]) -> Iterator[str]:
    left = _SUBCOMMANDS.get(program, 0)
    place = 1
    while left and place < len(words):
        word = words[place]
        if word in _TAKES_VALUE:
            place += 1
        elif not word.startswith("-"):
            if not word.replace("-", "").replace(":", "").replace("_", "").isalnum():
                return
            yield word
            left -= 1
        place += 1
