"""Find the files, error types and tools that a text mentions, as tags of a learning.

In doubt a word is not a tag: a file must have a known extension, and a tool whose name is also an English word (`make`,
`go`) must be used as a command.
"""

from __future__ import annotations

import re

from learnt.model import TITLE_LIMIT
from learnt.text.triggers import list_started_commands

_EXTENSIONS = (
    "bash|bat|c|cc|cfg|cjs|clj|cmake|conf|cpp|cs|css|csv|cu|dart|db|env|erl|ex|exs|fs|go|gql|gradle|graphql|h|hpp|hs|"
    "html|ini|ipynb|java|jl|js|json|jsonl|jsx|kt|kts|less|lock|log|lua|md|mdx|mjs|mk|ml|nix|php|pl|proto|ps1|py|pyi|"
    "rb|rs|rst|sass|scala|scss|sh|so|sql|sqlite|svelte|svg|swift|tex|tf|toml|ts|tsx|txt|vue|wasm|xml|yaml|yml|zig|zsh"
)
_NOT_FILES = r"(?:self|this|cls)\.|(?:d3|express|nest|next|node|nuxt|react|three|vue)\.js\b"
# Without backtracking (`*+`): a text may be long.
_FILE = re.compile(
    rf"(?<![\w/.:~-])(?!{_NOT_FILES})((?:~?/)?+(?:[\w.-]++/)*+[\w-][\w.-]*?\.(?:{_EXTENSIONS}))(?![\w/-]|\.\w)",
    re.IGNORECASE,
)
_ERROR = re.compile(r"\b(?:[A-Z]\w*(?:Error|Exception|Warning)|E\d{3,5}|ERR_[A-Z_]+|SIG[A-Z]{3,6})\b")
_TOOL = re.compile(
    r"(?<![\w./-])(?:git|npm|pnpm|pip|uv|pytest|ruff|mypy|docker|kubectl|terraform|cmake|gradle|maven|eslint|tsc|"
    r"vitest|psql|sqlite3|redis|aws|az|gcloud|ssh)(?![\w/-]|\.\w)"
)
_ENGLISH_WORDS = ("cargo", "curl", "go", "jest", "make", "playwright", "poetry", "yarn")
_RUN_COMMAND = re.compile(r"\b(?:re)?run(?:s|ning)?\s+(\w+)(?![/-]|\.\w)", re.IGNORECASE)
_MAX_TAGS = 5


def find_tags(text: str) -> tuple[str, ...]:
    """Return a few tags for the files, errors and tools in a text, in this order."""
    words = [*(path.removeprefix("./") for path in _FILE.findall(text)), *_ERROR.findall(text), *_find_tools(text)]
    return tuple(dict.fromkeys(word.lower() for word in words if len(word) <= TITLE_LIMIT))[:_MAX_TAGS]


def find_files(text: str) -> tuple[str, ...]:
    """Return the files of a project that a text mentions."""
    paths = (path.removeprefix("./") for path in _FILE.findall(text))
    return tuple(dict.fromkeys(path for path in paths if not path.startswith(("/", "~"))))[:_MAX_TAGS]


def _find_tools(text: str) -> list[str]:
    started = {*list_started_commands(text), *_RUN_COMMAND.findall(text)}
    return [*_TOOL.findall(text), *(tool for tool in _ENGLISH_WORDS if tool in started)]
