"""Run git: it never prompts, and ignores the repository that the environment of our own process may name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping

from learnt.errors import LearntError
from learnt.model import Value

_LIMIT_S = 300
_MOST_COMMITS = 5_000
_FIELD, _RECORD = "\x01", "\x02"  # no white space, as \x1f and \x1e are: what git says is stripped


class Commit(Value):
    """A commit with its message and the files that it touches."""

    id: str
    at: int
    subject: str
    body: str = ""
    files: tuple[str, ...] = ()


def git(folder: str, *words: str, environ: Mapping[str, str], check: bool = True) -> str | None:
    """Run git in a folder and return its output; None when it fails and `check` is False."""
    if not os.path.isdir(folder):
        if not check:
            return None
        raise LearntError(f"the folder {folder} is gone", hint="look for what removed it")
    clean = {name: text for name, text in environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=folder,
            env={**clean, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            check=False,
            start_new_session=sys.platform != "win32",  # Ctrl-C is for us, not for git
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LearntError(f"git could not be run: {error}", hint="check that git works here: `git status`") from None
    if done.returncode:
        if not check:
            return None
        raise LearntError(
            f"`git {' '.join(words)}` failed: {done.stderr.strip()}", hint=f"look at it in {folder}, then try again"
        )
    return done.stdout.strip()


def commits(folder: str, *, since_ms: int, environ: Mapping[str, str]) -> Iterator[Commit]:
    """Yield the commits on the current branch since a moment, the newest first; outside git, none."""
    words = ["log", f"--since=@{since_ms // 1000}", f"--max-count={_MOST_COMMITS}", "--no-merges", "--name-only"]
    form = _FIELD.join((f"--format={_RECORD}%H", "%at", "%s", "%b", ""))
    output = git(folder, *words, form, environ=environ, check=False)
    for record in (output or "").split(_RECORD)[1:]:
        fields = record.split(_FIELD)
        if len(fields) == 5 and fields[1].isdecimal():
            id, at, subject, body, files = map(str.strip, fields)
            yield Commit(id=id, at=int(at) * 1000, subject=subject, body=body, files=tuple(files.splitlines()))
