"""Run git without prompts, and without our process's `GIT_…` variables, which may point to another repository.

A repository's own configuration cannot start a program: it may have come in an archive, from somebody else. Programs
that the user's or the system's configuration names, such as Git LFS, still run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from learnt.errors import LearntError
from learnt.model import Value
from learnt.system.run import EXITED, run
from learnt.text.clean import fold

_LIMIT_S = 300
_MAX_OUTPUT_BYTES = 100_000_000
_MAX_COMMITS = 5_000
# These hold for every repository. Hooks, pagers, editors and signatures are not needed; nothing is fetched.
_SETTINGS = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.alternateRefsCommand=",
    "diff.external=",
    "diff.ignoreSubmodules=dirty",
    "log.showSignature=false",
    "merge.verifySignatures=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "gc.auto=0",
    "gc.recentObjectsHook=",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "safe.bareRepository=explicit",
)
_VARIABLES = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": ":",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
}
# Keys in sections with a free name, such as `filter.NAME.clean`, that start a program, and the values that start none.
# Without its merge driver a file conflicts, so that nobody's change is lost.
_KEYS_OF_PROGRAMS = {
    "clean": "",
    "smudge": "",
    "process": "",
    "required": "false",
    "textconv": "",
    "command": "",
    "cmd": "",
    "program": "",
    "helper": "",
    "driver": "false",
}
_OWN_SCOPES = ("local", "worktree")
_MIN_TELLING_LENGTH, _MAX_TELLING_LINES = 16, 20
_TEXT_FILE = re.compile(r"\.(?:md|rst|txt|adoc)$|(?:^|/)(?:changes|changelog|history|news|authors)\b", re.IGNORECASE)
_FIELD, _RECORD = "\x01", "\x02"  # not \x1f and \x1e, which `strip` would remove as white space


class Commit(Value):
    """A commit with its message and the files that it touches."""

    id: str
    at: int
    subject: str
    body: str = ""
    files: tuple[str, ...] = ()


def git(folder: str, *words: str, environ: Mapping[str, str], check: bool = True) -> str | None:
    """Run git in a folder and return its output; return None if it fails and `check` is False."""
    if not os.path.isdir(folder):
        if not check:
            return None
        raise LearntError(f"the folder {folder} no longer exists", hint="find out what removed it")
    own = _run(folder, ["config", "--list", "--name-only", "--show-scope", "-z"], environ)
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    done = _run(folder, [*settings, *words], environ, _without_programs(own.output if own.is_fine else ""))
    if not done.is_fine:
        if not check:
            return None
        raise LearntError(
            fold(f"`git {' '.join(words)}` failed: {done.errors}"),
            hint=f"run it in {folder} to see why, then try again",
        )
    return done.output


class _Done(Value):
    """A run of git that has ended."""

    is_fine: bool
    output: str
    errors: str


def _run(
    folder: str, words: list[str], environ: Mapping[str, str], overrides: Mapping[str, str] | None = None
) -> _Done:
    clean = {name: text for name, text in environ.items() if not name.startswith("GIT_")}
    printed = {"stdout": bytearray(), "stderr": bytearray()}

    def keep(name: str, chunk: bytes) -> bool:
        printed[name].extend(chunk)
        return len(printed[name]) <= _MAX_OUTPUT_BYTES

    with open(os.devnull, "rb") as nothing:
        exit = run(
            ["git", *words],
            folder=folder,
            environ={**clean, **_VARIABLES, **(overrides or {})},
            stdin=nothing,
            keep=keep,
            time_limit_s=_LIMIT_S,
        )
    if exit.ending != EXITED:
        reason = exit.error or f"it reached its {exit.ending}"
        raise LearntError(f"git could not be run: {reason}", hint="check that git works here: `git status`")
    output, errors = (printed[name].decode("utf-8", "replace").strip() for name in ("stdout", "stderr"))
    return _Done(is_fine=not exit.exit_code, output=output, errors=errors)


def _without_programs(listed: str) -> dict[str, str]:
    """Return variables that replace the programs of a repository's own configuration, which is listed with scopes.

    They are variables, because a name with an equals sign could not be written as an option.
    """
    parts = listed.split("\0")
    own = {key for scope, key in zip(parts[::2], parts[1::2], strict=False) if scope in _OWN_SCOPES}
    last_parts = {key: key.rpartition(".")[2] for key in sorted(own) if key.count(".") > 1}
    values = {key: _KEYS_OF_PROGRAMS[last] for key, last in last_parts.items() if last in _KEYS_OF_PROGRAMS}
    variables = {"GIT_CONFIG_COUNT": str(len(values))}
    for number, (key, value) in enumerate(values.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def commits(folder: str, *, since_ms: int, environ: Mapping[str, str]) -> Iterator[Commit]:
    """Yield the current branch's commits since the given time, newest first; outside a repository, yield nothing."""
    # git takes a number below 100,000,000 for an hour or a day of this month, not for seconds since 1970.
    words = ["log", f"--since=@{max(since_ms // 1000, 100_000_000)}", f"--max-count={_MAX_COMMITS}"]
    words += ["--no-merges", "--name-only"]
    words += ["--no-ext-diff", "--no-textconv", "--no-show-signature", "--ignore-submodules"]
    form = _FIELD.join((f"--format={_RECORD}%H", "%at", "%s", "%b", ""))
    output = git(folder, *words, form, environ=environ, check=False)
    for record in (output or "").split(_RECORD)[1:]:
        fields = record.split(_FIELD)
        if len(fields) == 5 and fields[1].isdecimal():
            id, at, subject, body, files = map(str.strip, fields)
            yield Commit(id=id, at=int(at) * 1000, subject=subject, body=body, files=tuple(files.splitlines()))


def commit_at(folder: str, at_ms: int, *, environ: Mapping[str, str]) -> str:
    """Return the newest commit of the current branch that is not later than the given time; empty if there is none."""
    words = ("rev-list", "-1", f"--before=@{at_ms // 1000}", "HEAD")
    return (git(folder, *words, environ=environ, check=False) or "").strip()


def still_stands(folder: str, commit: str, *, environ: Mapping[str, str]) -> bool:
    """Return whether most lines that a commit added are still there, or most that it only removed are still gone."""
    shown = git(
        folder,
        "show",
        "--format=",
        "--unified=0",
        "--no-ext-diff",
        "--no-textconv",
        commit,
        environ=environ,
        check=False,
    )
    added, removed = _read_lines(shown or "", "+"), _read_lines(shown or "", "-")
    lines = added or removed
    if not lines:
        return True
    words = [word for line in lines for word in ("-e", line)]
    found = git(folder, "grep", "-I", "-h", "-F", "--no-textconv", *words, "HEAD", environ=environ, check=False) or ""
    present = sum(line in found for line in lines)
    return 2 * present >= len(lines) if added else 2 * present <= len(lines)


def _read_lines(diff: str, sign: str) -> list[str]:
    """Return the longest lines of code that a diff adds or removes, or lines of texts if there is no code."""
    code: list[str] = []
    texts: list[str] = []
    path = ""
    for line in diff.splitlines():
        if line.startswith(("--- ", "+++ ")):
            path = line[4:]
        elif line.startswith(sign) and len(line.strip()) >= _MIN_TELLING_LENGTH:
            (texts if _TEXT_FILE.search(path) else code).append(line[1:].strip())
    return sorted(dict.fromkeys(code or texts), key=len, reverse=True)[:_MAX_TELLING_LINES]
