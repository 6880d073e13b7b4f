"""Match trigger patterns against a situation: files, commands, errors, tools and task types.

Each pattern has an anchor, a word that every match must contain. The database finds the few patterns whose anchor
occurs, and only those are tried. A situation is analysed once for all patterns. Matching never raises, whatever the
pattern, and never backtracks: its time grows with the length of the pattern times that of the path. A pattern for files
with more than `MAX_WILDCARDS` wildcards is refused, and never matches.

Learnings are also shown by the identifiers that they name: functions, classes, modules, settings, variables, codes of
errors. Such a name is unmistakable by its form (`snake_case`, `CamelCase`, `SCREAMING_CASE`, `dotted.path`, `E0308`).
Names that every project has are left out, because they say nothing about what is being touched.

What stack traces and logs say about other people's code, installed packages and the language, is not read: a frame in
another one's file, its line of source code, and in Go and Rust the line that names its function. Prose that only
mentions a package or one of its files is read. Windows paths are read like others.
"""

from __future__ import annotations

import re
from functools import lru_cache

from learnt.errors import InvalidValue
from learnt.model import Value
from learnt.text.clean import first_words, last_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

MAX_WILDCARDS = 20
ANY = "*"  # the anchor of a pattern without a fixed word

_SEPARATORS = str.maketrans(dict.fromkeys("\"'`,;()<>[]{}|", " "))  # a regular expression takes longer to compile
_WORD = re.compile(r"\w+")
# The other expressions are compiled when first needed: compiling takes longer than most searches.
# Text after a mentioned path: `app.py:42:7`, `app.py#L10`, `test_app.py::test_login`.
_AFTER_PATH = r"(?s)(?:::.*|(?::\d+(?:-\d+)?)+|#L?\d+\S*)$"
_WILDCARD = r"\*\*/|\*\*|\*|\?|\[!?[^\]/]+\]|\{[^{}]*\}"
# Commands in prose: in backticks, after a prompt, in a code block.
_IN_BACKTICKS = r"(?<!`)`([^`\n]+)`(?!`)"
_AFTER_PROMPT = r"(?m)(?:^|[ \t])\$ (.+)"
_CODE_BLOCK = r"(?ms)^[ \t]*(?:```|~~~)[^\n]*\n(.*?)(?:^[ \t]*(?:```|~~~)|\Z)"
_NEXT_COMMAND = r"&&|\|\|?|;|\n"
_PUNCTUATION = ".:!?"
_HALF_TEXT_LENGTH = 100_000
_MAX_PATH_LENGTH = 500
_MAX_SHOWN_LENGTH = 80
MAX_NAMES = 5
_MIN_NAME_LENGTH, _MAX_NAME_LENGTH = 5, 80
_MAX_RUN = 3  # of segments of a dotted path
_CHAIN = r"[^\W\d]\w*(?:(?:\.|::)[^\W\d]\w*)*"
_ONE_NAME = rf"@?{_CHAIN}(?:\(\))?!?"  # also a call, a decorator or a macro
_CAMEL = r"[A-Z]?[a-z]+\d*[A-Z]\w*|[A-Z]{2,}[a-z]{3,}\w*"
_CODE = r"[A-Z]{1,5}\d{3,5}"
# What ends like this is a file or an address, which has triggers of its own.
_ENDINGS = frozenset(
    (
        "py js ts tsx jsx mjs cjs go rs rb java kt c h cc cpp hpp cs php swift sh bash zsh ps1 sql md rst txt json "
        "jsonl yaml yml toml ini cfg conf lock xml html css scss svg png jpg gif pdf csv tsv log db sqlite zip gz "
        "tar whl env example com org net io dev ai app local test "
    ).split()
)
# Names that say nothing: of Python, JavaScript, Go and test frameworks; errors that every program may raise; products
# and languages; variables of every shell; placeholders.
_GENERIC = frozenset(
    (
        "__init__ __main__ __name__ __file__ __all__ __future__ __dict__ __class__ __repr__ __str__ __eq__ __hash__ "
        "__enter__ __exit__ __call__ __getattr__ __post_init__ self.assert os.path os.environ os.getenv sys.path "
        "sys.argv sys.exit sys.stdout sys.stderr sys.stdin json.loads json.dumps json.load json.dump console.log "
        "console.error process.env process.exit process.argv module.exports node_modules site_packages set_up "
        "tear_down setUp tearDown setupTest beforeEach afterEach beforeAll afterAll toEqual toBe pytest.fixture "
        "pytest.mark pytest.raises test_case TestCase fmt.Println fmt.Printf fmt.Sprintf fmt.Errorf err.Error "
        "context.Context http.Request ctx.Done ValueError TypeError KeyError IndexError AttributeError RuntimeError "
        "ImportError ModuleNotFoundError NameError OSError IOError FileNotFoundError AssertionError "
        "NotImplementedError StopIteration KeyboardInterrupt SystemExit SyntaxError ReferenceError RangeError "
        "NullPointerException IllegalArgumentException BaseException JavaScript TypeScript GitHub GitLab BitBucket "
        "PostgreSQL MySQL SQLite MongoDB GraphQL DynamoDB CloudFront YouTube LinkedIn macOS iOS iPhone iPad OpenAI "
        "ChatGPT DevOps WebSocket WebSockets FastAPI NumPy PyPI PyTorch VSCode VisualStudio JetBrains IntelliJ "
        "PyCharm OAuth OpenAPI RESTful CamelCase camelCase PascalCase snake_case SCREAMING_CASE Makefile Dockerfile "
        "README CHANGELOG CONTRIBUTING LICENSE TODO FIXME NodeJS ReactJS NextJS VueJS PYTHONPATH NODE_ENV "
        "LD_LIBRARY_PATH JAVA_HOME GITHUB_TOKEN GITHUB_ACTIONS UTF8 UTF16 SHA256 SHA512 SHA1 BASE64 foo_bar FooBar "
        "fooBar foo.bar my_function MyClass my_class my_project your_project file_name file_path user_id created_at "
        "updated_at is_active "
    ).split()
)

# Only a text with one of these is looked through for other people's code.
_FOREIGN_WORDS = (
    "-packages", "node_modules", "pkg/mod", ".cargo", ".rustup", "/rustc/", "/gems/", "/usr/", "/python",
    "program files", "node:internal",
)  # fmt: skip
# A file with the number of a line: prose that only mentions a file of a package may be about it.
_FOREIGN_FRAME = (
    r"(?i)(?:(?:\b(?:site|dist)-packages|\bnode_modules|\bpkg/mod|\.cargo|\.rustup|/rustc|/gems"
    r"|/usr(?:/local)?/lib(?:64)?|/lib/python\d[\d.]*|/python\d[\d.]*/lib|:/program files(?: \(x86\))?)"
    r"/[^\"'()]{0,200}?\.\w{1,9}|\bnode:internal/[\w/]{1,80})(?:[\"']?, line |:| on line |\()\d"
)
_MAX_FRAME_LENGTH = 500
_MESSAGE = r"\d*(?::\d+)?(?::| -)\s+(\S.*)"  # a warning after the place that it is about
_PYTHON_FRAME = r'\s*File ".*", line \d+'
_GO_FILE = r"\t\S+\.go:\d+"
_GO_FUNCTION = r"(?:created by )?\S+/\S+(?:\(.*\)| in goroutine \d+)?$"
_RUST_FILE = r"\s+at \S+\.rs:\d+"
_RUST_FUNCTION = r"\s*\d+: "


class Situation(Value):
    """What is known about the work that an agent is about to do."""

    text: str = ""
    paths: tuple[str, ...] = ()
    command: str = ""
    tools: tuple[str, ...] = ()
    task_type: str = ""


class SituationMatcher:
    """Matches patterns against one situation."""

    def __init__(self, situation: Situation) -> None:
        text = drop_foreign_lines(beginning_and_end(situation.text, _HALF_TEXT_LENGTH))
        tokens = _split_tokens(f"{text} {situation.command}")
        self._paths = _list_paths(situation.paths, tokens)
        self._bare_names = {name for name in map(_trim_path, tokens) if _is_name(name)}
        self._all_paths = "\n".join([*self._paths, *(name.lower() for name in self._bare_names)])
        given, mentioned = _list_command_words(situation.command), _list_command_words(text)
        self._words = {*given, *mentioned}
        self._in_sequence = f" {' '.join(given)} \n {' '.join(mentioned)} "
        self._started = {*given, *list_started_commands(text)}
        self._text = " ".join(text.lower().split())
        self._tools = {tool.lower() for tool in situation.tools}
        self._task_type = situation.task_type.lower()
        self._results: dict[tuple[str, str], bool] = {}

    def anchors(self) -> dict[str, set[str]]:
        """Return the anchors that occur in the situation, by kind of trigger."""
        names = {path.rpartition("/")[2] for path in self._paths}
        endings = {"." + name.rpartition(".")[2] for name in names if "." in name}
        files = {*names, *endings, *(name.lower() for name in self._bare_names)}
        return {
            "files": {ANY, *files} if files else set(),
            "commands": self._words | self._started,
            "errors": {ANY, *_WORD.findall(self._text)} if self._text else set(),
            "tools": set(self._tools),
            "task_types": {self._task_type} if self._task_type else set(),
        }

    def matches(self, kind: str, pattern: str) -> bool:
        """Return whether a trigger's pattern matches."""
        if (kind, pattern) not in self._results:
            self._results[kind, pattern] = self._match(kind, pattern)
        return self._results[kind, pattern]

    def _match(self, kind: str, pattern: str) -> bool:
        if kind == "files":
            return self._match_file(pattern)
        if kind == "commands":
            wanted = _list_command_words(pattern)
            if len(wanted) > 1:
                return f" {' '.join(wanted)} " in self._in_sequence
            # A single word such as `make` may be prose: it must be used as a command.
            return bool(wanted) and wanted[0] in self._started
        if kind == "errors":
            return " ".join(pattern.lower().split()) in self._text
        if kind == "tools":
            return pattern.lower() in self._tools
        return pattern.lower() == self._task_type

    def _match_file(self, pattern: str) -> bool:
        pattern = pattern.replace("\\", "/").removeprefix("./")
        name = pattern.rpartition("/")[2]
        pattern = pattern.lower()
        # Substring searches rule out nearly all patterns and paths before an expression is compiled.
        literals = [piece.strip("/") for piece in re.split(_WILDCARD, pattern)]
        if not all(literal in self._all_paths for literal in literals):
            return False
        if name in self._bare_names and _matches_path(pattern, name.lower()):
            return True
        longest = max(literals, key=len)
        return any(longest in path and _matches_path(pattern, path) for path in self._paths)


def _split_tokens(text: str) -> list[str]:
    return text.translate(_SEPARATORS).split()


def anchor_of(kind: str, pattern: str) -> str:
    """Return a word that every match of the pattern contains."""
    pattern = pattern.lower()
    if kind == "files":
        name = pattern.replace("\\", "/").removeprefix("./").rpartition("/")[2]
        if name and not any(character in name for character in "*?[]{}"):
            return name
        ending = "." + name.rpartition(".")[2]
        return ending if "." in name and not any(character in ending for character in "*?[]{}") else ANY
    if kind == "commands":
        return next(iter(_list_command_words(pattern)), ANY)
    if kind == "errors":
        return max(_WORD.findall(pattern), key=len, default=ANY)
    return pattern


def beginning_and_end(text: str, half: int) -> str:
    """Return a text, or the beginning and the end of a very long one."""
    return text if len(text) <= 2 * half else f"{first_words(text, half)}\n{last_words(text, half)}"


def drop_foreign_lines(text: str) -> str:
    """Return the text without the lines about other people's code; the whole text if there is nothing else."""
    plain = text.replace("\\", "/").lower()
    if not any(folder in plain for folder in _FOREIGN_WORDS):
        return text
    kept: list[str] = []
    is_foreign, indentation = False, 0
    for line in text.splitlines():
        if is_foreign and _indentation_of(line) > indentation:
            continue  # the frame's source code
        frame = re.search(_FOREIGN_FRAME, line[:_MAX_FRAME_LENGTH].replace("\\", "/"))
        is_foreign = frame is not None and re.match(_PYTHON_FRAME, line) is not None
        indentation = _indentation_of(line)
        if frame is None:
            kept.append(line)
        elif message := re.match(_MESSAGE, line[frame.end() :]):
            kept.append(message[1])
        elif kept and _belongs_to(kept[-1], line):
            kept.pop()
    return "\n".join(kept) if any(map(str.strip, kept)) else text


def _indentation_of(line: str) -> int:
    return len(line) - len(line.lstrip()) if line.strip() else 0


def _belongs_to(function: str, file: str) -> bool:
    """Return whether a line names the function of the frame whose file stands in the next line, as in Go and Rust."""
    pairs = ((_GO_FILE, _GO_FUNCTION), (_RUST_FILE, _RUST_FUNCTION))
    return any(
        re.match(of_file, file) and re.match(of_function, function[:_MAX_FRAME_LENGTH])
        for of_file, of_function in pairs
    )


def _list_paths(given: Iterable[str], tokens: Iterable[str]) -> list[str]:
    """Return the given paths and those that the tokens mention, in lower case."""
    paths = dict.fromkeys(path.replace("\\", "/").lower().removeprefix("./") for path in given if path)
    for token in dict.fromkeys(tokens):
        if ("/" in token or "." in token or "\\" in token) and len(token) <= _MAX_PATH_LENGTH:
            path = _trim_path(token)
            if "/" in path or "." in path:
                paths[path.lower()] = None
    return list(paths)


def list_mentioned_paths(text: str) -> list[str]:
    """Return the paths that a text mentions, as they are spelt."""
    tokens = dict.fromkeys(_split_tokens(beginning_and_end(text, _HALF_TEXT_LENGTH)))
    paths = (_trim_path(token) for token in tokens if len(token) <= _MAX_PATH_LENGTH)
    return [path for path in paths if "/" in path or "." in path]


def _trim_path(token: str) -> str:
    """Return a mentioned path without the text around it: `@a.py`, `--file=a.py`, `**a.py**`, `a.py:42`."""
    path = token.rpartition("=")[2] or token
    path = path.lstrip("@*").rstrip(_PUNCTUATION + "*")
    if ":" in path or "#" in path:
        path = re.sub(_AFTER_PATH, "", path)
    return path.replace("\\", "/").removeprefix("./")


def _is_name(token: str) -> bool:
    """Return whether a word without a dot or slash can be the name of a file: `Makefile`, `LICENSE`, `justfile`."""
    return token.isidentifier() and (token != token.lower() or token.endswith("file"))


def _list_command_words(text: str) -> list[str]:
    stripped = (token.lower().strip(_PUNCTUATION) for token in _split_tokens(text))
    return [word for word in stripped if word]


def list_started_commands(text: str) -> Iterator[str]:
    """Yield the first word of each command that a text shows."""
    markers = {"`": _IN_BACKTICKS, "$ ": _AFTER_PROMPT, "```": _CODE_BLOCK, "~~~": _CODE_BLOCK}
    expressions = dict.fromkeys(expression for marker, expression in markers.items() if marker in text)
    for snippet in (snippet for expression in expressions for snippet in re.findall(expression, text)):
        for line in re.split(_NEXT_COMMAND, snippet):
            words = [word for word in _list_command_words(line.strip().removeprefix("$ ")) if word != "sudo"]
            yield from words[:1]


def _matches_path(pattern: str, path: str) -> bool:
    """Match like .gitignore: a pattern without a slash matches names, one with a slash the end of the path.

    A pattern that ends with a slash matches everything in that folder.
    """
    if "/" not in pattern:
        path = path.rpartition("/")[2]
    return count_wildcards(pattern) <= MAX_WILDCARDS and _read_glob(pattern).matches(path)


def count_wildcards(pattern: str) -> int:
    """Return how many signs of a pattern for files could match in many ways."""
    return sum(map(pattern.count, "*?[{"))


def refuse_wild_patterns(fields: Mapping[str, Any]) -> None:
    """Raise InvalidValue if the triggers among these fields of a learning have a pattern with too many wildcards."""
    triggers = fields.get("triggers")
    for pattern in triggers.files if triggers else ():
        if count_wildcards(pattern) > MAX_WILDCARDS:
            raise InvalidValue(
                f"the pattern `{pattern[:_MAX_SHOWN_LENGTH]}` has more than {MAX_WILDCARDS} wildcards",
                hint="give several patterns that say less each, or a folder such as `src/`",
            )


def list_names(*texts: str) -> list[str]:
    """Return the distinctive identifiers that texts name, the most distinctive first, at most `MAX_NAMES`."""
    found: dict[str, None] = {}
    for text in texts:
        for chain in _find_chains(_drop_snippets(text)):
            for name in _list_distinctive(chain):
                found[name] = None
    return sorted(found, key=len, reverse=True)[:MAX_NAMES]


def _drop_snippets(text: str) -> str:
    """Return a text without commands and lines of code in backticks: the names in them may be those of an example."""
    return re.sub(_IN_BACKTICKS, lambda code: code[1] if re.fullmatch(_ONE_NAME, code[1].strip()) else " ", text)


def list_mentioned(text: str) -> set[str]:
    """Return every run of segments in the identifiers of a text that may be a distinctive name."""
    runs = {run for chain in {*_find_chains(text)} for run in _list_runs(chain)}
    return {run for run in runs if len(run) >= _MIN_NAME_LENGTH and _may_be_name(run)}


def _find_chains(text: str) -> list[str]:
    """Return the words that dots join in a text, and single words; without lower-case words, which name nothing."""
    chains = re.findall(_CHAIN, text)
    return [chain.replace("::", ".") for chain in chains if not (chain.islower() and chain.isalpha())]


def find_anchor(name: str) -> str:
    """Return a part that each spelling of a name contains, in lower case."""
    return max(name.split("."), key=len).lower()


def _may_be_name(name: str) -> bool:
    return "." in name or _is_unmistakable(name)


def _list_distinctive(chain: str) -> Iterator[str]:
    """Yield a chain and its last segment, as far as they are distinctive."""
    segments = chain.split(".")
    if len(segments) > 1 and segments[-1].lower() in _ENDINGS:
        return
    if any(segment in _ENDINGS for segment in segments[1:]):
        segments = segments[-1:]  # a test in a file
    dotted = ".".join(segments[-_MAX_RUN:])
    if len(segments) > 1 and _is_path(segments) and _fits(dotted):
        yield dotted
    if _is_unmistakable(segments[-1]) and _fits(segments[-1]):
        yield segments[-1]


def _list_runs(chain: str) -> Iterator[str]:
    segments = chain.split(".")
    for start in range(len(segments)):
        for end in range(start + 1, min(start + _MAX_RUN, len(segments)) + 1):
            yield ".".join(segments[start:end])


def _is_path(segments: list[str]) -> bool:
    """Return whether words joined by dots are a path in code, and not a missing blank after a full stop."""
    return all(len(segment) > 1 for segment in segments) and not (
        len(segments) == 2 and segments[1][:1].isupper() and not _is_unmistakable(segments[1])
    )


def _fits(name: str) -> bool:
    return _MIN_NAME_LENGTH <= len(name) <= _MAX_NAME_LENGTH and name not in _GENERIC and name.isascii()


def _is_unmistakable(word: str) -> bool:
    """Return whether a word cannot be prose: it has humps or underscores inside, or is the code of an error."""
    inner = word.strip("_")
    if "_" in inner:
        return True
    return bool(re.fullmatch(_CAMEL, inner) or re.fullmatch(_CODE, inner))


@lru_cache(maxsize=10_000)
def _read_glob(pattern: str) -> _Glob:
    glob = _Glob()
    if not pattern.startswith("/"):
        glob.add_folders()
    glob.add(pattern)
    if pattern.endswith("/"):
        glob.add_repeated(_is_anything)
    return glob


class _Glob:
    """A pattern as states, and what leads from each to others; a path is followed in all states at once."""

    def __init__(self) -> None:
        self._moves: list[list[tuple[Callable[[str], bool], int]]] = [[]]
        self._skips: list[list[int]] = [[]]

    def matches(self, path: str) -> bool:
        """Return whether the whole path leads from the first state to the last."""
        states = self._reach([0])
        for letter in path:
            states = self._reach(target for state in states for fits, target in self._moves[state] if fits(letter))
            if not states:
                return False
        return len(self._moves) - 1 in states

    def add(self, pattern: str) -> None:
        """Add what a pattern asks for."""
        position = 0
        for wildcard in re.finditer(_WILDCARD, pattern):
            self._add_text(pattern[position : wildcard.start()])
            self._add_wildcard(wildcard[0])
            position = wildcard.end()
        self._add_text(pattern[position:])

    def add_folders(self) -> None:
        """Add any number of folders, also none."""
        start = len(self._moves) - 1
        self.add_repeated(_is_anything)
        self._add_letter("/".__eq__)
        self._skips[start].append(len(self._moves) - 1)

    def add_repeated(self, fits: Callable[[str], bool]) -> None:
        """Add any number of such letters, also none."""
        self._skips[-1].append(self._add_state())
        self._moves[-1].append((fits, len(self._moves) - 1))

    def _add_text(self, text: str) -> None:
        for letter in text:
            self._add_letter(letter.__eq__)

    def _add_letter(self, fits: Callable[[str], bool]) -> None:
        before = self._moves[-1]
        before.append((fits, self._add_state()))

    def _add_wildcard(self, wildcard: str) -> None:
        if wildcard[0] == "[":
            self._add_letter(_read_set(wildcard))
        elif wildcard[0] == "{":
            self._add_choices(wildcard[1:-1].split(","))
        elif wildcard == "**/":
            self.add_folders()
        elif wildcard == "?":
            self._add_letter(_is_in_name)
        else:
            self.add_repeated(_is_anything if wildcard == "**" else _is_in_name)

    def _add_choices(self, patterns: Sequence[str]) -> None:
        start, ends = len(self._moves) - 1, []
        for pattern in patterns:
            self._skips[start].append(self._add_state())
            self.add(pattern)
            ends.append(len(self._moves) - 1)
        last = self._add_state()
        for end in ends:
            self._skips[end].append(last)

    def _add_state(self) -> int:
        self._moves.append([])
        self._skips.append([])
        return len(self._moves) - 1

    def _reach(self, states: Iterable[int]) -> set[int]:
        """Return these states and all that follow without a letter."""
        reached: set[int] = set()
        waiting = list(states)
        while waiting:
            state = waiting.pop()
            if state not in reached:
                reached.add(state)
                waiting += self._skips[state]
        return reached


def _is_anything(_letter: str) -> bool:
    return True


def _is_in_name(letter: str) -> bool:
    return letter != "/"


def _read_set(wildcard: str) -> Callable[[str], bool]:
    """Return whether a letter is one that square brackets name, such as `[a-z_]` or `[!0-9]`."""
    negated = wildcard[1] == "!" and len(wildcard) > 3
    letters = wildcard[2 if negated else 1 : -1]
    ranges: list[tuple[str, str]] = []
    position = 0
    while position < len(letters):
        first, last = letters[position], letters[position + 2 : position + 3]
        is_range = letters[position + 1 : position + 2] == "-" and bool(last) and first <= last
        ranges.append((first, last if is_range else first))
        position += 3 if is_range else 1
    return lambda letter: letter != "/" and any(first <= letter <= last for first, last in ranges) != negated
