"""Find and read files with rules: which names are known, what a folder contains, and how a path is remembered.

A link in the project is followed only within it, because a clone may bring one that leads to a private file. Inside a
store, none is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from learnt.clients.registry import CLIENTS
from learnt.consolidate.memory_index import remove_pointer
from learnt.errors import InvalidValue, WrongRequest
from learnt.flow.context import Context
from learnt.learnings_file.lines import ID_COMMENT
from learnt.model import TRIGGER_LIMIT, Value
from learnt.system.files import open_to_read
from learnt.text.clean import clean
from learnt.text.redact import redact

MAX_BYTES = 500_000
_MAX_FILES = 200
_LEARNINGS_FILE = "learnings.md"
# Files with rules of clients that learnt does not serve, or that clients load only when they are told to.
_OTHER_NAMES = (
    *(".cursorrules", ".windsurfrules", ".clinerules", ".goosehints", ".rules", "copilot-instructions.md"),
    *("CONVENTIONS.md", "QWEN.md", "WARP.md", "CODEX.md", "MEMORY.md", _LEARNINGS_FILE),
)
_NAMES = frozenset(
    name.rpartition("/")[2].lower() for name in (*(name for client in CLIENTS for name in client.loads), *_OTHER_NAMES)
) - {"*"}
_ENDINGS = (".mdc", ".instructions.md")
_FOLDERS = (
    *(".cursor/rules", ".claude/rules", ".github/instructions", ".windsurf/rules", ".clinerules", ".codex/memories"),
    *(".roo/rules", ".kiro/steering", ".junie", ".amazonq/rules"),
)
_IN_FOLDERS = (".md", ".mdc")
_NOT_IN_FOLDERS = ("raw_memories.md",)  # Codex' own material, not its conclusions
# What `init` mentions if it is there.
_USUAL = ("CLAUDE.md", "AGENTS.md", "GEMINI.md", ".cursor/rules", ".cursorrules", ".github/copilot-instructions.md")
_LISTS = ("\n- ", "\n* ", "\n1. ")


class RulesSource(Value):
    """A file with rules, as it was read."""

    name: str
    """As the user wrote it, or below the folder that the user named."""
    text: str
    place: str = ""
    """As learnings remember it: below the project's folder, or below the user's (`~/`); empty if they do not."""
    files: tuple[str, ...] = ()
    """The folder that the rules apply to, if the file is not in the project's main folder."""


def is_rules_file(path: str, text: str) -> bool:
    """Return whether a file has rules for agents, by its name and otherwise by its content."""
    if "<!-- learnt: {" in text:
        return False  # exported learnings, whatever the file is called
    if is_known_name(path) or ID_COMMENT.search(text):
        return True
    has_labels = any(f"**{name}**:" in text for name in ("Observation", "Action"))
    return not has_labels and any(mark in f"\n{text}" for mark in _LISTS)


def is_known_name(path: str) -> bool:
    """Return whether a path is that of a file or folder with rules."""
    path = path.replace("\\", "/").rstrip("/")
    name = path.rpartition("/")[2].lower()
    in_folder = any(f"/{folder}/" in f"/{path}/" for folder in _FOLDERS)
    return name in _NAMES or name.endswith(_ENDINGS) or in_folder or _is_memory(path)


def _is_memory(path: str) -> bool:
    """Return whether a path is in the folder in which Claude Code keeps its own notes on a project."""
    return "/projects/" in path and "memory" in path.rpartition("/projects/")[2].split("/")


def find_rules_files(root: str) -> list[str]:
    """Return the usual files with rules that are in a project's main folder."""
    return [name for name in _USUAL if os.path.exists(os.path.join(root, name))]


def list_sources(context: Context, path: str) -> Iterator[str]:
    """Yield the files with rules at a path: the file itself, or those in a folder."""
    if not os.path.isdir(path):
        yield path
        return
    _refuse_link(context, path)
    found = sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(path)
        for name in names
        if name.lower().endswith(_IN_FOLDERS) and name not in _NOT_IN_FOLDERS
    )
    files = [file for file in found if not os.path.islink(file)]
    if not files:
        raise WrongRequest(f"{path} contains no files with rules", hint="they end with .md or .mdc")
    if len(files) > _MAX_FILES:
        raise WrongRequest(f"{path} contains {len(files)} files", hint=f"at most {_MAX_FILES} are read at once")
    yield from files


def read_source(context: Context, path: str) -> RulesSource:
    """Return a file with rules; raise WrongRequest if it cannot be read as text."""
    _refuse_link(context, path)
    place = place_of(context, path)
    if place == f".learnt/{_LEARNINGS_FILE}":
        raise WrongRequest(f"{path} is this project's own file", hint="`learnt update` applies what you changed in it")
    try:
        with open(path, "rb", opener=open_to_read) as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise WrongRequest(f"cannot read {path}: {error.strerror}", hint="choose an existing file") from None
    is_shared = bool(context.store.place.address) and not _is_below_root(place)
    return RulesSource(
        name=path,
        text=read_text(context, content, path),
        place="" if is_shared or len(place) > TRIGGER_LIMIT else place,
        files=_read_folder(place) if context.root and _is_below_root(place) else (),
    )


def read_text(context: Context, content: bytes, name: str) -> str:
    """Return the text of a file with rules without secrets; raise if it is too long or not text."""
    if len(content) > MAX_BYTES:
        raise WrongRequest(f"{name} has more than {MAX_BYTES:,} bytes", hint="a file with rules is shorter; split it")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidValue(
            f"{name} is not UTF-8 text: {error.reason} at byte {error.start}", hint="convert it to UTF-8 first"
        ) from None
    if "\0" in text:
        raise InvalidValue(
            f"{name} is not a text file", hint="choose a file such as CLAUDE.md, AGENTS.md or a JSONL export"
        )
    conflict = f"\n{text}".find("\n<<<<<<< ")
    if conflict >= 0 and "\n>>>>>>> " in text:
        line = text.count("\n", 0, conflict) + 1
        raise InvalidValue(f"{name} has a merge conflict in line {line}", hint="resolve it first, then import the file")
    safe, count = redact(clean(remove_pointer(text)))
    context.redactions += count
    return safe


def place_of(context: Context, path: str) -> str:
    """Return how a learning remembers a path: below the project's folder, below the user's, or as it is."""
    folder, name = os.path.split(os.path.abspath(path))
    full = os.path.join(os.path.realpath(folder), name)
    for base, prefix in ((context.root, ""), (os.path.realpath(os.path.expanduser("~")), "~/")):
        if base and full.startswith(base + os.sep):
            return prefix + full[len(base) + 1 :].replace(os.sep, "/")
    return full.replace(os.sep, "/")


def _is_below_root(place: str) -> bool:
    return not place.startswith(("~/", "/")) and ":" not in place


def _read_folder(place: str) -> tuple[str, ...]:
    """Return the folder that a file's rules apply to; folders with settings, such as `.claude`, apply to theirs."""
    parts = place.split("/")[:-1]
    hidden = next((number for number, part in enumerate(parts) if part.startswith(".")), len(parts))
    return (f"{'/'.join(parts[:hidden])}/",) if hidden else ()


def _refuse_link(context: Context, path: str) -> None:
    """Raise if a path in the project is a link that leads out of it, or goes through one."""
    target, inside = os.path.realpath(path), context.root + os.sep
    as_written = os.path.normpath(os.path.join(os.path.realpath(os.curdir), path))
    if context.root and as_written.startswith(inside) and not target.startswith(inside):
        raise WrongRequest(f"{path} is a link to {target}", hint="import that file itself if you want its rules")
