"""Run git without prompts, and without our process's `GIT_…` variables, which may point to another repository."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from learnt.errors import LearntError
from learnt.model import Value
from learnt.system.run import EXITED, run

_LIMIT_S = 300
_MAX_OUTPUT_BYTES = 100_000_000
_MAX_COMMITS = 5_000
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
    clean = {name: text for name, text in environ.items() if not name.startswith("GIT_")}
    printed = {"stdout": bytearray(), "stderr": bytearray()}

    def keep(name: str, chunk: bytes) -> bool:
        printed[name].extend(chunk)
        return len(printed[name]) <= _MAX_OUTPUT_BYTES

    with open(os.devnull, "rb") as nothing:
        exit = run(
            ["git", *words],
            folder=folder,
            environ={**clean, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
            stdin=nothing,
            keep=keep,
            time_limit_s=_LIMIT_S,
        )
    if exit.ending != EXITED:
        reason = exit.error or f"it reached its {exit.ending}"
        raise LearntError(f"git could not be run: {reason}", hint="check that git works here: `git status`")
    output, errors = (printed[name].decode("utf-8", "replace").strip() for name in ("stdout", "stderr"))
    if exit.exit_code:
        if not check:
            return None
        raise LearntError(
            f"`git {' '.join(words)}` failed: {errors}", hint=f"run it in {folder} to see why, then try again"
        )
    return output


def commits(folder: str, *, since_ms: int, environ: Mapping[str, str]) -> Iterator[Commit]:
    """Yield the current branch's commits since the given time, newest first; outside a repository, yield nothing."""
    words = ["log", f"--since=@{since_ms // 1000}", f"--max-count={_MAX_COMMITS}", "--no-merges", "--name-only"]
    form = _FIELD.join((f"--format={_RECORD}%H", "%at", "%s", "%b", ""))
    output = git(folder, *words, form, environ=environ, check=False)
    for record in (output or "").split(_RECORD)[1:]:
        fields = record.split(_FIELD)
        if len(fields) == 5 and fields[1].isdecimal():
            id, at, subject, body, files = map(str.strip, fields)
            yield Commit(id=id, at=int(at) * 1000, subject=subject, body=body, files=tuple(files.splitlines()))
